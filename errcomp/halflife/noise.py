r"""The noise floor: how far measurements of one version scatter, on the log scale.

A change of the software can only be distinguished from noise if something was measured twice under
one version. Each series has few repeats, so its own variance is uncertain. The variances of all
series together give the usual variance. Each series is pulled towards the usual variance; the fewer
repeats a series has, the more.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as field_
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.codec import Count, Document, Undefined
from errcomp.errors import InputError, describe_names
from errcomp.halflife.carried_over import most_decimals
from errcomp.results import format_fraction
from errcomp.tables import History

__all__ = ["Moderated", "NoiseFloor", "moderated_variances", "noise_floor"]


UNKNOWN = (
    "changes of software and environment cannot be distinguished: no series has two validations of "
    "one version"
)

#: Degrees of freedom of a given variance, when it is compared with others.
_EXACT = 1e9

Source = Literal["repeats", "repeats on several dates", "measured_spread", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class NoiseFloor(Document):
    """Noise of one validation on the log scale: 0.01 is 1 % of the measurement.

    Attributes
    ----------
    sd : float
        Standard deviation of one validation, the median over series; NaN if unknown.
    df : float
        Its degrees of freedom over all series; 0 if unknown.
    source : {"repeats", "repeats on several dates", "measured_spread", "none"}
        What the noise was estimated from. ``"repeats on several dates"`` includes changes from day
        to day, ``"repeats"`` only if the notes say so, and ``"measured_spread"`` never.
    n_repeats : int
        Validations beyond the first of their series and version (and stack).
    prior_df : float
        Degrees of freedom of the usual variance: the more similar series are, the larger. 0 if
        unknown.
    series_sd, series_df : ndarray, shape (series,)
        Of each series, moderated; NaN and 0 if unknown.
    date_share : float
        Share of the variance between dates of validation (the environment) rather than within a
        date; NaN unless a version was validated several times on several dates.
    notes : tuple of str
    """

    KEYS: ClassVar = ("sd", "df", "source", "n_repeats", "prior_df", "date_share", "notes")

    sd: Annotated[float, Undefined]
    df: Annotated[float, Undefined]
    source: Source
    n_repeats: Count
    prior_df: Annotated[float, Undefined]
    date_share: Annotated[float, Undefined]
    notes: tuple[str, ...]
    series_sd: NDArray[np.float64] = field_(default_factory=partial(np.empty, 0))
    series_df: NDArray[np.float64] = field_(default_factory=partial(np.empty, 0))

    def of_means(self, history: History, cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the variance of means of validations relative to that of one, shape (cells,).

        Parameters
        ----------
        history : History
            The history with this noise.
        cell : ndarray of int, shape (n,)
            Rows with the same number are averaged; the numbers are 0, 1, … without gaps.

        Examples
        --------
        >>> from errcomp.tables import History
        >>> history = History({"version": ["1", "1", "2"], "measured": [9.9, 10.0, 11.0]})
        >>> noise_floor(history).of_means(history, np.array([0, 0, 1])).tolist()
        [0.5, 1.0]
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


def noise_floor(history: History) -> NoiseFloor:
    r"""Estimate the noise of validations from repeats under one version.

    Measurements are compared on the log scale within series, version and stack; see
    `moderated_variances` for how series share what they know. In order:

    * ``measured_spread`` if the table has it: its square, with ``n_repeats`` − 1 degrees of
      freedom (exact if ``n_repeats`` is unknown).
    * Several repeats on each of several dates: the variance between dates, :math:`\sigma_b^2`, and
      within dates, :math:`\sigma_w^2`, by analysis of variance. If dates scatter by more than their
      repeats explain (F test, p < 0.25), the noise is :math:`\sigma_b^2 + \sigma_w^2`, from the
      scatter between dates.
    * Otherwise all repeats, whatever their dates.

    Equal measurements get the variance of rounding, (last digit)² / 12.

    Valid for validations made like the repeats. Misleads if repeats follow each other within
    minutes and versions are months apart: the noise between months is then larger. If dates are
    known, the notes say so.

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
    >>> noise = noise_floor(history)
    >>> round(noise.sd, 4), noise.df, noise.source
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
            np.nan, 0.0, "none", 0, 0.0, np.nan, (UNKNOWN,), nothing, np.zeros(history.n_series)
        )
    else:
        variance, df = repeats.variance, repeats.df
        dates = between_dates(history, repeats)
        share, notes = dates.share, dates.notes
        if dates.variance is not None:
            variance, df, source = dates.variance, dates.df, "repeats on several dates"
    if repeats.n:
        notes += _what_differs(history, repeats.cell)
    moderated = moderated_variances(variance, np.minimum(df, _EXACT))
    if moderated.prior_df == 0 and (df == 0).any():
        free = f"{df.sum():.0f}"
        notes += (
            f"the repeats are too few to estimate the noise of a typical series ({free} "
            f"degree{'' if free == '1' else 's'} of freedom): the noise of series without "
            "repeats is unknown",
        )
    # A given variance is exact: it is not pulled towards the others.
    given = np.isinf(df)
    series_df = np.where(given, np.inf, moderated.df)
    series_sd = np.sqrt(np.where(given, variance, moderated.variance))
    return NoiseFloor(
        sd=float(np.nanmedian(series_sd)),
        df=float(df.sum()),
        source=source,
        n_repeats=repeats.n,
        prior_df=moderated.prior_df,
        series_sd=series_sd,
        series_df=series_df,
        date_share=share,
        notes=notes,
    )


def _against_repeats(
    repeats: Repeats, history: History, variance: NDArray[np.float64]
) -> tuple[str, ...]:
    """Say whether repeated validations scatter by more than the spread within them."""
    from scipy.special import chdtrc

    both = (repeats.df > 0) & ~np.isnan(variance)
    if not both.any():
        return (
            "the noise is the scatter within one validation; it does not include changes "
            "between validations",
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
    if chdtrc(df, ratio * df) >= 0.05:
        return ()
    scatter, explained = (
        format_fraction(float(np.sqrt(np.median(values[both]))))
        for values in (repeats.variance, variance * mean_of)
    )
    return (
        f"repeated validations of one version scatter by {scatter} (median of series), but the "
        f"spread within single validations explains only {explained}: the validations also differ "
        "in something else",
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
        f"repeats of one series and version differ in {describe_names(differ)}: if this changes "
        "the results, the scatter of the repeats is not only noise",
    )


# Repeats of one version: their variance, between dates and within, and that of rounding.

#: Dates count as different below this p-value. It is high, because a missed difference makes
#: intervals too short, while an unneeded allowance only makes them wider.
_POOLING_P = 0.25
#: Variances of logarithms below this are those of equal numbers: doubles have 16 digits.
_EQUAL = 1e-24


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Scatter of repeats within series, version and stack.

    Attributes
    ----------
    variance, df : ndarray, shape (series,)
        Of log measurements, pooled over the versions of a series; NaN and 0 without repeats.
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
    """Scatter between dates; a variance of None must not be used."""

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
    sums = np.bincount(series[repeated], squares[repeated], n_series)
    # A cell of k repeats has k - 1 degrees of freedom: each of them brings 1 - 1/k.
    df = np.rint(np.bincount(series, n * (1 - 1 / counts[cell]), n_series))
    return sums.astype(np.float64), df


def between_dates(history: History, repeats: Repeats) -> BetweenDates:
    """Compare the scatter between days of validation with that within them, in one version."""

    def unused(*notes: str) -> BetweenDates:
        return BetweenDates(None, np.zeros(history.n_series), np.nan, notes)

    if np.isnat(history.date).all():
        return unused()
    session = _numbered(repeats.cell, _days(history))
    sessions = session.max() + 1
    if sessions == repeats.cell.max() + 1:
        return unused("no version was validated on two dates: noise between dates is unknown")
    if sessions == history.behind.n.sum():
        return unused("each repeat has its own date: the noise includes changes between dates")
    return _variance_components(history, repeats, session)


def _variance_components(
    history: History, repeats: Repeats, session: NDArray[np.int64]
) -> BetweenDates:
    from scipy.special import fdtrc

    cell, n_series, n = repeats.cell, history.n_series, history.behind.n
    all_squares, all_df = _within(history, cell)
    within, df_within = _within(history, session)
    between = np.maximum(all_squares - within, 0.0)
    df_between = all_df - df_within
    # Series are scaled first, otherwise the noisiest would decide for all.
    scale = np.where(all_df > 0, moderated_variances(repeats.variance, all_df).variance, 1.0)
    ms_between = (between / scale).sum() / df_between.sum()
    ms_within = (within / scale).sum() / df_within.sum()
    ratio = ms_between / ms_within if ms_within > 0 else np.inf
    p = float(fdtrc(df_between.sum(), df_within.sum(), ratio))
    sizes, total = np.bincount(session, n), np.bincount(cell, n)
    # Average rows per date, weighted as in the mean square between dates.
    squared = np.bincount(cell, n * sizes[session]) / total
    n0 = float((total - squared).sum() / df_between.sum())
    variance_between = max(0.0, (ms_between - ms_within) / n0)
    share = float(variance_between / (variance_between + ms_within))
    known = f"F test with {df_between.sum():.0f} and {df_within.sum():.0f} degrees of freedom"
    if p >= _POOLING_P:
        note = f"repeats scatter no more between dates than on one date ({known}, p = {p:.2g})"
        return BetweenDates(None, np.zeros(n_series), share, (note,))
    with np.errstate(invalid="ignore"):
        variance = between / df_between / (n0 * share + 1 - share)
    note = (
        f"{100 * share:.0f} % of the variance of repeats is between dates of validation "
        f"({known}, p = {p:.2g}): the environment changes from date to date"
    )
    return BetweenDates(_at_least_rounding(variance, history), df_between, share, (note,))


def from_spread(history: History) -> Repeats | None:
    """Return the variances of the series by measured_spread; None without such values."""
    single = history.runs == 1
    known = ~np.isnan(history.spread) & ~single
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
    """Count for each row the validations of its cell on the same day, including itself."""
    session = _numbered(cell, _days(history))
    return np.bincount(session, history.behind.n)[session].astype(np.float64)


def _days(history: History) -> NDArray[np.int64]:
    """Return the day of validation of each row as a number; rows without a date share one."""
    return np.unique(history.date.astype("M8[D]").astype(np.int64), return_inverse=True)[1]


def _numbered(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each pair, without gaps; the numbers of a have no gaps."""
    if b.max() == 0:
        return a
    return np.unique(a * (b.max() + 1) + b, return_inverse=True)[1]


def _at_least_rounding(variance: NDArray[np.float64], history: History) -> NDArray[np.float64]:
    """Give series of equal repeats the variance of rounding to their last digit."""
    equal = variance < _EQUAL
    if not equal.any():
        return variance
    rows = np.flatnonzero(equal[history.series])
    values, series, n = history.measured[rows], history.series[rows], history.behind.n
    most = most_decimals(values, series, history.n_series)
    counts = np.bincount(series, n[rows], history.n_series)
    logs = np.bincount(series, n[rows] * np.log(values), history.n_series)
    level = np.exp(logs / np.maximum(counts, 1))
    return np.where(equal, (10.0**-most / level) ** 2 / 12, variance)


# Variances of many series with few repeats each, pulled towards the usual one (empirical Bayes).

#: Smallest variance, relative to the median, that counts as different when series are compared.
_LEAST = 1e-5
#: Fewest degrees of freedom over all series to compare them; with fewer, intervals are too short.
_ENOUGH = 12
#: Of Newton's method, which doubles the digits at each; y is below 1000 always.
_STEPS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Moderated:
    """Variances of many series, each pulled towards the usual one.

    Attributes
    ----------
    variance, df : ndarray, shape (s,)
        Moderated variances and their degrees of freedom; NaN and 0 if unknown.
    prior_variance, prior_df : float
        The usual variance and its degrees of freedom: the more similar series are, the larger. NaN
        and 0 if there are too few data.
    """

    variance: NDArray[np.float64]
    df: NDArray[np.float64]
    prior_variance: float
    prior_df: float


def moderated_variances(variance: ArrayLike, df: ArrayLike) -> Moderated:
    r"""Moderate sample variances by an empirical Bayes prior over series.

    .. math::

        s_i^2 \mid \sigma_i^2 \sim \sigma_i^2 \chi^2_{d_i} / d_i, \qquad
        1 / \sigma_i^2 \sim \chi^2_{d_0} / (d_0 s_0^2), \qquad
        \tilde s_i^2 = \frac{d_0 s_0^2 + d_i s_i^2}{d_0 + d_i}

    with :math:`e_i = \ln s_i^2 - \psi(d_i/2) + \ln(d_i/2)` of n series, their variance V and
    :math:`T = \overline{\psi'(d_i/2)}`, the part of V due to chance,

    .. math::

        \psi'(d_0 / 2) = \max(V - T, 0) + \sqrt{2 / (n - 1)}\, \max(V, T), \qquad
        \ln s_0^2 = \bar e + \psi(d_0/2) - \ln(d_0/2)

    The second term of the first equation is one standard error of V: few series do not show how
    similar they are, and without this term t intervals of 95 % covered only 90 % in some cases. A
    moderated variance has :math:`d_0 + d_i` degrees of freedom, but at most as many as all series
    have together. A series without repeats gets s₀² and d₀. With fewer than 12 degrees of freedom
    over all series nothing is moderated: each series keeps its own variance, and series without
    repeats have none.

    Coverage of t intervals of 95 %, simulated: 93 to 97 % for 1 to 200 series of 1 to 20 degrees
    of freedom, whose variances are equal, or spread like an inverse χ² of 4 degrees of freedom, a
    log-normal of sd 1, or one in three nine times the others; in series without repeats 94 % or
    more. Misleads if some series are known to be noisier: moderate those separately.

    Parameters
    ----------
    variance : array_like, shape (s,)
        Sample variances, > 0 where df > 0.
    df : array_like, shape (s,)
        Degrees of freedom of each variance, 0 without repeats.

    Returns
    -------
    Moderated

    Raises
    ------
    InputError
        Shapes differ, or a variance with degrees of freedom is not positive and finite.

    References
    ----------
    Smyth (2004), "Linear models and empirical Bayes methods for assessing differential expression
    in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3(1),
    doi:10.2202/1544-6115.1027.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> moderated = moderated_variances(rng.chisquare(3, 500) / 3, np.full(500, 3.0))
    >>> round(moderated.prior_variance, 1), bool(moderated.variance.std() < 0.2)
    (0.9, True)
    """
    from scipy.special import digamma, polygamma

    s2, d = np.asarray(variance, dtype=float), np.asarray(df, dtype=float)
    if s2.shape != d.shape or s2.ndim != 1:
        raise InputError(
            f"variance and df must have the same shape (s,), got {s2.shape} and {d.shape}."
        )
    known = d > 0
    if not (np.isfinite(s2[known]) & (s2[known] > 0) & np.isfinite(d[known])).all():
        raise InputError(
            "variances with degrees of freedom must be positive and finite. Give df=0 to series "
            "without repeats."
        )
    n, total = int(known.sum()), float(d[known].sum())
    if n < 2 or total < _ENOUGH:
        return Moderated(np.where(known, s2, np.nan), np.where(known, d, 0.0), np.nan, 0.0)
    # A variance that is zero except for rounding must not decide how much all of them differ.
    s2 = np.where(known, np.maximum(s2, _LEAST * np.median(s2[known])), 1.0)
    half = d[known] / 2
    e = np.log(s2[known]) - digamma(half) + np.log(half)
    spread, chance = float(e.var(ddof=1)), float(polygamma(1, half).mean())
    error = np.sqrt(2 / (n - 1)) * max(spread, chance)
    d0 = 2 * trigamma_inverse(max(spread - chance, 0.0) + error)
    s02 = float(np.exp(e.mean() + digamma(d0 / 2) - np.log(d0 / 2)))
    return Moderated((d0 * s02 + d * s2) / (d0 + d), np.minimum(d0 + d, total), s02, d0)


def trigamma_inverse(y: float) -> float:
    """Solve ψ'(x) = y for x by Newton's method on 1/ψ', which is nearly straight and convex."""
    from scipy.special import zeta

    if y < 1e-6:
        return 1 / y
    x = 0.5 + 1 / y
    for _ in range(_STEPS):
        # ψ'(x) = ζ(2, x) and ψ''(x) = −2 ζ(3, x): `polygamma` takes five times as long.
        value = float(zeta(2, x))
        x -= value * (1 - value / y) / (2 * float(zeta(3, x)))
    return x
