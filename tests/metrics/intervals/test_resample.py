"""The resampling engine against loops that anybody can check."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from errcomp.metrics.intervals import _smooth as _resample
from errcomp.metrics.intervals._smooth import deviations


def residuals(n, seed=1):
    r = np.random.default_rng(seed).lognormal(size=n)
    return r - r.mean()


def ratio_and_error(x, y):
    """Ratio of sums and its standard error, written out."""
    n, d = len(x), x.sum() / y.sum()
    return d, np.sqrt(
        n / (n - 1) * sum((xi - d * yi) ** 2 for xi, yi in zip(x, y, strict=True))
    ) / (y.sum())


class TestDeviations:
    def test_mean_equals_plain_loop_over_the_same_draws(self):
        r = residuals(7)
        d, se = deviations(r, None, resamples=50, rng=np.random.default_rng(3))
        index = np.random.default_rng(3).integers(0, 7, size=(50, 7), dtype=np.uint16)
        for row, d_i, se_i in zip(index, d, se, strict=True):
            assert d_i == pytest.approx(np.mean(r[row]), rel=1e-12)
            assert se_i == pytest.approx(np.std(r[row], ddof=1) / np.sqrt(7), rel=1e-12)

    def test_ratio_equals_plain_loop_over_the_same_draws(self):
        y = np.random.default_rng(2).lognormal(size=9)
        r = residuals(9)
        d, se = deviations(r, y, resamples=40, rng=np.random.default_rng(4))
        index = np.random.default_rng(4).integers(0, 9, size=(40, 9), dtype=np.uint16)
        for row, d_i, se_i in zip(index, d, se, strict=True):
            assert (d_i, se_i) == pytest.approx(ratio_and_error(r[row], y[row]), rel=1e-12)

    def test_sizes_of_one_are_the_mean(self):
        r = residuals(30)
        plain = deviations(r, None, resamples=200, rng=np.random.default_rng(0))
        ratio = deviations(r, np.ones(30), resamples=200, rng=np.random.default_rng(0))
        np.testing.assert_allclose(plain, ratio, rtol=1e-12)

    @pytest.mark.parametrize(("n", "block"), [(50, 8), (50, 50), (70_000, 1 << 16)])
    def test_draws_spread_over_blocks_add_up(self, monkeypatch, n, block):
        monkeypatch.setattr(_resample, "BLOCK", block)
        r = residuals(n)
        d, se = deviations(r, None, resamples=400, rng=np.random.default_rng(5))
        expected = r.std() / np.sqrt(n)
        # The standard deviation of 400 draws has a standard error of 1 / sqrt(800), if normal.
        assert d.std() == pytest.approx(expected, rel=4 / np.sqrt(800))
        assert abs(d.mean()) < 4 * expected / np.sqrt(400)
        # Low by 1 / (2 n) or so, as any root of a variance.
        assert np.median(se) == pytest.approx(expected, rel=0.02)

    def test_every_unit_is_drawn_equally_often(self):
        n, resamples = 11, 20_000
        r = np.zeros(n)
        share = []
        for unit in range(n):
            r[:] = 0
            r[unit] = 1
            d, _ = deviations(r, None, resamples=resamples, rng=np.random.default_rng(6))
            share.append(d.sum() * n / (n * resamples))
        tolerance = 4 * np.sqrt((1 / n) * (1 - 1 / n) / (n * resamples))
        np.testing.assert_allclose(share, 1 / n, atol=tolerance)

    def test_memory_does_not_grow_with_n(self):
        def peak(n):
            r = residuals(n)
            tracemalloc.start()
            deviations(r, None, resamples=3, rng=np.random.default_rng(0))
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return found

        assert peak(1_000_000) < 1.2 * peak(100_000)
        assert peak(1_000_000) < 4 * 2**20
