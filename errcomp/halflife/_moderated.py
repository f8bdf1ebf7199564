"""Variances of many series with few repeats each, moderated by what is usual (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Moderated", "moderated_variances"]

#: Smallest variance, relative to the median, that counts as different when series are compared.
_LEAST = 1e-5
#: Degrees of freedom over all series from which they are compared: below, the comparison is so
#: unsure that intervals cover too little.
_ENOUGH = 12
#: Of Newton's method, which doubles the digits at each; y is below 1000 always.
_STEPS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Moderated:
    """Variances of many series, each pulled towards what is usual.

    Attributes
    ----------
    variance, df : ndarray, shape (s,)
        Moderated variances and their degrees of freedom; NaN and 0 where nothing is known.
    prior_variance, prior_df : float
        The usual variance and how many degrees of freedom it counts for: the more alike series
        are, the more. NaN and 0 where there is too little to tell.
    """

    variance: NDArray[np.float64]
    df: NDArray[np.float64]
    prior_variance: float
    prior_df: float


def moderated_variances(variance: ArrayLike, df: ArrayLike) -> Moderated:
    r"""Moderate sample variances by an empirical Bayes prior over series.

    .. math::

        s_i^2 \mid \sigma_i^2 \sim \sigma_i^2 \chi^2_{d_i} / d_i, \qquad
        1 / \sigma_i^2 \sim \chi^2_{d_0} / (d_0 s_0^2), \qquad
        \tilde s_i^2 = \frac{d_0 s_0^2 + d_i s_i^2}{d_0 + d_i}

    with :math:`e_i = \ln s_i^2 - \psi(d_i/2) + \ln(d_i/2)` of n series, their variance V and
    :math:`T = \overline{\psi'(d_i/2)}`, what of V is due to chance,

    .. math::

        \psi'(d_0 / 2) = \max(V - T, 0) + \sqrt{2 / (n - 1)}\, \max(V, T), \qquad
        \ln s_0^2 = \bar e + \psi(d_0/2) - \ln(d_0/2)

    The second term of the first equation is one standard error of V: with few series it is not
    known how alike they are, and without it t intervals of 95 % covered 90 % in places. A moderated
    variance has :math:`d_0 + d_i` degrees of freedom, but no more than all series have together; a
    series without repeats gets s₀² and d₀. With fewer than 12 degrees of freedom over all series
    nothing is moderated: each keeps its own, and those without repeats have none.

    Coverage of t intervals of 95 %, simulated: 93 to 97 % for 1 to 200 series of 1 to 20 degrees
    of freedom, whose variances are equal, or spread like an inverse χ² of 4 degrees of freedom, a
    log-normal of sd 1, or one in three nine times the others; in series without repeats 94 % or
    more. Misleads where it is known which series are noisier: moderate those by themselves.

    Parameters
    ----------
    variance : array_like, shape (s,)
        Sample variances, > 0 where df > 0.
    df : array_like, shape (s,)
        Degrees of freedom behind each, 0 where there are none.

    Returns
    -------
    Moderated

    Raises
    ------
    InputError
        Shapes differ, or a variance with degrees of freedom is not positive and finite.

    References
    ----------
    Smyth (2004), "Linear models and empirical Bayes methods for assessing differential expression
    in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3(1),
    doi:10.2202/1544-6115.1027.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = moderated_variances(rng.chisquare(3, 500) / 3, np.full(500, 3.0))
    >>> round(found.prior_variance, 1), bool(found.variance.std() < 0.2)
    (0.9, True)
    """
    from scipy.special import digamma, polygamma

    s2, d = np.asarray(variance, dtype=float), np.asarray(df, dtype=float)
    if s2.shape != d.shape or s2.ndim != 1:
        raise InputError(f"variance and df must have one shape (s,), got {s2.shape} and {d.shape}.")
    known = d > 0
    if not (np.isfinite(s2[known]) & (s2[known] > 0) & np.isfinite(d[known])).all():
        raise InputError(
            "variances and their degrees of freedom must be positive and finite where there are "
            "any. Give series without repeats df=0."
        )
    n, total = int(known.sum()), float(d[known].sum())
    if n < 2 or total < _ENOUGH:
        return Moderated(np.where(known, s2, np.nan), np.where(known, d, 0.0), np.nan, 0.0)
    # One that is zero but for rounding must not decide how much all of them differ.
    s2 = np.where(known, np.maximum(s2, _LEAST * np.median(s2[known])), 1.0)
    half = d[known] / 2
    e = np.log(s2[known]) - digamma(half) + np.log(half)
    spread, chance = float(e.var(ddof=1)), float(polygamma(1, half).mean())
    error = np.sqrt(2 / (n - 1)) * max(spread, chance)
    d0 = 2 * _trigamma_inverse(max(spread - chance, 0.0) + error)
    s02 = float(np.exp(e.mean() + digamma(d0 / 2) - np.log(d0 / 2)))
    return Moderated((d0 * s02 + d * s2) / (d0 + d), np.minimum(d0 + d, total), s02, d0)


def _trigamma_inverse(y: float) -> float:
    """Solve ψ'(x) = y for x by Newton's method on 1/ψ', which is nearly straight and convex."""
    from scipy.special import polygamma

    if y < 1e-6:
        return 1 / y
    x = 0.5 + 1 / y
    for _ in range(_STEPS):
        value = float(polygamma(1, x))
        x += value * (1 - value / y) / float(polygamma(2, x))
    return x
