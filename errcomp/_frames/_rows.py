"""Rows that stay in the engine they are in: only sums over them are fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from errcomp._frames._eager import column_values
from errcomp._frames._terms import MARK, Sum, base_terms, bucket_of, product_of, sum_of
from errcomp.errors import EngineError, ErrcompError, MissingExtraError

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    T = TypeVar("T")
    #: A condition on rows, from the expressions of their columns.
    Condition = Callable[[Callable[[str], nw.Expr]], nw.Expr]

__all__ = ["Rows", "in_engine"]

#: What people call an engine, by Narwhals' name of its implementation.
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
_TEXT_OK = ("", "ok", "success", "0", "none")


def in_engine(native: Any) -> bool:
    """Say whether this is a frame whose rows are not in memory: lazy, distributed, a relation."""
    import narwhals as nw

    return isinstance(nw.from_native(native, pass_through=True), nw.LazyFrame)


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
        What people call it.
    schema : dict
        Type of each column.
    """

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        wrapped = nw.from_native(frame, pass_through=False)
        self.frame: nw.LazyFrame[Any] = wrapped.lazy()
        name = self.frame.implementation.value
        self.engine = _NAMES.get(name, name)
        self.schema: dict[str, Any] = dict(self.asked(self.frame.collect_schema))

    def is_number(self, name: str) -> bool:
        """Say whether a column holds numbers."""
        return bool(self.schema[name].is_numeric())

    def ok(self) -> Rows:
        """Return the rows whose column ``status`` does not say that the prediction failed."""
        import narwhals as nw

        status = nw.col("status").cast(nw.String).str.strip_chars().str.to_lowercase()
        return Rows(self.frame.filter(status.is_null() | status.is_in(_TEXT_OK)))

    def positive(self, name: str) -> Rows:
        """Return the rows in which a column is positive or missing."""
        import narwhals as nw

        return Rows(self.frame.filter((nw.col(name) > 0) | nw.col(name).is_null()))

    def where(self, conditions: Mapping[str, Sequence[Any]]) -> Rows:
        """Keep rows whose columns have one of the values given for each, compared as text."""
        import narwhals as nw

        chosen = self.frame
        for name, values in conditions.items():
            chosen = chosen.filter(nw.col(name).cast(nw.String).is_in([str(v) for v in values]))
        return Rows(chosen)

    def count(self) -> int:
        """Count the rows."""
        import narwhals as nw

        found = self._fetched(self.frame.select(nw.len().alias(f"{MARK}n")))
        return int(found[f"{MARK}n"].to_list()[0])

    def distinct(self, name: str, most: int) -> list[Any]:
        """Return the different values of a column, up to so many of them."""
        table = self._fetched(self.frame.select(name).unique().head(most))
        return list(column_values(table, name).tolist())

    def totals(self, by: Sequence[str], sums: Sequence[Sum]) -> dict[str, Any]:
        """Add up over the rows of each group, inside the engine.

        Returns
        -------
        dict
            For each key the values of the groups, for each sum an array of floats by its name, and
            the number of rows as ``"n"``; groups in no particular order.
        """
        import narwhals as nw

        frame = self._with_terms(by, {term for one in sums for term in one.terms})
        frame = frame.with_columns(*(product_of(one) for one in sums))
        wanted = [nw.len().alias(f"{MARK}n"), *(sum_of(one) for one in sums)]
        found = frame.group_by(*by).agg(*wanted) if by else frame.select(*wanted)
        table = self._fetched(found)
        keys = {name: column_values(table, name).tolist() for name in by}
        return {**keys, **{s.name: _floats(table, s.name) for s in sums}, "n": _counts(table)}

    def histogram(self, by: Sequence[str], log_term: str, width: float) -> dict[str, Any]:
        """Count rows by group and by bucket of a logarithm, inside the engine.

        Returns
        -------
        dict
            For each key its values, ``"bucket"`` (None where the logarithm does not exist) and the
            number of rows as ``"n"``, in no particular order.
        """
        import narwhals as nw

        frame = self._with_terms(by, {log_term}).select(*by, bucket_of(log_term, width))
        found = frame.group_by(*by, f"{MARK}bucket").agg(nw.len().alias(f"{MARK}n"))
        table = self._fetched(found)
        keys = {name: column_values(table, name).tolist() for name in by}
        return {**keys, "bucket": table[f"{MARK}bucket"].to_list(), "n": _counts(table)}

    def examples(self, bad: Condition) -> tuple[int, list[dict[str, Any]]]:
        """Count the rows that are bad, and fetch three of them."""
        import narwhals as nw

        chosen = self.frame.filter(bad(nw.col))
        n = Rows(chosen).count()
        return n, self._fetched(chosen.head(3)).rows(named=True) if n else []

    def _with_terms(self, by: Sequence[str], terms: set[str]) -> nw.LazyFrame[Any]:
        import narwhals as nw

        measured = nw.col("measured").cast(nw.Float64)
        frame = self.frame.select(
            *by,
            nw.col("predicted").cast(nw.Float64).alias(f"{MARK}p"),
            nw.when(measured > 0).then(measured).alias(f"{MARK}m"),
        )
        for step in base_terms(terms):
            frame = frame.with_columns(*step)
        return frame

    def _fetched(self, frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
        # Polars' streaming engine is the one that holds no more than it needs.
        options: Any = {"engine": "streaming"} if self.engine == "Polars" else {}
        return self.asked(lambda: frame.collect(**options))

    def asked(self, work: Callable[[], T]) -> T:
        """Run what makes the engine work, and name the engine if it fails."""
        try:
            return work()
        except (ErrcompError, MemoryError):
            raise
        except ModuleNotFoundError as error:
            extra = self.engine.lower()
            purpose = f"fetching sums from {self.engine}"
            raise MissingExtraError(str(error.name), extra, purpose) from error
        except Exception as error:
            # Engines raise what they like: a worker that died, a file that is none, a full disk.
            first = (str(error).strip() or type(error).__name__).split("\n", maxsplit=1)[0]
            raise EngineError(f"{self.engine} failed: {first[:300]}") from error


def _counts(table: nw.DataFrame[Any]) -> NDArray[np.int64]:
    return np.asarray(table[f"{MARK}n"].to_numpy(), dtype=np.int64)


def _floats(table: nw.DataFrame[Any], name: str) -> NDArray[np.float64]:
    import narwhals as nw

    return np.asarray(table[name].cast(nw.Float64).to_numpy(), dtype=np.float64)
