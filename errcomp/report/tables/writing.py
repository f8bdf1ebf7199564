"""Results and tables into files, by suffix, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp._files import replacing
from errcomp.errors import InputError
from errcomp.report.tables._table import Table, clean
from errcomp.report.tables.plain import plain

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SUFFIXES", "check_suffix", "write", "write_frame"]


SUFFIXES = (".csv", ".parquet", ".json", ".md", ".tex")


def write(path: Path, document: Mapping[str, Any], tables: Sequence[Table]) -> None:
    """Write a result by suffix, whole or not at all."""
    check_suffix(path, SUFFIXES)
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
        lines += [[clean(c.show(row)) for c in table.columns] for row in table.rows]
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
    return "".join(_TEX.get(c, c) for c in clean(text))


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
                " & ".join(_tex(clean(c.show(row))) for c in table.columns) + r" \\"
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
