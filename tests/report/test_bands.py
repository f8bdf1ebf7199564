"""Bands in a picture: at the right places, whole, infinite or only bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation import Band
from errcomp.propagation.view.figures import bands

pytestmark = pytest.mark.extras
matplotlib = pytest.importorskip("matplotlib")


def bars(ax, row):
    """Bars of a row, widest first as they were drawn: left, right, height, colour."""
    return [
        (p.get_x(), p.get_x() + p.get_width(), p.get_height(), p.get_facecolor())
        for p in ax.patches
        if abs(p.get_y() + p.get_height() / 2 - row) < 1e-9
    ]


def arrows(ax):
    return {(line.get_marker(), line.get_ydata()[0]) for line in ax.lines
            if line.get_marker() in ("<", ">")}  # fmt: skip


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_bars_are_the_bands(outcome, propagation):
    wide = outcome("comonotonic", bands=tuple(Band(p, 100 - 90 * p, 170.0 + p) for p in (0.5, 0.9)))
    ax = bands(propagation(outcome(), wide))
    assert [(low, high) for low, high, *_ in bars(ax, 0)] == [
        (60.0, 140.0), (70.0, 130.0), (80.0, 120.0), (90.0, 110.0),
    ]  # fmt: skip
    np.testing.assert_allclose([b[:2] for b in bars(ax, 1)], [(19, 170.9), (55, 170.5)])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["estimated", "comonotonic"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first row is at the top


def test_narrow_bands_are_darker_and_thicker(outcome, propagation):
    widest_first = bars(bands(propagation(outcome())), 0)
    assert [b[2] for b in widest_first] == sorted(b[2] for b in widest_first)
    lightness = [sum(b[3][:3]) for b in widest_first]
    assert lightness == sorted(lightness, reverse=True)
    assert len(set(lightness)) == 4


def test_prediction_measurement_and_median_are_marked(outcome, propagation):
    ax = bands(propagation(outcome(), outcome("independent", median=101.0)))
    by_label = {str(line.get_label()): line for line in ax.lines}
    assert list(by_label["predicted 120 ms, uncorrected"].get_xdata()) == [120.0, 120.0]
    measured = by_label["measured 95 ms"]
    assert (list(measured.get_xdata()), list(measured.get_ydata())) == ([95.0] * 2, [0, 1])
    white = [line.get_xdata()[0] for line in ax.lines if line.get_color() == "white"]
    assert white == [100.0, 101.0]
    assert ax.get_xlabel() == "total time (ms)"
    unmeasured = bands(propagation(outcome(measured=None), unit=None))
    assert not [line for line in unmeasured.lines if "measured" in str(line.get_label())]
    assert unmeasured.get_xlabel() == "total time (unit not stated)"


def test_narrow_bands_are_seen_and_their_median_does_not_hide_them(outcome, propagation):
    narrow = outcome("independent", bands=(Band(0.9, 99.9, 100.1), Band(0.5, 99.95, 100.05)))
    ax = bands(propagation(outcome(), narrow))
    medians = [line for line in ax.lines if line.get_color() == "white"]
    assert [line.get_ydata().mean() for line in medians] == [0.0]
    assert all(patch.get_linewidth() > 0 for patch in ax.patches)
    assert all(matplotlib.colors.to_hex(patch.get_edgecolor()) == "#0072b2" for patch in ax.patches)


def test_the_90_percent_band_is_written_beside(outcome, propagation):
    assert {"90 % band", "70 – 130"} <= set(texts(bands(propagation(outcome()))))
    ax = bands(propagation(outcome(bands=(Band(0.5, 99.0, 101.0), Band(0.8, 98.0, 102.0)))))
    assert {"80 % band", "98.0 – 102.0"} <= set(texts(ax))
    none = texts(bands(propagation(outcome(bands=()))))
    assert not [text for text in none if text.endswith(" band") or "–" in text]


def test_bounds_are_outlines_without_median(outcome, bounds, propagation):
    ax = bands(propagation(outcome(), bounds(50.0, 160.0)))
    ((low, high, _, face),) = bars(ax, 1)
    assert (low, high, face) == (50.0, 160.0, (1.0, 1.0, 1.0, 1.0))
    assert ax.get_yticklabels()[1].get_text() == "unknown (bounds)"
    assert [line.get_ydata()[0] < 0.5 for line in ax.lines if line.get_color() == "white"] == [True]
    assert not arrows(ax)
    alone = bands(propagation(bounds(-1e6, 1e6)))
    assert not arrows(alone)  # nothing else that needs room
    assert alone.get_xlim()[1] > 1e6


def test_wide_bounds_leave_room_for_the_rest(outcome, bounds, propagation):
    ax = bands(propagation(outcome(), bounds(-5000.0, 9000.0)))
    left, right = ax.get_xlim()
    assert (right - left) / (140.0 - 60.0) < 6
    assert arrows(ax) == {("<", 1), (">", 1)}
    assert bars(ax, 1)[0][:2] == pytest.approx((left, right))
    assert "−5,000 – 9,000" in texts(ax)


def test_an_infinite_band_runs_to_the_edge_with_its_probability(outcome, propagation):
    queue = outcome(
        "comonotonic",
        bands=(Band(0.5, 90.0, 130.0), Band(0.9, 80.0, math.inf)),
        saturated=0.07,
        relative_sd=None,
    )
    ax = bands(propagation(outcome(), queue))
    right = ax.get_xlim()[1]
    assert math.isfinite(right)
    assert [b[:2] for b in bars(ax, 1)] == [pytest.approx((80.0, right)), (90.0, 130.0)]
    assert arrows(ax) == {(">", 1)}
    assert "80.0 – ∞\nsaturated: 7.0 %" in texts(ax)


def test_nothing_finite_has_no_scale(outcome, propagation):
    beyond = outcome(
        prediction=math.inf, median=math.inf, measured=None, saturated=0.99,
        bands=(Band(0.9, math.inf, math.inf),),
    )  # fmt: skip
    ax = bands(propagation(beyond))
    assert list(ax.get_xticks()) == []
    assert arrows(ax) == {(">", 0)}
    assert "∞ – ∞\nsaturated: 99 %" in texts(ax)
    legends = ax.findobj(matplotlib.legend.Legend)
    keys = [text.get_text() for legend in legends for text in legend.get_texts()]
    assert sorted(keys) == ["90 %", "predicted: saturated"]
    assert not [line for line in ax.lines if line.get_color() == "white"]


def test_a_total_without_error_is_drawn(outcome, propagation):
    certain = outcome(
        bands=(Band(0.9, 120.0, 120.0),), median=120.0, measured=120.0, relative_sd=0.0
    )
    left, right = bands(propagation(certain)).get_xlim()
    assert left < 120 < right
    nothing = outcome(bands=(Band(0.9, 0.0, 0.0),), median=0.0, measured=None, prediction=0.0)
    assert bands(propagation(nothing)).get_xlim()[0] < 0


def test_one_run_of_several(outcome, propagation):
    both = propagation(outcome(), outcome(run="other", prediction=7.0))
    assert "Total time of gpu/model" in bands(both).get_title(loc="left")
    ax = bands(both, "other")
    assert "Total time of other" in ax.get_title(loc="left")
    assert len(ax.get_yticklabels()) == 1
    with pytest.raises(InputError, match="no outcome of run 'gone' .* Runs: gpu/model, other"):
        bands(both, "gone")


def test_says_what_the_total_is(outcome, propagation, budget_of):
    """Only a sum has a budget; kernels of a table without runs are one run by the name of run."""
    found = propagation(outcome(by_class=budget_of([1.0])), outcome("independent"))
    ax = bands(found)
    assert ax.get_title(loc="left") == "Sum of kernel times of gpu/model"
    assert ax.get_xlabel() == "sum of kernel times (ms)"
    ax = bands(propagation(outcome(run="run", by_class=budget_of([1.0])), unit=None))
    assert ax.get_title(loc="left") == "Sum of kernel times of all kernels"
    assert ax.get_xlabel() == "sum of kernel times (unit not stated)"


def test_says_what_the_errors_come_from(outcome, propagation):
    from dataclasses import replace

    given = propagation(outcome())
    assert any("errors given, not fitted" in text for text in texts(bands(given)))
    fitted = replace(given, model=replace(given.model, n_runs=87))
    assert any("errors fitted to n=87 runs" in text for text in texts(bands(fitted)))
