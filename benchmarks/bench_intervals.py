"""How long a bootstrap takes and how much memory it needs: flat in n.

Run: python benchmarks/bench_intervals.py [RUNS]. Budget: 150 ms for 9,999 resamples of 2,000 pairs,
the minimum over RUNS (other jobs on the machine only make it slower). Memory is the peak that
the resampling itself allocates, beside the pairs.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from errcomp.metrics.intervals import estimate
from errcomp.metrics.intervals._resample import deviations

#: n and resamples; large n get fewer.
SIZES = ((2_000, 9_999), (200_000, 199), (2_000_000, 19))


def sample(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    measured = np.exp(rng.standard_normal(n))
    return {"measured": measured, "predicted": measured * np.exp(0.3 * rng.standard_normal(n))}


def milliseconds(work: Callable[[], object], runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - begun))
    return times


def peak_mib(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main(runs: int) -> None:
    """Print a line for each case."""
    print(f"{runs} runs each")
    pairs = sample(2_000)
    clusters = np.arange(2_000) // 20
    nested = [clusters, np.arange(2_000) // 5]
    cases: dict[str, dict[str, object]] = {
        "mape": {},
        "wape": {},
        "mape, bca": {"method": "bca"},
        "mape, 100 clusters": {"clusters": clusters},
        "mape, 100 clusters of 4": {"clusters": nested},
    }
    for name, options in cases.items():
        figure = name.split(",", maxsplit=1)[0]

        def work(figure: str = figure, options: dict = options) -> object:
            return estimate(figure, **pairs, **options)

        times = milliseconds(work, runs)
        print(
            f"{name:24} n = 2,000, 9,999 resamples: min {min(times):6.1f} ms, "
            f"median {statistics.median(times):6.1f} ms"
        )
    for n, resamples in SIZES:
        r = sample(n)["predicted"]
        r = r - r.mean()

        def work(r: np.ndarray = r, resamples: int = resamples) -> object:
            return deviations(r, None, None, resamples=resamples, rng=np.random.default_rng(0))

        times = milliseconds(work, max(3, runs // 3))
        per_draw = 1e6 * min(times) / (n * resamples)
        print(
            f"resampling n = {n:>9,}, {resamples:>5,} resamples: min {min(times):7.1f} ms "
            f"({per_draw:.1f} ns per draw), peak memory {peak_mib(work):.1f} MiB"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
