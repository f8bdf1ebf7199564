"""Rows with equal keys that differ by more than noise, and the columns that explain it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.finding.clusters import clusters_of
from errcomp.measurements.noise import MOST_LOG, Noise, Repeats, noise_of, repeats_of
from errcomp.stats.permutation import shuffles, tail, without_means
from errcomp.stats.significance import benjamini_hochberg
from errcomp.tables.memory.measurements import Measurements, Part, numbered

__all__ = ["Explanation", "Group", "Hidden", "find_hidden"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Share of false ones among the groups that are reported.
_FALSE = 0.05
#: The same for a law that is fitted without so large a share of the groups.
_FALSE_OF_MANY, _MANY = 0.005, 0.1
#: A group below this is reported where they are more than chance gives, and the level of that test.
_SURE, _EXCESS = 0.005, 0.01
#: A column explains where chance would do as well in fewer cases than this, over all columns.
_CHANCE = 0.01
#: A group is explained by a column where this share of its variance is between its values.
_EXPLAINED = 0.3
#: A group in which an explaining column differs is reported below this.
_LEAST = 0.1
#: Variance of a group, relative to that of noise, beyond any noise: one row of four that is 28
#: standard deviations off.
_FAR = 200.0
#: Least share of the variance that a column must explain.
_WORTH = 0.05
#: Groups that show the noise which remains once columns explain.
_FEW = 5
_SHUFFLES = 400
#: Rows that a test of a column sees: more change nothing.
_MOST = 5_000
#: Values of a column that get an effect each.
_LEVELS = 12
#: Residuals beyond these standard deviations count as these.
_OUTLIER = 6.0


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """A column beside the keys that explains why rows with equal keys differ.

    Attributes
    ----------
    part : Part
    share : float
        Part of the variance within groups that it explains.
    p : float
        Of its permutation test, corrected for all columns.
    """

    part: Part
    share: float
    p: float

    @property
    def is_key(self) -> bool:
        """Whether it should be a key: a predictor cannot know the day, or the repetition."""
        return self.part.kind not in ("time", "repeat")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows with equal keys that differ by more than noise.

    Attributes
    ----------
    rows : ndarray of int
        Their positions.
    ratio : float
        Largest over smallest measurement.
    p : float
        Probability of such a variance if it were noise.
    times : float
        Their variance over that of noise.
    part : Part or None
        The column that explains it.
    clusters : sequence of ndarray of int
        Positions of the rows of each cluster that the values form, from the smallest values; empty
        if they form none, or a column explains them.
    """

    rows: Ints
    ratio: float
    p: float
    times: float
    part: Part | None
    clusters: Sequence[Ints] = ()

    @property
    def beyond_noise(self) -> bool:
        """Whether heavy tails cannot explain it: there is a setting, or a value far off."""
        return self.part is not None or bool(self.clusters) or self.times > _FAR


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """What rows with equal keys show.

    Attributes
    ----------
    repeats : Repeats
        Groups of equal keys, and equal values of the columns that explain differences.
    repeats_of_keys : Repeats
        Groups of equal keys alone.
    groups : list of Group
        Groups that differ by more than noise, the largest ratio first.
    explanations : list of Explanation
    """

    repeats: Repeats
    repeats_of_keys: Repeats
    groups: Sequence[Group]
    explanations: Sequence[Explanation]

    @property
    def unexplained(self) -> Ints:
        """Positions of the rows that differ, and nothing in the table says why."""
        rows = [group.rows for group in self.groups if group.part is None]
        return np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)


def find_hidden(table: Measurements, use: Mask) -> Hidden:
    r"""Find groups of equal keys whose rows differ by more than the noise of the others.

    The variance of each group is compared with :math:`s_0^2 F(n - 1, d_0)` (see
    `errcomp.measurements.noise`). Groups are reported at a false discovery rate of 5 %; and those
    below a probability of 0.005, where there are more of them than chance gives in 1 % of tables.
    Where many groups differ, they are part of the law themselves: groups are also reported at 0.5 %
    under the law that fits the smaller nine tenths.

    A column beside the keys explains differences where the values of rows depend on it within
    groups, by a permutation test over all groups (1 %, Bonferroni over columns), and with at least
    5 % of the variance. It may have the same effect in all groups (a number by its logarithm, up to
    12 values by one effect each), or its own in each group in which its values recur. Groups in
    which such a column differs are compared with the noise of rows that agree in it, too.

    Parameters
    ----------
    table : Measurements
    use : ndarray of bool, shape (n,)
        Rows without copies, with positive, finite values.
    """
    logs = np.log(np.where(use, table.values[:, 0], 1.0))
    repeats = repeats_of(table.group, logs, use)
    if repeats.n < 2:
        return Hidden(repeats, repeats, [], [])
    noise = noise_of(repeats)
    found = explanations(repeats, table.parts, noise)
    finer = repeats
    groups: list[Group] = []
    if found:
        codes = [table.group, *[one.part.codes for one in found if one.is_key]]
        finer = repeats_of(numbered(codes, table.n), logs, use)
        noise = noise_of(finer) if finer.n >= _FEW else noise
        groups += [_group(repeats, noise, *one) for one in _explained(repeats, found, noise)]
    if finer.n >= 2:
        p, which = noise.p_of(finer), np.flatnonzero(_reported(finer, noise))
        unnamed = [_group(finer, noise, i, p[i], None) for i in which.tolist()]
        groups += [_with_clusters(group, logs, noise) for group in unnamed]
    return Hidden(finer, repeats, sorted(groups, key=lambda group: -group.ratio), found)


def _group(repeats: Repeats, noise: Noise, i: int, p: float, part: Part | None) -> Group:
    start, count = int(repeats.start[i]), int(repeats.count[i])
    ratio = math.exp(min(float(repeats.range[i]), MOST_LOG))
    times = float(repeats.variance[i]) / noise.variance
    return Group(repeats.rows[start : start + count], ratio, float(p), times, part)


def _with_clusters(group: Group, logs: Floats, noise: Noise) -> Group:
    def is_noise(some: Floats) -> bool:
        return bool(noise.p(np.array([some.var(ddof=1)]), np.array([len(some) - 1]))[0] >= _SURE)

    found = clusters_of(logs[group.rows], is_noise)
    return replace(group, clusters=[group.rows[at] for at in found])


def _reported(repeats: Repeats, noise: Noise) -> Mask:
    """Say which groups differ by more than noise."""
    from scipy.special import bdtrc

    p = noise.p_of(repeats)
    reported = _below(p, _FALSE)
    low = p < _SURE
    if bdtrc(int(low.sum()) - 1, len(p), _SURE) < _EXCESS:
        reported = reported | low
    # Where up to a tenth of the groups differ, they are part of the law above.
    return reported | _below(noise_of(repeats, _MANY).p_of(repeats), _FALSE_OF_MANY)


def _below(p: Floats, share: float) -> Mask:
    return np.asarray(benjamini_hochberg(p.tolist())) <= share


def _explained(
    repeats: Repeats, found: Sequence[Explanation], noise: Noise
) -> Iterator[tuple[int, float, Part]]:
    """Yield the groups that columns explain, at least by 30 %: p, and the column that does best."""
    total = np.maximum(np.add.reduceat(repeats.residual**2, repeats.start), 1e-300)
    most, p = np.full(repeats.n, _EXPLAINED), np.ones(repeats.n)
    best = np.full(repeats.n, -1)
    for i, one in enumerate(found):
        codes = one.part.codes[repeats.rows]
        within = numbered([repeats.of_row, codes], len(codes))
        left = np.add.reduceat(without_means(repeats.residual, within) ** 2, repeats.start)
        # The values of a group are numbered together, so sorting leaves each group in its place.
        firsts = np.r_[True, np.diff(np.sort(within)) != 0]
        values = np.add.reduceat(firsts.astype(int), repeats.start)
        free = np.maximum(values - 1, 1)
        chance = noise.p((total - left) / free, free)
        better = (values > 1) & (1 - left / total > most)
        best[better], p[better], most[better] = i, chance[better], (1 - left / total)[better]
    for group in np.flatnonzero((best >= 0) & (p < _LEAST)).tolist():
        yield group, float(p[group]), found[best[group]].part


# Which columns explain.


def explanations(repeats: Repeats, parts: Sequence[Part], noise: Noise) -> list[Explanation]:
    """Return the columns that explain differences within groups, the best first."""
    tested = [part for part in parts if part.kind != "id" and _varies(part, repeats).any()]
    found = []
    for part in tested:
        share, p = _test(part, repeats, noise)
        if p * len(tested) <= _CHANCE and share >= _WORTH:
            found.append(Explanation(part, share, p * len(tested)))
    return _without_shadows(sorted(found, key=lambda one: -one.share), repeats, noise)


def _varies(part: Part, repeats: Repeats) -> Mask:
    """Say in which groups a column has several values."""
    codes = part.codes[repeats.rows]
    low, high = (of.reduceat(codes, repeats.start) for of in (np.minimum, np.maximum))
    return np.asarray(low < high)


def _test(part: Part, repeats: Repeats, noise: Noise) -> tuple[float, float]:
    """Return the share of variance that a column explains, and the p of a permutation test.

    Both are about the groups in which it varies.
    """
    varied = repeats.take(_varies(part, repeats))
    every = max(1, len(varied.rows) // _MOST)
    varied = varied.take(np.arange(varied.n) % every == 0)
    limit = _OUTLIER * math.sqrt(noise.variance)
    y = without_means(np.clip(varied.residual, -limit, limit), varied.of_row)
    shuffled = list(shuffles(y, varied.of_row, _SHUFFLES))
    shares, ps = [], []
    for explained in _ways(part, varied, part.codes[varied.rows]):
        value = explained(y)
        chance = np.array([explained(one) for one in shuffled])
        ps.append(tail(value, chance))
        spare = max(1.0 - float(chance.mean()), 1e-9)
        shares.append(min(max(0.0, (value - float(chance.mean())) / spare), 1.0))
    if not ps:
        return 0.0, 1.0
    return max(shares), len(ps) * min(ps)


def _ways(part: Part, repeats: Repeats, codes: Ints) -> Iterator[Callable[[Floats], float]]:
    """Yield functions that return the share of the variance of y that a column explains."""
    numbers = _numbers(part, codes)
    if numbers is not None:
        x = without_means(numbers, repeats.of_row)
        if (x**2).sum() > 0:
            yield _Slope(x[:, None])
    levels, code = np.unique(codes, return_inverse=True)
    if 1 < len(levels) <= _LEVELS:
        dummies = np.stack(
            [
                without_means((code == k).astype(float), repeats.of_row)
                for k in range(1, len(levels))
            ],
            axis=1,
        )
        yield _Slope(dummies)
    within = numbered([repeats.of_row, codes], len(codes))
    if (np.bincount(within) > 1).any():
        yield _Means(within)


def _numbers(part: Part, codes: Ints) -> Floats | None:
    """Return the logarithms of a column of positive numbers."""
    if part.kind in ("time", "repeat"):
        return None  # a trend is found as drift
    try:
        known = np.array([math.nan if v is None else math.log(float(v)) for v in part.values])
    except (TypeError, ValueError):
        return None
    values = known[codes]
    return None if np.isnan(values).any() else values


@dataclass(frozen=True, slots=True, eq=False)
class _Slope:
    x: Floats

    def __call__(self, y: Floats) -> float:
        effect, *_ = np.linalg.lstsq(self.x, y, rcond=None)
        return 1 - float(((y - self.x @ effect) ** 2).sum()) / max(float((y**2).sum()), 1e-300)


@dataclass(frozen=True, slots=True, eq=False)
class _Means:
    within: Ints

    def __call__(self, y: Floats) -> float:
        left = without_means(y, self.within)
        return 1 - float((left**2).sum()) / max(float((y**2).sum()), 1e-300)


def _without_shadows(
    found: Sequence[Explanation], repeats: Repeats, noise: Noise
) -> list[Explanation]:
    """Leave out columns that explain nothing more than those before them."""
    kept = list(found[:1])
    for one in found[1:]:
        codes = [repeats.of_row, *[other.part.codes[repeats.rows] for other in kept]]
        group = numbered(codes, len(repeats.rows))
        inner = repeats_of(group, repeats.logs, np.ones(len(group), dtype=bool))
        finer = Repeats(repeats.rows[inner.rows], inner.start, inner.count, inner.logs)
        if finer.n < 2 or not _varies(one.part, finer).any():
            continue
        share, p = _test(one.part, finer, noise)
        if p <= _CHANCE / len(found) and share >= _WORTH:
            kept.append(Explanation(one.part, share, p))
    return kept
