"""Bootstrap of a ratio of sums: pairs, whole clusters, or clusters within clusters.

Everything here works on residuals r (they sum to zero) and sizes y of the units that are drawn. The
deviation of a resample from the data is D = sum(r) / sum(y); its standard error is that of a ratio
estimator, recomputed in every resample from the five sums of r, y, r², ry and y².
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.tables._table import sort_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Sums = tuple[Floats, Floats, Floats, Floats, Floats]

__all__ = ["Nesting", "add_up", "deviations", "five_sums", "nest", "spread"]

#: Draws held in memory at a time. Memory does not depend on n or on the number of resamples; the
#: buffers of one block stay in the cache. Part of the result: another value gives other bytes.
BLOCK = 1 << 16
#: Up to so many units are drawn with sixteen bits, which are fewer to draw but are rejected the
#: more often the larger n is. Part of the result as well.
_FEW_BITS = 5_000


@dataclass(frozen=True, slots=True)
class Nesting:
    """Which unit lies in which: one entry per level below the outermost.

    Attributes
    ----------
    outer : int
        Number of outermost clusters.
    children : tuple of (first, count)
        For each level and each of its clusters: position of its first child one level below, and
        how many it has. Children of one cluster are neighbours.
    """

    outer: int
    children: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]

    def outermost(self) -> NDArray[np.int64]:
        """Return the outermost cluster of each innermost one."""
        parent = np.arange(self.outer)
        for _, count in self.children:
            parent = np.repeat(parent, count)
        return parent


def nest(labels: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], Nesting]:
    """Give each innermost cluster a number and describe how they are nested.

    Parameters
    ----------
    labels : sequence of ndarray, shape (n,)
        Outermost first. An inner label belongs to its outer one: "a" in X and "a" in Y are two.

    Returns
    -------
    code : ndarray, shape (n,)
        Number of the innermost cluster of each row.
    nesting : Nesting
    """
    code = _number(labels[0])
    outer = int(code.max()) + 1
    children = []
    for label in labels[1:]:
        inner = _number(label)
        base = int(inner.max()) + 1
        found, finer = np.unique(code * base + inner, return_inverse=True)
        count = np.bincount(found // base)
        children.append((np.cumsum(count) - count, count))
        code = finer.astype(np.int64)
    return code, Nesting(outer, tuple(children))


def _number(label: NDArray[Any]) -> NDArray[np.int64]:
    # In the order of the labels, not of the rows: the same draws however a table is ordered.
    labels: list[Hashable] = label.tolist()
    rank = {v: i for i, v in enumerate(sorted(dict.fromkeys(labels), key=sort_key))}
    return np.asarray([rank[v] for v in labels], dtype=np.int64)


def add_up(values: Floats, code: NDArray[np.int64], count: int) -> Floats:
    """Sum the values of each code from 0 to count - 1."""
    return np.bincount(code, weights=values, minlength=count).astype(np.float64, copy=False)


def spread(sums: Sums, units: int) -> tuple[Floats, Floats]:
    """Return D and its standard error from the five sums; the delta method for a ratio."""
    r, y, rr, ry, yy = sums
    d = r / y
    squares = np.maximum(rr - 2 * d * ry + d * d * yy, 0.0)
    return d, np.sqrt(squares * (units / (units - 1))) / y


def deviations(
    r: Floats,
    y: Floats | None,
    nesting: Nesting | None,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Draw resamples and return D and its standard error for each.

    Parameters
    ----------
    r : ndarray, shape (units,)
        Residuals of the units drawn (pairs, or innermost clusters); they sum to zero.
    y : ndarray, shape (units,), or None
        Sizes of the units; None where all are 1.
    nesting : Nesting or None
        How units lie in clusters; None where the units themselves are drawn.
    resamples : int
    rng : numpy.random.Generator

    Returns
    -------
    d, se : ndarray, shape (resamples,)
    """
    if nesting is None:
        units, blocks = len(r), _draw_units(r, y, resamples, rng)
    else:
        sizes = np.ones_like(r) if y is None else y
        units, blocks = nesting.outer, _draw_nested(r, sizes, nesting, resamples, rng)
    d, se = np.empty(resamples), np.empty(resamples)
    done = 0
    for sums in blocks:
        rows = slice(done, done + len(sums[0]))
        d[rows], se[rows] = spread(sums, units)
        done = rows.stop
    return d, se


def five_sums(r: Floats, y: Floats | None) -> Sums:
    """Sum r, y, r², ry and y² over the draws of each resample; shape (resamples, draws) in."""
    # Not r @ ones: BLAS would use threads, and the bytes would depend on how many there are.
    total, squares = r.sum(axis=1), np.einsum("ij,ij->i", r, r)
    if y is None:
        n = np.full(len(r), float(r.shape[1]))
        return total, n, squares, total, n
    products = np.einsum("ij,ij->i", r, y)
    return total, y.sum(axis=1), squares, products, np.einsum("ij,ij->i", y, y)


def _draw_units(
    r: Floats, y: Floats | None, resamples: int, rng: np.random.Generator
) -> Iterator[Sums]:
    n = len(r)
    columns = min(n, BLOCK)
    rows = max(1, BLOCK // columns)
    dtype = np.uint16 if n <= _FEW_BITS else np.int64
    buffer = np.empty(rows * columns), np.empty(rows * columns)

    def take(values: Floats, index: NDArray[Any], out: Floats) -> Floats:
        # Indices are in range; "clip" only tells NumPy that it need not check before it writes.
        shape = out[: index.size].reshape(index.shape)
        return np.take(values, index, out=shape, mode="clip")

    for start in range(0, resamples, rows):
        height = min(rows, resamples - start)
        parts = []
        for left in range(0, n, columns):
            width = min(columns, n - left)
            index = rng.integers(0, n, size=(height, width), dtype=dtype)
            sizes = None if y is None else take(y, index, buffer[1])
            parts.append(five_sums(take(r, index, buffer[0]), sizes))
        yield _add(parts)


def _add(parts: list[Sums]) -> Sums:
    if len(parts) == 1:
        return parts[0]
    r, y, rr, ry, yy = (np.sum(column, axis=0) for column in zip(*parts, strict=True))
    return r, y, rr, ry, yy


def _draw_nested(
    r: Floats, y: Floats, nesting: Nesting, resamples: int, rng: np.random.Generator
) -> Iterator[Sums]:
    outer = nesting.outer
    rows = max(1, BLOCK // len(r))
    for start in range(0, resamples, rows):
        height = min(rows, resamples - start)
        unit = rng.integers(0, outer, size=height * outer)
        slot = np.arange(height * outer)
        for first, count in nesting.children:
            born = count[unit]
            parent = np.repeat(unit, born)
            slot = np.repeat(slot, born)
            unit = first[parent] + rng.integers(0, count[parent])
        r_outer, y_outer = (add_up(v[unit], slot, height * outer) for v in (r, y))
        yield five_sums(r_outer.reshape(height, outer), y_outer.reshape(height, outer))
