"""Checks of measurements: coverage of the floor, false flags, power, under several laws."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp import datasets
from errcomp.measurements import budget, check
from errcomp.measurements.floor import floor_of_repeats, law_of_noise
from errcomp.measurements.noise import repeats_of
from errcomp.measurements.without_noise import remaining
from tests.measurements.laws import (
    ERRORS,
    LAWS,
    clean,
    errors,
    hidden,
    planted,
    repeats,
    single_cause,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sizes", [(2,), (2, 3, 4, 5)])
def test_the_interval_holds_the_floor(law: str, sizes: tuple[int, ...]) -> None:
    """Configurations differ in the scale of their noise; each has its own number of repeats."""
    rng = np.random.default_rng(20 + len(sizes))
    inside, widths, tables = 0, [], 240
    for i in range(tables):
        groups, sd, spread = (20, 60, 200)[i % 3], (0.005, 0.03, 0.1)[i // 3 % 3], i // 9 % 2 / 2
        group, x, true = repeats(law, sizes, groups, sd, spread, rng)
        found = floor_of_repeats(repeats_of(group, x, group >= 0))
        inside += found.low <= true <= found.high
        widths.append(found.high / found.low)
    # 240 tables: the standard error of 95 % is 1.4 points.
    assert 0.91 <= inside / tables <= 0.99
    assert np.median(widths[2::3]) < 1.6


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("digits", [None, 4, 3])
def test_few_rows_of_clean_tables_are_flagged(law: str, digits: int | None) -> None:
    rng = np.random.default_rng(5)
    copies, differ, others, tables = [], [], 0, 15
    for i in range(tables):
        found = check(clean(law, (0.005, 0.05, 0.2)[i % 3], rng, digits), measured="ms")
        copies.append(found.copies.n / found.n)
        differ.append(sum(row.n for row in found.hidden_keys) / found.n)
        others += len(found.drift) + len(found.explained)
    assert np.mean(copies) <= 0.01
    assert np.mean(differ) <= 0.01
    assert others <= 2  # each test has 1 %


@pytest.mark.parametrize("law", ["normal", "t3"])
@pytest.mark.parametrize("size", [4, 8])
def test_a_hidden_key_that_a_text_names_is_found(law: str, size: int) -> None:
    rng = np.random.default_rng(9)
    right = wrong = of = rows = 0
    for _ in range(6):
        data, affected = hidden(law, size, 3.0, rng, named=True)
        found = check(data, measured="ms")
        named = [row for row in found.hidden_keys if row.explained_by == "source:graphs"]
        right += len({row.of["batch"] for row in named} & affected)
        wrong += sum(row.n for row in found.hidden_keys if row.of["batch"] not in affected)
        of, rows = of + len(affected), rows + found.n
    assert right / of >= 0.9
    assert wrong / rows <= 0.01


@pytest.mark.parametrize("name", ["ort-cpu", "torch-cpu", "torch-cuda", "ort-releases"])
@pytest.mark.parametrize("near", [0.0, 1e-3])
def test_planted_copies_are_found(name: str, near: float) -> None:
    table = datasets.tables(name)[name]
    rng = np.random.default_rng(3)
    before = check(table, measured="measured")
    assert before.copies.n + sum(row.n for row in before.hidden_keys) <= 0.01 * before.n
    with_copies, rows = planted(table, "measured", near, rng)
    found = set(check(with_copies, measured="measured").copies.rows)
    assert len(found & rows) >= 0.95 * len(rows)
    assert len(found) <= 2 * len(rows)  # each with the row that it repeats


def test_drift_is_found_and_seldom_invented() -> None:
    rng = np.random.default_rng(3)
    found, held = {"step": 0, "none": 0}, []
    for _ in range(40):
        group = np.repeat(np.arange(60), 4)
        day = rng.integers(1, 100, len(group))
        x = rng.normal(0, 1, 60)[group] + 0.02 * rng.normal(size=len(group))
        dates = [f"2026-{1 + d // 28:02d}-{1 + d % 28:02d}" for d in day]
        for kind, shift in (("step", 0.03), ("none", 0.0)):
            y = np.exp(x + shift * (day >= 50))
            rows = check({"batch": group, "date": dates, "ms": y}, measured="ms").drift
            found[kind] += bool(rows)
            held += [row.low <= np.expm1(0.03) <= row.high for row in rows if row.kind == kind]
    assert found["step"] >= 38
    assert found["none"] <= 3
    assert np.mean(held) >= 0.8  # 95 %, less what choosing the place of the step costs


@pytest.mark.parametrize("law", ["normal", "t3", "gamma"])
def test_what_remains_without_noise(law: str) -> None:
    """Over tools with errors of five laws, and noise of 2 and 8 %."""
    inside, off, off_before, tables = [], [], [], 15
    for error in ERRORS:
        for i in range(tables):
            rng = np.random.default_rng([i, ERRORS.index(error)])
            group, x, _ = repeats(law, (2, 3), 60, (0.02, 0.08)[i % 2], 0.0, rng)
            own = errors(error, 60, rng)[group]
            known = repeats_of(group, x, group >= 0)
            found = remaining(own - x, floor_of_repeats(known), law_of_noise(known))
            true = np.abs(np.expm1(own)).mean()
            inside.append(found.low <= true <= found.high)
            off.append(found.mape - true)
            off_before.append(np.abs(np.expm1(own - x)).mean() - true)
    assert np.mean(inside) >= 0.85  # of 75 tables
    assert abs(np.mean(off)) < 0.4 * np.mean(off_before)


@pytest.mark.parametrize("law", ["normal", "t3", "mixture"])
def test_single_causes_are_named(law: str) -> None:
    right, wrong, inside, tables = 0, 0, 0, 8
    causes = ("noise", "hidden", "load", "kernels", "composition", "factor", "rest")
    for cause in causes:
        for i in range(tables):
            data, share = single_cause(cause, law, np.random.default_rng([i, 3]))
            found = budget(data)
            right += found.largest == cause
            wrong += found.largest not in (cause, None)
            part = next(one for one in found.parts if one.cause == cause)
            inside += part.low <= share <= part.high
            assert part.high - part.low < 0.08
    n = len(causes) * tables
    assert right / n >= 0.9
    assert wrong / n <= 0.05
    assert inside / n >= 0.85  # 90 % nominal; the standard error is 4 points
