"""How long bootstrap intervals take, and how much memory: flat in n.

Run: python benchmarks/bench_intervals.py [--quick] [-o FOLDER]

9,999 resamples of 2,000 and 20,000 pairs. Memory is the peak that the resampling itself allocates,
without the pairs. SciPy has no studentised bootstrap: its percentile and BCa intervals are compared
with ours by the same methods, and with our studentised one.
"""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable

import asking
import environments
import numpy as np

from errcomp.metrics.intervals import estimate
from errcomp.metrics.intervals._smooth import deviations

RESAMPLES = 9_999
LIMITS = {2_000: 0.15, 20_000: 1.0}


def sample(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    measured = np.exp(rng.standard_normal(n))
    return {"measured": measured, "predicted": measured * np.exp(0.3 * rng.standard_normal(n))}


def ours(n: int, method: str, resamples: int = RESAMPLES) -> Callable[[], list[float | None]]:
    pairs = sample(n)

    def work() -> list[float | None]:
        found = estimate("mape", **pairs, method=method, resamples=resamples)
        return [found.low, found.high]

    return work


def by_hand(n: int, resamples: int = RESAMPLES) -> Callable[[], list[float]]:
    """Percentiles of resampled means in plain NumPy, in blocks that stay in the cache."""
    pairs = sample(n)

    def work() -> list[float]:
        errors = np.abs(pairs["predicted"] / pairs["measured"] - 1)
        rng, means = np.random.default_rng(0), np.empty(resamples)
        rows = max(1, 50_000 // n)
        for start in range(0, resamples, rows):
            size = (min(rows, resamples - start), n)
            means[start : start + rows] = errors[rng.integers(0, n, size)].mean(axis=1)
        return np.quantile(means, [0.025, 0.975]).tolist()

    return work


def others() -> dict[str, dict[str, object]]:
    """Return the other cases that are resampled 9,999 times, by name."""
    clusters = np.arange(2_000) // 20
    return {
        "WAPE": {"method": "bootstrap-t"},
        "MAPE, 100 clusters": {"method": "bootstrap-t", "clusters": clusters},
    }


def peak_mib(n: int, resamples: int) -> float:
    r = sample(n)["predicted"]
    r = r - r.mean()
    tracemalloc.start()
    deviations(r, None, resamples=resamples, rng=np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def measure(question: asking.Question) -> None:
    for n, limit in LIMITS.items():
        if question.quick and n > 2_000:
            continue

        def peer(task: str, method: str, n: int = n) -> environments.Peer:
            return environments.Peer("bootstrap", task, n=n, method=method, resamples=RESAMPLES)

        found = question.against(
            "bootstrap-t",
            n,
            "pairs",
            ours(n, "bootstrap-t"),
            why="Both draw 9,999 resamples of single pairs and take quantiles of them; percentile "
            "methods do less, because they need no standard error of each resample.",
            arch_studentized=peer("of_arch", "studentized"),
            SciPy_percentile=peer("of_scipy", "percentile"),
            NumPy_percentile_by_hand=by_hand(n),
        )
        seconds = max(row["ours_slowest"] for row in found.values())
        question.target(f"bootstrap-t of {n:,} pairs, 9,999 resamples", seconds, limit, "s")
        question.against(
            "percentile",
            n,
            "pairs",
            ours(n, "percentile"),
            why="The same method, from 9,999 resamples of single pairs.",
            SciPy=peer("of_scipy", "percentile"),
            arch=peer("of_arch", "percentile"),
        )
        question.against(
            "BCa",
            n,
            "pairs",
            ours(n, "bca"),
            why="The same method, from 9,999 resamples of single pairs.",
            SciPy=peer("of_scipy", "BCa"),
        )
    sizes = [10**k for k in range(2, 4 if question.quick else 6)]
    question.grows(
        "bootstrap-t, 999 resamples", "pairs", lambda n: ours(n, "bootstrap-t", 999), sizes
    )
    for what, options in others().items():
        figure = what.split(",")[0].lower()
        work = functools.partial(estimate, figure, **sample(2_000), **options)
        question.note(f"{what}, 2,000 pairs", 1000 * question.alone(work), "ms")
    most = 200_000 if question.quick else 2_000_000
    question.target(f"memory of resampling {most:,} pairs", peak_mib(most, 19), 8, "MiB")


if __name__ == "__main__":
    asking.ask(
        "bootstrap",
        "Bootstrap intervals",
        "An interval of the MAPE from 9,999 resamples of single pairs.",
        measure,
    )
