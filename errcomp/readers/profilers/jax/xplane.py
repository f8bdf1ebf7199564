"""The schema of ``xplane.pb`` (XSpace): planes, lines and events of a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from errcomp.readers.core import protobuf as _wire
from errcomp.tables.frames import refined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

#: Events that are decoded together, and statistics of an event that are, too.
_BLOCK, _MOST_STATS = 1 << 18, 32
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
class Events:
    """All events of a line: times in ps, counts, and the kind of each event.

    Events of a kind share their name and the statistics that were asked for.
    """

    start: Ints
    duration: Ints
    count: Ints
    kind: Ints
    kinds: list[Event]


@dataclass(slots=True)
class Line:
    """A thread or stream; its events are decoded on demand."""

    name: str
    start_ns: int
    _data: bytes
    _starts: Ints
    _ends: Ints
    _plane: Plane

    def events(self) -> Iterator[Event]:
        """Decode the events, in order.

        Raises
        ------
        ValueError
            An event is damaged.
        """
        for start, end in zip(self._starts.tolist(), self._ends.tolist(), strict=True):
            yield self._plane.event(self._data[start:end])

    def columns(self, wanted: Collection[str]) -> Events:
        """Decode all events, with these statistics.

        Raises
        ------
        ValueError
            An event is damaged.
        """
        parts = [self._some(i, wanted) for i in range(0, len(self), _BLOCK)]
        if not parts or any(part is None for part in parts):
            return events_of(self.events())
        known = cast("list[Events]", parts)
        before = np.cumsum([0, *(len(part.kinds) for part in known)])
        kinds = [part.kind + first for part, first in zip(known, before, strict=False)]
        return Events(
            np.concatenate([part.start for part in known]),
            np.concatenate([part.duration for part in known]),
            np.concatenate([part.count for part in known]),
            np.concatenate(kinds),
            [event for part in known for event in part.kinds],
        )

    def _some(self, first: int, wanted: Collection[str]) -> Events | None:
        """Decode some events together; None if one of them is unusual."""
        starts, ends = self._starts[first : first + _BLOCK], self._ends[first : first + _BLOCK]
        data = np.frombuffer(self._data, np.uint8)
        fields = _wire.columns(data, starts, ends, {1: 0, 2: 0, 3: 0, 5: 1}, (4,))
        if fields is None:
            return None
        which, begin, end = fields.parts[4]
        of_stats = _wire.columns(data, begin, end, {1: 0})
        if of_stats is None:
            return None
        used = np.isin(of_stats.numbers[1], self._plane.keys_of(wanted))
        which, begin, end = which[used], begin[used], end[used]
        codes: dict[bytes, int] = {}
        places = zip(begin.tolist(), end.tolist(), strict=True)
        contents = (codes.setdefault(self._data[a:b], len(codes) + 1) for a, b in places)
        content = np.fromiter(contents, np.int64)
        # The first statistic of each event, then the second, ...
        place = np.arange(len(which)) - np.searchsorted(which, which)
        if len(place) and place.max() >= _MOST_STATS:
            return None
        kind = np.unique(fields.numbers[1], return_inverse=True)[1].astype(np.int64)
        for nth in range(int(place.max(initial=-1)) + 1):
            code = np.zeros(len(starts), np.int64)
            at = place == nth
            code[which[at]] = content[at]
            kind = refined(kind, code)
        one_of = np.unique(kind, return_index=True)[1].tolist()
        kinds = [self._plane.event(self._data[starts[i] : ends[i]]) for i in one_of]
        numbers = fields.numbers
        return Events(numbers[2], numbers[3], numbers[5], kind, kinds)

    def __len__(self) -> int:
        return len(self._starts)


def events_of(events: Iterable[Event]) -> Events:
    """Put events that are decoded one by one together; each is a kind of its own."""
    kinds = list(events)
    times = [(event.start, event.duration, event.count) for event in kinds]
    start, duration, count = np.array(times, dtype=object).reshape(-1, 3).T
    return Events(start, duration, count, np.arange(len(kinds)), kinds)


@dataclass(slots=True)
class Plane:
    """A device, or the host."""

    name: str = ""
    lines: list[Line] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    #: Names of events, and the statistics shared by all events of a name.
    _events: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    _stats: dict[int, str] = field(default_factory=dict)

    def keys_of(self, names: Collection[str]) -> list[int]:
        """Return the numbers of statistics with these names."""
        return [_wire.signed(key) for key, name in self._stats.items() if name in names]

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
        found = _wire.spans(data, 4)
        if found is None:
            parts, numbers = _parts(data)
            data, sizes = b"".join(parts[4]), [len(part) for part in parts[4]]
            ends = np.cumsum(sizes, dtype=np.int64)
            starts = ends - sizes
        else:
            starts, ends, others = found
            parts, numbers = _sorted(others)
        name = _last(parts[2]) or _last(parts[11])
        return Line(name, _wire.signed(numbers.get(3, 0)), data, starts, ends, self)


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
    return _sorted(_wire.fields(data))


def _sorted(
    fields: Iterable[tuple[int, int, int | bytes]],
) -> tuple[defaultdict[int, list[bytes]], dict[int, int]]:
    parts: defaultdict[int, list[bytes]] = defaultdict(list)
    numbers: dict[int, int] = {}
    for number, _, value in fields:
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
