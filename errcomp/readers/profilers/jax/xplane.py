"""The schema of ``xplane.pb`` (XSpace): planes, lines and events of a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from errcomp.readers.core import protobuf as _wire

_PLANES, _ERRORS, _WARNINGS = 1, 2, 3


@dataclass(slots=True)
class Event:
    """An event: start on its line and duration, in ps, and number of occurrences."""

    name: str
    start: int
    duration: int
    count: int
    stats: dict[str, Any]


@dataclass(slots=True)
class Line:
    """A thread or stream; its events are decoded on demand."""

    name: str
    start_ns: int
    _events: list[bytes]
    _plane: Plane

    def events(self) -> Iterator[Event]:
        """Decode the events, in order.

        Raises
        ------
        ValueError
            An event is damaged.
        """
        for data in self._events:
            yield self._plane.event(data)

    def __len__(self) -> int:
        return len(self._events)


@dataclass(slots=True)
class Plane:
    """A device, or the host."""

    name: str = ""
    lines: list[Line] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    #: Names of events, and the statistics shared by all events of a name.
    _events: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    _stats: dict[int, str] = field(default_factory=dict)

    def event(self, data: bytes) -> Event:
        """Decode an event."""
        which = start = duration = 0
        count = 1
        stats: dict[str, Any] = {}
        for number, kind, value in _wire.fields(data):
            if number == 4 and isinstance(value, bytes):
                stats |= self._stat(value)
            elif kind == _wire.VARINT and isinstance(value, int):
                if number == 1:
                    which = value
                elif number == 2:
                    start = _wire.signed(value)
                elif number == 3:
                    duration = _wire.signed(value)
                elif number == 5:
                    count = _wire.signed(value)
        name, common = self._events.get(which, (f"event {which}", {}))
        return Event(name, start, duration, count, {**common, **stats})

    def _stat(self, data: bytes) -> dict[str, Any]:
        key = 0
        content: Any = None
        for number, kind, value in _wire.fields(data):
            if number == 1 and isinstance(value, int):
                key = value
            elif number == 7 and isinstance(value, int):
                content = self._stats.get(value, "")
            elif kind == _wire.LENGTH and isinstance(value, bytes):
                # Bytes other than text are not used here.
                content = _text(value) if number == 5 else None
            elif kind == _wire.FIXED64 and isinstance(value, int):
                content = _wire.double(value)
            elif isinstance(value, int):
                content = _wire.signed(value) if number == 4 else value
        return {self._stats.get(key, f"stat {key}"): content}

    @classmethod
    def decoded(cls, data: bytes) -> Plane:
        """Decode a plane, but not its events."""
        plane = cls()
        parts, _ = _parts(data)
        plane.name = _last(parts[2])
        for item in parts[5]:
            key, entry = _entry(item)
            plane._stats[key] = _first_text(entry, 2)
        # Names of statistics may come after the statistics.
        for stat in parts[6]:
            plane.stats |= plane._stat(stat)
        if parts[3]:
            for item in parts[4]:
                key, entry = _entry(item)
                plane._events[key] = plane._named(entry)
        plane.lines = [plane._line(line) for line in parts[3]]
        return plane

    def _named(self, data: bytes) -> tuple[str, dict[str, Any]]:
        parts, _ = _parts(data)
        stats: dict[str, Any] = {}
        for stat in parts[5]:
            stats |= self._stat(stat)
        return _last(parts[4]) or _last(parts[2]), stats

    def _line(self, data: bytes) -> Line:
        parts, numbers = _parts(data)
        name = _last(parts[2]) or _last(parts[11])
        return Line(name, _wire.signed(numbers.get(3, 0)), parts[4], self)


def planes_of(data: bytes) -> tuple[list[Plane], list[str]]:
    """Decode a trace: its planes, and the errors that the profiler reported.

    Raises
    ------
    ValueError
        The bytes are not a trace, or it is cut off.
    """
    planes, notes = [], []
    for number, _, value in _wire.fields(data):
        if isinstance(value, bytes):
            if number == _PLANES:
                planes.append(Plane.decoded(value))
            elif number in (_ERRORS, _WARNINGS):
                notes.append(_text(value))
    return planes, notes


def _parts(data: bytes) -> tuple[defaultdict[int, list[bytes]], dict[int, int]]:
    """Return the texts and messages of each field of a message, and the last number of each."""
    parts: defaultdict[int, list[bytes]] = defaultdict(list)
    numbers: dict[int, int] = {}
    for number, _, value in _wire.fields(data):
        if isinstance(value, bytes):
            parts[number].append(value)
        else:
            numbers[number] = value
    return parts, numbers


def _last(texts: list[bytes]) -> str:
    return _text(texts[-1]) if texts else ""


def _entry(data: bytes) -> tuple[int, bytes]:
    """Return key and value of an entry of a map from numbers to messages."""
    parts, numbers = _parts(data)
    return numbers.get(1, 0), parts[2][-1] if parts[2] else b""


def _first_text(data: bytes, wanted: int) -> str:
    for number, _, value in _wire.fields(data):
        if number == wanted and isinstance(value, bytes):
            return _text(value)
    return ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
