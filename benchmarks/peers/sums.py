"""Moments of sums and of a maximum: uncertainties, GTC, punpy, OpenTURNS."""

import GTC
import numpy as np
import openturns as ot
import punpy
from uncertainties import correlated_values, ufloat

PACKAGES = ("uncertainties", "GTC", "punpy", "openturns", "numpy")


def _covariance(n):
    a = np.random.default_rng(1).normal(size=(n, n))
    return np.random.default_rng(2).uniform(1, 2, n), a @ a.T / n


def _blocks(n, one):
    """Sum n terms of 20 classes; half of the variance of a term is its class's."""
    rng = np.random.default_rng(3)
    value, code = rng.uniform(1, 2, n), rng.integers(0, 20, n)
    shared = [one(0.0, 1.0) for _ in range(20)]
    out = 0.0
    for v, c in zip(value.tolist(), code.tolist(), strict=True):
        out = out + v * (1 + 0.2 * (0.5**0.5 * shared[c] + 0.5**0.5 * one(0.0, 1.0)))
    return out


def uncertainties_covariance(n):
    variables = correlated_values(*_covariance(n))

    def work():
        y = sum(variables)
        return [y.nominal_value, y.std_dev]

    return work


def uncertainties_blocks(n):
    def work():
        y = _blocks(n, ufloat)
        return [y.nominal_value, y.std_dev]

    return work


def gtc_covariance(n):
    x, s = _covariance(n)
    sd = np.sqrt(s.diagonal())
    q = [GTC.ureal(m, d, independent=False) for m, d in zip(x, sd, strict=True)]
    for i in range(n):
        for j in range(i):
            GTC.set_correlation(s[i, j] / sd[i] / sd[j], q[i], q[j])

    def work():
        y = sum(q)
        return [GTC.value(y), GTC.uncertainty(y)]

    return work


def gtc_blocks(n):
    def work():
        y = _blocks(n, GTC.ureal)
        return [GTC.value(y), GTC.uncertainty(y)]

    return work


def punpy_covariance(n):
    x, s = _covariance(n)

    def work():
        found = punpy.LPUPropagation().propagate_cov(
            lambda v: np.array([v.sum()]), [x], [s], return_corr=False
        )
        return [x.sum(), float(np.ravel(found)[0])]

    return work


def openturns_covariance(n):
    x, s = _covariance(n)
    total = ot.LinearFunction([0.0] * n, [0.0], ot.Matrix(np.ones((1, n)).tolist()))
    normal = ot.RandomVector(ot.Normal(ot.Point(x), ot.CovarianceMatrix(s.tolist())))

    def work():
        y = ot.CompositeRandomVector(total, normal)
        taylor = ot.TaylorExpansionMoments(y)
        return [taylor.getMeanFirstOrder()[0], taylor.getCovariance()[0, 0] ** 0.5]

    return work
