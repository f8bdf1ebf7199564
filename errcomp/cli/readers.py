"""``errcomp readers``: which formats of which tools can be read."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from errcomp.cli._output import Column, Table, add_output_arguments, emit

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``readers``."""
    parser = commands.add_parser(
        "readers",
        help="which outputs of which tools and profilers can be read",
        description="Tools and profilers whose output can be read: what it is, what it says, and "
        "whether the reader was tested on output that the tool wrote.",
        epilog="Example:  errcomp readers --tool VIDUR",
    )
    parser.add_argument("--tool", metavar="NAME", help="only this tool, with what is known of it")
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print a line per tool, or per format of one tool."""
    from errcomp.readers.listing import tools

    rows = [one.to_dict() for one in tools(args.tool)]
    document = {"schema": "errcomp.readers/1", "rows": rows}
    if args.tool is None:
        columns = [
            Column("Tool", lambda row: row["tool"], key=True),
            Column("Formats", lambda row: ", ".join(_readable(row)) or "–"),
            Column("Level", lambda row: ", ".join(row["level"]) or "–"),
            Column("Gives", lambda row: row["gives"]),
            Column("Tested on real output", lambda row: "yes" if row["sample_tested"] else "no"),
        ]
        notes = ["More on one of them: errcomp readers --tool NAME"]
        emit(args, document, [Table("Readers", columns, rows, notes)])
        return
    columns = [
        Column("Format", lambda row: row["name"], key=True),
        Column("File", lambda row: row["files"]),
        Column("Quantities", lambda row: ", ".join(row["quantities"]) or "–"),
        Column("Units", lambda row: ", ".join(row["units"]) or "–"),
        Column("Gives", lambda row: row["gives"]),
        Column("Tested with", lambda row: row["sample"] or "documentation only"),
    ]
    (tool,) = rows
    notes = [f"{one['name']}: {one['limits']}" for one in tool["details"] if one["limits"]]
    notes += [tool["why"]] if tool["why"] else []
    emit(args, document, [Table(tool["tool"], columns, tool["details"], notes)])


def _readable(row: Mapping[str, Any]) -> list[str]:
    """Return the formats that can be read, without the name of the tool that they begin with."""
    tool = row["tool"].lower().replace(" ", "-")
    return [one["name"].removeprefix(f"{tool}-") for one in row["details"] if one["read"]]
