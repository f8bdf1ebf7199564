"""Critical values of the step test by simulation: makes errcomp/halflife/step_null.json.

Series of normal noise without a step are scanned like any other; the table keeps upper quantiles of
the largest evidence. It has one row per number of values, autocorrelation of neighbours, and share
of the degrees of freedom that comes from the series itself (1: noise unknown; 0: noise known
exactly). It also has the mean and the standard deviation of the autocorrelation about the levels of
a first search, by number of values and true autocorrelation.

    python benchmarks/step_rates.py make        # all critical values, then the autocorrelations
    python benchmarks/step_rates.py rates 200   # false alarms and power, series in groups of 200
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from errcomp.halflife.steps import laws, null
from errcomp.halflife.steps import scan as scan
from errcomp.halflife.steps.scan import Batch
from errcomp.halflife.steps.search import search

TABLE = Path(__file__).resolve().parents[1] / "errcomp" / "halflife" / "step_null.json"
LENGTHS = [*range(4, 17), 18, 20, 24, 28, 32, 40, 50, 64, 80, 100, 128, 160, 200, 280, 400]
SHARES = [0.0, 0.25, 0.5, 0.75, 1.0]
AUTOCORRELATIONS = [0.0, 0.15, 0.3, 0.45, 0.6, 0.75]
TAILS = [0.8, 0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001]
SEED = 20261120


def replicates(n: int) -> int:
    return 200_000 if n <= 32 else 80_000 if n <= 100 else 40_000 if n <= 200 else 12_000


def autocorrelated(rng: np.random.Generator, size: tuple[int, int], rho: float) -> np.ndarray:
    noise = rng.standard_normal(size)
    for i in range(1, size[1]):
        noise[:, i] = rho * noise[:, i - 1] + np.sqrt(1 - rho**2) * noise[:, i]
    return noise


def quantiles(n: int, min_segment: int, rho: float) -> list[list[float]]:
    """Return upper quantiles of the evidence, a row for each share."""
    count = replicates(n)
    rng = np.random.default_rng([SEED, n, min_segment, *([round(100 * rho)] if rho else [])])
    weight, runs = np.ones((1, n)), np.full((1, 2), scan.SHORTEST_RUN)
    parts = []
    for size in [20_000] * (count // 20_000) or [count]:
        noise = autocorrelated(rng, (size, n), rho)
        x = scan.winsorised(noise, weight, np.repeat(runs, size, axis=0))
        parts.append(scan.gains(x, weight, min_segment))
    squares, split, interval = (np.concatenate(part) for part in zip(*parts, strict=True))
    handicap = scan.penalty(n, min_segment)
    rows = []
    for share in SHARES:
        df = np.inf if share == 0 else (n - 2) * (1 - share) / share
        given = rng.chisquare(df, count) / df if 0 < df < np.inf else np.ones(count)
        freedom = np.full(count, df)
        best = np.maximum(
            scan.local_evidence(split, squares, n, given, freedom),
            scan.local_evidence(interval, squares, n, given, freedom) - handicap,
        )
        rows.append([round(float(q), 3) for q in np.quantile(best, 1 - np.array(TAILS))])
    return rows


def moments(n: int) -> list[list[float]]:
    """Return mean and standard deviation of the autocorrelation found, by the true one."""
    count = 20_000 if n <= 32 else 6000 if n <= 100 else 2000
    found = []
    # All that are distinguished: between those with quantiles the mean is not straight.
    for rho in null.autocorrelations():
        rng = np.random.default_rng([SEED, n, round(100 * rho)])
        x = autocorrelated(rng, (count, n), rho)
        found.append(laws.residuals(batch_of(x)).r)
    rows = [np.nanmean(found, axis=1), np.nanstd(found, axis=1)]
    return [[round(float(value), 4) for value in row] for row in rows]


def make() -> None:
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    table.update(
        made_by="benchmarks/step_rates.py",
        seed=SEED,
        lengths=LENGTHS,
        shares=SHARES,
        tails=TAILS,
        autocorrelations=AUTOCORRELATIONS,
        replicates=[replicates(n) for n in LENGTHS],
    )
    for min_segment in (2, 3, 4):
        lengths = [n for n in LENGTHS if n >= 2 * min_segment]
        rows = []
        for n in lengths:
            rows.append([quantiles(n, min_segment, rho) for rho in AUTOCORRELATIONS])
            print(min_segment, n, [of_rho[-1][8] for of_rho in rows[-1]], flush=True)
        table.setdefault("quantiles", {})[str(min_segment)] = rows
    table.setdefault("neighbours", [])
    write(table)
    null._table.cache_clear()
    table["neighbours"] = [moments(n) for n in LENGTHS]
    write(table)


def write(table: dict[str, object]) -> None:
    TABLE.write_text(json.dumps(table, separators=(",", ":")) + "\n")


def batch_of(x: np.ndarray) -> Batch:
    count, n = x.shape
    return Batch.of(x.ravel(), np.ones(count * n), np.arange(count + 1) * n, np.zeros(count))


Law = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def bad(size: float, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    x = rng.standard_normal(shape)
    return x + size * rng.choice([-1, 1], shape) * (rng.random(shape) < 0.05)


NOISES: dict[str, Law] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "t3": lambda rng, size: rng.standard_t(3, size),
    "Laplace": lambda rng, size: rng.laplace(size=size),
    "log-normal 0.5": lambda rng, size: rng.lognormal(0.0, 0.5, size),
    "log-normal 1": lambda rng, size: rng.lognormal(0.0, 1.0, size),
    "bad runs": lambda rng, size: bad(6.0, rng, size),
    "AR 0.3": lambda rng, size: autocorrelated(rng, size, 0.3),
    "AR 0.5": lambda rng, size: autocorrelated(rng, size, 0.5),
    "AR 0.7": lambda rng, size: autocorrelated(rng, size, 0.7),
}


def alarms(x: np.ndarray, group: int) -> float:
    """Return the share of series in which any step is found, searched in groups."""
    found = []
    for start in range(0, len(x), group):
        batch = batch_of(x[start : start + group])
        learned = laws.learned(batch, np.arange(len(batch.given)))
        found.append(search(learned, 1e-9, 2)[0] <= 0.05)
    return 100 * float(np.mean(np.concatenate(found)))


def rates(group: int) -> None:
    """Print false alarms by kind of noise, then power, in per cent, for groups of series."""
    rng = np.random.default_rng(SEED)
    # Series that are searched one by one take their time.
    fewer = 1 if group > 1 else 8
    for n in (6, 8, 12, 20, 50, 100, 200):
        size = ((10_000 if n < 60 else 3000) // fewer, n)
        found = [f"{alarms(noise(rng, size), group):.1f}" for noise in NOISES.values()]
        print(n, dict(zip(NOISES, found, strict=True)), flush=True)
    for n in (6, 8, 12, 20, 40, 100):
        # A step at any place with two values at least on both sides, then one there and back.
        count = 4000 // fewer
        at = rng.integers(2, n - 1, count)
        place, row = np.arange(n), []
        for sizes in (2, 3, 5):
            x = rng.standard_normal((count, n)) + sizes * (place >= at[:, None])
            row.append(f"step {sizes}: {alarms(x, group):.0f}")
        for length in (2, 3, 4):
            if n < 4 + length:
                continue
            at = rng.integers(2, n - length - 1, count)
            inside = (place >= at[:, None]) & (place < at[:, None] + length)
            for sizes in (3, 5):
                x = rng.standard_normal((count, n)) + sizes * inside
                row.append(f"{length} values {sizes}: {alarms(x, group):.0f}")
        print(n, ", ".join(row), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make()
    else:
        rates(int(sys.argv[2]))
