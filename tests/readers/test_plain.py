"""Tables that people write: what is read, and what each kind of bad file is told."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import os
import re
import time
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError, LeftOutWarning
from errcomp.readers import read
from errcomp.readers.delimited import _scan
from errcomp.readers.plain import read_pairs
from errcomp.readers.records import _short
from errcomp.system.limits import limits
from errcomp.tables import Pairs

TABLE = {"device": ["A", "B"], "batch": [1, 2], "predicted": [11.0, 90.5], "measured": [10.0, 99.0]}
CSV = "device,batch,predicted,measured\nA,1,11.0,10.0\nB,2,90.5,99.0\n"


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def records() -> list[dict[str, Any]]:
    return pl.DataFrame(TABLE).to_dicts()


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


GOOD = {
    "plain.csv": CSV,
    "windows.csv": CSV.replace("\n", "\r\n"),
    "mac.csv": CSV.replace("\n", "\r"),
    "bom.csv": b"\xef\xbb\xbf" + CSV.encode(),
    "cut.csv": CSV.rstrip("\n"),
    "blank.csv": CSV + "\n \n\n",
    "spaces.csv": CSV.replace(",", " , "),
    "tabs.tsv": CSV.replace(",", "\t"),
    "semicolons.csv": CSV.replace(",", ";"),
    "quoted.csv": re.sub(r"([^,\n]+)", r'"\1"', CSV),
    "small.csv.gz": gzip.compress(CSV.encode(), mtime=0),
    "no_suffix": CSV,
    "table.parquet": parquet(pl.DataFrame(TABLE)),
    "parquet_by_content": parquet(pl.DataFrame(TABLE)),
    "rows.jsonl": lines(records()),
    "rows.ndjson": lines(records()),
    "lines_by_content.json": lines(records()),
    "list.json": json.dumps(records()),
    "pretty.json": json.dumps(records(), indent=2),
    "rows.json": json.dumps({"schema": "any", "rows": records()}),
    "rows_one_line": json.dumps({"rows": records()}) + "\n",
    "rows_pretty.json": json.dumps({"rows": records()}, indent=1),
}


@pytest.mark.parametrize("name", GOOD)
def test_one_table_in_every_form(write: Any, name: str) -> None:
    path = write(name, GOOD[name])
    pairs = read(path, unit="ms").pairs
    assert isinstance(pairs, Pairs)
    assert pairs.predicted.tolist() == TABLE["predicted"]
    assert pairs.measured.tolist() == TABLE["measured"]
    assert pairs.keys == ("device", "batch")
    assert pairs.column("device").tolist() == ["A", "B"]
    assert pairs.column("batch").tolist() == [1, 2]
    assert (pairs.unit, pairs.source, pairs.subject) == ("ms", str(path), None)


def test_rows_are_lines_where_a_file_has_them(write: Any) -> None:
    assert read_pairs(write("a.csv", CSV)).rows.tolist() == [2, 3]
    assert read_pairs(write("a.jsonl", lines(records()))).rows.tolist() == [1, 2]
    assert read_pairs(write("a.json", json.dumps(records()))).rows.tolist() == [1, 2]
    broken = 'note,predicted,measured\n"two\nlines",1,0\n'
    with pytest.raises(InputError, match=r"got 0.0 in row 1\."):
        read_pairs(write("b.csv", broken))


def test_columns_are_renamed_and_units_kept(write: Any) -> None:
    path = write("a.csv", "gpu,p,m,unit\nA,1,2,us\n")
    pairs = read_pairs(path, columns={"predicted": "p", "measured": "m", "device": "gpu"})
    assert (pairs.keys, pairs.unit) == (("device",), "us")


def test_names_stay_text_and_numbers_become_numbers(write: Any) -> None:
    text = (
        "version,release,run,score,big,empty,predicted,measured\n"
        "1.10,1.10,007,1e3,99999999999999999999,,1,2\n"
        "1.1,1.1,008,-.5,1,,1,2\n"
    )
    path = write("a.csv", text)
    pairs = read_pairs(path)
    assert pairs.column("version").tolist() == ["1.10", "1.1"]
    assert pairs.column("release").tolist() == [1.1, 1.1]
    assert pairs.column("run").tolist() == ["007", "008"]
    assert pairs.column("score").tolist() == [1000.0, -0.5]
    assert pairs.column("big").tolist() == ["99999999999999999999", "1"]
    assert np.isnan(pairs.column("empty").astype(float)).all()
    renamed = read_pairs(path, columns={"version": "release"})
    assert renamed.column("version").tolist() == ["1.10", "1.1"]


def test_a_column_without_a_name_gets_one(write: Any) -> None:
    pairs = read_pairs(write("a.csv", ",predicted,measured\n0,1,2\n1,1,2\n"))
    assert pairs.keys == ("column_1",)


def test_a_failed_prediction_is_a_row_with_a_status(write: Any) -> None:
    pairs = read_pairs(write("a.csv", "predicted,measured,status\n1,2,ok\n-,2,out of memory\n"))
    assert pairs.n == 1
    assert [(d.reason, d.rows) for d in pairs.dropped] == [("the prediction failed (status)", (3,))]


def test_zeros_are_excluded_on_request(write: Any) -> None:
    path = write("a.csv", "predicted,measured\n1,2\n1,0\n")
    assert read_pairs(path, zeros="exclude").dropped[0].rows == (3,)


@pytest.mark.parametrize("header", ["[ms]", "{unit}", "[1] note"])
def test_a_header_may_begin_with_a_bracket(write: Any, header: str) -> None:
    pairs = read_pairs(write("a.csv", f"{header},predicted,measured\nx,1,2\n"))
    assert pairs.keys == (header,)


@pytest.mark.parametrize("other", [9007199254740992, 1.5, None])
def test_long_integers_stay_apart(write: Any, other: float | None) -> None:
    rows = [
        {"id": number, "predicted": 1, "measured": 1}
        for number in (9007199254740993, 10**19 + 1, 10**19, other)
    ]
    text = pl.DataFrame([{**row, "id": str(row["id"] or "")} for row in rows]).write_csv()
    for path in (
        write("a.csv", text),
        write("a.jsonl", lines(rows)),
        write("a.json", json.dumps(rows)),
    ):
        pairs = read_pairs(path)
        assert len(pairs.groups(["id"])) == 4
        assert pairs.column("id")[1] == "10000000000000000001"
    exact = "id,predicted,measured\n10000000000000000000,9007199254740993,1e19\n"
    pairs = read_pairs(write("b.csv", exact))
    assert (pairs.column("id")[0], pairs.predicted[0]) == (1e19, 2.0**53)


def test_a_value_nested_too_deeply_to_be_shown_is_described() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert _short(value) == "something nested deeply"


def test_a_table_of_many_columns_is_read_at_once(write: Any) -> None:
    names = [f"c{i}" for i in range(20_000)]
    start = time.process_time()
    header, rows, _ = _scan(Path("a.csv"), ",".join(names) + "\n" + "," * 19_999 + "\n", ",", 0)
    assert (header, rows) == (names, 1)
    assert time.process_time() - start < 2  # each name compared with each takes 7 s


def test_a_damaged_parquet_file_prints_nothing(
    write: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(source: Any) -> None:
        os.write(2, b"thread panicked at src/lib.rs")
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    monkeypatch.setattr(pl, "read_parquet", panic)
    path = write("a.parquet", GOOD["table.parquet"])
    with pytest.raises(InputError, match=r"broken Parquet \(damaged within\). Export it again"):
        read_pairs(path)
    os.write(2, b"heard again")
    assert capfd.readouterr().err == "heard again"


def test_parquet_is_read_where_stderr_is_closed(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(fd: int) -> int:
        raise OSError(9, "Bad file descriptor")

    path = write("a.parquet", GOOD["table.parquet"])
    with monkeypatch.context() as patched:
        patched.setattr(os, "dup", closed)
        assert read_pairs(path).n == 2


def test_the_format_can_be_given(write: Any) -> None:
    path = write("a.txt", "[x],predicted,measured\n1,2,3\n")
    assert read_pairs(path, format="csv").keys == ("[x]",)
    with pytest.raises(
        InputError, match=r"format must be one of csv, excel, parquet, jsonl, json, got 'x"
    ):
        read_pairs(path, format="xlsx")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a.txt: not Parquet: it does not begin with PAR1"):
        read_pairs(path, format="parquet")


BAD_TEXT = [
    # name, content, message
    ("a.csv", "", r"the file is empty. It needs a header and at least one row"),
    ("a.csv", "\n\n", r"the file is empty"),
    ("a.csv", "predicted,measured\n", r"a header without rows. Add rows"),
    (
        "a.csv",
        "p,m\n1,2\n",
        r"missing columns predicted, measured\. Columns found: p, m\. Name your columns",
    ),
    ("a.csv", CSV + "C,1,2\n", r"line 4: 3 fields, but the header has 4. A row may be incomplete"),
    ("a.csv", CSV + "C", r"line 4: 1 field, but the header has 4. A row may be incomplete"),
    ("a.csv", CSV + "\n" + "C,1,2,3\n", r"line 4 is empty. Remove it"),
    ("a.csv", CSV + "C,1,1,5,2\n", r"line 4: 5 fields, .* decimal comma \(1,5\) need semicolons"),
    (
        "a.tsv",
        "predicted\tmeasured\n1\t2\t3\n",
        r"line 2: 3 fields, but the header has 2. A row may",
    ),
    ("a.csv", CSV + 'C,"1,2,3\nD,1,2,3\n', r"line 4: a quote is not closed"),
    ("a.csv", 'predicted,measured\n1,"2"x\n', r"line 2: a quote is not closed, or is inside"),
    (
        "a.csv",
        "predicted,measured,predicted\n1,2,3\n",
        r"line 1: the header names 'predicted' more",
    ),
    (
        "a.csv",
        "predicted;measured\n1,5;2,25\n1;2\n",
        r"predicted must be .* '1,5' in line 2\. If this is a decimal comma, add --decimal ,",
    ),
    ("a.csv", 'predicted,measured\n1,"1,234"\n', r"measured must be .* got '1,234' in line 2"),
    (
        "a.csv",
        "predicted,measured\n1,x\n2,y\n",
        r"measured must be a number, got 'x' in lines 2, 3",
    ),
    ("a.csv", "predicted,measured\n1,\n", r"measured is missing in line 2"),
    ("a.csv", "predicted,measured\ninf,1\n", r"predicted must be finite, got inf in line 2"),
    ("a.csv", "predicted,measured\n1,nan\n", r"measured must be finite, got nan in line 2"),
    ("a.csv", "predicted,measured\n1,0\n", r"measured must be positive, got 0.0 in line 2"),
    ("a.csv", "predicted,measured\n1,-3\n", r"measured must be positive, got -3.0 in line 2"),
    ("a.csv", "predicted,measured,unit\n1,2,ms\n1,2,us\n", r"mixed units: 'ms' and 'us' .* line 3"),
    ("a.csv", "dévice,predicted\nA,1\n".encode("latin-1"), r"line 1: byte 0xe9 is not UTF-8"),
    ("a.csv", b"\xef\xbb\xbfa,b\n\xff,1\n", r"line 2: byte 0xff is not UTF-8. Save the file as"),
    ("a.csv", CSV.encode("utf-16")[:-1], r" not valid UTF-16 text \(truncated data\)\."),
    ("a.csv", b"predicted,measured\n1,\x00\n", r"line 2: a zero byte, so this is not a text file"),
    (
        "a.csv.gz",
        gzip.compress(CSV.encode() * 99, mtime=0)[:60],
        r"broken gzip .* may be incomplete",
    ),
    ("a.parquet", CSV, r"not Parquet: it does not begin with PAR1"),
    ("a.parquet", b"PAR1" + b"\x00" * 50, r"must end with PAR1"),
    ("a.parquet", b"PAR1" + b"\x01" * 50 + b"PAR1", r"broken Parquet \(.+\). Export it again"),
    ("a.jsonl", '{"predicted": 1, "measured": 2}\n{"pred', r"line 2: not valid JSON .* incomplete"),
    ("a.jsonl", '{"predicted": 1}\n\n{"predicted": 1}\n', r"line 2 is empty. Remove it"),
    (
        "a.jsonl",
        '{"a": 1}\n[2]\n3\n',
        r"expected an object, got \[2\] in lines 2, 3. Write one obj",
    ),
    ("a.jsonl", '{"a": 1},{"a": 2}\n', r"line 1: not valid JSON \(Extra data\)"),
    (
        "a.jsonl",
        '{"measured": [1]}\n',
        r"measured must be one value per row, got \[1\] in line 1\. Put each element",
    ),
    (
        "a.json",
        '[{"device": {"b": "' + 50 * "x" + '"}}]',
        r'device must be one value per row, got {"b": "x+\.\.\. in row 1',
    ),
    ("a.json", '[\n{"predicted": 1,\n', r"line 3: not valid JSON"),
    ("a.json", "[]", r"the list of records is empty"),
    ("a.json", "5", r"expected a list of records, or an object"),
    ("a.json", "<table></table>", r"line 1: not valid JSON \(Expecting value\)"),
    ("a.jsonl", "x", r"line 1: not valid JSON"),
    ("a.csv", "\n<!DOCTYPE html>\n<p>", r" a web page, not a table. Download the file"),
    ("a.json", '[{"a": 1, "a": 2}]', r"line 1: an object names 'a' twice. Fix the record"),
    ("a.json", '[\n{"a": 1, "a": 2}\n]', r"a.json: an object names 'a' twice"),
    ("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n', r"line 2: an object names 'a' twice"),
    # Deeper than the limit that PyMC sets for the whole process, 10,000.
    ("a.jsonl", '{"a":' * 50_000 + "1" + "}" * 50_000, r"line 1: nested too deeply"),
    (
        "a.json",
        '[{"model": ' + 900 * "[" + 900 * "]" + "}]",
        r"model must be one value per row, got ",
    ),
    (
        "a.json",
        '[{"a": "x"}, {"a": "\\ud800"}]',
        r'"a" holds half a character \(a lone .* got "\\ud800" in row 2\.',
    ),
    (
        "a.jsonl",
        '{"\\ud800": "x"}',
        r'"\\ud800" holds half a character \(a lone surrogate\), .* in the names',
    ),
    ("a.csv", "predicted,measured\n1,1_000\n", r"measured must be .* '1_000' in line 2"),
    ("a.csv", "predicted,measured\n١٢,1\n", r"predicted must be .* '١٢' in line 2"),
    ("a.jsonl", '{"predicted": "１２", "measured": 1}\n', r"predicted must .* '１２' in line 1"),
    ("a.json", '[{"predicted": "1_0", "measured": 1}]', r"predicted must .* '1_0' in row 1"),
    ("a.json", '{\n"predicted": [1]\n}', r'expected a list of records, .* this list under "rows"'),
    ("a.json", '{"rows": 3}', r"expected a list of records"),
    ("a.json", "[" * 100_000, r"line 1: nested too deeply"),
    ("a.json", "[" + 5000 * "1" + "]", r"line 1: Exceeds the limit"),
    (
        "a.jsonl",
        '{"predicted": true, "measured": 2}\n',
        r"predicted must be a column of numbers, but",
    ),
    ("a.jsonl", '{"predicted": 1, "measured": "2,5"}\n', r"measured must be .* '2,5' in line 1"),
    ("a.json", '[{"predicted": 1, "measured": NaN}]', r"measured must be finite, got nan in row 1"),
    (
        "a.json",
        '[{"predicted": 1, "measured": 2}, {"predicted": 1}]',
        r"is missing in row 2",
    ),
]


@pytest.mark.parametrize(("name", "content", "expected"), BAD_TEXT)
def test_bad_files_are_told_what_is_wrong(
    write: Any, name: str, content: str | bytes, expected: str
) -> None:
    path = write(name, content)
    with pytest.raises(InputError, match=expected) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert message.endswith(".") or message.endswith(")")


def test_a_binary_file_is_not_a_table(write: Any) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    with pytest.raises(InputError, match=r"line 3: a zero byte, so this is not a text file"):
        read_pairs(write("a.png", picture))


def test_a_folder_a_missing_file_and_one_that_is_closed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder, not a file of pairs"):
        read_pairs(tmp_path)
    with pytest.raises(InputError, match=r"no file in it could be read"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"none.csv: no such file. Check the path"):
        read(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"cannot be read \(.+\)"):
        read_pairs(tmp_path / ("x" * 300 + ".csv"))


def test_rows_that_two_readers_count_differently_are_refused(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pl.read_csv
    monkeypatch.setattr(pl, "read_csv", lambda *a, **k: real(*a, **k).head(2))
    with pytest.raises(InputError, match=r"2 rows or 1, depending on how its quotes are read\."):
        read_pairs(write("a.csv", CSV.replace("device", '"device"')))


def test_parquet_without_rows_or_with_nested_values(write: Any) -> None:
    frame = pl.DataFrame(TABLE)
    with pytest.raises(InputError, match=r"the table has no rows"):
        read_pairs(write("a.parquet", parquet(frame.clear())))
    for values in ([[1], [2]], [b"a", b"b"]):
        nested = frame.with_columns(device=pl.Series(values))
        with pytest.raises(InputError, match="device must be one value per row, but its type is"):
            read_pairs(write("a.parquet", parquet(nested)))
        nested = frame.with_columns(tags=pl.Series(values))
        with pytest.warns(LeftOutWarning, match=r"left out, because each value is a list.*: tags$"):
            assert "tags" not in read_pairs(write("a.parquet", parquet(nested))).keys
        with (
            pytest.raises(InputError, match="tags must be one value per row"),
            warnings.catch_warnings(action="ignore"),
        ):
            read_pairs(write("a.parquet", parquet(nested)), columns={"mode": "tags"})


def test_parquet_types(write: Any) -> None:
    frame = pl.DataFrame(TABLE).with_columns(
        pl.Series("measured", [Decimal("1.5"), Decimal("2.5")]),
        pl.col("device").cast(pl.Categorical),
        date=datetime.date(2025, 3, 30),
    )
    pairs = read_pairs(write("a.parquet", parquet(frame)))
    assert pairs.measured.tolist() == [1.5, 2.5]
    assert pairs.column("device").tolist() == ["A", "B"]
    assert pairs.column("date").tolist() == [datetime.date(2025, 3, 30)] * 2
    late = frame.with_columns(measured=pl.duration(milliseconds=pl.Series([1, 2])))
    with pytest.raises(
        InputError, match=r"measured must be a column of numbers, but its type is D"
    ):
        read_pairs(write("a.parquet", parquet(late)))


def test_columns_of_json_keep_every_value(write: Any) -> None:
    rows = [
        {"mixed": 1, "flag": True, "huge": 10**400, "wide": 2**70, "predicted": 1, "measured": 1},
        {"mixed": "a", "flag": None, "huge": 1, "wide": 1.5, "predicted": 2.5, "measured": 1},
        {"mixed": None, "predicted": 3, "measured": 1},
    ]
    pairs = read_pairs(write("a.jsonl", lines(rows)))
    assert pairs.predicted.tolist() == [1.0, 2.5, 3.0]
    assert pairs.column("mixed").tolist() == ["1", "a", None]
    assert pairs.column("flag").tolist() == [True, None, None]
    assert pairs.column("huge").tolist() == [str(10**400), "1", None]
    assert pairs.column("wide")[:2].tolist() == [2.0**70, 1.5]


@pytest.mark.slow
def test_a_bomb_is_left_packed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv.gz"
    path.write_bytes(gzip.compress(b"predicted,measured\n" + b"1,1\n" * (20 << 20)))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(
        InputError, match=r"pairs\.csv\.gz: it unpacks to far more than its size, 64 MiB so far"
    ):
        read(path)


def test_a_name_over_two_lines_may_begin_like_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('predicted,measured,"note\n# of a run"\n11,10,a\n# left out\n12,10,b\n')
    pairs = read_pairs(path)
    assert (pairs.n, tuple(pairs.keys)) == (2, ("note\n# of a run",))


def test_parquet_that_claims_more_rows_than_its_size_explains(write: Any) -> None:
    path = write("a.parquet", parquet(pl.DataFrame(TABLE)))
    size = f"{path.stat().st_size:,}"
    with (
        limits(rows=1),
        pytest.raises(InputError, match=rf"claims 2 rows in only {size} bytes\. .*--limit rows=1G"),
    ):
        read_pairs(path)
    with limits(rows=2):
        assert read_pairs(path).n == 2


def test_quotes_that_only_one_reader_takes_are_refused(write: Any) -> None:
    with pytest.raises(InputError, match="has 2 rows or another number, depending on how its"):
        read_pairs(write("a.csv", 'predicted,measured\n1,2"3\n4,5"6\n'))
