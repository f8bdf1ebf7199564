from __future__ import annotations

import numpy as np
import pytest

from errcomp.claims.printed import parse_printed
from errcomp.claims.search import chance as module
from errcomp.claims.search.chance import expected_matches, nulls, places
from errcomp.claims.search.keys import BITS, choose_factors, join
from errcomp.claims.search.lattice import build_lattice
from errcomp.claims.search.scan import Subsets, Table
from errcomp.tables import Pairs


def table(n: int = 60, seed: int = 2, devices: str = "ABCDE") -> Table:
    rng = np.random.default_rng(seed)
    measured = rng.lognormal(3, 1, n)
    pairs = Pairs(
        {
            "device": rng.choice(list(devices), n).tolist(),
            "model": rng.choice(list("wxyz"), n).tolist(),
            "mode": rng.choice(["inference", "training"], n).tolist(),
            "measured": measured.tolist(),
            "predicted": (measured * rng.lognormal(0, 0.15, n)).tolist(),
        }
    )
    configurations = join(pairs, [""], "tool")
    factors, _ = choose_factors(configurations, None, None)
    return Table(configurations, build_lattice(factors, n))


@pytest.mark.slow
def test_expected_matches_of_a_small_lattice_is_the_sum_over_it() -> None:
    data, figure = table(devices="ABC"), parse_printed("12.3%")
    lattice = data.lattice
    chance = expected_matches(data, [figure], np.random.default_rng(0))
    laws = nulls(data, [figure])
    assert len(laws) > 3
    total = np.zeros((len(laws), len(chance.expected)))
    for block in lattice.blocks:
        costs = block.costs(0, len(block.rows))
        for r, row in enumerate(block.rows):
            subsets = Subsets(np.full(len(block.values), row), block.values)
            values = data.evaluate(0, subsets)
            for rule in data.rules:
                start, stop = places(figure, rule.read(values[rule.family]))
                for at, law in enumerate(laws):
                    p = np.nan_to_num(law.windows[0].share(start, stop))
                    np.add.at(total[at], costs[r].astype(int) + rule.cost, p)
    by_law = np.cumsum(total, axis=1)
    assert chance.expected == pytest.approx(by_law.max(axis=0))
    assert len(set(by_law.argmax(axis=0).tolist())) > 1
    assert not chance.standard_error.any()
    assert chance.subsets.sum() == sum(block.size for block in lattice.blocks)
    assert chance.up_to(10**6) == (pytest.approx(by_law[:, -1].max()), 0)


@pytest.mark.slow
def test_sampling_is_unbiased_and_its_standard_error_true(monkeypatch: pytest.MonkeyPatch) -> None:
    data, figures = table(), [parse_printed("12.3%")]
    monkeypatch.setattr(module, "_SAMPLE", 60)
    monkeypatch.setattr(module, "_FULL", 1)
    monkeypatch.setattr(module, "_CHUNK", 150)
    # Of one law: the largest of several estimates is not unbiased.
    monkeypatch.setattr(module, "nulls", lambda table, figures: nulls(table, figures)[:1])
    runs = [expected_matches(data, figures, np.random.default_rng(s)) for s in range(200)]
    monkeypatch.undo()
    monkeypatch.setattr(module, "nulls", lambda table, figures: nulls(table, figures)[:1])
    exact = expected_matches(data, figures, np.random.default_rng(0))
    at = 20 * BITS
    means = np.array([run.expected[at] for run in runs])
    errors = np.array([run.standard_error[at] for run in runs])
    assert errors.min() > 0
    spread = means.std(ddof=1)
    assert abs(means.mean() - exact.expected[at]) < 4 * spread / np.sqrt(len(runs))
    # A standard deviation of 200 values has a standard error of 5 %.
    assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=4 / np.sqrt(2 * len(runs)))


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
