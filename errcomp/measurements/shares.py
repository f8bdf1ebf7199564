r"""How much of a MAPE each cause adds: Shapley values of its parts.

The logarithm of each error is a sum of parts, :math:`\log(p_i / m_i) = \sum_j c_{ij}`. With only
the parts of a set S, the MAPE would be :math:`v(S) = \overline{|e^{\sum_{j \in S} c_{ij}} - 1|}`;
without any it is 0. The share of a part is the mean of what it adds to v over all orders in which
parts are put together (Shapley 1953): shares add up to the MAPE, and parts that offset each other
have small or negative ones.

The noise of measurements is a part of which only the law is known. It stands in the part that
holds the measurement (the holder): without noise, the holder is narrowed so that its variance is
smaller by that within repeats; noise without the holder is averaged over, as normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOISE", "shapley"]

Floats = NDArray[np.float64]

NOISE = "noise"


def shapley(
    parts: Mapping[str, Floats], holder: str, sd: float, variance: float | None = None
) -> dict[str, float]:
    """Return the share of each part in the MAPE, and that of noise where there is any.

    Parameters
    ----------
    parts : mapping of str to ndarray, shape (n,)
        Their sum is the logarithm of each error.
    holder : str
        The part that holds the measurement.
    sd : float
        Standard deviation of the noise of (the logarithm of) a measurement.
    variance : float, optional
        Its variance in these rows, by default ``sd**2``: of noise with heavy tails, it is larger
        than that of normal noise with the same mean absolute deviation.

    Examples
    --------
    >>> both = shapley({"a": np.array([0.1, 0.1]), "b": np.array([0.1, -0.1])}, "b", 0.0)
    >>> {name: round(share, 3) for name, share in both.items()}
    {'a': 0.058, 'b': 0.053}
    """
    names = [*parts, *([NOISE] if sd > 0 else [])]
    value = _values(parts, holder, sd, sd**2 if variance is None else variance)
    n = len(names)
    known = {members: value(members) for k in range(n + 1) for members in combinations(names, k)}
    shares = dict.fromkeys(names, 0.0)
    for members, without in known.items():
        k = len(members)
        weight = math.factorial(k) * math.factorial(n - k - 1) / math.factorial(n) if k < n else 0
        for name in names:
            if name not in members:
                joined = tuple(one for one in names if one in members or one == name)
                shares[name] += weight * (known[joined] - without)
    return shares


def _values(
    parts: Mapping[str, Floats], holder: str, sd: float, noise: float
) -> Callable[[tuple[str, ...]], float]:
    """Return v(S)."""
    held = parts[holder]
    variance = float(held.var())
    narrow = math.sqrt(max(0.0, 1 - noise / variance)) if variance > 0 else 1.0
    narrowed = held.mean() + narrow * (held - held.mean())

    def value(members: tuple[str, ...]) -> float:
        total = np.zeros(len(held))
        for name in members:
            if name != NOISE:
                noiseless = name == holder and NOISE not in members
                total = total + (narrowed if noiseless else parts[name])
        if NOISE in members and holder not in members:
            return float(_with_noise(total, sd).mean())
        return float(np.abs(np.expm1(total)).mean())

    return value


def _with_noise(logs: Floats, sd: float) -> Floats:
    r"""Return :math:`E|e^{c + \sigma z} - 1|` for normal z."""
    from scipy.special import ndtr

    above = np.exp(logs + sd**2 / 2) * (2 * ndtr((logs + sd**2) / sd) - 1)
    return np.asarray(above - (2 * ndtr(logs / sd) - 1))
