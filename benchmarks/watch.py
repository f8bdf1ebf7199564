"""Did errcomp become slower? The history of its own ratios, checked by its own gate.

Run: python benchmarks/watch.py             compare with the reference; exit code 1 if slower
     python benchmarks/watch.py --record    measure a new reference, into history.csv

Each case is timed together with the same work by hand (NumPy, SciPy, Polars or the standard
library). Runs are interleaved in one process and timed in seconds of CPU, so that ratios of
different machines are comparable and other jobs hardly matter. A series is a case; a repeat is its
median ratio in one run of all cases, some minutes after the one before. `errcomp halflife check`
distinguishes a shift from the scatter of these runs. The prediction of a ratio is a
hundredth of its first value: a slower ratio has a larger error and a faster one a smaller error, so
the gate raises alarms for slower ratios only. An alarm is measured again, and both measurements
decide.
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
#: Smaller shifts do not matter: other machines and versions of the peers also change ratios.
MARGIN = "50%"
_GOAL = 0.01
#: Waiting threads also use seconds of CPU, and more on a busy machine.
THREADS = timing.THREADS | {"POLARS_MAX_THREADS": "1"}

Row = dict[str, str | int | float]


def measured(version: str, repeats: range, goals: dict[str, float]) -> list[Row]:
    """Measure all series repeatedly; a new series gets its goal from its first ratio."""
    return [row for repeat in repeats for row in one_repeat(version, repeat, goals)]


def one_repeat(version: str, repeat: int, goals: dict[str, float]) -> list[Row]:
    # The timed cases need all extras of errcomp; the gate does not.
    from watched import cases, cpu

    date = datetime.date.today().isoformat()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, pair in cases(Path(folder)):
            # Garbage collection would slow either side at random.
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
    """Return the next version: references are numbered."""
    return str(1 + max((int(row["version"]) for row in rows), default=0))


def goals_of(rows: list[Row]) -> dict[str, float]:
    return {str(row["series"]): float(row["predicted"]) for row in rows}


def errcomp(*arguments: str | Path) -> int:
    """Run a command of errcomp, with its output."""
    return subprocess.run(
        [sys.executable, "-m", "errcomp", *map(str, arguments)], check=False
    ).returncode


def check(rows: list[Row], history: Path = HISTORY) -> int:
    """Compare measured rows with the reference, in a temporary store; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        before, new = Path(folder) / "history.csv", Path(folder) / "today.csv"
        write(new, rows)
        # Minutes apart, so each is a look: repeats alone would not show how looks scatter.
        looks = [row | {"version": f"{row['version']}.{row['repeat']}"} for row in read(history)]
        write(before, looks)
        # What needs a repeat is measured again, as an alarm is.
        code = errcomp(
            *("halflife", "check", before, new, "--series", "series", "--margin", MARGIN),
            *("--fail-on", "repeat"),
        )
        print(
            "An unchanged ratio has an error of -99 %; a ratio that is twice as slow, -99.5 %.",
            flush=True,
        )
        return code


def compare() -> int:
    """Measure and check; after an alarm, measure again."""
    known = read(HISTORY)
    today, goals = following(known), goals_of(known)
    rows = measured(today, range(1, 1 + TODAY), goals)
    if (code := check(rows)) != 1:
        return code
    print("Slower: measured again; both measurements decide.", flush=True)
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
