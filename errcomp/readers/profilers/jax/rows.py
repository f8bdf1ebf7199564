"""Rows from a trace of JAX: kernels of devices, and the steps they belong to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.readers.profilers.jax.xplane import Event, Line, Plane, planes_of
from errcomp.readers.profilers.spans import around, outermost
from errcomp.results import Dropped

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = ["read_planes", "read_xplane"]

_DEVICE, _HOST = "/device:", "/host:"
_NO_DEVICE = "/device:CUSTOM:"
_STREAM = re.compile(r"Stream #")
_OPS, _STEPS, _MODULES = "XLA Ops", "Steps", "XLA Modules"
_NO_RUN = "outside of steps"
#: An operation of a TPU is named by its whole text: "%fusion.1 = f32[8]{0} fusion(...)".
_HLO = re.compile(r"%?([^\s=]+) = .*", re.DOTALL)
_LAUNCH = re.compile(r"(?:cu|cuda|hip|hsa_?)[A-Z]")
#: Times from here on do not fit into 64 bits.
_MOST = 1 << 62
_TEXTS = ("kernel", "kernel_class", "layer", "model", "operation")

Keep = Callable[[Event], bool]
#: What a trace holds, and what there is to say of it.
Planes = tuple[list[Plane], list[str]]


def read_xplane(source: Source) -> Output:
    """Read the planes of the devices; of the host where no device did anything."""
    return read_planes(source, "jax-xplane", lambda: planes_of(source.content()))


def read_planes(source: Source, name: str, decode: Callable[[], Planes]) -> Output:
    """Make rows of a trace; what ``decode`` and the events raise says why it cannot be read."""
    import polars as pl

    try:
        planes, notes = decode()
        devices = [one for one in planes if one.name.startswith(_DEVICE)]
        devices = [one for one in devices if not one.name.startswith(_NO_DEVICE)]
        beginning = min((line.start_ns for one in planes for line in one.lines), default=0)
        frames, inner = _of_devices(devices, beginning)
        if not frames:
            hosts = [one for one in planes if one.name.startswith(_HOST)]
            frames, inner = _of_hosts(hosts, beginning)
            notes += ["The operations ran on the CPU: several threads may run parts of one."]
    except ValueError as error:
        raise source.error(
            f"not a trace of XLA ({error}). It may be cut off: copy it again."
        ) from None
    if not frames:
        raise source.error(
            "it holds no operation of a device or of XLA. Trace a program that computes, and wait "
            "for it (block_until_ready) before the trace ends."
        )
    rows = pl.concat(frames, how="diagonal_relaxed").with_columns(
        tool=pl.lit("JAX"), quantity=pl.lit("time"), unit=pl.lit("ps")
    )
    dropped = [Dropped("operations that contain other operations", inner)] if inner else []
    return output(source.name, name, rows, dropped=dropped, notes=notes)


def _of_devices(planes: Sequence[Plane], beginning: int) -> tuple[list[pl.DataFrame], int]:
    """Return the kernels and steps of devices, and how many operations were left out."""
    found: list[pl.DataFrame] = []
    inner = 0
    several = sum(any(line.name == _STEPS for line in plane.lines) for plane in planes) > 1
    for plane in planes:
        # Lines that were derived from the streams of a GPU repeat what is on them.
        streams = [line for line in plane.lines if _STREAM.match(line.name) and len(line)]
        lines = streams or [line for line in plane.lines if line.name == _OPS]
        frames, gone = _kernels(lines, beginning, lambda event: True, nested=not streams)
        inner += gone
        where = plane.name.removeprefix(_DEVICE)
        steps = _steps_of_device(plane, beginning)
        found += _joined(plane, frames, steps, f" on {where}" if several else "", where)
    return found, inner


def _of_hosts(planes: Sequence[Plane], beginning: int) -> tuple[list[pl.DataFrame], int]:
    """Return the operations that ran on the host, in the steps that it marked."""
    found: list[pl.DataFrame] = []
    inner = 0
    for plane in planes:
        frames, gone = _kernels(plane.lines, beginning, _is_operation, nested=True)
        inner += gone
        # jax.profiler.StepTraceAnnotation
        steps = [
            (start, start + event.duration, f"{event.name} {event.stats['step_num']}")
            for line in plane.lines
            for start, event in _timed(line, beginning)
            if event.stats.get("step_num") is not None
        ]
        found += _joined(plane, frames, steps, "", None)
    return found, inner


def _is_operation(event: Event) -> bool:
    """Say whether an event of the host is an operation of XLA, not the launch of one."""
    return bool(event.stats.get("hlo_op")) and _LAUNCH.match(event.name) is None


def _timed(line: Line, beginning: int) -> Iterator[tuple[int, Event]]:
    """Yield the events of a line with their start in ps from the beginning of the trace."""
    offset = (line.start_ns - beginning) * 1000
    for event in line.events():
        start = offset + event.start
        if not (0 <= event.duration < _MOST and -_MOST < start < _MOST and event.count > 0):
            raise ValueError(f"an event has start {event.start} ps, duration {event.duration} ps")
        yield start, event


def _kernels(
    lines: Sequence[Line], beginning: int, keep: Keep, *, nested: bool
) -> tuple[list[pl.DataFrame], int]:
    """Return a frame for each line that has events of the kind wanted."""
    import polars as pl

    found = []
    inner = 0
    same: dict[str, str] = {}
    for line in lines:
        times: list[tuple[int, int, int]] = []
        texts: dict[str, list[str | None]] = {name: [] for name in _TEXTS}
        for start, event in _timed(line, beginning):
            if keep(event):
                times.append((start, event.duration, event.count))
                for name, text in zip(_TEXTS, _texts(event), strict=True):
                    # One copy of each text, however many events have it.
                    texts[name].append(None if text is None else same.setdefault(text, text))
        if not times:
            continue
        starts, durations, counts = np.array(times, dtype=np.int64).T
        frame = pl.DataFrame(
            {name: pl.Series(values, dtype=pl.String) for name, values in texts.items()}
            | {"start": starts, "count": counts, "measured": durations / counts}
        ).with_columns(level=pl.lit("kernel"), stream=pl.lit(line.name))
        if nested:
            alone = _innermost(starts, starts + durations)
            inner += int((~alone).sum())
            frame = frame.filter(alone)
        found.append(frame)
    return found, inner


def _texts(event: Event) -> tuple[str | None, ...]:
    """Return the name of a kernel, its class, its operation, its program and what wrote it."""
    stats = event.stats
    match = _HLO.fullmatch(event.name)
    name = (match[1] if match else event.name).strip() or "kernel without a name"
    lower = name.lower()
    moved = next((word for word in ("memcpy", "memset") if lower.startswith(word)), None)
    return (
        name,
        moved or _text(stats.get("hlo_category")) or name,
        _text(stats.get("hlo_op")),
        _text(stats.get("hlo_module")),
        _text(stats.get("name") or stats.get("tf_op")),
    )


def _innermost(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which contain no other: a loop takes as long as all that it repeats."""
    order = np.lexsort((-end, start))
    first, last = start[order], end[order]
    found = np.ones(len(start), dtype=bool)
    found[order[:-1]] = ~((first[1:] < last[:-1]) & (last[1:] <= last[:-1]))
    return found


def _steps_of_device(plane: Plane, beginning: int) -> list[tuple[int, int, str]]:
    """Return the steps of a device, or else the executions of programs: start, end and name."""
    found: list[tuple[int, int, str]] = []
    for wanted, prefix in ((_STEPS, "step "), (_MODULES, "")):
        found = found or [
            (start, start + event.duration, prefix + event.name)
            for line in plane.lines
            if line.name == wanted
            for start, event in _timed(line, beginning)
        ]
    return found


def _joined(
    plane: Plane,
    frames: Sequence[pl.DataFrame],
    found: list[tuple[int, int, str]],
    suffix: str,
    where: str | None,
) -> list[pl.DataFrame]:
    """Put the kernels of a plane into its steps, and add rows for those."""
    import polars as pl

    if not frames:
        return []
    texts = (plane.stats.get(one) for one in ("device_type_string", "device_vendor"))
    device = next((one for one in texts if isinstance(one, str) and one), None)
    common = {"device": pl.lit(device, pl.String), "device_id": pl.lit(where, pl.String)}
    if not found:
        return [frame.with_columns(**common) for frame in frames]
    spans = np.array([one[:2] for one in found], dtype=np.int64)
    outer = outermost(spans[:, 0], spans[:, 1])
    steps = sorted(one for one, is_outer in zip(found, outer, strict=True) if is_outer)
    names = [name + suffix for name in _numbered([name for _, _, name in steps])]
    starts, ends = np.array([one[:2] for one in steps], dtype=np.int64).T
    rows = pl.DataFrame(
        {
            "run": names,
            "repeat": np.arange(1, len(steps) + 1),
            "start": starts,
            "measured": (ends - starts).astype(np.float64),
        }
    ).with_columns(level=pl.lit("model"), **common)
    runs = pl.Series([*names, _NO_RUN], dtype=pl.String)
    kernels = []
    for frame in frames:
        inside = around(starts, ends, frame["start"].to_numpy())
        run = runs.gather(np.where(inside < 0, len(names), inside))
        kernels.append(frame.with_columns(run=run, **common))
    return [*kernels, rows]


def _numbered(names: Sequence[str]) -> list[str]:
    """Return a name of its own for each step."""
    times, seen = Counter(names), Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if times[name] == 1 else f"{name} #{seen[name]}")
    return found


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)
