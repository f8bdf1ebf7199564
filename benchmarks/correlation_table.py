"""How often do intervals of correlations cover the truth, and how wide are they?

Makes the tables on correlations of docs/intervals.md, stored in docs/results/correlations.json.
Pairs have log-normal sizes and errors that are shares of them, from laws that the method was not
made for. "Accuses" counts intervals that lie wholly below the truth: a claim that is exactly true
would be called overstated.

    python benchmarks/correlation_table.py --reps 600
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import stored
from scipy import special
from scipy.stats import kendalltau, spearmanr

from errcomp.metrics.intervals.direct import correlation_bounds

LEVEL = 0.95
SIZES = (8, 10, 20, 50, 200)
CLUSTERS = (3, 4, 5, 8, 12, 20)
OF_ORDER = ("kendall", "spearman")
#: Pairs of each sample.
OF_PAIRS = {"pearson": SIZES, "r2": (50, 200), "kendall": (10, 20, 50), "spearman": (20, 50, 200)}
#: Standard deviations of the logarithm of the sizes: 95 % within a factor of 7, 50 and 2,500.
SPREADS = (0.5, 1.0, 2.0)
Draw = Callable[[np.random.Generator, int], np.ndarray]


def normal(sigma: float) -> Draw:
    return lambda rng, n: sigma * rng.standard_normal(n)


def laplace(sigma: float) -> Draw:
    return lambda rng, n: rng.laplace(scale=sigma / np.sqrt(2), size=n)


def student(sigma: float, df: int = 5, limit: float = 6.0) -> Draw:
    """Student t, cut at ±6 so that exp of it has moments."""
    edge, scale = special.stdtr(df, -limit), sigma / np.sqrt(df / (df - 2))
    return lambda rng, n: scale * special.stdtrit(df, edge + rng.random(n) * (1 - 2 * edge))


def outliers(sigma: float, times: float, share: float) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return sigma * np.where(rng.random(n) < share, times, 1.0) * rng.standard_normal(n)

    return draw


def bimodal(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.2, np.log(1.4), 0.0) + 0.1 * rng.standard_normal(n)


#: Laws of ln(predicted / measured).
LAWS: dict[str, Draw] = {
    "normal, σ = 0.1": normal(0.1),
    "normal, σ = 0.3": normal(0.3),
    "normal, σ = 0.6": normal(0.6),
    "Laplace, σ = 0.1": laplace(0.1),
    "Laplace, σ = 0.6": laplace(0.6),
    "Student t(5), σ = 0.3": student(0.3),
    "Student t(5), σ = 0.6": student(0.6),
    "80 % σ = 0.1, 20 % at +40 %": bimodal,
    "90 % σ = 0.1, 10 % five times that": outliers(0.1, 5, 0.1),
    "97 % σ = 0.1, 3 % ten times that": outliers(0.1, 10, 0.03),
}


class Shared(NamedTuple):
    """Errors in clusters: what the pairs of a cluster share."""

    sigma: float
    icc: float
    #: Share of clusters that are off by a factor of two.
    off: float = 0.0

    def draw(self, rng: np.random.Generator, code: np.ndarray) -> np.ndarray:
        """Draw ln(predicted / measured) of the pairs of these clusters."""
        k = int(code.max()) + 1
        shared, noise = rng.standard_normal(k)[code], rng.standard_normal(len(code))
        x = self.sigma * (np.sqrt(self.icc) * shared + np.sqrt(1 - self.icc) * noise)
        return x + np.log(2) * (rng.random(k) < self.off)[code]


DESIGNS = {
    "σ = 0.1, ICC 0.3": Shared(0.1, 0.3),
    "σ = 0.3, ICC 0.3": Shared(0.3, 0.3),
    "σ = 0.6, ICC 0.7": Shared(0.6, 0.7),
    "σ = 0.1, one cluster in eight off by 2": Shared(0.1, 0.3, 1 / 8),
}


def truth(name: str, errors: np.ndarray, spread: float) -> float:
    """Return the correlation of the population that independent errors are drawn from."""
    ratio, g = np.exp(errors), np.exp(spread**2)
    if name == "r2":
        return float(1 - ((ratio - 1) ** 2).mean() * g / (g - 1))
    if name == "pearson":
        return float(np.sqrt((g - 1) / (g * (ratio**2).mean() / ratio.mean() ** 2 - 1)))
    m = np.exp(spread * np.random.default_rng(1).standard_normal(len(errors)))
    part = slice(0, 400_000)
    function = {"kendall": kendalltau, "spearman": spearmanr}[name]
    return float(function(m[part] * ratio[part], m[part]).statistic)


@cache
def true_of_law(name: str, law: str, spread: float) -> float:
    return truth(name, LAWS[law](np.random.default_rng(5), 4_000_000), spread)


@cache
def true_of_design(name: str, design: str, spread: float) -> float:
    errors = DESIGNS[design].draw(np.random.default_rng(5), np.arange(4_000_000))
    return truth(name, errors, spread)


class Found(NamedTuple):
    """What many samples gave: as shares of those with an interval, but for ``given``."""

    given: float
    covered: float
    accuses: float
    low: float
    high: float


def summary(found: list, target: float) -> Found:
    bounds = np.asarray([one for one in found if not isinstance(one, str)])
    if len(bounds) < 20:
        return Found(len(bounds) / len(found), np.nan, np.nan, np.nan, np.nan)
    low, high = bounds.T
    inside = (low <= target) & (target <= high)
    return Found(
        len(bounds) / len(found),
        float(inside.mean()),
        float((high < target).mean()),
        float(np.median(low)),
        float(np.median(high)),
    )


def of_pairs(name: str, law: str, spread: float, n: int, reps: int, seed: int) -> Found:
    rng = np.random.default_rng([seed, n, int(10 * spread), list(LAWS).index(law)])
    found = []
    for _ in range(reps):
        m = np.exp(spread * rng.standard_normal(n))
        p = m * np.exp(LAWS[law](rng, n))
        found.append(correlation_bounds(name, p, m, None, LEVEL))
    return summary(found, true_of_law(name, law, spread))


def of_clusters(
    name: str, design: str, spread: float, k: int, reps: int, seed: int, *, sizes_icc: float = 0.5
) -> Found:
    """Clusters of 1 to 20 pairs (3 to 20 where there are fewer than 5), whose sizes are alike."""
    rng = np.random.default_rng([seed, k, int(10 * spread), list(DESIGNS).index(design)])
    found = []
    for _ in range(reps):
        code = np.repeat(np.arange(k), rng.integers(3 if k < 5 else 1, 21, size=k))
        alike, own = rng.standard_normal(k)[code], rng.standard_normal(len(code))
        m = np.exp(spread * (np.sqrt(sizes_icc) * alike + np.sqrt(1 - sizes_icc) * own))
        p = m * np.exp(DESIGNS[design].draw(rng, code))
        found.append(correlation_bounds(name, p, m, code, LEVEL))
    return summary(found, true_of_design(name, design, spread))


def table(
    head: str, unit: str, columns: tuple[int, ...], rows: list[tuple[str, list[Found]]]
) -> None:
    """Print coverage, in brackets what share accuses, and the median interval."""
    print(f"| {head} | " + " | ".join(f"{unit} = {c}" for c in columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for name, cells in rows:
        texts = []
        for one in cells:
            given = "" if round(100 * one.given) == 100 else f", {100 * one.given:.0f} % given"
            texts.append(
                f"{one.covered:.3f} ({one.accuses:.3f}), {one.low:.2f} to {one.high:.3f}{given}"
                if one.covered == one.covered
                else f"none ({100 * one.given:.0f} % given)"
            )
        print(f"| {name} | " + " | ".join(texts) + " |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=41)
    args = parser.parse_args()
    with stored.printed("correlations", seed=args.seed, samples=args.reps) as values:
        values |= tables(args)


def tables(args: argparse.Namespace) -> dict[str, float]:
    """Print the tables; return the largest share of true claims called overstated, by kind."""
    most: dict[str, float] = {}
    for name, sizes in OF_PAIRS.items():
        reps = args.reps if name not in OF_ORDER else args.reps // 2
        for spread in SPREADS:
            rows = [
                (law, [of_pairs(name, law, spread, n, reps, args.seed) for n in sizes])
                for law in LAWS
            ]
            table(f"{name}, sizes σ = {spread}", "n", sizes, rows)
            for _, cells in rows:
                for n, one in zip(sizes, cells, strict=True):
                    kind = f"{name} from {n}" if name == "kendall" else name
                    most[kind] = max(most.get(kind, 0.0), np.nan_to_num(one.accuses))
    for name in ("pearson", *OF_ORDER):
        clusters = CLUSTERS if name not in OF_ORDER else CLUSTERS[2:]
        reps = args.reps if name not in OF_ORDER else args.reps // 2
        rows = [
            (
                f"sizes {spread}, {design}",
                [of_clusters(name, design, spread, k, reps, args.seed) for k in clusters],
            )
            for spread in (0.5, 1.0)
            for design in DESIGNS
        ]
        table(f"{name} in clusters", "k", clusters, rows)
        accused = [one.accuses for _, cells in rows for one in cells]
        most["clusters"] = max(most.get("clusters", 0.0), np.nanmax(accused))
    return most


if __name__ == "__main__":
    main()
