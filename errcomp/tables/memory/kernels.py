"""The Kernels table: the kernels (operators) of runs, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from errcomp.errors import InputError, describe_names, offer
from errcomp.tables.columns import (
    Origin,
    dropped_rows,
    numeric,
    one_unit,
    rename,
    role_of,
    succeeded,
    texts,
    without_units,
)
from errcomp.tables.frames import holds_numbers, to_eager
from errcomp.tables.memory.pairs import FAILED
from errcomp.tables.table import OnDemand, Table, one_of

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray


#: Sums of counts are exact in floating point up to this value.
_MOST = 2**53
_RESERVED = ("run", "kernel", "kernel_class", "count", "predicted", "measured", "run_measured")
_NOT_KEYS = ("count", "predicted", "measured", "run_measured", "status", "unit")
#: For a table that looks like pairs of prediction and measurement.
_WHOLE_RUNS = (
    " If each row is a run that was predicted as a whole, `errcomp calibrate` corrects it with "
    "--task prediction (in Python: Kernels.of_runs)."
)
#: Columns that describe the whole run, if its kernels agree.
_RUN_KEYS = ("tool", "device", "model", "mode", "batch", "seq_len", "variant", "version", "date")


@dataclass(frozen=True, slots=True, eq=False)
class RunTotals:
    """Totals of the kernels of each run; arrays of shape (runs,).

    Attributes
    ----------
    run : ndarray of str
        Names, in order of appearance.
    predicted, measured : ndarray
        Σ count · predicted and Σ count · measured; NaN where a kernel of the run has no such time
        or its prediction failed.
    run_measured : ndarray
        Measured end-to-end time; NaN if not measured.
    kernels, instances : ndarray of int
        Number of rows of the run, and number of kernels executed: Σ count.
    complete : ndarray of bool
        No prediction of a kernel of the run failed.
    keys : mapping of str to ndarray
        The columns tool, device, model, mode, batch, seq_len, variant, version and date, if the
        table has them: the value of all kernels of the run, None if they differ.
    unit : str or None
        Unit of the times.
    source : str
        Where the kernels came from.
    """

    run: NDArray[Any]
    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    run_measured: NDArray[np.float64]
    kernels: NDArray[np.int64]
    instances: NDArray[np.int64]
    complete: NDArray[np.bool_]
    keys: Mapping[str, NDArray[Any]]
    unit: str | None
    source: str

    def __len__(self) -> int:
        return len(self.run)


class Kernels(Table):
    r"""Kernels (operators) of runs: each row has the times of one instance.

    Parameters
    ----------
    data : dataframe or mapping of columns
        pandas, Polars, PyArrow, … with ``predicted`` or ``measured`` or both. Its columns:

        * ``run``: name of the run; without it, all rows belong to one run, ``"run"``.
        * ``kernel``: name of the kernel; without it, ``class/row number``.
        * ``kernel_class``: class of the kernel; without it, the name of the kernel.
        * ``count``: number of executions of the kernel; without it, 1.
        * ``predicted``, ``measured``: time of one instance, finite and ≥ 0 (a predictor may give 0
          for an operator that only rearranges memory). ``measured`` may be missing (null, NaN)
          if a kernel was not measured; see `unmeasured`.
        * ``run_measured``: end-to-end time of the run, > 0, the same in all its rows, or missing
          in all of them.
        * ``device``: may differ between the kernels of a run; ``""`` where missing.
        * ``status``: rows whose status is not ok are failed predictions, counted in `dropped`;
          their runs are `incomplete`.
        * ``unit``: the same in all rows.

        Every other column (``tool``, ``model``, ``stream``, ``shape``, …) is a key.
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
    run, kernel, kernel_class, device : ndarray of str, shape (n,)
        Arrays of objects: each name is stored once.
    count : ndarray of int, shape (n,)
    predicted, measured, run_measured : ndarray, shape (n,)
        NaN where unknown; ``predicted`` only if the table has no such column.
    rows : ndarray of int, shape (n,)
        Number of each row (or line) as the user counts them.

    Raises
    ------
    InputError
        Columns are missing; names are missing; counts are not whole numbers ≥ 1 or add up to more
        than 2⁵³; times are not numbers, negative or not finite; units are mixed; or no row is left.

    Notes
    -----
    A run is identified by its name. Misleads if several executions share a name: their
    kernels add up. `totals` refuses that for several tools; repetitions need names of their own.

    Examples
    --------
    >>> kernels = Kernels(
    ...     {
    ...         "run": ["a", "a", "b"],
    ...         "kernel": ["matmul", "add", "matmul"],
    ...         "kernel_class": ["BMM", "VEC", "BMM"],
    ...         "count": [12, 24, 12],
    ...         "predicted": [1.0, 0.5, 2.0],
    ...     },
    ...     unit="ms",
    ... )
    >>> kernels.n, kernels.runs, kernels.ids.tolist()
    (3, ('a', 'b'), ['a/matmul', 'a/add', 'b/matmul'])
    >>> kernels.totals().predicted.tolist()
    [24.0, 24.0]
    """

    _per_row = ("rows", "count", "predicted", "measured", "run_measured")
    _columns: OnDemand

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
        known = [name for name in _RESERVED if name in frame.columns]
        frame = rename(frame, columns or {}, source, known)
        frame = without_units(frame, ("predicted", "measured", "run_measured"), unit)
        origin = self._origin(frame, source, line_offset)
        insist(frame, origin, "predicted", "measured")
        pairs = {"predicted", "measured"} <= set(frame.columns)
        insist(frame, origin, "kernel", "kernel_class", hint=_WHOLE_RUNS if pairs else "")
        ok = succeeded(frame, origin, "kernels", FAILED)
        self.source, self.subject, self.selection = source, None, {}
        self.unit = one_unit(frame, unit, ok, origin)
        self.rows = origin.rows[ok]
        self.count: NDArray[np.int64] = counts_of(frame, ok, origin)[ok]
        self.predicted = times_of(frame, "predicted", ok, origin)[ok]
        self.measured = times_of(frame, "measured", ok, origin, blank=True)[ok]
        self.run_measured = times_of(frame, "run_measured", ok, origin, blank=True)[ok]
        names = names_of(frame, ok, origin)
        others = (n for n in frame.columns if n not in (*names, *_NOT_KEYS))
        table = OnDemand(frame, [*names, *others], np.arange(len(frame)), names)
        self._native = frame.to_native()
        self._columns = table.take(ok)
        self._fail(table.take(~ok), origin.rows[~ok])
        self._read_names()
        self._check_run_measured(origin.of(ok))

    @classmethod
    def of_runs(
        cls,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        unit: str | None = None,
        source: str = "",
        line_offset: int | None = None,
    ) -> Self:
        """Make a table in which each row is a run that was predicted as a whole.

        The prediction of a run is that of its only kernel, ``"run"``, and the measurement is the
        end-to-end time of the run. Other columns are keys, as elsewhere.

        Parameters
        ----------
        data : dataframe or mapping of columns
            With ``predicted``; ``measured`` may be missing, in some rows or as a whole. As in
            `Pairs`, columns are recognised by names such as ``sim_cycles`` and ``gpu``. Without a
            column ``run``, a run has the name of its row.
        columns, unit, source, line_offset
            As for the class.

        Warns
        -----
        GuessedWarning
            Predictions and measurements were recognised by the names of their columns.

        Raises
        ------
        InputError
            Two rows have the same run, the table has kernels or a column ``run_measured``, or as
            for the class.

        Examples
        --------
        >>> pairs = {"predicted": [1.0, 2.0], "measured": [1.1, 2.5], "model": ["a", "b"]}
        >>> kernels = Kernels.of_runs(pairs, unit="s")
        >>> kernels.runs, kernels.kernel.tolist(), kernels.run_measured.tolist()
        (('row 1', 'row 2'), ['run', 'run'], [1.1, 2.5])
        """
        import narwhals as nw

        frame = to_eager(data)
        columns = dict(columns or {})
        if not {"predicted", "measured"} <= {*frame.columns, *columns}:
            from errcomp.tables.guessing import with_guess

            columns = with_guess(columns, holds_numbers(frame), source)
        keys = [name for name in frame.columns if name not in columns.values()]
        for role in ("device", "model"):
            name = role_of(role, keys)
            if name not in (None, role):
                columns.setdefault(role, name)
        known = [name for name in ("predicted", "measured") if name in frame.columns]
        frame = rename(frame, columns, source, known)
        origin = Origin.of_table(source, len(frame), line_offset)
        insist(frame, origin, "predicted")
        for name in ("kernel", "kernel_class", "run_measured"):
            if name in frame.columns:
                raise InputError(
                    f"{origin.prefix}this table has a column {name!r}, so its rows are kernels, "
                    "not whole runs. Read it as a table of kernels, or remove the column."
                )
        names = [f"{origin.word} {row}" for row in origin.rows.tolist()]
        if "run" in frame.columns:
            names = texts(frame, "run", np.ones(len(frame), dtype=bool), origin).tolist()
            _refuse_repeated(names, origin)
        make = nw.get_native_namespace(frame)
        new = {"run": names, "kernel": ["run"] * len(frame)}
        frame = frame.with_columns(nw.new_series(n, v, backend=make) for n, v in new.items())
        if "measured" in frame.columns:
            frame = frame.rename({"measured": "run_measured"})
        return cls(frame.to_native(), unit=unit, source=source, line_offset=line_offset)

    def _origin(self, frame: nw.DataFrame[Any], source: str, line_offset: int | None) -> Origin:
        return Origin.of_table(source, len(frame), line_offset)

    def _fail(self, columns: OnDemand, rows: NDArray[np.int64]) -> None:
        """Record the kernels whose prediction failed."""
        self._failed, self._failed_rows = columns, rows
        self.dropped = dropped_rows(FAILED, rows)

    def _read_names(self) -> None:
        self.run, self.kernel = self._columns["run"], self._columns["kernel"]
        self.kernel_class = self._columns["kernel_class"]
        has_device = "device" in self._columns
        self.device = self._columns["device"] if has_device else np.full(self.n, "", dtype=object)

    def _check_run_measured(self, origin: Origin) -> None:
        codes, first = self._by_run
        end_to_end, of_run = self.run_measured, self.run_measured[first][codes]
        bad = (end_to_end != of_run) & ~(np.isnan(end_to_end) & np.isnan(of_run))
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"{origin.prefix}run_measured must be the same in all rows of a run, but changes "
                f"from {of_run[at]} to {end_to_end[at]} in {origin.name(bad)} (run "
                f"{self.run[at]!r}). Give each run its own name, or fix the value."
            )

    def __repr__(self) -> str:
        return (
            f"Kernels(n={self.n}, runs={self.n_runs}, keys={self.keys}, unit={self.unit!r}, "
            f"source={self.source!r})"
        )

    @cached_property
    def _by_run(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Run of each row, and first row of each run."""
        codes = self.codes("run")
        return codes, np.unique(codes, return_index=True)[1]

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs, in order of appearance."""
        return tuple(self.run[self._by_run[1]].tolist())

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self._by_run[1])

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Names of the runs with a failed kernel; `runs` lacks those whose kernels all failed."""
        return tuple(dict.fromkeys(self._failed["run"].tolist()))

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Names of the runs with a kernel that was not measured."""
        codes, first = self._by_run
        return tuple(self.run[first[np.unique(codes[np.isnan(self.measured)])]].tolist())

    @cached_property
    def ids(self) -> NDArray[Any]:
        """Unique name of each row: ``run/kernel``; with ``#2`` if the name repeats.

        A selection numbers its rows again.
        """
        plain = [f"{run}/{kernel}" for run, kernel in zip(self.run, self.kernel, strict=True)]
        taken = set(plain)
        ids = np.empty(self.n, dtype=object)
        ids[:] = plain
        if len(taken) < self.n:
            times: dict[str, int] = {}
            for i, name in enumerate(plain):
                times[name] = times.get(name, 0) + 1
                if times[name] > 1:
                    # A kernel may itself be named "add#2".
                    while f"{name}#{times[name]}" in taken:
                        times[name] += 1
                    ids[i] = f"{name}#{times[name]}"
                    taken.add(ids[i])
        return ids

    def take(self, index: NDArray[Any]) -> Self:
        """Return the kernels at these positions (or under this mask) as a new table.

        Failed kernels of its runs stay in `dropped`, and their runs in `incomplete`.

        Examples
        --------
        >>> data = {"run": ["a", "a", "b"], "kernel": ["k", "l", "k"], "predicted": [3.0, 1.0, 2.0]}
        >>> kernels = Kernels(data)
        >>> kernels.take(kernels.predicted >= 2).ids.tolist()
        ['a/k', 'b/k']
        """
        part = super().take(index)
        part._read_names()
        runs = set(_runs_of_tools(part._columns)) if len(self._failed_rows) else set()
        mask = np.asarray([run in runs for run in _runs_of_tools(self._failed)], dtype=bool)
        part._fail(self._failed.take(mask), self._failed_rows[mask])
        return part

    def where(self, conditions: Mapping[str, Any]) -> Self:
        """Keep the kernels whose key has the value given, or one of the values given.

        `dropped` counts the failed kernels that meet the conditions.

        Raises
        ------
        InputError
            A key or a value does not occur; the message lists those that do.

        Examples
        --------
        >>> data = {"run": ["a", "a", "b"], "kernel": ["k", "l", "k"], "predicted": [3.0, 1.0, 2.0]}
        >>> Kernels(data).where({"run": "a"}).ids.tolist()
        ['a/k', 'a/l']
        """
        part = super().where(conditions)
        mask = np.ones(len(self._failed_rows), dtype=bool)
        for name in conditions:
            mask &= one_of(list(map(str, self._failed[name])), part.selection[name])
        part._fail(self._failed.take(mask), self._failed_rows[mask])
        return part

    def per_run(self, name: str) -> NDArray[Any]:
        """Return the value of a column for each run, shape (runs,); None if its kernels differ.

        Raises
        ------
        InputError
            There is no such column, or its values are lists or similar.

        Examples
        --------
        >>> data = {"run": ["a", "a", "b"], "kernel": ["k", "l", "k"], "predicted": [3.0, 1.0, 2.0]}
        >>> Kernels({**data, "model": ["x", "x", "y"]}).per_run("model").tolist()
        ['x', 'y']
        """
        values = self.column(name)[self._by_run[1]].astype(object)
        values[self._differing(name)] = None
        return values

    def _differing(self, name: str) -> NDArray[np.int64]:
        """Return the positions of the runs whose kernels differ in this column."""
        runs, first = self._by_run
        codes = self.codes(name)
        return np.unique(runs[codes != codes[first][runs]])

    def totals(self) -> RunTotals:
        r"""Return the totals of the kernels of each run.

        .. math:: P_r = \sum_{k \in r} c_k \, p_k, \qquad M_r = \sum_{k \in r} c_k \, m_k

        with count c, and predicted time p and measured time m of one instance.

        Returns
        -------
        RunTotals
            One row per run, in the order of `runs`.

        Raises
        ------
        InputError
            A run has kernels of several tools, or a total is too large for a float64.

        Notes
        -----
        Misleads if it is treated as the time of the run: kernels overlap, and the sum leaves out
        the time between them (launches, communication). Compare with ``run_measured``.

        Examples
        --------
        >>> data = {"run": ["a"] * 2, "kernel": ["k", "l"], "predicted": [1, 0.5], "count": [8, 4]}
        >>> Kernels(data).totals().predicted.tolist()
        [10.0]
        """
        codes, first = self._by_run
        n = len(first)
        if "tool" in self._columns and len(mixed := self._differing("tool")):
            raise InputError(
                f"{self.prefix}run {self.runs[mixed[0]]!r} has kernels of several tools "
                f"({describe_names(self.tools)}), which must not be added up. Choose one with "
                "of_tool(...) (--tool)."
            )
        failed = set(self.incomplete)
        complete = np.asarray([run not in failed for run in self.runs], dtype=bool)
        sums = []
        for times in (self.predicted, self.measured):
            with np.errstate(over="ignore"):
                total = np.bincount(codes, weights=self.count * times, minlength=n)
            if np.isinf(total).any():
                raise InputError(
                    f"{self.prefix}the total of run "
                    f"{self.runs[np.argmax(np.isinf(total))]!r} is above 1.8e308. Use a larger "
                    "unit."
                )
            sums.append(np.where(complete, total, np.nan))
        return RunTotals(
            run=self.run[first],
            predicted=sums[0],
            measured=sums[1],
            run_measured=self.run_measured[first],
            kernels=np.bincount(codes, minlength=n),
            instances=np.bincount(codes, weights=self.count, minlength=n).astype(np.int64),
            complete=complete,
            keys={name: self.per_run(name) for name in _RUN_KEYS if name in self._columns},
            unit=self.unit,
            source=self.source,
        )


def _runs_of_tools(columns: Mapping[str, NDArray[Any]]) -> list[tuple[str, ...]]:
    """Return the run and the tool of each row: several tools may fail in the same run."""
    names = ("run", "tool") if "tool" in columns else ("run",)
    return list(zip(*(map(str, columns[name]) for name in names), strict=True))


def _refuse_repeated(names: list[str], origin: Origin) -> None:
    """Refuse two rows with the same run, where each row is a run."""
    first = dict(zip(reversed(names), reversed(range(len(names))), strict=True))
    again = next((i for i, name in enumerate(names) if first[name] != i), None)
    if again is not None:
        name = names[again]
        same = np.asarray([other == name for other in names])
        raise InputError(
            f"{origin.prefix}each row must be a different run, but run {name!r} is in "
            f"{origin.name(same)}. Give each run its own name, or remove the column 'run'."
        )


# Columns of kernels and runs, checked and turned into arrays of all rows.


def insist(frame: nw.DataFrame[Any], origin: Origin, *names: str, hint: str = "") -> None:
    """Raise InputError unless one of these columns exists; `hint` follows the message."""
    if not set(names) & set(frame.columns):
        found = offer("Columns found", frame.columns, wanted=names[0])
        raise InputError(
            f"{origin.prefix}missing column {' or '.join(names)}. {found}. Name your columns with "
            f"columns={{...}}.{hint}"
        )


def names_of(
    frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin
) -> dict[str, NDArray[Any]]:
    """Return run, kernel, kernel_class and, if the column exists, device of all rows."""
    n, every = len(frame), np.ones(len(frame), dtype=bool)
    columns = {"run": np.full(n, "run", dtype=object)}
    if "run" in frame.columns:
        # Failed kernels also need a run: it is incomplete.
        columns["run"] = texts(frame, "run", every, origin)
    for name in ("kernel", "kernel_class"):
        if name in frame.columns:
            columns[name] = texts(frame, name, ok, origin)
    if "kernel" not in columns:
        rows = zip(columns["kernel_class"], origin.rows, strict=True)
        columns["kernel"] = np.asarray([f"{kind}/{row}" for kind, row in rows], dtype=object)
    columns.setdefault("kernel_class", columns["kernel"])
    if "device" in frame.columns:
        columns["device"] = texts(frame, "device", ok, origin, blank=True)
    return columns


def counts_of(frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin) -> NDArray[np.int64]:
    """Return the number of executions of each kernel; 1 without a column ``count``."""
    if "count" not in frame.columns:
        return np.ones(len(frame), dtype=np.int64)
    counts = numeric(frame, "count", ok, origin)
    bad = ok & ~((counts >= 1) & (counts < _MOST) & (counts == np.floor(counts)))
    remedy = "Remove kernels that are not executed; for all others, set the number of executions."
    origin.refuse(bad, counts, f"count must be a whole number from 1 to {_MOST - 1}", remedy)
    if counts[ok].sum() > _MOST:
        raise InputError(
            f"{origin.prefix}the values of column 'count' add up to {counts[ok].sum():.3g}, but "
            f"sums above {_MOST} are not exact. Correct the column."
        )
    return np.where(ok, counts, 1).astype(np.int64)


def times_of(
    frame: nw.DataFrame[Any],
    name: str,
    ok: NDArray[np.bool_],
    origin: Origin,
    *,
    blank: bool = False,
) -> NDArray[np.float64]:
    """Return a column of times, NaN where missing."""
    if name not in frame.columns:
        return np.full(len(frame), np.nan)
    times = numeric(frame, name, ok, origin, blank=blank)
    end_to_end = name == "run_measured"
    fine = (times > 0 if end_to_end else times >= 0) & (times < np.inf)
    bad = ok & ~(fine | (np.isnan(times) & blank))
    rule = f"{name} must be finite and {'positive' if end_to_end else '≥ 0'}"
    remedy = "Fix the value, or give the row a status if the prediction failed."
    origin.refuse(bad, times, rule, remedy)
    return times
