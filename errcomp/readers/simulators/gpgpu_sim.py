"""GPGPU-Sim: its log, with the cycles of each kernel."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import number_at


def read(path: AnyPath) -> Output:
    r"""Read logs (stdout) of GPGPU-Sim 3.x and 4.x, run on its own.

    For logs of Accel-Sim, use `errcomp.readers.simulators.accel_sim`.

    Parameters
    ----------
    path : path
        A log, or a folder or archive of logs.

    Returns
    -------
    Output
        For each launch of a kernel its simulated ``time`` in cycles of the core clock, with
        ``launch``, ``stream``, ``instructions``, ``ipc`` and ``clock_hz``; for the ``run`` the
        total, and the ``host time``, the run time of the simulator itself (measured).

    Raises
    ------
    InputError
        No kernel was launched, or a statistic is not a number.

    Notes
    -----
    A kernel that did not finish has a status; the total of its run has no value. Other statistics
    (caches, DRAM, network) are not read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.txt"
    >>> _ = path.write_text(
    ...     "*** GPGPU-Sim Simulator Version 3.2.2  [build 0] ***\n"
    ...     "-gpgpu_clock_domains 700.0:700.0:700.0:924.0\n"
    ...     "kernel_name = gemm \nkernel_launch_uid = 1 \n"
    ...     "gpu_sim_cycle = 47500\ngpu_tot_sim_cycle = 47500\n")
    >>> read(path).rows.select("level", "predicted", "kernel", "clock_hz").rows()
    [('kernel', 47500.0, 'gemm', 700000000.0), ('model', 47500.0, None, 700000000.0)]
    """
    return read_as(path, FORMATS)


# The log that GPGPU-Sim writes, alone and within Accel-Sim: one block per kernel.

_BANNER = re.compile(r"GPGPU-Sim Simulator Version\s+([\w.]+)")
_ACCEL_BUILD = re.compile(r"^\s*Accel-Sim \[build\s*([^\]]*)\]")
_TRACE = re.compile(
    r"Header info loaded for kernel command|^\s*Processing kernel \S+|"
    r"^\s*launching (?:kernel name|memcpy command)|^-trace\s+\S*kernelslist"
)
_STATISTIC = re.compile(r"^(gpu_(?:tot_)?sim_(?:cycle|insn)|kernel_name|kernel_launch_uid)\s*=")
_BLOCK = re.compile(
    r"^\s*(kernel_name|kernel_launch_uid|kernel_stream_id|gpu_sim_cycle|gpu_sim_insn|gpu_ipc|"
    r"gpu_tot_sim_cycle)\s*=\s*((?:.*\S)?)\s*$"
)
_CLOCK = re.compile(r"^-gpgpu_clock_domains\s+([\d.]+):")
_CLOCK_HZ = re.compile(r"^GPGPU-Sim uArch: clock freqs: ([\d.]+):")
_PUSHED = re.compile(r"^GPGPU-Sim PTX: pushing kernel '([^']*)' to stream")
#: Names of kernels may be demangled, with spaces in them.
_LAUNCHED = re.compile(r"^\s*launching kernel name: (\S(?:.*?\S)??)(?:\s+uid:\s*(\d+)\b.*)?\s*$")
_HOST = re.compile(r"^gpgpu_simulation_time\s*=.*\((\d+) sec\)")
_LIMIT = re.compile(r"break due to reaching the maximum (?:cycles|instructions)")
_EXIT = re.compile(r"GPGPU-Sim: \*\*\* exit detected \*\*\*")


def is_accel_sim(source: Source) -> bool:
    """Say whether a log is Accel-Sim's: it is driven by traces."""
    return any(_ACCEL_BUILD.match(line) or _TRACE.search(line) for line in source.head_lines)


def is_log(source: Source) -> bool:
    """Say whether this is a log of GPGPU-Sim, also within Accel-Sim."""
    names: set[str] = set()
    for line in source.head_lines:
        if _BANNER.search(line) or _ACCEL_BUILD.match(line):
            return True
        if match := _STATISTIC.match(line):
            names.add(match.group(1))
    return len(names) >= 3


@dataclass
class _Log:
    """State while reading a log."""

    version: str = ""
    build: str = ""
    clock: float | None = None
    host: float | None = None
    exited: bool = False
    limited: bool = False
    #: Names and numbers of the kernels that were launched; without a number if only pushed.
    launched: list[tuple[str, str]] = field(default_factory=list)
    pushed: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)

    def take(self, source: Source, text: str, line: int) -> None:
        if match := _BLOCK.match(text):
            self._block(source, match.group(1), match.group(2), line)
        elif match := _CLOCK.match(text):
            self.clock = number_at(source, "-gpgpu_clock_domains", match.group(1), line) * 1e6
        elif match := _LAUNCHED.match(text):
            self.launched.append((match.group(1), match.group(2) or ""))
        elif match := _PUSHED.match(text):
            self.pushed.append((match.group(1), ""))
        elif text.startswith("gpgpu_simulation_time"):
            # Printed after every kernel: that of an earlier one is not the time of the run.
            seconds = _HOST.match(text)
            self.host = float(seconds.group(1)) if seconds else math.nan
        elif _EXIT.search(text):
            self.exited = True
        elif _LIMIT.search(text):
            self.limited = True
            # The running kernels were stopped, and have their block.
            if self.blocks:
                self.blocks[-1]["last"] = True
        else:
            self._first_lines(source, text, line)

    def _first_lines(self, source: Source, text: str, line: int) -> None:
        if self.clock is None and (match := _CLOCK_HZ.match(text)):
            self.clock = number_at(source, "clock freqs", match.group(1), line)
        if match := _ACCEL_BUILD.match(text):
            self.build = match.group(1).strip() or "unknown"
        if match := _BANNER.search(text):
            self.version = self.version or match.group(1)

    def _block(self, source: Source, name: str, value: str, line: int) -> None:
        if name == "kernel_name" or not self.blocks or name in self.blocks[-1]:
            self.blocks.append({"limited": True} if self.limited else {})
        texts = ("kernel_name", "kernel_launch_uid", "kernel_stream_id")
        content = value if name in texts else number_at(source, name, value, line)
        self.blocks[-1][name] = content

    def kernels(self, block: dict[str, Any]) -> list[tuple[str, str]]:
        """Return names and numbers of the kernels of a block, which ran at the same time.

        Their names are on one line, separated by spaces, which also occur in names.
        """
        numbers = str(block.get("kernel_launch_uid", "")).split()
        text = str(block["kernel_name"]).strip()
        if len(numbers) == 1:
            return [(text, numbers[0])]
        known = sorted({name for name, _ in (*self.launched, *self.pushed)}, key=len, reverse=True)
        names: list[str] = []
        while text:
            name = next((kernel for kernel in known if f"{text} ".startswith(f"{kernel} ")), "")
            name = name or (text.split()[0] if numbers or not known else text)
            names.append(name)
            text = text[len(name) :].strip()
        return list(zip(names, [*numbers, *[""] * len(names)], strict=False))

    def unfinished(self) -> list[str]:
        """Return the launched kernels without a block."""
        done = [pair for block in self.blocks if _is_whole(block) for pair in self.kernels(block)]
        known = self.launched or self.pushed
        numbers = {number for _, number in done if number}
        if numbers and all(number for _, number in known):
            return [name for name, number in known if number not in numbers]
        # A kernel that ran with others may be in several blocks.
        once = {(name, number or str(i)): name for i, (name, number) in enumerate(done)}
        left = Counter(name for name, _ in known) - Counter(once.values())
        return list(left.elements())

    def stopped(self, block: dict[str, Any]) -> bool:
        """Say whether a limit stopped the kernels of a block: then it has no time for them."""
        after = any("limited" in other for other in self.blocks)
        return "limited" in block or ("last" in block and not after)


def _is_whole(block: dict[str, Any]) -> bool:
    return "gpu_sim_cycle" in block and bool(block.get("kernel_name"))


_tool = ToolFormats("GPGPU-Sim", gives="predictions")


@_tool.reads(
    "gpgpu-sim-log",
    "log (stdout)",
    "kernel, model, system: time, host time (cycles, s)",
    lambda source: is_log(source) and not is_accel_sim(source),
    sample="3.2.2",
    limits="errcomp reads only cycles and instructions, not caches, DRAM and network.",
)
def read_log(source: Source) -> Rows:
    """Read a log: cycles of each kernel, and the total.

    Raises
    ------
    InputError
        No kernel was launched, or a statistic is not a number.
    """
    log = _Log()
    for line, text in enumerate(source.lines(), start=1):
        log.take(source, text, line)
    common = {"unit": "cycles", "run": "1", "clock_hz": log.clock}
    rows: list[dict[str, Any]] = []
    whole = [block for block in log.blocks if _is_whole(block)]
    rows += [{**common, **_kernel(block, log.stopped(block))} for block in whole]
    cut = len(log.blocks) - len(whole)
    unfinished = log.unfinished()
    for kernel in unfinished:
        status = "did not finish before the log ended"
        kind = {"level": "kernel", "quantity": "time", "kernel": kernel, "status": status}
        rows.append({**common, **kind})
    if rows:
        rows.append({**common, **_run_row(log, len(unfinished))})
    if rows and log.host is not None:
        host = {"level": "system", "quantity": "host time", "unit": "s", "measured": log.host}
        rows.append({"run": "1", **host})
    dropped = {"block of statistics without name or cycles": cut}
    return Rows(rows, dropped=dropped, notes=_notes(log, len(unfinished)))


def _kernel(block: dict[str, Any], limited: bool) -> dict[str, Any]:
    return {
        "level": "kernel",
        "quantity": "time",
        "predicted": None if limited else block["gpu_sim_cycle"],
        "status": "stopped at the limit of cycles or instructions" if limited else None,
        "kernel": block["kernel_name"],
        "launch": block.get("kernel_launch_uid"),
        "stream": block.get("kernel_stream_id"),
        "instructions": block.get("gpu_sim_insn"),
        "ipc": block.get("gpu_ipc"),
    }


def _run_row(log: _Log, unfinished: int) -> dict[str, Any]:
    """Return the row of the whole run; it has no value if the run did not end."""
    row: dict[str, Any] = {"level": "model", "quantity": "time"}
    totals = [block["gpu_tot_sim_cycle"] for block in log.blocks if "gpu_tot_sim_cycle" in block]
    if unfinished:
        kernels = "1 kernel" if unfinished == 1 else f"{unfinished} kernels"
        row["status"] = f"{kernels} did not finish before the log ended"
    elif log.limited:
        row["status"] = "stopped at the limit of cycles or instructions"
    elif _is_new(log) and not log.exited:
        row["status"] = "no line about the end of the simulation: it may have been stopped"
    elif not totals:
        row["status"] = "no total in the log"
    else:
        row["predicted"] = totals[-1]
    return row


def _is_new(log: _Log) -> bool:
    """Say whether the log is from version 4 or newer, which print the end of the simulation."""
    return bool(log.build) or log.version.partition(".")[0] not in ("", "2", "3")


def _notes(log: _Log, unfinished: int) -> list[str]:
    notes = []
    sums = sum(block.get("gpu_sim_cycle", 0.0) for block in log.blocks)
    totals = [block["gpu_tot_sim_cycle"] for block in log.blocks if "gpu_tot_sim_cycle" in block]
    if unfinished:
        notes.append("The run ended before all its kernels finished, so it has no total.")
    if totals and not unfinished and abs(sums - totals[-1]) > 0.5:
        notes.append(
            f"The cycles of the kernels sum to {sums:.0f}, but the log's total is "
            f"{totals[-1]:.0f}: blocks are missing, or kernels ran at the same time."
        )
    if any(_is_whole(block) and len(log.kernels(block)) > 1 for block in log.blocks):
        notes.append("Kernels that ran at the same time form one row, with their joint cycles.")
    if log.clock is None:
        notes.append("The log does not state a clock (-gpgpu_clock_domains).")
    return notes


FORMATS = _tool.formats
