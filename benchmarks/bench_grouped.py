"""How fast grouped figures of rows that stay in an engine are, beside engines by hand.

Run: python benchmarks/bench_grouped.py [--quick] [-o FOLDER]

Six figures of five million pairs in 10,000 groups. Peers: the same figures in Polars (lazy, its
in-memory and its streaming engine), pandas and DuckDB, written by hand as anybody would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asking
import environments
import numpy as np
import polars as pl

import errcomp as ec

FIGURES = ("mape", "gmape", "max_ape", "wape", "bias", "rmsle")
ROWS, GROUPS = 5_000_000, 10_000


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


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the figures in the order of the groups, to compare."""
    return frame.sort("group").select(FIGURES)


def ours(frame: pl.LazyFrame, level: float | None = None) -> Callable[[], Any]:
    def work() -> pl.DataFrame:
        return in_order(ec.summarize(frame, by="group", figures=FIGURES, level=level).to_frame())

    return work


def measure(question: asking.Question) -> None:
    rows = ROWS // 10 if question.quick else ROWS
    frame = table(rows, GROUPS, 1).lazy()
    question.uses("polars", "numpy")
    peers = {
        name: environments.Peer("frames", f"of_{name}", rows=rows, groups=GROUPS)
        for name in ("pandas", "duckdb")
    }
    found = question.against(
        "six figures by group",
        rows,
        "pairs",
        ours(frame),
        why="Both compute the six metrics of each group from the same rows, and sort the groups; "
        "errcomp also checks each value.",
        Polars=lambda: in_order(by_hand(frame).collect()),
        Polars_streaming=lambda: in_order(by_hand(frame).collect(engine="streaming")),
        pandas=peers["pandas"],
        DuckDB=peers["duckdb"],
    )
    ratio = found["Polars"]["ratio_worst"]
    question.target("grouped summary against Polars by hand", ratio, 1.1, "times")
    found = question.against(
        "with intervals of 95 %",
        rows,
        "pairs",
        ours(frame, 0.95),
        why="The figures are the same; only errcomp computes intervals, so the ratio is the price "
        "of intervals.",
        Polars_without_intervals=lambda: in_order(by_hand(frame).collect()),
    )
    ratio = found["Polars without intervals"]["ratio_worst"]
    question.target("with intervals, against Polars without", ratio, 1.3, "times")
    sizes = [10**k for k in range(3, 6 if question.quick else 8)]
    question.grows(
        "six figures by group",
        "pairs",
        lambda n: ours(table(n, min(GROUPS, n // 10), 2).lazy()),
        sizes,
    )


if __name__ == "__main__":
    asking.ask(
        "grouped",
        "Grouped summary",
        "Six figures (MAPE, geometric mean, maximum, WAPE, bias, RMSLE) of each of 10,000 groups, "
        "computed from rows in memory.",
        measure,
    )
