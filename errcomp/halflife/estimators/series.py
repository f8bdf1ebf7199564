"""The half-life of each series by itself: when it expired, as surely as noise allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.halflife.estimators.expiry import AT_START, TOO_NOISY, Expiry, expiry_of
from errcomp.halflife.panel import HalfLife

if TYPE_CHECKING:
    from errcomp.halflife.panel import Clock, Panel

__all__ = ["series_half_lives"]


def series_half_lives(
    panel: Panel, threshold: float, clock: Clock, *, level: float = 0.95
) -> tuple[HalfLife, ...]:
    """Return the half-life of each series by itself: when it expired, with the interval of that.

    The half-life is the first row beyond the threshold at face value, its interval what is sure.
    Where a series had not surely expired when last seen, only its lower bound is known. On the
    clock of releases the bounds are releases at which it can have expired; on that of months the
    lower one is the last time at which it was valid.

    Valid for steps and drift alike. The interval covers at least `level`: it is a statement on
    every row of the series, and rows far from the threshold cannot be wrong.

    Parameters
    ----------
    panel : Panel
    threshold : float
    clock : {"releases", "months"}
    level : float

    Returns
    -------
    tuple of HalfLife
        One per series of the panel, in its order.

    Raises
    ------
    InputError
        As `expiry_of`.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> panel = Panel(
    ...     versions=("1.0", "1.1", "1.2"),
    ...     months=np.array([0.0, 2.0, 3.0]),
    ...     names=("gelu",),
    ...     clusters=np.array([0]),
    ...     starts=np.array([0, 3]),
    ...     version=np.array([0, 1, 2]),
    ...     error=np.array([0.02, 0.03, 0.30]),
    ...     sd=np.full(3, 0.01),
    ...     noise_df=np.array([np.inf]),
    ...     frozen_at_first=False,
    ... )
    >>> [one] = series_half_lives(panel, 0.1, "months")
    >>> one.half_life, one.low, one.high
    (3.0, 2.0, 3.0)
    """
    found = expiry_of(panel, threshold, clock, level=level)
    each = {int(i): _of_series(found, k, panel.names[i]) for k, i in enumerate(found.series)}
    for reason, which in ((AT_START, found.at_start), (TOO_NOISY, found.too_noisy)):
        each |= {int(i): _refused(found, panel.names[i], reason) for i in which}
    return tuple(each[i] for i in range(panel.n_series))


def _of_series(found: Expiry, k: int, name: str) -> HalfLife:
    left, right = float(found.left[k]), float(found.right[k])
    step = 1.0 if found.unit == "releases" else 0.0
    censored = np.isinf(right)
    unconfirmed = {"unconfirmed": True} if found.unconfirmed[k] else {}
    return HalfLife(
        method="expiry",
        half_life=float("inf") if censored else float(found.guess[k]),
        low=left if censored else left + step,
        high=right,
        level=found.level,
        unit=found.unit,
        n_series=1,
        censored_share=float(censored),
        assumptions=found.assumptions,
        details={"series": name, "returned": bool(found.returned[k]), **unconfirmed},
    )


def _refused(found: Expiry, name: str, reason: str) -> HalfLife:
    return HalfLife(
        method="expiry",
        half_life=None,
        low=None,
        high=None,
        level=found.level,
        unit=found.unit,
        n_series=0,
        censored_share=float("nan"),
        refused=f"{reason}.",
        assumptions=found.assumptions,
        details={"series": name},
    )
