"""How long conformal bands take, beside crepes, MAPIE and NumPy.

Run: python benchmarks/bench_conformal.py [--quick] [-o FOLDER]

Split conformal: the half-width from 100,000 residuals, put around 10,000 predictions. The bands by
group of device that errcomp's models use have no peer; their growth is given.
"""

from __future__ import annotations

from collections.abc import Callable

import asking
import environments
import numpy as np

from errcomp.calibration.bands.conformal import GroupConformal, cv_plus, split_conformal

ROWS, NEW, LEVEL = 100_000, 10_000, 0.9


def ours(n: int, new: int) -> Callable[[], list[float]]:
    residuals = np.random.default_rng(1).standard_normal(n)
    centre = np.random.default_rng(2).standard_normal(new)

    def work() -> list[float]:
        half = split_conformal(residuals, LEVEL)
        bands = np.stack([centre - half, centre + half], axis=1)
        return bands[0].tolist()

    return work


def by_hand(n: int, new: int) -> Callable[[], list[float]]:
    residuals = np.random.default_rng(1).standard_normal(n)
    centre = np.random.default_rng(2).standard_normal(new)

    def work() -> list[float]:
        sizes, place = np.abs(residuals), int(np.ceil((n + 1) * LEVEL)) - 1
        half = np.partition(sizes, place)[place]
        return np.stack([centre - half, centre + half], axis=1)[0].tolist()

    return work


def by_group(n: int) -> Callable[[], object]:
    """Calibrate four levels on n runs of 20 devices."""
    rng = np.random.default_rng(3)
    device = rng.integers(0, 20, n)
    y = 0.1 * rng.standard_normal(20)[device] + 0.1 * rng.standard_normal(n)
    half = 0.1 * np.array([0.67, 1.28, 1.64, 1.96])
    names = np.array([f"gpu{i}" for i in range(20)])[device]
    middle, ends = np.zeros(n), np.broadcast_to(half, (n, 4))
    return lambda: GroupConformal().fit(middle, -ends, ends, y, names)


def of_folds(n: int) -> Callable[[], object]:
    """CV+ bands of 50 new runs from n held-out residuals."""
    rng = np.random.default_rng(4)
    residuals, predictions = rng.standard_normal(n), rng.standard_normal((50, n))
    return lambda: cv_plus(predictions, residuals, LEVEL)


def measure(question: asking.Question) -> None:
    question.uses("numpy")
    given = {"n": ROWS, "new": NEW, "level": LEVEL}
    found = question.against(
        "split conformal, 10,000 new predictions",
        ROWS,
        "residuals",
        ours(ROWS, NEW),
        why="Each takes the same quantile of the same residuals and puts it around the same "
        "predictions.",
        NumPy_by_hand=by_hand(ROWS, NEW),
        crepes=environments.Peer("crepes", "split", **given),
        MAPIE=environments.Peer("mapie", "split", **given),
    )
    ratio = found["NumPy by hand"]["ratio_worst"]
    question.target("split conformal against NumPy by hand", ratio, 1.3, "times")
    sizes = [10**k for k in range(3, 6 if question.quick else 7)]
    question.grows("split conformal", "residuals", lambda n: ours(n, NEW), sizes)
    question.grows("by group, four levels, 20 devices", "runs", by_group, sizes[:-1])
    question.grows("CV+, 50 new runs", "residuals", of_folds, sizes[:-1])


if __name__ == "__main__":
    asking.ask(
        "conformal",
        "Conformal bands",
        "Bands that cover new runs with a promised probability, from the residuals of other runs.",
        measure,
    )
