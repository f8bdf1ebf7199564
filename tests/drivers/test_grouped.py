"""The parts of the regression that know of groups, against closed forms and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.drivers.grouped import clustered_least_squares, variance_ratio


def balanced(seed, spread, *, groups=10, rows=12):
    """Rows of groups of one size, with two columns that vary in the same way within each."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(groups), rows)
    x = np.column_stack([np.ones(len(codes)), np.tile([0.0, 1.0], len(codes) // 2)])
    y = spread * rng.normal(size=groups)[codes] + 0.3 * x[:, 1] + rng.normal(size=len(codes))
    return y, x, codes


def residual_sum(y, x):
    return np.sum((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("spread", [0.0, 0.2, 1.0, 30.0])
def test_ratio_of_a_balanced_design_is_that_of_the_analysis_of_variance(seed, spread):
    y, x, groups = balanced(seed, spread)
    within = residual_sum(y, np.column_stack([np.eye(10)[groups], x[:, 1]]))
    between = (residual_sum(y, x) - within) / 9
    within /= 120 - 10 - 1
    expected = max(0.0, (between / within - 1) / 12)
    assert variance_ratio(y, x, groups) == pytest.approx(expected, rel=1e-9)


def test_ratio_of_unequal_groups_is_where_statsmodels_has_its_highest_likelihood():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(7), [2, 3, 5, 8, 1, 13, 4])
    x = np.column_stack([np.ones(36), rng.normal(size=(36, 2)), groups % 2])
    y = rng.normal(size=7)[groups] + rng.normal(size=36)
    ratio = variance_ratio(y, x, groups)
    model = sm.MixedLM(y, x, groups=groups)
    model.reml, model.cov_pen, model.fe_pen = True, None, None

    def likelihood(at):
        return model.loglike(np.array([math.sqrt(at)]), profile_fe=True)

    best = likelihood(ratio)
    assert 0.1 < ratio < 10
    assert best > likelihood(ratio * 1.001)
    assert best > likelihood(ratio / 1.001)
    assert best > max(likelihood(at) for at in np.geomspace(1e-3, 1e3, 40))


def test_ratio_does_not_depend_on_the_units_nor_on_the_order_of_rows():
    y, x, groups = balanced(3, 0.5)
    ratio = variance_ratio(y, x, groups)
    order = np.random.default_rng(0).permutation(len(y))
    assert variance_ratio(y[order], x[order], groups[order]) == pytest.approx(ratio, rel=1e-9)
    assert variance_ratio(1e6 * y, x * [1.0, 1e-6], groups) == pytest.approx(ratio, rel=1e-9)


def test_ratio_is_unknown_where_the_groups_explain_no_more_than_the_columns():
    y, x, groups = balanced(1, 1.0)
    assert variance_ratio(y, x, np.arange(len(y))) is None
    assert variance_ratio(y, np.column_stack([np.eye(10)[groups], x[:, 1]]), groups) is None


def test_ratio_is_infinite_where_nothing_varies_within_groups():
    _, x, groups = balanced(1, 1.0)
    means = np.random.default_rng(5).normal(size=10)
    assert variance_ratio(means[groups], x, groups) == math.inf
    assert variance_ratio(np.full(len(x), 0.3), x, groups) == math.inf
    assert variance_ratio(np.zeros(len(x)), x, groups) == math.inf


def test_clustered_errors_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(6)
    groups = rng.integers(0, 9, 80)
    x = np.column_stack([np.ones(80), rng.normal(size=(80, 3)), groups > 4]).astype(float)
    y = rng.normal(size=9)[groups] + x @ [1.0, 2.0, 0.0, -1.0, 0.5] + rng.normal(size=80)
    fit = sm.OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": groups})
    coefficients, errors = clustered_least_squares(y, x, groups)
    assert coefficients == pytest.approx(fit.params, rel=1e-10)
    assert errors == pytest.approx(fit.bse, rel=1e-10)


def test_a_coefficient_that_no_group_moves_has_no_error():
    # Groups 0 to 2 agree with each other, so that the mean of their level is known exactly.
    groups = np.repeat(np.arange(6), 4)
    level = (groups > 2).astype(float)
    y = np.where(level == 0, 0.1, 0.1 * groups)
    coefficients, errors = clustered_least_squares(y, np.column_stack([1 - level, level]), groups)
    assert coefficients == pytest.approx([0.1, 0.4])
    assert errors[0] < 1e-15
    # Means of 0.3, 0.4 and 0.5: 6/5 for six groups, 23/22 for the two columns.
    assert errors[1] == pytest.approx(math.sqrt(6 / 5 * 23 / 22 * 2 * (0.1 / 3) ** 2))
