"""Every figure against 50-digit arithmetic, from 1e-300 to 1e300 and for values that nearly agree.

The reference works on the exact values of the same floats. Subnormal inputs and results are left
out: a float64 below 2.2e-308 has no 12 digits to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from errcomp import metrics

mpmath = pytest.importorskip("mpmath")
pytestmark = pytest.mark.extras

N = 60
TOLERANCE = 1e-12
WEIGHTS = np.random.default_rng(11).uniform(1e-3, 1e3, N)


def _wide(rng: np.random.Generator, n: int = N) -> np.ndarray:
    return 10.0 ** rng.uniform(-300, 300, n)


def _within_range_of(m: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values from 1e-300 to 1e300 whose ratio to m stays a finite float."""
    log = np.log10(m)
    return 10.0 ** rng.uniform(np.maximum(log - 300, -300), np.minimum(log + 300, 300))


def _next_to(m: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values a few units in the last place away, never equal."""
    steps = rng.integers(1, 9, len(m)) * rng.choice([-1, 1], len(m))
    return m + steps * np.spacing(m)


def _regimes() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(20)
    m, mixed = _wide(rng), _wide(rng)
    typical = rng.lognormal(3, 2, N)
    half = N // 2
    return {
        "typical": (typical * rng.lognormal(0.1, 0.3, N), typical),
        "wide": (_within_range_of(m, rng), m),
        "adjacent floats": (_next_to(m, rng), m),
        "parts per billion": (m * (1 + 1e-9 * rng.standard_normal(N)), m),
        "mixture": (
            np.r_[_next_to(mixed[:half], rng), _within_range_of(mixed[half:], rng)],
            mixed,
        ),
        "all tiny": (1e-300 * rng.lognormal(0, 1, N), 1e-300 * rng.lognormal(0, 1, N)),
        "sums overflow": (1e308 * rng.uniform(0.1, 0.8, N), 1e308 * rng.uniform(0.1, 0.8, N)),
        "nearly constant": (1 + 1e-14 * rng.integers(1, 50, N), 1 + 1e-14 * rng.integers(1, 50, N)),
    }


REGIMES = _regimes()
#: Pairs of p and m of which even the ratio is no float: only figures that never form it.
UNRELATED = (_wide(np.random.default_rng(8)), _wide(np.random.default_rng(9)))


def _mean(values: Sequence[Any], weights: Sequence[Any]) -> Any:
    return mpmath.fsum(w * v for w, v in zip(weights, values, strict=True)) / mpmath.fsum(weights)


def _r2(p: list[Any], m: list[Any], w: list[Any]) -> Any:
    centre = _mean(m, w)
    error = _mean([(a - b) ** 2 for a, b in zip(p, m, strict=True)], w)
    return 1 - error / _mean([(b - centre) ** 2 for b in m], w)


def _pearson(p: list[Any], m: list[Any], w: list[Any]) -> Any:
    dp, dm = ([v - _mean(x, w) for v in x] for x in (p, m))
    cross = _mean([a * b for a, b in zip(dp, dm, strict=True)], w)
    return cross / mpmath.sqrt(_mean([a * a for a in dp], w) * _mean([b * b for b in dm], w))


def _relative(p: list[Any], m: list[Any]) -> list[Any]:
    return [(a - b) / b for a, b in zip(p, m, strict=True)]


def _logs(p: list[Any], m: list[Any]) -> list[Any]:
    return [mpmath.log(a / b) for a, b in zip(p, m, strict=True)]


EXACT: dict[str, Callable[[list[Any], list[Any], list[Any]], Any]] = {
    "mape": lambda p, m, w: _mean([abs(e) for e in _relative(p, m)], w),
    "gmape": lambda p, m, w: mpmath.exp(_mean([mpmath.log(abs(e)) for e in _relative(p, m)], w)),
    "gm_ratio": lambda p, m, w: mpmath.exp(_mean(_logs(p, m), w)),
    "wape": lambda p, m, w: _mean([abs(a - b) for a, b in zip(p, m, strict=True)], w) / _mean(m, w),
    "bias": lambda p, m, w: _mean(_relative(p, m), w),
    "total_error": lambda p, m, w: (
        _mean([a - b for a, b in zip(p, m, strict=True)], w) / _mean(m, w)
    ),
    "smape": lambda p, m, w: _mean(
        [2 * abs(a - b) / (abs(a) + abs(b)) for a, b in zip(p, m, strict=True)], w
    ),
    "mae": lambda p, m, w: _mean([abs(a - b) for a, b in zip(p, m, strict=True)], w),
    "rmse": lambda p, m, w: mpmath.sqrt(
        _mean([(a - b) ** 2 for a, b in zip(p, m, strict=True)], w)
    ),
    "rmspe": lambda p, m, w: mpmath.sqrt(_mean([e**2 for e in _relative(p, m)], w)),
    "rmsle": lambda p, m, w: mpmath.sqrt(_mean([q**2 for q in _logs(p, m)], w)),
    "r2": _r2,
    "pearson": _pearson,
}
#: What an error of the result is measured against where terms of opposite sign cancel.
SCALE: dict[str, Callable[[list[Any], list[Any], list[Any], Any], Any]] = {
    "total_error": lambda p, m, w, exact: EXACT["wape"](p, m, w),
    "r2": lambda p, m, w, exact: max(1, abs(exact)),
    "pearson": lambda p, m, w, exact: 1,
}


def _error(name: str, p: np.ndarray, m: np.ndarray, weights: np.ndarray | None) -> float:
    value = metrics.figure(name).function(predicted=p, measured=m, weights=weights)
    with mpmath.workdps(50):
        exact_p, exact_m = ([mpmath.mpf(float(v)) for v in x] for x in (p, m))
        w = [mpmath.mpf(1 if weights is None else float(weights[i])) for i in range(len(p))]
        exact = EXACT[name](exact_p, exact_m, w)
        scale = SCALE.get(name, lambda *_: abs(exact))(exact_p, exact_m, w, exact)
        return float(abs(mpmath.mpf(value) - exact) / scale)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", EXACT)
def test_figure_is_exact_to_twelve_digits(
    name: str, regime: str, weights: np.ndarray | None
) -> None:
    assert _error(name, *REGIMES[regime], weights) <= TOLERANCE


@pytest.mark.parametrize(
    "name", ["gm_ratio", "wape", "total_error", "smape", "mae", "rmse", "rmsle", "pearson"]
)
def test_figure_that_needs_no_ratio_is_exact_where_the_ratio_overflows(name: str) -> None:
    assert _error(name, *UNRELATED, None) <= TOLERANCE


@pytest.mark.parametrize(
    "name", ["mape", "wape", "bias", "total_error", "smape", "mae", "rmse", "rmspe", "r2"]
)
def test_negative_predictions(name: str) -> None:
    p, m = REGIMES["wide"]
    signs = np.where(np.arange(N) % 3 == 0, -1.0, 1.0)
    assert _error(name, signs * p, m, None) <= TOLERANCE


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(
    ("pointwise", "exact"),
    [
        (metrics.ape, lambda a, b: abs(a - b) / b),
        (metrics.signed_percentage_error, lambda a, b: (a - b) / b),
        (metrics.log_accuracy_ratio, lambda a, b: mpmath.log(a / b)),
        (metrics.absolute_error, lambda a, b: abs(a - b)),
    ],
    ids=["ape", "signed_percentage_error", "log_accuracy_ratio", "absolute_error"],
)
def test_pointwise_error_is_exact_to_twelve_digits(
    pointwise: Callable[..., np.ndarray], exact: Callable[[Any, Any], Any], regime: str
) -> None:
    p, m = REGIMES[regime]
    differ = p != m
    p, m = p[differ], m[differ]
    values = pointwise(predicted=p, measured=m)
    with mpmath.workdps(50):
        for value, a, b in zip(values.tolist(), p.tolist(), m.tolist(), strict=True):
            wanted = exact(mpmath.mpf(a), mpmath.mpf(b))
            assert abs(mpmath.mpf(value) - wanted) <= TOLERANCE * abs(wanted)


@pytest.mark.parametrize("regime", REGIMES)
def test_order_figures_pick_the_error_that_exact_arithmetic_picks(regime: str) -> None:
    p, m = REGIMES[regime]
    with mpmath.workdps(50):
        exact = sorted(
            abs(mpmath.mpf(a) - mpmath.mpf(b)) / mpmath.mpf(b)
            for a, b in zip(p.tolist(), m.tolist(), strict=True)
        )
        wanted = {
            "median": (exact[N // 2 - 1] + exact[N // 2]) / 2,
            "p75": exact[N * 3 // 4 - 1],
            "max": exact[-1],
        }
        got = {
            "median": metrics.median_ape(predicted=p, measured=m),
            "p75": metrics.ape_quantile(predicted=p, measured=m, q=0.75, rule="inverted_cdf"),
            "max": metrics.max_ape(predicted=p, measured=m),
        }
        for name, value in got.items():
            assert abs(mpmath.mpf(value) - wanted[name]) <= TOLERANCE * wanted[name], name
