"""The wire format of protocol buffers: fields of a message, without its schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_NAMES = {3: "a group", 4: "the end of a group"}
_LAST_NUMBER = (1 << 29) - 1


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
            raise ValueError(f"byte {start}: a field is {_NAMES.get(kind, f'of type {kind}')}")


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
