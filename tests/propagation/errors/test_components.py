"""Variance components by moments: examples that can be done by hand, and intervals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from errcomp import Kernels
from errcomp.propagation import fit_errors
from errcomp.propagation.errors.components import (
    Components,
    Interval,
    _isotonic,
    _ratios,
    estimate_components,
)
from errcomp.propagation.errors.residuals import LEVELS, Residuals


def rows(cluster, label, run, kernel, name=None):
    """Residuals of which only the groups matter."""
    n = len(cluster)
    codes = [np.asarray(c, dtype=np.int64) for c in (label, cluster, run, kernel)]
    return Residuals(
        np.ones(n), np.ones(n), *codes, np.arange(n) if name is None else np.asarray(name),
        np.ones(n), np.array(list("abcdef")), np.array([f"d{i}" for i in range(max(cluster) + 1)]),
    )  # fmt: skip


def estimated(found, residual, weight=None, spread=None):
    """Components of these residuals, weights and spreads; without intervals."""
    one = np.ones(len(found.y))
    given = tuple(np.asarray(one if x is None else x) for x in (residual, weight, spread))
    return estimate_components(found, lambda _: given, cluster="device", level=None)


def two_kernels(ratios, **columns):
    """Two devices with one run of two kernels each."""
    data = {
        "run": ["a", "a", "b", "b"],
        "device": ["x", "x", "y", "y"],
        "kernel": ["k", "l"] * 2,
        "kernel_class": ["c"] * 4,
        "predicted": [1.0, 3.0] * 2,
    } | columns
    return Kernels(data | {"measured": np.array(ratios) * data["predicted"]})


def test_errors_that_agree_within_a_run_are_fully_correlated():
    found = fit_errors(two_kernels([1.1, 1.1, 0.9, 0.9])).components
    of_class, kernel, row = found.correlation[1:]
    assert of_class == pytest.approx(1.0)
    assert (kernel, row) == (1.0, 1.0)
    # Each run has one class, and each device one run: nothing shares just those.
    assert np.isnan([found.levels[0].low, found.device.value, found.device_class.value]).all()


def test_errors_that_cancel_within_a_run_are_not_correlated():
    kernels = two_kernels([1.1, 0.9, 0.9, 1.1], predicted=[1.0, 1.0] * 2, shape=["1", "2"] * 2)
    assert fit_errors(kernels).components.correlation == (0.0, 0.0, 1.0, 1.0)


def test_errors_that_agree_across_the_classes_of_a_run_are_those_of_the_run():
    kernels = two_kernels([1.1, 1.1, 0.9, 0.9], kernel_class=["c", "d"] * 2)
    assert fit_errors(kernels).components.correlation == pytest.approx((1.0,) * 4)


def test_errors_that_agree_across_the_runs_of_a_device_are_those_of_the_device():
    alike = two_kernels(
        [1.1, 1.1, 0.9, 0.9], run=["a", "b", "c", "d"], predicted=[1.0, 2.0, 1.0, 2.0]
    )
    found = fit_errors(alike).components
    assert found.device_class.value == pytest.approx(1.0)
    assert math.isnan(found.device.value)
    apart = two_kernels([1.1, 1.1, 0.9, 0.9], run=["a", "b", "c", "d"], kernel_class=["c", "d"] * 2)
    assert fit_errors(apart).components.device.value == pytest.approx(1.0)


def test_runs_of_one_device_do_not_tell_what_a_device_shares():
    found = fit_errors(two_kernels([1.1, 1.2, 0.9, 1.0], device=["x"] * 4)).components
    assert (found.cluster, found.n_clusters) == ("run", 2)
    assert np.isnan([found.device.value, found.device_class.value]).all()


def test_a_correlation_between_runs_is_no_more_than_1():
    # Runs 0 and 1 of device 0 agree, and run 2 has no error: 2 / 2 over 2 / 3.
    found = estimated(rows([0, 0, 1], [0] * 3, [0, 1, 2], [0, 1, 2]), [1.0, 1.0, 0.0])
    assert found.device_class.value == 1.0


def test_three_fifths_of_the_variance_shared_by_hand():
    found = estimated(rows([0, 0, 1, 1], [0] * 4, [0, 0, 1, 1], [0, 1, 0, 1]), [3.0, 1.0, -1.0, -3])
    # Σ r r' over ordered pairs of a run: 2 · 3 + 2 · 3 = 12 of 4 pairs; Σ r² = 20 of 4: 3 / 5.
    assert found.correlation[1] == pytest.approx(0.6)
    assert found.scale == pytest.approx(math.sqrt(5))


def test_shares_are_the_steps_of_the_correlation():
    groups = rows([0, 0, 1, 1], [0] * 4, [0, 0, 1, 1], [0, 0, 0, 0])
    found = estimated(groups, [3.0, 1.0, -1.0, -3])
    assert found.shares == pytest.approx({"run": 0, "class": 0, "kernel": 0.6, "row": 0.4})


def test_weights_are_shares_of_time():
    groups = rows([0, 0, 1, 1], [0] * 4, [0, 0, 1, 1], [0, 1, 0, 1])
    found = estimated(groups, [1.0, 1.0, 1.0, -1.0], [0.5, 0.5, 0.9, 0.1])
    # Pairs: (0.25 − 0.09) / (0.25 + 0.09); rows: 1.
    assert found.correlation[1] == pytest.approx(0.16 / 0.34)
    assert found.scale == pytest.approx(1.0)


def test_spreads_of_the_classes_are_what_residuals_are_compared_with():
    groups = rows([0, 0, 1, 1], [0, 1] * 2, [0, 0, 1, 1], [0, 1, 0, 1])
    found = estimated(groups, [0.1, 0.4, -0.1, -0.4], None, [0.1, 0.4, 0.1, 0.4])
    assert found.correlation[0] == pytest.approx(1.0)
    assert found.scale == pytest.approx(1.0)


def test_a_balanced_design_has_the_anova_estimate():
    # One class; D runs of n kernels each: (MSB − MSW) / (MSB + (n − 1) MSW) of residuals about 0,
    # where the between mean square has D degrees of freedom.
    rng = np.random.default_rng(4)
    runs, n = 6, 5
    r = np.repeat(rng.standard_normal(runs), n) + rng.standard_normal(runs * n)
    run = np.repeat(np.arange(runs), n)
    found = estimated(rows(run, [0] * len(r), run, np.arange(len(r))), r)
    between = n * (np.bincount(run, r) / n) @ (np.bincount(run, r) / n) / runs
    within = (r @ r - runs * between) / (runs * (n - 1))
    expected = (between - within) / (between + (n - 1) * within)
    assert found.correlation[1] == pytest.approx(expected)


def test_a_kernel_listed_in_parts_counts_as_one_row():
    # In parts of weight 1/4 and 3/4 of the second kernel: the same sums.
    whole = estimated(rows([0, 0, 1, 1], [0] * 4, [0, 0, 1, 1], [0, 1, 0, 1]), [3.0, 1.0, -1.0, -3])
    groups = rows([0, 0, 0, 1, 1], [0] * 5, [0, 0, 0, 1, 1], [0, 1, 1, 0, 1], [0, 1, 1, 0, 1])
    parts = estimated(groups, [3.0, 1.0, 1.0, -1.0, -3.0], [1, 0.25, 0.75, 1, 1])
    assert parts.correlation == pytest.approx(whole.correlation)
    assert parts.scale == pytest.approx(whole.scale)


def test_no_error_has_no_correlation():
    found = fit_errors(two_kernels([1.0, 1.0, 1.0, 1.0])).components
    assert found.correlation[:2] == (0.0, 0.0)
    assert found.correlation[-1] == 1.0
    assert found.scale == 1.0


def test_one_cluster_has_no_interval():
    one = two_kernels([1.1, 1.2, 0.9, 1.0], device=["x"] * 4, run=["a"] * 4)
    found = fit_errors(one).components
    assert (found.n_clusters, found.cluster) == (1, "run")
    assert np.isnan([level.low for level in found.levels]).all()


def test_intervals_are_not_made_where_nobody_asks():
    found = fit_errors(two_kernels([1.1, 1.1, 0.9, 0.9]), level=None).components
    assert found.confidence is None
    assert np.isnan([level.high for level in found.levels]).all()


def test_intervals_widen_with_confidence_and_hold_the_estimate():
    rng = np.random.default_rng(6)
    d = np.repeat(np.arange(8), 4)
    ratios = np.exp(0.1 * rng.standard_normal(8)[d] + 0.1 * rng.standard_normal(32))
    kernels = Kernels(
        {"run": d.astype(str), "device": d.astype(str), "kernel": np.tile(list("klmn"), 8),
         "kernel_class": ["c"] * 32, "predicted": np.tile([1.0, 2.0, 3.0, 4.0], 8),
         "measured": ratios * np.tile([1.0, 2.0, 3.0, 4.0], 8)}
    )  # fmt: skip
    narrow, wide = (fit_errors(kernels, level=c).components for c in (0.5, 0.9))
    inner, outer = narrow.levels[1], wide.levels[1]
    assert outer.low < inner.low < inner.value < inner.high < outer.high
    assert (wide.n, wide.n_clusters, wide.cluster) == (32, 8, "device")


def test_more_clusters_than_blocks_are_left_out_in_groups(monkeypatch):
    monkeypatch.setattr("errcomp.propagation.errors.components._BLOCKS", 8)
    rng = np.random.default_rng(7)
    n = 20
    kernels = Kernels(
        {"run": np.arange(2 * n) // 2, "device": np.arange(2 * n) // 2, "kernel": ["k", "l"] * n,
         "kernel_class": ["c"] * (2 * n), "predicted": [1.0, 2.0] * n,
         "measured": np.array([1.0, 2.0] * n) * np.exp(0.1 * np.repeat(rng.standard_normal(n), 2))}
    )  # fmt: skip
    found = fit_errors(kernels).components
    assert found.levels[1].value == pytest.approx(1.0)
    assert found.levels[1].low <= 1.0 <= found.levels[1].high + 1e-9
    assert found.n_clusters == n


def test_correlations_that_fall_from_coarse_to_fine_are_pooled():
    # 0.5, then 0.1 twice as heavy: both become (0.5 + 0.2) / 3.
    found = _isotonic(np.array([0.5, 0.2, 0.9, 1.0]), np.array([1.0, 2.0, 1.0, 1.0]))
    assert found == pytest.approx([0.7 / 3, 0.7 / 3, 0.9, 1.0])


def test_negative_correlations_are_0():
    assert _isotonic(np.array([-0.4, 0.1, 0.2, 1.0]), np.ones(4)).tolist() == [0.0, 0.1, 0.2, 1.0]


def test_a_level_that_nothing_shares_has_the_correlation_of_the_level_above():
    found = _isotonic(np.array([0.3, 9.0, 0.5, 1.0]), np.array([1.0, 1e-20, 1.0, 1.0]))
    assert found.tolist() == [0.3, 0.3, 0.5, 1.0]
    found = _isotonic(np.array([9.0, 0.3, 0.5, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    assert found.tolist() == [0.0, 0.3, 0.5, 1.0]


def test_what_the_predictor_cannot_tell_apart_errs_alike_if_nothing_is_known_of_it():
    found = _isotonic(np.array([0.1, 0.3, 9.0, 0.8]), np.array([1.0, 1.0, 0.0, 1.0]))
    assert found.tolist() == [0.1, 0.3, 0.8, 0.8]


def test_nothing_known_is_nothing_shared():
    assert _isotonic(np.zeros(4), np.zeros(4)).tolist() == [0.0] * 4


def test_sums_over_pairs_are_those_of_all_pairs():
    rng = np.random.default_rng(8)
    cluster, label = np.array([0, 0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1, 0, 0])
    run = np.array([0, 0, 0, 1, 1, 2, 3])
    found = rows(cluster, label, run, [0, 0, 1, 0, 0, 0, 1])
    residual, weight, spread = rng.standard_normal((3, 7))
    groups = found.groups()
    alike = np.array([[sum(g[i] == g[j] for g in groups) for j in range(7)] for i in range(7)])
    across = (cluster[:, None] == cluster) & (run[:, None] != run)
    same = label[:, None] == label
    kinds = [*(alike == level + 1 for level in range(len(LEVELS))), across & ~same, across & same]
    sums = _ratios(found, residual, weight, spread)
    for of_each, x in zip(sums, (weight * residual, weight * spread), strict=True):
        products = np.outer(x, x)
        assert of_each == pytest.approx([products[kind].sum() for kind in kinds])


def test_as_plain_values():
    levels = (Interval(0.1, 0.0, 0.2), Interval(0.3, 0.1, 0.5), Interval(0.6), Interval(1.0))
    found = Components(
        levels, Interval(0.05, -0.1, 0.2), Interval(math.nan), 1.1, 0.9, 100, 8, "device"
    )
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["n_clusters"] == 8
    assert [level["level"] for level in plain["levels"]] == list(LEVELS)
    assert [level["low"] for level in plain["levels"]] == [0.0, 0.1, None, None]
    assert [level["share"] for level in plain["levels"]] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert plain["across_runs_of_a_device"]["same_class"]["correlation"] is None
    assert plain["across_runs_of_a_device"]["other_class"]["correlation"] == 0.05
