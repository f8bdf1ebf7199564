"""The schema of ``xplane.pb`` (XSpace): planes, lines and events of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from errcomp.readers.core import protobuf as _wire

__all__ = ["Event", "Line", "Plane", "planes_of"]

_PLANES, _ERRORS, _WARNINGS = 1, 2, 3


@dataclass(slots=True)
class Event:
    """One event: when it began on its line and how long it took, in ps, and how often."""

    name: str
    start: int
    duration: int
    count: int
    stats: dict[str, Any]


@dataclass(slots=True)
class Line:
    """One thread or stream; its events are decoded when they are asked for."""

    name: str
    start_ns: int
    _events: list[bytes]
    _plane: Plane

    def events(self) -> Iterator[Event]:
        """Decode the events, in their order.

        Raises
        ------
        ValueError
            One is damaged.
        """
        for data in self._events:
            yield self._plane.event(data)

    def __len__(self) -> int:
        return len(self._events)


@dataclass(slots=True)
class Plane:
    """One device, or the host."""

    name: str = ""
    lines: list[Line] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    #: What events are called, and what is true of all that are called so.
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
        found: Any = None
        for number, kind, value in _wire.fields(data):
            if number == 1 and isinstance(value, int):
                key = value
            elif number == 7 and isinstance(value, int):
                found = self._stats.get(value, "")
            elif kind == _wire.LENGTH and isinstance(value, bytes):
                # Other bytes than text are of no use here.
                found = _text(value) if number == 5 else None
            elif kind == _wire.FIXED64 and isinstance(value, int):
                found = _wire.double(value)
            elif isinstance(value, int):
                found = _wire.signed(value) if number == 4 else value
        return {self._stats.get(key, f"stat {key}"): found}

    @classmethod
    def decoded(cls, data: bytes) -> Plane:
        """Decode a plane, but not its events."""
        plane = cls()
        lines, names, stats = [], [], []
        for number, _, value in _wire.fields(data):
            if not isinstance(value, bytes):
                continue
            if number == 2:
                plane.name = _text(value)
            elif number == 3:
                lines.append(value)
            elif number == 4:
                names.append(value)
            elif number == 5:
                key, entry = _entry(value)
                plane._stats[key] = _first_text(entry, 2)
            elif number == 6:
                stats.append(value)
        # Statistics have names that may come after them.
        for one in stats:
            plane.stats |= plane._stat(one)
        if lines:
            for one in names:
                key, entry = _entry(one)
                plane._events[key] = plane._named(entry)
        plane.lines = [plane._line(one) for one in lines]
        return plane

    def _named(self, data: bytes) -> tuple[str, dict[str, Any]]:
        name = shown = ""
        stats: dict[str, Any] = {}
        for number, _, value in _wire.fields(data):
            if not isinstance(value, bytes):
                continue
            if number == 2:
                name = _text(value)
            elif number == 4:
                shown = _text(value)
            elif number == 5:
                stats |= self._stat(value)
        return shown or name, stats

    def _line(self, data: bytes) -> Line:
        name = shown = ""
        start = 0
        events: list[bytes] = []
        for number, _, value in _wire.fields(data):
            if isinstance(value, bytes):
                if number == 2:
                    name = _text(value)
                elif number == 11:
                    shown = _text(value)
                elif number == 4:
                    events.append(value)
            elif number == 3:
                start = _wire.signed(value)
        return Line(name or shown, start, events, self)


def planes_of(data: bytes) -> tuple[list[Plane], list[str]]:
    """Decode a trace: its planes, and what the profiler says went wrong.

    Raises
    ------
    ValueError
        The bytes are no trace, or it is cut off.
    """
    planes, notes = [], []
    for number, _, value in _wire.fields(data):
        if isinstance(value, bytes):
            if number == _PLANES:
                planes.append(Plane.decoded(value))
            elif number in (_ERRORS, _WARNINGS):
                notes.append(_text(value))
    return planes, notes


def _entry(data: bytes) -> tuple[int, bytes]:
    """Return key and value of an entry of a map from numbers to messages."""
    key, found = 0, b""
    for number, _, value in _wire.fields(data):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2 and isinstance(value, bytes):
            found = value
    return key, found


def _first_text(data: bytes, wanted: int) -> str:
    for number, _, value in _wire.fields(data):
        if number == wanted and isinstance(value, bytes):
            return _text(value)
    return ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
