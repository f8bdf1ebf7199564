"""How long the bootstrap of whole clusters takes.

Run: python benchmarks/bench_clusters.py [--quick] [-o FOLDER]

The built-in table: 146 configurations in 24 groups of model, mode and batch, 9,999 resamples. By
hand, in two ways: NumPy draws clusters and concatenates their rows, resample by resample, which is
the most common way; or draws sums by cluster all at once. No other package resamples clusters:
wildboottest tests a single value where errcomp gives an interval.
"""

from __future__ import annotations

from collections.abc import Callable

import asking
import numpy as np

import errcomp as ec
from errcomp.metrics.intervals import estimate

RESAMPLES = 9_999

Sample = tuple[np.ndarray, np.ndarray, np.ndarray]


def embedded() -> Sample:
    """Return predictions, measurements and clusters of the built-in table."""
    pairs = ec.datasets.load("neusight").of_tool("neusight")
    codes = np.stack([pairs.codes(name) for name in ("model", "mode", "batch")])
    return pairs.predicted, pairs.measured, np.unique(codes, axis=1, return_inverse=True)[1].ravel()


def made(clusters: int) -> Sample:
    """Return six pairs in each of a number of clusters."""
    rng = np.random.default_rng(2)
    code = np.repeat(np.arange(clusters), 6)
    measured = np.exp(rng.standard_normal(len(code)))
    noise = 0.2 * rng.standard_normal(clusters)[code] + 0.1 * rng.standard_normal(len(code))
    return measured * np.exp(noise), measured, code


def ours(sample: Sample, resamples: int = RESAMPLES) -> Callable[[], list[float | None]]:
    predicted, measured, code = sample

    def work() -> list[float | None]:
        found = estimate(
            "mape",
            predicted=predicted,
            measured=measured,
            clusters=code,
            method="bootstrap-t",
            resamples=resamples,
        )
        return [found.low, found.high]

    return work


def loop(sample: Sample, resamples: int = RESAMPLES) -> Callable[[], list[float]]:
    predicted, measured, code = sample

    def work() -> list[float]:
        errors, rng = np.abs(predicted / measured - 1), np.random.default_rng(0)
        parts = [errors[code == one] for one in np.unique(code)]
        means = [
            np.concatenate([parts[i] for i in rng.integers(0, len(parts), len(parts))]).mean()
            for _ in range(resamples)
        ]
        return np.quantile(means, [0.025, 0.975]).tolist()

    return work


def by_sums(sample: Sample, resamples: int = RESAMPLES) -> Callable[[], list[float]]:
    predicted, measured, code = sample

    def work() -> list[float]:
        errors, rng = np.abs(predicted / measured - 1), np.random.default_rng(0)
        sums, sizes = np.bincount(code, errors), np.bincount(code)
        drawn = rng.integers(0, len(sums), (resamples, len(sums)))
        means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
        return np.quantile(means, [0.025, 0.975]).tolist()

    return work


def measure(question: asking.Question) -> None:
    question.uses("numpy")
    sample = embedded()
    errors = np.abs(sample[0] / sample[1] - 1).tolist()
    found = question.against(
        f"{len(np.unique(sample[2]))} clusters, 9,999 resamples",
        len(errors),
        "pairs",
        ours(sample),
        why="Both draw whole clusters 9,999 times and take quantiles of the MAPE; only errcomp "
        "also divides the deviation of each resample by its standard error.",
        NumPy_loop=loop(sample),
        NumPy_sums_by_cluster=by_sums(sample),
    )
    seconds = max(row["ours_slowest"] for row in found.values())
    question.target("146 configurations in clusters, 9,999 resamples", seconds, 0.1, "s")
    sizes = [20, 200, 2_000] if question.quick else [20, 200, 2_000, 20_000]
    question.grows("999 resamples", "clusters", lambda n: ours(made(n), 999), sizes)


if __name__ == "__main__":
    asking.ask(
        "clusters",
        "Cluster bootstrap",
        "An interval of the MAPE where pairs of one cluster are not independent: the bootstrap "
        "resamples whole clusters.",
        measure,
    )
