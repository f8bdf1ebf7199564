"""The waterfall: bars start where the last one ended and end at 100 %."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.view.figures import budget

pytestmark = pytest.mark.extras
matplotlib = pytest.importorskip("matplotlib")


def bars(ax, which):
    return np.array([(p.get_x(), p.get_width()) for p in ax.containers[which]])


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def keys(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_bars_accumulate_to_all_of_the_error(outcome, budget_of):
    ax = budget(outcome(by_class=budget_of([0.6, 0.3, 0.1])))
    np.testing.assert_allclose(bars(ax, 0), [(0, 60), (60, 30), (90, 10)])
    np.testing.assert_allclose(bars(ax, 1), [(0, 100 / 3), (60, 100 / 3), (90, 100 / 3)])
    assert [list(line.get_xdata()) for line in ax.lines] == [[60, 60], pytest.approx([90, 90])]
    assert names(ax) == ["class0", "class1", "class2"]
    assert keys(ax) == ["adds to the error", "share of time"]
    beside = [text.get_text() for text in ax.texts]
    assert beside[:8] == ["error", "60 %", "30 %", "10 %", "time", "33 %", "33 %", "33 %"]
    assert ax.get_xlim()[1] > 90 + 100 / 3
    assert max(ax.get_xticks()) == 100


def test_what_offsets_errors_runs_back_hatched_in_another_colour(outcome, budget_of):
    ax = budget(outcome(by_class=budget_of([1.5, -0.2, -0.3])))
    np.testing.assert_allclose(bars(ax, 0), [(0, 150), (150, -20), (130, -30)])
    colours = [patch.get_facecolor() for patch in ax.containers[0]]
    assert colours[1] == colours[2] != colours[0]
    assert [patch.get_hatch() for patch in ax.containers[0]] == [None, "////", "////"]
    assert keys(ax) == ["adds to the error", "offsets errors of others", "share of time"]
    assert max(ax.get_xticks()) > 100
    below = budget(outcome(by_class=budget_of([-0.5, 1.5])))
    assert below.get_xlim()[0] < -50


def test_a_small_share_adds_to_the_error(outcome, budget_of):
    ax = budget(outcome(by_class=budget_of([0.996, 0.004])))
    assert [patch.get_hatch() for patch in ax.containers[0]] == [None, None]


def test_others_are_taken_together(outcome, budget_of):
    parts = [0.4, 0.3, 0.2, 0.15, 0.1, -0.15]
    ax = budget(outcome(by_class=budget_of(parts)), top=3)
    assert names(ax) == ["class0", "class1", "class2", "3 others"]
    np.testing.assert_allclose(bars(ax, 0)[-1], (90, 10), atol=1e-9)
    np.testing.assert_allclose(bars(ax, 1)[-1, 1], 50)
    # A single other one has a name; and what counts is the size of a contribution.
    assert names(budget(outcome(by_class=budget_of(parts)), top=5))[-1] == "class5"
    large = budget(outcome(by_class=budget_of([0.8, 0.5, 0.1, 0.05, 0.05, -0.5])), top=3)
    assert names(large) == ["class0", "class1", "class5", "3 others"]
    np.testing.assert_allclose(bars(large, 0)[-1], (80, 20), atol=1e-9)
    assert any("n=6 classes" in text.get_text() for text in large.texts)


def test_kernels_lose_the_name_of_their_run(outcome, budget_of):
    made = outcome(by_kernel=budget_of([0.9, 0.1], ["gpu/model/gemm", "softmax"]))
    ax = budget(made, by="kernel")
    assert names(ax) == ["gemm", "softmax"]
    assert "by kernel" in ax.get_title(loc="left")


@pytest.mark.parametrize("top", [0, -1, 2.5, True, "3", None])
def test_top_is_a_positive_integer(outcome, budget_of, top):
    with pytest.raises(InputError, match="top must be a positive integer, got"):
        budget(outcome(by_class=budget_of([1.0])), top=top)


def test_refuses_what_has_no_budget(outcome, bounds, budget_of):
    with pytest.raises(InputError, match='by must be "class" or "kernel", got \'device\''):
        budget(outcome(), by="device")
    with pytest.raises(
        NotDefinedError,
        match=r"run 'gpu/model' has no error budget \(shares of the variance\) under 'unkn",
    ):
        budget(bounds(1.0, 2.0))
    with pytest.raises(
        NotDefinedError, match=r"no error budget \(shares of the variance\) under 'estimated'"
    ):
        budget(outcome(by_class=budget_of([])))
    with pytest.raises(NotDefinedError, match="no error budget"):
        budget(outcome(by_class=budget_of([1.0])), by="kernel")


def test_without_standard_deviation(outcome, budget_of):
    ax = budget(outcome(by_class=budget_of([1.0]), relative_sd=None))
    assert not [text for text in ax.texts if "of the mean" in text.get_text()]
    with_sd = budget(outcome(by_class=budget_of([1.0])))
    assert [text for text in with_sd.texts if "sd 10 % of the mean" in text.get_text()]
