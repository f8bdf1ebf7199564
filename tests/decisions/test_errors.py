"""The error model: recovery of its parameters, slopes of noisy predictions, what cancels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from errcomp import Pairs
from errcomp.decisions.errors import Parts, Posterior, Sampler, chance_faster, needed_difference
from errcomp.tables.choices import Choices, choices_of
from tests.decisions.laws import choices


def sampled(found: Choices, draws: int = 400, seed: int = 0) -> Posterior:
    """Return draws of the error model of all rows."""
    nothing = np.zeros((len(found.rows), 1), dtype=bool)
    return Sampler(found.rows, Parts.of(found.rows), nothing, seed).draw(draws, keep_places=True)


def table(seed: int, **law: object) -> Choices:
    return choices_of(Pairs(choices(seed, **law)), between="device")  # type: ignore[arg-type]


def test_parts_add_up_and_are_apart() -> None:
    found = table(1)
    parts = Parts.of(found.rows)
    alternative, condition = found.rows.alternative, found.rows.condition
    own = parts.alternative[alternative] + parts.cell[parts.of_cell] + parts.rest
    left = found.rows.x - own
    of_condition = np.bincount(condition, left) / np.bincount(condition)
    assert left == pytest.approx(of_condition[condition], abs=1e-9)
    assert parts.alternative.mean() == pytest.approx(0, abs=1e-12)
    assert np.bincount(parts.of_cell, parts.rest) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_variances_are_recovered() -> None:
    """Of device 0.1, device x model 0.05 and row 0.05, on average over tables."""
    found = [
        np.sqrt(np.median(sampled(table(seed, devices=12, conditions=40)).variance[:, :, 0], 0))
        for seed in range(6)
    ]
    device, cell, row = np.mean(found, axis=0)
    assert device == pytest.approx(0.1, rel=0.25)
    assert cell == pytest.approx(0.05, rel=0.4)
    assert row == pytest.approx(0.05, rel=0.15)


@pytest.mark.slow
def test_slopes_are_below_one_where_differences_are_noise() -> None:
    """Speeds and errors of devices have the same spread: half of a difference is noise."""
    law = {"devices": 30, "conditions": 30, "true": 0.1, "noise": "prediction"}
    slope = np.mean([sampled(table(s, **law)).slope.mean(axis=(0, 2)) for s in range(4)], axis=0)
    assert 0.4 < slope[0] < 0.75
    assert slope[2] < 0.65
    true = np.mean([sampled(table(s)).slope[:, 0].mean() for s in range(4)])
    assert true == pytest.approx(1, abs=0.1)


def test_an_error_that_all_alternatives_share_cancels() -> None:
    frame = choices(3)
    other = np.exp(np.random.default_rng(0).normal(0, 1, 20))[frame["batch"].to_numpy()]
    changed = frame.with_columns(measured=frame["measured"] * other)
    both = [choices_of(Pairs(data), between="device") for data in (frame, changed)]
    one, two = (sampled(each).variance.mean(axis=0) for each in both)
    assert one == pytest.approx(two, rel=0.05)


def test_a_measured_row_stays_where_it_is() -> None:
    found = table(4)
    posterior = sampled(found)
    assert posterior.place is not None
    apart = posterior.place.mean(axis=0) - found.rows.y
    assert np.abs(apart).max() < 0.3  # without its own error
    assert apart.mean() == pytest.approx(0, abs=0.01)


def test_alternatives_that_were_left_out_are_not_seen() -> None:
    """Their measurements can be anything."""
    frame = choices(5)
    out = pl.col("device").is_in(["D00", "D01"])
    times = pl.when(out).then(100).otherwise(1)
    wild = frame.with_columns(measured=pl.col("measured") * times)
    each = []
    for data in (frame, wild):
        found = choices_of(Pairs(data), between="device")
        left = np.isin(found.rows.alternative, [0, 1])[:, None]
        each.append(Sampler(found.rows, Parts.of(found.rows), left, 0))
    # Only the start differs: the spread of all errors.
    each[1].variance = each[0].variance.copy()
    one, two = (sampler.draw(20) for sampler in each)
    assert np.array_equal(one.variance, two.variance)


def test_a_chance_is_a_normal_tail_where_all_is_known() -> None:
    draws = 2000
    known = Posterior(
        slope=np.ones((draws, 3, 1)),
        variance=np.tile(np.array([[0.01], [0.0025], [0.0025]]), (draws, 1, 1)),
        df=np.full((draws, 3, 1), 1e6),
    )
    ahead = np.array([0.0, 0.1, -0.1, 0.3])
    parts = (ahead, np.zeros(4), np.zeros(4))
    found = chance_faster(known, 0, parts, np.zeros(4), np.random.default_rng(0))
    assert found == pytest.approx(ndtr(ahead / np.sqrt(2 * 0.015)), abs=0.002)
    dearer = chance_faster(known, 0, parts, np.full(4, 0.2), np.random.default_rng(0))
    assert dearer == pytest.approx(ndtr((ahead + 0.2) / np.sqrt(2 * 0.015)), abs=0.002)
    spread = np.array([1.0, 0.1, 0.1])
    value, low, high = needed_difference(known, spread, 0.9, np.random.default_rng(0))
    assert value == pytest.approx(1.2816 * np.sqrt(2 * 0.015), rel=0.01)
    assert low <= value <= high


def test_no_difference_is_enough_where_slopes_are_nothing() -> None:
    useless = Posterior(np.zeros((50, 3, 1)), np.ones((50, 3, 1)), np.full((50, 3, 1), 10.0))
    found = needed_difference(useless, np.ones(3), 0.9, np.random.default_rng(0))
    assert found == (np.inf, np.inf, np.inf)
