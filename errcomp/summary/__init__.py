"""Figures of a table, with intervals, by any keys; pooled over all pairs and macro over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from errcomp.errors import InputError, NotDefinedError
from errcomp.metrics._registry import figure
from errcomp.metrics.intervals import check_options, estimate_of
from errcomp.metrics.intervals._kinds import Request
from errcomp.metrics.intervals.dependence import cluster_keys, copies_of, dependence
from errcomp.report.shown import Shown
from errcomp.results import Dropped, Estimate, why_none
from errcomp.system.processes import map_jobs
from errcomp.tables import Pairs, check_keys
from errcomp.tables.backends import pairs_of, stays
from errcomp.tables.frames import frame_from_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.metrics.sums.intervals import FigureColumn
    from errcomp.report.model import Report
    from errcomp.tables.engine.pairs import PairRows, PairTotals
    from errcomp.tables.sums import Totals

__all__ = ["DEFAULT_FIGURES", "Summary", "SummaryRow", "summarize"]

#: Figures computed where none are named.
DEFAULT_FIGURES = ("mape", "median_ape", "gmape", "wape", "bias", "max_ape")
#: The same of rows that stay in an engine, which has no exact median of many groups.
FIGURES_AT_SCALE = ("mape", "median_ape_approx", "gmape", "wape", "bias", "max_ape")


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The figures of one group.

    Attributes
    ----------
    key : dict
        Values of the grouping keys; empty for all pairs together.
    n : int
        Pairs in the group.
    figures : mapping of str to Estimate
        One estimate for each figure asked for.
    """

    key: Mapping[str, Any]
    n: int
    figures: Mapping[str, Estimate]

    def to_dict(self) -> dict[str, Any]:
        """Return one flat row: keys, n, and for each figure its value and interval bounds.

        A figure that has no value, or no valid interval here, has a ``<figure>_reason`` as well.
        """
        row: dict[str, Any] = {**self.key, "n": self.n}
        for name, value in self.figures.items():
            row[name] = None if np.isnan(value.value) else value.value
            row[f"{name}_low"], row[f"{name}_high"] = value.low, value.high
            if why_none(value.value, value.low, value.method):
                row[f"{name}_reason"] = value.method
        return row


class GroupRows(Sequence[SummaryRow]):
    """Rows of a summary kept as columns; a row is made when it is looked at."""

    def __init__(self, totals: Totals, figures: Sequence[FigureColumn], unit: str | None) -> None:
        self._totals, self.figures, self._unit = totals, tuple(figures), unit

    def __len__(self) -> int:
        return len(self._totals)

    @overload
    def __getitem__(self, index: int) -> SummaryRow: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[SummaryRow, ...]: ...

    def __getitem__(self, index: int | slice) -> SummaryRow | tuple[SummaryRow, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        i = range(len(self))[index]
        n = int(self._totals.n[i])
        found = {one.name: one.estimate(i, n, self._unit) for one in self.figures}
        return SummaryRow(self._totals.key(i), n, found)

    def columns(self) -> dict[str, Any]:
        """Return the columns of `SummaryRow.to_dict` for all rows at once; NaN is missing."""
        found: dict[str, Any] = {**self._totals.keys, "n": self._totals.n}
        for one in self.figures:
            parts = {"": one.value, "_low": one.low, "_high": one.high}
            found.update({f"{one.name}{end}": column for end, column in parts.items()})
            if figure(one.name).kind == "maximum":
                continue
            reasons: list[str | None] = [None] * len(self)
            for i in np.flatnonzero(np.isnan(one.low)).tolist():
                method = one.say(i).method
                if why_none(float(one.value[i]), None, method):
                    reasons[i] = method
            if any(reasons):
                found[f"{one.name}_reason"] = reasons
        return found


@dataclass(frozen=True, slots=True)
class Summary(Shown):
    """Figures by group, for all pairs together (pooled) and as the mean over groups (macro).

    Attributes
    ----------
    by : tuple of str
        The grouping keys.
    rows : sequence of SummaryRow
        One for each group.
    pooled : SummaryRow
        All pairs together: large groups weigh more.
    macro : mapping of str to float
        Unweighted mean over the groups of each group figure: every group weighs the same.
    dropped : tuple of Dropped
        Rows of the table that were not used, with reasons.
    """

    by: tuple[str, ...]
    rows: Sequence[SummaryRow]
    pooled: SummaryRow
    macro: Mapping[str, float]
    dropped: tuple[Dropped, ...]
    _like: Any = None

    def view(self, **shown: Any) -> Report:
        """Return what people see of it; the options are those of `summary_view`."""
        from errcomp.summary.view import summary_view

        return summary_view(self, **shown)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        shown = self.pooled.figures
        every = (one for row in (self.pooled, *self.rows) for one in row.figures.values())
        return {
            "by": list(self.by),
            "units": {name: one.unit for name, one in shown.items()},
            "level": next((one.level for one in every if one.level is not None), None),
            "rows": [row.to_dict() for row in self.rows],
            "pooled": self.pooled.to_dict(),
            "macro": {k: None if np.isnan(v) else v for k, v in self.macro.items()},
            "dropped": [d.to_dict() for d in self.dropped],
        }

    def to_frame(self) -> Any:
        """Return the rows as a frame of the same library as the table that went in."""
        if isinstance(self.rows, GroupRows):
            return frame_from_columns(self.rows.columns(), like=self._like)
        rows = [row.to_dict() for row in self.rows]
        names = dict.fromkeys(name for row in rows for name in row)
        return frame_from_columns({k: [r.get(k) for r in rows] for k in names}, like=self._like)


def summarize(
    pairs: Any,
    *,
    by: str | Sequence[str] = (),
    figures: str | Sequence[str] = DEFAULT_FIGURES,
    level: float | None = 0.95,
    method: str = "default",
    cluster: str | Sequence[str] | None = None,
    resamples: int = 9999,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Summary:
    """Compute error figures with intervals, by any keys.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
        Predictions and measurements (see `errcomp.tables.Pairs`). Rows of a Polars LazyFrame, a
        DuckDB relation, a Dask or a Spark dataframe are not fetched: only sums over them are.
    by : str or sequence of str
        Keys to group by; none gives one row.
    figures : str or sequence of str
        Names from `errcomp.metrics.FIGURES`.
    level : float, optional
        Nominal coverage of the intervals; None for figures without intervals.
    method : str
        How intervals are made; ``"default"`` is the tested choice for each figure. Another must
        be for at least one of the figures.
    cluster : str or sequence of str, optional
        The key whose values share part of their error, or two that cross: whole models or devices
        are then drawn, not single pairs. By default those of ``model`` and ``device`` that the
        table has; ``"none"`` takes all pairs as independent.
    resamples, seed : int
        Of a bootstrap, if ``method`` names one. Every group uses the same seed.
    n_jobs : int, optional
        How many processes compute the groups of rows in memory: -1 for one per core, None for one
        or what a surrounding ``joblib.parallel_config`` says, e.g. a Dask or Ray cluster. The
        result is the same, to the byte. More than one needs the extra ``jobs``.

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        A key, a figure or the method does not exist, a key has the name of a column of the result,
        or level, resamples or seed are out of range; or n_jobs is for rows that stay in their
        engine, which decides that itself.

    Notes
    -----
    A figure that is not defined for a group (a correlation of one pair, a log ratio of a zero
    prediction) has the value NaN there, and its ``method`` says why. Where no interval is valid
    (two models, a key that is missing in some rows), ``method`` says why as well. Exact copies of a
    pair count as one.

    Examples
    --------
    >>> s = summarize({"predicted": [11.0, 90.0, 7.0], "measured": [10.0, 100.0, 10.0],
    ...                "device": ["A", "A", "B"]}, by=["device"], figures=["mape"])
    >>> [(row.key["device"], row.n, round(row.figures["mape"].value, 3)) for row in s.rows]
    [('A', 2, 0.1), ('B', 1, 0.3)]
    >>> round(s.pooled.figures["mape"].value, 3), round(s.macro["mape"], 3)
    (0.167, 0.2)
    """
    at_scale = stays(pairs)
    if at_scale and figures is DEFAULT_FIGURES:
        figures = FIGURES_AT_SCALE
    figures = (figures,) if isinstance(figures, str) else tuple(figures)
    check_options(
        figures,
        level=0.95 if level is None else level,
        method=method,
        resamples=resamples,
        seed=seed,
    )
    suffixes = ("", "_low", "_high", "_reason")
    by = check_keys(by, ["n", *(name + suffix for name in figures for suffix in suffixes)])
    ask = None if level is None else Request(method, level, resamples, seed)
    if at_scale and n_jobs not in (None, 1):
        raise InputError(
            f"n_jobs is for rows in memory, got n_jobs={n_jobs}: the engine that holds these "
            "rows decides how many work on them. Leave it out, or collect the table first."
        )
    table = pairs_of(pairs)
    names = cluster_keys(cluster, table.keys)
    given = cluster is not None
    if isinstance(table, Pairs):
        return _of_pairs(table, by, figures, names, ask, given=given, n_jobs=n_jobs)
    return _of_sums(table, by, figures, names, ask, given=given)


def _of_pairs(
    table: Pairs,
    by: tuple[str, ...],
    figures: tuple[str, ...],
    clusters: tuple[str, ...],
    ask: Request | None,
    *,
    given: bool,
    n_jobs: int | None,
) -> Summary:
    """Compute the figures of pairs in memory."""
    labels_of = {name: table.column(name) for name in clusters}
    copies = None
    if ask is not None:
        copies = copies_of([table.predicted, table.measured], table.keys, table.column)
    groups = [(g.key, g.index) for g in table.groups(by)]
    if by:
        groups.append(({}, np.arange(table.n)))
    work = (
        _Group(
            key,
            table.predicted[index],
            table.measured[index],
            table.unit,
            {name: labels[index] for name, labels in labels_of.items()},
            None if copies is None else copies[index],
        )
        for key, index in groups
    )
    row = partial(_row, figures=figures, ask=ask, given=given)
    rows = list(map_jobs(row, work, n_jobs=n_jobs))
    pooled = rows.pop() if by else rows[0]
    macro = {n: float(np.mean([r.figures[n].value for r in rows])) for n in figures}
    return Summary(by, tuple(rows), pooled, macro, table.dropped, table.native)


def _of_sums(
    pairs: PairRows | PairTotals,
    by: tuple[str, ...],
    figures: tuple[str, ...],
    clusters: tuple[str, ...],
    ask: Request | None,
    *,
    given: bool,
) -> Summary:
    """Compute the figures of pairs that stay in an engine."""
    from errcomp.metrics.sums import Errors, sums_for
    from errcomp.metrics.sums.intervals import METHODS, columns_by

    clusters = clusters if ask is not None else ()
    if ask is not None and not (clusters and given) and ask.method not in METHODS:
        raise InputError(
            f"method {ask.method!r} draws single pairs, and these stay in {pairs.engine}. Use one "
            f"of: {', '.join(METHODS)}; name clusters to draw; or collect the table first."
        )
    sums = sums_for(figures, intervals=ask is not None)
    pairs.check_columns((*by, *clusters))
    fine = pairs.totals(list(dict.fromkeys((*by, *clusters))), sums)
    errors = None
    if any(figure(name).kind == "quantile" for name in figures):
        errors = Errors.of(pairs, fine, by, clusters)
    columns = partial(columns_by, figures=figures, clusters=clusters, ask=ask, given=given)
    rows = whole = GroupRows(*columns(by, fine, errors=errors), pairs.unit)
    if by:
        pooled = None if errors is None else errors.pooled()
        whole = GroupRows(*columns((), fine, errors=pooled), pairs.unit)
    macro = {one.name: float(np.mean(one.value)) for one in rows.figures}
    return Summary(by, rows, whole[0], macro, pairs.dropped, pairs.native)


@dataclass(frozen=True, slots=True)
class _Group:
    """The pairs of one group."""

    key: Mapping[str, Any]
    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    unit: str | None
    clusters: Mapping[str, NDArray[Any]]
    copies: NDArray[np.int64] | None


def _row(group: _Group, *, figures: Sequence[str], ask: Request | None, given: bool) -> SummaryRow:
    if ask is not None:
        copies = None if group.copies is None else _renumbered(group.copies)
        ask = ask._replace(drawn=dependence(group.clusters, copies=copies, given=given))
    estimates = {name: _one(name, group, ask) for name in figures}
    return SummaryRow(group.key, len(group.predicted), estimates)


def _renumbered(copies: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Count the different pairs of a group from 0; None if all are different."""
    different, number = np.unique(copies, return_inverse=True)
    return None if len(different) == len(copies) else number.astype(np.int64)


def _one(name: str, group: _Group, ask: Request | None) -> Estimate:
    if ask is None:
        return _alone(name, group)
    try:
        found = estimate_of(name, predicted=group.predicted, measured=group.measured, ask=ask)
        # Arrays know no unit; the table does.
        return replace(found, unit=group.unit or "measured") if found.unit == "measured" else found
    except NotDefinedError as error:
        return _undefined(name, error, len(group.predicted))


def _alone(name: str, group: _Group) -> Estimate:
    """Compute a figure without an interval."""
    spec = figure(name)
    n = len(group.predicted)
    try:
        value = spec.function(predicted=group.predicted, measured=group.measured)
    except InputError as error:  # the pairs were checked: the figure is what they lack
        return _undefined(name, error, n)
    unit = group.unit or "measured" if spec.unit == "measured" else spec.unit
    text = "no interval was asked for"
    return Estimate(name, value, method=text, n=n, unit=unit, definition=spec.definition)


def _undefined(name: str, error: InputError, n: int) -> Estimate:
    spec = figure(name)
    counted = " (rows counted among these pairs)" if "row" in str(error) else ""
    return Estimate(
        name,
        float("nan"),
        method=f"not defined here{counted}: {error}",
        n=n,
        unit=spec.unit,
        definition=spec.definition,
    )
