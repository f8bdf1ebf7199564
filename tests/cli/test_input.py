"""Arguments that several commands share: fractions, and which rows to take."""

from __future__ import annotations

import argparse
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.cli.input import fraction, read_history, select
from errcomp.errors import InputError
from errcomp.readers.core.output import output
from errcomp.tables import Pairs

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "value"), [("10%", 0.1), ("0.1", 0.1), ("12.5 %", 0.125), ("-5%", -0.05), ("2", 2.0)]
)
def test_a_fraction_is_in_per_cent_or_plain(text: str, value: float) -> None:
    assert fraction(text) == value


@pytest.mark.parametrize("text", ["wide", "", "%", "5%%"])
def test_what_is_no_fraction_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a fraction: write 5% or 0.05"):
        fraction(text)


@pytest.mark.parametrize("command", ["metrics", "audit"])
def test_levels_are_read_in_per_cent(run: Run, pairs_csv: Path, command: str) -> None:
    argv = (command, pairs_csv, "--predicted", "estimate", "--measured", "latency", "--json")
    plain, percent = (run(*argv, "--level", level) for level in ("0.8", "80%"))
    assert (plain.code, percent.code) == (0, 0)
    assert plain.out == percent.out
    assert run(*argv).out != percent.out


NAMED = Pairs(
    {
        "predicted": [1.0, 2.0, 3.0],
        "measured": [1.0, 2.0, 3.0],
        "device": ["A", "B", "B"],
        "shape": ["m=1,n=2", "m=1,n=2", "device=B"],
    }
)


@pytest.mark.parametrize(
    ("items", "rows"),
    [([], 3), (["device=B"], 2), (["shape=m=1,n=2"], 2), (["shape=device=B"], 1)],
)
def test_a_value_may_have_commas_and_equals_signs(items: list[str], rows: int) -> None:
    assert select(NAMED, items).n == rows


@pytest.mark.parametrize(
    ("item", "hint"),
    [
        ("device=A,shape=x", "--where device=A --where shape=x"),
        ("device=A,shape=m=1,n=2", "--where device=A --where shape=m=1,n=2"),
        ("colour=red,device=A", "--where colour=red --where device=A"),
        ("device=A,shape=a b", "--where device=A --where 'shape=a b'"),
        ("device=A,colour=x", ""),
        ("shape=x,device=B", ""),  # which is a shape as well
        ("device=C", ""),
    ],
)
def test_several_keys_in_one_where_are_told_apart_for_the_user(item: str, hint: str) -> None:
    with pytest.raises(InputError, match="no (row|column)") as raised:
        select(NAMED, [item])
    _, _, found = str(raised.value).partition(". Write one --where per key: ")
    assert found == hint


ENDS = {
    "metrics --unit ms": "op,predicted,measured\na,1,2\nb,2,3",
    "propagate --unit ms": "run,kernel,predicted,measured,count\nr,k,1,2,1\nr,l,2,3.5,2",
    "propagate --errors": "kernel_class,bias,spread\n*,0.01,0.1",
    "halflife forecast --error 10%": "version,predicted,measured\n1,1,1\n2,1,1\n3,1,1.1\n4,1,1.5",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ENDS)
def test_a_table_that_may_be_cut_off_is_noted_once(run: Run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "table.csv"
    for end, n in (("", 1), ("\n", 0)):
        path.write_text(ENDS[command] + end)
        found = run(*command.split(), path)
        assert found.code == 0, found.err
        assert found.err.count("The last line of table.csv does not end with a line break") == n


RESULTS = b"app,gpu,sim,hw\nbert,A,110,100\nbert,B,90,100\ngpt,A,95,100\n"


@pytest.fixture
def piped(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command with these bytes on standard input."""

    def call(content: bytes, *argv: object) -> Any:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run(*argv)

    return call


@pytest.mark.parametrize("command", ["audit", "metrics"])
def test_a_table_comes_from_standard_input(
    run: Run, piped: Run, tmp_path: Path, command: str
) -> None:
    (tmp_path / "results.csv").write_bytes(RESULTS)
    ran = piped(RESULTS, command, "-", "--json")
    assert ran.code == 0
    assert ran.json["source"] == "standard input"
    of_file = run(command, tmp_path / "results.csv", "--json").json
    assert ran.json["rows"] == of_file["rows"]
    assert ran.err.startswith("errcomp: note: standard input: read as predicted: sim")
    zipped = piped(gzip.compress(RESULTS), command, "-", "--json")
    assert zipped.json["rows"] == of_file["rows"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input: the file is empty"),
        (RESULTS[:-5], "standard input: line 4: 3 fields, but the header has 4"),
        (b"app,sim,hw\na,1,0\n", "standard input: measured must be positive, got 0.0 in line 2"),
        (b"\0" * 100, "standard input: line 1: a zero byte"),
    ],
)
def test_errors_in_standard_input_name_it(piped: Run, content: bytes, message: str) -> None:
    ran = piped(content, "audit", "-")
    assert (ran.code, ran.out) == (2, "")
    assert f"errcomp: {message}" in ran.err
    assert "errcomp-" not in ran.err


def test_columns_of_standard_input_that_several_fit_are_shown_as_commands(piped: Run) -> None:
    ran = piped(b"app,sim_a,sim_b,hw\na,1,2,3\n", "audit", "-")
    assert ran.code == 2
    assert ran.err.splitlines()[1:] == [
        "  errcomp audit - --predicted sim_a --measured hw",
        "  errcomp audit - --predicted sim_b --measured hw",
    ]


def test_standard_input_is_limited(
    piped: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    content = RESULTS + b"vgg,A,95,100\n" * 1000
    ran = piped(content, "audit", "-", "--limit", "unpacked=10k")
    assert ran.code == 2
    assert "standard input has more than 10,000 bytes" in ran.err
    assert "--limit unpacked=" in ran.err
    assert piped(content, "audit", "-", "--limit", "unpacked=14k").code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_closed_standard_input_is_no_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    ran = run("audit", "-")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "errcomp: standard input is closed. Give a file, or pipe a table into the command.\n"
    )


def test_a_folder_and_a_pattern_of_files(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_bytes(RESULTS)
    whole = run("audit", tmp_path, "--by", "file", "--json")
    assert [(row["file"], row["n"]) for row in whole.json["rows"]] == [("a", 3), ("b", 3)]
    pattern = run("audit", tmp_path / "*.csv", "--by", "file", "--json")
    assert pattern.json["rows"] == whole.json["rows"]
    (tmp_path / "b.csv").write_bytes(RESULTS.rstrip())
    assert (
        "note: The last line of b.csv does not end with a line break" in run("audit", tmp_path).err
    )


def test_rows_without_a_number_are_left_out_on_request(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(RESULTS + b"vgg,A,n/a,100\n")
    ran = run("audit", path)
    assert ran.code == 2
    assert "--missing exclude" in ran.err
    ran = run("audit", path, "--missing", "exclude", "--json")
    assert ran.json["n"] == 3
    assert [left["n"] for left in ran.json["dropped"]] == [1]


def _parquet(folder: Path, n: int = 3) -> Path:
    folder.mkdir()
    for i in range(n):
        frame = pl.DataFrame({"device": ["A", "B"], "predicted": [11.0 + i, 9.0], "measured": 10.0})
        frame.write_parquet(folder / f"part{i}.parquet")
    return folder


def test_a_folder_of_parquet_files_is_not_loaded_into_memory(run: Run, tmp_path: Path) -> None:
    folder = _parquet(tmp_path / "parts")
    ran = run("claims", "search", folder, "--value", "10%")
    assert (ran.code, ran.err) == (
        2,
        f"errcomp: {folder} holds 3 Parquet files. This command loads all pairs into memory, where "
        "they may not fit. Name one file; errcomp audit and errcomp metrics can read all of "
        "them.\n",
    )
    assert run("metrics", folder, "--where", "device=A", "--json").json["pooled"]["n"] == 3
    refused = run("metrics", folder, "--exclude", "device=A")
    assert refused.err == (
        f"errcomp: --exclude applies only to tables in memory, but {folder} is read in place. "
        "Leave out --exclude, or filter the table before\n"
    )


def test_parquet_files_beside_others_can_be_named_by_a_pattern(run: Run, tmp_path: Path) -> None:
    folder = _parquet(tmp_path / "parts")
    (folder / "notes.csv").write_text("a,b\n1\n", encoding="utf-8")
    ran = run("audit", folder)
    assert ran.code == 2
    assert ran.err.endswith(
        f" To read only its Parquet files, quote a pattern: '{folder}/*.parquet'\n"
    )
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.csv").write_text("a,b\n1\n", encoding="utf-8")
    assert "quote a pattern" not in run("audit", other).err


def test_rows_of_a_table_in_memory_or_left_to_polars_are_chosen_alike(
    run: Run, pairs_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ("metrics", pairs_csv, "--predicted", "estimate", "--measured", "latency", "--json")
    several = ("--where", "gpu=A,workload=w0")
    hint = "Write one --where per key: --where gpu=A --where workload=w0"
    assert hint in run(*argv, *several).err
    chosen = run(*argv, "--where", "gpu=A").json["pooled"]
    assert chosen["n"] == 6
    monkeypatch.setattr("errcomp.tables.engine.scanning.LARGE", 2)
    large = run(*argv, "--where", "gpu=A").json["pooled"]
    assert (large["n"], large["mape"]) == (6, pytest.approx(chosen["mape"]))
    assert "median_ape_approx" in large
    assert run(*argv).json["pooled"]["n"] == 12


@pytest.fixture
def rows_of_a_tool(tmp_path: Path) -> Path:
    """Rows as `errcomp ingest` writes them: two models under three versions."""
    rows = {
        "version": ["1.0", "1.1", "1.2"] * 2,
        "model": ["bert"] * 3 + ["gpt"] * 3,
        "host": ["h0", "h1", "h2"] * 2,
        "predicted": [5.0] * 6,
        "measured": [5.1, 6.0, 7.0, 8.0, 8.0, 10.0],
    }
    read = output("s.csv", "s", rows, tool="S", level="model", quantity="time", unit="ms")
    path = tmp_path / "rows.parquet"
    read.rows.write_parquet(path)
    return path


def test_rows_of_a_tool_are_chosen_before_they_are_pairs(run: Run, rows_of_a_tool: Path) -> None:
    found = run("metrics", rows_of_a_tool, "--where", "model=gpt", "--json")
    assert found.json["pooled"]["n"] == 3
    assert found.json["pooled"]["mape"] == pytest.approx((2 * 3 / 8 + 0.5) / 3)
    assert found.err.startswith(f"read {rows_of_a_tool} (errcomp-rows): 6 rows, 6 predicted, 6 m")
    whole = run("metrics", rows_of_a_tool, "--json").json
    assert (whole["pooled"]["n"], whole["tool"]) == (6, "S")
    none = run("metrics", rows_of_a_tool, "--where", "quantity=power")
    assert (none.code, "no row has quantity=power" in none.err) == (2, True)


def test_rows_of_a_tool_are_a_history(run: Run, rows_of_a_tool: Path, tmp_path: Path) -> None:
    argv = ("history", "add", tmp_path / "h.db", rows_of_a_tool, "--json")
    assert run(*argv, "--where", "model=gpt").json["added"] == 3
    assert run(*argv, "--skip-known").json["added"] == 3
    (found,) = run("history", "list", tmp_path / "h.db", "--json").json["rows"]
    assert (found["validations"], found["versions"]) == (6, 3)


@pytest.mark.parametrize(
    ("where", "series", "n", "found"),
    [([], None, 6, 6), ([], "model", 6, 2), ([], "host", 6, 3), (["model=gpt"], "model", 3, 1)],
)
def test_series_of_a_tool_are_those_that_are_named(
    rows_of_a_tool: Path, where: list[str], series: str | None, n: int, found: int
) -> None:
    args = argparse.Namespace(
        column=[], where=where, series=series, order=None, order_by=None, git_log=None
    )
    history = read_history(args, str(rows_of_a_tool))
    assert (history.n, history.n_series, history.versions) == (n, found, ("1.0", "1.1", "1.2"))
    args.order = "1.2,1.0,1.1"
    assert read_history(args, str(rows_of_a_tool)).versions == ("1.2", "1.0", "1.1")
