"""Histories in engines: panels, noise, drift and half-lives of the same rows in memory."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.halflife.drift.variogram import drift_variogram
from errcomp.halflife.fitting import half_life
from errcomp.halflife.forecast import forecast_half_life
from errcomp.halflife.panel import PanelOf, panel_of
from errcomp.tables import History
from errcomp.tables.backends import history_of
from errcomp.tables.engine import groups as _cells
from errcomp.tables.engine.history import HistoryRows
from tests.tables.engine.test_engines import DASK, ENGINES

pytestmark = pytest.mark.extras

Make = Callable[[str, pl.DataFrame], Any]
FIRST = dt.date(2024, 1, 1)


def made() -> pl.DataFrame:
    """Series of two kinds that drift, on a machine that becomes slower on day 240.

    Each version is validated one to three times on the day of its release, and on that of the next.
    """
    rng = np.random.default_rng(4)
    rows = []
    for i in range(8):
        level, drift = float(np.exp(3 * rng.normal())), 0.0
        for v in range(12):
            drift += float(rng.normal(0, 0.04)) + 0.5 * (i == 3 and v == 5)
            for day in (30 * v, 30 * v + 30):
                shift = drift + float(rng.normal(0, 0.01)) + 0.4 * (day >= 240)
                for _ in range(rng.integers(1, 4)):
                    measured = level * float(np.exp(shift + rng.normal(0, 0.01)))
                    spread, runs = float(0.02 * rng.random()), int(rng.integers(1, 4))
                    key = (f"op{i}", "ab"[i % 2], f"1.{v}", FIRST + dt.timedelta(days=day))
                    rows.append((*key, measured, 1.1 * level, spread, runs))
    names = ["op", "kind", "version", "date", "measured", "predicted"]
    return pl.DataFrame(rows, [*names, "measured_spread", "n_repeats"], orient="row")


@pytest.fixture(scope="module")
def history() -> pl.DataFrame:
    return made()


def shuffled(table: pl.DataFrame) -> pl.DataFrame:
    return table.sample(fraction=1, shuffle=True, seed=1)


WITHOUT = {
    "repeats on several dates": ("measured_spread", "n_repeats"),
    "measured_spread": (),
    "repeats": ("measured_spread", "n_repeats", "date", "predicted"),
}


def close(found: Any, expected: Any, rel: float, path: str = "") -> None:
    """Require the same plain values, but for notes."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), path
        for name in expected.keys() - {"notes"}:
            close(found[name], expected[name], rel, f"{path}.{name}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), path
        for i, both in enumerate(zip(found, expected, strict=True)):
            close(*both, rel, f"{path}[{i}]")
    elif isinstance(expected, float) and isinstance(found, float):
        both_nan = math.isnan(found) and math.isnan(expected)
        assert both_nan or math.isclose(found, expected, rel_tol=rel, abs_tol=1e-12), path
    else:
        assert found == expected, path


def same(found: PanelOf, expected: PanelOf) -> None:
    """Require the same panel and noise to 1e-9."""
    for name in ("names", "versions", "frozen_at_first"):
        assert getattr(found.panel, name) == getattr(expected.panel, name)
    for name in ("months", "clusters", "starts", "version", "error", "sd", "noise_df"):
        one, other = getattr(found.panel, name), getattr(expected.panel, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(found.n_repeats, expected.n_repeats)
    close(found.noise.to_dict(), expected.noise.to_dict(), 1e-9)
    assert [(d.reason, d.n) for d in found.dropped] == [(d.reason, d.n) for d in expected.dropped]
    close(drift_variogram(found.panel).to_dict(), drift_variogram(expected.panel).to_dict(), 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_panel_and_variogram_are_those_of_rows_in_memory(
    engine: str, history: pl.DataFrame, to_engine: Make
) -> None:
    table = history.drop("measured_spread", "n_repeats")
    table = table.with_columns(status=pl.when(pl.int_range(pl.len()) % 50 == 0).then(pl.lit("oom")))
    rows = HistoryRows(to_engine(engine, shuffled(table)))
    assert rows.engine == engine
    found = panel_of(rows, cluster="kind")
    same(found, panel_of(History(table), cluster="kind"))
    assert found.noise.source == "repeats on several dates"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_half_lives_are_those_of_rows_in_memory(
    engine: str, history: pl.DataFrame, to_engine: Make
) -> None:
    table = history.drop("measured_spread", "n_repeats")
    native = to_engine(engine, shuffled(table))
    lazy = native if engine not in ("pandas", "PyArrow") else HistoryRows(native)
    found, expected = (half_life(one, by="kind", error=0.1) for one in (lazy, table))
    assert "environment" in {one.verdict for one in expected.environment}
    # Where a likelihood is maximised the last digits are not the same twice.
    close(found.to_dict(), expected.to_dict(), 1e-6)


@pytest.mark.parametrize("source", WITHOUT)
def test_noise_is_found_from_what_there_is(source: str, history: pl.DataFrame) -> None:
    table = history.drop(*WITHOUT[source])
    found = panel_of(HistoryRows(shuffled(table).lazy()))
    same(found, panel_of(History(table)))
    assert found.noise.source == source


def test_repeats_that_are_equal_have_the_noise_of_rounding() -> None:
    table = pl.DataFrame(
        {
            "version": ["1", "1", "1", "2", "2", "3"],
            "measured": [26.4, 26.4, 26.4, 27.1, 27.1, 30.0],
            "repeat": [1, 2, 3, 1, 2, 1],
        }
    )
    found = panel_of(HistoryRows(table.lazy()))
    same(found, panel_of(History(table)))
    assert 0 < found.noise.sd < 0.01


def test_what_is_carried_over_is_found_among_single_validations() -> None:
    values = [26.441, 26.441, 27.093, 27.512]
    table = pl.DataFrame({"version": ["1", "2", "3", "4"], "measured": values})
    found, expected = (panel_of(one) for one in (HistoryRows(table.lazy()), History(table)))
    same(found, expected)
    assert [d.n for d in found.dropped] == [1]
    twice = pl.concat([table, table.with_columns(pl.col("measured") * 1.0001)])
    found = panel_of(HistoryRows(twice.lazy()))
    assert not found.dropped
    assert any(note.startswith("8 of 8 validations were aggregated") for note in found.notes)


def test_only_groups_are_fetched(history: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched, collect = [], nw.LazyFrame.collect

    def watched(self: Any, *args: Any, **options: Any) -> Any:
        table = collect(self, *args, **options)
        fetched.append(len(table))
        return table

    monkeypatch.setattr(nw.LazyFrame, "collect", watched)
    many = pl.concat([history] * 20).drop("measured_spread", "n_repeats", "date")
    half_life(many.lazy(), by="kind")
    groups = history_of(many.lazy(), "kind", None)
    assert max(fetched) == groups.n < len(many) / 50
    assert groups.behind.n.sum() == len(many)


BAD: dict[str, tuple[pl.Expr, str]] = {
    "zero": (
        pl.lit(0.0).alias("measured"),
        r"h: measured must be positive and finite, got 0\.0 in 1 row: op=op0, kind=a, version=1\.0",
    ),
    "infinite": (
        pl.lit(math.inf).alias("predicted"),
        "h: predicted must be positive and finite, got inf in 1 row: op=op0, kind=a, version=1.0",
    ),
    "missing": (
        pl.lit(None, pl.Float64).alias("predicted"),
        "h: predicted is missing in 1 row: op=op0, kind=a, version=1.0",
    ),
    "version": (
        pl.lit(None, pl.String).alias("version"),
        "h: version is missing in 1 row: op=op0, kind=a, version=None",
    ),
    "spread": (
        pl.lit(-0.1).alias("measured_spread"),
        r"h: measured_spread must be a relative .* got -0\.1 in 1 row: op=op0",
    ),
    "unit": (pl.lit("s").alias("unit"), "h: mixed units: 's' and 'ms' in series 'a/op0'"),
}


@pytest.mark.parametrize("engine", ["Polars", "DuckDB", DASK])
@pytest.mark.parametrize("what", BAD)
def test_rows_that_cannot_be_used_are_named_by_their_keys(
    what: str, engine: str, history: pl.DataFrame, to_engine: Make
) -> None:
    value, message = BAD[what]
    table = history.with_columns(unit=pl.lit("ms"))
    name = value.meta.output_name()
    first = pl.when(pl.int_range(pl.len()) == 0).then(value).otherwise(name).alias(name)
    with pytest.raises(InputError, match=message):
        panel_of(HistoryRows(to_engine(engine, table.with_columns(first)), source="h"))


def test_what_gave_no_figure_is_counted(history: pl.DataFrame) -> None:
    position = pl.int_range(pl.len())
    table = history.with_columns(
        measured=pl.when(position < 3).then(None).otherwise("measured"),
        status=pl.when(position >= len(history) - 2).then(pl.lit("failed")),
        stack_cuda=pl.lit(None, pl.String),
    )
    found = history_of(table.lazy(), (), None)
    assert [(d.reason, d.n) for d in found.dropped] == [
        ("the validation failed (status)", 2),
        ("no measurement", 3),
    ]
    same(panel_of(found), panel_of(History(table)))
    failed = table.with_columns(status=pl.lit("failed"))
    with pytest.raises(InputError, match=rf"no usable validations \({len(table)} dropped: the"):
        half_life(failed.lazy())


@pytest.mark.parametrize("engine", ["Polars", "DuckDB", DASK])
def test_dates_count_to_the_day(engine: str, history: pl.DataFrame, to_engine: Make) -> None:
    at = pl.col("date").cast(pl.Datetime("us")) + pl.duration(hours=pl.int_range(pl.len()) % 20)
    table = history.drop("measured_spread", "n_repeats")
    timed = table.with_columns(date=at)
    expected = panel_of(History(table))
    found = panel_of(HistoryRows(to_engine(engine, timed)))
    same(found, expected)
    (note,) = (note for note in found.notes if "time of day" in note)
    assert note.startswith("only the day of a validation counts: the time of day of ")


def test_dates_as_text_count_to_the_day(history: pl.DataFrame) -> None:
    at = pl.col("date").cast(pl.Datetime("us")) + pl.duration(hours=pl.int_range(pl.len()) % 20)
    table = history.drop("measured_spread", "n_repeats")
    timed = table.with_columns(date=at)
    expected = panel_of(History(table))
    texts = table.with_columns(pl.col("date").cast(pl.String))
    same(panel_of(HistoryRows(texts.lazy())), expected)
    with pytest.raises(InputError, match="date is text that has a time of day .* in Polars first"):
        panel_of(timed.with_columns(pl.col("date").cast(pl.String)).lazy())


def test_columns_are_those_of_a_history(history: pl.DataFrame) -> None:
    table = history.rename({"version": "release"}).with_columns(note=pl.int_range(pl.len()))
    options: dict[str, Any] = {"columns": {"version": "release"}, "series": ["op"], "unit": "ms"}
    found, expected = (
        history_of(HistoryRows(table.lazy(), **options), "kind", None),
        History(table, **options),
    )
    assert (found.series_columns, found.unit) == (expected.series_columns, "ms")
    assert found.per_series("kind").tolist() == expected.per_series("kind").tolist()
    by_name = half_life(HistoryRows(table.lazy(), **options), by="series", error=0.1)
    assert [group.key["series"] for group in by_name.groups] == list(expected.series_names)
    with pytest.raises(InputError, match="no column 'kin'. Did you mean 'kind'"):
        half_life(HistoryRows(table.lazy(), **options), by="kin")
    with pytest.raises(InputError, match="no column 'o' that can name a series"):
        panel_of(HistoryRows(table.lazy(), columns=options["columns"], series=["o"]))
    with pytest.raises(InputError, match="measured must be a number, but the column holds String"):
        HistoryRows(history.with_columns(pl.col("measured").cast(pl.String)).lazy())


@pytest.mark.slow
def test_forecasts_take_rows_in_an_engine(history: pl.DataFrame) -> None:
    found, expected = (
        forecast_half_life(one, by="kind", error=0.2, cluster="op")
        for one in (history.lazy(), history)
    )
    close(found.to_dict(), expected.to_dict(), 1e-6)


@pytest.mark.parametrize("engine", ["Polars", "PyArrow", DASK])
def test_days_are_those_of_utc(engine: str, to_engine: Make) -> None:
    times = [dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, 20, tzinfo=dt.UTC)]
    table = pl.DataFrame({"version": ["1", "2"], "date": times, "measured": [1.0, 2.0]})
    table = table.with_columns(pl.col("date").dt.convert_time_zone("Asia/Tokyo"))
    found = history_of(HistoryRows(to_engine(engine, table)), (), None)
    assert found.date.astype("M8[D]").astype(str).tolist() == ["2024-01-01", "2024-01-02"]


def test_lists_name_no_series() -> None:
    table = pl.LazyFrame({"version": ["1", "2"], "k": [[1], [2]], "measured": [1.0, 2.0]})
    with pytest.raises(InputError, match="the values of k are lists or similar"):
        half_life(table)


def test_a_group_for_every_row_is_refused(
    history: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cells, "_MOST", 20)
    with pytest.raises(
        InputError, match="more than 20 groups by op, kind, version, n_repeats, date"
    ):
        half_life(history.lazy())


@pytest.mark.parametrize("columns", [("level", "predictor"), ("level",), ()])
def test_a_column_series_names_the_series_alone(columns: tuple[str, ...]) -> None:
    data: dict[str, Any] = {
        "version": ["1", "1", "1", "2", "2", "2"],
        "series": ["Conv", "Conv", "BMM"] * 2,
        "level": ["op", "net", "op"] * 2,
        "predictor": ["a", "b", "a"] * 2,
        "note": [*"uvwxyz"],
        "measured": [10.0, 10.0, 20.0, 11.0, 12.0, 24.0],
    }
    kept = {name: v for name, v in data.items() if name in columns or name[0] in "vsnm"}
    # A note differs in every row: it would make each a group of its own.
    twice = {name: values * 2 for name, values in kept.items()}
    rows = HistoryRows(pl.LazyFrame(twice)).grouped()
    inside = History(kept)
    assert sorted(rows.series_names) == sorted(inside.series_names)
    assert len(inside.series_names) == (3 if columns else 2)
    groups = 6 if columns else 4
    assert rows.n == groups
    assert rows.behind.n.sum() == 12
    assert "note" not in rows.condition_columns
