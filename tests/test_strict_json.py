"""Strict reading of numbers, JSON and CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.system.strict_json import (
    DoubledNameError,
    is_number,
    loads,
    loads_text,
    number,
    refuse_doubles,
    table,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12.0), (" -1.5e3 ", -1500.0), (".5", 0.5), ("2.", 2.0), ("Inf", float("inf"))],
)
def test_numbers_in_ascii_are_read(text: str, value: float) -> None:
    assert is_number(text)
    assert number(text) == value


@pytest.mark.parametrize("text", ["1_000", "1,5", "٣", "", "0x10", "1e", "twelve"])
def test_what_only_python_takes_for_a_number_is_refused(text: str) -> None:
    assert not is_number(text)
    with pytest.raises(ValueError, match="not a number"):
        number(text)


def test_json_with_a_repeated_name_is_refused() -> None:
    assert loads('{"a": 1, "b": [2]}') == {"a": 1, "b": [2]}
    with pytest.raises(ValueError, match="'a' twice"):
        loads('{"a": 1, "b": 2, "a": 3}')
    with pytest.raises(ValueError, match="nested too deeply"):
        loads("[" * 200_000)


@pytest.mark.parametrize("encode", [str, str.encode])
def test_a_name_that_was_decoded_once_and_stands_there_twice(
    encode: Callable[[str], str | bytes],
) -> None:
    refuse_doubles(encode('[{"dur": 1}, {"dur": 2}]'), {"dur": 2})
    refuse_doubles(encode('{"dur": 1, "name": "\\"dur\\""}'), {"dur": 1})
    with pytest.raises(DoubledNameError, match="'dur' twice"):
        refuse_doubles(encode('{"dur": 1, "dur": 2}'), {"dur": 1})


def test_rows_of_a_table_have_their_lines() -> None:
    path = Path("t.csv")
    assert table(path, 'a,b\n1,2\n"3\n4",5\n', ["b"]) == [
        (2, {"a": "1", "b": "2"}),
        (4, {"a": "3\n4", "b": "5"}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n1\n", "line 1: missing column b. Columns found: a."),
        ("", "line 1: missing column b. Columns found: none."),
        ("b,b\n1,2\n", "line 1: the header names 'b' more than once"),
        ("a,b\n1\n", "line 2: 1 fields, expected 2"),
        ('a,b\n1,"2\n', "line 2: not valid CSV"),
    ],
)
def test_damaged_tables_are_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table(Path("t.csv"), text, ["b"])


def test_what_another_parser_takes_for_json_is_left_to_it() -> None:
    cut_off = '{"dur": 1, "dur": 2'
    with pytest.raises(ValueError, match="Expecting"):
        loads(cut_off)
    assert refuse_doubles(cut_off, {"dur": 1}) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["a"]', ["a"]),
        (r'"\ud83d\ude00"', "\N{GRINNING FACE}"),
        (r'"\uD83D\uDE00!"', "\N{GRINNING FACE}!"),
        (r'"\\ud800"', r"\ud800"),
    ],
)
def test_text_of_whole_characters_is_read(text: str, value: object) -> None:
    assert loads_text(text) == value


@pytest.mark.parametrize("half", ["ud800", "uDBFF", "udc00", "uDfFf", "uD9ab"])
def test_half_a_character_is_refused(half: str) -> None:
    with pytest.raises(ValueError, match=rf"lone surrogate \\{half.lower()}\), which"):
        loads_text(rf'{{"ok": "\ud83d\ude00", "a": ["xy\{half}"]}}')
