"""Intervals of what an evaluation of choices finds: shares that are right, and mean regret."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from errcomp.metrics.intervals import estimate_of
from errcomp.metrics.intervals._kinds import Request
from errcomp.metrics.intervals.dependence import FEWEST_CLUSTERS, dependence
from errcomp.results import Estimate
from errcomp.stats.comparisons import share_of_comparisons
from errcomp.tables.choices import Ints

LEVEL = 0.95
_SHARE = "Share of comparisons in which the predicted faster one was the faster."
_BEST = "Share of choices that took the alternative with the least measured time."
_REGRET = (
    "Measured time of the chosen alternative over that of the best, minus 1; mean over the choices."
)


def share_right(right: NDArray[np.bool_], one: Ints, two: Ints, group: Ints) -> Estimate:
    """Return the share of comparisons that are right, with its interval.

    Parameters
    ----------
    right : ndarray of bool, shape (n,)
    one, two : ndarray of int, shape (n,)
        The alternatives of each.
    group : ndarray of int, shape (n,)
        Its group of conditions: the clusters where there are fewer than 5 alternatives.
    """
    found = share_of_comparisons(right, one, two, LEVEL)
    if found is None:
        return _over_groups(right, group)
    method = (
        f"Wilson, {found.alternatives} alternatives, {found.effective:.3g} effective comparisons"
    )
    ends = (found.value, found.low, found.high, LEVEL)
    return Estimate("right_share", *ends, method, len(right), definition=_SHARE)


def _over_groups(right: NDArray[np.bool_], group: Ints) -> Estimate:
    """Return the share with an interval over groups of conditions, the alternatives as given."""
    return _renamed(_share(right, group, "condition"), "right_share", _SHARE)


def _share(right: NDArray[np.bool_], group: Ints, name: str) -> Estimate:
    # A share of pairs within 20 % of 1: the cases that are right.
    predicted, measured = np.where(right, 1.0, 2.0), np.ones(len(right))
    return estimate_of(
        "within_20", predicted=predicted, measured=measured, ask=_request(group, name)
    )


def best_taken(best: NDArray[np.bool_], group: Ints, cluster: str) -> Estimate:
    """Return the share of choices that took the best alternative, with its interval over groups."""
    return _renamed(_share(best, group, cluster or "condition"), "best_share", _BEST)


def mean_regret(regret: NDArray[np.float64], group: Ints, cluster: str) -> Estimate:
    """Return the mean regret, with an interval over groups of conditions; alternatives are given.

    It is the MAPE of the time of the chosen alternative against that of the best.
    """
    if not regret.any():
        return Estimate(
            "regret",
            0.0,
            method="no interval: no choice lost time",
            n=len(regret),
            definition=_REGRET,
        )
    ones, ask = np.ones(len(regret)), _request(group, cluster or "condition")
    found = estimate_of("mape", predicted=1 + regret, measured=ones, ask=ask)
    return _renamed(found, "regret", _REGRET)


def _request(group: Ints, name: str) -> Request:
    several = {name: group} if len(set(group.tolist())) >= FEWEST_CLUSTERS else {}
    return Request("default", LEVEL, 9999, 0, dependence(several, given=True))


def _renamed(found: Estimate, figure: str, definition: str) -> Estimate:
    return Estimate(
        figure,
        found.value,
        found.low,
        found.high,
        found.level,
        found.method,
        found.n,
        definition=definition,
    )
