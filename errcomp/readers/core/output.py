"""The result of a reader: rows of predicted and measured quantities, and tables from them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from errcomp.errors import InputError, describe_names
from errcomp.results import Dropped
from errcomp.tables.backends import Content
from errcomp.tables.columns import status_ok
from errcomp.tables.frames import to_eager
from errcomp.tables.units import factor

if TYPE_CHECKING:
    import polars as pl

    from errcomp.tables import History, Kernels, Pairs, Runs

__all__ = ["LEVELS", "Output", "Rows", "Skipped", "output"]


#: Levels of rows.
LEVELS = ("kernel", "collective", "model", "request", "system")
_VALUES = ("predicted", "measured")
#: Number of reasons and files that a report names; it counts the others.
_REASONS, _SKIPPED = 5, 30
_FIRST = ("tool", "level", "quantity", "unit", *_VALUES, "status")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not read, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    r"""The content of a file, from the reader of its format: `output` makes an `Output` of it.

    Attributes
    ----------
    rows : polars.DataFrame, mapping of columns or sequence of records
    dropped : iterable of Dropped or mapping of str to int
    notes : iterable of str
    graph : callable or None
        See `output`. Rows without ``tool``, ``level``, ``quantity`` or ``unit`` take the value of
        their format if that has only one.

    Examples
    --------
    >>> from errcomp.readers.core.registry import ToolFormats
    >>> tool = ToolFormats("mysim", gives="predictions")
    >>> @tool.reads("mysim-csv", "sim.csv", "kernel: time (us)", ["sim_us"])
    ... def read_sim(source):
    ...     times = source.sheet().numbers("sim_us")
    ...     return Rows({"predicted": times}, notes=["Times are of one instance."])
    >>> import pathlib, tempfile
    >>> from errcomp.readers.core.source import Source
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "sim.csv"
    >>> _ = path.write_text("sim_us\n12\n")
    >>> tool.formats[0].read(Source(path)).rows.select("level", "unit", "predicted").rows()
    [('kernel', 'us', 12.0)]
    """

    rows: pl.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]]
    dropped: Iterable[Dropped] | Mapping[str, int] = ()
    notes: Iterable[str] = ()
    graph: Callable[[], dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Output(Content):
    """The content of a file or folder: output of a tool, or a table of pairs.

    Attributes
    ----------
    rows : polars.DataFrame
        One row per predicted or measured quantity:

        * ``tool``: the source of the prediction or measurement; ``level``: kernel, collective,
          model (one forward pass or iteration), request or system;
        * ``quantity``: time, ttft, tpot, cycles, energy, power, …; ``unit``: as in the file;
        * ``predicted``, ``measured``: the value; null where missing;
        * ``status``: null, or the reason for a missing value (e.g. a failed prediction);
        * ``reference``: what was measured: hardware, rtl, simulator, estimate or
          unknown; null without a measured value;
        * every other column is a key: ``run``, ``kernel``, ``kernel_class``, ``count``, ``device``,
          ``model``, ``request``, ``version``, …
    formats : tuple of str
        Names of the formats read, as ``errcomp readers`` lists them.
    files : tuple of str
        The files that were read.
    dropped : tuple of Dropped
        Rows of the files that are not among `rows`, by reason.
    skipped : tuple of Skipped
        Files that were not read.
    along : tuple of str
        Files without values that belong to others (configurations, maps).
    notes : tuple of str
        Remarks for users of the rows, each a sentence.
    graph : callable or None
        Makes the document ``errcomp-prediction`` of a trace: its kernels with their
        dependencies.
    tables : mapping of str to callable
        Makes `pairs`, `kernels` or `history` if the content is such a table.
    """

    rows: pl.DataFrame
    formats: tuple[str, ...]
    files: tuple[str, ...]
    dropped: tuple[Dropped, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    graph: Callable[[], dict[str, Any]] | None = field(default=None, repr=False)
    along: tuple[str, ...] = ()
    tables: Mapping[str, Callable[[], Any]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.files[0] if len(self.files) == 1 else f"{len(self.files)} files"

    @property
    def report(self) -> str:
        """Files read, rows and files left out with the reasons, and notes: one per line."""
        import polars as pl

        given = self.rows.select(pl.col(_VALUES).count()).row(0)
        values = ", ".join(f"{n:,} {name}" for n, name in zip(given, _VALUES, strict=True) if n)
        lines = [f"read {len(self.files):,} files" if len(self.files) > 1 else f"read {self.name}"]
        lines[0] += f" ({', '.join(self.formats)}): {_rows(len(self.rows))}, {values or 'no value'}"
        statuses = self.rows["status"] if "status" in self.rows.columns else pl.Series()
        failed = statuses.drop_nulls()
        if len(failed):
            why = ", ".join(failed.unique().sort().to_list()[:_REASONS])
            lines.append(f"{_rows(len(failed))} without a value: {why}")
        lines += [f"{_rows(drop.n)} left out: {drop.reason}" for drop in self.dropped]
        lines += [f"note: {note}" for note in self.notes]
        if self.along:
            more = f" and {len(self.along) - _REASONS:,} more" if len(self.along) > _REASONS else ""
            lines.append(
                f"files that only add settings or names: {', '.join(self.along[:_REASONS])}{more}"
            )
        shown = self.skipped[:_SKIPPED]
        lines += [f"skipped {skip.name}: {skip.reason}" for skip in shown]
        if len(self.skipped) > len(shown):
            unnamed = len(self.skipped) - len(shown)
            lines.append(f"skipped {unnamed:,} more file{'' if unnamed == 1 else 's'}")
        # A name from a file may hold a line end.
        return "\n".join(line.replace("\n", "\\n") for line in lines)

    def __getattr__(self, name: str) -> Any:
        """Answer as the table of pairs did, which `errcomp.read` returned of a file of pairs."""
        from errcomp.tables import Pairs

        if "pairs" not in self.tables or not hasattr(Pairs, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warnings.warn(
            f"errcomp.read(path).{name} is now errcomp.read(path).pairs.{name}",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(self.pairs, name)

    def of(self, **keys: str | Sequence[str]) -> Self:
        """Keep the rows with these values: ``of(level="kernel", quantity="time")``.

        Raises
        ------
        InputError
            There is no such column, or no such row.

        Examples
        --------
        >>> rows = [
        ...     {"level": "kernel", "quantity": "time", "unit": "us", "predicted": 5.0},
        ...     {"level": "model", "quantity": "time", "unit": "ms", "predicted": 2.0}]
        >>> read = output("sim.csv", "mysim", rows, tool="MySim")
        >>> read.of(level="model").rows["predicted"].to_list()
        [2.0]
        """
        import polars as pl

        rows = self.rows
        for key, wanted in keys.items():
            options = [wanted] if isinstance(wanted, str) else list(wanted)
            if key not in rows.columns:
                raise InputError(
                    f"{self.name}: no column {key!r}. Columns: "
                    f"{describe_names(rows.columns, wanted=key)}"
                )
            column = rows[key].cast(pl.String)
            matching = rows.filter(column.is_in(options))
            if matching.is_empty():
                known = sorted(column.drop_nulls().unique().to_list())
                raise InputError(
                    f"{self.name}: no row has {key}={','.join(options)}. Existing values: "
                    f"{describe_names(known, wanted=options[0])}"
                )
            rows = matching
        # Keys that only other rows have say nothing about these.
        kept = [name for name in rows.columns if name in _FIRST or _has_value(rows, name)]
        return replace(self, rows=rows.select(kept))

    @property
    def pairs(self) -> Pairs:
        """Rows with a prediction and its measurement, and those whose prediction failed.

        Raises
        ------
        InputError
            There are no such rows, or several quantities, or units that cannot be converted.
        """
        from errcomp.tables import Pairs

        if "pairs" in self.tables:
            table: Pairs = self.tables["pairs"]()
            return table
        both = self.rows["predicted"].is_not_null() & self.rows["measured"].is_not_null()
        if not both.any():
            # The simulator's own run time does not measure what it predicts.
            own = self.rows.filter(self.rows["quantity"] != "host time")
            have = [name for name in _VALUES if own[name].is_not_null().any()]
            if not have:
                raise InputError(f"{self.name}: no row has a value{_reason_text(own)}.")
            other = "measurements" if have == ["predicted"] else "predictions"
            raise InputError(
                f"{self.name}: holds only {' and '.join(have)} values. "
                f"Join it with a file of {other}: errcomp join PREDICTED MEASURED --on KEYS"
            )
        # A failed prediction is a pair without a prediction: Pairs counts it.
        failed = self.rows["status"].is_not_null() & self.rows["measured"].is_not_null()
        rows = self._of_one_unit(self._of_one_level(self.rows.filter(both | failed)))
        return Pairs(rows.drop("quantity"), source=self.name)

    @property
    def kernels(self) -> Kernels:
        """Times of kernels, with the measured time of their run if there is one.

        Raises
        ------
        InputError
            There are no such rows.
        """
        from errcomp.tables import Kernels

        if "kernels" in self.tables:
            table: Kernels = self.tables["kernels"]()
            return table
        rows = named_by_file(self._times("kernel"))
        whole = self._whole_runs()
        if whole is not None and "run" in rows.columns:
            import polars as pl

            ends = whole.filter(pl.col("measured").is_not_null() & pl.col("run").is_not_null())
            scale = factor(ends["unit"][0], rows["unit"][0]) if len(ends) else 1.0
            ends = ends.select("run", run_measured=pl.col("measured") * scale)
            rows = rows.join(ends.unique("run"), on="run", how="left", maintain_order="left")
        return Kernels(_of_table(rows), source=self.name)

    @property
    def predicted_runs(self) -> Kernels:
        """Rows with a prediction, each as a run that was predicted as a whole.

        A run is named by the keys that differ between rows, and by its row where these repeat.

        Raises
        ------
        InputError
            No row has a prediction, or the rows have several quantities, levels or units.

        Examples
        --------
        >>> rows = [{"level": "request", "quantity": "ttft", "unit": "ms", "predicted": p,
        ...     "measured": 2.0, "model": "bert", "request": i} for i, p in enumerate([1.5, 2.5])]
        >>> output("sim.csv", "mysim", rows, tool="MySim").predicted_runs.runs
        ('0', '1')
        """
        import polars as pl

        from errcomp.tables import Kernels

        rows = self.rows.filter(pl.col("predicted").is_not_null() | pl.col("status").is_not_null())
        if not rows["predicted"].is_not_null().any():
            raise InputError(f"{self.name}: no row has a prediction{_reason_text(self.rows)}.")
        rows = self._of_one_unit(self._of_one_level(rows))
        keys = [key for key in rows.columns if key not in _FIRST and rows[key].n_unique() > 1]
        run = pl.Series("run", [f"row {i}" for i in range(1, len(rows) + 1)])
        if keys:
            parts = (pl.col(key).cast(pl.String).fill_null("") for key in keys)
            named = rows.select(run=pl.concat_str(*parts, separator="/"))["run"]
            run = run if named.is_duplicated().any() else named
        return Kernels.of_runs(_of_table(rows).with_columns(run), source=self.name)

    @property
    def runs(self) -> Runs:
        """End-to-end times of executions.

        Raises
        ------
        InputError
            There are no such rows, or runs have no names.
        """
        from errcomp.tables import Runs

        return Runs(_of_table(self._times("model")), source=self.name)

    @property
    def history(self) -> History:
        """Measurements under successive versions of the software, see `history_of`."""
        if "history" in self.tables:
            table: History = self.tables["history"]()
            return table
        return self.history_of()

    def history_of(
        self,
        *,
        order: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        series: Sequence[str] | None = None,
    ) -> History:
        """Return measurements under successive versions of the software.

        Parameters
        ----------
        order, order_by
            What orders the versions, as for `errcomp.tables.History`.
        series : sequence of str, optional
            Columns that together name a series.

        Raises
        ------
        InputError
            No row says under which version it was measured, or the rows are not a history.

        Examples
        --------
        >>> rows = {"version": ["1.0", "1.1"], "predicted": [5.0, 5.0], "measured": [5.1, 6.0]}
        >>> known = {"tool": "MySim", "level": "model", "quantity": "time", "unit": "ms"}
        >>> read = output("sim.csv", "mysim", {**rows, "model": ["bert", "bert"]}, **known)
        >>> history = read.history_of(order=["1.0", "1.1"], series=["model"])
        >>> history.versions
        ('1.0', '1.1')
        """
        import polars as pl

        from errcomp.tables import History

        if "version" not in self.rows.columns:
            raise InputError(
                f"{self.name}: a history needs a column 'version', and there is none. Read it as "
                "pairs or kernels."
            )
        rows = self.rows.filter(pl.col("version").is_not_null() & pl.col("measured").is_not_null())
        rows = without_empty(self._of_one_unit(self._of_one_level(rows)))
        return History(
            rows.drop("reference", strict=False),
            source=self.name,
            order=order,
            order_by=order_by,
            series=series,
        )

    def _times(self, level: str) -> pl.DataFrame:
        import polars as pl

        of_level = (pl.col("level") == level) & (pl.col("quantity") == "time")
        rows = self.rows.filter(of_level)
        if rows.is_empty():
            pairs = self.rows.select("level", "quantity").unique().sort("level", "quantity").rows()
            known = ", ".join(f"{quantity} of a {kind}" for kind, quantity in pairs)
            raise InputError(
                f"{self.name}: no row holds the time of a {level}. Available: "
                f"{known or 'no rows'}. Select rows by --level and --quantity."
            )
        if rows.select(pl.col(_VALUES).count()).row(0) == (0, 0):
            raise InputError(f"{self.name}: no {level} has a time{_reason_text(rows)}.")
        return self._of_one_unit(rows)

    def _whole_runs(self) -> pl.DataFrame | None:
        import polars as pl

        if "run" not in self.rows.columns:
            return None
        whole = (pl.col("level") == "model") & (pl.col("quantity") == "time")
        rows = self.rows.filter(whole)
        return self._of_one_unit(rows) if len(rows) else None

    def _of_one_level(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Refuse rows of several levels: metrics over both describe neither."""
        levels = rows["level"].unique().sort().to_list()
        if len(levels) > 1:
            raise InputError(
                f"{self.name}: has several levels: {describe_names(levels)}. Select one: --where "
                f"level={levels[0]} (in Python .of(level={levels[0]!r}))."
            )
        return rows

    def _of_one_unit(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Convert all values to the unit of the first; several quantities are refused."""
        import polars as pl

        quantities = rows["quantity"].unique().sort().to_list()
        if len(quantities) > 1:
            raise InputError(
                f"{self.name}: has several quantities: {describe_names(quantities)}. Select one: "
                f"--where quantity={quantities[0]} (in Python .of(quantity={quantities[0]!r}))."
            )
        units = rows["unit"].unique(maintain_order=True).to_list()
        if len(units) < 2:
            return rows
        scales = {unit: factor(unit, units[0], source=self.name) for unit in units}
        scale = pl.col("unit").replace_strict(scales, return_dtype=pl.Float64)
        return rows.with_columns(*(pl.col(name) * scale for name in _VALUES), unit=pl.lit(units[0]))


def output(
    name: str,
    format: str,  # noqa: A002 - as in other readers
    rows: pl.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    dropped: Iterable[Dropped] | Mapping[str, int] = (),
    notes: Iterable[str] = (),
    graph: Callable[[], dict[str, Any]] | None = None,
    **same: Any,
) -> Output:
    r"""Check the rows of a reader, and make its result.

    A value that is not a number, infinite or negative becomes null. A row without any other value
    gets the status "no value", "not finite" or "negative". Keys without any value are left out.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    format : str
        Name of its format.
    rows : polars.DataFrame, mapping of columns or sequence of records
        Columns of `Output.rows`; ``predicted`` or ``measured`` may be missing.
    dropped : iterable of Dropped or mapping of str to int
        See `Output`; or the number of rows left out for each reason (0 is ignored).
    notes, graph
        See `Output`.
    **same
        Values of columns, for rows without a value there: ``tool``, ``unit``, …

    Raises
    ------
    InputError
        There are no rows.

    Examples
    --------
    >>> found = output("a.log", "x-log", [{"level": "model", "predicted": 2.5}],
    ...                tool="x", quantity="time", unit="ms")
    >>> found.rows.select("unit", "predicted", "measured", "status").rows()
    [('ms', 2.5, None, None)]
    """
    import polars as pl

    if isinstance(rows, pl.DataFrame):
        frame = rows
    elif isinstance(rows, Mapping):
        frame = pl.DataFrame(dict(rows), strict=False)
    else:
        frame = pl.DataFrame(list(rows), infer_schema_length=None, strict=False)
    if isinstance(dropped, Mapping):
        dropped = [Dropped(reason, n) for reason, n in dropped.items() if n]
    dropped = tuple(dropped)
    if frame.is_empty():
        why = "; ".join(f"{drop.n} {drop.reason}" for drop in dropped) or "nothing recognised"
        raise InputError(f"{name}: holds no predicted or measured value ({why}).")
    frame = frame.with_columns(
        pl.col(name).fill_null(value) if name in frame.columns else pl.lit(value).alias(name)
        for name, value in same.items()
    )
    missing = [column for column in _FIRST[:4] if column not in frame.columns]
    if missing:
        raise TypeError(f"the reader returned rows without required columns: {', '.join(missing)}")
    if "status" not in frame.columns:
        frame = frame.with_columns(status=pl.lit(None, dtype=pl.String))
    frame = _checked(frame)
    nulls = frame.null_count().row(0, named=True)
    keys = [key for key in frame.columns if key not in _FIRST and nulls[key] < len(frame)]
    frame = frame.select(*_FIRST, *keys)
    return Output(frame, (format,), (name,), dropped, (), tuple(notes), graph)


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    empty = {name: pl.lit(None, dtype=pl.Float64) for name in _VALUES if name not in frame.columns}
    present = (name for name in _VALUES if name not in empty)
    given = {name: pl.col(name).cast(pl.Float64, strict=False) for name in present}
    fine = {
        name: pl.when(value.is_finite() & (value >= 0)).then(value) for name, value in given.items()
    }
    negative, infinite = pl.lit("negative"), pl.lit("not finite")
    wrong = [
        pl.when(value < 0).then(negative).when(value.is_infinite()).then(infinite)
        for value in reversed(given.values())
    ]
    nothing = pl.all_horizontal(pl.lit(True), *(value.is_null() for value in fine.values()))
    why = pl.coalesce(*wrong, pl.when(nothing).then(pl.lit("no value")))
    if _has_value(frame, "status"):
        status = pl.col("status").cast(pl.String)
        known = frame.select(pl.col("status").unique())
        ok = known.filter(pl.Series(status_ok(to_eager(known))))["status"].cast(pl.String)
        why = pl.when(status.is_null() | status.is_in(ok.to_list())).then(why).otherwise(status)
    checked = frame.with_columns(**fine, **empty, status=why)
    if _has_value(checked, "status"):
        return checked
    # A constant null takes no memory, a column of text 16 bytes per row.
    return checked.with_columns(status=pl.lit(None, dtype=pl.String))


def _of_table(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out columns that kernels and runs do not have: the reference is not a key."""
    return without_empty(rows).drop("quantity", "reference", strict=False)


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"


def _reason_text(rows: pl.DataFrame) -> str:
    """Return the reasons for missing values, in brackets; empty without reasons."""
    reasons = rows["status"].drop_nulls().unique().sort().to_list()
    return f" ({describe_names(reasons)})" if reasons else ""


def _has_value(frame: pl.DataFrame, column: str) -> bool:
    """Say whether there is a value, without expanding a constant to a column."""
    return int(frame.select(column).null_count().item()) < len(frame)


# Preparing rows for tables: names where missing, no empty columns.


def named_by_file(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill in missing columns: a file without runs is one run, its kernels ran once."""
    import polars as pl

    own = {"run": pl.col("file"), "count": pl.lit(1), "kernel_class": pl.col("kernel")}
    for name, value in own.items():
        if {name, "file", "kernel"} <= set(rows.columns) and rows[name].null_count():
            nowhere = pl.col(name).is_null().all().over("file")
            filled = pl.when(nowhere).then(value).otherwise(pl.col(name))
            rows = rows.with_columns(filled.alias(name))
    return rows


def without_empty(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out empty columns."""
    empty = [
        name
        for name in ("predicted", "measured", "run_measured")
        if name in rows.columns and rows[name].null_count() == len(rows)
    ]
    return rows.drop(empty)


def prediction(
    name: str,
    terms: Sequence[Mapping[str, Any]],
    nodes: Sequence[Mapping[str, Any]],
    edges: Iterable[tuple[str, str]],
    **provenance: Any,
) -> dict[str, Any]:
    """Return a measured trace (times in µs) as the document ``errcomp-prediction``."""
    return {
        "format": "errcomp-prediction",
        "version": 1,
        "name": name,
        "unit": "us",
        "level": "model",
        "distribution": {"kind": "log-ratio"},
        "correlation": {"levels": []},
        "terms": terms,
        "graph": {"node": "dag", "nodes": nodes, "edges": [list(edge) for edge in edges]},
        "provenance": provenance,
    }
