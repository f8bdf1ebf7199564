"""Exceptions and named warnings.

Every message says what is wrong, where (the first three rows), the value seen and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ErrcompError",
    "InputError",
    "MissingExtraError",
    "NotDefinedError",
    "SmallSampleWarning",
    "describe_names",
    "describe_rows",
]

_NAMES_SHOWN = 12


class ErrcompError(Exception):
    """Base of all errors raised on purpose by errcomp."""


class InputError(ErrcompError, ValueError):
    """The data or the arguments given cannot be used as they are."""


class NotDefinedError(InputError):
    """The figure is not defined for these pairs, although nothing is wrong with them."""


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


def describe_names(names: Sequence[str], *, wanted: str = "") -> str:
    """List names: all of a few; of many the nearest to what was wanted, the first, and a count.

    Parameters
    ----------
    names : sequence of str
        What there is.
    wanted : str
        What was asked for and is not there.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_names(["A", "B"], wanted="C"), describe_names([])
    ('A, B', 'none')
    >>> describe_names([f"gpu{i}" for i in range(1000)], wanted="GPU77")
    'gpu77 (nearest), gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7, gpu8, gpu9, gpu10 (and 988 \
more)'
    """
    if len(names) <= _NAMES_SHOWN:
        return ", ".join(names) or "none"
    from difflib import get_close_matches

    plain = {name.lower(): name for name in names}
    near = [plain[name] for name in get_close_matches(wanted.lower(), plain, n=1)]
    first = [name for name in names if name not in near][: _NAMES_SHOWN - len(near)]
    shown = ", ".join([*(f"{name} (nearest)" for name in near), *first])
    return f"{shown} (and {len(names) - len(near) - len(first):,} more)"
