from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.propagation import Outcome
from errcomp.propagation.validation import Validation
from errcomp.summary import Summary

PAIRS = {
    "device": ["A"] * 6 + ["B"] * 6,
    "measured": [float(i) for i in range(10, 22)],
    "predicted": [i * (0.9 + 0.03 * (i % 7)) for i in range(10, 22)],
}


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: ec.summarize(PAIRS, by=["device"]), "Summary(MAPE {mape}, 2 groups, n=12)"),
        (lambda: ec.summarize(PAIRS), "Summary(MAPE {mape}, n=12)"),
        (lambda: ec.audit(PAIRS), "Audit(MAPE {mape}, n=12)"),
    ],
)
def test_a_result_shows_its_main_figure_in_a_line(make: Callable[[], Any], line: str) -> None:
    found = make()
    figure = ec.summarize(PAIRS).pooled.figures["mape"]
    assert repr(found) == line.format(mape=figure.format())
    assert repr([figure]) == f"[Estimate(mape {figure})]"
    # What is printed is the table still.
    assert len(str(found).splitlines()) > 4


def test_verdicts_are_counted_and_several_tools_have_no_figure_together() -> None:
    from errcomp.claims.registry import user_claim

    claimed = ec.audit(PAIRS, claims=[user_claim("1%")], cluster="none")
    assert "1 maybe overstated, n=12" in repr(claimed)
    both = {name: [*column, *column] for name, column in PAIRS.items()}
    several = ec.audit({**both, "tool": ["x"] * 12 + ["y"] * 12}, by=["device"])
    assert repr(several) == "Audit(2 tools, n=24)"


def test_a_search_shows_its_first_match_or_that_there_is_none() -> None:
    mean = float(np.mean(np.abs(np.divide(PAIRS["predicted"], PAIRS["measured"]) - 1)))
    found = ec.search_claim(PAIRS, {"": f"{100 * mean:.2f}%"})
    assert repr(found).startswith(f"SearchResult({found.matches[0].description}, first of ")
    assert repr(ec.search_claim(PAIRS, {"": "99.5%"})) == "SearchResult(no match)"


def test_bands_are_shown_of_one_run(
    outcome: Callable[..., Outcome], propagation: Callable[..., Any], validation: Validation
) -> None:
    assert repr(propagation(outcome())) == (
        "Propagation(estimated: 90 % band 70 … 130 ms, n=1 run)"
    )
    two = propagation(outcome(), outcome("independent"), outcome(run="other"))
    assert repr(two) == "Propagation(estimated, independent, n=2 runs)"
    assert repr(validation) == "Validation(estimated: 90 % band contains 90 %, n=40)"


def test_a_subclass_of_a_result_is_shown_as_the_result() -> None:
    class Read(Summary):
        pass

    found = ec.summarize(PAIRS)
    fields = {name: getattr(found, name) for name in Summary.__slots__}
    assert repr(Read(**fields)) == repr(found)
