"""Arguments that say which table of kernels to work on, and what else kernel commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli._input import parse_where
from errcomp.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from errcomp.tables import Kernels

__all__ = ["add_reading_arguments", "load_kernels", "parse_figures", "spare_inputs"]

_PICTURES = (".png", ".svg", ".pdf")


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how to read a table of kernels."""
    group = parser.add_argument_group("reading the table")
    group.add_argument("--predicted", metavar="COLUMN", help="column that holds the predictions")
    group.add_argument("--measured", metavar="COLUMN", help="column that holds the measurements")
    group.add_argument("--unit", help="unit of all times, e.g. ms")
    group.add_argument("--tool", help="only the kernels that this tool predicted")
    group.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE[,VALUE]",
        help="only these rows; may be repeated",
    )


