"""Results and tables into files, by suffix, whole or not at all, and as text to paste."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp._files import replacing
from errcomp.errors import InputError
from errcomp.report.tables._table import Table
from errcomp.report.tables.plain import plain

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "SUFFIXES", "check_suffix", "rendered", "write", "write_frame"]

SUFFIXES = (".csv", ".parquet", ".json", ".md", ".tex")
#: What a result can be printed as; the first is for a terminal.
FORMATS = ("text", "md", "tex", "csv")


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
        digits, named by the keys of the document.
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


def _flat_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = [plain(row) for row in document.get("rows", [])]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [
        {
            n: json.dumps(row[n], ensure_ascii=False)
            if isinstance(row.get(n), dict | list)
            else row.get(n)
            for n in names
        }
        for row in rows
    ]


def _csv(document: Mapping[str, Any]) -> str:
    import csv
    import io

    rows = _flat_rows(document)
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().removesuffix("\n")


def _write_parquet(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    import polars as pl

    pl.DataFrame(_flat_rows(document), infer_schema_length=None, strict=False).write_parquet(path)


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
