"""What the scripts of long simulations store for the documentation."""

from __future__ import annotations

import doctest
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Script = Callable[[str], ModuleType]


@pytest.fixture
def stored(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, which writes into a folder of the test."""
    module: Any = script("stored")
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def test_functions_do_what_their_examples_say(stored: Any) -> None:
    assert doctest.testmod(stored).failed == 0


def test_what_is_printed_is_stored_with_its_command(
    stored: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks/some_table.py", "--reps", "3"])
    text = "### Width\n\n| law | n = 3 |\n|---|---:|\n| σ | 0.9 |\n"
    text += "\n### Coverage\n\n| law | n = 3 |\n|---|---:|\n| σ | 0.8 |\n"
    with stored.printed("some", seed=4) as values:
        values["most"] = 0.9
        print(text)
    assert capsys.readouterr().out.strip() == text.strip()
    found = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))
    assert found["command"] == "python benchmarks/some_table.py --reps 3"
    assert (found["seed"], found["values"]) == (4, {"most": 0.9})
    assert found["tables"] == [
        {"name": "Width", "head": ["law", "n = 3"], "rows": [["σ", "0.9"]]},
        {"name": "Coverage", "head": ["law", "n = 3"], "rows": [["σ", "0.8"]]},
    ]


def test_small_runs_of_the_simulations(script: Script) -> None:
    rates: Any = script("rates_table")
    _, found = rates.rates(rates.Job("Laplace", 12, 3, 1))
    assert all(0 <= share <= 1 for share in found.values())
    devices: Any = script("new_device_table")
    _, _, (alone, narrow, held, width) = devices.outcome((devices.CASES[2], 4, 2, 1))
    assert {alone, held} <= {0.0, 0.5, 1.0}
    assert min(narrow, width) > 0


def test_errors_of_predicted_sums_are_as_stored(script: Script) -> None:
    calibration: Any = script("calibration_table")
    path = Path(calibration.__file__).parents[1] / "docs" / "results" / "calibration.json"
    values = json.loads(path.read_text(encoding="utf-8"))["values"]
    before = calibration.errors_of_sums(None)
    assert before == pytest.approx(values["corrected_sums"]["before"], rel=1e-6)
