"""Regular CSV is read in parts, and exactly as line by line."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from errcomp.errors import GuessedWarning, InputError
from errcomp.readers import delimited
from errcomp.readers.core.content import decode, load_bytes
from errcomp.readers.delimited import csv_frame, regular_frame
from errcomp.readers.plain import NAMES, read_pairs, read_rows
from errcomp.tables import Pairs
from errcomp.tables.engine import scanning
from errcomp.tables.engine.pairs import PairRows

ODD_INTEGERS = (
    *("007", "+5", " 5 ", "-0", "00", "1e3", "12345678901234567", "5.0", "0", "-07", "+0", "x"),
    *("99999999999999999999", "1_0", "nan"),
)
ODD_FLOATS = (
    *("1e5", "-1E-3", ".5", "5.", "inf", "NaN", "0.50", "00.5", " 1.5", "12345678901234567.0"),
    *("9007199254740993", "na", "12 ms"),
)
TEXTS = ("A", "B", "abc d", " x", "y ", "007", "é", "2026-01-02", "#a", "=1", "a;b", "")


def cell(kind: str, rng: random.Random) -> str:
    odd = rng.random()
    if odd < 0.03:
        return ""
    if kind == "integer":
        return str(rng.randrange(-1000, 100_000)) if odd < 0.98 else rng.choice(ODD_INTEGERS)
    if kind == "float":
        number = rng.gauss(0, 1) * 10 ** rng.randrange(-5, 6)
        return repr(number) if odd < 0.98 else rng.choice(ODD_FLOATS)
    return rng.choice(TEXTS) if kind == "text" else ""


def table(rng: random.Random) -> str:
    """A table that is regular, or nearly so."""
    width, sign = rng.randrange(1, 5), rng.choice(",,;\t")
    kinds = rng.choices(("integer", "float", "text", "empty"), (3, 3, 1, 1), k=width)
    rows = [[cell(kind, rng) for kind in kinds] for _ in range(rng.randrange(1, 60))]
    if rng.random() < 0.15:
        rng.choice(rows).append("9")
    if rng.random() < 0.15:
        rng.choice(rows).pop()
    if rng.random() < 0.05:
        rng.choice(rows)[:1] = ['"q"']
    heads = [rng.choice(["version", "device", "a", "b"]) + str(i) for i in range(width)]
    end = rng.choice(["\n", "\n", "\r\n"])
    lines = [sign.join(row) for row in [heads, *rows]]
    return end.join(lines) + rng.choice(["", end, end + end, " "])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_parts_are_read_as_lines_are(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, path, regular_ones = random.Random(seed), tmp_path / "t.csv", 0
    for _ in range(150):
        for size in ("_FIRST", "_PART", "_BLOCK"):
            monkeypatch.setattr(delimited, size, rng.choice([40, 200, 1 << 20]))
        path.write_bytes(table(rng).encode())
        found = regular_frame(path, NAMES)
        if found is not None:
            regular_ones += 1
            expected, first = csv_frame(path, decode(path, load_bytes(path)), NAMES)
            assert_frame_equal(found, expected)
            assert first == 2
    assert regular_ones > 20


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n1,"2"\n',
        "a,b\n1,2\n'=1,2\n",
        "a,b\n1,2\n\n3,4\n",
        "a\n1\n\n3\n",
        "# comment\na,b\n1,2\n",
        "a,b\n1,2,3\n4\n",
        "a,b\n1\n2,3,4\n",
        "a,b\n1,2\r3,4\n",
        "a,b\n",
        "a,a\n1,2\n",
        '{"a": 1}\n',
        "a,b\n1,\x00\n",
        "<html>\n",
    ],
)
def test_other_text_is_left_to_the_reader_of_lines(text: str, write: Any) -> None:
    assert regular_frame(write("t.csv", text), NAMES) is None


@pytest.mark.parametrize("data", [b"d\xe9,b\n1,2\n", b"a,b\nd\xe9,2\n", b"\x1f\x8b\x08", b""])
def test_other_bytes_are_left_to_the_reader_of_bytes(data: bytes, write: Any) -> None:
    assert regular_frame(write("t.csv", data), NAMES) is None


def test_a_folder_is_not_regular(tmp_path: Path) -> None:
    assert regular_frame(tmp_path, NAMES) is None


def test_types_are_those_of_the_whole_column(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "_FIRST", 8)
    monkeypatch.setattr(delimited, "_PART", 8)
    rows = ["1,1,1,1,a", "2,2,2,2,b", "3,2.5,x,02,7"]
    found = regular_frame(write("t.csv", "i,f,t,z,n\n" + "\n".join(rows)), NAMES)
    assert found is not None
    assert found.rows() == [
        (1, 1.0, "1", "1", "a"),
        (2, 2.0, "2", "2", "b"),
        (3, 2.5, "x", "02", "7"),
    ]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("number", ["02", "+02", "-02"])
def test_a_leading_zero_in_a_later_part_makes_a_column_text(
    number: str, place: int, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_FIRST", 8)
    monkeypatch.setattr(delimited, "_PART", 8)
    rows = [["10", "20", "30"], ["40", "50", "60"], ["70", "80", "90"]]
    rows[2][place] = number
    path = write("t.csv", "a,b,c\n" + "\n".join(map(",".join, rows)))
    found = regular_frame(path, NAMES)
    assert found is not None
    assert found.rows() == [
        tuple(v if at == place else int(v) for at, v in enumerate(row)) for row in rows
    ]


def test_names_that_look_like_patterns(write: Any) -> None:
    found = regular_frame(write("t.csv", "^.*$,0,a\n1,2,x\n3,4,y\n"), NAMES)
    assert found is not None
    assert found.to_dict(as_series=False) == {"^.*$": [1, 3], "0": [2, 4], "a": ["x", "y"]}


def test_a_byte_order_mark_and_names_that_look_like_numbers(write: Any) -> None:
    found = regular_frame(write("t.csv", "\ufeffversion,a\n1.10,1\n1.9,2\n"), NAMES)
    assert found is not None
    assert found.rows() == [("1.10", 1), ("1.9", 2)]


# Large tables.


def lines(n: int, **columns: Any) -> str:
    data = {"device": ["A", "B"] * (n // 2), "predicted": [1.1] * n, "measured": [1.0] * n}
    return pl.DataFrame(data | columns).write_csv()


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "LARGE", 10)


@pytest.mark.usefixtures("large")
def test_large_tables_are_left_to_polars(write: Any) -> None:
    rows = read_rows(write("t.csv", lines(10)), unit="ms")
    assert isinstance(rows, PairRows)
    assert (rows.engine, rows.keys, rows.unit) == ("Polars", ("device",), "ms")
    assert isinstance(read_rows(write("t.csv", lines(8))), Pairs)
    assert isinstance(read_pairs(write("t.csv", lines(10))), Pairs)


@pytest.mark.usefixtures("large")
def test_large_tables_of_whole_numbers(write: Any) -> None:
    assert isinstance(read_rows(write("t.csv", lines(10, measured=[1] * 10))), PairRows)


@pytest.mark.usefixtures("large")
@pytest.mark.filterwarnings("ignore:.*predicted")
def test_their_columns_may_be_named_or_guessed(write: Any) -> None:
    text = lines(10).replace("predicted", "sim_ms").replace("measured", "hw_ms")
    names = {"predicted": "sim_ms", "measured": "hw_ms"}
    named = read_rows(write("t.csv", text), columns=names)
    assert isinstance(named, PairRows)
    assert named.keys == ("device",)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"measured": [1.0] * 9 + [0.0]}, "measured must be positive, got 0.0 in line 11"),
        ({"predicted": [1.0] * 9 + [None]}, "predicted is missing in line 11"),
        ({"predicted": ["1.0"] * 9 + ["inf"]}, "predicted must be finite, got inf in line 11"),
        ({"measured": ["1.0"] * 9 + ["x"]}, "measured must be a number, got 'x' in line 11"),
    ],
)
def test_errors_of_large_tables_name_lines(
    columns: dict[str, Any], message: str, write: Any
) -> None:
    with pytest.raises(InputError, match=message):
        read_rows(write("t.csv", lines(10, **columns)))


def test_commands_agree_on_large_tables(
    run: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [f"D{i % 7}" for i in range(40)]
    path = write("t.csv", lines(40, device=devices, predicted=[1 + i / 100 for i in range(40)]))
    rows, audits = [], []
    for large in (10, 1000):
        monkeypatch.setattr(scanning, "LARGE", large)
        found = run("metrics", path, "--json").json
        assert ("median_ape_approx" in found["units"]) == (large == 10)
        kept = ("n", "mape", "mape_low", "mape_high", "wape", "wape_low", "bias")
        rows.append({name: found["rows"][0][name] for name in kept})
        audits.append(run("audit", path, "--json").json["rows"])
    assert [row["n"] for row in audits[0]] == [row["n"] for row in audits[1]]
    assert rows[0] == pytest.approx(rows[1], rel=1e-9)
    assert rows[0]["mape"] == pytest.approx(sum(range(40)) / 4000)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "options",
    [
        ("metrics", "--figures", "median_ape,p95_ape"),
        ("metrics", "--method", "bootstrap-t"),
        pytest.param(("metrics", "--jobs", "2"), marks=pytest.mark.extras),
        ("audit", "--method", "bootstrap-t"),
    ],
)
def test_options_that_need_single_pairs_have_them(
    options: tuple[str, ...], run: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("t.csv", lines(40, predicted=[1 + i / 100 for i in range(40)]))
    command, *rest = options
    shown = run(command, path, *rest, "--json")
    assert shown.code == 0, shown.err
    monkeypatch.setattr(scanning, "LARGE", 1000)
    assert shown.json["rows"] == run(command, path, *rest, "--json").json["rows"]


@pytest.mark.extras
@pytest.mark.usefixtures("large")
def test_a_page_has_pictures_of_single_pairs(
    run: Any, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    # Which pictures are drawn is looked at, not how they are written.
    monkeypatch.setattr("errcomp.report.html.svg._svg", lambda figure: ET.Element("svg"))
    path = write("t.csv", lines(40, predicted=[1 + i / 100 for i in range(40)]))
    for command in ("audit", "report"):
        assert run(command, path, "-o", tmp_path / "page.html").code == 0
        assert "Predictions on the line are exact" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize("size", [12, 1 << 20])
def test_blanks_around_names_are_left_out_in_every_part(
    size: int, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_FIRST", size)
    monkeypatch.setattr(delimited, "_PART", size)
    for blank in (" ", "\t", "\N{NO-BREAK SPACE}"):
        path = write("a.csv", f"device,b\nA,1\n{blank}A{blank},2\n{blank},3\nB c,4\nA,5\n")
        found = regular_frame(path, frozenset({"device"}))
        assert found is not None
        assert found.rows() == [("A", 1), ("A", 2), (None, 3), ("B c", 4), ("A", 5)]


def test_a_part_of_which_polars_reads_fewer_rows_is_not_regular(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("a.csv", "a,b\n1,2\n3,4\n")
    assert regular_frame(path, NAMES) is not None
    real = pl.read_csv
    monkeypatch.setattr(pl, "read_csv", lambda *a, **k: real(*a, **k).head(1))
    assert regular_frame(path, NAMES) is None


@pytest.mark.usefixtures("large")
def test_guessed_columns_of_large_tables_stay_with_polars(write: Any) -> None:
    text = lines(10).replace("predicted", "sim").replace("measured", "hw")
    with pytest.warns(GuessedWarning, match=r"t\.csv: read as predicted: sim, measured: hw"):
        rows = read_rows(write("t.csv", text))
    assert isinstance(rows, PairRows)
    assert (rows.n, rows.keys) == (10, ("device",))
    with pytest.warns(GuessedWarning):
        guessed = read_rows(write("t.csv", text), columns={"predicted": "sim"})
    assert isinstance(guessed, PairRows)


@pytest.mark.usefixtures("large")
def test_a_folder_of_large_tables_is_read_into_memory(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(lines(10))
    pairs = read_rows(tmp_path, unit="ms")
    assert isinstance(pairs, Pairs)
    assert (pairs.n, pairs.unit, pairs.keys) == (20, "ms", ("device", "file"))
