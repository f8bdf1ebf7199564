"""What would the gate have done with the histories of real projects?

Each history is gone through in its order, and twenty times in random order, with its steps and
without (`errcomp halflife check HISTORY --dry-run`). Makes a table of docs/gate.md, stored in
docs/results/gate_replays.json.

    python benchmarks/gate_replays.py ../shared/data/longitudinal
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import stored

from errcomp import datasets
from errcomp.halflife.gate.dry_run import IN_ORDER, SHUFFLED, WITHOUT_STEPS, dry_run
from errcomp.tables import History

#: Dataframe engines of the H2O benchmark with the most versions.
ENGINES = ("pandas", "dask", "data.table", "pydatatable", "spark", "juliadf")


def histories(folder: Path) -> Iterator[tuple[str, History]]:
    """Yield the histories, each with its name; versions are in order of their columns."""
    yield "ONNX Runtime, built in", datasets.load("ort-releases")
    rows = pl.read_csv(folder / "ort_cpu_preview" / "ops.csv")
    rows = rows.filter(pl.col("sum_median_us") >= 20)
    yield (
        "ONNX Runtime, preview",
        History(
            rows.select(
                "version",
                series=pl.col("model") + "/" + pl.col("op_type"),
                measured="sum_median_us",
                repeat="round",
            )
        ),
    )
    yield (
        "MLPerf Inference",
        History(
            pl.read_csv(
                folder / "mlperf_inference" / "embedded_candidate.csv", infer_schema_length=None
            ),
            columns={
                "version": "round",
                "measured": "value",
                "series": "series_id",
                "released": "date",
            },
        ),
    )
    yield (
        "MLPerf Training",
        History(
            pl.read_csv(
                folder / "mlperf_training" / "mlperf_training_longitudinal.csv",
                infer_schema_length=None,
            ),
            columns={
                "version": "round",
                "measured": "throughput",
                "series": "series_id",
                "released": "date",
                "measured_spread": "throughput_cv",
                "n_repeats": "n_runs",
            },
        ),
    )
    rows = pl.read_csv(folder / "megatron_bridge" / "nemo_release_perf.csv", infer_schema=False)
    keys = ["model", "task", "system", "gpus", "precision", "gbs", "seqlen"]
    yield (
        "Megatron Bridge",
        History(
            rows.select("release", *keys, measured="tokens_s_gpu"),
            columns={"version": "release"},
            unit="tokens/s",
        ),
    )
    rows = pl.read_csv(folder / "h2o_db_benchmark" / "h2o_times.csv.gz", infer_schema_length=None)
    rows = rows.filter((pl.col("t2") > 0) & (pl.col("node") == "mr-dl11"))
    for engine in ENGINES:
        of_engine = rows.filter(pl.col("solution") == engine)
        yield (
            f"db-benchmark, {engine}",
            # Days are looks: the same version was measured again and again.
            History(
                of_engine.select(
                    version="date",
                    series=pl.concat_str("task", "data", "question", separator="/"),
                    measured="t2",
                    repeat="batch",
                ),
                order=sorted(set(of_engine["date"].cast(pl.String))),
                unit="s",
            ),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="histories whose name contains this")
    args = parser.parse_args()
    with stored.printed("gate_replays"):
        print(
            "| history | series | looks | alarms per 1,000 looks, in order | random order "
            "| random order, steps taken out | gates with an alarm there | promise | steps found "
            "| alarms in order that are steps |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
        for name, history in histories(args.folder):
            if args.only not in name:
                continue
            done = dry_run(history)
            per_1000 = [done.rate(order).per_1000 for order in (IN_ORDER, SHUFFLED, WITHOUT_STEPS)]
            quiet = done.rate(WITHOUT_STEPS)
            found = sum(step.delay > 0 for step in done.steps)
            print(
                f"| {name} | {done.n_series} | {done.rate(IN_ORDER).looks} | "
                + " | ".join("–" if np.isnan(rate) else f"{rate:.0f}" for rate in per_1000)
                + f" | {quiet.fired} of {quiet.gates} | {100 * done.promised:.1f} % "
                f"| {found} of {len(done.steps)} "
                f"| {sum(alarm.step for alarm in done.alarms)} of {len(done.alarms)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
