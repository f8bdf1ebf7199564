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
from collections.abc import Callable
from pathlib import Path

import asking
import memory
import numpy as np
import polars as pl

SCRIPT = Path(__file__).parent / "peers" / "polars_script.py"
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
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    return work


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
                case, n, "rows", process(*ours), Polars_by_hand=process(SCRIPT, file)
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
        for command in ("metrics", "audit"):
            work = process("-m", "errcomp", command, folder / "10.csv")
            bare = process("-c", "import numpy, polars")
            case = f"errcomp {command}, table of ten rows"
            found = question.against(case, 10, "rows", work, **{"importing NumPy and Polars": bare})
            slowest = found["importing NumPy and Polars"]["ours_slowest"]
            question.target(case, slowest, 0.35, "s")
        for command in ("metrics", "audit"):
            question.grows(
                f"errcomp {command}, CSV",
                "rows",
                lambda size, c=command: process("-m", "errcomp", c, folder / f"{size}.csv"),
                sizes,
            )


if __name__ == "__main__":
    asking.ask(
        "commands",
        "Commands on files",
        "A whole process, from start to end. The script reads the same file and computes the same "
        "six figures; errcomp also checks every value and computes intervals, and an audit looks "
        "for caveats. Targets apply to the slowest run.",
        measure,
    )
