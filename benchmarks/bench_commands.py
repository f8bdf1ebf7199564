"""`errcomp metrics` and `errcomp audit` of files, as whole processes, beside a script of Polars.

Run: python benchmarks/bench_commands.py [--quick] [-o FOLDER]

The script reads the same file and computes the same six figures; errcomp also checks every value
and computes intervals, and the audit looks for caveats. Each run is a process of its own, from its
start to its end; files are in the system's cache. Targets apply to the slowest run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import asking
import memory
import numpy as np
import polars as pl

SCRIPT = Path(__file__).parent / "peers" / "polars_script.py"
WHY = (
    "Both read the same file and compute the same six figures; errcomp also checks each value and "
    "computes intervals, and an audit looks for caveats."
)
#: Command, kind of file, most seconds, and most times as long as the script.
CASES = (
    ("metrics", "csv", None, 2.5),
    ("metrics", "parquet", None, 2.0),
    ("audit", "csv", 1.8, None),
    ("audit", "parquet", 1.2, None),
)


def write(folder: Path, n: int) -> None:
    """Write n pairs of four devices and 40 models, as CSV and as Parquet."""
    rng = np.random.default_rng(0)
    measured = np.exp(rng.normal(2, 1, n))
    pairs = pl.DataFrame(
        {
            "device": rng.choice(["A100", "H100", "L4", "V100"], n),
            "model": rng.choice([f"model{i}" for i in range(40)], n),
            "batch": rng.choice([1, 2, 4, 8, 16], n),
            "predicted": (measured * np.exp(rng.normal(0, 0.1, n))).round(6),
            "measured": measured.round(6),
        }
    )
    pairs.write_csv(folder / f"{n}.csv")
    pairs.write_parquet(folder / f"{n}.parquet")


def process(*arguments: str | Path) -> Callable[[], None]:
    def work() -> None:
        out = subprocess.DEVNULL
        subprocess.run([sys.executable, *arguments], check=True, stdout=out, stderr=out)

    return work


def many_rows(question: asking.Question, folder: Path) -> None:
    """Compare a CSV that is larger than the memory it may take."""
    n = 100_000 if question.quick else 40_000_000
    file = folder / "many.csv"
    part = 10_000 if question.quick else 2_000_000
    whole = (folder / f"{part}.csv").read_bytes()
    with file.open("wb") as out:
        out.write(whole)
        rows = memoryview(whole)[whole.index(b"\n") + 1 :]
        for _ in range(n // part - 1):
            out.write(rows)
    ours, script = ("-m", "errcomp", "metrics", file), (SCRIPT, file)
    case = "errcomp metrics, large CSV"
    found = question.against(
        case, n, "rows", process(*ours), why=WHY, Polars_by_hand=process(*script)
    )["Polars by hand"]
    question.target(f"{case}, against Polars by hand", found["ratio_worst"], 1.3, "times")
    question.target(f"memory of {case}", memory.of_process(sys.executable, *ours), 1.5, "GiB")
    peer = memory.of_process(sys.executable, *script)
    question.note("memory of Polars by hand, large CSV", peer, "GiB")
    file.unlink()


def many_groups(question: asking.Question, folder: Path) -> None:
    """Time many groups, printed as a table."""
    n, groups = (10_000, 1_000) if question.quick else (1_000_000, 100_000)
    rng = np.random.default_rng(1)
    measured = np.exp(rng.normal(2, 1, n))
    predicted = measured * np.exp(rng.normal(0, 0.1, n))
    group, file = rng.integers(0, groups, n), folder / "groups.csv"
    columns = {"group": group, "predicted": predicted, "measured": measured}
    pl.DataFrame(columns).write_csv(file)
    case = f"errcomp metrics --by, {groups:,} groups, with intervals"
    work = process("-m", "errcomp", "metrics", file, "--by", "group")
    question.target(case, question.takes(case, n, "rows", work)["ours_slowest"], 10, "s")


def calibrations(question: asking.Question) -> None:
    """Time fits and an evaluation of models of whole runs, compilation included."""
    with tempfile.TemporaryDirectory() as name:
        fit = ("-m", "errcomp", "calibrate", "fit", "neusight-kernels", "-o", f"{name}/m.errcomp")
        row = question.takes("errcomp calibrate fit", 87, "runs", process(*fit))
        question.target("errcomp calibrate fit", row["ours_slowest"], 30, "s")
    evaluation = process("-m", "errcomp", "calibrate", "evaluate", "neusight-kernels")
    begun = time.perf_counter()
    evaluation()
    seconds = time.perf_counter() - begun
    question.target("errcomp calibrate evaluate, one run", seconds, 120, "s")


def measure(question: asking.Question) -> None:
    question.uses("polars", "numpy")
    n = 20_000 if question.quick else 2_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = (1_000, 10_000) if question.quick else (1_000, 10_000, 100_000, 900_000, 2_000_000)
        for size in {*sizes, n}:
            write(folder, size)
        for command, kind, seconds, times in CASES:
            file = folder / f"{n}.{kind}"
            ours = ("-m", "errcomp", command, file)
            case = f"errcomp {command}, {'CSV' if kind == 'csv' else 'Parquet'}"
            found = question.against(
                case, n, "rows", process(*ours), why=WHY, Polars_by_hand=process(SCRIPT, file)
            )["Polars by hand"]
            if seconds is not None:
                question.target(case, found["ours_slowest"], seconds, "s")
            if times is not None:
                question.target(
                    f"{case}, against Polars by hand", found["ratio_worst"], times, "times"
                )
            both = [memory.of_process(sys.executable, *one) for one in (ours, (SCRIPT, file))]
            what = f"memory of {case}"
            if command == "metrics" and kind == "csv":
                question.target(f"{what}, against Polars by hand", both[0] / both[1], 1.5, "times")
            else:
                question.note(what, both[0], "GiB")
        write(folder, 10)
        question.takes("import numpy, polars", 1, "process", process("-c", "import numpy, polars"))
        for command in ("metrics", "audit"):
            case = f"errcomp {command}, table of ten rows"
            row = question.takes(
                case, 10, "rows", process("-m", "errcomp", command, folder / "10.csv")
            )
            question.target(case, row["ours_slowest"], 0.35, "s")
        many_rows(question, folder)
        many_groups(question, folder)
        for command in ("metrics", "audit"):
            question.grows(
                f"errcomp {command}, CSV",
                "rows",
                lambda size, c=command: process("-m", "errcomp", c, folder / f"{size}.csv"),
                sizes,
            )
    if not question.quick:
        calibrations(question)


if __name__ == "__main__":
    asking.ask(
        "commands",
        "Commands on files",
        "A whole process, from start to end.",
        measure,
    )
