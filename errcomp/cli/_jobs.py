"""The option that says how many processes work."""

from __future__ import annotations

import os
from argparse import _ActionsContainer

from errcomp.cli._input import count

__all__ = ["add_jobs_argument"]


def add_jobs_argument(parser: _ActionsContainer, what: str) -> None:
    """Add ``--jobs`` to a command whose groups, fits or draws can be made beside each other."""
    parser.add_argument(
        "--jobs",
        type=_at_most_one_a_core,
        metavar="N",
        help=f"processes that {what}, at most one a core (default: 1); the result is the same. "
        "More than one needs errcomp[jobs]",
    )


def _at_most_one_a_core(text: str) -> int:
    # More would start for minutes and wait for each other.
    return min(count(text), os.cpu_count() or 1)
