"""The SQLite database (RPD) of rocmProfileData."""

from __future__ import annotations

from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.readers.core.sqlite import opened, select, tables_in, whole_numbers
from errcomp.results import Dropped

__all__ = ["is_rpd", "read_rpd"]

_TABLES = {"rocpd_op", "rocpd_string"}
_TIMES = ("start", "end")
_COLUMNS = (*_TIMES, "gpuId", "queueId", "description_id", "opType_id")
_COPY, _FILL = "Copy", "Fill"
#: Operations that are no work.
_MARKERS = frozenset(("Barrier", "Marker", "Task", "UserMarker"))


def is_rpd(source: Source) -> bool:
    """Say whether this is a database that rocmProfileData wrote."""
    return (tables_in(source) or set()) >= _TABLES


def read_rpd(source: Source) -> Output:
    """Read the kernels and copies of a database."""
    import polars as pl

    with opened(source) as database:
        columns, rows = select(database, "rocpd_op", _COLUMNS)
        names, texts = select(database, "rocpd_string", ("id", "string"))
    if not {*_TIMES, "description_id", "opType_id"} <= set(columns) or len(names) < 2:
        raise source.error(
            "its tables rocpd_op and rocpd_string have not the columns of rocmProfileData. Convert "
            "it with rpd2tracing."
        )
    known = {number: text for number, text in texts if isinstance(text, str)}
    frame = whole_numbers(columns, rows)
    kinds = [known.get(one, "") for one in frame["opType_id"].to_list()]
    described = [known.get(one, "") for one in frame["description_id"].to_list()]
    kernels = [
        text or kind or "kernel without a name" for text, kind in zip(described, kinds, strict=True)
    ]
    classes = [_class_of(kind, kernel) for kind, kernel in zip(kinds, kernels, strict=True)]
    found = frame.select(
        *((pl.col("gpuId").alias("device_id"),) if "gpuId" in columns else ()),
        *((pl.col("queueId").alias("stream"),) if "queueId" in columns else ()),
        *_TIMES,
        measured=(pl.col("end") - pl.col("start")).cast(pl.Float64),
        kernel=pl.Series(kernels, dtype=pl.String),
        kernel_class=pl.Series(classes, dtype=pl.String),
    )
    markers = pl.Series([kind in _MARKERS for kind in kinds], dtype=pl.Boolean)
    found = found.filter(~markers).sort("start", maintain_order=True).drop("end")
    found = found.with_columns(
        tool=pl.lit("rocprof"), level=pl.lit("kernel"), quantity=pl.lit("time"), unit=pl.lit("ns")
    )
    dropped = [Dropped("barriers and markers", int(markers.sum()))] if markers.any() else []
    return output(source.name, "rocprof-rpd", found, dropped=dropped)


def _class_of(kind: str, kernel: str) -> str:
    if kind.startswith(_COPY):
        return "memcpy"
    return "memset" if kind.startswith(_FILL) else kernel
