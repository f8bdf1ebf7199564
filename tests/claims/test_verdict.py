from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errcomp.claims.registry import Claim, user_claim
from errcomp.claims.verdict import Verdict, Word, judge, lacks_aggregation
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


def test_a_claim_is_judged_under_its_own_aggregation() -> None:
    verdict = judge(claim("2.3%", aggregation="geometric mean"), figures(0.02, 0.03), PAIRS)
    assert verdict.word == "consistent"
    assert verdict.recomputed is not None
    assert verdict.recomputed.figure == "gmape"


def test_the_aggregation_that_agrees_is_named() -> None:
    verdict = judge(claim("2.3%"), figures(), PAIRS)
    assert verdict.agreeing == ("geometric mean",)
    assert "The geometric mean of the same pairs would be printed so" in verdict.reason
    assert verdict.ratio == pytest.approx(0.08 / 0.023)
    assert "3.5 times what is claimed" in verdict.reason


def test_an_error_of_unstated_average_is_condemned_only_if_every_average_is() -> None:
    values = figures()
    values["wape"] = Estimate("wape", 0.02, low=0.01, high=0.03, n=16)
    verdict = judge(claim("2.3%"), values, PAIRS)
    assert verdict.word == "not verifiable"
    assert "Overstated as a mean" in verdict.reason
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
        ({"level": "kernel"}, "kernel level, the pairs are of the model level"),
        ({"kind": "correlation", "metric": "Kendall tau"}, "a correlation"),
        ({"printed": ""}, "gives no figure"),
        ({"metric": "RMSE"}, "RMSE is not an error figure"),
        ({"scope": "CNN training"}, "about CNN training. Nothing in the table says"),
    ],
)
def test_what_the_pairs_cannot_decide_is_not_verifiable(
    changes: dict[str, Any], reason: str
) -> None:
    verdict = judge(replace(user_claim("2.3%"), **changes), figures(), PAIRS)
    assert verdict.word == "not verifiable"
    assert reason in verdict.reason


def test_a_claim_of_ones_own_is_told_how_to_say_its_average() -> None:
    found = {**figures(), "gmape": Estimate("gmape", 0.02, low=0.01, high=0.03, n=16)}
    own = judge(claim("2.3%"), found, PAIRS)
    assert own.word == "not verifiable"
    assert "geometric mean of the same 16 pairs could be 2.3 %: say which it is" in own.reason
    assert "with --aggregation mean (or" in own.reason
    assert lacks_aggregation(own)
    other = judge(claim("2.3%", claimed_by="the authors"), found, PAIRS)
    assert other.word == "not verifiable"
    assert other.reason.endswith("2.3 %, and the source does not say which it is.")
    assert not lacks_aggregation(other)
    said = judge(claim("2.3%", aggregation="mean"), found, PAIRS)
    assert said.word == "overstated"
    assert not lacks_aggregation(said)
    assert not lacks_aggregation(judge(claim("2.3%"), figures(None, None), PAIRS))


def test_without_an_interval_nothing_is_decided() -> None:
    verdict = judge(claim("2.3%"), figures(None, None), PAIRS)
    assert verdict.word == "not verifiable"
    assert "No interval from 16 pairs" in verdict.reason


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
    correlation = judge(user_claim("0.9", metric="correlation"), figures(), PAIRS)
    assert correlation.word == "not verifiable"
    assert correlation.reason == "The claim is a correlation, not an error."
    with pytest.raises(InputError, match="no metric 'RMSE' of a claim"):
        user_claim("1%", metric="RMSE")
    with pytest.raises(InputError, match=r"a correlation has no aggregation \('total'\)"):
        user_claim("0.9", metric="correlation", aggregation="total")


def test_what_a_name_decides_is_told() -> None:
    import errcomp as ec
    from errcomp.claims.verdict import could_hold_as

    found = ec.audit(ec.datasets.load("neusight"), by=["device", "mode"])
    could = {tuple(row.key.values()): could_hold_as(row.verdict, row.figures) for row in found.rows}
    assert could["H100", "inference"] == ("median", "geometric mean", "weighted")
    assert could["T4", "inference"] == ("geometric mean", "weighted")
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
    assert "above 2.3 %, 3.5 times what is claimed." in verdict.reason
    assert verdict.to_dict()["claimed_printed"] == "0.023"
