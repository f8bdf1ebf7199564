"""The report of which parts changed: how much of it is shown, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errcomp.halflife.steps.blame import Blame, Event, Part
from errcomp.halflife.view.blame import blame_view, sentence
from errcomp.report.model import Table

CONV = Part("Conv", "both", 4, 6.0, 5.5, -0.05, -0.06, -0.04, 0.001)
GELU = Part("Gelu", "both", 1, 1.0, 1.2, 0.02, 0.01, 0.03, 0.05)
REST = Part("rest", "both", 0, 3.0, 3.0, 0.0, -0.01, 0.01, 0.9)
EVENT = Event(
    whole="net",
    version="1.6",
    last_version="1.5",
    n_before=6,
    n_after=6,
    before=10.0,
    after=9.7,
    change=-0.03,
    low=-0.04,
    high=-0.02,
    p=0.05,
    stack=None,
    listed=0.8,
    parts=(CONV, GELU),
    rest=REST,
)


def blamed(*events: Event, wholes: int = 2, **changes: Any) -> Blame:
    versions = tuple(f"1.{k}" for k in range(30))
    found = Blame(versions, "ms", "network", "operator", (), wholes, 0.05, events, ())
    return replace(found, **changes)


def notes_of(table: Table) -> list[str]:
    return [str(note) for note in table.notes]


def test_five_events_are_shown_and_the_others_counted() -> None:
    events = [replace(EVENT, version=f"1.{k}") for k in range(1, 8)]
    report = blame_view(blamed(*events))
    assert [verdict.head for verdict in report.verdicts] == [
        f"net has taken 3.0 % less time since 1.{k}:" for k in range(1, 6)
    ]
    assert "2 smaller events: --json lists all." in notes_of(report.tables[0])
    assert "1 smaller event: --json lists all." in notes_of(
        blame_view(blamed(*events[:6])).tables[0]
    )
    all_shown = notes_of(blame_view(blamed(*events[:5])).tables[0])
    assert not any("--json" in note for note in all_shown)


def test_six_clear_parts_of_an_event_are_listed_and_the_rest() -> None:
    parts = [replace(CONV, name=f"op{i}", n=1) for i in range(8)]
    unclear = replace(CONV, name="quiet", p=0.051)
    report = blame_view(blamed(replace(EVENT, parts=(unclear, *parts))))
    name = report.tables[0].columns[2]
    listed = [name.value(row) for row in report.tables[0].rows]
    assert listed == ["op0", "op1", "op2", "op3", "op4", "op5", "rest"]


def test_twenty_versions_are_shown_those_with_the_most_clear_events_first() -> None:
    quiet = [replace(EVENT, version=f"1.{k}", p=0.051) for k in range(1, 22)]
    clear = [replace(EVENT, version="1.22"), replace(EVENT, version="1.21", whole="other")]
    [_, table] = blame_view(blamed(*quiet, *clear)).tables
    since = [table.columns[0].value(row) for row in table.rows]
    assert since == [*(f"1.{k}" for k in range(1, 19)), "1.21", "1.22"]
    assert notes_of(table)[-1] == "20 of 22 versions are shown; --json lists all."
    counts = [[column.value(table.rows[i]) for column in table.columns[2:4]] for i in (0, -2, -1)]
    assert counts == [[1, 0], [2, 1], [1, 1]]
    [_, whole] = blame_view(blamed(*quiet[:20])).tables
    assert len(whole.rows) == 20
    assert not any("are shown" in note for note in notes_of(whole))


def test_the_table_of_versions_names_the_part_that_adds_most_over_all_wholes() -> None:
    first = replace(EVENT, after=9.0, change=-0.1)
    second = replace(EVENT, whole="other", after=16.0, change=0.6,
                     parts=(replace(CONV, points=0.04), GELU))  # fmt: skip
    unclear = replace(EVENT, whole="third", p=0.2, parts=(replace(GELU, p=0.06),))
    new = replace(EVENT, version="1.7", parts=(replace(CONV, listed="after", before=0.0),))
    [_, table] = blame_view(blamed(first, second, unclear, new, wholes=3)).tables
    [since, last, events, clear, mean, largest] = table.columns
    row, later = table.rows
    assert [column.value(row) for column in (since, last, events, clear)] == ["1.6", "1.5", 3, 2]
    # The geometric mean of 0.9 and 1.6.
    assert mean.value(row) == pytest.approx(0.2)
    # Conv takes off five points in one network and adds four in the other.
    assert largest.value(row) == "Gelu: +2.0 points in 2"
    assert largest.value(later) == "–"
    quiet = replace(EVENT, p=0.2)
    [_, table] = blame_view(blamed(quiet, replace(quiet, whole="other"))).tables
    assert mean.value(table.rows[0]) is None
    assert len(blame_view(blamed(first, second, wholes=1)).tables) == 1


def test_what_a_part_is_called_and_what_is_known_of_it() -> None:
    gone = replace(GELU, name="old", listed="before", after=0.0, low=float("nan"))
    new = replace(CONV, name="new", listed="after", before=0.0)
    [table] = blame_view(blamed(replace(EVENT, parts=(gone, new, CONV)))).tables
    _, _, part, before, after, change, points = table.columns
    assert [column.header for column in (before, after)] == ["Before (ms)", "After (ms)"]
    assert [part.value(row) for row in table.rows] == [
        "old, no longer listed",
        "new (4), newly listed",
        "Conv (4)",
        "rest",
    ]
    assert [change.value(row) for row in table.rows] == [
        None, None, pytest.approx(-1 / 12), None
    ]  # fmt: skip
    assert points.value(table.rows[0]) == (0.02, None, None)
    assert points.value(table.rows[2]) == (-0.05, -0.06, -0.04)
    [table] = blame_view(blamed(EVENT, unit=None)).tables
    assert [column.header for column in table.columns[3:5]] == ["Before", "After"]


@pytest.mark.parametrize(("before", "after"), [(3.0, -0.1), (-0.1, 3.0)])
def test_parts_that_add_up_to_more_than_their_whole_are_told(before: float, after: float) -> None:
    event = replace(EVENT, rest=replace(REST, before=before, after=after))
    told = "The parts add up to more than their network at some versions: they overlap in time"
    assert any(note.startswith(told) for note in notes_of(blame_view(blamed(event)).tables[0]))
    nothing = replace(EVENT, rest=replace(REST, before=0.0, after=0.0))
    assert not any(
        note.startswith(told) for note in notes_of(blame_view(blamed(nothing)).tables[0])
    )


@pytest.mark.parametrize(
    ("changes", "head"),
    [
        ({}, "net has taken 3.0 % less time since 1.6:"),
        ({"change": 0.03}, "net has taken 3.0 % longer since 1.6:"),
        ({"p": float("nan")}, "net has taken 3.0 % less time since 1.6:"),
        ({"p": 0.051},
         "The time of net has not changed significantly since 1.6 (-3.0 %), but these parts have:"),
        ({"p": float("nan"), "change": 0.0},
         "The time of net has not changed significantly since 1.6 (by less than 0.1 %), but these "
         "parts have:"),
        ({"p": 0.6, "change": -0.0004},
         "The time of net has not changed significantly since 1.6 (by less than 0.1 %), but these "
         "parts have:"),
        ({"p": 0.6, "change": 0.0006},
         "The time of net has not changed significantly since 1.6 (+0.1 %), but these parts have:"),
    ],
)  # fmt: skip
def test_the_head_says_how_much_longer_a_whole_takes(changes: dict[str, Any], head: str) -> None:
    assert sentence(replace(EVENT, **changes))[0] == head


def test_the_sentence_names_three_parts_and_counts_the_others() -> None:
    parts = [replace(CONV, name=f"op{i}", points=0.01 * (4 - i)) for i in range(4)]
    rest = "time outside the parts: 0.0 points."
    told = [f"op{i} (-8.3 %) adds {4 - i}.0 points" for i in range(3)]
    three, four = (sentence(replace(EVENT, parts=tuple(parts[:n])))[1] for n in (3, 4))
    assert three == "; ".join([*told, rest])
    assert four == "; ".join([*told, "1 other part: +1.0 points", rest])
    quiet = [replace(CONV, points=0.004, p=0.051), replace(GELU, points=-0.001, p=1.0)]
    listed = replace(
        EVENT,
        parts=(*parts[:1], *quiet),
        listed=0.79,
        rest=replace(REST, points=-0.02),
        stack=("cuda 12.1 to 12.4", "driver 1 to 2"),
    )
    assert sentence(listed)[1] == (
        "op0 (-8.3 %) adds 4.0 points; 2 other parts, none significant: +0.3 points; time outside "
        "the parts: -2.0 points. The parts make up 79 % of the time of net. Also changed at that "
        "version: cuda 12.1 to 12.4, driver 1 to 2."
    )
    alone = (sentence(replace(EVENT, parts=tuple(quiet[:n]), rest=REST))[1] for n in (1, 2))
    assert [text.partition(";")[0] for text in alone] == [
        "1 part, not significant: +0.4 points",
        "2 parts, none significant: +0.3 points",
    ]
    come = replace(CONV, name="new", listed="after", points=0.03)
    go = replace(CONV, name="old", listed="before", p=float("nan"))
    assert sentence(replace(EVENT, parts=(come, go)))[1].startswith(
        "new (newly listed) adds 3.0 points; old (no longer listed) takes off 5.0 points; time"
    )


def test_nothing_has_no_figure_and_no_table_of_versions() -> None:
    report = blame_view(blamed())
    assert [verdict.head for verdict in report.verdicts] == ["No change found"]
    assert (len(report.tables), report.figures) == (1, [])
    assert report.method == [("False-alarm rate of the search", "5 % of series")]
    assert [figure.name for figure in blame_view(blamed(EVENT)).figures] == ["points"]
