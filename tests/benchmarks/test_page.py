"""The page of the benchmarks is what their results say."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Script = Callable[[str], ModuleType]


@pytest.fixture
def page(script: Script) -> Any:
    return script("page")


def test_the_page_is_that_of_the_results(page: Any) -> None:
    """Else run benchmarks/page.py."""
    assert page.PAGE.read_text(encoding="utf-8") == page.text()


def test_functions_do_what_their_examples_say(page: Any) -> None:
    assert doctest.testmod(page).failed == 0


def test_every_growth_has_a_picture(page: Any) -> None:
    for path in page.RESULTS.glob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        assert bool(found["growth"]) == (page.FIGURES / f"{path.stem}.svg").exists(), path.stem


@pytest.mark.slow
@pytest.mark.extras
def test_a_picture_has_a_panel_for_each_case(page: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    growth = [
        {"case": f"case {i}", "unit": "rows", "sizes": [1, 10, 100], "seconds": [1, 5, 60]}
        for i in range(3)
    ]
    page.draw({"growth": growth}, tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert drawn.count('id="axes_') == 3


def test_every_result_and_every_script_is_in_it(page: Any) -> None:
    results = {path.stem for path in page.RESULTS.glob("*.json")}
    assert results <= {*page.QUESTIONS}
    scripts = {path.stem for path in page.HERE.glob("bench_*.py")}
    assert scripts == {*page.QUESTIONS.values()}


def test_what_was_measured_is_said(page: Any, tmp_path: Path) -> None:
    document = {
        "question": "dag",
        "title": "Graphs",
        "asked": "How long?",
        "date": "2026-01-02",
        "quick": True,
        "machine": {
            "cpu": "Made Up 3000",
            "cores": 2,
            "memory_gib": 24,
            "system": "Linux",
            "others_before": 0.1,
        },
        "versions": {"errcomp": "1.0"},
        "cases": [
            {
                "case": "small",
                "peer": "NumPy",
                "n": 12345,
                "unit": "nodes",
                "ours_seconds": 0.0123,
                "peer_seconds": 2.0,
                "ratio": 0.00615,
                "ratio_low": 0.006,
                "ratio_high": 0.0063,
                "ours_slowest": 0.02,
                "ratio_worst": 0.01,
                "difference": 1e-12,
                "why": "Both add.",
            },
            {
                "case": "large",
                "peer": None,
                "n": 99,
                "unit": "nodes",
                "ours_seconds": 1.0,
                "ours_slowest": 2.0,
            },
        ],
        "growth": [
            {
                "case": "small",
                "unit": "nodes",
                "sizes": [10, 100],
                "seconds": [1e-4, 1.0],
                "fit": None,
            }
        ],
        "targets": [{"what": "memory", "found": 3.0, "limit": 2.0, "unit": "GiB", "met": False}],
        "notes": [{"what": "speed", "found": 1.0, "unit": "GB/s"}],
        "missing": [{"peer": "Gone", "case": "small", "reason": "does not install"}],
    }
    (tmp_path / "dag.json").write_text(json.dumps(document), encoding="utf-8")
    text = page.text(tmp_path)
    for part in (
        "| small | NumPy | 12,345 nodes | 12.3 ms | 20 ms | 2 s | 0.00615 [0.006, 0.0063] | 0.01 "
        "| 1e-12 |",
        "| large | – | 99 nodes | 1 s | 2 s | – | – | – | – |",
        "* small: Both add.",
        "![Graphs: seconds by size](benchmarks/dag.svg)",
        "* small, by number of nodes: 100 µs for 10; 1 s for 100.",
        "| memory | 3 GiB | 2 GiB | **no** |",
        "* speed: 1 GB/s",
        "* small: Gone: does not install",
        "Made Up 3000, 2 cores, 24 GiB, Linux, other processes used 0.1 cores before the run; "
        "errcomp 1.0. Small cases",
    ):
        assert part in text
