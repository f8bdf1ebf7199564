"""Grouped figures inside Spark and Dask, beside the same aggregation by hand in the engine.

Run: python benchmarks/bench_engines.py [--quick] [-o FOLDER]

Rows stay in Parquet files; both engines run on this machine, with its cores. Each side is a process
of its own, with an engine that has already worked once.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import asking
import bench_grouped_disk
import environments

#: Rows that are compared, and those of a single run of each side.
COMPARED, LARGE = 10_000_000, 100_000_000


def measure(question: asking.Question) -> None:
    question.uses("pyspark", "dask", "narwhals")
    compared, large = (100_000, 1_000_000) if question.quick else (COMPARED, LARGE)
    with tempfile.TemporaryDirectory() as place:
        folders = {rows: Path(place) / str(rows) for rows in (compared, large)}
        for rows, folder in folders.items():
            bench_grouped_disk.write(folder, rows)
        for engine in ("Spark", "Dask"):
            name = engine.lower()

            def peer(task: str, rows: int, name: str = name) -> environments.Peer:
                return environments.Peer("engines", f"{name}_{task}", folder=str(folders[rows]))

            found = question.against(
                f"six figures by group, {engine}",
                compared,
                "rows",
                peer("ours", compared),
                why="Both let the engine read the same files and compute the same six figures of "
                "10,000 groups; errcomp also checks each value.",
                **{f"{engine} by hand": peer("by_hand", compared)},
            )
            if not found:
                continue
            both = []
            for task in ("ours", "by_hand"):
                one = peer(task, large)
                one.start()
                both.append(one.once()[0])
                one.stop()
            question.note(f"{engine}, {large:,} rows, one run", both[0], "s")
            question.note(f"{engine} by hand, {large:,} rows, one run", both[1], "s")
            what = f"{engine}, {large:,} rows, against {engine} by hand, one run"
            question.target(what, both[0] / both[1], 1.3, "times")


if __name__ == "__main__":
    asking.ask(
        "engines",
        "Engines",
        "Six figures of each of 10,000 groups, computed inside Spark and Dask on one machine.",
        measure,
    )
