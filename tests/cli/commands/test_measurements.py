"""errcomp measurements check."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    path.write_text("batch,note,ms\n1,c=1,2.5031\n1,c=1,2.5031\n2,c=1,4.1\n3,c=2,-1\n")
    return str(path)


def test_the_contract_for_machines(run: Any, table: str) -> None:
    found = json.loads(run("measurements", "check", table, "--measured", "ms", "--json").out)
    assert (found["copies"]["n"], found["copies"]["rows"]) == (2, [2, 3])
    assert found["hidden_keys"] == found["drift"] == []
    assert found["impossible"][0]["rows"] == [5]
    assert {"mape", "low", "high", "method"} <= set(found["floor"])
    assert found["floor"]["mape"] is None


def test_the_table_for_people(run: Any, table: str) -> None:
    out = run("measurements", "check", table, "--measured", "ms").out
    assert "2 rows in 1 set" in out
    assert "a measurement is positive and finite" in out


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [("copies", 1), ("drift", 0), ("drift,impossible", 1), ("hidden", 0)],
)
def test_a_check_fails_on_what_it_is_asked(run: Any, table: str, fail_on: str, code: int) -> None:
    argv = ("measurements", "check", table, "--measured", "ms", "--fail-on", fail_on)
    assert run(*argv).code == code


def test_junit_names_each_finding(run: Any, table: str, tmp_path: Path) -> None:
    target = tmp_path / "m.xml"
    run("measurements", "check", table, "--measured", "ms", "--junit", str(target))
    text = target.read_text(encoding="utf-8")
    assert 'tests="4"' in text
    assert 'failures="2"' in text
    assert "rows that are copies: 2" in text


def test_flagged_rows_are_a_table(run: Any, table: str, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    run("measurements", "check", table, "--measured", "ms", "-o", str(target))
    lines = target.read_text(encoding="utf-8").splitlines()
    assert lines == [
        "row,finding,exclude",
        "2,copy: equal,False",
        "3,copy: equal,True",
        "5,impossible: a measurement is positive and finite,True",
    ]


def test_an_audit_leaves_flagged_rows_out_and_counts_them(run: Any, tmp_path: Path) -> None:
    table, rows = tmp_path / "pairs.csv", tmp_path / "rows.csv"
    lines = [f"{i},{10 + i}.125,{10 + i}.{7131 + i}" for i in range(8)]
    table.write_text("\n".join(["batch,predicted,measured", *lines, lines[2]]) + "\n")
    run("measurements", "check", str(table), "-o", str(rows))
    found = json.loads(run("audit", str(table), "--exclude", str(rows), "--json").out)
    assert found["rows"][-1]["n"] == 8
    assert {"reason": "excluded (copy: equal)", "n": 1, "rows": [10]} in found["dropped"]


def test_a_table_without_findings_excludes_nothing(run: Any, tmp_path: Path) -> None:
    table, rows = tmp_path / "pairs.csv", tmp_path / "rows.csv"
    table.write_text("batch,predicted,measured\n1,2,3\n2,3,4\n")
    run("measurements", "check", str(table), "-o", str(rows))
    found = json.loads(run("metrics", str(table), "--exclude", str(rows), "--json").out)
    assert found["pooled"]["n"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("line,finding\n2,x\n", "takes a table with whole numbers in the column 'row'"),
        ("row\n99\n", "none of its 1 rows is in"),
        ("row\n2\n3\n", "excludes every row of"),
    ],
)
def test_a_file_of_rows_must_fit(run: Any, tmp_path: Path, text: str, message: str) -> None:
    table, rows = tmp_path / "pairs.csv", tmp_path / "rows.csv"
    table.write_text("batch,predicted,measured\n1,2,3\n2,3,4\n")
    rows.write_text(text)
    found = run("audit", str(table), "--exclude", str(rows))
    assert found.code == 2
    assert message in found.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--measured", "time"), "no column 'time'"),
        (("--measured", "ms", "--fail-on", "copy"), "Did you mean 'copies'?"),
        (("--measured", "ms", "--by", "device"), "cannot group by 'device'"),
    ],
)
def test_bad_usage(run: Any, table: str, argv: tuple[str, ...], message: str) -> None:
    found = run("measurements", "check", table, *argv)
    assert found.code == 2
    assert message in found.err


def test_there_is_no_such_table(run: Any) -> None:
    found = run("measurements", "check", "missing.csv")
    assert found.code == 2
    assert "no such file, and no built-in table of that name" in found.err


def test_a_table_from_standard_input_is_checked_alike(
    run: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--measured", "ms", "--fail-on", "impossible", "--json")
    named = run("measurements", "check", table, *options)
    piped = io.TextIOWrapper(io.BytesIO(Path(table).read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    found = run("measurements", "check", "-", *options)
    assert (named.code, found.code) == (1, 1)
    assert {**found.json, "source": ""} == {**named.json, "source": ""}
