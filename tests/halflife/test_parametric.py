"""Laws of survival: closed forms, values of other software, refusals, held-out scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.estimators import Units, log_likelihood, maximum, newton, scores
from errcomp.halflife.estimators.parametric import LAWS, fit_law, held_out_scores

INF = np.inf
LEFT = np.array([0, 1, 2, 2, 3, 5, 6, 0, 4, 8, 10, 3, 7, 12, 12, 12, 1, 2, 9, 5], dtype=float)
RIGHT = np.array(
    [2, 3, 4, 5, 4, 8, 7, 1, 9, 12, INF, 6, INF, INF, INF, INF, 4, 3, 11, 10], dtype=float
)


def test_agrees_with_lifelines():
    # lifelines 0.30.3, fit_interval_censoring(LEFT, RIGHT): median, log-likelihood.
    expected = {
        "exponential": (5.62615326, -34.71358039),
        "weibull": (5.92736129, -34.48256200),
        "log-normal": (5.46351083, -34.46018461),
    }
    for law, (median, log_likelihood_) in expected.items():
        fit = fit_law(LEFT, RIGHT, law)
        assert fit.median == pytest.approx(median, rel=2e-5)
        assert fit.log_likelihood == pytest.approx(log_likelihood_, abs=1e-6)
        assert fit.aic == pytest.approx(
            2 * (1 if law == "exponential" else 2) - 2 * log_likelihood_
        )


def test_regression_agrees_with_lifelines():
    # lifelines 0.30.3, WeibullAFTFitter.fit_interval_censoring with this covariate.
    x = np.tile([0.0, 1.0], 10) + 0.1 * np.arange(20)
    fit = maximum(Units.of_intervals(LEFT, RIGHT, None, x[:, None]), "weibull")
    slope, location, effect = fit.theta
    assert effect / slope == pytest.approx(0.46770409, abs=1e-6)
    assert location / slope == pytest.approx(1.37883652, abs=1e-5)
    assert np.log(slope) == pytest.approx(0.26186819, abs=1e-6)
    assert fit.log_likelihood == pytest.approx(-33.24002829, abs=1e-6)


def test_exponential_is_events_over_exposure():
    # Times seen to a thousandth: the rate is events / total time.
    time = np.array([1.0, 2.0, 4.0, 7.0])
    left = np.concatenate([time - 5e-4, [8.0, 3.0]])
    right = np.concatenate([time + 5e-4, [INF, INF]])
    fit = fit_law(left, right, "exponential")
    assert fit.median == pytest.approx(np.log(2) * 25 / 4, rel=1e-6)
    # Its likelihood ratio, in closed form.
    for bound in (fit.low, fit.high):
        ratio = 2 * 4 * (fit.median / bound - 1 - np.log(fit.median / bound))
        assert ratio == pytest.approx(stats.chi2.ppf(0.95, 1) * (1 + 1 / 24), rel=1e-4)


def test_log_normal_without_censoring_is_students_t():
    rng = np.random.default_rng(0)
    log_time = rng.normal(1.0, 0.5, 9)
    fit = fit_law(np.exp(log_time - 1e-4), np.exp(log_time + 1e-4), "log-normal")
    mean, se = log_time.mean(), log_time.std(ddof=1) / 3
    half = stats.t.ppf(0.975, 8) * se
    assert np.log(fit.median) == pytest.approx(mean, abs=1e-5)
    assert np.log([fit.low, fit.high]) == pytest.approx([mean - half, mean + half], abs=1e-4)
    assert fit.sigma == pytest.approx(log_time.std(), rel=1e-4)


@pytest.mark.parametrize("law", LAWS)
def test_bounds_lie_on_the_profile(law):
    fit = fit_law(LEFT, RIGHT, law, level=0.9)
    assert 0 < fit.low < fit.median < fit.high < INF
    assert fit.low > fit_law(LEFT, RIGHT, law).low
    assert fit.survival(fit.median) == pytest.approx(0.5)
    assert fit.survival([0.0, 1e9]) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_time_in_other_units_gives_the_same():
    for law in LAWS:
        days, years = (fit_law(LEFT * k, RIGHT * k, law) for k in (30.0, 1 / 12))
        for name in ("median", "low", "high"):
            assert getattr(days, name) == pytest.approx(360 * getattr(years, name), rel=1e-4)


@pytest.mark.parametrize("normal", [False, True])
def test_scores_are_derivatives(normal):
    rng = np.random.default_rng(0)
    units = Units.of_intervals(LEFT, RIGHT, None, rng.standard_normal((20, 1)))
    law = "log-normal" if normal else "weibull"
    from errcomp.halflife.estimators import ends_of

    ends, theta = ends_of(units, law), np.array([1.2, 1.9, 0.3])
    numeric = [
        (log_likelihood(ends, theta + step) - log_likelihood(ends, theta - step)) / 2e-6
        for step in 1e-6 * np.eye(3)
    ]
    assert units.weight @ scores(ends, theta) == pytest.approx(numeric, abs=1e-5)


def test_the_same_maximum_from_anywhere():
    from errcomp.halflife.estimators import ends_of

    for law in ("weibull", "log-normal"):
        ends = ends_of(Units.of_intervals(LEFT, RIGHT), law)
        fits = [
            newton(ends, np.array(start), positive=True)
            for start in ([0.1, 0.1], [1.0, 2.0], [3.0, 4.0])
        ]
        for fit in fits:
            assert fit.converged
            assert fit.theta == pytest.approx(fits[0].theta, abs=1e-5)


@pytest.mark.parametrize("positive", [False, True])
def test_a_start_that_is_impossible_to_rounding_is_halved(positive):
    from errcomp.halflife.estimators import ends_of

    ends = ends_of(Units.of_intervals(LEFT, RIGHT), "weibull")
    # exp(z) of both ends of an interval is beyond the largest number, or equal to rounding.
    start = np.array([900.3, 12.7])
    assert log_likelihood(ends, start) == log_likelihood(ends, start / 2) == -np.inf
    halvings = next(k for k in range(100) if np.isfinite(log_likelihood(ends, start / 2.0**k)))
    found, wanted = (newton(ends, at, positive) for at in (start, start / 2.0**halvings))
    assert found.theta.tolist() == wanted.theta.tolist()
    assert found.log_likelihood == wanted.log_likelihood > -np.inf
    assert found.converged == wanted.converged


def test_a_start_that_stays_impossible_is_no_maximum():
    from errcomp.halflife.estimators import ends_of

    ends = ends_of(Units.of_intervals(LEFT, RIGHT), "weibull")
    start = np.array([3e40, 1e40])
    found = newton(ends, start, positive=True)
    assert found.theta.tolist() == (start / 2.0**100).tolist()
    assert found.log_likelihood == -np.inf
    assert found.curvature.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert not found.converged


def test_narrow_intervals_are_times():
    time = np.array([1.0, 2.0, 3.0, 5.0, 8.0, 9.0])
    for law in LAWS:
        wide, narrow = (fit_law(time - w, time + w, law) for w in (1e-2, 1e-5))
        assert narrow.median == pytest.approx(wide.median, rel=1e-3)


# Clusters


def test_copies_in_a_cluster_tell_nothing_new():
    rng = np.random.default_rng(0)
    time = np.ceil(8 * rng.weibull(1.3, 40))
    cluster = np.repeat(np.arange(40), 3)
    for law in LAWS:
        single = fit_law(time - 1, time, law)
        three = fit_law(np.repeat(time - 1, 3), np.repeat(time, 3), law, clusters=cluster)
        assert three.median == pytest.approx(single.median)
        assert three.design_effect == pytest.approx(3 * 40 / 39, rel=1e-3)
        assert (three.low, three.high) == pytest.approx((single.low, single.high), rel=0.03)
        assert single.design_effect == 1.0


# Refusals


@pytest.mark.parametrize(
    ("left", "right", "law", "reason"),
    [
        (
            [3, 3],
            [INF, INF],
            "exponential",
            "0 of 2 series expired; at least 1 must have expired to fit the exponential "
            "distribution.",
        ),
        (
            [3, 3, 1],
            [4, 4, INF],
            "weibull",
            "2 of 3 series expired; at least 3 must have expired to fit the weibull distribution.",
        ),
        ([2] * 6, [3] * 6, "weibull", "all series may have expired at the same time"),
        ([2] * 6, [3] * 6, "log-normal", "all series may have expired at the same time"),
        (
            [0] * 6,
            [3, 4, 5, 6, 3, 4],
            "exponential",
            "all series may have expired at the same time",
        ),
        (
            [0] * 6 + [3] * 4,
            [3] * 6 + [INF] * 4,
            "weibull",
            "times of expiry are not known well enough",
        ),
        (
            [0] * 6 + [3] * 4,
            [3] * 6 + [INF] * 4,
            "log-normal",
            "times of expiry are not known well enough",
        ),
        ([0, 0, 0, 1e30, 1e30, 1e30], [1e-30] * 3 + [INF] * 3, "weibull", "too far apart"),
    ],
)
def test_refused_with_numbers(left, right, law, reason):
    fit = fit_law(left, right, law)
    assert reason in fit.refused
    assert (fit.median, fit.low, fit.high, fit.sigma, fit.aic) == (None,) * 5
    with pytest.raises(InputError, match=f"the {law} distribution was not fitted"):
        fit.survival(1.0)


def test_one_event_bounds_an_exponential_on_both_sides():
    fit = fit_law([1, 5, 5, 5], [2, INF, INF, INF], "exponential")
    assert 0 < fit.low < fit.median < fit.high < INF


def test_few_events_leave_a_side_open():
    fit = fit_law([0, 1, 2] + [3] * 40, [1, 2, 3] + [INF] * 40, "log-normal")
    assert fit.low > 1
    assert fit.high == INF


# Held-out scores


def test_held_out_score_finds_the_law():
    rng = np.random.default_rng(1)
    steady = np.ceil(30 * rng.weibull(6.0, 80))
    by_law = held_out_scores(steady - 1, steady)
    assert by_law["weibull"] > by_law["log-normal"] > by_law["exponential"]
    uneven = np.ceil(30 * np.exp(0.5 * rng.standard_normal(80)))
    by_law = held_out_scores(uneven - 1, uneven)
    assert max(by_law, key=by_law.get) == "log-normal"


def test_held_out_score_by_hand():
    left, right = np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0, 5.0])
    each = []
    for out in range(3):
        training = np.arange(3) != out
        fit = fit_law(left[training], right[training], "exponential")
        each.append(np.log(fit.survival(left[out]) - fit.survival(right[out])))
    by_law = held_out_scores(left, right)
    assert by_law["exponential"] == pytest.approx(np.mean(each))
    assert by_law["weibull"] is None


def test_a_unit_that_is_left_out_may_be_impossible():
    # Without the two that expired at 4 and 6 the others are alike, and those two impossible.
    left = np.array([30.0, 31, 5, 3, 31, 30])
    by_law = held_out_scores(left, left + 1, clusters=[0, 0, 1, 1, 2, 2])
    assert by_law["exponential"] == pytest.approx(-4.274965)
    assert by_law["weibull"] is by_law["log-normal"] is None


def test_held_out_score_leaves_out_whole_clusters_and_depends_on_the_seed_alone():
    rng = np.random.default_rng(1)
    time = np.ceil(8 * rng.weibull(1.3, 40))
    cluster = np.repeat(np.arange(8), 5)
    kwargs = {"clusters": cluster, "folds": 4}
    first, second = (held_out_scores(time - 1, time, seed=1, **kwargs) for _ in range(2))
    assert first == second
    assert first != held_out_scores(time - 1, time, seed=2, **kwargs)
    assert first != held_out_scores(time - 1, time, seed=1, folds=4)
    assert held_out_scores(time - 1, time, clusters=np.zeros(40)) == dict.fromkeys(LAWS)


def test_bad_input():
    with pytest.raises(InputError, match="law must be one of exponential, weibull, log-normal"):
        fit_law([0], [1], "gamma")
    with pytest.raises(InputError, match="level"):
        fit_law([0], [1], "weibull", level=2)
    with pytest.raises(InputError, match="0 <= left < right"):
        fit_law([2], [1], "weibull")
