r"""The drift variogram: how far errors drift, by the lag between two versions.

The table has simulated half-lives, nominal 95 %, calibrated error 5 %, 200 to 300 runs each (a
subset in tests/statistical). Covered: per cent that covered the true half-life, of those not
refused. Refused: per cent. Open: per cent of intervals without an upper end. Steps belong to each
series (own), to all series (common) or to both in equal parts; rare ones are 20 % at 5 % of the
releases.

=================  ======  ========  =====  =======  =======  ====
steps              series  versions  noise  covered  refused  open
=================  ======  ========  =====  =======  =======  ====
own, 5 %           1       6         1 %    100      1        100
own, 2 %           1       20        1 %    99       0        97
own, 2 %           20      20        1 %    96       0        43
own, 2 %           20      60        1 %    94       0        0
own, 2 %           200     20        10 %   99       2        99
half common, 2 %   20      40        3 %    97       0        52
common, 3 %        200     20        1 %    96       0        64
common, 2 %        20      60        10 %   97       0        92
common, 2 %        20      200       5 %    94       0        12
rare               1       6         1 %    100      75       100
rare               1       60        1 %    100      0        95
rare               5       20        3 %    98       2        85
rare               20      20        1 %    98       0        4
rare               200     6         5 %    97       0        27
rare, common       20      6         1 %    99       77       100
rare, common       20      60        1 %    99       0        89
rare, common       20      200       5 %    97       0        11
none               20      20        3 %    100      99       100
none               1       200       1 %    100      0        100
clusters differ    20      20        1 %    92       0        69
clusters differ    60      20        1 %    89       0        35
=================  ======  ========  =====  =======  =======  ====

Clusters differ: the size of their steps is log-normal, with a standard deviation of 0.5 of its
logarithm. The effect of a few clusters with large steps is then underestimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.drift import (
    Fit,
    Law,
    fit_variogram,
    group_sums,
    has_rare_steps,
    law_bounds,
    misfits,
    rate_upper_bound,
)
from errcomp.halflife.panel import Clock, HalfLife, Panel, check_positive, tails

Floats = NDArray[np.float64]

__all__ = ["Variogram", "drift_variogram", "variogram_half_life"]

#: Fewest releases with a step: with fewer, not even common normal steps give an upper bound.
FEWEST_RELEASES = 5
#: No upper bound is given below these degrees of freedom (twice the number of equal large steps):
#: a series with steps is noticed only if it had more steps than usual.
FEWEST_DF = 10.0
#: A future step is assumed to be at most this many times the calibrated error.
_LARGEST_STEP = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Variogram:
    r"""Drift by lag.

    Attributes
    ----------
    unit : {"releases", "months"}
    lag : ndarray, shape (b,)
        Mean lag of each class of pairs, in ``unit``.
    v, low, high : ndarray, shape (b,)
        V(h), noise subtracted (negative if noise exceeds the mean square), and its pointwise
        interval, never below 0.
    median : ndarray, shape (b,)
        Median \|Δ log error\| over pairs, noise included: robust against rare large steps.
    n_pairs, n_series : ndarray of int, shape (b,)
    noise : float
        Mean variance of the noise of one error; 0 if unknown.
    common : float
        Share of the variance of steps that is common to all clusters, the upper end of its
        interval: 1 if each release changes all series equally, and with a single cluster.
    scale, beta : float or None
        Of the power law ``V = scale·h^beta``; None if no drift exceeds the noise.
    level : float
    """

    unit: Clock
    lag: Floats
    v: Floats
    low: Floats
    high: Floats
    median: Floats
    n_pairs: NDArray[Any]
    n_series: NDArray[Any]
    noise: float
    common: float
    scale: float | None
    beta: float | None
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> import errcomp as ec
        >>> half_lives = ec.half_life({"version": ["1", "2", "3"], "measured": [4.0, 4.1, 4.4]})
        >>> half_lives.groups[0].variogram.to_dict()["lag"]
        [1.0, 2.0]
        """
        values = {name: getattr(self, name) for name in self.__slots__}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def drift_variogram(
    panel: Panel, *, clock: Clock = "releases", level: float = 0.95, fit: Fit | None = None
) -> Variogram:
    r"""Return the mean squared change of the error between two versions, by their lag.

    .. math:: V(h) = \frac1{S_h} \sum_i \frac1{M_{ih}} \sum_{t}
              \big[(e_i(t+h) - e_i(t))^2 - \sigma_{i,t+h}^2 - \sigma_{i,t}^2\big]

    over the S series with M > 0 pairs of versions that are h releases apart. All series have the
    same weight. Lags above 3 are classed (4-5, 6-7, 8-11, ...). On the clock of months, a class of
    release lags has its mean lag in months.

    Valid if drift has stationary increments: early and late releases change errors equally. It
    misleads if workloads differ in age (see `drift_by_age`), and without repeats: noise then counts
    as drift.

    Parameters
    ----------
    panel : Panel
    clock : {"releases", "months"}
    level : float
        Of the pointwise intervals.
    fit : Fit, optional
        An existing `fit_variogram` of this panel and clock.

    Returns
    -------
    Variogram

    Raises
    ------
    InputError
        No series has two versions, versions have no dates and the clock is months, or ``level`` is
        not between 0 and 1.

    References
    ----------
    Matheron (1963), "Principles of geostatistics", doi:10.2113/gsecongeo.58.8.1246. Cressie and
    Hawkins (1980), "Robust estimation of the variogram: I", doi:10.1007/BF01035243.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> rng = np.random.default_rng(0)
    >>> error = np.cumsum(rng.normal(0, 0.02, (50, 16)), axis=1)
    >>> panel = Panel(
    ...     versions=tuple("abcdefghijklmnop"),
    ...     months=np.arange(16.0),
    ...     names=tuple(str(i) for i in range(50)),
    ...     clusters=np.arange(50),
    ...     starts=np.arange(0, 801, 16),
    ...     version=np.tile(np.arange(16), 50),
    ...     error=error.ravel(),
    ...     sd=np.zeros(800),
    ...     noise_df=np.full(50, np.inf),
    ...     frozen_at_first=False,
    ... )
    >>> drift = drift_variogram(panel)
    >>> drift.lag[:3].tolist(), np.sqrt(drift.v[:3]).round(3).tolist()
    ([1.0, 2.0, 3.0], [0.02, 0.029, 0.035])
    >>> round(drift.beta, 1)
    1.0
    """
    tail = tails(level)
    fit = fit or fit_variogram(panel, clock)
    low, high = fit.bounds(tail)
    return Variogram(
        unit=clock,
        lag=fit.pairs.time,
        v=fit.pairs.v,
        low=low,
        high=high,
        median=fit.pairs.median,
        n_pairs=fit.pairs.n_pairs,
        n_series=fit.pairs.n_series,
        noise=float(fit.noise.variance.mean()),
        common=fit.steps.common,
        scale=fit.law.scale if fit.law else None,
        beta=fit.law.beta if fit.law else None,
        level=float(level),
    )


def variogram_half_life(
    panel: Panel,
    *,
    error: float,
    clock: Clock = "releases",
    level: float = 0.95,
    fit: Fit | None = None,
) -> HalfLife:
    r"""Return the half-life by the drift variogram: when drift doubles the calibrated error.

    .. math:: \sqrt{e_0^2 + V(h)} = 2 e_0 \iff V(h) = 3 e_0^2

    V is the power law :math:`c h^\beta` with β up to 2, fitted by weighted least squares (weights:
    numbers of independent pairs over V²). If the power law misfits, V is the curve itself. The
    interval holds the lags at which 3·e0² is within the interval of V, a χ² whose degrees of
    freedom follow from the covariance of V over lags. This covariance depends on the share of the
    steps that is common to all clusters (a bad release changes many series at once, which then
    count as one), on how heavy their tails are, on how much clusters differ, and on the noise.

    Special values: ``high`` is inf if the observed drift cannot bound it (fewer than five effective
    large steps, or a lag beyond twice the longest one). ``half_life`` is inf if it exceeds that, or
    if no drift exceeds the noise. In that case ``low`` assumes future steps of at most four times
    e0, in 3.7 of the n observed releases. ``refused`` if that is less than one release, or if there
    are fewer than five pairs of successive releases.

    Parameters
    ----------
    panel : Panel
    error : float
        The calibrated error e0 (log scale), treated as known.
    clock : {"releases", "months"}
    level : float
    fit : Fit, optional
        An existing `fit_variogram` of this panel and clock.

    Returns
    -------
    HalfLife
        ``details`` holds scale, beta, common, df (degrees of freedom of V at its most precise lag),
        read_off (``"law"`` or ``"curve"``), releases and the curve as lists.

    Raises
    ------
    InputError
        As `drift_variogram`, or ``error`` is not positive and finite.

    Examples
    --------
    Steps of 2 % at each release: V(h) = 0.0004·h, so that 5 % doubles after 3·0.05²/0.0004 = 18.75.

    >>> from errcomp.halflife.panel import Panel
    >>> rng = np.random.default_rng(0)
    >>> error = np.cumsum(rng.normal(0, 0.02, (100, 24)), axis=1)
    >>> panel = Panel(
    ...     versions=tuple("abcdefghijklmnopqrstuvwx"),
    ...     months=np.arange(24.0),
    ...     names=tuple(str(i) for i in range(100)),
    ...     clusters=np.arange(100),
    ...     starts=np.arange(0, 2401, 24),
    ...     version=np.tile(np.arange(24), 100),
    ...     error=error.ravel(),
    ...     sd=np.zeros(2400),
    ...     noise_df=np.full(100, np.inf),
    ...     frozen_at_first=False,
    ... )
    >>> half_life = variogram_half_life(panel, error=0.05)
    >>> half_life.low < 18.75 < half_life.high, half_life.details["read_off"]
    (True, 'law')
    """
    tail = tails(level)
    check_positive(error, "error")
    fit = fit or fit_variogram(panel, clock)
    target, releases = 3 * error**2, fit.steps.releases
    refused, read_off, df = too_few(fit), "", 0.0
    half = low = high = None
    if not refused and fit.law is None:
        half, low, high, refused = _without_drift(fit, error, tail)
    elif not refused and fit.law is not None:
        half, low, high, df, read_off = _with_drift(fit, fit.law, target, tail)
        if not fit.noise.known:
            high = np.inf
    curve_low, curve_high = fit.bounds(tail)
    return HalfLife(
        method="variogram",
        half_life=half,
        low=low,
        high=high,
        level=float(level),
        unit=clock,
        n_series=int((np.diff(panel.starts) > 1).sum()),
        censored_share=_censored(panel, np.sqrt(target)),
        refused=refused,
        assumptions=_assumptions(fit, drift=bool(read_off)),
        details={
            "scale": fit.law.scale if fit.law else None,
            "beta": fit.law.beta if fit.law else None,
            "common": fit.steps.common,
            "df": df,
            "read_off": read_off,
            "releases": releases,
            "lag": fit.pairs.time.tolist(),
            "v": fit.pairs.v.tolist(),
            "low": curve_low.tolist(),
            "high": curve_high.tolist(),
        },
    )


def too_few(fit: Fit) -> str:
    """Say which releases or lags are missing to estimate drift; empty if none are."""
    releases = fit.steps.releases
    if releases < FEWEST_RELEASES:
        return (
            f"the history has {releases} pair{'s' * (releases != 1)} of successive versions; at "
            f"least {FEWEST_RELEASES} are needed to estimate drift."
        )
    if fit.fitted.sum() < 2:
        return (
            "all pairs of versions are equally far apart (same lag), so it is unknown how drift "
            "grows with the lag."
        )
    return ""


def _without_drift(
    fit: Fit, error: float, tail: float
) -> tuple[float | None, float | None, float | None, str]:
    per_release = float((fit.pairs.time / fit.pairs.lag).mean())
    rate = rate_upper_bound(fit.design.at(fit.fitted), fit.pairs.v[fit.fitted], tail)
    # The rule of three, two-sided: with none in n releases, -log(0.025) = 3.7 of n are possible.
    unseen = -np.log(tail) / (fit.steps.releases * per_release) * (_LARGEST_STEP * error) ** 2
    low = 3 * error**2 / (rate + unseen)
    if low >= per_release:
        return np.inf, float(low), np.inf, ""
    return (
        None,
        None,
        None,
        f"drift is not above the noise, but {fit.steps.releases} releases are too few to rule out "
        f"rare large steps (up to {-np.log(tail):.1f} steps in that time, each of "
        f"{_LARGEST_STEP:.0f} times the error at calibration), so the half-life may be below one "
        "release.",
    )


def _with_drift(
    fit: Fit, law: Law, target: float, tail: float
) -> tuple[float, float, float, float, str]:
    time = fit.pairs.time
    first, last = float(time[fit.fitted].min()), float(time.max())
    lag = np.geomspace(first, 2 * last, 600)
    low_v, high_v, df = law_bounds(law, lag, tail, rare_steps=has_rare_steps(fit))
    best = float(df[lag <= last].max())
    exponent = float(np.log(target / law.scale)) / law.beta
    half = float(np.exp(exponent)) if exponent < 700 else np.inf
    read_off = "law"
    if misfits(fit, law):
        read_off = "curve"
        lag = np.geomspace(first, last, 600)
        low_v, high_v = (np.interp(lag, time, bound) for bound in fit.bounds(tail))
        rising = np.maximum.accumulate(fit.pairs.v)
        half = float(np.interp(target, rising, time)) if rising[-1] >= target else np.inf
    possible = np.flatnonzero((low_v <= target) & (high_v >= target))
    if not len(possible):
        # Between two lags, or all before the first, or all beyond the last.
        after = int((high_v < target).sum())
        low = 0.0 if after == 0 else float(lag[after - 1])
        high = float(lag[after]) if after < len(lag) else np.inf
    else:
        low = 0.0 if possible[0] == 0 else float(lag[possible[0]])
        high = np.inf if possible[-1] == len(lag) - 1 else float(lag[possible[-1]])
    if best < FEWEST_DF:
        high = np.inf
    if half > lag[-1]:
        half, high = np.inf, np.inf
    # A law that hardly rises may cross 3·e0² anywhere: use it within the interval alone.
    return min(max(half, low), high), low, high, best, read_off


def _censored(panel: Panel, drift: float) -> float:
    series = panel.series
    moved = np.abs(panel.error - panel.error[panel.starts[:-1]][series]) >= drift
    some = np.diff(panel.starts) > 1
    return float((group_sums(moved.astype(float), series, panel.n_series) == 0)[some].mean())


def _assumptions(fit: Fit, *, drift: bool) -> tuple[str, ...]:
    assumptions = [
        "Early and late releases change errors by equal amounts (stationary increments).",
        "Clusters change independently, except for effects of a release on all clusters.",
        "Drift is independent of the error at calibration, which is treated as exactly known.",
    ]
    if not drift:
        assumptions.append(
            f"Future steps are at most {_LARGEST_STEP:.0f} times as large as the error at "
            "calibration."
        )
    if not fit.noise.known:
        assumptions.append(
            "Without repeats, noise counts as drift: the true half-life is longer, and the "
            "interval has no upper end."
        )
    return tuple(assumptions)
