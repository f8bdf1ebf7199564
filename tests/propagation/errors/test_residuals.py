"""Kernels as the error model sees them: ratios, weights, groups, and what is not modelled."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from errcomp import Kernels
from errcomp.errors import InputError
from errcomp.propagation.errors.residuals import (
    LEVELS,
    NOT_MODELLED,
    by_run,
    combine,
    prepare,
    residuals,
    same_kernel,
)

RUNS = {
    "run": ["a", "a", "b", "b"],
    "device": ["x", "x", "y", "y"],
    "kernel": ["gemm", "soft"] * 2,
    "kernel_class": ["Linear", "Softmax"] * 2,
    "count": [2, 4, 2, 4],
    "predicted": [3.0, 0.5, 6.0, 1.0],
    "measured": [3.3, 0.6, 6.0, 0.5],
}


def table(**columns):
    return Kernels({**RUNS, **columns})


def without(*names, **columns):
    return Kernels({**{n: v for n, v in RUNS.items() if n not in names}, **columns})


def one_run(predicted, **columns):
    names = [f"k{i}" for i in range(len(predicted))]
    return Kernels({"kernel": names, "predicted": predicted} | columns)


# --- residuals ---


def test_ratios_and_shares_of_the_predicted_time_by_hand():
    found, word = residuals(table(), "log-ratio", 0.0)
    assert word == "device"
    assert found.y.tolist() == pytest.approx([1.1, 1.2, 1.0, 0.5])
    assert found.weight.tolist() == pytest.approx([0.75, 0.25, 0.75, 0.25])
    assert found.labels[found.label].tolist() == ["Linear", "Softmax"] * 2
    assert found.size.tolist() == [3.0, 0.5, 6.0, 1.0]


def test_weighted_ratios_add_up_to_that_of_the_total():
    found, _ = residuals(table(), "relative", 0.0)
    totals = table().totals()
    assert np.bincount(found.run, found.weight * found.y) == pytest.approx(
        totals.measured / totals.predicted
    )


def test_absolute_errors_count_instances():
    found, _ = residuals(table(), "absolute", 0.0)
    assert found.y.tolist() == pytest.approx([0.3, 0.1, 0.0, -0.5])
    assert found.weight.tolist() == pytest.approx([1 / 3, 2 / 3] * 2)


def test_with_one_device_the_runs_are_the_clusters():
    found, word = residuals(table(device=["x"] * 4), "log-ratio", 0.0)
    assert word == "run"
    assert found.clusters.tolist() == ["a", "b"]


def test_without_a_device_the_runs_are_the_clusters():
    found, word = residuals(without("device"), "log-ratio", 0.0)
    assert (word, found.clusters.tolist()) == ("run", ["a", "b"])


def test_runs_that_are_not_measured_throughout_are_left_out():
    found, _ = residuals(table(measured=[3.3, None, 6.0, 0.5]), "log-ratio", 0.0)
    assert len(found.y) == 2
    assert found.clusters.tolist() == ["b"]


def test_runs_with_a_failed_kernel_are_left_out():
    found, _ = residuals(table(status=["ok", "failed", "ok", "ok"]), "log-ratio", 0.0)
    assert found.y.tolist() == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize(
    "kernels",
    [without("measured"), table(measured=[None, 1.0, None, 1.0])],
    ids=["no measurement", "no run complete"],
)
def test_nothing_to_fit_to_is_an_error_with_a_remedy(kernels):
    with pytest.raises(InputError, match="no run has predictions .* give the errors"):
        residuals(kernels, "log-ratio", 0.0)


def test_kernels_without_any_prediction_are_to_be_joined_with_some():
    with pytest.raises(InputError, match=r"not predicted, so .*errcomp join .*errcomp calibrate"):
        residuals(without("predicted"), "log-ratio", 0.0)


def test_kernels_of_several_tools_are_no_predictor():
    with pytest.raises(InputError, match="several tools .p, q.*--tool"):
        residuals(table(tool=["p", "p", "q", "q"]), "log-ratio", 0.0)


def test_groups_are_nested_and_named():
    found, _ = residuals(table(), "log-ratio", 0.0)
    groups = found.groups()
    assert len(groups) == len(LEVELS)
    for coarse, fine in pairwise(groups):
        pairs = set(zip(fine.tolist(), coarse.tolist(), strict=True))
        assert len(pairs) == len(set(fine.tolist()))


def test_a_kernel_listed_twice_is_one_row():
    twice = table(
        run=["a"] * 4, device=["x"] * 4, kernel=["k", "k", "l", "m"], kernel_class=["c"] * 4,
        predicted=[1.0, 1.0, 1.0, 2.0],
    )  # fmt: skip
    found, _ = residuals(twice, "log-ratio", 0.0)
    kernel, row = found.groups()[-2:]
    assert kernel.tolist() == [0, 0, 0, 1]
    assert row.tolist() == [0, 0, 1, 2]


def test_taking_rows_numbers_groups_anew():
    found, _ = residuals(table(), "log-ratio", 0.0)
    part = found.take(found.cluster == 1)
    assert part.clusters.tolist() == ["y"]
    assert part.cluster.tolist() == part.run.tolist() == [0, 0]
    assert part.labels[part.label].tolist() == ["Linear", "Softmax"]
    assert part.y.tolist() == pytest.approx([1.0, 0.5])
    assert [g.max() for g in part.groups()] == [0, 1, 1, 1]


# --- what is not modelled ---


def test_kernels_predicted_to_take_no_time_share_the_modelled_time():
    parts = prepare(one_run([8.0, 0.0, 0.0], count=[1, 3, 1]), 0.0)
    assert parts.below.tolist() == [False, True, True]
    assert parts.value.tolist() == [8.0, 2.0, 2.0]
    assert parts.labels.tolist() == ["k0", NOT_MODELLED, NOT_MODELLED]
    assert parts.modelled.tolist() == [8.0]


def test_below_the_floor_up_to_one_per_cent_of_the_run_from_the_smallest_on():
    # Shares 0.4, 0.5, 0.6 and 0.7 %: the first two make 0.9 %, with the third it is 1.5 %.
    predicted = [97.8, 0.4, 0.5, 0.6, 0.7]
    parts = prepare(one_run(predicted), 10.0)
    assert parts.below.tolist() == [False, True, True, False, False]


def test_what_is_not_below_the_floor_is_modelled_however_small():
    parts = prepare(one_run([99.9, 0.1]), 0.1)
    assert not parts.below.any()


def test_kernels_of_equal_prediction_are_below_together_or_not_at_all():
    # Two of 0.6 % each are 1.2 %: neither is below, in whatever order they come.
    parts = prepare(one_run([98.8, 0.6, 0.6]), 10.0)
    assert not parts.below.any()


def test_the_floor_is_asked_run_by_run():
    kernels = Kernels(
        {
            "run": ["a", "a", "b", "b"],
            "kernel": ["k", "l"] * 2,
            "predicted": [100.0, 0.5, 1.0, 0.5],
        }
    )
    assert prepare(kernels, 0.8).below.tolist() == [False, True, False, False]


def test_all_that_is_not_modelled_counts_as_one_kernel():
    kernels = one_run(
        [10.0, 0.0, 0.0], count=[2, 3, 1], measured=[11.0, 0.2, 1.4], kernel_class=["c", "d", "e"]
    )
    found, _ = residuals(kernels, "log-ratio", 0.0)
    assert found.labels[found.label].tolist() == ["c", NOT_MODELLED]
    # 3 · 0.2 + 1.4 of a modelled time of 20.
    assert found.y.tolist() == pytest.approx([1.1, 0.1])
    assert found.weight.tolist() == [1.0, 1.0]
    assert np.isnan(found.size).tolist() == [False, True]


def test_absolute_errors_have_nothing_that_is_not_modelled():
    kernels = one_run([10.0, 0.0], measured=[11.0, 0.2], kernel_class=["c", "d"])
    found, _ = residuals(kernels, "absolute", 5.0)
    assert found.labels.tolist() == ["c", "d"]
    assert found.y.tolist() == pytest.approx([1.0, 0.2])


def test_a_run_predicted_to_take_no_time_is_named():
    kernels = Kernels({"run": ["a", "b"], "kernel": ["k", "k"], "predicted": [1.0, 0.0]})
    with pytest.raises(InputError, match="all kernels are predicted to take no time in run b"):
        prepare(kernels, 0.0)


def test_a_missing_prediction_is_named():
    columns = {"run": ["a", "b"], "kernel": ["k", "k"], "measured": [1.0, 1.0]}
    with pytest.raises(InputError, match="the kernels were measured but not predicted"):
        prepare(Kernels(columns), 0.0)


def test_a_class_cannot_have_the_name_of_what_is_not_modelled():
    with pytest.raises(InputError, match=r"a kernel class is named '\(not modelled\)'"):
        prepare(one_run([1.0], kernel_class=[NOT_MODELLED]), 0.0)


# --- helpers ---


def test_combinations_are_numbered_without_gaps():
    found = combine(np.array(["b", "a", "b"]), np.array([7, 7, -7]))
    assert sorted(found.tolist()) == [0, 1, 2]
    assert combine(np.array([5, 5, 2])).tolist() == [1, 1, 0]


def test_the_same_kernel_has_class_prediction_and_shape_in_common():
    kernels = table(
        kernel_class=["c", "c", "c", "d"],
        predicted=[1.0, 1.0, 1.0, 1.0],
        shape=["2", "2", "3", "2"],
    )
    found = same_kernel(kernels)
    assert found[0] == found[1]
    assert len({found[0], found[2], found[3]}) == 3


def test_without_shapes_the_prediction_decides():
    found = same_kernel(table(kernel_class=["c"] * 4, predicted=[1.0, 1.0, 1.0 + 1e-15, 2.0]))
    assert found[0] == found[1]
    assert len(set(found.tolist())) == 3


def test_runs_come_one_by_one_in_their_order():
    mixed = table(run=["b", "a", "b", "a"])
    assert [part.runs for part in by_run(mixed)] == [("b",), ("a",)]
    assert [part.predicted.tolist() for part in by_run(mixed)] == [[3.0, 6.0], [0.5, 1.0]]
