"""Units that cannot be converted, and what the message says."""

from __future__ import annotations

import pytest

from errcomp.errors import InputError
from errcomp.tables.units import factor, number_and_unit, ratios_of, seconds_in

CLOCK = r" Cycles convert to times only with a clock rate \(--clock 1\.2GHz\)\."


@pytest.mark.parametrize(
    ("unit", "to", "hint"),
    [("ms", "mJ", ""), ("apples", "ms", ""), ("cycles", "ms", CLOCK), ("ns", "cycles", CLOCK)],
)
@pytest.mark.parametrize("source", ["", "t.csv"])
def test_units_of_different_kinds_do_not_mix(unit: str, to: str, hint: str, source: str) -> None:
    start = "t\\.csv: " if source else ""
    with pytest.raises(
        InputError,
        match=rf"^{start}mixed units: '{unit}' and '{to}' cannot be converted into each other\."
        rf"{hint} Select rows with one unit: --where unit={unit}\.$",
    ):
        factor(unit, to, source=source)


@pytest.mark.parametrize(
    ("unit", "to", "times"),
    [
        ("apples", "apples", 1.0),
        ("ms", "s", 1e-3),
        ("s", "ms", 1e3),
        ("min", "h", 1 / 60),
        ("h", "min", 60.0),
        ("µs", "us", 1.0),
        ("fJ", "J", 1e-15),
        ("TB/s", "MB/s", 1e6),
        ("um^2", "mm^2", 1e-6),
        ("kHz", "GHz", 1e-6),
        ("mW", "uW", 1e3),
    ],
)
def test_units_of_one_kind_differ_by_exact_factors(unit: str, to: str, times: float) -> None:
    assert factor(unit, to) == times


def test_cycles_convert_with_a_clock_to_times_only() -> None:
    assert factor("cycles", "us", clock_hz=2e9) == pytest.approx(5e-4)
    assert factor("us", "cycles", clock_hz=2e9) == pytest.approx(2000)
    with pytest.raises(InputError, match="'cycles' and 'mJ' cannot be converted"):
        factor("cycles", "mJ", clock_hz=2e9)


@pytest.mark.parametrize("source", ["", "t.csv"])
def test_times_need_a_known_unit(source: str) -> None:
    start = "t\\.csv: " if source else ""
    with pytest.raises(
        InputError,
        match=rf"^{start}the times have no unit, but the model uses launch times in µs\. State the "
        r"unit of the times, e\.g\. --unit ms \(in Python unit='ms'\)\.$",
    ):
        seconds_in(None, source=source)
    with pytest.raises(
        InputError,
        match=rf"^{start}'min' is not a known unit of time\. Known units: s, ms, us, µs, ns, ps\. ",
    ):
        seconds_in("min", source=source)
    assert seconds_in("us") == 1e-6


def test_texts_that_are_no_number_with_a_unit() -> None:
    assert number_and_unit(" -1.5e-3 mm^2 ") == (-0.0015, "mm^2")
    assert number_and_unit(".5GB/s") == (0.5, "GB/s")
    for value in ("12", "ms", "1 2 ms", "1e ms", 12, None, "12 cycles"):
        assert number_and_unit(value) is None


def test_ratios_of_units_leave_out_another_spelling() -> None:
    assert ratios_of("us") == (
        (1e6, "us beside s or ps beside us"),
        (1000.0, "us beside ms or ns beside us"),
        (6e7, "us beside min"),
        (3.6e9, "us beside h"),
    )
    assert ratios_of("cycles") == ()
