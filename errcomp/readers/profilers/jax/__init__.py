"""JAX and XLA: kernels and steps from the profiler's ``xplane.pb`` and ``trace.json.gz``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.profilers.jax import rows as _jax_rows
from errcomp.readers.profilers.jax.rows import read_planes
from errcomp.readers.profilers.jax.xplane import Event, Line, Plane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from errcomp.readers.core.output import Output
    from errcomp.readers.core.source import Source

__all__ = ["FORMATS", "read"]


# The Chrome trace that JAX writes beside ``xplane.pb``, as planes, lines and events.

_PROCESS = re.compile(rb'"name"\s*:\s*"(?:[\w.-]+ )?/(?:device:[A-Z]\w*:\d|host:CPU)')
#: The name of a process may begin with that of the machine.
_MACHINE = re.compile(r"([\w.-]+) (/(?:device|host):.*)", re.DOTALL)
_PS_IN_US = 1e6
#: Picoseconds that still fit into 64 bits.
_MOST = 1 << 62
#: The profiler leaves out what is above.
_MOST_EVENTS = 1_000_000


class _Event(msgspec.Struct, gc=False):
    """What is used of an event; anything may stand there."""

    ph: Any = None
    pid: Any = None
    tid: Any = None
    name: Any = None
    ts: Any = None
    dur: Any = None
    args: Any = None


class _File(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents")


class _Line(Line):
    """A thread whose events are known already."""

    def __init__(self, name: str, given: Sequence[Event]) -> None:
        super().__init__(name, 0, [], Plane())
        self._given = given

    def events(self) -> Iterator[Event]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def is_trace(source: Source) -> bool:
    """Say whether this is a trace of the profiler of XLA."""
    names = source.json_names
    return "traceEvents" in names and _PROCESS.search(source.head) is not None


def read_trace(source: Source) -> Output:
    """Read the planes of the devices; of the host where no device did anything."""
    beside = next(source.path.parent.glob("*.xplane.pb"), None)
    if beside is not None:
        raise source.error(f"it has the events of {beside.name}, which is beside it. Give that.")
    return read_planes(source, "jax-trace", lambda: _planes(source))


def _planes(source: Source) -> tuple[list[Plane], list[str]]:
    """Return the processes of a trace as planes.

    Raises
    ------
    ValueError
        It is no trace, or an event has no time.
    """
    try:
        events = msgspec.json.decode(source.text, type=_File).events
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    names: dict[tuple[str, str], str] = {}
    found: dict[str, dict[str, list[Event]]] = {}
    number = 0
    for event in events:
        process, thread = str(event.pid), str(event.tid)
        if event.ph == "M" and isinstance(event.args, dict):
            if event.name in ("process_name", "thread_name"):
                key = (process, thread if event.name == "thread_name" else "")
                names[key] = str(event.args.get("name", ""))
        elif event.ph == "X":
            found.setdefault(process, {}).setdefault(thread, []).append(_event(event))
            number += 1
    processes = _processes({one: names.get((one, ""), one) for one in found})
    planes = [
        Plane(
            processes[process],
            [_Line(names.get((process, one), one), given) for one, given in threads.items()],
        )
        for process, threads in found.items()
    ]
    notes = []
    if number >= _MOST_EVENTS:
        notes.append(
            f"{number} events: the profiler leaves out more than a million. The xplane.pb has all."
        )
    return planes, notes


def _processes(names: dict[str, str]) -> dict[str, str]:
    """Return the names with that of the machine behind, if there are several, else without."""
    split = {one: _MACHINE.fullmatch(name) for one, name in names.items()}
    several = len({match[1] for match in split.values() if match}) > 1
    return {
        one: name if match is None else match[2] + (f" on {match[1]}" if several else "")
        for (one, name), match in zip(names.items(), split.values(), strict=True)
    }


def _event(event: _Event) -> Event:
    name = str(event.name or "event without a name")
    times = []
    for what, value in (("ts", event.ts), ("dur", event.dur)):
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"{what} of {name[:40]!r} is {str(value)[:40]!r}")
        if not abs(value) < _MOST / _PS_IN_US:
            raise ValueError(f"{what} of {name[:40]!r} is {value}")
        times.append(round(value * _PS_IN_US))
    stats = event.args if isinstance(event.args, dict) else {}
    return Event(name, times[0], times[1], 1, stats)


def read(path: str | PathLike[str]) -> Output:
    r"""Read traces of the profiler of JAX and TensorFlow (``*.xplane.pb``, ``*.trace.json.gz``).

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files. The schema (XSpace) is built in: no protobuf
        library is needed. A trace as JSON is read where no ``xplane.pb`` is beside it, which has
        the same events.

    Returns
    -------
    Output
        In ps, measured: the ``time`` of what ran on each stream of a GPU or, on other devices, of
        each operation of XLA; where no device ran any, of the operations of XLA on the CPU.
        ``layer`` is the operation of the compiled program, ``model`` the program. Steps that the
        trace marks, else executions of programs, are runs (level model). ``start`` counts from
        the beginning of the trace.

    Raises
    ------
    InputError
        A file is damaged, or holds events of the host only.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> def message(number, content):
    ...     return bytes([number << 3 | 2, len(content)]) + content
    >>> kernel = message(4, b"\x08\x01" + message(2, b"\x08\x01" + message(2, b"fusion.1")))
    >>> event = message(4, b"\x08\x01\x10\x05\x18\x64")  # offset 5, duration 100
    >>> plane = message(2, b"/device:GPU:0") + message(3, message(2, b"Stream #1") + event) + kernel
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "host.xplane.pb"
    >>> _ = path.write_bytes(message(1, plane))
    >>> read(path).rows.select("kernel", "measured", "unit", "stream").rows()
    [('fusion.1', 100.0, 'ps', 'Stream #1')]
    """
    return read_as(path, FORMATS)


#: A plane, its length, perhaps a number, and its name.
_PLANE = re.compile(
    rb"\n[\x80-\xff]{0,9}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?\x12[\x01-\x7f]"
    rb"(?:/host:|/device:|Task Environment|#Chip)",
    re.DOTALL,
)


def _recognise(source: Source) -> bool:
    return _PLANE.match(source.head) is not None


def _format(
    name: str,
    files: str,
    sample: str,
    recognise: Callable[[Source], bool],
    call: Callable[[Source], Output],
) -> Format:
    return Format(
        name=name,
        tool="JAX",
        files=files,
        levels=("kernel", "model"),
        quantities=("time",),
        units=("ps",),
        gives="measurements",
        reference="hardware",
        sample=sample,
        recognise=recognise,
        read=call,
        limits="Operations that contain others (while, conditional) are left out where those are "
        "there. Times of the host are left out.",
    )


FORMATS = (
    _format("jax-xplane", "*.xplane.pb", "2026 (AMD GPU)", _recognise, _jax_rows.read_xplane),
    _format("jax-trace", "*.trace.json.gz", "", is_trace, read_trace),
)
