"""``errcomp history add|list|export``: documents, tables, files, bad input."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Run = Callable[..., Any]

TABLE = """release,op,ms,at
1.9,Gelu,4.0,2026-01-05
1.10,Gelu,2.0,2026-02-05
1.9,Conv,10.0,2026-01-05
1.10,Conv,10.1,2026-02-05
"""
OPTIONS = ("--column", "version=release", "--column", "measured=ms", "--column", "date=at",
           "--unit", "ms")  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path, table: Path, run: Run) -> Path:
    path = tmp_path / "history.db"
    assert run("history", "add", path, table, *OPTIONS).code == 0
    return path


def test_add_says_what_it_did(tmp_path: Path, table: Path, run: Run) -> None:
    path = tmp_path / "h.db"
    first = run("history", "add", path, table, *OPTIONS, "--where", "op=Gelu")
    assert first.code == 0, first.err
    assert f"Added 2 validations to default in {path}" in " ".join(first.out.split())
    second = run("history", "add", path, table, *OPTIONS, "--skip-known", "--json")
    assert second.json == {
        "schema": "errcomp.history-add/1", "store": str(path), "name": "default",
        "source": str(table), "added": 2, "known": 2, "failed": 0,
    }  # fmt: skip
    third = run("history", "add", path, table, *OPTIONS, "--skip-known")
    assert "Added 0 validations" in third.out
    assert "4 validations already in the store, skipped" in third.out


def test_one_is_no_plural_and_failures_are_told(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "h.db"
    one = tmp_path / "one.csv"
    one.write_text("version,measured\n1,2\n", encoding="utf-8")
    assert "Added 1 validation to default" in run("history", "add", path, one).out
    one.write_text("version,measured,status\n2,2,ok\n3,,crashed\n", encoding="utf-8")
    found = run("history", "add", path, one)
    assert "Added 2 validations" in found.out
    assert (
        "1 validation stored, but without an error value: the validation failed (status)"
        in found.out
    )


def test_what_is_there_is_refused(store: Path, table: Path, run: Run) -> None:
    found = run("history", "add", store, table, *OPTIONS)
    assert found.code == 2
    assert found.err.startswith(f"errcomp: {table}: duplicate validations: 4 ")
    assert "(rows 2, 3, 4 (and 1 more))" in found.err
    assert found.out == ""


def test_list(store: Path, table: Path, tmp_path: Path, run: Run) -> None:
    run("history", "add", store, table, *OPTIONS, "--name", "other", "--where", "op=Conv")
    found = run("history", "list", store)
    assert f"Histories in {store}" in " ".join(found.out.split())
    lines = [line.split() for line in found.out.splitlines()]
    assert ["default", "4", "2", "2", "-", "2026-01-05", "–", "2026-02-05"] in lines
    assert ["other", "2", "1", "2", "-", "2026-01-05", "–", "2026-02-05"] in lines
    document = run("history", "list", store, "--json").json
    assert document["schema"] == "errcomp.histories/1"
    assert document["rows"][0] == {
        "name": "default", "validations": 4, "series": 2, "versions": 2, "predictors": [],
        "first": "2026-01-05T00:00:00Z", "last": "2026-02-05T00:00:00Z",
    }  # fmt: skip
    out = tmp_path / "list.json"
    assert run("history", "list", store, "-o", out).code == 0
    assert json.loads(out.read_text(encoding="utf-8")) == document


def test_list_of_predictors_and_of_nothing(tmp_path: Path, run: Run) -> None:
    path, table = tmp_path / "h.db", tmp_path / "t.csv"
    table.write_text(
        "version,measured,predicted,predictor,date\n1,2,3,b,2026-01-01\n1,2,3,a,2026-01-01\n",
        encoding="utf-8",
    )
    run("history", "add", path, table)
    table.write_text("version,measured\n1,2\n", encoding="utf-8")
    run("history", "add", path, table, "--name", "undated")
    lines = [line.split() for line in run("history", "list", path).out.splitlines()]
    assert ["default", "2", "2", "1", "a,", "b", "2026-01-01"] in lines
    assert ["undated", "1", "1", "1", "-", "-"] in lines


def test_list_does_not_write_over_the_store(store: Path, tmp_path: Path, run: Run) -> None:
    renamed = store.rename(tmp_path / "history.csv")
    found = run("history", "list", renamed, "-o", renamed)
    assert found.code == 2
    assert "would overwrite an input" in found.err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_export(store: Path, tmp_path: Path, run: Run, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    found = run("history", "export", store, "-o", out)
    assert (found.code, found.out) == (0, "")
    assert found.err == f"wrote 4 validations to {out}\n"
    # A version stays text, and what was exported can be added.
    again = run("history", "add", tmp_path / "new.db", out, "--json")
    assert (again.json["added"], again.json["known"]) == (4, 0)
    assert run("history", "add", store, out, "--skip-known", "--json").json["known"] == 4
    exported = pl.read_parquet(out) if suffix == "parquet" else pl.read_csv(out, infer_schema=False)
    assert exported["version"].to_list() == ["1.9", "1.10"] * 2


def test_versions_in_an_order_that_is_given(tmp_path: Path, run: Run) -> None:
    path, table = tmp_path / "h.db", tmp_path / "t.csv"
    table.write_text("version,measured\nbeef,2\ncafe,3\n", encoding="utf-8")
    assert run("history", "add", path, table).code == 2
    assert run("history", "add", path, table, "--order", "cafe,beef").code == 0
    assert run("history", "export", path, "-o", tmp_path / "o.csv").code == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("add", "{store}", "none.csv"), "none.csv"),
        (("add", "{store}", "{table}"), "version"),
        (("add", "{store}", "{table}", "--column", "version"), "--column takes NAME=COLUMN"),
        (("add", "{store}", "{table}", "--column", "=a"), "--column takes NAME=COLUMN"),
        (
            ("add", "{store}", "{table}", "--column", "date=a", "--column", "date=b"),
            "--column names date twice: 'a' and 'b'",
        ),
        (("add", "{table}", "{table}"), "not an SQLite file"),
        (("list", "none.db"), "the store does not exist"),
        (("export", "{store}", "-o", "out.json"), "Parquet or CSV"),
        (("export", "{store}", "-o", "{store}"), "Parquet or CSV"),
        (("export", "{store}", "--name", "x", "-o", "o.csv"), "unknown history 'x'. Histories: d"),
        (("list", "mysql://me:secret@host/db"), "PostgreSQL database"),
        ((), "ACTION"),
    ],
)
def test_bad_input(
    store: Path, table: Path, tmp_path: Path, run: Run, argv: tuple[str, ...], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    before = store.read_bytes()
    found = run("history", *(arg.format(store=store, table=table) for arg in argv))
    assert found.code == 2
    assert said in found.err
    assert "secret" not in found.err
    assert len(found.err.splitlines()) == 1
    assert store.read_bytes() == before


def test_check_names_what_was_changed(store: Path, run: Run) -> None:
    assert run("history", "check", store).out == (
        f"{store}: 1 addition with 4 validations, unchanged since they were written\n"
    )
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE errcomp_validation SET measured = 9 WHERE id = 2")
        connection.commit()
    found = run("history", "check", store)
    assert found.code == 1
    assert f"{store}: history default, addition 1: its 4 rows were changed after" in found.out
    assert "unchanged" not in found.out


@pytest.mark.extras
def test_a_server(run: Run, table: Path) -> None:
    """The same on a server, where there is one for tests."""
    url = os.environ.get("ERRCOMP_TEST_POSTGRES")
    if not url:
        pytest.skip("ERRCOMP_TEST_POSTGRES names no server (tests/halflife/postgres.sh starts one)")
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS test_cli CASCADE; CREATE SCHEMA test_cli")
        where = f"{url}?options=-csearch_path%3Dtest_cli"
        added = run("history", "add", where, table, *OPTIONS)
        listed = run("history", "list", where)
        connection.execute("DROP SCHEMA test_cli CASCADE")
    password = url.partition("@")[0].rpartition(":")[2]
    assert (added.code, listed.code) == (0, 0), added.err
    assert "Added 4 validations" in added.out
    assert password not in added.out + added.err + listed.out + listed.err


def test_rows_that_came_in_another_way_are_counted(store: Path, run: Run) -> None:
    whole = run("history", "check", store)
    assert (whole.code, whole.out) == (
        0,
        f"{store}: 1 addition with 4 validations, unchanged since they were written\n",
    )
    columns = "history_id, series_id, version_id, setup_id, occurrence, measured"
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute(
            f"INSERT INTO errcomp_validation (id, identity, {columns}) "
            f"SELECT 99, x'00', {columns} FROM errcomp_validation WHERE id = 1"
        )
        connection.commit()
    ran = run("history", "check", store)
    assert ran.code == 0
    assert ran.out.splitlines()[1:] == [
        "1 validation without a checksum: they were added by a version of errcomp before 0.3, or "
        "by another program."
    ]
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE errcomp_validation SET measured = 7 WHERE id = 1")
        connection.commit()
    ran = run("history", "check", store)
    assert ran.code == 1
    assert "unchanged since they were written" not in ran.out
    assert ran.out.splitlines()[-2:][0] == (
        "Restore the store from a copy, or export the intact data and add it to a new store."
    )
