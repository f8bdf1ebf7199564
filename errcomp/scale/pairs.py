"""Pairs whose rows stay in an engine: what `errcomp.tables.Pairs` is for rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.metrics.ranked import BUCKET
from errcomp.results import Dropped
from errcomp.scale._groups import check_numbers, without_failures
from errcomp.scale._quantiles import Histogram
from errcomp.scale._totals import Totals
from errcomp.tables import Zeros
from errcomp.tables.columns import check_zeros, rename
from errcomp.tables.frames import PARTITION, Rows, Sum
from errcomp.tables.pairs import OPTIONS
from errcomp.tables.table import as_options, check_options_occur, meant, tool_called

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["PairRows"]

#: Column that names the file of each row, and how messages call it.
PLACE = "_errcomp_file"
_PLAIN = {PLACE: "file", PARTITION: "partition"}

#: Different values of a column that are looked at, at most.
_MOST = 10_000
_NOT_KEYS = ("predicted", "measured", "status", "unit")
#: Tell whether every row could be used: where a value is missing or a measurement not positive
#: there is no error, and what is not finite makes a sum that is not finite.
_ERRORS, _KNOWN = Sum(("error",)), Sum(("error",), "count")
#: A row that has this has an error as well. Counting once takes a fortieth of a query less.
_IMPLIES = Sum(("log_ratio",), "count")


class PairRows:
    """Rows of pairs in an engine, checked while they are added up.

    Parameters
    ----------
    data : lazy frame
        Polars LazyFrame, DuckDB relation, Dask or Spark dataframe, … with columns ``predicted`` and
        ``measured``; every other column is a key, except ``status`` and ``unit``.
    columns, unit, source, zeros
        As in `errcomp.tables.Pairs`.
    place : str, optional
        Column that says where each row is, e.g. its file: no key, but named in messages.

    Attributes
    ----------
    native
        The frame that went in.
    engine : str
        What people call the engine.
    dropped : tuple of Dropped
        Rows that are left out.
    selection : dict of str to tuple of str
        Conditions by which rows were chosen (see `where`).
    unit : str or None

    Raises
    ------
    InputError
        Columns are missing or hold no numbers, or units are mixed.
    EngineError
        The engine failed, in its own words.

    Examples
    --------
    >>> import polars as pl
    >>> rows = PairRows(pl.LazyFrame({"predicted": [11.0], "measured": [10.0], "device": ["A"]}))
    >>> rows.engine, rows.keys
    ('Polars', ('device',))
    """

    def __init__(
        self,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        unit: str | None = None,
        source: str = "",
        zeros: Zeros = "raise",
        place: str | None = None,
    ) -> None:
        check_zeros(zeros)
        rows = Rows(data)
        renamed = rows.asked(lambda: rename(rows.frame, columns or {}, source, options=OPTIONS))
        self._rows, self._renamed = Rows(renamed), dict(columns or {})
        self.native, self.engine, self.source, self._place = data, rows.engine, source, place
        self.selection: dict[str, tuple[str, ...]] = {}
        check_numbers(self._rows, ("predicted", "measured"), source)
        self._rows, self.dropped = without_failures(self._rows, "the prediction failed (status)")
        if zeros == "exclude":
            kept = self._rows.positive_or_bad("measured", "predicted")
            self._leave_out(kept, "measured is not positive")
        self.unit = self._one_unit(unit)

    @property
    def prefix(self) -> str:
        """Return what a message begins with."""
        return f"{self.source}: " if self.source else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns to group by."""
        others = (*_NOT_KEYS, self._place)
        return tuple(name for name in self._rows.schema if name not in others)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names in the column ``tool``; empty when there is no such column."""
        if "tool" not in self.keys:
            return ()
        return tuple(sorted({str(name) for name in self._rows.distinct("tool", _MOST)}))

    @property
    def n(self) -> int:
        """Number of rows in use: the engine counts them."""
        return self._rows.count()

    def of_tool(self, name: str | None = None) -> PairRows:
        """Return the rows of one tool; all of them when no name or ``"all"`` is given.

        Upper and lower case need not be right where only one tool can be meant.

        Raises
        ------
        InputError
            There is no such tool, or several differ from the name by case only.
        """
        tools = self.tools
        if name is None or (name == "all" and "all" not in tools):
            return self
        return self.where({"tool": tool_called(name, tools, self.source)})

    def where(self, conditions: Mapping[str, Any]) -> PairRows:
        """Keep the rows whose key has the value given, or one of the values given.

        Raises
        ------
        InputError
            A key or a value does not occur; the message lists those that do.
        """
        chosen = as_options(conditions)
        self.check_columns(tuple(chosen))
        rows = self._rows
        for name, options in chosen.items():
            found = self._rows.distinct_texts(name, _MOST)
            there = {str(value) for value, _ in found}
            options = chosen[name] = meant(options, there)
            if len(found) < _MOST:  # else there may be more values than were looked at
                check_options_occur(name, options, there)
            lost = [option for option in options if option not in there]
            # Engines write True, times and decimals in ways of their own.
            rows = rows.where(name, [*lost, *(t for v, t in found if str(v) in options)])
        part = copy(self)
        part._rows = rows
        part.selection = {**self.selection, **chosen}
        return part

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise if there is no such key."""
        for name in names:
            if name not in self.keys:
                now = [new for new, old in self._renamed.items() if old == name]
                called = f"It is called {now[0]!r} now. " if now else ""
                raise InputError(
                    f"{self.prefix}no column {name!r}. {called}"
                    f"{offer('Columns to group by', self.keys, wanted=name)}"
                )

    def totals(self, by: Sequence[str], sums: Sequence[Sum]) -> Totals:
        """Add up by group, ordered by key; raise if a row cannot be used."""
        known = _IMPLIES if _IMPLIES in sums else _KNOWN
        wanted = list(dict.fromkeys((_ERRORS, known, *sums)))
        found = Totals.of(self._rows.totals(by, wanted)).merged(by)
        self._check(found, known)
        return found

    def has_histogram(self, by: Sequence[str]) -> bool:
        """Say whether `histogram` knows these keys: an engine can be asked for any."""
        return True

    def histogram(self, by: Sequence[str]) -> Histogram:
        """Count pairs by group and by bucket of their APE, of rows that `totals` has checked."""
        return Histogram.of(*self._rows.histogram(by, "log_ape", BUCKET))

    def _leave_out(self, kept: Rows, reason: str) -> None:
        n = self._rows.count() - kept.count()
        self._rows = kept
        if n:
            self.dropped = (*self.dropped, Dropped(reason, n))

    def _one_unit(self, unit: str | None) -> str | None:
        if "unit" not in self._rows.schema:
            return unit
        found = {"" if v is None else str(v).strip() for v in self._rows.distinct("unit", 10)}
        expected = unit if unit is not None else min(found, default="")
        if other := sorted(found - {expected}):
            names = " and ".join(repr(v) if v else "no unit" for v in (expected, other[0]))
            raise InputError(
                f"{self.prefix}mixed units: {names}. Convert all rows to one unit first."
            )
        return expected or None

    def _check(self, found: Totals, known: Sum) -> None:
        if not found.n.sum():
            if self.selection:
                asked = ", ".join(f"{k}={','.join(v)}" for k, v in self.selection.items())
                raise InputError(f"no row satisfies all of: {asked}")
            dropped = "; ".join(f"{d.n} dropped: {d.reason}" for d in self.dropped)
            raise InputError(
                f"{self.prefix}no pairs to work on ({dropped or 'the table is empty'})"
            )
        finite = bool(np.isfinite(found.sums[_ERRORS]).all())
        if finite and (found.sums[known] == found.n).all():
            return
        if finite and known != _KNOWN and self._all_known():
            return
        for what, bad, remedy in _REASONS:
            n, rows = self._rows.examples(bad)
            if n:
                raise InputError(f"{self.prefix}{what}, {self._described(n, rows, what)}. {remedy}")
        raise InputError(
            f"{self.prefix}a sum over these rows is beyond the largest number a float64 can hold "
            "(1.8e308). Check that predicted and measured have the same unit."
        )

    def _all_known(self) -> bool:
        """Say whether all rows have an error: what was counted may lack another reason."""
        counted = self._rows.totals((), [_KNOWN])
        return bool((counted.sums[_KNOWN] == counted.n).all())

    def _described(self, n: int, rows: list[dict[str, Any]], what: str) -> str:
        """Name three of the rows by their keys: rows in an engine have no numbers."""
        name = what.split(" ", 1)[0]
        keys = (*(part for part in (self._place, PARTITION) if part in rows[0]), *self.keys)
        named = [", ".join(f"{_PLAIN.get(k, k)}={row[k]}" for k in keys) for row in rows]
        more = f" (and {n - len(rows):,} more)" if n > len(rows) else ""
        which = f": {'; '.join(named)}{more}" if keys else ""
        return f"got {rows[0][name]} in {n:,} row{'s' if n > 1 else ''}{which}"


Condition = Callable[[Callable[[str], "nw.Expr"]], "nw.Expr"]


def _missing(name: str) -> Condition:
    return lambda column: column(name).is_null()


def _not_finite(name: str) -> Condition:
    return lambda column: ~(column(name) * 1.0).is_finite()


_STATUS = "or give the rows a status if the predictions failed."
_REASONS: tuple[tuple[str, Condition, str], ...] = (
    ("predicted is missing", _missing("predicted"), f"Fill it in, {_STATUS}"),
    ("measured is missing", _missing("measured"), f"Fill it in, {_STATUS}"),
    ("predicted must be finite", _not_finite("predicted"), f"Remove the rows, {_STATUS}"),
    ("measured must be finite", _not_finite("measured"), f"Remove the rows, {_STATUS}"),
    (
        "measured must be positive",
        lambda column: column("measured") <= 0,
        'Exclude such rows with zeros="exclude" (--zeros exclude; they will be counted), or fix '
        "the measurement.",
    ),
)
