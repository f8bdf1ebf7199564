"""Whether repeats change with the date, the version or the order of measurement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.noise import Repeats
from errcomp.stats.permutation import shuffles, tail, without_means
from errcomp.tables.memory.measurements import Part

__all__ = ["Drift", "find_drift"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Drift is reported where chance would show as much in fewer tables than this.
_LEVEL = 0.01
_SHUFFLES = 500
#: Rows that a test sees: more change nothing.
_MOST = 5_000
#: Residuals beyond these median absolute deviations count as these.
_OUTLIER = 6.0
#: Fewest rows for a test.
_LEAST = 8
#: A step has at least this share of the rows on each side.
_EDGE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """A change with time or order.

    Attributes
    ----------
    part : Part
        The column of time or order.
    kind : {"trend", "step"}
    change : float
        Fraction by which measurements grow from the first to the last value, or at the step.
    low, high : float
        Of its 95 % interval.
    at : object
        First value after a step; None for a trend.
    p : float
        Corrected for all columns.
    """

    part: Part
    kind: str
    change: float
    low: float
    high: float
    at: object
    p: float


def find_drift(repeats: Repeats, orders: Sequence[Part]) -> list[Drift]:
    """Find trends and steps of repeats of one configuration along columns of time or order.

    Measurements are compared within configurations only. The largest of both statistics (the
    correlation with the place in the order, and the largest standardised step) is compared with
    shuffles within configurations; 1 %, Bonferroni over columns. The stronger of both names the
    kind.
    """
    tested = [part for part in orders if _usable(part, repeats)]
    found = []
    for part in tested:
        drift = _drift(part, repeats, len(tested))
        if drift is not None:
            found.append(drift)
    return found


def _usable(part: Part, repeats: Repeats) -> bool:
    codes = part.codes[repeats.rows]
    differs = np.diff(codes)[np.diff(repeats.of_row) == 0] != 0
    return int(differs.sum()) >= _LEAST and bool((codes > 0).all())


def _drift(part: Part, repeats: Repeats, tested: int) -> Drift | None:
    every = max(1, len(repeats.rows) // _MOST)
    some = repeats.take(np.arange(repeats.n) % every == 0)
    y, group = _clipped(some.residual), some.of_row
    place = np.unique(part.codes[some.rows], return_inverse=True)[1].astype(float)
    steps = list(_steps(place, group))
    trend = without_means(place, group)
    designs = np.stack([trend, *[x for _, x in steps]], axis=1)
    size = np.sqrt((designs**2).sum(axis=0))
    score = np.abs(y @ designs) / size
    chance = np.empty((_SHUFFLES, 2))
    for i, other in enumerate(shuffles(y, group, _SHUFFLES)):
        one = np.abs(other @ designs) / size
        chance[i] = one[0], one[1:].max(initial=0.0)
    values = np.array([score[0], score[1:].max(initial=0.0)])
    ps = [tail(values[k], chance[:, k]) for k in (0, 1)]
    p = 2 * min(ps) * tested
    if p > _LEVEL:
        return None
    best = 0 if values[0] >= values[1] else 1 + int(np.argmax(score[1:]))
    change, error = _effect(y, designs[:, best], group)
    if best == 0:
        change, error = change * place.max(), error * place.max()
    at = None if best == 0 else _value(part, some, place, steps[best - 1][0])
    middle, low, high = (math.expm1(change + shift * error) for shift in (0.0, -1.96, 1.96))
    kind = "trend" if best == 0 else "step"
    return Drift(part, kind, middle, low, high, at, min(p, 1.0))


def _clipped(residual: Floats) -> Floats:
    limit = _OUTLIER * 1.48 * float(np.median(np.abs(residual)))
    return np.clip(residual, -limit, limit) if limit > 0 else residual


def _steps(place: Floats, group: Ints) -> Iterator[tuple[float, Floats]]:
    """Yield the places at which a step may be, with the step's shape within configurations."""
    order = np.sort(place)
    first, last = order[int(_EDGE * len(order))], order[-1 - int(_EDGE * len(order))]
    for at in np.unique(place[(place > first) & (place <= last)]).tolist()[:200]:
        x = without_means((place >= at).astype(float), group)
        if (x**2).sum() > 0:
            yield at, x


def _effect(y: Floats, x: Floats, group: Ints) -> tuple[float, float]:
    """Return a slope within configurations, and its standard error, clustered by configuration."""
    size = float((x**2).sum())
    slope = float(x @ y) / size
    scores = np.bincount(group, x * (y - slope * x))
    n = len(scores)
    return slope, math.sqrt(float((scores**2).sum()) * n / max(n - 1, 1)) / size


def _value(part: Part, repeats: Repeats, place: Floats, at: float) -> object:
    return part.values[int(part.codes[repeats.rows][np.argmax(place == at)])]
