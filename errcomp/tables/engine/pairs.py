"""Pairs whose rows stay in an engine: the counterpart of `errcomp.tables.Pairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from errcomp.errors import InputError
from errcomp.tables.columns import (
    NOT_POSITIVE_REMEDY,
    Missing,
    Zeros,
    check_choice,
    nothing_left,
)
from errcomp.tables.engine import PARTITION, Condition, shown
from errcomp.tables.engine.groups import EngineRows
from errcomp.tables.memory.pairs import FAILED, MISSING, NOT_KEYS, NOT_POSITIVE, OPTIONS
from errcomp.tables.sums import MOST_HISTOGRAMS, Histogram, Sum, Totals
from errcomp.tables.table import (
    Keyed,
    Table,
    as_options,
    check_options_occur,
    meant,
    nothing_satisfies,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PairRows", "PairTotals"]

#: Column that names the file of each row, and its name in messages.
PLACE = "_errcomp_file"
_PLAIN = {PLACE: "file", PARTITION: "partition"}
#: Longest path in a message, which is not cut.
_PATH = 4096

#: Largest number of different values of a column that are read.
_MOST = 10_000
#: Show whether every row could be used. The error is missing if a value is missing or a measurement
#: is not positive; values that are not finite make a sum that is not finite.
_ERRORS, _KNOWN = Sum(("error",)), Sum(("error",), "count")
#: A row with this term has an error as well; counting both costs 2.5 % of a query.
_IMPLIES = Sum(("log_ratio",), "count")


class PairRows(EngineRows, Keyed):
    """Rows of pairs in an engine, checked while they are summed.

    Parameters
    ----------
    data : lazy frame
        Polars LazyFrame, DuckDB relation, Dask or Spark dataframe, … with columns ``predicted`` and
        ``measured``; every other column is a key, except ``status`` and ``unit``.
    columns, unit, source, zeros, missing
        As in `errcomp.tables.Pairs`.
    place : str, optional
        Column with the place of each row, e.g. its file: not a key, but named in messages.

    Attributes
    ----------
    native
        The frame that went in.
    engine : str
        The engine's common name.
    dropped : tuple of Dropped
        Rows that are left out.
    selection : dict of str to tuple of str
        Conditions by which rows were chosen (see `where`).
    unit : str or None

    Raises
    ------
    InputError
        Columns are missing or not numeric, or units are mixed.
    EngineError
        The engine failed; the message is its own.

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
        missing: Missing = "raise",
        place: str | None = None,
    ) -> None:
        check_choice("zeros", zeros)
        check_choice("missing", missing)
        self.selection, self._place = {}, place
        super().__init__(
            data,
            columns,
            source,
            required=("predicted", "measured"),
            options=OPTIONS,
            numbers=("predicted", "measured"),
            failed=FAILED,
        )
        if missing == "exclude":
            self._leave_out(self._rows.with_numbers("predicted", "measured"), MISSING)
        if zeros == "exclude":
            self._leave_out(self._rows.positive_or_bad("measured", "predicted"), NOT_POSITIVE)
        self.unit = self._one_unit(unit)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns to group by."""
        others = (*NOT_KEYS, self._place)
        return tuple(name for name in self._rows.schema if name not in others)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names in the column ``tool``; empty when there is no such column."""
        if "tool" not in self.keys:
            return ()
        return tuple(sorted({str(name) for name in self._rows.distinct("tool", _MOST)}))

    @property
    def n(self) -> int:
        """Number of rows in use, counted by the engine."""
        return self._rows.count()

    def where(self, conditions: Mapping[str, Any]) -> Self:
        """Keep the rows whose key has the value given, or one of the values given.

        Raises
        ------
        InputError
            A key or a value does not occur; the message lists those that do.

        Examples
        --------
        >>> import polars as pl
        >>> data = {"predicted": [9.0] * 3, "measured": [10.0] * 3, "device": ["B", "A", "B"]}
        >>> PairRows(pl.LazyFrame(data)).where({"device": "B"}).n
        2
        """
        chosen = as_options(conditions)
        self.check_columns(tuple(chosen))
        rows = self._rows
        for name, options in chosen.items():
            distinct = self._rows.distinct_texts(name, _MOST)
            texts = {str(value) for value, _ in distinct}
            options = chosen[name] = meant(options, texts)
            if len(distinct) < _MOST:  # otherwise not all values were fetched
                check_options_occur(name, options, texts)
            apart = {text for value, text in distinct if str(value) in options}
            both = apart & {text for value, text in distinct if str(value) not in options}
            if both:
                raise InputError(
                    f"{self.prefix}cannot select by {name!r}: {self.engine} writes different "
                    f"values of this column as the same text, {shown(min(map(str, both)))}. Cast "
                    f"the column to text in {self.engine} first."
                )
            lost = [option for option in options if option not in texts]
            # Each engine writes True, times and decimals in its own way.
            rows = rows.where(name, [*lost, *(t for v, t in distinct if str(v) in options)])
        part = copy(self)
        part._rows = rows
        part.selection = {**self.selection, **chosen}
        return part

    def grouped(
        self,
        keys: Sequence[str] = (),
        *,
        sums: Sequence[Sum] = (),
        cluster: Sequence[str] = (),
        within: Sequence[str] = (),
    ) -> PairTotals:
        """Sum the pairs by their keys; see `PairTotals`.

        Examples
        --------
        >>> import polars as pl
        >>> data = {"predicted": [9.0] * 3, "measured": [10.0] * 3, "device": ["B", "A", "B"]}
        >>> PairRows(pl.LazyFrame(data)).grouped(["device"]).counts.tolist()
        [1, 2]
        """
        return PairTotals(self, by=keys, sums=sums, cluster=cluster, within=within)

    def totals(self, by: Sequence[str], sums: Sequence[Sum]) -> Totals:
        """Return sums by group, ordered by key; raise if a row cannot be used.

        Examples
        --------
        >>> import polars as pl
        >>> data = {"predicted": [9.0, 12.0], "measured": [10.0, 10.0], "device": ["B", "B"]}
        >>> sums = PairRows(pl.LazyFrame(data)).totals(["device"], [Sum(("ape",))]).sums
        >>> sums[Sum(("ape",))].round(3).tolist()
        [0.3]
        """
        known = _IMPLIES if _IMPLIES in sums else _KNOWN
        wanted = list(dict.fromkeys((_ERRORS, known, *sums)))
        totals = self._rows.totals(by, wanted).merged(by)
        self._check(totals, known)
        return totals

    def has_histogram(self, by: Sequence[str]) -> bool:
        """Return True: an engine has a histogram by any keys.

        Examples
        --------
        >>> import polars as pl
        >>> PairRows(pl.LazyFrame({"predicted": [9.0], "measured": [10.0]})).has_histogram([])
        True
        """
        return True

    def histogram(self, by: Sequence[str]) -> Histogram:
        """Count pairs by group and bucket of the APE; `totals` must have checked the rows.

        Examples
        --------
        >>> import polars as pl
        >>> rows = PairRows(pl.LazyFrame({"predicted": [9.0, 5.0], "measured": [10.0, 10.0]}))
        >>> rows.histogram([]).values().round(2).tolist()
        [0.1, 0.5]
        """
        return self._rows.histogram(by, "log_ape")

    def _one_unit(self, unit: str | None) -> str | None:
        if "unit" not in self._rows.schema:
            return unit
        units = {"" if v is None else str(v).strip() for v in self._rows.distinct("unit", 10)}
        expected = unit if unit is not None else min(units, default="")
        if other := sorted(units - {expected}):
            names = " and ".join(repr(v) if v else "no unit" for v in (expected, other[0]))
            raise InputError(
                f"{self.prefix}mixed units: {names}. Convert all rows to one unit first."
            )
        return expected or None

    def _check(self, totals: Totals, known: Sum) -> None:
        if not totals.n.sum():
            if self.selection:
                raise nothing_satisfies(self.selection)
            raise nothing_left("pairs", self.dropped, self.prefix)
        finite = bool(np.isfinite(totals.sums[_ERRORS]).all())
        if finite and (totals.sums[known] == totals.n).all():
            return
        if finite and known != _KNOWN and self._all_known():
            return
        for rule, bad, remedy in _REASONS:
            n, rows = self._rows.examples(bad)
            if n:
                raise InputError(f"{self.prefix}{rule}, {self._described(n, rows, rule)}. {remedy}")
        raise InputError(
            f"{self.prefix}a sum over these rows exceeds the largest number that a float64 holds "
            "(1.8e308). Check that predicted and measured have the same unit."
        )

    def _all_known(self) -> bool:
        """Say whether all rows have an error: the counts may differ for another reason."""
        counted = self._rows.totals((), [_KNOWN])
        return bool((counted.sums[_KNOWN] == counted.n).all())

    def _described(self, n: int, rows: list[dict[str, Any]], rule: str) -> str:
        """Name up to three rows by their keys: rows in an engine have no row numbers."""
        name = rule.split(" ", 1)[0]
        places = [part for part in (self._place, PARTITION) if part in rows[0]]
        keys = [key for key in self.keys if key not in places]
        named = [
            ", ".join(
                [f"{_PLAIN.get(p, p)}={shown(row[p], _PATH)}" for p in places]
                + [f"{shown(k)}={shown(row[k])}" for k in keys]
            )
            for row in rows
        ]
        more = f" (and {n - len(rows):,} more)" if n > len(rows) else ""
        which = f": {'; '.join(named)}{more}" if named[0] else ""
        return f"got {rows[0][name]} in {n:,} row{'s' if n > 1 else ''}{which}"


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
    ("measured must be positive", lambda column: column("measured") <= 0, NOT_POSITIVE_REMEDY),
)


# Pairs summed by their keys.


class PairTotals(Table):
    """Sums over pairs that stay in an engine, one row for each combination of keys.

    It groups and selects like `errcomp.tables.Pairs`, but has no single pairs.

    Parameters
    ----------
    pairs : PairRows
    by : sequence of str
        Keys to select by. Quantiles exist for unions of the groups of these keys.
    cluster : sequence of str
        Keys that quantiles are also kept for, unless they have too many groups.
    within : sequence of str
        Keys that split these groups further; sums exist for every combination.
    sums : sequence of Sum

    Attributes
    ----------
    engine : str
        Common name of the engine that holds the pairs.

    Raises
    ------
    InputError
        A key does not exist, or a row cannot be used.

    Examples
    --------
    >>> import polars as pl
    >>> rows = PairRows(pl.LazyFrame({"predicted": [11.0, 9.0], "measured": [10.0, 10.0],
    ...                               "device": ["A", "A"]}))
    >>> totals = PairTotals(rows, by=["device"], within=[], sums=[Sum(("ape",))])
    >>> len(totals), totals.n, totals.histogram().n.tolist()
    (1, 2, [2])
    """

    _per_row = ("rows", "_group")

    def __init__(
        self,
        pairs: PairRows,
        *,
        by: Sequence[str],
        within: Sequence[str],
        sums: Sequence[Sum],
        cluster: Sequence[str] = (),
    ) -> None:
        keys = tuple(dict.fromkeys((*by, *cluster, *within)))
        pairs.check_columns(keys)
        self._totals = pairs.totals(keys, sums)
        known = tuple(dict.fromkeys((*by, *cluster)))
        if self._totals.numbered(known)[1] > MOST_HISTOGRAMS:
            known = tuple(by)
        self._histogram = pairs.histogram(known)
        self._of_histogram = self._totals.merged(known)
        self._group = self._totals.numbered(known)[0]
        self.source, self.selection = pairs.source, dict(pairs.selection)
        self.unit, self.dropped, self.engine = pairs.unit, pairs.dropped, pairs.engine
        self.rows = np.arange(len(self._totals))
        self._native = pairs.native
        self._columns = {name: _objects(self._totals.keys[name]) for name in keys}

    @property
    def n(self) -> int:
        """Number of pairs."""
        return int(self.counts.sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of pairs in each row, shape (rows,)."""
        return self._totals.n

    def take(self, index: NDArray[Any]) -> Self:
        """Return the rows at these positions (or under this mask) as a new table.

        Examples
        --------
        >>> import polars as pl
        >>> data = {"predicted": [9.0] * 3, "measured": [10.0] * 3, "device": ["B", "A", "B"]}
        >>> totals = PairRows(pl.LazyFrame(data)).grouped(["device"])
        >>> totals.take(totals.counts > 1).column("device").tolist()
        ['B']
        """
        part = super().take(index)
        part._totals = self._totals.select(index)
        return part

    def sums(self, total: Sum) -> NDArray[np.float64]:
        """Return a sum over the pairs of each row, shape (rows,).

        Examples
        --------
        >>> import polars as pl
        >>> rows = PairRows(pl.LazyFrame({"predicted": [9.0, 12.0], "measured": [10.0, 10.0]}))
        >>> rows.grouped(sums=[Sum(("ape",))]).sums(Sum(("ape",))).round(3).tolist()
        [0.3]
        """
        return self._totals.sums[total]

    def totals(self, by: Sequence[str], sums: Sequence[Sum] = ()) -> Totals:
        """Return sums by group, ordered by key, like `PairRows.totals`; all stored sums.

        Examples
        --------
        >>> import polars as pl
        >>> data = {"predicted": [9.0] * 3, "measured": [10.0] * 3, "device": ["B", "A", "B"]}
        >>> PairRows(pl.LazyFrame(data)).grouped(["device"]).totals([]).n.tolist()
        [3]
        """
        return self._totals.merged(by)

    def has_histogram(self, by: Sequence[str]) -> bool:
        """Say whether `histogram` has these keys.

        Examples
        --------
        >>> import polars as pl
        >>> rows = PairRows(pl.LazyFrame({"predicted": [9.0], "measured": [10.0], "device": ["A"]}))
        >>> [rows.grouped(by).has_histogram(["device"]) for by in (["device"], [])]
        [True, False]
        """
        return set(by) <= self._of_histogram.keys.keys()

    def histogram(self, by: Sequence[str] = ()) -> Histogram:
        """Return the histograms of the groups, ordered by key.

        Examples
        --------
        >>> import polars as pl
        >>> rows = PairRows(pl.LazyFrame({"predicted": [9.0, 5.0], "measured": [10.0, 10.0]}))
        >>> rows.grouped().histogram().values().round(2).tolist()
        [0.1, 0.5]
        """
        groups = np.unique(self._group)
        histogram = self._histogram.select(groups)
        return histogram.merged(self._of_histogram.select(groups).numbered(by)[0])


def _objects(values: list[Any]) -> NDArray[Any]:
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects
