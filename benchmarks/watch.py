"""Did errcomp become slower? Its own ratios in its own history of validations, and its own gate.

Run: python benchmarks/watch.py             compare with the reference; ends with 1 if slower
     python benchmarks/watch.py --record    measure a new reference, into history.csv

Each case is timed beside the same done by hand with NumPy, SciPy, Polars or the standard library,
in turn, in one process, in seconds of CPU: machines compare, and other jobs hardly count. A series
is a case, a repeat the median ratio of one run through all of them. `errcomp halflife check` tells
a shift between versions from the scatter of repeats, which is that of runs some minutes apart, not
of neighbours. The prediction of a ratio is a hundredth of what it was when first recorded: slower
is further from it, faster nearer, so that the gate raises its alarm for slower alone. What raised
one is measured once more before it counts, and judged by both.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import timing

HISTORY = Path(__file__).parent / "history.csv"
COLUMNS = ("version", "date", "series", "repeat", "predicted", "measured")
#: Repeats of a reference and of today, and ratios in a repeat.
REFERENCE, TODAY, PAIRS = 15, 2, 20
#: Slower by less does not matter: other machines and versions of the peers move ratios as well.
MARGIN = "50%"
_GOAL = 0.01
#: Threads that wait for each other take seconds of CPU as well, the more the busier the machine.
THREADS = timing.THREADS | {"POLARS_MAX_THREADS": "1"}

Row = dict[str, str | int | float]


def measured(version: str, repeats: range, goals: dict[str, float]) -> list[Row]:
    """Measure all series so often; one that has no goal yet gets it from its first ratio."""
    return [row for repeat in repeats for row in one_repeat(version, repeat, goals)]


def one_repeat(version: str, repeat: int, goals: dict[str, float]) -> list[Row]:
    # What is timed needs all that errcomp can be installed with; the gate does not.
    from watched import cases, cpu

    date = datetime.date.today().isoformat()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, pair in cases(Path(folder)):
            # The collector strikes now one side, now the other.
            gc.disable()
            sides = [timing.timed(work, cpu) for work in pair]
            seconds, _ = timing.in_turn(sides, PAIRS, np.inf)
            gc.enable()
            ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
            goal = goals.setdefault(name, float(f"{_GOAL * ratio:.4g}"))
            row = (version, date, name, repeat, goal, f"{ratio:.6g}")
            rows.append(dict(zip(COLUMNS, row, strict=True)))
            print(f"{name}: {ratio:.3g} times the seconds by hand", flush=True)
    return rows


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def following(rows: list[Row]) -> str:
    """Return the version after those known: references are numbered."""
    return str(1 + max((int(row["version"]) for row in rows), default=0))


def goals_of(rows: list[Row]) -> dict[str, float]:
    return {str(row["series"]): float(row["predicted"]) for row in rows}


def errcomp(*arguments: str | Path) -> int:
    """Run a command of errcomp; what it prints is printed."""
    return subprocess.run(
        [sys.executable, "-m", "errcomp", *map(str, arguments)], check=False
    ).returncode


def check(rows: list[Row], history: Path = HISTORY) -> int:
    """Hold measured rows against the reference, in a store of its own; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        store, new = Path(folder) / "history.db", Path(folder) / "today.csv"
        write(new, rows)
        if code := errcomp("history", "add", store, history):
            return code
        code = errcomp("halflife", "check", store, new, "--margin", MARGIN)
        print(
            "A ratio as first recorded has an error of -99 %, twice that one of -99.5 %.",
            flush=True,
        )
        return code


def compare() -> int:
    """Measure and check; what raised an alarm is measured once more."""
    known = read(HISTORY)
    today, goals = following(known), goals_of(known)
    rows = measured(today, range(1, 1 + TODAY), goals)
    if (code := check(rows)) != 1:
        return code
    print("Slower: measured once more, and judged by both.", flush=True)
    return check(rows + measured(today, range(1 + TODAY, 1 + 2 * TODAY), goals))


def record() -> int:
    """Add a reference to the history."""
    known = read(HISTORY) if HISTORY.exists() else []
    version, goals = following(known), goals_of(known)
    write(HISTORY, known + measured(version, range(1, 1 + REFERENCE), goals))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Did errcomp become slower?")
    parser.add_argument("--record", action="store_true", help="measure a new reference")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in THREADS.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | THREADS)
    return record() if options.record else compare()


if __name__ == "__main__":
    sys.exit(main())
