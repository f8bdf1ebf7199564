"""Files for CI beside what a command prints: JUnit XML, a Markdown summary, and the exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.report.checks._report import CheckReport

__all__ = ["add_check_arguments", "check_targets", "finish", "write_checks"]

_FILES = ("junit", "markdown")


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


def check_targets(args: argparse.Namespace, inputs: Iterable[Path | str | None]) -> None:
    """Refuse files that cannot be written, or must not be, before any work is done."""
    given = [Path(name) for name in inputs if name is not None]
    taken = {} if getattr(args, "output", None) is None else {args.output.resolve(): "-o"}
    for name in _FILES:
        target: Path | None = getattr(args, name)
        if target is None:
            continue
        option = f"--{name} {target}"
        if not target.name:
            raise InputError(f"--{name} needs the name of a file, got {str(target)!r}")
        if not target.parent.is_dir():
            raise InputError(f"{option}: there is no folder {target.parent}. Make it.")
        if target.exists() and not target.is_file():
            raise InputError(f"{option}: that is no file. Name a file.")
        for path in given:
            if path.exists() and target.exists() and target.samefile(path):
                raise InputError(f"{option} would overwrite a file that is read; name another file")
        other = taken.setdefault(target.resolve(), f"--{name}")
        if other != f"--{name}":
            raise InputError(f"{option}: {other} writes that file too. Name two files.")


def write_checks(args: argparse.Namespace, report: CheckReport) -> None:
    """Write the files that were asked for: all of them whole, or none."""
    from errcomp._files import replacing

    content = {"junit": report.junit(), "markdown": report.markdown.encode()}
    targets = [(getattr(args, name), content[name]) for name in _FILES]
    with ExitStack() as stack:
        for target, text in targets:
            if target is not None:
                stack.enter_context(replacing(target)).write_bytes(text)
    for target, _ in targets:
        if target is not None:
            print(f"wrote {target}", file=sys.stderr)


def finish(args: argparse.Namespace, report: CheckReport) -> None:
    """Write the files, and set the exit code where failures are to decide it."""
    write_checks(args, report)
    args.exit_code = 1 if args.fail_on and report.failed else 0
