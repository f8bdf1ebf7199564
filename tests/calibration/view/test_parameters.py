"""Labels of the figures of a fitted model, beyond the numbers that tests/report looks at."""

from __future__ import annotations

import pytest

from errcomp.calibration.view.parameters import overhead, posterior
from errcomp.report.drawing.hover import spots

pytestmark = pytest.mark.extras


def test_a_launch_cost_says_where_it_lies_when_pointed_at() -> None:
    pytest.importorskip("matplotlib")
    draws = {"H100": {"idle": [2.0, 3.0, 4.0]}, "(a new device)": {"idle": [-0.03, -0.02, -0.01]}}
    ax = overhead(draws, note="a note")
    found = {text: (float(one.x[0]), float(one.y[0])) for one in spots(ax) for text in one.texts}
    assert found == {
        "H100, idle\nmedian 3.0 µs, 90 % interval 2.10 – 3.90": (3.0, 0.0),
        "(a new device), idle\nmedian −0.02 µs, 90 % interval −0.0290 – −0.0110": (-0.02, 1.0),
    }
    told = [text.get_text() for text in ax.texts]
    assert {"a note", "thick: central 50 % of the posterior; thin: 90 %"} <= {*told}
    assert ax.get_title(loc="left") == "Cost of a launch, n=1 device"


def test_the_key_of_kinds_has_the_marks_of_the_points() -> None:
    pytest.importorskip("matplotlib")
    ax = overhead({"H100": {"idle": [7.0, 8.0], "work": [3.0, 4.0]}})
    points = [line for line in ax.lines if line.get_marker() not in ("None", "")]
    handles = ax.get_legend().legend_handles
    assert [mark.get_marker() for mark in handles] == [mark.get_marker() for mark in points]
    assert [float(line.get_ydata()[0]) for line in points] == pytest.approx([-0.165, 0.165])
    widths = [line.get_linewidth() for line in ax.lines if len(line.get_xdata()) == 2]
    assert widths[:4] == [1.2, 4.5] * 2


def test_the_runs_stand_before_the_tables_in_the_key() -> None:
    pytest.importorskip("matplotlib")
    ax = posterior([0.0, 0.1], [[0.0, 0.1], [0.05, 0.2]], note="a note")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "observed", "median of drawn tables", "90 % of drawn tables",
    ]  # fmt: skip
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "0 %", "20 %", "40 %", "60 %", "80 %", "100 %",
    ]  # fmt: skip
    told = [text.get_text() for text in ax.texts]
    assert {"a note", "compared with 2 tables drawn from the model"} <= {*told}
    assert ax.get_xlabel() == "measured time above the sum of kernels (%)"
    one = posterior([0.1], [[0.2]])
    assert one.get_title(loc="left") == "Could the model have produced these n=1 run?"
