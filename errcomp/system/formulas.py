"""Text that a spreadsheet would run as a formula: made harmless in CSV, and read again unchanged.

An apostrophe in front marks text as text, as in the spreadsheets themselves. Text that already
begins with apostrophes and such a character gets another one, so that reading is exact.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

#: Characters that begin a formula in a spreadsheet (OWASP), including full-width signs.
_BEGINS = r"[=+\-@\t\r\n＝＋－＠]"
#: Text that a spreadsheet reads as a number, not as a formula: a printed claim, a numeric key.
_NUMBER = r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)? ?%?"
_FORMULA = re.compile(rf"(?!{_NUMBER}\Z)'*{_BEGINS}")
_ESCAPED = rf"^'('*{_BEGINS})"


def inert(text: str) -> str:
    """Prefix text that a spreadsheet would treat as a formula with an apostrophe.

    Examples
    --------
    >>> inert("=1+1"), inert("'=1"), inert("-2.5 %"), inert("'quoted'")
    ("'=1+1", "''=1", '-2.5 %', "'quoted'")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def original(text: str) -> str:
    """Return text as it was before `inert`.

    Examples
    --------
    >>> original("'=1+1"), original("''=1"), original("-2.5 %"), original("'quoted'")
    ('=1+1', "'=1", '-2.5 %', "'quoted'")
    """
    return re.sub(_ESCAPED, r"\1", text)


def inert_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a dataframe with the names and the text of its columns as from `inert`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = inert_frame(pl.DataFrame({"@key": ["=1+1", None, "-1"], "n": [-1, 0, 1]}))
    >>> frame.columns, frame.rows()
    (["'@key", 'n'], [("'=1+1", -1), (None, 0), ('-1', 1)])
    """
    import polars as pl

    kinds = (pl.String, pl.Categorical, pl.Enum)
    texts = [name for name, kind in frame.schema.items() if kind in kinds]
    columns = [pl.col(name).cast(pl.String) for name in texts]
    escaped = [
        pl.when(text.str.contains(rf"^'*{_BEGINS}") & ~text.str.contains(rf"^{_NUMBER}$"))
        .then(pl.lit("'") + text)
        .otherwise(text)
        .alias(name)
        for name, text in zip(texts, columns, strict=True)
    ]
    return frame.with_columns(escaped).rename({name: inert(name) for name in frame.columns})


def original_text(column: pl.Expr) -> pl.Expr:
    """Return a column of text as it was before `inert_frame`.

    Examples
    --------
    >>> import polars as pl
    >>> pl.select(original_text(pl.lit("'=1+1"))).item()
    '=1+1'
    """
    return column.str.replace(_ESCAPED, "${1}")
