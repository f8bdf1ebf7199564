"""Was it the release or the environment? Steps by date of validation, and their causes.

A history distinguishes software from environment only if versions were validated more than once: a
change without a new version is not caused by the release. *Environment* is everything without a
version in the table: machine, settings, drivers, the measuring script.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from errcomp.codec import Count, Document
from errcomp.errors import InputError, describe_rows
from errcomp.halflife.steps import steps_in, vector
from errcomp.halflife.steps.summary import Step, Steps
from errcomp.tables import History

__all__ = ["Attribution", "Verdict", "attribute_steps", "attribute_steps_of"]


# Evidence to distinguish software from environment: versions validated more than once.


_LEVEL = 0.95
_ENOUGH_DF = 3
# A re-run has changed if it differs by more than this many standard deviations of a difference.
MOVED = 3.0


class Series(NamedTuple):
    """Validations of one series by date, one for each date and version."""

    name: str
    machine: int
    version: NDArray[Any]
    date: NDArray[Any]
    value: Floats
    steps: Steps


class SameVersion(NamedTuple):
    """The change of versions validated on both sides of a step."""

    moved: float
    low: float
    high: float
    versions: int

    def of(self, step: Step) -> tuple[float, float, float]:
        """Return the share of a step, and the ends of its interval."""
        ends = sorted((self.low / step.size, self.high / step.size))
        return self.moved / step.size, ends[0], ends[1]


class Pairs(NamedTuple):
    """Successive validations of a version in a series: when, on which machine, and their change."""

    series: NDArray[Any]
    machine: NDArray[Any]
    since: NDArray[Any]
    until: NDArray[Any]
    moved: Floats


def by_series(
    columns: dict[str, tuple[NDArray[Any], NDArray[Any]]],
    date: NDArray[Any],
    x: Floats,
    alpha: float,
) -> list[Series]:
    """Order the validations of each series by date; those of one date and version are repeats."""
    (names, where), (versions, codes), (_, machines) = columns.values()
    # Several versions of a date follow each other in the order of their first dates.
    first = np.full(len(versions), len(x))
    by_date = np.argsort(date, kind="stable")
    np.minimum.at(first, codes[by_date], np.arange(len(x)))
    order = np.lexsort((first[codes], date, where))
    edges = [*np.flatnonzero(np.diff(where[order], prepend=-1)), len(x)]
    records = []
    for rows in (order[a:b] for a, b in pairwise(edges)):
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (date[rows][1:] != date[rows][:-1]) | (codes[rows][1:] != codes[rows][:-1])
        starts = np.flatnonzero(new)
        value = np.add.reduceat(x[rows], starts) / np.diff(starts, append=len(rows))
        firsts = rows[starts]
        if len(np.unique(machines[rows])) > 1:
            raise InputError(
                f"series {str(names[where[firsts[0]]])!r} was validated on several machines. Use a "
                "separate series for each machine."
            )
        name, machine = str(names[where[firsts[0]]]), int(machines[firsts[0]])
        records.append((name, machine, versions[codes[firsts]], date[firsts], value))
    if not records:
        return []
    lengths = [len(value) for *_, value in records]
    steps = steps_in(
        np.concatenate([value for *_, value in records]),
        np.ones(sum(lengths)),
        np.append(0, np.cumsum(lengths)),
        np.zeros(len(records)),
        # The position in the order of dates takes the place of the version.
        [str(place) for place in range(max(lengths))],
        np.concatenate([np.arange(n) for n in lengths]),
        alpha,
    )
    return [Series(*record, own) for record, own in zip(records, steps, strict=True)]


def pairs_of(all_series: list[Series]) -> Pairs:
    """Successive validations of one version, in standard deviations of their difference."""
    rows: list[tuple[int, int, Any, Any, float]] = []
    for i, series in enumerate(all_series):
        if series.steps.sd is None:
            continue
        noise = math.sqrt(2) * max(series.steps.sd, np.finfo(float).tiny)
        for version in np.unique(series.version):
            at = np.flatnonzero(series.version == version)
            for a, b in pairwise(at):
                moved = (series.value[b] - series.value[a]) / noise
                rows.append((i, series.machine, series.date[a], series.date[b], float(moved)))
    columns = [np.array([row[k] for row in rows]) for k in range(5)]
    return Pairs(*columns)


def same_version(series: Series, step: Step, *, whole: bool) -> SameVersion | None:
    """Compare the versions validated on both sides of a step, up to the next steps or anywhere."""
    places = [0, *(other.at for other in series.steps.steps), len(series.value)]
    i = places.index(step.at)
    start, end = (0, len(series.value)) if whole else (places[i - 1], places[i + 1])
    before, after = series.version[start : step.at], series.version[step.at : end]
    moved, precision = [], []
    for version in np.intersect1d(before, after):
        old = series.value[start : step.at][before == version]
        new = series.value[step.at : end][after == version]
        moved.append(new.mean() - old.mean())
        precision.append(1 / (1 / len(old) + 1 / len(new)))
    if not moved:
        return None
    mean = float(np.average(moved, weights=precision))
    sd, df = _noise(series)
    half = float(special.stdtrit(df, (1 + _LEVEL) / 2)) * sd / math.sqrt(sum(precision))
    return SameVersion(mean, mean - half, mean + half, len(moved))


def _noise(series: Series) -> tuple[float, float]:
    """Return the standard deviation of one value and its degrees of freedom.

    The scatter is that around versions between two steps, because an old version that runs again
    among new ones is not noise. With too few validations per version, it is that around the levels.
    """
    segment = np.searchsorted(
        [step.at for step in series.steps.steps], np.arange(len(series.value)), "right"
    )
    _, version = np.unique(series.version, return_inverse=True)
    _, cell = np.unique(segment * len(series.value) + version, return_inverse=True)
    count = np.bincount(cell)
    df = len(series.value) - len(count)
    if df < _ENOUGH_DF:
        return series.steps.sd or 0.0, series.steps.df
    left = series.value - (np.bincount(cell, series.value) / count)[cell]
    return math.sqrt(float(left @ left) / df), float(df)


class OtherSeries(NamedTuple):
    """Other series of the machine with a version validated around a step, and across it."""

    near: int
    moved: int
    across: int


class Witnesses:
    """The other series of the machines; results are stored, as many steps share a span of dates."""

    def __init__(self, all_series: list[Series]) -> None:
        self._pairs = pairs_of(all_series)
        self._known: dict[tuple[Any, ...], list[set[int]]] = {}

    def own(self, i: int) -> Floats:
        """Return the changes of versions of one series from one validation to the next."""
        first, last = np.searchsorted(self._pairs.series, [i, i + 1])
        moved: Floats = self._pairs.moved[first:last]
        return moved

    def others(self, i: int, series: Series, step: Step) -> OtherSeries:
        """Count the other series around a step."""
        since, until = series.date[step.at_low - 1], series.date[step.at_high]
        key = (series.machine, since, until)
        if key not in self._known:
            self._known[key] = self._around(*key)
        return OtherSeries(*(len(some) - int(i in some) for some in self._known[key]))

    def _around(self, machine: int, since: Any, until: Any) -> list[set[int]]:
        """Return the series with a version validated around these dates, changed, and across."""
        pairs = self._pairs
        if not len(pairs.series):
            return [set(), set(), set()]
        near = pairs.machine == machine
        near &= (pairs.since < until) & (pairs.until > since)
        moved = near & (np.abs(pairs.moved) > MOVED)
        across = near & (pairs.since <= since) & (pairs.until >= until)
        return [set(pairs.series[which].tolist()) for which in (near, moved, across)]


Floats = NDArray[Any]
#: Causes of a change of the error.
Verdict = Literal["software", "environment", "cannot be told"]
# Shares of changed re-runs in other series that count as change and as no change; fewest series.
_MOST, _FEW, _ENOUGH = 0.5, 0.1, 3


@dataclass(frozen=True, slots=True)
class Attribution(Document):
    """A step by date of validation in one series, and its cause.

    Attributes
    ----------
    series : str
    verdict : {"software", "environment", ``"cannot be told"``}
    reason : str
        Why, with the numbers.
    step : Step
        Its positions count the validations of the series by date.
    since, until : str
        Dates of the last validation before the step and of the first one after it.
    versions : tuple of str
        Validated at these dates.
    moved, moved_low, moved_high : float or None
        Change of the versions validated on both sides, with a 95 % interval; None without such
        versions.
    n_versions : int
        Number of versions validated on both sides.
    n_elsewhere, n_elsewhere_moved : int
        Number of other series with a version validated on both sides, and how many changed.
    """

    series: str
    verdict: Verdict
    reason: str
    step: Step
    since: str
    until: str
    versions: tuple[str, str]
    moved: float | None
    moved_low: float | None
    moved_high: float | None
    n_versions: Count
    n_elsewhere: Count
    n_elsewhere_moved: Count


def attribute_steps(
    series: ArrayLike,
    version: ArrayLike,
    date: ArrayLike,
    value: ArrayLike,
    *,
    machine: ArrayLike | None = None,
    alpha: float = 0.05,
) -> list[Attribution]:
    """Find the steps of series by date of validation, and attribute each to its cause.

    The first rule that applies decides:

    * **environment**: versions validated on both sides of the step (up to the neighbouring steps)
      changed with it, by at least half of the step and with a 95 % interval that excludes 0;
    * **software**: these versions did not change (their interval ends below half of the step); or
      there are none, but versions validated before and again after further steps did not change;
    * environment: at least half of three or more other series of the machine changed under one
      version, by 3 standard deviations of a difference, between two successive validations that
      overlap the possible dates of the step;
    * undetermined (``"cannot be told"``): the step may lie between two validations of one version;
    * software: at most a tenth of such series changed, and either three or more series have a
      version validated across the whole step, or three or more re-runs of the series itself at
      other dates all stayed within 3 standard deviations;
    * undetermined otherwise.

    Valid if re-runs are made like the validations of new versions. Misleads if the measuring script
    changed together with the version, and if the machine changed for one product only. A verdict
    "software" that relies on other series or other dates is only likely; the reason says so.

    In the H2O db-benchmark, pandas 1.0.3 takes twice as long in one query on 2020-05-19 as on
    2020-03-22. Of 44 steps of pandas in that time, 32 are attributed to the environment, none to
    pandas, and 12 are undetermined (8 of these queries had no validation in the year before). All
    49 steps of dask from 2020-06-09 to 06-21 are attributed to the environment. In simulations (2 %
    noise, steps of 12 %, versions validated two or three times, old ones again at the end), 97 % of
    the software steps and 94 % of the environment steps are attributed correctly, and 1 % of each
    wrongly.

    Parameters
    ----------
    series, version : array_like of names, shape (n,)
        Unit of observation, and version, of each validation.
    date : array_like of datetime64, dates or numbers, shape (n,)
        Date of each validation.
    value : array_like, shape (n,)
        Log error or log time. Values of one series, date and version are averaged.
    machine : array_like of names, shape (n,), optional
        Series with the same name share an environment; by default all do. Constant within a series.
    alpha : float
        False-alarm rate per series without a step, see `find_steps`.

    Returns
    -------
    list of Attribution
        One for each step, series by series in the order of their names.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, or a date is missing.

    Examples
    --------
    >>> version = ["1.0", "1.0", "1.1", "1.1", "1.1", "1.1", "1.2", "1.2"]
    >>> seconds = [0.209, 0.211, 0.208, 0.210, 0.457, 0.462, 0.459, 0.455]
    >>> days = np.arange("2020-03-01", "2020-03-09", dtype="M8[D]")
    >>> (attribution,) = attribute_steps(["sum"] * 8, version, days, np.log(seconds))
    >>> attribution.verdict, attribution.since, attribution.until
    ('environment', '2020-03-04', '2020-03-05')
    >>> attribution.reason
    "versions validated before and after the step changed by 101 % of the step's size"
    """
    x = vector(value, "value")
    given = {"series": series, "version": version, "machine": machine}
    given["machine"] = np.zeros(len(x)) if machine is None else machine
    when, columns = _dates(date), {name: np.asarray(column) for name, column in given.items()}
    for name, column in {**columns, "date": when}.items():
        if column.shape != x.shape:
            raise InputError(
                f"{name} must have {len(x)} entries, one per value, got shape {column.shape}."
            )
    codes = {name: np.unique(column, return_inverse=True) for name, column in columns.items()}
    all_series = by_series(codes, when, x, alpha)
    witnesses = Witnesses(all_series)
    return [
        _attributed(member, i, step, witnesses)
        for i, member in enumerate(all_series)
        for step in member.steps.steps
    ]


def attribute_steps_of(
    history: History, *, machine: str | None = None, alpha: float = 0.05
) -> list[Attribution]:
    """Find the steps of a history by date of validation, and attribute each to its cause.

    The errors of the history go through `attribute_steps`.

    Parameters
    ----------
    history : History
        With a date for every validation. Include all series of a machine: those of other products
        are evidence, too.
    machine : str, optional
        Column that names the machine (or another shared environment). By default all series share
        one.
    alpha : float
        False-alarm rate per series without a step.

    Returns
    -------
    list of Attribution

    Raises
    ------
    InputError
        A date is missing, or there is no such column.

    Examples
    --------
    >>> from errcomp.tables import History
    >>> history = History(
    ...     {
    ...         "series": ["sum"] * 8,
    ...         "version": ["1.0", "1.0", "1.1", "1.1", "1.1", "1.1", "1.2", "1.2"],
    ...         "date": [f"2020-03-0{day}" for day in range(1, 9)],
    ...         "measured": [0.209, 0.211, 0.208, 0.210, 0.457, 0.462, 0.459, 0.455],
    ...     }
    ... )
    >>> (attribution,) = attribute_steps_of(history)
    >>> attribution.verdict, round(attribution.step.size, 2)  # slower, so the error falls
    ('environment', -0.78)
    """
    rows, error = _occasions(history)
    names = np.asarray(history.series_names, dtype=object)[history.series[rows]]
    versions = np.asarray(history.versions, dtype=object)[history.version[rows]]
    return attribute_steps(
        names.astype(str),
        versions.astype(str),
        history.date[rows],
        error,
        machine=None if machine is None else history.codes(machine)[rows],
        alpha=alpha,
    )


def _occasions(history: History) -> tuple[NDArray[np.int64], Floats]:
    """Return rows and their errors, averaged by occasion if occasions differ in size."""
    error, n = history.error(), history.behind.n
    if (n == 1).all():
        return np.arange(history.n), error
    where = np.stack([history.series, history.version, history.date.view(np.int64)])
    _, first, code = np.unique(where, axis=1, return_index=True, return_inverse=True)
    means = np.bincount(code.ravel(), n * error) / np.bincount(code.ravel(), n)
    order = np.argsort(first)
    return first[order], means[order]


def _dates(date: ArrayLike) -> NDArray[Any]:
    when = np.asarray(date)
    if when.dtype.kind in "OU":
        try:
            when = when.astype("M8[s]")
        except ValueError as error:
            raise InputError(f"date must contain dates or numbers: {error}.") from None
    elif when.dtype.kind != "M":
        return vector(when, "date")
    missing = np.flatnonzero(np.isnat(when))
    if len(missing):
        where = describe_rows(missing.tolist())
        raise InputError(f"date is missing in {where}. Add it: steps by date need all dates.")
    return when


def _attributed(series: Series, i: int, step: Step, witnesses: Witnesses) -> Attribution:
    same = same_version(series, step, whole=False)
    others = witnesses.others(i, series, step)
    verdict, reason = _verdict(series, step, same, others, witnesses.own(i))
    before, after = step.at - 1, step.at
    return Attribution(
        series=series.name,
        verdict=verdict,
        reason=reason,
        step=step,
        since=_written(series.date[before]),
        until=_written(series.date[after]),
        versions=(str(series.version[before]), str(series.version[after])),
        moved=same and same.moved,
        moved_low=same and same.low,
        moved_high=same and same.high,
        n_versions=same.versions if same else 0,
        n_elsewhere=others.near,
        n_elsewhere_moved=others.moved,
    )


def _written(date: Any) -> str:
    """Write a date, with a time of day only if it has one."""
    if isinstance(date, np.datetime64):
        day = date.astype("M8[D]")
        return str(day if day == date else date)
    return str(date)


def _verdict(
    series: Series, step: Step, same: SameVersion | None, others: OtherSeries, own: Floats
) -> tuple[Verdict, str]:
    """Weigh the evidence: first the series itself, then others of the machine."""
    text = ""
    if same is not None:
        share, low, high = same.of(step)
        text = (
            f"versions validated before and after the step changed by {100 * share:.0f} % of the "
            "step's size"
        )
        if low > 0 and share >= _MOST:
            return "environment", text
        if high < _MOST:
            return "software", text
        text += ", but this share is too uncertain to decide"
    later = same_version(series, step, whole=True)
    if same is None and later is not None and later.of(step)[2] < _MOST:
        # A change would prove nothing, because other steps lie between.
        share = later.of(step)[0]
        return "software", (
            f"versions validated again much later changed by {100 * share:.0f} % of the step's size"
        )
    witnesses = (
        f"{others.moved} of {others.near} other series changed although their version did not"
    )
    if others.near >= _ENOUGH and others.moved >= _MOST * others.near:
        return "environment", witnesses
    if text:
        return "cannot be told", text
    places = range(step.at_low, step.at_high + 1)
    if any(series.version[k - 1] == series.version[k] for k in places):
        return "cannot be told", "the step may lie between two validations of one version"
    calm = others.moved <= _FEW * others.near
    if others.across >= _ENOUGH and calm:
        return "software", (
            f"{witnesses}; {others.across} of these {others.near} series were validated both "
            "before and after the step"
        )
    if calm and len(own) >= _ENOUGH and not (np.abs(own) > MOVED).any():
        return "software", (
            f"{len(own)} repeated validations of a version on other dates show no change"
        )
    return "cannot be told", "no version was validated both before and after the step"
