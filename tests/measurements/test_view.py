"""What the report of a check of measurements says."""

from __future__ import annotations

import numpy as np
import pytest

import errcomp as ec
from errcomp.measurements import check
from errcomp.measurements.results import MeasurementCheck


@pytest.fixture(scope="module")
def found() -> MeasurementCheck:
    """A table with every finding."""
    rng = np.random.default_rng(0)
    batch = np.repeat(np.arange(1, 81), 4)
    n = len(batch)
    slow = (batch % 8 == 0) & (np.arange(n) % 2 == 0)
    day = np.tile([1, 2, 3, 4], 80)
    ms = (
        batch
        * np.exp(0.01 * rng.normal(size=n))
        * np.where(slow, 1.3, 1)
        * np.where(day > 2, 1.03, 1)
    )
    ms[20] = ms[21]
    ms[41] *= 2.5
    ms[60] = -1.0
    return check(
        {
            "batch": batch,
            "device": np.where(batch > 40, "a", "b"),
            "day": [f"2026-01-0{d}" for d in day],
            "log": [f"graphs={'off' if one else 'on'}" for one in slow],
            "requests": np.where(np.arange(n) == 5, 40, 5000),
            "lat_p99": batch,
            "ms": ms,
        },
        measured="ms",
        keys=["batch", "device"],
        by="device",
        unit="ms",
    )


@pytest.mark.parametrize(
    "text",
    [
        "Rows                      320 with ms",
        "Copies                    2 rows in 1 set",
        "Impossible values         1",
        "Floor including the rows that differ by more than noise:",
        "log:graphs",
        "batch=11, device=b",
        "a measurement is positive and finite",
        "lat_p99 needs 100 or more of requests: of fewer it is their maximum",
        "Floor by group",
        "step  2026-01-03  +2.7 % [2.2, 3.2]",
        "equal: equal keys and the same value (to 1e-6).",
    ],
)
def test_the_text_names_it(found: MeasurementCheck, text: str) -> None:
    assert text in str(found)


def test_verdicts(found: MeasurementCheck) -> None:
    floor, bad = found.view().verdicts
    assert (floor.head, floor.tone) == ("Floor", "plain")
    assert "MAPE of 1." in floor.text
    assert bad.text.startswith("copies: 2; impossible values: 1; configurations with equal keys")


def copied() -> MeasurementCheck:
    """A table of 40 rows whose rows from 11 to 20 stand in it again, and one value near another."""
    values = np.exp(np.random.default_rng(0).normal(size=40))
    table = {"batch": np.arange(40), "version": np.repeat(["a"], 40), "ms": values}
    again = {"batch": np.arange(10, 20), "version": np.repeat(["b"], 10), "ms": values[10:20]}
    rows = {name: np.r_[table[name], again[name], table[name][:1]] for name in table}
    rows["ms"][-1] *= 1.0005
    return check(rows, measured="ms")


@pytest.mark.extras
def test_the_map_shows_each_copy_at_its_row() -> None:
    pytest.importorskip("matplotlib")
    view = copied().view()
    assert [figure.name for figure in view.figures] == ["copies"]
    axes = view.figures[0].draw()
    shown = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert sorted(shown["carried over"]) == [[row, row + 30] for row in range(11, 21)]
    assert shown["near"] == [[1, 51]]
    # The diagonal, from the first row to the last.
    assert [[1, 1], [51, 51]] in shown.values()


@pytest.mark.extras
def test_errors_beside_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("errcomp.measurements.without_noise._DRAWS", 2)  # of an interval
    batch = np.repeat(np.arange(1, 61), 3)
    measured = batch * np.exp(0.05 * np.random.default_rng(0).normal(size=180))
    tools = np.repeat(["A", "B"], 180)
    table = {"tool": tools, "batch": np.tile(batch, 2), "measured": np.tile(measured, 2)}
    table["predicted"] = np.r_[1.02 * batch, 1.2 * batch]
    audit = ec.audit(table)
    figure = next(one for one in audit.view().figures if one.name == "noise")
    axes = figure.draw()
    side = audit.measurements
    assert side is not None
    shown = {line.get_label(): line for line in axes.lines}
    assert shown["as audited"].get_xdata() == pytest.approx([100 * t.mape for t in side.tools])
    left = shown["without noise"].get_xdata()
    assert left == pytest.approx([100 * tool.remaining for tool in side.tools])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B"]


@pytest.mark.extras
def test_an_audit_without_repeats_has_no_picture_of_noise() -> None:
    audit = ec.audit({"predicted": [1.0, 2.0, 3.0], "measured": [1.1, 2.1, 3.2]})
    assert "noise" not in {one.name for one in audit.view().figures}


@pytest.mark.extras
def test_the_figure_shows_each_configuration(found: MeasurementCheck) -> None:
    pytest.importorskip("matplotlib")
    axes = found.plot()
    assert axes.get_xlabel() == "ms (ms)"
    assert len(axes.lines[0].get_xdata()) == len(found.spread)
    assert set(axes.lines[1].get_ydata()) == {100 * found.floor.mape}
    assert axes.get_yscale() == "log"
