"""The SQLite database (rocpd) of rocprofv3."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.readers.core.sqlite import opened, select, tables_in, tables_of, whole_numbers

if TYPE_CHECKING:
    import polars as pl

__all__ = ["is_rocpd", "read_rocpd"]

_DISPATCH, _COPY = "rocpd_kernel_dispatch", "rocpd_memory_copy"
_TIMES = ("start", "end")
_OF_DISPATCH = (*_TIMES, "pid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id")
_AXES = tuple(f"{one}_size_{axis}" for one in ("grid", "workgroup") for axis in "xyz")
_OF_COPY = (*_TIMES, "pid", "dst_agent_id", "name_id", "size", "stream_id")


def is_rocpd(source: Source) -> bool:
    """Say whether this is a database that rocprofv3 wrote."""
    tables = tables_in(source) or set()
    return any(one.startswith(_DISPATCH) for one in tables)


def read_rocpd(source: Source) -> Output:
    """Read the dispatches and copies of all processes of a database."""
    import polars as pl

    found: list[pl.DataFrame | None] = []
    with opened(source) as database:
        tables = tables_of(database)
        own = sorted(one for one in tables if one.startswith(f"{_DISPATCH}_"))
        # Each process has tables of its own; views without its name show those of all.
        for suffix in [one.removeprefix(_DISPATCH) for one in own] or [""]:
            found.append(_dispatches(source, database, suffix))
            if f"{_COPY}{suffix}" in tables:
                found.append(_copies(database, suffix))
    frame = pl.concat([one for one in found if one is not None], how="diagonal_relaxed")
    if frame.is_empty():
        raise source.error("no kernel that ran in it. Profile with --kernel-trace.")
    frame = frame.sort("start", maintain_order=True).with_columns(
        tool=pl.lit("rocprof"),
        level=pl.lit("kernel"),
        quantity=pl.lit("time"),
        unit=pl.lit("ns"),
        measured=(pl.col("end") - pl.col("start")).cast(pl.Float64),
    )
    return output(source.name, "rocprof-rocpd", frame.drop("end"))


def _dispatches(source: Source, database: sqlite3.Connection, suffix: str) -> pl.DataFrame:
    import polars as pl

    columns, rows = select(database, _DISPATCH + suffix, _OF_DISPATCH + _AXES)
    if not {*_TIMES, "kernel_id"} <= set(columns):
        raise source.error(
            f"table {_DISPATCH}{suffix} has no start, end and kernel_id. It may come from a "
            "version of rocprofv3 that is not known here: convert it with rocpd to CSV."
        )
    frame = whole_numbers(columns, rows)
    names = _texts(database, f"rocpd_info_kernel_symbol{suffix}", ("display_name", "kernel_name"))
    kernels = [
        names.get(one) or f"kernel {one}" for one in frame["kernel_id"].fill_null(-1).to_list()
    ]
    shapes = {
        shape: pl.concat_str([pl.col(f"{column}_size_{axis}") for axis in "xyz"], separator="x")
        for shape, column in (("grid", "grid"), ("block", "workgroup"))
        if f"{column}_size_x" in columns
    }
    stream = next((one for one in ("stream_id", "queue_id") if one in columns), None)
    return frame.select(
        *_TIMES,
        *((pl.col(stream).alias("stream"),) if stream else ()),
        *(pl.col(one).alias(new) for one, new in _KEYS.items() if one in columns),
        kernel=pl.Series(kernels, dtype=pl.String),
        kernel_class=pl.Series(kernels, dtype=pl.String),
        device=_devices(database, frame, "agent_id", suffix),
        **shapes,
    )


_KEYS = {"pid": "process", "dispatch_id": "dispatch", "agent_id": "device_id", "size": "bytes"}


def _copies(database: sqlite3.Connection, suffix: str) -> pl.DataFrame | None:
    import polars as pl

    columns, rows = select(database, _COPY + suffix, _OF_COPY)
    if not set(_TIMES) <= set(columns) or not rows:
        return None
    frame = whole_numbers(columns, rows)
    names = _texts(database, f"rocpd_string{suffix}", ("string",))
    ids = frame["name_id"].to_list() if "name_id" in columns else [None] * len(frame)
    kinds = [(names.get(one) or "").removeprefix("MEMORY_COPY_") for one in ids]
    return frame.select(
        *_TIMES,
        *(pl.col(one).alias(new) for one, new in _KEYS.items() if one in columns),
        kernel=pl.Series([f"copy {kind}".strip() for kind in kinds], dtype=pl.String),
        kernel_class=pl.lit("memcpy"),
        device=_devices(database, frame, "dst_agent_id", suffix),
        **({"stream": pl.col("stream_id")} if "stream_id" in columns else {}),
    )


def _texts(
    database: sqlite3.Connection, table: str, wanted: tuple[str, ...]
) -> dict[int | None, str]:
    """Return the first text that each numbered row of a table has."""
    if table not in tables_of(database):
        return {}
    columns, rows = select(database, table, ("id", *wanted))
    if columns[:1] != ["id"]:
        return {}
    found: dict[int | None, str] = {}
    for one, *texts in rows:
        text = next((text for text in texts if isinstance(text, str) and text), None)
        if isinstance(one, int) and text is not None:
            found[one] = text
    return found


def _devices(
    database: sqlite3.Connection, frame: pl.DataFrame, column: str, suffix: str
) -> pl.Series:
    import polars as pl

    names = _texts(database, f"rocpd_info_agent{suffix}", ("product_name", "name"))
    ids = frame[column].to_list() if column in frame.columns else [None] * len(frame)
    return pl.Series([names.get(one) for one in ids], dtype=pl.String)
