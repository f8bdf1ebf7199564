from __future__ import annotations

import numpy as np
import pytest

from errcomp.claims.printed import parse_printed
from errcomp.claims.search import scan as module
from errcomp.claims.search.keys import choose_factors, join
from errcomp.claims.search.lattice import build_lattice
from errcomp.claims.search.scan import Candidates, Table, scan
from errcomp.tables import Pairs


def table(tools: int = 1, devices: str = "ABCDEFG") -> Table:
    rng = np.random.default_rng(8)
    n = 80
    keys = {
        "device": rng.choice(list(devices), n).tolist(),
        "model": rng.choice(list("vwxyz"), n).tolist(),
        "mode": rng.choice(["inference", "training"], n).tolist(),
        "repeat": list(range(n)),
    }
    measured = rng.lognormal(0, 1, n * tools)
    pairs = Pairs(
        {
            **{key: values * tools for key, values in keys.items()},
            "tool": [f"t{t}" for t in range(tools) for _ in range(n)],
            "measured": measured.tolist(),
            "predicted": (measured * rng.lognormal(0, 0.1, n * tools)).tolist(),
        }
    )
    configurations = join(pairs, [f"t{t}" for t in range(tools)], "tool")
    factors, _ = choose_factors(configurations, ["device", "model", "mode"], None)
    return Table(configurations, build_lattice(factors, n))


def as_set(found: Candidates, up_to: int) -> set[int]:
    parts = (found.subsets.rows, found.subsets.values, found.rule, found.complexity)
    kept = np.stack(parts)[:, found.complexity <= up_to]
    # One number for the four of a candidate: much faster to compare than tuples.
    return set(np.ravel_multi_index(tuple(kept), (1 << 20, 1 << 20, 1 << 8, 1 << 14)).tolist())


def test_the_simplest_are_kept_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 300)
    data, figures = table(), [parse_printed("8%")]
    everything = scan(data, figures, keep=10**9)
    assert len(everything.rule) == everything.passed.sum() > 10_000
    some = scan(data, figures, keep=100)
    assert (some.passed == everything.passed).all()
    assert 100 <= len(some.rule) < 5_000
    assert some.complexity.max() == some.kept_up_to
    assert as_set(some, some.kept_up_to) == as_set(everything, some.kept_up_to)


def test_how_the_work_is_cut_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    data, figures = table(), [parse_printed("8%")]
    whole = scan(data, figures, keep=10**9)
    monkeypatch.setattr(module, "_SLAB", 10_000)
    monkeypatch.setattr(module, "_CHUNK", 300)
    calls: list[tuple[int, int]] = []
    pieces = scan(data, figures, keep=10**9, progress=lambda a, b: calls.append((a, b)))
    assert as_set(pieces, 10**9) == as_set(whole, 10**9)
    assert len(calls) > 10
    assert calls[-1][0] == calls[-1][1]


def test_all_figures_must_be_met_by_the_same_subset_and_rule() -> None:
    data, anything = table(tools=2, devices="ABCDE"), parse_printed("≥0%")
    first, second = parse_printed("8.0%"), parse_printed("7–9%")
    passed = [
        as_set(scan(data, figures, keep=10**9), 10**9)
        for figures in ([first, anything], [anything, second], [first, second], [second, first])
    ]
    assert 0 < len(passed[2]) < len(passed[0])
    assert passed[2] == passed[0] & passed[1]
    assert passed[3] != passed[2]


def test_nothing_passes_where_no_value_can_be() -> None:
    found = scan(table(), [parse_printed("5000%")], keep=10)
    assert len(found.rule) == found.passed.sum() == 0
