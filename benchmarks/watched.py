"""What the watch times: small cases of errcomp, and the process that runs them when told.

Run by `watch.py`, once with today's code and once with that of the reference.
"""

from __future__ import annotations

import contextlib
import gc
import io
import resource
import sys
import tempfile
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
import timing

import errcomp as ec
from errcomp.calibration.kernels import KernelCorrection
from errcomp.claims.search import search_claim
from errcomp.readers.profilers import kineto


def cases(folder: Path) -> Iterator[tuple[str, timing.Work]]:
    """Yield each series with its work; data are made when it is its turn."""
    yield "grouped summary", bench_grouped.ours(bench_grouped.table(300_000, 1_000, 1).lazy())
    yield "bootstrap", bench_intervals.ours(2_000, "bootstrap-t", 1_999)
    yield "cluster bootstrap", bench_clusters.ours(bench_clusters.made(300))
    yield (
        "sum of alike terms",
        bench_propagation_sum.moments(bench_propagation_sum.block_terms(100_000)),
    )
    yield "one-factor Monte Carlo", bench_propagation_sum.ours_one_factor(1_000, 2_000, "sobol")
    yield "execution graph", bench_propagation_dag.ours(1_002, "classes", 2_000)
    yield "conformal bands", bench_conformal.ours(100_000, 1_000)
    path = folder / "trace.json"
    kineto_trace.make(path, 4)
    yield "trace reading", lambda: kineto.read(path)
    pairs = ec.datasets.load("neusight")
    yield "claim search", lambda: search_claim(pairs, bench_search.CLAIM, keys=["device"])
    table = bench_hierarchical.made(10)
    yield "hierarchical fit", lambda: KernelCorrection().fit(table)
    yield "history fit", bench_history.law(1_000)
    yield "start-up", bench_startup.process("-c", "import errcomp")
    yield "help", bench_startup.process("-m", "errcomp", "--help")


def cpu() -> float:
    """Return the seconds of CPU of this process and of those that it started and waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Print the name of each case, then its seconds for each line `run` that comes."""
    answers = sys.stdout
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for name, work in cases(Path(folder)):
            print(name, file=answers, flush=True)
            once = timing.timed(work, cpu)
            # Garbage collection would slow either side at random.
            gc.collect()
            gc.disable()
            while sys.stdin.readline() == "run\n":
                print(once()[0], file=answers, flush=True)
            gc.enable()


if __name__ == "__main__":
    main()
