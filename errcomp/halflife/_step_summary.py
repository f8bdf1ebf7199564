"""What is said of every series: its steps in the names of versions, its noise, what it can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife._step_batch import Batch, levels_of, variance
from errcomp.halflife._step_fit import Fitted, fitted, settled
from errcomp.halflife._step_null import critical_evidence
from errcomp.halflife._step_results import Step, Steps
from errcomp.halflife._step_search import search

__all__ = ["steps_of", "too_short"]

Floats = NDArray[Any]
_POWER_80 = 0.8416
# Noise of the residuals against that of repeats: said where chance gives as much in 1 of 100.
_RATIO_ALPHA = 0.01


def too_short(n: int, alpha: float, min_segment: int) -> Steps:
    """Refuse a series of fewer than two segments."""
    refused = (
        f"{n} value{'' if n == 1 else 's'}: two levels of {min_segment} need "
        f"{2 * min_segment} at least"
    )
    return Steps(n, (), None, alpha, None, 0.0, None, None, None, n, refused)


def steps_of(
    batch: Batch, alpha: float, min_segment: int, names: Sequence[str], version: NDArray[Any]
) -> list[Steps]:
    """Find the steps of each series, of two segments at least.

    ``names[version[i]]`` is the version of value i of the batch.
    """
    p, cuts = search(batch, alpha, min_segment)
    cuts = settled(batch, cuts, min_segment, alpha)
    levels = levels_of(batch, cuts)
    sizes = batch.sizes
    left = sizes - levels.segments
    square, df = variance(batch.given, batch.df, levels.total, left)
    sd = np.sqrt(square)
    middle, end = (limit * sd for limit in _smallest(sizes, batch.df, alpha, min_segment))
    steps = []
    if len(cuts.at):
        steps = _steps(fitted(batch, cuts, levels, min_segment), batch, names, version)
    ends = np.cumsum(levels.segments - 1)
    columns = (sizes, ends - levels.segments + 1, ends, p, sd, df, middle, end)
    return [
        Steps(
            n=n,
            steps=tuple(steps[first:last]),
            p=p_value,
            alpha=alpha,
            sd=spread,
            df=freedom,
            noise_ratio=ratio,
            smallest_middle=at_middle,
            smallest_end=at_end,
            unseen=min_segment - 1,
            notes=notes,
        )
        for (n, first, last, p_value, spread, freedom, at_middle, at_end), (ratio, notes) in zip(
            zip(*(column.tolist() for column in columns), strict=True),
            _against_repeats(batch, levels.total, left),
            strict=True,
        )
    ]


def _steps(found: Fitted, batch: Batch, names: Sequence[str], version: NDArray[Any]) -> list[Step]:
    start = batch.starts[found.series]
    named = [
        [names[i] for i in version[start + place].tolist()]
        for place in (found.at - 1, found.at, found.low, found.high)
    ]
    columns = [column.tolist() for column in found[1:]]
    return [
        Step(
            at=at,
            at_low=at_low,
            at_high=at_high,
            versions=(last, first),
            earliest=earliest,
            latest=latest,
            size=size,
            size_low=size_low,
            size_high=size_high,
            before=before,
            after=after,
            p=p,
        )
        for (
            (at, at_low, at_high, size, size_low, size_high, before, after, p),
            (last, first, earliest, latest),
        ) in zip(zip(*columns, strict=True), zip(*named, strict=True), strict=True)
    ]


def _smallest(
    sizes: NDArray[Any], df: Floats, alpha: float, min_segment: int
) -> tuple[Floats, Floats]:
    """Sizes found in 4 of 5 series, in standard deviations of one value: middle and end."""
    limit = np.zeros(len(sizes))
    for n in np.unique(sizes).tolist():
        of_size = sizes == n
        for known in np.unique(df[of_size]).tolist():
            share = 0.0 if math.isinf(known) else (n - 2) / (n - 2 + known)
            log_p = -critical_evidence(n, share, min_segment, alpha)
            t = -float(special.stdtrit(n - 2 + known, math.exp(log_p) / 2))
            limit[of_size & (df == known)] = t + _POWER_80
    middle = np.sqrt(1 / (sizes // 2) + 1 / (sizes - sizes // 2))
    end = np.sqrt(1 / min_segment + 1 / (sizes - min_segment))
    return limit * middle, limit * end


def _against_repeats(
    batch: Batch, squares: Floats, freedom: NDArray[Any]
) -> list[tuple[float | None, tuple[str, ...]]]:
    """Do values scatter about their levels as repeats do? Where not, repeats miss a part."""
    found: list[tuple[float | None, tuple[str, ...]]] = [(None, ())] * len(freedom)
    known = np.flatnonzero(batch.df > 0)
    df, freedom = batch.df[known], freedom[known]
    square = squares[known] / freedom / batch.given[known]
    exact = np.isinf(df)
    p = np.where(
        exact,
        special.chdtrc(freedom, square * freedom),
        special.fdtrc(freedom, np.where(exact, 1.0, df), square),
    )
    for i, ratio, alike in zip(
        known.tolist(), np.sqrt(square).tolist(), (p > _RATIO_ALPHA).tolist(), strict=True
    ):
        note = (
            f"Values scatter {ratio:.1f} times as much about their levels as repeats do: repeats "
            "miss a part of the noise, and some steps may be none."
        )
        found[i] = ratio, () if alike else (note,)
    return found
