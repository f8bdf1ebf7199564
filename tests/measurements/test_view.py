"""What the report of a check of measurements says."""

from __future__ import annotations

import numpy as np
import pytest

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
        "With the rows that differ by more than noise:",
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


@pytest.mark.extras
def test_the_figure_shows_each_configuration(found: MeasurementCheck) -> None:
    pytest.importorskip("matplotlib")
    axes = found.plot()
    assert axes.get_xlabel() == "ms (ms)"
    assert len(axes.lines[0].get_xdata()) == len(found.spread)
    assert axes.get_yscale() == "log"
