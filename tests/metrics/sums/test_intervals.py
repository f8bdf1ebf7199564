"""Intervals from sums: those of the same pairs in memory, and refused where those are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from errcomp.summary import summarize

SMOOTH = ("mape", "smape", "bias", "wape", "mae", "rmse", "rmspe", "rmsle", "gmape", "gm_ratio")


@pytest.fixture(scope="module")
def pairs() -> pl.DataFrame:
    """Groups that allow an interval and groups that do not: few, alike, or of one large pair."""
    rng = np.random.default_rng(5)
    sizes = {"many": 60, "few": 5, "two": 2, "one": 1, "alike": 12, "heavy": 12, "close": 30}
    group = np.repeat(list(sizes), list(sizes.values()))
    measured = np.exp(rng.normal(size=len(group)))
    error = rng.normal(0.05, 0.2, len(group))
    error[group == "alike"] = 0.1
    # Errors that are nearly equal have a short interval, but have one.
    error[group == "close"] = 0.1 + 1e-3 * rng.normal(size=30)
    measured[np.flatnonzero(group == "heavy")[0]] = 1e4
    return pl.DataFrame({"g": group, "predicted": measured * np.exp(error), "measured": measured})


@pytest.mark.parametrize("name", SMOOTH)
def test_bounds_of_sums_are_those_of_pairs(pairs: pl.DataFrame, name: str) -> None:
    inside = summarize(pairs, by="g", figures=[name])
    engine = summarize(pairs.lazy(), by="g", figures=[name])
    expected = {row.key["g"]: row.figures[name] for row in inside.rows}
    assert {row.key["g"] for row in engine.rows} == set(expected)
    for row in engine.rows:
        figure, match = row.figures[name], expected[row.key["g"]]
        assert figure.value == pytest.approx(match.value, rel=1e-9)
        assert (figure.low is None) == (match.low is None), row.key
        if figure.low is None:
            assert figure.method == match.method
        else:
            assert (figure.low, figure.high) == pytest.approx((match.low, match.high), rel=1e-6)


def test_one_large_pair_gives_a_weighted_mean_no_interval(pairs: pl.DataFrame) -> None:
    summary = summarize(pairs.lazy(), by="g", figures=["wape", "mape"])
    figures = {row.key["g"]: row.figures for row in summary.rows}
    assert figures["heavy"]["wape"].low is None
    assert figures["heavy"]["mape"].low is not None
    assert figures["close"]["mape"].low is not None
    assert figures["alike"]["mape"].low is None
