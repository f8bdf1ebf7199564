"""Errors on three scales, and what happens near zero."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.drivers.outcomes import outcomes_of
from errcomp.errors import InputError
from errcomp.tables import Pairs


def test_scales_agree_with_their_definitions():
    out = outcomes_of(Pairs({"predicted": [110.0, 80.0], "measured": [100.0, 100.0]}))
    assert out.ape == pytest.approx([0.1, 0.2])
    assert out.log_ape == pytest.approx(np.log([0.1, 0.2]))
    assert out.signed == pytest.approx(np.log([1.1, 0.8]))
    assert out.n_floored == 0


def test_an_exact_hit_counts_as_one_hundredth_of_the_median_error():
    predicted = [100.0, 110.0, 120.0, 130.0, 100.01]
    out = outcomes_of(Pairs({"predicted": predicted, "measured": [100.0] * 5}))
    # Positive APEs: 0.0001, 0.1, 0.2, 0.3, so the median is 0.15.
    assert out.floor == pytest.approx(0.0015)
    assert np.exp(out.log_ape) == pytest.approx([0.0015, 0.1, 0.2, 0.3, 0.0015])
    assert out.n_floored == 2
    assert out.ape[0] == 0.0


def test_a_perfect_tool_has_equal_errors_everywhere():
    out = outcomes_of(Pairs({"predicted": [5.0, 7.0], "measured": [5.0, 7.0]}))
    assert out.log_ape.tolist() == [0.0, 0.0]


def test_floor_does_not_depend_on_the_unit():
    a = outcomes_of(Pairs({"predicted": [1.0, 2.2, 3.0], "measured": [1.1, 2.0, 3.0]}))
    b = outcomes_of(Pairs({"predicted": [1e3, 2.2e3, 3e3], "measured": [1.1e3, 2e3, 3e3]}))
    assert a.log_ape == pytest.approx(b.log_ape)


def test_predictions_that_are_not_positive_are_named():
    pairs = Pairs({"predicted": [1.0, 0.0, -2.0], "measured": [1.0, 1.0, 1.0]}, source="x.csv")
    with pytest.raises(
        InputError, match=r"x.csv: predicted must be positive.* got 0.0 in rows 2, 3"
    ):
        outcomes_of(pairs)


@pytest.mark.parametrize(("predicted", "measured"), [(1e80, 1.0), (1e308, 1e-308)])
def test_an_error_that_cannot_be_squared(predicted, measured):
    with pytest.raises(InputError, match=r"more than 1e\+75 times measured, .* in row 2\."):
        outcomes_of(Pairs({"predicted": [1.0, predicted], "measured": [1.0, measured]}))
