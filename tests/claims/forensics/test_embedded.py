"""The figures of the registry, screened."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from errcomp.claims.forensics import forensics
from errcomp.claims.forensics.embedded import registry_figures
from errcomp.claims.registry import claims
from errcomp.cli import main

PRINTED = Path(__file__).parents[3] / "examples" / "printed-figures" / "printed.csv"


def test_the_registry_holds_no_impossible_figure() -> None:
    found = forensics(registry_figures())
    assert found.impossible == 0
    needed = {row.figures[0]: row.condition for row in found.rows if row.condition}
    assert needed == {
        "share within 10% 99.0%": "n is at least 96",
        "share within 10% 99.1%": "n is at least 106",
        "share within 10% 83.4%": "n is at least 145",
        "share within 10% 90%": "n is at least 10",
    }


def test_each_figure_that_a_rule_is_about_is_there_once() -> None:
    table = registry_figures()
    figures = list(zip(table["group"], table["part"], table["quantity"], strict=True))
    assert len(set(figures)) == len(figures)
    known = {(claim.tool, claim.printed) for claim in claims()}
    for group, value in zip(table["group"], table["value"], strict=True):
        assert (group.partition(":")[0], value) in known
    # A bound is no figure, and an error without a stated average no mean.
    values = dict(zip(table["group"], table["value"], strict=True))
    assert not [group for group in values if group.startswith(("Maya", "TokenSim", "Pitot"))]
    assert set(table["quantity"]) == {
        *("mean", "median", "geometric mean", "share within 10%"),
    }


def test_sets_of_one_source_are_told_apart_and_not_taken_for_parts() -> None:
    table = registry_figures()
    of_tool = [group for group in table["group"] if group.startswith("KernelSight-LM: TTFT")]
    assert len(set(of_tool)) == 2
    devices = {
        part
        for group, part in zip(table["group"], table["part"], strict=True)
        if group.startswith("ASTRA-sim") and "HGX" in group and "survey" not in group
    }
    assert devices == {"2", "4"}


def test_the_command_screens_the_registry_and_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert main(["claims", "forensics", "--json", "--fail-on", "impossible"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (document["source"], document["impossible"]) == ("the registry", 0)
    piped = io.TextIOWrapper(io.BytesIO(PRINTED.read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    assert main(["claims", "forensics", "-", "--json", "--fail-on", "impossible"]) == 1
    document = json.loads(capsys.readouterr().out)
    of_file = forensics(PRINTED).to_dict()
    assert document == {**of_file, "source": "standard input"}
    assert main(["claims", "forensics", str(tmp_path)]) == 2
    assert "is a folder, not a file of printed figures" in capsys.readouterr().err
