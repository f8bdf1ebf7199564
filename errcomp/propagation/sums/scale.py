"""How wide the instances of terms are, and how wide their sum is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.sums.blocks import finite, linear_variance, log_normals
from errcomp.propagation.sums.matrix import NOT_DEFINITE
from errcomp.propagation.terms import Floats, Terms

__all__ = ["Widths", "check", "first_order", "log_normal_mean", "root", "widths"]


@dataclass(frozen=True, slots=True)
class Widths:
    """What second-order figures are made of.

    Attributes
    ----------
    sd : ndarray, shape (n,)
        Standard deviation of one instance, over the sum of those of all instances.
    loading : ndarray, shape (n,)
        On the same scale: mean of one instance (log-normal) or its factor of Z (linear).
    mean : ndarray, shape (n,)
        Mean time of all instances of a term (log-ratio t: at Z = 0), in the unit of the terms.
    variance : float
        Variance of the sum on that scale: 1 if all errors are the same, 1 / N for N alike and
        independent.
    exponential : bool
        Whether the covariances are those of log-normal variables.
    """

    sd: Floats
    loading: Floats
    mean: Floats
    variance: float
    exponential: bool


def check(terms: Terms) -> None:
    """Refuse terms of which there is none."""
    if len(terms) == 0:
        raise InputError("there is no term to sum. Give at least one kernel.")


def log_normal_mean(terms: Terms) -> Floats:
    """Mean of one instance of each term with normal log-ratio errors."""
    with np.errstate(over="ignore"):
        return terms.value * np.exp(terms.bias + 0.5 * terms.spread**2)


def first_order(terms: Terms) -> tuple[Floats, Floats]:
    """Centre of one instance of each term and its factor of Z: exact but for log-ratio errors."""
    if terms.kind == "log-ratio":
        centre = terms.value * np.exp(terms.bias)
        return centre, centre * terms.spread
    if terms.kind == "relative":
        return terms.value * (1.0 + terms.bias), terms.value * terms.spread
    return terms.value + terms.bias, terms.spread


def root(variance: float, terms: Terms) -> float:
    """Square root of a variance relative to a sum of positive parts; refuse what is none."""
    if not math.isfinite(variance):
        at = int(np.argmax(terms.spread))
        raise InputError(
            f"a spread is too large for a mean and a variance in floating point, got "
            f"{terms.spread[at]:.6g} for {terms.ids[at]}. A log-ratio spread of 1 is already a "
            "factor of 2.7 either way; look at the error model of that class."
        )
    if variance < -1e-9:
        raise InputError(NOT_DEFINITE.format(variance=variance))
    return math.sqrt(max(0.0, variance))


def widths(terms: Terms) -> Widths:
    """Return the widths of terms of which at least one is uncertain.

    Log-ratio errors with Student t tails have no variance; theirs are of first order, on the scale
    of the logarithm: p exp(b) s for one instance.
    """
    check(terms)
    if not terms.spread.any():
        raise NotDefinedError(
            "all spreads are 0: the total is certain and no term has a share of its error."
        )
    if terms.kind == "log-ratio" and math.isinf(terms.df):
        return _log_normal_widths(terms)
    centre, loading = first_order(terms)
    loading = loading / finite(float(terms.count @ np.abs(loading)))
    variance = root(linear_variance(terms, loading), terms) ** 2
    return Widths(np.abs(loading), loading, terms.count * centre, variance, exponential=False)


def _log_normal_widths(terms: Terms) -> Widths:
    one = log_normal_mean(terms)
    _, relative = log_normals(terms).moments()
    relative = root(relative, terms) ** 2
    mean = terms.count * one
    sd = one * np.sqrt(np.expm1(terms.spread**2))
    scale = float(terms.count @ sd)
    variance = relative * (float(mean.sum()) / scale) ** 2
    return Widths(sd / scale, one / scale, mean, variance, exponential=True)
