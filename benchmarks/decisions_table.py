"""Do probabilities of comparisons come true? Makes the tables of docs/decisions.md.

Draws tables of predicted and measured times with errors of devices, of devices with a model, and of
rows, evaluates each with both devices left out, and compares stated probabilities with the share
that was right. Stored in docs/results/decisions.json; `python docs/sources.py` puts the tables into
the page.

    python benchmarks/decisions_table.py --jobs 2
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import stored

from errcomp import Pairs
from errcomp.decisions import probabilities
from errcomp.decisions.evaluating import Compared
from errcomp.decisions.intervals import mean_regret, share_right
from errcomp.tables.choices import choices_of

# The laws are those of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.decisions.laws import choices, deviates

#: Tables for each number of devices, so that each row has about as many comparisons.
TABLES = {4: 200, 6: 80, 8: 40, 12: 18}
LAWS = ("normal", "t3", "laplace", "mixture")
#: Spread of the devices' true speeds (their errors have 0.1), and what the errors belong to.
TRUTHS = ((0.3, "truth"), (0.3, "prediction"), (0.1, "truth"), (0.1, "prediction"))
FIFTHS = 5


class Case(NamedTuple):
    """One row of the table of calibration."""

    devices: int
    law: str
    true: float
    noise: str


def compared(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each call, and whether it was right, in one table."""
    frame = choices(
        [seed, case.devices], devices=case.devices, law=case.law, true=case.true, noise=case.noise
    )
    found = choices_of(Pairs(frame), between="device")
    pairs = Compared.of(found)
    chance, _ = probabilities.left_out(found, pairs.first, pairs.second, seed)
    sure = np.maximum(chance, 1 - chance)
    return sure, (chance > 0.5) == (pairs.truly > 0)


def calibrated(case: Case) -> list[str]:
    """Return the row of a case: mean gap over fifths, shares called and wrong."""
    each = [compared(case, seed) for seed in range(TABLES[case.devices])]
    sure, right = (np.concatenate(part) for part in zip(*each, strict=True))
    order = np.argsort(sure, kind="stable")
    gaps = [sure[at].mean() - right[at].mean() for at in np.array_split(order, FIFTHS)]
    called = sure >= 0.95
    wrong = 1 - right[called].mean() if called.any() else np.nan
    return [
        f"{case.devices}, {case.law}",
        f"{case.true:g}, {case.noise}",
        f"{100 * np.mean(np.abs(gaps)):.1f}",
        f"{100 * (sure >= 0.9).mean():.0f} %",
        f"{100 * wrong:.1f} %",
        f"{100 * right.mean():.0f} %",
    ]


def regrets(law: str, devices: int, groups: int) -> list[str]:
    """Return how often the interval of the mean regret covers, with the devices as given."""
    covered, width, without = [], [], 0
    for seed in range(300):
        rng = np.random.default_rng([2, seed])
        speed, error = rng.normal(0, 0.15, devices), 0.1 * deviates(rng, law, devices)

        def lost(rng: np.random.Generator, many: int) -> tuple[np.ndarray, np.ndarray]:
            group = np.repeat(np.arange(many), 4)
            size = (devices, len(group))
            truth = speed[:, None] + rng.normal(0, 0.1, (devices, many))[:, group]  # noqa: B023
            truth = truth + rng.normal(0, 0.05, size)
            off = error[:, None] + 0.06 * deviates(rng, law, (devices, many))[:, group]  # noqa: B023
            off = off + 0.05 * deviates(rng, law, size)
            chosen = (truth - off).argmin(axis=0)
            taken = truth[chosen, np.arange(len(group))]
            return np.expm1(taken - truth.min(axis=0)), group

        regret, group = lost(rng, groups)
        true = lost(rng, 2000)[0].mean()
        found = mean_regret(regret, group, "model")
        if found.low is None or found.high is None:
            without += 1
            continue
        covered.append(found.low <= true <= found.high)
        width.append((found.high - found.low) / true)
    return [
        f"{law}, {devices} devices",
        f"{groups}",
        f"{100 * np.mean(covered):.0f} %",
        f"{np.median(width):.1f}",
        f"{without / 3:.0f} %",
    ]


def shares(law: str, devices: int) -> list[str]:
    """Return how often the interval of the share that is right covers."""

    def drawn(seed: object, count: int, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(groups), 4)
        size = (count, len(group))
        truth = rng.normal(0, 0.15, count)[:, None] + rng.normal(0, 0.1, (count, groups))[:, group]
        truth = truth + rng.normal(0, 0.05, size)
        off = 0.1 * deviates(rng, law, count)[:, None] + 0.05 * deviates(rng, law, size)
        off = off + 0.06 * deviates(rng, law, (count, groups))[:, group]
        one, two = np.triu_indices(count, 1)
        right = (truth[one] < truth[two]) == ((truth - off)[one] < (truth - off)[two])
        return right.ravel(), np.repeat(one, len(group)), np.repeat(two, len(group))

    true = np.mean([drawn([9, seed], 12, 3)[0].mean() for seed in range(3000)])
    covered, width = [], []
    for seed in range(600):
        right, one, two = drawn([1, seed], devices, 5)
        found = share_right(right, one, two, np.zeros(len(right), dtype=np.int64))
        assert found.low is not None
        assert found.high is not None
        covered.append(found.low <= true <= found.high)
        width.append(found.high - found.low)
    return [
        f"{law}, {devices} devices of these",
        f"{100 * np.mean(covered):.0f} %",
        f"{100 * np.median(width):.0f} points",
        f"{100 * true:.0f} %",
    ]


def job(work: tuple[str, tuple[object, ...]]) -> list[str]:
    """Run one row of one table."""
    name, arguments = work
    return {"case": lambda *a: calibrated(Case(*a)), "regret": regrets, "share": shares}[name](
        *arguments
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    cases = [
        ("case", (devices, law, true, noise))
        for true, noise in TRUTHS
        for devices in TABLES
        for law in LAWS
        if law in ("normal", "t3") or (devices in (4, 12) and true == 0.3)
    ]
    lost = [
        ("regret", (law, d, g)) for law in ("normal", "t3") for d in (4, 8) for g in (5, 10, 20)
    ]
    right = [("share", (law, devices)) for law in ("normal", "t3") for devices in (5, 8, 12)]
    with stored.printed("decisions"):
        with Pool(args.jobs) as pool:
            rows = pool.map(job, [*cases, *lost, *right], chunksize=1)
        first, second = len(cases), len(cases) + len(lost)
        print(
            table(
                ["devices, errors", "true spread, noise of", "gap", "called", "wrong", "right"],
                rows[:first],
            )
        )
        print(table(["regret of", "groups", "covers", "width / mean", "none"], rows[first:second]))
        print(table(["share right of", "covers", "width", "true share"], rows[second:]))


if __name__ == "__main__":
    main()
