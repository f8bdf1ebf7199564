"""Scores of quantiles against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.design import QUANTILES
from errcomp.calibration.evaluation.scoring import (
    abstention_curve,
    answered,
    check_probabilities,
    crps_from_quantiles,
    grid_weights,
    pinball,
    pit_from_quantiles,
)
from errcomp.errors import InputError

Z = stats.norm.ppf(QUANTILES)


def normal_crps(y):
    # Gneiting and Raftery (2007), equation 21, for the standard normal law.
    return y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)


@pytest.mark.parametrize("bad", [[], [0.0, 0.5], [0.5, 1.0], [0.5, 0.5], [0.6, 0.5], [np.nan]])
def test_probabilities_that_cannot_be(bad):
    with pytest.raises(InputError, match="ascending numbers between 0 and 1"):
        check_probabilities(bad)


def test_pinball_by_hand():
    found = pinball([[1.0, 2.0], [5.0, 6.0]], [4.0, 4.0], q=[0.5, 0.9])
    assert found == pytest.approx(np.array([[1.5, 1.8], [0.5, 0.2]]))


def test_the_true_quantile_has_the_smallest_pinball_loss():
    y = stats.expon.ppf((np.arange(5000) + 0.5) / 5000)
    at = np.linspace(0, 3, 301)
    loss = [pinball(np.full((5000, 1), one), y, q=[0.7]).mean() for one in at]
    assert at[int(np.argmin(loss))] == pytest.approx(stats.expon.ppf(0.7), abs=0.01)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"shape \(n, 2\), got \(1, 1\) for outcomes of shape"):
        pinball([[1.0]], [1.0], q=[0.1, 0.9])
    with pytest.raises(InputError, match="one row per outcome"):
        crps_from_quantiles([[1.0], [2.0]], [1.0], q=[0.5])


def test_weights_fill_the_unit_interval():
    weights = grid_weights(QUANTILES)
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()
    assert grid_weights([0.5]).tolist() == [1.0]
    # An even grid of middles has even weights.
    assert grid_weights([0.125, 0.375, 0.625, 0.875]) == pytest.approx(np.full(4, 0.25))


def test_crps_of_a_normal_law():
    y = np.linspace(-3, 3, 61)
    found = crps_from_quantiles(np.tile(Z, (61, 1)), y, QUANTILES)
    assert found == pytest.approx(normal_crps(y), rel=0.01)


def test_crps_of_a_fine_grid_is_exact_to_three_digits():
    q = ((np.arange(2000) + 0.5) / 2000).tolist()
    y = np.array([-1.0, 0.0, 2.0])
    found = crps_from_quantiles(np.tile(stats.norm.ppf(q), (3, 1)), y, q)
    assert found == pytest.approx(normal_crps(y), rel=1e-3)


def test_crps_of_a_point_is_the_absolute_error_and_has_its_unit():
    point = np.full((2, len(QUANTILES)), 3.0)
    assert crps_from_quantiles(point, [5.0, 2.5], QUANTILES) == pytest.approx([2.0, 0.5])
    in_other_unit = crps_from_quantiles(1000 * point, [5000.0, 2500.0], QUANTILES)
    assert in_other_unit == pytest.approx([2000.0, 500.0])


def test_pit_inside_outside_and_at_the_quantiles():
    q = [0.2, 0.5, 0.8]
    row = [1.0, 2.0, 4.0]
    y = [0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0]
    found = pit_from_quantiles([row] * 7, y, q)
    assert found == pytest.approx([0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9])


def test_pit_of_a_forecast_with_steps():
    q = [0.2, 0.5, 0.8]
    rows = [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 1.0]]
    found = pit_from_quantiles(rows, [1.0, 0.9, 1.0, 1.1], q)
    assert found == pytest.approx([0.5, 0.1, 0.35, 0.9])


def test_pit_of_the_true_law_is_its_distribution_function():
    y = np.linspace(-2.2, 2.2, 45)
    found = pit_from_quantiles(np.tile(Z, (45, 1)), y, QUANTILES)
    assert found == pytest.approx(stats.norm.cdf(y), abs=0.004)


def test_pit_refuses_quantiles_that_descend():
    with pytest.raises(InputError, match="ascend in every row, got .* in row 2"):
        pit_from_quantiles([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0], q=[0.2, 0.8])


def test_abstention_by_hand():
    curve = abstention_curve([0.4, 0.1, 0.3, 0.2], [4.0, 1.0, 3.0, 2.0])
    assert curve.share.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.mean_error == pytest.approx([0.1, 0.15, 0.2, 0.25])
    assert curve.area == pytest.approx(0.175)
    assert curve.at(0.6) == pytest.approx(0.2)
    assert curve.at(1.0) == pytest.approx(0.25)


def test_equal_widths_gain_nothing_whatever_their_order():
    errors = np.array([0.0, 0.0, 1.0, 1.0])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        curve = abstention_curve(errors[order], np.ones(4))
        assert curve.mean_error == pytest.approx(np.full(4, 0.5))


def test_rounding_makes_no_run_surer():
    curve = abstention_curve([0.0, 1.0], [0.3, 0.1 + 0.2])
    assert curve.mean_error == pytest.approx([0.5, 0.5])


def test_bands_without_end_are_answered_last():
    curve = abstention_curve([0.9, 0.1], [np.inf, 5.0])
    assert curve.mean_error == pytest.approx([0.1, 0.5])


@pytest.mark.parametrize(
    ("error", "width", "words"),
    [([1.0], [1.0, 2.0], "shapes"), ([], [], "shapes"), ([1.0, 2.0], [1.0, np.nan], "row 2")],
)
def test_abstention_refuses(error, width, words):
    with pytest.raises(InputError, match=words):
        abstention_curve(error, width)


@pytest.mark.parametrize("share", [0.0, 1.01, np.nan])
def test_a_share_that_cannot_be(share):
    with pytest.raises(InputError, match="above 0 and at most 1"):
        abstention_curve([1.0], [1.0]).at(share)


def test_at_least_the_share_is_answered():
    assert [answered(n, 0.8) for n in (1, 4, 5, 10, 87)] == [1, 4, 4, 8, 70]
    assert answered(10, 0.3) == 3  # 0.3 · 10 is above 3 in floating point
