"""Which columns beside the keys explain differences within equal keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.measurements.finding.hidden import explanations
from errcomp.measurements.noise import noise_of, repeats_of
from errcomp.tables.memory.measurements import Part

GROUP = np.repeat(np.arange(40), 3)
#: Twenty values, none twice in a group.
CODES = 1 + np.arange(120) % 20


@pytest.mark.parametrize(
    ("values", "effect", "explains"),
    [
        # Too many texts for an effect each, and none recurs within a group.
        ([f"t{i}" for i in range(20)], 0.3, False),
        (list(range(1, 21)), 0.3, True),
        (list(range(1, 21)), 0.0, False),
        # A logarithm needs numbers above 0.
        (list(range(20)), 0.3, False),
        ([str(i) for i in range(1, 21)], 0.3, True),
    ],
)
def test_many_values_explain_by_their_logarithm_alone(
    values: list[Any], effect: float, explains: bool
) -> None:
    noise = 0.02 * np.random.default_rng(0).normal(size=120)
    quiet = repeats_of(GROUP, noise, GROUP >= 0)
    repeats = repeats_of(GROUP, effect * np.log(CODES) + noise, GROUP >= 0)
    part = Part("note", "text", CODES, [None, *values])
    found = explanations(repeats, [part], noise_of(quiet))
    assert [one.part.name for one in found] == ["note"] * explains
    # A trend in time is found elsewhere, and an identifier explains nothing.
    for kind in ("time", "repeat", "id"):
        other = Part("note", kind, CODES, [None, *values])
        assert explanations(repeats, [other], noise_of(quiet)) == []
