"""Did errcomp become slower? Today's code beside a reference, checked by errcomp's own gate.

Run: python benchmarks/watch.py             compare with the reference; exit code 1 if slower
     python benchmarks/watch.py --record    make the last commit the reference, in history.csv

The code of the reference comes from the history of Git. Today's code and the reference do each case
in turn, each in its own process, and count seconds of CPU: neither the machine, nor versions of
other packages, nor other jobs change the ratio much. A series is a case; a repeat is the ratio of
the fastest runs of a case in one pair of processes, which scatters least. `history.csv` holds
ratios of the reference to itself, so `errcomp halflife check` knows how repeats scatter. The
prediction of a ratio is a hundredth: a slower case has a larger error and a faster one a smaller
error, so the gate raises alarms for slower cases only. An alarm is measured again, and both
measurements decide.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import timing

HERE = Path(__file__).parent
HISTORY = HERE / "history.csv"
COLUMNS = ("version", "commit", "date", "series", "repeat", "predicted", "measured")
#: Repeats of a reference and of today; most runs of a case in a repeat, and seconds for them.
REFERENCE, TODAY, RUNS, BUDGET = 15, 2, 200, 3.0
#: Smaller shifts do not matter.
MARGIN = "5%"
_GOAL = 0.01
#: Waiting threads also use seconds of CPU, and more on a busy machine. With huge pages asked for, a
#: process now and then took three times as long as another with the same code.
SETTINGS = timing.THREADS | {"POLARS_MAX_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}

Row = dict[str, str | int | float]


class Side:
    """A process that does the cases with the code of one folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "benchmarks" / "watched.py")],
            env=os.environ | SETTINGS | {"PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def case(self) -> str:
        """Return the name of the next case; empty after the last."""
        return self._read()

    def seconds(self) -> tuple[float, None]:
        """Let it do the case once."""
        self.tell("run")
        return float(self._read()), None

    def tell(self, what: str) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def ratios(folders: tuple[Path, Path]) -> dict[str, float]:
    """Let two folders do all cases in turn; return the ratio of the fastest runs of each."""
    sides, found = [Side(folder) for folder in folders], {}
    try:
        while any(names := [side.case() for side in sides]):
            if names[0] != names[1]:
                raise SystemExit(f"The cases differ: {names}. Record a new reference.")
            seconds, _ = timing.in_turn([side.seconds for side in sides], RUNS, BUDGET)
            fastest = seconds.min(axis=0)
            found[names[0]] = round(float(fastest[0] / fastest[1]), 4)
            print(f"{names[0]}: {found[names[0]]:.3f}", flush=True)
            for side in sides:
                side.tell("next")
        if any(side.process.wait() for side in sides):
            raise SystemExit("A case ended with an error: see above.")
    finally:
        for side in sides:
            side.stop()
    return found


def measured(commit: str, today: Path | None, version: str, repeats: range) -> list[Row]:
    """Measure all series several times: a folder, or the reference itself, beside the reference."""
    date = datetime.date.today().isoformat()
    with tempfile.TemporaryDirectory() as folder:
        reference = checkout(commit, Path(folder) / "reference")
        today = today or checkout(commit, Path(folder) / "again")
        return [
            dict(zip(COLUMNS, (version, commit, date, name, repeat, _GOAL, ratio), strict=True))
            for repeat in repeats
            for name, ratio in ratios((today, reference)).items()
        ]


def checkout(commit: str, folder: Path) -> Path:
    """Extract the files of a commit."""
    packed = git("archive", commit, "errcomp", "benchmarks", "datasets", "pyproject.toml")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", HERE.parent, *arguments], check=False, capture_output=True)
    if done.returncode:
        raise SystemExit(
            f"git {arguments[0]}: {done.stderr.decode().strip()}\n"
            "The reference is a commit: a shallow clone needs `git fetch --unshallow`."
        )
    return done.stdout


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def last(rows: list[Row]) -> tuple[str, str]:
    """Return the number and the commit of the last reference."""
    row = max(rows, key=lambda row: int(row["version"]))
    return str(row["version"]), str(row["commit"])


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
        print("A case as fast as before has an error of -99 %; twice as slow, -99.5 %.", flush=True)
        return code


def compare() -> int:
    """Measure and check; after an alarm, measure again."""
    number, commit = last(read(HISTORY))
    version, here = str(int(number) + 1), HERE.parent
    rows = measured(commit, here, version, range(1, 1 + TODAY))
    if (code := check(rows)) != 1:
        return code
    print("Slower: measured again; both measurements decide.", flush=True)
    return check(rows + measured(commit, here, version, range(1 + TODAY, 1 + 2 * TODAY)))


def record() -> int:
    """Make the last commit the reference; add how ratios of unchanged code scatter."""
    known = read(HISTORY) if HISTORY.exists() else []
    version = str(1 + int(last(known)[0])) if known else "1"
    commit = git("rev-parse", "HEAD").decode().strip()
    write(HISTORY, known + measured(commit, None, version, range(1, 1 + REFERENCE)))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Did errcomp become slower?")
    parser.add_argument("--record", action="store_true", help="measure a new reference")
    options = parser.parse_args()
    return record() if options.record else compare()


if __name__ == "__main__":
    sys.exit(main())
