"""The same figures, intervals and refusals from every engine, without fetching a row."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.summary import Summary, summarize
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows
from errcomp.tables.sums import BUCKET

pytestmark = pytest.mark.extras

#: Engines of a cluster take longer than all the others together: `make engines`.
DASK = pytest.param("Dask", marks=pytest.mark.distributed)
SPARK = [
    pytest.mark.distributed,
    pytest.mark.filterwarnings(
        r"ignore:PySpark does not yet fully support pandas >= 3\.0\.0\.:FutureWarning"
    ),
]
ENGINES = (
    *("Polars", "pandas", "PyArrow", "DuckDB"),
    DASK,
    pytest.param("Spark", marks=SPARK),
)
FIGURES = (
    *("mape", "smape", "bias", "wape", "total_error", "mae", "rmse", "rmspe", "rmsle", "gmape"),
    *("gm_ratio", "max_ape", "within_5", "within_10", "median_ape_approx", "p99_ape_approx"),
)

Make = Callable[[str, pl.DataFrame], Any]


def same(found: Summary, expected: Summary) -> None:
    """Require the same figures to 1e-9 and the same words."""
    assert len(found.rows) == len(expected.rows)
    for one, other in zip(
        [*found.rows, found.pooled], [*expected.rows, expected.pooled], strict=True
    ):
        assert (one.key, one.n) == (other.key, other.n)
        for name, figure in one.figures.items():
            match = other.figures[name]
            # In memory the rows that lack a cluster are named, of an engine they are counted.
            said = [re.sub(r"missing in .*? Fill", "missing", e.method) for e in (figure, match)]
            assert said[0] == said[1]
            assert (figure.seed, figure.caveats) == (match.seed, match.caveats)
            for end in ("value", "low", "high"):
                a, b = getattr(figure, end), getattr(match, end)
                assert (a is None) == (b is None), (one.key, name, end)
                assert a is None or math.isclose(a, b, rel_tol=1e-9), (one.key, name, end)


@pytest.mark.parametrize("engine", ENGINES)
def test_figures_are_those_of_rows_in_memory(
    engine: str, table: pl.DataFrame, to_engine: Make
) -> None:
    rows = PairRows(to_engine(engine, table))
    assert rows.engine == engine
    options: dict[str, Any] = {"by": ["device", "model"], "figures": FIGURES[:-2]}
    expected = summarize(Pairs(table), method="log-t", **options)
    found = summarize(rows, method="log-t", **options)
    same(found, expected)
    assert [(d.reason, d.n) for d in found.dropped] == [(d.reason, d.n) for d in expected.dropped]
    assert found.macro == pytest.approx(expected.macro, rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_whole_clusters_are_drawn_with_the_same_numbers(
    engine: str, table: pl.DataFrame, to_engine: Make
) -> None:
    options: dict[str, Any] = {
        "by": "device",
        "figures": ("mape", "wape", "bias", "gmape", "within_10", "max_ape"),
        "cluster": "run",
        "resamples": 499,
        "seed": 3,
    }
    same(summarize(PairRows(to_engine(engine, table)), **options), summarize(table, **options))


@pytest.mark.parametrize("engine", ENGINES)
def test_quantiles_are_within_half_a_per_cent(
    engine: str, table: pl.DataFrame, to_engine: Make
) -> None:
    names = ("median_ape", "p90_ape", "p99_ape")
    approximate = tuple(f"{name}_approx" for name in names)
    options: dict[str, Any] = {"by": "device", "cluster": "none"}
    found = summarize(PairRows(to_engine(engine, table)), figures=approximate, **options)
    inside = summarize(table, figures=(*names, *approximate), **options)
    for one, other in zip([*found.rows, found.pooled], [*inside.rows, inside.pooled], strict=True):
        for name in names:
            figure, exact = one.figures[f"{name}_approx"], other.figures[name]
            assert figure.value == pytest.approx(other.figures[f"{name}_approx"].value, rel=1e-9)
            assert figure.value == pytest.approx(exact.value, rel=0.00501)
            # To the outer edges of buckets, which are one per cent wide.
            assert exact.low / math.exp(BUCKET) <= figure.low <= exact.low
            assert exact.high <= figure.high <= exact.high * math.exp(BUCKET)


@pytest.mark.parametrize("engine", ENGINES)
def test_medians_have_bounds_where_clusters_are_drawn(
    engine: str, table: pl.DataFrame, to_engine: Make
) -> None:
    options: dict[str, Any] = {"by": "device", "cluster": "run"}
    found = summarize(PairRows(to_engine(engine, table)), figures="median_ape_approx", **options)
    inside = summarize(table, figures="median_ape", **options)
    for one, other in zip([*found.rows, found.pooled], [*inside.rows, inside.pooled], strict=True):
        figure, exact = one.figures["median_ape_approx"], other.figures["median_ape"]
        assert figure.method == exact.method
        assert exact.low / math.exp(BUCKET) <= figure.low <= exact.low
        assert exact.high <= figure.high <= exact.high * math.exp(BUCKET)


def test_too_many_clusters_have_no_histogram_each(
    table: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errcomp.metrics.sums.MOST_HISTOGRAMS", 40)
    found = summarize(table.lazy(), figures="median_ape_approx", by="device", cluster="run")
    figure = found.rows[0].figures["median_ape_approx"]
    assert figure.low is None
    assert "too many clusters to keep a histogram for each" in figure.method


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "measured (is missing|must be finite), got (nan|None)"),
        (None, "measured is missing, got (nan|None)"),
        (math.inf, "measured must be finite, got inf"),
        (-1.0, r"measured must be positive, got -1\.0"),
    ],
)
def test_one_row_that_cannot_be_used_is_named(
    engine: str, value: float | None, message: str, table: pl.DataFrame, to_engine: Make
) -> None:
    good = table.filter(pl.col("status") == "OK", pl.col("model") == "net3")
    spoilt = pl.when(pl.int_range(pl.len()) == 100).then(pl.lit(value, dtype=pl.Float64))
    bad = good.with_columns(measured=spoilt.otherwise(pl.col("measured")))
    part = r"partition=[0-3], " if engine in ("Dask", "Spark") else ""
    where = rf"in 1 row: {part}device=\d, model=net3, run=r\d+\."
    with pytest.raises(InputError, match=f"{message} {where}"):
        summarize(PairRows(to_engine(engine, bad)), by="device", figures="mape")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_not_positive_may_be_left_out(
    engine: str, table: pl.DataFrame, to_engine: Make
) -> None:
    bad = table.with_columns(
        measured=pl.when(pl.int_range(pl.len()) < 5).then(0.0).otherwise(pl.col("measured"))
    )
    found = summarize(PairRows(to_engine(engine, bad), zeros="exclude"), figures="mape")
    expected = summarize(Pairs(bad, zeros="exclude"), figures="mape")
    assert {d.reason: d.n for d in found.dropped} == {d.reason: d.n for d in expected.dropped}
    assert found.pooled.figures["mape"].value == pytest.approx(
        expected.pooled.figures["mape"].value, rel=1e-9
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_missing_may_be_left_out(engine: str, table: pl.DataFrame, to_engine: Make) -> None:
    row = pl.int_range(pl.len())
    bad = table.with_columns(
        measured=pl.when(row < 5).then(None).otherwise(pl.col("measured")),
        predicted=pl.when(row == 7).then(float("nan")).otherwise(pl.col("predicted")),
    )
    found = summarize(PairRows(to_engine(engine, bad), missing="exclude"), figures="mape")
    expected = summarize(Pairs(bad, missing="exclude"), figures="mape")
    assert {d.reason: d.n for d in found.dropped} == {d.reason: d.n for d in expected.dropped}
    assert found.dropped[-1].n == 6
    assert found.pooled.figures["mape"].value == pytest.approx(
        expected.pooled.figures["mape"].value, rel=1e-9
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_frame_comes_back(engine: str, table: pl.DataFrame, to_engine: Make) -> None:
    rows = PairRows(to_engine(engine, table))
    frame = summarize(rows, by="device", figures="mape", cluster="none").to_frame()
    columns = ["device", "n", "mape", "mape_low", "mape_high"]
    assert list(getattr(frame, "columns", [])) == columns or frame.column_names == columns
    assert len(frame) == 3
