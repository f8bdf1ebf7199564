"""Which rows of a series are surely valid, or surely expired, in spite of noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.halflife.design import Panel

__all__ = ["Rows", "any_row", "judge", "least"]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is sure of each row, and of which series the noise is known.

    ``expired_by`` of a row is the last row of the shortest surely expired mean from it on, else -1.
    ``alone`` are single rows beyond the threshold between two that are not, of series whose noise
    is not known: one bad run looks the same.
    """

    valid: NDArray[np.bool_]
    expired_by: NDArray[np.int64]
    hopeful: NDArray[np.bool_]
    known: NDArray[np.bool_]
    alone: NDArray[np.bool_]


def judge(
    panel: Panel, series: NDArray[Any], first: NDArray[Any], threshold: float, level: float
) -> Rows:
    """Look at the means of 1, 2, 4, ... rows from each row on."""
    n = len(series)
    sd = np.asarray(panel.sd, dtype=float)
    known = (panel.noise_df > 0) & ~any_row(~np.isfinite(sd), panel.starts[:-1])
    variance = np.where(known[series], sd, 0.0) ** 2
    shared = np.zeros(n)
    alone = np.zeros(n, dtype=bool)
    if panel.frozen_at_first:
        # Its error is 0 by construction; its noise is in all others, and in all their means.
        shared = np.where(first, 0.0, variance[panel.starts[:-1]][series])
        variance, alone = np.where(first, 0.0, variance), first
    z = _quantiles(np.diff(panel.starts) - panel.frozen_at_first, known, panel.noise_df, level)
    sums = np.concatenate([[0.0], np.cumsum(panel.error)])
    squares = np.concatenate([[0.0], np.cumsum(variance)])
    by, valid, hopeful = np.full(n, -1), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for width in 2 ** np.arange(int(np.diff(panel.starts).max(initial=1)).bit_length()):
        at = np.arange(n - width + 1)
        at = at[series[at] == series[at + width - 1]]
        if width > 1:
            at = at[known[series[at]] & ~alone[at]]
        noise = np.maximum(squares[at + width] - squares[at], 0.0) / width**2 + shared[at]
        margin = z[series[at]] * np.sqrt(noise)
        size = np.abs(sums[at + width] - sums[at]) / width if width > 1 else np.abs(panel.error)
        # Without noise a row on the threshold has expired.
        expired = at[size - margin >= threshold]
        valid[at[size + margin < threshold]] = True
        by[expired[by[expired] < 0]] = expired[by[expired] < 0] + width - 1
        hopeful[at[(margin < threshold) & ~alone[at]]] = True
    single = _single(np.abs(panel.error) >= threshold, series) & ~known[series]
    by[single] = -1
    return Rows(valid, by, hopeful, known, single)


def _single(beyond: NDArray[Any], series: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows are beyond the threshold where those before and after them are not."""
    back = ~beyond[1:] & (series[1:] == series[:-1])
    came = ~beyond[:-1] & (series[1:] == series[:-1])
    found: NDArray[np.bool_] = beyond.copy()
    found[:-1] &= back
    found[1:] &= came
    found[:1] = found[-1:] = False
    return found


def _quantiles(
    rows: NDArray[Any], known: NDArray[Any], df: NDArray[Any], level: float
) -> NDArray[np.float64]:
    """Return z of each series, by its number of rows that can be wrong."""
    rows = np.maximum(rows, 1)
    widths = 2 ** np.arange(int(rows.max(initial=1)).bit_length())
    looks = np.maximum(rows[:, None] - widths + 1, 0).sum(axis=1)
    # Few pairs of looks and degrees of freedom: quantiles are slow.
    pairs, where = np.unique(
        np.column_stack([looks, np.where(known, df, 1.0)]), axis=0, return_inverse=True
    )
    z = -special.stdtrit(pairs[:, 1], -np.expm1(np.log(level) / pairs[:, 0]))
    found: NDArray[np.float64] = np.atleast_1d(z)[where.ravel()]
    return found


def least(values: NDArray[np.float64], starts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the least value of each series."""
    found: NDArray[np.float64] = np.minimum.reduceat(values, starts) if len(starts) else values
    return found


def any_row(rows: NDArray[Any], starts: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which series have such a row."""
    found: NDArray[np.bool_] = np.logical_or.reduceat(rows, starts) if len(starts) else rows
    return found
