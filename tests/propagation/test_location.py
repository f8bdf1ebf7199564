"""Locations of classes: robust over clusters, each error judged by the other clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp import Kernels
from errcomp.propagation.errors.fitting import huber, locate
from errcomp.propagation.errors.residuals import NOT_MODELLED, residuals


def table(**columns):
    """Return one kernel of one class on each of several devices, unless told otherwise."""
    n = len(columns["measured"])
    default = {
        "run": [f"r{i}" for i in range(n)],
        "device": [f"d{i}" for i in range(n)],
        "kernel": ["k"] * n,
        "predicted": [1.0] * n,
    }
    return Kernels(default | columns)


def located(kernels, kind="log-ratio"):
    found, _ = residuals(kernels, kind, 0.0)
    return found, locate(found, kind)


def test_two_values_have_their_mean():
    assert huber(np.array([1.0, 3.0])) == 2.0


def test_one_value_is_itself():
    assert huber(np.array([4.0])) == 4.0


def test_the_median_where_more_than_half_are_equal():
    assert huber(np.array([2.0, 2.0, 2.0, 900.0])) == 2.0


def test_the_estimating_equation_is_solved():
    x = np.random.default_rng(1).standard_t(3, size=200)
    found = huber(x)
    scale = 1.4826 * np.median(np.abs(x - np.median(x)))
    assert np.clip((x - found) / scale, -1.345, 1.345).sum() == pytest.approx(0, abs=1e-8)


def test_the_last_step_is_returned_where_there_are_no_more(monkeypatch):
    monkeypatch.setattr("errcomp.propagation.errors.fitting._STEPS", 1)
    x = np.array([0.0, 1.0, 2.0, 9.0])
    assert 1.5 < huber(x) < x.mean()


def test_one_outlier_moves_the_location_by_a_bounded_amount():
    x = np.linspace(-1, 1, 11)
    near, far = huber(np.append(x, 50.0)), huber(np.append(x, 5e9))
    assert far == pytest.approx(near)
    assert abs(far) < 0.3


def test_equivariant_to_shift_and_scale():
    x = np.random.default_rng(2).standard_normal(9)
    assert huber(3 * x + 7) == pytest.approx(3 * huber(x) + 7)


def test_each_row_is_judged_by_the_other_devices():
    found, where = located(table(measured=[1.1, 0.9]))
    assert where.of_class.tolist() == pytest.approx([1.0])
    assert where.of_row.tolist() == pytest.approx([0.9, 1.1])
    assert where.n_clusters.tolist() == [2]
    assert where.overall == pytest.approx(1.0)
    assert found.clusters.tolist() == ["d0", "d1"]


def test_kernels_of_one_device_count_with_their_time():
    # 3 · 10 at ratio 1.2 and 1 · 10 at ratio 0.8 on one device: (36 + 8) / 40 = 1.1.
    kernels = table(
        run=["a", "a", "b"],
        device=["x", "x", "y"],
        kernel=["k", "l", "k"],
        kernel_class=["c", "c", "c"],
        count=[3, 1, 1],
        predicted=[10.0, 10.0, 10.0],
        measured=[12.0, 8.0, 10.0],
    )
    _, where = located(kernels)
    assert where.of_row.tolist() == pytest.approx([1.0, 1.0, 1.1])


def test_a_class_of_one_device_is_judged_by_all_classes_of_the_others():
    kernels = table(
        run=["a", "a", "b"],
        device=["x", "x", "y"],
        kernel=["k", "l", "k"],
        kernel_class=["c", "only", "c"],
        measured=[1.2, 2.0, 0.9],
    )
    _, where = located(kernels)
    # Other devices are y alone, where all classes together have 0.9.
    assert where.of_row[1] == pytest.approx(0.9)


def test_with_one_cluster_there_are_no_others():
    kernels = table(
        run=["a", "a"], device=["x", "x"], kernel=["k", "l"], kernel_class=["c", "c"],
        measured=[1.2, 0.8],
    )  # fmt: skip
    _, where = located(kernels)
    assert where.of_row.tolist() == pytest.approx([1.0, 1.0])


def test_many_clusters_are_not_left_out_one_by_one():
    rng = np.random.default_rng(3)
    _, where = located(table(measured=np.exp(0.1 * rng.standard_normal(130))))
    assert set(where.of_row.tolist()) == {where.of_class[0]}


def test_a_class_that_others_measured_as_nothing_is_judged_by_all_classes():
    kernels = table(
        run=["a", "a", "b", "b"],
        device=["x", "x", "y", "y"],
        kernel=["k", "l"] * 2,
        kernel_class=["c", "zero"] * 2,
        measured=[1.0, 0.5, 1.0, 0.0],
    )
    _, where = located(kernels)
    overall = (0.75 + 0.5) / 2
    # On x the others (y) have 0; on y the others have 0.5.
    assert where.of_row.tolist() == pytest.approx([1.0, overall, 1.0, 0.5])


def test_an_absolute_location_of_0_is_a_location():
    kernels = table(
        run=["a", "a", "b", "b", "c", "c"],
        device=["x", "x", "y", "y", "z", "z"],
        kernel=["k", "l"] * 3,
        kernel_class=["exact", "slow"] * 3,
        measured=[1.0, 6.0, 1.0, 6.0, 4.0, 6.0],
    )
    _, where = located(kernels, "absolute")
    assert where.overall == pytest.approx(2.5)
    assert where.of_row.tolist() == pytest.approx([1.5, 5.0, 1.5, 5.0, 0.0, 5.0])


def test_what_is_not_modelled_is_judged_by_itself_alone():
    kernels = table(
        run=["a", "a", "b"],
        device=["x", "x", "y"],
        kernel=["k", "small", "k"],
        predicted=[1.0, 0.0, 1.0],
        measured=[1.0, 0.25, 1.0],
    )
    found, where = located(kernels)
    at = found.labels[found.label] == NOT_MODELLED
    assert where.of_row[at].tolist() == pytest.approx([0.25])
    # Its share of the time is no ratio of measured to predicted: it has no part in the overall.
    assert where.overall == pytest.approx(1.0)
    assert math.isfinite(where.of_class.sum())
