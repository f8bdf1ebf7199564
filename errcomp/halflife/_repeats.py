"""Repeats of one version: their variance, between dates and within, and that of rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.halflife._moderated import moderated_variances
from errcomp.halflife.carried import decimals
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables.history import History

__all__ = [
    "BetweenDates",
    "Repeats",
    "between_dates",
    "from_spread",
    "repeats_of",
    "rows_on_same_date",
]

#: Dates are taken for alike where their scatter is no larger than this: a low bar, because missing
#: a difference makes intervals too short, and allowing for one only makes them wider.
_POOLING_P = 0.25
#: Variances of logarithms below this are those of equal numbers: doubles have 16 digits.
_EQUAL = 1e-24


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Scatter of repeats within series, version and stack.

    Attributes
    ----------
    variance, df : ndarray, shape (series,)
        Of log measurements, pooled over the versions of a series; NaN and 0 where none repeats.
    n : int
        Repeats beyond the first.
    cell : ndarray of int, shape (n,)
        Series, version and stack of each row, numbered.
    """

    variance: NDArray[np.float64]
    df: NDArray[np.float64]
    n: int
    cell: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BetweenDates:
    """Scatter between dates; variance None where it is not to be used."""

    variance: NDArray[np.float64] | None
    df: NDArray[np.float64]
    share: float
    notes: tuple[str, ...]


def repeats_of(history: History) -> Repeats:
    """Pool the variance of log measurements within series, version and stack."""
    cell = _numbered(_numbered(history.series, history.version), history.stack)
    squares, df = _within(history, cell)
    with np.errstate(invalid="ignore"):
        variance = squares / df
    return Repeats(_at_least_rounding(variance, history), df, int(df.sum()), cell)


def _within(
    history: History, cell: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sums of squares about the mean of each cell, by series, and degrees of freedom."""
    log, n, scatter = np.log(history.measured), history.behind.n, history.behind.scatter
    series, n_series = history.series, history.n_series
    counts = np.bincount(cell, n)
    squares = n * (log - (np.bincount(cell, n * log) / counts)[cell]) ** 2 + scatter
    repeated = counts[cell] > 1
    found = np.bincount(series[repeated], squares[repeated], n_series)
    # A cell of k repeats has k - 1 degrees of freedom: each of them brings 1 - 1/k.
    df = np.rint(np.bincount(series, n * (1 - 1 / counts[cell]), n_series))
    return found.astype(np.float64), df


def between_dates(history: History, repeats: Repeats) -> BetweenDates:
    """Compare the scatter between days of validation with that within them, in one version."""
    no = np.zeros(history.n_series)
    if np.isnat(history.date).all():
        return BetweenDates(None, no, np.nan, ())
    session = _numbered(repeats.cell, _days(history))
    sessions = session.max() + 1
    if sessions == repeats.cell.max() + 1:
        return BetweenDates(
            None,
            no,
            np.nan,
            ("no version was validated on two dates: noise between dates is not known",),
        )
    if sessions == history.behind.n.sum():
        note = "each repeat has a date of its own: noise includes what changes between dates"
        return BetweenDates(None, no, np.nan, (note,))
    return _components(history, repeats, session)


def _components(history: History, repeats: Repeats, session: NDArray[np.int64]) -> BetweenDates:
    from scipy import stats

    cell, n_series, n = repeats.cell, history.n_series, history.behind.n
    all_squares, all_df = _within(history, cell)
    within, df_within = _within(history, session)
    between = np.maximum(all_squares - within, 0.0)
    df_between = all_df - df_within
    # Series are put on one scale first, or the noisiest would decide for all.
    scale = np.where(all_df > 0, moderated_variances(repeats.variance, all_df).variance, 1.0)
    ms_between = (between / scale).sum() / df_between.sum()
    ms_within = (within / scale).sum() / df_within.sum()
    ratio = ms_between / ms_within if ms_within > 0 else np.inf
    p = float(stats.f.sf(ratio, df_between.sum(), df_within.sum()))
    sizes, total = np.bincount(session, n), np.bincount(cell, n)
    # Rows a date has on average, as it weighs in the mean square between dates.
    squared = np.bincount(cell, n * sizes[session]) / total
    n0 = float((total - squared).sum() / df_between.sum())
    variance_between = max(0.0, (ms_between - ms_within) / n0)
    share = float(variance_between / (variance_between + ms_within))
    known = f"F on {df_between.sum():.0f} and {df_within.sum():.0f} degrees of freedom"
    if p >= _POOLING_P:
        note = f"repeats on different dates scatter no more than on one ({known}, p = {p:.2g})"
        return BetweenDates(None, np.zeros(n_series), share, (note,))
    with np.errstate(invalid="ignore"):
        variance = between / df_between / (n0 * share + 1 - share)
    note = (
        f"{format_fraction(share)} of the variance of repeats lies between dates of validation "
        f"({known}, p = {p:.2g}): the environment changes from date to date"
    )
    return BetweenDates(_at_least_rounding(variance, history), df_between, share, (note,))


def from_spread(history: History) -> Repeats | None:
    """Return what measured_spread says of each series; None where it says nothing."""
    one = history.runs == 1
    known = ~np.isnan(history.spread) & ~one
    if not known.any():
        return None
    series, n_series = history.series[known], history.n_series
    runs = history.runs[known]
    weight = np.where(np.isnan(runs), 1.0, runs - 1) * history.behind.n[known]
    squares = np.bincount(series, weight * np.log1p(history.spread[known] ** 2), n_series)
    total = np.bincount(series, weight, n_series)
    exact = np.bincount(series, np.isnan(runs), n_series) > 0
    with np.errstate(invalid="ignore"):
        variance = squares / total
    return Repeats(
        _at_least_rounding(variance, history),
        np.where(exact, np.inf, total),
        0,
        np.zeros(0, dtype=np.int64),
    )


def rows_on_same_date(history: History, cell: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count for each row the validations of its cell on the same day, itself too."""
    session = _numbered(cell, _days(history))
    return np.bincount(session, history.behind.n)[session].astype(np.float64)


def _days(history: History) -> NDArray[np.int64]:
    """Return the day of validation of each row as a number; rows without a date share one."""
    return np.unique(history.date.astype("M8[D]").astype(np.int64), return_inverse=True)[1]


def _numbered(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each pair, without gaps; a has none."""
    if b.max() == 0:
        return a
    return np.unique(a * (b.max() + 1) + b, return_inverse=True)[1]


def _at_least_rounding(variance: NDArray[np.float64], history: History) -> NDArray[np.float64]:
    """Give series whose repeats are all equal the variance of rounding to their last digit."""
    equal = variance < _EQUAL
    if not equal.any():
        return variance
    rows = np.flatnonzero(equal[history.series])
    values, series, n = history.measured[rows], history.series[rows], history.behind.n
    most = np.zeros(history.n_series, dtype=np.int64)
    np.maximum.at(most, series, decimals(values))
    counts = np.bincount(series, n[rows], history.n_series)
    logs = np.bincount(series, n[rows] * np.log(values), history.n_series)
    level = np.exp(logs / np.maximum(counts, 1))
    return np.where(equal, (10.0**-most / level) ** 2 / 12, variance)
