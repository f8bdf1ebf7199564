"""Whatever a user calls a table of pairs: paths, built-in names, frames, rows in an engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import errcomp as ec
from errcomp.datasets.inputs import pairs_from, pairs_in_memory
from errcomp.errors import GuessedWarning, InputError
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows

pytestmark = pytest.mark.core

RESULTS = {
    "app": ["bert", "gpt2", "vgg"] * 4,
    "gpu": ["A"] * 3 + ["B"] * 3 + ["C"] * 3 + ["D"] * 3,
    "sim_cycles": [110.0, 120.0, 90.0, 130.0, 95.0, 99.0, 105.0, 101.0, 98.0, 97.0, 96.0, 104.0],
    "hw_cycles": [100.0] * 12,
}
NAMED = {"predicted": "sim_cycles", "measured": "hw_cycles"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pl.DataFrame(RESULTS).write_csv(tmp_path / "results.csv")
    pl.DataFrame(RESULTS).write_parquet(tmp_path / "results.parquet")
    return tmp_path / "results.csv"


@pytest.mark.parametrize(
    "made",
    [
        lambda path: path,
        str,
        lambda path: path.with_suffix(".parquet"),
        lambda _: RESULTS,
        lambda _: pl.DataFrame(RESULTS),
        lambda _: pl.LazyFrame(RESULTS),
    ],
)
def test_every_kind_of_table_gives_the_same(made: Callable[[Path], Any], table: Path) -> None:
    audited = ec.audit(made(table), **NAMED, by="gpu", claims="7.5%")
    assert [row.key for row in audited.rows] == [{"gpu": name} for name in "ABCD"]
    assert audited.overall.figures["mape"].value == pytest.approx(95 / 1200)
    assert {row.verdict.claim.printed for row in audited.rows if row.verdict.claim} == {"7.5%"}
    summary = ec.summarize(made(table), **NAMED, by="gpu", figures="mape")
    assert summary.pooled.figures["mape"].value == audited.overall.figures["mape"].value
    assert ec.error_drivers(made(table), **NAMED, factors="gpu").n == 12
    assert ec.search_claim(made(table), {"": "7.9%"}, **NAMED, top=1).matches


def test_claims_may_be_texts_and_claims_together(table: Path) -> None:
    own = ec.claims.registry.user_claim("9%")
    both = ec.audit(table, **NAMED, by=(), claims=["MAPE 2.3 %", own])
    assert [verdict.claim.printed for verdict in both.claims] == ["2.3 %", "9%"]
    assert [verdict.claim.aggregation for verdict in both.claims] == ["mean", "not stated"]


def test_columns_are_guessed_where_none_is_named(table: Path) -> None:
    with pytest.warns(GuessedWarning, match=r"results\.csv: read as predicted: sim_cycles"):
        assert pairs_from(table).n == 12
    with pytest.warns(GuessedWarning):
        assert pairs_in_memory(pl.LazyFrame(RESULTS)).n == 12


def test_built_in_tables_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pairs_from("neusight").n == 386
    assert ec.audit("neusight").overall.n == 146
    with pytest.raises(InputError, match="neusight is a built-in table: .* Leave out predicted"):
        pairs_from("neusight", predicted="x")
    with pytest.raises(InputError, match="neusight-kernels is a table of kernels, not of pairs"):
        pairs_from("neusight-kernels")
    # A file of that name is meant.
    monkeypatch.chdir(tmp_path)
    Path("neusight").write_text("predicted,measured\n11,10\n")
    assert pairs_from("neusight").n == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reslts.csv", r"reslts.csv: no such file.*Did you mean '.*results.csv'\?"),
        ("no/such/folder/x.csv", "no such file, and no built-in table of pairs.*Built-in: neusi"),
        (
            "https://host/x y.csv",
            "reads nothing from the network.*curl -L -o 'x y.csv' 'https://host/x y.csv'",
        ),
    ],
)
def test_a_name_of_nothing(name: str, message: str, table: Path) -> None:
    place = name if "://" in name else str(table.parent / name)
    with pytest.raises(InputError, match=message):
        ec.audit(place)


def test_columns_of_a_table_of_errcomp_are_known(table: Path) -> None:
    pairs = Pairs(RESULTS, columns=NAMED)
    rows = PairRows(pl.LazyFrame(RESULTS), columns=NAMED)
    output = ec.read(table, columns=NAMED)
    for known in (pairs, rows, output):
        assert pairs_from(known).n == 12
        for given in ({"predicted": "x"}, {"measured": "x"}, {"unit": "ms"}, {"zeros": "exclude"}):
            with pytest.raises(InputError, match=f"are known. Leave out {next(iter(given))}, or"):
                pairs_from(known, **given)
    assert pairs_from(pairs) is pairs
    with pytest.raises(
        InputError, match="in memory, but these pairs stay in Polars. Give the path"
    ):
        pairs_in_memory(rows)


def test_unit_and_zeros_are_passed_on(table: Path) -> None:
    zero = {**RESULTS, "hw_cycles": [0.0, *RESULTS["hw_cycles"][1:]]}
    for made in (zero, pl.LazyFrame(zero)):
        pairs = pairs_from(made, **NAMED, unit="us", zeros="exclude")
        assert (pairs.unit, pairs.n) == ("us", 11)
        with warnings.catch_warnings(action="error"), pytest.raises(InputError, match="positive"):
            ec.summarize(made, **NAMED)
    assert pairs_from(table, **NAMED, unit="us").unit == "us"
    assert pairs_in_memory(zero, **NAMED, unit="us", zeros="exclude").n == 11


def test_missing_is_passed_on(table: Path) -> None:
    table.write_text(table.read_text().replace("110.0", ""))
    for made in (table, pl.read_csv(table), pl.scan_csv(table)):
        for function in (
            ec.audit,
            ec.summarize,
            ec.error_drivers,
            partial(ec.search_claim, figures={"MAPE": "5 %"}),
        ):
            with pytest.raises(InputError, match="predicted"):
                function(made, **NAMED)
            function(made, **NAMED, missing="exclude")
    result = ec.audit(table, **NAMED, missing="exclude")
    assert [d.n for d in result.dropped] == [1]


def test_a_guess_is_told_at_the_line_that_called(table: Path) -> None:
    for made in (RESULTS, table):
        with pytest.warns(GuessedWarning) as caught:
            ec.audit(made)
        assert {warning.filename for warning in caught} == {__file__}


def test_a_folder_of_parquet_stays_there(table: Path) -> None:
    folder = table.parent / "many"
    folder.mkdir()
    for i in range(2):
        pl.DataFrame(RESULTS).write_parquet(folder / f"{i}.parquet")
    rows = pairs_from(folder, **NAMED)
    assert isinstance(rows, PairRows)
    assert rows.n == 24
