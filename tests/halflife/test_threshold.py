"""The calibrated error: given, assumed, measured against noise, refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.panel import Panel
from errcomp.halflife.threshold import doubling_threshold


def panel(first, sd=np.nan, df=0.0, *, frozen=False):
    """Series of two rows; the second one is far off and must not matter."""
    first = np.asarray(first, dtype=float)
    n = len(first)
    return Panel(
        versions=("1", "2"),
        months=np.array([0.0, 1.0]),
        names=tuple(f"s{i}" for i in range(n)),
        clusters=np.arange(n),
        starts=2 * np.arange(n + 1),
        version=np.tile([0, 1], n),
        error=np.column_stack([first, np.full(n, 9.0)]).ravel(),
        sd=np.repeat(np.broadcast_to(np.asarray(sd, dtype=float), n), 2),
        noise_df=np.broadcast_to(np.asarray(df, dtype=float), n),
        frozen_at_first=frozen,
    )


@pytest.mark.parametrize(("frozen", "factor"), [(False, 2.0), (True, math.sqrt(3))])
def test_given_error_is_taken_on_the_log_scale(frozen, factor):
    limit = doubling_threshold(panel([0.3], frozen=frozen), error=0.05)
    assert limit.error == pytest.approx(math.log(1.05))
    assert limit.value == pytest.approx(factor * math.log(1.05))
    assert (limit.source, limit.low, limit.high, limit.n_series) == ("given", None, None, 0)


def test_frozen_at_first_assumes_five_percent_and_says_so():
    limit = doubling_threshold(panel([0.0, 0.0], 0.01, 5, frozen=True))
    assert limit.value == pytest.approx(math.sqrt(3) * math.log(1.05))
    assert limit.source == "assumed"
    assert "5.00 %" in limit.notes[0]
    assert "error=" in limit.notes[0]


def test_noise_is_subtracted_from_the_mean_square():
    errors = np.array([0.1, -0.2, 0.05, 0.15])
    limit = doubling_threshold(panel(errors, [0.02, 0.03, 0.02, 0.01], 8))
    noise = np.mean(np.array([0.02, 0.03, 0.02, 0.01]) ** 2)
    assert limit.error == pytest.approx(math.sqrt(np.mean(errors**2) - noise))
    assert limit.value == pytest.approx(2 * limit.error)
    assert limit.low < limit.error < limit.high
    assert (limit.source, limit.n_series, limit.refused) == ("measured", 4, "")


def test_bounds_with_known_noise_are_those_of_a_noncentral_chi_squared():
    errors, s = np.array([0.05, -0.03, 0.04]), 0.01
    limit = doubling_threshold(panel(errors, s, np.inf), level=0.9)
    squares = np.sum(errors**2) / s**2
    for bound, tail in ((limit.low, 0.05), (limit.high, 0.95)):
        assert stats.ncx2.sf(squares, 3, 3 * bound**2 / s**2) == pytest.approx(tail, abs=1e-4)


def test_few_degrees_of_freedom_widen_the_bounds():
    errors = [0.05, -0.03, 0.04]
    few, many = (doubling_threshold(panel(errors, 0.01, df)) for df in (1.0, np.inf))
    assert few.low < many.low < many.high < few.high


def test_large_errors_use_the_root_and_agree_with_the_exact_tail_nearby():
    # Noncentralities just below and above the switch, at 1e4.
    near = [doubling_threshold(panel([x], 0.01, np.inf)) for x in (0.99, 1.05)]
    for limit, x in zip(near, (0.99, 1.05), strict=True):
        assert (limit.low, limit.high) == pytest.approx((x - 0.0196, x + 0.0196), abs=2e-4)


def test_error_within_noise_is_refused_with_the_numbers():
    limit = doubling_threshold(panel([0.01, -0.008, 0.012], 0.01, 10))
    assert limit.value is None
    # The error itself is that of the table; the errors seen and the noise are named apart.
    assert limit.refused.startswith(
        "the error at calibration, 0.16 %, is not distinguishable from measurement noise: the "
        "first errors have an RMS of 1.02 %, and noise alone would give 1.01 %."
    )
    assert np.expm1(limit.error) == pytest.approx(0.0016, abs=5e-5)
    assert limit.low == 0.0
    assert limit.high > 0.01


def test_nothing_beyond_noise_has_an_error_of_zero():
    limit = doubling_threshold(panel([0.001, -0.001], 0.01, np.inf))
    assert (limit.error, limit.low) == (0.0, 0.0)
    assert limit.high >= 0
    assert limit.refused


@pytest.mark.slow
def test_refusal_has_the_stated_rate():
    rng = np.random.default_rng(0)
    refused = [
        bool(doubling_threshold(panel(0.01 * rng.standard_normal(5), 0.01, np.inf)).refused)
        for _ in range(200)
    ]
    assert np.mean(refused) == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 200))


def test_unknown_noise_counts_errors_as_measured_and_says_so():
    limit = doubling_threshold(panel([0.03, -0.04]))
    assert limit.error == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2))
    assert (limit.low, limit.high) == (None, None)
    assert "noise is unknown" in limit.notes[0]
    zero = doubling_threshold(panel([0.0, 0.0]))
    assert zero.value is None
    assert "all errors at calibration are 0" in zero.refused


def test_noise_known_of_some_series_stands_for_the_others():
    limit = doubling_threshold(panel([0.1, 0.1, 0.1], [0.02, np.nan, np.nan], [5, 0, 5]))
    assert limit.error == pytest.approx(math.sqrt(0.01 - 0.0004))
    assert limit.notes == (
        "The noise of 2 of 3 series is unknown; for these series, the noise of the others is used.",
    )


def test_no_noise_at_all_gives_the_error_itself():
    limit = doubling_threshold(panel([0.1, -0.1], 0.0, np.inf))
    assert (limit.error, limit.low, limit.high) == pytest.approx((0.1, 0.1, 0.1), rel=1e-6)


def test_to_dict_is_json():
    plain = json.loads(json.dumps(doubling_threshold(panel([0.1]), error=0.1).to_dict()))
    assert plain["source"] == "given"
    assert plain["notes"] == []


@pytest.mark.parametrize("error", [0.0, -0.1, np.nan, np.inf])
def test_error_must_be_positive(error):
    with pytest.raises(InputError, match=r"must be positive and finite, got .*error=0\.05"):
        doubling_threshold(panel([0.1]), error=error)


def test_bad_input():
    with pytest.raises(InputError, match="level must be between 0 and 1, e.g. 0.95, got 95"):
        doubling_threshold(panel([0.1]), level=95)
    with pytest.raises(InputError, match="no series"):
        doubling_threshold(panel([]))
    data = panel([0.1, 0.2])
    bad = replace(data, error=np.array([0.1, 0.0, np.nan, 0.0]))
    with pytest.raises(InputError, match=r"got nan in the series s1\."):
        doubling_threshold(bad)
