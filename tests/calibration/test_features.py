"""Features against runs computed by hand, and what must not change them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp import datasets
from errcomp.calibration.design import Design
from errcomp.calibration.features import FEATURES, design, fit_features
from errcomp.calibration.features.state import FeatureState
from errcomp.datasets.devices import figures_of
from errcomp.errors import InputError
from errcomp.tables import Kernels

COLUMNS = {
    "run": ["a"] * 4,
    "device": ["H100"] * 4,
    "model": ["net"] * 4,
    "mode": ["inference"] * 4,
    "kernel": ["view", "linear", "add", "softmax"],
    "kernel_class": ["view", "Linear", "VECadd", "VECsoftmax"],
    "shape": ["1", "10x100", "100x10", "1000"],
    "count": [40, 20, 30, 10],
    "predicted": [0.0, 0.09, 0.02, 0.03],
    "measured": [0.01, 0.1, 0.02, 0.04],
    "run_measured": [2.5] * 4,
}


def kernels(**changed: object) -> Kernels:
    return Kernels({**COLUMNS, **changed}, unit="ms")


def features(found: Design, run: int = 0) -> dict[str, float]:
    return dict(zip(found.names, found.x[run].tolist(), strict=True))


def test_a_run_computed_by_hand() -> None:
    found = design(kernels(), task="composition")
    # 40 × 10 µs + 20 × 100 µs + 30 × 20 µs + 10 × 40 µs
    assert found.total == pytest.approx([3.4])
    assert found.log_ratio == pytest.approx([math.log(2.5 / 3.4)])
    assert (found.device[0], found.model[0], found.mode[0]) == ("H100", "net", "inference")
    x = features(found)
    # The floor is 10 µs; only views take less than 1.8 of it.
    assert x["launch_idle"] == pytest.approx(0.4 / 3.4)
    assert x["launch_work"] == pytest.approx(0.6 / 3.4)
    assert x["launch_work_training"] == 0
    assert x["run_start"] == pytest.approx(-0.01 / 3.4)
    assert x["hidden_launches"] == pytest.approx(math.log(2.4 / 3.4))
    assert x["training"] == 0
    assert x["total_ms"] == pytest.approx(math.log10(3.4))
    assert x["mean_kernel_us"] == pytest.approx(math.log10(34))
    assert x["matmul_share"] == pytest.approx(2 / 3.4)
    assert x["largest_share"] == pytest.approx(2 / 3.4)
    assert x["idle_share"] == pytest.approx(0.4)
    assert x["unmodelled_share"] == pytest.approx(0.4)
    assert x["activations_gb"] == pytest.approx(math.log10(4e-9 * (20e3 + 30e3 + 10e3)))
    assert x["memory_share"] == 0
    assert x["disagreement"] == pytest.approx(math.log(2.7 / 3.4))
    assert x["device_bandwidth"] == pytest.approx(math.log10(3350))
    assert x["slow_kernels"] == 0
    assert math.copysign(1, x["slow_kernels"]) == 1


def test_training_keeps_outputs_and_launches_of_its_own() -> None:
    found = design(kernels(mode=["training"] * 4), task="composition")
    x = features(found)
    assert x["training"] == 1
    assert x["launch_work"] == 0
    assert x["launch_work_training"] == pytest.approx(0.6 / 3.4)
    assert x["memory_share"] == pytest.approx(10 ** x["activations_gb"] / 80)


def test_what_is_not_known_is_nan() -> None:
    given = {name: COLUMNS[name] for name in ("run", "kernel", "count", "measured")}
    x = features(design(Kernels(given, unit="ms"), task="composition"))
    unknown = {name for name, value in x.items() if math.isnan(value)}
    assert unknown == {
        "unmodelled_share",
        "activations_gb",
        "disagreement",
        "device_bandwidth",
        "device_peak",
    }
    strange = design(kernels(device=["mine"] * 4, shape=["?"] * 4), task="composition")
    assert math.isnan(features(strange)["device_peak"])
    assert math.isnan(features(strange)["activations_gb"])
    assert figures_of("mine") is None


def test_a_prediction_does_not_see_what_was_measured() -> None:
    state = fit_features(kernels(), task="prediction")
    assert state.floor == pytest.approx(10e-6)  # from the runs of the fit, which were measured
    one = design(kernels(), task="prediction", state=state)
    other = design(kernels(measured=[9.0, 1.0, 5.0, 7.0]), task="prediction", state=state)
    np.testing.assert_array_equal(one.x, other.x)
    assert one.total == pytest.approx([2.7])
    x = features(one)
    assert math.isnan(x["disagreement"])
    assert x["launch_idle"] == pytest.approx(0.4 / 2.7)
    assert x["hidden_launches"] == 0


def test_a_floor_is_at_most_twenty_microseconds_and_nominal_where_nothing_was_measured() -> None:
    slow = kernels(measured=[0.5, 0.6, 0.7, 0.8])
    assert fit_features(slow, task="composition").floor == pytest.approx(20e-6)
    blank = kernels(measured=[math.nan] * 4)
    assert fit_features(blank, task="prediction").floor == 7e-6


def test_a_run_without_small_kernels_has_the_floor_of_its_device() -> None:
    device = ["H100"] * 8 + ["L4"] * 4
    small, large = COLUMNS["measured"], [0.5, 0.6, 0.7, 0.8]
    two = {name: [*values, *values, *values] for name, values in COLUMNS.items()}
    two |= {"run": ["a"] * 4 + ["b"] * 4 + ["c"] * 4, "device": device}
    found = Kernels({**two, "measured": [*small, *large, *large]}, unit="ms")
    state = fit_features(found, task="composition")
    assert state.floors == pytest.approx({"H100": 11e-6, "L4": 20e-6})
    runs = design(found, task="composition", state=state)
    floor_us = [-1e3 * features(runs, i)["run_start"] * runs.total[i] for i in range(3)]
    assert floor_us == pytest.approx([10, 11, 20])
    # A device that was not in the fit has the floors of its own runs.
    new = design(kernels(device=["P4"] * 4), task="composition", state=state)
    assert features(new)["launch_idle"] == pytest.approx(0.4 / 3.4)


def short_runs(start_us: float, *, scale: float = 1.0) -> Kernels:
    """Runs of few kernels whose launches of 5 µs all hide, and which take this much once."""
    rng = np.random.default_rng(3)
    columns: dict[str, list[object]] = {
        name: [] for name in ("run", "kernel", "count", "measured", "run_measured")
    }
    for run in range(24):
        work = scale * rng.uniform(0.01, 0.1, 4)
        count = rng.integers(1, 5, 4)
        end = count @ work + 1e-3 * start_us
        times = [*(work + 0.005), 0.005]
        for k, (time, n) in enumerate(zip(times, [*count, 3], strict=True)):
            for name, value in zip(columns, (f"r{run}", f"k{k}", n, time, end), strict=True):
                columns[name].append(value)
    return Kernels(columns, unit="ms")


@pytest.mark.parametrize("start_us", [0.0, 15.0, 40.0])
def test_what_a_run_costs_beside_its_kernels_is_learnt(start_us: float) -> None:
    state = fit_features(short_runs(start_us), task="composition")
    assert state.start == pytest.approx(start_us / 5, abs=0.2)
    found = design(short_runs(start_us), task="composition", state=state)
    hidden = found.x[:, found.names.index("hidden_launches")]
    assert hidden == pytest.approx(found.log_ratio, abs=0.01)
    # Long runs do not tell, and nothing is made up.
    assert fit_features(short_runs(start_us, scale=1e4), task="composition").start < 0.5


def several(slow: float, *, runs: int = 12) -> Kernels:
    """Runs whose matrix products take 5 % more or less than predicted; the last one `slow` more."""
    columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
    for run in range(runs):
        factor = slow if run == runs - 1 else 1 + 0.05 * (-1) ** run
        for name, values in COLUMNS.items():
            columns[name] += [f"r{run}"] * 4 if name == "run" else list(values)
        columns["measured"][-3] = 0.09 * factor
    return Kernels(columns, unit="ms")


def test_matrix_products_that_run_implausibly_slowly_are_replaced() -> None:
    disturbed = design(several(1.6), task="composition")
    at = disturbed.names.index("slow_kernels")
    share = features(disturbed, 11)["matmul_share"]
    center = fit_features(several(1.6), task="composition").slow_center
    assert center is not None
    assert disturbed.x[:11, at].tolist() == [0.0] * 11
    expected = math.log(1 - share * (1 - math.exp(-(math.log(1.6) - center))))
    assert disturbed.x[11, at] == pytest.approx(expected)
    # Faster than predicted is no disturbance: nothing runs faster than the hardware.
    assert not design(several(0.6), task="composition").x[:, at].any()
    # Too few runs to know what is usual.
    assert not design(several(1.6, runs=7), task="composition").x[:, at].any()


def test_runs_that_do_not_differ_tell_no_usual_spread() -> None:
    same = Kernels(
        {name: [v for _ in range(9) for v in values] for name, values in COLUMNS.items()}
        | {"run": [f"r{i}" for i in range(9) for _ in range(4)]},
        unit="ms",
    )
    assert fit_features(same, task="composition").slow_scale is None


def test_units_and_the_order_of_rows_do_not_matter() -> None:
    kernels = datasets.load("neusight-kernels")
    found = design(kernels, task="composition")
    assert found.x.shape == (87, len(FEATURES))
    shuffled = kernels.take(np.random.default_rng(1).permutation(kernels.n))
    other = design(shuffled, task="composition")
    order = [other.run.tolist().index(run) for run in found.run]
    np.testing.assert_allclose(other.x[order], found.x, rtol=1e-12, atol=1e-12)
    names = ("run", "kernel", "kernel_class", "device", "model", "mode", "shape", "phase")
    columns = {name: kernels.column(name) for name in names}
    times = {
        name: 1e3 * getattr(kernels, name) for name in ("predicted", "measured", "run_measured")
    }
    in_us = Kernels({**columns, **times, "count": kernels.count}, unit="us")
    other = design(in_us, task="composition")
    np.testing.assert_allclose(other.x, found.x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.log_ratio, found.log_ratio, atol=1e-12)


def test_only_the_forward_phase_leaves_outputs_behind() -> None:
    one = {"device": "V100", "mode": "training", "shape": "1024x1024x1024", "measured": 5.0}
    rows = [
        {**one, "run": "split", "kernel": f"a{i}", "phase": phase, "run_measured": 20.0}
        for i, phase in enumerate(("forward", "backward", "optimizer"))
    ]
    rows.append({**one, "run": "whole", "kernel": "a0", "phase": None, "run_measured": 20.0})
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    kernels = Kernels({**columns, "predicted": columns["measured"]}, unit="ms")
    found = design(kernels, task="composition")
    share = found.x[:, found.names.index("memory_share")]
    np.testing.assert_allclose(share, 4.294967296 / 32, rtol=1e-9)


def test_the_slow_runs_of_the_artifact_are_found() -> None:
    found = design(datasets.load("neusight-kernels"), task="composition")
    slow = found.run[found.x[:, found.names.index("slow_kernels")] < 0]
    assert slow.tolist() == [
        "A100-40G/bert_large/inference/512/8",
        "A100-40G/bert_large/inference/512/16",
        "A100-40G/gpt2_large/inference/1024/4",
    ]


def test_designs_are_cut_by_mask_and_position() -> None:
    found = design(several(1.0), task="composition")
    assert len(found.take(np.arange(3))) == 3
    part = found.take(found.run == "r5")
    assert part.run.tolist() == ["r5"]
    assert part.x.shape == (1, len(FEATURES))


@pytest.mark.parametrize(
    ("changed", "task", "message"),
    [
        ({"measured": [0.1, math.nan, 1, 1]}, "composition", "run a has kernels that were not mea"),
        ({"predicted": [0.0] * 4}, "prediction", "all kernels of run a take no time"),
        ({"measured": [0.0] * 4}, "composition", "all kernels of run a take no time"),
        ({"status": ["ok", "ok", "ok", "failed"]}, "prediction", "a kernel failed in run a"),
    ],
)
def test_runs_without_a_sum_are_refused(changed: dict[str, object], task, message: str) -> None:
    with pytest.raises(InputError, match=message):
        design(kernels(**changed), task=task)


def test_a_unit_is_needed() -> None:
    with pytest.raises(InputError, match="State the unit"):
        design(Kernels(COLUMNS), task="composition")


def test_the_state_survives_json() -> None:
    state = FeatureState("composition", 7e-6, -0.1, 0.2, 2.5, {"L4": 1e-5})
    assert FeatureState.from_meta(state.to_meta()) == state
    bare = FeatureState("prediction", 7e-6, None, None)
    assert FeatureState.from_meta(bare.to_meta()) == bare


@pytest.mark.parametrize(
    "changed",
    [
        {"floor": 0.0},
        {"floor": 1.0},
        {"floor": "7e-6"},
        {"floor": None},
        {"floor": math.nan},
        {"slow_center": None},
        {"slow_scale": math.inf},
        {"slow_scale": 0.0},
        {"floor": True},
        {"start": -1.0},
        {"start": None},
        {"floors": {"L4": 0.0}},
        {"floors": {"L4": 1e-3}},
        {"floors": []},
        {"task": "other"},
    ],
)
def test_a_state_that_cannot_be_is_refused(changed: dict[str, object]) -> None:
    meta = {**FeatureState("composition", 7e-6, -0.1, 0.2).to_meta(), **changed}
    with pytest.raises(InputError, match="settings of the features in this model are invalid"):
        FeatureState.from_meta(meta)


def test_times_of_zero_are_no_floor() -> None:
    table = kernels(measured=[0.0, 0.1, 0.02, 0.04])
    state = fit_features(table, task="composition")
    assert (state.floor, state.floors) == (7e-6, {})
    assert features(design(table, task="composition", state=state))["run_start"] < 0
    assert FeatureState.from_meta(state.to_meta()) == state


@pytest.mark.parametrize("name", ["aten::mm", "bmm", "aten::addmm", "Gemm", "conv2d", "sgemm_128"])
def test_matrix_products_are_known_by_name(name: str) -> None:
    table = kernels(kernel_class=["view", name, "add", "softmax"])
    assert features(design(table, task="composition"))["matmul_share"] == pytest.approx(2 / 3.4)


@pytest.mark.parametrize("name", ["cpp_fused_convolution_backward_add", "triton_poi_fused_mm_1"])
def test_loops_that_follow_a_product_are_none(name: str) -> None:
    table = kernels(kernel_class=["view", name, "add", "softmax"])
    assert features(design(table, task="composition"))["matmul_share"] == 0


def test_runs_of_one_name_are_not_added_up() -> None:
    table = kernels(model=["net", "net", "other", "other"])
    with pytest.raises(InputError, match=r"run a has kernels of several models\. Give each run"):
        design(table, task="composition")
    # Not knowing the model is no second model.
    assert design(kernels(model=[None] * 4), task="composition").model[0] == ""
