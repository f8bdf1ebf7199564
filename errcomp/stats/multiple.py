"""Corrections for asking many questions of the same table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from errcomp.errors import InputError

__all__ = ["benjamini_hochberg", "holm"]


def _checked(p_values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise InputError(f"p values must be one-dimensional, got shape {p.shape}")
    bad = ~((p >= 0) & (p <= 1))
    if bad.any():
        raise InputError(
            f"p values must lie in [0, 1], got {p[bad][0]} at position {np.flatnonzero(bad)[0] + 1}"
        )
    return p


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Holm's step-down adjusted p values: bound the chance of any false alarm in the family.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\{1, (m - j + 1)\, p_{(j)}\}

    Definition: reject where the adjusted value is at most alpha; then the probability of one or
    more false rejections is at most alpha, whatever the dependence between the tests. Misleads
    only by omission: tests left out of the family are not paid for.

    Parameters
    ----------
    p_values : sequence of float, shape (m,)
        In any order, each in [0, 1].

    Returns
    -------
    list of float
        Adjusted p values in the order given.

    Raises
    ------
    InputError
        A value is not in [0, 1].

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6, 65-70.

    Examples
    --------
    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    r"""Benjamini-Hochberg adjusted p values: bound the expected share of false alarms.

    .. math:: \tilde p_{(i)} = \min_{j \ge i} \min\{1, m\, p_{(j)} / j\}

    Definition: reject where the adjusted value is at most alpha; then the expected share of false
    rejections among the rejections is at most alpha for independent or positively dependent tests.
    A weaker promise than :func:`holm`: some of what it finds is expected to be false.

    Parameters
    ----------
    p_values : sequence of float, shape (m,)
        In any order, each in [0, 1].

    Returns
    -------
    list of float
        Adjusted p values in the order given.

    Raises
    ------
    InputError
        A value is not in [0, 1].

    References
    ----------
    Benjamini and Hochberg (1995), "Controlling the false discovery rate", Journal of the Royal
    Statistical Society B 57, 289-300.

    Examples
    --------
    >>> [round(p, 4) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    p = _checked(p_values)
    m = len(p)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * m / np.arange(1, m + 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return [float(value) for value in adjusted]
