"""The scripts are accepted by their shells, and complete."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import build_parser
from errcomp.cli.commands.completion import _EMBEDDED, _WORDS, script
from errcomp.cli.parser import leaves

Run = Callable[..., Any]
#: Prints what is offered for the last of the words given, each in a line.
ASK = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_errcomp; printf "%s\\n" "${COMPREPLY[@]}"'


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash (Debian: apt-get install bash)")
    folder = tmp_path_factory.mktemp("completion")
    file = folder / "errcomp.bash"
    file.write_text(script("bash"), encoding="utf-8")
    (folder / "pairs of mine.csv").touch()
    (folder / "results").mkdir()

    def offered(*words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", f'source "$0"; {ASK}', str(file), "errcomp", *words],
            capture_output=True, text=True, check=True, cwd=folder,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.split("\n")[:-1]

    return offered


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("au",), ["audit"]),
        (("halflife", ""), ["fit", "forecast", "check", "blame", "show"]),
        (("audit", "--fail-on", ""), ["overstated", "understated", r"not\ verifiable"]),
        (("audit", "--fail-on", r"not\ "), [r"not\ verifiable"]),
        (("audit", "--agg"), ["--aggregation"]),
        (("audit", "neusight", "--json", "--fa"), ["--fail-on"]),
        (("audit", "ne"), ["neusight"]),
        (("audit", "pa"), ["pairs of mine.csv"]),
        (("audit", "neusight", "-o", "pa"), ["pairs of mine.csv"]),
        (("propagate", "neu"), ["neusight-kernels"]),
        (("propagate", "va"), ["validate"]),
        (("halflife", "fit", "o"), ["ort-releases"]),
        (("datasets", "show", "neu"), ["neusight", "neusight-kernels"]),
        (("datasets", "build", "neusight", "--to", ""), ["results"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes(
    bash: Callable[..., list[str]], words: tuple[str, ...], expected: list[str]
) -> None:
    assert bash(*words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_accepted(run: Run, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} (Debian: apt-get install {shell})")
    file = tmp_path / "script"
    ran = run("completion", shell)
    file.write_text(ran.out, encoding="utf-8")
    assert (ran.code, ran.err, "_shtab_errcomp" in ran.out) == (0, "", True)
    done = subprocess.run([shell, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


#: A line, and what fish offers for it.
OFFERED_BY_FISH = {
    "errcomp au": ["audit"],
    "errcomp halflife ": ["blame", "check", "fit", "forecast", "show"],
    "errcomp audit --fail-on ": ["overstated", "understated", "not verifiable"],
    "errcomp audit ne": ["neusight"],
    "errcomp audit pa": ["pairs of mine.csv"],
    "errcomp audit neusight -o pa": ["pairs of mine.csv"],
    "errcomp propagate va": ["validate"],
    "errcomp datasets show neu": ["neusight", "neusight-kernels"],
    "errcomp datasets build neusight --to r": ["results/"],
    "errcomp completion ": ["bash", "zsh", "fish"],
}


@pytest.fixture(scope="module")
def offered_by_fish(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return what one fish offers for each of the lines."""
    if shutil.which("fish") is None:
        pytest.skip("there is no fish (Debian: apt-get install fish)")
    folder = tmp_path_factory.mktemp("fish")
    (folder / "script").write_text(script("fish"), encoding="utf-8")
    (folder / "here" / "results").mkdir(parents=True)
    (folder / "here" / "pairs of mine.csv").touch()
    asked = "; ".join(f"complete -C '{line}'; echo --end--" for line in OFFERED_BY_FISH)
    done = subprocess.run(
        ["fish", "-N", "-c", f"source ../script; {asked}"],
        capture_output=True, text=True, check=True, cwd=folder / "here",
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    assert done.stderr == ""
    *answers, after = done.stdout.split("--end--\n")
    assert after == ""
    return {
        line: [offer.partition("\t")[0] for offer in answer.splitlines()]
        for line, answer in zip(OFFERED_BY_FISH, answers, strict=True)
    }


@pytest.mark.parametrize("line", OFFERED_BY_FISH)
def test_fish_completes(line: str, offered_by_fish: dict[str, list[str]]) -> None:
    assert offered_by_fish[line] == OFFERED_BY_FISH[line]


def test_zsh_gets_functions_that_offer_tables_and_choices() -> None:
    text = script("zsh")
    assert text.startswith("#compdef errcomp\n")
    assert "_errcomp_audit_fail_on() { compadd -- overstated understated 'not verifiable' }" in text
    assert "_errcomp_datasets_show_name() { compadd -- neusight neusight-kernels " in text


def test_arguments_with_tables_exist() -> None:
    known = {one.prog.removeprefix("errcomp "): one for one in leaves(build_parser())}
    assert set(_WORDS) <= set(_EMBEDDED) <= set(known)
    for command, (argument, _) in _EMBEDDED.items():
        assert argument in {action.dest for action in known[command]._actions}
