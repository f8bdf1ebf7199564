"""Values on the edge of a printed figure: the order of a sum must not decide on which side."""

from __future__ import annotations

import math

import numpy as np
import pytest

import errcomp.claims.search as module
from errcomp.claims.printed import parse_printed, tolerance
from errcomp.claims.search import search_claim
from errcomp.claims.search.rules import contains
from errcomp.tables import Pairs


def around(value: float) -> np.ndarray:
    """Return the value as sums may leave it: a few bits below, exact, a few bits above."""
    return value + np.spacing(value) * np.arange(-8, 9)


@pytest.mark.parametrize(
    ("text", "edge", "belongs"),
    [
        ("12.3%", 0.1225, True),
        ("12.3%", 0.1235, False),
        ("12.4%", 0.1235, True),
        ("0.3", 0.25, True),
        ("2.5×", 2.55, False),
        ("<5%", 0.05, False),
        ("≤5%", 0.05, True),
        (">5%", 0.05, False),
        ("≥5%", 0.05, True),
        (">500%", 5.0, False),
        ("5–10%", 0.05, True),
        ("5–10%", 0.1, True),
        ("5–5%", 0.05, True),
        ("0.00012%", 1.25e-6, False),
        ("12340%", 123.395, True),
    ],
)
def test_an_edge_is_on_one_side_whatever_the_last_bits(
    text: str, edge: float, belongs: bool
) -> None:
    figure = parse_printed(text)
    assert set(contains(figure, around(edge)).tolist()) == {belongs}
    assert figure.contains(edge) == belongs


def test_no_error_at_all_is_not_above_zero() -> None:
    values = np.array([-1e-17, 0.0, 1e-17, 1e-6])
    assert contains(parse_printed(">0%"), values).tolist() == [False, False, False, True]
    assert contains(parse_printed("<5%"), values).all()


@pytest.mark.parametrize("text", ["2.3%", "121%", "0.058", "<5%", ">5%", "5–10%", "0.0000000001%"])
def test_away_from_its_edges_a_figure_contains_what_it_says(text: str) -> None:
    figure = parse_printed(text)
    ends = np.array([end for end in (figure.low, figure.high) if math.isfinite(end)])
    far = 2 * tolerance(figure)
    values = np.concatenate([ends - far, ends + far, 0.99 * ends, 1.01 * ends])
    assert contains(figure, values).tolist() == [figure.contains(v) for v in values.tolist()]
    assert far < 0.01 * (figure.high - figure.low)


@pytest.mark.parametrize("text", ["12.3%", "5–12%", "87.7%"])
def test_a_search_does_not_depend_on_the_order_of_the_rows(text: str) -> None:
    # Means of rounded errors lie on an edge by the dozen.
    rng = np.random.default_rng(2)
    n = 60
    measured = rng.lognormal(3, 1, n)
    columns = {
        "device": rng.choice(list("ABCDE"), n),
        "model": rng.choice(list("wxyz"), n),
        "mode": rng.choice(["inference", "training"], n),
        "measured": measured,
        "predicted": measured * rng.lognormal(0, 0.15, n),
    }
    results = []
    for order in (np.arange(n), rng.permutation(n), rng.permutation(n)):
        shuffled = {name: values[order].tolist() for name, values in columns.items()}
        results.append(search_claim(Pairs(shuffled), {"": text}, top=10_000))
    levels = [[row["found"] for row in r.searched["by_complexity"]] for r in results]
    chances = [[row["expected"] for row in r.searched["by_complexity"]] for r in results]
    named = [{m.description for m in r.matches} for r in results]
    assert levels[0] == levels[1] == levels[2]
    assert chances[1] == pytest.approx(chances[0], rel=1e-12)
    assert chances[2] == pytest.approx(chances[0], rel=1e-12)
    assert named[0] == named[1] == named[2]


@pytest.mark.parametrize("tenths", [101, 106, 112, 163])
def test_a_mean_on_an_edge_is_printed_as_rounded_up(tenths: int) -> None:
    # (10.1 % + 10.2 %) / 2 is 10.15 %; as a mean or from sums it can be a bit less.
    predicted = [1 + tenths / 1000, 1 + (tenths + 1) / 1000]
    pairs = Pairs({"mode": ["x", "y"], "measured": [1.0, 1.0], "predicted": predicted})
    rules = []
    for figure in (tenths, tenths + 1):
        matches = search_claim(pairs, {"": f"{figure / 10:.1f}%"}).matches
        whole = next(m for m in matches if m.where == {})
        rules.append({whole.description.removesuffix(", all configurations, n=2"), *whole.also})
    # The geometric mean is less than the mean, and so below the edge.
    assert "geometric mean" in rules[0] - rules[1]
    assert {"mean of rounded (1 decimal)", "mean"} <= rules[1] - rules[0]


def test_what_the_definition_does_not_confirm_is_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = Pairs({"mode": ["x", "y"], "measured": [1.0, 1.0], "predicted": [1.1, 1.2]})
    assert search_claim(pairs, {"": "15%"}).matches
    monkeypatch.setattr(module, "evaluate", lambda *_, **__: 0.155 + 1e-9)
    assert search_claim(pairs, {"": "15%"}).matches == ()
