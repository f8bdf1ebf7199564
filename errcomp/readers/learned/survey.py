"""The survey's tables, transcribed as CSV, as one row per printed cell."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from errcomp.errors import InputError
from errcomp.readers.learned.survey_runs import RUN_COLUMNS, read_runs, read_text
from errcomp.system.strict_json import is_number, table

__all__ = ["CELL_COLUMNS", "LAYOUTS", "build"]

CELL_COLUMNS = ("table", "where", "edition", "row", "column", "printed", "value", "unit")
_Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How one transcribed table becomes cells.

    ``rows``: columns that name a row. ``values``: columns that hold cells, with their unit, or a
    function that finds the unit (``""`` is text). ``align``: cells in which the transcription kept
    fewer decimals than were printed (6.6 for 6.60): those of a column, or of a row, share them.
    """

    where: str | Callable[[_Row], str]
    rows: tuple[str, ...]
    values: Mapping[str, str | Callable[[_Row], str]]
    align: str = ""
    column: Callable[[_Row, str], str] | None = None


@dataclass(frozen=True, slots=True)
class _Cell:
    table: str
    where: str
    edition: str
    row: str
    column: str
    printed: str
    value: str
    unit: str


#: The quantities of the text that the survey does not print itself.
_BY_NEUSIGHT = "published by the NeuSight authors"


def _unit_of_total(row: _Row) -> str:
    return "%" if "%" in row["quantity"] else "count"


def _unit_of_level(row: _Row) -> str:
    return "us" if row["level"].endswith(", us") else "%"


def _section(row: _Row) -> str:
    if row["quantity"].startswith(_BY_NEUSIGHT):
        return "NeuSight (ASPLOS 2025)"
    place = row["where"]
    return f"section {place}" if place[0].isdigit() else place


def _unit_of_ratio(row: _Row) -> str:
    return "%" if "%" in row["printed_meaning"] else "ratio"


def _ratio_name(row: _Row, column: str) -> str:
    return row["printed_meaning"] if column == "printed" else column


#: A row that the transcription names by quoting the survey gets a name of its own.
_RENAMED = {'"50% of modern LLM workloads lack any tool"': "workloads said to lack any tool, %"}

_TOOLS = ("neusight", "astrasim", "vidur", "timeloop", "nnmeter")

#: Files of the transcription, in the order of the survey.
LAYOUTS: Mapping[str, _Layout] = {
    "tools": _Layout("Table 2 and text", ("tool",), {"claimed_accuracy_as_printed": ""}),
    "table3_suite": _Layout("Table 3", ("category",), {"scenarios": "count"}),
    "table4_accuracy": _Layout(
        "Table 4", ("tool",), {"published": "", "survey_result": "", "survey_verdict": ""}
    ),
    "table6_neusight": _Layout(
        "Table 6",
        ("device", "mode"),
        {"claimed_pct": "%", "survey_pct": "%", "survey_verdict": ""},
        align="column",
    ),
    "table7_astrasim": _Layout(
        "Table 7 and section 7.2",
        ("experiment", "system"),
        {"cycles": "cycles", "printed": _unit_of_ratio},
        align="column",
        column=_ratio_name,
    ),
    "table8_vidur": _Layout(
        "Table 8 and section 7.3",
        ("metric",),
        dict.fromkeys(("vllm", "sarathi"), lambda row: row["unit"] or "count"),
        align="row",
    ),
    "table9_coverage": _Layout(
        "Table 9", ("category",), {"scenarios": "count", **dict.fromkeys(_TOOLS, "")}
    ),
    "table9_totals": _Layout(
        "Table 9 and section 7.6",
        ("quantity",),
        dict.fromkeys((*_TOOLS, "suite"), _unit_of_total),
    ),
    "table10_cross_tool": _Layout(
        "Table 10",
        ("tool",),
        {
            "accuracy_as_printed": "",
            "scope": "",
            "portability": "",
            "coverage_of_36": "count",
            "maintenance": "",
        },
    ),
    "table11_12_deployment": _Layout(
        lambda row: f"Table {row['table']}",
        ("tool",),
        dict.fromkeys(
            (
                "docker",
                "time_to_first_output",
                "deterministic",
                "installs",
                "runs",
                "failure_mode",
            ),
            "",
        ),
    ),
    "error_by_level": _Layout(
        lambda row: row["source"].removeprefix("survey ").split(",")[0],
        ("level",),
        {"low_pct": _unit_of_level, "high_pct": _unit_of_level},
    ),
    "text_neusight": _Layout(
        _section, ("quantity",), {"value": lambda row: row["unit"] or "count"}
    ),
    "timeloop_resnet50_conv1": _Layout(
        "section 7.4", ("quantity",), {"value": lambda row: row["unit"] or "count"}
    ),
}


def build(source: Path) -> dict[str, bytes]:
    """Turn the transcribed tables, and the tools' own outputs behind them, into derived tables.

    Parameters
    ----------
    source : Path
        A folder with ``survey/*.csv`` and ``tools/{vidur,astra-sim,timeloop}/``.

    Returns
    -------
    dict of str to bytes
        File name to content: a CSV of cells for each table and ``runs.csv``, figures derived from
        the outputs. The same source gives the same bytes.

    Raises
    ------
    InputError
        A file or a column is missing, or a number cannot be read; names file and line.
    """
    contents = {}
    for stem, layout in LAYOUTS.items():
        cells = _aligned(list(_cells(source / "survey" / f"{stem}.csv", layout)), layout.align)
        lines = [[getattr(cell, name) for name in CELL_COLUMNS] for cell in cells]
        contents[f"{stem}.csv"] = _as_csv(CELL_COLUMNS, lines)
    contents["runs.csv"] = _as_csv(RUN_COLUMNS, read_runs(source / "tools"))
    return contents


def _cells(path: Path, layout: _Layout) -> Iterator[_Cell]:
    needed = [*layout.rows, *layout.values]
    for line, row in _rows(path, needed):
        label = ", ".join(row[name] for name in layout.rows if row[name])
        label = _RENAMED.get(label, label)
        where = layout.where if isinstance(layout.where, str) else layout.where(row)
        for name, unit in layout.values.items():
            printed = row[name]
            if not printed:
                continue
            unit_text = unit if isinstance(unit, str) else unit(row)
            if unit_text:
                _check_number(printed, path, line, name)
            yield _Cell(
                table=path.stem,
                where=where,
                edition=_edition(row, label),
                row=label,
                column=layout.column(row, name) if layout.column else _readable(name),
                printed=printed,
                value=printed if unit_text else "",
                unit=unit_text,
            )


def _readable(name: str) -> str:
    return name.removesuffix("_pct").removesuffix("_as_printed").replace("_", " ")


def _edition(row: _Row, label: str) -> str:
    if label.startswith(_BY_NEUSIGHT):
        return "not in the survey"
    return "first" if "first edition" in " ".join(row.values()) else "second"


def _rows(path: Path, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    rows = table(path, read_text(path), needed)
    if not rows:
        raise InputError(f"{path}: there is a header but no row below it. Copy the file again.")
    return rows


def _check_number(text: str, path: Path, line: int, column: str) -> None:
    if not (is_number(text) and math.isfinite(float(text))):
        raise InputError(
            f"{path}: line {line}: {column} must be a number, got {text[:40]!r}. Fix the file."
        )


def _aligned(cells: list[_Cell], by: str) -> list[_Cell]:
    """Give the numbers of a column (or row) the decimals that they were printed with."""
    if not by:
        return cells
    decimals: dict[str, int] = {}
    for cell in cells:
        if cell.value:
            key = getattr(cell, by)
            decimals[key] = max(decimals.get(key, 0), len(cell.printed.partition(".")[2]))
    return [
        replace(cell, printed=f"{float(cell.value):.{decimals[getattr(cell, by)]}f}")
        if cell.value
        else cell
        for cell in cells
    ]


def _as_csv(header: Sequence[str], lines: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue().encode()
