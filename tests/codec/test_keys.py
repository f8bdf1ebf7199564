"""How a class says the keys of its documents: written, read again, described, and held to agree."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from errcomp.codec import (
    Absent,
    Count,
    Derived,
    Document,
    Each,
    Endless,
    Ends,
    Field,
    GroupKeys,
    Inline,
    Meta,
    Rows,
    Share,
    Undefined,
    Within,
    decode,
    key,
    schema_of,
    words,
)
from errcomp.codec.keys import Part
from errcomp.codec.shapes import Scalar, json_text, shape_of
from errcomp.errors import InputError


@dataclass(frozen=True)
class Inner(Document):
    """A part of a row."""

    word: Literal["yes", "no"]


@dataclass(frozen=True, eq=False)
class Row(Document):
    """One row.

    Attributes
    ----------
    key : mapping
        Of the group.
    n : int
        How many.
    low, high : float or None
        Its interval.
    """

    KEYS: ClassVar = (
        *(GroupKeys(), "n", Ends(), "value", "time", "day", "span", Inline("inner", Inner)),
        Derived("double", int, lambda row: 2 * row.n),
        Within("box", (key("of", "name", str),)),
    )

    key: Mapping[str, Any]
    n: Count
    low: float | None
    high: float | None
    value: Annotated[float, Undefined]
    time: Annotated[float, Endless]
    day: date | None
    span: tuple[str, int]
    inner: Inner
    name: str


@dataclass(frozen=True, eq=False)
class Whole(Document):
    """A whole document."""

    SCHEMA: ClassVar = "errcomp.whole/1"
    COMMAND: ClassVar = "whole"
    KEYS: ClassVar = (
        *("by", key("rows", "parts"), "shares", key("since", "newer")),
        Rows("columns", {"a": ("names", str, words), "b": ("numbers", float, np.array)}),
    )

    by: tuple[str, ...]
    parts: Annotated[tuple[Row, ...], Meta(min_length=1)]
    shares: Annotated[Any, Each(Annotated[Share, Undefined])]
    names: Any
    numbers: Any
    newer: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def _agree(self, field: Field) -> None:
        """Refuse as many shares as rows are not."""
        if len(self.shares) != len(self.parts):
            field.at("shares").contradicts("one for each row")


def row(**changes: Any) -> Row:
    given = {
        "key": {"gpu": "A"}, "n": 2, "low": 0.1, "high": math.inf, "value": math.nan,
        "time": math.inf, "day": date(2026, 1, 31), "span": ("a", 1), "inner": Inner("yes"),
        "name": "x",
    }  # fmt: skip
    return Row(**{**given, **changes})


def whole() -> Whole:
    names, numbers = words(["p", "q"]), np.array([1.0, np.nan])
    return Whole(("gpu",), (row(),), np.array([np.nan]), names, np.nan_to_num(numbers), newer=3)


WRITTEN = {
    "schema": "errcomp.whole/1",
    "by": ["gpu"],
    "rows": [
        {
            "gpu": "A", "n": 2, "low": 0.1, "high": None, "value": None, "time": None,
            "day": "2026-01-31", "span": ["a", 1], "word": "yes", "double": 4, "box": {"of": "x"},
        }
    ],
    "shares": [None],
    "since": 3,
    "columns": [{"a": "p", "b": 1.0}, {"a": "q", "b": 0.0}],
}  # fmt: skip


def test_the_keys_are_written_in_their_order() -> None:
    assert whole().to_dict() == WRITTEN
    assert list(whole().to_dict()) == list(WRITTEN)
    assert list(whole().to_dict()["rows"][0]) == list(WRITTEN["rows"][0])
    assert "schema" not in whole().keys()  # noqa: SIM118 - no mapping


def test_what_is_read_is_what_was_written() -> None:
    again = decode(Whole, WRITTEN)
    (part,) = again.parts
    assert (part.key, part.low, part.high, part.time) == ({"gpu": "A"}, 0.1, math.inf, math.inf)
    assert math.isnan(part.value)
    assert math.isnan(again.shares[0])
    assert (part.day, part.inner, part.name) == (date(2026, 1, 31), Inner("yes"), "x")
    assert again.names.tolist() == ["p", "q"]
    assert again.numbers.dtype == float
    assert again.to_json() == whole().to_json()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("rows", 0, "n"), -1, r"rows\[0\]\.n must be a whole number, not negative, got -1"),
        (("rows", 0, "n"), 2.5, r"rows\[0\]\.n must be a whole number, not negative, got 2\.5"),
        (
            ("rows", 0, "low"),
            None,
            r"rows\[0\]\.low must be a number, because the upper bound is a number, got null",
        ),
        (("rows", 0, "high"), 0.0, r"rows\[0\]\.high must be at least the lower bound, 0\.1, got"),
        (("rows", 0, "day"), "today", r"rows\[0\]\.day must be a date such as 2026-01-31, got"),
        (("rows", 0, "day"), 5, r"rows\[0\]\.day must be a date such as 2026-01-31, got 5"),
        (
            ("rows", 0, "span"),
            ["a"],
            r"rows\[0\]\.span must be a list of length 2, got a list of length 1\.",
        ),
        (("rows", 0, "word"), "maybe", r"rows\[0\]\.word must be one of yes, no, got 'maybe'"),
        (
            ("rows", 0, "double"),
            5,
            r"rows\[0\]\.double is 5, but the rest of the document gives 4:",
        ),
        (
            ("rows", 0, "gpu"),
            [],
            r"rows\[0\]\.gpu must be text or a number, got a list of length 0\.",
        ),
        (("rows", 0, "box"), 1, r"rows\[0\]\.box must be an object, got 1"),
        (("rows",), [], r"rows must be a list of length 1 or more, got a list of length 0\."),
        (("shares", 0), 1.5, r"shares\[0\] must be a number from 0 to 1, got 1\.5"),
        (("shares",), [0.5, 0.5], r"shares is a list of length 2, but must be one for each row"),
        (("columns", 1, "b"), "x", r"columns\[1\]\.b must be a number, got 'x'"),
        (("columns",), {}, r"columns must be a list, got an object with 0 keys"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    path: tuple[Any, ...], value: Any, message: str
) -> None:
    document: Any = copy.deepcopy(WRITTEN)
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    if value is None:  # one end alone
        place["high"] = 0.5
    with pytest.raises(InputError, match=message) as raised:
        decode(Whole, document)
    assert str(raised.value).endswith("with this errcomp: errcomp whole … -o FILE.json")


def test_a_truth_value_is_no_number() -> None:
    document: Any = copy.deepcopy(WRITTEN)
    document["rows"][0] |= {"n": 0, "double": False}
    with pytest.raises(
        InputError, match=r"rows\[0\]\.double is False, but the rest of the document gives 0:"
    ):
        decode(Whole, document)


def test_the_schema_says_types_bounds_and_meanings() -> None:
    schema = schema_of(Whole)
    row = schema["$defs"]["Row"]
    assert schema["properties"]["rows"] == {
        "type": "array", "items": {"$ref": "#/$defs/Row"}, "minItems": 1,
    }  # fmt: skip
    assert row["properties"]["n"] == {"description": "How many.", "type": "integer", "minimum": 0}
    assert row["properties"]["low"]["description"] == "Its interval."
    assert row["properties"]["day"] == {"type": ["string", "null"], "format": "date"}
    assert row["properties"]["word"]["enum"] == ["no", "yes"]
    assert row["additionalProperties"] == {"type": ["string", "number", "boolean", "null"]}
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(WRITTEN)


def test_what_a_document_lacks_says_where_it_is_to_be_had() -> None:
    absent = Absent("the errors of single series", "Fit the history again.", n_series=3)
    assert absent.n_series == 3
    with pytest.raises(InputError, match=r"not hold the errors of single series \(error\)\. Fit"):
        absent.error  # noqa: B018
    assert not hasattr(absent, "__array__")


def test_values_that_are_not_of_json_are_written_as_text() -> None:
    written = json_text({"day": date(2026, 1, 31), 3: [np.float64("nan"), np.int64(2), "ä"]})
    assert written == ('{\n  "day": "2026-01-31",\n  "3": [\n    null,\n    2,\n    "ä"\n  ]\n}')


def test_a_value_of_several_types_is_read_as_the_first_that_takes_it() -> None:
    shape = shape_of(int | tuple[Count, ...])
    assert [shape.read(Field(value, "a", {})) for value in (-1, [1, 2])] == [-1, (1, 2)]
    assert shape.write((1, 2)) == [1, 2]
    with pytest.raises(InputError, match=r"^a must be a list, got 0\.5$"):
        shape.read(Field(0.5, "a", {}))
    numbers = {"type": "array", "items": {"type": "integer", "minimum": 0}}
    assert shape.schema({}) == {"anyOf": [{"type": "integer"}, numbers]}


def test_a_grouping_key_is_text_or_a_number() -> None:
    shape = shape_of(Scalar)
    kept = ("a", 1, 0.5, True, None)
    assert [shape.read(Field(value, "by", {})) for value in kept] == [*kept]
    with pytest.raises(InputError, match=r"^by must be text or a number, got a list of length 1$"):
        shape.read(Field([1], "by", {}))


def test_parts_of_a_document_must_say_how_they_are_written() -> None:
    part = Part()
    for use in (part.write, part.read, part.schema):
        with pytest.raises(NotImplementedError):
            use(None)  # type: ignore[arg-type]
