"""Values from files, converted to the expected type, or refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.system import strict_json as _strict

if TYPE_CHECKING:
    from errcomp.readers.core.source import Source


#: A whole number of 64 bits has at most this many digits; Python refuses those of thousands.
_DIGITS = 18


class DamagedError(ValueError):
    """A value that no tool writes; `read_source` adds the name of the file."""


def digits(text: str) -> int:
    """Convert digits to a whole number.

    Raises
    ------
    DamagedError
        There are more than 18.

    Examples
    --------
    >>> digits("007")
    7
    """
    if len(text) > _DIGITS:
        raise DamagedError(f"a whole number is too long ({len(text):,} digits): {text[:20]}…")
    return int(text)


#: Digits in a pattern, and how many: ``\\d{1,9}``, ``[\\d.]+``, ``[0-9.]*``.
_DIGITS_IN_PATTERN = re.compile(r"(?:\\d|(?<!\\)\[[^][]*(?:\\d|0-9)[^][]*\])(?:[*+]|\{[\d,]+\})?")


def loosened(pattern: re.Pattern[str]) -> re.Pattern[str]:
    r"""Return a pattern that also matches lines with damaged numbers, which can then be counted.

    Examples
    --------
    >>> strict = re.compile(r"took (\d+) cycles")
    >>> loose = loosened(strict)
    >>> [bool(one.search("took 1o4 cycles")) for one in (strict, loose)]
    [False, True]
    """
    return re.compile(_DIGITS_IN_PATTERN.sub(r"[^\\s,;:()]{0,32}", pattern.pattern), pattern.flags)


#: Reason of rows left out.
DAMAGED = "lines with a damaged number"


def number(value: Any) -> float | None:
    """Return a JSON number as a float (infinite if too large); None for anything else.

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
    """Return a whole number of 64 bits; None for anything else."""
    fine = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return value if fine else None


def count_of(value: Any, *, or_text: bool = False) -> int | None:
    """Return a whole number ≥ 0 of 63 bits; None for anything else.

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
        and len(value) <= _DIGITS
    ):
        value = int(value)
    count = whole(value)
    return None if count is None or count < 0 else count


def dict_of(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty dict for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def dicts_of(value: Any) -> list[dict[str, Any]]:
    """Return the JSON objects in a list."""
    return [item for item in list_of(value) if isinstance(item, dict)]


def text(value: Any) -> str | None:
    """Return text; None for anything else."""
    return value if isinstance(value, str) else None


def number_at(
    source: Source, what: str, text: str, line: int | None = None, *, missing: bool = True
) -> float:
    """Convert text to a number, NaN for a missing number (n/a).

    Parameters
    ----------
    source : Source
    what : str
        Name of the number in the message.
    text : str
    line : int, optional
        Line of the number.
    missing : bool
        Whether the number may be missing.

    Raises
    ------
    InputError
        It is not a number.
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
    """Convert text to a finite number ≥ 0.

    Parameters
    ----------
    where, name : str
        File and line, and name of the number, for the message.
    text : str

    Raises
    ------
    InputError
        It is not such a number.
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


# Numbers in the format of the user's locale.

#: 33,0 and 2.176,0 and 0,074 cannot have a comma as thousands separator; 2,176 can. 1.234.567 has
#: points as thousands separators.
COMMA = r"\d+,(?:\d{1,2}|\d{4,})|0,\d+|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}"
_COMMA = re.compile(COMMA)
_BETWEEN_THOUSANDS = re.compile(r"(?<=\d)[\s'’](?=\d{3})")


def decimal_comma(texts: Iterable[str]) -> bool:
    """Say whether any of these numbers has a decimal comma.

    Examples
    --------
    >>> decimal_comma(["2.176", "33,0"]), decimal_comma(["2.176", "1,234", "1,234.5"])
    (True, False)
    """
    return any(_COMMA.fullmatch(text.strip()) for text in texts)


def with_point(text: str, *, comma: bool) -> str:
    """Return a number with a decimal point and at most commas between thousands.

    Examples
    --------
    >>> with_point("2.176,0", comma=True), with_point("6’816", comma=False)
    ('2176.0', '6816')
    """
    plain = _BETWEEN_THOUSANDS.sub("", text)
    return plain.replace(".", "").replace(",", ".") if comma else plain
