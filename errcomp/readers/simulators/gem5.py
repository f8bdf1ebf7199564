"""gem5: dumped statistics of a simulated system."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import number_at

_BEGIN = re.compile(r"- Begin Simulation Statistics -")
_END = re.compile(r"- End Simulation Statistics\s+-")
_LINE = re.compile(r"\s*([^\s#]+)\s+(\S+)")
_CYCLES = re.compile(r"(.+)\.(?:numCycles|num_cycles|totalCycles|total_cycles)")
_CLOCK = re.compile(r"(?:.+\.)?(?:cpu_)?clk_domain\.clock")
#: Old and new names of statistics of the whole system.
_NAMES = {
    "sim_seconds": "seconds",
    "simSeconds": "seconds",
    "sim_ticks": "ticks",
    "simTicks": "ticks",
    "final_tick": "final",
    "finalTick": "final",
    "sim_freq": "frequency",
    "simFreq": "frequency",
    "host_seconds": "host",
    "hostSeconds": "host",
    "sim_insts": "instructions",
    "simInsts": "instructions",
}
#: Ticks are a unit of time if their frequency is one of these.
_TICKS = {1e12: "ps", 1e9: "ns", 1e6: "us"}


def read(path: AnyPath) -> Output:
    r"""Read ``stats.txt`` of gem5, with the old (sim_seconds) or the new (simSeconds) names.

    Parameters
    ----------
    path : path
        One ``stats.txt``, or a folder or archive of them.

    Returns
    -------
    Output
        Each dump is a ``run``. It has the simulated ``time`` from the ticks (``ps`` at the usual
        10^12 ticks per second), which is exact; ``time in seconds``, which gem5 rounds to
        microseconds; ``cycles`` of each CPU (``component``), with ``clock_hz`` if the dump has a
        single clock; and ``host time``, the run time of the simulator itself (measured).

    Raises
    ------
    InputError
        There is no dump, or a value in it is not a number.

    Notes
    -----
    Misleads if the program did not reset the statistics between dumps: a note says that a dump
    includes the previous one. Histograms and counters of components are not read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stats.txt"
    >>> _ = path.write_text(
    ...     "---------- Begin Simulation Statistics ----------\n"
    ...     "simSeconds 0.000056 # Number of seconds simulated (Second)\n"
    ...     "simTicks 56435000 # Number of ticks simulated (Tick)\n"
    ...     "simFreq 1000000000000 # The number of ticks per simulated second\n"
    ...     "---------- End Simulation Statistics   ----------\n")
    >>> read(path).rows.select("run", "quantity", "unit", "predicted").rows()
    [('1', 'time', 'ps', 56435000.0), ('1', 'time in seconds', 's', 5.6e-05)]
    """
    return read_as(path, FORMATS)


class _Dump:
    """The content of a dump."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.cycles: dict[str, float] = {}
        self.clocks: dict[str, float] = {}
        self.complete = False

    def take(self, source: Source, text: str, line: int) -> None:
        match = _LINE.match(text)
        if match is None:
            return
        name, value = match.groups()
        if known := _NAMES.get(name):
            self.values[known] = number_at(source, name, value, line)
        elif cycles := _CYCLES.fullmatch(name):
            self.cycles[cycles.group(1)] = number_at(source, name, value, line)
        elif _CLOCK.fullmatch(name) and ".interrupts." not in name:
            self.clocks[name] = number_at(source, name, value, line)

    @property
    def clock(self) -> float | None:
        """Clock rate in Hz, if all processors have the same."""
        frequency = self.values.get("frequency")
        clocks = {name: value for name, value in self.clocks.items() if "cpu" in name}
        periods = set((clocks or self.clocks).values())
        if not frequency or len(periods) != 1:
            return None
        period = periods.pop()
        return frequency / period if 0 < period < float("inf") else None


def _dumps(source: Source) -> list[_Dump]:
    dumps: list[_Dump] = []
    for number, text in enumerate(source.lines(), start=1):
        if _BEGIN.search(text):
            dumps.append(_Dump())
        elif _END.search(text):
            if dumps:
                dumps[-1].complete = True
        elif dumps and not dumps[-1].complete:
            dumps[-1].take(source, text, number)
    return dumps


_tool = ToolFormats("gem5", gives="predictions")


@_tool.reads(
    "gem5-stats",
    "stats.txt",
    "model, system: time, time in seconds, cycles, host time (ps, s, cycles)",
    lambda source: any(_BEGIN.search(line) for line in source.head_lines),
    sample="m5out/stats.txt of a learning project, with the names used before gem5 21.1",
    limits="Counters of components (caches, DRAM, branch predictors) are not read.",
)
def _read(source: Source) -> Rows:
    dumps = _dumps(source)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    empty, before = 0, 0.0
    for i, dump in enumerate(dumps, start=1):
        added = _rows(str(i), dump)
        rows += added
        empty += not added
        if not dump.complete:
            notes.append(
                f"The last line of dump {i} is missing: the simulation was stopped, or the file is "
                "cut off."
            )
        ticks, final = dump.values.get("ticks", 0.0), dump.values.get("final", 0.0)
        if i > 1 and ticks > final - before > 0:
            notes.append(f"Dump {i} includes dump {i - 1}: the statistics were not reset.")
        before = final
    return Rows(rows, dropped={"dump without time and cycles": empty}, notes=notes)


def _rows(run: str, dump: _Dump) -> list[dict[str, Any]]:
    values, rows = dump.values, []
    common = {
        "level": "model",
        "run": run,
        "instructions": values.get("instructions"),
    }
    unit = _TICKS.get(values.get("frequency", 0.0))
    if "ticks" in values and unit:
        rows.append({**common, "quantity": "time", "unit": unit, "predicted": values["ticks"]})
    elif "ticks" in values:
        rows.append({**common, "quantity": "ticks", "unit": "ticks", "predicted": values["ticks"]})
    if "seconds" in values:
        # With exact ticks, this repeats the time, rounded.
        quantity = "time in seconds" if "ticks" in values and unit else "time"
        rows.append({**common, "quantity": quantity, "unit": "s", "predicted": values["seconds"]})
    for component, cycles in dump.cycles.items():
        rows.append(
            {
                "level": "system",
                "quantity": "cycles",
                "unit": "cycles",
                "predicted": cycles,
                "run": run,
                "component": component,
                "clock_hz": dump.clock,
            }
        )
    if rows and "host" in values:
        host = {"level": "system", "quantity": "host time", "unit": "s"}
        rows.append({**host, "measured": values["host"], "run": run})
    return rows


FORMATS = _tool.formats
