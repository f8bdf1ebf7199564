"""The gate of the watch, on ratios that are made up around the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from errcomp.cli import main

Script = Callable[[str], ModuleType]


@pytest.fixture
def watch(script: Script) -> Any:
    return script("watch")


def today(
    watch: Any, factors: dict[str, float], repeats: Sequence[int] = (1, 2)
) -> list[dict[str, Any]]:
    """Return repeats of the reference as those of today, some of them multiplied."""
    return [
        row
        | {
            "version": "999",
            "date": "2999-01-01",
            # Equal in all digits would be carried over.
            "measured": 1.0001 * float(row["measured"]) * factors.get(row["series"], 1.0),
        }
        for row in watch.read(watch.HISTORY)
        if int(row["repeat"]) in repeats
    ]


def test_the_reference_has_repeats_of_every_series(watch: Any) -> None:
    rows = watch.read(watch.HISTORY)
    assert {*rows[0]} == {*watch.COLUMNS}
    for series in {row["series"] for row in rows}:
        own = [row for row in rows if row["series"] == series]
        assert len({(row["version"], row["repeat"]) for row in own}) == len(own) >= watch.REFERENCE
        # A prediction that all share, and code that is as fast as itself.
        assert {row["predicted"] for row in own} == {"0.01"}
        assert np.median([float(row["measured"]) for row in own]) == pytest.approx(1, abs=0.02)


@pytest.mark.slow
@pytest.mark.core
def test_as_fast_as_before_or_faster_passes(watch: Any) -> None:
    assert watch.check(today(watch, {"grouped summary": 0.5})) == 0


@pytest.mark.slow
@pytest.mark.core
@pytest.mark.parametrize("series", ["grouped summary", "help"])
def test_a_case_that_takes_1_2_times_as_long_is_found(
    watch: Any, capfd: pytest.CaptureFixture[str], series: str
) -> None:
    slower = {series: 1.2, "start-up": 0.5}
    assert watch.check(today(watch, slower)) == 1
    capfd.readouterr()
    # An alarm, or a call for a repeat, is measured again, and both measurements decide.
    assert watch.check(today(watch, slower, (1, 2, 3, 4))) == 1
    (line,) = [x for x in capfd.readouterr().out.splitlines() if "error grew  " in x]
    assert line.startswith(series)


@pytest.mark.slow
def test_a_hundred_unchanged_commits_raise_no_alarm_and_each_case_is_found(
    watch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thirds of the repeats are the gate's history, the others stand for later commits."""
    # A process for each check would take most of the time.
    monkeypatch.setattr(watch, "errcomp", lambda *words: main([*map(str, words)]))
    known = tmp_path / "known.csv"
    rows = watch.read(watch.HISTORY)
    watch.write(known, [row for row in rows if int(row["repeat"]) % 3])
    names = list(dict.fromkeys(row["series"] for row in rows))
    repeats = sorted({int(row["repeat"]) for row in rows if not int(row["repeat"]) % 3})
    rng = np.random.default_rng(1)

    def alarm(factors: dict[str, float]) -> bool:
        """Draw the repeats of each series; after an alarm, twice as many decide."""
        measured = []
        for name in names:
            drawn = rng.choice(repeats, 2 * watch.TODAY, replace=False).tolist()
            own = [row for row in today(watch, factors, drawn) if row["series"] == name]
            measured += [row | {"repeat": str(i + 1)} for i, row in enumerate(own)]
        first = [row for row in measured if int(row["repeat"]) <= watch.TODAY]
        return watch.check(first, known) == 1 and watch.check(measured, known) == 1

    assert not any(alarm({}) for _ in range(100))
    for name in names:
        assert alarm({name: 1.2}), name


def test_what_raised_an_alarm_is_measured_once_more(
    watch: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A disturbance that is gone by then is none; what stays is."""
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(watch, "measured", lambda *given: asked.append(given) or [{}])
    checks = iter([1, 0])
    monkeypatch.setattr(watch, "check", lambda rows: next(checks))
    assert watch.compare() == 0
    number, commit = watch.last(watch.read(watch.HISTORY))
    here = Path(watch.__file__).resolve().parents[1]
    assert [given[:3] for given in asked] == [(commit, here, str(int(number) + 1))] * 2
    assert [[*given[3]] for given in asked] == [[1, 2], [3, 4]]
    assert "measured again" in capfd.readouterr().out


@pytest.mark.core
def test_both_sides_do_each_case_in_turn(watch: Any, tmp_path: Path) -> None:
    pair = (
        side(tmp_path / "today", {"sum": 3.0, "fit": 2.0}),
        side(tmp_path / "before", {"sum": 1.0, "fit": 4.0}),
    )
    assert watch.ratios(pair) == {"sum": 3.0, "fit": 0.5}


@pytest.mark.core
def test_cases_that_differ_need_a_new_reference(watch: Any, tmp_path: Path) -> None:
    pair = side(tmp_path / "today", {"sum": 1.0}), side(tmp_path / "before", {"fit": 1.0})
    with pytest.raises(SystemExit, match="Record a new reference"):
        watch.ratios(pair)
    with pytest.raises(SystemExit, match="Record a new reference"):
        watch.ratios((side(tmp_path / "more", {"sum": 1.0, "fit": 1.0}), pair[0]))


@pytest.mark.core
def test_a_case_that_fails_does_not_end_as_if_all_were_done(watch: Any, tmp_path: Path) -> None:
    pair = tmp_path / "today", tmp_path / "before"
    for folder in pair:
        side(folder, {"sum": 1.0}, after="raise SystemExit(1)")
    with pytest.raises(SystemExit, match="ended with an error"):
        watch.ratios(pair)


def side(folder: Path, seconds: dict[str, float], after: str = "") -> Path:
    """Make a folder whose cases take these seconds."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "watched.py").write_text(
        f"for name, seconds in {seconds}.items():\n"
        "    print(name, flush=True)\n"
        "    while input() == 'run':\n"
        "        print(seconds, flush=True)\n" + after
    )
    return folder


def test_the_files_of_a_commit_are_extracted(
    watch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a repository made here: a shallow clone has no other commit."""
    here = tmp_path / "repository"
    for name in ("errcomp", "benchmarks", "datasets"):
        (here / name).mkdir(parents=True)
        (here / name / "a.py").write_text("1")
    (here / "pyproject.toml").touch()
    monkeypatch.setattr(watch, "HERE", here / "benchmarks")
    watch.git("init", "--quiet")
    watch.git("add", "--all")
    watch.git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "Add a")
    commit = watch.git("rev-parse", "HEAD").decode().strip()
    (here / "errcomp" / "a.py").write_text("2")
    folder = watch.checkout(commit, tmp_path / "reference")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["benchmarks/a.py", "datasets/a.py", "errcomp/a.py", "pyproject.toml"]
    assert (folder / "errcomp" / "a.py").read_text() == "1"


def test_a_commit_that_is_not_there_says_what_to_do(watch: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="git fetch --unshallow"):
        watch.checkout("0" * 40, tmp_path)


@pytest.mark.extras
def test_the_cases_are_made_and_timed(script: Script, watch: Any, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    names = [name for name, work in script("watched").cases(tmp_path) if callable(work)]
    assert names == list(dict.fromkeys(row["series"] for row in watch.read(watch.HISTORY)))
