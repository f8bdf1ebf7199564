"""Are the errors that a simulation states honest, and does what is claimed to pay, pay?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.propagation.montecarlo import SamplingAlgebra, simulate
from errcomp.propagation.terms import Floats, Level, Terms

pytestmark = pytest.mark.slow

Q = np.array([0.05, 0.5, 0.95])


def terms(n: int, *, share: float, kind: Any = "relative", df: float = math.inf) -> Terms:
    level = Level("class", np.arange(n) % 3, share)
    return Terms(
        ids=np.array([f"k{i}" for i in range(n)]),
        classes=np.array(["c"] * n),
        value=np.linspace(1, 3, n),
        count=np.ones(n, np.int64),
        bias=np.zeros(n),
        spread=np.full(n, 0.2),
        levels=(level,),
        kind=kind,
        df=df,
    )


def scale_of(t: Terms) -> float:
    scale = t.spread * t.value
    return math.sqrt(float(scale @ t.correlation() @ scale))


def maximum(a: SamplingAlgebra) -> Floats:
    return np.asarray(a.block([f"k{i}" for i in range(5)]).max(axis=0))


def exact_of_maximum(t: Terms) -> Floats:
    """Quantiles of the largest of five independent normals."""
    laws = [stats.norm(v, s * v) for v, s in zip(t.value, t.spread, strict=True)]
    grid = np.linspace(1, 8, 200_001)
    return np.interp(Q, np.prod([law.cdf(grid) for law in laws], axis=0), grid)


CASES: dict[str, tuple[Terms, Callable[[SamplingAlgebra], Floats] | None, Floats]] = {}
for _name, _t in {
    "one factor": terms(3, share=1.0),
    "own parts": terms(40, share=0.0),
    "both": terms(12, share=0.5),
}.items():
    CASES[_name] = (_t, None, stats.norm.ppf(Q, _t.value.sum(), scale_of(_t)))
_t = terms(12, share=0.5, df=3.0)
CASES["student"] = (_t, None, stats.t(3).ppf(Q) * scale_of(_t) + _t.value.sum())
_t = terms(5, share=0.0)
CASES["maximum"] = (_t, maximum, exact_of_maximum(_t))


@pytest.mark.parametrize("draws", [512, 4096])
@pytest.mark.parametrize("method", ["sobol", "random"])
@pytest.mark.parametrize("case", CASES)
def test_stated_intervals_cover(case: str, method: Any, draws: int) -> None:
    t, evaluate, exact = CASES[case]
    runs, inside = 200, np.zeros(3)
    for seed in range(runs):
        result = simulate(t, evaluate, draws=draws, method=method, seed=seed)
        low, high = result.interval(Q)
        inside += (low <= exact) & (exact <= high)
    # 95 % of 200, less three standard deviations. Mirrored or Sobol draws may cover more.
    assert (inside / runs >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / runs)).all(), inside / runs


@pytest.mark.parametrize("method", ["sobol", "random"])
@pytest.mark.parametrize("case", ["own parts", "both", "maximum"])
def test_intervals_are_not_wider_than_they_must_be(case: str, method: Any) -> None:
    t, evaluate, exact = CASES[case]
    results = [simulate(t, evaluate, draws=4096, method=method, seed=s) for s in range(200)]
    got = np.array([result.quantile(Q) for result in results])
    true = np.sqrt(np.mean((got - exact) ** 2, axis=0))
    stated = np.mean([result.standard_error(Q) for result in results], axis=0)
    # 200 errors give a standard error to 5 %.
    assert (stated > 0.85 * true).all(), stated / exact
    assert (stated[[0, 2]] < 1.2 * true[[0, 2]]).all(), stated / exact
    # Mirrored pairs hit the median of a symmetric sum exactly; the replicates cannot tell so.
    assert stated[1] < 1.5 * true[1] or true[1] < 1e-9 < exact[1], stated / exact


@pytest.mark.parametrize("case", ["own parts", "maximum"])
def test_precision_asked_for_is_the_precision_got(case: str) -> None:
    t, evaluate, exact = CASES[case]
    runs, inside = 200, np.zeros(3)
    for seed in range(runs):
        result = simulate(t, evaluate, draws=512, precision=0.004, seed=seed)
        assert result.reached
        inside += np.abs(result.quantile(Q) / exact - 1) <= 0.004
    # Stopping at the first sufficient error favours errors that seem small: a little under 95 %.
    assert (inside / runs > 0.92).all(), inside / runs


def test_mean_and_its_error() -> None:
    t = terms(40, share=0.3, kind="log-ratio")
    exact = float((t.value * np.exp(t.spread**2 / 2)).sum())
    for method in ("sobol", "random"):
        results = [simulate(t, draws=2048, method=method, seed=s) for s in range(300)]  # type: ignore[arg-type]
        errors = np.array([(r.mean - exact) / r.mean_standard_error for r in results])
        inside = np.mean(np.abs(errors) < stats.t(15).ppf(0.975))
        assert 0.95 - 3 * 0.0126 < inside <= 1


def independent_draws(t: Terms, runs: int, draws: int) -> Floats:
    """Mean, standard deviation and quantiles of the sum from plain pseudo-random draws."""
    rng = np.random.default_rng(1)
    out = []
    for _ in range(runs):
        x = np.zeros(draws)
        for value, spread in zip(t.value, t.spread, strict=True):
            x += value * np.exp(spread * rng.standard_normal(draws))
        out.append([x.mean(), x.std(), *np.quantile(x, Q)])
    return np.std(out, axis=0)


def simulated(t: Terms, method: Any, runs: int, draws: int) -> Floats:
    results = [simulate(t, draws=draws, method=method, seed=s) for s in range(runs)]
    return np.std([[r.mean, r.sd, *r.quantile(Q)] for r in results], axis=0)


def test_what_antithetic_variates_and_sobol_points_gain() -> None:
    t, runs, draws = terms(10, share=0.0, kind="log-ratio"), 150, 4096
    plain = independent_draws(t, runs, draws)
    mirrored = plain / simulated(t, "random", runs, draws)
    sobol = plain / simulated(t, "sobol", runs, draws)
    mean, sd, low, median, high = range(5)
    # Ratios of standard errors, each known to 8 %.
    assert mirrored[mean] > 3
    assert mirrored[median] > 1.5
    assert min(mirrored[low], mirrored[high]) > 0.8
    assert 0.6 < mirrored[sd] < 0.9  # the one figure that loses, by the square root of two at most
    assert sobol[mean] > 10
    assert sobol[sd] > 3
    assert sobol[[low, median, high]].min() > 1.4
