"""Laws that unrelated figures are drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from errcomp.claims.printed import Printed, parse_printed
from errcomp.claims.search.chance import FACTOR, NEAREST, Null, Window, around, nulls, places
from errcomp.claims.search.keys import choose_factors, join
from errcomp.claims.search.lattice import build_lattice
from errcomp.claims.search.rules import rules_for
from errcomp.claims.search.scan import Table
from errcomp.tables import Pairs


def probability(figure: Printed, values: np.typing.NDArray[np.float64]) -> list[float]:
    found: list[float] = around(figure).share(*places(figure, values)).tolist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "draw"),
    [
        ("2.3%", lambda u: f"{2.3 * u:.1f}%"),
        ("121%", lambda u: f"{121 * u:.0f}%"),
        ("0.058", lambda u: f"{0.058 * u:.3f}"),
        ("98.1%", lambda u: f"{100 - 1.9 * u:.1f}%"),
        ("<5%", lambda u: f"<{5 * u}%"),
        ("5–10%", lambda u: f"{5 * u}–{10 * u}%"),
        ("≥90%", lambda u: f"≥{100 - 10 * u}%"),
    ],
)
def test_probability_is_that_of_drawing_and_printing(
    text: str, draw: Callable[[float], str]
) -> None:
    rng = np.random.default_rng(7)
    draws = 20_000
    figures = [parse_printed(draw(2.0**u)) for u in rng.uniform(-1, 1, draws)]
    centre = parse_printed(text).value or 0.07
    values = np.array([centre * f for f in (0.4, 0.55, 0.8, 0.999, 1.001, 1.3, 1.9, 2.5)])
    expected = probability(parse_printed(text), values)
    for value, p in zip(values, expected, strict=True):
        drawn = np.mean([f.contains(value) for f in figures])
        assert drawn == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / draws) + 1e-12)


def test_probabilities_of_all_rounding_intervals_add_up_to_one() -> None:
    values = np.arange(0.0, 0.2, 0.001)
    assert sum(probability(parse_printed("2.3%"), values)) == pytest.approx(1)


def test_figures_without_a_scale() -> None:
    # Zero has no neighbourhood on a logarithmic scale: it is read as a bound.
    p = probability(parse_printed("0%"), np.array([0.0, 0.004, 0.02]))
    assert p == [1.0, pytest.approx(0.661, abs=1e-3), 0.0]
    assert probability(parse_printed("≥0%"), np.array([0.0, 3.0])) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "edge"), [("12.3%", 0.1375), ("98.1%", 0.9785), ("0.058", 0.0415)]
)
def test_the_last_bits_of_a_value_on_an_edge_make_no_difference(text: str, edge: float) -> None:
    values = edge + np.spacing(edge) * np.arange(-8, 9)
    p = probability(parse_printed(text), values)
    assert p[0] > 0
    assert set(p) == {p[0]}
    # It is that of what is printed above the edge.
    assert p[0] == pytest.approx(probability(parse_printed(text), np.array([edge + 1e-6]))[0])
    assert p[0] != pytest.approx(probability(parse_printed(text), np.array([edge - 1e-6]))[0])


def table(errors: dict[str, list[float]], figures: list[Printed]) -> Table:
    n = len(next(iter(errors.values())))
    pairs = Pairs(
        {
            "tool": [tool for tool in errors for _ in range(n)],
            "batch": list(range(n)) * len(errors),
            "measured": [100.0] * n * len(errors),
            "predicted": [100 * (1 + e) for own in errors.values() for e in own],
        }
    )
    configurations = join(pairs, list(errors), "tool")
    factors, _ = choose_factors(configurations, ["batch"], None)
    return Table(configurations, build_lattice(factors, n), rules_for(figures))


def laws(*texts: str, **errors: list[float]) -> list[Null]:
    figures = [parse_printed(text) for text in texts]
    return nulls(table(errors, figures), figures)


def windows(text: str, **errors: list[float]) -> list[Window]:
    found = laws(text, **errors)
    assert not any(law.together for law in found)
    return [window for law in found for window in law.windows]


EVEN = {"a": [0.1, 0.1, 0.1]}  # all means are 10 %


def test_windows_begin_at_the_whole_table_and_reach_the_figure() -> None:
    found = windows("12.0%", **EVEN)
    assert found[0] == around(parse_printed("12.0%"))
    for window in found[1:]:
        assert window.low == pytest.approx(math.log(0.1))
        assert window.high > math.log(0.1195)
    assert [math.exp(window.high) for window in found[1:]] == pytest.approx(
        [0.1 * 1.405, 0.2], rel=2e-3
    )
    below = windows("8.0%", **EVEN)
    assert all(window.high == pytest.approx(math.log(0.1)) for window in below[1:])


def test_a_figure_of_the_whole_table_is_drawn_on_both_sides() -> None:
    found = windows("10.1%", **EVEN)
    assert len(found) == 7
    for window in found[1:]:
        assert window.low + window.high == pytest.approx(2 * math.log(0.1))
    widths = [(window.high - window.low) / 2 for window in found[1:]]
    assert math.exp(widths[0]) == pytest.approx(NEAREST)
    assert math.exp(widths[-1]) == pytest.approx(FACTOR)


def test_a_figure_far_from_the_whole_table_is_drawn_around_itself() -> None:
    assert windows("2.3%", **EVEN) == [around(parse_printed("2.3%"))]
    assert windows("300%", **EVEN) == [around(parse_printed("300%"))]


def test_each_plain_rule_gives_a_value_to_be_near_to() -> None:
    found = windows("10.0%", a=[0.05, 0.1, 0.6])
    # Two and a half times the median is too far, the median itself is not, nor is the mean.
    starts = {round(math.exp((window.low + window.high) / 2), 3) for window in found[1:]}
    assert 0.1 in starts
    ends = {round(math.exp(end), 3) for window in found[1:] for end in (window.low, window.high)}
    assert {0.144} <= ends  # geometric mean, just above


def test_each_tool_has_its_own_distance() -> None:
    found = laws("12.0%", "30.0%", "9.0%", a=[0.1] * 3, b=[0.1] * 3, c=[0.1] * 3)
    assert len(found) == 4
    assert not any(law.together for law in found)
    assert {law.windows[1] for law in found} == {around(parse_printed("30.0%"))}
    assert all(law.windows[2].high == pytest.approx(math.log(0.1)) for law in found[1:])


def test_figures_of_the_whole_table_are_drawn_together_too() -> None:
    texts = ("10.1%", "20.1%")
    found = [law for law in laws(*texts, a=[0.1] * 3, b=[0.2] * 3) if law.together]
    assert len(found) == 1
    first, second = (parse_printed(text) for text in texts)

    def probability(a: float, b: float) -> float:
        spans = np.stack([places(first, np.array([a])), places(second, np.array([b]))])
        (found_for_both,) = found[0].probability(spans).tolist()
        return float(found_for_both)

    # The figure with more digits decides: where it is met the other is, too.
    narrow = math.log(0.2005 / 0.1995) / (2 * math.log(NEAREST))
    assert probability(0.1, 0.2) == pytest.approx(narrow, rel=0.01)
    assert probability(0.1, 0.203) == 0
    apart = laws("10.1%", "22.0%", a=[0.1] * 3, b=[0.2] * 3)
    assert not any(law.together for law in apart)


def test_accuracies_are_distances_from_100_percent() -> None:
    found = windows("88.0%", **EVEN)
    assert len(found) > 2
    for window in found[1:]:
        assert window.low == pytest.approx(math.log(0.1))
        assert window.high > math.log(0.1195)


def test_bounds_and_ranges_have_a_distance_too() -> None:
    for text in ("<12%", "≥12%"):
        found = windows(text, **EVEN)
        assert len(found) == 3
        assert all(window.low == pytest.approx(math.log(0.1)) for window in found[1:])
    inside = windows("8–12%", **EVEN)
    assert len(inside) == 7


def test_what_is_not_a_number_is_met_by_no_figure() -> None:
    for text in ("2.3%", "98%", "<5%", ">5%", "5–10%"):
        assert np.isnan(places(parse_printed(text), np.array([np.nan]))).any()


def test_window_shares() -> None:
    window = Window(0.0, 2.0)
    start, stop = np.array([-1.0, 0.5, 3.0, -math.inf]), np.array([1.0, 1.0, 4.0, math.inf])
    assert window.share(start, stop).tolist() == [0.5, 0.25, 0.0, 1.0]
