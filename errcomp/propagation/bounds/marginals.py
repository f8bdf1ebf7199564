r"""The law of each term alone, which is all that bounds for any dependence use.

Every term is an increasing function of a standard variable T (normal or Student t): exp(c + s T) or
c + s T. A lower bound for a sum is an upper bound for the sum of the negatives, so a set of
marginals can be turned round (``sign`` −1); T is symmetric, so −X is an increasing function of −T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.propagation.terms import Floats, Terms

__all__ = ["Marginals", "standard_isf", "standard_sf"]


_SMALL = 1e-6  # spread of a logarithm
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 1e100  # of T: its square is a number


def standard_isf(probability: Floats, df: float) -> Floats:
    """Value that T exceeds with this probability; T is normal for infinite degrees of freedom."""
    p = np.asarray(probability, dtype=float)
    return np.asarray(-special.ndtri(p) if math.isinf(df) else -special.stdtrit(df, p))


def standard_sf(t: Floats, df: float) -> Floats:
    """Probability that T exceeds t."""
    return np.asarray(special.ndtr(-t) if math.isinf(df) else special.stdtr(df, -t))


def _standard_stop_loss(t: Floats, df: float) -> Floats:
    """E (T − t)⁺, for df > 1."""
    t = np.minimum(t, _FAR)
    if math.isinf(df):
        weighted = np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    else:
        scale = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * math.log(df * np.pi)
        # (df + t²) f(t) / (df − 1)
        weighted = df / (df - 1) * np.exp(scale - (df - 1) / 2 * np.log1p(t * t / df))
    return np.asarray(np.maximum(weighted - t * standard_sf(t, df), 0.0))


@dataclass(frozen=True, slots=True)
class Marginals:
    """Different laws, how often each occurs, and the sum of what is certain.

    Attributes
    ----------
    center, spread : ndarray, shape (m,)
        c and s; s > 0.
    count : ndarray, shape (m,)
        Copies of each law.
    offset : float
        Sum of all terms without spread.
    log : bool
        exp(c + s T), else c + s T.
    df : float
        Degrees of freedom of T.
    sign : int
        1, or −1 for the negatives.
    """

    center: Floats
    spread: Floats
    count: Floats
    offset: float
    log: bool
    df: float
    sign: int = 1

    @classmethod
    def of(cls, terms: Terms) -> Marginals:
        """Collect the laws of the terms; equal ones become one law with more copies."""
        log = terms.kind == "log-ratio"
        center, spread = locations(terms)
        laws, at = np.unique(np.column_stack([center, spread]), axis=0, return_inverse=True)
        count = np.bincount(at.ravel(), weights=terms.count, minlength=len(laws))
        sure = laws[:, 1] == 0
        with np.errstate(over="ignore"):
            fixed = np.exp(laws[sure, 0]) if log else laws[sure, 0]
            offset = float(count[sure] @ fixed)
        rest = ~sure
        return cls(laws[rest, 0], laws[rest, 1], count[rest], offset, log, terms.df)

    def __len__(self) -> int:
        return len(self.center)

    @property
    def copies(self) -> float:
        """Number of uncertain summands."""
        return float(self.count.sum())

    @property
    def tail_is_finite(self) -> bool:
        """Whether the mean of the upper tail has a closed form here, and is finite."""
        return math.isinf(self.df) or (not self.log and self.df > 1)

    def negated(self) -> Marginals:
        """Return the laws of the negatives."""
        return replace(self, offset=-self.offset, sign=-self.sign)

    def quantile(self, t: Floats) -> Floats:
        """Value of each term where T (of the sign's direction) is t."""
        x = self.center + self.spread * (self.sign * t)
        if self.log:
            with np.errstate(over="ignore"):
                x = np.exp(x)
        return np.asarray(self.sign * x)

    def shift(self, t: Floats, d: Floats) -> Floats:
        """T at which each term is larger by d ≥ 0 than at t; infinity beyond its largest value."""
        if not self.log:
            return np.asarray(t + d / self.spread)
        with np.errstate(over="ignore", divide="ignore"):
            ratio = self.sign * d / np.exp(self.center + self.sign * self.spread * t)
            return np.asarray(t + self.sign * np.log1p(np.maximum(ratio, -1.0)) / self.spread)

    def stop_loss(self, t: Floats) -> Floats:
        """E (X − x)⁺ of each term, x its value at t; only where ``tail_is_finite``."""
        first_order = self.spread * _standard_stop_loss(t, self.df)
        if not self.log:
            return first_order
        s = self.sign * self.spread
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.exp(self.center + s * t)
            tail = np.exp(s * s / 2 - s * t + special.log_ndtr(s - t)) - special.ndtr(-t)
            # With small spreads the two cancel, and exp is linear to the same precision.
            out = x * np.where(self.spread < _SMALL, first_order, self.sign * tail)
        return np.asarray(np.where(np.isposinf(t), 0.0, np.maximum(out, 0.0)))

    def excess(self, t: Floats, d: Floats) -> Floats:
        """E min((X − x)⁺, d) of each term, x its value at t, shape (m,)."""
        end = self.shift(t, d)
        if self.tail_is_finite:
            return self.stop_loss(t) - self.stop_loss(end)
        rate = self.sign * self.spread if self.log else np.zeros(len(self))
        if self.sign < 0:  # beyond, what is left of a time is nothing
            end = np.minimum(end, t + 40 / np.maximum(-rate, 1e-300))
        # ∫ P(T > τ) dx(τ) with τ = sinh v, which makes a tail of any weight short.
        half = (np.arcsinh(end) - np.arcsinh(t)) / 2
        v = np.arcsinh(t)[..., None] + half[..., None] * (1 + _NODES)
        tau = np.sinh(v)
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.exp((self.log * self.center)[:, None] + rate[:, None] * tau)
            integral = (standard_sf(tau, self.df) * growth * np.cosh(v)) @ _WEIGHTS
            return np.asarray(half * self.spread * integral)

    def sf(self, x: float) -> Floats:
        """Probability that each term exceeds x."""
        v = np.asarray(self.sign * x)
        if self.log:
            with np.errstate(divide="ignore"):
                v = np.log(np.maximum(v, 0.0))
        return standard_sf(self.sign * (v - self.center) / self.spread, self.df)

    def take(self, index: NDArray[np.integer[Any]]) -> Marginals:
        """Return some of the laws, without what is certain."""
        return replace(
            self,
            center=self.center[index],
            spread=self.spread[index],
            count=self.count[index],
            offset=0.0,
        )


def locations(terms: Terms) -> tuple[Floats, Floats]:
    """Location and scale of each term: of its logarithm for log-ratio errors, else of itself."""
    if terms.kind == "log-ratio":
        return np.log(terms.value) + terms.bias, np.asarray(terms.spread, dtype=float)
    if terms.kind == "relative":
        return terms.value * (1.0 + terms.bias), np.abs(terms.value) * terms.spread
    return terms.value + terms.bias, np.asarray(terms.spread, dtype=float)
