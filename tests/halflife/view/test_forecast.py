"""The report of a forecast: what its title, tables, verdicts and notes say."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from errcomp.halflife.forecast import Answer, GroupForecast, HalfLifeForecast
from errcomp.halflife.forecast.probabilities import Drop, Forecast
from errcomp.halflife.forecast.results import AHEAD, Method
from errcomp.halflife.panel import Clock
from errcomp.halflife.view.forecast import forecast_view
from errcomp.report.model import Table
from errcomp.results import Dropped

NO_DATES = (None, None, None)


def answer(method: Method, unit: Clock = "releases", *, assumed: str = "Assumed.") -> Answer:
    ahead = np.array(AHEAD[unit])
    likely = 1 - 0.01 * ahead
    curve = Forecast(method, unit, ahead, likely, likely - 0.05, likely, 0.95, (assumed,))
    return Answer(method, unit, curve, Drop(0.9, 5.0, 2.0, None, unit), NO_DATES, "")


def refusal(method: Method, unit: Clock = "releases", why: str = "too few.") -> Answer:
    return Answer(method, unit, None, None, NO_DATES, why)


def group(*answers: Answer, **changes: Any) -> GroupForecast:
    given = {
        "key": {"op": "Conv"},
        "n_series": 3,
        "promise": math.log(1.25),
        "calibrated_error": 0.05,
        "calibrated": "1.9",
        "today": "1.9",
        "date": None,
        "answers": answers or (answer("drift"), refusal("steps"), answer("survival")),
        "notes": (),
    }
    return GroupForecast(**{**given, **changes})


def forecast(*groups: GroupForecast, **changes: Any) -> HalfLifeForecast:
    given = HalfLifeForecast(
        source="",
        groups=groups or (group(),),
        by=("op",),
        clocks=("releases",),
        error=0.2,
        age=0,
        below=0.9,
        versions=("1.8", "1.9"),
        dropped=(),
        notes=(),
        level=0.95,
        seed=3,
    )
    return replace(given, **changes)


def notes_of(table: Table) -> list[str]:
    return [getattr(note, "text", note) for note in table.notes]


def only(found: HalfLifeForecast) -> Table:
    (table,) = forecast_view(found).tables
    return table


@pytest.mark.parametrize(
    ("groups", "changes", "title"),
    [
        ((), {}, "the history: probability that the error of a series is within 20.00 %, for a "
         "model calibrated at 1.9, by releases"),
        ((group(calibrated="1.7"),), {"age": 2, "error": None, "source": "h.csv"},
         "h.csv: probability that the error of a series is within the promise, for a model "
         "calibrated at 1.7 (2 releases before 1.9), by releases"),
        ((group(), group(key={"op": "Gelu"}, today="1.8", calibrated="1.8")), {},
         "the history: probability that the error of a series is within 20.00 %, for a model "
         "calibrated at the last version, by releases"),
        ((group(), group(key={"op": "Gelu"}, today="1.8")), {"age": 1},
         "the history: probability that the error of a series is within 20.00 %, for a model "
         "calibrated at 1 release before the last, by releases"),
    ],
)  # fmt: skip
def test_the_title_says_for_which_model_it_is(
    groups: tuple[GroupForecast, ...], changes: dict[str, Any], title: str
) -> None:
    assert only(forecast(*groups, **changes)).title == title


def test_a_method_that_answers_nowhere_is_in_the_notes_alone() -> None:
    gelu = group(refusal("drift"), refusal("steps"), answer("survival"), key={"op": ""})
    table = only(forecast(group(), gelu))
    shown = [[column.value(row) for column in table.columns[:2]] for row in table.rows]
    assert shown == [
        ["Conv", "drift *"],
        ["", "survival"],
        ["–", "drift"],
        ["", "survival *"],
    ]
    assert [column.header for column in table.columns] == [
        *("op", "Method", "Now", "In 1 release", "In 2 releases", "In 5 releases"),
        "Below 90 % after",
    ]
    assert table.columns[3].value(table.rows[0]) == pytest.approx((0.99, 0.94, 0.99))
    assert table.columns[3].value(table.rows[2]) is None
    assert table.columns[-1].cell(table.rows[2]).text == "cannot be determined"
    nothing = only(forecast(group(refusal("drift"), refusal("survival"))))
    assert [nothing.columns[1].value(row) for row in nothing.rows] == ["survival"]


def test_the_promise_has_a_column_where_it_was_not_given() -> None:
    table = only(forecast(group(), group(key={"op": "Gelu"}, promise=None), error=None, by=()))
    assert [column.header for column in table.columns[:3]] == ["Group", "Promise", "Method"]
    promises = [table.columns[1].value(row) for row in table.rows]
    assert promises == [pytest.approx(0.25), "", None, ""]


def test_months_have_a_table_of_their_own_and_notes_stand_below_the_last() -> None:
    both = group(answer("drift"), answer("survival", "months"), key={})
    first, last = forecast_view(forecast(both, clocks=("releases", "months"), by=())).tables
    assert [column.header for column in last.columns] == [
        *("Group", "Method", "In 3 months", "In 6 months", "In 12 months", "Below 90 % in"),
    ]
    assert list(first.notes) == []
    assert last.title.endswith(", by months")
    assert [column.value(last.rows[0]) for column in last.columns[:2]] == ["all", "survival *"]


@pytest.mark.parametrize(
    ("drop", "head", "text"),
    [
        ({}, "Below 90 % after 5 releases [2, later]",
         "— Conv: until then the error of a series is within 20.00 % with a probability of at "
         "least 90 % (method: drift)."),
        ({"time": 1.0, "high": 7.6}, "Below 90 % after 1 release [2, 8]", "— Conv: until then"),
        ({"high": math.inf}, "Below 90 % after 5 releases [2, ∞]", "— Conv: until then"),
        ({"time": 0.0}, "Below 90 % now",
         "— Conv: the error of a series is within 20.00 % with a probability of less than 90 % "
         "(method: drift)."),
        ({"time": None}, "Not below 90 %", "— Conv: at all times of the forecast the error of"),
        ({"time": math.inf}, "Not below 90 %", "— Conv: at all times of the forecast the error of"),
    ],
)  # fmt: skip
def test_the_verdict_says_when_it_drops(drop: dict[str, Any], head: str, text: str) -> None:
    drift = answer("drift")
    assert drift.drop is not None
    found = forecast(group(replace(drift, drop=replace(drift.drop, **drop))))
    (verdict,) = forecast_view(found).verdicts
    assert verdict.head == head
    assert verdict.text.startswith(text)
    assert verdict.tone == ("doubt" if drop.get("time") == 0 else "plain")


def test_the_verdict_is_about_the_method_that_answers_or_says_why_none_does() -> None:
    survival = forecast(group(refusal("drift"), answer("survival"), key={"op": ""}), error=None)
    (verdict,) = forecast_view(survival).verdicts
    assert verdict.text == (
        "— –: until then the error of a series is within the promise with a probability of at "
        "least 90 % (method: survival)."
    )
    nothing = forecast(group(refusal("steps", why="no steps."), refusal("survival"), key={}))
    (verdict,) = forecast_view(nothing).verdicts
    assert (verdict.head, verdict.text) == ("Cannot be determined", "— all series: no steps.")


def test_notes_say_what_the_promise_is_and_from_when_time_counts() -> None:
    notes = notes_of(only(forecast()))
    assert notes[0] == (
        "'Now' means the last version, at which the model is assumed to be calibrated. --age N "
        "forecasts for a model calibrated N releases earlier."
    )
    assert notes[1] == (
        "Within 20.00 %: the prediction is off by less than a factor of 1.2. Each probability "
        "applies to a series drawn at random from the group."
    )
    assert any(note.startswith("[low, high]: 95 % interval") for note in notes)
    dated = group(date=date(2024, 8, 1))
    later = group(date=date(2024, 9, 1), key={"op": "Gelu"})
    assert notes_of(only(forecast(dated)))[0].endswith(" Dates count from 2024-08-01.")
    both = notes_of(only(forecast(later, group(key={"op": "Add"}), dated)))
    assert both[0].endswith(" Dates count from 2024-08-01 to 2024-09-01.")
    aged = notes_of(only(forecast(age=1, error=None)))
    assert aged[0].startswith("The model was calibrated 1 release before the last version and not")
    assert aged[1].startswith("Within the promise: an error of less than twice the error at calib")
    lost = forecast(notes=("a remark",), dropped=(Dropped("measured is zero", 2, (3, 4)),))
    assert notes_of(only(lost))[-2:] == ["a remark", "2 validations left out: measured is zero"]


def test_notes_name_the_groups_that_a_remark_is_about() -> None:
    names = ("a", "b", "c", "d", "e")
    survival, steps = answer("survival"), refusal("steps", why="no steps.")
    answers = [(survival, answer("drift"), steps)]
    answers += [(survival, refusal("drift", why="noise."), steps)] * 4
    groups = [
        group(*of, key={"op": name}, notes=("assumed", *(["only b"] if name == "b" else [])))
        for name, of in zip(names, answers, strict=True)
    ]
    other = answer("survival", assumed="Other.")
    groups[4] = replace(groups[4], answers=(other, *groups[4].answers[1:]))
    notes = notes_of(only(forecast(*groups)))
    at = next(i for i, note in enumerate(notes) if note.startswith("survival for"))
    assert notes[at:] == [
        "survival for a, b, c and 1 more: Assumed.",
        "survival for e: Other.",
        "drift: Assumed.",
        "no forecast by drift for b, c, d and 1 more: noise.",
        "no forecast by steps: no steps.",
        "assumed",
        "b: only b",
    ]
    alike = notes_of(only(forecast(*groups[:3])))
    assert "survival: Assumed." in alike
    assert "no forecast by drift for b, c: noise." in alike


def test_the_report_counts_groups_and_versions() -> None:
    report = forecast_view(forecast(source="h.csv"))
    assert report.title == "How long will the error stay within the promise? h.csv"
    assert report.line == ["1 group", "2 versions"]
    assert report.method == [("Coverage of the intervals", "95 %"), ("Seed", "3")]
    assert forecast_view(forecast()).title.endswith("? The given history")
