from __future__ import annotations

import numpy as np
import pytest

from errcomp.claims.printed import parse_printed
from errcomp.claims.search.keys import choose_factors, join
from errcomp.claims.search.lattice import build_lattice
from errcomp.claims.search.rules import (
    DENOMINATORS,
    FAMILIES,
    RULES,
    Rule,
    evaluate,
    rows_for,
    rules_for,
)
from errcomp.claims.search.scan import Subsets, Table
from errcomp.metrics import pearson, r2
from errcomp.tables import Pairs

P = np.array([110.0, 45.0, 8.0])
M = np.array([100.0, 50.0, 10.0])


def rule(aggregation: str, denominator: str = "measured", reading: str = "error") -> Rule:
    (found,) = (
        r
        for r in RULES
        if (r.aggregation, r.denominator, r.reading) == (aggregation, denominator, reading)
    )
    return found


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("mean", 0.4 / 3),
        ("median", 0.1),
        ("geometric mean", 0.002 ** (1 / 3)),
        ("weighted", 17 / 160),
        ("root mean square", 0.02**0.5),
        ("ratio of totals", 3 / 160),
        ("mean of rounded (0 decimals)", 0.4 / 3),
    ],
)
def test_closed_forms(aggregation: str, expected: float) -> None:
    assert evaluate(rule(aggregation), predicted=P, measured=M) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("denominator", "expected"),
    [
        ("measured", (10 / 100 + 5 / 50 + 2 / 10) / 3),
        ("predicted", (10 / 110 + 5 / 45 + 2 / 8) / 3),
        ("smaller", (10 / 100 + 5 / 45 + 2 / 8) / 3),
        ("larger", (10 / 110 + 5 / 50 + 2 / 10) / 3),
        ("mean of both", (10 / 105 + 5 / 47.5 + 2 / 9) / 3),
    ],
)
def test_denominators(denominator: str, expected: float) -> None:
    assert evaluate(rule("mean", denominator), predicted=P, measured=M) == pytest.approx(expected)


def test_totals_take_the_denominator_of_the_totals() -> None:
    smaller = evaluate(rule("ratio of totals", "smaller"), predicted=P, measured=M)
    larger = evaluate(rule("ratio of totals", "larger"), predicted=P, measured=M)
    assert (smaller, larger) == (pytest.approx(3 / 160), pytest.approx(3 / 163))


def test_rounding_happens_before_averaging() -> None:
    predicted, measured = np.array([101.24, 101.24]), np.array([100.0, 100.0])
    value = evaluate(rule("mean of rounded (1 decimal)"), predicted=predicted, measured=measured)
    assert value == pytest.approx(0.012)


def test_shares_and_accuracy() -> None:
    assert evaluate(rule("share within 10 %", reading="share"), predicted=P, measured=M) == (
        pytest.approx(2 / 3)
    )
    accuracy = evaluate(rule("weighted", reading="100 - error"), predicted=P, measured=M)
    assert accuracy == pytest.approx(1 - 17 / 160)


def test_one_error_of_zero_makes_the_geometric_mean_zero() -> None:
    value = evaluate(
        rule("geometric mean"), predicted=np.array([10.0, 12.0]), measured=np.array([10.0, 10.0])
    )
    assert value == 0


def test_the_plain_mean_is_the_cheapest_rule() -> None:
    ordered = sorted(RULES, key=lambda r: r.cost)
    assert ordered[0] == rule("mean")
    assert ordered[0].cost == 0
    assert ordered[1].cost > 0
    assert len(RULES) == 5 * (9 * 2 + 2) + 3 == len(set(RULES))


def test_a_denominator_that_is_not_positive_is_left_out() -> None:
    rows = rows_for(np.array([0.0, 5.0]), np.array([1.0, 4.0]))
    assert "error measured" in rows
    assert "error mean of both" in rows
    assert "error predicted" not in rows
    assert "error smaller" not in rows


def test_sums_agree_with_definitions_for_random_subsets() -> None:
    rng = np.random.default_rng(5)
    n = 40
    measured = rng.lognormal(0, 2, n)
    pairs = Pairs(
        {
            "device": rng.choice(list("ABCD"), n).tolist(),
            "model": rng.choice(list("xyz"), n).tolist(),
            "measured": measured.tolist(),
            "predicted": (measured * rng.lognormal(0, 0.08, n)).tolist(),
        }
    )
    configurations = join(pairs, [""], "tool")
    factors, _ = choose_factors(configurations, None, None)
    lattice = build_lattice(factors, n)
    table = Table(configurations, lattice)
    assert table.families == list(FAMILIES)
    for block in lattice.blocks:
        for row in block.rows:
            subsets = Subsets(np.full(len(block.values), row), block.values)
            values = table.evaluate(0, subsets)
            inside = (
                lattice.sets_of_cells(subsets.rows)[:, lattice.cell_of]
                & lattice.sets_of_values(subsets.values)[:, lattice.value_of]
            )
            assert (table.count(subsets) == inside.sum(axis=1)).all()
            for r in RULES:
                direct = [
                    evaluate(
                        r,
                        predicted=configurations.predicted[0, rows],
                        measured=configurations.measured[0, rows],
                    )
                    for rows in inside
                ]
                assert r.read(values[r.family]) == pytest.approx(
                    direct, rel=1e-10, abs=1e-12, nan_ok=True
                )


def test_every_denominator_has_rules() -> None:
    assert {r.denominator for r in RULES} == {*DENOMINATORS, ""}


def agreement(name: str, predicted: list[float], measured: list[float]) -> float:
    return evaluate(
        rule(name, "", "agreement"), predicted=np.array(predicted), measured=np.array(measured)
    )


def test_agreement_is_that_of_the_metrics() -> None:
    r = pearson(predicted=P, measured=M)
    assert agreement("correlation", P.tolist(), M.tolist()) == pytest.approx(r)
    assert agreement("squared correlation", P.tolist(), M.tolist()) == pytest.approx(r**2)
    assert agreement("R²", P.tolist(), M.tolist()) == pytest.approx(r2(predicted=P, measured=M))
    assert r**2 != pytest.approx(r2(predicted=P, measured=M), abs=1e-3)


def test_agreement_that_is_not_defined() -> None:
    names = ("correlation", "R²", "squared correlation")
    for name in names:
        assert np.isnan(agreement(name, [1.0, 2.0], [1.0, 3.0]))
        assert np.isnan(agreement(name, [1.0, 2.0, 3.0], [5.0, 5.0, 5.0]))
    flat = [agreement(name, [5.0, 5.0, 5.0], [1.0, 2.0, 3.0]) for name in names]
    assert flat == pytest.approx([np.nan, 1 - 29 / 2, np.nan], nan_ok=True)


@pytest.mark.parametrize("size", [1e-75, 1.0, 1e75])
def test_agreement_of_numbers_of_any_size(size: float) -> None:
    m = np.array([1.0, 2.0, 4.0, 7.0]) * size
    p = m * [1.1, 0.9, 1.2, 1.0]
    pairs = Pairs({"device": list("AABB"), "measured": m, "predicted": p})
    configurations = join(pairs, [""], "tool")
    factors, _ = choose_factors(configurations, None, None)
    lattice = build_lattice(factors, 4)
    table = Table(configurations, lattice)
    block = next(b for b in lattice.blocks if 0b11 in b.values.tolist())
    whole = Subsets(block.rows[:1], np.array([0b11]))
    values = {f.aggregation: v[0] for f, v in table.evaluate(0, whole).items() if not f.denominator}
    assert values["correlation"] == pytest.approx(pearson(predicted=p, measured=m))
    assert values["R²"] == pytest.approx(r2(predicted=p, measured=m))


def test_sums_of_numbers_that_hardly_differ_are_not_trusted() -> None:
    rows = rows_for(np.array([1.0, 1.0 + 1e-9, 1.0]), np.array([1.0, 1.0, 1.0 + 1e-9]))
    assert "measured squared" in rows
    pairs = Pairs({"measured": [1.0, 1.0, 1.0001], "predicted": [1.0, 1.0, 1.0002]})
    configurations = join(pairs, [""], "tool")
    table = Table(configurations, build_lattice([], 3))
    whole = Subsets(np.array([0]), np.array([1]))
    values = {f.aggregation: v[0] for f, v in table.evaluate(0, whole).items()}
    assert np.isnan([values["correlation"], values["R²"]]).all()


@pytest.mark.parametrize(
    ("texts", "bits"),
    [
        (("0.9986",), 2),
        (("99.86%",), 2),
        (("≥0.9",), 2),
        (("1.00",), 2),
        (("2.3%",), 8),
        (("0.35",), 8),
        (("<5%",), 8),
        (("0.97", "12%"), 8),
    ],
)
def test_a_low_figure_is_hardly_a_correlation(texts: tuple[str, ...], bits: int) -> None:
    rules = rules_for([parse_printed(text) for text in texts])
    costs = {r.aggregation: r.cost for r in rules if r.reading == "agreement"}
    assert costs == {
        "correlation": bits * 10,
        "R²": bits * 10,
        "squared correlation": (bits + 1) * 10,
    }
    others = [r for r in rules if r.reading != "agreement"]
    assert others == [r for r in RULES if r.reading != "agreement"]
