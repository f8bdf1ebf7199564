r"""The noise floor: how far measurements of one version scatter, on the log scale.

A change of the software can only be told from noise where something was measured twice under one
version. Each series has few repeats, so its own variance is unsure; the variances of all series
together say what is usual, and each series is pulled towards that, the more the fewer its repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from errcomp.errors import describe_names
from errcomp.halflife._moderated import Moderated, moderated_variances
from errcomp.halflife._repeats import (
    Repeats,
    between_dates,
    from_spread,
    repeats_of,
    rows_on_same_date,
)
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables.history import History

__all__ = ["Moderated", "NoiseFloor", "moderated_variances", "noise_floor"]

UNKNOWN = (
    "software and environment cannot be told apart: no version was validated twice in one series"
)

#: Degrees of freedom of a variance that was given, when it is compared with others.
_EXACT = 1e9

Source = Literal["repeats", "repeats on several dates", "measured_spread", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class NoiseFloor:
    """Noise of one validation on the log scale: 0.01 is 1 % of the measurement.

    Attributes
    ----------
    sd : float
        Standard deviation of one validation, the median over series; NaN where unknown.
    df : float
        Degrees of freedom behind it over all series; 0 where unknown.
    source : {"repeats", "repeats on several dates", "measured_spread", "none"}
        What it was estimated from. The second contains what changes from day to day, the first
        only where the notes say so, the third never.
    n_repeats : int
        Validations beyond the first of their series and version (and stack).
    prior_df : float
        How alike series are: degrees of freedom that the usual variance counts for; 0 where that
        is not known.
    series_sd, series_df : ndarray, shape (series,)
        Of each series, moderated; NaN and 0 where unknown.
    date_share : float
        Share of the variance that lies between dates of validation (the environment) rather than
        within one; NaN where no version was validated several times on several dates.
    notes : tuple of str
    """

    sd: float
    df: float
    source: Source
    n_repeats: int
    prior_df: float
    series_sd: NDArray[np.float64]
    series_df: NDArray[np.float64]
    date_share: float
    notes: tuple[str, ...]

    def of_means(self, history: History, cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the variance of means of validations relative to that of one, shape (cells,).

        Parameters
        ----------
        history : History
            Of which this is the noise.
        cell : ndarray of int, shape (n,)
            Which rows are averaged: numbers from 0 without gaps.
        """
        behind = history.behind.n
        n = np.bincount(cell, behind)
        if self.source == "measured_spread":
            runs = np.where(np.isnan(history.runs), 1.0, history.runs)
            return np.asarray(np.bincount(cell, behind / runs) / n**2)
        if self.source != "repeats on several dates":
            return 1.0 / n
        together = rows_on_same_date(history, cell)
        return np.asarray(
            (self.date_share * np.bincount(cell, behind * together) / n + 1 - self.date_share) / n
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: NaN and inf become None."""

        def plain(value: float) -> float | None:
            return float(value) if np.isfinite(value) else None

        return {
            "sd": plain(self.sd),
            "df": plain(self.df),
            "source": self.source,
            "n_repeats": self.n_repeats,
            "prior_df": plain(self.prior_df),
            "date_share": plain(self.date_share),
            "notes": list(self.notes),
        }


def noise_floor(history: History) -> NoiseFloor:
    r"""Estimate the noise of validations from repeats under one version.

    Measurements are compared on the log scale within series, version and stack; see
    `moderated_variances` for how series share what they know. In order:

    * ``measured_spread`` where the table has it: its square, with ``n_repeats`` − 1 degrees of
      freedom (taken as exact where ``n_repeats`` is not known).
    * Repeats on several dates, several on each: the variance between dates,
      :math:`\sigma_b^2`, and within, :math:`\sigma_w^2`, by analysis of variance. Where dates
      scatter by more than their repeats explain (F test, p < 0.25), the noise is
      :math:`\sigma_b^2 + \sigma_w^2`, from the scatter between dates.
    * All repeats alike otherwise.

    Measurements that are equal are given the variance of rounding, (last digit)² / 12.

    Valid for validations made like the repeats. Misleads where repeats follow each other within
    minutes and versions lie months apart: the noise between months is then larger, which the
    notes say where dates are known.

    Parameters
    ----------
    history : History

    Returns
    -------
    NoiseFloor

    References
    ----------
    Searle, Casella and McCulloch (1992), "Variance Components", doi:10.1002/9780470316856.

    Examples
    --------
    >>> from errcomp.tables import History
    >>> history = History(
    ...     {"version": ["1", "1", "1", "2", "2"], "measured": [9.9, 10.0, 10.1, 11.0, 11.2]}
    ... )
    >>> found = noise_floor(history)
    >>> round(found.sd, 4), found.df, found.source
    (0.011, 3.0, 'repeats')
    """
    repeats = repeats_of(history)
    notes: tuple[str, ...] = ()
    source: Source = "repeats"
    share = np.nan
    if (known := from_spread(history)) is not None:
        variance, df, source = known.variance, known.df, "measured_spread"
        notes = _against_repeats(repeats, history, variance)
    elif repeats.df.sum() == 0:
        nothing = np.full(history.n_series, np.nan)
        return NoiseFloor(
            np.nan, 0.0, "none", 0, 0.0, nothing, np.zeros(history.n_series), np.nan, (UNKNOWN,)
        )
    else:
        variance, df = repeats.variance, repeats.df
        dates = between_dates(history, repeats)
        share, notes = dates.share, dates.notes
        if dates.variance is not None:
            variance, df, source = dates.variance, dates.df, "repeats on several dates"
    if repeats.n:
        notes += _what_differs(history, repeats.cell)
    found = moderated_variances(variance, np.minimum(df, _EXACT))
    if found.prior_df == 0 and (df == 0).any():
        notes += (
            f"{df.sum():.0f} degrees of freedom are too few to say what noise is usual: that of "
            "series without repeats is not known",
        )
    # A variance that was given is exact: it is not pulled towards others'.
    given = np.isinf(df)
    series_df = np.where(given, np.inf, found.df)
    series_sd = np.sqrt(np.where(given, variance, found.variance))
    return NoiseFloor(
        sd=float(np.nanmedian(series_sd)),
        df=float(df.sum()),
        source=source,
        n_repeats=repeats.n,
        prior_df=found.prior_df,
        series_sd=series_sd,
        series_df=series_df,
        date_share=share,
        notes=notes,
    )


def _against_repeats(
    repeats: Repeats, history: History, variance: NDArray[np.float64]
) -> tuple[str, ...]:
    """Say whether repeated validations scatter by more than the spread within them."""
    from scipy import stats

    both = (repeats.df > 0) & ~np.isnan(variance)
    if not both.any():
        return (
            "noise is that within one validation: what changes between validations is not in it",
        )
    runs = np.where(np.isnan(history.runs), 1.0, history.runs)
    n = history.behind.n
    mean_of = np.bincount(history.series, n / runs, history.n_series) / np.bincount(
        history.series, n, history.n_series
    )
    df = float(repeats.df[both].sum())
    ratio = float(
        (repeats.df[both] * repeats.variance[both] / (variance * mean_of)[both]).sum() / df
    )
    if stats.chi2.sf(ratio * df, df) >= 0.05:
        return ()
    found, explained = (
        format_fraction(float(np.sqrt(np.median(values[both]))))
        for values in (repeats.variance, variance * mean_of)
    )
    return (
        f"repeated validations of one version scatter by {found} (median of series), of which the "
        f"spread within them explains {explained}: something else differs between them",
    )


def _what_differs(history: History, cell: NDArray[np.int64]) -> tuple[str, ...]:
    """Name columns in which repeats differ, where the series were named by the user."""
    if "series" not in history.series_columns:
        return ()
    several = np.bincount(cell, history.behind.n)[cell] > 1
    repeated = history.take(several)
    cells = np.unique(cell[several], return_inverse=True)[1]
    differ = []
    for name in history.condition_columns:
        codes = repeated.codes(name)
        if len(np.unique(cells * (codes.max() + 1) + codes)) > cells.max() + 1:
            differ.append(name)
    if not differ:
        return ()
    return (
        f"repeats of one series and version differ in {describe_names(differ)}: if that matters, "
        "their scatter is more than noise",
    )
