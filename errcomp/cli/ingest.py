"""``errcomp ingest``: native output of a tool in, a table of pairs out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from errcomp.cli._output import write_frame
from errcomp.cli._progress import progress

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``ingest``."""
    parser = commands.add_parser("ingest", help="turn the output of a tool into a table")
    parser.add_argument("format", choices=("neusight",), help="which tool wrote it")
    parser.add_argument("path", metavar="PATH", help="folder of the artifact")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="csv, parquet or json, by suffix"
    )
    parser.add_argument(
        "--level",
        choices=("model", "kernel"),
        default="model",
        help="a row per configuration (default) or per operator",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read, write, and say on stderr what was read, what was not and why."""
    from errcomp.readers import neusight

    with progress("reading configurations") as report:
        found = neusight.read(args.path, progress=report)
    frame = found.pairs.native if args.level == "model" else found.kernels
    write_frame(Path(args.output), frame)
    print(found.report, file=sys.stderr)
    print(f"wrote {len(frame)} rows to {args.output}")
