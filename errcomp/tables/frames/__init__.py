"""The one folder that knows Narwhals: the user's own frame in, arrays and native frames out.

Frames in memory become arrays. Rows in an engine (a lazy frame, a DuckDB relation, Dask, Spark)
stay there, and only sums over them are fetched.
"""

from errcomp.tables.frames.cells import Cells, Logs, cells_of
from errcomp.tables.frames.eager import column_values, frame_from_columns, is_missing, to_eager
from errcomp.tables.frames.places import PARTITION
from errcomp.tables.frames.rows import Added, Rows, in_engine
from errcomp.tables.frames.terms import MARK, Sum

__all__ = [
    "MARK",
    "PARTITION",
    "Added",
    "Cells",
    "Logs",
    "Rows",
    "Sum",
    "cells_of",
    "column_values",
    "frame_from_columns",
    "in_engine",
    "is_missing",
    "to_eager",
]
