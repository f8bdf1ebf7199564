"""Tables that are not what one would like: the same as in memory, or refused in words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.summary import Summary, summarize
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows
from tests.tables.engine.test_engines import DASK

pytestmark = pytest.mark.extras

ENGINES = ("Polars", "DuckDB", DASK)
FIGURES = ("mape", "bias", "gmape", "rmsle", "wape", "max_ape", "within_10", "median_ape_approx")

Make = Callable[[str, pl.DataFrame], Any]


def pairs(**columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    measured = np.exp(rng.standard_normal(24))
    predicted = measured * np.exp(0.2 * rng.standard_normal(24))
    return pl.DataFrame({"predicted": predicted, "measured": measured, **columns})


def repeated(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(24)]


def told(summary: Summary) -> list[Any]:
    """Return all that a summary says, numbers to nine digits."""
    return [
        (row.key, row.n, name, f"{one.value:.9g}", one.low is None, one.method.split(":")[0])
        for row in (*summary.rows, summary.pooled)
        for name, one in row.figures.items()
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_may_have_the_names_of_what_is_made_here(engine: str, to_engine: Make) -> None:
    names = ("bucket", "_errcomp_n", "_errcomp_p", "_errcomp_key_0", "a.b")
    table = pairs(**{name: repeated("x", "y", None) for name in names}, n=repeated(1, 2, 3))
    options: dict[str, Any] = {"figures": FIGURES, "level": None}
    rows = PairRows(to_engine(engine, table))
    for name in names:
        found = summarize(rows, by=name, **options)
        assert told(found) == told(summarize(table, by=name, **options))
        found.to_frame()


def test_a_cluster_may_be_called_n() -> None:
    table = pairs(n=repeated(1, 2, 3))
    options: dict[str, Any] = {"figures": "mape", "cluster": "n", "resamples": 199}
    assert told(summarize(table.lazy(), **options)) == told(summarize(table, **options))


@pytest.mark.parametrize("engine", ENGINES)
def test_figures_of_odd_predictions(engine: str, to_engine: Make) -> None:
    table = pairs(kind=[name for name in ("exact", "some", "zero", "below") for _ in range(6)])
    spoilt = {"exact": "measured", "zero": 0.0, "below": -pl.col("measured")}
    predicted = pl.col("predicted")
    for kind, value in spoilt.items():
        predicted = pl.when(pl.col("kind") == kind).then(value).otherwise(predicted)
    table = table.with_columns(predicted=predicted)
    options: dict[str, Any] = {"by": "kind", "figures": FIGURES[:-1], "method": "log-t"}
    found = summarize(PairRows(to_engine(engine, table)), **options)
    expected = [
        (*one[:5], one[5].removesuffix(" (rows counted among these pairs)"))
        for one in told(summarize(table, **options))
    ]
    assert told(found) == expected
    words = {r.key["kind"]: r.figures["bias"].method for r in found.rows}
    assert words["exact"] == "no interval: all errors are equal"
    assert words["below"] == "no interval: the mean ratio of predicted to measured is not positive"
    approximate: dict[str, Any] = {"by": "kind", "figures": "median_ape_approx", "level": None}
    assert told(summarize(PairRows(to_engine(engine, table)), **approximate)) == told(
        summarize(table, **approximate)
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_beyond_all_numbers_is_no_figure(engine: str, to_engine: Make) -> None:
    table = pl.DataFrame({"predicted": [1e200, 1.0], "measured": [1e-200, 1.0]})
    found = summarize(
        PairRows(to_engine(engine, table)), figures=("mape", "p99_ape_approx", "within_10")
    ).pooled.figures
    assert np.isnan(found["mape"].value)
    assert "beyond the largest number a float64 can hold" in found["mape"].method
    assert found["within_10"].value == 0.5
    assert np.isnan(found["p99_ape_approx"].value)  # between 0 and what is beyond


KEYS: dict[str, Sequence[Any]] = {
    "boolean": repeated(True, False, None),
    "date": repeated(dt.date(2024, 1, 2), dt.date(2024, 1, 1)),
    "time": repeated(dt.datetime(2024, 1, 2, 3), dt.datetime(2024, 1, 1)),
    "decimal": repeated(Decimal("1.50"), Decimal("2.25")),
    "single": pl.Series(repeated(0.1, 0.2), dtype=pl.Float32),
    "category": pl.Series(repeated("b", "a", None), dtype=pl.Categorical),
    "text": repeated("a,b", "c", "None", None),
}


@pytest.mark.parametrize("engine", ENGINES[:2])
@pytest.mark.parametrize("name", KEYS)
def test_rows_are_chosen_by_what_python_writes(engine: str, name: str, to_engine: Make) -> None:
    table = pairs(**{name: KEYS[name]})
    rows, inside = PairRows(to_engine(engine, table)), Pairs(table)
    for value in dict.fromkeys(map(str, inside.column(name))):
        for wanted in (value, value.split(",")):
            found, expected = rows.where({name: wanted}), inside.where({name: wanted})
            assert (found.n, found.selection) == (expected.n, expected.selection)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_refusals(engine: str, to_engine: Make) -> None:
    table = pairs(device=repeated("A", "B"), mode=repeated("x", "y"), tool=repeated("One", "two"))
    rows, inside = (
        PairRows(to_engine(engine, table), columns={"gpu": "device"}),
        Pairs(table, columns={"gpu": "device"}),
    )
    assert rows.of_tool("one").n == inside.of_tool("one").n == 12
    for one in (
        lambda t: summarize(t.where({"gpu": "A", "mode": "y"}), figures="mape"),
        lambda t: summarize(t, by="device", figures="mape"),
        lambda t: t.of_tool("three"),
    ):
        messages = []
        for it in (rows, inside):
            with pytest.raises(InputError) as caught:
                one(it)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("engine", ENGINES[:2])
def test_lists_are_no_keys(engine: str, to_engine: Make) -> None:
    rows = PairRows(to_engine(engine, pairs(k=repeated([1], [2]))))
    for options in ({"by": "k"}, {"cluster": "k"}):
        with pytest.raises(InputError, match="cannot group by 'k': its values are lists"):
            summarize(rows, figures="mape", **options)


def test_groups_in_which_clusters_are_missing_have_no_intervals() -> None:
    table = pairs(model=repeated(*"abcdefghijk", None), device=repeated(1, 2))
    options: dict[str, Any] = {"by": "device", "figures": ("mape", "within_10"), "resamples": 199}
    found = summarize(table.lazy(), cluster="model", **options)
    expected = summarize(table, cluster="model", **options)
    assert [one[:4] for one in told(found)] == [one[:4] for one in told(expected)]
    assert found.pooled.figures["mape"].method.startswith(
        "no interval: the key model is missing in 2 rows"
    )
    assert not np.isnan(
        summarize(table.lazy(), cluster="model", figures="mape", level=None)
        .pooled.figures["mape"]
        .value
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "value"), [("measured", -np.inf), ("predicted", None)])
def test_what_is_no_number_is_not_excluded(
    engine: str, name: str, value: float | None, to_engine: Make
) -> None:
    first = pl.int_range(pl.len()) == 0
    table = pairs().with_columns(measured=pl.when(first).then(0.0).otherwise("measured"))
    spoilt = pl.when(first).then(pl.lit(value, dtype=pl.Float64)).otherwise(name).alias(name)
    rows = PairRows(to_engine(engine, table.with_columns(spoilt)), zeros="exclude")
    with pytest.raises(InputError, match=f"{name} (is missing|must be finite), got"):
        summarize(rows, figures="mape")


def test_units_that_differ_are_both_named() -> None:
    table = pairs(unit=repeated(None))
    with pytest.raises(InputError, match="mixed units: 'ms' and no unit"):
        PairRows(table.lazy(), unit="ms")
    status = pairs(status=repeated(0.0, float("nan"), None))
    assert PairRows(status.lazy()).n == Pairs(status).n


@pytest.mark.parametrize("engine", ["pandas", DASK])
def test_two_columns_of_one_name_are_refused(engine: str) -> None:
    pandas = pytest.importorskip("pandas")
    names = ["predicted", "measured", "k", "k"]
    table = pandas.DataFrame([[1.0, 2.0, 3, 4]], columns=names)
    if engine == "Dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=1)
    with pytest.raises(InputError, match="the table has two columns of the same name"):
        summarize(table, figures="mape")


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="expected a dataframe .* got int"):
        PairRows(3)


@pytest.mark.distributed
def test_names_that_spark_cannot_tell_apart(spark: Any) -> None:
    for name, message in (
        ("a.b", "Spark reads dots and backticks"),
        ("MEASURED", "the same name"),
    ):
        table = spark.createDataFrame([(1.0, 2.0, 3)], ["predicted", "measured", name])
        with pytest.raises(InputError, match=message):
            summarize(table, figures="mape")
    table = spark.createDataFrame([(1e200, 1e-200, 3)], ["predicted", "measured", "bucket"])
    found = summarize(table, by="bucket", figures="median_ape_approx").pooled
    assert "beyond the largest number" in found.figures["median_ape_approx"].method
