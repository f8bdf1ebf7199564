"""What a file of text may hold: names come from tables of users, and hold anything."""

from __future__ import annotations

import re

from errcomp.report.model import clean

__all__ = ["legal", "token"]

#: Characters that XML 1.0 does not allow, not even escaped.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def legal(text: str) -> str:
    r"""Show characters that XML does not allow, and those that nobody sees, as their code.

    Examples
    --------
    >>> print(legal("a\x00b"))
    a\x00b
    """
    shown = _NO_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r", "\\r"))
    return "".join(c if c in "\n\t\xa0" else clean(c) for c in shown)


def token(text: str) -> str:
    r"""Make a name of one line: a token of XML has no line breaks or blanks at its ends.

    Examples
    --------
    >>> token(" two\n lines "), token(" ")
    ('two lines', '(no name)')
    """
    return legal(" ".join(text.split())) or "(no name)"
