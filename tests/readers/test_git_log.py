"""Commits and tags from the output of git."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers import git_log

WHO = {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture
def git(tmp_path: Path):
    def run(*words: str) -> str:
        environment = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": os.devnull}
        return subprocess.run(
            ["git", "-C", str(tmp_path), *words],
            capture_output=True, text=True, check=True, env=environment,
        ).stdout  # fmt: skip

    run("init", "-q")
    for subject in ("First", "deadbeef is named in the subject", "Third\n\nabcdef0 broke it"):
        run("commit", "-q", "--allow-empty", "-m", subject)
    run("tag", "v1.0", "HEAD~1")
    run("tag", "v1.0-lts", "HEAD~1")
    return run


@pytest.mark.parametrize(
    "command",
    [
        "log --decorate",
        "log --oneline --decorate",
        "log --oneline --no-decorate",
        "log --no-decorate --stat",
        "log --format=%H",
        "rev-list HEAD",
    ],
)
def test_what_git_prints_is_read(git, tmp_path: Path, command: str) -> None:
    path = tmp_path / "git.log"
    path.write_text(git(*command.split()))
    names = git_log.read(path)
    commits = git("rev-list", "--reverse", "HEAD").split()
    found = [name for name in names if not name.startswith("v1.0")]
    assert len(found) == 3
    assert all(whole.startswith(name) for whole, name in zip(commits, found, strict=True))
    if " --decorate" in command:
        assert {*names[2:4]} == {"v1.0", "v1.0-lts"}
    else:
        assert len(names) == 3


def test_a_log_may_come_by_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"abcdef1 B\nabcdef0 A\n")))
    assert git_log.read("-") == ("abcdef0", "abcdef1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no commits in it. Write it with `git log --oneline --decorate`."),
        ("Fix a bug\n", "no commits in it"),
        ("abcdef1 A\nabcdef1 A\n", "abcdef1 occurs twice. Give the log of one branch."),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "git.log").write_text(text)
    with pytest.raises(InputError) as error:
        git_log.read(tmp_path / "git.log")
    assert str(error.value).startswith(f"{tmp_path / 'git.log'}: ")
    assert message in str(error.value)


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.log: No such file"):
        git_log.read(tmp_path / "none.log")
