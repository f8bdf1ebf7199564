r"""Weighs alternatives by draws of what each would take: the best, the front, the limit.

Draws are logarithms, with the same row for all alternatives: what they share moves them together.
Costs are times and prices. An alternative is eligible if it keeps the limit with the wanted
probability; the chosen one has the least expected cost of those. The front are the alternatives
that no other one beats in time without costing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errcomp.tables.choices import Floats

#: Values of draws that are worked on at a time; draws of which fronts are made; and draws of which
#: quantiles are made, where there are many values.
_BLOCK, _FRONTS, _QUANTILES, _MANY = 2_000_000, 1_000, 2_500, 20_000_000
#: Most alternatives that are weighed as a next measurement, and the least share of draws in which
#: each is best.
_MOST, _POSSIBLE = 30, 0.001
#: Least probability with which a measurement that is named changes the choice.
_CHANGES = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """What the draws say about each alternative; arrays of shape (k,).

    Attributes
    ----------
    chosen : int
        Position of the least expected cost; -1 if no alternative is eligible.
    p_best : ndarray
        Share of draws with the least cost of those eligible.
    regret : float
        Expected cost of the chosen alternative over that of the best, minus 1.
    p_chosen : ndarray
        Share of draws in which the chosen one costs less.
    p_within, p_front : ndarray
        Probability of keeping the limit, and of being on the front; NaN where there is none.
    low, median, high : ndarray
        Of the draws of the time.
    measure : int
        The alternative whose measurement saves most; -1 if none would change the choice.
    saves, changes : float
        Expected cost (ln) that it saves, and the probability that it changes the choice.
    """

    chosen: int
    p_best: Floats
    regret: float
    p_chosen: Floats
    p_within: Floats
    p_front: Floats
    low: Floats
    median: Floats
    high: Floats
    measure: int
    saves: float
    changes: float


def weigh(
    times: NDArray[np.floating],
    prices: Floats | None,
    *,
    limit: float | None,
    known: NDArray[np.bool_],
    level: float,
) -> Weighed:
    """Weigh the alternatives of one choice.

    Parameters
    ----------
    times : ndarray, shape (draws, k)
        Logarithms; of a value of which more is better, their negatives.
    prices : ndarray, shape (k,), or None
        Logarithms of the prices.
    limit : float or None
        On the scale of `times`.
    known : ndarray of bool, shape (k,)
        Alternatives that were measured: another measurement would not help.
    level : float
    """
    draws, k = times.shape
    within = np.full(k, np.nan)
    if limit is not None:
        within = sum((block <= limit).sum(axis=0) for block in _blocks(times)) / draws
    eligible = np.flatnonzero(~(within < level))
    low, median, high = _quantiles(times, level)
    nothing = np.full(k, np.nan)
    front = nothing if prices is None else _front(times, prices)
    if not len(eligible):
        none = (-1, np.zeros(k), np.nan, nothing, within, front, low, median, high)
        return Weighed(*none, -1, 0.0, 0.0)
    cost = np.zeros(k) if prices is None else prices
    mean = sum(block.sum(axis=0, dtype=float) for block in _blocks(times)) / draws + cost
    chosen = int(eligible[np.argmin(mean[eligible])])
    wins, beats, lost = np.zeros(k), np.zeros(k), 0.0
    for block in _blocks(times):
        costs = block if prices is None else block + cost
        own = costs[:, [chosen]]
        among = costs if len(eligible) == k else costs[:, eligible]
        least = among.argmin(axis=1)
        wins += np.bincount(eligible[least], minlength=k)
        beats += (own < costs).sum(axis=0)
        best = np.take_along_axis(among, least[:, None], axis=1)
        lost += float(np.expm1(own - best).sum())
    measure, saves, changes = _next(times, cost, mean, wins / draws, chosen, known)
    return Weighed(
        chosen,
        wins / draws,
        lost / draws,
        beats / draws,
        within,
        front,
        low,
        median,
        high,
        measure,
        saves,
        changes,
    )


def _blocks(times: NDArray[np.floating]) -> Iterator[NDArray[np.floating]]:
    step = max(1, _BLOCK // times.shape[1])
    for start in range(0, len(times), step):
        yield times[start : start + step]


def _quantiles(times: NDArray[np.floating], level: float) -> tuple[Floats, Floats, Floats]:
    """Return order statistics, some columns at a time: a copy of all would double the memory."""
    if times.size > _MANY:
        times = times[:: max(1, len(times) // _QUANTILES)]
    draws, k = times.shape
    at = [int((draws - 1) * share + 0.5) for share in ((1 - level) / 2, 0.5, (1 + level) / 2)]
    found = np.empty((3, k))
    step = max(1, _BLOCK // draws)
    for start in range(0, k, step):
        part = np.ascontiguousarray(times[:, start : start + step].T)
        part.partition(at, axis=1)
        found[:, start : start + step] = part[:, at].T
    low, median, high = found
    return low, median, high


def _front(times: NDArray[np.floating], prices: Floats) -> Floats:
    """Return P(no other alternative is as fast and costs as little), from the first draws."""
    some = times[:: max(1, len(times) // _FRONTS)]
    on = np.zeros(times.shape[1])
    for block in _blocks(some):
        order = np.argsort(block, axis=1, kind="stable")
        costs = np.take_along_axis(block + prices, order, axis=1)
        before = np.minimum.accumulate(costs, axis=1)[:, :-1]
        kept = np.ones(costs.shape, dtype=bool)
        kept[:, 1:] = costs[:, 1:] < before
        on += np.bincount(order[kept], minlength=len(on))
    return on / len(some)


def _next(
    times: NDArray[np.floating],
    cost: Floats,
    mean: Floats,
    wins: Floats,
    chosen: int,
    known: NDArray[np.bool_],
) -> tuple[int, float, float]:
    r"""Return the measurement that saves most, what it saves (ln), and how often it decides.

    Measuring alternative m moves the expected logarithm of the cost of each other one by its
    regression on m over the draws. The measurement saves

    .. math:: \min_j E[t_j] - E[\min_j E[t_j \mid t_m]]
    """
    likely = np.argsort(-wins, kind="stable")[:_MOST]
    likely = np.union1d(likely[wins[likely] >= _POSSIBLE], [chosen])
    apart = times[:, likely] + cost[likely] - mean[likely]
    best, saves, changes = -1, 0.0, 0.0
    for m in np.flatnonzero(~known[likely]):
        variance = float(apart[:, m] @ apart[:, m])
        if variance == 0:
            continue
        slope = apart.T @ apart[:, m] / variance
        after = mean[likely] + np.outer(apart[:, m], slope)
        gain = float(mean[chosen] - after.min(axis=1).mean())
        if gain > saves + 1e-12:
            best, saves = int(likely[m]), gain
            changes = float((likely[after.argmin(axis=1)] != chosen).mean())
    return (best, saves, changes) if changes >= _CHANGES else (-1, 0.0, 0.0)
