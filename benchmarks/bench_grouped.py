"""How fast grouped figures of rows that stay in an engine are, against the engine by hand.

Run: python benchmarks/bench_grouped.py [--rows 5000000] [--groups 10000] [--runs 7] [-o FILE.json]
     python benchmarks/bench_grouped.py --parquet FOLDER --rows 100000000    larger than memory

The peer is a Polars lazy query for the same six figures, written by hand as anybody would, on
Polars' in-memory engine (its default) and on its streaming engine. Both sides run in turn; what
counts is the median ratio, as other jobs slow both. With --parquet the rows are written to files
first (if they are not there) and peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import errcomp as ec

FIGURES = ("mape", "gmape", "max_ape", "wape", "bias", "rmsle")
PART = 10_000_000


def table(rows: int, groups: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    measured = np.exp(rng.standard_normal(rows))
    predicted = measured * np.exp(0.1 * rng.standard_normal(rows))
    group = rng.integers(0, groups, rows, dtype=np.int32)
    return pl.DataFrame({"predicted": predicted, "measured": measured, "group": group})


def by_hand(frame: pl.LazyFrame) -> pl.LazyFrame:
    p, m = pl.col("predicted"), pl.col("measured")
    error = (p - m) / m
    return frame.group_by("group").agg(
        error.abs().mean().alias("mape"),
        error.abs().log().mean().exp().alias("gmape"),
        error.abs().max().alias("max_ape"),
        ((p - m).abs().sum() / m.sum()).alias("wape"),
        error.mean().alias("bias"),
        ((p / m).log() ** 2).mean().sqrt().alias("rmsle"),
    )


def sides(frame: pl.LazyFrame) -> dict[str, Callable[[], Any]]:
    def ours(level: float | None) -> Callable[[], Any]:
        return lambda: ec.summarize(frame, by="group", figures=FIGURES, level=level).to_frame()

    return {
        "polars, by hand": lambda: by_hand(frame).collect(),
        "polars streaming, by hand": lambda: by_hand(frame).collect(engine="streaming"),
        "errcomp": ours(None),
        "errcomp with intervals": ours(0.95),
    }


def agree(frame: pl.LazyFrame) -> None:
    """Require the same figures of both sides."""
    work = sides(frame)
    one = work["errcomp"]().sort("group")
    other = work["polars, by hand"]().sort("group")
    for name in FIGURES:
        np.testing.assert_allclose(one[name].to_numpy(), other[name].to_numpy(), rtol=1e-9)


def in_memory(rows: int, groups: int, runs: int) -> dict[str, Any]:
    frame = table(rows, groups, 1).lazy()
    agree(frame)
    times: dict[str, list[float]] = {name: [] for name in sides(frame)}
    for _ in range(runs):
        for name, work in sides(frame).items():
            begun = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begun)
    best = times["polars streaming, by hand"]
    for name, found in times.items():
        ratios = [a / b for a, b in zip(found, best, strict=True)]
        print(
            f"{name:28} min {min(found):6.3f} s, median {statistics.median(found):6.3f} s, "
            f"against streaming by hand {statistics.median(ratios):.2f}"
        )
    return {name: {"seconds": found} for name, found in times.items()}


def on_disk(folder: Path, rows: int, groups: int) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(0, rows, PART):
        part = folder / f"part-{i // PART:04}.parquet"
        if not part.exists():
            table(min(PART, rows - i), groups, i).write_parquet(part)
    size = sum(part.stat().st_size for part in folder.glob("*.parquet"))
    begun = time.perf_counter()
    for part in sorted(folder.glob("*.parquet")):
        with part.open("rb") as file:
            while file.read(1 << 24):
                pass
    read = time.perf_counter() - begun
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    found = ec.summarize(ec.scan(folder), by="group", figures=FIGURES)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{sum(row.n for row in found.rows):,} rows, {size / 1e9:.2f} GB: {seconds:.1f} s, "
        f"{rows / seconds / 1e6:.1f} million rows/s; reading the files alone {read:.1f} s; peak "
        f"memory {peak / 2**20:.2f} GiB ({before / 2**20:.2f} GiB before)"
    )
    return {"rows": rows, "bytes": size, "seconds": seconds, "reading": read, "peak_kib": peak}


def main() -> None:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--parquet", type=Path)
    parser.add_argument("-o", dest="output", type=Path)
    args = parser.parse_args()
    if args.parquet:
        found = on_disk(args.parquet, args.rows, args.groups)
    else:
        found = in_memory(args.rows, args.groups, args.runs)
    about = {"rows": args.rows, "groups": args.groups, "polars": pl.__version__}
    about |= {"errcomp": ec.__version__, "machine": platform.machine()}
    if args.output:
        args.output.write_text(json.dumps({**about, "found": found}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
