"""The scripts of the benchmarks find each other beside each other: so do their tests."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a script by its name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        found = importlib.import_module(name)
        for other in set(sys.modules) - before:
            if str(getattr(sys.modules[other], "__file__", "")).startswith(str(BENCHMARKS)):
                monkeypatch.delitem(sys.modules, other)
        return found

    return load
