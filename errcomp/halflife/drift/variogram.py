r"""The drift variogram: how far errors move apart, by the lag between two versions.

Simulated half-lives, nominal 95 %, calibrated error 5 %, 200 to 300 runs each (a subset of them in
tests/statistical): per cent that covered the true half-life among those that were not refused, per
cent refused, and per cent of intervals without an end. Steps are those of each series, common to
all or half of each; rare ones are 20 % at 5 % of the releases.

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
logarithm. What few clusters with large steps do to the mean is then underestimated.
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

#: Releases with a step, at least: with fewer, not even common normal steps give an upper bound.
FEWEST_RELEASES = 5
#: Degrees of freedom (twice the number of equal large steps) below which no upper bound is given:
#: a series of steps is seen at all only if it had more of them than usual.
FEWEST_DF = 10.0
#: A step not seen yet is taken to be no larger than this many times the calibrated error.
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
        V(h), noise subtracted (negative where noise happens to be more than all), and its pointwise
        interval, never below 0.
    median : ndarray, shape (b,)
        Median \|Δ log error\| over pairs, noise included: robust against rare large steps.
    n_pairs, n_series : ndarray of int, shape (b,)
    noise : float
        Mean variance of the noise of one error; 0 where it is not known.
    common : float
        Share of the variance of steps that all clusters have in common, the upper end of its
        interval: 1 where a release moves all by the same, and where there is one cluster only.
    scale, beta : float or None
        Of the power law ``V = scale·h^beta``; None where no drift stands out of the noise.
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
        """Return plain values for JSON."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def drift_variogram(
    panel: Panel, *, clock: Clock = "releases", level: float = 0.95, fit: Fit | None = None
) -> Variogram:
    r"""Mean squared change of the error between two versions, by their lag.

    .. math:: V(h) = \frac1{S_h} \sum_i \frac1{M_{ih}} \sum_{t}
              \big[(e_i(t+h) - e_i(t))^2 - \sigma_{i,t+h}^2 - \sigma_{i,t}^2\big]

    over the S series with M > 0 pairs of versions that lie h releases apart. Series weigh the same.
    Lags above 3 are classed (4-5, 6-7, 8-11, ...); on the clock of months a class of release lags
    stands at its mean lag in months.

    Valid where drift has stationary increments: a release moves errors by as much early as late.
    It misleads where workloads are of different age (see `drift_by_age`), and where nothing was
    measured twice: noise then counts as drift.

    Parameters
    ----------
    panel : Panel
    clock : {"releases", "months"}
    level : float
        Of the pointwise intervals.
    fit : Fit, optional
        `fit_variogram` of this panel and clock, if there is one already.

    Returns
    -------
    Variogram

    Raises
    ------
    InputError
        No series has two versions, versions have no dates where months are asked for, or ``level``
        is not between 0 and 1.

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
    >>> found = drift_variogram(panel)
    >>> found.lag[:3].tolist(), np.sqrt(found.v[:3]).round(3).tolist()
    ([1.0, 2.0, 3.0], [0.02, 0.029, 0.035])
    >>> round(found.beta, 1)
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
    r"""Half-life read off the drift variogram: where drift makes the calibrated error double.

    .. math:: \sqrt{e_0^2 + V(h)} = 2 e_0 \iff V(h) = 3 e_0^2

    V is the power law :math:`c h^\beta` with β up to 2, fitted by weighted least squares (weights:
    numbers of independent pairs over V²), or, where the law misfits, the curve itself. The interval
    holds the lags at which 3·e0² lies within the interval of V: a χ² whose degrees of freedom
    follow from the covariance of V over lags. That knows what share of the steps all clusters have
    in common (a bad release hits many series at once, which then count as one), how heavy their
    tails are, how much clusters differ, and the noise.

    Answers that are no number: ``high`` is inf where the drift seen cannot bound it (fewer steps
    than five large ones in effect, or more than twice the longest lag needed); ``half_life`` is inf
    where it lies beyond that, or where no drift stands out of the noise: then ``low`` is what
    unseen steps leave, at most four times e0 each and in 3.7 of the n releases seen. ``refused``
    where that is less than one release or there are fewer than five releases.

    Parameters
    ----------
    panel : Panel
    error : float
        The calibrated error e0 (log scale); taken as known.
    clock : {"releases", "months"}
    level : float
    fit : Fit, optional
        `fit_variogram` of this panel and clock, if there is one already.

    Returns
    -------
    HalfLife
        ``details`` holds scale, beta, common, df (degrees of freedom of V where it is known best),
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
    >>> found = variogram_half_life(panel, error=0.05)
    >>> found.low < 18.75 < found.high, found.details["read_off"]
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
    """Say which releases or lags are missing to tell how drift grows; empty where none are."""
    releases = fit.steps.releases
    if releases < FEWEST_RELEASES:
        return (
            f"steps lie between {releases} pair{'s' * (releases != 1)} of versions; fewer than "
            f"{FEWEST_RELEASES} cannot tell what releases do."
        )
    if fit.fitted.sum() < 2:
        return "all series have two versions at the same lag: nothing tells how drift grows."
    return ""


def _without_drift(
    fit: Fit, error: float, tail: float
) -> tuple[float | None, float | None, float | None, str]:
    per_release = float((fit.pairs.time / fit.pairs.lag).mean())
    rate = rate_upper_bound(fit.design.at(fit.fitted), fit.pairs.v[fit.fitted], tail)
    # The rule of three, two-sided: none seen in n, so that -log(0.025) = 3.7 of n are possible.
    unseen = -np.log(tail) / (fit.steps.releases * per_release) * (_LARGEST_STEP * error) ** 2
    low = 3 * error**2 / (rate + unseen)
    if low >= per_release:
        return np.inf, float(low), np.inf, ""
    return (
        None,
        None,
        None,
        f"no drift stands out of the noise in {fit.steps.releases} releases, but steps of "
        f"{_LARGEST_STEP:.0f} times the calibrated error could be as frequent as "
        f"{-np.log(tail):.1f} in so many: not even one release can be promised.",
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
    # A law that hardly rises crosses 3·e0² anywhere: beyond the interval it says nothing.
    return min(max(half, low), high), low, high, best, read_off


def _censored(panel: Panel, drift: float) -> float:
    series = panel.series
    moved = np.abs(panel.error - panel.error[panel.starts[:-1]][series]) >= drift
    some = np.diff(panel.starts) > 1
    return float((group_sums(moved.astype(float), series, panel.n_series) == 0)[some].mean())


def _assumptions(fit: Fit, *, drift: bool) -> tuple[str, ...]:
    assumptions = [
        "Drift has stationary increments: a release moves errors by as much early as late.",
        "Clusters move independently of each other but for what a release does to all.",
        "The drift and the error at calibration are independent; the latter is known.",
    ]
    if not drift:
        assumptions.append(
            f"A step not seen yet is at most {_LARGEST_STEP:.0f} times the calibrated error."
        )
    if not fit.noise.known:
        assumptions.append(
            "Nothing was measured twice, so that noise counts as drift: the half-life is longer "
            "than it looks, and its interval has no end."
        )
    return tuple(assumptions)
