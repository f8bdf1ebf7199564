"""The report of drivers, and the figure of their contrasts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errcomp.drivers.results import Contrast, DriversResult
from errcomp.drivers.view import contrasts, drivers_view
from errcomp.errors import InputError
from errcomp.results import Estimate


def estimate(value: float, low: float | None, high: float | None, unit: str) -> Estimate:
    return Estimate("effect", value, low, high, 0.95, n=8, unit=unit)


def contrast(name: str, low: float | None, high: float | None, **changes: Any) -> Contrast:
    plain = Contrast(
        name=name,
        factor="mode",
        level_a="training",
        level_b="inference",
        where={},
        design="paired",
        n_pairs=1200,
        clusters=6,
        cluster_key="device",
        matched_on=("device",),
        not_matched_on=(),
        ape_a=0.2,
        ape_b=0.1,
        naive_a=None,
        naive_b=None,
        effect=estimate(2.0, low, high, "ratio"),
        effect_points=estimate(0.1, 0.05, 0.15, "fraction"),
        effect_signed=estimate(0.1, None, None, "log"),
        p_holm=0.01,
    )
    return replace(plain, **changes)


def found(*given: Contrast, **changes: Any) -> DriversResult:
    plain = DriversResult("mine", 1234, 0.95, 0, ("mode",), given, (), ())
    return replace(plain, **changes)


def test_nothing_is_drawn_where_nothing_is_compared() -> None:
    with pytest.raises(
        InputError, match="^nothing to draw: no two configurations differ in only one factor$"
    ):
        contrasts(found())
    assert drivers_view(found()).line == ["0 contrasts", "n=1,234"]


@pytest.mark.extras
def test_the_figure_fills_the_rows_whose_interval_leaves_out_1() -> None:
    pytest.importorskip("matplotlib")
    given = [
        contrast("a", 1.01, 3.0),
        contrast("b", 1.0, 3.0),
        contrast("c", 0.5, 0.9),
        contrast("d", 0.5, 1.0),
        contrast("e", None, None),
        contrast("f", 1.5, None),
        contrast("g", None, 0.5),
    ]
    ax = contrasts(found(*given))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [f"{name}  n=1,200" for name in "abcdefg"]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [dot.get_markerfacecolor() != "white" for dot in dots] == [
        *(True, False, True, False, False, False, False),
    ]
    assert {dot.get_xdata()[0] for dot in dots} == {2.0}
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "ratio of errors"
    assert ax.get_title(loc="left") == "Drivers of the error, 7 contrasts"


def test_notes_of_contrasts_are_numbered_once() -> None:
    given = [contrast("a", 1.0, 3.0, note="few"), contrast("b", 1.0, 3.0),
             contrast("c", 1.0, 3.0, note="many"), contrast("d", 1.0, 3.0, note="few")]  # fmt: skip
    report = drivers_view(found(*given))
    assert report.title == "Drivers of the error of mine (1,234 pairs)"
    assert drivers_view(found(tool=None)).title.startswith("Drivers of the error of the tool (")
    (table,) = report.tables
    note, clusters = table.columns[-1], table.columns[2]
    assert [note.value(row) for row in table.rows] == ["[1]", "", "[2]", "[1]"]
    assert [(one.mark, one.text) for one in table.notes[1:]] == [("[1]", "few"), ("[2]", "many")]
    assert "95 % intervals allow for clusters" in str(table.notes[0])
    assert clusters.cell(table.rows[0]).text == "6 device"
