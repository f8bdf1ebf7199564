"""The wire format of protocol buffers."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import numpy as np
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
        (b"\x0b", "byte 0: expected a number, a text or bytes, got a group"),
        (b"\x0c", "byte 0: expected a number, a text or bytes, got the end of a group"),
        (b"\x0e", "byte 0: expected a number, a text or bytes, got a field of type 6"),
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


def by_fields(messages: list[bytes]) -> tuple[Any, ...] | None:
    """What `columns` returns of these messages, one field after the other; None of damage."""
    numbers = {1: [0] * len(messages), 3: [7] * len(messages)}
    parts: list[tuple[int, bytes]] = []
    lists: list[tuple[int, int | bytes]] = []
    try:
        for i, data in enumerate(messages):
            for number, kind, value in _wire.fields(data):
                if number in numbers and isinstance(value, int):
                    numbers[number][i] = _wire.signed(value)
                elif number == 2 and isinstance(value, bytes):
                    parts.append((i, value))
                elif number == 4:
                    lists.append((i, value if kind == 2 else _wire.signed(int(value))))
    except ValueError:
        return None
    return numbers, parts, lists


def at_once(messages: list[bytes]) -> tuple[Any, ...] | None:
    whole = b"".join(messages)
    ends = np.cumsum([len(data) for data in messages], dtype=np.int64)
    starts = ends - [len(data) for data in messages]
    data = np.frombuffer(whole, np.uint8)
    found = _wire.columns(data, starts, ends, {1: 0, 3: 7}, [2], [4])
    if found is None:
        return None
    parts = [(i, whole[a:b]) for i, a, b in zip(*(c.tolist() for c in found.parts[2]), strict=True)]
    lists = [
        (i, value if a < 0 else whole[a:b])
        for i, value, a, b in zip(*(c.tolist() for c in found.lists), strict=True)
    ]
    return {n: values.tolist() for n, values in found.numbers.items()}, parts, lists


usual = st.one_of(
    st.tuples(st.sampled_from([1, 3, 4, 9]), st.just(0), st.integers(0, 2**64 - 1)),
    st.tuples(st.sampled_from([2, 4, 8]), st.just(2), st.binary(max_size=200)),
    st.tuples(st.just(7), st.just(1), st.integers(0, 2**64 - 1)),
)


@given(st.lists(st.lists(usual, max_size=6), max_size=6))
def test_many_messages_are_those_read_one_by_one(messages: list[list[Any]]) -> None:
    written = [b"".join(field(*one) for one in message) for message in messages]
    assert at_once(written) == by_fields(written)


@given(st.lists(st.binary(max_size=12), max_size=4))
def test_many_damaged_messages_are_never_read_as_others(messages: list[bytes]) -> None:
    found = at_once(messages)
    assert found is None or found == by_fields(messages)


@pytest.mark.parametrize(
    "data",
    [
        b"\x08" + b"\xff" * 9 + b"\x02",  # more than 64 bits
        b"\x08" + b"\xff" * 10 + b"\x01",
        b"\x08\x80",
        b"\x12\x05ab",
        b"\x12" + b"\xff" * 9 + b"\x01",
        b"\x00\x00",
        b"\x0b",
        b"\x0d\x00\x00\x00\x00",  # 32 bits: left to `fields`
        b"\x09" + bytes(8),  # a wanted number of another kind
        b"\x10\x01",
        b"\x11" + bytes(7),
    ],
)
def test_what_only_fields_can_explain(data: bytes) -> None:
    assert at_once([b"\x08\x01", data]) is None


@pytest.mark.parametrize("size", [2**63 - 1, 2**64 - 1, 5])
def test_sizes_beyond_the_data_are_left_to_fields(size: int) -> None:
    assert _wire.places(b"\x01x" + varint(size) + b"ab") is None
    for number in (2, 3):
        assert _wire.spans(varint(number << 3 | 2) + varint(size) + b"ab", 2) is None
    assert at_once([b"\x12" + varint(size) + b"ab"]) is None


def test_messages_of_many_fields_are_left_to_fields() -> None:
    assert at_once([b"\x08\x01" * 255]) == ({1: [1], 3: [7]}, [], [])
    assert at_once([b"\x08\x01" * 256]) is None


@given(st.lists(st.one_of(usual, st.tuples(st.just(2), st.just(2), st.binary(max_size=300)))))
def test_parts_are_where_fields_finds_them(message: list[Any]) -> None:
    data = b"".join(field(*one) for one in message)
    found = _wire.spans(data, 2)
    if any(kind == 1 for _, kind, _ in message):
        assert found is None
        return
    assert found is not None
    ends = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    every = list(_wire.fields(data))
    assert [data[a:b] for a, b in ends] == [v for n, k, v in every if (n, k) == (2, 2)]
    assert found.others == [one for one in every if one[:2] != (2, 2)]


@given(st.binary(max_size=40))
def test_parts_of_any_bytes_are_those_of_fields_or_none(data: bytes) -> None:
    found = _wire.spans(data, 2)
    if found is not None:
        ends = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
        every = list(_wire.fields(data))
        assert [data[a:b] for a, b in ends] == [v for n, k, v in every if (n, k) == (2, 2)]
    places = _wire.places(data)
    try:
        messages = list(_wire.messages(data))
    except ValueError:
        assert places is None
        return
    assert places is not None
    assert [data[a:b] for a, b in zip(*(p.tolist() for p in places), strict=True)] == messages
