"""What there is to tell software from environment: versions validated more than once."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.errors import InputError
from errcomp.halflife._step_results import Step, Steps
from errcomp.halflife.design import Panel
from errcomp.halflife.steps import find_steps_of

__all__ = [
    "MOVED",
    "Elsewhere",
    "Pairs",
    "Same",
    "Series",
    "Witnesses",
    "by_series",
    "same_version",
]

Floats = NDArray[Any]
_LEVEL = 0.95
_ENOUGH_DF = 3
# A re-run has moved beyond this many standard deviations of a difference.
MOVED = 3.0


class Series(NamedTuple):
    """Validations of one series by date, one for each date and version."""

    name: str
    machine: int
    version: NDArray[Any]
    date: NDArray[Any]
    value: Floats
    steps: Steps


class Same(NamedTuple):
    """How far versions validated on both sides of a step moved."""

    moved: float
    low: float
    high: float
    versions: int

    def of(self, step: Step) -> tuple[float, float, float]:
        """Return the share of a step, and the ends of its interval."""
        ends = sorted((self.low / step.size, self.high / step.size))
        return self.moved / step.size, ends[0], ends[1]


class Pairs(NamedTuple):
    """Successive validations of one version in one series: when and where, and how far it moved."""

    series: NDArray[Any]
    machine: NDArray[Any]
    since: NDArray[Any]
    until: NDArray[Any]
    moved: Floats


def by_series(
    columns: dict[str, tuple[NDArray[Any], NDArray[Any]]],
    date: NDArray[Any],
    x: Floats,
    alpha: float,
) -> list[Series]:
    """Order the validations of each series by date; those of one date and version are repeats."""
    (names, where), (versions, codes), (_, machines) = columns.values()
    # One version after the other where a date has several, the one seen first elsewhere first.
    first = np.full(len(versions), len(x))
    by_date = np.argsort(date, kind="stable")
    np.minimum.at(first, codes[by_date], np.arange(len(x)))
    order = np.lexsort((first[codes], date, where))
    edges = [*np.flatnonzero(np.diff(where[order], prepend=-1)), len(x)]
    found = []
    for rows in (order[a:b] for a, b in pairwise(edges)):
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (date[rows][1:] != date[rows][:-1]) | (codes[rows][1:] != codes[rows][:-1])
        starts = np.flatnonzero(new)
        value = np.add.reduceat(x[rows], starts) / np.diff(starts, append=len(rows))
        kept = rows[starts]
        if len(np.unique(machines[rows])) > 1:
            raise InputError(
                f"series {str(names[where[kept[0]]])!r} is on several machines: make each of them "
                "a series of its own."
            )
        name, machine = str(names[where[kept[0]]]), int(machines[kept[0]])
        found.append((name, machine, versions[codes[kept]], date[kept], value))
    if not found:
        return []
    steps = find_steps_of(_in_order([value for *_, value in found]), alpha=alpha)
    return [Series(*one, own) for one, own in zip(found, steps, strict=True)]


def _in_order(values: list[Floats]) -> Panel:
    """Return series as a panel: what is a version to it is the place in the order of dates."""
    lengths = np.array([len(value) for value in values])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    longest = int(lengths.max())
    total = int(starts[-1])
    return Panel(
        versions=tuple(map(str, range(longest))),
        months=np.arange(float(longest)),
        names=tuple(map(str, range(len(values)))),
        clusters=np.arange(len(values)),
        starts=starts,
        version=np.arange(total) - np.repeat(starts[:-1], lengths),
        error=np.concatenate(values),
        sd=np.full(total, np.nan),
        noise_df=np.zeros(len(values)),
        frozen_at_first=False,
    )


def pairs_of(every: list[Series]) -> Pairs:
    """Successive validations of one version, in standard deviations of their difference."""
    found: list[tuple[int, int, Any, Any, float]] = []
    for i, one in enumerate(every):
        if one.steps.sd is None:
            continue
        noise = math.sqrt(2) * max(one.steps.sd, np.finfo(float).tiny)
        for version in np.unique(one.version):
            at = np.flatnonzero(one.version == version)
            for a, b in pairwise(at):
                moved = (one.value[b] - one.value[a]) / noise
                found.append((i, one.machine, one.date[a], one.date[b], float(moved)))
    columns = [np.array([row[k] for row in found]) for k in range(5)]
    return Pairs(*columns)


def same_version(one: Series, step: Step, *, whole: bool) -> Same | None:
    """Compare the versions validated on both sides of a step: up to the next steps, or anywhere."""
    places = [0, *(other.at for other in one.steps.steps), len(one.value)]
    i = places.index(step.at)
    start, end = (0, len(one.value)) if whole else (places[i - 1], places[i + 1])
    before, after = one.version[start : step.at], one.version[step.at : end]
    moved, precision = [], []
    for version in np.intersect1d(before, after):
        old = one.value[start : step.at][before == version]
        new = one.value[step.at : end][after == version]
        moved.append(new.mean() - old.mean())
        precision.append(1 / (1 / len(old) + 1 / len(new)))
    if not moved:
        return None
    mean = float(np.average(moved, weights=precision))
    sd, df = _noise(one)
    half = float(special.stdtrit(df, (1 + _LEVEL) / 2)) * sd / math.sqrt(sum(precision))
    return Same(mean, mean - half, mean + half, len(moved))


def _noise(one: Series) -> tuple[float, float]:
    """Return the standard deviation of one value and its degrees of freedom.

    About versions between two steps, as an old version that runs again among new ones is not noise;
    about the levels alone where versions were not validated often enough.
    """
    segment = np.searchsorted(
        [step.at for step in one.steps.steps], np.arange(len(one.value)), "right"
    )
    _, version = np.unique(one.version, return_inverse=True)
    _, cell = np.unique(segment * len(one.value) + version, return_inverse=True)
    count = np.bincount(cell)
    df = len(one.value) - len(count)
    if df < _ENOUGH_DF:
        return one.steps.sd or 0.0, one.steps.df
    left = one.value - (np.bincount(cell, one.value) / count)[cell]
    return math.sqrt(float(left @ left) / df), float(df)


class Elsewhere(NamedTuple):
    """Other series of the machine with a version validated around a step, and across it."""

    near: int
    moved: int
    across: int


class Witnesses:
    """The other series of the machines, asked once for each span of dates: many steps share one."""

    def __init__(self, every: list[Series]) -> None:
        self._pairs = pairs_of(every)
        self._known: dict[tuple[Any, ...], list[set[int]]] = {}

    def own(self, i: int) -> Floats:
        """Return by how much versions of one series moved from one validation to the next."""
        first, last = np.searchsorted(self._pairs.series, [i, i + 1])
        moved: Floats = self._pairs.moved[first:last]
        return moved

    def elsewhere(self, i: int, one: Series, step: Step) -> Elsewhere:
        """Count the other series around a step."""
        since, until = one.date[step.at_low - 1], one.date[step.at_high]
        key = (one.machine, since, until)
        if key not in self._known:
            self._known[key] = self._around(*key)
        return Elsewhere(*(len(some) - int(i in some) for some in self._known[key]))

    def _around(self, machine: int, since: Any, until: Any) -> list[set[int]]:
        """Return which series had a version validated around these dates, moved, and across."""
        pairs = self._pairs
        if not len(pairs.series):
            return [set(), set(), set()]
        near = pairs.machine == machine
        near &= (pairs.since < until) & (pairs.until > since)
        moved = near & (np.abs(pairs.moved) > MOVED)
        across = near & (pairs.since <= since) & (pairs.until >= until)
        return [set(pairs.series[which].tolist()) for which in (near, moved, across)]
