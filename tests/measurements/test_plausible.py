"""Names of columns that say what must hold."""

from __future__ import annotations

import pytest

from errcomp.measurements.finding.plausible import _place


@pytest.mark.parametrize(
    ("name", "place", "rest"),
    [
        ("ttft_p99", 99.0, ("ttft",)),
        ("p999_latency", 99.9, ("latency",)),
        ("latencyP50", 50.0, ("latency",)),
        ("p99.9 (ms)", 99.9, ("ms",)),
        ("mean_tpot", -1.0, ("tpot",)),
        ("tpot.max", 100.0, ("tpot",)),
        ("median", 50.0, ()),
        ("tp4", None, ()),
        ("fp16", None, ()),
        ("step10", None, ()),
    ],
)
def test_the_place_of_a_percentile(name: str, place: float | None, rest: tuple[str, ...]) -> None:
    assert _place(name) == (place, rest)
