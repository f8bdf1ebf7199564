"""Values of files, which may be of any kind, taken as what they should be, or refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.system import strict_json as _strict

if TYPE_CHECKING:
    from errcomp.readers.core.source import Source


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


def count_of(value: Any, *, or_text: bool = False) -> int | None:
    """Return a whole number of 63 bits that is not negative; None of anything else.

    Examples
    --------
    >>> count_of(7), count_of(-1), count_of(True), count_of("7"), count_of("7", or_text=True)
    (7, None, None, None, 7)
    """
    if (
        or_text
        and isinstance(value, str)
        and value.isascii()
        and value.isdecimal()
        and len(value) < 19
    ):
        value = int(value)
    count = whole(value)
    return None if count is None or count < 0 else count


def dict_of(value: Any) -> dict[str, Any]:
    """Return an object of JSON; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def dicts_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [item for item in list_of(value) if isinstance(item, dict)]


def text(value: Any) -> str | None:
    """Return text; None of anything else."""
    return value if isinstance(value, str) else None


def number_at(
    source: Source, what: str, text: str, line: int | None = None, *, missing: bool = True
) -> float:
    """Turn text into a number, NaN where it says that there is none (n/a).

    Parameters
    ----------
    source : Source
    what : str
        What the number is, for the message.
    text : str
    line : int, optional
        Where it stands.
    missing : bool
        May it say that there is none.

    Raises
    ------
    InputError
        It is no number.
    """
    try:
        return _strict.number(text)
    except ValueError:
        if missing and text.lower().lstrip("-") == "n/a":
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


# Numbers as the language of the one who ran a tool writes them.

#: 33,0 and 2.176,0 and 0,074 cannot have a comma between thousands; 2,176 can. 1.234.567 has
#: points between them.
_COMMA = re.compile(r"\d+,(?:\d{1,2}|\d{4,})|0,\d+|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_BETWEEN_THOUSANDS = re.compile(r"(?<=\d)[\s'’](?=\d{3})")


def decimal_comma(texts: Iterable[str]) -> bool:
    """Say whether one of these numbers has a comma where others have a point.

    Examples
    --------
    >>> decimal_comma(["2.176", "33,0"]), decimal_comma(["2.176", "1,234", "1,234.5"])
    (True, False)
    """
    return any(_COMMA.fullmatch(text.strip()) for text in texts)


def with_point(text: str, *, comma: bool) -> str:
    """Return a number with a decimal point, where thousands are set apart by commas at most.

    Examples
    --------
    >>> with_point("2.176,0", comma=True), with_point("6’816", comma=False)
    ('2176.0', '6816')
    """
    plain = _BETWEEN_THOUSANDS.sub("", text)
    return plain.replace(".", "").replace(",", ".") if comma else plain
