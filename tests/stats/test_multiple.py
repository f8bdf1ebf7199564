"""Holm and Benjamini-Hochberg against statsmodels, hand calculation and their own order."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.drivers import benjamini_hochberg, holm
from errcomp.errors import InputError


@pytest.mark.extras
@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
@pytest.mark.parametrize("seed", range(5))
def test_equals_statsmodels(ours, theirs, seed):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.random(12), rng.random(6) ** 4, [0.2, 0.2, 0.0, 1.0]])
    expected = multitest.multipletests(p, method=theirs)[1]
    np.testing.assert_allclose(ours(p.tolist()), expected, rtol=1e-12, atol=0)


def test_hand_calculation_keeps_the_order_given():
    # Sorted 0.01, 0.02, 0.03, 0.5: Holm 0.04, 0.06, 0.06, 0.5; BH 0.04, 0.04, 0.04, 0.5.
    p = [0.5, 0.03, 0.01, 0.02]
    assert holm(p) == pytest.approx([0.5, 0.06, 0.04, 0.06])
    assert benjamini_hochberg(p) == pytest.approx([0.5, 0.04, 0.04, 0.04])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_empty_and_single(correct):
    assert correct([]) == []
    assert correct([0.03]) == [0.03]


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@pytest.mark.parametrize("bad", [-0.1, 1.5, float("nan")])
def test_values_that_are_no_p_values_are_named(correct, bad):
    with pytest.raises(InputError, match="must be between 0 and 1, got .* at position 2."):
        correct([0.5, bad])


def test_two_dimensional_input_is_refused():
    with pytest.raises(InputError, match="one-dimensional"):
        holm([[0.1, 0.2]])
