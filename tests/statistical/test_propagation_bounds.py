"""Do bands that claim to hold for any dependence hold, and are they no wider than they must be?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp.propagation.bounds import band, graph_band, quantile_bounds, variance_bounds
from errcomp.propagation.terms import Terms

pytestmark = pytest.mark.slow

DRAWS = 200_000
N = 12


def some_terms(kind: str, df: float) -> Terms:
    rng = np.random.default_rng(8)
    ids = np.array([f"k{i}" for i in range(N)])
    count = np.ones(N, dtype=np.int64)
    value, spread = rng.lognormal(0, 1, N), rng.uniform(0.1, 0.4, N)
    return Terms(ids, ids, value, count, np.zeros(N), spread, kind=kind, df=df)


def uniforms(name: str, rng: np.random.Generator) -> np.ndarray:
    """Draw from copulas that put the sum's extremes at very different places."""
    z = rng.standard_normal((DRAWS, N))
    common = rng.standard_normal((DRAWS, 1))
    mixing = np.sqrt(3 / rng.chisquare(3, (DRAWS, 1)))
    if name == "independent":
        return stats.norm.cdf(z)
    if name == "comonotonic":
        return np.repeat(stats.norm.cdf(common), N, axis=1)
    if name == "t copula":
        return stats.t.cdf(mixing * (0.8 * common + 0.6 * z), 3)
    if name == "tail together, body apart":
        u = rng.random((DRAWS, N))
        tail = rng.random(DRAWS) < 0.1
        return np.where(tail[:, None], 0.9 + 0.1 * u, 0.9 * u)
    signs = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    assert name == "opposed"
    return stats.norm.cdf(common * signs)


@pytest.mark.parametrize(("kind", "df"), [("log-ratio", math.inf), ("absolute", 4.0)])
@pytest.mark.parametrize(
    "name", ["independent", "comonotonic", "t copula", "tail together, body apart", "opposed"]
)
def test_bands_hold_under_dependences_they_know_nothing_of(name: str, kind: str, df: float) -> None:
    terms = some_terms(kind, df)
    law = stats.norm if math.isinf(df) else stats.t(df)
    z = law.ppf(uniforms(name, np.random.default_rng(9)))
    if kind == "log-ratio":
        x = terms.value * np.exp(terms.spread * z)
    else:
        x = terms.value + terms.spread * z
    total = x.sum(axis=1)
    for level in (0.5, 0.9):
        low, high = band(terms, level)
        error = 4 * math.sqrt(level * (1 - level) / DRAWS)
        assert np.mean((total >= low) & (total <= high)) >= level - error
    for q in (0.1, 0.9):
        found = quantile_bounds(terms, q)
        spread = 4 * math.sqrt(q * (1 - q) / DRAWS)
        assert np.quantile(total, q - spread) <= found.high
        assert np.quantile(total, q + spread) >= found.low
    deviation = variance_bounds(terms)
    assert deviation.low * 0.95 <= total.std() <= deviation.high * 1.05
    largest = graph_band(terms, lambda a: a.maximum([a.leaf(str(i)) for i in terms.ids]), 0.9)
    inside = (x.max(axis=1) >= largest.low) & (x.max(axis=1) <= largest.high)
    assert inside.mean() >= 0.9


@pytest.mark.parametrize(("kind", "df"), [("log-ratio", math.inf), ("log-ratio", 4.0)])
def test_the_gap_is_small_for_any_number_of_terms(kind: str, df: float) -> None:
    rng = np.random.default_rng(10)
    for n in (2, 5, 30, 300):
        ids = np.array([f"k{i}" for i in range(n)])
        terms = Terms(
            ids,
            ids,
            rng.lognormal(0, 1, n),
            np.ones(n, dtype=np.int64),
            np.zeros(n),
            rng.uniform(0.05, 0.2, n),
            kind=kind,
            df=df,
        )
        for q in (0.05, 0.95):
            found = quantile_bounds(terms, q, tolerance=1e-4)
            width = found.high - found.low
            assert found.gap < (0.005 if math.isinf(df) else 0.1) * width
