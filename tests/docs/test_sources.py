"""Each number of README, docs and dataset pages is in a compared block or names its source."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = sorted((DOCS / "results").glob("*.json"))


def script(name: str) -> ModuleType:
    """Load a script of the documentation."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sources: Any = script("sources")


@pytest.mark.parametrize("path", sources.pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_number_says_where_it_is_from(path: Path) -> None:
    found = sources.findings(path, path.read_text(encoding="utf-8"))
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("path", sources.pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_stored_tables_are_as_the_script_writes_them(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert sources.with_tables(page) == page, "run: python docs/sources.py"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_result_says_which_command_made_it_and_is_used(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    runner, made_by, *_ = document["command"].split()
    assert runner == "python"
    assert (ROOT / made_by).is_file()
    pages = (page.read_text(encoding="utf-8") for page in sources.pages())
    assert any(f"{path.name}#" in page for page in pages)


def test_what_the_pages_say_of_the_tables_is_what_they_give() -> None:
    facts = script("facts")
    stored = json.loads(facts.TARGET.read_text(encoding="utf-8"))["values"]
    assert flat(facts.rounded(facts.facts())) == pytest.approx(flat(stored), rel=1e-6)


def flat(value: Any, name: str = "") -> dict[str, float]:
    """Return nested values by their path."""
    if not isinstance(value, dict):
        return {name: value}
    return {key: v for k, one in value.items() for key, v in flat(one, f"{name}/{k}").items()}


def test_the_page_on_metrics_says_from_how_many_pairs_there_is_an_interval() -> None:
    import numpy as np

    from errcomp import Pairs, summarize

    def has_one(figure: str, n: int) -> bool:
        rng = np.random.default_rng(n)
        measured = rng.lognormal(0, 0.3, n)
        columns = {
            "predicted": measured * np.exp(0.1 * rng.standard_normal(n)),
            "measured": measured,
        }
        row = summarize(Pairs(columns), figures=[figure], cluster="none").rows[0]
        return row.figures[figure].low is not None

    page = (DOCS / "choosing-a-metric.md").read_text(encoding="utf-8")
    rows = [row for block in sources.blocks(page) for row in block.rows if len(row) == 5]
    checked = 0
    for name, *_, interval in rows:
        least = [int(n) for n in re.findall(r"\d+", interval) if "from" in interval]
        for figure, n in zip(re.findall(r"`([a-z]\w+)`", name), least, strict=False):
            assert not has_one(figure, n - 1), (figure, n)
            assert has_one(figure, n), (figure, n)
            checked += 1
        if interval == "no":
            (figure,) = re.findall(r"`([a-z]\w+)`", name)
            assert not has_one(figure, 400), figure
            checked += 1
    assert checked >= 10


# The rules themselves.


def findings(page: str) -> list[str]:
    """Return what is found on a page, without the place."""
    found = sources.findings(DOCS / "page.md", page)
    return [re.sub(r"^docs/page\.md:\d+: ", "", one) for one in found]


@pytest.mark.parametrize(
    "text",
    [
        "It errs by 7.6 %.",
        "* An item\n  of 7.6 %.",
        "## A heading of 7.6 %",
        "| a | b |\n|---|---|\n| x | 7.6 % |",
        "> quoted: 7.6 %",
        "The 90 % band holds 7.6 %.",
    ],
)
def test_a_number_without_a_source_is_found(text: str) -> None:
    assert findings(text) == ["7.6 %: where is it from?"]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("From 0.2 to 7 %.", ["0.2 %", "7 %"]),
        ("After 5, 10 and 20 %.", ["5 %", "10 %", "20 %"]),
        ("It took 1,028 s and 3 GiB.", ["1,028 s", "3 GiB"]),
        ("About 7.6 % [3.5, 25.9].", ["7.6 %", "3.5 %", "25.9 %", "[3.5, 25.9]"]),
        ("An interval of [6.3, 20.5].", ["[6.3, 20.5]"]),
    ],
)
def test_every_number_of_a_list_or_an_interval_is_looked_at(text: str, lost: list[str]) -> None:
    assert findings(text) == [f"{one}: where is it from?" for one in lost]


@pytest.mark.parametrize(
    "text",
    [
        "In 2025, version 1.15.0, on 2026-11-21, for 87 runs.",
        "The 90 % band, at 95 %, a nominal 80 %.",
        "With `--error 5%` and $0.05 %$.",
        "```\n7.6 %\n```",
        "    errcomp audit --claim 7.6 %",
        "A limit of 12 times. <!-- given: 12 times -->",
        "It errs by 7.6 %.\n<!-- from: facts.json#values.neusight-kernels.sum.mape -->",
        "Of 87 runs, 7.57 %. <!-- from: facts.json#values.neusight-kernels.sum.mape,\n"
        "facts.json#values.neusight-kernels.runs -->",
        "Above 20 µs. <!-- from: errcomp.calibration.features.state:FLOOR_AT_MOST -->",
        "A quarter more, 1.25 times.\n<!-- from: errcomp.caveats._case:MATERIAL -->",
        "It is 13.2 %.\n\n```console\n$ errcomp x\nsd 13.21 %\n```",
        "It is 14 %. <!-- shown: 14 % -->\n\n```pycon\n>>> say()\n0.140\n```",
    ],
)
def test_what_is_given_shown_or_stored_is_covered(text: str) -> None:
    assert findings(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "It errs by 7.7 %. <!-- from: facts.json#values.neusight-kernels.sum.mape -->",
            r"the text does not have \[0\.0757",
        ),
        ("Of six runs. <!-- from: facts.json#values.neusight.h100 -->", "the text does not have"),
        ("No number. <!-- from: facts.json#values.nowhere -->", "KeyError"),
        ("No number. <!-- from: lost.json#values -->", "FileNotFoundError"),
        ("<!-- table: lost.json#tables -->\n| a |\n|---|\n| 3 |", "FileNotFoundError"),
        ("No number. <!-- given: 5 % -->", "given 5 %: is not in the text"),
        ("It is 14 %. <!-- shown: 14 % -->", "shown 14 %: no compared block"),
        ("Held. <!-- tested: tests/lost.py -->", "there is no such file"),
        ("<!-- given: 5 % -->\n", "a mark without a text"),
        ("| a | 3 | 4 |\n|---|---|---|\n| x | 1 | 2 |\n| y | 1 | 2 |", "a table of numbers"),
        (
            "<!-- table: verdicts.json#tables[design] -->\n| design |\n|---|\n| 3 |",
            "is not what is stored",
        ),
    ],
)
def test_a_mark_that_does_not_hold_is_found(text: str, expected: str) -> None:
    found = findings(text)
    assert any(re.search(expected, one) for one in found), found


def test_a_stored_table_is_written_below_its_mark() -> None:
    page = (
        "Text.\n\n<!-- table: coverage.json#tables[mape: n =] -->\n| a |\n|---|\n| 1 |\n\nMore.\n"
    )
    written = sources.with_tables(page)
    assert "| log-t | 0.911 |" in written
    assert written.endswith("\n\nMore.\n")
    assert findings(written) == []
