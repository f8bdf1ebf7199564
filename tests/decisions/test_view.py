"""What the reports of choices say, and what their pictures show."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import errcomp as ec
from errcomp.decisions import compare_draws
from errcomp.decisions.results import Decisions
from errcomp.decisions.view.check import limit, report_decisions
from errcomp.decisions.view.figures import tournament
from errcomp.errors import InputError
from tests.decisions.draws import fewer

RNG = np.random.default_rng(1)
DRAWS = {
    name: rate * np.exp(RNG.normal(0, 0.05, 2_000))
    for name, rate in {"slow": 80.0, "fast": 100.0, "mid": 98.0}.items()
}


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    with pytest.MonkeyPatch.context() as patch:
        fewer(patch)
        found = ec.compare("neusight", "device", evaluate=True)
    assert isinstance(found, Decisions)
    return found


@pytest.mark.slow
def test_titles_name_the_tool(decisions: Decisions) -> None:
    assert decisions.view().title == "Choosing the device by neusight"
    for tool, title in (("", "## Choices of device"), ("x", "## Choices of device by x")):
        found = report_decisions(replace(decisions, tool=tool), fail_on=["regret>99%"])
        assert found.markdown.splitlines()[0] == title
    nobody = compare_draws(DRAWS)
    assert nobody.view().title == "Comparisons of the alternative"
    assert replace(nobody, tool="x").view().title == "Comparisons of the alternative by x"


@pytest.mark.slow
def test_the_share_that_was_right_is_said(decisions: Decisions) -> None:
    first = decisions.view().verdicts[0]
    right = sum(duel.right for duel in decisions.duels) / sum(duel.n for duel in decisions.duels)
    assert decisions.right.value == pytest.approx(right)
    assert first.head == f"Right in {100 * right:.0f} %"


def test_confused_pairs_are_those_that_were_wrong(decisions: Decisions) -> None:
    (table,) = (t for t in decisions.view().tables if t.title == "Confused pairs")
    shares = [row.right / row.n for row in table.rows]
    assert shares
    assert max(shares) < 1
    wrong = [duel for duel in decisions.duels if duel.right < duel.n]
    assert len(shares) == min(len(wrong), 10)


def test_the_best_few_are_evaluated_up_to_five(decisions: Decisions) -> None:
    assert [row.k for row in decisions.top] == [1, 2, 3, 4, 5]


def test_the_measure_of_a_choice_is_named() -> None:
    text = {higher: str(compare_draws(DRAWS, higher=higher)) for higher in (False, True)}
    assert "the time of the best" in text[False]
    assert "the value of the best" in text[True]
    prices = {"slow": 1.0, "fast": 2.0, "mid": 3.0}
    assert "the cost of the best" in str(compare_draws(DRAWS, prices=prices))


def test_ratios_follow_the_direction() -> None:
    for higher in (False, True):
        found = compare_draws(DRAWS, higher=higher)
        at = list(zip(found.first, found.second, strict=True))
        best, worst = ("fast", "slow") if higher else ("slow", "fast")
        ratio = found.predicted_ratio[at.index((best, worst))]
        assert ratio == pytest.approx(1.25, rel=0.01)
        assert found.choices[0].chosen == best
        assert found.seed == 0


def test_draws_keep_single_precision_and_whole_numbers_are_numbers() -> None:
    whole = {name: np.round(values).astype(int) for name, values in DRAWS.items()}
    single = {name: values.astype(np.float32) for name, values in DRAWS.items()}
    double = compare_draws(DRAWS).choices[0].p_best
    assert compare_draws(single).choices[0].p_best == pytest.approx(double, abs=2e-3)
    assert compare_draws(whole).choices[0].p_best == pytest.approx(double, abs=0.02)


def test_nothing_is_chosen_where_every_alternative_misses_the_limit() -> None:
    (choice,) = compare_draws(DRAWS, at_most=10.0).choices
    assert (choice.chosen, choice.p_best) == ("", 0.0)


def test_only_what_is_sure_has_a_word() -> None:
    words = {row.name: row.word for row in compare_draws(DRAWS, higher=True).alternatives}
    assert words == {"fast": "chosen", "mid": "too close to call", "slow": "worse"}


def test_a_value_that_is_not_defined_skips_its_check(decisions: Decisions) -> None:
    found = replace(decisions, wrong_when_sure=math.nan)
    report = report_decisions(found, fail_on=["wrong>5%", "regret>99%"])
    assert [case.outcome for case in report.cases] == ["skipped", "passed"]
    assert "not defined" in report.markdown
    assert "mean regret: 0.00 %" in report.markdown


KNOWN = "regret>5%, regret-max>5%, wrong>5%, right<5%"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regret", f"'regret' is not a condition. Conditions look like: {KNOWN}"),
        ("error>5%", f"'error>5%' is not a condition. Conditions look like: {KNOWN}"),
        ("regret>1.2.3", f"'regret>1.2.3' is not a condition. Conditions look like: {KNOWN}"),
        *(
            (
                text,
                f"{text!r} fails when the result is good. Reverse the < or >. Conditions: {KNOWN}",
            )
            for text in ("regret<5%", "right>90%")
        ),
    ],
)
def test_a_condition_to_fail_on_is_read(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        limit(text)
    assert str(refused.value) == message
    assert limit(" right < 0.5 ").value == 0.5
    assert limit("wrong>2.5 %").value == 0.025


@pytest.mark.extras
def test_the_tournament_shows_shares_from_0_to_100(decisions: Decisions) -> None:
    pytest.importorskip("matplotlib")
    ax = tournament(decisions)
    (image,) = ax.images
    assert image.get_clim() == (0, 100)
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    duel = decisions.duels[0]
    shown = image.get_array()[names.index(duel.first), names.index(duel.second)]
    assert shown == pytest.approx(100 * duel.right / duel.n)
    assert np.nanmax(image.get_array()) == 100
