"""One way out for every command: a table for people, a document for machines, a file by suffix."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp._files import replacing
from errcomp.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table as RichTable

__all__ = [
    "Column",
    "Table",
    "add_output_arguments",
    "emit",
    "plain",
    "render",
    "write",
    "write_frame",
]

#: Tables for people fit this many columns.
WIDTH = 100
_GAP = 2
SUFFIXES = (".csv", ".parquet", ".json", ".md", ".tex")


@dataclass(frozen=True, slots=True)
class Column:
    """One column for people: ``show`` turns a row into text.

    ``right`` is for figures: aligned at the right and never broken. ``key`` columns are repeated
    when a table is too wide and continues below.
    """

    header: str
    show: Callable[[Mapping[str, Any]], str]
    right: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """What people see: columns over rows, with notes below."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = field(default_factory=tuple)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json and -o."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=_output_path,
        help="also write to FILE; the suffix says how: csv, parquet, json, md, tex",
    )


def _output_path(text: str) -> Path:
    """Refuse a format before the work is done, not after."""
    path = Path(text)
    try:
        _check_suffix(path, SUFFIXES)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return path


def emit(args: argparse.Namespace, document: Mapping[str, Any], tables: Sequence[Table]) -> None:
    """Print for machines or for people, and write the file that was asked for."""
    if args.output:
        write(args.output, document, tables)
        print(f"wrote {args.output}", file=sys.stderr)
    if args.json:
        print(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print("\n\n".join(render(table) for table in tables))


def plain(value: Any) -> Any:
    """Turn a document into what JSON can hold: no NumPy types, no NaN (null instead).

    Examples
    --------
    >>> plain({"a": float("nan"), "b": (1, 2.5)})
    {'a': None, 'b': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def render(table: Table) -> str:
    """Draw a table as text that needs no colour and fits the width."""
    from rich.console import Console
    from rich.text import Text

    colour = sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, force_terminal=colour, highlight=False, emoji=False)
    console.print(Text(table.title, style="bold"))
    for columns in _fitting(table) if table.rows else ():
        console.print()
        console.print(_grid(columns, table.rows))
    drawn = re.sub(r"\n\n+", "\n\n", re.sub(r" +$", "", stream.getvalue(), flags=re.M))
    lines = drawn.rstrip("\n").splitlines()
    if table.rows and table.notes:
        lines.append("")
    return "\n".join([*lines, *(_wrap(note) for note in table.notes)])


def _grid(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
        show_header=any(column.header for column in columns),
    )
    for column in columns:
        drawn.add_column(
            Text(column.header),
            justify="right" if column.right else "left",
            # Without a fixed width Rich takes from figures what a long header would like to have.
            width=_width(column, rows) - _GAP if column.right else None,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(Text(_clean(column.show(row))) for column in columns))
    return drawn


def _fitting(table: Table) -> list[list[Column]]:
    """Split the columns over several grids, each with the key columns, so that figures fit."""
    keys = [column for column in table.columns if column.key]
    grids, used = [list(keys)], 0
    # The last column has no gap beside it.
    room = WIDTH + _GAP - sum(_width(column, table.rows) for column in keys)
    for column in table.columns:
        if column.key:
            continue
        width = _width(column, table.rows)
        if keys and used + width > room and len(grids[-1]) > len(keys):
            grids.append(list(keys))
            used = 0
        grids[-1].append(column)
        used += width
    return grids


def _width(column: Column, rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the least width of a column with its gap; text can be broken, figures not."""
    words = column.header.split() or [""]
    cells = [column.show(row) for row in rows]
    if not column.right:
        words += [word for cell in cells for word in cell.split()]
        cells = []
    return max(map(len, [*words, *cells])) + _GAP


def _clean(text: str) -> str:
    """Show a line break or an escape code in a user's value as what it is."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _wrap(note: str) -> str:
    """Break a note at the width; the lines of a list item stand below each other."""
    item = re.match(r" (?:·|[a-z†‡*] ) |\[\d+\] ", note)
    # A figure and its percent sign stay together: textwrap does not break at this space.
    kept = _clean(note).replace(" %", "\N{NO-BREAK SPACE}%")
    indent = " " * (item.end() if item else 0)
    lines = textwrap.wrap(kept, WIDTH, subsequent_indent=indent, break_long_words=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def write(path: Path, document: Mapping[str, Any], tables: Sequence[Table]) -> None:
    """Write a result by suffix, whole or not at all."""
    _check_suffix(path, SUFFIXES)
    with replacing(path) as temporary:
        _WRITERS[path.suffix.lower()](temporary, document, tables)


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table of data by suffix, whole or not at all."""
    writers: dict[str, Callable[[Path], object]] = {
        ".csv": frame.write_csv,
        ".parquet": frame.write_parquet,
        ".json": frame.write_json,
        ".jsonl": frame.write_ndjson,
    }
    _check_suffix(path, tuple(writers))
    with replacing(path) as temporary:
        writers[path.suffix.lower()](temporary)


def _check_suffix(path: Path, suffixes: Sequence[str]) -> None:
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


def _write_csv(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    import csv

    rows = _flat_rows(document)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0] if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write_parquet(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    import polars as pl

    pl.DataFrame(_flat_rows(document), infer_schema_length=None, strict=False).write_parquet(path)


def _write_json(path: Path, document: Mapping[str, Any], _: Sequence[Table]) -> None:
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", errors="replace")


def _write_markdown(path: Path, _: Mapping[str, Any], tables: Sequence[Table]) -> None:
    parts = []
    for table in tables:
        rule = ["---:" if c.right else "---" for c in table.columns]
        lines = [[c.header for c in table.columns], rule]
        lines += [[_clean(c.show(row)) for c in table.columns] for row in table.rows]
        grid = [
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
        ]
        parts.append("\n".join([f"**{table.title}**", "", *grid, "", *map(_md_note, table.notes)]))
    path.write_text("\n\n".join(parts).rstrip() + "\n", encoding="utf-8", errors="replace")


def _md_note(note: str) -> str:
    return f"{note}  "  # two spaces: a line break, so that notes stay one to a line


_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in _clean(text))


def _write_latex(path: Path, _: Mapping[str, Any], tables: Sequence[Table]) -> None:
    parts = []
    for table in tables:
        columns = "".join("r" if c.right else "l" for c in table.columns)
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}",
            f"\\caption{{{_tex(table.title)}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            " & ".join(_tex(c.header) for c in table.columns) + r" \\",
            "\\midrule",
            *(
                " & ".join(_tex(_clean(c.show(row))) for c in table.columns) + r" \\"
                for row in table.rows
            ),
            "\\bottomrule",
            "\\end{tabular}",
            *(f"\\par\\footnotesize {_tex(note)}" for note in table.notes),
            "\\end{table}",
        ]
        parts.append("\n".join(lines))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8", errors="replace")


_WRITERS: dict[str, Callable[[Path, Mapping[str, Any], Sequence[Table]], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".md": _write_markdown,
    ".tex": _write_latex,
}
