"""How well do the default estimators do on models and devices left out?

Makes the tables of docs/calibration.md from `errcomp calibrate evaluate … --json`, which takes ten
minutes or more for each table on one core. A document that is in FOLDER already is read, not made
again. `benchmarks/adapt_table.py` comes first. Stored in docs/results/calibration.json.

    python benchmarks/calibration_table.py FOLDER
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import stored

from errcomp.calibration import KernelCorrection
from errcomp.datasets import load

#: What is evaluated: name of the document, and the words behind `errcomp calibrate evaluate`.
EVALUATED = {
    "neusight-kernels": ["neusight-kernels"],
    "prediction": ["neusight-kernels", "--task", "prediction"],
    "ort-cpu": ["ort-cpu"],
    "torch-cpu": ["torch-cpu"],
    "vendors": ["neusight-kernels", "--split", "leave-vendor-out"],
}
SHOWN = {"sum": "sum of kernels", "linear": "linear", "bayesian": "bayesian"}
SHOWN |= {"boosted": "boosted", "physics": "physics", "stack": "stack"}
ESTIMATORS = "bayesian,boosted,physics,stack"
SPLITS = {"leave-model-out": "models", "leave-device-out": "devices"}
#: The group of `ort-cpu` whose operators take longer while they are profiled.
ODD = "decoder_step"
#: What the survey of `errcomp replicate survey` asks of a correction: errors of runs left out below
#: 3 %, and no more than 10 percentage points on top for another architecture (values.on_top).
BELOW = 0.03
#: What follows the name of an estimator for the rows without the flagged runs.
_AFTER = {"all": "", "not flagged": ", not flagged"}
Rows = dict[tuple[str, str], dict[str, Any]]


def documents(folder: Path) -> dict[str, Rows]:
    """Return the rows of each evaluation by split and estimator; make those that are missing."""
    found = {}
    for name, words in EVALUATED.items():
        path = folder / f"{name}.json"
        if not path.exists():
            command = [sys.executable, "-m", "errcomp", "calibrate", "evaluate", *words, "--json"]
            command += ["--estimator", ESTIMATORS]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            path.write_text(done.stdout, encoding="utf-8")
        document = json.loads(path.read_text(encoding="utf-8"))
        found[name] = {
            (row["split"], row["estimator"] + _AFTER[row["runs_judged"]]): row
            for row in document["rows"]
        }
    return found


def by_split(rows: Rows) -> dict[str, Any]:
    """Return the table of the estimators on models and on devices left out."""
    head = ["Left out, estimator", "MAPE", "Median APE", "P90 APE", "90 % band covers"]
    head += ["its width", "Score", "Most confident 80 %", "Not flagged"]
    cells = []
    for split, left_out in SPLITS.items():
        for estimator, name in SHOWN.items():
            row = rows[split, estimator]
            rest = rows[split, f"{estimator}, not flagged"]
            surest = next(o for o in row["abstention"] if round(o["share"], 2) == 0.8)
            shares = [row["mean_ape"], row["median_ape"], row["p90_ape"]]
            cells.append(
                [f"{left_out}, {name}"]
                + [f"{100 * share:.1f} %" for share in shares]
                + [f"{100 * row[key]:.0f} %" for key in ("coverage_90", "mean_width_90")]
                + [f"{row['interval_score_90']:.2f}", f"{100 * surest['mean_ape']:.1f} %"]
                + [both(rest["mean_ape"], rest["median_ape"])]
            )
    return {"name": "neusight-kernels", "head": head, "rows": cells}


def own(documents: dict[str, Rows]) -> dict[str, Any]:
    """Return the table of the two datasets that errcomp measured."""
    head = ["Table", "sum of operators", *[name for name in SHOWN if name != "sum"]]
    cells = []
    for table in ("ort-cpu", "torch-cpu"):
        rows = {name: documents[table]["leave-model-out", name] for name in SHOWN}
        errors = [(row["mean_ape"], row["median_ape"]) for row in rows.values()]
        band = rows["stack"]
        cells.append(
            [f"`{table}` ({band['n']} runs, {band['groups']} networks)"]
            + [both(*error) for error in errors]
            + [f"{100 * band[key]:.0f} %" for key in ("coverage_90", "mean_width_90")]
        )
    return {"name": "own", "head": [*head, "90 % band covers", "its width"], "rows": cells}


def verdicts(documents: dict[str, Rows]) -> dict[str, Any]:
    """Return which of the survey's criteria `stack` meets: yes, no, or open (the interval says)."""
    cells = []
    cases = [("neusight-kernels", "leave-model-out", "new models")]
    cases += [("neusight-kernels", "leave-device-out", "new devices")]
    cases += [("vendors", "leave-vendor-out", "devices of a new vendor")]
    cases += [("ort-cpu", "leave-model-out", "new models, `ort-cpu`")]
    cases += [("torch-cpu", "leave-model-out", "new models, `torch-cpu`")]
    for name, split, words in cases:
        for after in _AFTER.values():
            row = documents[name].get((split, f"stack{after}"))
            if row is not None:
                error = interval(row["mean_ape"], row["mean_ape_low"], row["mean_ape_high"])
                holds = verdict(row["mean_ape_low"], row["mean_ape_high"])
                cells.append([f"{words}{after}", str(row["n"]), error, holds])
    return {"name": "verdicts", "head": ["Left out", "Runs", "MAPE", "Below 3 %"], "rows": cells}


def goals(documents: dict[str, Rows]) -> dict[str, Any]:
    """Return what the project asks of its two best estimators, beside what they reach."""
    shown = ("stack", "physics")
    neusight, predicted = documents["neusight-kernels"], documents["prediction"]
    models, devices = SPLITS
    errors = [
        ("new models", "4.0 / 1.9 %", neusight, models, ""),
        ("new models, not flagged", "3.2 / 1.7 %", neusight, models, ", not flagged"),
        ("new devices", "4.7 / 2.1 %", neusight, devices, ""),
        ("new devices, not flagged", "3.9 / 1.9 %", neusight, devices, ", not flagged"),
        ("new models, from predicted kernels", "7.0 %", predicted, models, ""),
        ("new devices, from predicted kernels", "8.0 %", predicted, devices, ""),
        ("new models, `ort-cpu`", "2.8 / 1.2 %", documents["ort-cpu"], models, ""),
        ("new models, `torch-cpu`", "8.3 / 5.6 %", documents["torch-cpu"], models, ""),
    ]
    cells = []
    for what, goal, rows, split, after in errors:
        found = [rows[split, f"{estimator}{after}"] for estimator in shown]
        cells.append([what, goal, *(both(row["mean_ape"], row["median_ape"]) for row in found)])
    adapted = json.loads((stored.RESULTS / "adapt.json").read_text(encoding="utf-8"))
    rows = {tuple(row[:3]): row for row in adapted["tables"][0]["rows"]}
    after_three = [rows[estimator, "3", "random"][3] for estimator in shown]
    cells.append(["new devices, three runs measured", "4.4 / 2.2 %", *after_three])
    widths = [neusight[devices, estimator]["mean_width_90"] for estimator in shown]
    shares = [f"{100 * width:.0f} %" for width in widths]
    cells.append(["width of the 90 % band, new devices", "35 %", *shares])
    return {"name": "goals", "head": ["Case", "Goal", *shown], "rows": cells}


def both(mean: float, median: float) -> str:
    return f"{100 * mean:.1f} / {100 * median:.1f} %"


def interval(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def verdict(low: float, high: float) -> str:
    return "yes" if high < BELOW else "no" if low >= BELOW else "open"


def values(documents: dict[str, Rows]) -> dict[str, Any]:
    """Return what the text says beside the tables."""
    stack = documents["ort-cpu"]["leave-model-out", "stack"]
    groups = {one["group"]: one for one in stack["by_group"]}
    rest = [one for name, one in groups.items() if name != ODD]
    weights = [one["n"] for one in rest]
    return {
        "prediction": {
            left_out: {name: documents["prediction"][split, name]["mean_ape"] for name in SHOWN}
            for split, left_out in SPLITS.items()
        },
        ODD: {
            "n": groups[ODD]["n"],
            "coverage_90": groups[ODD]["coverage_90"],
            "without": float(np.average([one["mean_ape"] for one in rest], weights=weights)),
        },
        "on_top": documents["vendors"]["leave-vendor-out", "stack"]["mean_ape"]
        - documents["neusight-kernels"]["leave-model-out", "stack"]["mean_ape"],
        "one_factor": documents["torch-cpu"]["leave-model-out", "global"]["mean_ape"],
        "corrected_sums": {
            "before": errors_of_sums(None),
            **{left_out: errors_of_sums(left_out[:-1]) for left_out in SPLITS.values()},
        },
    }


def errors_of_sums(left_out: str | None) -> dict[str, float]:
    """Return errors of predicted sums against measured ones, each group corrected by the others."""
    kernels = load("neusight-kernels")
    errors: list[float] = []
    groups = kernels.column(left_out) if left_out else np.zeros(kernels.n)
    for group in dict.fromkeys(groups.tolist()):
        new = kernels.take(groups == group)
        totals, times = new.totals(), new.predicted
        if left_out:
            times = KernelCorrection().fit(kernels.take(groups != group)).apply(new).predicted
        found = np.bincount(new.codes("run"), new.count * times)
        errors += np.abs(found / totals.measured - 1).tolist()
    return {"mape": float(np.mean(errors)), "median_ape": float(np.median(errors))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    found = documents(args.folder)
    document = {
        "command": "python benchmarks/calibration_table.py FOLDER",
        "made": datetime.date.today().isoformat(),
        "seed": 0,
        "values": values(found),
        "tables": [by_split(found["neusight-kernels"]), own(found), verdicts(found), goals(found)],
    }
    path = stored.RESULTS / "calibration.json"
    path.write_text(stored.as_text(document), encoding="utf-8")


if __name__ == "__main__":
    main()
