"""Critical values of the step test by simulation: makes errcomp/halflife/step_null.json.

Series of normal noise without a step are scanned like any other; the table keeps upper quantiles of
the largest evidence. It has one row per number of values and share of the degrees of freedom that
comes from the series itself (1: noise unknown; 0: noise known exactly).

    python benchmarks/step_rates.py make 2      # all lengths for steps of two versions at least
    python benchmarks/step_rates.py rates       # false alarms under other noise, and power
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from errcomp.halflife.steps import scan as scan
from errcomp.halflife.steps.scan import Batch
from errcomp.halflife.steps.summary import search

TABLE = Path(__file__).resolve().parents[1] / "errcomp" / "halflife" / "step_null.json"
LENGTHS = [*range(4, 17), 18, 20, 24, 28, 32, 40, 50, 64, 80, 100, 128, 160, 200, 280, 400]
SHARES = [0.0, 0.25, 0.5, 0.75, 1.0]
TAILS = [0.8, 0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001]
SEED = 20261120


def replicates(n: int) -> int:
    return 200_000 if n <= 32 else 80_000 if n <= 100 else 40_000 if n <= 200 else 12_000


def quantiles(n: int, min_segment: int) -> list[list[float]]:
    """Return upper quantiles of the evidence, a row for each share."""
    count = replicates(n)
    rng = np.random.default_rng([SEED, n, min_segment])
    weight = np.ones((1, n))
    parts = []
    for size in [20_000] * (count // 20_000) or [count]:
        x = scan.winsorised(rng.standard_normal((size, n)), weight)
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
        rows.append([round(float(q), 4) for q in np.quantile(best, 1 - np.array(TAILS))])
    return rows


def make(min_segment: int) -> None:
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    table.update(
        made_by="benchmarks/step_rates.py",
        seed=SEED,
        lengths=LENGTHS,
        shares=SHARES,
        tails=TAILS,
        replicates=[replicates(n) for n in LENGTHS],
    )
    lengths = [n for n in LENGTHS if n >= 2 * min_segment]
    rows = []
    for n in lengths:
        rows.append(quantiles(n, min_segment))
        print(n, rows[-1][-1][8], flush=True)
    table.setdefault("quantiles", {})[str(min_segment)] = rows
    TABLE.write_text(json.dumps(table, separators=(",", ":")) + "\n")


def autocorrelated(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    noise = rng.standard_normal(size)
    for i in range(1, size[1]):
        noise[:, i] = 0.3 * noise[:, i - 1] + np.sqrt(1 - 0.3**2) * noise[:, i]
    return noise


NOISES: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "t3": lambda rng, size: rng.standard_t(3, size),
    "Laplace": lambda rng, size: rng.laplace(size=size),
    "log-normal 0.5": lambda rng, size: rng.lognormal(0.0, 0.5, size),
    "log-normal 1": lambda rng, size: rng.lognormal(0.0, 1.0, size),
    "autocorrelated 0.3": autocorrelated,
}


def alarms(x: np.ndarray, alpha: float = 0.05) -> float:
    """Return the share of series in which any step is found, their noise unknown."""
    count, n = x.shape
    batch = Batch.of(x.ravel(), np.ones(count * n), np.arange(count + 1) * n, np.zeros(count))
    return float((search(batch, 1e-9, 2)[0] <= alpha).mean())


def rates() -> None:
    """Print false alarms by kind of noise, then power, in per cent."""
    rng = np.random.default_rng(SEED)
    for n in (6, 8, 12, 20, 50, 100, 200):
        size = (10_000 if n < 60 else 3000, n)
        found = [f"{100 * alarms(noise(rng, size)):.1f}" for noise in NOISES.values()]
        print(n, dict(zip(NOISES, found, strict=True)), flush=True)
    for n in (6, 8, 12, 20, 40, 100):
        # A step at any place with two values at least on both sides, then one there and back.
        at = rng.integers(2, n - 1, 4000)
        place, row = np.arange(n), []
        for sizes in (2, 3, 5):
            x = rng.standard_normal((4000, n)) + sizes * (place >= at[:, None])
            row.append(f"step {sizes}: {100 * alarms(x):.0f}")
        for length in (2, 3, 4):
            if n < 4 + length:
                continue
            at = rng.integers(2, n - length - 1, 4000)
            inside = (place >= at[:, None]) & (place < at[:, None] + length)
            for sizes in (3, 5):
                x = rng.standard_normal((4000, n)) + sizes * inside
                row.append(f"{length} values {sizes}: {100 * alarms(x):.0f}")
        print(n, ", ".join(row), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(int(sys.argv[2]))
    else:
        rates()
