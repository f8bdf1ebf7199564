r"""Smooth decay: whether the error drifts steadily, and when it then reaches the threshold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.panel import Clock, HalfLife, Panel, check_clock, check_positive, tails

Floats = NDArray[np.float64]

__all__ = ["decay_half_lives", "group_decay_half_life"]


# Smooth decay on arrays of series of equal length: forecasts from rolling origins, and profiles.
#
# The smooth forms are lines in a basis g of time: g = t, or 1 - exp(-t/τ) for τ of a grid.

#: Time constants of saturation relative to the record: from almost a step to almost a line.
#: A coarse grid to forecast with, a finer one for the interval.
_TAU_FORECAST = np.geomspace(0.08, 2.5, 10)
_TAU_PROFILE = np.geomspace(0.03, 4.0, 22)
#: Refinement around the best of these, as factors.
_TAU_NEAR = np.exp(np.linspace(-0.3, 0.3, 31))
#: Number of values for the first forecast.
FIRST_ORIGIN = 5
_FAR = np.linspace(0, 2, 81)
_NEAR = np.concatenate([np.linspace(-8, -3, 11), np.linspace(-2.8, 2.8, 57), np.linspace(3, 8, 11)])
RIVALS = ("constant", "step", "last value")


def _bases(time: Floats, span: Floats, tau: Floats) -> Floats:
    """Return the basis of each form at times, shape (forms, s, n); the first is the line.

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
    # Mean after the best single step, with at least two values on each side.
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
    r"""Return when the smooth curve reaches a value, with a profile-likelihood interval.

    With :math:`a + b\,g(t^*) = L` the fit is that of y - L on g(t) - g(t*) without an intercept.

    Parameters
    ----------
    time, y : ndarray, shape (s, n)
        Times, starting at 0.
    reached : ndarray, shape (s,)
        L.
    ratio : float
        A time is excluded if its residual sum of squares exceeds the smallest by this factor.

    Returns
    -------
    best, low, high : ndarray, shape (s,)
        inf beyond twice the record.
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
    """Return times to evaluate: a coarse grid, and a fine one around the best curve's crossing."""
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
    # One form at a time: all of them together do not fit into the cache.
    scaled = when / span[:, None]
    yield scaled
    for time_constant in tau:
        yield 1 - np.exp(-scaled / time_constant[:, None])


def _lowest(values: Iterator[Floats]) -> Floats:
    """Return the minimum over forms, interpolated by parabolas between fine time constants."""
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
    # Where the excess over the limit changes sign, between two points of the grid.
    last, row = when.shape[1] - 1, np.arange(len(when))
    inside = excess <= 0

    def between(outer: NDArray[np.int64], inner: NDArray[np.int64]) -> Floats:
        e, f = excess[row, outer], excess[row, inner]
        share = np.divide(e, e - f, out=np.zeros_like(e), where=e != f)
        return np.asarray(when[row, outer] + share * (when[row, inner] - when[row, outer]))

    first, final = inside.argmax(axis=1), last - inside[:, ::-1].argmax(axis=1)
    low = np.where(first == 0, 0.0, between(np.maximum(first - 1, 0), first))
    high = np.where(final == last, np.inf, between(np.minimum(final + 1, last), final))
    some = inside.any(axis=1)
    return np.where(some, low, when[:, -1]), np.where(some, high, np.inf)


_FORMS = ("linear", "saturating", *RIVALS)
_ASSUMPTIONS = (
    "The error follows a line or saturates exponentially, with independent deviations.",
    "The error keeps drifting in the same direction.",
)


#: With fewer values, two random walks in a hundred pass for smooth drift with a wrong interval.
_FEWEST = 12
#: A smooth form must forecast better than each rival by this many standard errors.
_Z = 1.0
#: Series per chunk, which keeps arrays small.
_CHUNK = 4_000


def decay_half_lives(
    panel: Panel, *, threshold: float, clock: Clock = "releases", level: float = 0.95
) -> tuple[HalfLife, ...]:
    r"""Return the half-life of each series by smooth decay, if the data support a smooth form.

    Two smooth forms, a line :math:`a + bt` and saturation :math:`a + b(1 - e^{-t/\tau})`, forecast
    each value from the earlier ones (rolling origin, one step ahead). Their rivals are a constant,
    a single step and the last value. A smooth form is supported if there are 12 versions and its
    mean squared forecast error is smaller than that of each rival by more than the standard error
    of the difference. Otherwise the half-life is refused as not identifiable. The half-life is the
    time since the first version at which the fitted curve reaches the threshold, in the direction
    of its drift:

    .. math:: t^* : \ a + b\,g(t^*) = \pm\,\mathrm{threshold}

    Its interval is that of the profile likelihood over both forms:

    .. math:: \{t^* : \mathrm{RSS}(t^*) \le \mathrm{RSS}_{\min}
              (1 + F_{1, n - 4; \mathrm{level}} / (n - 4))\}

    with one degree of freedom less than for three parameters, because series are selected by their
    forecasts (otherwise small samples covered 91 to 93 %).

    ``high`` is inf if the fits that cannot be excluded include saturation below the threshold, or a
    time beyond twice the record.

    In simulations, 93 to 97 % of the identified series were covered; 90 % if fewer than one in five
    is identified, because chance made these look steeper (saturation, 12 versions).
    Valid for independent errors around a smooth curve. A random walk may look like a line, so the
    last value is among the rivals.

    Parameters
    ----------
    panel : Panel
    threshold : float
        On the log scale: twice the calibrated error, or √3 times if errors start from 0.
    clock : {"releases", "months"}
    level : float

    Returns
    -------
    tuple of HalfLife
        One per series, in their order. ``details`` holds form (``"linear"`` or ``"saturating"``),
        slope (of a straight line, per unit), the held-out root mean square errors of all five
        forecasts, and the number of forecasts.

    Raises
    ------
    InputError
        Versions have no dates and the clock is months, ``threshold`` is not positive and finite, or
        ``level`` is not between 0 and 1.

    References
    ----------
    Tashman (2000), "Out-of-sample tests of forecasting accuracy",
    doi:10.1016/S0169-2070(00)00065-0. Fieller (1954), "Some Problems in Interval Estimation",
    doi:10.1111/j.2517-6161.1954.tb00159.x.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> rng = np.random.default_rng(0)
    >>> panel = Panel(
    ...     versions=tuple("abcdefghijklmnopqrst"),
    ...     months=np.full(20, np.nan),
    ...     names=("drifts", "stays"),
    ...     clusters=np.array([0, 1]),
    ...     starts=np.array([0, 20, 40]),
    ...     version=np.tile(np.arange(20), 2),
    ...     error=np.append(0.01 * np.arange(20), np.zeros(20)) + rng.normal(0, 0.01, 40),
    ...     sd=np.full(40, 0.01),
    ...     noise_df=np.full(2, np.inf),
    ...     frozen_at_first=False,
    ... )
    >>> drifts, stays = decay_half_lives(panel, threshold=0.1)
    >>> drifts.low < 10 < drifts.high, drifts.details["form"]
    (True, 'linear')
    >>> stays.half_life is None, stays.refused.split(":")[0]
    (True, 'not identifiable')
    """
    check_positive(threshold, "threshold")
    check_clock(panel, clock)
    tails(level)
    time = panel.times(clock)
    sizes = np.diff(panel.starts)
    half_lives: dict[int, HalfLife] = {}
    for n in np.unique(sizes):
        members = np.flatnonzero(sizes == n)
        for start in range(0, len(members), _CHUNK):
            chosen = members[start : start + _CHUNK]
            rows = panel.starts[chosen][:, None] + np.arange(n)
            t, y = time[rows], panel.error[rows]
            chunk = _decay(t - t[:, :1], y, threshold, clock, level, 1)
            half_lives.update(zip(chosen.tolist(), chunk, strict=True))
    return tuple(half_lives[i] for i in range(panel.n_series))


def group_decay_half_life(
    panel: Panel, *, threshold: float, clock: Clock = "releases", level: float = 0.95
) -> HalfLife:
    r"""Return the half-life of a group of series by smooth decay of their mean log error.

    The mean over series at each lag since their first version is treated as one series by
    `decay_half_lives`. It uses a range of lags at which all series of the mean have values (the
    range with most values); other series are left out. Common drift remains, while drifts in
    opposite directions cancel: for those see `errcomp.halflife.drift.variogram`.

    Parameters
    ----------
    panel, threshold, clock, level
        As for `decay_half_lives`. On the clock of months, a lag in releases has its mean in months.

    Returns
    -------
    HalfLife
        ``n_series`` is the number of averaged series.

    Raises
    ------
    InputError
        As `decay_half_lives`.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> rng = np.random.default_rng(0)
    >>> panel = Panel(
    ...     versions=tuple("abcdefghijklmnopqrst"),
    ...     months=np.full(20, np.nan),
    ...     names=tuple(str(i) for i in range(30)),
    ...     clusters=np.arange(30),
    ...     starts=np.arange(0, 601, 20),
    ...     version=np.tile(np.arange(20), 30),
    ...     error=np.tile(0.005 * np.arange(20), 30) + rng.normal(0, 0.03, 600),
    ...     sd=np.full(600, 0.03),
    ...     noise_df=np.full(30, np.inf),
    ...     frozen_at_first=False,
    ... )
    >>> half_life = group_decay_half_life(panel, threshold=0.05)
    >>> half_life.low < 10 < half_life.high, half_life.n_series
    (True, 30)
    """
    check_positive(threshold, "threshold")
    check_clock(panel, clock)
    tails(level)
    first = panel.starts[:-1]
    series = panel.series
    lag = panel.version - panel.version[first][series]
    whole = lag == np.arange(len(lag)) - first[series]
    # Versions since the first one without a gap, for each series.
    run = np.bincount(series, weights=whole, minlength=panel.n_series).astype(int)
    have = (run[:, None] >= np.arange(1, run.max() + 1)).sum(axis=0)
    length = int(np.argmax(have * np.arange(1, len(have) + 1))) + 1
    rows = first[run >= length][:, None] + np.arange(length)
    time = panel.times(clock)[rows]
    time = (time - time[:, :1]).mean(axis=0)
    mean = panel.error[rows].mean(axis=0)
    return _decay(time[None], mean[None], threshold, clock, level, len(rows))[0]


def _decay(
    time: Floats, y: Floats, threshold: float, clock: Clock, level: float, n_series: int
) -> list[HalfLife]:
    s, n = y.shape

    def result(i: int, refused: str, **values: Any) -> HalfLife:
        return HalfLife(
            method="decay",
            half_life=values.get("half_life"),
            low=values.get("low"),
            high=values.get("high"),
            level=float(level),
            unit=clock,
            n_series=n_series,
            censored_share=float(np.abs(y[i]).max() < threshold),
            refused=refused,
            assumptions=_ASSUMPTIONS,
            details=values.get("details", {}),
        )

    if n < _FEWEST or not (time[:, -1] > time[:, 0]).all():
        why = (
            f"the history has {n} versions, and a fit needs at least {_FEWEST} at different times."
        )
        return [result(i, why) for i in range(s)]
    mse, smooth, beaten = _compare(time, y)
    slope = _slope(time, y)
    chosen = np.flatnonzero(beaten.all(axis=0))
    best, low, high, begin = np.empty((4, s))
    if len(chosen):
        from scipy.special import fdtri

        ratio = 1 + float(fdtri(1, n - 4, level)) / (n - 4)
        level_reached = np.copysign(threshold, slope[chosen])
        best[chosen], low[chosen], high[chosen], begin[chosen] = profile(
            time[chosen], y[chosen], level_reached, ratio
        )
    supported = set(chosen.tolist())
    rms = np.sqrt(mse)
    half_lives = []
    for i in range(s):
        numbers = {}
        if i not in supported:
            rival = int(np.argmin(np.where(beaten[:, i], np.inf, mse[2:, i])))
            why = (
                f"not identifiable: over {n - FIRST_ORIGIN} forecasts, the held-out error of the "
                f"{_FORMS[smooth[i]]} form is {rms[smooth[i], i]:.3g}, which is not clearly below "
                f"the error of a forecast by the {RIVALS[rival]}, {rms[2 + rival, i]:.3g}."
            )
        elif abs(begin[i]) >= threshold:
            why = (
                f"the fitted error at the first version, {begin[i]:.3g}, was already beyond "
                f"the threshold of {threshold:.3g}."
            )
        else:
            why = ""
            numbers = {"half_life": float(best[i]), "low": float(low[i]), "high": float(high[i])}
        details = {
            "form": _FORMS[smooth[i]],
            "slope": float(slope[i]),
            "forecasts": n - FIRST_ORIGIN,
            "held_out_rms": dict(zip(_FORMS, rms[:, i].tolist(), strict=True)),
        }
        half_lives.append(result(i, why, details=details, **numbers))
    return half_lives


def _compare(time: Floats, y: Floats) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """Return the five mean squared errors, the better smooth form, and which rivals it beats."""
    losses = rolling_losses(time, y)
    mse = losses.mean(axis=2)
    smooth = np.argmin(mse[:2], axis=0)
    better = losses[2:] - np.take_along_axis(losses[:2], smooth[None, :, None], axis=0)
    margin = _Z * better.std(axis=2, ddof=1) / np.sqrt(better.shape[2])
    return mse, smooth, better.mean(axis=2) > margin


def _slope(time: Floats, y: Floats) -> Floats:
    centred = time - time.mean(axis=1, keepdims=True)
    return np.asarray((centred * y).sum(axis=1) / (centred**2).sum(axis=1))
