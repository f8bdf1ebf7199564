"""Between which rows a series expired: by hand, with and without noise, in months and releases."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.estimators.expiry import expiry_of, series_half_lives
from errcomp.halflife.panel import Panel

MONTHS = np.array([0.0, 2.0, 3.0, 6.0, 7.0, 9.0])


def panel(*series, sd=np.nan, df=0.0, frozen=False, versions=None, months=MONTHS):
    """Each series is its errors; `versions` gives the positions of each where rows are missing."""
    versions = versions or [range(len(rows)) for rows in series]
    lengths = [len(rows) for rows in series]
    n = len(series)
    return Panel(
        versions=tuple(f"1.{i}" for i in range(len(months))),
        months=months,
        names=tuple(f"s{i}" for i in range(n)),
        clusters=np.arange(n),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(int),
        version=np.concatenate([list(v) for v in versions]).astype(int),
        error=np.concatenate([np.asarray(rows, dtype=float) for rows in series]),
        sd=np.repeat(np.broadcast_to(np.asarray(sd, dtype=float), n), lengths),
        noise_df=np.broadcast_to(np.asarray(df, dtype=float), n),
        frozen_at_first=frozen,
    )


def z_of(rows, df=np.inf, level=0.95):
    """Quantile for all means of 1, 2, 4, ... rows at once."""
    widths = [w for w in (1, 2, 4, 8, 16) if w <= rows]
    looks = sum(rows - w + 1 for w in widths)
    return stats.t.isf(1 - level ** (1 / looks), df)


# Without noise


@pytest.mark.parametrize(
    ("errors", "left", "right"),
    [
        ([0.0, 0.05, 0.2, 0.2], 1, 2),
        ([0.0, 0.05, -0.2, 0.2], 1, 2),
        ([0.0, 0.1, 0.2], 0, 1),  # on the threshold
        ([0.0, 0.05, 0.09], 2, np.inf),
        ([0.0, 0.2, 0.2, 0.0], 0, 1),
    ],
)
def test_errors_count_as_measured(errors, left, right):
    expiry = expiry_of(panel(errors), 0.1, "releases")
    assert (expiry.left[0], expiry.right[0], expiry.guess[0]) == (left, right, right)
    assert "count as measured" in " ".join(expiry.assumptions)
    for view in ("early", "face", "late"):
        assert [float(x[0]) for x in expiry.intervals(view)] == [left, right]


def test_one_bad_run_of_unknown_noise_is_not_dated():
    # 16.1 at every release but one: as long as a run that was disturbed.
    measured = np.array([16.1] * 13 + [210.88] + [16.1] * 4)
    data = panel(np.log(measured / 16.1), months=np.arange(18.0))
    expiry = expiry_of(data, np.log(1.1), "releases")
    assert (expiry.left[0], expiry.right[0], expiry.guess[0]) == (12, np.inf, np.inf)
    assert (expiry.unconfirmed[0], expiry.returned[0], expiry.n_open) == (True, False, 1)
    assert any(
        "in a single validation, which does not count as expiry, because it may be a bad run"
        in text
        for text in expiry.assumptions
    )
    early, face, late = (expiry.intervals(view) for view in ("early", "face", "late"))
    assert [float(x[0]) for x in (*early, *face, *late)] == [12, 13, 17, np.inf, 17, np.inf]
    [answer] = series_half_lives(data, np.log(1.1), "releases")
    assert (answer.half_life, answer.low, answer.high) == (np.inf, 12.0, np.inf)
    assert answer.details == {"series": "s0", "returned": False, "unconfirmed": True}


@pytest.mark.parametrize(
    ("errors", "left", "right", "guess"),
    [
        ([0.0, 0.2, 0.0, 0.2], 0, 3, 3),  # the last row: nothing says that it came back
        ([0.0, 0.2, 0.0, 0.2, 0.2], 0, 3, 3),
        ([0.0, 0.2, 0.0, -0.2, 0.0], 0, np.inf, np.inf),
        ([0.0, 0.0, 0.2, -0.2, 0.0], 1, 2, 2),
        ([0.0, 0.2, 0.2, 0.0, 0.2, 0.0], 0, 1, 1),
        ([0.0, 0.0, 0.0, 0.2], 2, 3, 3),
    ],
)
def test_of_unknown_noise_two_rows_in_succession_are_an_expiry(errors, left, right, guess):
    for others in ((), ([0.0, 0.2, 0.2],)):
        expiry = expiry_of(panel(errors, *others), 0.1, "releases")
        assert (expiry.left[0], expiry.right[0], expiry.guess[0]) == (left, right, guess)
        assert expiry.unconfirmed[0] == (left < right - 1)
        assert not any(expiry.unconfirmed[1:])


def test_where_the_noise_is_known_one_row_is_sure():
    expiry = expiry_of(panel([0, 0, 0.3, 0, 0], sd=0.01, df=np.inf), 0.1, "releases")
    assert (expiry.left[0], expiry.right[0], expiry.returned[0]) == (1, 2, True)
    assert not expiry.unconfirmed[0]


def bad_runs(n, k=2000, seed=7):
    """Stable series of noise 0.02 with one run in twenty six times that; their first is good."""
    rng = np.random.default_rng(seed)
    errors = 0.02 * rng.standard_normal((k, n))
    errors[:, 1:] += 0.12 * (rng.random((k, n - 1)) < 0.05)
    return errors


@pytest.mark.parametrize(("n", "most"), [(10, 0.07), (20, 0.09), (40, 0.13)])
def test_stable_series_with_bad_runs_are_rarely_dated(n, most):
    # As measured 32, 55 and 82 %. Half of what is left is at the last row (4 %).
    expiry = expiry_of(panel(*bad_runs(n), months=np.arange(float(n))), 0.1, "releases")
    dated = np.isfinite(expiry.right)
    assert dated.sum() / 2000 < most
    assert (dated & (expiry.right < n - 1)).sum() / 2000 < most - 0.025


def test_steps_that_last_are_dated_as_surely_as_without_the_rule():
    errors, n = bad_runs(20), 20
    at = np.random.default_rng(8).integers(2, n - 1, len(errors))
    errors += 0.3 * (np.arange(n) >= at[:, None])
    expiry = expiry_of(panel(*errors, months=np.arange(float(n))), 0.1, "releases")
    at = at[expiry.series]
    first = np.argmax(np.abs(errors[expiry.series]) >= 0.1, axis=1)
    clean = first == at
    assert 0.6 < clean.mean() < 0.8
    assert (expiry.right == at)[clean].all()
    assert (expiry.left == at - 1)[clean].all()
    # With a bad run before the step the interval holds it.
    assert ((expiry.left < at) & (at <= expiry.right)).mean() > 0.93


def test_untested_versions_and_months():
    data = panel([0.0, 0.0, 0.3], [0.0, 0.3], versions=[[0, 1, 4], [2, 3]])
    releases, months = (expiry_of(data, 0.1, clock) for clock in ("releases", "months"))
    assert releases.left.tolist() == [1, 0]
    assert releases.right.tolist() == [4, 1]
    # Time since the first version of the series.
    assert months.left.tolist() == [2, 0]
    assert months.right.tolist() == [7, 3]
    assert months.last_seen.tolist() == [7, 3]


def test_returning_series_is_marked():
    expiry = expiry_of(panel([0, 0.2, 0.2, 0.0], [0, 0.2, 0.3]), 0.1, "releases")
    assert expiry.returned.tolist() == [True, False]


def test_expired_at_the_start_is_left_out_and_counted():
    expiry = expiry_of(panel([0.5, 0.5], [0.0, 0.0], [0.5, 0.0]), 0.1, "releases")
    assert expiry.series.tolist() == [1]
    assert expiry.at_start.tolist() == [0, 2]
    [dropped] = expiry.dropped
    assert (dropped.reason, dropped.n, dropped.rows) == (
        "clearly beyond the threshold at the first version",
        2,
        (1, 3),
    )
    assert expiry.censored_share == 1.0


def test_nothing_left():
    expiry = expiry_of(panel([0.5, 0.5]), 0.1, "releases")
    assert expiry.n == 0
    assert math.isnan(expiry.censored_share)
    empty = replace(
        panel([0.5]),
        names=(),
        clusters=np.empty(0, int),
        starts=np.array([0]),
        version=np.empty(0, int),
        error=np.empty(0),
        sd=np.empty(0),
        noise_df=np.empty(0),
    )
    assert expiry_of(empty, 0.1, "releases").n == 0


# With noise


def test_one_row_is_judged_with_a_quantile_for_all_looks():
    z = z_of(2)
    for error, valid in ((0.1 - 1.01 * z * 0.01, True), (0.1 - 0.99 * z * 0.01, False)):
        # The mean with the row before is not surely valid: it is beyond zero in the other sign.
        expiry = expiry_of(panel([-0.3, error], sd=0.01, df=np.inf), 0.1, "releases")
        assert expiry.n == 0
        expiry = expiry_of(panel([0.0, error], sd=0.01, df=np.inf), 0.1, "releases")
        assert (expiry.left[0] == 1) == valid
        assert expiry.n_open == (not valid)
    for error, expired in ((0.1 + 1.01 * z * 0.01, True), (0.1 + 0.99 * z * 0.01, False)):
        expiry = expiry_of(panel([0.0, error], sd=0.01, df=np.inf), 0.1, "releases")
        assert (expiry.right[0] == 1) == expired
        assert expiry.guess[0] == 1


def test_few_degrees_of_freedom_widen():
    errors = [0.0, 0.05, 0.15, 0.15]
    many = expiry_of(panel(errors, sd=0.01, df=np.inf), 0.1, "releases")
    few = expiry_of(panel(errors, sd=0.01, df=2.0), 0.1, "releases")
    assert (many.left[0], many.right[0]) == (1, 2)
    assert few.left[0] < 1
    assert few.right[0] == np.inf
    assert 0.05 < z_of(4, 2.0) * 0.01 < 0.1


def test_means_tell_what_single_rows_do_not():
    # Rows of 0.1 +- noise 0.04 are open one by one: z is 3.2.
    errors = np.concatenate([np.full(16, 0.01), np.full(16, 0.2)])
    data = panel(errors, sd=0.04, df=np.inf, months=np.arange(32.0))
    expiry = expiry_of(data, 0.1, "releases")
    assert z_of(32) * 0.04 > 0.1
    assert 10 <= expiry.left[0] <= 15
    assert 16 <= expiry.right[0] <= 20
    assert expiry.guess[0] == 16
    assert expiry.too_noisy.size == 0


def test_valid_rows_after_an_open_one_do_not_count():
    # The third row is open and beyond the threshold as measured: it may have crossed it.
    expiry = expiry_of(panel([0, 0, 0.105, 0, 0, 0.4], sd=0.01, df=np.inf), 0.1, "releases")
    assert (expiry.left[0], expiry.right[0], expiry.guess[0]) == (1, 5, 2)
    early, face, late = (expiry.intervals(view) for view in ("early", "face", "late"))
    assert [float(x[0]) for x in (*early, *face, *late)] == [1, 2, 1, 2, 4, 5]


def test_views_of_a_series_that_stays_open_to_the_end():
    expiry = expiry_of(panel([0, 0, 0.09, 0.105], sd=0.01, df=np.inf), 0.1, "releases")
    assert (expiry.left[0], expiry.right[0], expiry.guess[0]) == (1, np.inf, 3)
    early, face, late = (expiry.intervals(view) for view in ("early", "face", "late"))
    assert [float(x[0]) for x in early] == [1, 2]
    assert [float(x[0]) for x in face] == [2, 3]
    assert [float(x[0]) for x in late] == [3, np.inf]


def test_noise_of_the_first_measurement_is_added_and_not_averaged():
    z = z_of(2)  # two rows can be wrong, the first cannot
    for size, known in ((0.1 + 1.01 * z * 0.01 * math.sqrt(2), 1), (0.1 + 1.3 * z * 0.01, np.inf)):
        expiry = expiry_of(panel([0, size, 0], sd=0.01, df=np.inf, frozen=True), 0.1, "releases")
        assert expiry.right[0] == known
    # A mean of two: the root of 1 + 1/2.
    both = 0.1 + 1.01 * z * 0.01 * math.sqrt(1.5)
    expiry = expiry_of(panel([0, both, both], sd=0.01, df=np.inf, frozen=True), 0.1, "releases")
    assert expiry.right[0] == 2
    assert any("first measurement" in text for text in expiry.assumptions)


def test_noise_too_large_for_the_threshold_is_refused_whatever_the_errors():
    loud = panel([0.0, 0.0], [0.0, 0.9], [0.0, 0.02], sd=[0.1, 0.1, 0.01], df=np.inf)
    expiry = expiry_of(loud, 0.1, "releases")
    assert expiry.too_noisy.tolist() == [0, 1]
    assert expiry.series.tolist() == [2]
    assert expiry.dropped[0].reason.startswith(
        "too noisy for the threshold: no validation is clearly within it"
    )


def test_noise_known_of_some_series():
    expiry = expiry_of(
        panel([0, 0.105], [0, 0.105], sd=[0.01, np.nan], df=[np.inf, 0]), 0.1, "releases"
    )
    assert expiry.right.tolist() == [np.inf, 1]
    assert any("noise of 1 of 2 series is unknown" in text for text in expiry.assumptions)


def test_first_row_near_the_threshold_is_taken_as_valid_and_said():
    expiry = expiry_of(panel([0.095, 0.3], sd=0.01, df=np.inf), 0.1, "releases")
    assert (expiry.left[0], expiry.right[0]) == (0, 1)
    assert any("near the threshold at their first version" in text for text in expiry.assumptions)


def test_series_do_not_touch_each_other():
    rng = np.random.default_rng(3)
    series = [0.05 * rng.standard_normal(rng.integers(2, 7)).cumsum() for _ in range(60)]
    sd = rng.uniform(0.003, 0.02, 60)
    together = expiry_of(panel(*series, sd=sd, df=7.0), 0.1, "months")
    for k, i in enumerate(together.series):
        alone = expiry_of(panel(series[i], sd=sd[i], df=7.0), 0.1, "months")
        for name in ("left", "right", "guess", "after_left", "before_right", "before_guess"):
            assert getattr(alone, name)[0] == getattr(together, name)[k]
    assert (together.left < together.guess).all()
    assert (together.guess <= together.right).all()
    for view in ("early", "face", "late"):
        left, right = together.intervals(view)
        assert (left < right).all()
    early, late = together.intervals("early")[1], together.intervals("late")[1]
    assert (early <= together.guess).all()
    assert (together.guess <= late).all()


def test_take_keeps_some_series():
    expiry = expiry_of(panel([0, 0.3], [0, 0], [0, 0.05, 0.3], [0.4, 0]), 0.1, "releases")
    part = expiry.take(np.array([True, False, True]))
    assert part.series.tolist() == [0, 2]
    assert part.right.tolist() == [1, 2]
    assert part.dropped == ()
    assert expiry.dropped


# Half-life of a series


def test_half_life_of_each_series():
    data = panel([0, 0, 0.3], [0, 0, 0], [0.5, 0, 0], [0, 0.3, 0.3, 0])
    step, valid, gone, back = series_half_lives(data, 0.1, "releases")
    assert (step.half_life, step.low, step.high) == (2.0, 2.0, 2.0)
    assert (valid.half_life, valid.low, valid.high) == (np.inf, 2.0, np.inf)
    assert valid.censored_share == 1.0
    assert gone.half_life is None
    assert gone.refused == "clearly beyond the threshold at the first version."
    assert back.details == {"series": "s3", "returned": True}
    assert {x.method for x in (step, valid, gone, back)} == {"expiry"}


def test_half_life_in_months_is_between_two_dates():
    [half_life] = series_half_lives(panel([0, 0, 0.3]), 0.1, "months")
    assert (half_life.half_life, half_life.low, half_life.high) == (3.0, 2.0, 3.0)


def test_half_life_of_a_noisy_series_is_refused():
    [half_life] = series_half_lives(panel([0, 0.3], sd=0.2, df=np.inf), 0.1, "months")
    assert half_life.refused.startswith(
        "too noisy for the threshold: no validation is clearly within it"
    )


# Bad input


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.nan, np.inf])
def test_threshold_must_be_positive(threshold):
    with pytest.raises(InputError, match="threshold must be positive and finite"):
        expiry_of(panel([0, 1]), threshold, "releases")


def test_bad_clock_level_dates_and_errors():
    data = panel([0, 0.3])
    with pytest.raises(InputError, match='clock must be "releases" or "months", got \'years\''):
        expiry_of(data, 0.1, "years")
    with pytest.raises(InputError, match="level"):
        expiry_of(data, 0.1, "releases", level=1.0)
    with pytest.raises(InputError, match="versions without a date"):
        expiry_of(replace(data, months=np.full(6, np.nan)), 0.1, "months")
    with pytest.raises(InputError, match="must increase, but they do not in s0"):
        expiry_of(replace(data, months=np.zeros(6)), 0.1, "months")
    with pytest.raises(InputError, match=r"errors must be finite, got nan in the series s0\."):
        expiry_of(panel([0, np.nan]), 0.1, "releases")
