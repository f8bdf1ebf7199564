"""What holds for every format: its fixture is read, in every wrapping, and damage is refused."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import LEVELS, Output
from errcomp.readers.core.registry import REFERENCES, Format, formats, recognise
from errcomp.readers.core.source import Source
from errcomp.readers.rows import has_our_names

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
READABLE = [one for one in formats() if one.read is not None and not one.folder]


def names(some: Iterable[Format]) -> list[str]:
    return [one.name for one in some]


def good(name: str) -> Path:
    return FIXTURES / name / "good"


@cache
def recognised(path: Path) -> tuple[Format, ...]:
    """Return the formats that a file of the fixtures may be in, asked once."""
    return tuple(recognise(Source(path)))


@cache
def main_file(name: str) -> Path:
    """Return the first file of a fixture that is in this format."""
    for path in sorted(good(name).rglob("*")):
        if path.is_file() and names(recognised(path)) == [name]:
            return path
    raise AssertionError(f"no file in {good(name)} is recognised as {name} alone")


@cache
def read_good(name: str) -> Output:
    return ingest(good(name))


def copied(name: str, to: Path) -> tuple[Path, Path]:
    """Copy a fixture; return the folder and its file that is in this format."""
    folder = to / "good"
    shutil.copytree(good(name), folder)
    return folder, folder / main_file(name).relative_to(good(name))


def test_names_are_unique_and_plain() -> None:
    known = names(list(formats()))
    assert len(set(known)) == len(known)
    assert all(name == name.lower() and " " not in name for name in known)


@pytest.mark.parametrize("one", formats(), ids=lambda one: one.name)
def test_what_a_format_says_of_itself(one: Format) -> None:
    assert one.tool
    assert one.files
    assert one.gives in ("predictions", "measurements", "both", "neither")
    if one.read is None:
        assert one.part_of or one.limits
        assert one.gives == "neither"
        assert not one.part_of or one.part_of in names(list(formats()))
    else:
        assert one.levels
        assert set(one.levels) <= set(LEVELS)
        assert one.quantities
        assert one.units


@pytest.mark.parametrize("one", READABLE, ids=lambda one: one.name)
def test_fixtures_are_recognised_by_one_format_alone(one: Format) -> None:
    files = [path for path in sorted((FIXTURES / one.name).rglob("*")) if path.is_file()]
    found = {path: recognise(Source(path)) for path in files}
    assert any(names(some) == [one.name] for some in found.values())
    # What is beside the file may have a format of its own.
    assert {path: len(some) for path, some in found.items()} == dict.fromkeys(found, 1)
    assert {some[0].tool for some in found.values()} == {one.tool}


@pytest.mark.parametrize(
    "text", ["", "\n", "a,b\n1,2\n", "[]", "{}", "[1, 2]", "\0", '{"a": [', "7"]
)
def test_other_text_is_in_no_format(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text)
    assert recognise(Source(path)) == []


@pytest.mark.parametrize("one", READABLE, ids=lambda one: one.name)
def test_the_fixture_is_read(one: Format) -> None:
    found = read_good(one.name)
    assert one.name in found.formats
    rows = found.rows if "file" not in found.rows.columns else of_file(found, one)
    assert set(rows["level"]) <= set(one.levels)
    assert one.quantities == ("any",) or set(rows["quantity"]) <= set(one.quantities)
    assert one.units == ("any",) or set(rows["unit"]) <= set(one.units)
    predicted, measured = rows["predicted"].is_not_null(), rows["measured"].is_not_null()
    if one.gives == "measurements":
        assert measured.any()
        assert not predicted.any()
    elif one.gives == "predictions":
        # A simulator's own run time is measured: in rows of its own.
        assert predicted.any()
        assert not (predicted & measured).any()
    else:
        assert predicted.any() or measured.any()


@pytest.mark.parametrize("one", formats(), ids=lambda one: one.name)
def test_each_format_states_what_its_measured_values_were_measured_on(one: Format) -> None:
    if one.gives in ("measurements", "both"):
        assert one.reference in REFERENCES


@pytest.mark.parametrize("one", READABLE, ids=lambda one: one.name)
def test_measured_values_say_what_they_were_measured_on(one: Format) -> None:
    found = read_good(one.name)
    rows = found.rows if "file" not in found.rows.columns else of_file(found, one)
    if one.gives == "predictions":
        assert "reference" not in rows.columns or rows["reference"].null_count() == len(rows)
    elif rows["measured"].is_not_null().any():
        check_references(rows)


@pytest.mark.slow
@pytest.mark.shared
def test_all_samples_say_what_they_were_measured_on(shared_data: Path) -> None:
    pairs, words = set(), set()
    for folder in sorted((shared_data / "tools").iterdir()):
        for path in sorted(one for one in folder.rglob("*") if is_small(one)):
            try:
                found = ingest(path)
            except InputError:  # not the output of a tool, or read along with another
                continue
            gives = {one.gives for name in found.formats for one in formats() if one.name == name}
            if gives & {"measurements", "both"} and found.rows["measured"].is_not_null().any():
                words |= check_references(found.rows)
                both = found.rows.select("predicted", "measured").drop_nulls()
                if len(both):
                    pairs.add(found.formats[0])
    assert words == {"hardware", "simulator", "estimate", "unknown"}
    assert {"sparseloop-pairs", "accel-sim-power-pairs", "llmservingsim-pairs"} <= pairs


def is_small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size < 1 << 20


def check_references(rows: pl.DataFrame) -> set[str]:
    """Check that each measured value, and nothing else, has a known word; return the words."""
    there = rows["measured"].is_not_null()
    assert (rows["reference"].is_not_null() == there).all()
    words = set(rows["reference"].drop_nulls())
    assert words <= set(REFERENCES)
    return words


def of_file(found: Output, one: Format) -> pl.DataFrame:
    path = main_file(one.name)
    return found.rows.filter(pl.col("file") == path.relative_to(good(one.name)).as_posix())


def is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


Wrap = Callable[[bytes], bytes]
SAME: dict[str, Wrap] = {
    "windows line ends": lambda content: content.replace(b"\n", b"\r\n"),
    "byte-order mark": lambda content: b"\xef\xbb\xbf" + content,
    "utf-16": lambda content: content.decode().encode("utf-16"),
    "gzip": gzip.compress,
}


@pytest.mark.parametrize("one", READABLE, ids=lambda one: one.name)
def test_wrappings_change_nothing(one: Format, tmp_path: Path) -> None:
    folder, path = copied(one.name, tmp_path)
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    before = read_good(one.name).rows
    # Those of the files beside it, which stay as they are, need not be found again.
    there = {form for file in good(one.name).rglob("*") for form in recognised_file(file)}
    for wrap, wrapped in SAME.items():
        if (wrap == "utf-16" and one.tool == "errcomp") or (
            not is_text(content) and wrap != "gzip"
        ):
            continue  # Tables of people are UTF-8; binary formats have neither lines nor marks
        path.write_bytes(wrapped(content))
        if content.startswith(b"SQLite") or content.startswith(b"PK"):
            with pytest.raises(InputError):
                ingest(path)
            continue
        assert names(recognise(Source(path))) == [one.name], wrap
        assert ingest(folder, among=list(there)).rows.equals(before), wrap


def recognised_file(path: Path) -> tuple[Format, ...]:
    return recognised(path) if path.is_file() else ()


@pytest.mark.parametrize("one", READABLE, ids=lambda one: one.name)
def test_an_archive_is_like_its_folder(one: Format, tmp_path: Path) -> None:
    folder, archive = good(one.name), tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in folder.rglob("*"):
            file.write(path, path.relative_to(folder))
    assert ingest(archive).rows.equals(read_good(one.name).rows)


DAMAGE: dict[str, Wrap] = {
    "empty": lambda content: b"",
    "blank": lambda content: b"\n \n",
    "half": lambda content: content[: len(content) // 2],
    "without its last bytes": lambda content: content[:-7],
    "gzip of half": lambda content: gzip.compress(content)[:-12],
    "zeros within": lambda content: content[:99] + bytes(16) + content[99:],
    "latin-1 within": lambda content: content[:99] + b"\xe9\xff" + content[99:],
    "twice": lambda content: content + content,
    "nested": lambda content: content + b"[" * 20_000,
    "huge numbers": lambda content: content.replace(b"1", b"1e999"),
    "no numbers": lambda content: content.replace(b"1", b"-nan").replace(b"2", b"n/a"),
}


@pytest.mark.parametrize("one", READABLE, ids=lambda one: one.name)
def test_damage_is_refused_or_counted(one: Format, tmp_path: Path) -> None:
    assert one.read is not None
    _, path = copied(one.name, tmp_path)
    content = path.read_bytes()
    for kind, damage in DAMAGE.items():
        path.write_bytes(damage(content))
        rows, refusal = None, ""
        try:
            rows = one.read(Source(path)).rows
        except InputError as error:
            refusal = str(error)
        if rows is None:
            assert path.name in refusal, kind
            continue
        assert len(rows), kind
        for name in ("predicted", "measured"):
            assert rows[name].drop_nulls().is_finite().all(), kind
        neither = rows["predicted"].is_null() & rows["measured"].is_null()
        assert rows["status"].is_not_null().filter(neither).all(), kind


@pytest.mark.parametrize(
    "one", [one for one in READABLE if one.tool != "errcomp"], ids=lambda one: one.name
)
def test_no_tool_names_its_columns_as_people_do(one: Format) -> None:
    # Files with such names are taken for tables that people wrote, without asking the readers.
    source = Source(main_file(one.name))
    assert not has_our_names((*source.header, *source.json_names))
