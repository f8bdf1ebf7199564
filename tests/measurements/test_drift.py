"""Trends and steps of repeats with time, and with their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from errcomp.measurements import check
from errcomp.measurements.finding.drift import find_drift
from errcomp.measurements.noise import repeats_of
from errcomp.measurements.results import DriftRow
from errcomp.tables.memory.measurements import Part

Floats = NDArray[np.float64]


def days(shift: dict[int, float], seed: int = 0) -> dict[str, Any]:
    """60 configurations of eight repeats on random days; what each day of change adds."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(60), 8)
    day = rng.integers(1, 100, len(group))
    logs = rng.normal(0, 1, 60)[group] + 0.01 * rng.normal(size=len(group))
    for first, change in shift.items():
        logs += change * (day >= first)
    dates = [f"2026-{1 + d // 28:02d}-{1 + d % 28:02d}" for d in day]
    return {"batch": group, "date": dates, "ms": np.exp(logs)}


def date_of(day: int) -> str:
    return f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}"


def drift_of(table: dict[str, Any]) -> tuple[DriftRow, ...]:
    return check(table, measured="ms").drift


def test_each_step_is_found_with_its_size() -> None:
    rows = drift_of(days({30: 0.05, 60: -0.08}))
    assert [(row.kind, row.at) for row in rows] == [("step", date_of(30)), ("step", date_of(60))]
    for row, change in zip(rows, (0.05, -0.08), strict=True):
        assert row.low < np.expm1(change) < row.high
        assert row.high - row.low < 0.01
        assert row.p < 0.01


def test_five_steps_are_found_at_most() -> None:
    rng = np.random.default_rng(0)
    group, day = np.repeat(np.arange(20), 8), np.tile(np.arange(1, 15), 12)[:160]
    logs = 0.3 * group + 0.002 * rng.normal(size=160)
    steps = {first: (-1) ** k * 0.1 for k, first in enumerate((3, 5, 7, 9, 11, 13))}
    for first, change in steps.items():
        logs += change * (day >= first)
    part = Part("day", "time", day, [None, *range(1, 15)])
    found = find_drift(repeats_of(group, logs, day > 0), [part])
    assert found is not None
    assert [one.kind for one in found] == ["step"] * 5
    assert {one.at for one in found} < set(steps)
    assert all(one.p <= 0.01 for one in found)


@pytest.mark.slow
def test_one_step_is_one() -> None:
    counts = [len(drift_of(days({50: 0.03}, seed))) for seed in range(6)]
    assert counts.count(1) >= 5
    assert min(counts) == 1


def test_slow_days_are_two_steps_and_growth_is_a_trend() -> None:
    up, down = drift_of(days({40: 0.04, 50: -0.04}))
    assert (up.at, down.at) == (date_of(40), date_of(50))
    (row,) = drift_of(days(dict.fromkeys(range(2, 100), 0.001)))
    assert row.kind == "trend"
    assert row.low < np.expm1(0.098) < row.high


def table_of(logs: Floats, size: int, order: Any = slice(None)) -> dict[str, Any]:
    group = np.repeat(np.arange(len(logs) // size), size)
    return {"batch": group[order], "ms": np.exp(logs + 0.1 * group)[order]}


def warm_up(size: int, seed: int = 0) -> Floats:
    """Noise of 2 %; the first of the repeats is 3 % slower."""
    x = 0.02 * np.random.default_rng(seed).normal(size=60 * size)
    x[::size] += 0.03
    return x


@pytest.mark.parametrize("size", [2, 5])
def test_warm_up_is_found_where_repeats_stand_together(size: int) -> None:
    (row,) = drift_of(table_of(warm_up(size), size))
    assert (row.column, row.p < 0.01) == ("place among the repeats", True)
    if size == 5:
        assert (row.kind, row.at) == ("step", "2")
        assert row.low < np.expm1(-0.03) < row.high


def test_what_is_said_of_the_order_of_rows() -> None:
    view = check(table_of(warm_up(5), 5), measured="ms").view()
    (table,) = (one for one in view.tables if one.title == "Drift")
    assert "No column holds the time of a measurement." in " ".join(map(str, table.notes))
    view = check(days({50: 0.03}), measured="ms").view()
    (table,) = (one for one in view.tables if one.title == "Drift")
    assert "No column" not in " ".join(map(str, table.notes))


def test_rows_in_another_order_say_nothing() -> None:
    logs, size = warm_up(5), 5
    shuffled = np.arange(300).reshape(60, 5).T.ravel()  # a repetition of all, then the next
    assert drift_of(table_of(logs, size, shuffled)) == ()
    by_value = np.sort(logs.reshape(60, 5), axis=1)
    assert drift_of(table_of(by_value.ravel(), size)) == ()
    assert drift_of(table_of(by_value[:, ::-1].ravel(), size)) == ()


def test_a_column_of_time_says_more_than_the_order() -> None:
    table = table_of(warm_up(5), 5)
    table["repeat"] = np.random.default_rng(1).integers(0, 9, 300)
    assert drift_of(table) == ()


@pytest.mark.slow
def test_the_order_of_clean_rows_is_seldom_drift() -> None:
    found = 0
    for seed in range(20):
        x = 0.02 * np.random.default_rng(seed).standard_t(3, 240)
        found += bool(drift_of(table_of(x, 4)))
    assert found <= 1  # 1 % are expected
