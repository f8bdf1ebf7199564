"""Exceptions and named warnings.

Every message says what is wrong, where (the first three rows), the value seen and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ErrcompError",
    "InputError",
    "MissingExtraError",
    "SmallSampleWarning",
    "describe_rows",
]


class ErrcompError(Exception):
    """Base of all errors raised on purpose by errcomp."""


class InputError(ErrcompError, ValueError):
    """The data or the arguments given cannot be used as they are."""


class MissingExtraError(ErrcompError, ImportError):
    """An optional package is needed; the message says which extra installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed. "
            f"Install it with: pip install 'errcomp[{extra}]'"
        )


class SmallSampleWarning(UserWarning):
    """The sample is smaller than the sizes at which the interval reaches its nominal coverage."""


def describe_rows(rows: Sequence[int], *, word: str = "row") -> str:
    """Name the first three rows and count the others.

    Parameters
    ----------
    rows : sequence of int
        Row (or line) numbers as the user counts them.
    word : str
        What is counted: ``"row"`` or ``"line"``.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_rows([14, 15, 92, 120, 121, 122])
    'rows 14, 15, 92 (and 3 more)'
    >>> describe_rows([7], word="line")
    'line 7'
    """
    shown = ", ".join(str(row) for row in rows[:3])
    more = f" (and {len(rows) - 3} more)" if len(rows) > 3 else ""
    return f"{word}{'s' if len(rows) > 1 else ''} {shown}{more}"
