"""Histories whose rows stay in an engine: the counterpart of `errcomp.tables.History`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.results import Dropped
from errcomp.tables.columns import Origin
from errcomp.tables.engine.groups import Cells, EngineRows, GroupOrigin, group_table
from errcomp.tables.memory.history import OPTIONS, History
from errcomp.tables.memory.history_columns import (
    FAILED,
    MAY_BE_EMPTY,
    NOT_KEYS,
    OCCASION,
    STACK,
    VALUES,
    known_keys,
)
from errcomp.tables.table import Behind

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["HistoryRows"]


class HistoryRows(EngineRows):
    """Validations in an engine, reduced inside it to groups by series, version, stack and day.

    Repeats are combined there: their number, and mean and scatter of their logarithms.
    `errcomp.half_life`, `errcomp.halflife.forecast.forecast_half_life` and
    `errcomp.halflife.panel.panel_of` give the same results as for the same rows in memory, except
    where they need single rows:

    * Copies of a row count as repeats; in memory they are refused.
    * Results carried over from an earlier version are detected only if a group holds a single
      validation or equal ones. A note counts the other groups.
    * Dates count to the day: in UTC, or in the session's time zone where DuckDB or Spark has
      timestamps with a time zone.
    * Columns that neither name a series nor are requested are not read: no note says that repeats
      differ in them.

    Parameters
    ----------
    data : lazy frame
        Polars LazyFrame, DuckDB relation, Dask or Spark dataframe, …; a frame in memory counts as
        an engine too. Columns as in `errcomp.tables.History`; numbers must have a numeric type,
        and a row without ``measured`` is a validation without a result.
    columns, series, order, order_by, unit, source
        As in `errcomp.tables.History`, but ``order_by`` names columns: rows of an engine have no
        order.

    Attributes
    ----------
    native
        The frame that went in.
    engine : str
        The engine's common name.
    dropped : tuple of Dropped
        Failed validations.

    Raises
    ------
    InputError
        Columns are missing or not numeric.
    EngineError
        The engine failed; the message is its own.

    Examples
    --------
    >>> import polars as pl
    >>> from errcomp.halflife.panel import panel_of
    >>> rows = HistoryRows(
    ...     pl.LazyFrame(
    ...         {
    ...             "version": ["1.9", "1.9", "1.10", "1.10"],
    ...             "op": ["Conv"] * 4,
    ...             "measured": [10.0, 10.2, 11.0, 11.1],
    ...         }
    ...     )
    ... )
    >>> found = panel_of(rows)
    >>> rows.engine, found.n_repeats.tolist(), found.panel.error.round(3).tolist()
    ('Polars', [2, 2], [0.0, -0.09])
    """

    def __init__(
        self,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        series: Sequence[str] | None = None,
        order: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        unit: str | None = None,
        source: str = "",
    ) -> None:
        self._series, self._order, self._unit = series, order, unit
        self._order_by = (order_by,) if isinstance(order_by, str) else tuple(order_by or ())
        super().__init__(
            data,
            columns,
            source,
            required=("version", "measured"),
            options=OPTIONS,
            numbers=VALUES,
            failed=FAILED,
        )
        schema = self._rows.schema
        asked = [name for name in schema if name in MAY_BE_EMPTY or name.startswith(STACK)]
        self._empty = self._rows.empty([name for name in asked if name != "status"])

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that have values."""
        return tuple(name for name in self._rows.schema if name not in self._empty)

    def grouped(self, keys: Sequence[str] = ()) -> History:
        """Return a history whose rows are groups of validations.

        Parameters
        ----------
        keys : sequence of str
            Columns that the caller needs.

        Examples
        --------
        >>> import polars as pl
        >>> data = {"version": ["1", "1", "2"], "op": ["Conv"] * 3, "measured": [10.0, 10.0, 9.0]}
        >>> HistoryRows(pl.LazyFrame(data)).grouped().behind.n.tolist()
        [2, 1]
        """
        by, columns = self._group_columns(keys), self.columns
        cells = self._cells(
            "validations",
            [name for name in by if name != "date"],
            bucketed="measured",
            logs=[name for name in ("predicted",) if name in columns],
            spread="measured_spread" if "measured_spread" in columns else None,
            day="date" if "date" in columns else None,
        )
        return _GroupedHistory(cells, self)

    def _group_columns(self, keys: Sequence[str]) -> list[str]:
        """Return the columns to group by."""
        columns = self.columns
        named = list(known_keys(self._series, columns, self.prefix))
        if not named and "series" in columns:
            named = [name for name in ("series", "level", "predictor") if name in columns]
        elif not named:
            other = (*NOT_KEYS, *OCCASION, *self._order_by)
            named = [name for name in columns if name not in other]
        other = ("version", "predictor_version", "released", "date", "n_repeats", "unit")
        stack = [name for name in columns if name.startswith(STACK)]
        able = list(dict.fromkeys(("series", *(n for n in columns if n not in NOT_KEYS))))
        for name in (*keys, *self._order_by):
            if name not in able:
                raise InputError(
                    f"{self.prefix}no column {name!r}. "
                    f"{offer('Columns to group by', able, wanted=str(name))}"
                )
        wanted = dict.fromkeys((*named, *other, *stack, *keys, *self._order_by))
        return [name for name in wanted if name in columns]


class _GroupedHistory(History):
    """A history of groups of rows."""

    def __init__(self, cells: Cells, rows: HistoryRows) -> None:
        measured = cells.logs["measured"]
        logs = {name: log.written() for name, log in cells.logs.items()}
        spread = {} if np.isnan(cells.spread).all() else {"measured_spread": cells.spread}
        # Number the groups: groups that agree in all columns are not duplicates.
        apart = {} if "repeat" in cells.keys else {"repeat": np.arange(len(cells.n))}
        columns = {**cells.keys, **logs, **spread, **apart}
        frame, order = group_table(columns, (*cells.keys, "measured"))
        self._n, self._cell_keys = cells.n[order], list(cells.keys)
        super().__init__(
            frame,
            series=rows._series,
            order=rows._order,
            order_by=rows._order_by,
            unit=rows._unit,
            source=rows.source,
        )
        missing = int(cells.n[measured.missing].sum())
        none = (Dropped("no measurement", missing),) if missing else ()
        self.dropped = (*rows.dropped, *none)
        at = order[self.positions]
        alike = measured.alike[at]
        if "predicted" in cells.logs:
            alike &= cells.logs["predicted"].alike[at]
        self.behind = Behind(cells.n[at], measured.scatter[at], alike)
        self.notes += (
            f"the rows were summed inside {rows.engine}: duplicate validations count as repeats",
        )
        if timed := int(cells.timed[at].sum()):
            self.notes += (
                f"only the day of a validation counts: the time of day of {timed:,} validations is "
                "ignored",
            )

    def _origin(self, frame: nw.DataFrame[Any], source: str, line_offset: int | None) -> Origin:
        return GroupOrigin.of_groups(frame, self._cell_keys, self._n, source)

    def left_out(self, reason: str, mask: NDArray[np.bool_]) -> tuple[Dropped, ...]:
        """Count the validations under a mask that are left out: groups have no row numbers."""
        n = int(self.behind.n[mask].sum())
        return (Dropped(reason, n),) if n else ()
