from __future__ import annotations

import numpy as np
import pytest

from errcomp.claims.printed import parse_printed
from errcomp.claims.search import chance as module
from errcomp.claims.search.chance import expected_matches, probability
from errcomp.claims.search.configurations import join
from errcomp.claims.search.keys import BITS, choose_factors
from errcomp.claims.search.lattice import build_lattice
from errcomp.claims.search.subsets import Subsets, Table
from errcomp.tables import Pairs


def table(n: int = 60, seed: int = 2) -> Table:
    rng = np.random.default_rng(seed)
    measured = rng.lognormal(3, 1, n)
    pairs = Pairs(
        {
            "device": rng.choice(list("ABCDE"), n).tolist(),
            "model": rng.choice(list("wxyz"), n).tolist(),
            "mode": rng.choice(["inference", "training"], n).tolist(),
            "measured": measured.tolist(),
            "predicted": (measured * rng.lognormal(0, 0.15, n)).tolist(),
        }
    )
    configurations = join(pairs, [""], "tool")
    factors, _ = choose_factors(configurations, None, None)
    return Table(configurations, build_lattice(factors, n))


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
def test_probability_is_that_of_drawing_and_printing(text: str, draw: object) -> None:
    assert callable(draw)
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
    assert probability(parse_printed("2.3%"), values).sum() == pytest.approx(1)


def test_figures_without_a_scale() -> None:
    # Zero has no neighbourhood on a logarithmic scale: it is read as a bound.
    p = probability(parse_printed("0%"), np.array([0.0, 0.004, 0.02]))
    assert p.tolist() == [1.0, pytest.approx(0.661, abs=1e-3), 0.0]
    assert probability(parse_printed("≥0%"), np.array([0.0, 3.0])).tolist() == [1.0, 1.0]


def test_expected_matches_of_a_small_lattice_is_the_sum_over_it() -> None:
    data, figure = table(), parse_printed("12.3%")
    lattice = data.lattice
    chance = expected_matches(data, [figure], np.random.default_rng(0))
    total = np.zeros(len(chance.expected))
    for block in lattice.blocks:
        costs = block.costs(0, len(block.rows))
        for r, row in enumerate(block.rows):
            subsets = Subsets(np.full(len(block.values), row), block.values)
            values = data.evaluate(0, subsets)
            for rule in data.rules:
                p = probability(figure, rule.read(values[rule.family]))
                np.add.at(total, costs[r].astype(int) + rule.cost, p)
    assert chance.expected == pytest.approx(np.cumsum(total))
    assert not chance.standard_error.any()
    assert chance.subsets.sum() == sum(block.size for block in lattice.blocks)
    assert chance.up_to(10**6) == (pytest.approx(total.sum()), 0)


def test_sampling_is_unbiased_and_its_standard_error_true(monkeypatch: pytest.MonkeyPatch) -> None:
    data, figures = table(), [parse_printed("12.3%")]
    exact = expected_matches(data, figures, np.random.default_rng(0))
    monkeypatch.setattr(module, "_SAMPLE", 60)
    monkeypatch.setattr(module, "_FULL", 1)
    runs = [expected_matches(data, figures, np.random.default_rng(s)) for s in range(200)]
    at = 20 * BITS
    means = np.array([run.expected[at] for run in runs])
    errors = np.array([run.standard_error[at] for run in runs])
    assert errors.min() > 0
    spread = means.std(ddof=1)
    assert abs(means.mean() - exact.expected[at]) < 4 * spread / np.sqrt(len(runs))
    # The standard deviation of 200 standard deviations is 5 %.
    assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=0.2)


def test_several_figures_make_chance_matches_rare() -> None:
    rng = np.random.default_rng(3)
    n = 40
    keys = {"device": rng.choice(list("ABCD"), n).tolist(), "case": list(range(n))}
    measured = np.full(n, 10.0)
    columns = {
        "tool": ["a"] * n + ["b"] * n,
        "device": keys["device"] * 2,
        "batch": keys["case"] * 2,
        "measured": measured.tolist() * 2,
        "predicted": (10 * rng.lognormal(0, 0.2, 2 * n)).tolist(),
    }
    expected = []
    for names in (["a"], ["a", "b"]):
        configurations = join(Pairs(columns), names, "tool")
        factors, _ = choose_factors(configurations, ["device"], None)
        data = Table(configurations, build_lattice(factors, n))
        figures = [parse_printed("15.0%")] * len(names)
        expected.append(expected_matches(data, figures, np.random.default_rng(0)).expected[-1])
    assert 0 < expected[1] < expected[0] / 20


@pytest.mark.parametrize(
    ("text", "edge"), [("12.3%", 0.1375), ("98.1%", 0.9785), ("0.058", 0.0415)]
)
def test_the_last_bits_of_a_value_on_an_edge_make_no_difference(text: str, edge: float) -> None:
    values = edge + np.spacing(edge) * np.arange(-8, 9)
    p = probability(parse_printed(text), values)
    assert p[0] > 0
    assert set(p.tolist()) == {p[0]}
    # It is that of what is printed above the edge.
    assert p[0] == pytest.approx(probability(parse_printed(text), np.array([edge + 1e-6]))[0])
    assert p[0] != pytest.approx(probability(parse_printed(text), np.array([edge - 1e-6]))[0])
