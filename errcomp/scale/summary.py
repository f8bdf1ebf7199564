"""Grouped figures with intervals from sums over rows that stay in their engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from errcomp.errors import InputError
from errcomp.metrics._registry import figure
from errcomp.metrics.intervals._kinds import SHARES, Request
from errcomp.scale._clusters import drawn_of
from errcomp.scale._columns import FigureColumn, column
from errcomp.scale._errors import Errors
from errcomp.scale._forms import sums_for
from errcomp.scale._totals import Totals
from errcomp.scale.pair_totals import PairTotals
from errcomp.scale.pairs import PairRows
from errcomp.summary import Summary, SummaryRow, why_none

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GroupRows", "summarize_rows"]

#: Intervals that need no more than sums over pairs.
_METHODS = ("default", "log-t", *SHARES, "order-statistics")


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


def summarize_rows(
    pairs: PairRows | PairTotals,
    *,
    by: tuple[str, ...],
    figures: tuple[str, ...],
    clusters: tuple[str, ...],
    ask: Request | None,
    given: bool,
) -> Summary:
    """Compute figures of each group and of all rows together; see `errcomp.summarize`.

    Parameters
    ----------
    pairs : PairRows or PairTotals
    by, figures, clusters : tuple of str
        Keys to group by, figures, and keys that may carry a dependence.
    ask : Request, optional
        How intervals are made; None for none.
    given : bool
        Whether the reader named the clusters.

    Raises
    ------
    InputError
        A figure or method needs every pair in memory, a key does not exist, or a row cannot be
        used.
    """
    clusters = clusters if ask is not None else ()
    drawn = clusters if given else ()
    if ask is not None and not drawn and ask.method not in _METHODS:
        raise InputError(
            f"method {ask.method!r} draws single pairs, and these stay in {pairs.engine}. Use one "
            f"of: {', '.join(_METHODS)}; name clusters to draw; or collect the table first."
        )
    sums = sums_for(figures, intervals=ask is not None)
    pairs.check_columns((*by, *clusters))
    fine = pairs.totals(list(dict.fromkeys((*by, *clusters))), sums)
    errors = None
    if any(figure(name).kind == "quantile" for name in figures):
        errors = Errors.of(pairs, fine, by, clusters)
    rows_of = partial(
        _rows, fine, figures=figures, clusters=clusters, ask=ask, unit=pairs.unit, given=given
    )
    rows = rows_of(by, errors=errors)
    whole = rows
    if by:
        pooled = None if errors is None else errors.pooled()
        whole = rows_of((), errors=pooled)
    macro = {one.name: float(np.mean(one.value)) for one in rows.figures}
    return Summary(by, rows, whole[0], macro, pairs.dropped, pairs.native)


def _rows(
    fine: Totals,
    by: Sequence[str],
    *,
    figures: Sequence[str],
    clusters: tuple[str, ...],
    ask: Request | None,
    errors: Errors | None,
    unit: str | None,
    given: bool,
) -> GroupRows:
    totals = fine.merged(by) if clusters or not by else fine
    parts: list[Totals] = []
    if clusters:
        # A cell that lies in several groups is one where groups are pooled.
        cells = fine.merged(list(dict.fromkeys((*by, *clusters))))
        group, _ = cells.numbered(by)
        starts: NDArray[np.int64] = np.flatnonzero(np.diff(group)) + 1
        parts = [cells.select(index) for index in np.split(np.arange(len(cells)), starts)]
    drawn = [drawn_of(part, clusters, given=given) for part in parts]
    columns = [
        column(
            name,
            totals,
            ask,
            parts=parts,
            drawn=drawn,
            histogram=None if errors is None else errors.whole,
            by_cell=None if errors is None else errors.by_cell,
        )
        for name in figures
    ]
    return GroupRows(totals, columns, unit)
