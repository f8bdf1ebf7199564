"""How long survival over series of releases takes, beside lifelines; and a whole half-life.

Run: python benchmarks/bench_history.py [--quick] [-o FOLDER]

Series that expired between two of 35 releases, or were valid at the last. By both: the
nonparametric curve (Turnbull), and a Weibull law with its median. errcomp's laws have bounds of the
median by profile likelihood, and its curve has bounds of the median that are timed apart; lifelines
gives none for such data.
"""

from __future__ import annotations

from collections.abc import Callable

import asking
import environments
import numpy as np
from scipy import optimize

import errcomp as ec
from errcomp.halflife.estimators.parametric import fit_law
from errcomp.halflife.estimators.turnbull import turnbull

SERIES = 1_000
#: Quantile of 95 % of the chi-square distribution with one degree of freedom.
CHI_SQUARE = 3.841458820694124


def intervals(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the last release at which each series was valid, and the first at which it was not."""
    rng = np.random.default_rng(1)
    expired = 20 * rng.weibull(1.3, n)
    # A third was looked at at every second release only.
    step = np.where(rng.random(n) < 1 / 3, 2, 1)
    left = np.floor(expired / step) * step
    right = left + step
    return np.where(right > 35, 34.0, left), np.where(right > 35, np.inf, right)


def curve(n: int, *, bounds: bool = False) -> Callable[[], list[float] | None]:
    left, right = intervals(n)

    def work() -> list[float] | None:
        found = turnbull(left, right)
        if bounds:
            found.median(whole=True)
        return None

    return work


def law(n: int) -> Callable[[], list[float]]:
    left, right = intervals(n)

    def work() -> list[float]:
        found = fit_law(left, right, "weibull")
        return [found.median, found.low, found.high]

    return work


def law_by_hand(n: int) -> Callable[[], list[float]]:
    """Maximise the likelihood with SciPy; bounds of the median from its profile, by roots."""
    left, right = intervals(n)

    def loss(median: float, shape: float) -> float:
        # Where right is inf nothing is left there.
        z = np.log(2) ** (1 / shape) / median
        between = np.exp(-((left * z) ** shape)) - np.exp(-((right * z) ** shape))
        return -float(np.log(np.maximum(between, 1e-300)).sum())

    def work() -> list[float]:
        best = optimize.minimize(
            lambda theta: loss(*np.exp(theta)), np.log([10.0, 1.0]), method="L-BFGS-B"
        )
        log_median, log_shape = best.x

        def beyond(at: float) -> float:
            found = optimize.minimize_scalar(
                lambda shape: loss(np.exp(at), np.exp(shape)),
                bounds=(log_shape - 1, log_shape + 1),
                method="bounded",
            )
            return 2 * float(found.fun - best.fun) - CHI_SQUARE

        ends = [
            optimize.brentq(beyond, log_median, log_median + step, xtol=1e-4) for step in (-1, 1)
        ]
        return np.exp([log_median, *ends]).tolist()

    return work


def measure(question: asking.Question) -> None:
    question.uses("numpy", "scipy")
    n = SERIES // 5 if question.quick else SERIES
    left, right = intervals(n)
    given = {"left": left.tolist(), "right": [r if np.isfinite(r) else None for r in right]}
    question.against(
        "nonparametric survival",
        n,
        "series",
        curve(n),
        why="Both compute Turnbull's curve of the same intervals.",
        lifelines=environments.Peer("lifelines", "nonparametric", **given),
    )
    found = question.against(
        "Weibull distribution, bounds of the median",
        n,
        "series",
        law(n),
        why="Both maximise the same likelihood and take the bounds from its profile.",
        SciPy_by_hand=law_by_hand(n),
    )
    ratio = found["SciPy by hand"]["ratio_worst"]
    question.target("Weibull distribution against SciPy by hand", ratio, 1.5, "times")
    sizes = [10**k for k in range(2, 5 if question.quick else 7)]
    question.grows("nonparametric survival", "series", curve, sizes)
    question.grows(
        "the same with bounds of the median", "series", lambda n: curve(n, bounds=True), sizes[:-1]
    )
    question.grows("Weibull distribution with bounds of the median", "series", law, sizes[:-1])
    history = ec.datasets.load("ort-releases").where({"level": ["kernel"]})
    seconds = question.alone(lambda: ec.half_life(history, by="kernel_class", cluster="model"))
    question.note("half-lives of 150 operators at 35 releases, all methods", seconds, "s")


if __name__ == "__main__":
    asking.ask(
        "history",
        "History fit",
        "Median survival of the series, given the two releases between which each series expired.",
        measure,
    )
