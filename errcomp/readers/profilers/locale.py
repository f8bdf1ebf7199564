"""Numbers as the language of the one who ran a tool writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["decimal_comma", "with_point"]

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
