"""The Runs table: end-to-end executions, and joining their times to their kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.tables.columns import (
    Origin,
    dropped_rows,
    one_unit,
    rename,
    succeeded,
    texts,
    without_units,
)
from errcomp.tables.frames import is_missing, key_columns, to_eager
from errcomp.tables.memory.kernels import Kernels, insist, times_of
from errcomp.tables.table import OnDemand, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


_FAILED = "the run failed (status)"
_TIMES = ("predicted", "measured")
_NOT_KEYS = (*_TIMES, "status", "unit")


class Runs(Table):
    """Runs: each row is an end-to-end execution.

    Parameters
    ----------
    data : dataframe or mapping of columns
        pandas, Polars, PyArrow, … with ``run``, and ``measured`` or ``predicted`` or both. Its
        columns:

        * ``run``: name of the run, a different one in each row.
        * ``measured``: end-to-end time, finite and > 0, or missing (null, NaN).
        * ``predicted``: end-to-end time, finite and ≥ 0.
        * ``status``: rows whose status is not ok are failed runs, counted in `dropped`.
        * ``unit``: the same in all rows.

        Every other column (``device``, ``model``, ``mode``, ``batch``, ``variant``, ``version``,
        …) is a key.
    columns : mapping, optional
        Renames columns of the data: ``{"measured": "latency_ms"}`` reads measured from latency_ms.
    unit : str, optional
        Unit of all times. Must agree with a column ``unit``, if there is one.
    source : str
        Name of the table in messages, e.g. the file.
    line_offset : int, optional
        Set by readers of text files: row i (from 0) is on line ``i + line_offset``.

    Attributes
    ----------
    run : ndarray of str, shape (n,)
    predicted, measured : ndarray, shape (n,)
        NaN where unknown; ``predicted`` only if the table has no such column.
    rows : ndarray of int, shape (n,)
        Number of each row (or line) as the user counts them.
    dropped : tuple of Dropped

    Raises
    ------
    InputError
        Columns or names are missing, a run occurs twice, times are not numbers, negative or not
        finite, a measurement is 0, units are mixed, or no row is left.

    Examples
    --------
    >>> runs = Runs({"run": ["a", "b"], "measured": [12.5, 30.0], "model": ["x", "y"]}, unit="ms")
    >>> runs.n, runs.keys, runs.where({"model": "y"}).measured.tolist()
    (2, ('run', 'model'), [30.0])
    """

    _per_row = ("rows", "run", "predicted", "measured")

    def __init__(
        self,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        unit: str | None = None,
        source: str = "",
        line_offset: int | None = None,
    ) -> None:
        frame = to_eager(data)
        known = [name for name in ("run", *_TIMES) if name in frame.columns]
        frame = rename(frame, columns or {}, source, known)
        frame = without_units(frame, ("predicted", "measured"), unit)
        origin = Origin.of_table(source, len(frame), line_offset)
        insist(frame, origin, "run")
        insist(frame, origin, "measured", "predicted")
        ok = succeeded(frame, origin, "runs", _FAILED)
        self.dropped = dropped_rows(_FAILED, origin.rows[~ok])
        self.source, self.subject, self.selection = source, None, {}
        self.unit = one_unit(frame, unit, ok, origin)
        self.rows = origin.rows[ok]
        self.predicted = times_of(frame, "predicted", ok, origin)[ok]
        self.measured = times_of(frame, "measured", ok, origin, blank=True)[ok]
        remedy = "Fix the measurement, or give the row a status if the run failed."
        rule = "measured must be positive"
        origin.of(ok).refuse(self.measured == 0, self.measured, rule, remedy)
        self.run = texts(frame, "run", ok, origin)[ok]
        self._check_unique(origin.of(ok))
        self._native = frame.to_native()
        names = [name for name in frame.columns if name not in _NOT_KEYS]
        keys, self.unusable = key_columns(frame, names, ok, source)
        self._columns = keys | {"run": self.run}

    def _check_unique(self, origin: Origin) -> None:
        twice = np.ones(self.n, dtype=bool)
        twice[np.unique(self.run.astype(str), return_index=True)[1]] = False
        if twice.any():
            raise InputError(
                f"{origin.prefix}every run needs a name of its own, got {self.run[twice][0]!r} "
                f"again in {origin.name(twice)}. Give repetitions different names."
            )

    def __repr__(self) -> str:
        return f"Runs(n={self.n}, keys={self.keys}, unit={self.unit!r}, source={self.source!r})"


def with_runs(kernels: Kernels, runs: Runs) -> Kernels:
    """Return the kernels with the end-to-end times and the keys of their runs.

    The end-to-end time of each run becomes ``run_measured`` of its kernels; if it was not measured,
    the kernels keep theirs. Keys of the runs that the kernels lack become keys of the kernels. The
    tables given are not changed.

    Parameters
    ----------
    kernels : Kernels
    runs : Runs
        Runs with the same names.

    Returns
    -------
    Kernels
        The kernels in the same order; row numbers, failed kernels and selections are kept.

    Raises
    ------
    InputError
        Runs are in one of the tables only, no run was measured, units differ, or the tables
        contradict each other.

    Examples
    --------
    >>> kernels = Kernels({"run": ["a", "a"], "kernel": ["k", "l"], "predicted": [1.0, 2.0]})
    >>> joined = with_runs(kernels, Runs({"run": ["a"], "measured": [3.5], "model": ["x"]}))
    >>> joined.totals().run_measured.tolist(), joined.column("model").tolist()
    ([3.5], ['x', 'x'])
    """
    prefix = runs.prefix
    if np.isnan(runs.measured).all():
        raise InputError(f"{prefix}no run has a measurement. Give it in column 'measured'.")
    if None not in (kernels.unit, runs.unit) and kernels.unit != runs.unit:
        raise InputError(
            f"{prefix}mixed units: the runs are in {runs.unit!r}, the kernels in "
            f"{kernels.unit!r}. Convert one of the tables first."
        )
    _match(kernels, runs, prefix)
    at = {name: i for i, name in enumerate(runs.run)}
    of_row = np.asarray([at[name] for name in kernels.run], dtype=np.int64)
    measured = runs.measured[of_row]
    both = ~np.isnan(measured) & ~np.isnan(kernels.run_measured)
    _agree(kernels, both & (measured != kernels.run_measured), "end-to-end times", prefix)
    for name in set(runs.keys) & set(kernels.keys) - {"run"}:
        values, theirs = kernels.column(name), runs.column(name)[of_row]
        differ = [
            not (is_missing(a) or is_missing(b)) and str(a) != str(b)
            for a, b in zip(values.tolist(), theirs.tolist(), strict=True)
        ]
        _agree(kernels, np.asarray(differ), f"values of {name}", prefix)
    joined = copy(kernels)
    joined.unit = kernels.unit if kernels.unit is not None else runs.unit
    joined.run_measured = np.where(np.isnan(measured), kernels.run_measured, measured)
    new = [name for name in runs.keys if name not in kernels.keys]
    joined._columns = _extended(kernels._columns, runs, new, at)
    joined._failed = _extended(kernels._failed, runs, new, at)
    joined._read_names()
    return joined


def _match(kernels: Kernels, runs: Runs, prefix: str) -> None:
    """Raise unless both tables have the same runs."""
    without = [name for name in kernels.runs if name not in set(runs.run)]
    known = {*kernels.runs, *kernels.incomplete}
    strange = [name for name in runs.run if name not in known]
    for names, table, other in (
        (without, "the table of kernels", "the table of runs"),
        (strange, "the table of runs", "the table of kernels"),
    ):
        if names:
            failed = " (or failed there)" if names is without and runs.dropped else ""
            near = describe_names(sorted({*runs.run} if names is without else known))
            raise InputError(
                f"{prefix}{_listing(names)} in {table} {'are' if len(names) > 1 else 'is'} not in "
                f"{other}{failed}, whose runs are {near}. Give the runs the same names in both "
                "tables, or select common runs with where(...)."
            )


def _agree(kernels: Kernels, differ: NDArray[np.bool_], noun: str, prefix: str) -> None:
    if differ.any():
        names = list(dict.fromkeys(kernels.run[differ].tolist()))
        raise InputError(
            f"{prefix}the table of runs and the table of kernels have different {noun} for "
            f"{_listing(names)}. Fix one of the tables, or drop the column from one of them."
        )


def _listing(names: Sequence[str]) -> str:
    """Name up to three runs."""
    shown = ", ".join(map(repr, names[:3]))
    more = f" (and {len(names) - 3} more)" if len(names) > 3 else ""
    return f"run{'s' if len(names) > 1 else ''} {shown}{more}"


def _extended(table: OnDemand, runs: Runs, new: Sequence[str], at: Mapping[str, int]) -> OnDemand:
    """Return the columns of the kernels with new columns from their runs."""
    known = dict(table._known)
    of_row = [at.get(name) for name in known["run"]]
    for name in new:
        column = runs.column(name).tolist()
        values = np.empty(len(of_row), dtype=object)
        values[:] = [None if i is None else column[i] for i in of_row]
        if name == "device":
            values[:] = ["" if is_missing(v) else str(v) for v in values]
        known[name] = values
    return OnDemand(table._frame, [*table, *new], table.index, known)
