"""Predictors of other quantities and levels: steps of an LLM server, power of kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from errcomp.calibration.evaluation.composed import evaluate_composition
from errcomp.calibration.kernels import KernelCorrection
from errcomp.tables import Kernels

pytestmark = pytest.mark.shared


@pytest.mark.slow
def test_steps_of_a_server_are_told_to_be_beyond_a_line(shared_data: Path) -> None:
    """2,080 steps of 16 experiments, a step a run: what is wrong with them is in no feature."""
    table = pl.read_csv(
        shared_data / "tools" / "blis" / "round1_step_predictions.sample130_per_experiment.csv"
    )
    steps = Kernels(
        {
            "run": [f"step {i}" for i in range(table.height)],
            "device": ["H100"] * table.height,
            "model": table["model"],
            "kernel": ["step"] * table.height,
            "predicted": table["predicted_us"],
            "run_measured": table["step.duration_us"],
        },
        unit="us",
    )
    split = "leave-model-out"
    found = evaluate_composition(steps, task="prediction", estimators=("device",), splits=[split])
    # What the table itself says of its predictions.
    ape = (table["predicted_us"] / table["step.duration_us"] - 1).abs()
    assert found.row(split, "sum").figures["mean_ape"].value == pytest.approx(float(ape.mean()))
    for name in ("global", "device", "linear"):
        assert found.row(split, name).beats_sum is not True
        assert 0.87 <= found.row(split, name).band(0.9).coverage <= 0.94


@pytest.mark.parametrize(
    ("gpus", "kernels", "folds"),
    [("Pascal", 84, 5), pytest.param("Volta|Pascal|Turing", 228, 99, marks=pytest.mark.slow)],
)
def test_power_is_corrected_in_watts_with_bands_that_hold(
    shared_data: Path, gpus: str, kernels: int, folds: int
) -> None:
    """Ten validations of a power model on three GPUs, each benchmark left out in turn.

    Where there are fewer folds than benchmarks, several benchmarks are left out at once.
    """
    table = pl.read_csv(shared_data / "tools" / "accel-sim" / "accelwattch_power_sim_vs_hw.csv")
    table = table.filter(pl.col("sheet_variant").str.contains(gpus))
    inside, before, after = [], [], []
    for part in table.partition_by("sheet_variant", "table", maintain_order=True):
        names = {"run": "benchmark", "kernel": "kernel", "kernel_class": "suite"}
        columns = {name: part[source].to_numpy() for name, source in names.items()}
        columns |= {"device": np.full(part.height, "GPU")}
        simulated, real = (part[f"{who}_total_watts"].to_numpy() for who in ("sim", "hw"))
        whole = Kernels({**columns, "predicted": simulated, "measured": real}, unit="W")
        benchmarks = sorted(set(columns["run"]))
        for fold in range(min(folds, len(benchmarks))):
            out = np.isin(whole.run.astype(str), benchmarks[fold::folds])
            fitted = KernelCorrection().fit(whole.take(~out))
            found = fitted.apply(whole.take(out))
            low, high = found.band(0.9).T
            truth = whole.measured[out]
            inside += ((low <= truth) & (truth <= high)).tolist()
            before += np.abs(whole.predicted[out] / truth - 1).tolist()
            after += np.abs(found.predicted / truth - 1).tolist()
    assert len(inside) == kernels
    # Its errors are the kernels' own: there is next to nothing to correct, and bands say so.
    assert np.mean(after) == pytest.approx(np.mean(before), abs=0.015)
    assert 0.84 <= np.mean(inside) <= 0.93
