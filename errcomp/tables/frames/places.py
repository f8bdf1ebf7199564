"""Which part of a table a row lies in, for messages: engines number their parts."""

from __future__ import annotations

from typing import Any

__all__ = ["PARTITION", "with_partition"]

#: The column that is added.
PARTITION = "_errcomp_partition"


def with_partition(native: Any, engine: str) -> Any:
    """Add the number of the part that each row lies in, where the engine has parts."""
    if engine == "Dask":
        # The types, for Dask, which would call the function on two rows to find out.
        meta = native._meta.assign(**{PARTITION: 0})
        return native.map_partitions(_numbered, meta=meta)
    if engine == "Spark":
        from pyspark.sql import functions

        return native.withColumn(PARTITION, functions.spark_partition_id())
    return native


def _numbered(part: Any, partition_info: dict[str, Any] | None = None) -> Any:
    number = -1 if partition_info is None else partition_info["number"]
    return part.assign(**{PARTITION: number})
