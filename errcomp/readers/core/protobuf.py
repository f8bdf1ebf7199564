"""The wire format of protocol buffers: fields of a message, without its schema."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_NAMES = {3: "a group", 4: "the end of a group"}
_LAST_NUMBER = (1 << 29) - 1
#: Fields of a message of which many are decoded at once.
_MOST_FIELDS = 256


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    r"""Yield number, wire type and value of each field of a message, in their order.

    Parameters
    ----------
    data : bytes
        One message.

    Yields
    ------
    number, wire_type : int
        The type is `VARINT`, `FIXED64`, `LENGTH` or `FIXED32`.
    value : int or bytes
        Bytes for `LENGTH`: text, a message or packed numbers. Otherwise an unsigned number: see
        `signed`, `double`, `single`.

    Raises
    ------
    ValueError
        The bytes are not a message, or it is cut off; the error names the byte.

    Examples
    --------
    >>> list(fields(b"\x08\x96\x01\x12\x02hi"))
    [(1, 0, 150), (2, 2, b'hi')]
    """
    at, end = 0, len(data)
    while at < end:
        start = at
        # A fast path: most tags and many values take one byte.
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not 0 < number <= _LAST_NUMBER:
            raise ValueError(f"byte {start}: a field has the invalid number {number}")
        if kind == VARINT:
            value, at = _varint(data, at)
            yield number, kind, value
        elif kind == LENGTH:
            size, at = _varint(data, at)
            if size > end - at:
                raise ValueError(
                    f"byte {start}: a field has {size} bytes, but only {end - at} are left"
                )
            yield number, kind, data[at : at + size]
            at += size
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
            if size > end - at:
                raise ValueError(f"byte {start}: a number is cut off")
            yield number, kind, int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise ValueError(
                f"byte {start}: expected a number, a text or bytes, got "
                f"{_NAMES.get(kind, f'a field of type {kind}')}"
            )


def varints(data: bytes) -> list[int]:
    r"""Return the numbers of a packed field.

    Raises
    ------
    ValueError
        The last number is cut off, or a number has more than 64 bits.

    Examples
    --------
    >>> varints(b"\x03\x96\x01")
    [3, 150]
    """
    numbers = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        numbers.append(value)
    return numbers


def messages(data: bytes) -> Iterator[bytes]:
    r"""Yield successive messages, each preceded by its length.

    Raises
    ------
    ValueError
        The last message is cut off; the error names its first byte.

    Examples
    --------
    >>> list(messages(b"\x02ab\x01c"))
    [b'ab', b'c']
    """
    at = 0
    while at < len(data):
        start = at
        size, at = _varint(data, at)
        if size > len(data) - at:
            raise ValueError(
                f"byte {start}: a message has {size} bytes, but only {len(data) - at} are left"
            )
        yield data[at : at + size]
        at += size


def signed(value: int) -> int:
    """Return the ``int32`` or ``int64`` in a `VARINT` or `FIXED64`.

    Examples
    --------
    >>> signed(2**64 - 1), signed(5)
    (-1, 5)
    """
    return value - (1 << 64) if value >= 1 << 63 else value


def double(value: int) -> float:
    """Return the ``double`` in a `FIXED64`.

    Examples
    --------
    >>> double(0x3FF8000000000000)
    1.5
    """
    number: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
    return number


def single(value: int) -> float:
    """Return the ``float`` in a `FIXED32`.

    Examples
    --------
    >>> single(0x3FC00000)
    1.5
    """
    number: float = struct.unpack("<f", value.to_bytes(4, "little"))[0]
    return number


# Many messages at once: a step for each field of a message, with arrays over the messages.


class Spans(NamedTuple):
    """Where the parts of one number stand in a message, and its other fields, as `fields`."""

    starts: Ints
    ends: Ints
    others: list[tuple[int, int, int | bytes]]


class Columns(NamedTuple):
    """Fields of many messages.

    Attributes
    ----------
    numbers : mapping of int to ndarray, shape (messages,)
        The last value of each field in 64 bits.
    parts : mapping of int to tuple of ndarray
        For each part: number of its message, start and end; those of one message in their order.
    lists : tuple of ndarray
        For each field of a list: number of its message, value, start and end. The start of a
        number is -1; packed numbers have no value.
    """

    numbers: Mapping[int, Ints]
    parts: Mapping[int, tuple[Ints, ...]]
    lists: tuple[Ints, ...]


def places(data: bytes) -> tuple[Ints, Ints] | None:
    r"""Return where the messages stand that `messages` yields; None if one is cut off.

    Examples
    --------
    >>> [place.tolist() for place in places(b"\x02ab\x01c")]
    [[1, 4], [3, 5]]
    """
    starts, ends = array("q"), array("q")
    at, end = 0, len(data)
    try:
        while at < end:
            size, at = _varint(data, at)
            if size > end - at:
                return None
            starts.append(at)
            at += size
            ends.append(at)
    except ValueError:
        return None
    return np.array(starts, np.int64), np.array(ends, np.int64)


def spans(data: bytes, wanted: int) -> Spans | None:
    r"""Find the parts with a number from 1 to 15; None of data that only `fields` can explain.

    Examples
    --------
    >>> found = spans(b"\x08\x05\x12\x02hi\x12\x01x", 2)
    >>> found.starts.tolist(), found.ends.tolist(), found.others
    ([4, 8], [6, 9], [(1, 0, 5)])
    """
    tag, at, end = wanted << 3 | LENGTH, 0, len(data)
    starts, ends = array("q"), array("q")
    others: list[tuple[int, int, int | bytes]] = []
    try:
        while at < end:
            if data[at] == tag and (size := data[at + 1]) < 0x80:
                begin = at + 2
                at = begin + size
                starts.append(begin)
                ends.append(at)
                continue
            head, begin = _varint(data, at)
            number, kind = head >> 3, head & 7
            if kind not in (VARINT, LENGTH) or not 0 < number <= _LAST_NUMBER:
                return None
            value, at = _varint(data, begin)
            if kind == VARINT:
                others.append((number, kind, value))
                continue
            if value > end - at:
                return None
            begin, at = at, at + value
            if number == wanted:
                starts.append(begin)
                ends.append(at)
            else:
                others.append((number, kind, data[begin:at]))
    except (ValueError, IndexError):
        return None
    if at > end:
        return None
    return Spans(np.array(starts, np.int64), np.array(ends, np.int64), others)


def columns(
    data: NDArray[np.uint8],
    starts: Ints,
    ends: Ints,
    numbers: Mapping[int, int],
    parts: Sequence[int] = (),
    lists: Sequence[int] = (),
) -> Columns | None:
    r"""Decode fields of many messages of one kind; None of data that only `fields` can explain.

    Parameters
    ----------
    data : ndarray of uint8
    starts, ends : ndarray of int
        Where the messages stand.
    numbers : mapping of int to int
        The wanted fields that hold numbers, and their values where they are missing.
    parts : sequence of int
        The wanted fields that hold text or messages.
    lists : sequence of int
        The wanted fields that hold numbers, packed or one by one; they form one list.

    Examples
    --------
    >>> data = np.frombuffer(b"\x08\x05\x12\x02hi\x08\x96\x01", np.uint8)
    >>> found = columns(data, np.array([0, 6]), np.array([6, 9]), {1: 0, 3: 7}, [2])
    >>> found.numbers[1].tolist(), found.numbers[3].tolist(), found.parts[2]
    ([5, 150], [7, 7], (array([0]), array([4]), array([6])))
    """
    values = {n: np.full(len(starts), default, np.int64) for n, default in numbers.items()}
    found: dict[int, list[tuple[Ints, ...]]] = {n: [] for n in parts}
    listed: list[tuple[Ints, ...]] = []
    which = np.flatnonzero(starts < ends)
    at = starts[which]
    for _ in range(_MOST_FIELDS):
        if not len(which):
            break
        read = _next_fields(data, at, ends[which])
        if read is None:
            return None
        number, kind, value, begin, after = read
        is_number, is_part = np.isin(number, [*values]), np.isin(number, parts)
        of_list = np.isin(number, lists)
        wrong = is_number & (kind != VARINT) | is_part & (kind != LENGTH)
        if (wrong | of_list & (kind == FIXED64)).any():
            return None
        for n, column in values.items():
            of = number == n
            column[which[of]] = value[of]
        for n, one in found.items():
            of = number == n
            one.append((which[of], begin[of], after[of]))
        packed = np.where(kind == LENGTH, begin, -1)
        listed.append((which[of_list], value[of_list], packed[of_list], after[of_list]))
        left = after < ends[which]
        which, at = which[left], after[left]
    else:
        return None
    by_number = {n: _in_order(one, 3) for n, one in found.items()}
    return Columns(values, by_number, _in_order(listed, 4))


def _next_fields(
    data: NDArray[np.uint8], at: Ints, stop: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints] | None:
    """Return number, type, value, and start and end of the content of the fields here."""
    read = _varints_at(data, at, stop)
    if read is None:
        return None
    tag, at = read
    number, kind = tag >> 3, tag & 7
    known = (kind == VARINT) | (kind == LENGTH) | (kind == FIXED64)
    if not (known & (number > 0) & (number <= _LAST_NUMBER)).all():
        return None
    value, after = np.zeros_like(at), at + 8
    short = np.flatnonzero(kind != FIXED64)
    read = _varints_at(data, at[short], stop[short])
    if read is None:
        return None
    value[short], after[short] = read
    begin, sized = after.copy(), kind == LENGTH
    if (sized & ((value < 0) | (value > stop - after))).any():
        return None
    after[sized] += value[sized]
    return None if (after > stop).any() else (number, kind, value, begin, after)


def _in_order(places: list[tuple[Ints, ...]], columns: int) -> tuple[Ints, ...]:
    """Put the fields together, sorted by their messages."""
    if not places:
        return (np.zeros(0, np.int64),) * columns
    whole = [np.concatenate(one) for one in zip(*places, strict=True)]
    order = np.argsort(whole[0], kind="stable")
    return tuple(column[order] for column in whole)


def _varints_at(data: NDArray[np.uint8], at: Ints, stop: Ints) -> tuple[Ints, Ints] | None:
    """Return the numbers at these places, as 64 bits with a sign, and the places after them."""
    value, at = np.zeros(len(at), np.uint64), at.copy()
    live = np.arange(len(at))
    for shift in range(0, 70, 7):
        place = at[live]
        if (place >= stop[live]).any():
            return None
        byte = data[place]
        if shift == 63 and (byte > 1).any():
            return None
        value[live] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(shift)
        at[live] = place + 1
        live = live[byte >= 0x80]
        if not len(live):
            return value.view(np.int64), at
    return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the position after it."""
    start, value, shift = at, 0, 0
    try:
        while True:
            byte = data[at]
            at += 1
            if byte < 0x80:
                break
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError(f"byte {start}: a number has more than ten bytes")
    except IndexError:
        raise ValueError(f"byte {start}: a number is cut off") from None
    value |= byte << shift
    if value >> 64:
        raise ValueError(f"byte {start}: a number has more than 64 bits")
    return value, at
