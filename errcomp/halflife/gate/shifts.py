"""Shifts of many series against their baselines, on arrays: size, standard error, tail, Holm.

The noise of a series comes from its repeats, or, without repeats, from the scatter of its own
baseline. The baselines test both: each row is compared with the row before it (with all others,
where noise is scatter), in the same way as a new value. If those comparisons scatter more than they
should (a machine that differs from day to day, a heavy tail), the distribution of new comparisons
is widened accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from errcomp.codec import Document, Endless, Positive, key
from errcomp.halflife.noise import moderated_variances
from errcomp.halflife.panel import Panel
from errcomp.stats.significance import holm

Floats = NDArray[np.float64]

#: Where the noise of a series comes from, by code.
NOISE = ("none", "repeats", "scatter")

#: With fewer independent residuals, a fitted distribution would be worse than the nominal one.
_FEWEST = 30
#: Threshold of 2 times the log-likelihood ratio. It widens 1 normal distribution in 10, which costs
#: little power; a missed heavy tail would cost false alarms.
_WIDER = 2.7
#: Tails heavier than those of 3 degrees of freedom are steps of the baseline rather than noise.
_DFS = (3.0, 4.0, 6.0, 10.0, 20.0, np.inf)
_MOST = 5_000
#: Tail probability at which distributions are compared: that of a few series at an early look.
_FAR = 1e-4
#: With fewer degrees of freedom over all series, the usual scatter is unknown.
_TOGETHER = 100
#: The scatter of a baseline with fewer rows is not pulled towards the usual one.
_ROWS = 3


@dataclass(frozen=True, slots=True)
class Law(Document):
    """Distribution of comparisons without a change: normal, or a fitted Student t.

    Attributes
    ----------
    scale : float
        Its scale; 1 agrees with repeats or scatter.
    df : float
        Its degrees of freedom; inf is normal.
    n : float
        Number of independent residuals that it was tested with.
    """

    KEYS: ClassVar = (key("noise_scale", "scale"), key("noise_df", "df"), key("noise_n", "n"))

    scale: Positive = 1.0
    df: Annotated[Positive, Endless] = np.inf
    n: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    """New value against the mean of the baseline, for each series; all of shape (s,).

    ``se`` is NaN if the noise is unknown (``noise`` 0), ``level`` without a baseline, ``new``
    without a new value. ``last`` is the version of the last row of the baseline, -1 without a
    baseline. ``t``, ``t_df`` and ``weights`` are comparisons within the baselines, of any length.
    """

    n: NDArray[np.int64]
    level: Floats
    new: Floats
    se: Floats
    df: Floats
    noise: NDArray[np.int64]
    last: NDArray[np.int64]
    t: Floats
    t_df: Floats
    weights: Floats

    @property
    def shift(self) -> Floats:
        """New value minus level."""
        return self.new - self.level


def means(values: Floats, series: NDArray[np.int64], n: NDArray[np.int64]) -> Floats:
    """Return the mean of the values of each series; NaN without values."""
    total = np.bincount(series, values, minlength=len(n))
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def shifts(panel: Panel, since: NDArray[np.int64], at: int) -> Shifts:
    """Compare the rows of version ``at`` with those from ``since`` to the version before.

    Parameters
    ----------
    panel : Panel
    since : ndarray of int, shape (s,)
        First version of each baseline.
    at : int
        The new version.

    Returns
    -------
    Shifts
    """
    s = panel.n_series
    series = panel.series
    sd = _known_sd(panel, series)
    is_new = panel.version == at
    base = (panel.version < at) & (panel.version >= since[series])
    i, x, row_sd = series[base], panel.error[base], sd[base]
    n = np.bincount(i, minlength=s)
    new, sd_new = np.full(s, np.nan), np.full(s, np.nan)
    new[series[is_new]], sd_new[series[is_new]] = panel.error[is_new], sd[is_new]
    last = np.full(s, -1)
    np.maximum.at(last, i, panel.version[base])

    level = means(x, i, n)
    residual = x - level[i]
    squares = np.bincount(i, residual**2, minlength=s).astype(float)
    variances = np.bincount(i, row_sd**2, minlength=s).astype(float)
    repeats = (panel.noise_df > 0) & (n > 0) & ~np.isnan(variances)
    # Equal values scatter by rounding only.
    flat = squares <= n * (1e-12 * np.maximum(1.0, np.abs(level))) ** 2
    scatter = ~repeats & (n > 1) & ~flat
    prior = _prior_of(squares, n, scatter)
    count = np.maximum(n, 1)
    variance, scatter_df = _shrunk(prior, squares, n - 1, n)
    var = np.where(repeats, sd_new**2 + variances / count**2, np.nan)
    var = np.where(scatter, variance * (1 + 1 / count), var)
    # An estimated noise of 0 is an effect of rounding; only a given noise may be 0.
    known = (repeats & ((var > 0) | np.isinf(panel.noise_df) | np.isnan(new))) | scatter
    df = np.where(repeats, panel.noise_df, scatter_df)
    by_repeats = _neighbours(i, x, row_sd, known & repeats, panel.noise_df)
    by_scatter = _leave_one_out(i, n, residual, squares, scatter, prior)
    within = np.concatenate([by_repeats, by_scatter], axis=1)
    return Shifts(
        n=n,
        level=level,
        new=new,
        se=np.where(known, np.sqrt(var), np.nan),
        df=np.where(known, df, 0.0),
        noise=np.where(known, np.where(repeats, 1, 2), 0),
        last=last,
        t=within[0],
        t_df=within[1],
        weights=within[2],
    )


def _neighbours(
    i: NDArray[np.int64],
    x: Floats,
    row_sd: Floats,
    known: NDArray[np.bool_],
    noise_df: Floats,
) -> Floats:
    """Compare each row of a baseline with the row before it; return t, df and weights.

    A step that was not accepted then causes a single outlier instead of one per row.
    """
    variance = row_sd[1:] ** 2 + row_sd[:-1] ** 2
    used = (i[1:] == i[:-1]) & known[i[1:]]
    used[used] &= variance[used] > 0
    t = np.diff(x)[used] / np.sqrt(variance[used])
    return np.stack([t, noise_df[i[1:]][used], np.ones(len(t))])


def _leave_one_out(
    i: NDArray[np.int64],
    n: NDArray[np.int64],
    residual: Floats,
    squares: Floats,
    scatter: NDArray[np.bool_],
    prior: _Prior,
) -> Floats:
    """Compare each row of a baseline with the others and their scatter; t, df and weights."""
    used = scatter[i]
    i, residual = i[used], residual[used]
    others = n[i] - 1
    away = residual * n[i] / others
    variance, df = _shrunk(prior, np.maximum(squares[i] - residual * away, 0), n[i] - 2, n[i])
    known = (df > 0) & (variance > 0)
    t = away[known] / np.sqrt(variance[known] * (1 + 1 / others[known]))
    return np.stack([t, df[known], 1 - 1 / n[i][known]])


@dataclass(frozen=True, slots=True)
class _Prior:
    """The usual scatter over series, the degrees of freedom it counts for, and their maximum."""

    variance: float
    df: float
    most: float


def _prior_of(squares: Floats, n: NDArray[np.int64], scatter: NDArray[np.bool_]) -> _Prior:
    df = np.where(scatter & (n >= _ROWS), n - 1.0, 0.0)
    if (df > 0).sum() < 2 or df.sum() < _TOGETHER:
        return _Prior(0.0, 0.0, np.inf)
    moderated = moderated_variances(np.where(df > 0, squares / np.maximum(df, 1), 1.0), df)
    return _Prior(moderated.prior_variance, moderated.prior_df, float(df.sum()))


def _shrunk(
    prior: _Prior, squares: Floats, df: NDArray[Any], n: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Pull the scatter of baselines of n rows towards the usual one; return variances and df."""
    prior_df = np.where(n >= _ROWS, prior.df, 0.0)
    total = prior_df + np.maximum(df, 0.0)
    variance = (prior_df * prior.variance + squares) / np.where(total > 0, total, 1)
    return variance, np.minimum(total, prior.most)


def _known_sd(panel: Panel, series: NDArray[np.int64]) -> Floats:
    """Return the noise of each row; if missing, that of the noisiest row of its series."""
    sd = np.where(panel.noise_df[series] > 0, panel.sd, np.nan)
    most = np.full(panel.n_series, -np.inf)
    np.fmax.at(most, series, sd)
    filled = np.where(np.isnan(sd), most[series], sd)
    return np.where(np.isfinite(filled), filled, np.nan)


def fit_law(t: Floats, df: Floats, weights: Floats) -> Law:
    r"""Fit the distribution of comparisons without a change to those within the baselines.

    A Student t of scale s, with the degrees of freedom of the noise's tail and of its estimate:

    .. math:: t_i / s \sim t(\nu_i'), \qquad 1 / \nu_i' = 1 / \nu + 1 / d_i

    by maximum likelihood, if twice the gain over the nominal one (s = 1, ν = ∞) exceeds 2.7.

    Parameters
    ----------
    t, df, weights : ndarray, shape (r,)

    Returns
    -------
    Law
    """
    stride = len(t) // _MOST + 1
    squared, inverse, w = t[::stride] ** 2, 1 / df[::stride], weights[::stride]
    n = float(w.sum())
    best = Law(n=n)
    if n < _FEWEST:
        return best
    most = _likelihood(squared, inverse, w, 1.0) + _WIDER / 2
    for tail in _DFS:
        both = inverse + 1 / tail
        variance = 1.0
        for _ in range(100):
            pull = (1 + both) / (1 + both * squared / variance)
            before, variance = variance, float(w @ (pull * squared)) / n
            if abs(variance - before) < 1e-3 * variance:
                break
        likelihood = _likelihood(squared, both, w, variance)
        law = Law(variance**0.5, tail, n)
        if likelihood > most and _is_wider(law, float(np.median(df))):
            best, most = law, likelihood
    return best


def _is_wider(law: Law, df: float) -> bool:
    """Say whether a distribution has a heavier tail than the nominal one."""
    reach = law.scale * stats.t.isf(_FAR, _with_tail(np.array([df]), law)[0])
    return bool(reach > stats.t.isf(_FAR, df))


def _likelihood(squared: Floats, inverse: Floats, w: Floats, variance: float) -> float:
    """Return the log-likelihood of a Student t with 1 / inverse degrees of freedom."""
    x = squared / variance
    some = inverse > 0
    df = 1 / np.where(some, inverse, 1.0)
    student = (
        special.gammaln((df + 1) / 2)
        - special.gammaln(df / 2)
        - np.log(np.pi * df) / 2
        - (df + 1) / 2 * np.log1p(x / df)
    )
    normal = -(x + np.log(2 * np.pi)) / 2
    return float(w @ (np.where(some, student, normal) - np.log(variance) / 2))


def _with_tail(df: Floats, law: Law) -> Floats:
    """Return the degrees of freedom of a comparison: of the noise's tail and of its estimate."""
    with np.errstate(divide="ignore"):
        return 1 / (1 / df + 1 / law.df)


def _tail(size: Floats, df: Floats, law: Law) -> Floats:
    """Return the one-sided probability of a comparison beyond a size, without a change.

    Never less than the nominal probability.
    """
    nominal = stats.t.sf(size, df)
    return np.maximum(nominal, stats.t.sf(size / law.scale, _with_tail(df, law)))


def p_values(shift: Floats, se: Floats, df: Floats, *, margin: float, law: Law) -> Floats:
    r"""Test whether shifts are larger than a margin, on both sides.

    .. math:: p = \bar F\Big(\frac{|d| - m}{s}\Big) + \bar F\Big(\frac{|d| + m}{s}\Big)

    which is exact if the true shift equals the margin m, and the two-sided p without a margin.

    Parameters
    ----------
    shift, se, df : ndarray, shape (s,)
        An se of 0 is exact.
    margin : float
    law : Law

    Returns
    -------
    ndarray, shape (s,)
        NaN if a shift or its standard error is NaN.
    """
    size = np.abs(shift)
    noisy = se > 0
    scale = np.where(noisy, se, 1.0)
    p = _tail((size - margin) / scale, df, law) + _tail((size + margin) / scale, df, law)
    exact = np.where(size > margin, 0.0, 1.0)
    return np.where(np.isnan(size) | np.isnan(se), np.nan, np.where(noisy, np.minimum(p, 1), exact))


def critical(df: Floats, alpha: float, law: Law) -> Floats:
    """Return the two-sided critical value at alpha; NaN without degrees of freedom."""
    known = np.where(df > 0, df, np.nan)
    nominal = stats.t.isf(alpha / 2, known)
    return np.maximum(nominal, law.scale * stats.t.isf(alpha / 2, _with_tail(known, law)))


def holm_adjusted(p: NDArray[Any]) -> Floats:
    """Adjust p-values for their number by Holm's method; NaN is a series without a test.

    Examples
    --------
    >>> holm_adjusted(np.array([0.01, 0.04, np.nan, 0.02])).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    adjusted = np.full(len(p), np.nan)
    tested = ~np.isnan(p)
    adjusted[tested] = holm(p[tested].tolist())
    return adjusted
