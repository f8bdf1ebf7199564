"""The option that says how many processes work."""

from __future__ import annotations

from argparse import _ActionsContainer

from errcomp.cli._input import count

__all__ = ["add_jobs_argument"]


def add_jobs_argument(parser: _ActionsContainer, what: str) -> None:
    """Add ``--jobs`` to a command whose groups, fits or draws can be made beside each other."""
    parser.add_argument(
        "--jobs",
        type=count,
        metavar="N",
        help=f"processes that {what} (default: 1); the result is the same. More than one needs "
        "errcomp[jobs]",
    )
