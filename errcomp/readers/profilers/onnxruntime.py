"""ONNX Runtime: the time of nodes and runs in a profile of a session."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.profilers.spans import around, outermost
from errcomp.results import Dropped
from errcomp.system.strict_json import DoubledNameError, refuse_doubles

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray


# Events of ONNX Runtime: the nodes, and the run of each.

_NONE = msgspec.Raw()
_KERNEL_TIME = "_kernel_time"
_LOADING = {"model_loading_uri", "model_loading_array", "model_loading_proto"}
_LOADING |= {"model_loading_from_saved_proto", "model_loading"}
_TEXTS: tuple[str, ...] = (
    "level",
    "quantity",
    "run",
    "kernel",
    "kernel_class",
    "provider",
    "layer",
    "stream",
)
_TEXTS += ("shape", "output_shape", "parameter_bytes")
_SESSION = frozenset(("model_run", "session_initialization", *_LOADING))
#: Nodes that run a subgraph.
_NESTED = frozenset(("If", "Loop", "Scan", "BeamSearch", "GreedySearch", "Sampling"))
_FENCE = re.compile(r"_fence_(?:before|after)$")
_CUT = re.compile(r"\}\s*,\s*\n")
_WARM_UP = "The first run of each profile (repeat 1) is a warm-up: leave it out of comparisons."


class _Args(msgspec.Struct, gc=False):
    """The arguments of an event that are used, undecoded."""

    op_name: msgspec.Raw = _NONE
    provider: msgspec.Raw = _NONE
    node_index: msgspec.Raw = _NONE
    stream: msgspec.Raw = _NONE
    input_type_shape: msgspec.Raw = _NONE
    output_type_shape: msgspec.Raw = _NONE
    parameter_size: msgspec.Raw = _NONE


class _Event(msgspec.Struct, gc=False):
    """An event."""

    cat: str = ""
    name: str = ""
    ph: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float | None = None
    dur: float | None = None
    args: _Args | None = None
    #: Only set in a table.
    run: int | None = None


_NAMED = ("cat", "name", "ph")


class _Traced(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents")


def _decoded(source: Source, text: str) -> list[_Event]:
    try:
        if text.startswith("{"):
            events = msgspec.json.decode(text, type=_Traced).events
        else:
            events = msgspec.json.decode(text, type=list[_Event])
        timed = ("ts", "dur", "args")
        found = {name: sum(getattr(event, name) is not None for event in events) for name in timed}
        named = {name: sum(bool(getattr(event, name)) for event in events) for name in _NAMED}
        refuse_doubles(text, found | named)
        return events
    except DoubledNameError as error:
        raise source.error(f"{error}. Copy the file again.") from None
    except msgspec.ValidationError as error:
        raise source.error(
            f"not in the form that ONNX Runtime writes ({error}). Copy the file again."
        ) from None
    except RecursionError:
        raise source.error("nested too deeply. The file may be damaged.") from None


def _broken(source: Source, error: Exception) -> Exception:
    return source.error(f"not valid JSON ({error}). The file may be incomplete: copy it again.")


def _output(source: Source, events: Sequence[_Event], notes: list[str]) -> Rows:
    left_out: Counter[str] = Counter()
    used: list[_Event] = []
    for event in events:
        if reason := _left_out(event):
            left_out[reason] += 1
        else:
            used.append(event)
    used.sort(key=lambda event: event.ts or 0.0)
    start = np.array([event.ts for event in used], dtype=np.float64)
    end = start + np.array([event.dur for event in used], dtype=np.float64)
    nested = _contains_others(used, start, end)
    left_out["nodes that contain other nodes (If, Loop, …)"] += sum(nested)
    runs = _runs(used, start, end)
    chosen = [i for i, out in enumerate(nested) if not out]
    if not any(used[i].cat != "Session" or used[i].name == "model_run" for i in chosen):
        raise source.error(
            "the profile has no times of nodes or runs. Run the session before profiling ends."
        )
    some = [run for run in runs if run is not None]
    if some:
        notes.append(_WARM_UP)
        unknown = sum(runs[i] is None and used[i].cat != "Session" for i in chosen)
        if unknown:
            notes.append(f"Events of nodes in no run, or in several runs at once: {unknown}.")
    if any(event.cat == "Kernel" for event in used):
        notes.append(
            "Events of the GPU are device time: a node may end before the GPU work it launched."
        )
    dropped = [Dropped(reason, n) for reason, n in left_out.items() if n]
    columns = _columns([used[i] for i in chosen], [runs[i] for i in chosen], known=bool(some))
    return Rows(columns, dropped=dropped, notes=notes)


def _left_out(event: _Event) -> str:
    """Return the reason why an event gives no row; empty if it gives one."""
    if event.cat not in ("Session", "Node", "Kernel"):
        return "events of other kinds"
    if event.cat == "Node" and not event.name.endswith(_KERNEL_TIME):
        if _FENCE.search(event.name):
            return "fences (overhead before and after a node)"
        return "events of nodes other than the kernel time"
    if event.cat == "Session" and event.name not in _SESSION:
        return "parts of a run or of the initialisation"
    return "" if event.ts is not None and event.dur is not None else "events without a time"


def _contains_others(
    events: Sequence[_Event], start: NDArray[np.float64], end: NDArray[np.float64]
) -> list[bool]:
    """Say which nodes run a subgraph whose nodes are events as well."""
    contains = [False] * len(events)
    for i, event in enumerate(events):
        if event.cat != "Node" or event.args is None or _text(event.args.op_name) not in _NESTED:
            continue
        for j in range(i + 1, len(events)):
            if start[j] > end[i]:
                break
            other = events[j]
            if other.cat == "Node" and other.tid == event.tid and end[j] <= end[i]:
                contains[i] = True
                break
    return contains


def _runs(
    events: Sequence[_Event], start: NDArray[np.float64], end: NDArray[np.float64]
) -> list[int | None]:
    """Return the number of the run that each event belongs to, from 1."""
    which = [i for i, event in enumerate(events) if event.name == "model_run"]
    runs: list[int | None] = [event.run for event in events]
    if any(run is not None for run in runs) or not which:
        return runs
    for number, i in enumerate(which, start=1):
        runs[i] = number
    threads = {(events[i].pid, events[i].tid) for i in which}
    alone = not _overlap(start[which], end[which])
    for thread in threads if not alone else [None]:
        # The thread identifies overlapping runs.
        own = [i for i in which if thread is None or _thread(events[i]) == thread]
        if _overlap(start[own], end[own]):
            continue
        inside = around(start[own], end[own], start)
        for i, place in enumerate(inside):
            same = thread is None or _thread(events[i]) == thread
            if place >= 0 and same and runs[i] is None and events[i].cat != "Session":
                runs[i] = runs[own[place]]
    return runs


def _overlap(start: NDArray[np.float64], end: NDArray[np.float64]) -> bool:
    return not outermost(start, end).all() or bool((start[1:] < end[:-1]).any())


def _thread(event: _Event) -> tuple[int | str, int | str]:
    return event.pid, event.tid


def _columns(
    events: Sequence[_Event], numbers: Sequence[int | None], *, known: bool
) -> dict[str, pl.Series]:
    """Return the columns of the rows; each text is stored once."""
    import polars as pl

    same: dict[str, str] = {}
    texts: dict[str, list[str | None]] = {name: [] for name in _TEXTS}
    for event, number in zip(events, numbers, strict=True):
        for name, text in zip(_TEXTS, _row(event, number, known=known), strict=True):
            texts[name].append(None if text is None else same.setdefault(text, text))
    series = {name: pl.Series(values, dtype=pl.String) for name, values in texts.items()}
    return {
        "measured": pl.Series([event.dur for event in events], dtype=pl.Float64),
        "start": pl.Series([event.ts for event in events], dtype=pl.Float64),
        "repeat": pl.Series(numbers, dtype=pl.Int64),
        **series,
    }


def _row(event: _Event, number: int | None, *, known: bool) -> tuple[str | None, ...]:
    """Return the texts of a row, in the order of the columns."""
    run = None if number is None else f"run {number}"
    if event.cat == "Session":
        if event.name == "model_run":
            return ("model", "time", run, *[None] * 8)
        quantity = "loading time" if event.name in _LOADING else "initialisation time"
        return ("system", quantity, run, *[None] * 8)
    args = event.args or _Args()
    name = event.name.removesuffix(_KERNEL_TIME)
    operator = _text(args.op_name)
    of_gpu = event.cat == "Kernel"
    return (
        "kernel",
        "device time" if of_gpu else "time",
        run or ("outside of runs" if known else None),
        name or operator or "node without a name",
        operator or name or "node without a name",
        _text(args.provider),
        _text(args.node_index),
        _text(args.stream) if of_gpu else None,
        _text(args.input_type_shape),
        _text(args.output_type_shape),
        _text(args.parameter_size),
    )


def _text(value: msgspec.Raw) -> str | None:
    """Return a field of the arguments as text; lists of shapes unchanged."""
    data = bytes(value)
    if not data or data in (b"null", b'""'):
        return None
    text = data.decode()
    if text.startswith('"'):
        return str(msgspec.json.decode(data))
    return text


def read(path: AnyPath) -> Output:
    r"""Read profiles of ONNX Runtime (``SessionOptions.enable_profiling``).

    Parameters
    ----------
    path : path
        A file ``onnxruntime_profile_*.json``, of old versions (with ``_fence_before`` events) or
        new ones, or a table of its events (run, cat, name, op_name, provider, ts_us, dur_us); or
        a folder or archive of them.

    Returns
    -------
    Output
        Measured times in µs: the ``time`` of each node (level kernel) and of each run of the model
        (level model), linked by ``run``; ``repeat`` counts the runs from 1. Events of a GPU have
        the quantity ``device time``: they are part of the nodes' work. Loading and initialisation
        have level system. ``kernel`` is the name of a node, ``kernel_class`` its operator,
        ``layer`` its number in the graph.

    Raises
    ------
    InputError
        A file is damaged, or has no time of a node or run.

    Notes
    -----
    Misleads if the first run (``repeat`` 1) is included: it warms up.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "profile.json"
    >>> event = '{"cat" : "%s","pid" :1,"tid" :1,"dur" :%d,"ts" :%d,"ph" : "X","name" :"%s"'
    >>> node = event % ("Node", 7, 12, "a_kernel_time") + ',"args" : {"op_name" : "Add"}}'
    >>> run = event % ("Session", 9, 11, "model_run") + ',"args" : {}}'
    >>> _ = path.write_text(f"[\n{node},\n{run}\n]\n")
    >>> read(path).rows.select("run", "level", "kernel", "measured", "unit").rows()
    [('run 1', 'model', None, 9.0, 'us'), ('run 1', 'kernel', 'a', 7.0, 'us')]
    """
    return read_as(path, FORMATS)


_CATEGORY = re.compile(rb'"cat"\s*:\s*"(?:Session|Node)"')
_EVENT = re.compile(
    rb'"name"\s*:\s*"(?:model_loading_\w+|session_initialization|model_run|'
    rb'SequentialExecutor::Execute|ParallelExecutor::Execute|[^"]*_(?:kernel_time|fence_before))"'
)
_COLUMNS = {"run", "cat", "name", "op_name", "provider", "ts_us", "dur_us"}


def _is_profile(source: Source) -> bool:
    head = source.head
    return (
        head.lstrip()[:1] in (b"[", b"{")
        and _CATEGORY.search(head) is not None
        and _EVENT.search(head) is not None
    )


_tool = ToolFormats(
    "ONNX Runtime",
    gives="measurements",
    reference="hardware",
    sample="0.4, 1.15, 1.31 (CPU); 2026 (DirectML)",
)


@_tool.reads(
    "onnxruntime-profile",
    "onnxruntime_profile_*.json",
    "kernel, model, system: time, device time, loading time, initialisation time (us)",
    _is_profile,
    limits="Nodes that contain others (If, Loop, Scan) are left out if the others are in the file.",
)
def read_profile(source: Source) -> Rows:
    """Read a profile: a list of events."""
    notes = []
    text = source.text.strip()
    try:
        events = _decoded(source, text)
    except msgspec.DecodeError as error:
        # A session that did not end leaves an unclosed list.
        ends = [match.start() + 1 for match in _CUT.finditer(text)]
        if not ends or text.endswith("]"):
            raise _broken(source, error) from None
        try:
            events = _decoded(source, text[: ends[-1]] + "]")
        except msgspec.DecodeError as earlier:
            raise _broken(source, earlier) from None
        notes.append(
            f"The file is cut off after {len(events)} events: the session may not have ended."
        )
    return _output(source, events, notes)


@_tool.reads(
    "onnxruntime-table",
    "table of the events of a profile (CSV)",
    "kernel, model, system: time, loading time, initialisation time (us)",
    _COLUMNS,
    sample="documentation of MQL5",
)
def read_table(source: Source) -> Rows:
    """Read the events of a profile as a table."""
    sheet = source.sheet(("run", "cat", "name", "op_name", "provider", "ts_us", "dur_us"))
    texts = {name: sheet.texts(name) for name in ("run", "cat", "name", "op_name", "provider")}
    start, duration = sheet.numbers("ts_us"), sheet.numbers("dur_us")
    events = []
    for i, run in enumerate(texts["run"]):
        args = _Args(
            *(msgspec.Raw(msgspec.json.encode(texts[key][i])) for key in ("op_name", "provider"))
        )
        times = [None if math.isnan(value[i]) else float(value[i]) for value in (start, duration)]
        number = int(run) if run.isascii() and run.isdecimal() and len(run) < 10 else None
        events.append(
            _Event(
                cat=texts["cat"][i],
                name=texts["name"][i],
                ts=times[0],
                dur=times[1],
                args=args,
                run=number,
            )
        )
    return _output(source, events, [])


FORMATS = _tool.formats
