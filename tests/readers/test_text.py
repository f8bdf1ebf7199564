"""Tables as people have them: comments, decimal commas, units, titles, compressed, in Excel."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import warnings
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import polars as pl
import pytest

import errcomp as ec
from errcomp.errors import GuessedWarning, InputError, LargeFileWarning, LeftOutWarning
from errcomp.readers.core import content
from errcomp.readers.core.source import UNPACKED_TIMES, Source
from errcomp.readers.plain import read_pairs
from errcomp.readers.workbook import is_workbook
from errcomp.system import memory
from errcomp.tables import Kernels, Pairs

TEXT = "device,predicted,measured\nA,11,10\nB,9.5,10\n"
#: The same with quotes, which are read line by line.
QUOTED = TEXT.replace("A", '"A"')


# --- comments ---


@pytest.mark.parametrize(
    ("text", "values", "lines"),
    [
        ("# made by sim 3.2\n#\n" + TEXT, [11, 9.5], [4, 5]),
        (TEXT + "# the end\n", [11, 9.5], [1, 2]),
        (TEXT.replace("B,", "# a second run\nB,"), [11, 9.5], [1, 2]),
        ("# device,predicted,measured\n" + TEXT.split("\n", 1)[1], [11, 9.5], [2, 3]),
        ("#predicted measured\n".replace(" ", "\t") + "11\t10\n9.5\t10\n", [11, 9.5], [2, 3]),
        ("# sim,ver\n" + TEXT, [11, 9.5], [3, 4]),
    ],
)
def test_comments_are_left_out(
    write: Any, text: str, values: list[float], lines: list[int]
) -> None:
    pairs = read_pairs(write("a.csv", text))
    assert pairs.predicted.tolist() == values
    assert pairs.rows.tolist() == lines


def test_a_value_may_begin_with_a_hash(write: Any) -> None:
    pairs = read_pairs(write("a.csv", TEXT + "#3,8,10\n"))
    assert pairs.column("device").tolist() == ["A", "B", "#3"]
    inside = 'device,predicted,measured\n"A\n# no comment",11,10\n'
    assert read_pairs(write("b.csv", inside)).column("device").tolist() == ["A\n# no comment"]


def test_lines_are_counted_from_the_top_of_the_file(write: Any) -> None:
    with pytest.raises(InputError, match="line 4: 1 field, but the header has 3"):
        read_pairs(write("a.csv", "# a\n" + TEXT.replace("B,9.5,10", "B")))
    with pytest.raises(InputError, match="measured must be a number, got 'x' in line 4"):
        read_pairs(write("a.csv", "# a\n" + TEXT.replace("9.5,10", "9.5,x")))
    with pytest.raises(InputError, match="line 2: the header names 'measured' more than once"):
        read_pairs(write("a.csv", "# a\n" + TEXT.replace("predicted", "measured")))
    with pytest.raises(InputError, match="line 4: a quote is not closed"):
        read_pairs(write("a.csv", "# a\n" + TEXT.replace("B", '"B')))
    with pytest.raises(InputError, match="missing columns"):
        read_pairs(write("a.csv", "# a,b\n# c,d\n"))


# --- decimal commas ---


def test_a_decimal_comma(write: Any, run: Any) -> None:
    text = (
        "device;version;predicted;measured;batch\nA;1,10;1,5;1;8\nB;1,1;,5;n/a;x\nC;2;1e-1;2,;8\n"
    )
    path = write("a.csv", text)
    pairs = read_pairs(path, decimal=",", missing="exclude")
    assert (pairs.predicted.tolist(), pairs.measured.tolist()) == ([1.5, 0.1], [1.0, 2.0])
    assert pairs.column("version").tolist() == ["1,10", "2"]
    assert pairs.column("batch").tolist() == ["8", "8"]
    assert ec.read(path, decimal=",", missing="exclude").pairs.n == 2
    ran = run("audit", path, "--decimal", ",", "--missing", "exclude", "--json")
    assert (ran.code, ran.json["n"]) == (0, 2)
    ran = run("audit", path, "--missing", "exclude")
    assert (ran.code, "add --decimal ," in ran.err) == (2, True)
    with pytest.raises(InputError, match="decimal must be one of"):
        read_pairs(path, decimal=";")  # type: ignore[arg-type]


def test_thousands_are_not_decimals(write: Any) -> None:
    with pytest.raises(InputError, match="predicted must be a number, got '1.234,5'"):
        read_pairs(write("a.csv", "predicted;measured\n1.234,5;1\n"), decimal=",")


# --- units ---


@pytest.mark.parametrize(
    ("columns", "unit", "found"),
    [
        ({"predicted": ["12 ms", "900us"], "measured": ["11 ms", "1e-3s"]}, None, "ms"),
        ({"predicted": ["12 ms", "900us"], "measured": [11, 1]}, None, "ms"),
        ({"predicted": ["12 ms", "900us"], "measured": [0.011, 0.001]}, "s", "s"),
        (
            {"predicted": ["12 ms", "900us"], "measured": [11000, 1000], "unit": ["us"] * 2},
            None,
            "us",
        ),
        ({"predicted": ["12 mJ", "900uJ"], "measured": ["11 mJ", " 1 mJ "]}, None, "mJ"),
        ({"predicted": [12.0, 0.9], "measured": ["11 ms", "1 ms"]}, None, "ms"),
    ],
)
def test_numbers_with_units(columns: dict[str, Any], unit: str | None, found: str) -> None:
    scale = {"ms": 1, "mJ": 1, "s": 1e-3, "us": 1e3}[found]
    pairs = Pairs(columns, unit=unit)
    assert pairs.unit == found
    assert pairs.predicted == pytest.approx([12 * scale, 0.9 * scale])
    assert pairs.measured == pytest.approx([11 * scale, scale])


def test_units_are_read_wherever_columns_are_guessed(write: Any) -> None:
    path = write("a.csv", "app,sim,hw\na,12 ms,11 ms\nb,900us,1 ms\n")
    with pytest.warns(GuessedWarning):
        pairs = read_pairs(path)
    assert (pairs.unit, pairs.predicted.tolist()) == ("ms", [12.0, 0.9])
    kernels = Kernels(
        {"kernel": ["k", "l"], "predicted": ["5 us", "6 us"], "measured": ["0.004 ms", "3us"]}
    )
    assert (kernels.unit, kernels.measured.tolist()) == ("us", [4.0, 3.0])


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        (["12 ms", "900"], r"got '12 ms' in row 1.* Give all numbers of the column a unit, or"),
        (["12 ms", "3 J"], "got '12 ms' in rows 1, 2"),
        (["12 apples", "3 apples"], "got '12 apples' in rows 1, 2. Fix the value"),
        (["12 ms 5", "3 ms"], "got '12 ms 5' in rows 1, 2. Fix the value"),
    ],
)
def test_units_that_do_not_fit(predicted: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pairs({"predicted": predicted, "measured": [1, 2]})
    with pytest.raises(InputError, match="mixed units"):
        Pairs({"predicted": ["1 ms"], "measured": ["1 ms"], "unit": ["us"]}, unit="s")


# --- nested columns ---


def test_columns_of_records_that_nobody_asked_for(write: Any) -> None:
    for name, text in (
        ("a.json", '[{"predicted": 1, "measured": 2, "tags": [1]}]'),
        ("a.jsonl", '{"predicted": 1, "measured": 2, "tags": {"a": 1}}\n'),
    ):
        with pytest.warns(LeftOutWarning, match=f"{name}: left out, because .* object: tags$"):
            pairs = read_pairs(write(name, text))
        assert (pairs.n, pairs.keys) == (1, ())


# --- compressed ---


#: Quick, and zeros take little space.
PACKS = (partial(gzip.compress, compresslevel=1), partial(lzma.compress, preset=0))


@pytest.mark.parametrize("pack", PACKS, ids=["gzip", "xz"])
def test_compressed_text(write: Any, pack: Any) -> None:
    packed = pack(TEXT.encode())
    path = write("a.csv.packed", packed)
    assert read_pairs(path).predicted.tolist() == [11, 9.5]
    assert Source(path).header == ("device", "predicted", "measured")
    with pytest.raises(InputError, match=r"broken (gzip|xz) \(.*copy it again"):
        read_pairs(write("cut.csv", packed[:-9]))
    with pytest.raises(InputError, match="it unpacks to far more than its size, 64 MiB"):
        read_pairs(write("bomb.csv", 65 * pack(b"a" * (1 << 20))))


@pytest.mark.extras
def test_zstd(write: Any) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.compress(TEXT.encode())
    assert read_pairs(write("a.csv.zst", packed)).predicted.tolist() == [11, 9.5]
    two = write("two.csv.zst", packed + zstandard.compress(b"C,8,10\n"))
    assert read_pairs(two).n == 3
    with pytest.raises(InputError, match="it unpacks to far more than its size"):
        read_pairs(write("bomb.csv.zst", 65 * zstandard.compress(b"a" * (1 << 20))))
    with pytest.raises(InputError, match=r"broken zstd \("):
        read_pairs(write("bad.csv.zst", packed[:6] + b"\xff" * 20))


@pytest.mark.extras
def test_a_cut_zstd_file_is_refused(write: Any) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.compress(TEXT.encode() * 1000)
    with pytest.raises(InputError, match="broken zstd"):
        read_pairs(write("cut.csv.zst", packed[:-9]))


@pytest.mark.core
def test_without_zstandard_the_message_says_how_to_go_on(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = write("a b.csv.zst", b"\x28\xb5\x2f\xfd" + b"x" * 20)
    remedy = r"errcomp\[formats\]'; or unpack the file: zstd -d '.*a b.csv.zst'"
    with pytest.raises(InputError, match=remedy):
        read_pairs(path)


# --- Excel ---


def workbook(*sheets: Sequence[Sequence[object]], bomb: int = 0) -> bytes:
    """Make a workbook; cells are text, numbers or None."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    numbers = range(1, len(sheets) + 1)
    files = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        'content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{office}/'
        'officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        + "".join(f'<sheet name="S{i}" sheetId="{i}" r:id="r{i}"/>' for i in numbers)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">'
        + "".join(
            f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i in numbers
        )
        + "</Relationships>",
    }
    for i, sheet in zip(numbers, sheets, strict=True):
        rows = "".join(
            f'<row r="{r}">'
            + "".join(cell(f"{chr(65 + c)}{r}", value) for c, value in enumerate(row))
            + "</row>"
            for r, row in enumerate(sheet, start=1)
        )
        files[f"xl/worksheets/s{i}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr("pad", b"0" * bomb)
    return buffer.getvalue()


def cell(at: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{at}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{at}"><v>{value}</v></c>'


SHEET = [["device", "version", "predicted", "measured"], ["A", "1.10", 11, 10], ["B", "2", 9.5, 10]]


@pytest.mark.extras
def test_a_workbook_is_read_like_a_csv(write: Any, run: Any) -> None:
    pytest.importorskip("fastexcel")
    path = write("a.xlsx", workbook(SHEET))
    pairs = read_pairs(path)
    assert (pairs.predicted.tolist(), pairs.rows.tolist()) == ([11, 9.5], [2, 3])
    assert pairs.column("version").tolist() == ["1.10", "2"]
    assert is_workbook(path)
    assert not is_workbook(path.with_name("none.xlsx"))
    assert len(ec.audit(path).rows) == 2
    ran = run("audit", path, "--json")
    assert (ran.code, ran.json["n"], ran.err) == (0, 2, "")


@pytest.mark.extras
def test_titles_and_blank_rows_of_a_sheet(write: Any) -> None:
    pytest.importorskip("fastexcel")
    titled = [["Results of May"], [], *SHEET[:2], [], *SHEET[2:]]
    with pytest.warns(GuessedWarning, match="a.xlsx: read the first of 2 sheets, 'S1'"):
        pairs = read_pairs(write("a.xlsx", workbook(titled, SHEET)))
    assert (pairs.predicted.tolist(), pairs.rows.tolist()) == ([11, 9.5], [1, 2])
    with pytest.raises(InputError, match="measured is missing in line 5"):
        read_pairs(write("b.xlsx", workbook([["Results"], [], *SHEET[:2], ["C", "1", 5, None]])))
    assert read_pairs(write("c.xlsx", workbook([["Results"], *SHEET]))).rows.tolist() == [3, 4]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (workbook([]), "sheet 'S1' needs a header of at least two columns, and a row below"),
        (workbook(SHEET[:1]), "sheet 'S1' needs a header of at least two columns, and a row"),
        (workbook([["predicted"], [1]]), "needs a header of at least two columns"),
        (workbook([["predicted", "predicted"], [1, 2]]), "line 1: the header names 'predicted' mo"),
        (workbook(SHEET)[:-30], "a damaged Excel workbook"),
        (b"PK\x03\x04" + b"x" * 50, "a damaged Excel workbook"),
        (workbook(SHEET).replace(b"xl/worksheets", b"xl/worksheetX"), "a damaged Excel workbook"),
        (workbook(SHEET, bomb=65 << 20), "it unpacks to far more than its size, 65 MiB"),
    ],
)
def test_workbooks_that_cannot_be_read(write: Any, content: bytes, message: str) -> None:
    pytest.importorskip("fastexcel")
    with pytest.raises(InputError, match=message):
        read_pairs(write("a.xlsx", content))


def test_another_zip_archive_is_no_workbook(write: Any) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("pairs.csv", TEXT)
    with pytest.raises(InputError, match=r"a zip archive, not a table\. Unpack it"):
        read_pairs(write("a.zip", buffer.getvalue()))


@pytest.mark.core
def test_without_fastexcel_the_message_says_how_to_go_on(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(InputError, match=r"errcomp\[formats\]'; or save the sheet as CSV"):
        read_pairs(write("a.xlsx", workbook(SHEET)))
    with pytest.raises(InputError, match=r"a.xls: a spreadsheet that errcomp does not read\. Save"):
        read_pairs(write("a.xls", b"\xd0\xcf\x11\xe0"))


# --- large files ---


def test_a_large_text_is_met_with_what_to_do(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, size = write("my pairs.csv", QUOTED), len(QUOTED)
    monkeypatch.setattr(content, "_LARGE", size)
    monkeypatch.setattr(memory, "available", lambda: 14 * size)
    with pytest.warns(LargeFileWarning) as caught:
        assert read_pairs(path).n == 2
    line = str(caught[0].message)
    assert "0.0 GB of text need about 0 GB of memory. Convert it to Parquet" in line
    # The line does what it says.
    code = line.partition("python -c '")[2].partition("'")[0]
    exec(code)
    assert pl.read_parquet(path.with_suffix(".parquet")).height == 2
    monkeypatch.setattr(memory, "available", lambda: 14 * size - 1)
    with pytest.raises(InputError, match=r"and 0.0 GB are free\. Convert it to Parquet"):
        read_pairs(path)
    with (
        ec.limits(memory=14 * size),
        pytest.warns(LargeFileWarning),
    ):
        assert read_pairs(path).n == 2
    monkeypatch.setattr(content, "_LARGE", size + 1)
    with warnings.catch_warnings(action="error"):
        assert read_pairs(path).n == 2


def test_regular_text_needs_less_memory(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, size = write("a.csv", TEXT), len(TEXT)
    monkeypatch.setattr(content, "_LARGE", size)
    monkeypatch.setattr(memory, "available", lambda: 6 * size)
    with warnings.catch_warnings(action="error"):
        assert read_pairs(path).n == 2
    monkeypatch.setattr(memory, "available", lambda: 6 * size - 1)
    with pytest.raises(InputError, match="are free"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("name", "data", "times"),
    [
        ("a.jsonl", b'{"predicted": 1, "measured": 2}\n', 7),
        ("a.csv.gz", gzip.compress(TEXT.encode(), mtime=0), UNPACKED_TIMES * 14),
    ],
)
def test_how_much_memory_other_texts_take(
    write: Any, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, times: int
) -> None:
    path = write(name, data)
    monkeypatch.setattr(content, "_LARGE", 1)
    monkeypatch.setattr(memory, "available", lambda: times * len(data) - 1)
    with pytest.raises(InputError, match="are free"):
        read_pairs(path)
    monkeypatch.setattr(memory, "available", lambda: None)
    with pytest.warns(LargeFileWarning):
        read_pairs(path)


def test_parquet_is_no_text(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a.parquet", b"")
    pl.DataFrame({"predicted": [1.0], "measured": [2.0]}).write_parquet(path)
    monkeypatch.setattr(content, "_LARGE", 1)
    monkeypatch.setattr(memory, "available", lambda: 1)
    assert read_pairs(path).n == 1


def test_memory_is_the_least_of_machine_and_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("mem", "MemTotal: 9 kB\nMemAvailable:   100 kB\n"), ("max", "max\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "kinds").write_text("anon 9\nactive_file 300\ninactive_file 700\nfile 9999\n")
    (tmp_path / "nothing").write_text("anon 9\n")
    (tmp_path / "limit").write_text("60000\n")
    (tmp_path / "used").write_text("20000\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "mem")
    monkeypatch.setattr(memory, "_GROUPS", ((tmp_path, "max", "used", "nothing"),))
    assert memory.available() == 102400
    monkeypatch.setattr(memory, "_GROUPS", ((tmp_path, "limit", "used", "nothing"),))
    assert memory.available() == 40000
    # Copies of files do not count as used.
    monkeypatch.setattr(memory, "_GROUPS", ((tmp_path, "limit", "used", "kinds"),))
    assert memory.available() == 41000
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    monkeypatch.setattr(memory, "_GROUPS", ((tmp_path, "none", "used", "kinds"),))
    assert memory.available() is None


def test_the_size_of_a_large_text_has_a_decimal(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, size = write("a.csv", QUOTED), len(QUOTED)
    monkeypatch.setattr(content, "_LARGE", size)
    monkeypatch.setattr(content, "_TIMES_CSV", 4.4e9 / size)
    monkeypatch.setattr(memory, "available", lambda: 3.26e9)
    with pytest.raises(InputError, match=r"need about 4 GB of memory, and 3\.3 GB are free"):
        read_pairs(path)
