"""Exceptions and named warnings.

Every message says what is wrong, where (the first three rows), the value found and the remedy.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = [
    "EngineError",
    "ErrcompError",
    "InputError",
    "MissingExtraError",
    "NotDefinedError",
    "SmallSampleWarning",
    "describe_names",
    "describe_rows",
    "did_you_mean",
    "nearest",
    "offer",
    "renamed",
]

P = ParamSpec("P")
R = TypeVar("R")

_NAMES_SHOWN = 12


class ErrcompError(Exception):
    """Base of all errors raised on purpose by errcomp."""


class InputError(ErrcompError, ValueError):
    """The data or the arguments cannot be used as given."""


class NotDefinedError(InputError):
    """The metric is not defined for these pairs, although the pairs are valid."""


class EngineError(ErrcompError, RuntimeError):
    """The engine that holds the rows failed; the message quotes the engine's own error."""


class MissingExtraError(ErrcompError, ImportError):
    """An optional package is missing; the message names the extra that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed. "
            f"Install it with: pip install 'errcomp[{extra}]'"
        )


class GuessedWarning(UserWarning):
    """The columns of predictions and measurements were guessed by their names."""


class LeftOutWarning(UserWarning):
    """A column cannot be a key, because its values are lists or cannot be read: it is left out."""


class LargeFileWarning(UserWarning):
    """Reading a file takes much memory; the message says how to read it with less."""


class SmallSampleWarning(UserWarning):
    """The sample is too small for the interval to reach its nominal coverage."""


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
    """List up to twelve names; of more, list the nearest to the wanted one, the first, and a count.

    Parameters
    ----------
    names : sequence of str
        The names that exist.
    wanted : str
        The name that was asked for and does not exist.

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
        return ", ".join(map(_printable, names)) or "none"
    near = [name for name in (nearest(wanted, names),) if name is not None]
    first = [name for name in names if name not in near][: _NAMES_SHOWN - len(near)]
    shown = ", ".join([*(f"{_printable(n)} (nearest)" for n in near), *map(_printable, first)])
    return f"{shown} (and {len(names) - len(near) - len(first):,} more)"


def _printable(name: str) -> str:
    """Return a name; one with line breaks or control codes as Python writes it."""
    return name if name.isprintable() else repr(name)


def nearest(wanted: str, names: Iterable[str]) -> str | None:
    """Return the name that the user most likely meant, or None if no name is near.

    In this order: the same name in another case or with other separators; the shortest name that
    begins with the wanted one (three letters or more); the name that differs in the fewest letters
    (the same letters in another order first); the only name that contains the wanted one.

    Parameters
    ----------
    wanted : str
        The name that was asked for and does not exist.
    names : iterable of str
        The names that exist.

    Returns
    -------
    str or None

    Examples
    --------
    >>> nearest("h100", ["A100", "H100"]), nearest("devicx", ["device", "model"])
    ('H100', 'device')
    >>> nearest("h100", ["NVIDIA A100 PCIe", "NVIDIA H100 PCIe"]), nearest("x", ["device"])
    ('NVIDIA H100 PCIe', None)
    """
    from difflib import get_close_matches

    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(_folded(name), name)
    asked = _folded(wanted)
    if asked in plain:
        return plain[asked]
    if len(asked) > 2:
        longer = [name for name in plain if name.startswith(asked)]
        if longer:
            return plain[min(longer, key=len)]
    close = get_close_matches(asked, plain, n=5)
    if close:
        letters = sorted(asked)
        return plain[next((name for name in close if sorted(name) == letters), close[0])]
    within = [name for name in plain if asked in name] if len(asked) > 2 else []
    return plain[within[0]] if len(within) == 1 else None


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def offer(what: str, names: Sequence[str], *, wanted: str) -> str:
    """Suggest the nearest name, and list the existing ones.

    Parameters
    ----------
    what : str
        What the names refer to; the list begins with it: ``"Columns"``.
    names : sequence of str
        The names that exist.
    wanted : str
        The name that was asked for and does not exist.

    Returns
    -------
    str
        Without a full stop at the end.

    Examples
    --------
    >>> offer("Columns", ["device", "mode"], wanted="devicx")
    "Did you mean 'device'? Columns: device, mode"
    >>> offer("Values of device", ["A100", "H100"], wanted="h100")
    "Did you mean 'H100'? Names are case-sensitive. Values of device: A100, H100"
    >>> offer("Columns", ["device", "mode"], wanted="x")
    'Columns: device, mode'
    """
    return f"{did_you_mean(wanted, names)}{what}: {describe_names(names)}"


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """Suggest the nearest name, followed by a space; return an empty text if no name is near.

    Parameters
    ----------
    wanted : str
        The name that was asked for and does not exist.
    names : iterable of str
        The names that exist.

    Returns
    -------
    str

    Examples
    --------
    >>> did_you_mean("adit", ["audit", "claims"]), did_you_mean("x", ["audit"])
    ("Did you mean 'audit'? ", '')
    """
    near = nearest(wanted, names)
    if near is None:
        return ""
    case = "Names are case-sensitive. " if near.casefold() == wanted.casefold() else ""
    return f"Did you mean {near!r}? {case}"


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code, however deep in errcomp the reason lies.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_caller("a guess", GuessedWarning)
    >>> len(caught)
    1
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == "errcomp"


def renamed(**today: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take parameters by the names that they had before, with a warning.

    Parameters
    ----------
    today
        Old name to the name today.

    Examples
    --------
    >>> @renamed(cores="n_jobs")
    ... def fit(*, n_jobs=1):
    ...     return n_jobs
    >>> with warnings.catch_warnings(action="ignore"):
    ...     fit(cores=3)
    3
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in today.keys() & kwargs.keys():
                name = function.__qualname__.removesuffix(".__init__")
                if today[old] in kwargs:
                    raise TypeError(f"{name}: {old} is the old name of {today[old]}; give only one")
                message = f"{name}: the parameter {old} is now {today[old]}"
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                kwargs[today[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
