"""Do bands hold for other predictors of the same runs?

Makes the second table of docs/propagation.md, stored in docs/results/predictors.json. Needs the
artifact of NeuSight, which also has predictions of Habitat, of a micro-benchmark model and of a
roofline.

    python benchmarks/predictors_table.py ../shared/data/neusight-artifact
"""

from __future__ import annotations

import argparse
from pathlib import Path

import stored

from errcomp.datasets import load
from errcomp.propagation import validate
from errcomp.propagation.validation import Validation, ValidationRow
from errcomp.readers.kernels import read

TOOLS = ("neusight", "roofline", "micro", "habitat")
ASSUMPTIONS = ("estimated", "independent", "repeats", "comonotonic")


def cells(found: Validation) -> list[str]:
    """Return per cent of the totals inside the bands, with the width of the estimated one."""
    held = {(one.assumption, round(one.level, 2)): one for one in found.rows}
    estimated = [held["estimated", level] for level in (0.5, 0.8, 0.9)]
    shares = " / ".join(f"{100 * one.coverage:.0f}" for one in estimated)
    ninety = [held[name, 0.9] for name in ASSUMPTIONS]
    return [
        f"{shares} {interval(ninety[0])}",
        f"{100 * ninety[0].mean_width:.0f}",
        *(f"{100 * one.coverage:.0f} {interval(one)}" for one in ninety[1:]),
    ]


def interval(one: ValidationRow) -> str:
    """Write the interval of a coverage."""
    return f"[{100 * one.coverage_low:.0f}, {100 * one.coverage_high:.0f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    args = parser.parse_args()
    with stored.printed("predictors"):
        print(
            "| predictor, left out | `estimated` 50 / 80 / 90 | width (90) | `independent` 90 "
            "| `repeats` 90 | `comonotonic` 90 |\n|---|---:|---:|---:|---:|---:|"
        )
        for tool in TOOLS:
            own = tool == "neusight"
            table = load(f"{tool}-kernels") if own else read(args.artifact, tool=tool)
            for left_out in ("device", "model"):
                found = validate(table, assume=ASSUMPTIONS, leave_out=left_out)
                print(f"| {tool}, {left_out} | " + " | ".join(cells(found)) + " |")


if __name__ == "__main__":
    main()
