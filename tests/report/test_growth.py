"""Growth from level to level: factors, order of levels, and what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.view.figures import growth

pytestmark = pytest.mark.extras
pytest.importorskip("matplotlib")


def lines(ax):
    """Lines through the levels (those of intervals have no marker)."""
    return [
        (list(line.get_xdata()), list(line.get_ydata()))
        for line in ax.lines
        if line.get_marker() != "None"
    ]


def intervals(ax):
    return [list(line.get_ydata()) for line in ax.lines if line.get_marker() == "None"]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_one_line_with_intervals_and_factors():
    ax = growth([("kernel", 0.2, 0.1, 0.4), ("model", 0.05, None, None), ("job", 0.1, 0.1, 0.3)])
    assert lines(ax) == [([0, 1, 2], [0.2, 0.05, 0.1])]
    assert intervals(ax) == [[0.1, 0.4], [0.1, 0.3]]
    assert ax.get_yscale() == "log"
    assert {"×0.25", "×2.00", "10 % (×0.50)"} <= set(texts(ax))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["kernel", "model", "job"]
    low, high = ax.get_ylim()
    assert low < 0.05 < 0.4 < high
    ticks = [label.get_text() for label in ax.get_yticklabels()]
    assert "10 %" in ticks


def test_lines_per_assumption_share_levels():
    ax = growth({
        "independent": [("kernel", 0.2, None, None), ("model", 0.01, None, None)],
        "unheard of": [("kernel", 0.2, None, None), ("job", 0.1, None, None)],
    })  # fmt: skip
    assert lines(ax) == [([0, 1], [0.2, 0.01]), ([0, 2], [0.2, 0.1])]
    assert {"×0.050", "×0.50", "independent 1.0 %", "unheard of 10 %"} <= set(texts(ax))
    assert "2 assumptions" in ax.get_title(loc="left")
    colours = [line.get_color() for line in ax.lines]
    assert len(set(colours)) == 2


def test_what_lines_have_in_common_is_written_once():
    shared = [("kernel", 0.2, None, None), ("model", 0.1, None, None)]
    ax = growth({
        "a": [*shared, ("job", 0.1, None, None)], "b": [*shared, ("job", 0.2, None, None)],
    })  # fmt: skip
    assert [text for text in texts(ax) if text == "×0.50"] == ["×0.50"]


def test_outcomes_go_from_kernel_to_total(outcome, bounds):
    ax = growth([outcome(), outcome("independent", relative_sd=0.02), bounds(1.0, 2.0)])
    assert lines(ax) == [([0, 1], [0.4, 0.1]), ([0, 1], [0.4, 0.02])]
    assert {"×0.25", "×0.050"} <= set(texts(ax))
    assert "not shown, because they have no standard deviation: unknown" in texts(ax)
    two_runs = growth([outcome(), outcome(run="other")])
    assert any(text.startswith("estimated, other") for text in texts(two_runs))


def test_many_lines_show_the_factor_beside_them():
    ax = growth({f"a{i}": [("kernel", 0.2, 0.1, 0.3), ("job", 0.1 / (i + 1), None, None)]
                 for i in range(12)})  # fmt: skip
    assert "a0 10 % (×0.50)" in texts(ax)
    assert not [text for text in texts(ax) if text.startswith("×0")]
    assert [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "None"] == [0] * 12


def test_a_wide_range_and_tiny_factors():
    ax = growth([("kernel", 2.0, None, None), ("job", 1e-6, None, None), ("site", 3e6, None, None)])
    assert {"×5.0e-07", "×3.0e+12"} <= set(texts(ax))
    assert len(ax.get_yticks()) < 20
    assert texts(growth([("kernel", 0.1, None, None)])) == ["10 %"]
    big = growth([("a", 0.01, None, None), ("b", 1.0, None, None), ("c", 31.6, None, None)])
    assert {"×100", "×31.6"} <= set(texts(big))


@pytest.mark.parametrize("sd", [0.0, -0.1, float("nan"), float("inf"), None, "0.1", 1j])
def test_a_standard_deviation_is_positive(sd):
    with pytest.raises(InputError, match="relative sd at level 'job' of 'a' must be a positive"):
        growth({"a": [("kernel", 0.1, None, None), ("job", sd, None, None)]})


@pytest.mark.parametrize(
    "ends", [(0.2, 0.3), (0.01, 0.05), (None, 0.2), (0.05, None), (0.0, 0.2), (0.1, float("inf"))]
)
def test_an_interval_holds_its_value(ends):
    with pytest.raises(InputError, match="the interval at level 'kernel' must"):
        growth([("kernel", 0.1, *ends)])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["kernel"], r"a level must be \(name, relative sd, low, high\).*got 'kernel'"),
        ([("kernel", 0.1)], "a level must be"),
        ([3], "a level must be .* got 3"),
        ("kernel", "levels must be a sequence, got str"),
        (None, "levels must be a sequence, got NoneType"),
        ({"a": 3}, "levels of 'a' must be a sequence, got int"),
        ([("k", 0.1, None, None)] * 2, "level 'k' is given twice"),
        (
            {
                "a": [("k", 0.1, None, None), ("m", 0.1, None, None)],
                "b": [("m", 0.1, None, None), ("k", 0.1, None, None)],
            },
            r"the levels of 'b' \(m, k\) are not in the order of other lines \(k, m\).",
        ),
    ],
)
def test_refuses_what_are_no_levels(steps, message):
    with pytest.raises(InputError, match=message):
        growth(steps)


def test_refuses_outcomes_it_cannot_draw(outcome, bounds):
    with pytest.raises(InputError, match="the outcome of 'estimated' is given twice"):
        growth([outcome(), outcome()])
    with pytest.raises(InputError, match="either outcomes or levels, got both"):
        growth([outcome(), ("kernel", 0.1, None, None)])
    for nothing in ([], {}, {"a": []}, [bounds(1.0, 2.0)], [outcome(relative_sd=0.0)]):
        with pytest.raises(NotDefinedError, match="the growth of the error cannot be drawn"):
            growth(nothing)


def test_numpy_numbers_are_numbers():
    ax = growth([("kernel", np.float64(0.2), np.float32(0.125), np.int64(1))])
    assert intervals(ax) == [[0.125, 1.0]]
