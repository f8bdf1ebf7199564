"""Rows that stay in their engine: only sums over them are fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import narwhals as nw
import numpy as np

from errcomp.errors import EngineError, ErrcompError, MissingExtraError
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
        if self.engine in ("Dask", "Spark"):
            check_names(list(self.frame.to_native().columns), self.engine)
        self.schema: dict[str, Any] = dict(self.asked(self.frame.collect_schema))
        check_names(list(self.schema), self.engine)

    def is_number(self, name: str) -> bool:
        """Say whether a column holds numbers."""
        return bool(self.schema[name].is_numeric())

    def ok(self) -> Rows:
        """Return the rows whose column ``status`` does not mean a failed prediction."""
        status = nw.col("status").cast(nw.String).str.strip_chars().str.to_lowercase()
        missing = ("nan",) if self.schema["status"].is_float() else ()
        return self.filtered(status.is_null() | status.is_in((*STATUS_OK, *missing)))

    def positive_or_bad(self, name: str, other: str) -> Rows:
        """Leave out rows in which a column is not positive; keep those without a number."""
        bad = nw.lit(False)
        for column in (name, other):
            value = nw.col(column).cast(nw.Float64)
            bad = bad | value.is_null() | ~value.is_finite()
        return self.filtered((nw.col(name) > 0) | bad)

    def where(self, name: str, texts: Sequence[str | None]) -> Rows:
        """Keep rows whose column has one of these values, as `distinct_texts` writes them."""
        text = nw.col(name).cast(nw.String)
        chosen = text.is_in([choice for choice in texts if choice is not None])
        return self.filtered(chosen | text.is_null() if None in texts else chosen)

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
        table = self._fetched(lambda: self.frame.select(name).unique().head(most))
        return list(column_values(table, name).tolist())

    def distinct_texts(self, name: str, most: int) -> list[tuple[Any, str | None]]:
        """Return the different values of a column, each with the engine's text for it."""
        value, text = nw.col(name).alias(f"{MARK}v"), nw.col(name).cast(nw.String).alias(f"{MARK}t")
        table = self._fetched(lambda: self.frame.select(value, text).unique().head(most))
        return list(zip(*(column_values(table, f"{MARK}{suffix}") for suffix in "vt"), strict=True))

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

        table = self._fetched(added_up)
        added = {total: _floats(table, _name_of(total)) for total in sums}
        return Totals(_plain_keys(table, by), _counts(table), added)

    def grouped(
        self, keys: Mapping[str, nw.Expr], figures: Mapping[str, tuple[str, nw.Expr]], most: int
    ) -> Grouped:
        """Group by expressions inside the engine, and fetch at most `most` groups.

        Parameters
        ----------
        keys : mapping of str to expression
        figures : mapping of str to (how, expression)
            The first entry is ``"sum"``, ``"min"`` or ``"max"``.
        most : int
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

        table = self._fetched(made)
        floats = (_floats(table, name) for name in values)
        return Grouped(
            _keys(table, tuple(keys)), _counts(table), dict(zip(figures, floats, strict=True))
        )

    def histogram(self, by: Sequence[str], log_term: str) -> Histogram:
        """Count rows per group and bucket of a logarithm, inside the engine."""
        keys, bucket = _numbered(by), f"{MARK}bucket"

        def counted() -> nw.LazyFrame[Any]:
            frame = self._with_terms(by, {log_term}).select(*keys, bucket_of(log_term))
            return frame.group_by(*keys, bucket).agg(nw.len().alias(f"{MARK}n"))

        table = self._fetched(counted)
        counts = Totals(_plain_keys(table, by), _counts(table), {})
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

        return n, self._fetched(placed).rows(named=True)

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

    def _fetched(self, make: Callable[[], nw.LazyFrame[Any]]) -> nw.DataFrame[Any]:
        # Polars' streaming engine holds only what it needs.
        options: Any = {"engine": "streaming"} if self.engine == "Polars" else {}
        return self.asked(lambda: make().collect(**options))

    def asked(self, work: Callable[[], T]) -> T:
        """Run a query, and name the engine if it fails."""
        try:
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


def _numbered(by: Sequence[str]) -> list[str]:
    return [f"{MARK}key_{i}" for i in range(len(by))]


def _keys(table: nw.DataFrame[Any], by: Sequence[str]) -> dict[str, list[Any]]:
    numbered = zip(by, _numbered(by), strict=True)
    return {name: column_values(table, key).tolist() for name, key in numbered}


def _plain_keys(table: nw.DataFrame[Any], by: Sequence[str]) -> dict[str, list[Any]]:
    return {name: plain_values(name, values) for name, values in _keys(table, by).items()}


def _counts(table: nw.DataFrame[Any]) -> NDArray[np.int64]:
    return np.asarray(table[f"{MARK}n"].to_numpy(), dtype=np.int64)


def _floats(table: nw.DataFrame[Any], name: str) -> NDArray[np.float64]:
    return np.asarray(table[name].cast(nw.Float64).to_numpy(), dtype=np.float64)


# Terms to sum over rows: errors of pairs and their products, as expressions of an engine.

#: No float64 has a larger logarithm.
_LARGEST_LOG = 710.0
#: The inverse of a smaller ratio overflows a float64.
_SMALLEST_RATIO = 1e-307


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
    "log_ratio": _Term(lambda c: _positive(c("ratio")).log(), ("ratio",)),
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
