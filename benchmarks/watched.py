"""What the watch times: each part of errcomp beside the same done by hand, small and quick."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import bench_clusters
import bench_conformal
import bench_grouped
import bench_hierarchical
import bench_history
import bench_intervals
import bench_propagation_dag
import bench_propagation_sum
import bench_search
import bench_startup
import kineto_trace
import numpy as np
import timing

import errcomp as ec
from errcomp.calibration.kernels import KernelCorrection
from errcomp.claims.search import search_claim
from errcomp.readers.profilers import kineto

Pair = tuple[timing.Work, timing.Work]


def alike() -> Pair:
    """Moments of terms that are alike within classes; by hand: sums by class."""
    terms = bench_propagation_sum.block_terms(100_000)
    (level,), size = terms.levels, terms.value * terms.spread

    def by_hand() -> tuple[float, float]:
        shared = level.share * (np.bincount(level.codes, size) ** 2).sum()
        own = (1 - level.share) * (size**2).sum()
        return float(terms.value.sum()), float(np.sqrt(shared + own))

    return bench_propagation_sum.moments(terms), by_hand


def trace(folder: Path) -> Pair:
    path = folder / "trace.json"
    kineto_trace.make(path, 4)
    return lambda: kineto.read(path), lambda: json.loads(path.read_text(encoding="utf-8"))


def search() -> Pair:
    pairs, claim = ec.datasets.load("neusight"), bench_search.CLAIM
    return lambda: search_claim(pairs, claim, keys=["device"]), bench_search.by_numpy(5_000)


def effects() -> Pair:
    """Pool kernels; by hand: least squares of the same effects."""
    table = bench_hierarchical.made(10)
    y = np.log(table.measured / table.predicted)
    kind, device = table.codes("kernel_class"), table.codes("device")
    design = np.concatenate([np.eye(10)[kind], np.eye(6)[device], np.eye(60)[6 * kind + device]], 1)
    return lambda: KernelCorrection().fit(table), lambda: np.linalg.lstsq(design, y)


def cases(folder: Path) -> Iterator[tuple[str, Pair]]:
    """Yield each series with both sides of it; data are made when it is its turn."""
    frame = bench_grouped.table(300_000, 1_000, 1).lazy()
    yield (
        "grouped summary",
        (bench_grouped.ours(frame), lambda: bench_grouped.by_hand(frame).collect()),
    )
    n, draws = 2_000, 1_999
    pair = bench_intervals.ours(n, "bootstrap-t", draws), bench_intervals.by_hand(n, draws)
    yield "bootstrap", pair
    sample = bench_clusters.embedded()
    yield "cluster bootstrap", (bench_clusters.ours(sample), bench_clusters.by_sums(sample))
    yield "sum of alike terms", alike()
    one, other = bench_propagation_sum.ours_one_factor, bench_propagation_sum.numpy_one_factor
    yield "one-factor Monte Carlo", (one(1_000, 2_000, "sobol"), other(1_000, 2_000))
    dag = bench_propagation_dag
    yield "execution graph", (dag.ours(1_002, "classes", 2_000), dag.by_hand(1_002, "classes", 500))
    bands = bench_conformal
    yield "conformal bands", (bands.ours(100_000, 1_000), bands.by_hand(100_000, 1_000))
    yield "trace reading", trace(folder)
    yield "claim search", search()
    yield "hierarchical fit", effects()
    yield "history fit", (bench_history.law(1_000), bench_history.law_by_hand(1_000))
    start = bench_startup.process
    numpy = start("-c", "import numpy")
    yield "start-up", (start("-c", "import errcomp"), numpy)
    yield "help", (start("-m", "errcomp", "--help"), numpy)


def cpu() -> float:
    """Return the seconds of CPU of this process and of those that it started and waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)
