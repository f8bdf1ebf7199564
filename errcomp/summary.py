"""Figures of a table, with intervals, by any keys; pooled over all pairs and macro over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp._frames import frame_from_columns
from errcomp._showing import Shown
from errcomp.errors import NotDefinedError
from errcomp.metrics._registry import figure
from errcomp.metrics.intervals import check_options, estimate
from errcomp.results import Dropped, Estimate
from errcomp.tables import Pairs, check_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DEFAULT_FIGURES", "Summary", "SummaryRow", "summarize"]

#: Figures computed where none are named.
DEFAULT_FIGURES = ("mape", "median_ape", "gmape", "wape", "bias", "max_ape")


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


@dataclass(frozen=True, slots=True)
class Summary(Shown):
    """Figures by group, for all pairs together (pooled) and as the mean over groups (macro).

    Attributes
    ----------
    by : tuple of str
        The grouping keys.
    rows : tuple of SummaryRow
        One for each group.
    pooled : SummaryRow
        All pairs together: large groups weigh more.
    macro : mapping of str to float
        Unweighted mean over the groups of each group figure: every group weighs the same.
    dropped : tuple of Dropped
        Rows of the table that were not used, with reasons.
    """

    by: tuple[str, ...]
    rows: tuple[SummaryRow, ...]
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
        rows = [row.to_dict() for row in self.rows]
        names = dict.fromkeys(name for row in rows for name in row)
        return frame_from_columns({k: [r.get(k) for r in rows] for k in names}, like=self._like)


def summarize(
    pairs: Any,
    *,
    by: str | Sequence[str] = (),
    figures: str | Sequence[str] = DEFAULT_FIGURES,
    level: float = 0.95,
    method: str = "default",
    cluster: str | Sequence[str] | None = None,
    resamples: int = 9999,
    seed: int = 0,
) -> Summary:
    """Compute error figures with intervals, by any keys.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
        Predictions and measurements (see `errcomp.tables.Pairs`).
    by : str or sequence of str
        Keys to group by; none gives one row.
    figures : str or sequence of str
        Names from `errcomp.metrics.FIGURES`.
    level : float
        Nominal coverage of the intervals.
    method : str
        How intervals are made; ``"default"`` is the tested choice for each figure. Another must
        be for at least one of the figures.
    cluster : str or sequence of str, optional
        Resample whole clusters of this key (several keys: nested, outermost first) instead of
        single pairs, e.g. ``"model"`` when the configurations of one model share their error.
    resamples, seed : int
        Of the bootstrap. Every group uses the same seed.

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        A key, a figure or the method does not exist, a key has the name of a column of the result,
        or level, resamples or seed are out of range.

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
    table = pairs if isinstance(pairs, Pairs) else Pairs(pairs)
    figures = (figures,) if isinstance(figures, str) else tuple(figures)
    check_options(figures, level=level, method=method, resamples=resamples, seed=seed)
    suffixes = ("", "_low", "_high", "_reason")
    by = check_keys(by, ["n", *(name + suffix for name in figures for suffix in suffixes)])
    names = [cluster] if isinstance(cluster, str) else list(cluster or ())
    clusters = [table.column(name) for name in names]

    def row(key: Mapping[str, Any], index: NDArray[np.int64]) -> SummaryRow:
        group = [c[index] for c in clusters]
        estimates = {
            name: _one(name, table, index, level, method, group, resamples, seed)
            for name in figures
        }
        return SummaryRow(key, len(index), estimates)

    rows = tuple(row(g.key, g.index) for g in table.groups(by))
    pooled = rows[0] if not by else row({}, np.arange(table.n))
    macro = {n: float(np.mean([r.figures[n].value for r in rows])) for n in figures}
    return Summary(by, rows, pooled, macro, table.dropped, table.native)


def _one(
    name: str,
    table: Pairs,
    index: NDArray[np.int64],
    level: float,
    method: str,
    clusters: list[NDArray[Any]],
    resamples: int,
    seed: int,
) -> Estimate:
    try:
        found = estimate(
            name,
            predicted=table.predicted[index],
            measured=table.measured[index],
            level=level,
            method=method,
            clusters=clusters or None,
            resamples=resamples,
            seed=seed,
        )
        # Arrays know no unit; the table does.
        return replace(found, unit=table.unit or "measured") if found.unit == "measured" else found
    except NotDefinedError as error:
        spec = figure(name)
        counted = " (rows counted among these pairs)" if "row" in str(error) else ""
        return Estimate(
            name,
            float("nan"),
            method=f"not defined here{counted}: {error}",
            n=len(index),
            unit=spec.unit,
            definition=spec.definition,
        )
