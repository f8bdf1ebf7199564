"""Weights of a stack."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from errcomp.calibration.design import QUANTILES
from errcomp.calibration.evaluation import scoring
from errcomp.calibration.evaluation.scoring import grid_weights, pinball, stack_weights
from errcomp.errors import ErrcompError, InputError

Z = stats.norm.ppf(QUANTILES)


def members(seed, sds, n=60):
    """Quantiles of members whose medians err by these standard deviations; the truth is noisy."""
    rng = np.random.default_rng(seed)
    y = 0.05 * rng.standard_normal(n)
    quantiles = [s * rng.standard_normal(n)[:, None] + np.hypot(s, 0.05) * Z for s in sds]
    return np.stack(quantiles), y, np.arange(n) % 6


def loss(weights, quantiles, y):
    average = np.tensordot(weights, quantiles, axes=1)
    return float((pinball(average, y, QUANTILES) @ grid_weights(QUANTILES)).mean())


def best(quantiles, y):
    return scoring._best_weights(quantiles - y[:, None], list(QUANTILES))


def test_the_linear_programme_finds_the_minimum_of_two():
    quantiles, y, _ = members(1, [0.05, 0.08])
    found = best(quantiles, y)
    scan = optimize.minimize_scalar(
        lambda w: loss([w, 1 - w], quantiles, y), bounds=(0, 1), method="bounded"
    )
    assert loss(found, quantiles, y) == pytest.approx(scan.fun, rel=1e-6)
    assert found[0] == pytest.approx(scan.x, abs=1e-3)


def test_no_other_weights_of_four_are_better():
    quantiles, y, _ = members(2, [0.05, 0.06, 0.08, 0.3])
    found = best(quantiles, y)
    lowest = loss(found, quantiles, y)
    rng = np.random.default_rng(0)
    others = [loss(w, quantiles, y) for w in rng.dirichlet(np.full(4, 0.5), size=400)]
    assert lowest <= min(others)
    near = [found + 1e-3 * (np.eye(4)[i] - found) for i in range(4)]
    assert lowest <= min(loss(w, quantiles, y) for w in near) + 1e-12


def test_weights_are_weights_and_do_not_depend_on_order_or_names():
    quantiles, y, groups = members(3, [0.04, 0.08, 0.08])
    found = stack_weights(quantiles, y, groups)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array(list("zyxwvu"), dtype=object)[groups]
    assert stack_weights(quantiles[:, order], y[order], names[order]) == pytest.approx(found)
    assert stack_weights(quantiles[::-1], y, groups) == pytest.approx(found[::-1])


def test_units_and_shifts_do_not_matter():
    quantiles, y, groups = members(4, [0.04, 0.06])
    found = stack_weights(quantiles, y, groups)
    assert stack_weights(1e6 * quantiles, 1e6 * y, groups) == pytest.approx(found, rel=1e-6)
    assert stack_weights(quantiles + 7, y + 7, groups) == pytest.approx(found, rel=1e-6)


def test_members_that_are_exact_count_alike():
    quantiles, y, groups = members(4, [0.04, 0.06])
    exact = np.broadcast_to(y[:, None], quantiles.shape)
    assert stack_weights(exact, y, groups).tolist() == [0.5, 0.5]


def test_a_member_that_is_far_off_gets_next_to_nothing():
    quantiles, y, groups = members(5, [0.02, 1.0])
    assert stack_weights(quantiles, y, groups)[0] > 0.95


def test_twins_share():
    quantiles, y, groups = members(6, [0.05])
    assert stack_weights(np.repeat(quantiles, 2, axis=0), y, groups) == pytest.approx([0.5, 0.5])


def test_exact_members_share():
    y = np.linspace(0, 1, 12)
    quantiles = np.repeat(y[None, :, None], len(QUANTILES), axis=2).repeat(3, axis=0)
    assert stack_weights(quantiles, y, np.arange(12) % 4) == pytest.approx(np.full(3, 1 / 3))


@pytest.mark.parametrize("groups", [1, 2])
def test_too_few_groups_give_equal_weights(groups):
    quantiles, y, _ = members(7, [0.02, 1.0])
    assert stack_weights(quantiles, y, np.arange(60) % groups).tolist() == [0.5, 0.5]


def test_one_member_has_all_the_weight():
    quantiles, y, groups = members(8, [0.3])
    assert stack_weights(quantiles, y, groups).tolist() == [1.0]


def test_the_better_member_only_by_luck_in_one_group_is_not_trusted():
    # In group 0 the first member is perfect, in all others both are the same noise apart.
    quantiles, y, groups = members(9, [0.05, 0.05])
    lucky = quantiles.copy()
    lucky[0, groups == 0] = y[groups == 0][:, None]
    trusting = best(lucky, y)[0]
    assert abs(stack_weights(lucky, y, groups)[0] - 0.5) <= abs(trusting - 0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda q, y, g: (q[0], y, g), "of shape"),
        (lambda q, y, g: (q, y[:-1], g), "got quantiles of shape"),
        (lambda q, y, g: (q, y, g[:-1]), "got quantiles of shape"),
        (lambda q, y, g: (q[:, :, :5], y, g), "for 23 probabilities"),
        (lambda q, y, g: (q[:0], y, g), "got quantiles of shape"),
        (lambda q, y, g: (q, y[:, None], g), "got quantiles of shape"),
        (lambda q, y, g: (np.where(np.arange(60)[:, None] == 3, np.nan, q), y, g), "in row 4 "),
        (lambda q, y, g: (q, np.where(np.arange(60) > 57, np.inf, y), g), r"\(such rows: 2\)"),
    ],
)
def test_stacking_refuses(change, words):
    with pytest.raises(InputError, match=words):
        stack_weights(*change(*members(10, [0.1, 0.2])))


def test_a_solver_that_fails_says_so(monkeypatch):
    failed = optimize.OptimizeResult(status=4, message="numerical trouble")
    monkeypatch.setattr(optimize, "linprog", lambda *_, **__: failed)
    with pytest.raises(ErrcompError, match="found no weights for the stack: numerical trouble"):
        stack_weights(*members(11, [0.1, 0.2]))
