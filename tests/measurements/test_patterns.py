"""Values that follow from others: rounding, factors, more work in less time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.measurements import check
from errcomp.measurements.results import MeasurementCheck
from tests.measurements.laws import LAWS, clean

pytestmark = pytest.mark.core


def doubts(found: MeasurementCheck) -> dict[str, tuple[int, ...]]:
    return {one.rule: one.rows for one in found.doubtful}


def devices(factor: float, noise: float = 0.0, digits: int = 5, n: int = 12) -> dict[str, Any]:
    """Two devices that ran the same cases; the second may be computed from the first."""
    rng = np.random.default_rng(0)
    first = np.exp(rng.normal(3, 1, n))
    second = factor * first * np.exp(noise * rng.normal(size=n))
    values = [float(f"{value:.{digits}g}") for value in (*first, *second)]
    return {
        "device": ["A"] * n + ["B"] * n,
        "case": [*range(n), *range(n)],
        "ms": values,
    }


def test_values_of_another_device_times_a_factor_are_copies() -> None:
    found = check(devices(1.3), measured="ms")
    assert {one.kind for one in found.copies.sets} == {"scaled"}
    assert found.copies.sets[0].rows == (1, 13)
    # Values of fewer than four digits say nothing.
    assert found.copies.n == 20
    assert found.copies.sets[0].differs == ("device",)


@pytest.mark.parametrize(
    "table",
    [
        devices(1.3, noise=0.002),  # two devices of nearly one ratio
        devices(1.3, n=4),  # too few to say so
        devices(1.3, digits=2),  # digits that decide nothing
    ],
)
def test_ratios_that_differ_are_measured(table: dict[str, Any]) -> None:
    assert check(table, measured="ms").copies.n == 0


def test_keys_of_one_value_or_of_many_are_passed_over() -> None:
    table = devices(1.3)
    first = {"vendor": ["X"] * 24, "case": table.pop("case"), **table}
    assert check(first, measured="ms").copies.n == 20


def test_a_factor_that_most_rows_keep_is_found() -> None:
    table = devices(0.8, n=40)
    table["ms"][45] *= 1.5
    found = check(table, measured="ms")
    assert found.copies.n == 76
    for at in range(46, 50):
        table["ms"][at] = round(table["ms"][at] * (1.5 + at / 100), 4)
    assert check(table, measured="ms").copies.n == 0


def test_large_tables_are_sampled_first() -> None:
    found = check(devices(1.25, n=3_000, digits=6), measured="ms")
    assert found.copies.n > 5_800
    assert check(devices(1.25, noise=0.01, n=3_000, digits=6), measured="ms").copies.n == 0


def test_one_column_times_a_factor_is_doubtful() -> None:
    rng = np.random.default_rng(1)
    ttft = np.round(np.exp(rng.normal(5, 1, 30)), 3)
    table = {"case": range(30), "ttft": ttft, "tpot": np.round(ttft * 0.05, 4)}
    found = check(table, measured=["ttft", "tpot"])
    rule = "tpot is a measurement, not ttft times 0.05"
    assert doubts(found)[rule] == tuple(range(1, 31))
    seen = {one.rule: one.seen for one in found.doubtful}[rule]
    assert seen == f"ttft {ttft[0]:g}, tpot {np.round(ttft[0] * 0.05, 4):g}"
    table["tpot"] = table["tpot"] * np.exp(0.01 * rng.normal(size=30))
    assert rule not in doubts(check(table, measured=["ttft", "tpot"]))


def test_coarse_rounding_is_doubtful() -> None:
    values = [0.001, 0.002, 0.012, 0.3, 0.099, 0.101]
    found = check({"case": range(6), "ms": values}, measured="ms")
    assert doubts(found) == {"ms is rounded to 0.001: by up to 50 %": (1, 2, 3, 5)}
    assert found.doubtful[0].seen == "ms 0.001"
    # One long number does not make a column exact.
    more = {"case": range(206), "ms": [*values, *np.full(199, 5.0), 1 / 3]}
    assert "ms is rounded to 0.001: by up to 50 %" in doubts(check(more, measured="ms"))


def test_tiny_values_are_not_rounded() -> None:
    assert (
        doubts(check({"case": range(6), "s": [1e-11 / (i + 3) for i in range(6)]}, measured="s"))
        == {}
    )


def rising(noise: float, seed: int = 0) -> dict[str, Any]:
    """Four models at eight batches, measured twice: time grows with the batch."""
    rng = np.random.default_rng(seed)
    batch = np.tile(np.repeat(2 ** np.arange(8), 2), 4)
    values = batch**0.8 * np.exp(noise * rng.normal(size=64))
    return {
        "model": np.repeat([*"abcd"], 16),
        "batch": batch,
        "repeat": np.tile([1, 2], 32),
        "ms": values,
    }


def test_more_work_in_less_time_is_doubtful() -> None:
    table = rising(0.01)
    assert doubts(check(table, measured="ms")) == {}
    table["ms"][14:16] *= 0.4  # batch 128 of the first model
    found = check(table, measured="ms")
    (rule,) = doubts(found)
    assert rule == "more batch takes longer, unless a kernel changes"
    assert len(doubts(found)[rule]) == 1
    assert doubts(found)[rule][0] in (15, 16)
    assert found.doubtful[0].seen.endswith("at 128")
    assert "at batch 64, " in found.doubtful[0].seen


@pytest.mark.slow
def test_steps_within_noise_are_not_doubtful() -> None:
    flagged = sum(bool(doubts(check(rising(0.1, seed), measured="ms"))) for seed in range(30))
    assert flagged <= 1


def test_a_key_that_is_no_work_says_nothing() -> None:
    table = rising(0.01)
    order = np.random.default_rng(0).permutation(8)
    table["batch"] = 2 ** order[np.log2(table["batch"]).astype(int)]
    assert doubts(check(table, measured="ms")) == {}


def test_without_repeats_a_tenth_less_is_doubtful() -> None:
    batch = np.tile(2 ** np.arange(8), 4)
    model = np.repeat(np.arange(4), 8)
    table = {"model": model, "batch": batch, "ms": batch ** (0.8 + model / 37)}
    table["ms"][7] = table["ms"][6] * 0.95
    assert doubts(check(table, measured="ms")) == {}
    table["ms"][7] = table["ms"][6] * 0.85
    assert list(doubts(check(table, measured="ms")).values()) == [(8,)]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_clean_tables_have_no_patterns(law: str) -> None:
    rng = np.random.default_rng(0)
    for sd in (0.005, 0.05, 0.2):
        found = check(clean(law, sd, rng, None), measured="ms")
        assert found.doubtful == ()
        assert not [one for one in found.copies.sets if one.kind == "scaled"]
