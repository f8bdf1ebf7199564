"""Files for CI beside what a command prints: JUnit XML, a Markdown summary, and the exit code."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli._targets import beside
from errcomp.system.files import replacing

if TYPE_CHECKING:
    from errcomp.report.checks._report import CheckReport

__all__ = ["add_check_arguments", "add_checks", "finish"]


def add_check_arguments(
    parser: argparse.ArgumentParser,
    *,
    fail_on: Sequence[str] = (),
    meaning: str = "",
    title: str = "as a check in CI",
) -> None:
    """Add --junit and --markdown, and --fail-on where what is a failure can be chosen.

    Parameters
    ----------
    fail_on : sequence of str
        What can be failed on; the files are judged by `meaning` where nothing is chosen.
    meaning : str
        Help of --fail-on.
    title : str
        Of the group of options.
    """
    group = parser.add_argument_group(title)
    if fail_on:
        group.add_argument(
            "--fail-on",
            action="append",
            default=[],
            metavar="WHAT",
            choices=tuple(fail_on),
            help=meaning,
        )
    group.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")
    group.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help='also write a summary in Markdown, e.g. to "$GITHUB_STEP_SUMMARY"; what FILE held is '
        "replaced",
    )


def add_checks(args: argparse.Namespace, report: CheckReport) -> None:
    """Have the files that were asked for written beside the result."""
    for target, text in ((args.junit, report.junit()), (args.markdown, report.markdown.encode())):
        if target is not None:
            beside(args, target, partial(_write, text))


def _write(text: bytes, path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(text)


def finish(args: argparse.Namespace, report: CheckReport) -> None:
    """Have the files written, and set the exit code where failures are to decide it."""
    add_checks(args, report)
    args.exit_code = 1 if args.fail_on and report.failed else 0
