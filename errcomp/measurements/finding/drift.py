"""Whether repeats change with the date, the version or the order of measurement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.noise import Repeats
from errcomp.stats.permutation import shuffles, tail, without_means
from errcomp.tables.memory.measurements import Measurements, Part

__all__ = ["Drift", "find_drift", "places"]

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
#: Most steps along one column.
_STEPS = 5
#: Share of the repeats that follow each other in the table.
_TOGETHER = 0.9
#: Rows are sorted by value where this share of the repeats grows, or shrinks, from row to row.
_SORTED = 0.9
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


def find_drift(repeats: Repeats, orders: Sequence[Part]) -> list[Drift] | None:
    """Find trends and steps of repeats of one configuration along columns of time or order.

    None where no column differs between repeats.

    Measurements are compared within configurations only. The largest of both statistics (the
    correlation with the place in the order, and the largest standardised step) is compared with
    shuffles within configurations; 1 %, Bonferroni over columns. The stronger of both names the
    kind. After a step, what the steps so far leave is tested for one more.
    """
    tested = [part for part in orders if _usable(part, repeats)]
    if not tested:
        return None
    return [drift for part in tested for drift in _changes(part, repeats, len(tested))]


def places(table: Measurements, repeats: Repeats) -> list[Part]:
    """Return the place of each repeat among those of its configuration, where rows may tell it.

    Repeats that stand together in the table were probably written one after the other. Elsewhere
    their order says nothing, and nor does it where they are sorted by their values.
    """
    within = np.diff(repeats.of_row) == 0
    if within.sum() < _LEAST:
        return []
    together = float((np.diff(repeats.rows)[within] == 1).mean())
    steps = np.diff(repeats.logs)[within]
    if together < _TOGETHER or max((steps > 0).mean(), (steps < 0).mean()) > _SORTED:
        return []
    place = np.zeros(table.n, dtype=np.int64)
    place[repeats.rows] = repeats.place
    return [
        Part(
            "place among the repeats",
            "repeat",
            place,
            [None, *range(1, int(repeats.count.max()) + 1)],
        )
    ]


def _usable(part: Part, repeats: Repeats) -> bool:
    codes = part.codes[repeats.rows]
    differs = np.diff(codes)[np.diff(repeats.of_row) == 0] != 0
    return int(differs.sum()) >= _LEAST and bool((codes > 0).all())


def _changes(part: Part, repeats: Repeats, tested: int) -> list[Drift]:
    """Return a trend, or the steps in their order."""
    every = max(1, len(repeats.rows) // _MOST)
    some = repeats.take(np.arange(repeats.n) % every == 0)
    y, group = _clipped(some.residual), some.of_row
    place = np.unique(part.codes[some.rows], return_inverse=True)[1].astype(float)
    steps = list(_shapes(place, group))
    designs = np.stack([without_means(place, group), *[x for _, x in steps]], axis=1)
    trend, p = _strongest(y, designs, group)
    if p * tested > _LEVEL:
        return []
    if trend == 0:
        (change,), (error,) = _effects(y, designs[:, :1], group)
        most = place.max()
        return [_drift(part, "trend", change * most, error * most, None, p * tested)]
    found = {trend: p}
    while len(found) < _STEPS:
        x = designs[:, list(found)]
        left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        best, p = _strongest(left, designs[:, 1:], group)
        if p * tested > _LEVEL or 1 + best in found:
            break
        found[1 + best] = p
    found = _settled(found, y, designs)
    order = sorted(found)
    effects = zip(order, *_effects(y, designs[:, order], group), strict=True)
    return [
        _drift(
            part,
            "step",
            change,
            error,
            _value(part, some, place, steps[i - 1][0]),
            found[i] * tested,
        )
        for i, change, error in effects
    ]


def _settled(found: dict[int, float], y: Floats, designs: Floats) -> dict[int, float]:
    """Move each step to where it fits best beside the others: the first was found without them."""
    places, ps = list(found), list(found.values())
    for i in range(len(places)):
        x = designs[:, places[:i] + places[i + 1 :]]
        own = designs - x @ np.linalg.lstsq(x, designs, rcond=None)[0]
        size = np.sqrt((own**2).sum(axis=0))
        score = np.abs(y @ own) / np.where(size > 1e-9, size, np.inf)
        score[[0, *places[:i], *places[i + 1 :]]] = 0.0
        places[i] = int(np.argmax(score))
    return dict(zip(places, ps, strict=True))


def _strongest(y: Floats, designs: Floats, group: Ints) -> tuple[int, float]:
    """Return the shape that values follow most, and the p of such a shape among all."""
    size = np.sqrt((designs**2).sum(axis=0))
    score = np.abs(y @ designs) / size
    chance = np.array([np.abs(z @ designs) / size for z in shuffles(y, group, _SHUFFLES)])
    first = tail(float(score[0]), chance[:, 0])
    others = tail(float(score[1:].max(initial=0.0)), chance[:, 1:].max(axis=1, initial=0.0))
    return int(np.argmax(score)), min(1.0, 2 * min(first, others))


def _drift(part: Part, kind: str, change: float, error: float, at: object, p: float) -> Drift:
    middle, low, high = (math.expm1(change + shift * error) for shift in (0.0, -1.96, 1.96))
    return Drift(part, kind, middle, low, high, at, min(p, 1.0))


def _clipped(residual: Floats) -> Floats:
    limit = _OUTLIER * 1.48 * float(np.median(np.abs(residual)))
    return np.clip(residual, -limit, limit) if limit > 0 else residual


def _shapes(place: Floats, group: Ints) -> Iterator[tuple[float, Floats]]:
    """Yield the places at which a step may be, with the step's shape within configurations."""
    order = np.sort(place)
    first, last = order[int(_EDGE * len(order))], order[-1 - int(_EDGE * len(order))]
    for at in np.unique(place[(place > first) & (place <= last)]).tolist()[:200]:
        x = without_means((place >= at).astype(float), group)
        if (x**2).sum() > 0:
            yield at, x


def _effects(y: Floats, x: Floats, group: Ints) -> tuple[Floats, Floats]:
    """Return slopes within configurations, and standard errors, clustered by configuration."""
    inverse = np.linalg.pinv(x.T @ x)
    slopes = inverse @ x.T @ y
    left = y - x @ slopes
    scores = np.stack([np.bincount(group, column * left) for column in x.T], axis=1)
    n = len(scores)
    covariance = inverse @ (scores.T @ scores) @ inverse * n / max(n - 1, 1)
    return slopes, np.sqrt(np.diag(covariance))


def _value(part: Part, repeats: Repeats, place: Floats, at: float) -> object:
    return part.values[int(part.codes[repeats.rows][np.argmax(place == at)])]
