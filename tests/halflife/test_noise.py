"""The noise floor by hand: pooling, moderation, dates, spreads, rounding."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from errcomp.errors import InputError
from errcomp.halflife.noise import moderated_variances, noise_floor, trigamma_inverse
from errcomp.tables import History


def many(groups=40, versions=3, repeats=4, sd=0.05, seed=0, **more):
    """Series with noise of one size; the software changes from version to version."""
    rng = np.random.default_rng(seed)
    axes = np.meshgrid(range(groups), range(versions), range(repeats), indexing="ij")
    series, version, repeat = (x.ravel() for x in axes)
    level = rng.standard_normal((groups, versions))[series, version]
    data = {
        "series": series,
        "version": version,
        "repeat": repeat,
        "measured": np.exp(level + sd * rng.standard_normal(len(series))),
    }
    return {**data, **more}


# Moderated variances


def test_hyper_parameters_solve_the_equations_of_the_moments():
    rng = np.random.default_rng(1)
    d = rng.integers(1, 9, 300).astype(float)
    sigma2 = 5 * 0.04 / rng.chisquare(5, 300)
    moderated = moderated_variances(sigma2 * rng.chisquare(d) / d, d)
    rng = np.random.default_rng(1)
    d = rng.integers(1, 9, 300).astype(float)
    s2 = 5 * 0.04 / rng.chisquare(5, 300) * rng.chisquare(d) / d
    e = np.log(s2) - special.digamma(d / 2) + np.log(d / 2)
    excess = e.var(ddof=1) - special.polygamma(1, d / 2).mean()
    careful = excess + np.sqrt(2 / 299) * e.var(ddof=1)
    assert special.polygamma(1, moderated.prior_df / 2) == pytest.approx(careful, rel=1e-8)
    half = moderated.prior_df / 2
    assert np.log(moderated.prior_variance) == pytest.approx(
        e.mean() + special.digamma(half) - np.log(half)
    )
    mixed = (moderated.prior_df * moderated.prior_variance + d * s2) / (moderated.prior_df + d)
    assert moderated.variance == pytest.approx(mixed)
    assert moderated.df == pytest.approx(moderated.prior_df + d)


@pytest.mark.parametrize("d0", [1.0, 4.0, 20.0])
def test_hyper_parameters_are_recovered_from_many_series(d0):
    rng = np.random.default_rng(2)
    sigma2 = d0 * 0.09 / rng.chisquare(d0, 200_000)
    moderated = moderated_variances(sigma2 * rng.chisquare(3, 200_000) / 3, np.full(200_000, 3.0))
    assert moderated.prior_df == pytest.approx(d0, rel=0.08)
    assert moderated.prior_variance == pytest.approx(0.09, rel=0.02)


def test_equal_variances_are_pooled():
    rng = np.random.default_rng(3)
    moderated = moderated_variances(rng.chisquare(4, 50_000) / 4, np.full(50_000, 4.0))
    assert moderated.prior_df > 100
    assert moderated.variance == pytest.approx(np.ones(50_000), abs=0.15)


def test_degrees_of_freedom_are_not_more_than_there_are():
    moderated = moderated_variances([1.0, 1.01, 0.99], [5.0, 5.0, 5.0])
    assert moderated.df.max() <= 15


def test_series_without_repeats_get_what_is_usual():
    moderated = moderated_variances([1.0, 2.0, 0.5, np.nan], [6.0, 6.0, 6.0, 0.0])
    assert moderated.variance[3] == pytest.approx(moderated.prior_variance)
    assert moderated.df[3] == pytest.approx(min(moderated.prior_df, 18))


@pytest.mark.parametrize(
    ("variance", "df"), [([0.5, np.nan], [30.0, 0.0]), ([0.5, 2.0, np.nan], [5.0, 6.0, 0.0])]
)
def test_too_little_to_moderate_leaves_variances_as_they_are(variance, df):
    moderated = moderated_variances(variance, df)
    assert moderated.variance == pytest.approx(np.asarray(variance), nan_ok=True)
    assert moderated.df.tolist() == df
    assert moderated.prior_df == 0
    assert np.isnan(moderated.prior_variance)


def test_one_tiny_variance_does_not_decide_for_all():
    d = np.full(200, 4.0)
    s2 = np.random.default_rng(4).chisquare(4, 200) / 4
    usual = moderated_variances(s2, d)
    s2[0] = 1e-30
    odd = moderated_variances(s2, d)
    assert odd.prior_df > 2
    # It counts as 1e-5 of the median, which moves the mean logarithm by 11.5 / 200.
    s2[0] = 1e-5 * np.median(s2)
    assert odd.prior_variance == pytest.approx(moderated_variances(s2, d).prior_variance)
    assert 0.7 < odd.prior_variance / usual.prior_variance < 1
    # Series that differ without bound have nothing to learn from each other, and no overflow.
    wild = moderated_variances(np.exp(np.linspace(-11, 11, 40)), np.full(40, 20.0))
    assert 0 < wild.prior_df < 1
    alike = moderated_variances(np.ones(3), np.full(3, 1e9))
    assert alike.prior_df > 1e6


@pytest.mark.parametrize(
    ("variance", "df", "message"),
    [
        ([1.0, 2.0], [1.0], r"must have the same shape \(s,\), got \(2,\) and \(1,\)"),
        ([[1.0]], [[1.0]], r"must have the same shape \(s,\)"),
        ([1.0, 0.0], [1.0, 1.0], "must be positive and finite"),
        ([1.0, np.nan], [1.0, 1.0], "Give df=0 to series without repeats"),
        ([1.0, 1.0], [1.0, np.inf], "must be positive and finite"),
    ],
)
def test_bad_variances(variance, df, message):
    with pytest.raises(InputError, match=message):
        moderated_variances(variance, df)


# The noise floor


def test_repeats_are_pooled_within_series_and_version():
    data = {"version": ["1", "1", "1", "2", "2"], "measured": [2.0, 4.0, 8.0, 100.0, 200.0]}
    floor = noise_floor(History(data))
    # Sums of squares (ln 2)² · (2 + 1/2) on 2 + 1 degrees of freedom.
    assert floor.sd == pytest.approx(np.log(2) * np.sqrt(2.5 / 3))
    assert (floor.df, floor.n_repeats, floor.source, floor.notes) == (3.0, 3, "repeats", ())
    assert floor.series_df.tolist() == [3.0]
    assert floor.of_means(History(data), np.array([0, 0, 0, 1, 1])) == pytest.approx([1 / 3, 1 / 2])


def test_what_other_stacks_or_predictors_do_is_no_noise():
    data = {"version": ["1"] * 4, "measured": [1.0, 1.1, 9.0, 9.9], "stack_os": list("aabb")}
    assert noise_floor(History(data)).sd == pytest.approx(np.log(1.1) / np.sqrt(2))


def test_the_planted_noise_is_found():
    floor = noise_floor(History(many()))
    assert floor.sd == pytest.approx(0.05, rel=0.05)
    assert floor.df == 40 * 3 * 3
    assert floor.series_df.min() > 40
    assert floor.to_dict() == {
        "sd": floor.sd,
        "df": 360.0,
        "source": "repeats",
        "n_repeats": 360,
        "prior_df": floor.prior_df,
        "date_share": None,
        "notes": [],
    }


def test_without_repeats_software_and_environment_cannot_be_told_apart():
    floor = noise_floor(History(many(repeats=1)))
    assert np.isnan(floor.sd)
    assert (floor.df, floor.source, floor.n_repeats) == (0.0, "none", 0)
    assert np.isnan(floor.series_sd).all()
    assert floor.series_df.tolist() == [0.0] * 40
    assert floor.notes[0].startswith("changes of software and environment cannot be distinguished")
    assert floor.to_dict()["sd"] is None


def test_few_repeats_say_nothing_of_other_series():
    data = {"version": ["1", "1", "2", "1"], "op": ["a", "a", "a", "b"], "measured": [1.0, 2, 3, 4]}
    floor = noise_floor(History(data))
    assert floor.series_df.tolist() == [1.0, 0.0]
    assert np.isnan(floor.series_sd[1])
    assert floor.notes == (
        "the repeats are too few to estimate the noise of a typical series (1 degree of freedom): "
        "the noise of series without repeats is unknown",
    )


def test_equal_repeats_have_the_noise_of_rounding():
    data = {
        "version": ["1", "1", "1", "2"],
        "repeat": [1, 2, 3, 1],
        "measured": [3.0, 3.0, 3.0, 4.0],
    }
    floor = noise_floor(History(data))
    level = (3 * 3 * 3 * 4) ** 0.25
    assert floor.sd == pytest.approx(1 / level / np.sqrt(12))
    finer = noise_floor(History({**data, "measured": [0.3, 0.3, 0.3, 0.401]}))
    assert finer.sd == pytest.approx(0.001 / (0.3**3 * 0.401) ** 0.25 / np.sqrt(12))


# Dates


def dated(sd_date, sd=0.02, seed=5, days=3, each=3, groups=30):
    data = many(groups=groups, versions=2, repeats=days * each, sd=sd, seed=seed)
    day = data["repeat"] // each
    rng = np.random.default_rng(seed + 1)
    shift = sd_date * rng.standard_normal((groups, 2, days))
    data["measured"] = data["measured"] * np.exp(shift[data["series"], data["version"], day])
    data["date"] = [
        f"2025-0{v + 1}-{d + 1:02d}T10:{r:02d}"
        for v, d, r in zip(data["version"], day, data["repeat"], strict=True)
    ]
    return data


def test_dates_that_differ_are_part_of_the_noise():
    history = History(dated(0.06))
    floor = noise_floor(history)
    assert floor.source == "repeats on several dates"
    assert floor.date_share == pytest.approx(0.9, abs=0.03)
    # One validation on a date of its own: 0.06² + 0.02².
    assert floor.sd == pytest.approx(np.sqrt(0.0040), rel=0.1)
    assert floor.df == 30 * 2 * 2
    assert (
        "% of the variance of repeats is between dates of validation (F test with 120 and 360"
        in (floor.notes[0])
    )
    # The mean of three on one date is little better than one; of three dates much better.
    few = history.take(np.arange(history.n) < 3)
    assert floor.of_means(few, np.zeros(3, dtype=int)) == pytest.approx(
        [floor.date_share + (1 - floor.date_share) / 3]
    )
    apart = history.take(np.arange(history.n) % 3 == 0).take(np.arange(3))
    assert floor.of_means(apart, np.zeros(3, dtype=int)) == pytest.approx([1 / 3])


def test_dates_that_do_not_differ_are_pooled():
    floor = noise_floor(History(dated(0.0)))
    assert (floor.source, floor.df) == ("repeats", 30 * 2 * 8)
    assert floor.sd == pytest.approx(0.02, rel=0.1)
    assert "scatter no more between dates than on one date" in floor.notes[0]


def test_an_unbalanced_analysis_of_variance_by_hand():
    values = [[1.0, 1.3], [2.0], [1.6, 1.8, 1.7]]
    days = [i + 1 for i, group in enumerate(values) for _ in group]
    log = [x for group in values for x in group]
    data = {"measured": np.exp(log), "version": "1", "date": [f"2025-01-0{d}" for d in days]}
    floor = noise_floor(History(data))
    f, p = stats.f_oneway(*values)
    assert f"p = {p:.2g}" in floor.notes[0]
    within = sum(((np.asarray(g) - np.mean(g)) ** 2).sum() for g in values) / 3
    n0 = (6 - (4 + 1 + 9) / 6) / 2
    between = (f * within - within) / n0
    assert floor.date_share == pytest.approx(between / (between + within))
    assert floor.sd == pytest.approx(np.sqrt(between + within))
    assert floor.df == 2


def test_what_dates_there_are_is_said():
    data = many(versions=2, repeats=2)
    floor = noise_floor(History({**data, "date": ["2025-01-01"] * 160}))
    assert floor.notes == ("no version was validated on two dates: noise between dates is unknown",)
    each = noise_floor(History({**data, "date": [f"2025-01-0{r + 1}" for r in data["repeat"]]}))
    assert each.notes == ("each repeat has its own date: the noise includes changes between dates",)
    assert floor.source == each.source == "repeats"
    assert floor.sd == each.sd


def test_repeats_that_agree_on_a_date_put_all_variance_between_dates():
    data = {
        "version": ["1"] * 4,
        "date": ["2025-01-01", "2025-01-01", "2025-01-02", "2025-01-02"],
        "repeat": [1, 2, 1, 2],
        "measured": [1.5, 1.5, 2.5, 2.5],
    }
    floor = noise_floor(History(data))
    assert floor.date_share == 1.0
    assert floor.sd == pytest.approx(np.log(2.5 / 1.5) / np.sqrt(2))


# Spreads that were given


def test_spreads_are_pooled_by_their_numbers_of_runs():
    data = {
        "version": ["1", "2", "3"],
        "measured": [1.0, 2.0, 3.0],
        "measured_spread": [0.03, 0.06, 0.5],
        "n_repeats": [5, 3, 1],
    }
    floor = noise_floor(History(data))
    # One run has no spread.
    s2 = (4 * np.log1p(0.03**2) + 2 * np.log1p(0.06**2)) / 6
    assert floor.sd == pytest.approx(np.sqrt(s2))
    assert (floor.df, floor.source) == (6.0, "measured_spread")
    assert "it does not include changes between validations" in floor.notes[0]
    assert floor.of_means(History(data), np.arange(3)) == pytest.approx([1 / 5, 1 / 3, 1.0])
    assert floor.of_means(History(data), np.array([0, 0, 1])) == pytest.approx(
        [(1 / 5 + 1 / 3) / 4, 1]
    )


def test_a_spread_without_a_number_of_runs_is_exact():
    data = {
        "version": ["1", "2"] * 2,
        "series": [1, 1, 2, 2],
        "measured": [1.0, 2.0, 3.0, 4.0],
        "measured_spread": [0.03, 0.03, None, None],
    }
    floor = noise_floor(History(data))
    assert floor.series_sd[0] == pytest.approx(0.03, rel=1e-3)
    assert floor.series_df.tolist() == [np.inf, 0.0]
    assert floor.df == np.inf
    assert floor.to_dict()["df"] is None
    assert floor.of_means(History(data), np.arange(4)).tolist() == [1.0] * 4


def test_repeats_that_scatter_more_than_their_spread_are_reported():
    data = many(sd=0.05, versions=2, repeats=2)
    n = len(data["series"])
    extra = {"measured_spread": [0.01] * n, "n_repeats": [4] * n, "host": ["a", "b"] * (n // 2)}
    floor = noise_floor(History({**data, **extra}))
    assert floor.source == "measured_spread"
    assert floor.sd == pytest.approx(0.01, rel=0.05)
    assert floor.notes[0].startswith("repeated validations of one version scatter by 3.85 %")
    assert (
        "the spread within single validations explains only 0.50 %: the validations also differ"
        in floor.notes[0]
    )
    assert floor.notes[1] == (
        "repeats of one series and version differ in host: if this changes the results, the "
        "scatter of the repeats is not only noise"
    )
    quiet = {**extra, "measured_spread": [0.1] * n, "host": ["a"] * n}
    assert noise_floor(History({**data, **quiet})).notes == ()
    # One pair of repeats is enough.
    once = {**quiet, "host": ["a"] * (n - 1) + ["b"]}
    assert noise_floor(History({**data, **once})).notes == (floor.notes[1],)


@pytest.mark.parametrize("y", [3e-7, 9e-7, 2e-6, 0.3, 5.0])
def test_the_inverse_of_trigamma(y: float) -> None:
    assert float(special.polygamma(1, trigamma_inverse(y))) == pytest.approx(y, rel=1e-6)


def test_a_given_spread_counts_as_one_of_a_billion_degrees_of_freedom():
    history = History(
        {
            "version": ["1", "2"] * 4,
            "op": list("aabbccdd"),
            "measured": [1.0, 1.1] * 4,
            "measured_spread": [0.1] * 6 + [None] * 2,
        }
    )
    noise = noise_floor(history)
    # Of three equal variances, psi'(d0 / 2) = psi'(d / 2) = 2 / d + 2 / d^2 with d = 1e9.
    assert noise.prior_df == pytest.approx(1e9 - 1, abs=0.1)
    # The last series has no spread of its own.
    assert noise.series_df.tolist()[:3] == [np.inf] * 3
    assert noise.series_df[3] == noise.prior_df
    assert noise.series_sd[3] == pytest.approx(noise.series_sd[0])
