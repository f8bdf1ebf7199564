"""How often does an audit call a true claim wrong? Makes the second part of docs/intervals.md.

Draws tables of pairs whose errors are correlated within models, devices or both, claims exactly the
MAPE of the population, and evaluates that claim as an audit does. Reports false verdicts, refusals,
coverage, width, and how often a claim of half the error is found overstated. Stored in
docs/results/verdicts.json; `python docs/sources.py` puts the table into the page.

    python benchmarks/verdict_table.py --reps 300 --jobs 2
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from multiprocessing import Pool
from typing import Any, NamedTuple

import numpy as np
import stored

import errcomp as ec
from errcomp.claims.auditing import AUDIT_FIGURES
from errcomp.claims.registry import user_claim
from errcomp.claims.verdict import judge

Array = np.ndarray


class Design(NamedTuple):
    """Labels of the pairs: one array per key."""

    name: str
    keys: dict[str, Array]


def clusters(*sizes: int, key: str = "model") -> dict[str, Array]:
    """Return one key, with a number of pairs for each value."""
    return {key: np.repeat(np.arange(len(sizes)), sizes)}


def crossed(models: int, devices: int, repeats: int = 1) -> dict[str, Array]:
    """Return every model on every device, each in a number of configurations."""
    model = np.repeat(np.arange(models), devices * repeats)
    return {"model": model, "device": np.tile(np.repeat(np.arange(devices), repeats), models)}


DESIGNS = (
    Design("3 devices x 10", clusters(*[10] * 3, key="device")),
    Design("4 models x 36", clusters(*[36] * 4)),
    Design("6 models x 5", clusters(*[5] * 6)),
    Design("12 models x 12", clusters(*[12] * 12)),
    Design("sizes 4, 4, 1, 1, 1", clusters(4, 4, 1, 1, 1)),
    Design("sizes 20, 8, 4, 2, 1, 1", clusters(20, 8, 4, 2, 1, 1)),
    Design("one of 40, 5 of 2", clusters(40, 2, 2, 2, 2, 2)),
    Design("6 models x 6 devices", crossed(6, 6)),
    Design("8 x 5 x 2", crossed(8, 5, 2)),
    Design("3 models x 6 devices", crossed(3, 6)),
)
ICC = (0.0, 0.3, 0.5, 0.7)
SIGMA = 0.3
#: The largest coefficient of the shared part of the logarithm of an error's size.
SCALE = 0.8


def shift(rng: np.random.Generator, labels: list[Array], icc: float) -> Array:
    """Log errors that clusters shift: the error itself is shared."""
    return SIGMA * (np.sqrt(icc) * shared(rng.standard_normal, labels) + noise(rng, labels, icc))


def scale(rng: np.random.Generator, labels: list[Array], icc: float) -> Array:
    """Log errors whose size differs by cluster."""
    size = np.exp(np.sqrt(icc) * SCALE * shared(rng.standard_normal, labels))
    return SIGMA / 2 * size * rng.standard_normal(len(labels[0]))


def heavy(rng: np.random.Generator, labels: list[Array], icc: float) -> Array:
    """Shifts and noise of Student t with three degrees of freedom, cut at eight deviations."""

    def draw(size: int) -> Array:
        return np.clip(rng.standard_t(3, size) / math.sqrt(3), -8, 8)

    own = draw(len(labels[0]))
    return SIGMA * (np.sqrt(icc) * shared(draw, labels) + np.sqrt(1 - icc) * own)


def mixture(rng: np.random.Generator, labels: list[Array], icc: float) -> Array:
    """Shifts, and noise that is three times as large for one pair in ten."""
    larger = np.where(rng.random(len(labels[0])) < 0.1, 3.0, 1.0)
    return SIGMA * (
        np.sqrt(icc) * shared(rng.standard_normal, labels) + larger * noise(rng, labels, icc)
    )


def shared(draw: Callable[[int], Array], labels: list[Array]) -> Array:
    """Sum of one effect a key, of variance 1 in all."""
    return np.sum([draw(label.max() + 1)[label] for label in labels], axis=0) / np.sqrt(len(labels))


def noise(rng: np.random.Generator, labels: list[Array], icc: float) -> Array:
    return np.sqrt(1 - icc) * rng.standard_normal(len(labels[0]))


LAWS = {"shift": shift, "scale": scale, "heavy": heavy, "mixture": mixture}


def truth(law: str, labels: list[Array], icc: float) -> float:
    """MAPE of the population: of a million samples of one pair, in effect."""
    rng = np.random.default_rng([7, list(LAWS).index(law), int(10 * icc)])
    alone = [np.arange(1_000_000) for _ in labels]
    return float(np.abs(np.expm1(LAWS[law](rng, alone, icc))).mean())


class Outcome(NamedTuple):
    """What audits of true claims came to, and what claims of half the truth would have."""

    over: float
    under: float
    refused: float
    covered: float
    width: float
    far: float
    power: float


def judged(table: dict[str, Any], claimed: float) -> Any:
    claim, pairs = user_claim(f"{100 * claimed:.12g}%", aggregation="mean"), ec.Pairs(table)
    figures = ec.summarize(pairs, figures=AUDIT_FIGURES).pooled.figures
    return figures["mape"], judge(claim, figures, pairs).word


def outcome(job: tuple[int, str, float, int, int]) -> tuple[tuple[int, str, float], Outcome]:
    which, law, icc, reps, seed = job
    keys = DESIGNS[which].keys
    labels, target = list(keys.values()), truth(law, list(keys.values()), icc)
    rng = np.random.default_rng([seed, which, list(LAWS).index(law), int(10 * icc)])
    words, bounds = [], []
    for _ in range(reps):
        measured = np.exp(rng.standard_normal(len(labels[0])))
        predicted = measured * np.exp(LAWS[law](rng, labels, icc))
        table = {"predicted": predicted, "measured": measured}
        table |= {name: label.astype(str) for name, label in keys.items()}
        found, word = judged(table, target)
        words.append(word)
        if found.low is not None:
            bounds.append((found.low, found.high))
    low, high = np.asarray(bounds or [(np.nan, np.nan)]).T
    return (which, law, icc), Outcome(
        words.count("overstated") / reps,
        words.count("understated") / reps,
        words.count("not verifiable") / reps,
        float(np.mean((low <= target) & (target <= high))),
        float(np.median(high / low)),
        float(np.quantile(high / target, 0.9)),
        # The claim of half the error is overstated where the whole interval lies above it.
        float(np.count_nonzero(low >= target / 2) / reps),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--laws", default="shift,scale,heavy,mixture")
    args = parser.parse_args()
    jobs = [
        (which, law, icc, args.reps, args.seed)
        for which in range(len(DESIGNS))
        for law in args.laws.split(",")
        for icc in ICC
        if icc or law != "scale"
    ]
    with stored.printed("verdicts", seed=args.seed, samples=args.reps) as values:
        with Pool(args.jobs) as pool:
            found = dict(pool.imap(outcome, jobs))
        values["called_wrong"] = max(one.over + one.under for one in found.values())
        print(
            "| design | law | ICC | overstated | understated | not verifiable | covered | width "
            "| bound / truth | power |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
        )
        for (which, law, icc), one in found.items():
            shares = [f"{100 * v:.1f}" for v in one[:4]]
            ratios = [f"{v:.3g}" for v in one[4:6]]
            name = DESIGNS[which].name
            cells = [name, law, f"{icc}", *shares, *ratios, f"{100 * one.power:.0f}"]
            print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
