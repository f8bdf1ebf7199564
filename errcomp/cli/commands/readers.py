"""Tools and profilers whose output errcomp reads."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errcomp.cli.output import add_output_arguments, emit
from errcomp.report.model import Column, Table, report_of

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {"readers": ("errcomp readers", "errcomp readers --tool VIDUR")}


def build(parser: Parser) -> None:
    """Add ``readers``."""
    parser.description = (
        "List the tools and profilers whose output errcomp reads: the formats, their content, and "
        "whether each reader was tested on real output of the tool."
    )
    parser.add_argument(
        "--tool", metavar="NAME", help="show only this tool, with the details of its formats"
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print a line per tool, or per format of one tool."""
    from errcomp.readers.core.registry import tools

    rows = [entry.to_dict() for entry in tools(args.tool)]
    document = {"schema": "errcomp.readers/1", "rows": rows}
    if args.tool is None:
        columns = [
            Column("Tool", lambda row: row["tool"], key=True),
            Column("Formats", lambda row: ", ".join(_readable(row)) or "–"),
            Column("Level", lambda row: ", ".join(row["level"]) or "–"),
            Column("Gives", lambda row: row["gives"]),
            Column("Tested on real output", lambda row: "yes" if row["sample_tested"] else "no"),
        ]
        notes = ["Details: errcomp readers --tool NAME"]
        emit(args, document, report_of(Table("Readers", columns, rows, notes)))
        return
    (tool,) = rows
    notes = [f"{form['name']}: {form['limits']}" for form in tool["details"] if form["limits"]]
    notes += [tool["why"]] if tool["why"] else []
    emit(args, document, report_of(*_tables_of(tool, notes)))


def _tables_of(tool: Mapping[str, Any], notes: Sequence[str]) -> list[Table]:
    """Return two tables of the formats: a single table would have to wrap file names."""
    name = Column("Format", lambda row: row["name"], key=True)
    files = [
        name,
        Column("File", lambda row: row["files"]),
        Column("Gives", lambda row: row["gives"]),
        Column("Measured on", lambda row: row["reference"] or "–"),
    ]
    values = [
        name,
        Column("Quantities (units)", _quantities),
        Column("Tested with", lambda row: row["sample"] or "documentation only"),
    ]
    if not tool["details"]:
        return [Table(tool["tool"], files, [], notes)]
    return [
        Table(tool["tool"], files, tool["details"]),
        Table("Content", values, tool["details"], notes),
    ]


def _quantities(row: Mapping[str, Any]) -> str:
    units = f" ({', '.join(row['units'])})" if row["units"] else ""
    return f"{', '.join(row['quantities'])}{units}" or "–"


def _readable(row: Mapping[str, Any]) -> list[str]:
    """Return the readable formats, without the name of the tool in front."""
    tool = row["tool"].lower().replace(" ", "-")
    return [form["name"].removeprefix(f"{tool}-") for form in row["details"] if form["read"]]
