"""Quantiles of values that stand for several: those of the values written out, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.calibration.kernels.pooling import median, quantile


@pytest.mark.parametrize("size", [1, 2, 7, 50])
@pytest.mark.parametrize("several", [False, True])
def test_they_are_those_of_numpy(size: int, several: bool) -> None:
    rng = np.random.default_rng(size)
    for _ in range(20):
        values = rng.standard_normal(size).round(1)
        n = rng.integers(1, 5, size) if several else np.ones(size, dtype=np.int64)
        every = np.repeat(values, n)
        assert median(values, n) == np.median(every)
        for q in (0.0, 0.05, 0.31, 0.9, 1.0):
            assert quantile(values, n, q) == np.quantile(every, q)
