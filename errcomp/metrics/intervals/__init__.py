"""Confidence intervals of error figures. What each method covers: docs/intervals.md."""

from __future__ import annotations

from errcomp.metrics.intervals._counts import tolerance_n, tolerance_share
from errcomp.metrics.intervals._estimate import (
    METHODS,
    check_options,
    estimate,
    fewest_resamples,
)

__all__ = [
    "METHODS",
    "check_options",
    "estimate",
    "fewest_resamples",
    "tolerance_n",
    "tolerance_share",
]
