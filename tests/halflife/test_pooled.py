"""Groups that borrow from each other: values of a sampler, closed forms, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.estimators import pooled
from errcomp.halflife.estimators import pooled as _pooling
from errcomp.halflife.estimators.expiry import expiry_of
from errcomp.halflife.estimators.pooled import pooled_half_lives
from errcomp.halflife.panel import Panel

INF = np.inf
#: Units of six groups; none of the fifth group expired.
LEFT = [
    *(4, 9, 5, 10, 1, 1, 1, 1, 3, 5, 9, 6, 6, 4, 4, 9, 6, 3, 4),
    *(6, 4, 3, 3, 8, 2, 3, 4, 6, 4, 4, 3, 1, 4, 8, 4, 2, 4, 5),
]
RIGHT = [
    *(5, INF, INF, INF, 2, 2, 2, 2, 4, 6, 10, 7, INF, INF, INF, INF, 7, 4, 5),
    *(7, INF, 4, 4, INF, 3, 4, INF, 7, INF, INF, INF, 2, INF, 9, 5, 3, INF, INF),
]
GROUP = [0, 0, 0, 1, 1, 1, 1, 1, *[2] * 8, *[3] * 12, 4, 4, *[5] * 6, 4, 4]


@pytest.fixture(scope="module")
def log_normal():
    """A fit of the log-normal law, and the posterior that it is made of."""
    made, posterior = [], _pooling.posterior

    def kept(times):
        made.append(posterior(times))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pooling, "posterior", kept)
        fit = pooled_half_lives(expiry(), GROUP, law="log-normal")
    return fit, *made


def test_the_posterior_is_that_of_the_finest_grid_and_the_one_before(log_normal):
    found = [(one.center, one.log_tau, one.log_sigma) for one in log_normal[1]]
    sizes = [tuple(len(values) for values, _ in axes) for axes in found]
    assert sizes == [(21, 41, 25), (17, 31, 21)]


def expiry(left=LEFT, right=RIGHT, noise=0.0, months=False):
    """Series that stay just as long as they were seen."""
    rows, times = [], []
    for a, b in zip(left, right, strict=True):
        last = int(a if np.isinf(b) else b)
        rows.append(0.3 * (np.arange(last + 1) >= b))
        times.append(np.arange(last + 1))
    n = len(rows)
    panel = Panel(
        versions=tuple(map(str, range(20))),
        months=np.arange(20.0),
        names=tuple(map(str, range(n))),
        clusters=np.arange(n),
        starts=np.concatenate([[0], np.cumsum([len(r) for r in rows])]),
        version=np.concatenate(times),
        error=np.concatenate(rows),
        sd=np.full(sum(map(len, rows)), noise),
        noise_df=np.full(n, INF),
        frozen_at_first=False,
    )
    return expiry_of(panel, 0.1, "months" if months else "releases")


def test_agrees_with_a_sampler():
    # PyMC 5 and nutpie 0.16, 16,000 draws of the same model and priors: log medians at 2.5, 50 and
    # 97.5 %, of the Weibull law.
    sampled = [
        (1.454, 1.921, 2.929),
        (1.029, 1.648, 2.144),
        (1.528, 1.904, 2.517),
        (1.279, 1.661, 2.037),
        (1.463, 1.964, 3.425),
        (1.178, 1.695, 2.211),
    ]
    fit = pooled_half_lives(expiry(months=True), GROUP)
    for g, expected in enumerate(sampled):
        half_life = fit.groups[g]
        logs = np.log([half_life.low, half_life.half_life, half_life.high])
        # Tails of the sampler are less sure than its middle.
        assert logs[1] == pytest.approx(expected[1], abs=0.03)
        assert logs == pytest.approx(expected, abs=0.08)
    assert np.log(fit.tau_high) == pytest.approx(np.log(1.116), abs=0.1)
    assert fit.tau == pytest.approx(0.301, abs=0.03)
    assert fit.sigma == pytest.approx(0.595, abs=0.01)
    new = fit.new_group
    assert np.log([new.low, new.half_life, new.high]) == pytest.approx(
        [0.84, 1.796, 3.056], abs=0.1
    )


def test_groups_borrow_and_a_group_without_events_is_drawn_to_the_others(log_normal):
    fit, _ = log_normal
    none, few, many = (fit.groups[g] for g in (4, 0, 3))
    assert none.details["n_events"] == 0
    assert none.censored_share == 1.0
    assert (none.method, none.unit, none.n_series) == ("pooled-log-normal", "releases", 4)
    assert none.low > 1
    assert none.high < 100
    assert none.high - none.low > few.high - few.low > many.high - many.low
    new = fit.new_group
    assert new.low <= min(half_life.low for half_life in fit.groups.values())
    assert new.n_series == len(GROUP)
    for half_life in fit.groups.values():
        assert half_life.half_life == np.ceil(half_life.half_life)
        assert half_life.low <= half_life.half_life <= half_life.high


def test_many_series_of_a_group_outweigh_the_others():
    rng = np.random.default_rng(0)
    when = np.concatenate([3 * np.exp(0.3 * rng.standard_normal(400)), [9, 10, 11, 12]])
    right = np.ceil(when)
    fit = pooled_half_lives(
        expiry(right - 1, right, months=True), ["a"] * 400 + ["b"] * 4, law="log-normal"
    )
    a = fit.groups["a"]
    # As by itself: the median within 1.96 sigma / root of n.
    assert a.half_life == pytest.approx(3.0, rel=0.06)
    assert np.log(a.high / a.low) == pytest.approx(2 * 1.96 * 0.3 / 20, rel=0.25)
    assert fit.groups["b"].half_life > 7


@pytest.fixture
def coarse(monkeypatch):
    """Without the finest grid, for what holds on any."""
    monkeypatch.setattr(pooled, "_POINTS", pooled._POINTS[:3])


def test_same_data_give_the_same(monkeypatch):
    monkeypatch.setattr(pooled, "_POINTS", pooled._POINTS[:2])
    first, second = (pooled_half_lives(expiry(), GROUP, law="exponential") for _ in range(2))
    assert repr(first) == repr(second)


def test_time_in_other_units_gives_the_same(coarse):
    releases = pooled_half_lives(expiry(months=True), GROUP)
    scaled = expiry(months=True)
    for name in ("left", "right", "guess", "after_left", "before_right", "before_guess"):
        getattr(scaled, name)[:] *= 30.0
    days = pooled_half_lives(scaled, GROUP)
    for g in range(6):
        assert days.groups[g].high == pytest.approx(30 * releases.groups[g].high, rel=1e-3)


@pytest.mark.slow
def test_noise_widens():
    quiet, loud = expiry(), expiry()
    # Open rows on either side of each expiry.
    ended = np.isfinite(loud.right)
    loud.left[ended] = np.maximum(loud.left[ended] - 1, 0)
    loud.after_left[ended] = loud.left[ended] + 1
    loud.right[ended] += 1
    loud.before_right[ended] = loud.right[ended] - 1
    a, b = (pooled_half_lives(data, GROUP, law="log-normal") for data in (quiet, loud))
    for g in range(6):
        assert b.groups[g].half_life == a.groups[g].half_life
        assert b.groups[g].low <= a.groups[g].low
        assert b.groups[g].high >= a.groups[g].high
    assert any(b.groups[g].high > a.groups[g].high for g in range(6))
    assert any(b.groups[g].low < a.groups[g].low for g in range(6))


def test_prior_of_a_group_without_any_series_in_closed_form():
    # One unit that says nothing: its group's median is the centre and spread of the priors.
    times = _pooling.Times(np.log([1e-9]), np.array([INF]), np.ones((1, 1)), "log-normal", 2.0)
    estimate, _ = _pooling.posterior(times)
    center = np.average(estimate.center[0], weights=estimate.center[1])
    assert center == pytest.approx(2.0, abs=0.02)
    spread = np.sqrt(np.average((estimate.center[0] - 2.0) ** 2, weights=estimate.center[1]))
    assert spread == pytest.approx(2.0, rel=0.05)
    tau = np.exp(estimate.log_tau[0])
    mean = np.average(tau, weights=estimate.log_tau[1])
    assert mean == pytest.approx(stats.halfnorm.mean(), rel=0.05)


# Refusals


def test_grids_that_differ_are_refused(monkeypatch, coarse):
    monkeypatch.setattr(pooled, "_APART", 1e-9)
    half_life = pooled_half_lives(expiry(), GROUP).groups[0]
    assert half_life.half_life is None
    assert "the logarithm of a bound differs by 0.0" in half_life.refused


def test_too_little_is_refused_with_numbers():
    fit = pooled_half_lives(expiry(), [0] * len(GROUP))
    assert fit.groups[0].refused.startswith(
        "pooling needs at least two groups with series that can be evaluated, got 1"
    )
    assert (fit.tau, fit.sigma, fit.new_group.half_life) == (None, None, None)
    few = expiry([1, 2, 5, 5], [2, 3, INF, INF])
    fit = pooled_half_lives(few, ["a", "a", "b", "b"])
    assert fit.groups["b"].refused.startswith("2 of 4 series expired; pooling needs 3 or more")


def test_bad_input():
    data = expiry([1, 2], [2, 3])
    with pytest.raises(
        InputError, match="groups must have 2 values, one per series of the panel, got 1"
    ):
        pooled_half_lives(data, ["a"])
    with pytest.raises(InputError, match="law must be one of"):
        pooled_half_lives(data, ["a", "b"], law="gamma")
    with pytest.raises(InputError, match="level"):
        pooled_half_lives(data, ["a", "b"], level=0)
