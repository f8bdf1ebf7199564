"""How often does the half-life by steps cover, and how wide is it beside the survival methods?

Histories of 30 series and 24 releases are simulated under eight laws of steps, none of which is the
one that the method assumes exactly. Makes a table of docs/half-life.md, stored in
docs/results/half_life_by_steps.json.

    python benchmarks/half_life_table.py --sets 100 --jobs 2
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool

import numpy as np
import stored

from errcomp.halflife.drift import fit_variogram
from errcomp.halflife.estimators.by_steps import steps_half_life
from errcomp.halflife.estimators.expiry import expiry_of
from errcomp.halflife.estimators.survival import half_lives_of
from errcomp.halflife.panel import HalfLife, Panel
from errcomp.halflife.steps import find_steps_of

SERIES, VERSIONS, THRESHOLD, RATE, SIZE = 30, 24, 0.1 * math.sqrt(3), 0.12, 0.3
LAWS = {
    "normal": "normal sizes",
    "heavy": "Student t, 2 degrees of freedom",
    "two": "sizes of 5 % and 50 %",
    "one way": "in one direction",
    "rates": "rates differ between series",
    "undone": "undone after three releases",
    "clusters": "shared by three series of a cluster",
    "releases": "many series at the same releases",
}
Ends = tuple[float, float] | None


def drifts(law: str, n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Draw errors without noise, from 0 at the first release."""
    sizes, rate = rng.normal(0, SIZE, (n, m)), np.full((n, m), RATE)
    if law == "heavy":
        sizes = SIZE * rng.standard_t(2, (n, m))
    elif law == "two":
        sizes = rng.choice([-1, 1], (n, m)) * rng.choice([0.05, 0.5], (n, m))
    elif law == "one way":
        sizes = np.abs(sizes)
    elif law == "rates":
        rate = rng.gamma(1, RATE, (n, 1)) * np.ones((n, m))
    elif law == "releases":
        rate = rng.choice([0, 0.02, 0.6], (1, m), p=[0.4, 0.42, 0.18]) * np.ones((n, m))
    elif law == "undone":
        rate = rate / 2
    happened = rng.random((n, m)) < rate
    if law == "clusters":
        cluster = np.arange(n) // 3
        happened, sizes = happened[cluster], sizes[cluster] * rng.uniform(0.7, 1.3, (n, 1))
    happened[:, 0] = False
    moved = np.where(happened, sizes, 0.0)
    if law == "undone":
        moved[:, 3:] -= np.where(happened, sizes, 0.0)[:, :-3]
    return moved.cumsum(axis=1)


def truth(law: str) -> float:
    """Return the release by which half of many series have been beyond the threshold."""
    rng, first = np.random.default_rng(99), []
    for _ in range(60):
        beyond = np.abs(drifts(law, 300, 150, rng)) >= THRESHOLD
        first.append(np.where(beyond.any(axis=1), beyond.argmax(axis=1), 1000))
    return float(np.median(np.concatenate(first)))


def panel_of(law: str, n: int, noise: float, rng: np.random.Generator) -> Panel:
    """Draw a history of n series, whose noise is known."""
    error = drifts(law, n, VERSIONS, rng)
    error = error + noise * rng.standard_normal(error.shape)
    return Panel(
        versions=tuple(map(str, range(VERSIONS))),
        months=2.0 * np.arange(VERSIONS),
        names=tuple(map(str, range(n))),
        clusters=np.arange(n) // (3 if law == "clusters" else 1),
        starts=VERSIONS * np.arange(n + 1),
        version=np.tile(np.arange(VERSIONS), n),
        error=(error - error[:, :1]).ravel(),
        sd=np.full(error.size, noise),
        noise_df=np.full(n, np.inf),
        frozen_at_first=True,
    )


def one(seed: int, law: str, noise: float) -> tuple[Ends, Ends]:
    """Simulate a history; return the intervals by steps and of Turnbull, None if refused."""
    panel = panel_of(law, SERIES, noise, np.random.default_rng([seed, len(law)]))
    steps, fit = find_steps_of(panel), fit_variogram(panel, "releases")
    mine = steps_half_life(panel, THRESHOLD, "releases", steps, fit)
    return ends(mine), ends(half_lives_of(expiry_of(panel, THRESHOLD, "releases"))[0])


def ends(fit: HalfLife) -> Ends:
    """Return the interval of a half-life, if it has one."""
    return None if fit.low is None or fit.high is None else (fit.low, fit.high)


def cells(found: list[Ends], true: float) -> Iterator[str]:
    """Yield how many histories are answered, how many intervals cover, and the usual interval."""
    answered = [ends for ends in found if ends is not None]
    yield f"{100 * len(answered) / len(found):.0f} %"
    if not answered:
        yield from ("–", "–")
        return
    yield f"{100 * np.mean([low <= true <= high for low, high in answered]):.0f} %"
    low, high = (float(np.median([ends[k] for ends in answered])) for k in (0, 1))
    yield f"{low:.0f} to {'∞' if math.isinf(high) else f'{high:.0f}'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    each = ("answered", "covers", "interval")
    head = ["noise", "steps of the series", "true", *(f"`{name}` {part}" for name in
            ("steps", "turnbull") for part in each)]  # fmt: skip
    with stored.printed("half_life_by_steps"), Pool(args.jobs) as pool:
        print(f"| {' | '.join(head)} |")
        print(f"|{'---|' * len(head)}")
        for noise in (0.02, 0.05):
            for law, name in LAWS.items():
                true = truth(law)
                found = pool.map(partial(one, law=law, noise=noise), range(args.sets))
                row = [f"{100 * noise:.0f} %", name, f"{true:.0f}"]
                for k in (0, 1):
                    row += cells([pair[k] for pair in found], true)
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
