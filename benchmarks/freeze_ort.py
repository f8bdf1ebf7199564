"""What would a model calibrated at the first release have predicted at every later one?

Run: python benchmarks/freeze_ort.py FOLDER (the folder that `longitudinal_ort.py` filled). Writes
FOLDER/history.csv, a history of validations for `errcomp halflife`, at five levels:

* kernel: an operator takes its time at the first release, by type and shapes. Only operators of
  30 µs and more: their times include the profiler's overhead, 1 to 3 µs at first and 5 to 7 µs
  since 1.28.
* operators: the same for all operators of a network together, including those of later releases.
* run: a network takes, un-profiled, its time at the first release.
* composition: a network takes the time of its operators at that release times a factor. The factor
  was fitted at the first release (`errcomp.Composition`, estimator linear) to the other networks,
  so that its error is that of held-out networks.
* model: the time of the operators at the first release times that factor.

At the first release the measured side is that of pairs in which both are the first release.

Changes are means over pieces of the changes that pairs of processes show, and times those of the
first release times the change. The process that was started first is slower, more where memory
decides: what that makes of a change is estimated over all releases and taken out (see `in_order`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from collecting import as_csv, in_ms

import errcomp as ec

NETWORK = ["model", "input"]
#: Times of shorter operators (ms) are mostly the profiler's overhead.
LEAST_TIME = 0.03
PER_PIECE = ["version", "piece", "anchor_first", *NETWORK]


def in_order(rows: pl.DataFrame, of: list[str]) -> pl.DataFrame:
    """Remove from log_ratio the effect of the order in which the two processes were started.

    Least squares with an effect of every release and one of the order, for each network or
    operator: y = release + order · (1/2 where the anchor came first, else -1/2).
    """
    half, y = pl.col("anchor_first") - 0.5, pl.col("log_ratio")
    cell = ["version", *of]
    around = half - half.mean().over(cell)
    squares = (around**2).sum().over(of)
    effect = pl.when(squares > 0).then((around * y).sum().over(of) / squares).otherwise(0.0)
    return rows.with_columns((y - effect * half).alias("log_ratio"))


def changes(rows: pl.DataFrame, of: list[str]) -> pl.DataFrame:
    """Average changes over pieces: log_ratio, its spread and how many there are."""
    return (
        in_order(rows, of)
        .group_by("version", *of, maintain_order=True)
        .agg(
            pl.col("log_ratio").mean(),
            pl.col("log_ratio").std().alias("measured_spread"),
            pl.len().alias("n_repeats"),
        )
    )


def anchor_kernels(kernels: pl.DataFrame, runs: pl.DataFrame, device: str) -> ec.Kernels:
    """Return what the first release took, over all pieces, as a table of kernels."""
    whole = runs.group_by(NETWORK, maintain_order=True).agg(
        pl.col("anchor_run").mean().alias("run_measured")
    )
    table = (
        kernels.filter(pl.col("anchor_time").is_not_null())
        .group_by(*NETWORK, "kernel_class", "kernel", maintain_order=True)
        .agg(
            pl.col("anchor_count").first().alias("count"),
            pl.col("anchor_time").mean().alias("measured"),
        )
        .join(whole, on=NETWORK)
        .with_columns(
            pl.concat_str(NETWORK, separator="/").alias("run"),
            pl.col("kernel").str.split("->").list.last().alias("shape"),
            pl.lit("inference").alias("mode"),
            pl.lit(device).alias("device"),
        )
    )
    return ec.Kernels(table, unit="ms", source="the first release")


def factors(kernels: ec.Kernels) -> dict[str, float]:
    """Return by run what it takes per time of its operators, fitted to the other networks."""
    found = {}
    models = kernels.column("model").astype(str)
    for model in dict.fromkeys(models.tolist()):
        others = kernels.take(np.flatnonzero(models != model))
        fitted = ec.Composition(estimators=()).fit(others)
        said = fitted.predict(kernels.take(np.flatnonzero(models == model)), estimator="linear")
        found |= dict(zip(said.run.tolist(), (said.predicted / said.total).tolist(), strict=True))
    return found


def sums(kernels: pl.DataFrame) -> pl.DataFrame:
    """Return for each piece and network the change of its operators together."""
    sides = [
        (pl.col(count) * pl.col(time)).sum()
        for count, time in (("count", "time"), ("anchor_count", "anchor_time"))
    ]
    return kernels.group_by(PER_PIECE, maintain_order=True).agg(
        (sides[0] / sides[1]).log().alias("log_ratio"), sides[1].alias("anchor_time")
    )


def history(
    runs: pl.DataFrame, kernels: pl.DataFrame, protocol: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the rows of the history."""
    frozen = anchor_kernels(kernels, runs, protocol["machine"]["device"])
    factor = factors(frozen)
    totals = frozen.totals()
    first = dict(zip(totals.run.tolist(), totals.measured.tolist(), strict=True))
    took = dict(zip(totals.run.tolist(), totals.run_measured.tolist(), strict=True))
    time_of = {
        (run, kernel): time
        for run, kernel, time in zip(
            frozen.run.tolist(), frozen.kernel.tolist(), frozen.measured.tolist(), strict=True
        )
    }
    rows = []
    of_kernel = [*NETWORK, "kernel_class", "kernel"]
    same = kernels.filter(pl.col("log_ratio").is_not_null())
    for row in changes(same, of_kernel).iter_rows(named=True):
        time = time_of[f"{row['model']}/{row['input']}", row["kernel"]]
        if time < LEAST_TIME:
            continue
        rows.append(row_of("kernel", row, protocol, time, time * np.exp(row["log_ratio"])))
    summed = sums(kernels)
    of_run = {
        (row["version"], row["model"], row["input"]): row
        for row in changes(runs, NETWORK).iter_rows(named=True)
    }
    between = summed.join(runs, on=PER_PIECE, suffix="_run").with_columns(
        (pl.col("log_ratio_run") - pl.col("log_ratio")).alias("log_ratio")
    )
    apart = {
        (row["version"], row["model"], row["input"]): row["measured_spread"]
        for row in changes(between, NETWORK).iter_rows(named=True)
    }
    for row in changes(summed, NETWORK).iter_rows(named=True):
        key = (row["version"], row["model"], row["input"])
        run, whole = f"{row['model']}/{row['input']}", of_run[key]
        total = first[run] * np.exp(row["log_ratio"])
        end_to_end = took[run] * np.exp(whole["log_ratio"])
        rows.append(row_of("operators", row, protocol, first[run], total))
        rows.append(row_of("run", whole, protocol, took[run], end_to_end))
        spread = {"measured_spread": apart[key]}
        rows.append(row_of("composition", row | spread, protocol, total * factor[run], end_to_end))
        rows.append(row_of("model", whole, protocol, first[run] * factor[run], end_to_end))
    return rows


def row_of(
    level: str,
    row: Mapping[str, Any],
    protocol: Mapping[str, Any],
    predicted: float,
    measured: float,
) -> dict[str, Any]:
    """Return one validation."""
    spread = row["measured_spread"]
    return {
        "level": level,
        "series": f"{row['model']}/{row['input']} {row.get('kernel', '')}".rstrip(),
        "model": row["model"],
        "kernel_class": row.get("kernel_class", ""),
        "version": row["version"],
        "released": protocol["releases"][row["version"]],
        "predicted": in_ms(1000 * predicted),
        "measured": in_ms(1000 * measured),
        "measured_spread": None if spread is None else round(spread, 5),
        "n_repeats": row["n_repeats"],
    }


def main() -> int:
    """Read what was measured and write the history."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with runs.csv, kernels.csv and protocol.json")
    folder = parser.parse_args().folder
    runs, kernels = (
        pl.read_csv(folder / f"{name}.csv", schema_overrides={"version": pl.String})
        for name in ("runs", "kernels")
    )
    protocol = json.loads((folder / "protocol.json").read_text(encoding="utf-8"))
    order = {version: i for i, version in enumerate(protocol["releases"])}
    rows = history(runs, kernels, protocol)
    levels = ("kernel", "operators", "run", "composition", "model")
    rows.sort(key=lambda row: (levels.index(row["level"]), row["series"], order[row["version"]]))
    temporary = folder / "history.csv.tmp"
    temporary.write_text(as_csv(rows), encoding="utf-8")
    temporary.replace(folder / "history.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
