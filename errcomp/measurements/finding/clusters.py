r"""Whether values that differ beyond noise form clusters, as under several settings of the system.

Sorted values are cut where this lowers the sum of squares most, again and again until no part
differs beyond noise. Each part has at least two values, as one value alone may be an outlier.
Normal values with one centre can be cut, too, so the parts are clusters only where the sum of
squares within them, over that of all values, is below that of 95 % of such samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["clusters_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Share of normal samples with one centre whose parts count as clusters.
_CHANCE = 0.05
#: Fewest values that can be cut, and samples that set the limit of the ratio.
_FEWEST, _SAMPLES = 4, 2_000
#: Of more values, or clusters, nobody could say what they are.
_MOST, _CLUSTERS = 500, 5
#: More values hardly change the limit.
_LIKE = 40


def clusters_of(values: Floats, is_noise: Callable[[Floats], bool]) -> list[Ints]:
    """Return the places of the values of each cluster, from the smallest; [] if they form none.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Logarithms of measurements.
    is_noise : callable
        Says whether some of the values differ by noise only.

    Examples
    --------
    >>> fast_and_slow = np.array([0.01, 1.00, 0.0, 0.02, 1.03, 1.01])
    >>> clusters_of(fast_and_slow, lambda some: bool(np.ptp(some) < 0.1))
    [array([0, 2, 3]), array([1, 4, 5])]
    """
    order = np.argsort(values, kind="stable")
    if not _FEWEST <= len(order) <= _MOST:
        return []
    x = values[order]
    parts = [x]
    while not all(map(is_noise, parts)):
        if len(parts) == _CLUSTERS or not _cut_once(parts):
            return []
    if len(parts) == 1 or _ratio(parts, x) >= _limit(min(len(x), _LIKE), len(parts)):
        return []
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return [np.sort(places) for places in np.split(order, ends)]


def _cut_once(parts: list[Floats]) -> bool:
    """Cut the part that lowers the sum of squares most; return whether one can be cut."""
    gains = [_best_cut(part) for part in parts]
    i = max(range(len(parts)), key=lambda i: gains[i][1])
    at, gain = gains[i]
    if gain <= 0:
        return False
    parts[i : i + 1] = [parts[i][:at], parts[i][at:]]
    return True


def _best_cut(x: Floats) -> tuple[int, float]:
    """Return the best place for a cut of sorted values, and by how much it lowers their sum."""
    n = len(x)
    if n < _FEWEST:
        return 0, 0.0
    left = np.cumsum(x - x.mean())[1 : n - 2]
    size = np.arange(2, n - 1)
    # The right side sums to minus the left one.
    between = left**2 * (1 / size + 1 / (n - size))
    best = int(np.argmax(between))
    return int(size[best]), float(between[best])


def _ratio(parts: Sequence[Floats], x: Floats) -> float:
    """Return the sum of squares within parts over that of all values."""
    within = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return within / float(((x - x.mean()) ** 2).sum())


@cache
def _limit(n: int, k: int) -> float:
    """Return the ratio that one normal sample in twenty falls below when it is cut into k parts."""
    x = np.sort(np.random.default_rng([n, k]).normal(size=(_SAMPLES, n)), axis=1)
    x -= x.mean(axis=1, keepdims=True)
    every = (x**2).sum(axis=1)
    within = every.copy()
    sums = np.concatenate([np.zeros((_SAMPLES, 1)), np.cumsum(x, axis=1)], axis=1)
    # All samples at once: of each place for a cut, the ends of its part.
    place = np.arange(n + 1)
    start, end = np.zeros(sums.shape, dtype=np.int64), np.full(sums.shape, n)
    for _ in range(k - 1):
        gains = _gains(sums, start, end)
        cut = gains.argmax(axis=1)[:, None]
        within -= np.take_along_axis(gains, cut, axis=1)[:, 0]
        inside = (start < cut) & (cut < end)
        start, end = (
            np.where(inside & (place > cut), cut, start),
            np.where(inside & (place <= cut), cut, end),
        )
    return float(np.quantile(within / every, _CHANCE))


def _gains(sums: Floats, start: Ints, end: Ints) -> Floats:
    """Return by how much a cut at each place lowers the sum of squares; 0 where none can be.

    As `_best_cut` does, for many samples.

    Parameters
    ----------
    sums : ndarray, shape (samples, n + 1)
        Of the values before each place.
    start, end : ndarray of int, shape (samples, n + 1)
        Ends of the part that each place is in.
    """
    place = np.arange(sums.shape[1])
    left, right = place - start, end - place
    first, last = (np.take_along_axis(sums, ends, axis=1) for ends in (start, end))
    own = sums - first - left * (last - first) / np.maximum(left + right, 1)
    between = own**2 * (1 / np.maximum(left, 1) + 1 / np.maximum(right, 1))
    return np.where((left >= 2) & (right >= 2), between, 0.0)
