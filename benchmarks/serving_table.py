"""How far are predicted steps and requests off on held-out experiments, corrected or not?

Makes a table of docs/calibration.md from published pairs of two serving simulators, in a minute.
Stored in docs/results/serving.json; `python docs/sources.py` puts the table into the page. TOOLS
is the folder with the tables `blis/round1_step_predictions*.csv` and
`llmservingsim/per_request_sim_vs_vllm.csv`.

    python benchmarks/serving_table.py TOOLS
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import stored

from errcomp.calibration import evaluate_composition
from errcomp.tables import Kernels

#: Times of a request, by their name in the table.
REQUEST = {"ttft": "time to first token", "tpot": "time per token", "latency": "latency"}
SHOWN = ("sum", "global", "linear")
#: Wider bands, relative to the prediction, are all shown as "over" this width.
WIDEST = 10


def cases(tools: Path) -> Iterator[tuple[str, Kernels]]:
    """Yield what is predicted, with each experiment as a model of its own."""
    (steps,) = tools.glob("blis/round1_step_predictions*.csv")
    frame = pl.read_csv(steps).select(
        "workload",
        device="model",
        model="experiment_id",
        predicted="predicted_us",
        measured="step.duration_us",
    )
    yield "BLIS, steps", Kernels.of_runs(frame, unit="us")
    frame = pl.read_csv(tools / "llmservingsim" / "per_request_sim_vs_vllm.csv")
    for name, words in REQUEST.items():
        chosen = frame.select(
            device="hardware",
            model=pl.col("hardware") + "/" + pl.col("model"),
            predicted=f"sim_{name}_ms",
            measured=f"vllm_{name}_ms",
        )
        yield f"LLMServingSim, {words}", Kernels.of_runs(chosen, unit="ms")


def main() -> None:
    """Evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", type=Path, metavar="TOOLS")
    args = parser.parse_args()
    with stored.printed("serving", seed=0):
        print(
            "| prediction | cases, experiments | as it is | one factor | linear | 90 % band covers "
            "| its width |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|")
        for name, kernels in cases(args.tools):
            found = evaluate_composition(
                kernels, task="prediction", splits=["leave-model-out"], estimators=["linear"]
            )
            rows = [found.row("leave-model-out", estimator).to_dict() for estimator in SHOWN]
            errors = [f"{100 * r['mean_ape']:.1f} / {100 * r['median_ape']:.1f} %" for r in rows]
            plain = rows[0]
            width = plain["mean_width_90"]
            shown = f"{100 * width:.0f} %" if width < WIDEST else f"over {100 * WIDEST:.0f} %"
            band = f"{100 * plain['coverage_90']:.0f} % | {shown}"
            size = f"{plain['n']:,}, {plain['groups']}"
            print(f"| {name} | {size} | {' | '.join(errors)} | {band} |", flush=True)


if __name__ == "__main__":
    main()
