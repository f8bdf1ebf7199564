"""Checks that several modules make of what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TypeGuard

from errcomp.errors import InputError

__all__ = ["check_kernels", "check_levels", "is_number"]


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
