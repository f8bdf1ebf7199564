"""The text of a document: recognised, read within limits, and only plain values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from errcomp.codec import text
from errcomp.codec.fields import Field
from errcomp.codec.text import check_values, looks_like_document, parse, read_text
from errcomp.errors import InputError

DOCUMENT = '{"schema": "errcomp.audit/1"}'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_document_is_recognised_by_its_schema(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f"\n {DOCUMENT[:-1]} damaged", encoding=encoding)
    assert looks_like_document(path)
    path.write_text(f'{{"a": "{"x" * 100}", "schema" :  "errcomp.x', encoding=encoding)
    assert looks_like_document(path)
    for other in (f"[{DOCUMENT}]", '{"schema": "other.audit/1"}', ""):
        path.write_text(other, encoding=encoding)
        assert not looks_like_document(path)
    assert not looks_like_document(tmp_path)
    assert not looks_like_document(tmp_path / "no.json")


def test_a_file_of_more_than_512_mib_is_no_document(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(DOCUMENT)
    with path.open("r+b") as file:
        file.truncate((512 << 20) + 1)  # a hole, which takes no place on the disk
    assert not looks_like_document(path)


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "a.json"
    path.write_text(DOCUMENT)
    monkeypatch.setattr(Path, "open", fail)
    assert looks_like_document(path) is False
    with pytest.raises(InputError, match=r"^cannot be read \(Input/output error\)\.$"):
        read_text(path)


def test_a_text_up_to_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_LARGEST_BYTES", 2 << 20)
    path = tmp_path / "a.json"
    path.write_text(DOCUMENT.ljust(2 << 20))
    assert read_text(path).strip() == DOCUMENT
    assert looks_like_document(path)
    path.write_text(DOCUMENT.ljust((2 << 20) + 1))
    with pytest.raises(InputError, match=r"^is larger than 2 MiB, the limit for a document\. "):
        read_text(path)
    assert not looks_like_document(path)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_plain_values_are_fine() -> None:
    largest = 10**19 - 1
    check_values({"a": [None, True, largest, -largest, 1e308, "ä", {"b": ()}]})
    check_values(nested(60))
    deep: Any = 1
    for _ in range(60):
        deep = {"a": deep}
    check_values(deep)
    written = parse(f'{{"a": {largest}, "b": [-{largest // 10}, 1.5e300]}}')
    check_values(written)
    assert written == {"a": largest, "b": [-(largest // 10), 1.5e300]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({1: 2}, "the document has a key that is not text: 1."),
        ({"a": [{"\ud800": 1}]}, r"a[0] has a key that is not text: '\ud800'."),
        ({"a": {"b": object}}, "a.b must be a finite number, text, true, false or null"),
        ({"a": {1, 2}}, "got {1, 2}"),
        ({"a": b"x"}, "got b'x'"),
        ({"a": "\udfff"}, r"got '\udfff'"),
        ({"a": [0.5, float("inf")]}, "a[1] must be"),
        ({"a": 10**19}, "got a number with too many digits"),
        (nested(61), "… is nested more than 60 levels deep."),
    ],
)
def test_values_that_json_cannot_hold_are_refused(document: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_values(document)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("NaN", "a must be a finite number, .*, got NaN$"),
        ("1e999", "got 1e999$"),
        ("1" * 20, "got a number with too many digits$"),
        ("-" + "1" * 19, "got -1111111111111111111$"),
    ],
)
def test_a_number_that_is_none_is_named_with_its_place(written: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_values(parse(f'{{"a": {written}}}'))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "^is empty. Write the document again.$"),
        (" \n", "^is empty"),
        ('{"a": 1', "line 1, column 8: Expecting ',' delimiter. The text ends too early: it may"),
        ('{"a": "b', "column 7: Unterminated string starting at. The text ends too early"),
        ('{"a": 1,\n "b" 2}', "^is not JSON: line 2, column 6: Expecting ':' delimiter.$"),
        ("[" * 100_000, "^is nested too deeply to be an errcomp document.$"),
        ('[{"a": 1, "b": 2, "a": 1}]', "^has the key 'a' twice in one object. Keep one of them.$"),
    ],
)
def test_what_is_no_json_is_refused(written: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(written)


def test_a_text_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match=r"^is not valid UTF-8 text \(byte 8 is 0xff\)\. Name a"):
        read_text(path)
    path.write_text(DOCUMENT, encoding="utf-16")
    assert read_text(path).removeprefix("\ufeff") == DOCUMENT
    with pytest.raises(InputError, match="^is a folder. Name a file"):
        read_text(tmp_path)
    with pytest.raises(InputError, match="^no such file. Check the path.$"):
        read_text(tmp_path / "none")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ({"a": 1}, "an object with 1 key"),
        ({"a": 1, "b": 2}, "an object with 2 keys"),
        ([1, 2], "a list of length 2"),
        ("x" * 58, f"'{'x' * 58}'"),
        ("x" * 59, f"'{'x' * 59}…"),
    ],
)
def test_a_refused_value_is_shown(value: Any, shown: str) -> None:
    with pytest.raises(InputError) as caught:
        Field(value, "a", {}).refuse("a number")
    assert str(caught.value) == f"a must be a number, got {shown}"


def test_the_elements_of_a_list_have_their_places() -> None:
    assert [*Field([], "a", {}).items()] == []
    assert [(one.value, one.path) for one in Field([5, 6], "a", {}).items(2)] == [
        *((5, "a[0]"), (6, "a[1]")),
    ]
    with pytest.raises(InputError, match="^a must be a list of length 3 or more, got a list of"):
        list(Field([5, 6], "a", {}).items(3))
