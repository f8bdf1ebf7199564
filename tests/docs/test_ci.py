"""The summary that docs/ci.md quotes is the one that the command above it writes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ci.md"


def test_the_summary_is_as_shown(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    command = re.search(r"^\$ errcomp (audit (?:.*\\\n)?.*)$", text, re.M)
    assert command is not None
    words = shlex.split(command[1].replace("\\\n> ", " "))
    assert run(*words).code == 1
    quoted = (line for line in text.splitlines() if line.startswith(">"))
    shown = [line.removeprefix(">").removeprefix(" ") for line in quoted]
    written = Path(words[words.index("--markdown") + 1]).read_text(encoding="utf-8")
    # The continued line of the command begins with the same sign.
    assert [line for line in shown if not line.startswith("  --fail-on")] == written.splitlines()
