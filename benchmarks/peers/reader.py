"""errcomp's readers of the output of tools, in a process of its own for its memory."""

import polars as pl
from memory import peak_gib

from errcomp.readers.core.ingest import ingest
from errcomp.readers.profilers import kineto

PACKAGES = ("errcomp", "polars", "msgspec")


def read(path):
    """Read, and return the peak memory of the process in GiB."""

    def work():
        kineto.read(path)
        return peak_gib()

    return work


def content(path):
    """Read a file of any format, and return the number of rows."""

    def work():
        return len(ingest(path).rows)

    return work


def figures(path):
    """Return what the peer knows as well: times of kernels, idle time, computation, overlap."""

    def work():
        rows = kineto.read(path).rows
        kernels = rows.filter(pl.col("level") == "kernel")
        sums = kernels.group_by("kernel").agg(pl.col("measured").sum()).rows()
        whole = rows.filter((pl.col("level") == "system") & (pl.col("run") == "trace"))
        times = dict(whole.select("quantity", "measured").rows())
        return dict(sums) | {
            "idle time": times["idle time"],
            "computation time": times["computation time"],
            "overlap": 100 * times["overlap"] / times["communication time"],
        }

    return work
