"""``errcomp ingest``: native output of a tool or profiler in, a table out."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import add_where, parse_where, select
from errcomp.cli._progress import progress
from errcomp.cli._targets import check_targets
from errcomp.errors import InputError
from errcomp.report.tables.writing import write_frame

if TYPE_CHECKING:
    import polars as pl

    from errcomp.readers.core.output import Output
    from errcomp.tables import Table

__all__ = ["add_parser"]

_TABLES = ("rows", "pairs", "kernels", "runs", "history", "graph")
#: What the levels of the NeuSight artifact are as tables.
_OF_LEVEL = {"model": "pairs", "kernel": "kernels"}


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``ingest``."""
    parser = commands.add_parser(
        "ingest",
        help="turn the output of a tool or profiler into a table",
        description="Read a file, a folder or an archive of native outputs. Each file is "
        "recognised by its content (`errcomp readers` lists the formats); what was not read is "
        "said, with the reason.",
    )
    parser.add_argument(
        "path",
        nargs="+",
        metavar="[FORMAT] PATH",
        help="file, folder, zip or tar archive; before it, where the content does not show it, the "
        "format or tool (see: errcomp readers)",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="the file to write; the suffix says how: csv, parquet, json",
    )
    parser.add_argument(
        "--table",
        choices=_TABLES,
        help="rows (every predicted and measured quantity, the default), pairs (rows with both), "
        "kernels or runs (their times), history (by version), graph (JSON: what waits for what)",
    )
    parser.add_argument("--level", metavar="NAME", help="only rows of this level, e.g. request")
    parser.add_argument("--quantity", metavar="NAME", help="only rows of this quantity, e.g. ttft")
    add_where(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read, write, and say on stderr what was read, what was not and why."""
    from errcomp.readers.kernels import is_artifact

    *chosen, name = args.path
    if len(chosen) > 1:
        raise InputError("one format and one path, please: errcomp ingest [FORMAT] PATH -o FILE")
    check_targets(args, [name])
    if chosen == ["neusight"] or (not chosen and is_artifact(name)):
        frame, report = _artifact(args, name)
    else:
        found = _read(name, chosen)
        report = found.report
        if args.table == "graph":
            _write_graph(Path(args.output), found)
            print(report, file=sys.stderr)
            return
        frame = _frame(found, args)
    write_frame(Path(args.output), frame)
    print(report, file=sys.stderr)
    print(f"wrote {len(frame)} rows to {args.output}", file=sys.stderr)


def _read(name: str, chosen: list[str]) -> Output:
    from errcomp.readers.core.ingest import ingest
    from errcomp.readers.core.registry import formats_of

    among = formats_of(chosen[0]) if chosen else None
    try:
        with progress("reading") as report:
            return ingest(name, among=among, progress=report)
    except InputError as error:
        hint = "" if chosen else _meant(name)
        if not hint:
            raise
        raise InputError(f"{error} {hint}") from error


def _meant(name: str) -> str:
    """Say what was probably meant by what cannot be ingested; nothing where that is not clear."""
    from errcomp.readers.core.registry import formats
    from errcomp.readers.core.source import Source

    path, word = Path(name), name.lower()
    if not path.exists():
        tools = {one.tool.lower() for one in formats()}
        tools |= {one.name.partition("-")[0] for one in formats()}
        if word in tools:
            return f"{name} is the name of a tool: `errcomp readers --tool {name}` lists its files."
    elif path.is_file():
        source = Source(path)
        if {"predicted", "measured"} <= {*source.header, *source.json_names}:
            return f"It is a table of pairs already: errcomp audit {shlex.quote(name)}"
    return ""


def _frame(found: Output, args: argparse.Namespace) -> pl.DataFrame:
    """Return the rows asked for, as the table asked for."""
    keys = {name: getattr(args, name) for name in ("level", "quantity") if getattr(args, name)}
    if keys:
        found = found.of(**keys)
    if args.where:
        found = found.of(**{name: list(values) for name, values in parse_where(args.where).items()})
    if args.table in (None, "rows"):
        return found.rows
    table: Table = getattr(found, args.table)
    return _rows_in_use(table)


def _rows_in_use(table: Table) -> pl.DataFrame:
    frame: pl.DataFrame = table.native[table.rows - 1]
    return frame


def _write_graph(path: Path, found: Output) -> None:
    from errcomp.system.files import replacing

    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: a graph is written as JSON. Name a file that ends in .json.")
    if found.graph is None:
        raise InputError(
            f"{found.name}: has no graph: only traces of one run say what waits for what."
        )
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(found.graph()) + "\n", encoding="utf-8")
    print(f"wrote the graph to {path}", file=sys.stderr)


def _artifact(args: argparse.Namespace, name: str) -> tuple[pl.DataFrame, str]:
    """Read the artifact of NeuSight, which is one table of pairs and one of kernels."""
    from errcomp.readers.learned import neusight

    wanted = args.table or _OF_LEVEL.get(args.level or "model", "")
    if wanted not in ("pairs", "kernels") or (args.table and args.level) or args.quantity:
        raise InputError(
            f"{name}: the artifact of NeuSight holds times as pairs (--table pairs, a row per "
            "configuration) and kernels (--table kernels, a row per operator)."
        )
    with progress("reading configurations") as report:
        found = neusight.read(name, progress=report)
    table: Table = found.kernels_of("all") if wanted == "kernels" else found.pairs
    return _rows_in_use(select(table, args.where)), str(found.report)
