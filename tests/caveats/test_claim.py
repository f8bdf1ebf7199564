"""A claim against its pairs: level, reference, metric, averaging, digits, quantiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.caveats._case import Case
from errcomp.caveats.claim import (
    aggregation_not_stated,
    kind_of_reference,
    kinds_of_references,
    level_mismatch,
    metric_mismatch,
    quantile_claim,
    reference_mismatch,
    rounded_before_averaging,
)
from errcomp.claims.registry import user_claim
from errcomp.results import Caveat
from errcomp.tables import Pairs


def case_of(claim: dict[str, Any] | None = None, n: int = 4, **columns: Any) -> Case:
    table = {
        "predicted": [1.1, 1.2, 1.1, 2.4][:n],
        "measured": [1.0, 1.0, 1.1, 2.0][:n],
        **columns,
    }
    return Case(Pairs(table, unit="ms"), None if claim is None else SimpleNamespace(**claim))


def caveat_of(found: object) -> Caveat:
    assert getattr(found, "caveat", None) is not None
    return found.caveat  # type: ignore[attr-defined, no-any-return]


def test_a_claim_at_another_level() -> None:
    caveat = caveat_of(level_mismatch(case_of({"level": "kernel"}, level=["model"] * 4)))
    assert caveat.message == (
        "The claim is about the kernel level, but the level of the 4 pairs here is model: figures "
        "of different levels are not comparable."
    )
    assert caveat.evidence == {"claim": "kernel", "levels": {"model": 4}}


@pytest.mark.parametrize("claimed", ["model", "kernel and model", "kernel/model", "", "not stated"])
def test_levels_that_agree_or_are_not_stated(claimed: str) -> None:
    assert level_mismatch(case_of({"level": claimed}, level=["model"] * 4)) is None


def test_levels_mixed_in_the_pairs_need_no_claim() -> None:
    caveat = caveat_of(level_mismatch(case_of(level=["kernel", "kernel", "model", "kernel"])))
    assert caveat.message == (
        "These pairs mix levels: kernel (3) and model (1). A single metric over all these "
        "pairs describes none of the levels."
    )


def test_pairs_without_a_level_are_not_judged() -> None:
    assert level_mismatch(case_of({"level": "kernel"})) is None
    assert level_mismatch(case_of(level=["model"] * 4)) is None


def test_a_claim_against_another_reference() -> None:
    caveat = caveat_of(reference_mismatch(case_of({"reference": "RTL simulation"})))
    assert caveat.message == (
        "The claim's reference is RTL simulation, but the reference of these pairs is "
        "hardware (assumed, not stated): figures with different references are not "
        "comparable."
    )
    stated = caveat_of(
        reference_mismatch(case_of({"reference": "hardware"}, reference=["another predictor"] * 4))
    )
    assert "the reference of these pairs is another predictor" in stated.message
    assert stated.evidence["stated_in_pairs"] is True


def test_a_reference_that_is_unclear_is_said_to_be() -> None:
    caveat = caveat_of(reference_mismatch(case_of({"reference": "unclear (RTL or hardware)"})))
    assert caveat.message.startswith(
        "The claim's reference is unclear, but the reference of these pairs is hardware"
    )
    assert len(caveat.message) <= 160


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            ["unknown"] * 4,
            "The claim's reference is hardware; these pairs do not state their reference, so "
            "the reference of the claim is assumed.",
        ),
        (
            ["hardware", "hardware", "unknown", ""],
            "The claim's reference is hardware; some of these pairs do not state their "
            "reference, so the reference of the claim is assumed.",
        ),
    ],
)
def test_pairs_of_an_unknown_reference_are_told(reference: list[str], message: str) -> None:
    found = reference_mismatch(case_of({"reference": "hardware"}, reference=reference))
    assert caveat_of(found).message == message


def test_a_claim_that_states_no_reference_is_taken_to_be_about_hardware() -> None:
    claim = {"reference": "not stated", "printed": "3%"}
    caveat = caveat_of(reference_mismatch(case_of(claim, reference=["simulator"] * 4)))
    assert caveat.message == (
        "The reference of these pairs is simulator, but the reference of the claim is not stated: "
        "the errors of these pairs are not errors against hardware."
    )
    for known in (["hardware"] * 4, ["unknown"] * 4):
        assert reference_mismatch(case_of(claim, reference=known)) is None
    assert reference_mismatch(case_of({"printed": ""}, reference=["simulator"] * 4)) is None


def test_kinds_of_a_column() -> None:
    assert kinds_of_references(["RTL", float("nan"), None, "Hardware", "estimate"]) == [
        "RTL",
        "estimate",
        "hardware",
        "unknown",
    ]


@pytest.mark.parametrize("claimed", ["hardware", "hardware serving traces", "none", ""])
def test_references_that_agree_or_are_not_stated(claimed: str) -> None:
    assert reference_mismatch(case_of({"reference": claimed})) is None


def test_kinds_of_reference() -> None:
    assert kind_of_reference("cycle-accurate simulation") == "simulator"
    assert kind_of_reference("other predictor") == "another predictor"
    assert kind_of_reference("silicon") == "silicon"


def test_a_correlation_in_place_of_an_error() -> None:
    measured = np.arange(1.0, 11.0)
    table = {"predicted": 2 * measured, "measured": measured}
    claim = SimpleNamespace(metric="IPC correlation", printed="0.97")
    caveat = caveat_of(metric_mismatch(Case(Pairs(table), claim)))
    assert caveat.message == (
        "The claim quotes IPC correlation (0.97), not a relative error. From these pairs: "
        "Pearson correlation 1, MAPE 100.0 %; doubling all predictions would not change the "
        "correlation."
    )
    assert caveat.evidence["value"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("metric", "figure", "shown"),
    [
        ("Kendall tau", "kendall", "Kendall tau-b 0.4"),
        ("Spearman rho", "spearman", "Spearman rank correlation 0.5"),
        ("R²", "r2", "R² 0.703"),
        ("MAE", "mae", "MAE 0.175 ms"),
        ("RMSE", "rmse", "RMSE 0.229 ms"),
        ("RMSPE", "rmspe", "RMSPE 15.00 %"),
        ("RMSLE", "rmsle", "RMSLE 0.137"),
        ("share within 10%", "within_10", "share within 10 % 50.00 %"),
        ("within 5 %", "within_5", "share within 5 % 25.00 %"),
        ("share within 20%", "within_20", "share within 20 % 100.0 %"),
    ],
)
def test_other_metrics_are_set_beside_the_mape(metric: str, figure: str, shown: str) -> None:
    caveat = caveat_of(metric_mismatch(case_of({"metric": metric, "printed": ""})))
    assert caveat.evidence["figure"] == figure
    assert f"From these pairs: {shown}, MAPE 12.50 %" in caveat.message


def test_a_metric_that_is_not_defined_here_is_not_made_up() -> None:
    caveat = caveat_of(metric_mismatch(case_of({"metric": "correlation"}, n=1)))
    assert "Pearson correlation n/a" in caveat.message
    assert caveat.evidence["value"] is None


@pytest.mark.parametrize("metric", ["MAPE", "error", "accuracy", "alignment", "none", ""])
def test_relative_errors_are_no_mismatch(metric: str) -> None:
    assert metric_mismatch(case_of({"metric": metric})) is None


CLAIM = {"printed": "15%", "low": 0.145, "high": 0.155, "aggregation": "not stated"}


def test_an_average_that_is_not_stated() -> None:
    caveat = caveat_of(aggregation_not_stated(case_of(CLAIM)))
    assert caveat.message == (
        "The claim 15% does not name its average. Errors here: mean 12.50 %, median 15.00 %, "
        "geometric mean 0.00 %, weighted mean 13.73 %; 15% matches only the median."
    )
    none = caveat_of(aggregation_not_stated(case_of({**CLAIM, "low": 0.2, "high": 0.21})))
    assert none.message.endswith("; none agrees with 15%.")
    assert none.evidence["fits"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"aggregation": "mean"},
        {"printed": ""},
        {"kind": "correlation"},
        {"low": 0.12, "high": 0.13},  # the mean prints as the claim
    ],
)
def test_an_average_that_is_stated_or_does_not_matter(change: dict[str, Any]) -> None:
    assert aggregation_not_stated(case_of({**CLAIM, **change})) is None


def test_averages_that_agree_need_no_statement() -> None:
    assert aggregation_not_stated(case_of(CLAIM, n=1)) is None
    table = {"predicted": [1.1, 1.1], "measured": [1.0, 1.0]}
    assert aggregation_not_stated(Case(Pairs(table), SimpleNamespace(**CLAIM))) is None


def test_a_claimed_fraction_is_told_in_per_cent() -> None:
    pairs = {"predicted": [1.1, 1.2, 1.1, 2.4], "measured": [1.0, 1.0, 1.1, 2.0]}
    case = Case(Pairs(pairs), user_claim("0.15"))
    assert caveat_of(aggregation_not_stated(case)).message.startswith("The claim 15 % does not")
    rounded = {"predicted": [1.0149, 1.0149, 1.0202], "measured": [1.0, 1.0, 1.0]}
    assert rounded_before_averaging(Case(Pairs(rounded), user_claim("0.01"))) is not None


def test_a_mean_of_rounded_errors() -> None:
    # Means 1.46 and 1.66 %; of the errors rounded to whole percent, 1.33 and 2 %.
    claim = SimpleNamespace(printed="1%")
    fair = {"predicted": [1.014, 1.0149, 1.0149], "measured": [1.0, 1.0, 1.0]}
    assert rounded_before_averaging(Case(Pairs(fair), claim)) is None
    rounded = {"predicted": [1.0149, 1.0149, 1.0202], "measured": [1.0, 1.0, 1.0]}
    caveat = caveat_of(rounded_before_averaging(Case(Pairs(rounded), claim)))
    assert caveat.message == (
        "The mean error of these pairs rounds to 2 %. It is 1 %, as claimed, only if every error "
        "is first rounded to 0 decimals."
    )
    assert caveat.evidence["mean_of_rounded"] == pytest.approx(0.04 / 3)
    other = Case(Pairs(rounded), SimpleNamespace(printed="3 %"))
    assert rounded_before_averaging(other) is None


@pytest.mark.parametrize("printed", ["", "<5%", "5–10%", "0.97", "2.4"])
def test_only_a_printed_percentage_can_be_rounded(printed: str) -> None:
    assert rounded_before_averaging(case_of({"printed": printed})) is None


@pytest.mark.parametrize("metric", ["P99 error", "99th percentile of the error", "p99 APE"])
def test_a_claimed_quantile_needs_enough_pairs(metric: str) -> None:
    caveat = caveat_of(quantile_claim(case_of({"metric": metric})))
    assert caveat.code == "p99-few-samples"
    assert caveat.evidence["n_needed"] == 299
    assert caveat.evidence["rules_high"] == pytest.approx(0.2)
    assert caveat.evidence["high"] is None
    assert "20 %" in caveat.message


def test_no_quantile_is_claimed_or_there_are_enough() -> None:
    assert quantile_claim(case_of({"metric": "MAPE"})) is None
    assert quantile_claim(case_of({"metric": "P0 error"})) is None
    table = {"predicted": np.linspace(1.1, 2, 300), "measured": np.ones(300)}
    assert quantile_claim(Case(Pairs(table), SimpleNamespace(metric="P99"))) is None


@pytest.mark.parametrize(
    ("errors", "fires"),
    [((0.25, 0.25, 0.4375), True), ((0.25, 0.25, 0.43), False), ((0.0,) * 3, False)],
)
def test_averages_matter_from_a_factor_of_five_quarters_on(
    errors: tuple[float, ...], fires: bool
) -> None:
    predicted = [1 + error for error in errors]
    found = aggregation_not_stated(case_of(CLAIM, 3, predicted=predicted, measured=[1.0] * 3))
    assert (found is not None) == fires
