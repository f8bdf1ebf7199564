"""Metrics of a table with intervals, by any keys: pooled over pairs and macro over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, overload

import numpy as np

from errcomp.codec import (
    Count,
    Coverage,
    Document,
    Field,
    GroupKeys,
    Names,
    Part,
    Undefined,
    plain_keys,
    shape_of,
)
from errcomp.datasets.inputs import pairs_from
from errcomp.errors import InputError, NotDefinedError
from errcomp.metrics._registry import FIGURES, figure
from errcomp.metrics.intervals import check_options, estimate_of
from errcomp.metrics.intervals._kinds import Request
from errcomp.metrics.intervals.dependence import cluster_keys, copies_of, dependence
from errcomp.report.shown import Shown
from errcomp.results import Dropped, Estimate, why_none
from errcomp.system.processes import map_jobs
from errcomp.tables import Pairs, check_keys
from errcomp.tables.frames import frame_from_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.metrics.sums.intervals import FigureColumn
    from errcomp.report.model import Report
    from errcomp.tables import Missing, Zeros
    from errcomp.tables.engine.pairs import PairRows, PairTotals
    from errcomp.tables.sums import Totals

__all__ = ["DEFAULT_FIGURES", "Summary", "SummaryRow", "summarize"]

_TEXT, _NAMES = shape_of(str), shape_of(Mapping[str, str])

#: Metrics that are computed by default.
DEFAULT_FIGURES = ("mape", "median_ape", "gmape", "wape", "bias", "max_ape")
#: The same for rows that stay in an engine, which has no exact median of many groups.
FIGURES_AT_SCALE = ("mape", "median_ape_approx", "gmape", "wape", "bias", "max_ape")


class _Units(Part):
    """The metrics and their units."""

    def write(self, summary: Summary) -> Mapping[str, Any]:
        return {"units": {name: one.unit for name, one in summary.figures.items()}}

    def read(self, field: Field) -> Mapping[str, Any]:
        for name in _NAMES.read(field.at("units")):
            if name not in FIGURES:
                raise InputError(f"units has no figure {name!r}. Figures: {', '.join(FIGURES)}")
        return {}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return {"units": _NAMES.schema(names)}


class _Figures(Part):
    """Each metric with its interval, and the reason if it has no value or no valid interval."""

    def write(self, row: SummaryRow) -> Mapping[str, Any]:
        columns: dict[str, Any] = {}
        for name, estimate in row.figures.items():
            columns |= estimate.to_row(name)
            if why_none(estimate.value, estimate.low, estimate.method):
                columns[f"{name}_reason"] = estimate.method
        return plain_keys(columns)

    def read(self, field: Field) -> Mapping[str, Any]:
        n, level, units = field.at("n").value, field.document["level"], field.document["units"]
        figures = {}
        for name, unit in units.items():
            reason = f"{name}_reason"
            missing = field.at(name).value is None
            told = missing or (field.at(f"{name}_low").value is None and field.has(reason))
            method = _TEXT.read(field.at(reason)) if told else "none"
            known = {"definition": figure(name).definition, "unit": unit, "n": n}
            figures[name] = Estimate.from_row(field, name, level=level, method=method, **known)
        return {"figures": figures}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return {"*": {"type": ["string", "number", "boolean", "null"]}}


@dataclass(frozen=True, slots=True)
class SummaryRow(Document):
    """The metrics of one group.

    Attributes
    ----------
    key : dict
        Values of the grouping keys; empty for all pairs together.
    n : int
        Pairs in the group.
    figures : mapping of str to Estimate
        One estimate per requested metric.
    """

    KEYS: ClassVar = (GroupKeys(), "n", _Figures())

    key: Mapping[str, Any]
    n: Count
    figures: Mapping[str, Estimate]


class GroupRows(Sequence[SummaryRow]):
    """Rows of a summary stored as columns; a row is created when it is read."""

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
            if figure(one.name).kind != "maximum" and (told := dict(one.reasons())):
                found[f"{one.name}_reason"] = [told.get(i) for i in range(len(self))]
        return found

    def bare(self) -> list[SummaryRow]:
        """Return all rows with values and bounds alone, which take half the time."""
        numbers = [one.bare(self._unit) for one in self.figures]
        names = [one.name for one in self.figures]
        counts, keys = self._totals.n.tolist(), map(self._totals.key, range(len(self)))
        return [
            SummaryRow(key, n, dict(zip(names, row, strict=True)))
            for key, n, row in zip(keys, counts, zip(*numbers, strict=True), strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Summary(Shown, Document):
    """Metrics by group, for all pairs together (pooled) and as the mean over groups (macro).

    Attributes
    ----------
    by : tuple of str
        The grouping keys.
    rows : sequence of SummaryRow
        One row per group.
    pooled : SummaryRow or None
        All pairs together: large groups weigh more. None if the groups are of several tools, whose
        pooled error is meaningless.
    macro : mapping of str to float or None
        Unweighted mean over the groups of each metric: every group weighs the same. None as for
        ``pooled``.
    dropped : tuple of Dropped
        Rows of the table that were not used, with reasons.
    level : float or None
        Nominal coverage of the intervals; None for no intervals.
    source : str
        The table.
    tool : str or None
        The predictor, if the table names one.
    not_used : int
        Pairs of other tools.
    """

    SCHEMA: ClassVar = "errcomp.metrics/1"
    COMMAND: ClassVar = "metrics"
    KEYS: ClassVar = (
        *("source", "tool", "not_used", "by", _Units(), "level", "rows", "pooled", "macro"),
        "dropped",
    )

    by: tuple[str, ...]
    rows: Sequence[SummaryRow]
    pooled: SummaryRow | None
    macro: Mapping[str, Annotated[float, Undefined]] | None
    dropped: tuple[Dropped, ...]
    level: Coverage | None = 0.95
    source: str = ""
    tool: str | None = None
    not_used: Count = 0
    _like: Any = None

    @property
    def figures(self) -> Mapping[str, Estimate]:
        """The metrics of all pairs together, or of the first group if those are missing."""
        return (self.pooled or self.rows[0]).figures

    def _agree(self, field: Field) -> None:
        """Refuse rows without the grouping keys, and means of other metrics."""
        if self.macro is not None and set(self.macro) != set(field.at("units").object()):
            field.at("macro").refuse("the means of exactly the metrics in units")
        for row, place in zip(self.rows, field.at("rows").items(), strict=True):
            for name in set(self.by) - set(row.key):
                place.at(name)

    def view(self) -> Report:
        """Return the report of the summary.

        >>> summarize({"predicted": [11.0], "measured": [10.0]}, figures="mape").view().line
        ['MAPE 10.00 %', 'n=1']
        """
        from errcomp.summary.view import summary_view

        return summary_view(self)

    def to_frame(self) -> Any:
        """Return the rows as a frame of the same library as the input table.

        >>> import polars as pl
        >>> pairs = pl.DataFrame({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
        >>> summarize(pairs, figures="mape").to_frame().select("n", "mape").row(0)
        (2, 0.1)
        """
        if isinstance(self.rows, GroupRows):
            return frame_from_columns(self.rows.columns(), like=self._like)
        rows = [row.to_dict() for row in self.rows]
        names = dict.fromkeys(name for row in rows for name in row)
        return frame_from_columns({k: [r.get(k) for r in rows] for k in names}, like=self._like)


def summarize(
    pairs: Any,
    *,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Missing = "raise",
    by: str | Sequence[str] = (),
    figures: str | Sequence[str] = DEFAULT_FIGURES,
    level: float | None = 0.95,
    method: str = "default",
    cluster: str | Sequence[str] | None = None,
    resamples: int = 9999,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Summary:
    """Compute error metrics with intervals, by any keys.

    Parameters
    ----------
    pairs : path, dataframe, mapping of columns or Pairs
        Predictions and measurements (see `errcomp.tables.Pairs`). Rows of a Polars LazyFrame, a
        DuckDB relation, a Dask or a Spark dataframe are not fetched; only sums over them are.
    predicted, measured, unit, zeros, missing
        How to read the table: see `errcomp.datasets.inputs.pairs_from`.
    by : str or sequence of str
        Keys to group by; ``()`` gives one row. If the table has several tools, its rows are grouped
        by ``tool`` first.
    figures : str or sequence of str
        Names from `errcomp.metrics.FIGURES`.
    level : float, optional
        Nominal coverage of the intervals; None for no intervals.
    method : str
        How intervals are computed; ``"default"`` is the tested choice for each metric. Another
        method must apply to at least one of the metrics.
    cluster : str or sequence of str, optional
        The key whose values share part of their error, or two that cross: whole models or devices
        are then the sample, not single pairs. By default ``model`` and ``device``, if the table has
        them; ``"none"`` takes all pairs as independent.
    resamples, seed : int
        Of a bootstrap, if ``method`` names one. Every group uses the same seed.
    n_jobs : int, optional
        Number of processes for the groups of rows in memory: -1 for one per core. None is one, or
        the setting of a surrounding ``joblib.parallel_config``, e.g. a Dask or Ray cluster. The
        result is the same, to the byte. More than one needs the extra ``jobs``.

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        A key, a metric or the method does not exist; a key has the name of a column of the result;
        level, resamples or seed are out of range; or n_jobs is given for rows that stay in an
        engine, which decides that itself.

    Notes
    -----
    A metric that is not defined for a group (a correlation of one pair, a log-ratio of a zero
    prediction) has the value NaN there, and its ``method`` says why. If no interval is valid (two
    models, a key that is missing in some rows), ``method`` says why as well. Exact copies of a pair
    count as one.

    Examples
    --------
    >>> s = summarize({"predicted": [11.0, 90.0, 7.0], "measured": [10.0, 100.0, 10.0],
    ...                "device": ["A", "A", "B"]}, by=["device"], figures=["mape"])
    >>> [(row.key["device"], row.n, round(row.figures["mape"].value, 3)) for row in s.rows]
    [('A', 2, 0.1), ('B', 1, 0.3)]
    >>> round(s.pooled.figures["mape"].value, 3), round(s.macro["mape"], 3)
    (0.167, 0.2)
    """
    table = pairs_from(
        pairs, predicted=predicted, measured=measured, unit=unit, zeros=zeros, missing=missing
    )
    at_scale = bool(table.engine)
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
            f"n_jobs applies only to rows in memory, got n_jobs={n_jobs}: the engine that holds "
            "these rows has its own workers. Leave n_jobs out, or load the table into memory first."
        )
    names = cluster_keys(cluster, table.keys)
    given = cluster is not None
    tools = table.tools
    # Pooled errors of several tools describe none of them.
    if len(tools) > 1 and "tool" not in by:
        by = ("tool", *by)
    if isinstance(table, Pairs):
        found = _of_pairs(table, by, figures, names, ask, given=given, n_jobs=n_jobs)
    else:
        found = _of_sums(table, by, figures, names, ask, given=given)
    if len(tools) > 1:
        return replace(found, pooled=None, macro=None)
    return replace(found, tool=tools[0]) if tools else found


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
    """Compute the metrics of pairs in memory."""
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
    return _summary(table, by, tuple(rows), pooled, macro, ask)


def _of_sums(
    pairs: PairRows | PairTotals,
    by: tuple[str, ...],
    figures: tuple[str, ...],
    clusters: tuple[str, ...],
    ask: Request | None,
    *,
    given: bool,
) -> Summary:
    """Compute the metrics of pairs that stay in an engine."""
    from errcomp.metrics.sums import Errors, sums_for
    from errcomp.metrics.sums.intervals import METHODS, columns_by

    clusters = clusters if ask is not None else ()
    if ask is not None and not (clusters and given) and ask.method not in METHODS:
        raise InputError(
            f"method {ask.method!r} resamples single pairs, but these pairs stay in "
            f"{pairs.engine}. Use one of: {', '.join(METHODS)}. Or name clusters, or load the "
            "table into memory first."
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
    return _summary(pairs, by, rows, whole[0], macro, ask)


def _summary(
    pairs: Pairs | PairRows | PairTotals,
    by: tuple[str, ...],
    rows: Sequence[SummaryRow],
    pooled: SummaryRow,
    macro: Mapping[str, float],
    ask: Request | None,
) -> Summary:
    return Summary(
        by,
        rows,
        pooled,
        macro,
        pairs.dropped,
        level=None if ask is None else ask.level,
        source=pairs.source,
        _like=pairs.native,
    )


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
        # Arrays have no unit; the table does.
        return replace(found, unit=group.unit or "measured") if found.unit == "measured" else found
    except NotDefinedError as error:
        return _undefined(name, error, len(group.predicted))


def _alone(name: str, group: _Group) -> Estimate:
    """Compute a metric without an interval."""
    spec = figure(name)
    n = len(group.predicted)
    try:
        value = spec.function(predicted=group.predicted, measured=group.measured)
    except InputError as error:  # the pairs are valid, so the metric is not defined
        return _undefined(name, error, n)
    unit = group.unit or "measured" if spec.unit == "measured" else spec.unit
    text = "no interval was requested"
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
