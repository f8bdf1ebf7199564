"""Bootstrap of a ratio of sums: of pairs, or of whole clusters.

Everything here works on residuals r (they sum to zero) and sizes y of the units that are drawn. The
deviation of a resample from the data is D = sum(r) / sum(y); its standard error is that of a ratio
estimator, recomputed in every resample from the five sums of r, y, r², ry and y².
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Sums = tuple[Floats, Floats, Floats, Floats, Floats]

__all__ = ["add_up", "deviations", "five_sums", "spread"]

#: Draws held in memory at a time. Memory does not depend on n or on the number of resamples; the
#: buffers of one block stay in the cache. Part of the result: another value gives other bytes.
BLOCK = 1 << 16
#: Up to so many units are drawn with sixteen bits, which are fewer to draw but are rejected the
#: more often the larger n is. Part of the result as well.
_FEW_BITS = 5_000


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
    *,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Draw resamples and return D and its standard error for each.

    Parameters
    ----------
    r : ndarray, shape (units,)
        Residuals of the units drawn (pairs, or whole clusters); they sum to zero.
    y : ndarray, shape (units,), or None
        Sizes of the units; None where all are 1.
    resamples : int
    rng : numpy.random.Generator

    Returns
    -------
    d, se : ndarray, shape (resamples,)
    """
    d, se = np.empty(resamples), np.empty(resamples)
    done = 0
    for sums in _draw_units(r, y, resamples, rng):
        rows = slice(done, done + len(sums[0]))
        d[rows], se[rows] = spread(sums, len(r))
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
