"""Values that follow from others: coarse rounding, one factor, more work in less time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.finding.plausible import Broken
from errcomp.stats.digits import MOST_DECIMALS, decimals
from errcomp.tables.memory.measurements import Measurements, numbered

__all__ = ["patterns", "scaled"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Rounding beyond this share of a value is doubtful.
_COARSE = 0.005
#: Share of the values that decides how a column is rounded.
_USUAL = 0.99
#: Fewest values that one factor relates, and share of the shared ones.
_LEAST, _MOST_OF = 5, 0.9
#: Values of a key between which factors are tried.
_LEVELS = 30
#: Rows of each value that are compared first.
_SAMPLE = 500
#: Agreement of factors beyond the digits that are written.
_EXACT = 1e-6
#: A key is work where this share of its steps takes longer.
_GROWS = 0.9
#: Fewest steps to see it.
_STEPS = 20
#: A step down is doubtful beyond this many standard deviations, or this fraction without repeats.
_BEYOND, _FRACTION = 5.0, 0.1


def patterns(table: Measurements, use: Mask, sd: float | None) -> list[Broken]:
    """Return doubtful values: coarsely rounded ones, one factor between columns, less for more.

    * Values of which half a unit of the last digit is over 0.5 %: the digits are those that 99 % of
      the values do with.
    * Two measured columns of which one is the other times one factor in at least 90 % of the rows.
    * Along a numeric key with at least 20 steps, of which 90 % take longer: steps that take less
      time, by more than five standard deviations of noise (without repeats, by 10 %). A kernel may
      have changed there, or one of the two measurements is wrong.

    Parameters
    ----------
    table : Measurements
    use : ndarray of bool, shape (n,)
        Rows with positive, finite values, each once.
    sd : float or None
        Standard deviation of the noise of a logarithm.
    """
    return [*_rounded(table, use), *_one_factor(table, use), *_falling(table, use, sd)]


def _rounded(table: Measurements, use: Mask) -> Iterator[Broken]:
    for k, name in enumerate(table.measured):
        values = table.values[:, k]
        fine = use & (values > 0) & np.isfinite(values)
        if fine.sum() < _LEAST:
            continue
        places = int(np.quantile(decimals(values[fine]), _USUAL, method="higher"))
        if places == MOST_DECIMALS:
            continue  # all digits
        unit = 10.0**-places
        coarse = fine & (unit / 2 > _COARSE * np.where(fine, values, np.inf))
        rows = np.flatnonzero(coarse)
        if len(rows):
            rule = f"{name} is rounded to {unit:g}: by up to {50 * unit / values[rows].min():.2g} %"
            yield Broken(rule, (name,), rows, f"{name} {values[rows[0]]:g}", certain=False)


def _one_factor(table: Measurements, use: Mask) -> Iterator[Broken]:
    for a, b in combinations(range(len(table.measured)), 2):
        x, y = table.values[:, a], table.values[:, b]
        both = np.flatnonzero(use & (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y))
        same = _related(x[both], y[both])
        if same is not None:
            first, second = table.measured[a], table.measured[b]
            rule = f"{second} is a measurement, not {first} times {same[0]:.6g}"
            rows = both[same[1]]
            seen = f"{first} {x[rows[0]]:g}, {second} {y[rows[0]]:g}"
            yield Broken(rule, (first, second), rows, seen, certain=False)


def _related(x: Floats, y: Floats) -> tuple[float, Mask] | None:
    """Return the factor between values and where it holds, if it does nearly everywhere."""
    if len(x) < _LEAST or np.ptp(np.log(x)) < _COARSE:
        return None
    ratio = np.log(y / x)
    factor = float(np.median(ratio))
    # Half a unit of the last digit of each.
    slack = 0.5 * (10.0 ** -decimals(x) / x + 10.0 ** -decimals(y) / y) + _EXACT
    holds = (np.abs(ratio - factor) <= slack) & (slack <= _COARSE)
    enough = int(holds.sum()) >= max(_LEAST, _MOST_OF * len(x))
    return (math.exp(factor), holds) if enough else None


def scaled(table: Measurements, left: Mask) -> list[Ints]:
    """Return pairs of rows of which one is the other times the factor of their key values.

    For each key of up to 30 values, the rows of two values that agree in all other keys are
    compared. Values that one factor relates to all digits were computed, not measured.

    Examples
    --------
    >>> from errcomp.tables.memory.measurements import measurements_of
    >>> x = [12.313, 17.871, 26.419, 39.017, 51.233]
    >>> table = measurements_of(
    ...     {"gpu": ["A"] * 5 + ["B"] * 5, "batch": [1, 2, 4, 8, 16] * 2,
    ...      "ms": x + [round(1.3 * one, 3) for one in x]}, measured="ms")
    >>> [rows.tolist() for rows in scaled(table, np.ones(10, dtype=bool))][:2]
    [[0, 5], [1, 6]]
    """
    found: dict[tuple[int, int], None] = {}
    at = np.flatnonzero(left)
    values = table.values[:, 0]
    for name, codes in table.keys.items():
        levels, count = np.unique(codes[at], return_counts=True)
        levels = levels[count >= _LEAST]
        if not 1 < len(levels) <= _LEVELS:
            continue
        others = [other[at] for key, other in table.keys.items() if key != name]
        rest = numbered(others, len(at))
        rows = {level: _once(rest, codes[at] == level) for level in levels.tolist()}
        some = max(1, len(at) // (_SAMPLE * len(levels)))
        sample = {level: of[rest[of] % some == 0] for level, of in rows.items()}
        for a, b in combinations(rows, 2):
            if some > 1:
                one, two = _shared(rest, sample[a], sample[b])
                if _related(values[at[one]], values[at[two]]) is None:
                    continue
            one, two = (at[of] for of in _shared(rest, rows[a], rows[b]))
            same = _related(values[one], values[two])
            if same is not None and abs(math.log(same[0])) > _EXACT:
                pairs = np.stack([one, two], axis=1)[same[1]]
                found |= dict.fromkeys((int(x), int(y)) for x, y in pairs)
    return [np.array(sorted(pair)) for pair in found]


def _once(rest: Ints, some: Mask) -> Ints:
    """Return the rows whose other keys occur once among some of the rows."""
    rows = np.flatnonzero(some)
    values, first, count = np.unique(rest[rows], return_index=True, return_counts=True)
    return rows[first[count == 1]] if len(values) else rows


def _shared(rest: Ints, a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Return the rows of both that agree in their other keys."""
    _, i, j = np.intersect1d(rest[a], rest[b], assume_unique=True, return_indices=True)
    return a[i], b[j]


def _falling(table: Measurements, use: Mask, sd: float | None) -> Iterator[Broken]:
    at = np.flatnonzero(use)
    logs = np.log(table.values[at, 0])
    least = _FRACTION if sd is None else _BEYOND * math.sqrt(2) * sd
    for name in table.keys:
        column = table.frame[name]
        if not column.dtype.is_numeric():
            continue
        key = column.cast(float).fill_null(float("nan")).to_numpy()[at]
        if not (key > 0).all():
            continue
        line = numbered([c[at] for other, c in table.keys.items() if other != name], len(at))
        # Repeats are one point: their median.
        point = numbered([line, table.keys[name][at]], len(at))
        order = np.lexsort((logs, point))
        _, start, count = np.unique(point[order], return_index=True, return_counts=True)
        middle = order[start + (count - 1) // 2]
        same = line[middle][1:] == line[middle][:-1]
        step = np.diff(logs[middle])[same]
        if len(step) < _STEPS or (step > 0).mean() < _GROWS:
            continue
        low = np.flatnonzero(same)[step < -least]
        if len(low):
            rows = at[middle[low + 1]]
            before = at[middle[low[0]]]
            value = table.values[:, 0]
            seen = (
                f"{value[before]:g} at {name} {table.frame[name][int(before)]}, "
                f"{value[rows[0]]:g} at {table.frame[name][int(rows[0])]}"
            )
            rule = f"more {name} takes longer, unless a kernel changes"
            yield Broken(rule, (name, table.measured[0]), np.sort(rows), seen, certain=False)
