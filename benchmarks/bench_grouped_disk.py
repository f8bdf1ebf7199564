"""How fast grouped figures of files larger than memory are, and how much memory they take.

Run: python benchmarks/bench_grouped_disk.py [--quick] [-o FOLDER]

A hundred million rows in ten Parquet files, in a temporary folder (2.5 GB are written; TMPDIR says
where). Each side is a process of its own, and files are dropped from the system's cache before each
run. Apart from `run_all.py`, because it takes minutes and disk.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import asking
import bench_grouped
import environments

PART = 10_000_000


def write(folder: Path, rows: int) -> int:
    """Write the rows in parts; return the bytes."""
    folder.mkdir()
    for i, start in enumerate(range(0, rows, PART)):
        part = bench_grouped.table(min(PART, rows - start), bench_grouped.GROUPS, i)
        part.write_parquet(folder / f"part-{i:04}.parquet")
    # Only what is written can be dropped from the cache.
    os.sync()
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def measure(question: asking.Question) -> None:
    most = 6 if question.quick else 8
    question.runs, question.budget = 5, 1.0
    with tempfile.TemporaryDirectory() as place:
        seconds = {}
        for power in range(5, most + 1):
            rows, folder = 10**power, Path(place) / f"{power}"
            size = write(folder, rows)

            def peer(task: str, folder: Path = folder, **more: object) -> environments.Peer:
                return environments.Peer("disk", task, folder=str(folder), **more)

            if power < most:
                seconds[rows] = question.alone(peer("summary", level=None))
        found = question.against(
            "six figures by group, files on disk",
            rows,
            "rows",
            peer("summary", level=None),
            same=False,
            why="Both read the same files from the disk and compute six figures of each group.",
            Polars_streaming=peer("polars"),
        )
        ours_row = found["Polars streaming"]
        seconds[rows] = ours_row["ours_seconds"]
        reading = question.alone(peer("reading"))
        question.keep_growth("six figures by group, files on disk", "rows", seconds)
        question.note("size of the files", size / 1e9, "GB")
        question.note("speed of the disk", size / reading / 1e9, "GB/s")
        question.note("rows per second", rows / ours_row["ours_seconds"] / 1e6, "million")
        question.note("bytes of the files per second", size / seconds[rows] / 1e9, "GB/s")
        ours, polars = ours_row["values"]
        question.note("memory of Polars (streaming)", polars, "GiB")
        question.target(f"memory of {rows:,} rows", ours, 4, "GiB")
        with_intervals = question.alone(peer("summary", level=0.95))
        question.note("with intervals of 95 %", with_intervals, "s")


if __name__ == "__main__":
    asking.ask(
        "grouped_disk",
        "Grouped summary of files larger than memory",
        "Six figures of each of 10,000 groups, from Parquet files on disk.",
        measure,
    )
