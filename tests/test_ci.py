"""What CI runs, in which order, and what it says at its end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / ".ci" / "run"
#: Programs in the place of those that take long, or that a machine may lack.
PROGRAMS = {
    "make": 'echo "make $*" >> calls; [ "$1" != "$FAILS" ] && [ "$*" != "$FAILS" ]',
    "apt-get": 'echo "apt-get $*" >> calls',
    "python3.12": "",
    "python3.13": "exit 1",
    "git": 'case "$*" in rev-list*) echo "$COMMITS";; cat-file*abc*) [ "$FAILS" != git ];; '
    "*) exit 1; esac",
    "pyenv": "exit 1",
    **dict.fromkeys(("chromium", "pdftotext", "java", "zsh", "fish", "kpsewhich"), ""),
}
POSTGRES = 'echo "postgres $1" >> calls; if [ "$1" = start ]; then mkdir "$2"; echo url; fi'

Run = Callable[..., tuple[int, list[str], dict[str, str]]]


@pytest.fixture
def ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the script; return its exit code, what it called, and the table at its end."""
    monkeypatch.delenv("ALL", raising=False)
    for name, text in PROGRAMS.items():
        program(tmp_path / "bin" / name, text)
    program(tmp_path / "tests" / "halflife" / "postgres.sh", POSTGRES)
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "history.csv").write_text("version,commit\n1,old\n2,abc\n")

    def call(fails: str = "", commits: int = 6) -> tuple[int, list[str], dict[str, str]]:
        (tmp_path / "calls").unlink(missing_ok=True)
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [tmp_path / ".ci" / "run"],
            env={**os.environ, "PATH": path, "FAILS": fails, "COMMITS": str(commits)},
            capture_output=True,
            text=True,
            check=False,
        )
        table = done.stdout.partition("\nMinutes of each part:\n")[2]
        rows = re.findall(r"^  (\S.*?) +(\d+:\d\d) *(.*)$", table, re.M)
        calls = (tmp_path / "calls").read_text().splitlines()
        return done.returncode, calls, {name: said for name, _, said in rows}

    return call


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_all_parts_run_in_order_and_are_timed(ci: Run) -> None:
    code, calls, table = ci()
    assert code == 0
    made = [call for call in calls if call.startswith("make")]
    assert made[:3] == ["make test", "make lint", "make pages"]
    # Two parts at once may begin in either order.
    assert set(made[3:5]) == {"make docs", "make types"}
    assert made[5:] == [
        *("make core", "make watch", "make simulations PART=7/8"),
        "make core PYTHON=python3.12 CORE=.venv-core-3.12",
    ]
    assert calls[-1] == "postgres stop"
    assert list(table)[:3] == ["packages", "make test, with coverage", "make lint"]
    assert "make simulations 7/8" in table
    assert list(table)[-2:] == ["make core, Python 3.12", "all"]
    assert set(table.values()) == {""}


def test_commits_take_turns_with_what_takes_long(ci: Run) -> None:
    runs = [ci(commits=commits) for commits in range(16, 24)]
    made = [[call for call in calls if call.startswith("make")] for _, calls, _ in runs]
    # Two parts at once may begin in either order.
    always = [sorted(calls[:7]) for calls in made]
    assert always == [always[0]] * 8
    assert [calls[7] for calls in made] == [f"make simulations PART={k}/8" for k in range(1, 9)]
    other = "make core PYTHON=python3.12 CORE=.venv-core-3.12"
    turns = [["make engines"], ["make lowest"], [other], []]
    assert [calls[8:] for calls in made] == turns * 2
    assert runs[3][2]["make core, Python 3.13"] == "not run: there is no python3.13"


def test_once_a_week_all_of_it_runs(ci: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL", "1")
    _, calls, table = ci()
    assert [call for call in calls if call.startswith("make")][7:] == [
        *("make simulations PART=", "make engines", "make lowest"),
        "make core PYTHON=python3.12 CORE=.venv-core-3.12",
    ]
    assert table["make simulations"] == ""
    assert table["make core, Python 3.13"] == "not run: there is no python3.13"


def test_a_clone_without_the_reference_says_that_nothing_was_compared(ci: Run) -> None:
    code, calls, table = ci(fails="git")
    assert code == 0
    assert "make watch" not in calls
    assert table["make watch"] == "not run: this clone has no commit abc"


def test_what_fails_ends_it_and_the_times_are_printed(ci: Run) -> None:
    code, calls, table = ci(fails="pages")
    assert code == 1
    assert calls[-2:] == ["make pages", "postgres stop"]
    assert [(name, said) for name, said in table.items() if said] == [("make pages", "failed")]
    assert list(table)[-2:] == ["make pages", "all"]


@pytest.mark.parametrize(
    ("part", "commits", "row"),
    [
        ("core", 20, "make core"),
        ("simulations", 20, "make simulations 5/8"),
        ("engines", 20, "make engines"),
        ("lowest", 21, "make lowest"),
        ("core PYTHON=python3.12 CORE=.venv-core-3.12", 22, "make core, Python 3.12"),
    ],
)
def test_a_part_that_fails_is_the_last(ci: Run, part: str, commits: int, row: str) -> None:
    code, calls, table = ci(fails=part, commits=commits)
    assert code == 1
    assert calls[-2].startswith(f"make {part}")
    assert calls[-1] == "postgres stop"
    assert [(name, said) for name, said in table.items() if said] == [(row, "failed")]
    assert list(table)[-2:] == [row, "all"]


@pytest.mark.parametrize(
    ("part", "row"), [("docs", "make docs"), ("types", "make types, beside it")]
)
def test_either_of_two_parts_at_once_may_fail(ci: Run, part: str, row: str) -> None:
    code, calls, table = ci(fails=part)
    assert code == 1
    assert set(calls[-3:]) == {"make docs", "make types", "postgres stop"}
    assert [(name, said) for name, said in table.items() if said] == [(row, "failed")]
    assert list(table)[-3:] == ["make docs", "make types, beside it", "all"]


def names_in(lines: list[str]) -> set[str]:
    """Return the names of the packages that requirements or constraints begin with."""
    found = (re.match(r"[A-Za-z0-9._-]+", line) for line in lines)
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}


def test_the_versions_of_all_dependencies_are_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = names_in([*project["dependencies"], *(line for lines in extras for line in lines)])
    pinned = names_in((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    assert wanted - {"errcomp"} <= pinned


def test_there_is_a_target_for_the_list_of_components() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = r"^sbom: .*\n(\t.*\n)+?\t.*cyclonedx_py requirements constraints.txt"
    assert re.search(recipe, makefile, re.M)
    assert "> build/sbom.json" in makefile


@pytest.mark.core
def test_the_lowest_versions_are_those_that_pyproject_states() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "lowest.py", "calibration", "postgres"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = next(line for line in project["dependencies"] if line.startswith("numpy"))
    assert stated.replace(">=", "==") in lines
    assert any(line.startswith("xgboost-cpu==") for line in lines)
    # A part of a package at its lower bound has the version of the whole.
    assert not any(line.startswith("psycopg-binary==") for line in lines)
    assert len(names_in(lines)) == len(lines)
