"""The two entry points, the registry, and what every caveat has in common."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.caveats import CHECKS, check, check_table, explain, remedies
from errcomp.errors import InputError
from errcomp.results import Caveat
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows

CODES = {one.code for one in CHECKS}


def messy(n: int = 60, seed: int = 3) -> Pairs:
    """Pairs with many problems at once."""
    rng = np.random.default_rng(seed)
    measured = np.exp(rng.normal(0, 2, n))
    fused = np.arange(n) % 3 == 0
    factor = 1.05 + 0.05 * rng.random(n) + 0.4 * fused / measured.clip(0.2)
    return Pairs(
        {
            "predicted": measured * factor,
            "measured": measured,
            "variant": np.where(fused, "fusion", "base").tolist(),
            "model": np.repeat(["a", "b", "c", "d"], n // 4).tolist(),
            "batch": list(range(n)),
        },
        unit="ms",
    )


@pytest.mark.parametrize("look", [check, check_table])
def test_pairs_in_an_engine_are_refused_with_the_remedy(look: Any) -> None:
    rows = PairRows(pl.LazyFrame({"predicted": [1.0], "measured": [1.0]}))
    with pytest.raises(
        InputError, match=r"these pairs stay in Polars\. Give the path of the table"
    ):
        look(rows)


def test_sums_that_lack_some_are_refused() -> None:
    rows = PairRows(pl.LazyFrame({"predicted": [1.0], "measured": [1.0]}))
    with pytest.raises(InputError, match="only sums over these pairs are stored"):
        check(rows.grouped())


def test_caveats_come_in_the_order_of_the_registry() -> None:
    claim = SimpleNamespace(
        printed="0.99", metric="IPC correlation", kind="correlation", reference="simulator"
    )
    codes = [c.code for c in check(messy(), claim=claim)]
    order = [one.code for one in CHECKS if one.scope != "tools"]
    assert codes == sorted(codes, key=order.index)
    assert codes[:3] == ["reference-mismatch", "metric-mismatch", "pooled-variants"]


def test_at_most_one_caveat_of_a_code() -> None:
    codes = [c.code for c in check(messy())]
    assert len(codes) == len(set(codes)) >= 3


def test_evidence_is_plain_and_p_values_are_in_it() -> None:
    found = {c.code: c for c in check(messy())}
    for caveat in found.values():
        json.dumps(caveat.to_dict(), allow_nan=False)
        assert len(caveat.message) <= 160
    assert 0 < found["pooled-variants"].evidence["p_value"] <= 0.05


def test_the_same_seed_gives_the_same_caveats() -> None:
    first, second = (check(messy(), seed=5) for _ in range(2))
    assert [c.to_dict() for c in first] == [c.to_dict() for c in second]


def test_a_mapping_of_columns_is_enough() -> None:
    (found,) = check({"predicted": [1.1, 2.2], "measured": [1.0, 2.0]})
    assert found.code == "few-configurations"
    table = {"predicted": [1.1, 2.2], "measured": [1.0, 2.0], "tool": ["a", "b"]}
    assert [c.code for c in check_table(table)] == []


def test_a_single_pair_is_not_an_error() -> None:
    assert [c.code for c in check({"predicted": [1.0], "measured": [1.0]})] == [
        "few-configurations"
    ]


def test_exact_predictions_have_nothing_but_their_number() -> None:
    keys = {"model": list("abababababab"), "in_training": [True, False] * 6, "batch": range(12)}
    same = {"predicted": np.arange(1.0, 13), "measured": np.arange(1.0, 13)}
    assert check({**same, **{k: list(v) for k, v in keys.items()}}) == ()


def test_several_tools_are_refused_with_the_remedy() -> None:
    table = {"predicted": [1.0, 2.0], "measured": [1.0, 2.0], "tool": ["a", "b"]}
    with pytest.raises(InputError, match="check_table"):
        check(table)


@pytest.mark.parametrize("level", [0.5, 1.0, 95])
def test_a_level_that_is_no_confidence_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="between 0.5 and 1"):
        check({"predicted": [1.0], "measured": [1.0]}, level=level)


def test_an_unknown_grouping_key_is_refused() -> None:
    with pytest.raises(InputError, match="no column 'gpu'"):
        check(messy(), by=["gpu"])


def test_one_tool_has_nothing_to_compare() -> None:
    assert check_table({"predicted": [1.0], "measured": [2.0], "tool": ["a"]}) == ()


def test_a_table_without_the_tool_key_is_refused() -> None:
    with pytest.raises(InputError, match="no column 'tool'"):
        check_table({"predicted": [1.0], "measured": [2.0]})


def test_every_code_of_the_issue_exists() -> None:
    assert {
        "affine",
        "aggregation-matters",
        "aggregation-not-stated",
        "cancelling-errors",
        "clustered",
        "coverage-differs",
        "duplicated-configurations",
        "failures",
        "few-configurations",
        "in-vs-out-of-distribution",
        "level-mismatch",
        "metric-mismatch",
        "one-sided",
        "order-fails",
        "order-holds",
        "other-base",
        "p99-few-samples",
        "pooled-variants",
        "reference-mismatch",
        "rounded-before-averaging",
        "simpsons-paradox",
        "small-quantities",
        "tail",
        "unbalanced-groups",
        "under-over-asymmetry",
        "units",
    } == CODES


def test_a_code_stands_once_in_each_scope() -> None:
    seen = [(one.code, one.scope) for one in CHECKS]
    assert len(seen) == len(set(seen))
    assert {one.scope for one in CHECKS} == {"pairs", "claim", "tools"}


def test_every_check_says_when_it_fires_and_what_to_do() -> None:
    for one in CHECKS:
        text = explain(one.code)
        assert one.title in text
        assert one.why in text
        assert one.remedy in text
        assert any(digit in one.why for digit in "0123456789") or "No significance test" in one.why


def test_explain_knows_the_caveats_of_intervals_and_drivers() -> None:
    assert "few clusters" in explain("few-clusters")
    both = explain("few-configurations")
    assert "Fewer than 10 pairs: too few" in both
    assert "An interval from few pairs" in both
    root = Path(__file__).parents[2] / "errcomp"
    for part in ("drivers", "metrics"):
        for path in (root / part).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for code in re.findall(r'Caveat\(\s*"([a-z-]+)"', text):
                assert explain(code)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="seed must not be negative, got -1"):
        check({"predicted": [1.1], "measured": [1.0]}, seed=-1)


def test_one_key_needs_no_list() -> None:
    table = {"predicted": [1.1, 1.3] * 8, "measured": [1.0] * 16, "device": ["a", "b"] * 8}
    assert check(table, by="device") == check(table, by=["device"])


def test_explain_suggests_the_closest_code() -> None:
    with pytest.raises(InputError, match="Did you mean 'simpsons-paradox'"):
        explain("simpson-paradox")
    with pytest.raises(InputError, match="Caveats: affine, aggregation-matters"):
        explain("???")


def test_every_code_has_a_section_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "caveats.md").read_text(encoding="utf-8")
    sections = {line[3:].strip("` ") for line in text.splitlines() if line.startswith("## `")}
    assert sections == CODES


def test_checks_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CHECKS[0].code = "x"  # type: ignore[misc]


def best_of_three(pairs: Pairs) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        check(pairs)
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.slow
def test_checks_are_quick_enough_for_an_audit_of_many_groups() -> None:
    rng = np.random.default_rng(0)
    for n, seconds in ((146, 0.25), (100_000, 3.0)):
        measured = rng.lognormal(0, 1, n)
        pairs = Pairs(
            {
                "predicted": measured * rng.lognormal(0, 0.1, n),
                "measured": measured,
                "model": rng.choice(list("abcdef"), n),
                "device": rng.choice(list("ABCD"), n),
                "variant": rng.choice(["base", "fusion"], n),
                "in_training": rng.choice([True, False], n),
                "batch": np.arange(n),
            }
        )
        assert best_of_three(pairs) <= seconds


def test_extreme_numbers_do_not_overflow_the_tests() -> None:
    rng = np.random.default_rng(1)
    measured = np.exp(rng.normal(0, 1, 40)) * 1e-150
    # One in five is too low: with one factor for all, only their units would be looked at.
    predicted = np.exp(rng.normal(0, 1, 40)) * np.where(np.arange(40) % 5 == 4, 1e-300, 1e150)
    codes = [
        c.code
        for c in check(
            {
                "predicted": predicted,
                "measured": measured,
                "model": list("abcd") * 10,
                "device": ["x"] * 30 + ["y"] * 10,
                "in_training": [True, False] * 20,
            }
        )
    ]
    assert "one-sided" in codes


def test_what_stays_below_the_largest_error_counts_clusters_where_they_err_alike() -> None:
    import errcomp as ec

    found = {one.code: one for one in check(ec.datasets.load("neusight").of_tool("habitat"))}
    assert found["clustered"].evidence["groups"] == 8
    share = found["tail"].evidence["share_of_clusters_below_max"]
    assert share == pytest.approx(0.05 ** (1 / 8))
    assert "At least 68 % of devices like these 8 (all" in found["tail"].message
    assert "independent cases" not in found["tail"].message


@pytest.mark.parametrize("tools", [["a", "b"], ["a", "a"]])
def test_an_unknown_key_of_configurations_is_refused_by_its_name(tools: list[str]) -> None:
    table = {"predicted": [1.0, 2.0], "measured": [1.0, 2.0], "tool": tools, "batch": [1, 1]}
    # Said first: it may be a misspelt column, of which the message names the known ones.
    for keys in ("gpu", ["gpu"], ["batch", "gpu"], ["tool", "gpu"]):
        with pytest.raises(InputError, match="no column 'gpu'"):
            check_table(table, keys=keys)
    with pytest.raises(InputError) as raised:
        check_table(table, keys=["batch", "tool"])
    assert str(raised.value) == (
        "keys must describe a configuration, but 'tool' names the tools. Leave it out of keys."
    )


def test_the_first_caveats_have_lines_and_the_first_places_names() -> None:
    codes = [one.code for one in CHECKS if one.scope == "pairs"]
    codes = list(dict.fromkeys(codes))[:8]
    found = {place: [Caveat(code, "") for code in codes] for place in "abcd"}
    lines = remedies(found)
    assert len(lines) == 7
    assert lines[-1] == "and 2 more kinds of caveats."
    assert [line.partition(":")[0] for line in lines[:6]] == codes[:6]
    assert all(" (a; b; c; …). " in line for line in lines[:6])
    seven = remedies({place: [Caveat(code, "") for code in codes[:7]] for place in "abc"})
    assert seven[-1] == "and 1 more kind of caveats."
    assert " (a; b; c). " in seven[0]
    assert len(remedies({"a": [Caveat(code, "") for code in codes[:6]]})) == 6
