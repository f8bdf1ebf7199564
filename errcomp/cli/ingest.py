"""``errcomp ingest``: native output of a tool in, a table of pairs or of kernels out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import parse_where
from errcomp.cli._output import write_frame
from errcomp.cli._progress import progress

if TYPE_CHECKING:
    from errcomp.tables import Table

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``ingest``."""
    parser = commands.add_parser("ingest", help="turn the output of a tool into a table")
    parser.add_argument("format", choices=("neusight",), help="which tool wrote it")
    parser.add_argument("path", metavar="PATH", help="folder of the artifact")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="csv, parquet or json, by suffix"
    )
    table = parser.add_mutually_exclusive_group()
    table.add_argument(
        "--table",
        choices=("pairs", "kernels"),
        default="pairs",
        help="a row per configuration (pairs, the default) or per operator (kernels: how often it "
        "runs, times of one instance, and the measured end-to-end time of its run)",
    )
    table.add_argument(
        "--level", choices=("model", "kernel"), help="the same: model is pairs, kernel is kernels"
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE[,VALUE]",
        help="only these rows; may be repeated",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read, write, and say on stderr what was read, what was not and why."""
    from errcomp.readers import neusight

    with progress("reading configurations") as report:
        found = neusight.read(args.path, progress=report)
    kernels = args.table == "kernels" or args.level == "kernel"
    table: Table = found.kernels_of("all") if kernels else found.pairs
    if args.where:
        table = table.where(parse_where(args.where))
    frame = table.native[table.rows - 1]
    write_frame(Path(args.output), frame)
    print(found.report, file=sys.stderr)
    print(f"wrote {len(frame)} rows to {args.output}")
