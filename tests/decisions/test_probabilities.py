"""Probabilities by the normal law given the variances, against counted draws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.decisions.probabilities import Learned, taught
from errcomp.tables import Pairs
from errcomp.tables.choices import choices_of

DRAWS = 40_000


def learned(df: float, known: tuple[bool, ...] = (False, False, True)) -> Learned:
    """Rows at ln 0, 0.1 and 0.15, each with an own error of t with df degrees of freedom."""
    posterior: Any = SimpleNamespace(
        df=np.full((DRAWS, 3, 1), df),
        variance=np.full((DRAWS, 3, 1), 0.2**2),
        place=np.tile([0.0, 0.1, 0.2], (DRAWS, 1)),
    )
    rows: Any = SimpleNamespace(y=np.array([9.0, 9.0, 0.25]), price=np.array([0.0, 0.0, -0.1]))
    absolute = np.ones(3, dtype=bool)
    return Learned(posterior, np.ones(3), np.array(known), absolute, rows, 0)


@pytest.mark.parametrize("df", [3.0, 1e6])
def test_a_chance_is_the_share_of_draws(df: float) -> None:
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 0])
    chance = learned(df).chance(first, second)
    times = learned(df).times(np.arange(3))
    share = (times[:, first] < times[:, second]).mean(axis=0)
    assert chance == pytest.approx(share, abs=4 * 0.5 / np.sqrt(DRAWS))
    counted = list(learned(df).every_chance(slice(0, 3)))
    assert np.concatenate(counted)[:2] == pytest.approx(chance[:2], abs=0.01)


def test_what_was_measured_has_no_error_of_its_own() -> None:
    found = learned(5.0, (True, True, True))
    assert found.chance(np.array([2, 0, 0]), np.array([0, 2, 1])).tolist() == [1.0, 0.0, 0.5]
    assert (found.noise(np.arange(3)) == 0).all()


def test_errors_are_learned_from_some_conditions_where_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole conditions in an order by the seed, and rows without a measured rival never."""
    device, batch = np.meshgrid([*"ABC"], np.arange(1, 9))
    choices = choices_of(
        Pairs(
            {
                "device": device.ravel().tolist(),
                "batch": batch.ravel().tolist(),
                "predicted": np.arange(1.0, 25),
                "measured": np.arange(1.0, 25),
            }
        ),
        between="device",
    )
    known = np.ones(24, dtype=bool)
    known[[1, 3, 4, 23]] = False  # one of three, two of three, and one of three
    useful = [0, 2, *range(6, 23)]
    assert taught(choices, known, 0).tolist() == useful
    monkeypatch.setattr("errcomp.decisions.probabilities._MOST_ROWS", len(useful))
    assert taught(choices, known, 0).tolist() == useful
    monkeypatch.setattr("errcomp.decisions.probabilities._MOST_ROWS", 7)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(8)
        in_order = [row for c in order for row in range(3 * c, 3 * c + 3) if row in useful]
        assert taught(choices, known, seed).tolist() == sorted(in_order[:7])
