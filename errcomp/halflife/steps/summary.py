"""The result for every series: its steps by version, its noise, and its power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.codec import Count, Derived, Document, Log
from errcomp.halflife.steps.fit import (
    Fitted,
    correction,
    correlation_of,
    fitted,
    settled,
    variance_of_gap,
)
from errcomp.halflife.steps.null import critical_evidence
from errcomp.halflife.steps.scan import Batch, by_length, levels_of, variance
from errcomp.halflife.steps.search import search


@dataclass(frozen=True, slots=True)
class Step(Document):
    """A step of the mean between two versions.

    Attributes
    ----------
    at : int
        Position of the first value after the step.
    at_low, at_high : int
        Ends of the 95 % set of positions for ``at``.
    versions : tuple of str
        The last version before and the first version after it.
    earliest, latest : str
        The versions at ``at_low`` and ``at_high``.
    size, size_low, size_high : float
        Level after minus level before, on the scale of the values (log), and its 95 % interval.
    before, after : float
        Levels on both sides.
    p : float
        Probability of as much evidence in a series without a step, with the correlation of
        neighbours that the series has. For a step detected in a part of the series, multiplied by
        the length of the series over that of the part.
    p_independent : float
        The same if neighbours were independent.
    """

    KEYS: ClassVar = (
        *("at", "at_low", "at_high", "versions", "earliest", "latest", "size", "size_low"),
        *("size_high", "before", "after", "p", "p_independent"),
        Derived("change", float, lambda step: step.change[0]),
        Derived("change_low", float, lambda step: step.change[1]),
        Derived("change_high", float, lambda step: step.change[2]),
    )

    at: Count
    at_low: Count
    at_high: Count
    versions: tuple[str, str]
    earliest: str
    latest: str
    size: Log
    size_low: Log
    size_high: Log
    before: Log
    after: Log
    p: float
    p_independent: float

    @property
    def change(self) -> tuple[float, float, float]:
        """Relative change and its interval, as fractions (0.1 is 10 %), for values on log scale."""
        low, value, high = np.expm1([self.size_low, self.size, self.size_high])
        return float(value), float(low), float(high)


@dataclass(frozen=True, slots=True)
class Steps(Document):
    """The steps of one series, or why it cannot be searched.

    Attributes
    ----------
    n : int
        Number of values.
    steps : tuple of Step
        In order.
    p : float or None
        Probability of as much evidence for any step in a series without one; None if refused.
    p_independent : float or None
        The same if neighbours were independent.
    autocorrelation : float or None
        Correlation of neighbouring values about their level: the mean of what the series and its
        group allow.
    alpha : float
        False-alarm rate per series without a step.
    sd : float or None
        Standard deviation of a value about its level, from the series and the given noise.
    df : float
        Its degrees of freedom.
    noise_ratio : float or None
        Standard deviation of the series about its levels over that of repeats; None without
        repeats.
    smallest_middle, smallest_end : float or None
        Approximate size of a step that would be detected in 4 of 5 such series: in the middle, and
        with ``min_segment`` versions after it.
    unseen : int
        Number of last versions in which a step cannot be detected yet.
    refused : str
        Why the series cannot be searched; empty otherwise.
    notes : tuple of str
        Remarks for the reader, each a sentence.
    """

    n: int
    steps: tuple[Step, ...]
    p: float | None
    p_independent: float | None
    autocorrelation: float | None
    alpha: float
    sd: float | None
    df: float
    noise_ratio: float | None
    smallest_middle: float | None
    smallest_end: float | None
    unseen: int
    refused: str = ""
    notes: tuple[str, ...] = ()


Floats = NDArray[Any]
Ints = NDArray[Any]
_POWER_80 = 0.8416
# Noise of the residuals against that of repeats: reported if chance gives as much in 1 of 100.
_RATIO_ALPHA = 0.01


def too_short(n: int, alpha: float, min_segment: int) -> Steps:
    """Refuse a series of fewer than two segments."""
    refused = (
        f"at least {2 * min_segment} values are needed ({min_segment} before and {min_segment} "
        f"after a step), the series has {n}"
    )
    return Steps(
        n=n,
        steps=(),
        p=None,
        p_independent=None,
        autocorrelation=None,
        alpha=alpha,
        sd=None,
        df=0.0,
        noise_ratio=None,
        smallest_middle=None,
        smallest_end=None,
        unseen=n,
        refused=refused,
    )


def steps_of(
    batch: Batch, alpha: float, min_segment: int, names: Sequence[str], version: Ints
) -> list[Steps]:
    """Find the steps of each series of at least two segments.

    ``names[version[i]]`` is the version of value i of the batch.
    """
    p, p_independent, cuts = search(batch, alpha, min_segment)
    cuts = settled(batch, cuts, min_segment, alpha)
    levels = levels_of(batch, cuts)
    sizes = batch.sizes
    left = sizes - levels.segments
    squares = levels.total * correction(batch, levels)
    square, df = variance(batch.given, batch.df, squares, left)
    sd = np.sqrt(square)
    middle, end = (limit * sd for limit in _smallest(batch, alpha, min_segment))
    steps = []
    if len(cuts.at):
        steps = _steps(fitted(batch, cuts, levels, min_segment), batch, names, version)
    ends = np.cumsum(levels.segments - 1)
    rho = correlation_of(batch)
    firsts = ends - levels.segments + 1
    columns = (sizes, firsts, ends, p, p_independent, rho, sd, df, middle, end)
    return [
        Steps(
            n=n,
            steps=tuple(steps[first:last]),
            p=p_value,
            p_independent=alone,
            autocorrelation=correlation,
            alpha=alpha,
            sd=spread,
            df=freedom,
            noise_ratio=ratio,
            smallest_middle=at_middle,
            smallest_end=at_end,
            unseen=min_segment - 1,
            notes=(*notes, *_if_independent(p_value, alone, alpha)),
        )
        for (
            *(n, first, last, p_value, alone, correlation, spread, freedom, at_middle, at_end),
            (ratio, notes),
        ) in zip(
            *(column.tolist() for column in columns),
            _against_repeats(batch, squares, left),
            strict=True,
        )
    ]


def _steps(fit: Fitted, batch: Batch, names: Sequence[str], version: NDArray[Any]) -> list[Step]:
    start = batch.starts[fit.series]
    named = [
        [names[i] for i in version[start + place].tolist()]
        for place in (fit.at - 1, fit.at, fit.low, fit.high)
    ]
    columns = [column.tolist() for column in fit[1:]]
    return [
        Step(at, at_low, at_high, (last, first), earliest, latest, *figures)
        for (at, at_low, at_high), (last, first, earliest, latest), figures in zip(
            zip(*columns[:3], strict=True),
            zip(*named, strict=True),
            zip(*columns[3:], strict=True),
            strict=True,
        )
    ]


def _smallest(batch: Batch, alpha: float, min_segment: int) -> tuple[Floats, Floats]:
    """Return sizes detected in 4 of 5 series, in standard deviations of a value: middle and end."""
    sizes, rho = batch.sizes, correlation_of(batch)
    middle, end = np.zeros((2, len(sizes)))
    for n, which in by_length(sizes):
        known, own = batch.df[which], rho[which]
        share = (n - 2) / (n - 2 + known)
        limit = critical_evidence(n, share, min_segment, alpha, batch.correlated[which])
        t = -special.stdtrit(n - 2 + known, np.exp(-limit) / 2)
        for size, last in ((middle, n - n // 2), (end, min_segment)):
            # The contrast varies more about its mean than t allows for.
            swing = np.sqrt(variance_of_gap(np.array(n - last), np.array(last), own))
            size[which] = (t + _POWER_80 * swing) * math.sqrt(1 / (n - last) + 1 / last)
    return middle, end


def _if_independent(p: float, alone: float, alpha: float) -> tuple[str, ...]:
    """Say so where only independent neighbours would make a step."""
    if alone > alpha or p <= alpha:
        return ()
    return (
        f"A possible step is not reported. It is significant (p = {alone:.2g} ≤ {alpha:g}) if "
        f"neighbouring values are independent, but not if they are correlated (p = {p:.2g}): a "
        "slow swing looks like a step. More versions or more series are needed to decide.",
    )


def _against_repeats(
    batch: Batch, squares: Floats, freedom: NDArray[Any]
) -> list[tuple[float | None, tuple[str, ...]]]:
    """Compare the scatter of values about their levels with that of repeats."""
    comparisons: list[tuple[float | None, tuple[str, ...]]] = [(None, ())] * len(freedom)
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
            f"Between steps, the values scatter {ratio:.1f} times as much as repeats do. Repeats "
            "miss part of the noise, and some steps may be false alarms."
        )
        comparisons[i] = ratio, () if alike else (note,)
    return comparisons
