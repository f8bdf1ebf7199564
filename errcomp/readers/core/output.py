"""What a reader gives: predicted and measured quantities as rows, and tables made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from errcomp.errors import InputError, describe_names
from errcomp.results import Dropped
from errcomp.tables.columns import status_ok
from errcomp.tables.frames import to_eager
from errcomp.tables.units import factor

if TYPE_CHECKING:
    import polars as pl

    from errcomp.tables import History, Kernels, Pairs, Runs

__all__ = ["LEVELS", "Output", "Rows", "Skipped", "output"]


#: What a row may be about.
LEVELS = ("kernel", "collective", "model", "request", "system")
_VALUES = ("predicted", "measured")
#: As many reasons and files a report names; the others it counts.
_REASONS, _SKIPPED = 5, 30
_FIRST = ("tool", "level", "quantity", "unit", *_VALUES, "status")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not read, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What a reader of one format finds in a file: `output` makes an `Output` of it.

    Attributes
    ----------
    rows : polars.DataFrame, mapping of columns or sequence of records
    dropped : iterable of Dropped or mapping of str to int
    notes : iterable of str
    graph : callable or None
        See `output`. Rows without ``tool``, or without the ``level``, ``quantity`` or ``unit`` that
        is the only one of their format, get those.
    """

    rows: pl.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]]
    dropped: Iterable[Dropped] | Mapping[str, int] = ()
    notes: Iterable[str] = ()
    graph: Callable[[], dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What one file or folder of a tool holds.

    Attributes
    ----------
    rows : polars.DataFrame
        One predicted or measured quantity of one thing in each row:

        * ``tool``: who predicted or measured it; ``level``: kernel, collective, model (one forward
          pass or iteration), request or system;
        * ``quantity``: time, ttft, tpot, cycles, energy, power, …; ``unit``: as in the file;
        * ``predicted``, ``measured``: the value; null where the file has none;
        * ``status``: null, or why there is no value (the prediction failed);
        * ``reference``: what ``measured`` was measured on: hardware, rtl, simulator, estimate or
          unknown; null where there is no measured value, no column where there are none;
        * every other column is a key: ``run``, ``kernel``, ``kernel_class``, ``count``, ``device``,
          ``model``, ``request``, ``version``, …
    formats : tuple of str
        Names of the formats read, as ``errcomp readers`` lists them.
    files : tuple of str
        What was read.
    dropped : tuple of Dropped
        Rows of the files that are not among `rows`, by reason.
    skipped : tuple of Skipped
        Files that were not read.
    along : tuple of str
        Files that belong to others and have no values of their own (configurations, maps).
    notes : tuple of str
        What a user of the rows should know, each a sentence.
    graph : callable or None
        Makes the document ``errcomp-prediction`` of a trace: its kernels with what must wait for
        what.
    """

    rows: pl.DataFrame
    formats: tuple[str, ...]
    files: tuple[str, ...]
    dropped: tuple[Dropped, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    graph: Callable[[], dict[str, Any]] | None = field(default=None, repr=False)
    along: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.files[0] if len(self.files) == 1 else f"{len(self.files)} files"

    @property
    def report(self) -> str:
        """What was read, what was not and why, and what to know of it: a line each."""
        import polars as pl

        given = self.rows.select(pl.col(_VALUES).count()).row(0)
        values = ", ".join(f"{n:,} {name}" for n, name in zip(given, _VALUES, strict=True) if n)
        lines = [f"read {len(self.files):,} files" if len(self.files) > 1 else f"read {self.name}"]
        lines[0] += f" ({', '.join(self.formats)}): {len(self.rows):,} rows, {values or 'no value'}"
        failed = self.rows.select(pl.col("status").drop_nulls())["status"]
        if len(failed):
            why = ", ".join(failed.unique().sort().to_list()[:_REASONS])
            lines.append(f"{len(failed):,} rows without a value they should have: {why}")
        lines += [f"{drop.n:,} rows left out: {drop.reason}" for drop in self.dropped]
        lines += [f"note: {note}" for note in self.notes]
        if self.along:
            more = f" and {len(self.along) - _REASONS:,} more" if len(self.along) > _REASONS else ""
            lines.append(f"without values of their own: {', '.join(self.along[:_REASONS])}{more}")
        shown = self.skipped[:_SKIPPED]
        lines += [f"skipped {skip.name}: {skip.reason}" for skip in shown]
        if len(self.skipped) > len(shown):
            lines.append(f"skipped {len(self.skipped) - len(shown):,} more files")
        return "\n".join(lines)

    def of(self, **keys: str | Sequence[str]) -> Self:
        """Keep the rows with these values: ``of(level="kernel", quantity="time")``.

        Raises
        ------
        InputError
            There is no such column, or no such row.
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
                    f"{self.name}: no row has {key}={','.join(options)}. Values there: "
                    f"{describe_names(known, wanted=options[0])}"
                )
            rows = matching
        return replace(self, rows=rows)

    @property
    def pairs(self) -> Pairs:
        """Rows with a prediction and its measurement, and those whose prediction failed.

        Raises
        ------
        InputError
            There are none, or they are of several quantities or units that cannot be converted.
        """
        from errcomp.tables import Pairs

        both = self.rows["predicted"].is_not_null() & self.rows["measured"].is_not_null()
        if not both.any():
            # How long the simulator itself took is no measurement of what it predicts.
            own = self.rows.filter(self.rows["quantity"] != "host time")
            have = [name for name in _VALUES if own[name].is_not_null().any()]
            if not have:
                raise InputError(f"{self.name}: no row has a value{_reason_text(own)}.")
            other = "measurements" if have == ["predicted"] else "predictions"
            raise InputError(
                f"{self.name}: holds {' and '.join(have)} values only, no row with both. "
                f"Join it with a file of {other}: errcomp join PREDICTED MEASURED --on KEYS"
            )
        # A prediction that failed is a pair without a prediction: it is counted.
        failed = self.rows["status"].is_not_null() & self.rows["measured"].is_not_null()
        rows = self._of_one_unit(self._of_one_level(self.rows.filter(both | failed)))
        return Pairs(rows.drop("quantity"), source=self.name)

    @property
    def kernels(self) -> Kernels:
        """Times of kernels, with the measured time of their run where there is one.

        Raises
        ------
        InputError
            There are none.
        """
        from errcomp.tables import Kernels

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
    def runs(self) -> Runs:
        """Times of executions end to end.

        Raises
        ------
        InputError
            There are none, or they have no names.
        """
        from errcomp.tables import Runs

        return Runs(_of_table(self._times("model")), source=self.name)

    @property
    def history(self) -> History:
        """Measurements under successive versions of the software, see `history_of`."""
        return self.history_of()

    def history_of(
        self, *, order: Sequence[str] | None = None, series: Sequence[str] | None = None
    ) -> History:
        """Return measurements under successive versions of the software.

        Parameters
        ----------
        order : sequence of str, optional
            Versions, oldest first, where nothing else orders them.
        series : sequence of str, optional
            Columns that together name the unit of observation.

        Raises
        ------
        InputError
            No row says under which version it was measured, or the rows are no history.
        """
        import polars as pl

        from errcomp.tables import History

        if "version" not in self.rows.columns:
            raise InputError(
                f"{self.name}: no column version: this is no history. Read it as pairs or kernels."
            )
        rows = self.rows.filter(pl.col("version").is_not_null() & pl.col("measured").is_not_null())
        rows = without_empty(self._of_one_unit(self._of_one_level(rows)))
        return History(
            rows.drop("reference", strict=False), source=self.name, order=order, series=series
        )

    def _times(self, level: str) -> pl.DataFrame:
        import polars as pl

        of_level = (pl.col("level") == level) & (pl.col("quantity") == "time")
        rows = self.rows.filter(of_level)
        if rows.is_empty():
            pairs = self.rows.select("level", "quantity").unique().sort("level", "quantity").rows()
            known = ", ".join(f"{quantity} of a {kind}" for kind, quantity in pairs)
            raise InputError(
                f"{self.name}: no time of a {level}. There are: {known or 'no rows'}. Choose rows "
                "by --level and --quantity."
            )
        if rows.select(pl.col(_VALUES).count()).row(0) == (0, 0):
            raise InputError(f"{self.name}: no time of a {level} has a value{_reason_text(rows)}.")
        return self._of_one_unit(rows)

    def _whole_runs(self) -> pl.DataFrame | None:
        import polars as pl

        if "run" not in self.rows.columns:
            return None
        whole = (pl.col("level") == "model") & (pl.col("quantity") == "time")
        rows = self.rows.filter(whole)
        return self._of_one_unit(rows) if len(rows) else None

    def _of_one_level(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Refuse rows of several levels: a figure over both says nothing of either."""
        levels = rows["level"].unique().sort().to_list()
        if len(levels) > 1:
            raise InputError(
                f"{self.name}: several levels: {describe_names(levels)}. Choose one: --where "
                f"level={levels[0]} (in Python .of(level={levels[0]!r}))."
            )
        return rows

    def _of_one_unit(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Convert all values to the unit of the first; several quantities are refused."""
        import polars as pl

        quantities = rows["quantity"].unique().sort().to_list()
        if len(quantities) > 1:
            raise InputError(
                f"{self.name}: several quantities: {describe_names(quantities)}. Choose one: "
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
    format: str,  # noqa: A002 - what other readers call it
    rows: pl.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    dropped: Iterable[Dropped] | Mapping[str, int] = (),
    notes: Iterable[str] = (),
    graph: Callable[[], dict[str, Any]] | None = None,
    **same: Any,
) -> Output:
    r"""Make the result of a reader from its rows, and check them: the one place where that is done.

    A value that is no number, infinite or negative is none: null, and where the row has no other
    it gets the status "no value" ("not finite", "negative"). Keys without any value are left out.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    format : str
        Name of its format.
    rows : polars.DataFrame, mapping of columns or sequence of records
        Columns of `Output.rows`; ``predicted`` or ``measured`` may be missing.
    dropped : iterable of Dropped or mapping of str to int
        See `Output`; or how many rows are left out for each reason (0: that one says nothing).
    notes, graph
        See `Output`.
    **same
        The value of a column for all rows that have none of their own: ``tool``, ``unit``, …

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
        why = "; ".join(f"{drop.n} {drop.reason}" for drop in dropped) or "nothing was recognised"
        raise InputError(f"{name}: no predicted or measured value in it ({why}).")
    frame = frame.with_columns(
        pl.col(name).fill_null(value) if name in frame.columns else pl.lit(value).alias(name)
        for name, value in same.items()
    )
    missing = [column for column in _FIRST[:4] if column not in frame.columns]
    if missing:
        raise TypeError(f"a reader must say {', '.join(missing)} of its rows")
    if "status" not in frame.columns:
        frame = frame.with_columns(status=pl.lit(None, dtype=pl.String))
    frame = _checked(frame)
    keys = [key for key in frame.columns if key not in _FIRST and _has_value(frame, key)]
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
    # One null for all rows takes no memory, a column of text 16 bytes a row.
    return checked.with_columns(status=pl.lit(None, dtype=pl.String))


def _of_table(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out what is no column of kernels and runs: what they were measured on is no key."""
    return without_empty(rows).drop("quantity", "reference", strict=False)


def _reason_text(rows: pl.DataFrame) -> str:
    """Say in brackets why rows have no value, as far as they do."""
    reasons = rows["status"].drop_nulls().unique().sort().to_list()
    return f" ({describe_names(reasons)})" if reasons else ""


def _has_value(frame: pl.DataFrame, column: str) -> bool:
    """Say whether there is a value, without making a whole column of a constant."""
    return int(frame.select(column).null_count().item()) < len(frame)


# What tables need of the rows of readers: names where there are none, no empty columns.


def named_by_file(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill in what only other files say: a file without runs is one run, its kernels ran once."""
    import polars as pl

    own = {"run": pl.col("file"), "count": pl.lit(1), "kernel_class": pl.col("kernel")}
    for name, value in own.items():
        if {name, "file", "kernel"} <= set(rows.columns) and rows[name].null_count():
            nowhere = pl.col(name).is_null().all().over("file")
            filled = pl.when(nowhere).then(value).otherwise(pl.col(name))
            rows = rows.with_columns(filled.alias(name))
    return rows


def without_empty(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out values that no row has."""
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
    """Return a trace whose times, in µs, were measured as the document ``errcomp-prediction``."""
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
