"""The caveats of the real NeuSight table, and the facts that the survey states about it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from errcomp import datasets
from errcomp.caveats import check, check_table
from errcomp.results import Caveat
from errcomp.tables import Pairs


@pytest.fixture(scope="module")
def table() -> Pairs:
    return datasets.load("neusight")


def found(pairs: Pairs, **options: object) -> dict[str, Caveat]:
    return {c.code: c for c in check(pairs, **options)}  # type: ignore[arg-type]


def test_fused_and_unfused_are_pooled_in_the_h100_inference_figure(table: Pairs) -> None:
    part = table.of_tool("neusight").where({"device": "H100", "mode": "inference"})
    evidence = found(part, by=("device", "mode"))["pooled-variants"].evidence
    assert (evidence["variant"], evidence["usual"]) == ("fusion", "base")
    assert (evidence["n_variant"], evidence["n_usual"]) == (4, 12)
    assert evidence["mape_variant"] == pytest.approx(0.1675, abs=5e-5)
    assert evidence["mape_usual"] == pytest.approx(0.0606, abs=5e-5)
    # On the same four configurations the gap is smaller: the variants differ in models, too.
    assert evidence["mape_usual_matched"] == pytest.approx(0.1161, abs=5e-5)


def test_a_claim_that_is_a_median(table: Pairs) -> None:
    part = table.of_tool("neusight").where({"device": "H100", "mode": "training"})
    claim = SimpleNamespace(printed="4.1%", low=0.0405, high=0.0415, aggregation="not stated")
    assert found(part, claim=claim)["aggregation-not-stated"].evidence["fits"] == ["median"]


def test_a_figure_of_the_survey_that_was_rounded_before_averaging(table: Pairs) -> None:
    part = table.of_tool("neusight").where({"device": "L4", "mode": "inference"})
    claim = SimpleNamespace(printed="14.08%")
    assert found(part, claim=claim)["rounded-before-averaging"].message == (
        "The mean error of these pairs rounds to 14.07 %. It is 14.08 %, as claimed, only if every "
        "error is first rounded to 2 decimals."
    )


def test_three_pairs_are_few(table: Pairs) -> None:
    part = table.of_tool("neusight").where({"device": "P4"})
    assert list(found(part, by=("device", "mode"))) == ["few-configurations"]


def test_what_all_146_pairs_hide(table: Pairs) -> None:
    caveats = found(table.of_tool("neusight"), by=("device", "mode"))
    # The largest error is 6.5 times the mean: no more than Laplace errors reach in 146 pairs.
    assert list(caveats) == ["clustered", "one-sided", "order-holds"]
    assert caveats["one-sided"].message.startswith("104 of 146 predictions are too high")


def test_the_tail_of_habitat(table: Pairs) -> None:
    evidence = found(table.of_tool("habitat"))["tail"].evidence
    assert evidence["max_over_mean"] > 1.25 * evidence["max_over_mean_usual"]


def test_roofline_is_always_too_low(table: Pairs) -> None:
    caveats = found(table.of_tool("roofline"))
    assert caveats["one-sided"].evidence["share"] == 1
    assert caveats["under-over-asymmetry"].evidence["symmetric"] > 0.5


def test_the_mean_of_habitat_is_made_by_a_few_cases(table: Pairs) -> None:
    assert found(table.of_tool("habitat"))["aggregation-matters"].evidence["factor"] > 10


def test_the_four_tools_do_not_cover_the_same_configurations(table: Pairs) -> None:
    (caveat,) = check_table(table.of_tool("all"))
    assert caveat.code == "coverage-differs"
    counts = {name: t["configurations"] for name, t in caveat.evidence["tools"].items()}
    assert counts == {"neusight": 146, "habitat": 80, "micro": 80, "roofline": 80}


def test_no_row_of_the_audit_is_a_wall_of_text(table: Pairs) -> None:
    neusight = table.of_tool("neusight")
    claim = SimpleNamespace(printed="2.3%", low=0.0225, high=0.0235, aggregation="not stated")
    for group in neusight.groups(["device", "mode"]):
        caveats = check(neusight.take(group.index), claim=claim, by=("device", "mode"))
        assert len(caveats) <= 6
        assert all(len(c.message) <= 160 for c in caveats)
