"""How far groups of runs are from each other, and how rare a choice of groups is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from errcomp.calibration._conformal_checks import as_groups
from errcomp.calibration.design import Floats
from errcomp.errors import InputError

__all__ = [
    "OutsideRange",
    "against_old",
    "exact_p",
    "hierarchical_p",
    "joined",
    "log_distances",
    "nearest_of_groups",
    "ranges",
    "row_p",
    "scales",
    "smallest",
    "t_p",
]

_FEWEST_GROUPS = 3
# Up to so many choices of groups all are looked at; beyond, so many drawn ones.
_CHOICES = 999
# In units of the spread of a feature: nearer than this is "the same". It gives the logarithm of a
# distance a floor, and a range a margin.
_NEAR = 0.05
# What a value that is missing on one side only counts, in the same units.
_MISSING = 1.0
# Degrees of freedom of the approximate test.
_MOST_FREEDOM = 3.0
_IQR_OF_NORMAL = 1.349
_TINY = 1e-9
# Farther than this is no farther: its square must not overflow.
_FARTHEST = 1e6
# Differences of features looked at together, for the memory.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class OutsideRange:
    """A feature with values beyond those of the old runs.

    Attributes
    ----------
    name : str
    value : float
        The one farthest outside, in the unit of the feature.
    low, high : float
        Range of the old runs.
    rows : int
        New runs outside.
    distance : float
        From the range to `value`, in robust standard deviations of the feature.
    """

    name: str
    value: float
    low: float
    high: float
    rows: int
    distance: float


def joined(
    groups_old: ArrayLike, n_old: int, groups_new: ArrayLike | None, n_new: int, alpha: float
) -> tuple[NDArray[np.int64], int, int]:
    """Return the group of each row, old ones first from 0 to K - 1, and both numbers of groups."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, both excluded, got {alpha!r}.")
    names, old = as_groups(groups_old, "groups_old", n_old)
    if len(names) < _FEWEST_GROUPS:
        raise InputError(
            f"likeness to the old runs needs {_FEWEST_GROUPS} old groups at least, got "
            f"{len(names)}. With fewer nobody knows how far groups are from each other."
        )
    if groups_new is None:
        return np.concatenate([old, np.full(n_new, len(names))]), len(names), 1
    found, new = as_groups(groups_new, "groups_new", n_new)
    return np.concatenate([old, new + len(names)]), len(names), len(found)


def smallest(k: int, m: int) -> float:
    """Return the smallest exact p that k old and m new groups can give."""
    return 1 / min(math.comb(k + m, m), _CHOICES + 1)


def exact_p(statistic: Callable[[tuple[int, ...]], float], k: int, m: int, seed: int) -> float:
    """Return the share of choices of m groups whose statistic is as large as that of the new."""
    mine = statistic(tuple(range(k, k + m)))
    least = mine - _TINY * (1 + abs(mine))
    if math.comb(k + m, m) <= _CHOICES:
        found = [statistic(chosen) for chosen in combinations(range(k + m), m)]
        return float(np.mean(np.array(found) >= least))
    rng = np.random.default_rng(seed)
    draws = (tuple(rng.permutation(k + m)[:m].tolist()) for _ in range(_CHOICES))
    return (1 + sum(statistic(chosen) >= least for chosen in draws)) / (_CHOICES + 1)


def t_p(old: Floats, new: Floats) -> float:
    """Return p of the new groups' mean, as if it were one more group like the old ones.

    Statistics of groups of unequal sizes have heavier tails than normal ones, so the degrees of
    freedom are fewer than K - 1. Simulated false alarms decided.
    """
    spread = max(float(old.std(ddof=1)), _NEAR)
    gap = float(new.mean() - old.mean())
    freedom = min((len(old) - 1) / 2, _MOST_FREEDOM)
    return float(stats.t.sf(gap / (spread * math.sqrt(1 + 1 / len(old))), freedom))


def scales(x: Floats) -> Floats:
    """Return the robust standard deviation of each column; 0 where it is constant or unknown."""
    found = np.zeros(x.shape[1])
    for i, column in enumerate(x.T):
        known = column[~np.isnan(column)]
        if len(known):
            quarter, three = np.quantile(known, [0.25, 0.75])
            spread = (three - quarter) / _IQR_OF_NORMAL
            with np.errstate(over="ignore"):
                found[i] = spread if spread > 0 else known.std()
    return found


def nearest_of_groups(x: Floats, group: NDArray[np.int64], scale: Floats) -> Floats:
    """Return the distance of each row to the nearest row of each group, shape (n, groups)."""
    used = x[:, scale > 0]
    with np.errstate(over="ignore"):
        z = (used - np.nanmedian(used, axis=0)) / scale[scale > 0]
    z = np.clip(z, -_FARTHEST, _FARTHEST)
    unknown = np.isnan(z)
    values = np.where(unknown, 0.0, z)
    found = np.empty((len(z), int(group.max()) + 1))
    for g in range(found.shape[1]):
        here = group == g
        step = max(1, _BLOCK // (int(here.sum()) * z.shape[1]))
        for start in range(0, len(z), step):
            rows = slice(start, start + step)
            gap = (values[rows, None] - values[None, here]) ** 2
            one = unknown[rows, None] | unknown[None, here]
            both = unknown[rows, None] & unknown[None, here]
            gap = np.where(one, np.where(both, 0.0, _MISSING**2), gap)
            found[rows, g] = np.sqrt(gap.mean(axis=2).min(axis=1))
    return found


def log_distances(nearest: Sequence[Floats], chosen: tuple[int, ...]) -> Floats:
    """Return, of each chosen group, the log of its mean distance to what was not chosen.

    `nearest` has one array a group, of the distances of its rows to all groups.
    """
    rest = np.ones(len(nearest), dtype=bool)
    rest[list(chosen)] = False
    return np.log(_NEAR + np.array([nearest[g][:, rest].min(axis=1).mean() for g in chosen]))


def against_old(nearest: Sequence[Floats], k: int) -> tuple[Floats, Floats]:
    """Return log distances to old groups: of each old group to the others, and of the new ones."""
    old = [log_distances([rows[:, :k] for rows in nearest[:k]], (g,))[0] for g in range(k)]
    new = [rows[:, :k].min(axis=1).mean() for rows in nearest[k:]]
    return np.array(old), np.log(_NEAR + np.array(new))


def row_p(nearest: Floats, group: NDArray[np.int64], k: int) -> Floats:
    """Return of each new row the mass of old ones as far from the other old groups."""
    old = group < k
    inside = nearest[:, :k].copy()
    inside[old, group[old]] = np.inf
    distance = inside.min(axis=1)
    return hierarchical_p(distance[old], group[old], distance[~old])


def hierarchical_p(old: Floats, group: NDArray[np.int64], new: Floats) -> Floats:
    """Return of each new score the mass of old ones as large, one group weighing as another."""
    sizes = np.bincount(group)
    weights = 1 / sizes[group]
    larger = (old[None] >= new[:, None]) @ weights
    return np.asarray((1 + larger) / (len(sizes) + 1))


def ranges(
    old: Floats, new: Floats, scale: Floats, names: Sequence[str]
) -> tuple[tuple[OutsideRange, ...], tuple[str, ...]]:
    """Return the features with values outside the old range, worst first, and those lost.

    Up to 5 % of its spread outside does not count.
    """
    outside, missing = [], []
    for i, name in enumerate(names):
        before, now = old[:, i], new[:, i]
        if np.isnan(now).any() and not np.isnan(before).any():
            missing.append(name)
        before, now = before[~np.isnan(before)], now[~np.isnan(now)]
        if not len(before) or not len(now):
            continue
        low, high = float(before.min()), float(before.max())
        beyond = np.maximum(low - now, now - high)
        if (beyond > _NEAR * scale[i]).any():
            worst = int(beyond.argmax())
            outside.append(
                OutsideRange(
                    name=name,
                    value=float(now[worst]),
                    low=low,
                    high=high,
                    rows=int((beyond > _NEAR * scale[i]).sum()),
                    distance=float(beyond[worst] / scale[i]),
                )
            )
    return tuple(sorted(outside, key=lambda one: -one.distance)), tuple(missing)
