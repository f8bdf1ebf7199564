from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def pairs_csv(tmp_path: Path) -> Path:
    """A small file of pairs as a user would have it."""
    path = tmp_path / "pairs.csv"
    lines = ["gpu,workload,estimate,latency"]
    lines += [f"{'AB'[i % 2]},w{i},{100 + 7 * i},{90 + 8 * i}" for i in range(12)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write pages as where Matplotlib is missing, for tests that look at no picture."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
