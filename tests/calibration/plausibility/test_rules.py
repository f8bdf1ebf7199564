"""Rules on kernels alone: what they find, how often they are wrong, and what they cannot see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import adapt_model, check_runs
from errcomp.calibration.fitted import CompositionModel
from errcomp.calibration.plausibility import RULES
from errcomp.datasets import load
from errcomp.documents import load as load_document
from errcomp.errors import InputError
from errcomp.tables import Kernels

pytestmark = pytest.mark.usefixtures("few_choices")
Law = Callable[[np.random.Generator, Any], np.ndarray]


def table(
    runs: int, *, seed: int = 0, devices: int = 2, law: Law | None = None, launches: int = 10
) -> dict[str, list[Any]]:
    """Runs of a matrix product and a small kernel, predicted with errors of a law."""
    rng = np.random.default_rng(seed)
    draw = law or (lambda rng, size: rng.normal(0, 0.1, size))
    columns: dict[str, list[Any]] = {
        name: [] for name in ("run", "device", "model", "mode", "kernel", "kernel_class", "count",
                              "predicted", "measured", "run_measured")
    }  # fmt: skip
    for i in range(runs):
        errors = draw(rng, 2)
        took = [1.0 + i % 7, 0.3]
        for j, kind in enumerate(("Linear", "Softmax")):
            row = (
                f"r{i}", f"D{i % devices}", f"m{i // devices}", "inference", kind, kind,
                launches, took[j] * np.exp(-errors[j]), took[j], launches * sum(took),
            )  # fmt: skip
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


def flagged(columns: Any, rule: str, **given: Any) -> list[str]:
    found = check_runs(Kernels(columns, unit="ms"), **given)
    return [row.run for row in found.rows if row.rule == rule]


def scaled(columns: dict[str, list[Any]], run: str, factor: float, kinds: Any) -> None:
    for i, name in enumerate(columns["run"]):
        if name == run and columns["kernel"][i] in kinds:
            columns["measured"][i] *= factor


def test_slow_matrix_products_are_found_and_said() -> None:
    columns = table(24)
    scaled(columns, "r5", 2.0, ("Linear",))
    found = check_runs(Kernels(columns, unit="ms"))
    (row,) = [row for row in found.rows if row.rule == "slow-matmul"]
    assert row.run == "r5"
    assert row.evidence.startswith("its matrix products took ")
    assert 1.5 < float(row.evidence.split()[4]) < 2.7
    assert found.flagged == len({row.run for row in found.rows})


def test_slow_clocks_are_found_on_the_device() -> None:
    columns = table(40, law=lambda rng, size: rng.normal(0, 0.05, size))
    scaled(columns, "r6", 1.8, ("Linear", "Softmax"))
    assert flagged(columns, "clocks") == ["r6"]
    (row,) = [r for r in check_runs(Kernels(columns, unit="ms")).rows if r.rule == "clocks"]
    assert "of the other runs on D0" in row.evidence


def test_a_device_that_is_slow_as_a_whole_has_no_slow_clocks() -> None:
    columns = table(40, law=lambda rng, size: rng.normal(0, 0.05, size))
    columns["measured"] = [
        took * (1.8 if device == "D1" else 1.0)
        for took, device in zip(columns["measured"], columns["device"], strict=True)
    ]
    assert flagged(columns, "clocks") == []


def test_an_adaptation_uses_a_device_whose_predictions_are_all_too_short(
    model: CompositionModel, runs_of: Any
) -> None:
    """All its matrix products take three times as long as predicted: no run is disturbed."""
    new = runs_of(("H100",), seed=4)
    new.predicted = np.where(new.kernel_class == "Linear", new.predicted / 3, new.predicted)
    found = adapt_model(model, new)
    assert (found.rows[0].runs, found.left_out) == (8, ())


def test_runs_with_another_key_are_other_work() -> None:
    columns = table(12, devices=4)
    columns["count"][8] = 7
    columns["dtype"] = ["fp16" if run == "r4" else "fp32" for run in columns["run"]]
    assert flagged(columns, "missing-kernels") == []
    columns["repeat"] = [str(i // 2) for i in range(24)]
    columns["dtype"] = ["fp32"] * 24
    assert flagged(columns, "missing-kernels") == ["r4"]


def test_missing_kernels() -> None:
    columns = table(12, devices=4)
    columns["count"][8] = 7
    assert flagged(columns, "missing-kernels") == ["r4"]
    (row,) = [
        r for r in check_runs(Kernels(columns, unit="ms")).rows if r.rule == "missing-kernels"
    ]
    assert row.evidence == ("it has 17 kernel executions, 3 other runs of the same work have 20")
    alone = check_runs(Kernels(table(12, devices=2), unit="ms"))
    assert {one.rule: one.reason for one in alone.not_checked}["missing-kernels"] == (
        "no workload has more than 2 runs"
    )


def test_runs_whose_host_is_slow() -> None:
    columns = table(8)
    for name in ("measured", "predicted"):
        columns[name] = [time / 50 for time in columns[name]]
    columns["measured"][4:6] = [0.002, 0.001]
    assert flagged(columns, "host-bound") == ["r2"]
    columns["variant"] = ["graph"] * len(columns["run"])
    assert flagged(columns, "host-bound") == []


def test_what_the_artifact_of_neusight_shows() -> None:
    found = check_runs(load("neusight-kernels"))
    of = {rule.name: [row.run for row in found.rows if row.rule == rule.name] for rule in RULES}
    assert {run.split("/")[0] for run in of["slow-matmul"]} == {"A100-40G"}
    assert len(of["slow-matmul"]) == 3
    assert of["clocks"] == ["L4/opt_13/inference/2048/2"]
    assert {"MI210/gpt2_large/training/1024/4", "MI210/gpt3_xl/training/2048/1"} < set(of["memory"])
    assert (of["missing-kernels"], of["host-bound"]) == ([], [])
    assert found.runs == 87
    assert load_document(found.to_dict()) == found
    assert not found.not_checked


def test_nothing_is_flagged_in_own_measurements() -> None:
    """Measured under control on one core: every flag would be false."""
    found = check_runs(load("ort-cpu"))
    assert (found.flagged, found.runs) == (0, 76)
    assert {one.rule for one in found.not_checked} == {
        "slow-matmul", "clocks", "missing-kernels", "phases"
    }  # fmt: skip
    assert "slow-matmul was not checked" in " ".join(str(found).split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "most"),
    [
        (lambda rng, size: rng.normal(0, 0.1, size), 0.01),
        (lambda rng, size: 0.05 * rng.standard_t(3, size), 0.035),
        (lambda rng, size: 0.1 * (rng.exponential(1, size) - 1), 0.09),
        (lambda rng, size: rng.laplace(0, 0.1, size), 0.035),
    ],
    ids=["normal", "t3", "skewed", "laplace"],
)
def test_false_flags_and_power(law: Law, most: float) -> None:
    """Share of honest runs that are flagged, and of runs three times as slow that are found."""
    false, hits, times = 0, 0, 120
    for seed in range(times):
        columns = table(40, seed=seed, law=law)
        honest = check_runs(Kernels(columns, unit="ms"))
        false += len({r.run for r in honest.rows if r.rule in ("slow-matmul", "clocks")})
        scaled(columns, "r7", 3.0, ("Linear", "Softmax"))
        slow = {r.run for r in check_runs(Kernels(columns, unit="ms")).rows}
        hits += "r7" in slow
    assert false / (40 * times) < most
    assert hits / times > 0.95


def test_an_adaptation_leaves_out_flagged_runs(model: CompositionModel, runs_of: Any) -> None:
    new = runs_of(("H100",), seed=4)
    names = ("H100/bert/1", "H100/opt/8")
    few = new.take(np.isin(new.run.astype(str), names))
    slow = (few.run == names[0]) & (few.kernel_class == "Linear")
    few.measured = np.where(slow, few.measured * 5, few.measured)
    found = adapt_model(model, few)
    assert found.rows[0].runs == 1
    (left,) = found.left_out
    assert (left.run, left.reason[:23]) == (names[0], "flagged by slow-matmul:")
    with pytest.raises(InputError, match="flagged by slow-matmul"):
        adapt_model(model, few.take(few.run == names[0]))


def test_an_adaptation_names_runs_that_wait_for_their_host(
    model: CompositionModel, runs_of: Any
) -> None:
    few = runs_of(("H100",), ("bert",), seed=4).take(np.arange(4))
    few.measured, few.predicted = np.full(4, 0.001), np.full(4, 0.001)
    few.run_measured = np.full(4, 0.2)
    found = adapt_model(model, few)
    assert [(one.run, one.rule) for one in found.flagged] == [("H100/bert/1", "host-bound")]
    assert "was used, though flagged" in " ".join(str(found).split())
    assert load_document(found.to_dict()).flagged == found.flagged


def test_runs_without_times_are_refused() -> None:
    columns = table(4)
    columns["measured"] = [None] * 8
    with pytest.raises(InputError, match="no run has the times of all its kernels"):
        check_runs(Kernels(columns, unit="ms"))
    found = check_runs(Kernels(columns, unit="ms"), task="prediction")
    assert (
        "the task is prediction"
        in {one.rule: one.reason for one in found.not_checked}["slow-matmul"]
    )


@pytest.mark.parametrize(("factor", "found"), [(1.07, []), (1.2, ["r6"])])
def test_less_than_a_tenth_is_never_flagged(factor: float, found: list[str]) -> None:
    """In a steady laboratory a few per cent are many standard deviations."""
    columns = table(40, law=lambda rng, size: rng.normal(0, 0.005, size))
    scaled(columns, "r6", factor, ("Linear", "Softmax"))
    assert flagged(columns, "clocks") == found
    assert flagged(columns, "slow-matmul") == found
