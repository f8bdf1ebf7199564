"""Results and tables into files, by suffix, whole or not at all, and as text to paste."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.report.model import Table
from errcomp.report.tables.flat import flat_columns
from errcomp.report.tables.plain import plain
from errcomp.system.files import replacing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "SUFFIXES", "check_suffix", "rendered", "write", "write_frame"]

SUFFIXES = (".csv", ".parquet", ".json", ".md", ".tex")
#: What a result can be printed as; the first is for a terminal.
FORMATS = ("text", "md", "tex", "csv")
#: What begins a formula in a spreadsheet, as OWASP lists it, full-width signs included.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
#: A claim as printed, or a key that is a number, is no formula.
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)? ?%?")


def write(path: Path, document: Mapping[str, Any], tables: Sequence[Table]) -> None:
    """Write a result by suffix, whole or not at all."""
    check_suffix(path, SUFFIXES)
    with replacing(path) as temporary:
        _WRITERS[path.suffix.lower()](temporary, document, tables)


def rendered(form: str, document: Mapping[str, Any], tables: Sequence[Table]) -> str:
    r"""Return a result as text to print or to paste, without a line break at its end.

    Parameters
    ----------
    form : {"text", "md", "tex", "csv"}
        For a terminal, Markdown, LaTeX, or the rows of the document: fractions with all their
        digits, named by the keys of the document (see `flat_columns`). Text that a spreadsheet
        would take for a formula begins with an apostrophe.
    document : mapping
        The result for machines.
    tables : sequence of Table
        The result for people.

    Raises
    ------
    InputError
        The form is another one.

    Examples
    --------
    >>> rendered("csv", {"rows": [{"device": "A,1", "mape": 0.0873}]}, [])
    'device,mape\n"A,1",0.0873'
    """
    if form == "text":
        from errcomp.report.tables.text import render

        return "\n\n".join(render(table) for table in tables)
    if form == "md":
        from errcomp.report.tables.markdown import markdown

        return markdown(tables)
    if form == "tex":
        from errcomp.report.tables.latex import latex

        return latex(tables)
    if form == "csv":
        return _csv(document)
    raise InputError(f"cannot print as {form!r}. Use one of: {', '.join(FORMATS)}")


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table of data by suffix, whole or not at all."""
    writers: dict[str, Callable[[Path], object]] = {
        ".csv": frame.write_csv,
        ".parquet": frame.write_parquet,
        ".json": frame.write_json,
        ".jsonl": frame.write_ndjson,
    }
    check_suffix(path, tuple(writers))
    with replacing(path) as temporary:
        writers[path.suffix.lower()](temporary)


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file name that does not say in which of these formats to write."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        name = repr(suffix) if suffix else "a name without suffix"
        raise InputError(
            f"{path}: cannot tell the format from {name}. Use one of: {', '.join(suffixes)}"
        )


def _csv(document: Mapping[str, Any]) -> str:
    columns = flat_columns(document)
    lines = [columns, *zip(*columns.values(), strict=True)] if columns else []
    return "\n".join(",".join(map(_quoted, line)) or '""' for line in lines)


def _quoted(cell: Any) -> str:
    # Python's own writer leaves a lone carriage return unquoted, which readers take for a new row.
    text = "" if cell is None else str(_inert(cell))
    return '"' + text.replace('"', '""') + '"' if re.search('[",\r\n]', text) else text


def _inert(cell: Any) -> Any:
    """Begin text that a spreadsheet would take for a formula with an apostrophe."""
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def _write_parquet(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    import polars as pl

    pl.DataFrame(flat_columns(document), strict=False).write_parquet(path)


def _write_json(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", errors="replace")


def _write_text(
    form: str, path: Path, document: Mapping[str, Any], tables: Sequence[Table]
) -> None:
    text = rendered(form, document, tables)
    path.write_text(f"{text}\n", encoding="utf-8", errors="replace", newline="")


_WRITERS: dict[str, Callable[[Path, Mapping[str, Any], Sequence[Table]], None]] = {
    ".csv": partial(_write_text, "csv"),
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".md": partial(_write_text, "md"),
    ".tex": partial(_write_text, "tex"),
}
