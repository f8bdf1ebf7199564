"""Tests of forecasts against closed forms, by hand, and of bad input.

Whether their probabilities are calibrated is simulated in tests/statistical.
"""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest
from scipy import special, stats

from errcomp.errors import InputError
from errcomp.halflife.forecast.probabilities import (
    date_after,
    drops_below,
    forecast_drift,
    forecast_steps,
    forecast_survival,
)

CURVE = {
    "times": [2.0, 4.0, 6.0],
    "survival": [0.9, 0.6, 0.5],
    "low": [0.8, 0.4, 0.3],
    "high": [1.0, 0.8, 0.7],
}


# Survival


def test_survival_from_the_start_is_the_curve():
    forecast = forecast_survival(**CURVE, ahead=[0, 1, 2, 3, 6, 7])
    assert forecast.probability[:-1] == pytest.approx([1, 0.95, 0.9, 0.75, 0.5])
    # Between two times the wider bounds of both.
    assert forecast.low == pytest.approx([1, 0.8, 0.8, 0.4, 0.3, 0])
    assert forecast.high == pytest.approx([1, 1, 1, 1, 0.7, 0.7])
    assert np.isnan(forecast.probability[-1])


def test_a_curve_may_begin_at_time_0():
    whole = {name: [0.0 if name == "times" else 1.0, *values] for name, values in CURVE.items()}
    ahead = [0, 1, 3, 6]
    forecast, same = (forecast_survival(**curve, ahead=ahead) for curve in (whole, CURVE))
    assert forecast.probability.tolist() == same.probability.tolist()
    assert forecast.low.tolist() == same.low.tolist()


def test_survival_of_a_model_that_has_held():
    forecast = forecast_survival(**CURVE, ahead=[0, 2], age=4)
    assert forecast.probability == pytest.approx([1, 0.5 / 0.6])
    w = np.sqrt(np.log(0.5 / 0.3) ** 2 - np.log(0.6 / 0.4) ** 2)
    assert forecast.low == pytest.approx([1, 0.5 / 0.6 * np.exp(-w)])
    assert forecast.high[0] == pytest.approx(1)


def test_greenwood_bounds_of_a_ratio():
    # Kaplan-Meier of 50 with one event a time, Greenwood on the log scale.
    n = 50 - np.arange(20)
    s = np.cumprod(1 - 1 / n)
    w = 1.96 * np.sqrt(np.cumsum(1 / (n * (n - 1))))
    forecast = forecast_survival(
        np.arange(1, 21),
        s,
        low=s * np.exp(-w),
        high=np.minimum(s * np.exp(w), 1),
        ahead=[10],
        age=10,
    )
    later = np.cumprod(1 - 1 / n[10:])[-1]
    half = 1.96 * np.sqrt(np.sum(1 / (n[10:] * (n[10:] - 1))))
    assert forecast.probability[0] == pytest.approx(later)
    assert forecast.low[0] == pytest.approx(later * np.exp(-half))


def test_a_lower_bound_of_zero_stays_zero():
    curve = {**CURVE, "low": [0.8, 0.4, 0.0]}
    assert forecast_survival(**curve, ahead=[2], age=4).low[0] == 0
    gone = {**CURVE, "survival": [0.9, 0.6, 0.0], "low": [0.8, 0.4, 0.0]}
    forecast = forecast_survival(**gone, ahead=[2], age=4)
    assert (forecast.probability[0], forecast.low[0]) == (0, 0)
    assert forecast.high[0] == 1


# Drift


def test_drift_is_normal():
    forecast = forecast_drift([1, 4], c=0.01, beta=1.0, threshold=0.2)
    assert forecast.probability == pytest.approx(2 * stats.norm.cdf(0.2 / np.array([0.1, 0.2])) - 1)
    shifted = forecast_drift([4], c=0.01, beta=0.5, threshold=0.2, error=0.1, spread=0.1)
    sd = np.sqrt(0.01 + 0.01 * 2)
    law = stats.norm(0.1, sd)
    assert shifted.probability[0] == pytest.approx(law.cdf(0.2) - law.cdf(-0.2))
    assert np.isnan(forecast.low).all()


def test_nothing_has_moved_today():
    for error, inside in ((0.1, 1), (0.3, 0)):
        forecast = forecast_drift([0, 1], c=0.0, beta=0.0, threshold=0.2, error=error)
        assert forecast.probability.tolist() == [inside, inside]
        assert (
            forecast_drift([0], c=1.0, beta=0.0, threshold=0.2, error=error).probability == inside
        )


def test_bounds_are_quantiles_of_draws():
    rng = np.random.default_rng(0)
    draws = np.column_stack([0.01 * rng.lognormal(0, 0.3, 999), np.ones(999)])
    forecast = forecast_drift([2], c=0.01, beta=1, threshold=0.2, draws=draws, level=0.9)
    high, low = (
        2 * stats.norm.cdf(0.2 / np.sqrt(2 * np.quantile(draws[:, 0], q))) - 1 for q in (0.05, 0.95)
    )
    assert (forecast.low[0], forecast.high[0]) == pytest.approx((low, high), abs=1e-3)


# Steps


@pytest.mark.parametrize("threshold", [0.1, 0.05, 0.15])
def test_equal_steps_up_and_down_are_a_bessel_function(threshold):
    # The chance that as many steps went up as down: exp(-m) I0(m) for m expected ones.
    h = np.array([0.0, 1.0, 5.0, 20.0, 100.0])
    forecast = forecast_steps(h, sizes=[0.2, -0.2] * 10, exposure=400, threshold=threshold)
    assert forecast.probability == pytest.approx(special.ive(0, 0.05 * h), abs=1e-6)


def test_steps_in_one_direction_are_counted():
    forecast = forecast_steps([10], sizes=[0.04] * 8, exposure=80, threshold=0.1)
    assert forecast.probability[0] == pytest.approx(stats.poisson.cdf(2, 1.0), abs=1e-6)


def test_many_small_steps_are_drift():
    rng = np.random.default_rng(0)
    sizes = 0.02 * rng.standard_normal(4000)
    sizes -= sizes.mean()
    c = np.mean(sizes**2)
    h = np.array([50.0, 100.0])
    steps = forecast_steps(h, sizes=sizes, exposure=4000, threshold=0.2, error=0.05, spread=0.03)
    drift = forecast_drift(h, c=c, beta=1, threshold=0.2, error=0.05, spread=0.03)
    assert steps.probability == pytest.approx(drift.probability, abs=2e-3)


def test_steps_of_any_size_fit_on_the_grid():
    huge = forecast_steps([1], sizes=[50.0] * 10, exposure=100, threshold=0.1)
    assert huge.probability[0] == pytest.approx(np.exp(-0.1), abs=1e-6)
    # A wide spread against a narrow threshold: the grid is as coarse as it may be.
    wide = forecast_steps([1], sizes=[0.5] * 10, exposure=100, threshold=0.01, spread=1.0)
    law = sum(
        stats.poisson.pmf(k, 0.1)
        * (stats.norm.cdf(0.01 - 0.5 * k) - stats.norm.cdf(-0.01 - 0.5 * k))
        for k in range(9)
    )
    assert wide.probability[0] == pytest.approx(law, rel=1e-3)


@pytest.mark.parametrize("spread", [0.0, 0.004, 0.05])
def test_frequencies_that_are_left_out_do_not_count(spread, monkeypatch):
    asked = {"sizes": [0.2, -0.07, 0.03], "exposure": 40, "threshold": 0.1, "spread": spread}
    forecast = forecast_steps([0, 1, 30], **asked)
    monkeypatch.setattr("errcomp.halflife.forecast.compound_poisson._SILENT", -1.0)
    assert forecast.probability == pytest.approx(
        forecast_steps([0, 1, 30], **asked).probability, abs=2e-11
    )


def test_no_steps_and_few_steps():
    none = forecast_steps([10], sizes=[], exposure=100, threshold=0.1)
    # The rule of three, at 97.5 %.
    assert none.low[0] == pytest.approx(np.exp(10 * np.log(0.025) / 100))
    assert (none.probability[0], none.high[0]) == (1, 1)
    few = forecast_steps([10], sizes=[0.2] * 3, exposure=100, threshold=0.1)
    most = stats.chi2.isf(0.025, 8) / 2 / 100
    assert few.low[0] == pytest.approx(np.exp(-10 * most))
    assert few.high[0] == 1
    assert none.low[0] > few.low[0]


def test_the_same_seed_gives_the_same_bounds():
    options = {"sizes": [0.2, -0.1, 0.3, 0.1, -0.2, 0.15], "exposure": 60, "threshold": 0.12}
    forecasts = [forecast_steps([1, 5], **options, seed=seed) for seed in (0, 0, 1)]
    assert forecasts[0].low.tolist() == forecasts[1].low.tolist() != forecasts[2].low.tolist()
    assert (forecasts[0].low < forecasts[0].probability).all()
    assert (forecasts[0].high > forecasts[0].probability).all()


# When


def test_when_it_drops():
    drop = drops_below(forecast_survival(**CURVE, ahead=[1, 2, 3, 4, 5, 6, 7]), 0.72)
    assert drop.time == pytest.approx(3.2)
    assert (drop.low, drop.high) == (pytest.approx(2.2), pytest.approx(5.8))
    assert drop.refused == ""
    assert drop.unit == "releases"


def test_when_it_does_not_drop():
    drop = drops_below(forecast_survival(**CURVE, ahead=[1, 6, 7], unit="months"), 0.4)
    assert (drop.time, drop.high) == (None, np.inf)
    assert drop.low == pytest.approx(1 + 5 * 0.4 / 0.5)
    assert "does not fall below 0.4 within 7 months: its last known value is 0.5" in drop.refused
    unbounded = drops_below(forecast_drift([1, 2], c=0.1, beta=1, threshold=0.5), 0.9)
    assert unbounded.time == 1
    assert (unbounded.low, unbounded.high) == (None, None)
    sure = drops_below(forecast_steps([1, 2], sizes=[], exposure=1e6, threshold=0.5), 0.9)
    assert (sure.time, sure.low, sure.high) == (None, 2, np.inf)
    old = forecast_survival(**CURVE, ahead=[3], age=4)
    assert "the probability is unknown within 3 releases" in drops_below(old, 0.5).refused


def test_dates():
    assert date_after(date(2026, 1, 31), 0) == date(2026, 1, 31)
    assert date_after(date(2026, 1, 1), 12) == date(2027, 1, 1)
    for months in (np.inf, -1, 1e6):
        with pytest.raises(InputError, match=r"months"):
            date_after(date(2026, 1, 1), months)


def test_forecasts_are_json():
    document = forecast_survival(**CURVE, ahead=[1, 7]).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["probability"][1] is None


# Bad input


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"times": [2.0, 2.0, 6.0]}, r"times must be finite increasing times.*2\.0 in row 2"),
        ({"times": [[2.0]]}, "times must be a one-dimensional list of times,"),
        ({"times": []}, "times must be a one-dimensional list of times,"),
        (
            {"survival": [0.9]},
            "survival, low and high must have one value for each of the 3 times,",
        ),
        (
            {"survival": [0.9, 0.95, 0.5]},
            r"must not increase, got low=0\.4, survival=0\.95, high=0\.8 in row 2\.",
        ),
        ({"low": [0.8, 0.7, 0.3]}, r"got low=0\.7, survival=0\.6, high=0\.8 in row 2\."),
        ({"high": [1.0, np.nan, 0.7]}, "nan in row 2"),
        ({"ahead": [-1]}, "ahead must be finite increasing times"),
        ({"age": 7.0}, "no forecast for a model of age 7: the survival curve ends at 6"),
        ({"age": -1.0}, "age must be finite and 0 or larger"),
        ({"level": 0.0}, "level must be between 0 and 1"),
    ],
)
def test_bad_curves(changed, message):
    with pytest.raises(InputError, match=message):
        forecast_survival(**{**CURVE, "ahead": [1], **changed})


def test_a_curve_that_has_ended():
    gone = {**CURVE, "survival": [0.9, 0.6, 0.0], "low": [0.8, 0.4, 0.0]}
    with pytest.raises(InputError, match="no forecast for a model of age 6"):
        forecast_survival(**gone, ahead=[1], age=6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"c": -1.0}, "a variogram law must have c >= 0"),
        ({"beta": 2.5}, "a variogram law must have c >= 0"),
        ({"c": np.nan}, "a variogram law must have c >= 0"),
        ({"threshold": 0.0}, "threshold must be finite and above 0"),
        ({"spread": -0.1}, "spread must be finite and 0 or larger"),
        ({"error": np.inf}, "error must be a finite number"),
        ({"draws": np.zeros((3, 1))}, "draws must have two columns"),
        ({"draws": np.zeros((0, 2))}, "draws must have two columns"),
        ({"draws": [[0.1, 3.0]]}, "beta between 0 and 2"),
    ],
)
def test_bad_laws(changed, message):
    with pytest.raises(InputError, match=message):
        forecast_drift([1], **{"c": 0.1, "beta": 1.0, "threshold": 0.1, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sizes": [[0.1]]}, "sizes must be a one-dimensional list of finite step sizes"),
        ({"sizes": [np.nan]}, "sizes must be a one-dimensional list of finite step sizes"),
        ({"error": np.nan}, "error must be a finite number"),
        ({"exposure": 0.0}, "exposure must be finite and above 0"),
    ],
)
def test_bad_steps(changed, message):
    with pytest.raises(InputError, match=message):
        forecast_steps([1], **{"sizes": [0.1], "exposure": 10.0, "threshold": 0.1, **changed})


@pytest.mark.parametrize("probability", [0, 1, np.nan])
def test_bad_probability(probability):
    with pytest.raises(InputError, match="probability must be between 0 and 1"):
        drops_below(forecast_drift([1], c=0.1, beta=1, threshold=0.1), probability)
