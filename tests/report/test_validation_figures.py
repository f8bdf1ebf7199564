"""Calibration and PIT: the numbers of the validation, and what they are held against."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.view.figures import calibration, pit

pytestmark = pytest.mark.extras
pytest.importorskip("matplotlib")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_coverage_against_promise(validation):
    ax = calibration(validation)
    found = {str(line.get_label()): line for line in ax.lines}
    np.testing.assert_allclose(found["estimated"].get_ydata(), [55, 90])
    np.testing.assert_allclose(found["independent"].get_ydata(), [10, 25])
    np.testing.assert_allclose(found["unknown"].get_ydata(), [100, 100])
    # Beside each other around the level, never nearer to another one.
    for name in ("estimated", "independent", "unknown"):
        np.testing.assert_allclose(found[name].get_xdata(), [50, 90], atol=2)
    at = [found[name].get_xdata()[0] for name in ("estimated", "independent", "unknown")]
    assert len(set(at)) == 3
    diagonal = found["nominal"]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    intervals = [[tuple(path.vertices[:, 1]) for path in c.get_paths()] for c in ax.collections]
    np.testing.assert_allclose(intervals[0], [(45, 60), (80, 95)])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50 %", "90 %"]
    assert {"estimated", "independent", "unknown (bounds)"} <= set(texts(ax))
    assert "n=40 totals, 8 devices" in ax.get_title(loc="left")
    assert any("each device held out in turn" in text for text in texts(ax))


def test_calibration_of_separate_tables_and_one_level(validation):
    one = replace(validation, left_out="", rows=validation.rows[:1])
    ax = calibration(one)
    assert "8 clusters" in ax.get_title(loc="left")
    assert any("errors from another table" in text for text in texts(ax))
    with pytest.raises(NotDefinedError, match="no assumption was validated"):
        calibration(replace(validation, rows=()))


def test_pit_counts_and_the_binomial_interval(validation):
    ax = pit(validation, "independent")
    assert [bar.get_height() for bar in ax.patches] == [20, 0, 0, 0, 0, 0, 0, 0, 0, 20]
    np.testing.assert_allclose([bar.get_x() for bar in ax.patches], np.arange(10) / 10)
    ys = {float(y) for line in ax.lines for y in line.get_ydata()}
    assert ys == {4.0}
    fill, edges = ax.collections
    low, high = stats.binom.interval(0.9, 40, 0.1)
    assert (fill.get_paths()[0].vertices[:, 1].min(), fill.get_paths()[0].vertices[:, 1].max()) == (
        low,
        high,
    )
    assert [path.vertices[0, 1] for path in edges.get_paths()] == [low, high]
    assert ax.get_ylim()[1] > 20
    flat = pit(validation, "estimated")
    assert [bar.get_height() for bar in flat.patches] == [4] * 10
    assert flat.get_ylim()[1] > high
    assert flat.get_title(loc="left") == "Quantiles (PIT), n=40 totals, assumption: estimated"


def test_pit_of_what_has_none(validation):
    with pytest.raises(InputError, match="no PIT .* for 'unknown': bounds have no distribution."):
        pit(validation, "unknown")
    with pytest.raises(
        InputError, match="it was not validated. Assumptions with a PIT: estimated, independent"
    ):
        pit(validation, "classes")
    for values in ([], [0.5, 1.5], [float("nan")], [-0.1]):
        with pytest.raises(
            InputError, match="PIT values of 'a' must be one or more numbers from 0 to 1"
        ):
            pit(replace(validation, pit={"a": np.array(values)}), "a")
