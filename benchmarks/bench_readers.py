"""How long the output of tools takes to read, beside the library of its format, and many files.

Run: python benchmarks/bench_readers.py [--quick] [-o FOLDER]

Made-up output (`tool_outputs.py`), in a process of its own for its memory. The peers only go
through the content: SQLite's rows, csv's rows, and messages that Protocol Buffers parse.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asking
import environments
import tool_outputs
from bench_commands import process

#: MiB that are compared, and at which memory is measured.
COMPARED, LARGE = 64, 256
SIZES = (4, 16, COMPARED, LARGE)
PEERS = {"nsys": "sqlite", "ncu": "table", "rocprof": "table", "Chakra": "chakra", "JAX": "xplane"}
FILES = 10_000
#: A report of nccl-tests, of the tests of its reader.
REPORT = (
    Path(__file__).parents[1] / "tests/data/readers/nccl-tests-log/good/all_reduce.log"
).read_text(encoding="utf-8")


def read_once(path: Path) -> dict[str, float]:
    """Read in a process of its own; return seconds and peak GiB."""
    code = (
        "import json, sys, time; from errcomp.readers.core.ingest import ingest; "
        "import memory; t = time.perf_counter(); ingest(sys.argv[1]); "
        "print(json.dumps([time.perf_counter() - t, memory.peak_gib()]))"
    )
    command = [sys.executable, "-c", code, str(path)]
    seconds, peak = json.loads(subprocess.check_output(command, cwd=Path(__file__).parent))
    return {"seconds": seconds, "peak": peak}


def of_format(question: asking.Question, name: str, folder: Path) -> None:
    write, file = tool_outputs.FORMATS[name]
    sizes = (1, 2, 4) if question.quick else SIZES
    compared = sizes[-2]
    seconds, path = {}, folder / file
    for mib in sizes:
        path.unlink(missing_ok=True)
        write(path, mib << 20)
        if mib == compared:
            found = question.against(
                name,
                mib,
                "MiB",
                environments.Peer("reader", "content", path=str(path)),
                same=False,
                why="Both parse the same bytes. The peer (a library of the format, e.g. sqlite3, "
                "csv or protobuf) makes its own records of them, errcomp a table with one row for "
                "each kernel.",
                **{
                    "the library of the format": environments.Peer(
                        "formats", PEERS[name.split(",")[0]], path=str(path)
                    )
                },
            )
            if row := found.get("the library of the format"):
                question.target(f"{name}, against the library", row["ratio_worst"], 2, "times")
                seconds[mib] = row["ours_seconds"]
                continue
        once = read_once(path)
        seconds[mib] = once["seconds"]
    question.target(f"memory of {name}, {sizes[-1]} MiB", once["peak"], 1, "GiB")
    question.keep_growth(name, "MiB", seconds)
    path.unlink()


def many_files(question: asking.Question, folder: Path) -> None:
    sizes = (10, 100) if question.quick else (10, 100, 1_000, FILES)
    found = {}
    for n in sizes:
        place = folder / str(n)
        place.mkdir()
        for i in range(n):
            text = REPORT.replace("host-a", f"host-{i}")
            (place / f"all_reduce_{i}.log").write_text(text, encoding="utf-8")
        work = process("-m", "errcomp", "ingest", place, "-o", folder / f"{n}.parquet")
        found[n] = question.takes("errcomp ingest", n, "files", work)
    question.target(f"errcomp ingest of {n:,} files", found[n]["ours_slowest"], 20, "s")
    question.keep_growth(
        "errcomp ingest", "files", {n: row["ours_seconds"] for n, row in found.items()}
    )


def measure(question: asking.Question) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for one in tool_outputs.FORMATS:
            begun = time.perf_counter()
            of_format(question, one, folder)
            print(f"{one}: {time.perf_counter() - begun:.0f} s in all", flush=True)
        many_files(question, folder)


if __name__ == "__main__":
    asking.ask(
        "readers",
        "Output of tools",
        "Files of profilers and traces, read into rows; and a folder of many small files.",
        measure,
    )
