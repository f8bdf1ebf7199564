r"""Are new runs like the old ones? Calibrated bands cover as often as promised only if they are.

Runs of one group (a device, a model) are alike, so only whole groups are exchangeable. The tests
compare a statistic of the new groups with the same statistic of every other choice of as many
groups.

.. math:: p = \frac{\#\{\text{choices with a statistic as large as that of the new groups}\}}
                   {\binom{K + m}{m}}

with K old and m new groups. It is exact: where the new groups are drawn like the old ones, p ≤ α
has a probability of at most α. But p cannot be below :math:`1 / \binom{K+m}{m}`, which is
1 / (K + 1) for one new group. So an alarm at 5 % needs 19 old groups, or five old and two new
ones. With fewer groups p is the tail of a Student t over groups, and the result says that it is
approximate.

Simulated alarms in per cent at alpha = 5 %: 900 sets of groups of 1 to 20 runs (12 for features);
0, 0.5 or 0.9 of the variance between groups; normal, Student t and log-normal. Features: six, one
with two values, 5 % missing; "moved" shifts three of them by 3 standard deviations in the new
groups. Errors: "2 times" and "4 times" make those of the new groups larger.

======  ==========  ======  ===============  =====  ===============  =======  =======
old     new groups  method  features: false  moved  errors: false    2 times  4 times
======  ==========  ======  ===============  =====  ===============  =======  =======
3       1           t       2                26     2                6        14
5       1           t       2                67     4                17       38
8       1           t       4                85     4                25       57
12      1           t       3                90     4                25       58
18      1           t       3                91     3                24       61
20      1           exact   5                95     5                31       63
7       2           exact   3                94     3                32       64
5       3           exact   4                95     3                42       75
======  ==========  ======  ===============  =====  ===============  =======  =======
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from errcomp.calibration.design import as_floats, as_groups
from errcomp.errors import InputError
from errcomp.stats.significance import ranks, student_sf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from errcomp.calibration.design import Floats

__all__ = ["Exchangeability", "OutsideRange", "errors_exchangeable", "features_exchangeable"]


@dataclass(frozen=True, slots=True, eq=False)
class Exchangeability:
    """Whether new runs are like the old ones.

    Attributes
    ----------
    p : float
        Small where the new groups are further away than groups like the old ones would be.
    alpha : float
        Requested rate of false alarms.
    alarm : bool
        Whether p <= alpha.
    method : str
        ``"choices of groups"`` (exact) or ``"t of groups"`` (approximate, where there are too few
        groups for an exact p as small as alpha).
    smallest_p : float
        The smallest exact p that these numbers of groups can give.
    groups_old, groups_new, n_old, n_new : int
    verdict : str
        In words.
    outside : tuple of OutsideRange
        Worst first; empty for a test of errors.
    missing : tuple of str
        Features known for every old run but not for every new one.
    row_p : ndarray, shape (n_new,)
        For each new run, the share of old runs as far from other groups (or with errors as large).
        Each group weighs the same, and the new run counts as one more. Each value is about valid
        on its own; many together are many tests.
    """

    p: float
    alpha: float
    alarm: bool
    method: str
    smallest_p: float
    groups_old: int
    groups_new: int
    n_old: int
    n_new: int
    verdict: str
    outside: tuple[OutsideRange, ...]
    missing: tuple[str, ...]
    row_p: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> old, groups = np.linspace(0, 1, 20), np.arange(20)
        >>> found = errors_exchangeable(old, groups, [9.0]).to_dict()
        >>> found["alarm"], found["method"]
        (True, 'choices of groups')
        """
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["outside"] = [asdict(feature) for feature in self.outside]
        return {**plain, "missing": list(self.missing), "row_p": self.row_p.tolist()}


def features_exchangeable(
    x_old: ArrayLike,
    groups_old: ArrayLike,
    x_new: ArrayLike,
    *,
    groups_new: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Exchangeability:
    r"""Test whether new runs are like the old ones by their features; needs no measurement.

    The statistic of a choice of groups is the mean, over its groups, of

    .. math:: \ln\Big(0.05 + \frac{1}{n_g} \sum_{i \in g} \min_{j \notin \text{choice}} d_{ij}
              \Big), \qquad
              d_{ij}^2 = \frac{1}{p} \sum_f \Big(\frac{x_{if} - x_{jf}}{s_f}\Big)^2

    the distance of its runs to the nearest run that was not chosen. s is the robust standard
    deviation of a feature over all runs (interquartile range / 1.349; the standard deviation where
    more than half of the values are equal). A value missing on one side counts as one s, on both
    sides as 0. Constant features are ignored.

    Valid for whole new groups. Misleads where new runs belong to old groups (they are too near: no
    alarm), and where many irrelevant features hide a relevant one. Blind to changes that features
    do not show (a driver, a clock): see `errors_exchangeable`.

    Parameters
    ----------
    x_old, x_new : array_like, shape (n_old, p), (n_new, p)
        Features in the same order and units; NaN where unknown. Use logarithms of
        features that span orders of magnitude.
    groups_old : array_like of names, shape (n_old,)
        Device or model.
    groups_new : array_like of names, shape (n_new,), optional
        By default all new runs are one group, the careful choice.
    names : sequence of str, optional
        Of the features, for the report.
    alpha : float
        Rate of false alarms.
    seed : int
        Used where there are too many choices of groups to check them all.

    Returns
    -------
    Exchangeability

    Raises
    ------
    InputError
        Fewer than three old groups, shapes that differ, infinite values, or no feature that varies.

    References
    ----------
    Vovk, Gammerman and Shafer (2022), "Algorithmic Learning in a Random World",
    doi:10.1007/978-3-031-06649-8. Phipson and Smyth (2010), "Permutation P-values Should Never Be
    Zero", doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x_old, groups = rng.standard_normal((60, 2)), np.repeat(np.arange(20), 3)
    >>> result = features_exchangeable(
    ...     x_old, groups, rng.standard_normal((3, 2)) + 6, names=["kernels", "batch"]
    ... )
    >>> result.alarm, round(result.p, 3), [feature.name for feature in result.outside]
    (True, 0.048, ['kernels', 'batch'])
    """
    old = as_floats(x_old, "x_old", ndim=2, missing=True)
    new = as_floats(x_new, "x_new", ndim=2, missing=True)
    if old.shape[1] != new.shape[1]:
        raise InputError(
            f"x_old and x_new must have the same features, got {old.shape[1]} and {new.shape[1]} "
            "columns."
        )
    labels = [f"feature {i}" for i in range(old.shape[1])] if names is None else list(names)
    if len(labels) != old.shape[1]:
        raise InputError(f"there must be {old.shape[1]} names, one per feature, got {len(labels)}.")
    group, k, m = joined(groups_old, len(old), groups_new, len(new), alpha)
    scale = scales(np.concatenate([old, new]))
    if not (scale > 0).any():
        raise InputError(
            "no feature varies between runs, so there is nothing to compare. Add a feature that "
            "varies."
        )
    nearest = nearest_of_groups(np.concatenate([old, new]), group, scale)

    by_group = [nearest[group == g] for g in range(k + m)]

    def statistic(chosen: tuple[int, ...]) -> float:
        return float(log_distances(by_group, chosen).mean())

    exact = smallest(k, m) <= alpha
    p = exact_p(statistic, k, m, seed) if exact else t_p(*against_old(by_group, k))
    outside, missing = ranges(old, new, scale, labels)
    worst = ", ".join(feature.name for feature in outside[:3])
    return _result(
        p,
        alpha,
        (group, k, m),
        far="the features of the new runs differ more from the old groups than the old groups "
        "differ from each other",
        near="the features of the new runs differ no more from the old groups than the old groups "
        "differ from each other",
        more=f" Features outside the range of the old runs: {worst}." if worst else "",
        outside=outside,
        missing=missing,
        row_p=row_p(nearest, group, k),
    )


def errors_exchangeable(
    scores_old: ArrayLike,
    groups_old: ArrayLike,
    scores_new: ArrayLike,
    *,
    groups_new: ArrayLike | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Exchangeability:
    r"""Test whether the errors of new, measured runs are larger than those of old ones.

    The statistic of a choice of groups is the mean, over its groups, of the mean normal score of
    the ranks of their runs among all runs:

    .. math:: \frac{1}{n_g} \sum_{i \in g} \Phi^{-1}\Big(\frac{R_i - 1/2}{n}\Big)

    Valid for whole new groups that the model has not seen, against old groups that were held out
    when they were predicted. One-sided: smaller errors raise no alarm. Misleads where errors change
    in a few runs only: the mean over a group hides them.

    Parameters
    ----------
    scores_old, scores_new : array_like, shape (n_old,), (n_new,)
        Sizes of errors, e.g. \|log-ratio - median\|, or the factor by which a band misses.
    groups_old : array_like of names, shape (n_old,)
    groups_new : array_like of names, shape (n_new,), optional
        By default all new runs are one group, the careful choice.
    alpha : float
        Rate of false alarms.
    seed : int
        Used where there are too many choices of groups to check them all.

    Returns
    -------
    Exchangeability
        `outside` and `missing` are empty.

    Raises
    ------
    InputError
        Fewer than three old groups, shapes that differ, or values that are not finite.

    References
    ----------
    Good (2005), "Permutation, Parametric and Bootstrap Tests of Hypotheses",
    doi:10.1007/b138696.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> old, groups = np.abs(rng.standard_normal(100)), np.repeat(np.arange(20), 5)
    >>> result = errors_exchangeable(old, groups, 4 * np.abs(rng.standard_normal(5)))
    >>> result.alarm, round(result.p, 3), result.method
    (True, 0.048, 'choices of groups')
    """
    old = as_floats(scores_old, "scores_old", ndim=1)
    new = as_floats(scores_new, "scores_new", ndim=1)
    group, k, m = joined(groups_old, len(old), groups_new, len(new), alpha)
    scores = np.concatenate([old, new])
    normal = ndtri((ranks(scores) - 0.5) / len(scores))
    means = np.bincount(group, normal) / np.bincount(group)
    exact = smallest(k, m) <= alpha
    if exact:
        p = exact_p(lambda chosen: float(means[list(chosen)].mean()), k, m, seed)
    else:
        p = t_p(means[:k], means[k:])
    return _result(
        p,
        alpha,
        (group, k, m),
        far="the new runs have larger errors than the runs of the old groups",
        near="the new runs have errors like the runs of the old groups",
        row_p=hierarchical_p(old, group[: len(old)], new),
    )


def _result(
    p: float,
    alpha: float,
    groups: tuple[NDArray[np.int64], int, int],
    *,
    far: str,
    near: str,
    row_p: Floats,
    more: str = "",
    outside: tuple[OutsideRange, ...] = (),
    missing: tuple[str, ...] = (),
) -> Exchangeability:
    group, k, m = groups
    exact = smallest(k, m) <= alpha
    alarm = p <= alpha
    new = f"{m} new group{'' if m == 1 else 's'}"
    method = "choices of groups" if exact else "t of groups"
    sure = "" if exact else f", approximate with only {k} old groups and {new}"
    verdict = (
        f"{far} (p = {p:.2g}{sure}): bands may not hold for the new runs."
        if alarm
        else f"{near}, as far as {k} old groups and {new} can show (p = {p:.2g}{sure})."
    )
    n_old = int((group < k).sum())
    return Exchangeability(
        p=p,
        alpha=float(alpha),
        alarm=alarm,
        method=method,
        smallest_p=smallest(k, m),
        groups_old=k,
        groups_new=m,
        n_old=n_old,
        n_new=len(group) - n_old,
        verdict=verdict[0].upper() + verdict[1:] + more,
        outside=outside,
        missing=missing,
        row_p=row_p,
    )


# Distances between groups of runs, and how rare a choice of groups is.

_FEWEST_GROUPS = 3
# Up to this number all choices of groups are checked; beyond it, this number of random ones.
_CHOICES = 999
# Below this distance, in units of the spread of a feature, runs count as equal. It is the floor of
# the logarithm of distances and the margin of ranges.
_NEAR = 0.05
# Distance of a value that is missing on one side only, in the same units.
_MISSING = 1.0
# Degrees of freedom of the approximate test.
_MOST_FREEDOM = 3.0
_IQR_OF_NORMAL = 1.349
_TINY = 1e-9
# Largest distance, so that its square does not overflow.
_FARTHEST = 1e6
# Differences of features computed at once, to limit memory.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class OutsideRange:
    """A feature with values beyond those of the old runs.

    Attributes
    ----------
    name : str
    value : float
        The value furthest outside, in the unit of the feature.
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
            f"the test needs at least {_FEWEST_GROUPS} old groups, got {len(names)}. With fewer, "
            "the distance between groups is unknown. Add groups."
        )
    if groups_new is None:
        return np.concatenate([old, np.full(n_new, len(names))]), len(names), 1
    new_names, new = as_groups(groups_new, "groups_new", n_new)
    return np.concatenate([old, new + len(names)]), len(names), len(new_names)


def smallest(k: int, m: int) -> float:
    """Return the smallest exact p that k old and m new groups can give."""
    return 1 / min(math.comb(k + m, m), _CHOICES + 1)


def exact_p(statistic: Callable[[tuple[int, ...]], float], k: int, m: int, seed: int) -> float:
    """Return the share of choices of m groups with a statistic as large as the new groups'."""
    observed = statistic(tuple(range(k, k + m)))
    least = observed - _TINY * (1 + abs(observed))
    if math.comb(k + m, m) <= _CHOICES:
        values = [statistic(chosen) for chosen in combinations(range(k + m), m)]
        return float(np.mean(np.array(values) >= least))
    rng = np.random.default_rng(seed)
    draws = (tuple(rng.permutation(k + m)[:m].tolist()) for _ in range(_CHOICES))
    return (1 + sum(statistic(chosen) >= least for chosen in draws)) / (_CHOICES + 1)


def t_p(old: Floats, new: Floats) -> float:
    """Return p of the new groups' mean, as if it were one more group like the old ones.

    Statistics of groups of unequal sizes have heavier tails than a normal, so the degrees of
    freedom are fewer than K - 1. Their number was set by simulated false alarms.
    """
    spread = max(float(old.std(ddof=1)), _NEAR)
    gap = float(new.mean() - old.mean())
    freedom = min((len(old) - 1) / 2, _MOST_FREEDOM)
    return float(student_sf(gap / (spread * math.sqrt(1 + 1 / len(old))), freedom))


def scales(x: Floats) -> Floats:
    """Return the robust standard deviation of each column; 0 where it is constant or unknown."""
    spreads = np.zeros(x.shape[1])
    for i, column in enumerate(x.T):
        known = column[~np.isnan(column)]
        if len(known):
            quarter, three = np.quantile(known, [0.25, 0.75])
            spread = (three - quarter) / _IQR_OF_NORMAL
            with np.errstate(over="ignore"):
                spreads[i] = spread if spread > 0 else known.std()
    return spreads


def nearest_of_groups(x: Floats, group: NDArray[np.int64], scale: Floats) -> Floats:
    """Return the distance of each row to the nearest row of each group, shape (n, groups)."""
    used = x[:, scale > 0]
    with np.errstate(over="ignore"):
        z = (used - np.nanmedian(used, axis=0)) / scale[scale > 0]
    z = np.clip(z, -_FARTHEST, _FARTHEST)
    unknown = np.isnan(z)
    values = np.where(unknown, 0.0, z)
    nearest = np.empty((len(z), int(group.max()) + 1))
    for g in range(nearest.shape[1]):
        here = group == g
        step = max(1, _BLOCK // (int(here.sum()) * z.shape[1]))
        for start in range(0, len(z), step):
            rows = slice(start, start + step)
            gap = (values[rows, None] - values[None, here]) ** 2
            either = unknown[rows, None] | unknown[None, here]
            both = unknown[rows, None] & unknown[None, here]
            gap = np.where(either, np.where(both, 0.0, _MISSING**2), gap)
            nearest[rows, g] = np.sqrt(gap.mean(axis=2).min(axis=1))
    return nearest


def log_distances(nearest: Sequence[Floats], chosen: tuple[int, ...]) -> Floats:
    """Return, for each chosen group, the log of its mean distance to the groups not chosen.

    `nearest` has one array per group: the distances of its rows to all groups.
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
    """Return, for each new row, the mass of old rows as far from the other old groups."""
    old = group < k
    inside = nearest[:, :k].copy()
    inside[old, group[old]] = np.inf
    distance = inside.min(axis=1)
    return hierarchical_p(distance[old], group[old], distance[~old])


def hierarchical_p(old: Floats, group: NDArray[np.int64], new: Floats) -> Floats:
    """Return, for each new score, the mass of old ones as large; groups have equal weights."""
    sizes = np.bincount(group)
    weights = 1 / sizes[group]
    larger = (old[None] >= new[:, None]) @ weights
    return np.asarray((1 + larger) / (len(sizes) + 1))


def ranges(
    old: Floats, new: Floats, scale: Floats, names: Sequence[str]
) -> tuple[tuple[OutsideRange, ...], tuple[str, ...]]:
    """Return the features with values outside the old range, worst first, and those missing.

    Values within 5 % of the feature's spread beyond the range do not count as outside.
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
    return tuple(sorted(outside, key=lambda feature: -feature.distance)), tuple(missing)
