"""Values of JSON, which may be of any kind, taken as what they should be, or as none."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["number", "text", "whole"]


def number(value: Any) -> float | None:
    """Return a number; None of anything else (infinite, if it is too large).

    Examples
    --------
    >>> number(3), number("3"), number(True), number(10**400)
    (3.0, None, None, inf)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def whole(value: Any) -> int | None:
    """Return a whole number of 64 bits; None of anything else."""
    fine = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return value if fine else None


def text(value: Any) -> str | None:
    """Return text; None of anything else."""
    return value if isinstance(value, str) else None
