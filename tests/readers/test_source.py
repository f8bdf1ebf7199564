"""One file: its content in every wrapping, what it begins with, and what is wrong with it."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgspec
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.content import load_bytes, notes_on
from errcomp.readers.core.source import Source, refuse_special, url_refused


def source(tmp_path: Path, content: str | bytes, name: str = "a.txt") -> Source:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Source(path, name=name)


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,\xc2\xb5\n",
        b"a,b\r\n1,\xc2\xb5\r\n",
        b"\xef\xbb\xbfa,b\n1,\xc2\xb5\n",
        "a,b\n1,µ\n".encode("utf-16"),
        # A fixed time: workers of one run must collect the same parameters.
        gzip.compress(b"a,b\n1,\xc2\xb5\n", mtime=0),
        gzip.compress("a,b\n1,µ\n".encode("utf-16"), mtime=0),
    ],
    ids=["plain", "crlf", "bom", "utf-16", "gzip", "gzip of utf-16"],
)
def test_the_same_text_in_every_wrapping(tmp_path: Path, content: bytes) -> None:
    found = source(tmp_path, content)
    assert found.text == "a,b\n1,µ\n"
    assert list(found.lines()) == ["a,b", "1,µ"]
    assert found.header == ("a", "b")
    assert found.head_lines == ("a,b", "1,µ")


def test_names_in_json(tmp_path: Path) -> None:
    text = '{"a": {"x": 1}, "b": [{"y": "}{"}], "c \\" d": "e: [", "f": null}'
    assert source(tmp_path, text).json_names == ("a", "b", 'c \\" d', "f")
    assert source(tmp_path, '[{"a": {"x": 1}, "b": 2}, {"c": 3}]').json_names == ("a", "b")
    assert source(tmp_path, '{"a": 1}\n{"b": 2}\n').json_names == ("a",)
    assert source(tmp_path, '{"a": [' + '{"b": 1},' * 20_000).json_names == ("a",)
    assert source(tmp_path, "[1, 2]").json_names == ()
    assert source(tmp_path, '"a": 1').json_names == ()


def test_the_head_of_a_large_file_ends_with_a_whole_line(tmp_path: Path) -> None:
    found = source(tmp_path, "0123456789 123\n" * 10_000)
    assert len(found.head) == 1 << 16
    assert set(found.head_lines) == {"0123456789 123"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"a\nb\xff\n", r"line 2: byte 0xff is not text"),
        (b"a\nb\0c\n", r"line 2: a zero byte"),
        (gzip.compress(b"a" * 1000, mtime=0)[:-9], "broken gzip"),
        (b"\x1f\x8b" + b"nonsense" * 9, "broken gzip"),
    ],
    ids=["empty", "blank", "byte", "zero", "gzip cut off", "no gzip"],
)
def test_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=rf"^a\.txt: {message}"):
        _ = source(tmp_path, content).text


def test_a_file_that_is_not_there_or_closed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        _ = Source(tmp_path / "none").text
    with pytest.raises(InputError, match="cannot be read"):
        _ = Source(tmp_path).head
    if os.geteuid():
        found = source(tmp_path, "a")
        found.path.chmod(0)
        with pytest.raises(InputError, match="cannot be read"):
            _ = found.head


def test_a_bomb_is_left_packed(tmp_path: Path) -> None:
    found = source(tmp_path, 66 * gzip.compress(bytes(1 << 20), 1))
    assert found.path.stat().st_size < 1 << 20
    assert found.head == bytes(1 << 16)
    with pytest.raises(InputError, match=r"it unpacks to far more than its size, 64 MiB so far\."):
        found.content()


def test_json(tmp_path: Path) -> None:
    assert source(tmp_path, '{"a": [1, 2.5, null]}').json() == {"a": [1, 2.5, None]}
    for text, message in (
        ('{"a": 1,\n', r"line 2: not valid JSON"),
        ('{"a": 1, "a": 2}', r"not valid JSON \(an object names 'a' twice\)"),
        ("[" * 100_000, r"not valid JSON"),
    ):
        with pytest.raises(InputError, match=rf"^a\.txt: {message}"):
            source(tmp_path, text).json()


def test_json_lines(tmp_path: Path) -> None:
    found = source(tmp_path, '# log\n{"a": 1}\n\n[2]\n').json_lines(comment="#")
    assert list(found) == [(2, {"a": 1}), (4, [2])]
    with pytest.raises(InputError, match=r"^a\.txt: line 2: not valid JSON"):
        list(source(tmp_path, '{"a": 1}\n{"a": \n').json_lines())


def test_yaml(tmp_path: Path) -> None:
    assert source(tmp_path, "a:\n  - 1\n  - 2.5\n").yaml() == {"a": [1, 2.5]}
    for text, message in (
        ("a: [1\n", "not valid YAML"),
        ("a: !!python/object:os.system x\n", "not valid YAML"),
        ("[" * 20_000, "not valid YAML"),
        ("? [a]\n: b\n", "not valid YAML"),
        ("a: 2026-13-45\n", "not valid YAML"),
    ):
        with pytest.raises(InputError, match=rf"^a\.txt: (line \d+: )?{message}"):
            source(tmp_path, text).yaml()


def test_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    found = Source(tmp_path / "run.csv", name="runs/run.csv")
    beside = found.sibling("config.json")
    assert beside is not None
    assert (beside.name, beside.json()) == ("runs/config.json", {})
    assert found.sibling("none.json") is None


def test_a_table_below_other_lines(tmp_path: Path) -> None:
    sheet = source(tmp_path, "made by x\n\na;b\n1;2\n").sheet(["a"], skip=1)
    assert (sheet.columns, sheet.numbers("b").tolist(), sheet.lines.tolist()) == (
        ("a", "b"),
        [2.0],
        [4],
    )


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_blocks_of_any_size_give_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, encoding: str
) -> None:
    monkeypatch.setattr("errcomp.readers.core.source._BLOCK", max(block, 2))
    text = "\r\na\r\n\r\n\rµ 𝄞\u2028x\n\n\nlast\r\n\n\r\n"
    wanted = ["", "a", "", "", "µ 𝄞\u2028x", "", "", "last"]
    found = source(tmp_path, text.encode(encoding))
    lines = found.lines()
    assert list(lines) == wanted
    assert "\n".join(wanted) + "\n\n\n" == found.text
    assert len(lines) == 8
    assert [lines[i] for i in range(-8, 8)] == wanted * 2
    for start in range(9):
        for end in range(start, 9):
            assert list(lines[start:end]) == wanted[start:end]
            assert list(lines[start:end][1:]) == wanted[start:end][1:]
    assert [lines[2:][i] for i in (0, 2, -1)] == ["", "µ 𝄞\u2028x", "last"]
    with pytest.raises(IndexError):
        _ = lines[8]
    with pytest.raises(ValueError, match="1"):
        _ = lines[::2]


@pytest.mark.parametrize("bad", [b"\xff", b"\0", b"\xc3"])
def test_what_is_no_text_is_named_in_any_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: bytes
) -> None:
    monkeypatch.setattr("errcomp.readers.core.source._BLOCK", 5)
    found = source(tmp_path, b"1\n" * 6 + b"abc" + bad + b"\n9")
    with pytest.raises(InputError, match=r"^a\.txt: line 7: (byte 0x|a zero byte)"):
        found.lines()
    assert next(iter(found.json_lines())) == (1, 1)


@pytest.mark.parametrize(
    ("name", "text", "unended"),
    [
        ("a.json", '{"x": 1}', False),
        ("a.jsonl", '{"x": 1}', True),
        ("a.ndjson", '{"x": 1}', True),
        ("a.jsonl", '{"x": 1}\n', False),
        ("a.jsonl", '{"x": 1}\n{"x": 2}', True),
        ("a.csv", "x\n1", True),
    ],
)
def test_a_table_that_may_be_cut_off(tmp_path: Path, name: str, text: str, unended: bool) -> None:
    path = tmp_path / name
    path.write_text(text)
    source = Source(path)
    assert source.text == text
    assert source.unended is unended
    assert bool(notes_on(path)) is unended


def test_a_source_is_shown_by_its_name() -> None:
    assert repr(Source("a/b.csv")) == "Source('a/b.csv')"
    assert repr(Source("a/b.csv", name="c")) == "Source('c')"


@pytest.mark.parametrize(
    ("url", "shown", "file"),
    [
        ("https://a.org/x/y.csv", "https://a.org/x/y.csv", "y.csv"),
        (Path("https://a.org/x.csv"), "https://a.org/x.csv", "x.csv"),
        ("https://a.org/x y.csv", "'https://a.org/x y.csv'", "'x y.csv'"),
        ("https://a.org/x.csv?v=1/2", "'https://a.org/x.csv?v=1/2'", "x.csv"),
        ("https://a.org/", "https://a.org/", "table.csv"),
    ],
)
def test_a_url_is_refused_with_the_command_that_fetches_it(
    url: str | Path, shown: str, file: str
) -> None:
    plain = shown.strip("'")
    assert str(url_refused(url)) == (
        f"{plain}: errcomp reads nothing from the network. Download it first: "
        f"curl -L -o {file} {shown}"
    )
    with pytest.raises(InputError, match="reads nothing from the network"):
        refuse_special(Path(url))


def test_a_pipe_is_refused_and_files_and_folders_are_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=f"^{tmp_path}/pipe: a pipe or a device, not a file"):
        refuse_special(tmp_path / "pipe")
    with pytest.raises(InputError, match="^other: a pipe or a device"):
        refuse_special(tmp_path / "pipe", "other")
    (tmp_path / "a").write_text("")
    for path in (tmp_path, tmp_path / "a", tmp_path / "none"):
        assert refuse_special(path) is None  # type: ignore[func-returns-value]


def test_a_name_twice_in_an_object_of_json_is_refused(tmp_path: Path) -> None:
    kind = msgspec.defstruct("Run", [("time", float)])
    found = source(tmp_path, '{"seed": {"time": 1}, "time": 2, "time": 3}')
    with pytest.raises(
        InputError, match=r"^a\.txt: an object names 'time' twice\. Copy the file again\.$"
    ):
        found.json_as(kind, "MySim", lambda run: {"time": 1})
    assert found.json_as(kind, "MySim").time == 3
    assert found.json_as(kind, "MySim", lambda run: {"time": 3}).time == 3


def test_a_file_that_the_system_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path) -> bytes:
        raise OSError(5, "Input/output error")

    (tmp_path / "a.csv").write_text("a\n")
    assert load_bytes(tmp_path / "a.csv") == b"a\n"
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(InputError, match=r"a\.csv: cannot be read \(Input/output error\)\.$"):
        load_bytes(tmp_path / "a.csv")
