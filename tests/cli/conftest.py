from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import main


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the command line in this process."""

    def call(*argv: object) -> Ran:
        try:
            code = main([str(a) for a in argv])
        except SystemExit as leave:
            code = int(leave.code or 0)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def pairs_csv(tmp_path: Path) -> Path:
    """A small file of pairs as a user would have it."""
    path = tmp_path / "pairs.csv"
    lines = ["gpu,workload,estimate,latency"]
    lines += [f"{'AB'[i % 2]},w{i},{100 + 7 * i},{90 + 8 * i}" for i in range(12)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
