"""Intervals of means: against closed forms and against loops written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from errcomp.metrics import figure
from errcomp.metrics.intervals import _smooth, estimate
from errcomp.metrics.intervals._smooth import SMOOTH, Smooth, Spread, crossed, deviations, smooth
from errcomp.metrics.intervals.dependence import Dependence, dependence
from errcomp.metrics.pointwise import checked


def pairs(n, sigma=0.4, seed=1, spread=1.0):
    rng = np.random.default_rng(seed)
    measured = np.exp(spread * rng.normal(size=n))
    return {"predicted": measured * np.exp(sigma * rng.normal(size=n)), "measured": measured}


def prepare(name, data, clusters=None):
    point = figure(name).function(**data)
    drawn = Dependence() if clusters is None else dependence(clusters)
    return smooth(SMOOTH[name], point, checked(**data, weights=None, zeros="raise"), drawn)


def draw(form, resamples=999, seed=0):
    rng = np.random.default_rng(seed)
    return deviations(form.r, form.y, resamples=resamples, rng=rng)


class TestLogT:
    def test_geometric_mean_ratio_is_student_on_the_logarithms(self):
        data = pairs(12)
        e = estimate("gm_ratio", **data, method="log-t")
        logs = np.log(data["predicted"] / data["measured"])
        expected = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        assert (e.low, e.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))

    def test_mape_is_the_formula_in_the_docstring(self):
        data = pairs(12)
        ape = np.abs(data["predicted"] / data["measured"] - 1)
        s = ape.std(ddof=1) / np.sqrt(12) / ape.mean()
        t = stats.t.ppf(0.95, 11)
        e = estimate("mape", **data, method="log-t", level=0.9)
        assert e.low == pytest.approx(ape.mean() * math.exp(-t * s))
        tail = (stats.norm.ppf(0.95) / stats.norm.ppf(0.975)) ** 2
        more = (1 + tail * 8 / 5) * s**2 * (t**2 + 2) / 6
        assert more < 0.6 * t * s
        assert e.high == pytest.approx(ape.mean() * math.exp(t * s + more))

    def test_the_allowance_for_skewness_is_bounded(self):
        s, t, freedom = np.array([0.01, 5.0, 5.0]), 2.0, np.array([99.0, 99.0, 2.0])
        found = _smooth.allowance(s, t, freedom, clustered=False)
        assert found == pytest.approx([16 * 1e-4, 0.6 * 10, 0.4 * 10])
        more = _smooth.allowance(s, t, freedom, clustered=True)
        assert more == pytest.approx([16 * 1e-4, 0.6 * 10, 0.4 * 10])

    def test_wape_uses_the_ratio_estimator_and_the_effective_number_of_pairs(self):
        data = pairs(15)
        m, off = data["measured"], np.abs(data["predicted"] - data["measured"])
        wape = off.sum() / m.sum()
        se = np.sqrt(15 / 14 * ((off - wape * m) ** 2).sum()) / m.sum()
        t = special.stdtrit(m.sum() ** 2 / (m**2).sum() - 1, 0.975)
        assert estimate("wape", **data, method="log-t").low == pytest.approx(
            wape * math.exp(-t * se / wape)
        )

    def test_clusters_that_agree_leave_the_interval_of_single_pairs(self):
        errors = np.tile([0.1, 0.2, 0.3, 0.4], 5)
        data = {"predicted": 1 + errors, "measured": np.ones(20)}
        label = np.repeat(np.arange(5), 4)
        clustered, alone = estimate("mape", **data, clusters=label), estimate("mape", **data)
        assert (clustered.low, clustered.high) == (alone.low, alone.high)


def cr2(x, label, names):
    """CR2 variance of a mean and its Bell-McCaffrey degrees of freedom, by matrices."""
    n = len(x)
    design = np.ones((n, 1))
    hat = design @ design.T / n
    residual, rows = x - x.mean(), []
    for name in names:
        own = label == name
        inner = np.eye(own.sum()) - hat[np.ix_(own, own)]
        values, vectors = np.linalg.eigh(inner)
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        g = (np.eye(n) - hat)[own].T @ root @ design[own] / n
        rows.append((float(design[own, 0] @ root @ residual[own]) / n, g[:, 0]))
    variance = sum(score**2 for score, _ in rows)
    g = np.stack([one for _, one in rows])
    weights = np.linalg.eigvalsh(g @ g.T)
    return variance, weights.sum() ** 2 / (weights**2).sum()


class TestClusters:
    @pytest.mark.parametrize("sizes", [(2, 3, 4, 5, 6), (4, 4, 1, 1, 1), (5, 5, 5)])
    def test_one_key_is_cr2_with_bell_mccaffrey_degrees_of_freedom(self, sizes):
        data, label = pairs(sum(sizes)), np.repeat(np.arange(len(sizes)), sizes)
        ape = np.abs(data["predicted"] / data["measured"] - 1)
        variance, freedom = cr2(ape, label, range(len(sizes)))
        found = prepare("mape", data, {"model": label}).spreads[1]
        assert found.error == pytest.approx(np.sqrt(variance) / ape.mean())
        assert found.freedom == pytest.approx(freedom)

    def test_equal_clusters_are_student_on_their_means(self):
        data, label = pairs(24), np.repeat(np.arange(6), 4)
        ape = np.abs(data["predicted"] / data["measured"] - 1)
        means = ape.reshape(6, 4).mean(axis=1)
        found = prepare("mape", data, {"model": label}).spreads[1]
        assert found.error == pytest.approx(means.std(ddof=1) / np.sqrt(6) / ape.mean())
        assert found.freedom == pytest.approx(5)

    def test_two_keys_that_cross(self):
        """Cameron, Gelbach and Miller: both keys, less the cells, each with its correction."""
        data = pairs(24)
        keys = {"model": np.repeat(np.arange(6), 4), "device": np.tile(np.arange(4), 6)}
        ape = np.abs(data["predicted"] / data["measured"] - 1)
        (a, df_a), (b, df_b) = (cr2(ape, v, range(v.max() + 1)) for v in keys.values())
        cells = ((ape - ape.mean()) ** 2).sum() / 24**2
        found = prepare("mape", data, keys).spreads[1]
        assert found.error * ape.mean() == pytest.approx(np.sqrt(max(a + b - cells, a, b)))
        assert found.freedom == pytest.approx((a + b) ** 2 / (a**2 / df_a + b**2 / df_b))

    def test_squared_errors_of_two_keys_add_up_but_for_what_is_of_both(self):
        first, second = Spread(0.0, 2.0, True), Spread(0.0, 3.0, True)
        assert crossed(first, second, 0.0) is first
        both = crossed(Spread(0.3, 2.0, True), Spread(0.4, 5.0, True), 0.05)
        freedom = 0.25**2 / (0.09**2 / 2 + 0.16**2 / 5)
        assert both == pytest.approx((math.sqrt(0.2), freedom, True))
        # One key alone has its own degrees of freedom.
        assert crossed(Spread(0.2, 2.0, False), second, 0.0) == Spread(0.2, 2.0, True)
        assert crossed(first, Spread(0.2, 3.0, False), 0.01) == pytest.approx((0.2, 3.0, True))

    def test_weighted_figures_weigh_clusters_by_size(self):
        data, label = pairs(20), np.repeat(np.arange(5), 4)
        m, off = data["measured"], np.abs(data["predicted"] - data["measured"])
        wape = off.sum() / m.sum()
        r = np.bincount(label, off - wape * m)
        share = np.bincount(label, m) / m.sum()
        found = prepare("wape", data, {"model": label}).spreads[1]
        expected = np.sqrt((r**2 / (1 - share)).sum()) / m.sum() / wape
        assert found.error == pytest.approx(expected)


class TestDeltaMethod:
    @pytest.mark.parametrize("root", [1.0, 0.5])
    def test_a_deviation_whose_exponential_overflows_is_infinite(self, root):
        figure = Smooth(0.25, -1.0, root, True, (), 9.0, np.zeros(3), None)
        assert figure.value(700 / root) == pytest.approx(1.25 * math.exp(700.0), rel=1e-12)
        assert figure.value(700.5 / root) == math.inf
        assert figure.value(-800 / root) == -1.0

    @pytest.mark.parametrize("name", list(SMOOTH))
    def test_standard_error_is_that_of_the_jackknife(self, name):
        """Two ways to a standard error that agree to order 1/n."""
        data = pairs(400, sigma=0.3, spread=0.3)
        form = prepare(name, data)
        keep = ~np.eye(400, dtype=bool)
        values = [
            figure(name).function(**{k: v[keep[i]] for k, v in data.items()}) for i in range(400)
        ]
        jackknife = np.sqrt(399 * np.var(values))
        slope = (form.point - form.offset) * form.root
        assert form.standard_error() * slope == pytest.approx(jackknife, rel=0.03)

    @pytest.mark.parametrize("name", list(SMOOTH))
    def test_no_deviation_is_the_point(self, name):
        form = prepare(name, pairs(30))
        assert form.value(0.0) == pytest.approx(form.point, rel=1e-14)
        assert abs(form.r.sum()) < 1e-12 * np.abs(form.r).sum()

    @pytest.mark.parametrize("name", list(SMOOTH))
    def test_value_of_a_resample_is_its_figure(self, name):
        """D of a resample leads back to the figure of the resampled pairs."""
        data = pairs(8)
        form = prepare(name, data)
        d, _ = draw(form, resamples=20, seed=5)
        index = np.random.default_rng(5).integers(0, 8, size=(20, 8), dtype=np.uint16)
        for row, d_i in zip(index, d, strict=True):
            expected = figure(name).function(**{k: v[row] for k, v in data.items()})
            deviation = math.log1p(d_i) if form.log else d_i
            assert form.value(deviation) == pytest.approx(expected, rel=1e-10)


class TestBootstrapT:
    def plain(self, data, name, resamples, seed):
        """Resample, recompute the figure's logarithm and its delta-method error, sort."""
        index = np.random.default_rng(seed).integers(
            0, len(data["measured"]), size=(resamples, len(data["measured"])), dtype=np.uint16
        )

        def log_and_error(p, m):
            x = np.abs(p - m) if name == "wape" else np.abs(p - m) / m
            y = m if name == "wape" else np.ones_like(m)
            if name == "rmsle":
                x = np.log(p / m) ** 2
            n, ratio = len(x), x.sum() / y.sum()
            error = np.sqrt(n / (n - 1) * ((x - ratio * y) ** 2).sum()) / y.sum()
            power = 0.5 if name == "rmsle" else 1.0
            return power * np.log(ratio), power * error / ratio

        center, error = log_and_error(data["predicted"], data["measured"])
        t = []
        for row in index:
            value, se = log_and_error(data["predicted"][row], data["measured"][row])
            t.append((value - center) / se)
        t.sort()
        k = round((resamples + 1) * 0.025)
        return math.exp(center - error * t[-k]), math.exp(center - error * t[k - 1])

    @pytest.mark.parametrize("name", ["mape", "wape", "rmsle"])
    def test_equals_a_plain_implementation(self, name):
        data = pairs(14)
        e = estimate(name, **data, method="bootstrap-t", resamples=999, seed=7)
        assert (e.low, e.high) == pytest.approx(self.plain(data, name, 999, 7), rel=1e-9)
        assert e.seed == 7

    def test_resamples_without_spread_make_it_unbounded(self):
        form = prepare("mape", pairs(3))
        low, high = _smooth.bootstrap_t(form, 0.95, draw(form))
        assert math.isinf(low) or math.isinf(high)

    def test_rounding_is_not_spread(self):
        """Resamples of a single value must not get a huge but finite t."""
        measured = np.full(12, 10.0)
        predicted = measured * (1 + np.asarray([0.1] * 11 + [0.3]))
        form = prepare("mape", {"predicted": predicted, "measured": measured})
        low, high = _smooth.bootstrap_t(form, 0.95, draw(form))
        assert math.isfinite(low)
        assert math.isinf(high)


class TestQuantiles:
    def test_percentile_is_the_quantile_of_the_resampled_figures(self):
        data = pairs(25)
        form = prepare("rmspe", data)
        d, _ = draw(form, seed=2)
        expected = form.point * np.sqrt(1 + np.quantile(d, [0.025, 0.975]))
        e = estimate("rmspe", **data, method="percentile", resamples=999, seed=2)
        assert (e.low, e.high) == pytest.approx(tuple(expected))

    def test_bca_without_a_resample_on_one_side_is_unbounded(self):
        form = prepare("mape", pairs(12))
        d = np.linspace(0.01, 0.1, 99)
        assert _smooth.bca(form, 0.95, (d, d)) == (-math.inf, math.inf)

    def test_bca_counts_half_of_the_resamples_that_equal_the_sample(self):
        form = prepare("mape", pairs(12))
        rounding = np.array([-2e-16, 1e-17, 3e-16, 1e-16, 5e-17])
        d = np.concatenate([np.linspace(-0.2, -0.01, 50), rounding, np.linspace(0.01, 0.4, 60)])
        exactly = np.where(np.abs(d) < 1e-12, 0.0, d)
        assert _smooth.bca(form, 0.9, (d, d)) == _smooth.bca(form, 0.9, (exactly, exactly))

    @pytest.mark.parametrize("seed", range(5))
    def test_bca_does_not_depend_on_the_order_of_rows(self, seed):
        data = pairs(20, 0.5, seed)
        rng = np.random.default_rng(seed)
        order = np.concatenate([5 * k + rng.permutation(5) for k in range(4)])
        ends = [
            (e.low, e.high)
            for rows in (np.arange(20), order)
            for e in [
                estimate(
                    "mape",
                    **{name: values[rows] for name, values in data.items()},
                    clusters=np.repeat(["a", "b", "c", "d"], 5)[rows],
                    method="bca",
                    resamples=499,
                )
            ]
        ]
        assert ends[0] == pytest.approx(ends[1], rel=1e-9)
