"""What an audit says about its measured side, in words."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from errcomp.measurements.results import Floor, MeasuredSide, TooClose, WithoutNoise
from errcomp.measurements.view.audited import noise_line, side_notes, side_table
from errcomp.measurements.view.figures import copies_map, errors_beside_noise

FLOOR = Floor(0.0407, 0.037, 0.045, "repeats", 100, 300, 0.0407, None)
TOOL = WithoutNoise("A", 0.1046, 0.09, 0.08, 0.1)
CLOSE = TooClose("A", "B", 0.00123, 0.0456, 100)


def side(**changes: Any) -> MeasuredSide:
    plain = MeasuredSide(300, 100, 300, 0, 0, (), math.nan, FLOOR, (TOOL,), ())
    return replace(plain, **changes)


def lines(found: MeasuredSide) -> list[str]:
    return [note.text for note in side_notes(found)]


NOISE = (
    "A perfect predictor would show a MAPE of 4.07 % [3.7, 4.5] here: repeats of 100 "
    "configurations differ by that much."
)


def test_nothing_is_said_where_nothing_was_checked() -> None:
    assert side_notes(None) == []
    assert side_table(None) == []
    assert side_table(side(tools=())) == []


def test_all_that_is_found_has_a_line() -> None:
    found = lines(side(copies=1200, n=3000, differ=1234, explained_by=("log:graphs",),
                       explained=0.904, too_close=(CLOSE,)))  # fmt: skip
    assert [line.lstrip("· ") for line in found[-6:]] == [
        "1,200 of 3,000 measurements are copies of others.",
        "Measurements with equal keys differ with log:graphs, which explains 90 % of their "
        "variance.",
        "1,234 measurements with equal keys differ by more than noise, and no column says why.",
        NOISE,
        "Without this noise, the MAPE would be about 9.00 % [8.0, 10.0] instead of 10.46 %.",
        "Noise of the measurements could explain why A has a smaller MAPE than B: by 0.12 points, "
        "and noise alone gives up to 4.6 points.",
    ]
    several = lines(side(explained_by=("a", "b"), explained=0.5))
    assert any(
        "differ with a, b, the first of which explains 50 % of their variance." in line
        for line in several
    )


def test_one_line_stands_alone() -> None:
    (note,) = side_notes(side(tools=()))
    assert (note.text, note.apart, note.on) == (NOISE, True, "text")
    assert all(note.on == "text" for note in side_notes(side()))
    assert any("The measured side" in line for line in lines(side()))


def test_three_tools_and_pairs_are_listed_and_the_other_tools_counted() -> None:
    tools = tuple(replace(TOOL, tool=name) for name in "ABCDE")
    close = tuple(replace(CLOSE, first=name) for name in "ABCDE")
    found = lines(side(tools=tools, too_close=close))
    assert sum("Without this noise, the MAPE of " in line for line in found) == 3
    (more,) = [line for line in found if "--json" in line]
    assert more.endswith("2 more tools: --json")
    assert any(line.endswith("1 more tool: --json") for line in lines(side(tools=tools[:4])))
    assert not any("--json" in line for line in lines(side(tools=tools[:3])))
    named = [line.partition("why ")[2][:1] for line in found if "could explain" in line]
    assert named == ["A", "B", "C"]
    (table,) = side_table(side(tools=tools, too_close=close))
    assert table.columns[0].header == "Tool"
    assert (len(table.rows), len(table.notes), table.on) == (5, 6, "page")
    (table,) = side_table(side())
    assert [column.header for column in table.columns] == ["MAPE", "Without noise [95 %]"]
    assert table.columns[1].cell(TOOL).text == "9.00 % [8.0, 10.0]"


def test_a_tool_without_a_name_is_not_named() -> None:
    unnamed = (replace(TOOL, tool=""), TOOL)
    found = lines(side(tools=unnamed))
    assert any("the MAPE would be about" in line for line in found)
    assert any("the MAPE of A would be about" in line for line in found)


def test_what_is_said_where_the_noise_is_unknown() -> None:
    none = replace(FLOOR, method="none")
    assert noise_line(side(floor=none, repeated=0)) == (
        "No measurement was repeated, so the noise is unknown (errcomp measurements check TABLE "
        "says more)."
    )
    assert noise_line(side(floor=none)).startswith(
        "Repeats are equal, or differ by more than noise can explain, so the noise is unknown"
    )
    few = noise_line(side(floor=replace(FLOOR, low=math.nan, groups=1)))
    assert few == (
        "A perfect predictor would show a MAPE of 4.07 % here: repeats of 1 configuration differ "
        "by that much."
    )


def told(ax: Any) -> str:
    return " ".join(" ".join(text.get_text() for text in ax.texts).split())


@pytest.mark.extras
def test_the_figure_draws_fifteen_tools_and_counts_the_others() -> None:
    pytest.importorskip("matplotlib")
    tools = tuple(replace(TOOL, tool=f"t{i}") for i in range(17))
    ax = errors_beside_noise(side(tools=tools))
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"t{i}" for i in range(15)]
    assert "2 more tools have larger errors" in told(ax)
    assert "dashed: floor, 4.07 %, with its 95 % interval" in told(ax)
    ax = errors_beside_noise(side(tools=(*tools[:14], replace(TOOL, tool=""))))
    assert ax.get_yticklabels()[14].get_text() == "the tool"
    assert "more tools" not in told(ax)
    assert ax.collections[-1].get_segments()[0][:, 0] == pytest.approx([8.0, 10.0])
    assert ax.get_xlim()[0] == 0


@pytest.mark.extras
def test_the_map_of_copies_of_one_kind_names_it_in_words() -> None:
    pytest.importorskip("matplotlib")

    def mapped(*kinds: str) -> Any:
        sets = [SimpleNamespace(kind=kind, rows=(1 + i, 5 + i), differs=()) for i, kind in
                enumerate(kinds)]  # fmt: skip
        found: Any = SimpleNamespace(copies=SimpleNamespace(sets=sets, rows=(1, 2, 5, 6)))
        return copies_map(found)

    alike, two = mapped("near", "near"), mapped("near", "equal")
    assert "all are near" in told(alike)
    assert "all are" not in told(two)
    assert [len(ax.figure.legends) + (ax.get_legend() is not None) for ax in (alike, two)] == [0, 1]
