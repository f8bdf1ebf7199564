"""The resampling engine against loops that anybody can check."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from errcomp.metrics.intervals import _resample
from errcomp.metrics.intervals._resample import deviations, nest


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
        d, se = deviations(r, None, None, resamples=50, rng=np.random.default_rng(3))
        index = np.random.default_rng(3).integers(0, 7, size=(50, 7), dtype=np.uint16)
        for row, d_i, se_i in zip(index, d, se, strict=True):
            assert d_i == pytest.approx(np.mean(r[row]), rel=1e-12)
            assert se_i == pytest.approx(np.std(r[row], ddof=1) / np.sqrt(7), rel=1e-12)

    def test_ratio_equals_plain_loop_over_the_same_draws(self):
        y = np.random.default_rng(2).lognormal(size=9)
        r = residuals(9)
        d, se = deviations(r, y, None, resamples=40, rng=np.random.default_rng(4))
        index = np.random.default_rng(4).integers(0, 9, size=(40, 9), dtype=np.uint16)
        for row, d_i, se_i in zip(index, d, se, strict=True):
            assert (d_i, se_i) == pytest.approx(ratio_and_error(r[row], y[row]), rel=1e-12)

    def test_sizes_of_one_are_the_mean(self):
        r = residuals(30)
        plain = deviations(r, None, None, resamples=200, rng=np.random.default_rng(0))
        ratio = deviations(r, np.ones(30), None, resamples=200, rng=np.random.default_rng(0))
        np.testing.assert_allclose(plain, ratio, rtol=1e-12)

    @pytest.mark.parametrize(("n", "block"), [(50, 8), (50, 50), (70_000, 1 << 16)])
    def test_draws_spread_over_blocks_add_up(self, monkeypatch, n, block):
        monkeypatch.setattr(_resample, "BLOCK", block)
        r = residuals(n)
        d, se = deviations(r, None, None, resamples=400, rng=np.random.default_rng(5))
        expected = r.std() / np.sqrt(n)
        # The standard deviation of 400 draws has a standard error of 1 / sqrt(800), if normal.
        assert d.std() == pytest.approx(expected, rel=0.2)
        assert abs(d.mean()) < 4 * expected / np.sqrt(400)
        assert np.median(se) == pytest.approx(expected, rel=0.1)

    def test_every_unit_is_drawn_equally_often(self):
        n, resamples = 11, 20_000
        r = np.zeros(n)
        share = []
        for unit in range(n):
            r[:] = 0
            r[unit] = 1
            d, _ = deviations(r, None, None, resamples=resamples, rng=np.random.default_rng(6))
            share.append(d.sum() * n / (n * resamples))
        tolerance = 4 * np.sqrt((1 / n) * (1 - 1 / n) / (n * resamples))
        np.testing.assert_allclose(share, 1 / n, atol=tolerance)

    def test_memory_does_not_grow_with_n(self):
        def peak(n):
            r = residuals(n)
            tracemalloc.start()
            deviations(r, None, None, resamples=3, rng=np.random.default_rng(0))
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return found

        assert peak(1_000_000) < 1.2 * peak(100_000)
        assert peak(1_000_000) < 4 * 2**20


class TestNest:
    def test_single_level(self):
        code, nesting = nest([np.asarray(["b", "a", "b", None, "a"], dtype=object)])
        assert code.tolist() == [1, 0, 1, 2, 0]
        assert (nesting.outer, nesting.children) == (3, ())

    def test_the_order_of_the_rows_does_not_matter(self):
        labels = np.asarray(["b", 10, 2, None, "a", 2.5], dtype=object)
        code, _ = nest([labels])
        assert code.tolist() == [4, 2, 0, 5, 3, 1]
        assert nest([labels[::-1]])[0].tolist() == code[::-1].tolist()

    def test_an_inner_label_belongs_to_its_outer_one(self):
        outer = np.asarray(["x", "x", "y", "y", "x"], dtype=object)
        inner = np.asarray([1, 2, 1, 1, 1], dtype=object)
        code, nesting = nest([outer, inner])
        assert code.tolist() == [0, 1, 2, 2, 0]
        assert nesting.outermost().tolist() == [0, 0, 1]
        first, count = nesting.children[0]
        assert (first.tolist(), count.tolist()) == ([0, 2], [2, 1])

    def test_three_levels(self):
        a = np.asarray([0, 0, 0, 1, 1], dtype=object)
        b = np.asarray([0, 0, 1, 0, 0], dtype=object)
        c = np.asarray([0, 1, 0, 0, 1], dtype=object)
        code, nesting = nest([a, b, c])
        assert sorted(code.tolist()) == [0, 1, 2, 3, 4]
        assert nesting.outermost()[code].tolist() == [0, 0, 0, 1, 1]


class TestNested:
    def test_only_outer_clusters_when_each_has_one_inner(self):
        """With one inner cluster in each outer one there is nothing to draw inside."""
        r = residuals(12)
        labels = np.arange(12).astype(object)
        _, nesting = nest([labels, labels])
        d, se = deviations(r, None, nesting, resamples=4000, rng=np.random.default_rng(1))
        assert d.std() == pytest.approx(r.std() / np.sqrt(12), rel=0.05)
        plain = deviations(r, None, None, resamples=4000, rng=np.random.default_rng(2))
        assert np.median(se) == pytest.approx(np.median(plain[1]), rel=0.05)

    def test_two_stages_have_the_variance_of_two_stages(self):
        """Var* of a mean of G outer sums: between outer means, plus within them over inner ones."""
        outer, inner = 6, 5
        values = np.random.default_rng(8).normal(size=(outer, inner))
        values += 2 * np.random.default_rng(9).normal(size=(outer, 1))
        values -= values.mean()
        labels = np.repeat(np.arange(outer), inner).astype(object)
        code, nesting = nest([labels, np.tile(np.arange(inner), outer).astype(object)])
        r = np.empty(outer * inner)
        r[code] = values.ravel()
        d, _ = deviations(r, None, nesting, resamples=40_000, rng=np.random.default_rng(3))
        expected = (values.mean(axis=1).var() + values.var(axis=1).mean() / inner) / outer
        assert d.var() == pytest.approx(expected, rel=0.03)
        assert abs(d.mean()) < 4 * np.sqrt(expected / 40_000)
