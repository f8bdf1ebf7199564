"""Checks of what bounds are asked for, and of bounds that no number can hold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, NotDefinedError, describe_rows
from errcomp.propagation.terms import Floats, Terms

__all__ = ["check_terms", "columns", "finite", "number", "open_unit", "refuse", "too_large"]


def check_terms(terms: Terms) -> None:
    """Refuse a sum of nothing."""
    if len(terms) == 0:
        raise InputError("there is no term to sum. Give at least one kernel.")


def number(value: object) -> float:
    """Return a value as a number; NaN where it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def open_unit(name: str, value: object) -> float:
    """Return a number between 0 and 1, both excluded."""
    found = number(value)
    if not 0 < found < 1:
        raise InputError(f"{name}: must be a number between 0 and 1, both excluded, got {value!r}")
    return found


def finite(value: float, terms: Terms) -> float:
    """Return a bound; refuse one that no number can hold."""
    if not math.isfinite(value):
        raise too_large(terms)
    return value


def too_large(terms: Terms) -> NotDefinedError:
    """Return the error for terms so wide that no number can hold a bound."""
    at = int(np.argmax(terms.spread))
    return NotDefinedError(
        f"a bound is beyond the largest floating-point number; the largest spread is "
        f"{terms.spread[at]:g}, of {terms.ids[at]}, df {terms.df:g}. Look at the error model of "
        "that class, or at terms with Student t tails: the more there are, the less they bound."
    )


def columns(*values: ArrayLike) -> list[Floats]:
    """Return arrays of equal length as columns of floats."""
    try:
        arrays = [np.atleast_1d(np.asarray(c, dtype=float)) for c in values]
        out = np.broadcast_arrays(*arrays)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"value, error and count: must be numbers, one of each per term ({problem})"
        ) from problem
    if out[0].ndim != 1 or out[0].size == 0:
        raise InputError(
            f"value, error and count: must be columns of at least one row, got shape {out[0].shape}"
        )
    return [np.asarray(column, dtype=float) for column in out]


def refuse(x: Floats, bad: NDArray[np.bool_], name: str, wanted: str) -> None:
    """Raise for the first rows that are marked, or not finite."""
    bad = bad | ~np.isfinite(x)
    if bad.any():
        rows = np.flatnonzero(bad)
        raise InputError(
            f"{name}: must be {wanted} and finite, got {x[rows[0]]:g} in "
            f"{describe_rows((rows + 1).tolist())}"
        )
