from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errcomp.claims.registry import Claim, user_claim
from errcomp.claims.verdict import Verdict, Word, figures_for, judge, lacks_aggregation
from errcomp.errors import InputError
from errcomp.results import Estimate
from errcomp.tables import Pairs

PAIRS = Pairs({"predicted": [1.1, 0.9], "measured": [1.0, 1.0], "level": ["model", "model"]})


def figures(low: float | None = 0.05, high: float | None = 0.12) -> dict[str, Estimate]:
    values = {"mape": 0.08, "median_ape": 0.06, "gmape": 0.023, "wape": 0.07, "within_10": 0.7}
    return {name: Estimate(name, v, low=low, high=high, n=16) for name, v in values.items()}


def claim(printed: str, **changes: Any) -> Claim:
    return replace(user_claim(printed), **changes)


@pytest.mark.parametrize(
    ("printed", "word"),
    [
        ("2.3%", "overstated"),
        ("4.9%", "overstated"),
        ("5.0%", "consistent"),  # [4.95, 5.05) reaches into the interval
        ("8%", "consistent"),
        ("12%", "consistent"),
        ("12.1%", "understated"),
        ("<5%", "overstated"),
        ("<10%", "consistent"),
        ("5–10%", "consistent"),
        ("15–20%", "understated"),
    ],
)
def test_the_verdict_follows_from_the_interval(printed: str, word: str) -> None:
    assert judge(claim(printed), figures(), PAIRS).word == word


@pytest.mark.parametrize(
    ("printed", "low", "high", "word"),
    [
        ("≤5%", 0.05, 0.12, "consistent"),
        ("<5%", 0.05, 0.12, "overstated"),
        ("≤5%", 0.0501, 0.12, "overstated"),
        ("5–10%", 0.10, 0.12, "consistent"),
        ("5–10%", 0.1001, 0.12, "overstated"),
        ("5–10%", 0.01, 0.05, "consistent"),
        ("5–10%", 0.01, 0.0499, "understated"),
        ("≥5%", 0.01, 0.05, "consistent"),
        (">5%", 0.01, 0.05, "understated"),
        ("2.3%", 0.0235, 0.03, "overstated"),
        ("2.3%", 0.01, 0.0225, "consistent"),
    ],
)
def test_an_end_that_belongs_to_the_figure_is_consistent_with_it(
    printed: str, low: float, high: float, word: str
) -> None:
    own = claim(printed, metric="MAPE")
    for bit in (0.0, 1e-17, -1e-17):
        assert judge(own, figures(low + bit, high + bit), PAIRS).word == word


def test_the_ends_of_an_accuracy_are_those_of_the_error_it_leaves() -> None:
    at_least = claim("≥95%", metric="accuracy", aggregation="mean")
    assert judge(at_least, figures(0.05, 0.12), PAIRS).word == "consistent"
    assert at_least.interval == (0.0, 0.05)
    more = claim(">95%", metric="accuracy", aggregation="mean")
    assert judge(more, figures(0.05, 0.12), PAIRS).word == "overstated"


def test_an_average_on_an_end_that_belongs_to_the_claim_agrees() -> None:
    values = {**figures(), "gmape": Estimate("gmape", 0.05, low=0.01, high=0.2, n=16)}
    assert "geometric mean" in judge(claim("≤5%"), values, PAIRS).agreeing
    assert "geometric mean" not in judge(claim("<5%"), values, PAIRS).agreeing


def test_a_claim_is_judged_under_its_own_aggregation() -> None:
    verdict = judge(claim("2.3%", aggregation="geometric mean"), figures(0.02, 0.03), PAIRS)
    assert verdict.word == "consistent"
    assert verdict.recomputed is not None
    assert verdict.recomputed.figure == "gmape"


def test_the_aggregation_that_agrees_is_named() -> None:
    verdict = judge(claim("2.3%"), figures(), PAIRS)
    assert verdict.agreeing == ("geometric mean",)
    agreeing = "The geometric mean of the same pairs matches the claim of 2.3 %."
    assert agreeing in verdict.reason
    assert verdict.ratio == pytest.approx(0.08 / 0.023)
    assert "3.5 times the claim" in verdict.reason
    two = {**figures(), "median_ape": Estimate("median_ape", 0.023, low=0.01, high=0.2, n=16)}
    assert "The median and the geometric mean of the same pairs match the claim" in (
        judge(claim("2.3%", aggregation="mean"), two, PAIRS).reason
    )


def test_an_error_of_unstated_average_is_condemned_only_if_every_average_is() -> None:
    values = figures()
    values["wape"] = Estimate("wape", 0.02, low=0.01, high=0.03, n=16)
    verdict = judge(claim("2.3%"), values, PAIRS)
    assert verdict.word == "not verifiable"
    assert "Overstated if the claim is a mean" in verdict.reason
    assert "the weighted mean of the same 16 pairs could be 2.3 %" in verdict.reason
    # A MAPE is a mean by its name.
    assert judge(claim("2.3%", metric="MAPE"), values, PAIRS).word == "overstated"


def test_a_selection_is_not_what_the_claim_is_about() -> None:
    part = Pairs({"predicted": [1.1, 0.9], "measured": [1.0, 1.0], "device": ["A", "B"]}).where(
        {"device": "A"}
    )
    theirs = claim("2.3%", claimed_by="the tool's authors")
    assert "Only rows with device A were selected" in judge(theirs, figures(), part).reason
    about_a = claim("2.3%", claimed_by="the tool's authors", subset={"device": "A"})
    assert judge(about_a, figures(), part).word == "overstated"
    assert judge(claim("2.3%"), figures(), part).word == "overstated"


def test_the_ratio_to_a_range_is_to_its_nearer_end() -> None:
    assert judge(claim("1–4%"), figures(), PAIRS).ratio == pytest.approx(2.0)
    assert judge(claim("5–10%"), figures(), PAIRS).ratio == pytest.approx(1.0)
    assert judge(claim("0%"), figures(), PAIRS).ratio is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"level": "kernel"}, "kernel level, but the pairs are of the model level"),
        ({"kind": "correlation", "metric": "Kendall tau"}, "a correlation"),
        ({"printed": ""}, "gives no figure"),
        ({"metric": "RMSE"}, "RMSE cannot be computed from these pairs"),
        ({"scope": "CNN training"}, "about CNN training. The table does not say"),
    ],
)
def test_what_the_pairs_cannot_decide_is_not_verifiable(
    changes: dict[str, Any], reason: str
) -> None:
    verdict = judge(replace(user_claim("2.3%"), **changes), figures(), PAIRS)
    assert verdict.word == "not verifiable"
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("claimed", "reference", "word", "reason"),
    [
        (
            "hardware",
            ["simulator"] * 2,
            "not verifiable",
            "the reference of these pairs is simulator",
        ),
        (
            "hardware",
            ["rtl"] * 2,
            "not verifiable",
            "is RTL: figures with different references",
        ),
        ("hardware", ["hardware", "estimate"], "not verifiable", "estimate and hardware: figures"),
        ("hardware", ["hardware", "simulator"], "not verifiable", "--where reference="),
        (
            "RTL simulation",
            ["simulator"] * 2,
            "not verifiable",
            "is RTL simulation, but the reference of these",
        ),
        (
            "simulator",
            ["hardware"] * 2,
            "not verifiable",
            "the reference of these pairs is hardware",
        ),
        ("hardware", ["silicon"] * 2, "not verifiable", "the reference of these pairs is silicon"),
        ("hardware", ["hardware"] * 2, "overstated", "whole interval"),
        ("hardware", ["unknown"] * 2, "overstated", "whole interval"),
        ("hardware", ["hardware", None], "overstated", "whole interval"),
        ("RTL simulation", ["rtl"] * 2, "overstated", "whole interval"),
        ("not stated", ["simulator"] * 2, "overstated", "whole interval"),
        ("unclear", ["simulator"] * 2, "overstated", "whole interval"),
        ("none", ["simulator"] * 2, "overstated", "whole interval"),
    ],
)
def test_a_claim_against_another_reference_is_not_verifiable(
    claimed: str, reference: list[str | None], word: str, reason: str
) -> None:
    pairs = Pairs({"predicted": [1.1, 0.9], "measured": [1.0, 1.0], "reference": reference})
    verdict = judge(claim("3%", metric="MAPE", reference=claimed), figures(), pairs)
    assert (verdict.word, reason in verdict.reason) == (word, True)
    assert (verdict.recomputed is None) == (word == "not verifiable")


def test_pairs_without_a_reference_are_judged() -> None:
    assert judge(claim("3%", metric="MAPE", reference="hardware"), figures(), PAIRS).word == (
        "overstated"
    )


def test_a_claim_of_ones_own_is_told_how_to_say_its_average() -> None:
    found = {**figures(), "gmape": Estimate("gmape", 0.02, low=0.01, high=0.03, n=16)}
    own = judge(claim("2.3%"), found, PAIRS)
    assert own.word == "not verifiable"
    assert "geometric mean of the same 16 pairs could be 2.3 %. Name the average" in own.reason
    assert "with --aggregation mean (or" in own.reason
    assert lacks_aggregation(own)
    other = judge(claim("2.3%", claimed_by="the authors"), found, PAIRS)
    assert other.word == "not verifiable"
    assert other.reason.endswith("2.3 %, and the source does not say which average the claim is.")
    assert not lacks_aggregation(other)
    said = judge(claim("2.3%", aggregation="mean"), found, PAIRS)
    assert said.word == "overstated"
    assert not lacks_aggregation(said)
    assert not lacks_aggregation(judge(claim("2.3%"), figures(None, None), PAIRS))


def test_without_an_interval_nothing_is_decided() -> None:
    verdict = judge(claim("2.3%"), figures(None, None), PAIRS)
    assert verdict.word == "not verifiable"
    assert verdict.reason == "No interval from 16 pairs."


def test_a_share_is_overstated_when_it_is_smaller() -> None:
    share = claim("90%", kind="share", metric="share within 10%")
    assert judge(share, figures(0.5, 0.8), PAIRS).word == "overstated"
    assert judge(share, figures(0.95, 0.99), PAIRS).word == "understated"


def test_no_claim_is_no_verdict() -> None:
    row = judge(None, figures(), PAIRS).to_dict()
    assert row["verdict"] == "no claim"
    assert row["claimed"] is None


@pytest.mark.parametrize(("printed", "claimed"), [("2.3%", 0.023), ("<5%", 0.05), ("5–10%", 0.1)])
def test_claimed_is_a_fraction(printed: str, claimed: float) -> None:
    row = judge(claim(printed), figures(), PAIRS).to_dict()
    assert row["claimed"] == claimed
    assert row["claimed_printed"] == printed


@pytest.mark.parametrize(
    ("value", "low", "high", "printed", "word"),
    [
        (-0.09, -0.12, -0.06, "9%", "consistent"),  # the sign is not printed
        (-0.09, -0.12, -0.06, "1%", "overstated"),
        (-0.09, -0.12, -0.06, "15%", "understated"),
        (0.01, -0.02, 0.04, "0%", "consistent"),  # an interval around zero begins at zero
        (-0.01, -0.06, 0.04, "6%", "consistent"),  # and ends at the end further off
        (0.01, -0.02, 0.04, "5%", "understated"),
        (0.01, None, None, "1%", "not verifiable"),
    ],
)
def test_the_error_of_a_total_is_judged_by_its_size(
    value: float, low: float | None, high: float | None, printed: str, word: str
) -> None:
    total = Estimate("total_error", value, low=low, high=high, n=16, definition="A sum.")
    verdict = judge(claim(printed, aggregation="total"), {**figures(), "total_error": total}, PAIRS)
    assert verdict.word == word
    assert verdict.recomputed is not None
    assert verdict.recomputed.figure == "total_error"
    assert verdict.recomputed.value == abs(value)
    assert verdict.recomputed.definition == "A sum. Its size."


def test_a_user_s_claim_may_be_a_share_or_a_correlation() -> None:
    share = judge(user_claim("70%", metric="share within 10%"), figures(0.5, 0.9), PAIRS)
    assert share.word == "consistent"
    # Without single pairs there is no correlation to hold it against.
    correlation = judge(user_claim("0.9", metric="correlation"), figures(), PAIRS)
    assert correlation.word == "not verifiable"
    assert "The claim is a correlation (Pearson correlation), which needs" in correlation.reason
    with pytest.raises(InputError, match="a claim cannot have the metric 'RMSE'"):
        user_claim("1%", metric="RMSE")
    with pytest.raises(
        InputError,
        match="the metric correlation is not an error, so it has no aggregation, got "
        "aggregation='total'",
    ):
        user_claim("0.9", metric="correlation", aggregation="total")


def test_what_a_name_decides_is_told() -> None:
    import errcomp as ec
    from errcomp.claims.verdict import could_hold_as

    pairs = ec.datasets.load("neusight").where({"device": ["H100", "L4", "V100"]})
    found = ec.audit(pairs, by=["device", "mode"])
    could = {tuple(row.key.values()): could_hold_as(row.verdict, row.figures) for row in found.rows}
    assert could["H100", "inference"] == ("median", "geometric mean")
    assert could["L4", "inference"] == ()  # overstated, or not to be told, as any average
    assert could["V100", "inference"] == ()  # nothing was decided


@pytest.mark.parametrize(
    ("word", "jointly", "together"),
    [
        ("overstated", None, "overstated"),
        ("overstated", "consistent", "consistent"),
        ("understated", "understated", "understated"),
        # What was not found wrong alone is not found otherwise by a wider interval.
        ("not verifiable", "consistent", "not verifiable"),
        ("consistent", "consistent", "consistent"),
    ],
)
def test_the_word_that_counts_holds_for_all_claims_together(
    word: Word, jointly: Word | None, together: Word
) -> None:
    assert Verdict(word, "", jointly=jointly).together == together


def test_a_claim_is_told_in_per_cent_and_kept_as_printed() -> None:
    verdict = judge(claim("0.023"), figures(), PAIRS)
    assert "3.5 times the claim: the whole interval is above 2.3 %." in verdict.reason
    assert verdict.to_dict()["claimed_printed"] == "0.023"


def correlations(low: float | None, high: float | None, **values: float) -> dict[str, Estimate]:
    found = {"pearson": 0.868, "spearman": 0.9, "r2": 0.7, **values}
    return {
        **figures(),
        **{
            name: Estimate(name, v, low=low, high=high, n=16, unit="correlation", method="no way")
            for name, v in found.items()
        },
    }


@pytest.mark.parametrize(
    ("printed", "low", "high", "word"),
    [
        ("0.99", 0.5, 0.95, "overstated"),  # more is better: the whole interval lies below
        ("0.99", 0.5, 0.985, "consistent"),  # which would be printed so
        ("0.99", 0.5, 0.9849, "overstated"),
        ("0.5", 0.7, 0.95, "not verifiable"),  # rare errors not seen would lower it
        (">0.95", 0.5, 0.94, "overstated"),
        ("0.90–0.97", 0.5, 0.94, "consistent"),
        ("99%", 0.5, 0.95, "overstated"),
        ("0.99", None, None, "not verifiable"),
    ],
)
def test_a_correlation_is_judged_by_its_interval(
    printed: str, low: float | None, high: float | None, word: str
) -> None:
    verdict = judge(user_claim(printed, metric="correlation"), correlations(low, high), PAIRS)
    assert verdict.word == word
    assert verdict.reason.startswith(f"Pearson correlation 0.8{68 if low is None else 7}")
    assert verdict.recomputed is not None
    assert verdict.recomputed.figure == "pearson"
    assert verdict.agreeing == ()


def test_a_correlation_is_never_understated() -> None:
    verdict = judge(user_claim("0.5", metric="correlation"), correlations(0.7, 0.95), PAIRS)
    assert verdict.reason.startswith(
        "Pearson correlation 0.87 [0.70, 0.95] from 16 pairs is higher than 0.5, but a few large "
        "errors"
    )


def test_a_correlation_may_be_another_one_and_says_so() -> None:
    own = user_claim("0.99", metric="correlation")
    wrong = judge(own, correlations(0.5, 0.95), PAIRS)
    assert wrong.reason.endswith("The source does not say which correlation the claim is.")
    other = judge(own, correlations(0.5, 0.95, spearman=0.99), PAIRS)
    assert (
        "correlation the claim is: Spearman rank correlation of the same pairs rounds to"
        in other.reason
    )
    assert other.word == "overstated"
    two = correlations(0.5, 0.95, spearman=0.99, r2=0.99)
    assert " and R² of the same pairs round to 0.99." in judge(own, two, PAIRS).reason
    named = replace(own, metric="Pearson correlation")
    assert "The source" not in judge(named, correlations(0.5, 0.95), PAIRS).reason
    assert "The source" not in judge(own, correlations(0.5, 0.995), PAIRS).reason


@pytest.mark.parametrize(
    ("metric", "figure"),
    [("Kendall tau", "kendall"), ("IPC correlation", "pearson"), ("R²", "r2"), ("R2", "r2")],
)
def test_the_name_of_a_correlation_says_which_is_judged(metric: str, figure: str) -> None:
    theirs = replace(user_claim("0.97", metric="correlation"), metric=metric)
    assert figure in figures_for(theirs)
    found = correlations(0.5, 0.95)
    found["kendall"] = replace(found["pearson"], figure="kendall")
    verdict = judge(theirs, found, PAIRS)
    assert verdict.word == "overstated"
    assert verdict.recomputed is not None
    assert verdict.recomputed.figure == figure
    assert ("not as the square of a correlation" in verdict.reason) == (figure == "r2")


def test_a_mean_absolute_error_has_the_unit_of_the_pairs() -> None:
    own = user_claim("1.5", metric="MAE")
    assert (own.kind, own.shown, own.aggregation) == ("measured", "1.5", "mean")
    assert figures_for(own) == ("mae",)
    mae = Estimate("mae", 2.0, low=1.6, high=2.4, n=16, unit="ms")
    verdict = judge(own, {**figures(), "mae": mae}, PAIRS)
    assert verdict.word == "overstated"
    assert (
        "MAE 2.00 ms [1.60, 2.40] from 16 pairs, 1.3 times the claim: the whole interval is above"
        in verdict.reason
    )
    two = judge(user_claim("2", metric="MAE"), {**figures(), "mae": mae}, PAIRS)
    assert two.word == "consistent"
    assert verdict.agreeing == ()


def test_a_mean_absolute_error_in_percent_is_a_mape() -> None:
    own = user_claim("2.3%", metric="MAE")
    assert (own.kind, figures_for(own)) == ("error", ())
    verdict = judge(own, figures(), PAIRS)
    assert verdict.word == "overstated"
    assert verdict.recomputed is not None
    assert verdict.recomputed.figure == "mape"
    assert (
        "An MAE has the unit of the pairs, so a claim in per cent is treated as a MAPE."
        in verdict.reason
    )
