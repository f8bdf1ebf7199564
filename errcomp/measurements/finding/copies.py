"""Rows that state one measurement several times: in full, nearly, or under other keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.finding.patterns import scaled
from errcomp.measurements.noise import share_below
from errcomp.stats.digits import decimals, enough_digits
from errcomp.tables.memory.measurements import Measurements, numbered

__all__ = ["Found", "find_copies"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["equal", "near", "carried over", "default", "scaled"]

#: How closely copies agree: a float of 32 bits has seven digits.
_NEAR = 1e-3
_LIMITS: tuple[tuple[Kind, float], ...] = (("equal", 1e-6), ("near", _NEAR))
#: A unit of the last digit, relative to the value, beyond which repeats agree by chance.
_COARSE = 1e-3
#: A unit of the last digit below any noise.
_FINE = 1e-4
#: Rows of a group that are compared with each row.
_LAGS = 20
#: Equal values are copies where at most this share of them is expected by chance.
_CHANCE = 0.2
#: Rows are hardly ever repeated where at most this share of them has an equal configuration.
_HARDLY = 0.05
#: Values that differ by at most this many units of the last digit nearly agree.
_UNITS = 10
#: Rows of one value under different keys that make it a default, such as a timeout.
_DEFAULT = 5


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Sets of rows that state one measurement.

    Attributes
    ----------
    kind : str
    members : list of ndarray of int
        Positions of the rows of each set, at least two.
    by_chance : float
        Rows that are expected to agree by chance.
    """

    kind: Kind
    members: Sequence[Ints]
    by_chance: float


def find_copies(
    table: Measurements, use: NDArray[np.bool_], once: NDArray[np.bool_]
) -> list[Found]:
    r"""Find rows that state a measurement again.

    * **equal**: equal keys, and values that agree to :math:`10^{-6}` (a float of 32 bits that was
      written by another program) in every measured column;
    * **near**: equal keys, and values within :math:`10^{-3}`;
    * **carried over**: other keys, but equal values of at least four significant digits;
    * **default**: one value at five or more configurations, such as a timeout;
    * **scaled**: the values of another device, version, … times one factor.

    Repeats may agree by chance. Within equal keys their number is expected from a t law of the
    differences beyond the limit, and from those just beyond it; between keys from the values that
    differ by up to ten units of the last digit. Agreements are copies where chance explains at most
    a fifth of them. Where at most 5 % of the rows are repeated at all, any agreement within equal
    keys is one.

    Parameters
    ----------
    table : Measurements
    use : ndarray of bool, shape (n,)
        Rows to compare; values must be positive and finite there.
    once : ndarray of bool, shape (n,)
        Rows that are compared between keys: not those that repeat a measurement for another tool.
    """
    at = np.flatnonzero(use)
    if len(at) < 2:
        return []
    values = table.values[at]
    # Of other columns, impossible values count as missing.
    values = np.where((values > 0) & np.isfinite(values), values, np.nan)
    logs = np.log(values)
    group = table.group[at]
    found = []
    taken = np.zeros(len(at), dtype=bool)
    for kind, limit in _LIMITS:
        pairs = _pairs_of(values, group, taken)
        chance = pairs.by_chance(limit)
        if not pairs.copied(limit, chance, rare=_rare(group, taken)):
            continue
        members = _agreeing(group, logs, taken, limit)
        found.append(Found(kind, [at[rows] for rows in members], 2 * chance))
        for rows in members:
            taken[rows[1:]] = True
    between = _between_keys(values, at, group, taken | ~once[at])
    for one in between:
        for rows in one.members:
            taken[np.searchsorted(at, rows)] = True
    left = np.zeros(table.n, dtype=bool)
    left[at[~taken & once[at] & enough_digits(table.values[at, 0])]] = True
    factors = scaled(table, left)
    return [*found, *between, *([Found("scaled", factors, 0.0)] if factors else [])]


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of rows with equal keys.

    Attributes
    ----------
    step : ndarray
        Difference of their logarithms, in the column where it is largest.
    units : ndarray
        Difference of the first column in units of the last digit of the group.
    digit : float
        Mean size of such a unit, relative to the value.
    """

    step: Floats
    units: Floats
    digit: float

    def copied(self, limit: float, chance: float, *, rare: bool) -> bool:
        """Say whether so large a share of the pairs agrees that they are copies."""
        agree = int((self.step <= limit).sum())
        if not agree or rare:
            return agree > 2 * chance
        if self.digit > _COARSE:
            return False
        # Where most repeats agree, the noise may be as small; it is not below all digits.
        if agree > len(self.step) / 2:
            return limit < _NEAR and self.digit <= _FINE
        return chance <= _CHANCE * agree

    def by_chance(self, limit: float) -> float:
        """Return how many pairs agree by chance.

        At least as many as have a slightly larger difference, as small differences are the more
        frequent ones; or by a t law, fitted to the differences beyond the limit.
        """
        if limit < _NEAR:
            next_to = ((self.units > 0.5) & (self.units < 1.5)).sum() / 2
        else:
            next_to = ((self.step > limit) & (self.step <= 2 * limit)).sum()
        limit += self.digit / 2
        beyond = self.step[self.step > limit]
        share = share_below(beyond, limit) if len(beyond) > 1 else 0.0
        return max(float(next_to), len(beyond) * share / max(1.0 - share, 1e-9))


def _pairs_of(values: Floats, group: Ints, taken: NDArray[np.bool_]) -> _Pairs:
    """Return the pairs of rows of each group; of a large one, those at most 20 rows apart."""
    order = np.flatnonzero(~taken)
    order = order[np.argsort(group[order], kind="stable")]
    order = order[np.bincount(group[order])[group[order]] > 1]
    values, group = values[order], group[order]
    most = np.zeros(int(group.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(most, group, decimals(values[:, 0]))
    unit = 10.0 ** -most[group]
    steps, units = [], []
    for lag in range(1, _LAGS + 1):
        same = np.flatnonzero(group[lag:] == group[:-lag])
        if not len(same):
            break
        first, second = values[same], values[same + lag]
        steps.append(np.nanmax(np.abs(np.log(first) - np.log(second)), axis=1))
        with np.errstate(over="ignore"):  # infinitely many units are many
            units.append(np.abs(first[:, 0] - second[:, 0]) / unit[same])
    if not steps:
        return _Pairs(np.empty(0), np.empty(0), 0.0)
    return _Pairs(np.concatenate(steps), np.concatenate(units), float(np.mean(unit / values[:, 0])))


def _agreeing(group: Ints, logs: Floats, taken: NDArray[np.bool_], limit: float) -> list[Ints]:
    """Chain rows of a group whose values follow each other within a limit, in all columns."""
    order = np.flatnonzero(~taken)
    order = order[np.lexsort((*logs[order].T[::-1], group[order]))]
    x, g = logs[order], group[order]
    same = g[1:] == g[:-1]
    step = np.abs(np.diff(x, axis=0))
    near = same & np.all((step <= limit) | np.isnan(step), axis=1)
    # Without the end of a chain, ten steps of a limit would be one set.
    label = np.cumsum(np.r_[True, ~near])
    starts = np.flatnonzero(np.r_[True, ~near])
    first = x[starts][label - 1]
    far = np.any(np.abs(x - first) > limit, axis=1)
    while far.any():
        begins = np.r_[False, label[1:] == label[:-1]] & far & ~np.r_[False, far[:-1]]
        near[begins[1:]] = False
        label = np.cumsum(np.r_[True, ~near])
        starts = np.flatnonzero(np.r_[True, ~near])
        far = np.any(np.abs(x - x[starts][label - 1]) > limit, axis=1)
    counts = np.diff(np.r_[starts, len(order)])
    return [np.sort(order[s : s + c]) for s, c in zip(starts, counts, strict=True) if c > 1]


def _rare(group: Ints, taken: NDArray[np.bool_]) -> bool:
    """Say whether hardly any row has another of the same configuration."""
    size = np.bincount(group[~taken])
    return bool(size[size > 1].sum() <= _HARDLY * (~taken).sum())


# Equal digits under other keys.


def _between_keys(values: Floats, at: Ints, group: Ints, taken: NDArray[np.bool_]) -> list[Found]:
    """Find values that recur under other keys."""
    left = np.flatnonzero(~taken & enough_digits(values[:, 0]))
    if len(left) < 2:
        return []
    same = numbered([_code(values[left, k]) for k in range(values.shape[1])], len(left))
    order = np.lexsort((left, same))
    begins = np.r_[True, np.diff(same[order]) != 0]
    starts = np.flatnonzero(begins)
    counts = np.diff(np.r_[starts, len(order)])
    sets = [left[order[s : s + c]] for s, c in zip(starts, counts, strict=True) if c > 1]
    sets = [rows for rows in sets if len(set(group[rows].tolist())) > 1]
    extra = sum(len(rows) - 1 for rows in sets)
    chance = _by_chance(values[left, 0]) if values.shape[1] == 1 else 0.0
    if not extra or chance > _CHANCE * extra:
        return []
    usual = np.median([len(rows) for rows in sets]) if len(sets) >= _DEFAULT else 1
    recurring = [rows for rows in sets if len(rows) >= max(_DEFAULT, 3 * usual)]
    often = {id(rows) for rows in recurring}
    others = [rows for rows in sets if id(rows) not in often]
    kinds: tuple[tuple[Kind, list[Ints]], ...] = (("carried over", others), ("default", recurring))
    return [Found(kind, [at[rows] for rows in some], chance) for kind, some in kinds if some]


def _code(values: Floats) -> Ints:
    """Give values that are equal to 13 digits one number; missing values are equal."""
    filled = np.where(np.isnan(values), -1.0, values)
    size = 10.0 ** (np.floor(np.log10(np.abs(filled))) - 12)
    return np.unique(np.rint(filled / size) * size, return_inverse=True)[1]


def _by_chance(values: Floats) -> float:
    """Return how many values recur by chance: as many as differ by a few units of the last digit.

    Values with up to nine significant digits are compared with those of as many decimals.
    """
    written = decimals(values)
    hits = 0.0
    for places in np.unique(written):
        some = values[written == places] * 10.0**places
        if len(some) < 2 or np.median(some) > 1e9:
            continue  # with that many digits, none recurs by chance
        steps, count = np.unique(np.rint(some), return_counts=True)
        for shift in range(1, _UNITS + 1):
            where = np.searchsorted(steps, steps + shift)
            there = (where < len(steps)) & (
                steps[np.minimum(where, len(steps) - 1)] == steps + shift
            )
            # A pair at distance 0 is seen once, one at another distance from one of its sides.
            hits += float((count[there] * count[where[there]]).sum())
    return hits / _UNITS / 2
