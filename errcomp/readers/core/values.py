"""Values of files, which may be of any kind, taken as what they should be, or refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.system import strict_json as _strict

if TYPE_CHECKING:
    from errcomp.readers.core.source import Source

__all__ = ["amount", "number", "number_at", "text", "whole"]


def number(value: Any) -> float | None:
    """Return a number of JSON; None of anything else (infinite, if it is too large).

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


def number_at(source: Source, what: str, text: str, line: int | None = None) -> float:
    """Turn text into a number, NaN where it says that there is none (n/a).

    Parameters
    ----------
    source : Source
    what : str
        What the number is, for the message.
    text : str
    line : int, optional
        Where it stands.

    Raises
    ------
    InputError
        It is no number.
    """
    try:
        return _strict.number(text)
    except ValueError:
        if text.lower().lstrip("-") == "n/a":
            return math.nan
        raise source.error(
            f"{what} must be a number, got {text[:40]!r}. The file may be damaged: copy it again.",
            line=line,
        ) from None


def amount(where: str, name: str, text: str) -> float:
    """Turn text into a finite number that is not negative.

    Parameters
    ----------
    where, name : str
        File and line, and what the number is, for the message.
    text : str

    Raises
    ------
    InputError
        It is none.
    """
    try:
        value = _strict.number(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(
            f"{where}: {name} must be a finite number ≥ 0, got {text[:40]!r}. Copy the file again."
        )
    return value
