"""Numbers of the documentation that are computed from the built-in tables.

Run `python docs/facts.py` to write docs/results/facts.json. A test compares the file with a new
computation. Fractions are not in per cent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from errcomp import datasets
from errcomp.claims import replicate_survey
from errcomp.claims.replicate import STATUSES
from errcomp.halflife.fitting import release_study
from errcomp.tables import Kernels

TARGET = Path(__file__).parent / "results" / "facts.json"
#: The run that the README follows.
RUN = "H100/gpt3_27/inference/2048/2"
#: Changes by this factor or more are counted.
MOVED = 1.1


def neusight() -> dict[str, Any]:
    """Return means over subsets of the configurations that NeuSight predicted."""
    table = datasets.tables("neusight")["neusight"]
    key = ["device", "model", "mode", "seq_len", "batch", "variant"]
    error = (pl.col("predicted_ms") / pl.col("measured_ms") - 1).abs()
    ours = table.filter(tool="neusight").with_columns(error=error)
    habitat = table.filter(tool="habitat").select(key)
    h100 = ours.filter(device="H100")
    six = h100.join(habitat, on=key).filter(pl.col("model").is_in(["gpt3_27", "gpt3_xl"]))
    nvidia = ours.filter(vendor="NVIDIA", devices=1, variant="base")
    modes = dict(six.group_by("mode").len().iter_rows())
    inference = h100.filter(mode="inference")
    fused = inference.filter(variant="fusion")
    base = inference.filter(variant="base")
    training = h100.filter(mode="training")["error"]
    l4 = ours.filter(device="L4", mode="inference")["error"]
    return {
        "h100": {"n": h100.height, "mape": h100["error"].mean()},
        "h100_inference": _mean(inference),
        "h100_fused": fused["error"].mean(),
        "h100_base": base["error"].mean(),
        "h100_base_of_fused": base.join(fused, on=key[:-1], how="semi")["error"].mean(),
        "h100_training": {"mape": training.mean(), "median_ape": training.median()},
        "l4_inference": {"mape": l4.mean(), "rounded": l4.round(4).mean()},
        "six": {"n": six.height, "mape": six["error"].mean(), **modes},
        "nvidia_unfused": _mean(nvidia),
    }


def _mean(table: pl.DataFrame) -> dict[str, Any]:
    return {"n": table.height, "mape": table["error"].mean()}


def neusight_kernels() -> dict[str, Any]:
    """Compare the sums of NeuSight's kernels, measured and predicted, with the runs."""
    kernels = datasets.load("neusight-kernels")
    totals = kernels.totals()
    ratio, predicted = totals.measured / totals.run_measured, totals.predicted / totals.run_measured
    time = kernels.count * kernels.measured
    share = {
        name: np.bincount(kernels.codes("run"), time * rows, kernels.n_runs) / totals.measured
        for name, rows in (("max_1", kernels.kernel == "max_1"), ("zero", kernels.predicted == 0))
    }
    opt = np.array(["opt_13" in run for run in totals.run])
    return {
        "runs": kernels.n_runs,
        "instances": _range(totals.instances),
        "different": _range(np.bincount(kernels.codes("run"))),
        "ratio": _range(ratio),
        "sum": {"mape": np.abs(ratio - 1).mean(), "median_ape": np.median(np.abs(ratio - 1))},
        "predicted_sum": {
            "mape": np.abs(predicted - 1).mean(),
            "median_ape": np.median(np.abs(predicted - 1)),
        },
        "max_1": _range(share["max_1"][opt]),
        "unmodelled": _range(share["zero"][~opt]),
        "run": totals.run_measured[totals.run == RUN][0],
        "run_predicted": totals.predicted[totals.run == RUN][0],
    }


def _range(values: np.ndarray) -> dict[str, float]:
    return {"min": values.min(), "median": np.median(values), "max": values.max()}


def measured(name: str) -> dict[str, Any]:
    """Compare the operators of a table measured by errcomp with its runs."""
    kernels: Kernels = datasets.load(name)
    totals = kernels.totals()
    spread = np.array([float(value) for value in kernels.per_run("run_spread")])
    times = dict(zip(totals.run, totals.run_measured, strict=True))
    found = {
        "runs": kernels.n_runs,
        "ratio": _range(totals.measured / totals.run_measured),
        "run_spread": _range(spread),
        "least_known": totals.run_measured[spread.argmax()],
    }
    if name == "torch-cuda":
        h100, h200 = (
            {run.partition("/")[2]: time for run, time in times.items() if device in run}
            for device in ("H100", "H200")
        )
        found["runs_of_a_device"] = len(h200)
        found["h100_to_h200"] = _range(np.array([h100[run] / h200[run] for run in h200]))
    if name == "ort-cpu":
        found["layernorm"] = {v: times[f"layernorm/t64w256/{v}"] for v in ("all", "disable")}
    return found


def ort_releases() -> dict[str, Any]:
    """Return the effect of ONNX Runtime's releases on a model frozen at the first."""
    history = datasets.load("ort-releases")
    table = datasets.tables("ort-releases")["ort-releases"]
    first, last = history.versions[0], history.versions[-1]
    log = table.with_columns(log=(pl.col("predicted") / pl.col("measured")).log())
    key = ["level", "series"]
    ends = log.filter(version=first).join(log.filter(version=last), on=key, suffix="_last")
    models = ends.filter(level="model")
    conv = (
        log.filter(level="kernel", kernel_class="Conv")
        .group_by("series")
        .agg(pl.col("log").abs().max())
    )
    change = (pl.col("log_last") - pl.col("log")).median().alias("change")
    moved = models.group_by("model").agg(change)
    still = moved.filter(pl.col("model").is_in(["gemm", "conv", "lstm"]))["change"]
    study = release_study(history)
    whole = next(g for g in study.modelled.groups if g.key["level"] == "model")
    released = table.group_by("version").agg(pl.col("released").first().str.to_date())
    days = dict(released.iter_rows())
    alike = next(one for one in study.alike if "change of run" in str(one.figure))
    limit = whole.threshold.value
    best = log.filter(level="model").group_by("series").agg(pl.col("log").abs().max())
    return {
        "months": (days[last] - days[first]).days / (365.25 / 12),
        "limit": np.expm1(limit),
        "inputs": models.height,
        "within_twice_the_rms": (best["log"] <= limit).sum(),
        "within_twice_own": (models["log_last"].abs() <= 2 * models["log"].abs()).sum(),
        "within_own": (models["log_last"].abs() <= models["log"].abs()).sum(),
        "conv": {"series": conv.height, "moved": (conv["log"] > np.log(MOVED)).sum()},
        "still": np.expm1(still.abs().max()),
        "alike": {k: np.expm1(getattr(alike, k)) for k in ("value", "low", "high")},
    }


def replication() -> dict[str, Any]:
    """Return how many printed cells of the survey are reproduced, and the statements shown."""
    found = replicate_survey()
    count = found.counts()["all"]
    tried = [cell for cell in found.cells if cell.chance is not None]
    other = [cell for cell in tried if cell.status == STATUSES[1]]
    said = {cell.row: cell.recomputed for cell in found.tables()["statements"]}
    statements = found.counts()["statements"]
    return {
        "cells": {
            "all": len(found.cells),
            "recomputed": len(found.cells) - count["no data"],
            "matching": count[STATUSES[0]] + count[STATUSES[1]],
            "under_another_rule": count[STATUSES[1]],
            "without_data": count["no data"],
        },
        "chance": {
            "tried": len(tried),
            "given": len(other),
            "expected": round(sum(cell.chance for cell in tried), 1),
            "above_5_percent": sum(cell.chance > 0.05 for cell in other),
        },
        "statements": {
            "not_reproduced": statements["not reproduced"],
            "with_data": sum(statements.values()) - statements["no data"],
        },
        "examples": {
            "categories": said["categories of the suite"],
            "shared": said["scenarios that two tools predict"],
            "better_in_inference": said["inference against training"],
            "variance": round(said["prediction variance of MoE models"], 2),
            "reversed": said["ranking by reliability"],
        },
    }


def facts() -> dict[str, Any]:
    """Return all values that the pages refer to."""
    return {
        "neusight": neusight(),
        "neusight-kernels": neusight_kernels(),
        "ort-cpu": measured("ort-cpu"),
        "torch-cpu": measured("torch-cpu"),
        "torch-cuda": measured("torch-cuda"),
        "ort-releases": ort_releases(),
        "replication": replication(),
        "survey": {t.file: t.rows for t in datasets.info("survey").tables if t.file != "runs.csv"},
    }


def rounded(value: Any) -> Any:
    """Return plain values with nine digits, which are the same on every platform."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return float(f"{float(value):.9g}") if isinstance(value, float | np.floating) else int(value)


def main() -> None:
    """Write the facts."""
    document = {"command": "python docs/facts.py", "values": rounded(facts())}
    TARGET.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
