r"""Half-lives of a group of series: the time by which half of them have expired.

Four methods side by side on the same interval-censored times: without a distribution (Turnbull),
exponential, Weibull and log-normal. They hold for series like these, under the observed releases: a
release that changes many series at once affects all four, and another history has other releases.
Series that change together belong in one cluster.

Measurement noise makes the time of expiry uncertain. The lower bound of a half-life comes from the
earliest expiries that noise allows, the upper bound from the latest. The half-life itself is
that of the errors as measured. Without noise all three agree.

The coverage is therefore nominal without noise (see `errcomp.halflife.estimators.turnbull` and
`errcomp.halflife.estimators.parametric`), and above nominal with noise. Simulated at 95 %, with 60
series that drift through a threshold of 8.5 % in about eight releases: 100 % at a noise of 0.2, 0.6
and 1 %, while the upper bound grows from release 12 to 15. With noise above a fifth of the
threshold, most times of expiry are undetermined.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from errcomp.halflife.estimators.expiry import Expiry, check_length, expiry_of, of_views
from errcomp.halflife.estimators.parametric import LAWS, Law, fit_law, held_out_scores
from errcomp.halflife.estimators.turnbull import Bounded, turnbull
from errcomp.halflife.panel import Clock, HalfLife, Panel, check_level
from errcomp.results import format_number

__all__ = ["half_lives_by", "half_lives_of", "survival_half_lives"]

#: Why series of a single cluster have no interval.
ONE_CLUSTER = (
    "all {} series are in one cluster, so changes that they share cannot be distinguished from "
    "chance."
)
_UNKNOWN = Bounded(math.nan, 0.0, math.inf, 0.0)
_HAPPENED = "The result holds for the observed releases; another history would give another result."
_LOOKED_AT = "The times of validation of a series do not depend on when it expires."


def survival_half_lives(
    panel: Panel, threshold: float, clock: Clock, *, level: float = 0.95, seed: int = 0
) -> tuple[HalfLife, ...]:
    """Return the half-life of a panel's series by each survival method.

    Definition: the median time from the first version of a series to its first crossing of the
    threshold. On the clock of releases, it is the number of the release by which half of the series
    have expired. If fewer than half have expired, it is inf, with a lower bound.

    Valid for series (or clusters of series) that are similar and independent, given the releases.

    Parameters
    ----------
    panel : Panel
    threshold : float
        On the log scale, see `errcomp.halflife.threshold.doubling_threshold`; treated as exact.
    clock : {"releases", "months"}
    level : float
    seed : int
        Of the folds of the held-out scores.

    Returns
    -------
    tuple of HalfLife
        Methods ``"turnbull"``, ``"exponential"``, ``"weibull"``, ``"log-normal"``.

    Raises
    ------
    InputError
        As `errcomp.halflife.estimators.expiry.expiry_of`.

    Examples
    --------
    Twenty series; one expires at each release.

    >>> from errcomp.halflife.panel import Panel
    >>> m = 21
    >>> panel = Panel(
    ...     versions=tuple(f"1.{i}" for i in range(m)),
    ...     months=2.0 * np.arange(m),
    ...     names=tuple(f"op{i}" for i in range(20)),
    ...     clusters=np.arange(20),
    ...     starts=np.arange(21) * m,
    ...     version=np.tile(np.arange(m), 20),
    ...     error=0.3 * (np.arange(m) > np.arange(20)[:, None]).ravel(),
    ...     sd=np.full(20 * m, 0.01),
    ...     noise_df=np.full(20, np.inf),
    ...     frozen_at_first=True,
    ... )
    >>> for half_life in survival_half_lives(panel, 0.1, "releases"):
    ...     print(half_life.method, half_life.half_life, half_life.low, half_life.high)
    turnbull 10.0 6.0 15.0
    exponential 7.0 5.0 12.0
    weibull 9.0 7.0 13.0
    log-normal 8.0 5.0 12.0
    """
    return half_lives_of(expiry_of(panel, threshold, clock, level=level), level=level, seed=seed)


def half_lives_of(expiry: Expiry, *, level: float = 0.95, seed: int = 0) -> tuple[HalfLife, ...]:
    """Return the half-life by each method from existing times to doubling.

    Parameters
    ----------
    expiry : Expiry
    level : float
    seed : int

    Returns
    -------
    tuple of HalfLife

    Examples
    --------
    >>> from errcomp.halflife.estimators.expiry import expiry_of
    >>> from errcomp.halflife.panel import panel_of
    >>> ops = [f"op{i}" for i in range(6)]
    >>> measured = [[1.0] * 3 + [1.0 + 0.1 * i] * 3 for i in range(6)]
    >>> panel = panel_of({"version": list("123456") * 6, "op": np.repeat(ops, 6),
    ...                   "measured": np.ravel(measured)}).panel
    >>> half_lives = half_lives_of(expiry_of(panel, 0.15, "releases"))
    >>> half_lives[0].method, half_lives[0].half_life
    ('turnbull', 3.0)
    """
    check_level(level)
    if not expiry.n:
        why = "; ".join(f"{d.n} series left out: {d.reason}" for d in expiry.dropped)
        refused = f"no series can be evaluated ({why or 'the panel has none'})."
        return tuple(
            _half_life(expiry, method, level, _UNKNOWN, refused, {})
            for method in ("turnbull", *LAWS)
        )
    scores = held_out_scores(*expiry.intervals("face"), clusters=expiry.cluster, seed=seed)
    return (
        _turnbull(expiry, level),
        *(_by_law(expiry, law, level, scores[law]) for law in LAWS),
    )


def half_lives_by(
    expiry: Expiry, strata: Sequence[Hashable], *, level: float = 0.95, seed: int = 0
) -> dict[Hashable, tuple[HalfLife, ...]]:
    """Return the half-lives of each stratum separately, in the order of their names.

    Parameters
    ----------
    expiry : Expiry
    strata : sequence, one per series of the panel
    level : float
    seed : int

    Returns
    -------
    dict
        Without the strata that have no series that can be evaluated.

    Raises
    ------
    InputError
        The number of names differs from that of the series.

    Examples
    --------
    >>> from errcomp.halflife.estimators.expiry import expiry_of
    >>> from errcomp.halflife.panel import panel_of
    >>> ops = [f"op{i}" for i in range(6)]
    >>> measured = [[1.0] * 3 + [1.0 + 0.1 * i] * 3 for i in range(6)]
    >>> panel = panel_of({"version": list("123456") * 6, "op": np.repeat(ops, 6),
    ...                   "measured": np.ravel(measured)}).panel
    >>> expiry = expiry_of(panel, 0.15, "releases")
    >>> half_lives = half_lives_by(expiry, ["small"] * 2 + ["large"] * 4)
    >>> {name: estimates[0].censored_share for name, estimates in half_lives.items()}
    {'large': 0.0, 'small': 1.0}
    """
    check_length(expiry, len(strata), "strata")
    labels = [strata[int(i)] for i in expiry.series]
    half_lives = {}
    for name in sorted(set(labels), key=str):
        part = expiry.take(np.asarray([label == name for label in labels], dtype=bool))
        half_lives[name] = half_lives_of(part, level=level, seed=seed)
    return half_lives


def _turnbull(expiry: Expiry, level: float) -> HalfLife:
    if len(np.unique(expiry.cluster)) == 1 < expiry.n:
        refused = ONE_CLUSTER.format(expiry.n)
        return _half_life(expiry, "turnbull", level, _UNKNOWN, refused, {})
    early, face, late = of_views(expiry, partial(turnbull, clusters=expiry.cluster))
    whole = expiry.unit == "releases"
    first = early.median(level, whole=whole)
    last = first if late is early else late.median(level, whole=whole)
    median = Bounded(face.middle(whole=whole), first.low, last.high, first.n_effective)
    time = float(expiry.last_seen.max())
    pessimist = early.surviving(time, level)
    optimist = pessimist if late is early else late.surviving(time, level)
    expired = {
        "time": time,
        "share": 1 - float(np.mean(face.survival(time))),
        "low": 1 - optimist.high,
        "high": 1 - pessimist.low,
    }
    refused = ""
    if median.low <= whole and np.isinf(median.high):
        refused = (
            f"{face.n} series in {face.n_clusters} cluster{'s' * (face.n_clusters != 1)}, of which "
            f"{face.n_events} expired, are too few or too noisy for a {format_number(100 * level)} "
            "% bound on the median."
        )
    details = {
        "times": [None if np.isinf(t) else float(t) for t in face.right],
        "survival": face.survival(face.right)[0].tolist(),
        "expired_share": expired,
        "n_events": face.n_events,
        "n_clusters": face.n_clusters,
        "n_effective": median.n_effective,
        "gap": face.gap,
    }
    return _half_life(expiry, "turnbull", level, median, refused, details)


def _by_law(expiry: Expiry, law: Law, level: float, score: float | None) -> HalfLife:
    fit = partial(fit_law, law=law, clusters=expiry.cluster, level=level)
    early, face, late = of_views(expiry, fit)
    median, refused = _UNKNOWN, face.refused
    if face.median is not None:
        # If an extreme cannot be fitted, noise leaves that side unbounded. Late expiries may differ
        # less from each other and have a lower upper bound: the widest bounds count.
        low = min(0.0 if view.low is None else view.low for view in (early, face, late))
        high = max(math.inf if view.high is None else view.high for view in (early, face, late))
        if low == 0 and high == math.inf:
            refused = "the median has no bound, because noise hides when the series expired."
        bounds = (face.median, low, high)
        if expiry.unit == "releases":
            # A continuous distribution passes one half before the release that counts.
            bounds = (_ceil(face.median), max(_ceil(low), 1.0), _ceil(high))
        median = Bounded(bounds[0], bounds[1], bounds[2], math.nan)
    details = {
        "sigma": face.sigma,
        "log_likelihood": face.log_likelihood,
        "aic": face.aic,
        "held_out_score": score,
        "n_events": face.n_events,
        "n_clusters": face.n_clusters,
        "design_effect": face.design_effect,
    }
    law_holds = (
        f"Times to doubling follow a {law} distribution, also after the last recorded version."
    )
    return _half_life(expiry, law, level, median, refused, details, law_holds)


def _ceil(value: float) -> float:
    return float(np.ceil(value))


def _half_life(
    expiry: Expiry,
    method: str,
    level: float,
    median: Bounded,
    refused: str,
    details: Mapping[str, Any],
    *more: str,
) -> HalfLife:
    counted = {
        "returned": int(expiry.returned.sum()),
        "rows": expiry.n_rows,
        "rows_open": expiry.n_open,
        "dropped": [dropped.to_dict() for dropped in expiry.dropped],
    }
    return HalfLife(
        method=method,
        half_life=None if refused else median.value,
        low=None if refused else median.low,
        high=None if refused else median.high,
        level=level,
        unit=expiry.unit,
        n_series=expiry.n,
        censored_share=expiry.censored_share,
        refused=refused,
        assumptions=(_HAPPENED, _LOOKED_AT, *expiry.assumptions, *more),
        details={**counted, **details},
    )
