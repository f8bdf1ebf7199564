r"""Between which two validations each series expired, as far as noise of the measurement tells.

Noise widens the interval of a series instead of moving it. Means of w = 1, 2, 4, ... successive
errors are looked at; with a standard deviation s of the noise of such a mean,

* one of its rows has *surely expired* where :math:`|\bar e| - z s \ge \theta`,
* its first row was *surely valid* where :math:`|\bar e| + z s < \theta` and its own error is below
  the threshold too: had it expired, the later ones would have.

z is the quantile of a Student t with the noise's degrees of freedom
at the Šidák level :math:`1 - \text{level}^{1/k}` for the k means of the series, so that all of its
rows are judged right at once with the stated probability. Where the panel is frozen at first
measurements, the noise of the first one is in every later error: it is added, and no mean takes it
away.

A series expired in (last row of the first unbroken run of surely valid ones, last row of the first
surely expired mean]. A surely valid row after one that is open does not count: the series may have
crossed the threshold and returned.

Where the noise is not known, errors are taken at face value, but for one: a single row beyond the
threshold, before and after which the series was valid, is no more than one bad run tells. It is not
surely expired, and the series is open from there on: it expired in (row before it, first row of two
in succession beyond the threshold, or the last one], or not at all. Steps that last are dated as
before. Simulated, stable series of 10, 20 and 40 versions with 5 % of bad runs (six times the
noise): 6, 7 and 10 % get a sure time of expiry, where taking each row at face value gave 32, 55 and
82 %. What is left are bad runs at the last version, after which nothing tells, and two in
succession: bad runs that last two versions are not told from steps (39 % of 20 versions).

The probability is at least the nominal one, and mostly above: rows far from the threshold cannot be
judged wrong, whatever the noise. Simulated coverage at 95 %: 6 to 200 versions, noise 1 to 10 %, a
threshold of 10 %, degrees of freedom of 5 and more: 99 to 100 % for steps, smooth drift and none,
93 to 100 % for random walks, which cross the threshold and return as shortly as noise hides.
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

__all__ = ["AT_START", "TOO_NOISY", "Expiry", "View", "expiry_of", "of_views", "series_half_lives"]

#: When a series expired: as early as noise allows, at face value, or at the first sure row.
View = Literal["early", "face", "late"]
Floats: TypeAlias = "NDArray[np.float64]"
Fitted = TypeVar("Fitted")

#: A duration below this (of a release, of a month) is no time between two rows.
_NO_TIME = 1e-9
_VIEWS: tuple[View, ...] = ("early", "face", "late")
#: Attributes that have a value for each series.
_COLUMNS = (
    *("series", "left", "right", "guess", "after_left", "before_right", "before_guess"),
    *("cluster", "returned", "unconfirmed", "last_seen"),
)
#: Why a series has no time of expiry: it was never valid.
AT_START = "surely beyond the threshold at its first version"
#: Why a series has no time of expiry: its noise hides it.
TOO_NOISY = "noise too large for the threshold: no row could be told to be valid"
_PERSISTS = "A series does not expire and return between two successive rows, nor within the noise."


@dataclass(frozen=True, slots=True, eq=False)
class Expiry:
    """Interval-censored times to doubling, one per series that can be judged.

    Attributes
    ----------
    series : ndarray of int, shape (k,)
        Positions of the series in the panel.
    left, right : ndarray of float, shape (k,)
        The series first expired in (left, right], in units of the clock since its first version;
        right is inf where it had not surely expired when last seen.
    guess : ndarray of float, shape (k,)
        Time of the first row in the interval that is beyond the threshold at face value; `right`
        where there is none.
    after_left, before_right, before_guess : ndarray of float, shape (k,)
        Times of the row that follows `left`, and of those before `right` and `guess`; inf where
        there is no such row, the time of the last row where `right` or `guess` is inf.
    cluster : ndarray of int, shape (k,)
    returned : ndarray of bool, shape (k,)
        Surely valid again after it had surely expired.
    unconfirmed : ndarray of bool, shape (k,)
        Beyond the threshold in a single row before it had surely expired (or in no other), with a
        noise that is not known: that may have been one bad run.
    last_seen : ndarray of float, shape (k,)
        Time of the last row.
    unit : {"releases", "months"}
    level : float
        Probability with which all rows of a series are judged right.
    threshold : float
    n_panel : int
        Number of series of the panel.
    n_rows, n_open : int
        Rows of these series, and those not surely valid before the series had surely expired.
    at_start, too_noisy : ndarray of int
        Positions of the series left out: surely expired at their first version, or with a noise
        that leaves every row open.
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
        """Series left out, with reasons; their `rows` are positions in the panel from 1."""
        return tuple(
            Dropped(reason, len(which), tuple(int(i) + 1 for i in which[:3]))
            for reason, which in ((AT_START, self.at_start), (TOO_NOISY, self.too_noisy))
            if len(which)
        )

    @property
    def n(self) -> int:
        """Number of series that can be judged."""
        return len(self.series)

    def intervals(self, view: View) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intervals between successive rows, as early or as late as noise allows.

        Between the early and the late ones lie the true ones, whatever the noise was; where there
        is none they are the same. Intervals (left, right] themselves are wider than the gaps
        between rows because of noise, which does not come at random times: taken as if it did,
        they put the median of drifting series too early.

        Parameters
        ----------
        view : {"early", "face", "late"}
            Expired at the first row that is not surely valid, at the first one beyond the threshold
            at face value, or at the first surely expired one.

        Returns
        -------
        left, right : ndarray of float, shape (k,)
        """
        if view == "early":
            return self.left, self.after_left
        if view == "late":
            return self.before_right, self.right
        return self.before_guess, self.guess

    def check_length(self, n: int, what: str) -> None:
        """Raise unless there is one value for each series of the panel."""
        if n != self.n_panel:
            raise InputError(f"{what} must be {self.n_panel}, one a series of the panel, got {n}.")

    def take(self, which: NDArray[np.bool_]) -> Expiry:
        """Return some of the series; what was left out of the others stays with them."""
        none = np.empty(0, dtype=np.int64)
        part = {name: getattr(self, name)[which] for name in _COLUMNS}
        return replace(self, **part, at_start=none, too_noisy=none)

    @property
    def censored_share(self) -> float:
        """Share of the series judged that were not surely beyond the threshold at any row."""
        return float(np.mean(np.isinf(self.right))) if self.n else float("nan")


def expiry_of(panel: Panel, threshold: float, clock: Clock, *, level: float = 0.95) -> Expiry:
    """Return the interval in which each series of a panel expired.

    Definition: time since the first version of the series; the first crossing counts, a series
    that returns later is marked. Left out and counted are series that were surely expired at their
    first version, and those whose noise is too large to tell that any row is valid: the noise alone
    decides it, not the errors, so that leaving them out does not favour either.

    Misleads where the threshold is near the noise: the interval is then wide, and a series that
    drifted just beyond it is never known to have expired.

    Parameters
    ----------
    panel : Panel
    threshold : float
        On the log scale, see `errcomp.halflife.threshold.doubling_threshold`.
    clock : {"releases", "months"}
    level : float
        Probability with which all rows of a series are judged right.

    Returns
    -------
    Expiry

    Raises
    ------
    InputError
        The threshold is not positive and finite, `level` is not between 0 and 1, the clock is not
        known or the versions have no dates, an error is not finite, or two rows of a series have no
        time between them.

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
    >>> found = expiry_of(panel, 0.1, "releases")
    >>> found.left.tolist(), found.right.tolist(), found.guess.tolist()
    ([1.0, 3.0], [3.0, inf], [2.0, inf])
    """
    _check(panel, threshold, clock, level)
    series = panel.series
    time = panel.times(clock)
    time = time - time[panel.starts[:-1]][series]
    _check_order(panel, time, series)
    first = np.zeros(len(series), dtype=bool)
    first[panel.starts[:-1]] = True
    rows = judge_rows(panel, series, first, threshold, level)
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
    """Fit to the earliest, face and latest expiries; once where noise leaves nothing open."""
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
            f"errors must be finite, got {panel.error[bad][0]} in {describe_names(names)}. Leave "
            "these rows out."
        )


def _check_order(panel: Panel, time: NDArray[Any], series: NDArray[Any]) -> None:
    """Raise where time does not go on from one row of a series to the next."""
    still = (np.diff(time) < _NO_TIME) & (np.diff(series) == 0)
    if still.any():
        names = [panel.names[i] for i in np.unique(series[1:][still])]
        raise InputError(
            f"versions of a series must follow each other in time, but two have the same date, or "
            f"dates against their order, in {describe_names(names)}. Use clock='releases', or fix "
            "the dates."
        )


def _assumptions(
    panel: Panel, known: NDArray[np.bool_], open_at_first: int, unconfirmed: int, level: float
) -> tuple[str, ...]:
    assumptions = [_PERSISTS]
    if open_at_first:
        assumptions.append(
            f"{open_at_first} of {len(known)} series are near the threshold at their first version "
            "already; they were taken to be valid there."
        )
    if not known.all():
        assumptions.append(
            f"The noise of {(~known).sum()} of {len(known)} series is not known: their errors were "
            "taken at face value, and noise counts as drift."
        )
    if unconfirmed:
        assumptions.append(
            f"{unconfirmed} of {len(known)} series were beyond the threshold in a single row and "
            "back at the next, as one bad run would be: when they expired, if at all, is "
            "open from there on. Repeats would tell."
        )
    if known.any():
        assumptions.append(
            f"Noise is normal and independent between versions: all rows of a series are judged "
            f"right with a probability of {format_number(level)}."
        )
        if panel.frozen_at_first:
            assumptions.append(
                "The noise of the first measurement is in every later error, and counted."
            )
    return tuple(assumptions)


# Which rows of a series are surely valid, or surely expired, in spite of noise.


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is sure of each row, and of which series the noise is known.

    ``expired_by`` of a row is the last row of the shortest surely expired mean from it on, else -1.
    ``isolated`` are single rows beyond the threshold between two that are not, of series whose
    noise is not known: one bad run looks the same.
    """

    valid: NDArray[np.bool_]
    expired_by: NDArray[np.int64]
    hopeful: NDArray[np.bool_]
    known: NDArray[np.bool_]
    isolated: NDArray[np.bool_]


def judge_rows(
    panel: Panel, series: NDArray[Any], first: NDArray[Any], threshold: float, level: float
) -> Rows:
    """Look at the means of 1, 2, 4, ... rows from each row on."""
    n = len(series)
    sd = np.asarray(panel.sd, dtype=float)
    known = (panel.noise_df > 0) & ~any_row(~np.isfinite(sd), panel.starts[:-1])
    variance = np.where(known[series], sd, 0.0) ** 2
    shared = np.zeros(n)
    alone = np.zeros(n, dtype=bool)
    if panel.frozen_at_first:
        # Its error is 0 by construction; its noise is in all others, and in all their means.
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
        # Without noise a row on the threshold has expired.
        expired = at[size - margin >= threshold]
        valid[at[size + margin < threshold]] = True
        by[expired[by[expired] < 0]] = expired[by[expired] < 0] + width - 1
        hopeful[at[(margin < threshold) & ~alone[at]]] = True
    isolated = _isolated(np.abs(panel.error) >= threshold, series) & ~known[series]
    by[isolated] = -1
    return Rows(valid, by, hopeful, known, isolated)


def _isolated(beyond: NDArray[Any], series: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows are beyond the threshold where those before and after them are not."""
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
    """Return z of each series, by its number of rows that can be wrong."""
    rows = np.maximum(rows, 1)
    widths = 2 ** np.arange(int(rows.max(initial=1)).bit_length())
    looks = np.maximum(rows[:, None] - widths + 1, 0).sum(axis=1)
    # Few pairs of looks and degrees of freedom: quantiles are slow.
    pairs, where = np.unique(
        np.column_stack([looks, np.where(known, df, 1.0)]), axis=0, return_inverse=True
    )
    z = -special.stdtrit(pairs[:, 1], -np.expm1(np.log(level) / pairs[:, 0]))
    return np.asarray(np.atleast_1d(z)[where.ravel()])


def least(values: NDArray[np.float64], starts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the least value of each series."""
    return np.asarray(np.minimum.reduceat(values, starts) if len(starts) else values)


def any_row(rows: NDArray[Any], starts: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which series have such a row."""
    return np.asarray(np.logical_or.reduceat(rows, starts) if len(starts) else rows)


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
