"""How often does a table without any problem get a caveat? Makes the tables of docs/caveats.md.

Draws pairs whose errors have nothing to do with size, device, model, variant, mode or training set,
and counts the tables that get a caveat which rests on a test. Stored in docs/results/rates.json;
`python docs/sources.py` puts the tables into the page.

    python benchmarks/rates_table.py --reps 600 --jobs 2
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np
import stored

from errcomp import Pairs
from errcomp.caveats import CHECKS, _report
from errcomp.caveats._case import Case

Draw = Callable[[np.random.Generator, int], np.ndarray]
RATE = 0.05
#: Errors of the usual shapes, then two that are heavier.
SHAPES: dict[str, Draw] = {
    "uniform": lambda rng, n: rng.uniform(-0.2, 0.2, n),
    "normal": lambda rng, n: 0.1 * rng.standard_normal(n),
    "log-normal, σ = 0.2": lambda rng, n: np.expm1(0.2 * rng.standard_normal(n)),
    "logistic": lambda rng, n: 0.06 * rng.logistic(size=n),
    "Laplace": lambda rng, n: 0.08 * rng.laplace(size=n),
    "Student t, 5 degrees of freedom": lambda rng, n: 0.08 * rng.standard_t(5, n),
    "*exponential of a Laplace error, sd 0.2*": lambda rng, n: np.expm1(
        rng.laplace(scale=0.2 / np.sqrt(2), size=n)
    ),
    "*exponential of a t error, sd 0.2*": lambda rng, n: np.expm1(
        0.2 * np.sqrt(3 / 5) * rng.standard_t(5, n)
    ),
}
#: Errors of either sign whose size is log-normal: heavy, but the same for all groups.
SIZED: Draw = lambda rng, n: rng.choice([-1, 1], n) * 0.05 * rng.lognormal(0, 0.8, n)  # noqa: E731
SIZES, ALONE = (10, 20, 50, 100, 300, 1000), (12, 40, 146)
ANY, ANYTHING = "any test", "anything reported"


class Job(NamedTuple):
    """A shape of errors, a size of table, and how many of them."""

    shape: str
    n: int
    runs: int
    seed: int


def clean(rng: np.random.Generator, error: np.ndarray) -> Pairs:
    """Return pairs with these errors, and keys that have nothing to do with them."""
    n = len(error)
    measured = rng.lognormal(0, 1, n)
    return Pairs(
        {
            "predicted": measured * (1 + error),
            "measured": measured,
            "device": rng.choice(["A", "B", "C", "D"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "model": rng.choice(list("uvwxyz"), n),
            "variant": rng.choice(["base", "fusion"], n, p=[0.8, 0.2]),
            "mode": rng.choice(["inference", "training"], n),
            "in_training": rng.random(n) < 0.5,
            "batch": rng.integers(1, 9, n),
            "seq_len": np.arange(n),
        }
    )


def rates(job: Job) -> tuple[Job, dict[str, float]]:
    """Return the share of tables that each check alone, any test and anything came up in."""
    draw = SHAPES.get(job.shape, SIZED)
    found: Counter[str] = Counter()
    for i in range(job.runs):
        rng = np.random.default_rng([job.seed, job.n, i])
        case = Case(clean(rng, draw(rng, job.n)), seed=i)
        applied = [f for one in CHECKS if one.scope == "pairs" and (f := one.function(case))]
        found.update(f.caveat.code for f in applied if f.caveat and f.p is not None and f.p <= RATE)
        said = _report(applied, 1 - RATE)
        found[ANY] += any("p_value" in one.evidence for one in said)
        found[ANYTHING] += bool(said)
    return job, {name: count / job.runs for name, count in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=600, help="tables of each kind")
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    jobs = [Job(s, n, args.reps // (1 + (n > 100)), args.seed) for s in SHAPES for n in SIZES]
    jobs += [Job(s, n, args.reps, args.seed + 1) for s in ("normal", "") for n in ALONE]
    with stored.printed("rates", seed=args.seed, samples=args.reps):
        with Pool(args.jobs) as pool:
            found = dict(pool.imap(rates, sorted(jobs, key=lambda job: -job.n)))
        print_shapes({(j.shape, j.n): f for j, f in found.items() if j.seed == args.seed})
        print_checks({(j.shape, j.n): f for j, f in found.items() if j.seed != args.seed})


def print_shapes(found: dict[tuple[str, int], dict[str, float]]) -> None:
    """Print how often any test fires, by shape and size."""
    print("| errors | " + " | ".join(f"n = {n:,}" for n in SIZES) + " |")
    print("|---|" + "---:|" * len(SIZES))
    for shape in SHAPES:
        cells = [percent(found[shape, n], ANY) for n in SIZES]
        print(f"| {shape} | " + " | ".join(cells) + " |")
    print()


def print_checks(found: dict[tuple[str, int], dict[str, float]]) -> None:
    """Print how often each check fires alone: of normal errors, then of those that are heavier."""
    columns = [found[shape, n] for shape in ("normal", "") for n in ALONE]
    codes = sorted({code for one in columns for code in one} - {ANY, ANYTHING})
    print("| check | " + " | ".join(f"n = {n}" for _ in range(2) for n in ALONE) + " |")
    print("|---|" + "---:|" * len(columns))
    for code in (*codes, ANYTHING):
        name = code if code == ANYTHING else f"`{code}`"
        print(f"| {name} | " + " | ".join(percent(one, code) for one in columns) + " |")


def percent(found: dict[str, float], name: str) -> str:
    """Write a share in per cent."""
    return f"{100 * found.get(name, 0.0):.1f}"


if __name__ == "__main__":
    main()
