r"""The two validations between which each series expired, given the measurement noise.

Noise widens the interval of a series instead of shifting it. The method uses means of w = 1, 2, 4,
... successive errors. With a standard deviation s of the noise of such a mean,

* one of its rows has *clearly expired* if :math:`|\bar e| - z s \ge \theta`,
* its first row was *clearly valid* if :math:`|\bar e| + z s < \theta` and its own error is below
  the threshold, too: an expired series would have stayed expired.

z is the quantile of a Student t with the noise's degrees of freedom
at the Šidák level :math:`1 - \text{level}^{1/k}` for the k means of the series. All of its rows are
then classified correctly with the stated probability. If the panel is frozen at first measurements,
every later error contains the noise of the first one: it is added, and no mean removes it.

A series expired in (last row of the first unbroken run of clearly valid rows, last row of the first
clearly expired mean]. A clearly valid row after an undecided one does not count: the series may
have crossed the threshold and returned.

If the noise is unknown, errors count as measured, with one exception. A single row beyond the
threshold, between valid rows, may be one bad run. It is not clearly expired, and the series is
undecided after it: it expired in (row before it, first of two successive rows beyond the threshold,
or the last row], or not at all. Lasting steps are dated as before. In simulations of stable series
of 10, 20 and 40 versions with 5 % of bad runs (six times the noise), 6, 7 and 10 % get a definite
time of expiry; with each row as measured it was 32, 55 and 82 %. The remaining cases are bad runs
at the last version, and two bad runs in succession, which look like a step (39 % of 20 versions).

The probability is at least the nominal one, and mostly above: rows far from the threshold are never
misclassified. Simulated coverage at 95 %, with 6 to 200 versions, noise of 1 to 10 %, a threshold
of 10 % and 5 or more degrees of freedom: 99 to 100 % for steps, smooth drift and no drift, 93 to
100 % for random walks, which may cross the threshold and return within the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.errors import InputError, describe_names
from errcomp.halflife.panel import Clock, HalfLife, Panel, check_clock, check_level, check_positive
from errcomp.results import Dropped, format_number

__all__ = ["AT_START", "TOO_NOISY", "Expiry", "View", "expiry_of", "series_half_lives"]

#: When a series expired: as early as noise allows, by its errors as measured, or as late as noise
#: allows.
View = Literal["early", "face", "late"]
Floats: TypeAlias = "NDArray[np.float64]"
Fitted = TypeVar("Fitted")

#: Two rows closer than this (in releases or months) are simultaneous.
_NO_TIME = 1e-9
_VIEWS: tuple[View, ...] = ("early", "face", "late")
#: Attributes with a value for each series.
_COLUMNS = (
    *("series", "left", "right", "guess", "after_left", "before_right", "before_guess"),
    *("cluster", "returned", "unconfirmed", "last_seen"),
)
#: Why a series has no time of expiry: it was never valid.
AT_START = "clearly beyond the threshold at the first version"
#: Why a series has no time of expiry: its noise hides it.
TOO_NOISY = "too noisy for the threshold: no validation is clearly within it"
_PERSISTS = (
    "No series expires and recovers unnoticed, between two successive validations or within the "
    "noise."
)


@dataclass(frozen=True, slots=True, eq=False)
class Expiry:
    """Interval-censored times to doubling, one per series that can be evaluated.

    Attributes
    ----------
    series : ndarray of int, shape (k,)
        Positions of the series in the panel.
    left, right : ndarray of float, shape (k,)
        The series first expired in (left, right], in units of the clock since its first version;
        right is inf if it had not clearly expired when last validated.
    guess : ndarray of float, shape (k,)
        Time of the first row in the interval whose error, as measured, is beyond the threshold;
        `right` without such a row.
    after_left, before_right, before_guess : ndarray of float, shape (k,)
        Times of the row that follows `left`, and of the rows before `right` and `guess`. Without a
        row after `left` inf; if `right` or `guess` is inf, the time of the last row.
    cluster : ndarray of int, shape (k,)
    returned : ndarray of bool, shape (k,)
        Clearly valid again after it had clearly expired.
    unconfirmed : ndarray of bool, shape (k,)
        Beyond the threshold in a single row before it clearly expired (or without expiring), with
        unknown noise: this may have been one bad run.
    last_seen : ndarray of float, shape (k,)
        Time of the last row.
    unit : {"releases", "months"}
    level : float
        Probability that all rows of a series are classified correctly.
    threshold : float
    n_panel : int
        Number of series of the panel.
    n_rows, n_open : int
        Number of rows of these series, and of those that were not clearly valid before the series
        had clearly expired.
    at_start, too_noisy : ndarray of int
        Positions of the series left out: clearly expired at their first version, or too noisy to
        decide on any row.
    assumptions : tuple of str
    """

    series: NDArray[np.int64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    guess: NDArray[np.float64]
    after_left: NDArray[np.float64]
    before_right: NDArray[np.float64]
    before_guess: NDArray[np.float64]
    cluster: NDArray[np.int64]
    returned: NDArray[np.bool_]
    unconfirmed: NDArray[np.bool_]
    last_seen: NDArray[np.float64]
    unit: Clock
    level: float
    threshold: float
    n_panel: int
    n_rows: int
    n_open: int
    at_start: NDArray[np.int64]
    too_noisy: NDArray[np.int64]
    assumptions: tuple[str, ...]

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The series left out, with reasons; `rows` are positions in the panel, from 1."""
        return tuple(
            Dropped(reason, len(which), tuple(int(i) + 1 for i in which[:3]))
            for reason, which in ((AT_START, self.at_start), (TOO_NOISY, self.too_noisy))
            if len(which)
        )

    @property
    def n(self) -> int:
        """Number of series that can be evaluated."""
        return len(self.series)

    def intervals(self, view: View) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intervals between successive rows, as early or as late as noise allows.

        The true intervals are between the early and the late ones. Without noise all are the same.
        The intervals (left, right] themselves are wider than the gaps between rows, because of
        noise. They must not be used as censoring intervals: the median of drifting series would be
        too early.

        Parameters
        ----------
        view : {"early", "face", "late"}
            Expired at the first row that is not clearly valid, at the first row whose
            error, as measured, is beyond the threshold, or at the first clearly expired row.

        Returns
        -------
        left, right : ndarray of float, shape (k,)

        Examples
        --------
        >>> from errcomp.halflife.panel import panel_of
        >>> panel = panel_of({"version": ["1", "2", "3"], "measured": [4.0, 4.1, 6.0]}).panel
        >>> left, right = expiry_of(panel, 0.2, "releases").intervals("face")
        >>> left.tolist(), right.tolist()
        ([1.0], [2.0])
        """
        if view == "early":
            return self.left, self.after_left
        if view == "late":
            return self.before_right, self.right
        return self.before_guess, self.guess

    def take(self, which: NDArray[np.bool_]) -> Expiry:
        """Return some of the series, without the counts of series left out.

        Examples
        --------
        >>> from errcomp.halflife.panel import panel_of
        >>> panel = panel_of({"version": ["1", "2", "3"], "measured": [4.0, 4.1, 6.0]}).panel
        >>> expiry_of(panel, 0.2, "releases").take(np.array([True])).n
        1
        """
        none = np.empty(0, dtype=np.int64)
        part = {name: getattr(self, name)[which] for name in _COLUMNS}
        return replace(self, **part, at_start=none, too_noisy=none)

    @property
    def censored_share(self) -> float:
        """Share of the evaluated series that were not clearly beyond the threshold at any row."""
        return float(np.mean(np.isinf(self.right))) if self.n else float("nan")


def check_length(expiry: Expiry, n: int, name: str) -> None:
    """Raise unless there is one value for each series of the panel."""
    if n != expiry.n_panel:
        raise InputError(
            f"{name} must have {expiry.n_panel} values, one per series of the panel, got {n}."
        )


def expiry_of(panel: Panel, threshold: float, clock: Clock, *, level: float = 0.95) -> Expiry:
    """Return the interval in which each series of a panel expired.

    Definition: time from the first version of the series to its first crossing of the threshold; a
    series that returns later is marked. Left out and counted are series that had clearly expired at
    their first version, and series with too much noise to show that any row is valid. The second
    reason depends on the noise alone and not on the errors, so it does not bias the result.

    Misleads if the threshold is near the noise: the interval is then wide, and a series that
    drifted just beyond the threshold never counts as clearly expired.

    Parameters
    ----------
    panel : Panel
    threshold : float
        On the log scale, see `errcomp.halflife.threshold.doubling_threshold`.
    clock : {"releases", "months"}
    level : float
        Probability that all rows of a series are classified correctly.

    Returns
    -------
    Expiry

    Raises
    ------
    InputError
        The threshold is not positive and finite, `level` is not between 0 and 1, the clock is
        unknown or the versions have no dates, an error is not finite, or two rows of a series are
        simultaneous.

    References
    ----------
    Šidák (1967), "Rectangular confidence regions for the means of multivariate normal
    distributions", Journal of the American Statistical Association 62,
    doi:10.1080/01621459.1967.10482935.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> panel = Panel(
    ...     versions=("1.0", "1.1", "1.2", "1.3"),
    ...     months=np.array([0.0, 2.0, 3.0, 6.0]),
    ...     names=("gelu", "conv"),
    ...     clusters=np.array([0, 1]),
    ...     starts=np.array([0, 4, 7]),
    ...     version=np.array([0, 1, 2, 3, 0, 1, 3]),
    ...     error=np.array([0.02, 0.03, 0.11, 0.30, 0.01, 0.02, 0.01]),
    ...     sd=np.full(7, 0.01),
    ...     noise_df=np.array([np.inf, np.inf]),
    ...     frozen_at_first=False,
    ... )
    >>> expiry = expiry_of(panel, 0.1, "releases")
    >>> expiry.left.tolist(), expiry.right.tolist(), expiry.guess.tolist()
    ([1.0, 3.0], [3.0, inf], [2.0, inf])
    """
    _check(panel, threshold, clock, level)
    series = panel.series
    time = panel.times(clock)
    time = time - time[panel.starts[:-1]][series]
    _check_order(panel, time, series)
    first = np.zeros(len(series), dtype=bool)
    first[panel.starts[:-1]] = True
    rows = classify_rows(panel, series, first, threshold, level)
    starts = panel.starts[:-1]
    right = least(np.where(rows.expired_by >= 0, time[rows.expired_by], np.inf), starts)
    beyond = np.abs(panel.error) >= threshold
    until = least(np.where((rows.valid & ~beyond) | first, np.inf, time), starts)
    before = time < np.minimum(until, right)[series]
    left = -least(-np.where(before, time, 0.0), starts)
    at_face = beyond & ~rows.isolated & (time > left[series])
    guess = least(np.where(at_face, time, np.inf), starts)
    guess = np.minimum(guess, right)

    def before_time(end: NDArray[np.float64]) -> NDArray[np.float64]:
        return -least(-np.where(time < end[series], time, 0.0), starts)

    returned = any_row(rows.valid & (time > right[series]), starts)
    unconfirmed = any_row(rows.isolated & (time < right[series]), starts)
    gone = right <= 0
    noisy = ~gone & ~any_row(rows.hopeful, starts)
    judged = np.flatnonzero(~gone & ~noisy)
    of_judged = (~gone & ~noisy)[series]
    open_rows = of_judged & ~rows.valid & (time < right[series])
    return Expiry(
        series=judged,
        left=left[judged],
        right=right[judged],
        guess=guess[judged],
        after_left=least(np.where(time > left[series], time, np.inf), starts)[judged],
        before_right=before_time(right)[judged],
        before_guess=before_time(guess)[judged],
        cluster=panel.clusters[judged],
        returned=returned[judged],
        unconfirmed=unconfirmed[judged],
        last_seen=time[panel.starts[1:] - 1][judged],
        unit=clock,
        level=level,
        threshold=threshold,
        n_panel=panel.n_series,
        n_rows=int(of_judged.sum()),
        n_open=int(open_rows.sum()),
        at_start=np.flatnonzero(gone),
        too_noisy=np.flatnonzero(noisy),
        assumptions=_assumptions(
            panel,
            rows.known[judged],
            int((first & open_rows).sum()),
            int(unconfirmed[judged].sum()),
            level,
        ),
    )


def of_views(expiry: Expiry, fit: Callable[[Floats, Floats], Fitted]) -> list[Fitted]:
    """Fit to the early, measured and late expiries; once if noise makes no difference."""
    views = [expiry.intervals(view) for view in _VIEWS]
    if all(np.array_equal(views[0][1], right) for _, right in views[1:]):
        return [fit(*views[0])] * 3
    return [fit(*view) for view in views]


def _check(panel: Panel, threshold: float, clock: Clock, level: float) -> None:
    check_level(level)
    check_positive(threshold, "threshold")
    check_clock(panel, clock)
    bad = ~np.isfinite(panel.error)
    if bad.any():
        names = [panel.names[i] for i in np.unique(panel.series[bad])]
        raise InputError(
            f"errors must be finite, got {panel.error[bad][0]} in the series "
            f"{describe_names(names)}. Leave these rows out."
        )


def _check_order(panel: Panel, time: NDArray[Any], series: NDArray[Any]) -> None:
    """Raise if time does not increase from one row of a series to the next."""
    still = (np.diff(time) < _NO_TIME) & (np.diff(series) == 0)
    if still.any():
        names = [panel.names[i] for i in np.unique(series[1:][still])]
        raise InputError(
            "the dates of the versions of a series must increase, but they do not in "
            f"{describe_names(names)}. Use clock='releases', or fix the dates."
        )


def _assumptions(
    panel: Panel, known: NDArray[np.bool_], open_at_first: int, unconfirmed: int, level: float
) -> tuple[str, ...]:
    assumptions = [_PERSISTS]
    if open_at_first:
        assumptions.append(
            f"{open_at_first} of {len(known)} series are near the threshold at their first "
            "version, at which they count as valid."
        )
    if not known.all():
        assumptions.append(
            f"The noise of {(~known).sum()} of {len(known)} series is unknown: their errors "
            "count as measured, and noise counts as drift."
        )
    if unconfirmed:
        assumptions.append(
            f"{unconfirmed} of {len(known)} series were beyond the threshold in a single "
            "validation, which does not count as expiry, because it may be a bad run. Repeated "
            "validations would decide."
        )
    if known.any():
        assumptions.append(
            "Noise is normal and independent between versions. With a probability of "
            f"{format_number(level)}, all validations of a series are classified correctly as "
            "valid or expired."
        )
        if panel.frozen_at_first:
            assumptions.append(
                "The noise of the first measurement is part of every later error; the method "
                "allows for it."
            )
    return tuple(assumptions)


# Which rows of a series are clearly valid, or clearly expired, in spite of noise.


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The classification of each row, and whether the noise of each series is known.

    ``expired_by`` of a row is the last row of the shortest clearly expired mean that starts with
    it, else -1. ``isolated`` are single rows beyond the threshold between two that are not, of
    series with unknown noise: one bad run looks the same.
    """

    valid: NDArray[np.bool_]
    expired_by: NDArray[np.int64]
    hopeful: NDArray[np.bool_]
    known: NDArray[np.bool_]
    isolated: NDArray[np.bool_]


def classify_rows(
    panel: Panel, series: NDArray[Any], first: NDArray[Any], threshold: float, level: float
) -> Rows:
    """Classify rows by the means of 1, 2, 4, ... rows that start with each row."""
    n = len(series)
    sd = np.asarray(panel.sd, dtype=float)
    known = (panel.noise_df > 0) & ~any_row(~np.isfinite(sd), panel.starts[:-1])
    variance = np.where(known[series], sd, 0.0) ** 2
    shared = np.zeros(n)
    alone = np.zeros(n, dtype=bool)
    if panel.frozen_at_first:
        # Its error is 0 by construction; all others, and all their means, contain its noise.
        shared = np.where(first, 0.0, variance[panel.starts[:-1]][series])
        variance, alone = np.where(first, 0.0, variance), first
    z = _quantiles(np.diff(panel.starts) - panel.frozen_at_first, known, panel.noise_df, level)
    sums = np.concatenate([[0.0], np.cumsum(panel.error)])
    squares = np.concatenate([[0.0], np.cumsum(variance)])
    by, valid, hopeful = np.full(n, -1), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for width in 2 ** np.arange(int(np.diff(panel.starts).max(initial=1)).bit_length()):
        at = np.arange(n - width + 1)
        at = at[series[at] == series[at + width - 1]]
        if width > 1:
            at = at[known[series[at]] & ~alone[at]]
        noise = np.maximum(squares[at + width] - squares[at], 0.0) / width**2 + shared[at]
        margin = z[series[at]] * np.sqrt(noise)
        size = np.abs(sums[at + width] - sums[at]) / width if width > 1 else np.abs(panel.error)
        # Without noise, a row on the threshold has expired.
        expired = at[size - margin >= threshold]
        valid[at[size + margin < threshold]] = True
        by[expired[by[expired] < 0]] = expired[by[expired] < 0] + width - 1
        hopeful[at[(margin < threshold) & ~alone[at]]] = True
    isolated = _isolated(np.abs(panel.error) >= threshold, series) & ~known[series]
    by[isolated] = -1
    return Rows(valid, by, hopeful, known, isolated)


def _isolated(beyond: NDArray[Any], series: NDArray[Any]) -> NDArray[np.bool_]:
    """Return rows beyond the threshold whose neighbours are not."""
    back = ~beyond[1:] & (series[1:] == series[:-1])
    came = ~beyond[:-1] & (series[1:] == series[:-1])
    isolated: NDArray[np.bool_] = beyond.copy()
    isolated[:-1] &= back
    isolated[1:] &= came
    isolated[:1] = isolated[-1:] = False
    return isolated


def _quantiles(
    rows: NDArray[Any], known: NDArray[Any], df: NDArray[Any], level: float
) -> NDArray[np.float64]:
    """Return z of each series, by its number of rows that can be misclassified."""
    rows = np.maximum(rows, 1)
    widths = 2 ** np.arange(int(rows.max(initial=1)).bit_length())
    looks = np.maximum(rows[:, None] - widths + 1, 0).sum(axis=1)
    # Quantiles are slow, and there are few different pairs of counts and degrees of freedom.
    pairs, where = np.unique(
        np.column_stack([looks, np.where(known, df, 1.0)]), axis=0, return_inverse=True
    )
    z = -special.stdtrit(pairs[:, 1], -np.expm1(np.log(level) / pairs[:, 0]))
    return np.asarray(np.atleast_1d(z)[where.ravel()])


def least(values: NDArray[np.float64], starts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the least value of each series."""
    return np.asarray(np.minimum.reduceat(values, starts) if len(starts) else values)


def any_row(rows: NDArray[Any], starts: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which series have such a row."""
    return np.asarray(np.logical_or.reduceat(rows, starts) if len(starts) else rows)


def series_half_lives(
    panel: Panel, threshold: float, clock: Clock, *, level: float = 0.95
) -> tuple[HalfLife, ...]:
    """Return the half-life of each series alone: when it expired, with an interval.

    The half-life is the time of the first row whose error, as measured, is beyond the threshold.
    Its interval goes from the last clearly valid to the first clearly expired row. A series that
    had not clearly expired when last validated has a lower bound only. On the clock of releases,
    the bounds are releases at which it may have expired; in months, the lower bound is the last
    time at which it was valid.

    Valid for both steps and drift. The interval covers at least `level`: it is a statement about
    every row of the series, and rows far from the threshold cannot be misclassified.

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
    >>> [half_life] = series_half_lives(panel, 0.1, "months")
    >>> half_life.half_life, half_life.low, half_life.high
    (3.0, 2.0, 3.0)
    """
    expiry = expiry_of(panel, threshold, clock, level=level)
    each = {int(i): _of_series(expiry, k, panel.names[i]) for k, i in enumerate(expiry.series)}
    for reason, which in ((AT_START, expiry.at_start), (TOO_NOISY, expiry.too_noisy)):
        each |= {int(i): _refused(expiry, panel.names[i], reason) for i in which}
    return tuple(each[i] for i in range(panel.n_series))


def _of_series(expiry: Expiry, k: int, name: str) -> HalfLife:
    left, right = float(expiry.left[k]), float(expiry.right[k])
    step = 1.0 if expiry.unit == "releases" else 0.0
    censored = np.isinf(right)
    unconfirmed = {"unconfirmed": True} if expiry.unconfirmed[k] else {}
    return HalfLife(
        method="expiry",
        half_life=float("inf") if censored else float(expiry.guess[k]),
        low=left if censored else left + step,
        high=right,
        level=expiry.level,
        unit=expiry.unit,
        n_series=1,
        censored_share=float(censored),
        assumptions=expiry.assumptions,
        details={"series": name, "returned": bool(expiry.returned[k]), **unconfirmed},
    )


def _refused(expiry: Expiry, name: str, reason: str) -> HalfLife:
    return HalfLife(
        method="expiry",
        half_life=None,
        low=None,
        high=None,
        level=expiry.level,
        unit=expiry.unit,
        n_series=0,
        censored_share=float("nan"),
        refused=f"{reason}.",
        assumptions=expiry.assumptions,
        details={"series": name},
    )
