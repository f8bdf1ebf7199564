from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.documents import load
from errcomp.halflife.forecast import HalfLifeForecast, forecast_half_life
from errcomp.halflife.results import GroupHalfLife, HalfLives
from errcomp.halflife.view.fit import written
from errcomp.report.model import Verdict


def histories(shapes: int = 8) -> dict[str, list[Any]]:
    """Two operators under twelve versions; all but one Gelu take twice as long from 1.8 on."""
    rng = np.random.default_rng(0)
    rows = [
        (f"1.{version}", f"2024-{version + 1:02}-01", op, str(shape), 1.0,
         (2.0 if op == "Gelu" and shape < max(1, shapes - 1) and version >= 8 else 1.0)
         * rng.normal(1, 0.01))
        for op in ("Conv", "Gelu") for shape in range(shapes) for version in range(12)
    ]  # fmt: skip
    names = ("version", "released", "op", "shape", "predicted", "measured")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@pytest.fixture(scope="module")
def half_lives() -> HalfLives:
    return ec.half_life(histories(), by="op", error=0.05)


@pytest.fixture(scope="module")
def ahead() -> HalfLifeForecast:
    return forecast_half_life(histories(), by="op", error=0.2)


def verdict(half_lives: HalfLives, group: GroupHalfLife) -> Verdict:
    (only,) = replace(half_lives, groups=(group,)).view().verdicts
    return only


def without(group: GroupHalfLife, *methods: str) -> GroupHalfLife:
    estimates = tuple(estimate for estimate in group.estimates if estimate.method not in methods)
    return replace(group, estimates=estimates)


def test_the_page_answers_until_when_and_at_which_release(half_lives: HalfLives) -> None:
    conv, gelu = (verdict(half_lives, group) for group in half_lives.groups)
    releases, months = (half_lives.groups[1].estimate("trajectory", c) for c in half_lives.clocks)
    assert releases is not None
    assert months is not None
    assert releases.half_life == 8
    head = " or ".join(
        written(half_life).replace(" [", f" {half_life.unit} [") for half_life in (releases, months)
    )
    assert gelu.head == head
    assert (
        "— Gelu: the time until the error (root mean square over 8 series) has doubled "
        "(calibrated at 1.0, doubled at 1.8)." in gelu.text
    )
    assert conv.head == "Not yet doubled"
    assert "The 95 % interval of the half-life starts at 11 releases or 11 months." in conv.text


def test_half_of_the_series_come_second_and_in_words(half_lives: HalfLives) -> None:
    conv, gelu = half_lives.groups
    turnbull = conv.estimate("turnbull", "releases")
    assert turnbull is not None
    said = verdict(half_lives, conv).text
    assert f"Median survival: more than {turnbull.low:g} releases or " in said
    assert "fewer than half of the series have expired so far (100 % are possibly still" in said
    assert (
        "the time until half of the series have expired (12 % are possibly still valid)."
        in verdict(half_lives, gelu).text
    )
    alone = verdict(half_lives, without(conv, "trajectory"))
    assert alone.head.startswith(f"More than {turnbull.low:g} releases or ")
    assert alone.text.startswith("— Conv: fewer than half of the series have expired")


def test_what_cannot_be_told_says_why(half_lives: HalfLives) -> None:
    group = half_lives.groups[0]
    refused = replace(group.estimates[0], half_life=None, refused="noise is all there is.")
    refusal = verdict(half_lives, replace(group, estimates=(refused,)))
    assert (refusal.head, refusal.tone) == ("Cannot be determined", "doubt")
    assert refusal.text == "— Conv: noise is all there is."


def test_a_single_series_answers_for_itself() -> None:
    half_lives = ec.half_life(histories(shapes=1), by="op", error=0.05)
    conv, gelu = half_lives.view().verdicts
    assert conv.text.startswith("— Conv: at every recorded release its error is below twice")
    assert "its error has doubled (calibrated at 1.0, doubled at 1.8)." in gelu.text
    assert "Median survival" not in gelu.text


def test_the_page_of_a_document_says_the_same_but_for_the_release(half_lives: HalfLives) -> None:
    read = load(half_lives.to_dict())
    for live, reread in zip(half_lives.view().verdicts, read.view().verdicts, strict=True):
        assert reread.head == live.head
        assert reread.text == live.text.replace(" (calibrated at 1.0, doubled at 1.8)", "")


def test_a_forecast_begins_with_when_it_drops(ahead: HalfLifeForecast) -> None:
    for group, shown in zip(ahead.groups, ahead.view().verdicts, strict=True):
        method = group.method("releases")
        (answer,) = [a for a in group.answers if (a.method, a.unit) == (method, "releases")]
        assert answer.drop is not None
        assert f"(method: {method})" in shown.text
        if answer.drop.time is None:
            assert shown.head == "Not below 90 %"
        else:
            assert shown.head.startswith(f"Below 90 % after {answer.drop.time:g} release")


def test_a_forecast_that_is_below_now_or_cannot_be_told_is_in_doubt(
    ahead: HalfLifeForecast,
) -> None:
    group = ahead.groups[0]

    def shown(**changes: Any) -> Verdict:
        answers = tuple(replace(answer, **changes) for answer in group.answers)
        (only,) = replace(ahead, groups=(replace(group, answers=answers),)).view().verdicts
        return only

    drop = next(answer.drop for answer in group.answers if answer.drop is not None)
    now = shown(drop=replace(drop, time=0.0, low=0.0, high=0.0))
    assert (now.head, now.tone) == ("Below 90 % now", "doubt")
    later = shown(drop=replace(drop, time=2.0, low=1.0, high=np.inf))
    assert later.head == "Below 90 % after 2 releases [1, ∞]"
    assert later.text.startswith("— Conv: until then the error of a series is within 20.00 %")
    refused = shown(drop=None, forecast=None, refused="too few.")
    assert (refused.head, refused.text, refused.tone) == (
        "Cannot be determined",
        "— Conv: too few.",
        "doubt",
    )
