"""How often is a claim that is exactly true called wrong, and how wide are the intervals?

Pairs whose errors are shared by models, by devices or by both; rare and heavy errors. A verdict is
false where the interval does not hold the truth. Tolerance: three binomial standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.claims.verdict import FEWEST_BELOW
from errcomp.metrics.intervals import estimate

REPS = 600
SIGMA = 0.3


def noise(share: float, reps: int = REPS) -> float:
    return 3 * math.sqrt(share * (1 - share) / reps)


def one_key(*sizes: int) -> list[np.ndarray]:
    return [np.repeat(np.arange(len(sizes)), sizes)]


def two_keys(first: int, second: int, repeats: int = 1) -> list[np.ndarray]:
    a = np.repeat(np.arange(first), second * repeats)
    return [a, np.tile(np.repeat(np.arange(second), repeats), first)]


DESIGNS = {
    "3 x 10": one_key(10, 10, 10),
    "4 x 36": one_key(36, 36, 36, 36),
    "6 x 5": one_key(*[5] * 6),
    "unequal": one_key(20, 8, 4, 2, 1, 1),
    "4, 4, 1, 1, 1": one_key(4, 4, 1, 1, 1),
    "6 x 6 crossed": two_keys(6, 6),
    "8 x 5 x 2 crossed": two_keys(8, 5, 2),
}


def log_errors(
    rng: np.random.Generator, law: str, labels: list[np.ndarray], icc: float
) -> np.ndarray:
    n = len(labels[0])
    shared = sum(rng.standard_normal(c.max() + 1)[c] for c in labels) / math.sqrt(len(labels))
    if law == "scale":
        return SIGMA / 2 * np.exp(0.8 * math.sqrt(icc) * shared) * rng.standard_normal(n)
    own = rng.standard_normal(n)
    if law == "mixture":
        own = own * np.where(rng.random(n) < 0.1, 3.0, 1.0)
    return SIGMA * (math.sqrt(icc) * shared + math.sqrt(1 - icc) * own)


def truth(law: str, keys: int, icc: float) -> float:
    alone = [np.arange(400_000)] * keys
    x = log_errors(np.random.default_rng(3), law, alone[:1], icc)
    return float(np.abs(np.expm1(x)).mean())


def judged(design: str, law: str, icc: float) -> tuple[float, float, float]:
    """Share of true claims called wrong, median width, 90 % quantile of bound over truth."""
    labels = DESIGNS[design]
    target, rng = truth(law, len(labels), icc), np.random.default_rng([5, len(labels[0])])
    wrong, widths, ends = 0, [], []
    for _ in range(REPS):
        predicted = np.exp(log_errors(rng, law, labels, icc))
        e = estimate("mape", predicted=predicted, measured=np.ones(len(predicted)), clusters=labels)
        if e.low is None or e.high is None:
            continue
        wrong += not e.low <= target <= e.high
        widths.append(e.high / e.low)
        ends.append(e.high / target)
    if len(widths) < 20:
        return wrong / REPS, math.nan, math.nan
    return wrong / REPS, float(np.median(widths)), float(np.quantile(ends, 0.9))


@pytest.mark.slow
@pytest.mark.parametrize("icc", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("law", ["shift", "scale", "mixture"])
@pytest.mark.parametrize("design", DESIGNS)
def test_true_claims_are_seldom_called_wrong_and_bounds_can_be_used(
    design: str, law: str, icc: float
) -> None:
    wrong, width, end = judged(design, law, icc)
    assert wrong <= 0.07 + noise(0.07)
    assert not width > 20
    assert not end > 15


@pytest.mark.slow
def test_clustering_costs_little_where_there_is_nothing_to_find() -> None:
    """Six models of five pairs, independent: width 2.0 to 2.5 where single pairs have 2.1."""
    assert judged("6 x 5", "shift", 0.0)[1] < 2.8


@pytest.mark.slow
def test_a_tool_twice_as_wrong_as_it_says_is_found() -> None:
    """At 16 independent pairs with normal errors in at least three of four cases."""
    rng, found = np.random.default_rng(8), 0
    target = truth("shift", 1, 0.0)
    for _ in range(REPS):
        predicted = np.exp(SIGMA * rng.standard_normal(16))
        e = estimate("mape", predicted=predicted, measured=np.ones(16))
        found += e.low is not None and e.low >= target / 2
    assert found / REPS >= 0.75


LAWS = {
    "90 % + 10 % of five times": lambda rng, n: (
        0.1 * rng.standard_normal(n) * np.where(rng.random(n) < 0.1, 5.0, 1.0)
    ),
    "97 % + 3 % of ten times": lambda rng, n: (
        0.1 * rng.standard_normal(n) * np.where(rng.random(n) < 0.03, 10.0, 1.0)
    ),
    "Student t(2)": lambda rng, n: 0.1 * rng.standard_t(2, n),
    "20 % fail by 40 %": lambda rng, n: 0.05 * rng.standard_normal(n) + 0.4 * (rng.random(n) < 0.2),
    "half at 30 %": lambda rng, n: 0.01 * rng.standard_normal(n) + 0.3 * (rng.random(n) < 0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 16, 30, 100])
@pytest.mark.parametrize("law", LAWS)
def test_rare_and_heavy_errors_are_covered(law: str, n: int) -> None:
    target = float(np.abs(LAWS[law](np.random.default_rng(1), 4_000_000)).mean())
    rng, hits, given, ends = np.random.default_rng([9, n]), 0, 0, []
    for _ in range(REPS):
        predicted = 1 + LAWS[law](rng, n)
        e = estimate("mape", predicted=predicted, measured=np.ones(n))
        if e.low is not None and e.high is not None:
            given += 1
            hits += e.low <= target <= e.high
            ends.append(e.high / target)
    assert hits / given >= 0.90 - noise(0.90)
    assert np.quantile(ends, 0.9) <= 15


def test_from_how_many_pairs_on_a_failure_in_five_is_seen() -> None:
    assert 0.8**FEWEST_BELOW < 0.07 < 0.8 ** (FEWEST_BELOW - 1)
