"""How well does the physical model do on models and devices left out, without any extra?

Makes a table of docs/calibration.md from `evaluate_composition`, in two minutes. Stored in
docs/results/physics.json; `python docs/sources.py` puts the table into the page.

    python benchmarks/physics_table.py
"""

from __future__ import annotations

import stored

from errcomp.calibration import evaluate_composition
from errcomp.datasets import load

#: Table and task, and what is left out.
CASES = (
    ("neusight-kernels", "composition", "leave-model-out"),
    ("neusight-kernels", "composition", "leave-device-out"),
    ("neusight-kernels", "prediction", "leave-model-out"),
    ("neusight-kernels", "prediction", "leave-device-out"),
    ("ort-cpu", "composition", "leave-model-out"),
    ("torch-cpu", "composition", "leave-model-out"),
    ("torch-cuda", "composition", "leave-model-out"),
    ("torch-cuda", "composition", "leave-device-out"),
)
SHOWN = ("sum", "linear", "physics")


def main() -> None:
    """Evaluate and print."""
    with stored.printed("physics", seed=0):
        print(
            "| table, left out | sum of kernels | linear | physics | 90 % band covers | its width |"
        )
        print("|---|---:|---:|---:|---:|---:|")
        for name, task, split in CASES:
            found = evaluate_composition(
                load(name), splits=[split], estimators=["linear", "physics"], task=task
            )
            rows = [found.row(split, estimator).to_dict() for estimator in SHOWN]
            errors = [f"{100 * r['mean_ape']:.1f} / {100 * r['median_ape']:.1f} %" for r in rows]
            what = split.removeprefix("leave-").removesuffix("-out")
            label = f"`{name}`{', predicted kernels' if task == 'prediction' else ''}, {what}s"
            last = rows[-1]
            band = f"{100 * last['coverage_90']:.0f} % | {100 * last['mean_width_90']:.0f} %"
            print(f"| {label} | {' | '.join(errors)} | {band} |")


if __name__ == "__main__":
    main()
