"""Response times by load, and how they print."""

from __future__ import annotations

import math
from dataclasses import dataclass

from errcomp.propagation.examples._levels import format_time

__all__ = ["LoadRow", "LoadTable"]


@dataclass(frozen=True, slots=True)
class LoadRow:
    """Quantile of the response time at one load.

    Attributes
    ----------
    utilisation : float
        ρ of the predicted service time.
    predicted : float
        Without errors, in milliseconds.
    median : float
        Half of the distribution is below it, in milliseconds; infinite if saturation is as likely.
    half, band : tuple of float
        50 % and 90 % band in milliseconds; infinite where saturation reaches so far.
    amplification : float
        See `amplification`.
    if_slower : float
        What the response gains if the service takes 5 % longer: a fraction, or infinity.
    saturated : float
        Probability that the queue grows without bound.
    """

    utilisation: float
    predicted: float
    median: float
    half: tuple[float, float]
    band: tuple[float, float]
    amplification: float
    if_slower: float
    saturated: float


@dataclass(frozen=True, slots=True)
class LoadTable:
    """Response times by load, under one assumption; prints as a table.

    Attributes
    ----------
    assumption : str
        What the errors of kernels share.
    quantile : float
        Which quantile of the response time.
    rows : tuple of LoadRow
        In the order of the loads asked for.
    """

    assumption: str
    quantile: float
    rows: tuple[LoadRow, ...]

    def __str__(self) -> str:
        what = f"P{100 * self.quantile:g}"
        lines = [
            f"errors of kernels: {self.assumption}",
            f"{'load':>5}{what:>10}{'50 % band':>22}{'90 % band':>22}{'d ln R/d ln S':>15}"
            f"{'5 % slower':>12}{'saturated':>11}",
        ]
        for row in self.rows:
            half, band = (
                f"{format_time(low)} – {format_time(high)}" for low, high in (row.half, row.band)
            )
            gain = "never" if math.isinf(row.if_slower) else f"+{100 * row.if_slower:.0f} %"
            lines.append(
                f"{row.utilisation:>5.2f}{format_time(row.predicted):>10}{half:>22}{band:>22}"
                f"{row.amplification:>15.2f}{gain:>12}{100 * row.saturated:>9.1f} %"
            )
        return "\n".join(lines)
