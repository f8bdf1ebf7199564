"""Rows of a PyTorch profiler trace: its kernels, its steps, and the times of its devices."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from errcomp.readers.core import Rows, Source
from errcomp.readers.profilers.kineto import columns
from errcomp.readers.profilers.kineto.classes import COMMUNICATION, MEMORY, class_of
from errcomp.readers.profilers.kineto.columns import Trace
from errcomp.readers.profilers.kineto.graph import graph_of
from errcomp.readers.profilers.phases import PHASES, phases_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


_WHOLE_TRACE, _OUTSIDE = "trace", "outside the steps"


@dataclass(slots=True)
class _Work:
    """The work on GPUs, or else the operators on the CPU, with their steps."""

    rows: pl.DataFrame
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    device: NDArray[np.int64]
    class_: NDArray[np.int64]
    #: Names of the classes.
    classes: list[str]
    #: Time of the launch, which decides the step.
    launched: NDArray[np.float64]
    notes: list[str]


def read_rows(source: Source) -> Rows:
    """Read a trace.

    Raises
    ------
    InputError
        It is not JSON or cut off, or nothing in it has a duration.
    """
    trace = columns.read_trace(source)
    if not len(trace.gpu) and not len(trace.ops):
        why = "; ".join(f"{drop.n} times {drop.reason}" for drop in trace.dropped) or "no events"
        raise source.error(
            f"the trace has no kernels and no operators ({why}). Record it with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
        )
    on_gpu = len(trace.gpu) > 0
    work = _gpu(trace) if on_gpu else _cpu(trace)
    steps, step = columns.steps_of(trace.steps, work.launched)
    rank = _rank(trace.meta)
    names = [name for name, _, _ in steps] or [_WHOLE_TRACE]
    inside = step if steps else np.zeros(len(step), dtype=np.int64)
    kernels = work.rows.select(
        pl.lit("kernel").alias("level"),
        pl.lit("time").alias("quantity"),
        "measured",
        _texts(names, inside, otherwise=_OUTSIDE).alias("run"),
        pl.exclude("measured"),
        pl.lit(1, dtype=pl.Int64).alias("count"),
        pl.lit(rank, dtype=pl.Int64).alias("rank"),
        *_phase(trace, work),
    )
    others = [*_runs(trace, steps, rank), *_devices(trace, work, inside, names, rank)]
    rows = pl.concat(
        [kernels, pl.DataFrame(others, infer_schema_length=None)], how="diagonal_relaxed"
    )
    notes = [*work.notes, *_step_notes(steps, step)]
    return Rows(
        rows,
        dropped=trace.dropped,
        notes=notes,
        graph=(lambda: graph_of(trace, source, kernels["run"].to_list())) if on_gpu else None,
    )


def _phase(trace: Trace, work: _Work) -> list[pl.Series]:
    """Return the column with the phase in which each row was launched; none without phases."""
    phases = phases_at(columns.phase_ranges(trace), work.launched)
    return [] if phases is None else [_texts(PHASES, phases).alias("phase")]


def _gpu(trace: Trace) -> _Work:
    gpu, runtime, ops = trace.gpu, trace.runtime, trace.ops
    call = columns.launches(trace)
    op = columns.launching_ops(trace, call)
    kind = gpu["kind"]
    classes, class_ = _classified(trace.names, gpu["name"])
    for i, name in enumerate(MEMORY):
        # The category of an event is more reliable than its name.
        class_[kind == columns.MEMCPY + i] = classes.index(name)
    matched = call >= 0
    launched = np.where(matched, _gathered(runtime["ts"], call), np.nan)
    caller = np.where(matched, _gathered(runtime["name"], call), -1)
    rows = pl.DataFrame(
        {
            "measured": gpu["dur"],
            "kernel": _texts(trace.names, gpu["name"]),
            "kernel_class": _texts(classes, class_),
            "device": _texts(_device_names(trace), gpu["device"]),
            "device_id": _keys(trace.devices, gpu["device"]),
            "stream": _keys(trace.streams, gpu["stream"]),
            "start": gpu["ts"],
            "gap": pl.Series(columns.gaps(gpu), nan_to_null=True),
            "correlation": _null_if_negative(gpu["correlation"]),
            "launch": pl.Series(launched, nan_to_null=True),
            "launch_call": _texts(trace.names, caller),
            "op": _texts(trace.names, np.where(op >= 0, _gathered(ops["name"], op), -1)),
            "shape": _texts(_shapes(trace), np.where(op >= 0, _gathered(ops["shape"], op), -1)),
            **_messages(trace),
        }
    )
    notes = []
    if not matched.all():
        notes.append(
            f"the trace lacks the launch of {int((~matched).sum())} of {len(matched)} kernels and "
            "copies: these are assigned to the step in which they started."
        )
    when = np.where(matched, launched, gpu["ts"])
    origin = trace.span[0]
    start = gpu["ts"] - origin
    return _Work(rows, start, start + gpu["dur"], gpu["device"], class_, classes, when, notes)


def _cpu(trace: Trace) -> _Work:
    ops = trace.ops
    parent = columns.parents(ops)
    inner = parent >= 0
    within = np.bincount(parent[inner], weights=ops["dur"][inner], minlength=len(ops))
    classes, class_ = _classified(trace.names, ops["name"])
    rows = pl.DataFrame(
        {
            "measured": np.maximum(ops["dur"] - within, 0.0),
            "kernel": _texts(trace.names, ops["name"]),
            "kernel_class": _texts(classes, class_),
            "stream": ops["thread"],
            "start": ops["ts"],
            "op": _texts(trace.names, np.where(inner, _gathered(ops["name"], parent), -1)),
            "shape": _texts(_shapes(trace), ops["shape"]),
        }
    )
    start = ops["ts"] - trace.span[0]
    device = np.zeros(len(ops), dtype=np.int64)
    note = (
        "the trace has no GPU work: the kernels are the operators on the CPU. Their time excludes "
        "the operators that they call (`op` is the caller)."
    )
    return _Work(rows, start, start + ops["dur"], device, class_, classes, ops["ts"], [note])


def _runs(
    trace: Trace, steps: Sequence[tuple[str, float, float]], rank: int | None
) -> list[dict[str, Any]]:
    runs = steps or [(_WHOLE_TRACE, *trace.span)]
    return [
        {
            "level": "model",
            "quantity": "time",
            "measured": end - start,
            "run": name,
            "start": start,
            "rank": rank,
        }
        for name, start, end in runs
    ]


def _devices(
    trace: Trace, work: _Work, inside: NDArray[np.int64], names: list[str], rank: int | None
) -> list[dict[str, Any]]:
    """Return the times of each device in each run, and in the trace as a whole."""
    on_gpu = len(trace.gpu) > 0
    device_names = _device_names(trace) if on_gpu else ["CPU"]
    communicates = work.class_ == work.classes.index(COMMUNICATION)
    copies = np.isin(work.class_, [work.classes.index(name) for name in MEMORY])
    computes = ~communicates & ~copies
    rows = []
    width = len(device_names)
    parts = [(inside * width + work.device, inside >= 0, names)]
    if names != [_WHOLE_TRACE]:
        parts.append((work.device, np.ones(len(inside), dtype=bool), [_WHOLE_TRACE]))
    for group, part, runs in parts:
        times = device_times(
            work.start[part], work.end[part], group[part], communicates[part], computes[part]
        )
        for number, quantities in times:
            device = number % width
            common = {
                "level": "system",
                "run": runs[number // width],
                "rank": rank,
                "device": device_names[device],
            }
            if on_gpu and isinstance(trace.devices[device], int):
                common["device_id"] = trace.devices[device]
            rows += [
                {**common, "quantity": quantity, "measured": value}
                for quantity, value in quantities.items()
                if communicates.any() or quantity in ("busy time", "idle time", "computation time")
            ]
    return rows


def _step_notes(steps: Sequence[tuple[str, float, float]], step: NDArray[np.int64]) -> list[str]:
    if not steps:
        return [
            "the trace has no steps (profiler.step()), so it is read as one run, from the first "
            "event to the end of the last."
        ]
    outside = int((step < 0).sum())
    return [f"kernels launched outside the steps: {outside}."] if outside else []


def _classified(names: list[str], codes: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    classes = [COMMUNICATION, *MEMORY]
    of_name = np.zeros(len(names), dtype=np.int64)
    for code in np.unique(codes).tolist():
        kind = class_of(names[code])
        if kind not in classes:
            classes.append(kind)
        of_name[code] = classes.index(kind)
    return classes, of_name[codes]


def _gathered(values: NDArray[Any], index: NDArray[np.int64]) -> NDArray[Any]:
    """Take the values at an index; any value where it is -1."""
    return values[np.maximum(index, 0)] if len(values) else np.zeros(len(index), dtype=np.int64)


def _texts(
    names: Sequence[str | None], codes: NDArray[Any], *, otherwise: str | None = None
) -> pl.Series:
    """Return a column of names, stored once each; -1 becomes ``otherwise``."""
    unique = pl.Series([*names, otherwise], dtype=pl.String)
    return unique.gather(np.where(codes < 0, len(unique) - 1, codes))


def _keys(things: list[Any], codes: NDArray[Any]) -> pl.Series:
    """Return a column of numbers if all are numbers, else of text."""
    if all(isinstance(thing, int) for thing in things):
        return pl.Series(np.array(things, dtype=np.int64)[codes])
    return _texts([None if thing is None else str(thing) for thing in things], codes)


def _null_if_negative(numbers: NDArray[Any]) -> pl.Series:
    column = pl.Series("number", numbers)
    return pl.select(pl.when(column >= 0).then(column))["number"]


def _messages(trace: Trace) -> dict[str, pl.Series]:
    """Columns about the messages of communication kernels, and sizes of copies."""
    size = trace.gpu["bytes"].copy()
    size[trace.gpu["kind"] == columns.KERNEL] = -1
    names: dict[str, int] = {}
    ranks = np.full(len(size), -1, dtype=np.int64)
    codes = np.full(len(size), -1, dtype=np.int64)
    for row, collective in trace.collectives.items():
        codes[row] = names.setdefault(collective.name, len(names))
        ranks[row], size[row] = collective.ranks, collective.size_bytes
    return {
        "collective": _texts(list(names), codes),
        "ranks": _null_if_negative(ranks),
        "size_bytes": _null_if_negative(size),
    }


def _shapes(trace: Trace) -> list[str | None]:
    """Return the shapes as JSON without spaces; None if the trace has none."""
    shapes: list[str | None] = []
    for raw in trace.shapes:
        try:
            shapes.append(json.dumps(json.loads(raw), separators=(",", ":")) if raw else None)
        except (ValueError, RecursionError):
            shapes.append(None)
    return shapes


def _device_names(trace: Trace) -> list[str | None]:
    """Return the name of each device; None if the trace lacks it."""
    known: dict[str, str] = {}
    properties = trace.meta.get("deviceProperties")
    for entry in properties if isinstance(properties, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            known[str(entry.get("id"))] = entry["name"]
    return [known.get(str(device)) for device in trace.devices]


def _rank(meta: dict[str, Any]) -> int | None:
    info = meta.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, dict) else None
    return rank if type(rank) is int and 0 <= rank < 1 << 31 else None


# Busy, communication and idle times of devices: lengths of unions of intervals.


def union(start: NDArray[Any], end: NDArray[Any]) -> float:
    """Return the length of the union of intervals.

    Examples
    --------
    >>> union(np.array([5.0, 0.0, 1.0]), np.array([7.0, 2.0, 3.0]))
    5.0
    """
    if not len(start):
        return 0.0
    order = np.argsort(start, kind="stable")
    start, reached = start[order], np.maximum.accumulate(end[order])
    gap = np.maximum(start[1:] - reached[:-1], 0.0).sum()
    return float(reached[-1] - start[0] - gap)


def device_times(
    start: NDArray[Any],
    end: NDArray[Any],
    group: NDArray[np.int64],
    communicates: NDArray[np.bool_],
    computes: NDArray[np.bool_],
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield for each group (a device in a run) its times by quantity.

    Parameters
    ----------
    start, end : ndarray, shape (n,)
    group : ndarray of int
    communicates, computes : ndarray of bool
        Which work communicates and which computes; the rest are copies.

    Yields
    ------
    group : int
    times : dict
        ``busy time``: at least one piece of work runs; ``computation time``, ``communication
        time``: at least one such kernel runs; ``overlap``: both at once; ``exposed communication``:
        the communication time less the overlap; ``idle time``: nothing runs, between the first
        start and the last end.
    """
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if not len(rows):
            return
        first, last = start[rows], end[rows]
        busy = union(first, last)
        times = {"busy time": busy, "idle time": max(float(last.max() - first.min()) - busy, 0.0)}
        talks, works = rows[communicates[rows]], rows[computes[rows]]
        talking, working = union(start[talks], end[talks]), union(start[works], end[works])
        both = np.concatenate([talks, works])
        overlap = max(talking + working - union(start[both], end[both]), 0.0)
        times["computation time"] = working
        times["communication time"] = talking
        times["overlap"] = overlap
        times["exposed communication"] = max(talking - overlap, 0.0)
        yield int(group[rows[0]]), times
