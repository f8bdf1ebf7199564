"""Probability of an error within a threshold if steps follow a compound Poisson process."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

#: Grid points from 0 to the threshold, for the probability and for draws of it; the most in all.
_FINE = 256
_COARSE = 32
_MOST = 2**15
_DRAWS = 400
#: Fewest steps to draw sizes from.
_FEW = 5
#: Frequencies below this are ignored: together they contribute 2e-11 at most.
_SILENT = 1e-15


def within_steps(
    when: Floats,
    rate: Floats,
    weights: Floats,
    sizes: Floats,
    threshold: float,
    *,
    error: float,
    spread: float,
    fine: int = _FINE,
) -> Floats:
    """Return the probability of an error within the threshold, at each time.

    Parameters
    ----------
    when : ndarray, shape (h,)
    rate : ndarray, shape (b,)
        Steps per unit of time.
    weights : ndarray, shape (b, n)
        Of the sizes; each row sums to 1.
    sizes : ndarray, shape (n,)
    threshold, error, spread : float
    fine : int
        Grid points from 0 to the threshold.

    Returns
    -------
    ndarray, shape (b, h)
    """
    if not len(sizes):
        return np.ones((len(rate), len(when))) * normal_within(error, spread, threshold)
    # A larger step always exceeds the threshold, unless another step of its size undoes it.
    reach = 4 * (threshold + abs(error) + 4 * spread)
    clipped = np.clip(sizes, -reach, reach)
    points = int(min(_MOST, 2 ** np.ceil(np.log2(16 * reach / threshold * fine))))
    width = 16 * reach / points
    at = clipped / width
    below = np.floor(at).astype(np.int64)
    share = at - below
    grid = np.fft.fftfreq(points, 1 / points) * width
    kernel = np.fft.rfft(normal_within(error, spread, threshold, grid))
    # The mean of the kernel over the law of sums is their product at shift 0 (Parseval).
    product = kernel.conj() * 2.0 / points
    product[[0, -1]] /= 2.0
    # A smoothed kernel is almost 0 at high frequencies.
    heard = np.abs(product) > _SILENT
    product = product[heard]
    probability = np.empty((len(rate), len(when)))
    for b in range(len(rate)):
        law = np.bincount(below % points, weights[b] * (1 - share), minlength=points)
        law += np.bincount((below + 1) % points, weights[b] * share, minlength=points)
        characteristic = np.fft.rfft(law)[heard] - 1
        sums = np.exp(np.outer(rate[b] * when, characteristic))
        probability[b] = (sums @ product).real
    return np.clip(probability, 0.0, 1.0)


def normal_within(error: float, sd: ArrayLike, threshold: float, moved: ArrayLike = 0.0) -> Floats:
    """Return the probability that |error + moved + N(0, sd²)| is below the threshold."""
    moved, sd = np.asarray(moved), np.asarray(sd)
    with np.errstate(divide="ignore", invalid="ignore"):
        up, down = (threshold - error - moved) / sd, (-threshold - error - moved) / sd
        probability = special.ndtr(up) - special.ndtr(down)
    return np.where(sd > 0, probability, np.abs(error + moved) < threshold)


def all_or_none(
    when: Floats, start: float, n: int, exposure: float, tail: float
) -> tuple[Floats, Floats]:
    """Return bounds by n steps, too few to draw from: all or none of them exceed the threshold."""
    most = special.gammaincinv(n + 1, 1 - tail) / exposure
    return start * np.exp(-most * when), np.full(len(when), start)


def bounds_by_draws(
    when: Floats,
    sizes: Floats,
    exposure: float,
    threshold: float,
    *,
    error: float,
    spread: float,
    level: float,
    seed: int,
) -> tuple[Floats, Floats]:
    """Return bounds over draws of rate and sizes; with few sizes, of the rate alone."""
    n, tail = len(sizes), (1 - level) / 2
    start = float(normal_within(error, spread, threshold))
    if n < _FEW:
        return all_or_none(when, start, n, exposure, tail)
    rng = np.random.default_rng(seed)
    rate = rng.gamma(n + 0.5, size=_DRAWS) / exposure
    weights = rng.dirichlet(np.ones(n), size=_DRAWS)
    drawn = within_steps(
        when, rate, weights, sizes, threshold, error=error, spread=spread, fine=_COARSE
    )
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return low, high
