"""What tables need of the rows of readers: names where there are none, no empty columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["named_by_file", "without_empty"]


def named_by_file(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill in what only other files say: a file without runs is one run, its kernels ran once."""
    import polars as pl

    own = {"run": pl.col("file"), "count": pl.lit(1), "kernel_class": pl.col("kernel")}
    for name, value in own.items():
        if {name, "file", "kernel"} <= set(rows.columns) and rows[name].null_count():
            nowhere = pl.col(name).is_null().all().over("file")
            found = pl.when(nowhere).then(value).otherwise(pl.col(name))
            rows = rows.with_columns(found.alias(name))
    return rows


def without_empty(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out values that no row has."""
    empty = [
        name
        for name in ("predicted", "measured", "run_measured")
        if name in rows.columns and rows[name].null_count() == len(rows)
    ]
    return rows.drop(empty)
