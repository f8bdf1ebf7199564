"""The GitHub Action, the hook of pre-commit and the Dockerfile."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from errcomp import cli
from errcomp.cli.precommit import main

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
OWN = ROOT / "examples" / "own-table" / "results.csv"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


class Runner:
    """Runs steps of the action as GitHub does: bash stops at the first error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        errcomp = f'exec {sys.executable} -m errcomp "$@"'
        program(folder / "errcomp" / "bin" / "errcomp", errcomp)
        self.calls = folder / "calls"
        for name in ("output", "summary", "calls"):
            (folder / name).touch()

    def __call__(self, step: str, **given: str) -> subprocess.CompletedProcess[str]:
        inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        known = {f"inputs.{name}": value for name, value in inputs.items()}
        known |= {
            "github.action_path": str(ROOT),
            "github.event.pull_request.number": "7",
            "github.repository": "me/mine",
            "steps.audit.outputs.summary": str(self.folder / "errcomp-summary.md"),
        }
        variables = {
            name: re.sub(r"\$\{\{ (.+?) \}\}", lambda found: known[found[1]], text)
            for name, text in STEPS[step]["env"].items()
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]["run"]],
            env={
                **os.environ,
                **variables,
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.folder),
                "GITHUB_OUTPUT": str(self.folder / "output"),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
                "CALLS": str(self.calls),
            },
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.mark.slow
@pytest.mark.core
def test_the_action_audits_and_writes_the_summary(runner: Runner) -> None:
    done = runner("Audit", table=str(OWN), claim="MAPE 5 %")
    assert done.returncode == 1, done.stderr
    assert "overstated" in done.stdout
    summary = (runner.folder / "summary").read_text(encoding="utf-8")
    assert summary.startswith("## Accuracy audit")
    output = (runner.folder / "output").read_text(encoding="utf-8")
    assert output == f"summary={runner.folder}/errcomp-summary.md\n"
    assert runner("Audit", table=str(OWN), claim="MAPE 50 %").returncode == 0
    assert runner("Audit", table=str(OWN), claim="MAPE 5 %", fail_on="never").returncode == 0
    bad = runner("Audit", table="none.csv", claim="MAPE 5 %")
    assert (bad.returncode, "none.csv: no such file" in bad.stderr) == (2, True)


@pytest.mark.core
def test_options_are_split_as_in_a_shell_and_never_run(
    runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    # What the step gives to errcomp; the command itself is run here.
    program(runner.folder / "errcomp" / "bin" / "errcomp", 'printf "%s\\0" "$@" > "$CALLS"')
    table = runner.folder / "my pairs.csv"
    table.write_text("the app,sim,hw\na,11,10\nb,12,10\na,11,10\nb,12,10\n", encoding="utf-8")
    options = "--by 'the app' --where 'the app=a' --json"
    done = runner("Audit", table=str(table), claim="MAPE 50 %", options=options)
    assert done.returncode == 0, done.stderr
    words = runner.calls.read_text().split("\0")[:-1]
    assert str(table) in words
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2
    hostile = runner(
        "Audit", table=str(table), claim="$(touch ran)", options="; touch ran `touch ran`"
    )
    assert hostile.returncode == 0, hostile.stderr
    words = runner.calls.read_text().split("\0")[:-1]
    assert {"$(touch ran)", ";", "touch", "ran", "`touch", "ran`"} <= {*words}
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert not (runner.folder / "ran").exists()


@pytest.mark.core
def test_the_action_comments_once(runner: Runner) -> None:
    program(runner.folder / "bin" / "gh", 'echo "$*" >> "$CALLS"; [[ "$*" != *--edit-last* ]]')
    assert runner("Comment").returncode == 0
    assert runner.calls.read_text() == ""  # there is no summary after bad input
    summary = runner.folder / "errcomp-summary.md"
    summary.write_text("x", encoding="utf-8")
    assert runner("Comment").returncode == 0
    line = f"pr comment 7 --repo me/mine --body-file {summary}"
    assert runner.calls.read_text().splitlines() == [f"{line} --edit-last", line]


@pytest.mark.core
@pytest.mark.parametrize(
    ("version", "installed"),
    [
        ("1.2.3", "install --quiet errcomp==1.2.3"),
        ("", f"install --quiet -c {ROOT}/constraints.txt {ROOT}"),
    ],
)
def test_the_action_installs_a_version_or_its_own_commit(
    runner: Runner, version: str, installed: str
) -> None:
    program(runner.folder / "bin" / "python3", "exit 0")
    program(runner.folder / "errcomp" / "bin" / "pip", 'echo "$*" >> "$CALLS"')
    done = runner("Install errcomp", version=version)
    assert done.returncode == 0, done.stderr
    assert runner.calls.read_text().strip() == installed
    assert done.stdout.startswith("errcomp ")


def test_the_action_is_complete() -> None:
    named: set[str] = set()
    for step in STEPS.values():
        assert step["shell"] == "bash"  # composite actions require it
        assert "${{" not in step["run"]  # text of inputs would be run
        named |= set(re.findall(r"inputs\.([a-z-]+)", json.dumps(step)))
    assert named == set(ACTION["inputs"])


# --- pre-commit ---


def test_the_hook_names_every_file_that_fails(tmp_path: Path, capsys: Any) -> None:
    good, other = tmp_path / "good.csv", tmp_path / "other.csv"
    good.write_text("sim,hw\n11,10\n", encoding="utf-8")
    other.write_text("a,b\n11,0\n", encoding="utf-8")
    assert main([str(good)]) == 0
    assert main([]) == 0
    assert main([str(other), str(good), str(tmp_path / "none.csv")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        str(other),
        str(tmp_path / "none.csv"),
    ]
    named = ["--predicted", "a", "--measured", "b", str(other)]
    assert main(named) == 1
    assert "measured must be positive" in capsys.readouterr().err
    other.write_text("a,b\n11,0\n11,10\n10,\n", encoding="utf-8")
    assert main(["--zeros", "exclude", "--missing", "exclude", *named]) == 0


@pytest.mark.core
def test_the_hook_runs_as_pre_commit_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["language"] == "python"
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\n11,10\n", encoding="utf-8")
    python, option, module, *options = hook["entry"].split()
    assert (python, option) == ("python", "-m")
    monkeypatch.setattr(sys, "argv", [module, *options, str(path)])
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(found.origin, run_name="__main__")
    assert ended.value.code == 1
    assert "missing columns predicted, measured" in capsys.readouterr().err


# --- Docker ---


def test_the_image_is_built_of_files_that_exist() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    extras = re.search(r"/src\[([a-z,]+)\]", text)
    assert extras is not None
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in extras[1].split(","):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)
    assert (ROOT / "constraints.txt").exists()
    assert text.count("USER errcomp") == 1
