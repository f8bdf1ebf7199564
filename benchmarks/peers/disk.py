"""Files on disk: grouped figures by errcomp and by Polars, and the reading alone.

Each in a process of its own, for its memory. Files are dropped from the system's cache before each
run, so that they come from the disk.
"""

import os
from pathlib import Path

import polars as pl
from memory import peak_gib

PACKAGES = ("errcomp", "polars")


def _files(folder):
    found = sorted(Path(folder).glob("*.parquet"))
    for path in found:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return found


def summary(folder, level):
    import bench_grouped

    import errcomp as ec

    def work():
        _files(folder)
        ec.summarize(ec.scan(folder), by="group", figures=bench_grouped.FIGURES, level=level)
        return peak_gib()

    return work


def polars(folder):
    import bench_grouped

    def work():
        frame = pl.scan_parquet(_files(folder))
        bench_grouped.by_hand(frame).collect(engine="streaming")
        return peak_gib()

    return work


def reading(folder):
    def work():
        for path in _files(folder):
            with path.open("rb", buffering=0) as file:
                while file.read(1 << 24):
                    pass
        return peak_gib()

    return work
