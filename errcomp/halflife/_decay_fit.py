r"""Smooth decay on arrays of series of equal length: forecasts from rolling origins, and profiles.

The smooth forms are lines in a basis g of time: g = t, or :math:`1 - e^{-t/\tau}` for τ of a grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["FIRST_ORIGIN", "RIVALS", "profile", "rolling_losses"]

#: Time constants of saturation over the time seen: below the first a step, above the last a line.
#: Few to forecast with, more for the interval.
_TAU_FORECAST = np.geomspace(0.08, 2.5, 10)
_TAU_PROFILE = np.geomspace(0.03, 4.0, 22)
#: And about the best of those, as factors.
_TAU_NEAR = np.exp(np.linspace(-0.3, 0.3, 31))
#: Values that the first forecast is made from.
FIRST_ORIGIN = 5
_FAR = np.linspace(0, 2, 81)
_NEAR = np.concatenate([np.linspace(-8, -3, 11), np.linspace(-2.8, 2.8, 57), np.linspace(3, 8, 11)])
RIVALS = ("constant", "step", "last value")


def _bases(time: Floats, span: Floats, tau: Floats) -> Floats:
    """Return the basis of each form at times: (forms, s, n); the first is the line.

    ``tau`` has shape (forms - 1, s) or (forms - 1, 1).
    """
    scaled = time / span[:, None]
    return np.concatenate([scaled[None], 1 - np.exp(-scaled / tau[:, :, None])])


def rolling_losses(time: Floats, y: Floats) -> Floats:
    """Return squared errors of one-step forecasts from rolling origins.

    Parameters
    ----------
    time, y : ndarray, shape (s, n)

    Returns
    -------
    ndarray, shape (5, s, n - FIRST_ORIGIN)
        Of the line, the saturating form, and the rivals in their order.
    """
    s, n = y.shape
    origins = np.arange(FIRST_ORIGIN, n)
    forecast = np.empty((5, s, len(origins)))
    forecast[:2] = _smooth_forecasts(time, y, origins)
    sums = np.cumsum(y, axis=1)
    forecast[2] = sums[:, origins - 1] / origins
    for column, k in enumerate(origins):
        forecast[3, :, column] = _after_step(sums[:, :k])
    forecast[4] = y[:, origins - 1]
    return np.asarray((y[:, origins] - forecast) ** 2)


def _smooth_forecasts(time: Floats, y: Floats, origins: NDArray[np.int64]) -> Floats:
    g = _bases(time, time[:, -1] - time[:, 0], _TAU_FORECAST[:, None])
    k = origins.astype(float)

    def upto(x: Floats) -> Floats:
        return np.asarray(np.cumsum(x, axis=-1)[..., origins - 1])

    mean_g, mean_y = upto(g) / k, upto(y) / k
    gg = upto(g * g) / k - mean_g**2
    slope = (upto(g * y) / k - mean_g * mean_y) / np.maximum(gg, 1e-12)
    forecast = mean_y + slope * (g[..., origins] - mean_g)
    best = np.argmax(slope[1:] ** 2 * gg[1:], axis=0)
    curved = np.take_along_axis(forecast[1:], best[None], axis=0)[0]
    return np.stack([forecast[0], curved])


def _after_step(sums: Floats) -> Floats:
    # Mean after the best single step; two values at least on each side.
    k = sums.shape[1]
    before = np.arange(2, k - 1)
    first = sums[:, before - 1]
    after = sums[:, -1:] - first
    gain = first**2 / before + after**2 / (k - before)
    at = np.argmax(gain, axis=1)
    return np.asarray(after[np.arange(len(sums)), at] / (k - before[at]))


def profile(
    time: Floats, y: Floats, reached: Floats, ratio: float
) -> tuple[Floats, Floats, Floats, Floats]:
    r"""When the smooth curve reaches a value, with the interval of the profile likelihood.

    With :math:`a + b\,g(t^*) = L` the fit is that of y - L on g(t) - g(t*) without intercept.

    Parameters
    ----------
    time, y : ndarray, shape (s, n)
        Time from 0 on.
    reached : ndarray, shape (s,)
        L.
    ratio : float
        A time is excluded where its residual sum of squares is larger than the least by this.

    Returns
    -------
    best, low, high : ndarray, shape (s,)
        inf where beyond twice the time seen.
    start : ndarray, shape (s,)
        Of the best curve at time 0.
    """
    n, span = y.shape[1], time[:, -1]
    rest = y - reached[:, None]
    sy, syy = rest.sum(-1), (rest * rest).sum(-1)
    coarse = np.broadcast_to(_TAU_PROFILE[:, None], (len(_TAU_PROFILE), len(y)))
    form = np.argmin(_sums(_bases(time, span, coarse), rest)[4][1:], axis=0)
    tau = np.concatenate([coarse, _TAU_NEAR[:, None] * _TAU_PROFILE[form]])
    sg, sgg, sgy, slope, free = _sums(_bases(time, span, tau), rest)
    form, row = np.argmin(free, axis=0), np.arange(len(y))
    start = (sy - slope * sg)[form, row] / n
    at_best = np.concatenate([np.full((1, len(y)), np.inf), tau])[form, row]
    when = _grid(span, start, slope[form, row], at_best, np.sqrt(free[form, row] / n))

    def bound() -> Iterator[Floats]:
        for k, star in enumerate(_star(when, span, tau)):
            square = sgg[k][:, None] - 2 * star * sg[k][:, None] + n * star * star
            product = sgy[k][:, None] - star * sy[:, None]
            yield syy[:, None] - product**2 / square

    least = np.maximum(_lowest(iter(free)), 0.0)
    bounds = _lowest(bound())
    at = bounds.argmin(axis=1)
    best = np.where(when[row, at] == when[:, -1], np.inf, when[row, at])
    return best, *_ends(when, bounds - (least * ratio)[:, None]), start + reached


def _sums(g: Floats, rest: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return Σg, Σg², Σgy, the slope and the residual sum of squares of each form."""
    n, sy = rest.shape[1], rest.sum(-1)
    sg, sgg, sgy = g.sum(-1), (g * g).sum(-1), (g * rest).sum(-1)
    centred = sgg - sg**2 / n
    slope = (sgy - sg * sy / n) / centred
    free = np.maximum((rest * rest).sum(-1) - sy**2 / n - slope**2 * centred, 0.0)
    return sg, sgg, sgy, slope, free


def _grid(span: Floats, start: Floats, slope: Floats, tau: Floats, spread: Floats) -> Floats:
    """Return times to look at: all over, and finely about where the best curve gets there."""
    straight = np.isinf(tau)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = -start / slope
        centre = span * np.where(straight, u, -tau * np.log1p(-np.minimum(u, 1.0)))
        width = spread / np.abs(slope) * span
        width *= np.where(straight, 1.0, tau * np.exp(np.minimum(centre / span / tau, 50.0)))
    known = np.isfinite(centre) & np.isfinite(width) & (centre >= 0) & (centre <= 2 * span)
    centre, width = np.where(known, centre, span), np.where(known, np.minimum(width, span), span)
    near = np.clip(centre[:, None] + width[:, None] * _NEAR, 0.0, 2 * span[:, None])
    return np.sort(np.concatenate([span[:, None] * _FAR, near], axis=1), axis=1)


def _star(when: Floats, span: Floats, tau: Floats) -> Iterator[Floats]:
    # One form at a time: all of them at once would not stay in the cache.
    scaled = when / span[:, None]
    yield scaled
    for one in tau:
        yield 1 - np.exp(-scaled / one[:, None])


def _lowest(values: Iterator[Floats]) -> Floats:
    """Return the least over forms; between the finer time constants by a parabola through three."""
    lowest = next(values)
    for _ in _TAU_PROFILE:
        lowest = np.minimum(lowest, next(values))
    left, middle = next(values), next(values)
    lowest = np.minimum(lowest, np.minimum(left, middle))
    for right in values:
        bend = left - 2 * middle + right
        inside = (middle <= left) & (middle <= right) & (bend > 0)
        dip = np.divide((left - right) ** 2, 8 * bend, out=np.zeros_like(bend), where=inside)
        lowest = np.minimum(lowest, np.minimum(middle - dip, right))
        left, middle = middle, right
    return lowest


def _ends(when: Floats, excess: Floats) -> tuple[Floats, Floats]:
    # Where the excess over what is allowed changes sign, between two points of the grid.
    last, row = when.shape[1] - 1, np.arange(len(when))
    inside = excess <= 0

    def between(one: NDArray[np.int64], other: NDArray[np.int64]) -> Floats:
        e, f = excess[row, one], excess[row, other]
        share = np.divide(e, e - f, out=np.zeros_like(e), where=e != f)
        return np.asarray(when[row, one] + share * (when[row, other] - when[row, one]))

    first, final = inside.argmax(axis=1), last - inside[:, ::-1].argmax(axis=1)
    low = np.where(first == 0, 0.0, between(np.maximum(first - 1, 0), first))
    high = np.where(final == last, np.inf, between(np.minimum(final + 1, last), final))
    some = inside.any(axis=1)
    return np.where(some, low, when[:, -1]), np.where(some, high, np.inf)
