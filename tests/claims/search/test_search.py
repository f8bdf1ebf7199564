from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import errcomp as ec
import errcomp.datasets
from errcomp.claims.search import SearchResult, search_claim
from errcomp.errors import InputError
from errcomp.results import format_fraction
from errcomp.tables import Pairs

ABSTRACT = {"neusight": "2.3%", "habitat": "121.4%", "micro": "30.8%"}


@pytest.fixture(scope="module")
def neusight() -> Pairs:
    return errcomp.datasets.load("neusight")


@pytest.fixture(scope="module")
def abstract(neusight: Pairs) -> SearchResult:
    return search_claim(neusight, ABSTRACT)


def small(**more: list[Any]) -> Pairs:
    return Pairs(
        {
            "device": ["A", "A", "B", "B"],
            "measured": [100.0] * 4,
            "predicted": [101.0, 103.0, 110.0, 125.0],
            **more,
        }
    )


@pytest.mark.slow
def test_abstract_figures_are_the_means_over_gpt3_on_h100(abstract: SearchResult) -> None:
    best = abstract.matches[0]
    assert best.where == {"device": ["H100"], "model": ["gpt3_27", "gpt3_xl"]}
    assert (best.aggregation, best.denominator, best.reading) == ("mean", "measured", "error")
    assert best.n == 6
    assert {k: round(100 * v, 2) for k, v in best.values.items()} == {
        "neusight": 2.33,
        "habitat": 121.4,
        "micro": 30.76,
    }
    assert best.found == 1
    assert best.expected_by_chance < 1e-3
    assert "coincidence is unlikely" in abstract.conclusion


@pytest.mark.slow
def test_abstract_match_is_reproduced_by_hand(neusight: Pairs, abstract: SearchResult) -> None:
    for tool, text in (("neusight", "2.3"), ("habitat", "121.4"), ("micro", "30.8")):
        part = neusight.where({"tool": tool, "variant": "base", **abstract.matches[0].where})
        error = abs(part.predicted - part.measured) / part.measured
        assert part.n == 6
        assert f"{100 * error.mean():.1f}" == text


@pytest.mark.slow
def test_whole_lattice_of_the_artifact_is_searched(neusight: Pairs) -> None:
    calls = []
    result = search_claim(
        neusight, {"neusight": "8.9%"}, progress=lambda done, total: calls.append((done, total))
    )
    searched = result.searched
    assert searched["complete"]
    assert searched["configurations"] == 146
    assert searched["subsets"] == calls[-1][1] == calls[-1][0] > 20_000_000
    assert calls == sorted(calls)
    assert searched["derived"]["vendor"] == "device"
    # The figure for all NVIDIA devices, distributed and fused variants left out.
    overall = next(m for m in result.matches if m.where.get("vendor") == ["NVIDIA"])
    assert overall.where == {"vendor": ["NVIDIA"], "variant": ["base"]}
    assert (overall.aggregation, overall.n) == ("mean", 80)
    assert round(overall.values["neusight"], 4) == 0.0889
    # One figure with two digits proves nothing: there are matches by the dozen.
    assert overall.found > 5
    assert overall.expected_by_chance > 1


@pytest.mark.slow
def test_overall_figure_where_the_claim_says_nvidia(neusight: Pairs) -> None:
    result = search_claim(neusight.where({"vendor": "NVIDIA"}), {"neusight": "8.9%"})
    simplest_mean = next(m for m in result.matches if m.aggregation == "mean")
    assert simplest_mean.where == {"variant": ["base"]}
    assert simplest_mean.n == 80


def test_every_match_holds_on_the_rows_it_names(neusight: Pairs) -> None:
    result = search_claim(neusight.where({"vendor": "AMD"}), {"neusight": "15.6%"}, top=50)
    assert len(result.matches) == 50
    assert len({json.dumps(m.where) for m in result.matches}) == 50
    order = [(m.complexity, -m.n) for m in result.matches]
    assert order == sorted(order)
    for match in result.matches:
        part = neusight.where({"tool": "neusight", "vendor": "AMD", **match.where})
        assert part.n == match.n
        assert 0.1555 <= match.values["neusight"] < 0.1565
        if (match.aggregation, match.denominator, match.reading) == ("mean", "measured", "error"):
            error = abs(part.predicted - part.measured) / part.measured
            assert match.values["neusight"] == pytest.approx(error.mean())


def test_json_document(neusight: Pairs) -> None:
    found = search_claim(neusight, ABSTRACT, keys=["device", "model"])
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    best = document["matches"][0]
    assert {"where", "aggregation", "n", "values", "expected_by_chance"} <= set(best)
    assert best["where"]["device"] == ["H100"]
    assert document["figures"]["neusight"] == {
        "text": "2.3%",
        "value": 0.023,
        "low": 0.0225,
        "high": 0.0235,
    }
    assert document["searched"]["left_out"] == {"neusight": 66, "habitat": 0, "micro": 0}
    counts = [row["expected"] for row in document["searched"]["by_complexity"]]
    assert counts == sorted(counts)


def test_same_seed_same_result(neusight: Pairs) -> None:
    part = neusight.where({"vendor": "AMD"})
    first, again = (search_claim(part, {"neusight": "11.3%"}, seed=4).to_dict() for _ in range(2))
    assert first == again


def test_rows_of_one_subset_under_several_rules_are_one_match() -> None:
    result = search_claim(small(), {"": "2.0%"})
    best = result.matches[0]
    assert best.where == {"device": ["A"]}
    assert best.description == "mean, device A, n=2"
    assert "median" in best.also
    assert "weighted" in best.also
    assert len({json.dumps(m.where) for m in result.matches}) == len(result.matches)


def wide(spread: float = 0.03, n: int = 60) -> Pairs:
    rng = np.random.default_rng(5)
    measured = rng.lognormal(0, 2, n)
    return Pairs(
        {
            "device": [f"d{i % 4}" for i in range(n)],
            "model": [f"m{i % 5}" for i in range(n)],
            "measured": measured,
            "predicted": measured * rng.lognormal(0.02, spread, n),
        }
    )


def test_a_published_r2_is_found_as_r2() -> None:
    pairs = wide()
    r2 = ec.metrics.r2(predicted=pairs.predicted, measured=pairs.measured)
    assert 0.99 < r2 < 0.9999
    for text in (f"{r2:.4f}", f"{100 * r2:.2f}%"):
        best = search_claim(pairs, {"": text}).matches[0]
        assert (best.aggregation, best.denominator, best.reading) == ("R²", "", "agreement")
        assert best.where == {}
        assert best.description == "R², all configurations, n=60"
        assert best.values[""] == pytest.approx(r2)


def test_a_published_correlation_is_found_as_a_correlation() -> None:
    pairs = wide(0.3)
    part = pairs.where({"device": ["d2"]})
    r = ec.metrics.pearson(predicted=part.predicted, measured=part.measured)
    best = search_claim(pairs, {"": f"{r:.5f}"}).matches[0]
    assert (best.aggregation, best.where) == ("correlation", {"device": ["d2"]})
    assert str(best) == f"{format_fraction(r)}: correlation, device d2, n=15"


def test_a_low_percentage_is_not_taken_for_a_correlation_first() -> None:
    pairs = wide()
    error = abs(pairs.predicted - pairs.measured) / pairs.measured
    found = search_claim(pairs, {"": f"{100 * error.mean():.1f}%"}, top=10)
    assert found.matches[0].aggregation == "mean"
    assert all(match.reading != "agreement" for match in found.matches)


def test_words_for_rules_and_for_values_left_out() -> None:
    five = Pairs(
        {
            "device": ["A", "B", "C", "D", "E"],
            "measured": [100.0] * 5,
            "predicted": [104.0, 108.0, 113.0, 117.0, 190.0],
        }
    )
    best = search_claim(five, {"": "90.7%"}).matches[0]
    assert best.where == {"device": ["A", "B", "C", "D"]}
    assert best.reading == "100 - error"
    assert best.description == "100 % minus mean, relative to predicted, device other than E, n=4"
    whole = search_claim(five, {"": "26.4%"}).matches[0]
    assert str(whole) == "26.40 %: mean, all configurations, n=5"
    both = search_claim(five, {"": "6.9%"}, top=50).matches
    assert any("relative to the mean of both" in m.description for m in both)


def test_no_match_says_how_many_were_to_be_expected() -> None:
    result = search_claim(small(), {"": "70.12%"})
    assert result.matches == ()
    assert "None of 3 subsets under 103 rules reproduces the figure" in result.conclusion


def test_a_single_vague_figure_is_explained_by_coincidence() -> None:
    result = search_claim(small(), {"": "<50%"})
    assert "coincidence is likely" in result.conclusion
    # Within two per cent of the whole table one figure in four is printed so.
    result = search_claim(small(batch=[1, 1, 1, 2]), {"": "9.8%"})
    assert "coincidence cannot be ruled out" in result.conclusion


def test_bounds_are_said() -> None:
    result = search_claim(
        Pairs(
            {
                "device": list("ABCDEF"),
                "measured": [100.0] * 6,
                "predicted": [101.0, 102.0, 103.0, 104.0, 105.0, 106.0],
            }
        ),
        {"": "2%"},
        max_values=1,
    )
    assert not result.searched["complete"]
    assert result.searched["bounds"] == {"device": 1}
    assert "bounded" in result.conclusion
    assert result.searched["subsets"] == 13


def test_counts_that_were_not_kept_are_unknown(neusight: Pairs) -> None:
    result = search_claim(neusight.where({"vendor": "AMD"}), {"neusight": "<50%"}, top=1)
    levels = result.searched["by_complexity"]
    known = [row["found"] for row in levels if row["found"] is not None]
    assert levels[-1]["found"] is None
    assert known == sorted(known)
    assert result.matches[0].found == known[0] > 0


def test_infinite_ends_are_null_in_json() -> None:
    document = search_claim(small(), {"": "≥2%"}).to_dict()
    assert document["figures"][""]["high"] is None
    assert document["matches"]


def test_rules_that_cannot_be_computed_are_named() -> None:
    result = search_claim(
        Pairs({"device": ["A", "B"], "measured": [10.0, 10.0], "predicted": [0.0, 11.0]}),
        {"": "10%"},
    )
    assert result.matches[0].where == {"device": ["B"]}
    assert "mean, relative to predicted" in result.searched["rules_left_out"]
    assert result.searched["rules"] == 63


def test_a_table_without_keys_has_one_subset() -> None:
    result = search_claim(Pairs({"measured": [10.0, 10.0], "predicted": [11.0, 12.0]}), {"": 0.15})
    assert result.matches[0].where == {}
    assert math.isclose(result.matches[0].values[""], 0.15)


def test_a_column_without_values_is_not_searched() -> None:
    result = search_claim(small(variant=[None] * 4), {"": "2.0%"})
    assert result.searched["unused"] == {"variant": "always None"}


def test_rows_that_failed_are_counted() -> None:
    failed = Pairs(
        {
            "device": ["A", "B", "B"],
            "status": ["ok", "ok", "out of memory"],
            "measured": [10.0, 10.0, 10.0],
            "predicted": [11.0, 12.0, float("nan")],
        }
    )
    assert [d["n"] for d in search_claim(failed, {"": "10%"}).searched["dropped"]] == [1]


def test_a_key_with_too_many_values_is_given_up_and_said_so() -> None:
    n = 3000
    result = search_claim(
        Pairs(
            {
                "date": [f"day {i}" for i in range(n)],
                "device": ["A", "B"] * (n // 2),
                "measured": [10.0] * n,
                "predicted": [11.0, 12.0] * (n // 2),
            }
        ),
        {"": "20%"},
    )
    assert result.searched["bounds"] == {"date": 0}
    assert result.matches[0].where == {"device": ["B"]}


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({}, "no figure to search for"),
        ({"": "about two"}, "cannot read the figure"),
        ({"": "-2.3%"}, "must not be negative, got '-2.3%'"),
        ({"": "<-5%"}, "must not be negative"),
        ({"": -0.1}, "must not be negative"),
        ({"a": "1%", "b": "2%"}, "no column 'tool'"),
    ],
)
def test_bad_figures(figures: dict[str, str | float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        search_claim(small(), figures)


def test_bad_arguments(neusight: Pairs) -> None:
    with pytest.raises(InputError, match="Tools in the table: habitat, micro, neusight, roofline"):
        search_claim(neusight, {"nightsight": "2.3%"})
    with pytest.raises(InputError, match="no key 'gpu' to search"):
        search_claim(neusight, {"neusight": "2.3%"}, keys=["gpu"])
    with pytest.raises(InputError, match="no key 'tool' to search"):
        search_claim(neusight, {"neusight": "2.3%"}, keys=["tool"])
    with pytest.raises(InputError, match="top must be at least 1"):
        search_claim(neusight, {"neusight": "2.3%"}, top=0)


def test_a_mapping_or_dataframe_will_do() -> None:
    columns = {
        "device": ["A", "A", "B", "B"],
        "measured": [100.0] * 4,
        "predicted": [101.0, 103.0, 110.0, 125.0],
    }
    found = search_claim(columns, {"": "2.0%"}, keys="device")
    assert found.matches == search_claim(small(), {"": "2.0%"}).matches


@pytest.mark.parametrize("figures", ["2.0%", ["2.0%"], None])
def test_figures_that_are_no_mapping(figures: Any) -> None:
    with pytest.raises(
        InputError,
        match=r"figures must be a mapping from each tool to its published figure, got \w+\. Write",
    ):
        search_claim(small(), figures)


@pytest.mark.parametrize(
    ("predicted", "text"),
    [(1e308, r"between 1e-75 and 1e\+75 for a search, got 1e\+308 in row 4"), (5e-324, "row 4")],
)
def test_numbers_that_cannot_be_squared(predicted: float, text: str) -> None:
    with pytest.raises(InputError, match=text):
        search_claim(small(predicted=[101.0, 103.0, 110.0, predicted]), {"": "2.0%"})


def test_above_zero_is_met_by_chance_as_often_as_not() -> None:
    found = search_claim(small(), {"": ">0%"})
    assert found.matches[0].where == {}


def test_a_seed_and_a_figure_that_cannot_be_used() -> None:
    with pytest.raises(InputError, match="seed must not be negative, got -1"):
        search_claim(small(), {"": "2.0%"}, seed=-1)
    with pytest.raises(InputError, match="figure of 'a' must be text .* got None"):
        search_claim(small(), {"a": None})  # type: ignore[dict-item]  # what is tested


def test_rows_that_not_all_tools_have_are_counted_below_the_table() -> None:
    data = {
        "tool": ["x"] * 5 + ["y"] * 3,
        "batch": [1, 2, 3, 4, 5, 1, 2, 3],
        "measured": [100.0] * 8,
        "predicted": [102.0] * 5 + [110.0] * 3,
    }
    found = search_claim(Pairs(data), {"x": "2%", "y": "10%"})
    assert found.searched["left_out"] == {"x": 2, "y": 0}
    assert found.matches[0].n == 3
    assert found.in_first_subset == {"x": 5}
    notes = [str(note) for note in found.view().tables[0].notes]
    assert (
        "Only the 3 configurations common to all tools were searched; rows left out: 2 of x."
        in (notes)
    )
    assert (
        "In the subset of the first match, x has 5 rows; 3 of them are common to all tools."
        in notes
    )
