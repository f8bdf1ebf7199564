"""Half-lives of groups of series: methods side by side, noise, strata, refusals."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.halflife.estimators.expiry import expiry_of
from errcomp.halflife.estimators.parametric import fit_law, time_ratios
from errcomp.halflife.estimators.survival import half_lives_by, half_lives_of, survival_half_lives
from errcomp.halflife.estimators.turnbull import turnbull
from errcomp.halflife.panel import Panel

M = 16


def panel(true, noise=0.0, seed=0, clusters=None):
    """Series over all versions, three months apart, with known noise."""
    true = np.asarray(true, dtype=float)
    n = len(true)
    error = true + noise * np.random.default_rng(seed).standard_normal(true.shape)
    return Panel(
        versions=tuple(f"1.{i}" for i in range(M)),
        months=3.0 * np.arange(M),
        names=tuple(f"s{i}" for i in range(n)),
        clusters=np.arange(n) if clusters is None else np.asarray(clusters),
        starts=np.arange(n + 1) * M,
        version=np.tile(np.arange(M), n),
        error=error.ravel(),
        sd=np.full(n * M, noise),
        noise_df=np.full(n, np.inf),
        frozen_at_first=False,
    )


def steps(times, size=0.3):
    return size * (np.arange(M) >= np.asarray(times)[:, None])


def some_times(n=60, seed=0):
    return np.ceil(10 * np.random.default_rng(seed).weibull(1.5, n))


def test_methods_are_those_of_the_times():
    times = some_times()
    by_method = {h.method: h for h in survival_half_lives(panel(steps(times)), 0.1, "releases")}
    assert list(by_method) == ["turnbull", "exponential", "weibull", "log-normal"]
    right = np.where(times < M, times, np.inf)
    left = np.where(times < M, times - 1, M - 1)
    curve = turnbull(left, right).median(whole=True)
    h = by_method["turnbull"]
    assert (h.half_life, h.low, h.high) == (curve.value, curve.low, curve.high)
    assert h.half_life == np.sort(times)[29]
    fit = fit_law(left, right, "weibull")
    h = by_method["weibull"]
    assert (h.half_life, h.low, h.high) == tuple(map(math.ceil, (fit.median, fit.low, fit.high)))
    assert h.details["aic"] == fit.aic
    for h in by_method.values():
        assert h.n_series == 60
        assert h.censored_share == np.mean(times >= M)
        assert (h.refused, h.unit, h.level) == ("", "releases", 0.95)
        assert json.dumps(dict(h.details))


def test_months_are_between_dates():
    times = some_times()
    releases, months = (
        {h.method: h for h in survival_half_lives(panel(steps(times)), 0.1, clock)}
        for clock in ("releases", "months")
    )
    h, r = months["turnbull"], releases["turnbull"]
    assert 3 * (r.half_life - 1) < h.half_life <= 3 * r.half_life
    # Of releases the first one that is not rejected; of months the last time that is.
    assert (h.low, h.high) == (3 * (r.low - 1), 3 * r.high)
    w = months["log-normal"]
    assert 3 * (releases["log-normal"].half_life - 1) < w.half_life
    assert w.half_life <= 3 * releases["log-normal"].half_life


def test_share_past_the_threshold_at_the_last_time():
    times = some_times()
    h = survival_half_lives(panel(steps(times)), 0.1, "releases")[0]
    share = h.details["expired_share"]
    assert share["time"] == M - 1
    assert share["share"] == pytest.approx(np.mean(times < M))
    assert share["low"] < share["share"] < share["high"]
    assert h.details["survival"][0] == pytest.approx(np.mean(times > 1), abs=1e-6)


def test_fewer_than_half_expired_is_longer_than():
    times = np.concatenate([[3, 5], np.full(18, 99)])
    turn, exponential, weibull, _ = survival_half_lives(panel(steps(times)), 0.1, "releases")
    assert (turn.half_life, turn.low, turn.high) == (np.inf, M, np.inf)
    assert exponential.half_life > M
    assert "at least 3 must have expired to fit" in weibull.refused
    assert (weibull.half_life, weibull.low, weibull.high) == (None, None, None)


def test_none_expired():
    turn, *laws = survival_half_lives(panel(np.zeros((8, M))), 0.1, "releases")
    assert (turn.half_life, turn.low, turn.high) == (np.inf, M, np.inf)
    assert all(h.refused.startswith("0 of 8 series expired") for h in laws)
    assert turn.details["expired_share"]["share"] == 0.0


def test_too_few_series_are_refused_with_numbers():
    turn = survival_half_lives(panel(steps([3, 4, 5])), 0.1, "releases")[0]
    assert turn.half_life is None
    assert turn.refused.endswith(
        "3 series in 3 clusters, of which 3 expired, are too few or too noisy for a 95 % bound on "
        "the median."
    )


def test_no_series_that_can_be_judged():
    half_lives = survival_half_lives(panel(np.ones((3, M))), 0.1, "releases")
    assert [h.method for h in half_lives] == ["turnbull", "exponential", "weibull", "log-normal"]
    for h in half_lives:
        why = "3 series left out: clearly beyond the threshold at the first version"
        assert h.refused == f"no series can be evaluated ({why})."
        assert (h.half_life, h.n_series) == (None, 0)
        assert h.details["dropped"][0]["n"] == 3


# Noise


def test_noise_widens_and_does_not_move():
    true = 0.1 / np.sort(some_times(80))[:, None] * np.arange(M)
    quiet = survival_half_lives(panel(true), 0.1, "releases")
    noisy = survival_half_lives(panel(true, 0.008), 0.1, "releases")
    for a, b in zip(quiet, noisy, strict=True):
        assert b.low <= a.low
        assert b.high >= a.high
        assert b.low < a.low or b.high > a.high
        assert abs(a.half_life - b.half_life) <= 1
    assert noisy[0].details["rows_open"] > 0 == quiet[0].details["rows_open"]


def test_noise_can_leave_a_law_without_bounds():
    # All series may have expired at once, or never: the rows after the first are open.
    true = np.zeros((12, M))
    true[:, 1:] = 0.1
    true[::2, 8:] = 0.11
    half_lives = survival_half_lives(panel(true, 0.02, seed=3), 0.1, "releases")
    weibull = half_lives[2]
    assert weibull.low is None or weibull.low == 1
    assert half_lives[0].refused.endswith(
        "expired, are too few or too noisy for a 95 % bound on the median."
    )


def test_clusters_widen():
    times = np.repeat(some_times(20, seed=4), 4)
    alone, shared = (
        survival_half_lives(panel(steps(times), clusters=c), 0.1, "releases")
        for c in (None, np.repeat(np.arange(20), 4))
    )
    for a, b in zip(alone, shared, strict=True):
        assert b.half_life == a.half_life
        assert b.low <= a.low < a.high <= b.high
        assert b.low < a.low or b.high > a.high
        assert b.details["n_clusters"] == 20


def test_one_cluster_is_refused():
    data = panel(steps(some_times(12)), clusters=np.zeros(12, dtype=int))
    for h in survival_half_lives(data, 0.1, "releases"):
        assert "all 12 series are in one cluster, so changes that they share" in h.refused
        assert (h.half_life, h.low, h.high) == (None, None, None)


def test_the_same_seed_gives_the_same_and_scores_tell_laws_apart():
    times = np.ceil(9 + 1.5 * np.random.default_rng(0).standard_normal(50))
    data = panel(steps(times))
    first, second = (survival_half_lives(data, 0.1, "releases", seed=1) for _ in range(2))
    assert repr(first) == repr(second)
    scores = {h.method: h.details["held_out_score"] for h in first[1:]}
    assert scores["weibull"] > scores["exponential"]


# Strata and covariates


def test_strata_are_fitted_by_themselves():
    fast, slow = some_times(30, 1), 3 * some_times(30, 2)
    expiry = expiry_of(panel(steps(np.concatenate([fast, slow]))), 0.1, "releases")
    strata = ["new"] * 30 + ["old"] * 30
    by_stratum = half_lives_by(expiry, strata, seed=2)
    assert list(by_stratum) == ["new", "old"]
    alone = survival_half_lives(panel(steps(fast)), 0.1, "releases", seed=2)
    for a, b in zip(by_stratum["new"], alone, strict=True):
        assert (a.half_life, a.low, a.high, a.n_series) == (b.half_life, b.low, b.high, 30)
    assert by_stratum["old"][0].low > by_stratum["new"][0].high


def test_time_ratio_finds_how_age_stretches():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 6, 150).astype(float)
    times = np.ceil(2.0 * 1.4**age * rng.weibull(2.0, 150))
    expiry = expiry_of(panel(steps(times)), 0.1, "releases")
    for law in ("weibull", "log-normal", "exponential"):
        [ratio] = time_ratios(expiry, {"age": age}, law=law)
        assert ratio.low < 1.4 < ratio.high
        assert 1 < ratio.low < ratio.ratio < ratio.high < 2
        assert (ratio.name, ratio.n, ratio.refused) == ("age", 150, "")
    [plain] = time_ratios(expiry, {"age": age})
    [in_months] = time_ratios(expiry, {"age": age * 12 + 7})
    assert in_months.ratio**12 == pytest.approx(plain.ratio, rel=1e-4)
    both = time_ratios(expiry, {"age": age, "other": rng.standard_normal(150)})
    assert both[0].ratio == pytest.approx(plain.ratio, rel=0.05)
    assert both[1].low < 1 < both[1].high
    [narrow] = time_ratios(expiry, {"age": age}, level=0.5)
    assert plain.low < narrow.low < narrow.high < plain.high


def test_time_ratio_of_copies_in_clusters():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 6, 60).astype(float)
    times = np.ceil(2.0 * 1.4**age * rng.weibull(2.0, 60))
    [ratio] = time_ratios(expiry_of(panel(steps(times)), 0.1, "releases"), {"age": age})
    many = panel(steps(np.repeat(times, 3)), clusters=np.repeat(np.arange(60), 3))
    [three] = time_ratios(expiry_of(many, 0.1, "releases"), {"age": np.repeat(age, 3)})
    assert (three.ratio, three.low, three.high) == pytest.approx(
        (ratio.ratio, ratio.low, ratio.high), rel=0.02
    )


def test_time_ratio_refused_and_bad_input():
    expiry = expiry_of(panel(steps([3, 5, 99, 99])), 0.1, "releases")
    [ratio] = time_ratios(expiry, {"age": [1, 2, 3, 4]})
    assert ratio.refused == (
        "2 of 4 series expired; at least 4 must have expired to fit the weibull distribution."
    )
    assert ratio.ratio is None
    for covariates, message in (
        ({}, "there is no covariate"),
        ({"age": [1, 2, 3]}, "age must have 4 values, one per series of the panel, got 3"),
        ({"age": [1, 1, 1, 1]}, "covariates that are constant over all series: age"),
        ({"age": [1, np.nan, 2, 3]}, "age must be finite, got nan in series 2"),
    ):
        with pytest.raises(InputError, match=message):
            time_ratios(expiry, covariates)
    with pytest.raises(InputError, match="law must be one of"):
        time_ratios(expiry, {"age": [1, 2, 3, 4]}, law="cox")
    with pytest.raises(InputError, match="no series that can be evaluated"):
        time_ratios(expiry.take(np.zeros(4, dtype=bool)), {"age": [1, 2, 3, 4]})
    with pytest.raises(InputError, match="strata must have 4 values"):
        half_lives_by(expiry, ["a"])
    with pytest.raises(InputError, match="level"):
        half_lives_of(expiry, level=0.0)


def test_covariates_of_series_left_out_do_not_matter():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 6, 40).astype(float)
    times = np.ceil(2.0 * 1.4**age * rng.weibull(2.0, 40))
    true = np.concatenate([np.ones((1, M)), steps(times)])
    [ratio] = time_ratios(
        expiry_of(panel(true), 0.1, "releases"), {"age": np.concatenate([[np.nan], age])}
    )
    [alone] = time_ratios(expiry_of(panel(steps(times)), 0.1, "releases"), {"age": age})
    assert ratio == alone


# Real data


@pytest.mark.shared
def test_mlperf_offline_series(shared_data):
    import polars as pl

    path = shared_data / "longitudinal" / "mlperf_inference" / "embedded_candidate.csv"
    table = pl.read_csv(path).filter(pl.col("scenario") == "Offline").sort("series_id", "date")
    rounds = table.select("round", "date").unique().sort("date")
    versions = rounds["round"].to_list()
    days = rounds["date"].str.to_date().to_numpy()
    at = {name: i for i, name in enumerate(versions)}
    series = table["series_id"].to_numpy()
    names, starts = np.unique(series, return_index=True)
    starts = np.append(starts, len(series))
    log = np.log(table["value"].to_numpy())
    systems = table["system_name"].to_numpy()[starts[:-1]]
    data = Panel(
        versions=tuple(versions),
        months=(days - days[0]).astype("timedelta64[D]").astype(float) / 30.44,
        names=tuple(map(str, names)),
        clusters=np.unique(systems, return_inverse=True)[1],
        starts=starts,
        version=np.array([at[r] for r in table["round"]]),
        error=log - log[np.repeat(starts[:-1], np.diff(starts))],
        sd=np.full(len(log), np.nan),
        noise_df=np.zeros(len(names)),
        frozen_at_first=True,
    )
    for clock in ("releases", "months"):
        for h in survival_half_lives(data, math.sqrt(3) * math.log(1.05), clock):
            assert h.refused == ""
            assert h.low <= h.half_life <= h.high
            assert h.n_series == len(names)
    # Fewer than half of the series left the threshold while they were looked at.
    turn = survival_half_lives(data, math.sqrt(3) * math.log(1.05), "releases")[0]
    assert 0.5 < turn.censored_share < 0.8
    far = replace(data, error=10 * data.error)
    assert survival_half_lives(far, 0.1, "releases")[0].half_life < turn.half_life
