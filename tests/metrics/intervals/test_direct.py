"""Shares, quantiles and tolerance statements: closed forms and exact coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.metrics.intervals import tolerance_n, tolerance_share
from errcomp.metrics.intervals.direct import (
    clopper_pearson,
    effective_n,
    lower_share,
    order_statistics,
    quantile_in_clusters,
    quantile_needs,
    wilson,
)


class TestTolerance:
    @pytest.mark.parametrize(
        ("share", "level", "n"),
        [(0.95, 0.95, 59), (0.99, 0.95, 299), (0.9, 0.95, 29), (0.99, 0.99, 459), (0.5, 0.75, 2)],
    )
    def test_published_sample_sizes(self, share, level, n):
        """Sizes of the one-sided nonparametric tolerance bound as tables print them."""
        assert tolerance_n(share, level) == n
        assert tolerance_share(n, level) >= share - 1e-12
        assert n == 1 or tolerance_share(n - 1, level) < share

    def test_exact_powers_are_not_rounded_up(self):
        assert tolerance_n(0.9, 1 - 0.81) == 2

    def test_share_below_the_maximum_is_covered_as_often_as_it_says(self):
        """The share of a uniform population below the maximum of n is the maximum itself."""
        rng = np.random.default_rng(4)
        covered = (rng.random((20_000, 16)).max(axis=1) >= tolerance_share(16)).mean()
        assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 20_000))

    @pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
    def test_level_out_of_range(self, level):
        with pytest.raises(InputError, match="level must be between 0 and 1"):
            tolerance_share(10, level)
        with pytest.raises(InputError, match="level must be between 0 and 1"):
            tolerance_n(0.9, level)

    def test_other_arguments_out_of_range(self):
        with pytest.raises(InputError, match="n must be at least 1, got 0"):
            tolerance_share(0)
        with pytest.raises(InputError, match="share must be between 0 and 1, got 1"):
            tolerance_n(1.0)


class TestShares:
    @pytest.mark.parametrize("method", [wilson, clopper_pearson])
    @pytest.mark.parametrize("n", [1, 7, 40])
    def test_contain_the_share_and_stay_between_zero_and_one(self, method, n):
        for k in range(n + 1):
            low, high = method(k, n, 0.95)
            assert 0 <= low <= k / n <= high <= 1

    @pytest.mark.parametrize("method", [wilson, clopper_pearson])
    def test_ends_are_exact(self, method):
        assert method(0, 12, 0.9)[0] == 0.0
        assert method(12, 12, 0.9)[1] == 1.0

    @pytest.mark.parametrize("method", [wilson, clopper_pearson])
    def test_mirror(self, method):
        low, high = method(3, 20, 0.95)
        assert method(17, 20, 0.95) == pytest.approx((1 - high, 1 - low))

    @pytest.mark.parametrize("n", [10, 50])
    def test_exact_coverage(self, n):
        """Clopper-Pearson never below its level; Wilson near it on average."""
        shares = np.linspace(0.05, 0.95, 361)[:, None]
        weight = stats.binom.pmf(np.arange(n + 1), n, shares)

        def coverage(method):
            bounds = np.asarray([method(k, n, 0.95) for k in range(n + 1)])
            inside = (bounds[:, 0] <= shares) & (shares <= bounds[:, 1])
            return (weight * inside).sum(axis=1)

        assert coverage(clopper_pearson).min() >= 0.95
        assert coverage(wilson).mean() == pytest.approx(0.95, abs=0.01)
        assert coverage(wilson).min() > 0.89


class TestOrderStatistics:
    def test_median_of_twenty_by_the_textbook(self):
        """n = 20, 95 %: the 6th and the 15th value cover the median with 95.86 %."""
        assert order_statistics(np.arange(1.0, 21.0), 0.5, 0.95) == (6.0, 15.0)
        assert stats.binom.cdf(14, 20, 0.5) - stats.binom.cdf(5, 20, 0.5) == pytest.approx(
            0.9586, abs=1e-4
        )

    @pytest.mark.parametrize("q", [0.1, 0.5, 0.9, 0.95])
    @pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
    def test_exact_coverage_and_no_narrower_choice(self, q, level):
        n = 400
        low, high = (int(v) for v in order_statistics(np.arange(1.0, n + 1), q, level))
        tail = (1 - level) / 2
        assert stats.binom.cdf(low - 1, n, q) <= tail < stats.binom.cdf(low, n, q)
        assert stats.binom.sf(high - 1, n, q) <= tail < stats.binom.sf(high - 2, n, q)

    @pytest.mark.parametrize("q", [0.05, 0.5, 0.9, 0.99])
    def test_needs_exactly_as_many_as_it_says(self, q):
        n = quantile_needs(q, 0.95)
        assert order_statistics(np.arange(float(n)), q, 0.95) is not None
        assert order_statistics(np.arange(float(n - 1)), q, 0.95) is None

    def test_order_of_the_values_does_not_matter(self):
        values = np.random.default_rng(0).permutation(np.arange(1.0, 21.0))
        assert order_statistics(values, 0.5, 0.95) == (6.0, 15.0)


class TestClusters:
    def test_independent_pairs_count_in_full(self):
        """Clusters of one pair: only the division by n - 1 instead of n remains."""
        inside = np.asarray([1.0, 0, 0, 1, 1, 0, 1, 1, 0, 1])
        found = effective_n(inside, np.ones(10), 0.95)
        assert found == pytest.approx(9.0)

    def test_pairs_that_agree_within_clusters_count_once(self):
        """Ten copies of each of 8 clusters know as much as 8 pairs do, less for 7 degrees."""
        inside, size = 10 * np.asarray([1.0, 0, 1, 1, 0, 1, 0, 1]), np.full(8, 10)
        widening = (stats.t.ppf(0.975, 79) / stats.t.ppf(0.975, 7)) ** 2
        assert effective_n(inside, size, 0.95) == pytest.approx(7 * widening)

    def test_all_on_one_side_counts_clusters(self):
        widening = (stats.t.ppf(0.975, 39) / stats.t.ppf(0.975, 4)) ** 2
        found = effective_n(np.full(5, 8.0), np.full(5, 8), 0.95)
        assert found == pytest.approx(5 * widening)

    def test_quantile_contains_the_sample_quantile(self):
        rng = np.random.default_rng(3)
        values, cluster = rng.lognormal(size=120), np.repeat(np.arange(12), 10)
        low, high = quantile_in_clusters(values, 0.5, cluster, 0.95)
        assert low < np.median(values) < high
        assert low in values
        assert high in values

    def test_errors_that_differ_by_rounding_are_equal(self):
        """No interval for one error of 30 % in three clusters, whatever the last bits of it."""
        measured = np.arange(1, 31) / 7
        rounded = np.abs(measured * 1.3 - measured) / measured
        assert len(set(rounded.tolist())) > 1
        for values in (rounded, np.full(30, 0.3)):
            assert quantile_in_clusters(values, 0.5, np.repeat(np.arange(3), 10), 0.95) is None

    def test_quantile_beyond_the_sample(self):
        values = np.random.default_rng(3).lognormal(size=40)
        assert quantile_in_clusters(values, 0.99, np.repeat(np.arange(5), 8), 0.95) is None


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.6069, "60 %"), (0.29, "29 %"), (0.9499, "94 %"), (0.99701, "99.7 %"), (0.99987, "99.98 %"),
     (0.0, "0 %"), (1.0, "100 %")],
)  # fmt: skip
def test_a_lower_bound_is_never_rounded_up(share: float, text: str) -> None:
    assert lower_share(share) == text
    assert float(text.removesuffix(" %")) / 100 <= share + 1e-9
