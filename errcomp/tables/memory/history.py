"""The History table: validations of a predictor under successive versions of the software."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from errcomp.errors import InputError
from errcomp.tables.columns import Origin, dates_of, dropped_rows, rename, without_units
from errcomp.tables.frames import column_values, to_eager
from errcomp.tables.memory.history_columns import (
    NOT_KEYS,
    OCCASION,
    STACK,
    codes_of,
    first_dates,
    known_keys,
    n_pairs,
    positive,
    series_names,
    spreads,
    unit_of,
    used_rows,
    version_codes,
    without_empty,
)
from errcomp.tables.memory.versions import ROWS, order_by_columns, order_versions
from errcomp.tables.table import OnDemand, Table

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    from errcomp.results import Dropped
    from errcomp.tables.memory.versions import OrderBy


OPTIONS = "--column version=COLUMN --column measured=COLUMN"


class History(Table):
    r"""Validations: each row is one predictor's result under one version of the software.

    Parameters
    ----------
    data : dataframe or mapping of columns
        pandas, Polars, PyArrow, … Its columns:

        * ``version``: version of the software, as text (1.10 is not 1.1).
        * ``measured``: a time or a throughput, finite and > 0. Rows without it are validations
          without a result, counted in `dropped`.
        * ``predicted``: finite and > 0. Without it the prediction is frozen at the first
          measurement of each series.
        * ``date``: when it was validated; ``released``: when that version was released. ISO 8601,
          dates or timestamps; UTC if there is no offset.
        * ``series``: the unit of observation, which is validated again and again. Columns ``level``
          and ``predictor`` are part of its name. Without a column ``series``, all columns without
          another meaning together name the series.
        * ``predictor``, ``predictor_version``: name and version of the predictor.
        * ``level``: kernel, composition, model, …
        * ``stack_<component>``: version of a further component (driver, CUDA, …).
        * ``repeat``: number of the repetition.
        * ``measured_spread``: relative standard deviation of the single runs of a measurement;
          ``n_repeats``: their number. Both may be missing.
        * ``status``: rows whose status is not ok are failed validations, counted in `dropped`.
        * ``unit``: the same in all rows of a series.

        Every other column is a key.
    columns : mapping, optional
        Renames columns of the data: ``{"version": "round"}`` reads version from round.
    series : sequence of str, optional
        Columns that together name the series, instead of a column ``series`` or of all columns.
        Results beside ``measured`` (a second run, a percentile) do not name the series.
    order : sequence of str, optional
        Versions, oldest first; needed only if release dates, numbers and dates cannot order them.
        A hash of a commit may be shorter or longer than in the table.
    order_by : str or sequence of str, optional
        Instead of ``order``: columns of numbers, dates or version numbers that order the versions,
        the second where the first has equal values, …; or ``"rows"``, for the order in which they
        appear in the table. These columns do not name series. With columns of the stack, each
        combination is a version of its own: ``["version", "stack_driver"]``.
    unit : str, optional
        Unit of all measurements. Must agree with a column ``unit``, if there is one.
    source : str
        Name of the table in messages, e.g. the file.
    line_offset : int, optional
        Set by readers of text files: row i (from 0) is on line ``i + line_offset``.

    Attributes
    ----------
    versions : tuple of str
        Oldest first. A selection keeps all versions of the table: a version without a validation in
        the selection is still a release (see `with_own_versions`).
    order_by : {"order", "columns", "rows", "released", "number", "date", "single"}
        What ordered the versions: the given order, the given columns, the rows, release dates,
        version numbers, or the dates of the first validation; ``"single"`` if there is only one
        version.
    order_columns : tuple of str
        Columns that were given to order the versions.
    version_dates : ndarray of datetime64[s], shape (versions,)
        Release date if known, else the date of the first validation; NaT without both.
    version : ndarray of int, shape (n,)
        Position in `versions`.
    series_names : tuple of str
        In order of appearance.
    series : ndarray of int, shape (n,)
        Position in `series_names`.
    series_columns : tuple of str
        Columns that name the series.
    given_series : tuple of str
        Those of them that were given; empty if errcomp chose them.
    stack : ndarray of int, shape (n,)
        Number of the combination of predictor version and stack components of each row.
    measured, predicted : ndarray, shape (n,)
        ``predicted`` is None if the table has no predictions.
    date, released : ndarray of datetime64[s], shape (n,)
        UTC, NaT where unknown.
    spread, runs : ndarray, shape (n,)
        ``measured_spread`` and ``n_repeats``; NaN where unknown.
    notes : tuple of str
        Remarks on how the table was read.
    dropped : tuple of Dropped

    Raises
    ------
    InputError
        Columns or values are missing, values are not numbers or not positive, units are mixed
        within a series, dates cannot be read or mix times with and without a time zone, a version
        has two release dates, a validation occurs twice, versions cannot be ordered, both
        ``order`` and ``order_by`` are given, or no row is left.

    Notes
    -----
    Rows of the same series and version are repeats. Rows that agree in everything (series,
    version, predictor, stack, date, repeat and values) are the same validation entered twice, and
    are refused.

    Misleads if a column that is a result (another metric, the gap) stays in a table without
    ``series``: every row is then a series of its own. If several predictor versions were validated
    under one software version, each of them is a series.

    Examples
    --------
    >>> history = History(
    ...     {
    ...         "version": ["1.9", "1.10", "1.9", "1.10"],
    ...         "op": ["Conv", "Conv", "Gelu", "Gelu"],
    ...         "measured": [10.0, 10.1, 4.0, 2.0],
    ...     },
    ...     unit="ms",
    ... )
    >>> history.versions, history.order_by, history.series_names
    (('1.9', '1.10'), 'number', ('Conv', 'Gelu'))
    >>> history.error().round(3).tolist()
    [0.0, -0.01, 0.0, 0.693]
    """

    _per_row = (
        *("rows", "version", "stack", "measured", "predicted"),
        *("date", "released", "spread", "runs"),
    )

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
        line_offset: int | None = None,
    ) -> None:
        frame = rename(to_eager(data), columns or {}, source, ("version", "measured"), OPTIONS)
        frame = without_units(frame, ("predicted", "measured"), unit)
        origin = self._origin(frame, source, line_offset)
        self._native = frame.to_native()
        self._renamed = dict(columns or {})
        frame = without_empty(frame)
        ok, self.dropped = used_rows(frame, origin)
        self.source, self.subject, self.selection = source, None, {}
        self.rows, used = origin.rows[ok], origin.of(ok)
        self.measured = positive(frame, "measured", ok, origin)[ok]
        has_predictions = "predicted" in frame.columns
        self.predicted = positive(frame, "predicted", ok, origin)[ok] if has_predictions else None
        self.spread, self.runs = (values[ok] for values in spreads(frame, ok, origin))
        self.date, self.released = (
            dates_of(frame, name, ok, origin)[ok]
            if name in frame.columns
            else np.full(len(used.rows), "NaT", dtype="M8[s]")
            for name in ("date", "released")
        )
        self.notes: tuple[str, ...] = ()
        if order is not None and order_by:
            raise InputError(f"{origin.prefix}give either 'order' or 'order_by', not both.")
        self.order_columns = (order_by,) if isinstance(order_by, str) else tuple(order_by or ())
        components = [name for name in self.order_columns if name.startswith(STACK)]
        versions, names = version_codes(frame, ok, origin, components)
        self.version = versions[ok]
        self.given_series = known_keys(series, frame.columns, origin.prefix)
        self._read_series(frame, ok, used)
        self.unit, notes = unit_of(frame, unit, ok, used, self.series, self.series_names)
        self.notes += notes
        self._check_unique(frame, ok, used)
        self._order(frame.filter(ok.tolist()) if order_by else frame, names, order, used)
        self._read_columns(frame, ok)

    def _origin(self, frame: nw.DataFrame[Any], source: str, line_offset: int | None) -> Origin:
        return Origin.of_table(source, len(frame), line_offset)

    def _read_series(self, frame: nw.DataFrame[Any], ok: NDArray[np.bool_], used: Origin) -> None:
        components = [name for name in frame.columns if name.startswith(STACK)]
        of_predictor = [name for name in ("predictor_version",) if name in frame.columns]
        self.stack = codes_of(frame, [*of_predictor, *components], used)[0][ok]
        if self.given_series:
            names = [*self.given_series]
        elif "series" in frame.columns:
            names = [name for name in ("series", "level", "predictor") if name in frame.columns]
        else:
            # Sorted, so that the name of a series does not depend on the order of the columns.
            other = {*NOT_KEYS, *OCCASION, *components, *self.order_columns}
            names = sorted(set(frame.columns) - other)
        codes, values = codes_of(frame, names, used)
        if of_predictor:
            predictors = codes_of(frame, of_predictor, used)[0][ok]
            cells = codes[ok] * (self.version.max() + 1) + self.version
            if n_pairs(cells, predictors) > len(np.unique(cells)):
                names = [*names, *of_predictor]
                codes, values = codes_of(frame, names, used)
                self.notes += (
                    "several predictor versions were validated under one software version: each "
                    "counts as a separate series",
                )
        if "series" in names:
            unnamed = np.flatnonzero(values["series"].is_null().to_numpy())
            remedy = "Fill it in, or drop the column: the other columns then identify the series."
            used.refuse_missing(np.isin(codes[ok], unnamed), "series", remedy)
        self.series_columns = tuple(names)
        series, self.series = np.unique(codes[ok], return_inverse=True)
        every = series_names(values) if names else ("all",)
        self.series_names = tuple(every[i] for i in series)

    def _check_unique(self, frame: nw.DataFrame[Any], ok: NDArray[np.bool_], used: Origin) -> None:
        """Refuse validations that were entered twice."""
        import polars as pl

        cells = self.series * (self.version.max() + 1) + self.version
        ordered = np.sort(cells)
        several = np.flatnonzero(np.isin(cells, ordered[1:][ordered[1:] == ordered[:-1]]))
        if not len(several):
            return
        rest = [name for name in frame.columns if name not in {*NOT_KEYS, *self.series_columns}]
        rest = [name for name in rest if name not in ("version", "date", "released")]
        data = {
            "cell": cells,
            "rest": codes_of(frame, rest, used)[0][ok],
            "date": self.date.view(np.int64),
            "measured": self.measured,
            "spread": self.spread,
            "runs": self.runs,
        }
        if self.predicted is not None:
            data["predicted"] = self.predicted
        twice = np.zeros(self.n, dtype=bool)
        part = {name: values[several] for name, values in data.items()}
        twice[several] = ~pl.DataFrame(part).is_unique().to_numpy()
        if twice.any():
            raise InputError(
                f"{used.prefix}duplicate validations: {used.name(twice)} agree in series, version, "
                "date, repeat and values. Remove the copies; if they are repetitions with the same "
                "result, number them in a column 'repeat'."
            )

    def _order(
        self,
        frame: nw.DataFrame[Any],
        names: list[str],
        order: Sequence[str] | None,
        used: Origin,
    ) -> None:
        """Order the versions, and renumber them."""
        released = first_dates(self.version, self.released, len(names))
        known = ~np.isnat(self.released)
        differ = known & (self.released != released[self.version])
        if differ.any():
            at = int(np.argmax(differ))
            raise InputError(
                f"{used.prefix}version {names[self.version[at]]!r} has two release dates: "
                f"{released[self.version[at]]} and {self.released[at]} (the second in "
                f"{used.name(differ)}). Fix one of them; the time of a validation belongs in the "
                "column 'date'."
            )
        first = first_dates(self.version, self.date, len(names))
        if columns := self.order_columns:
            order = order_by_columns(frame, columns, names, self.version, used)
        ordering = order_versions(
            names, order=order, released=released, first=first, source=self.source
        )
        self.versions, self.order_by, notes = ordering.names, ordering.by, ordering.notes
        if columns:
            self.order_by = "rows" if columns == (ROWS,) else "columns"
        self.notes += notes
        place = {name: i for i, name in enumerate(ordering.names)}
        rank = np.asarray([place[name] for name in names])
        self.version_dates = np.empty(len(names), dtype="M8[s]")
        self.version_dates[rank] = np.where(np.isnat(released), first, released)
        self.released = released[self.version]
        self.version = rank[self.version]

    def _read_columns(self, frame: nw.DataFrame[Any], ok: NDArray[np.bool_]) -> None:
        known = {}
        for name, texts, codes in (
            ("version", self.versions, self.version),
            ("series", self.series_names, self.series),
        ):
            values = np.empty(len(frame), dtype=object)
            values[ok] = np.asarray(texts, dtype=object)[codes]
            known[name] = values
        keys = dict.fromkeys([*known, *(n for n in frame.columns if n not in NOT_KEYS)])
        self._columns = OnDemand(frame, list(keys), np.flatnonzero(ok), known)

    def __repr__(self) -> str:
        return (
            f"History(n={self.n}, series={self.n_series}, versions={len(self.versions)}, "
            f"keys={self.keys}, unit={self.unit!r}, source={self.source!r})"
        )

    @property
    def positions(self) -> NDArray[np.int64]:
        """Position of each validation in `native`, shape (n,)."""
        return self._columns.index

    @property
    def condition_columns(self) -> tuple[str, ...]:
        """Keys other than the names of the series, the time of validation and the stack."""
        named = {*self.series_columns, *OCCASION, "series", *self.order_columns}
        return tuple(n for n in self.keys if n not in named and not n.startswith(STACK))

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.series_names)

    def error(self) -> NDArray[np.float64]:
        r"""Return the error of each validation, :math:`\ln(p / m)`, shape (n,).

        If the table has no predictions, p is the first measurement of the series (the geometric
        mean of its repeats).

        Examples
        --------
        >>> history = History({"version": ["1", "2"], "op": ["Conv"] * 2, "measured": [10.0, 11.0]})
        >>> history.error().round(3).tolist()
        [0.0, -0.095]
        """
        measured = np.log(self.measured)
        if self.predicted is not None:
            return np.asarray(np.log(self.predicted) - measured)
        earliest = np.full(self.n_series, len(self.versions))
        np.minimum.at(earliest, self.series, self.version)
        at_first = self.version == earliest[self.series]
        n = np.where(at_first, self.behind.n, 0)
        counts = np.bincount(self.series, n, self.n_series)
        frozen = np.bincount(self.series, n * measured, self.n_series) / counts
        return np.asarray(frozen[self.series] - measured)

    def per_series(self, name: str) -> NDArray[Any]:
        """Return the value of a column for each series; None where its validations differ.

        Raises
        ------
        InputError
            There is no such column, or its values are lists or similar.

        Examples
        --------
        >>> data = {"version": ["1", "2"], "series": ["Conv"] * 2, "measured": [10.0, 11.0]}
        >>> history = History({**data, "model": ["x", "x"]})
        >>> history.per_series("model").tolist()
        ['x']
        """
        values, codes = self._values_at(name, first := np.unique(self.series, return_index=True)[1])
        values[np.unique(self.series[codes != codes[first][self.series]])] = None
        return values

    def _values_at(self, name: str, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the values of a column in some rows, and which rows have equal values."""
        frame = to_eager(self._native)
        if name not in self._columns or name not in frame.columns or name in ("version", "series"):
            return self.column(name)[rows].astype(object), self.codes(name)
        # Compare codes: building millions of values would be a waste.
        codes, _ = codes_of(frame.select(name), [name], Origin.of_table(self.source, 0, None))
        values = column_values(frame[self.positions[rows].tolist()], name).astype(object)
        return values, codes[self.positions]

    def left_out(self, reason: str, mask: NDArray[np.bool_]) -> tuple[Dropped, ...]:
        """Count the validations under a mask that are left out, if there are any.

        Examples
        --------
        >>> history = History({"version": ["1", "2"], "op": ["Conv"] * 2, "measured": [10.0, 11.0]})
        >>> [(drop.n, drop.reason) for drop in history.left_out("slow", history.measured > 10)]
        [(1, 'slow')]
        """
        return dropped_rows(reason, self.rows[mask])

    def with_own_versions(self) -> Self:
        """Return the table with only those versions that occur in it.

        Use it for a selection from a table of several products with versions of their own:
        releases of the other products then do not count.

        Examples
        --------
        >>> data = {"version": ["1", "2"], "series": ["a", "b"], "measured": [9.0, 8.0]}
        >>> part = History(data).where({"series": "b"})
        >>> part.versions, part.with_own_versions().versions
        (('1', '2'), ('2',))
        """
        versions, codes = np.unique(self.version, return_inverse=True)
        part = copy(self)
        part.versions = tuple(self.versions[i] for i in versions)
        part.version, part.version_dates = codes, self.version_dates[versions]
        return part

    def take(self, index: NDArray[Any]) -> Self:
        """Return the validations at these positions (or under this mask) as a new table.

        It keeps the versions of the whole table.

        Examples
        --------
        >>> history = History({"version": ["1", "2"], "op": ["Conv"] * 2, "measured": [10.0, 11.0]})
        >>> part = history.take(history.measured > 10)
        >>> part.n, part.versions
        (1, ('1', '2'))
        """
        part = super().take(index)
        series, part.series = np.unique(self.series[index], return_inverse=True)
        part.series_names = tuple(self.series_names[i] for i in series)
        return part

    versions: tuple[str, ...]
    order_by: OrderBy
    order_columns: tuple[str, ...]
    given_series: tuple[str, ...]
    version_dates: NDArray[np.datetime64]
    version: NDArray[np.int64]
    series_names: tuple[str, ...]
    series: NDArray[np.int64]
    stack: NDArray[np.int64]
    measured: NDArray[np.float64]
    predicted: NDArray[np.float64] | None
    _columns: OnDemand
