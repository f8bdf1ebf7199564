"""The bias-reduced comparison of devices against closed forms and a direct matrix calculation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, stats

from errcomp.drivers.between import Cells, between_test, bias_reduced


def cells_of(configuration, unit, is_b):
    return Cells(np.array(configuration), np.array(unit), np.array(is_b, dtype=bool))


def test_one_configuration_gives_the_difference_of_means_and_its_welch_error():
    rng = np.random.default_rng(1)
    y = rng.normal(size=9)
    side = np.arange(9) >= 5
    beta, se, df = bias_reduced(cells_of([0] * 9, range(9), side), y)
    a, b = y[~side], y[side]
    assert beta == pytest.approx(b.mean() - a.mean())
    assert se == pytest.approx(np.sqrt(a.var(ddof=1) / 5 + b.var(ddof=1) / 4))
    # Imbens and Kolesár (2016), closed form of the Bell-McCaffrey degrees of freedom.
    n0, n1 = 5, 4
    closed = (n0 + n1) ** 2 * (n0 - 1) * (n1 - 1)
    closed /= n1**2 * (n1 - 1) + n0**2 * (n0 - 1)
    assert df == pytest.approx(closed)


def test_unbalanced_cells_equal_the_textbook_matrices():
    rng = np.random.default_rng(2)
    configuration = np.repeat(np.arange(6), 7)
    unit = np.tile(np.arange(7), 6)
    keep = rng.random(42) < 0.7
    configuration, unit = configuration[keep], unit[keep]
    is_b = unit >= 4
    y = rng.normal(size=len(unit)) + 0.5 * is_b + configuration
    beta, se, df = bias_reduced(cells_of(configuration, unit, is_b), y)
    x = np.column_stack([is_b, *(configuration == c for c in range(6))]).astype(float)
    bread = np.linalg.inv(x.T @ x)
    residual_maker = np.eye(len(y)) - x @ bread @ x.T
    contrast = bread[0] @ x.T
    weights = []
    for u in range(7):
        rows = unit == u
        root = linalg.sqrtm(np.linalg.inv(residual_maker[np.ix_(rows, rows)])).real
        weights.append(residual_maker[:, rows] @ root @ contrast[rows])
    gram = np.array([[p @ q for q in weights] for p in weights])
    assert beta == pytest.approx((bread @ x.T @ y)[0])
    assert se == pytest.approx(np.sqrt(sum((p @ y) ** 2 for p in weights)))
    assert df == pytest.approx(np.trace(gram) ** 2 / np.sum(gram**2))


def test_hard_configurations_are_not_blamed_on_the_devices_that_ran_them():
    # Device 3 to 5 (level b) ran the hard configuration 1 more often; within each, b adds 1.
    configuration = [0, 0, 0, 0, 1, 1, 1, 1]
    unit = [0, 1, 2, 3, 0, 3, 4, 5]
    is_b = [u >= 3 for u in unit]
    y = np.array([10.0 * c + b for c, b in zip(configuration, is_b, strict=True)])
    beta, _, _ = bias_reduced(cells_of(configuration, unit, is_b), y)
    assert beta == pytest.approx(1.0)


def test_a_unit_that_alone_fixes_a_direction_does_not_break_the_error():
    # Unit 0 holds the only entry at a: its block of I - H is singular.
    beta, se, df = bias_reduced(
        cells_of([0, 0, 0], [0, 1, 2], [False, True, True]), np.array([0.0, 1.0, 3.0])
    )
    assert beta == pytest.approx(2.0)
    assert np.isfinite([se, df]).all()


def test_interval_p_value_and_check_belong_together():
    rng = np.random.default_rng(3)
    y = rng.normal(size=8)
    side = np.arange(8) >= 4
    cells = cells_of([0] * 8, range(8), side)
    test = between_test(cells, y, level=0.95, rng=rng)
    beta, se, df = bias_reduced(cells, y)
    half = stats.t.ppf(0.975, df) * se
    assert (test.low, test.high) == pytest.approx((beta - half, beta + half))
    assert test.p_value == pytest.approx(2 * stats.t.sf(abs(beta) / se, df))
    assert test.p_check == pytest.approx(
        stats.mannwhitneyu(y[~side], y[side], method="exact").pvalue
    )


@pytest.mark.parametrize("n_b", [1, 2])
def test_fewer_than_three_units_on_a_side_give_no_interval(n_b):
    rng = np.random.default_rng(4)
    n = 5 + n_b
    cells = cells_of([0] * n, range(n), np.arange(n) >= 5)
    test = between_test(cells, rng.normal(size=n), level=0.95, rng=rng)
    assert test.low is None
    assert "3 needed on each side" in test.method


def test_identical_values_have_no_spread():
    cells = cells_of([0] * 6, range(6), np.arange(6) >= 3)
    test = between_test(cells, np.full(6, 0.2), level=0.95, rng=np.random.default_rng(0))
    assert test.method == "none: no spread between clusters"
