"""Drivers of error: which factors move it, by how much, and what to think of statements about it.

Contrasts and verdicts need NumPy and SciPy only; the regression needs the extra ``drivers``.
"""

from __future__ import annotations

from errcomp.drivers.analysis import error_drivers
from errcomp.drivers.results import (
    Aliased,
    Contrast,
    DriversResult,
    Regression,
    RegressionTerm,
    Statement,
    StatementVerdict,
)
from errcomp.drivers.statements import STATEMENTS
from errcomp.stats.multiple import benjamini_hochberg, holm

__all__ = [
    "STATEMENTS",
    "Aliased",
    "Contrast",
    "DriversResult",
    "Regression",
    "RegressionTerm",
    "Statement",
    "StatementVerdict",
    "benjamini_hochberg",
    "error_drivers",
    "holm",
]
