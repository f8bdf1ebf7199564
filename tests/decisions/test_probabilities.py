"""Probabilities by the normal law given the variances, against counted draws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.decisions.probabilities import Learned

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
