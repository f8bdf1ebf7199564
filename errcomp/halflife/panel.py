"""The panel that estimators of half-life work on, and how a history becomes a panel.

A *series* is one unit of observation (an operator at one shape, a benchmark on one system)
validated under successive versions. Its *error* at a version is log(predicted / measured) of the
frozen prediction, the mean over repeats. Without predictions in the history, the prediction is the
measurement at the series' first version. Its error there is 0, and all changes are changes of the
reference.

The *calibrated error* e0 is the promised error at calibration, on the log scale. A series has
*expired* when its error has doubled: ``|error| >= threshold``. The threshold is 2·e0 if errors
include that of the model, and √3·e0 if they start from 0 (drift and error of the model are
independent, so that √(e0² + drift²) = 2·e0).

From a history to a panel: carried-over results out, repeats averaged, noise known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError, describe_names
from errcomp.halflife.carried_over import carried_over
from errcomp.halflife.noise import NoiseFloor, noise_floor
from errcomp.results import Dropped
from errcomp.tables import History
from errcomp.tables.backends import history_of
from errcomp.tables.engine.history import HistoryRows

__all__ = ["Clock", "HalfLife", "Moved", "Panel", "PanelOf", "moved", "panel_of"]

#: Units of the age of a model.
Clock = Literal["releases", "months"]
DAYS_PER_MONTH = 365.25 / 12


@dataclass(frozen=True, slots=True, eq=False)
class PanelOf:
    """A panel with its noise, and the rows of the history that are not in it.

    Attributes
    ----------
    panel : Panel
    noise : NoiseFloor
        Of all series of the history.
    dropped : tuple of Dropped
        Rows that are not in the panel, with reasons.
    notes : tuple of str
        Remarks for the reader.
    series : ndarray of int, shape (s,)
        Position of each series of the panel among those of the history (see
        ``History.per_series``).
    n_repeats : ndarray of int, shape (n,)
        Validations behind each row of the panel.
    log_measured, log_predicted : ndarray, shape (n,)
        Means over repeats; missing predictions are NaN.
    """

    panel: Panel
    noise: NoiseFloor
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]
    series: NDArray[np.int64]
    n_repeats: NDArray[np.int64]
    log_measured: NDArray[np.float64]
    log_predicted: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Changes since the first version of each series, on the log scale; shape (n,).

    Attributes
    ----------
    reference : ndarray
        log(measured at first / measured now): > 0 if the software became faster (for times).
    predictor : ndarray
        log(predicted now / predicted at first); 0 if the prediction is frozen.

    Notes
    -----
    Their sum is the change of the error since the first version.
    """

    reference: NDArray[np.float64]
    predictor: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> Moved:
        """Return the changes at some of the rows.

        Examples
        --------
        >>> changes = Moved(reference=np.array([0.0, 0.1, 0.2]), predictor=np.zeros(3))
        >>> changes.take(np.array([0, 2])).reference.tolist()
        [0.0, 0.2]
        """
        return Moved(self.reference[rows], self.predictor[rows])


def panel_of(history: History | HistoryRows | Any, *, cluster: str | None = None) -> PanelOf:
    r"""Make a panel of errors from a history.

    Results carried over from an earlier version are left out (see `carried_over`), as are series
    with a single version. Log errors of repeats are averaged within series and version. The
    standard deviation of a row is that of one validation of its series (see `noise_floor`) over the
    root of the number of repeats, or, if dates differ by more than repeats do,

    .. math:: \mathrm{sd}^2 = s^2 \Big(\rho \sum_k (n_k / n)^2 + (1 - \rho) / n\Big)

    with the share ρ of the variance between dates and :math:`n_k` of n repeats on date k.

    If predictions are frozen at the first version, the error of a later one is
    log(measured at first / measured now). It is 0 at the first version, and all later errors share
    the noise of the first measurement. ``sd`` is the noise of each measurement alone. The first row
    holds the noise of the first measurement, although its error is 0: to compare two versions, add
    the variances of both rows.

    Months are counted to the release date if known, otherwise to the first validation. They are
    NaN, with a note, if a version has no date or if dates contradict the order of versions.

    Parameters
    ----------
    history : History, HistoryRows or dataframe
        Rows in an engine stay there: see `errcomp.tables.engine.history.HistoryRows`.
    cluster : str, optional
        Key of series that change together (model, system): series with the same value are one
        cluster. By default each series is a cluster.

    Returns
    -------
    PanelOf

    Raises
    ------
    InputError
        There is a single version, no series was validated under two versions, or a series has
        several clusters.

    Examples
    --------
    >>> from errcomp.tables import History
    >>> history = History(
    ...     {"version": ["1", "1", "2", "2"], "measured": [10.1, 9.9, 8.0, 8.2]}
    ... )
    >>> panel = panel_of(history).panel
    >>> panel.error.round(3).tolist(), panel.sd.round(4).tolist(), panel.noise_df.tolist()
    ([0.0, 0.211], [0.0112, 0.0112], [2.0])
    """
    history = history_of(history, (), cluster)
    prefix = f"{history.source}: " if history.source else ""
    if len(np.unique(history.version)) == 1:
        raise InputError(
            f"{prefix}all validations were made under one version, "
            f"{history.versions[history.version[0]]!r}. Add validations of another version."
        )
    carried = carried_over(history)
    used = history.take(~carried.copy)
    cells, codes = np.unique(used.series * len(used.versions) + used.version, return_inverse=True)
    behind = used.behind.n
    counts = np.bincount(codes, behind)
    series, version = np.divmod(cells, len(used.versions))
    versions_of = np.bincount(series, minlength=used.n_series)
    keep = versions_of[series] > 1
    if not keep.any():
        raise _no_series(history, prefix)
    noise = noise_floor(used)
    log_measured = np.bincount(codes, behind * np.log(used.measured)) / counts
    if used.predicted is None:
        log_predicted = np.full(len(cells), np.nan)
        frozen = log_measured[np.unique(series, return_index=True)[1]]
        error = frozen[series] - log_measured
    else:
        log_predicted = np.bincount(codes, behind * np.log(used.predicted)) / counts
        error = log_predicted - log_measured
    sd = noise.series_sd[series] * np.sqrt(noise.of_means(used, codes))
    kept_series, of_series = np.unique(series[keep], return_inverse=True)
    months, month_notes = _months(history)
    panel = Panel(
        versions=used.versions,
        months=months,
        names=tuple(used.series_names[i] for i in kept_series),
        clusters=_clusters(used, cluster, prefix)[kept_series],
        starts=np.concatenate([[0], np.cumsum(np.bincount(of_series))]),
        version=version[keep],
        error=error[keep],
        sd=sd[keep],
        noise_df=noise.series_df[kept_series],
        frozen_at_first=used.predicted is None,
    )
    alone = used.left_out("their series has only one version", versions_of[used.series] == 1)
    return PanelOf(
        panel=panel,
        noise=noise,
        dropped=(*history.dropped, *carried.dropped, *alone),
        notes=(
            *history.notes,
            *carried.notes,
            *noise.notes,
            *month_notes,
            *_about_versions(panel),
            *_about_stack(used, codes),
        ),
        series=kept_series,
        n_repeats=counts[keep].astype(np.int64),
        log_measured=log_measured[keep],
        log_predicted=log_predicted[keep],
    )


def moved(found: PanelOf) -> Moved:
    """Split the change of the error since the first version into reference and predictor.

    Returns
    -------
    Moved
        One value for each row of the panel.

    Examples
    --------
    >>> from errcomp.tables import History
    >>> history = History(
    ...     {"version": ["1", "2"], "measured": [10.0, 8.0], "predicted": [11.0, 11.0]}
    ... )
    >>> split = moved(panel_of(history))
    >>> split.reference.round(3).tolist(), split.predictor.tolist()
    ([0.0, 0.223], [0.0, 0.0])
    """
    starts = found.panel.starts
    first = np.repeat(starts[:-1], np.diff(starts))
    if found.panel.frozen_at_first:
        predictor = np.zeros(len(first))
    else:
        predictor = found.log_predicted - found.log_predicted[first]
    return Moved(found.log_measured[first] - found.log_measured, predictor)


def _no_series(history: History, prefix: str) -> InputError:
    columns = history.series_columns
    values = {name: len(np.unique(history.codes(name))) for name in columns}
    most = sorted(columns, key=values.__getitem__, reverse=True)[:3]
    shown = ", ".join(f"{name} ({values[name]:,} values)" for name in most)
    named = (
        (f" Series are identified by {len(columns)} columns, including {shown}.") if columns else ""
    )
    rows = int(history.behind.n.sum())
    return InputError(
        f"{prefix}no series was validated under two versions: {history.n_series:,} series in "
        f"{rows:,} rows.{named} Leave out columns that are results, or name the series in a column "
        "'series'."
    )


def _clusters(history: History, cluster: str | None, prefix: str) -> NDArray[np.int64]:
    if cluster is None:
        return np.arange(history.n_series)
    codes = history.codes(cluster)
    clusters = codes[np.unique(history.series, return_index=True)[1]]
    differ = codes != clusters[history.series]
    if differ.any():
        name = history.series_names[history.series[np.argmax(differ)]]
        raise InputError(
            f"{prefix}cannot cluster by {cluster}: series {name!r} has several values of it. Name "
            "a column that has one value per series."
        )
    return clusters


def _months(history: History) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the months of each version since the first, NaN if they are not usable; and why."""
    dates, names = history.version_dates, history.versions
    nothing = np.full(len(names), np.nan)
    without = np.flatnonzero(np.isnat(dates))
    if len(without):
        if len(without) == len(names):
            return nothing, ()
        return nothing, (
            f"no half-lives in months: {len(without)} of {len(names)} versions have no date, "
            f"e.g. {names[without[0]]!r}",
        )
    days = (dates - dates[0]) / np.timedelta64(1, "D")
    back = np.flatnonzero(np.diff(days) < 0)
    if len(back):
        before, after = names[back[0]], names[back[0] + 1]
        return nothing, (
            f"no half-lives in months: {after} comes before {before} by date, but after it in the "
            "order of versions",
        )
    return days / DAYS_PER_MONTH, ()


def products(panel: Panel) -> NDArray[np.int64]:
    """Return the product of each version, shape (m,).

    Versions belong to one product if a chain of series connects them: versions of different
    products are validated in different series.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array(
        (np.ones(len(panel.series)), (panel.series, panel.n_series + panel.version)),
        shape=(panel.n_series + len(panel.versions),) * 2,
    )
    labels = connected_components(links, directed=False)[1]
    return np.asarray(labels[panel.n_series :], dtype=np.int64)


def _about_versions(panel: Panel) -> tuple[str, ...]:
    notes = []
    if unused := len(panel.versions) - len(np.unique(panel.version)):
        notes.append(
            f"no series was validated under {unused} of the {len(panel.versions)} versions; "
            f"{'it still counts as a release' if unused == 1 else 'they still count as releases'}"
        )
    if (groups := len(np.unique(products(panel)[panel.version]))) > 1:
        notes.append(
            f"the series form {groups} groups that share no version. If these are different "
            "products, group by product (by=, --by); otherwise the releases of one product also "
            "count as releases of the others"
        )
    return tuple(notes)


def _about_stack(history: History, codes: NDArray[np.int64]) -> tuple[str, ...]:
    size = int(history.stack.max()) + 1
    if size == 1:
        return ()
    cells = np.unique(codes * size + history.stack) // size
    if several := int((np.bincount(cells) > 1).sum()):
        return (
            f"in {several} case{'s' * (several > 1)} a series was validated under one version with "
            "several stacks or predictor versions: the mean of these validations is used, and "
            "their differences do not count as noise. To make each stack a version, order by it, "
            "e.g. --order-by version,stack_driver",
        )
    return ()


def rows_among(starts: NDArray[Any], which: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows of some of the series, and the new starts of these series."""
    sizes = np.diff(starts)[which]
    new = np.append(0, np.cumsum(sizes))
    return np.repeat(starts[which] - new[:-1], sizes) + np.arange(new[-1]), new


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Errors of many series over versions; one row per series and version.

    Attributes
    ----------
    versions : tuple of str
        In order, shape (m,).
    months : ndarray of float, shape (m,)
        Months of each version since the first one; NaN throughout where versions have no dates.
    names : tuple of str
        Of the series, shape (s,).
    clusters : ndarray of int, shape (s,)
        Cluster of each series. Series of a cluster may change together (the same model, system or
        submitter), and are resampled together. By default each series is a cluster.
    starts : ndarray of int, shape (s + 1,)
        Rows of series i are ``starts[i]:starts[i + 1]``.
    version : ndarray of int, shape (n,)
        Position in ``versions``, strictly increasing within a series. The first row of a series is
        that of its calibration.
    error : ndarray of float, shape (n,)
        log(predicted / measured), mean over repeats. Dimensionless.
    sd : ndarray of float, shape (n,)
        Standard deviation of ``error`` due to measurement noise: that of one repeat over the root
        of the number of repeats. NaN without repeats.
    noise_df : ndarray of float, shape (s,)
        Degrees of freedom of ``sd`` for each series; 0 if unknown, inf if it was given.
    frozen_at_first : bool
        The errors start from 0: predictions are the first measurements.

    Examples
    --------
    >>> panel = Panel(
    ...     versions=("1.0", "1.1"), months=np.array([0.0, 3.0]), names=("Gelu", "Conv"),
    ...     clusters=np.arange(2), starts=np.array([0, 2, 4]), version=np.array([0, 1, 0, 1]),
    ...     error=np.array([0.0, 0.7, 0.0, 0.1]), sd=np.full(4, 0.01), noise_df=np.full(2, 8.0),
    ...     frozen_at_first=True)
    >>> panel.n_series, panel.series.tolist()
    (2, [0, 0, 1, 1])
    """

    versions: tuple[str, ...]
    months: NDArray[Any]
    names: tuple[str, ...]
    clusters: NDArray[Any]
    starts: NDArray[Any]
    version: NDArray[Any]
    error: NDArray[Any]
    sd: NDArray[Any]
    noise_df: NDArray[Any]
    frozen_at_first: bool

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.names)

    @property
    def series(self) -> NDArray[np.int64]:
        """Position of the series of each row, shape (n,)."""
        return np.repeat(np.arange(self.n_series), np.diff(self.starts))

    def rows_of(self, which: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of some of the series, given by position, in that order.

        Examples
        --------
        >>> history = {"version": ["1", "2"] * 2, "op": ["a", "a", "b", "b"], "measured": [1.0] * 4}
        >>> panel_of(history).panel.rows_of(np.array([1])).tolist()
        [2, 3]
        """
        return rows_among(self.starts, which)[0]

    def take(self, which: NDArray[Any]) -> Panel:
        """Return the panel of some of the series, given by position; it keeps all versions.

        Examples
        --------
        >>> history = {"version": ["1", "2"] * 2, "op": ["a", "a", "b", "b"], "measured": [1.0] * 4}
        >>> panel_of(history).panel.take(np.array([1])).n_series
        1
        """
        rows, starts = rows_among(self.starts, which)
        return Panel(
            versions=self.versions,
            months=self.months,
            names=tuple(self.names[i] for i in which.tolist()),
            clusters=self.clusters[which],
            starts=starts,
            version=self.version[rows],
            error=self.error[rows],
            sd=self.sd[rows],
            noise_df=self.noise_df[which],
            frozen_at_first=self.frozen_at_first,
        )

    def reordered(self, order: NDArray[Any]) -> tuple[NDArray[Any], Panel]:
        """Return the rows in another order of versions, and the panel of these; months are lost.

        Parameters
        ----------
        order : ndarray of int, shape (m,)
            New position of each version.

        Examples
        --------
        >>> history = {"version": ["1", "2", "3"], "measured": [1.0, 2.0, 4.0]}
        >>> rows, panel = panel_of(history).panel.reordered(np.array([2, 0, 1]))
        >>> panel.versions, rows.tolist(), panel.error.round(1).tolist()
        (('2', '3', '1'), [1, 2, 0], [-0.7, -1.4, 0.0])
        """
        version = order[self.version]
        rows = np.lexsort((version, self.series))
        back = np.argsort(order)
        return rows, Panel(
            versions=tuple(self.versions[i] for i in back.tolist()),
            months=np.full(len(self.versions), np.nan),
            names=self.names,
            clusters=self.clusters,
            starts=self.starts,
            version=version[rows],
            error=self.error[rows],
            sd=self.sd[rows],
            noise_df=self.noise_df,
            frozen_at_first=self.frozen_at_first,
        )

    def until(self, version: int) -> tuple[NDArray[Any], Panel]:
        """Return the series that a version or one before it has, and their rows until then.

        Parameters
        ----------
        version : int
            Position of the last version.

        Examples
        --------
        >>> history = {"version": ["1", "2", "3"], "measured": [1.0, 2.0, 4.0]}
        >>> series, panel = panel_of(history).panel.until(1)
        >>> panel.versions, series.tolist(), panel.error.round(1).tolist()
        (('1', '2'), [0], [0.0, -0.7])
        """
        rows = self.version <= version
        n = np.bincount(self.series[rows], minlength=self.n_series)
        series = np.flatnonzero(n)
        return series, Panel(
            versions=self.versions[: version + 1],
            months=self.months[: version + 1],
            names=tuple(self.names[i] for i in series.tolist()),
            clusters=self.clusters[series],
            starts=np.append(0, np.cumsum(n[series])),
            version=self.version[rows],
            error=self.error[rows],
            sd=self.sd[rows],
            noise_df=self.noise_df[series],
            frozen_at_first=self.frozen_at_first,
        )

    def times(self, clock: Clock) -> NDArray[Any]:
        """Return the time of each row: the position of its version, or months.

        Examples
        --------
        >>> history = {"version": ["1", "2"], "date": ["2024-01-01", "2024-07-01"],
        ...            "measured": [1.0, 2.0]}
        >>> panel = panel_of(history).panel
        >>> panel.times("releases").tolist(), panel.times("months").round(1).tolist()
        ([0.0, 1.0], [0.0, 6.0])
        """
        return self.version.astype(float) if clock == "releases" else self.months[self.version]


@dataclass(frozen=True, slots=True, eq=False)
class HalfLife:
    """A half-life by one method, or why it was refused.

    Attributes
    ----------
    method : str
        E.g. ``"turnbull"``, ``"weibull"``, ``"variogram"``.
    half_life : float or None
        In ``unit``; None if refused, inf if longer than the record.
    low, high : float or None
        Bounds of its interval; ``high`` is inf if only a lower bound can be given.
    level : float
        Nominal coverage of the interval.
    unit : {"releases", "months"}
    n_series : int
        Number of series it was estimated from.
    censored_share : float
        Share of those series that had not expired when last validated. The methods count
        differently: never beyond the threshold by more than noise explains (methods based on times
        of expiry), never beyond it as measured (``"trajectory"``), or never changed by √3 times
        the calibrated error (``"variogram"``).
    refused : str
        Why ``half_life`` is None; empty otherwise.
    assumptions : tuple of str
        Assumptions of the method, each a sentence.
    details : mapping
        Other results of the method: parameters, score, curve; plain values for JSON.
    """

    method: str
    half_life: float | None
    low: float | None
    high: float | None
    level: float
    unit: Clock
    n_series: int
    censored_share: float
    refused: str = ""
    assumptions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def check_level(level: float) -> None:
    """Raise unless a nominal coverage is between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, e.g. 0.95, got {level!r}.")


def tails(level: float) -> float:
    """Check a level and return the probability outside the interval on each side."""
    check_level(level)
    return (1 - level) / 2


def check_positive(value: float, name: str) -> None:
    """Refuse a value that is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
        raise InputError(f"{name} must be positive and finite, e.g. 0.05 for 5 %, got {value!r}.")


def check_clock(panel: Panel, clock: Clock) -> None:
    """Refuse an unknown clock, and months if versions have no dates."""
    if clock not in ("releases", "months"):
        raise InputError(f'clock must be "releases" or "months", got {clock!r}.')
    if clock == "months" and np.isnan(panel.months).any():
        without = [v for v, m in zip(panel.versions, panel.months, strict=True) if np.isnan(m)]
        raise InputError(
            "months need a date for every version; versions without a date: "
            f'{describe_names(without)}. Give their dates of release, or use clock="releases".'
        )


def check_steps(panel: Panel) -> None:
    """Refuse a panel in which no series has a second version."""
    if not (np.diff(panel.starts) > 1).any():
        raise InputError(
            "no series has two versions. Validate the same series under another version."
        )
