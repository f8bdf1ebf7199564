"""Caveats about the order of devices: counted, absent where nothing can be compared, neutral."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp import Pairs
from errcomp.caveats import check


def table(ratios: list[float], errors: list[float], conditions: int = 8) -> dict[str, list[Any]]:
    """Return devices whose measured times have these ratios, and predictions with these errors."""
    rows = [
        (f"D{i}", f"m{c}", (1 + c) * ratio * (1 + error), (1 + c) * ratio)
        for c in range(conditions)
        for i, (ratio, error) in enumerate(zip(ratios, errors, strict=True))
    ]
    names = ("device", "model", "predicted", "measured")
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def codes(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {caveat.code: caveat for caveat in check(Pairs(columns))}


def test_large_errors_with_the_right_order() -> None:
    found = codes(table([1.0, 2.0, 4.0], [0.2, 0.2, 0.2]))
    caveat = found["order-holds"]
    assert "order-fails" not in found
    assert caveat.message == (
        "The MAPE is 20.00 %, but the predictions name the faster of two devices in 100 % of 24 "
        "comparisons."
    )
    assert caveat.evidence["comparisons"] == 24
    assert caveat.evidence["low"] is None


def test_small_errors_with_the_wrong_order() -> None:
    ratios = [1.0, 1.01, 1.02, 1.03, 1.04]
    found = codes(table(ratios, [0.04, 0.02, 0.0, -0.02, -0.04], conditions=4))
    caveat = found["order-fails"]
    assert "order-holds" not in found
    assert caveat.evidence["share_right"] == 0
    # Wilson of 0 in 5, with the t quantile of 4 degrees of freedom: 2.776² / (5 + 2.776²).
    assert caveat.evidence["high"] == pytest.approx(0.6065, abs=1e-3)
    assert "two devices in only 0 % [0, " in caveat.message


@pytest.mark.parametrize(
    "columns",
    [
        table([1.0, 2.0, 4.0], [0.01, 0.01, 0.01]),  # small errors, right order
        table([1.0, 2.0, 4.0], [0.2, 0.2, 0.2], conditions=3),  # nine comparisons
        {**table([1.0, 2.0, 4.0], [0.2] * 3), "device": [*"ABC"] * 8, "model": list(range(24))},
        {**table([1.0, 2.0, 4.0], [0.2] * 3), "device": ["A"] * 24},
        table([1.0, 1.0, 1.0], [0.2, 0.2, 0.2]),  # measured ties
    ],
    ids=["as expected", "too few", "never equal", "one device", "ties"],
)
def test_no_caveat(columns: dict[str, list[Any]]) -> None:
    assert not {"order-holds", "order-fails"} & codes(columns).keys()


def test_power_and_memory_have_no_faster_device() -> None:
    columns = table([1.0, 2.0, 4.0], [0.2, 0.2, 0.2])
    both = {unit: {c.code for c in check(Pairs(columns, unit=unit))} for unit in ("cycles", "W")}
    assert "order-holds" in both["cycles"]
    assert "order-holds" not in both["W"]


def test_a_predictor_that_repeats_itself_is_right_half_of_the_time() -> None:
    columns = table([1.0, 1.05, 1.1, 1.02, 0.99, 1.03], [0.0] * 6)
    columns["predicted"] = [m for c in range(8) for m in [1.05 * (1 + c)] * 6]
    found = codes(columns)
    assert found["order-fails"].evidence["share_right"] == pytest.approx(0.5)


def test_neusight_is_right_about_the_faster_device() -> None:
    import errcomp as ec

    found = {c.code: c for c in check(ec.load("neusight").of_tool())}
    evidence = found["order-holds"].evidence
    assert (evidence["comparisons"], evidence["devices"]) == (382, 12)
    assert evidence["share_right"] == pytest.approx(0.963, abs=0.001)
    assert np.isfinite(evidence["low"])
