"""How long the reader of PyTorch profiler traces takes, and how much memory, beside its peer.

Run: python benchmarks/bench_kineto.py [--quick] [-o FOLDER]

A made-up trace as Kineto writes them (see `kineto_trace`). Both sides are processes of their own,
so that the peak memory (resident, with Python and the libraries) is their own. The peer's parser
(parse_trace_dataframe of HolisticTraceAnalysis) reads the same file, without the times of kernels,
idle time and overlap that errcomp's rows have; these are compared on a smaller trace with those of
the peer's analyses.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import asking
import environments
import kineto_trace

MIB, PART = 256, 16


def measure(question: asking.Question) -> None:
    mib = PART if question.quick else MIB
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        kineto_trace.make(path, mib)
        found = question.against(
            "read into rows",
            path.stat().st_size >> 20,
            "MiB",
            environments.Peer("reader", "read", path=str(path)),
            same=False,
            why="Both read the same file into a table of its events.",
            HTA_parser=environments.Peer("traces", "read", path=str(path)),
        )
        if (row := found.get("HTA parser")) is not None:
            ours, peer = row["values"]
            question.target(f"memory of reading {mib} MiB", ours, 1, "GiB")
            question.target("memory against HTA", ours / peer, 0.5, "times")
            question.target("time against HTA", row["ratio_worst"], 1 / 3, "times")
        part = Path(folder) / "part" / "trace.json"
        part.parent.mkdir()
        kineto_trace.make(part, PART)
        question.against(
            "kernel times, idle time, overlap",
            PART,
            "MiB",
            environments.Peer("reader", "figures", path=str(part)),
            why="The same three figures of the same file.",
            HTA=environments.Peer("traces", "figures", path=str(part)),
        )
        seconds = {}
        for size in (2, 8) if question.quick else (4, 16, 64, 256):
            kineto_trace.make(path, size)
            seconds[size] = question.alone(environments.Peer("reader", "read", path=str(path)))
        question.keep_growth("read into rows", "MiB", seconds)


if __name__ == "__main__":
    asking.ask(
        "traces",
        "Trace reading",
        "A trace of PyTorch's profiler read into rows: kernels, launches, copies, idle time.",
        measure,
    )
