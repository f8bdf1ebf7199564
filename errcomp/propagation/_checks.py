"""Checks that several modules make of what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TypeGuard, get_args

import numpy as np

from errcomp.errors import InputError
from errcomp.propagation._sampling import Method

__all__ = ["check_kernels", "check_levels", "check_simulation", "is_number"]

#: Fewer draws tell too little of a 5 % quantile.
_LEAST = 512


def is_number(value: object) -> TypeGuard[float]:
    """Say whether this is one real number; a truth value is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the probabilities of bands in increasing order, each once.

    Raises
    ------
    InputError
        There is none, or one is not between 0 and 1.
    """
    found = tuple(levels)
    if not found:
        raise InputError("no level of a band is given. Give at least one, e.g. 0.9.")
    for level in found:
        if not is_number(level) or not 0 < level < 1:
            raise InputError(
                f"a level must be a number between 0 and 1, both excluded, got {level!r}. "
                "0.9 is a band of 90 %."
            )
    return tuple(sorted({float(level) for level in found}))


def check_kernels(kernels: object) -> None:
    """Refuse what is no table of kernels.

    Raises
    ------
    InputError
        It is something else.
    """
    from errcomp.tables import Kernels

    if not isinstance(kernels, Kernels):
        raise InputError(
            f"expected a table of kernels, got {type(kernels).__name__}. Make one of a dataframe: "
            "errcomp.Kernels(frame)."
        )


def check_simulation(
    terms: int,
    draws: int,
    precision: float | None,
    max_draws: int,
    method: str,
    seed: int,
) -> None:
    """Insist on options that a simulation of so many terms can have.

    Raises
    ------
    InputError
        There are no terms, or an option is out of its range.
    """
    if terms == 0:
        raise InputError("there are no terms to simulate. Give a table with at least one kernel")
    whole = {"draws": (draws, _LEAST), "max_draws": (max_draws, 1), "seed": (seed, 0)}
    for name, (value, least) in whole.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if method not in get_args(Method):
        raise InputError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    number = isinstance(precision, (float, int)) and not isinstance(precision, bool)
    if precision is not None and not (number and 0 < precision < 1):
        raise InputError(
            f"precision must be a fraction between 0 and 1, got {precision!r}: 0.005 asks for "
            "quantiles right to half a percent"
        )
