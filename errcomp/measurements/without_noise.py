r"""The error of a tool without the noise of the measurements.

Of a measurement :math:`m = \mu e^{\varepsilon}` and a prediction :math:`p = \mu e^{b}`, an audit
sees :math:`d = \log(p / m) = b - \varepsilon`. The noise is known from repeats; the law of
:math:`b` is the one that makes the observed :math:`d` most likely (nonparametric maximum
likelihood, Kiefer and Wolfowitz 1956), so nothing is assumed about the errors of the tool.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.floor import NORMAL, FloorFigure, NoiseLaw, sd_of_floor

__all__ = ["Remaining", "remaining"]

Floats = NDArray[np.float64]

#: Points at which errors are seen; half of those at which the law of the tool's errors has mass.
_BINS, _ATOMS = 200, 120
#: Noise below this is none.
_LEAST = 1e-9
_STEPS = 300
#: Tables that are drawn from the fitted law for the interval, and rows of each.
_DRAWS, _MOST = 20, 4_000
#: Of the 95 % interval.
_Z = 1.96


@dataclass(frozen=True, slots=True)
class Remaining:
    """The MAPE of a tool that would remain without noise, and its 95 % interval."""

    mape: float
    low: float
    high: float


def remaining(
    logs: Floats, floor: FloorFigure, shape: NoiseLaw = NORMAL, *, seed: int = 0
) -> Remaining:
    r"""Return the mean of :math:`|e^b - 1|` over these rows.

    Parameters
    ----------
    logs : ndarray, shape (n,)
        :math:`\log(p / m)` of each row.
    floor : FloorFigure
        Of the noise of the measurements. Its interval counts.
    shape : NoiseLaw
        Of this noise.
    seed : int
        Of the tables drawn for the interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> logs = rng.choice([-0.1, 0.15], 2_000) - 0.05 * rng.normal(size=2_000)
    >>> found = remaining(logs, FloorFigure(0.040, 0.038, 0.042))
    >>> print(f"{np.abs(np.expm1(logs)).mean():.3f} {found.mape:.3f}")  # of 0.128
    0.130 0.129
    """
    sd = sd_of_floor(floor.mape)
    place, mass = _law(logs, sd, shape)
    value = _mape(place, mass)
    ends = [_mape(*_law(logs, sd_of_floor(end), shape)) for end in (floor.low, floor.high)]
    sides = (shape.skewed(sign * _Z * shape.doubt) for sign in (-1, 1)) if shape.doubt else ()
    skewed = [value, *[_mape(*_law(logs, sd, side)) for side in sides]]
    rng = np.random.default_rng(seed)
    n = min(len(logs), _MOST)
    misses = []
    for _ in range(_DRAWS):
        own = rng.choice(place, n, p=mass / mass.sum())
        again = _mape(*_law(own - sd * shape.draw(n, rng), sd, shape))
        misses.append(again - float(np.abs(np.expm1(own)).mean()))
    error = _Z * float(np.sqrt(np.mean(np.square(misses)) * n / len(logs)))
    low = value - math.hypot(error, max(value - min(ends), 0.0), value - min(skewed))
    if float(np.abs(np.expm1(logs)).mean()) <= floor.high:
        low = 0.0  # a perfect predictor may show as much
    high = value + math.hypot(error, max(max(ends) - value, 0.0), max(skewed) - value)
    return Remaining(value, max(low, 0.0), high)


def _mape(place: Floats, mass: Floats) -> float:
    return float((mass * np.abs(np.expm1(place))).sum())


def _law(logs: Floats, sd: float, shape: NoiseLaw) -> tuple[Floats, Floats]:
    """Return the places and masses of the law of b (EM)."""
    seen = np.sort(logs)
    weight = np.full(len(seen), 1 / len(seen))
    if len(seen) > _BINS:
        sizes = np.full(_BINS, len(seen) // _BINS)
        sizes[: len(seen) % _BINS] += 1
        weight = sizes / len(seen)
        seen = np.add.reduceat(seen, np.cumsum(sizes) - sizes) / sizes
    if sd < _LEAST or seen[0] == seen[-1]:
        return seen, weight
    # Places where errors are, so that few large errors leave the others fine ones.
    place = np.unique(
        np.r_[seen[:: -(-len(seen) // _ATOMS)], np.linspace(seen[0], seen[-1], _ATOMS)]
    )
    density = shape.density((place[None, :] - seen[:, None]) / sd)
    mass = np.full(len(place), 1 / len(place))
    for _ in range(_STEPS):
        mix = np.maximum(density @ mass, 1e-300)
        mass = mass * ((weight / mix) @ density)
    return place, mass / mass.sum()
