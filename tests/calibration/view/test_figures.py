"""Marks of the figures of an evaluation, beyond the numbers that tests/report looks at."""

from __future__ import annotations

import pytest

from errcomp.calibration.view.figures import residuals

pytestmark = pytest.mark.extras


def test_marks_that_look_small_are_drawn_larger() -> None:
    pytest.importorskip("matplotlib")
    models = [*"abcdefg"]
    ax = residuals(error=[0.1] * 7, device=["A"] * 7, model=models)
    lines = {str(line.get_label()): line for line in ax.lines}
    looks = [(lines[name].get_marker(), lines[name].get_markersize()) for name in models]
    plain = [(mark, 5.5) for mark in "osD^v"]
    assert looks == [*plain, ("P", 6.5), ("*", 8.0)]


def test_models_beyond_seven_share_a_smaller_cross() -> None:
    pytest.importorskip("matplotlib")
    models = [f"m{i}" for i in range(9)]
    ax = residuals(error=[0.01 * i for i in range(9)], device=["A"] * 9, model=models)
    crosses = [line for line in ax.lines if line.get_marker() == "x"]
    assert [float(line.get_xdata()[0]) for line in crosses] == pytest.approx([7.0, 8.0])
    assert {(line.get_markersize(), line.get_label()) for line in crosses} == {
        (4.5, "other models")
    }
    eight = residuals(error=[0.1] * 8, device=["A"] * 8, model=models[:8])
    assert not any(line.get_marker() == "x" for line in eight.lines)
