from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp import summarize
from errcomp.calibration.view.predictions import predictions
from errcomp.claims.view.replication import cells
from errcomp.claims.view.search import matches
from errcomp.drivers.view import contrasts
from errcomp.errors import InputError
from errcomp.halflife.view.check import shifts
from errcomp.halflife.view.curves import forecast
from errcomp.report.drawing.forest import MOST_ROWS, Row, forest
from errcomp.summary.view import summary_figure

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras

PAIRS = {
    "predicted": [11.0, 21.0, 33.0, 52.0],
    "measured": [10.0, 20.0, 30.0, 40.0],
    "device": ["A", "A", "$x_1$", "$x_1$"],
}


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def rows(n: int) -> list[Row]:
    return [Row(f"row {i}", float(i), i - 1.0, i + 1.0, f"{i} %") for i in range(n)]


def plain(**changes: Any) -> dict[str, Any]:
    return {"title": "T", "notes": ["a note"], "x": "error (%)", "beside": "error", **changes}


def test_rows_stand_at_their_values_with_their_intervals() -> None:
    ax = forest(None, rows(3), **plain(reference=(1.0, "before")))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["row 0", "row 1", "row 2"]
    lines = [line for line in ax.lines if len(set(line.get_ydata())) == 1]
    dots = [line.get_xdata()[0] for line in lines if line.get_marker() == "o"]
    assert dots == [0.0, 1.0, 2.0]
    spans = [list(line.get_xdata()) for line in lines if len(line.get_xdata()) == 2]
    assert spans == [[-1.0, 1.0], [0.0, 2.0], [1.0, 3.0]]
    assert {"0 %", "1 %", "2 %"} <= set(texts(ax))


def test_what_does_not_fit_ends_in_an_arrow() -> None:
    wide = [Row("a", 1.0, 0.5, math.inf, "x"), Row("b", 2.0, -1e9, 3.0, "y")]
    ax = forest(None, wide, **plain())
    left, right = ax.get_xlim()
    assert -10 < left < 1
    assert 2 < right < 10
    assert [line.get_marker() for line in ax.lines if line.get_marker() in "<>"] == [">", "<"]


def test_more_rows_than_fit_are_counted() -> None:
    ax = forest(None, rows(MOST_ROWS + 7), **plain())
    assert len(ax.get_yticklabels()) == MOST_ROWS
    assert any("not drawn: 7 more" in text for text in texts(ax))


def test_a_row_without_a_value_is_named_and_left_empty() -> None:
    ax = forest(None, [Row("none", math.nan, None, None, "n/a"), *rows(2)], **plain(log=False))
    assert ax.get_yticklabels()[0].get_text() == "none"
    assert sum(line.get_marker() == "o" for line in ax.lines) == 2


def test_summary_draws_the_groups_and_all_pairs() -> None:
    found = summarize(PAIRS, by="device", figures=["mape", "bias"])
    ax = summary_figure(found)
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == ["$x_1$  n=2", "A  n=2", "all pairs  n=4"]
    assert not any(label.get_parse_math() for label in labels)
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([20.0, 7.5, 13.75])
    assert summary_figure(found, "bias").get_xlabel() == "mean signed error (%)"
    with pytest.raises(InputError, match="wape was not computed"):
        summary_figure(found, "wape")


def test_results_draw_themselves_on_given_axes() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    found = summarize(PAIRS, by="device")
    assert found.plot(ax=ax, figure="bias") is ax
    with pytest.raises(InputError, match="no option run. Options: figure"):
        found.plot(run="x")


def half_life_forecast(**changes: Any) -> Any:
    curve = SimpleNamespace(
        ahead=np.array([0.0, 6.0, 12.0]),
        probability=np.array([1.0, 0.8, np.nan]),
        low=np.array([0.9, 0.7, np.nan]),
        high=np.array([1.0, 0.9, np.nan]),
    )
    answer = SimpleNamespace(method="drift", unit="months", forecast=curve)
    told = SimpleNamespace(
        key={"level": "model"}, n_series=7, answers=(answer,), method=lambda _: "drift"
    )
    untold = SimpleNamespace(key={"level": "run"}, n_series=1, answers=(), method=lambda _: None)
    plain = {
        "clocks": ("releases", "months"),
        "groups": (told, untold),
        "below": 0.9,
        "level": 0.95,
    }
    return SimpleNamespace(**{**plain, **changes})


def test_forecast_draws_what_can_be_told_and_counts_the_rest() -> None:
    ax = forecast(half_life_forecast())
    (curve,) = [
        line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_marker() != "None"
    ]
    assert list(curve.get_ydata()) == [100.0, 80.0]
    assert any("1 group without a forecast" in text for text in texts(ax))
    assert "model n=7" in texts(ax)
    with pytest.raises(InputError, match="no group"):
        forecast(half_life_forecast(groups=()))


def checked(shift: list[float], blamed: list[int], names: tuple[str, ...] = ()) -> Any:
    values = np.array(shift)
    result = SimpleNamespace(
        version="1.2",
        shift=values,
        low=values - 0.1,
        high=values + 0.1,
        names=names or tuple(f"s{i}" for i in range(len(shift))),
        n_baseline=np.full(len(shift), 3),
        blamed=lambda: np.array(blamed, int),
    )
    return SimpleNamespace(result=result)


def test_shifts_put_the_largest_first_and_fill_those_that_grew() -> None:
    ax = shifts(checked([0.01, -0.5, math.nan], [1]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["s1  n=3", "s0  n=3"]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert dots[0].get_xdata()[0] == pytest.approx(100 * math.expm1(-0.5))
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    with pytest.raises(InputError, match="no series was validated both under .* 1.2 and before it"):
        shifts(checked([math.nan], []))


def test_predictions_stand_in_the_order_of_their_times_with_the_sums_as_ticks() -> None:
    ax = predictions(predicted_runs(["a", "b"], "ms", [10.0, 20.0], [8.0, 22.0]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    assert "20 ms [16, 26]" in texts(ax)
    (ticks,) = [line for line in ax.lines if line.get_marker() == "|"]
    assert ticks.get_xydata().tolist() == [[22.0, 0.0], [8.0, 1.0]]
    told = [text.get_text() for legend in ax.figure.legends or [ax.get_legend()]
            for text in legend.get_texts()]  # fmt: skip
    assert told == ["sum of kernels, uncorrected"]
    assert ax.get_xlim()[0] == 0.0
    assert ax.get_xscale() == "linear"


def test_times_of_different_size_have_a_logarithmic_axis() -> None:
    ax = predictions(predicted_runs(["a", "b"], "ms", [10.0, 31.0], [8.0, 200.0]))
    assert ax.get_xscale() == "log"
    left, right = ax.get_xlim()
    assert 0 < left < 8.0
    assert 200.0 < right < 400.0
    alike = predictions(predicted_runs(["a", "b"], "ms", [10.0, 30.0], [8.0, 20.0]))
    assert alike.get_xscale() == "linear"


def test_matches_mark_what_chance_does_not_explain() -> None:
    def match(chance: float) -> Any:
        return SimpleNamespace(expected_by_chance=chance, description=f"mean, {chance}")

    found = SimpleNamespace(
        matches=[match(1e-4), match(3.0)],
        figures={"neusight": SimpleNamespace(text="2.3%")},
        conclusion="Nothing found.",
    )
    ax = matches(found)  # type: ignore[arg-type]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    assert ax.get_xscale() == "log"
    found.matches = []
    with pytest.raises(InputError, match="nothing to draw: Nothing found"):
        matches(found)  # type: ignore[arg-type]


def test_contrasts_need_something_to_compare() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        contrasts(SimpleNamespace(contrasts=()))  # type: ignore[arg-type]


@pytest.mark.slow
def test_cells_stack_to_the_number_of_each_table(fits, readable) -> None:
    from errcomp.claims.replicate import replicate_survey

    found = replicate_survey()
    ax = cells(found)
    fits(ax)
    readable(ax)
    counts = found.counts()
    widths = sum(patch.get_width() for patch in ax.patches)
    assert widths == sum(sum(row.values()) for name, row in counts.items() if name != "all")
    assert "all" not in [label.get_text() for label in ax.get_yticklabels()]


# What holds for all ------------------------------------------------------------------------------


def predicted_runs(
    names: list[str],
    unit: str | None = "ms",
    predicted: list[float] | None = None,
    total: list[float] | None = None,
) -> Any:
    times = np.geomspace(1e-3, 1e6, len(names)) if predicted is None else np.array(predicted)
    return SimpleNamespace(
        run=np.array(names),
        predicted=times,
        total=0.9 * times if total is None else np.array(total),
        calibrated=np.arange(len(names)) % 3 > 0,
        estimator="linear",
        unit=unit,
        band=lambda _: (0.8 * times, 1.3 * times),
    )


def groups_of(names: list[str]) -> Any:
    (one, _) = half_life_forecast().groups
    return half_life_forecast(groups=tuple(SimpleNamespace(**{**vars(one), "key": {"kernel": name}})
                                for name in names))  # fmt: skip


def found_matches(n: int) -> Any:
    text = "mean, relative to the smaller, device other than A100-40G-SXM, n=143"
    return SimpleNamespace(
        matches=[SimpleNamespace(expected_by_chance=10.0**-i, description=text) for i in range(n)],
        figures={f"tool{i}": SimpleNamespace(text="12.3%") for i in range(6)},
        conclusion="",
    )


def drawn_with(name: str, names: list[str]) -> Any:
    """Draw a figure of these groups, runs or series."""
    n = len(names)
    if name in ("mape", "bias", "rmse"):
        error = np.geomspace(0.01, 100.0, 4 * n)
        table = {
            "predicted": 100 * (1 + error),
            "measured": np.full(4 * n, 100.0),
            "device": [one for one in names for _ in range(4)],
        }
        return summary_figure(summarize(table, by="device", figures=[name]))
    if name == "shifts":
        return shifts(checked(list(np.linspace(-1.0, 5.0, n)), [0], tuple(names)))
    if name == "contrasts":
        effect = SimpleNamespace(value=1.5, low=0.5, high=4.0, format=lambda: "1.5 [0.5, 4]")
        rows = [SimpleNamespace(name=one, effect=effect, n_pairs=12) for one in names]
        return contrasts(SimpleNamespace(contrasts=rows))  # type: ignore[arg-type]
    if name == "matches":
        return matches(found_matches(n))
    if name == "forecast":
        return forecast(groups_of(names))
    return predictions(predicted_runs(names))


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize(
    "name",
    ["mape", "bias", "rmse", "shifts", "contrasts", "matches", "forecast", "predictions"],
)
def test_labels_do_not_overlap_nor_leave_the_figure(name, n, fits, long_names, readable) -> None:
    ax = drawn_with(name, long_names(n))
    fits(ax)
    readable(ax)
    if name == "matches":
        return
    written = [label.get_text() for label in ax.get_yticklabels()]
    written = [text for text in texts(ax) if "n=7" in text] if name == "forecast" else written
    assert len(set(written)) == len(written) >= min(n, 12)


def test_a_summary_of_errors_far_apart_has_a_log_axis_and_signed_ones_have_a_zero() -> None:
    names = [f"d{i}" for i in range(8)]
    assert drawn_with("mape", names).get_xscale() == "log"
    ax = drawn_with("bias", names)
    assert ax.get_xscale() == "linear"
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [0.0]
    assert drawn_with("rmse", names).get_xlabel() == "RMSE (unit not stated)"


def test_equal_values_leave_room_and_errors_start_at_zero() -> None:
    for value in (38.0, 0.0):
        same = [Row(f"row {i}", value * (1 + 1e-15 * i), None, None, "x") for i in range(4)]
        left, right = forest(None, same, **plain()).get_xlim()
        assert left == 0.0
        assert right > 1.01 * value
    ends = [Row("a", 0.0, -18.0, 21.0, "x"), Row("b", 0.0, -17.0, math.inf, "x")]
    left, right = forest(None, ends, **plain(reference=(0.0, "predicted"))).get_xlim()
    assert (left < -18, right > 21) == (True, True)


def test_of_many_forecasts_those_least_likely_to_hold_are_drawn() -> None:
    found = groups_of([f"g{i}" for i in range(15)])
    ax = forecast(found)
    assert sum("n=7" in text for text in texts(ax)) == 12
    assert any("not drawn: 3 groups with a higher probability" in text for text in texts(ax))
    assert "requested probability: 90 %" in {str(line.get_label()) for line in ax.lines}
