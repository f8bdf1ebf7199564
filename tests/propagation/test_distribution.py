"""Distributions of totals: from moments, from draws, and with tails."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.propagation.distribution import FromDraws, FromMoments, stretched
from errcomp.propagation.errors.tails import NORMAL_TAILS, Observed, Tails, observe
from errcomp.propagation.sums import total_moments
from errcomp.propagation.terms import Terms

LEVELS = (0.01, 0.05, 0.3, 0.5, 0.9, 0.99)
#: One device of six far out.
SEEN = Tails(3.0, 5.0, observe(np.array([0.2, 0.3, 0.5, 0.6, 0.8, 2.4]), np.arange(6)))


def moments(kind="log-ratio", spread=0.2, df=math.inf):
    one = np.ones(2)
    names = np.array(["a", "b"])
    return total_moments(
        Terms(names, names, 10 * one, one.astype(np.int64), 0 * one, spread * one, kind=kind, df=df)
    )


LAWS = [
    moments(),
    moments("relative"),
    moments("absolute", 1.0),
    moments("relative", df=5.0),
    moments(df=5.0),
]


@pytest.mark.parametrize("of", LAWS, ids=lambda m: f"{m.law} {m.df:g}")
def test_without_tails_quantiles_are_those_of_the_moments(of):
    found = FromMoments(of)
    for level in LEVELS:
        assert found.quantile(level) == of.quantile(level)
    assert (found.mean, found.sd, found.saturated) == (of.mean, of.sd, 0.0)
    assert found.method == of.method


@pytest.mark.parametrize(
    "tails", [NORMAL_TAILS, Tails(4.0, 20.0), SEEN], ids=["normal", "t", "seen"]
)
@pytest.mark.parametrize("of", LAWS[:3], ids=lambda m: m.law)
def test_quantile_and_distribution_function_are_inverse(of, tails):
    found = FromMoments(of, tails)
    for level in LEVELS:
        assert found.cdf(found.quantile(level)) == pytest.approx(level)


def test_the_method_names_the_tails():
    of = moments()
    student, seen = (FromMoments(of, tails).method for tails in (Tails(4.0, 20.0), SEEN))
    assert student == f"{of.method}; Student t tails with 3.3 df"
    assert seen.startswith(f"{of.method}; tails from observed errors of totals, mixed with Student")


@pytest.mark.parametrize("of", LAWS[3:], ids=lambda m: m.law)
def test_also_with_tails_of_the_kernels(of):
    found = FromMoments(of)
    for level in LEVELS:
        assert found.cdf(found.quantile(level)) == pytest.approx(level)


def test_tails_widen_the_outer_bands_and_leave_the_median():
    plain, heavy = FromMoments(moments()), FromMoments(moments(), Tails(3.0, 8.0))
    assert heavy.quantile(0.5) == pytest.approx(plain.quantile(0.5))
    assert heavy.quantile(0.995) > plain.quantile(0.995)
    assert heavy.quantile(0.005) < plain.quantile(0.005)
    assert "Student t tails with 2.2 df" in heavy.method


def test_relative_errors_with_tails_by_hand():
    # Sum of two 10 ± 2: 20 ± 2√2; quantiles of a t with 5 df of that standard deviation.
    found = FromMoments(moments("relative"), Tails(5.0))
    expected = stats.t.ppf(0.9, 5, loc=20, scale=2 * math.sqrt(2) * math.sqrt(3 / 5))
    assert found.quantile(0.9) == pytest.approx(expected)


@pytest.mark.parametrize("of", LAWS, ids=lambda m: f"{m.law} {m.df:g}")
@pytest.mark.parametrize("q", [0, 1, -0.1, 2, math.nan])
def test_a_probability_that_is_none(of, q):
    for tails in (NORMAL_TAILS, Tails(4.0)):
        with pytest.raises(InputError, match="q must be between 0 and 1"):
            FromMoments(of, tails).quantile(q)


def test_no_time_is_below_0_with_log_ratio_errors():
    for of in (moments(), moments(df=5.0)):
        assert FromMoments(of).cdf(0.0) == FromMoments(of).cdf(-1.0) == 0.0
    assert FromMoments(moments("absolute", 30.0)).cdf(0.0) > 0.1


def test_a_certain_total_is_a_step():
    for kind in ("log-ratio", "relative"):
        found = FromMoments(moments(kind, 0.0), Tails(4.0))
        assert found.quantile(0.1) == pytest.approx(20.0)
        assert (found.cdf(19.9), found.cdf(20.1)) == (0.0, 1.0)


# --- draws ---


def draws(values, mean=1.0, sd=1.0):
    return FromDraws(np.asarray(values, dtype=float), mean, sd, "by hand")


def test_quantiles_of_draws_are_interpolated():
    found = draws([1.0, 2.0, 4.0, 8.0, 16.0])
    assert [found.quantile(q) for q in (0.25, 0.5, 0.625)] == [2.0, 4.0, 6.0]
    assert found.quantile(0.3) == pytest.approx(np.quantile(found.draws, 0.3))


def test_probabilities_are_shares_of_draws():
    found = draws([1.0, 2.0, 4.0, 8.0])
    assert [found.cdf(t) for t in (0.0, 1.0, 5.0, 9.0)] == [0.0, 0.25, 0.75, 1.0]


def test_infinite_draws_are_saturation():
    found = draws([1.0, 2.0, math.inf, math.inf], None, None)
    assert found.saturated == 0.5
    assert found.quantile(0.1) == pytest.approx(1.3)
    assert math.isinf(found.quantile(0.5))  # between 2 and infinity
    assert math.isinf(found.quantile(0.9))
    assert found.cdf(1e300) == 0.5


def test_draws_of_normal_tails_are_only_sorted():
    assert stretched(np.array([3.0, 1.0, 2.0]), NORMAL_TAILS, "log-ratio").tolist() == [1, 2, 3]


@pytest.mark.parametrize("tails", [Tails(4.0, 15.0), SEEN], ids=["t", "seen"])
@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_stretched_draws_have_the_quantiles_of_the_tails(kind, tails):
    of = {"log-ratio": moments(), "relative": moments("relative"), "absolute": moments("absolute")}
    n = 5_000
    levels = (np.arange(n) + 0.5) / n
    z = stats.norm.ppf(levels)
    exact = FromMoments(of[kind], tails)
    values = exact.moments.location + exact.moments.scale * z
    plain = np.exp(values) if kind == "log-ratio" else values
    found = stretched(plain, tails, kind)
    assert np.all(np.diff(found) >= 0)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(found <= exact.quantile(level)) == pytest.approx(level, abs=0.004)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["log-ratio", "relative"])
def test_saturated_draws_stay_and_the_others_stay_finite(kind, share):
    rng = np.random.default_rng(3)
    plain = np.exp(0.1 * rng.standard_normal(2000))
    plain[: int(2000 * share)] = math.inf
    found = stretched(plain, Tails(3.0, 10.0), kind)
    assert np.isinf(found).mean() == share
    assert not np.isnan(found).any()
    finite = found[np.isfinite(found)]
    # Further from the median, which stays where it is.
    assert np.median(finite) == pytest.approx(np.median(plain[np.isfinite(plain)]), rel=1e-3)


def test_all_draws_saturated():
    found = stretched(np.full(4, math.inf), Tails(3.0), "log-ratio")
    assert np.isinf(found).all()


def test_times_of_0_have_no_logarithm_and_stay():
    plain = np.array([0.0, 0.0, 1.0, 2.0, 4.0])
    found = stretched(plain, Tails(3.0), "log-ratio")
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2] > 0
    assert stretched(np.zeros(3), Tails(3.0), "log-ratio").tolist() == [
        0, 0, 0,
    ]  # fmt: skip


def test_what_is_only_far_out_is_not_saturated():
    wild = Tails(3.0, observed=Observed((1.0, 1e6), (0.5, 1.0), 2.0, 2))
    found = stretched(np.exp(np.linspace(-1, 1, 11)), wild, "log-ratio")
    assert found.max() > 1e300
    assert np.isfinite(found).all()


def test_the_order_of_the_draws_does_not_matter():
    plain = np.exp(np.linspace(-1, 1, 100))
    a, b = (stretched(draws, Tails(3.0), "log-ratio") for draws in (plain, plain[::-1]))
    assert a.tolist() == b.tolist()


def test_results_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FromMoments(moments()).tails = NORMAL_TAILS
