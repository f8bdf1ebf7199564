"""Do 95 % intervals of means cover in 95 % of samples? The claims that README and docs make.

Tolerance: three binomial standard errors beside the claimed band.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from errcomp.metrics.intervals import estimate

REPS = 1000


def normal(sigma: float, mu: float = 0.0) -> Callable[..., np.ndarray]:
    return lambda rng, n: mu + sigma * rng.standard_normal(n)


def laplace(sigma: float) -> Callable[..., np.ndarray]:
    return lambda rng, n: rng.laplace(0, sigma / np.sqrt(2), n)


def student(sigma: float) -> Callable[..., np.ndarray]:
    """Student t with 5 degrees of freedom cut at 6, so that exp of it has a mean."""

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        t = rng.standard_t(5, n)
        while (bad := np.abs(t) > 6).any():
            t[bad] = rng.standard_t(5, bad.sum())
        return t * sigma / np.sqrt(5 / 3)

    return sample


def truth(name: str, law: Callable[..., np.ndarray]) -> float:
    """The figure of a population of four million; exact to a thousandth of an interval."""
    x = law(np.random.default_rng(0), 4_000_000)
    off = np.abs(np.expm1(x))
    return {
        "mape": lambda: off.mean(),
        "wape": lambda: off.mean(),
        "smape": lambda: (2 * np.tanh(np.abs(x) / 2)).mean(),
        "bias": lambda: np.expm1(x).mean(),
        "total_error": lambda: np.expm1(x).mean(),
        "rmsle": lambda: np.sqrt((x**2).mean()),
        "gmape": lambda: np.exp(np.log(off).mean()),
        "gm_ratio": lambda: np.exp(x.mean()),
    }[name]()


def coverage(
    name: str, law: Callable[..., np.ndarray], n: int, *, reps: int = REPS, **options: object
) -> float:
    target, hits, given = truth(name, law), 0, 0
    rng = np.random.default_rng([17, n])
    for _ in range(reps):
        measured = np.exp(rng.standard_normal(n))
        e = estimate(
            name,
            predicted=measured * np.exp(law(rng, n)),
            measured=measured,
            **options,
        )
        given += e.low is not None
        hits += e.low is not None and e.low <= target <= e.high
    assert given > 0.85 * reps
    return hits / given


def noise(claim: float, reps: int = REPS) -> float:
    return 3 * float(np.sqrt(claim * (1 - claim) / reps))


def test_smoke():
    """A quick look at every run: a wrong scale or a swapped bound shows in 150 samples."""
    found = coverage("mape", normal(0.3), 20, reps=150)
    assert 0.93 - noise(0.93, 150) <= found


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100, 200])
@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.6])
def test_mape_from_50_pairs_on(sigma, n):
    found = coverage("mape", normal(sigma), n)
    assert 0.93 - noise(0.93) <= found <= 0.98 + noise(0.98)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 5, 8, 10, 15, 20])
@pytest.mark.parametrize("sigma", [0.1, 0.6])
def test_mape_from_few_pairs(sigma, n):
    assert coverage("mape", normal(sigma), n) >= 0.90 - noise(0.90)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [-0.3, 0.3])
@pytest.mark.parametrize(("n", "claim"), [(10, 0.90), (50, 0.93)])
def test_mape_of_biased_predictors(mu, n, claim):
    assert coverage("mape", normal(0.6, mu), n) >= claim - noise(claim)


@pytest.mark.slow
@pytest.mark.parametrize("law", [laplace(0.3), student(0.3)], ids=["laplace", "student"])
@pytest.mark.parametrize(("n", "claim"), [(10, 0.90), (50, 0.93)])
def test_mape_of_heavy_tails(law, n, claim):
    assert coverage("mape", law, n) >= claim - noise(claim)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["wape", "total_error", "smape", "bias", "rmsle", "gmape", "gm_ratio"]
)
@pytest.mark.parametrize(("n", "claim"), [(10, 0.90), (50, 0.92)])
def test_other_figures(name, n, claim):
    found = coverage(name, normal(0.6), n)
    assert claim - noise(claim) <= found <= 0.98 + noise(0.98)


@pytest.mark.slow
def test_bca_falls_short_where_the_default_does_not():
    """Why BCa is on request only: 10 pairs, sigma 0.6 (and these tests can tell the difference)."""
    for method in ("bca", "percentile"):
        assert coverage("mape", normal(0.6), 10, method=method, resamples=999) < 0.87


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_other_levels(level):
    found = coverage("mape", normal(0.3), 50, level=level)
    assert level - 0.02 - noise(level) <= found <= level + 0.05 + noise(level)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mape", "wape", "gmape"])
def test_large_samples_need_no_bootstrap(name):
    """The allowance for skewness is next to nothing here."""
    found = coverage(name, normal(0.6), 20_000)
    assert 0.945 - noise(0.95) <= found <= 0.955 + noise(0.95)
