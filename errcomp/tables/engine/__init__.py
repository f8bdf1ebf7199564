"""Rows that stay in their engine: only sums over them are fetched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import narwhals as nw
import numpy as np

from errcomp.errors import EngineError, ErrcompError, InputError, MissingExtraError
from errcomp.tables.columns import STATUS_OK
from errcomp.tables.frames import MARK, check_names, column_values, wrapped
from errcomp.tables.sums import BUCKET, Histogram, Sum, Totals
from errcomp.tables.table import plain_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    T = TypeVar("T")


#: Common names of engines, by Narwhals' name of the implementation.
_NAMES = {
    "polars": "Polars",
    "duckdb": "DuckDB",
    "dask": "Dask",
    "pyspark": "Spark",
    "pyspark[connect]": "Spark",
    "sqlframe": "SQLFrame",
    "ibis": "Ibis",
    "pandas": "pandas",
    "pyarrow": "PyArrow",
}
#: Engines that find columns as Python does; SQL ignores case, and allows two columns of one name.
_EXACT = ("Polars", "pandas", "PyArrow", "Dask")
#: Types of columns whose values every engine can compare, and write as text.
_TEXT = (nw.String, nw.Categorical, nw.Enum)
_PLAIN = (*_TEXT, nw.Boolean, nw.Date, nw.Datetime)
#: What Python strips from a text; each engine strips something else.
_SPACES = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace())
#: Longest value in a message.
_SHOWN = 120
#: A condition on rows, from the expressions of their columns.
Condition = Callable[[Callable[[str], nw.Expr]], nw.Expr]
#: Column with the number of the partition of each row.
PARTITION = f"{MARK}partition"


class Grouped(NamedTuple):
    """Groups by expressions, as an engine returns them, in no particular order.

    Attributes
    ----------
    keys : dict
        Values of each key, one per group.
    n : ndarray of int
        Number of rows in each group.
    figures : dict of str to ndarray
    """

    keys: dict[str, list[Any]]
    n: NDArray[np.int64]
    figures: dict[str, NDArray[np.float64]]


class Rows:
    """Rows of a table in an engine.

    Parameters
    ----------
    frame : narwhals frame or native one
        Polars LazyFrame, DuckDB relation, Dask or Spark dataframe, …; a frame in memory counts as
        an engine too.

    Attributes
    ----------
    frame : narwhals.LazyFrame
    engine : str
        Its common name.
    schema : dict
        Type of each column.
    """

    def __init__(self, frame: Any) -> None:
        self.frame: nw.LazyFrame[Any] = wrapped(frame).lazy()
        name = self.frame.implementation.value
        self.engine = _NAMES.get(name, name)
        if self.engine == "Dask" or self.engine not in _EXACT:
            names = list(self.frame.to_native().columns)
            _check_case(names, self.engine)
            check_names(names, self.engine)  # the schema could not hold two of one name
        self.schema: dict[str, Any] = dict(self.asked(self.frame.collect_schema))
        check_names(list(self.schema), self.engine)

    def is_number(self, name: str) -> bool:
        """Say whether a column holds numbers."""
        return bool(self.schema[name].is_numeric())

    def with_floats(self, names: Sequence[str]) -> Rows:
        """Let the engine compute with these numbers, if it would refuse some of them."""
        # PyArrow casts no whole number that a float64 rounds, but divides it.
        whole = [n for n in names if n in self.schema and self.schema[n].is_integer()]
        if self.engine != "PyArrow" or not whole:
            return self
        return Rows(self.frame.with_columns(*(nw.col(name) / 1 for name in whole)))

    def ok(self) -> Rows:
        """Return the rows whose column ``status`` does not mean a failed prediction."""
        status, kind = nw.col("status"), self.schema["status"]
        if kind.is_float():
            return self.filtered(status.is_null() | status.is_nan())
        if not (kind.is_integer() or kind == nw.Object or isinstance(kind, _TEXT)):
            return self.filtered(status.is_null())  # no value of another type is one of these texts
        text = status.cast(nw.String).str.strip_chars(_SPACES).str.to_lowercase()
        return self.filtered(text.is_null() | text.is_in(STATUS_OK))

    def positive_or_bad(self, name: str, other: str) -> Rows:
        """Leave out rows in which a column is not positive; keep those without a number."""
        bad = nw.lit(False)
        for column in (name, other):
            value = nw.col(column).cast(nw.Float64)
            bad = bad | value.is_null() | ~value.is_finite()
        return self.filtered((nw.col(name) > 0) | bad)

    def with_numbers(self, *names: str) -> Rows:
        """Leave out rows in which one of these columns is null or NaN."""
        missing = nw.lit(False)
        for name in names:
            value = nw.col(name).cast(nw.Float64)
            missing = missing | value.is_null() | value.is_nan().fill_null(True)
        return self.filtered(~missing)

    def where(self, name: str, texts: Sequence[str | None]) -> Rows:
        """Keep rows whose column has one of these values, as `distinct_texts` writes them."""
        text = nw.col(name).cast(nw.String)
        chosen = [choice for choice in texts if choice is not None]
        # Dask's `is_in` leaves out zero bytes at the end; PyArrow's needs one text.
        ending = [choice for choice in chosen if choice.endswith("\0")]
        others = [choice for choice in chosen if not choice.endswith("\0")]
        condition = text.is_null() & nw.lit(None in texts)
        for found in (*(text == end for end in ending), *([text.is_in(others)] if others else [])):
            condition = condition | found
        return self.filtered(condition)

    def filtered(self, condition: nw.Expr) -> Rows:
        """Return the rows that meet a condition."""
        return Rows(self.asked(lambda: self.frame.filter(condition)))

    def count(self) -> int:
        """Count the rows."""
        table = self._fetched(lambda: self.frame.select(nw.len().alias(f"{MARK}n")))
        return int(table[f"{MARK}n"].to_list()[0])

    def empty(self, names: Sequence[str]) -> set[str]:
        """Return the columns without any value; the empty set if there are no rows."""
        if not names:
            return set()
        counts = [nw.col(name).count().alias(_numbered(names)[i]) for i, name in enumerate(names)]
        rows = nw.len().alias(f"{MARK}n")
        table = self._fetched(lambda: self.frame.select(rows, *counts))
        if not int(table[f"{MARK}n"].to_list()[0]):
            return set()
        numbered = zip(names, _numbered(names), strict=True)
        return {name for name, key in numbered if not table[key].to_list()[0]}

    def distinct(self, name: str, most: int) -> list[Any]:
        """Return the different values of a column, `most` at the most."""
        table = self._fetched(lambda: self.frame.select(name).unique().head(most), (name,))
        return list(self._read(table, name, name).tolist())

    def distinct_texts(self, name: str, most: int) -> list[tuple[Any, str | None]]:
        """Return the different values of a column, each with the engine's text for it."""
        value, text = nw.col(name).alias(f"{MARK}v"), nw.col(name).cast(nw.String).alias(f"{MARK}t")
        table = self._fetched(lambda: self.frame.select(value, text).unique().head(most), (name,))
        both = (self._read(table, f"{MARK}{suffix}", name) for suffix in "vt")
        return list(zip(*both, strict=True))

    def totals(self, by: Sequence[str], sums: Sequence[Sum]) -> Totals:
        """Sum over the rows of each group, inside the engine.

        Groups come in no particular order, and a group may be split: see `Totals.merged`.
        """
        wanted = [nw.len().alias(f"{MARK}n"), *(sum_of(total) for total in sums)]

        def added_up() -> nw.LazyFrame[Any]:
            frame = self._with_terms(by, {term for total in sums for term in total.terms})
            if products := [product_of(total) for total in sums if total.is_product]:
                frame = frame.with_columns(*products)
            return frame.group_by(*_numbered(by)).agg(*wanted) if by else frame.select(*wanted)

        table = self._fetched(added_up, by)
        added = {total: _floats(table, _name_of(total)) for total in sums}
        return Totals(self._plain_keys(table, by), _counts(table), added)

    def grouped(
        self,
        keys: Mapping[str, nw.Expr],
        figures: Mapping[str, tuple[str, nw.Expr]],
        most: int,
        *,
        by: Sequence[str] = (),
    ) -> Grouped:
        """Group by expressions inside the engine, and fetch at most `most` groups.

        Parameters
        ----------
        keys : mapping of str to expression
        figures : mapping of str to (how, expression)
            The first entry is ``"sum"``, ``"min"`` or ``"max"``.
        most : int
        by : sequence of str
            Columns that are keys, for messages.
        """
        named, values = _numbered(tuple(keys)), [f"{MARK}v{i}" for i in range(len(figures))]
        hows = zip(values, figures.values(), strict=True)
        wanted = [nw.len().alias(f"{MARK}n"), *(getattr(nw.col(v), how)() for v, (how, _) in hows)]

        def made() -> nw.LazyFrame[Any]:
            frame = self.frame.select(
                *(col.alias(name) for name, col in zip(named, keys.values(), strict=True)),
                *(col.alias(name) for name, (_, col) in zip(values, figures.values(), strict=True)),
            )
            return frame.group_by(*named).agg(*wanted).head(most)

        table = self._fetched(made, by)
        floats = (_floats(table, name) for name in values)
        numbered = zip(keys, named, strict=True)
        return Grouped(
            {
                name: self._read(table, at, name.removeprefix("key:")).tolist()
                for name, at in numbered
            },
            _counts(table),
            dict(zip(figures, floats, strict=True)),
        )

    def histogram(self, by: Sequence[str], log_term: str) -> Histogram:
        """Count rows per group and bucket of a logarithm, inside the engine."""
        keys, bucket = _numbered(by), f"{MARK}bucket"

        def counted() -> nw.LazyFrame[Any]:
            frame = self._with_terms(by, {log_term}).select(*keys, bucket_of(log_term))
            return frame.group_by(*keys, bucket).agg(nw.len().alias(f"{MARK}n"))

        table = self._fetched(counted, by)
        counts = Totals(self._plain_keys(table, by), _counts(table), {})
        return Histogram.of(counts, table[bucket].to_list())

    def examples(self, bad: Condition) -> tuple[int, list[dict[str, Any]]]:
        """Count the rows that are bad, and fetch three of them."""
        chosen = self.filtered(bad(nw.col))
        n = chosen.count()
        if not n:
            return 0, []

        def placed() -> nw.LazyFrame[Any]:
            native = with_partition(chosen.frame.to_native(), self.engine)
            frame: nw.LazyFrame[Any] = nw.from_native(native).lazy()
            return frame.head(3)

        table = self._fetched(placed)
        columns = [_written(table, name) for name in table.columns]
        rows = zip(*columns, strict=True)
        return n, [dict(zip(table.columns, row, strict=True)) for row in rows]

    def _with_terms(self, by: Sequence[str], terms: set[str]) -> nw.LazyFrame[Any]:
        measured = nw.col("measured").cast(nw.Float64)
        frame = self.frame.select(
            # Names such as "a.b" or "_errcomp_n" have a special meaning for an engine, or here.
            *(nw.col(name).alias(key) for name, key in zip(by, _numbered(by), strict=True)),
            nw.col("predicted").cast(nw.Float64).alias(f"{MARK}p"),
            nw.when(measured > 0).then(measured).alias(f"{MARK}m"),
        )
        for step in base_terms(terms):
            frame = frame.with_columns(*step)
        return frame

    def _fetched(
        self, make: Callable[[], nw.LazyFrame[Any]], by: Sequence[str] = ()
    ) -> nw.DataFrame[Any]:
        """Run a query that compares or writes the values of some columns."""
        # Polars' streaming engine holds only what it needs.
        options: Any = {"engine": "streaming"} if self.engine == "Polars" else {}
        try:
            return self.asked(lambda: make().collect(**options))
        except EngineError as error:
            for name in by:
                if self._is_odd(name, error):
                    kind = shown(self.schema[name])
                    raise _unusable(name, f"{kind}: {error}", self.engine) from error
            raise

    def _is_odd(self, name: str, error: EngineError) -> bool:
        """Say whether a query may have failed for the type of this column."""
        kind = self.schema.get(name)
        if kind is None or kind.is_numeric():
            return False
        if kind == nw.Object or isinstance(kind, _PLAIN):
            # A list among objects, which Dask calls text; half of a surrogate pair.
            return isinstance(error.__cause__, TypeError | UnicodeError)
        return True

    def _plain_keys(self, table: nw.DataFrame[Any], by: Sequence[str]) -> dict[str, list[Any]]:
        numbered = zip(by, _numbered(by), strict=True)
        return {name: plain_values(name, self._read(table, at, name)) for name, at in numbered}

    def _read(self, table: nw.DataFrame[Any], at: str, name: str) -> NDArray[Any]:
        """Return the values of a column that was fetched."""
        try:
            return column_values(table, at)
        except (ValueError, OverflowError) as error:
            # Python has no dates after the year 9999, and no text that is not UTF-8.
            raise _unusable(name, shown(error.__cause__ or error), self.engine) from error

    def asked(self, work: Callable[[], T]) -> T:
        """Run a query, and name the engine if it fails."""
        try:
            with np.errstate(all="ignore"):  # pandas computes with NumPy
                return work()
        except (ErrcompError, MemoryError):
            raise
        except ModuleNotFoundError as error:
            extra = self.engine.lower()
            purpose = f"fetching sums from {self.engine}"
            raise MissingExtraError(str(error.name), extra, purpose) from error
        except Exception as error:
            # Engines raise anything: for a dead worker, an invalid file, a full disk.
            first = (str(error).strip() or type(error).__name__).split("\n", maxsplit=1)[0]
            raise EngineError(f"{self.engine} failed: {first[:300]}") from error


def _check_case(names: Sequence[str], engine: str) -> None:
    """Raise if an engine that ignores case would take one column for another."""
    seen: dict[Any, str] = {}
    for name in names if engine not in _EXACT else ():
        # DuckDB ignores the case of ASCII letters only.
        key = name.encode().lower() if engine == "DuckDB" else name.lower()
        if (other := seen.setdefault(key, name)) != name:
            raise InputError(
                f"columns {other!r} and {name!r} have the same name in {engine}, which ignores "
                "case. Rename one of them."
            )


def shown(value: Any, most: int = _SHOWN) -> str:
    r"""Write a value or a name for a message: on one line, and cut.

    Examples
    --------
    >>> shown(0.5), shown("net3"), shown("a\nb")
    ('0.5', 'net3', "'a\\nb'")
    """
    text = str(value)
    cut = text if len(text) <= most else f"{text[: most - 3]}..."
    return cut if cut.isprintable() else repr(cut)


def _unusable(name: str, reason: str, engine: str) -> InputError:
    remedy = f"Turn the column into plain text in {engine} first."
    return InputError(f"cannot group or select by {name!r} ({reason.rstrip('.')}). {remedy}")


def _written(table: nw.DataFrame[Any], name: str) -> list[Any]:
    """Return the values of a column for a message."""
    try:
        return table[name].to_list()
    except (ValueError, OverflowError):
        return [f"a {table.schema[name]}"] * len(table)


def _numbered(by: Sequence[str]) -> list[str]:
    return [f"{MARK}key_{i}" for i in range(len(by))]


def _counts(table: nw.DataFrame[Any]) -> NDArray[np.int64]:
    return np.asarray(table[f"{MARK}n"].to_numpy(), dtype=np.int64)


def _floats(table: nw.DataFrame[Any], name: str) -> NDArray[np.float64]:
    return np.asarray(table[name].cast(nw.Float64).to_numpy(), dtype=np.float64)


# Terms to sum over rows: errors of pairs and their products, as expressions of an engine.

#: No float64 has a larger logarithm.
_LARGEST_LOG = 710.0
#: The inverse of a smaller ratio overflows a float64.
_SMALLEST_RATIO = 1e-307
#: Brings the digits of such a ratio back.
_SCALE = 2.0**900


class _Term(NamedTuple):
    """A column computed from others: the function of their expressions, and their names."""

    make: Callable[[Callable[[str], nw.Expr]], nw.Expr]
    needs: tuple[str, ...] = ()


def _positive(expression: nw.Expr) -> nw.Expr:
    """Set other values to missing: engines disagree on the logarithm of zero."""
    return nw.when(expression > 0).then(expression)


def _one_where(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def _factor(ratio: nw.Expr) -> nw.Expr:
    able = nw.when(ratio > _SMALLEST_RATIO).then(ratio)  # some engines fail when they divide by 0
    return nw.when(able > 1.0).then(able).otherwise(1.0 / able) - 1.0


def _log_ratio(c: Callable[[str], nw.Expr]) -> nw.Expr:
    """Return the logarithm of the ratio; one too small for a float64 has few digits, or none."""
    tiny = (c("ratio") < _SMALLEST_RATIO) & (c("p") > 0)
    ratio = nw.when(tiny).then(c("p") * _SCALE / c("m")).otherwise(c("ratio"))
    scale = nw.when(tiny).then(nw.lit(math.log(_SCALE))).otherwise(nw.lit(0.0))
    return _positive(ratio).log() - scale


#: Missing where undefined, so that counts show it; each after the terms that it is computed from.
_TERMS: Mapping[str, _Term] = {
    "signed": _Term(lambda c: c("p") - c("m")),
    "signed_ape": _Term(lambda c: c("signed") / c("m"), ("signed",)),
    "error": _Term(lambda c: (c("p") - c("m")).abs()),
    "ape": _Term(lambda c: c("error") / c("m"), ("error",)),
    "ratio": _Term(lambda c: c("p") / c("m")),
    "symmetric": _Term(lambda c: c("error") * 2.0 / (c("p").abs() + c("m")), ("error",)),
    "high": _Term(lambda c: _one_where(c("p") > c("m"))),
    "low": _Term(lambda c: _one_where(c("p") < c("m"))),
    # Factor between the two, less 1: twice too high and twice too low are both 1.
    "factor": _Term(lambda c: _factor(c("ratio")), ("ratio",)),
    "log_ape": _Term(lambda c: _positive(c("ape")).log(), ("error", "ape")),
    "log_ratio": _Term(_log_ratio, ("ratio",)),
}


def _column(name: str) -> nw.Expr:
    return nw.col(MARK + name)


def base_terms(terms: Iterable[str]) -> list[list[nw.Expr]]:
    """Return the columns of these terms, in steps that build on each other."""
    known = [term for term in terms if term in _TERMS]
    todo = {name for term in known for name in (*_TERMS[term].needs, term)}
    made: set[str] = set()
    steps = []
    while todo:
        ready = [name for name in _TERMS if name in todo and made.issuperset(_TERMS[name].needs)]
        steps.append([_TERMS[name].make(_column).alias(MARK + name) for name in ready])
        made.update(ready)
        todo.difference_update(ready)
    return steps


def _name_of(total: Sum) -> str:
    """Return the column of a sum."""
    # Spark reads a dot as access to a part of a column.
    end = f"_{total.limit:.17g}".replace(".", "_") if total.how == "within" else ""
    return f"{MARK}{total.how}_{'_'.join(total.terms)}{end}"


def product_of(total: Sum) -> nw.Expr:
    """Return the column of products to sum: engines sum only columns."""
    product = _column(total.terms[0])
    for term in total.terms[1:]:
        product = product * _column(term)
    if total.how == "within":
        product = nw.when(product <= total.limit).then(nw.lit(1)).otherwise(nw.lit(0))
    return product.alias(_name_of(total))


def sum_of(total: Sum) -> nw.Expr:
    """Return the sum over its column."""
    column = nw.col(_name_of(total)) if total.is_product else _column(total.terms[0])
    how = {"max": column.max, "count": column.count}.get(total.how, column.sum)
    return how().alias(_name_of(total))


def bucket_of(log_term: str) -> nw.Expr:
    """Return the number of the bucket that holds a logarithm, as a float."""
    # Spark cannot round infinities.
    log = nw.when(_column(log_term) > _LARGEST_LOG).then(nw.lit(1e6)).otherwise(_column(log_term))
    return (log / BUCKET).floor().alias(f"{MARK}bucket")


# The partition of each row, for messages: engines number their partitions.


def with_partition(native: Any, engine: str) -> Any:
    """Add the number of each row's partition, if the engine has partitions."""
    if engine == "Dask":
        # Give Dask the types: it would call the function on two rows to learn them.
        meta = native._meta.assign(**{PARTITION: 0})
        return native.map_partitions(_with_number, meta=meta)
    if engine == "Spark":
        from pyspark.sql import functions

        return native.withColumn(PARTITION, functions.spark_partition_id())
    return native


def _with_number(part: Any, partition_info: dict[str, Any] | None = None) -> Any:
    number = -1 if partition_info is None else partition_info["number"]
    return part.assign(**{PARTITION: number})
