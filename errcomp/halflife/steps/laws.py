r"""The noise of series: how strongly neighbours are correlated, and how often a run is bad.

A slow swing of the machine looks like a step, and two bad runs in a row look like a bad release. A
short series does not show the difference, so its group helps: the series of the same history.

**Neighbours.** The lag-1 autocorrelation r of a series, about the levels of a first search, is
biased, because the search mistakes swings for steps. Its mean and standard deviation at each true
autocorrelation :math:`\rho` were simulated (``step_null.json``). Within a group, :math:`\rho` has a
normal law; its mean and standard deviation follow from r of all its series, and :math:`\rho` of
each series from these and its own r. For a series alone, a prior takes the place of the others. It
is a little more cautious than 2,449 series of two real histories: two in three of them have no
autocorrelation, and one in four has 0.3 or more.

**Repeats.** Validations scatter more than their repeats, because successive repeats share the state
of the machine. In a group, the variance about the levels over that of repeats has a scaled F law.
Its scale multiplies the variance of repeats, and its degrees of freedom are the most that repeats
may have (see ``errcomp.halflife.noise.moderated_variances``).

**Bad runs.** A value beyond both neighbours, on the same side, by 4 standard deviations is a bad
run. Its share follows from the series and its group. Runs of values on one side that are as short
as chance gives to more than 1 in 200 series are not steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.noise import moderated_variances
from errcomp.halflife.steps.null import autocorrelations, moments_of_neighbours
from errcomp.halflife.steps.scan import SHORTEST_RUN, Batch, by_length, levels_of, robust_scale
from errcomp.halflife.steps.search import search

__all__ = ["bad_runs", "learned", "residuals"]

Floats = NDArray[Any]
Ints = NDArray[Any]

#: Prior of the mean autocorrelation of a group: the chance of none, and the mean of the others.
_NONE, _SCALE = 0.3, 0.28
#: Standard deviations of the autocorrelations of a group, equally likely.
_SPREADS = (0.05, 0.2)
#: Rate of false steps of the first search: with fewer, steps would look like correlation.
_ALPHA = 0.05
#: Residuals beyond this many robust standard deviations are bad runs.
_FAR = 3.0
#: With fewer series whose noise is known, the noise of repeats is not corrected.
_FEWEST = 10
#: A bad run is this many standard deviations beyond both neighbours.
_BAD = 4.0
#: Prior of the share of bad runs: half a bad run in 20 values.
_PRIOR_BAD, _PRIOR_VALUES = 0.5, 20.0
#: The other series count for at most this many values, as series may differ.
_GROUP_VALUES = 100.0
#: Runs of bad values on one side that chance gives to more than this share of series are not steps.
_BY_CHANCE = 0.005
_LONGEST_RUN = 6


class _Counts(NamedTuple):
    """Bad runs of each series above and below their neighbours."""

    above: Ints
    below: Ints


def learned(batch: Batch, clusters: Ints) -> Batch:
    """Learn correlation, bad runs and the noise that repeats miss; return the batch with these.

    Parameters
    ----------
    batch : Batch
        Series of one group.
    clusters : ndarray, shape (s,)
        Series of a cluster may move together and say as much as one.
    """
    if not len(batch.given):
        return batch
    left = residuals(batch)
    correlated = _posterior(left.r, batch.sizes, clusters)
    given, df = _known_noise(batch, left)
    return batch._replace(given=given, df=df, correlated=correlated, runs=_runs(batch))


def _known_noise(batch: Batch, left: _Residuals) -> tuple[Floats, Floats]:
    """Return the noise of repeats, enlarged by what they miss according to the group."""
    known = np.flatnonzero((batch.df > 0) & (left.square > 0) & (batch.given > 0))
    if len(known) < _FEWEST:
        return batch.given, batch.df
    ratio = np.log(left.square[known] / batch.given[known])
    # Series in which the first search missed a step must not decide.
    middle = np.median(ratio)
    limit = _FAR * robust_scale((ratio - middle)[None])[0, 0]
    ratio = np.exp(np.clip(ratio, middle - limit, middle + limit))
    usual = moderated_variances(ratio, left.df[known])
    if not usual.prior_df > 0:
        return batch.given, batch.df
    return batch.given * max(usual.prior_variance, 1.0), np.minimum(batch.df, usual.prior_df)


class _Residuals(NamedTuple):
    """The residuals of each series about the levels of a first search, without bad runs.

    Attributes
    ----------
    r : ndarray, shape (s,)
        Lag-1 autocorrelation; NaN without noise.
    square, df : ndarray, shape (s,)
        Variance at weight 1 and its degrees of freedom.
    """

    r: Floats
    square: Floats
    df: Floats


def residuals(batch: Batch) -> _Residuals:
    """Return correlation and variance of the series about the levels of a first search."""
    sizes = batch.sizes
    # Repeats may miss part of the noise, so they have no say here.
    unknown = batch._replace(given=np.zeros_like(batch.given), df=np.zeros_like(batch.df))
    levels = levels_of(unknown, search(unknown, _ALPHA, 2)[-1])
    within = np.repeat(np.arange(len(levels.mean)), np.diff(levels.edges))
    left = np.sqrt(batch.weight) * (batch.x - levels.mean[within])
    products, squares, kept, paired = np.zeros((4, len(sizes)))
    for n, of_size in by_length(sizes):
        rows = batch.starts[of_size][:, None] + np.arange(n)
        z, level = left[rows], within[rows]
        near = np.abs(z) <= _FAR * robust_scale(z)
        pairs = (level[:, 1:] == level[:, :-1]) & near[:, 1:] & near[:, :-1]
        products[of_size] = (z[:, 1:] * z[:, :-1] * pairs).sum(axis=1)
        squares[of_size] = (z**2 * near).sum(axis=1)
        kept[of_size], paired[of_size] = near.sum(axis=1), pairs.sum(axis=1)
    noise = squares * paired
    r = np.divide(products * kept, noise, out=np.full(len(sizes), np.nan), where=noise > 0)
    df = np.maximum(kept - levels.segments, 1)
    return _Residuals(r, squares / df, df)


def _posterior(r: Floats, sizes: Ints, clusters: Ints) -> Floats:
    """Return the probability of each autocorrelation for each series, shape (s, g)."""
    rho = autocorrelations()
    mean, sd = moments_of_neighbours(sizes)
    fit = np.exp(-0.5 * ((r[:, None] - mean) / sd) ** 2) / sd
    fit[np.isnan(r)] = 1.0
    middle = np.where(rho > 0, np.exp(-rho / _SCALE), 0.0)
    middle *= (1 - _NONE) / middle.sum()
    middle[0] = _NONE
    # One law of the group for each mean and spread.
    spreads = np.repeat(_SPREADS, len(rho))[:, None]
    laws = np.exp(-0.5 * ((rho - np.tile(rho, len(_SPREADS))[:, None]) / spreads) ** 2)
    laws /= laws.sum(axis=1, keepdims=True)
    each = fit @ laws.T
    independent = len(np.unique(clusters)) / len(r)
    log = np.log(np.tile(middle, len(_SPREADS))) + independent * np.log(each).sum(axis=0)
    group = np.exp(log - log.max())
    group /= group.sum()
    return np.asarray(fit * ((group / each) @ laws))


def bad_runs(batch: Batch) -> _Counts:
    """Count the values of each series that are far beyond both neighbours."""
    above, below = np.zeros((2, len(batch.given)), dtype=int)
    sizes = batch.sizes
    for n, of_size in by_length(sizes):
        rows = batch.starts[of_size][:, None] + np.arange(n)
        z = np.sqrt(batch.weight[rows]) * batch.x[rows]
        rise = np.diff(z, axis=1)
        scale = _BAD / np.sqrt(2) * robust_scale(rise)
        up, down = rise[:, :-1], rise[:, 1:]
        above[of_size] = ((up > scale) & (down < -scale)).sum(axis=1)
        below[of_size] = ((up < -scale) & (down > scale)).sum(axis=1)
    return _Counts(above, below)


def _runs(batch: Batch) -> Ints:
    """Return the shortest run of values above, and below, that is not bad runs; shape (s, 2)."""
    sizes = batch.sizes
    runs = np.zeros((len(sizes), 2), dtype=int)
    for side, bad in enumerate(bad_runs(batch)):
        others = (bad.sum() - bad + _PRIOR_BAD) / (sizes.sum() - sizes + _PRIOR_VALUES)
        weight = np.minimum(sizes.sum() - sizes + _PRIOR_VALUES, _GROUP_VALUES)
        share = (bad + weight * others) / (sizes + weight)
        run = np.full(len(sizes), SHORTEST_RUN)
        for _ in range(SHORTEST_RUN, _LONGEST_RUN):
            run = np.where(sizes * share**run > _BY_CHANCE, run + 1, run)
        runs[:, side] = run
    return runs
