"""The wire format of protocol buffers."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errcomp.readers.core import protobuf as _wire


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, kind: int, value: int | bytes) -> bytes:
    head = varint(number << 3 | kind)
    if kind == _wire.VARINT:
        return head + varint(value)
    if kind == _wire.LENGTH:
        return head + varint(len(value)) + value
    return head + value.to_bytes(8 if kind == _wire.FIXED64 else 4, "little")


NUMBERS = st.integers(1, 2**29 - 1)
FIELDS = st.one_of(
    st.tuples(NUMBERS, st.just(_wire.VARINT), st.integers(0, 2**64 - 1)),
    st.tuples(NUMBERS, st.just(_wire.FIXED64), st.integers(0, 2**64 - 1)),
    st.tuples(NUMBERS, st.just(_wire.FIXED32), st.integers(0, 2**32 - 1)),
    st.tuples(NUMBERS, st.just(_wire.LENGTH), st.binary(max_size=300)),
)


@given(st.lists(FIELDS))
def test_what_is_written_is_read(message: list[tuple[int, int, int | bytes]]) -> None:
    assert list(_wire.fields(b"".join(field(*one) for one in message))) == message


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_packed_numbers(values: list[int]) -> None:
    assert _wire.varints(b"".join(map(varint, values))) == values


@given(st.lists(st.binary(max_size=300)))
def test_messages_after_their_length(parts: list[bytes]) -> None:
    assert list(_wire.messages(b"".join(varint(len(one)) + one for one in parts))) == parts


@given(st.binary(max_size=200))
def test_any_bytes_give_fields_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert all(number > 0 for number, _, _ in _wire.fields(data))
    with contextlib.suppress(ValueError):
        assert len(_wire.varints(data)) <= len(data)
    with contextlib.suppress(ValueError):
        parts = list(_wire.messages(data))
        assert sum(1 + len(part) for part in parts) <= len(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "byte 1: a number is cut off"),
        (b"\x08\xff", "byte 1: a number is cut off"),
        (b"\x08\x01\x88", "byte 2: a number is cut off"),
        (b"\x12\x05abc", "byte 0: a field has 5 bytes, but only 3 are left"),
        (b"\x09\x00\x00", "byte 0: a number is cut off"),
        (b"\x0d\x00\x00", "byte 0: a number is cut off"),
        (b"\x0b", "byte 0: a field is a group"),
        (b"\x0c", "byte 0: a field is the end of a group"),
        (b"\x0e", "byte 0: a field is of type 6"),
        (b"\x00\x00", "byte 0: a field has the invalid number 0"),
        (varint(2**29 << 3), "byte 0: a field has the invalid number 536870912"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "byte 1: a number has more than ten bytes"),
        (b"\x08" + b"\xff" * 9 + b"\x7f", "byte 1: a number has more than 64 bits"),
    ],
)
def test_damage_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        list(_wire.fields(data))


def test_a_message_that_is_cut_off() -> None:
    with pytest.raises(ValueError, match="^byte 2: a message has 9 bytes, but only 1 are left$"):
        list(_wire.messages(b"\x01a\x09b"))


def test_numbers_with_sign_and_point() -> None:
    assert _wire.signed(2**64 - 7) == -7
    assert _wire.signed(2**63 - 1) == 2**63 - 1
    assert _wire.double(int.from_bytes(struct.pack("<d", -2.25), "little")) == -2.25
    assert _wire.single(int.from_bytes(struct.pack("<f", 0.5), "little")) == 0.5
