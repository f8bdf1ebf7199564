"""Write results and tables to files, by suffix and never partially, and as text to paste."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from errcomp.codec import json_text, plain
from errcomp.errors import InputError, MissingExtraError
from errcomp.report.model import Table
from errcomp.system.files import replacing
from errcomp.system.formulas import inert, inert_frame

if TYPE_CHECKING:
    import polars as pl

    from errcomp.report.model import Report

#: Suffix of a page, and suffixes of the formats of a picture.
PAGE = ".html"
PICTURES = (".svg", ".pdf", ".png")
#: Suffixes of tables and documents.
SUFFIXES = (".csv", ".parquet", ".json", ".md", ".tex")
#: Formats in which a result can be printed; the first is for a terminal.
FORMATS = ("text", "md", "tex", "csv")
#: Keys that hold the rows of a document: of most documents, of a search, of a check of a history.
_ROWS = ("rows", "matches", "series")


def check_result_suffix(path: Path) -> None:
    """Raise InputError unless a result can be written in the format of this suffix.

    Raises
    ------
    InputError
        The suffix is unknown.
    MissingExtraError
        The format is one of a picture, and Matplotlib is not installed.
    """
    check_suffix(path, (PAGE, *SUFFIXES, *PICTURES))
    if path.suffix.lower() in PICTURES and find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "figures", "drawing figures")


def write_result(path: Path, document: Mapping[str, Any], report: Report) -> None:
    """Write a result in the format of the suffix: a page, its main picture, or its tables.

    Raises
    ------
    InputError
        The suffix is unknown, the result has no picture, or the file cannot be written.
    MissingExtraError
        The format is one of a picture, and Matplotlib is not installed.
    """
    check_result_suffix(path)
    suffix = path.suffix.lower()
    if suffix == PAGE:
        write_page(path, [report])
    elif suffix not in PICTURES:
        write(path, document, report.tables_for("text"))
    elif report.draw is None:
        raise InputError(
            f"{path}: this result ({report.title}) cannot be drawn. Use one of: "
            f"{', '.join((PAGE, *SUFFIXES))}"
        )
    else:
        from errcomp.report.drawing.saving import save

        save(report.draw(), path)


def write_page(path: Path, reports: Sequence[Report], title: str | None = None) -> None:
    """Write a page, whole or not at all."""
    from errcomp import __version__
    from errcomp.report.html import page

    text = page(
        reports,
        title=title or (reports[0].title if len(reports) == 1 else f"{len(reports)} results"),
        made_by=f"errcomp {__version__}",
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="xmlcharrefreplace")


def write(path: Path, document: Mapping[str, Any], tables: Sequence[Table]) -> None:
    """Write a result in the format of the suffix; an error leaves no partial file."""
    check_suffix(path, SUFFIXES)
    with replacing(path) as temporary:
        _WRITERS[path.suffix.lower()](temporary, document, tables)


def rendered(form: str, document: Mapping[str, Any], tables: Sequence[Table]) -> str:
    r"""Return a result as text to paste, without a line break at its end.

    Parameters
    ----------
    form : {"md", "tex", "csv"}
        Markdown, LaTeX, or the rows of the document: fractions with all their digits, named by the
        keys of the document (see `flat_columns`). Text that a spreadsheet would treat as a formula
        gets an apostrophe in front.
    document : mapping
        The result as from ``to_dict()``, for CSV.
    tables : sequence of Table
        The tables of the result, for Markdown and LaTeX.

    Raises
    ------
    InputError
        The form is not one of these.

    Examples
    --------
    >>> rendered("csv", {"rows": [{"device": "A,1", "mape": 0.0873}]}, [])
    'device,mape\n"A,1",0.0873'
    """
    if form == "md":
        from errcomp.report.markdown import markdown

        return markdown(tables)
    if form == "tex":
        from errcomp.report.latex import latex

        return latex(tables)
    if form == "csv":
        return _csv(document)
    raise InputError(f"cannot print as {form!r}. Use one of: {', '.join(FORMATS[1:])}")


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a dataframe in the format of the suffix; an error leaves no partial file.

    In CSV, text that a spreadsheet would run as a formula gets an apostrophe in front; errcomp
    removes it again when it reads a table.
    """
    writers: dict[str, Callable[[IO[bytes]], object]] = {
        ".csv": lambda target: inert_frame(frame).write_csv(target),
        ".parquet": frame.write_parquet,
        # As text: on a full disk, Polars leaves a part of the file and says nothing.
        ".json": lambda target: target.write(frame.write_json().encode()),
        ".jsonl": lambda target: target.write(frame.write_ndjson().encode()),
    }
    check_suffix(path, tuple(writers))
    with replacing(path) as temporary, temporary.open("wb") as file:
        writers[path.suffix.lower()](file)


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Raise InputError unless the file name has one of these suffixes."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        name = repr(suffix) if suffix else "a name without suffix"
        raise InputError(
            f"{path}: cannot determine the format from {name}. Use one of: {', '.join(suffixes)}"
        )


def _csv(document: Mapping[str, Any]) -> str:
    columns = flat_columns(document)
    lines = [columns, *zip(*columns.values(), strict=True)] if columns else []
    return "\n".join(",".join(map(_quoted, line)) or '""' for line in lines)


def _quoted(cell: Any) -> str:
    # Python's csv module leaves a lone carriage return unquoted, and readers start a new row there.
    text = "" if cell is None else inert(cell) if isinstance(cell, str) else str(cell)
    return '"' + text.replace('"', '""') + '"' if re.search('[",\r\n]', text) else text


def _write_parquet(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    import polars as pl

    pl.DataFrame(flat_columns(document), strict=False).write_parquet(path)


def _write_json(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    path.write_text(json_text(document) + "\n", encoding="utf-8", errors="replace")


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


def flat_columns(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the rows of a document as columns whose cells are numbers, text or None.

    A document without rows becomes a single row. An object becomes one column per key
    (``claim.metric``). A list becomes one text, with its elements separated by semicolons: objects
    with a code, such as caveats, as their code, and other objects as ``key=value``.

    Parameters
    ----------
    document : mapping
        As a command prints it with ``--json``.

    Returns
    -------
    dict of str to list
        Columns of equal length, in the order of the keys.

    Examples
    --------
    >>> caveats = [{"code": "tail", "message": "…"}, {"code": "one-sided", "message": "…"}]
    >>> flat_columns({"rows": [{"key": {"gpu": "A"}, "levels": [0.5, 0.9], "caveats": caveats}]})
    {'key.gpu': ['A'], 'levels': ['0.5; 0.9'], 'caveats': ['tail; one-sided']}
    """
    rows = plain(next((document[name] for name in _ROWS if name in document), [document]))
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        _add(columns, name, [row.get(name) for row in rows])
    return columns


def _add(columns: dict[str, list[Any]], name: str, cells: Sequence[Any]) -> None:
    objects = [cell for cell in cells if isinstance(cell, dict)]
    others = [None if isinstance(cell, dict) else _list_as_text(cell) for cell in cells]
    if not objects or any(cell is not None for cell in others):
        columns[name] = others
    for key in dict.fromkeys(key for cell in objects for key in cell):
        inner = [cell.get(key) if isinstance(cell, dict) else None for cell in cells]
        _add(columns, f"{name}.{key}", inner)


def _list_as_text(cell: Any) -> Any:
    """Convert a list to text; return other values unchanged."""
    if not isinstance(cell, list):
        return cell
    return "; ".join(_part(part) for part in cell)


def _part(part: Any) -> str:
    if isinstance(part, dict):
        if "code" in part:
            return str(part["code"])
        return ", ".join(f"{key}={_part(value)}" for key, value in part.items())
    if isinstance(part, list):
        return " ".join(map(_part, part))
    return "" if part is None else str(part)
