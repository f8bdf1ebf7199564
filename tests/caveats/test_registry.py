"""A caveat is one file: the registry finds it, and every view of an audit shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from errcomp.caveats import CHECKS
from errcomp.caveats._registry import caveat

DUMMY = '''
"""Checks of the day of the week."""

from errcomp.caveats._case import Case, Finding
from errcomp.caveats._registry import caveat
from errcomp.results import Caveat


@caveat(
    "measured-on-a-monday",
    "Measurements were made on a Monday",
    scope="pairs",
    order=25,
    why="Fires always. No significance test is involved.",
    remedy="Measure on a Tuesday.",
)
def measured_on_a_monday(case: Case) -> Finding:
    """Find that it is Monday."""
    message = f"All {case.n} pairs are from a Monday."
    return Finding(Caveat("measured-on-a-monday", message, {"n": case.n}))
'''

EXPLAINED = """
from errcomp.caveats import CHECKS, explain
print(*dict.fromkeys(c.code for c in CHECKS))
print(explain("measured-on-a-monday"))
"""
#: One process for all views, without pictures: no caveat is in them.
SHOWN = """
import sys
from contextlib import redirect_stdout
sys.modules["matplotlib"] = None
from errcomp.cli import main
assert main(["audit", "table.csv"]) == 0
with open("audit.json", "w") as document, redirect_stdout(document):
    assert main(["audit", "table.csv", "--json"]) == 0
with redirect_stdout(None):
    assert main(["report", "audit.json", "-o", "audit.html"]) == 0
"""


Run = Callable[..., str]


@pytest.mark.core
def test_a_caveat_is_added_by_one_file(run_with_file: Run) -> None:
    named, _, told = run_with_file("caveats/weekday.py", DUMMY, "-c", EXPLAINED).partition("\n")
    codes = named.split()
    assert codes == [*codes[:2], "measured-on-a-monday", *codes[3:]]
    assert [*codes[:2], *codes[3:]] == list(dict.fromkeys(one.code for one in CHECKS))
    assert told == (
        "Measurements were made on a Monday.\nFires always. No significance test is involved.\n"
        "What to do: Measure on a Tuesday.\n"
    )


@pytest.mark.core
def test_an_audit_shows_a_caveat_of_one_file(run_with_file: Run, tmp_path: Path) -> None:
    rows = "predicted,measured,tool\n11,10,sim\n19,20,sim\n33,30,sim\n"
    (tmp_path / "table.csv").write_text(rows, encoding="utf-8")
    shown = run_with_file("caveats/weekday.py", DUMMY, "-c", SHOWN)
    assert "All 3 pairs are from a Monday." in shown
    document = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert "measured-on-a-monday" in json.dumps(document)
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "Measure on a Tuesday." in page


def test_two_files_cannot_declare_the_same_caveat() -> None:
    declare = caveat("units", "Again", scope="pairs", order=1, why="", remedy="")
    with pytest.raises(
        ValueError, match="errcomp.caveats.sample already declares the caveat 'units'"
    ):
        declare(test_two_files_cannot_declare_the_same_caveat)  # type: ignore[arg-type]
    assert [one.title for one in CHECKS if one.code == "units"] != ["Again"]


def test_no_two_caveats_have_the_same_place() -> None:
    assert [one.order for one in CHECKS] == sorted({one.order for one in CHECKS})
