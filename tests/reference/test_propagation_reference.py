"""Worked examples of the GUM (JCGM 100:2008) and its Supplement 1 (JCGM 101:2008), closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.propagation.graph.canonical import Canonical, MomentsAlgebra, graph_moments
from errcomp.propagation.sums import total_from_covariance, total_moments
from errcomp.propagation.terms import Level, Terms


def quantities(table: dict[str, tuple[float, float]], **more: Any) -> Terms:
    """Input quantities: best estimate and standard uncertainty."""
    names = list(table)
    value, uncertainty = np.array(list(table.values()), dtype=float).T
    return Terms(
        ids=np.array(names),
        classes=np.array(names),
        value=value,
        count=np.ones(len(names), dtype=np.int64),
        bias=np.zeros(len(names)),
        spread=uncertainty,
        kind="absolute",
        **more,
    )


class TestAdditiveModel:
    """JCGM 101, 9.2: Y = X1 + X2 + X3 + X4."""

    def test_normal_quantities(self) -> None:
        """9.2.2: standard uncertainty 2.00, 95 % interval [-3.92, 3.92]."""
        total = total_moments(quantities({f"X{i}": (0.0, 1.0) for i in range(4)}))
        assert total.sd == pytest.approx(2.0, rel=1e-14)
        assert total.band(0.95) == pytest.approx((-3.92, 3.92), abs=0.005)

    def test_rectangular_quantities(self) -> None:
        """9.2.3: the law of propagation gives 3.92 again, the distribution of the sum 3.88."""
        total = total_moments(quantities({f"X{i}": (0.0, 1.0) for i in range(4)}))
        assert total.band(0.95)[1] == pytest.approx(3.92, abs=0.005)
        x = np.random.default_rng(1).uniform(-math.sqrt(3), math.sqrt(3), (4, 10**6)).sum(0)
        assert np.quantile(np.abs(x), 0.95) == pytest.approx(3.88, abs=0.01)

    def test_one_dominant_rectangular_quantity(self) -> None:
        """9.2.4: 10.1 and [-19.9, 19.9], where the distribution of the sum has 17.0."""
        widths = dict(zip("abcd", [(0.0, 1.0)] * 3 + [(0.0, 10.0)], strict=True))
        total = total_moments(quantities(widths))
        assert total.sd == pytest.approx(10.1, abs=0.05)
        assert total.band(0.95) == pytest.approx((-19.9, 19.9), abs=0.05)


def test_ten_resistors_in_series() -> None:
    """JCGM 100, 5.2.2: calibrated against one standard 1 Ω in all, not 0.32 Ω."""
    n, u = 10, 0.1
    common = total_from_covariance(np.full(n, 1000.0), np.full((n, n), u**2))
    assert (common.mean, common.sd) == pytest.approx((10_000.0, 1.0))
    independent = total_from_covariance(np.full(n, 1000.0), u**2 * np.eye(n))
    assert independent.sd == pytest.approx(0.32, abs=0.005)
    table = {f"R{i}": (1000.0, u) for i in range(n)}
    same = (Level("standard", np.zeros(n, dtype=np.int64), 1.0),)
    assert total_moments(quantities(table, levels=same)).sd == pytest.approx(1.0)


def test_mass_calibration() -> None:
    """JCGM 101, 9.3: 0.0754 mg by simulation where the first-order law gives 0.0539 mg."""

    def inverse(low: float, high: float) -> tuple[float, float]:
        """Mean and standard deviation of 1/X for X rectangular."""
        mean = math.log(high / low) / (high - low)
        return mean, math.sqrt(1 / (low * high) - mean**2)

    table = {
        "reference": (100_000.0, 0.050),
        "difference": (1.234, 0.020),
        "air": (0.0, 0.1 / math.sqrt(3)),  # less 1.2 kg/m³
        "1/weight": inverse(7e3, 9e3),
        "1/standard": inverse(7.95e3, 8.05e3),
    }

    def deviation(on: MomentsAlgebra) -> Canonical:
        volumes = on.total([on.leaf("1/weight"), on.scaled(on.leaf("1/standard"), -1.0)])
        buoyancy = on.total([on.constant(1.0), on.product(on.leaf("air"), volumes)])
        mass = on.total([on.leaf("reference"), on.leaf("difference")])
        return on.total([on.product(mass, buoyancy), on.constant(-100_000.0)])

    found = graph_moments(quantities(table), deviation)
    assert found.mean == pytest.approx(1.2340, abs=0.0002)
    assert found.sd == pytest.approx(0.0754, abs=0.0002)
    first_order = math.hypot(0.050, 0.020)
    assert first_order == pytest.approx(0.0539, abs=0.0001)


class TestMicrowaveComparisonLoss:
    """JCGM 101, 9.4: Y = X1² + X2², x2 = 0, standard uncertainties 0.005."""

    u = 0.005

    def found(self, x1: float, rho: float) -> tuple[float, float]:
        codes = np.zeros(2, dtype=np.int64)
        terms = quantities(
            {"X1": (x1, self.u), "X2": (0.0, self.u)}, levels=(Level("both", codes, rho),)
        )
        on = MomentsAlgebra(terms)
        y = on.total([on.product(x := on.leaf(name), x) for name in ("X1", "X2")])
        return y.mean, y.sd

    @pytest.mark.parametrize(
        ("x1", "estimate", "uncertainty"),
        [(0.0, 50e-6, 50e-6), (0.010, 150e-6, 112e-6), (0.050, 2550e-6, 502e-6)],
    )
    def test_independent(self, x1: float, estimate: float, uncertainty: float) -> None:
        """9.4.2: the first-order law gives an uncertainty of 0 at x1 = 0."""
        assert self.found(x1, 0.0) == pytest.approx((estimate, uncertainty), abs=0.5e-6)

    @pytest.mark.parametrize("x1", [0.0, 0.010, 0.050])
    def test_correlated(self, x1: float) -> None:
        """9.4.3: squares of a common cause stay out of the covariance of two products (stated)."""
        rho, u = 0.9, self.u
        mean, sd = self.found(x1, rho)
        assert mean == pytest.approx(x1**2 + 2 * u**2, rel=1e-12)
        exact = math.sqrt(4 * u**2 * x1**2 + 4 * u**4 * (1 + rho**2))
        published = {0.0: 67e-6, 0.010: 121e-6, 0.050: 505e-6}[x1]
        assert exact == pytest.approx(published, abs=1e-6)
        assert sd == pytest.approx(math.sqrt(exact**2 - 4 * rho**2 * u**4), rel=1e-9)
        assert 0.74 < sd / exact < 1


def test_gauge_block() -> None:
    """JCGM 100, H.1: 50.000 838 mm, 32 nm to first order (H.1.6), 34 nm to second (H.1.7)."""
    table = {
        "standard": (50_000_623.0, 25.0),  # nm
        "difference": (215.0, 9.7),
        "expansion difference": (0.0, 0.58e-6),  # 1/K
        "temperature": (-0.1, 0.41),  # K
        "expansion": (11.5e-6, 1.2e-6),
        "temperature difference": (0.0, 0.029),
    }

    def length(on: MomentsAlgebra) -> Canonical:
        standard = on.leaf("standard")
        heating = on.total(
            [
                on.product(on.leaf("expansion difference"), on.leaf("temperature")),
                on.product(on.leaf("expansion"), on.leaf("temperature difference")),
            ]
        )
        return on.total(
            [
                standard,
                on.leaf("difference"),
                on.scaled(on.product(standard, heating), -1.0),
            ]
        )

    found = graph_moments(quantities(table), length)
    assert found.mean == pytest.approx(50_000_838, abs=0.5)
    assert found.sd == pytest.approx(34, abs=0.5)
    first_order = [25.0, 9.7, 50e6 * 0.1 * 0.58e-6, 50e6 * 11.5e-6 * 0.029]
    assert math.hypot(*first_order) == pytest.approx(32, abs=0.5)


class TestResistanceAndReactance:
    """JCGM 100, H.2: R = V cos φ / I, X = V sin φ / I, Z = V / I from correlated V, I, φ."""

    value = np.array([4.9990, 19.6610e-3, 1.04446])
    uncertainty = np.array([0.0032, 0.0095e-3, 0.00075])
    correlation = np.array([[1, -0.36, 0.86], [-0.36, 1, -0.65], [0.86, -0.65, 1]])

    @pytest.mark.parametrize(
        ("name", "published", "uncertainty"),
        [("R", 127.732, 0.071), ("X", 219.847, 0.295), ("Z", 254.260, 0.236)],
    )
    def test_uncertainty(self, name: str, published: float, uncertainty: float) -> None:
        v, i, phi = self.value
        of_phase = {"R": -math.tan(phi), "X": 1 / math.tan(phi), "Z": 0.0}[name]
        result = v / i * {"R": math.cos(phi), "X": math.sin(phi), "Z": 1.0}[name]
        assert result == pytest.approx(published, abs=0.001)
        # Logarithms: ln V - ln I + ln f(φ), each with its sensitivity.
        loading = np.array([1 / v, -1 / i, of_phase]) * self.uncertainty
        covariance = np.outer(loading, loading) * self.correlation
        relative = total_from_covariance(np.zeros(3), covariance).sd
        # 0.0015: the published inputs are rounded to two digits.
        assert relative * result == pytest.approx(uncertainty, abs=0.0015)
        # The same with a correlation matrix of terms, and as a graph with the exponential.
        table = {"V": (math.log(v), loading[0]), "I": (-math.log(i), -loading[1])}
        signs = np.array([1.0, -1.0, np.sign(of_phase) or 1.0])
        table["φ"] = (math.log(result * i / v), abs(loading[2]))
        terms = quantities(table, matrix=np.outer(signs, signs) * self.correlation)
        assert total_moments(terms).sd == pytest.approx(relative, rel=1e-9)
        found = graph_moments(
            terms, lambda on: on.apply(on.total([on.leaf(x) for x in table]), np.exp)
        )
        assert found.mean == pytest.approx(published, abs=0.001)
        assert found.sd == pytest.approx(uncertainty, abs=0.0015)


def log_normal(values: list[float], spreads: list[float], share: float, count: int = 1) -> Terms:
    n = len(values)
    names = np.array([f"t{i}" for i in range(n)])
    level = Level("all", np.zeros(n, dtype=np.int64), share)
    counts = np.full(n, count)
    return Terms(names, names, np.array(values), counts, np.zeros(n), np.array(spreads), (level,))


class TestLogNormalSums:
    def test_matched_spread_of_independent_equal_terms(self) -> None:
        """Fenton (1960): exp(σ²) - 1 of the sum is that of one term over their number."""
        for n in (2, 10, 1000):
            total = total_moments(log_normal([3.0], [0.8], 0.0, count=n))
            assert math.expm1(total.scale**2) == pytest.approx(math.expm1(0.64) / n, rel=1e-12)
            assert total.mean == pytest.approx(3 * n * math.exp(0.32), rel=1e-12)

    def test_quantiles_of_comonotonic_terms_add_up(self) -> None:
        equal = total_moments(log_normal([1.0, 2.0, 5.0], [0.4] * 3, 1.0, count=7))
        unequal = total_moments(log_normal([1.0, 2.0, 5.0], [0.2, 0.3, 0.4], 1.0))
        for level in (0.001, 0.05, 0.5, 0.95, 0.999):
            z = stats.norm.ppf(level)
            assert equal.quantile(level) == pytest.approx(56 * math.exp(0.4 * z), rel=1e-12)
            added = math.exp(0.2 * z) + 2 * math.exp(0.3 * z) + 5 * math.exp(0.4 * z)
            assert unequal.quantile(level) == pytest.approx(added, rel=0.01 if abs(z) < 2 else 0.04)

    def test_the_two_textbook_answers(self) -> None:
        """A thousand instances of 10 %: 0.32 % if independent, 10 % if the error is common."""
        independent = total_moments(log_normal([1.0], [0.1], 0.0, count=1000))
        common = total_moments(log_normal([1.0], [0.1], 1.0, count=1000))
        cv = math.sqrt(math.expm1(0.01))
        assert independent.relative_sd == pytest.approx(cv / math.sqrt(1000), rel=1e-12)
        assert common.relative_sd == pytest.approx(cv, rel=1e-12)
