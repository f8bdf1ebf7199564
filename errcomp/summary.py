"""Figures of a table, with intervals, by any keys; pooled over all pairs and macro over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from errcomp._frames import frame_from_columns, in_engine
from errcomp._jobs import map_jobs
from errcomp._showing import Shown
from errcomp.errors import InputError, NotDefinedError
from errcomp.metrics._registry import figure
from errcomp.metrics.intervals import check_options, estimate
from errcomp.metrics.intervals._kinds import Request
from errcomp.results import Dropped, Estimate
from errcomp.scale.pair_totals import PairTotals
from errcomp.scale.pairs import PairRows
from errcomp.tables import Pairs, check_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

        A figure that has no value here has a ``<figure>_reason`` as well.
        """
        row: dict[str, Any] = {**self.key, "n": self.n}
        for name, value in self.figures.items():
            row[name] = None if np.isnan(value.value) else value.value
            row[f"{name}_low"], row[f"{name}_high"] = value.low, value.high
            if np.isnan(value.value):
                row[f"{name}_reason"] = value.method
        return row


@runtime_checkable
class InColumns(Protocol):
    """Rows kept as columns, which make a frame without making each row."""

    def columns(self) -> Mapping[str, Any]:
        """Return the columns of all rows."""


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        shown = self.pooled.figures
        return {
            "by": list(self.by),
            "units": {name: one.unit for name, one in shown.items()},
            "level": next((one.level for one in shown.values() if one.level is not None), None),
            "rows": [row.to_dict() for row in self.rows],
            "pooled": self.pooled.to_dict(),
            "macro": {k: None if np.isnan(v) else v for k, v in self.macro.items()},
            "dropped": [d.to_dict() for d in self.dropped],
        }

    def to_frame(self) -> Any:
        """Return the rows as a frame of the same library as the table that went in."""
        if isinstance(self.rows, InColumns):
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
        Resample whole clusters of this key (several keys: nested, outermost first) instead of
        single pairs, e.g. ``"model"`` when the configurations of one model share their error.
    resamples, seed : int
        Of the bootstrap. Every group uses the same seed.
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
    prediction) has the value NaN there, and its ``method`` says why; so has one whose clusters
    are missing in some rows.

    Examples
    --------
    >>> s = summarize({"predicted": [11.0, 90.0, 7.0], "measured": [10.0, 100.0, 10.0],
    ...                "device": ["A", "A", "B"]}, by=["device"], figures=["mape"])
    >>> [(row.key["device"], row.n, round(row.figures["mape"].value, 3)) for row in s.rows]
    [('A', 2, 0.1), ('B', 1, 0.3)]
    >>> round(s.pooled.figures["mape"].value, 3), round(s.macro["mape"], 3)
    (0.167, 0.2)
    """
    at_scale = isinstance(pairs, PairRows | PairTotals) or (
        not isinstance(pairs, Pairs) and in_engine(pairs)
    )
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
    names = (cluster,) if isinstance(cluster, str) else tuple(cluster or ())
    ask = None if level is None else Request(method, level, resamples, seed, None)
    if at_scale:
        from errcomp.scale.summary import summarize_rows

        if n_jobs not in (None, 1):
            raise InputError(
                f"n_jobs is for rows in memory, got n_jobs={n_jobs}: the engine that holds these "
                "rows decides how many work on them. Leave it out, or collect the table first."
            )
        stays = pairs if isinstance(pairs, PairRows | PairTotals) else PairRows(pairs)
        return summarize_rows(stays, by=by, figures=figures, clusters=names, ask=ask)
    table = pairs if isinstance(pairs, Pairs) else Pairs(pairs)
    clusters = [table.column(name) for name in names]
    groups = [(g.key, g.index) for g in table.groups(by)]
    if by:
        groups.append(({}, np.arange(table.n)))
    work = (
        _Group(
            key,
            table.predicted[index],
            table.measured[index],
            table.unit,
            tuple(labels[index] for labels in clusters),
        )
        for key, index in groups
    )
    rows = list(map_jobs(partial(_row, figures=figures, ask=ask), work, n_jobs=n_jobs))
    pooled = rows.pop() if by else rows[0]
    macro = {n: float(np.mean([r.figures[n].value for r in rows])) for n in figures}
    return Summary(by, tuple(rows), pooled, macro, table.dropped, table.native)


@dataclass(frozen=True, slots=True)
class _Group:
    """The pairs of one group."""

    key: Mapping[str, Any]
    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    unit: str | None
    clusters: tuple[NDArray[Any], ...]


def _row(group: _Group, *, figures: Sequence[str], ask: Request | None) -> SummaryRow:
    estimates = {name: _one(name, group, ask) for name in figures}
    return SummaryRow(group.key, len(group.predicted), estimates)


def _one(name: str, group: _Group, ask: Request | None) -> Estimate:
    if ask is None:
        return _alone(name, group)
    try:
        found = estimate(
            name,
            predicted=group.predicted,
            measured=group.measured,
            level=ask.level,
            method=ask.method,
            clusters=list(group.clusters) or None,
            resamples=ask.resamples,
            seed=ask.seed,
        )
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
