"""One way out for every command: a table for people, a document for machines, a file by suffix."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from errcomp.errors import InputError
from errcomp.report.tables import Table
from errcomp.report.tables.plain import plain
from errcomp.report.tables.text import render
from errcomp.report.tables.writing import SUFFIXES, check_suffix, write

__all__ = ["add_output_arguments", "emit"]


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
        check_suffix(path, SUFFIXES)
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
