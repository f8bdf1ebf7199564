"""The example of a workflow: each of its commands is run, as it stands in the file."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

Run = Callable[..., Any]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "watch-a-simulator"
WORKFLOW = Path(".github/workflows/accuracy.yml")
SUMMARY = "$GITHUB_STEP_SUMMARY"


def steps() -> list[dict[str, Any]]:
    (job,) = yaml.safe_load((EXAMPLE / WORKFLOW).read_text(encoding="utf-8"))["jobs"].values()
    return list(job["steps"])


def commands() -> list[list[str]]:
    """Return every errcomp command of the workflow as its words."""
    found = [
        shlex.split(line.partition("#")[0])
        for step in steps()
        for line in step.get("run", "").replace("\\\n", " ").splitlines()
    ]
    return [words[1:] for words in found if words[:1] == ["errcomp"]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example to work in."""
    folder = tmp_path / "watch"
    shutil.copytree(EXAMPLE, folder)
    monkeypatch.chdir(folder)
    return folder


def execute(run: Run, here: Path) -> list[tuple[Any, str]]:
    """Run the commands, each with its own summary as CI has it; return what came with it."""
    found = []
    for i, words in enumerate(commands()):
        summary = here.parent / f"summary{i}.md"
        summary.touch()
        ran = run(*(str(summary) if word == SUMMARY else word for word in words))
        found.append((ran, summary.read_text(encoding="utf-8")))
    return found


def worsen(path: Path) -> None:
    """Predict a fifth too much."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["predicted"] = f"{1.2 * float(row['predicted']):.3f}"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def failures(path: str) -> list[str]:
    cases = ET.parse(path).getroot().iter("testcase")
    return [str(case.get("name")) for case in cases if case.find("failure") is not None]


def test_the_workflow_is_one_that_runs() -> None:
    text = (EXAMPLE / WORKFLOW).read_text(encoding="utf-8")
    loaded = yaml.safe_load(text)
    # YAML 1.1 reads the key `on` as a truth value.
    assert set(loaded) == {"name", True, "permissions", "jobs"}
    assert loaded["permissions"] == {"contents": "read"}
    for step in steps():
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
    checks = [step for step in steps() if step.get("run", "").startswith("errcomp ")]
    # A summary holds what one command wrote; the second check runs where the first has failed.
    assert [step["run"].count("errcomp ") for step in checks] == [1, 1]
    assert checks[1]["if"] == "${{ !cancelled() }}"
    assert [words[:2] for words in commands()] == [["audit", "results.csv"], ["halflife", "check"]]


@pytest.mark.extras
def test_all_is_well(run: Run, here: Path) -> None:
    pytest.importorskip("matplotlib")
    (audit, audit_summary), (check, check_summary) = execute(run, here)
    assert (audit.code, check.code) == (0, 0)
    assert (
        "**Pass: none of 3 claims was refuted; the pairs could decide 2 of them.**" in audit_summary
    )
    assert "**Pass at 2.5: the error grew in none of the 8 tested series." in check_summary
    assert failures("audit.xml") == failures("halflife.xml") == []
    kept = next(step["with"]["path"] for step in steps() if "upload" in step.get("uses", ""))
    assert all(Path(name).stat().st_size for name in kept.split())
    assert Path("accuracy.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.extras
def test_a_simulator_that_got_worse_fails_and_says_why(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    # The pictures of its page are drawn where all is well.
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    worsen(here / "results.csv")
    worsen(here / "new.csv")
    (audit, audit_summary), (check, check_summary) = execute(run, here)
    assert (audit.code, check.code) == (1, 1)
    assert "**2 of 3 claims are overstated: the error is larger than claimed (" in audit_summary
    assert "one-sided: most errors have the same sign" in audit_summary
    assert "**Regression at 2.5: the error of 8 of 8 series grew.**" in check_summary
    assert "The prediction changed: check what changed in the predictor." in check_summary
    assert len(failures("audit.xml")) == 2
    assert failures("halflife.xml") == ["resnet", "bert", "gpt", "dlrm"]


def test_the_readme_shows_the_commands_of_the_workflow() -> None:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    shown = [shlex.split(line) for line in text.splitlines() if line.startswith("    errcomp ")]
    files = {"--junit", "--markdown", "-o"}
    for words, whole in zip(shown, commands(), strict=True):
        kept = [
            word
            for i, word in enumerate(whole)
            if word not in files and (i == 0 or whole[i - 1] not in files)
        ]
        assert words[1:] == kept
    assert len(text.splitlines()) <= 45
