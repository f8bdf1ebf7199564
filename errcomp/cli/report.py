"""``errcomp report``: results and audits as one HTML page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import load_pairs, pairs_at_hand
from errcomp.cli._output import PAGE, write_page
from errcomp.cli._progress import progress
from errcomp.cli._targets import check_targets
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.report.page import Section

__all__ = ["add_parser"]

_STDIN = Path("/dev/stdin")
#: Options that say how a table is read, which a page of several results has no place for.
_OF_A_TABLE = ("--predicted", "--measured", "--column", "--unit", "--zeros", "--where", "--by")
_ASK_AUDIT = (
    "How a table is read is said to its audit, which writes the page, too: errcomp audit TABLE "
    f"--predicted COLUMN --measured COLUMN -o FILE{PAGE}"
)


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``report``."""
    parser = commands.add_parser(
        "report",
        help="one HTML page of results, with figures and sortable tables",
        description="Write one self-contained page: verdicts first, what to do about each caveat, "
        "figures that answer the pointer, tables to sort and filter, and how all was computed. A "
        "RESULT is what another command wrote with -o FILE.json, or a table of pairs, which is "
        "audited. Every command also writes a page of its own with -o FILE.html.",
    )
    parser.add_argument(
        "results",
        nargs="*",
        default=["neusight"],
        metavar="RESULT",
        help="JSON document of a command (- reads it from standard input), or a table of pairs: "
        "file, folder of an artifact, or name of an embedded table (default: neusight)",
    )
    parser.add_argument(
        "--title", help="of the page (default: that of the only result, or how many there are)"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=Path(f"report{PAGE}"),
        help=f"the page to write (default: report{PAGE})",
    )
    parser.elsewhere = dict.fromkeys(_OF_A_TABLE, _ASK_AUDIT)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Make a section of each result and write the page."""
    if args.output.suffix.lower() != PAGE:
        raise InputError(f"{args.output}: a report is a page; name a file that ends in {PAGE}")
    from errcomp.report.sections import with_basis

    if "" in args.results:
        raise InputError("a RESULT is empty; name a file, a folder or an embedded table")
    if "-" in args.results and not _STDIN.exists():
        raise InputError("-: standard input is closed; name a file")
    results = [str(_STDIN) if name == "-" else name for name in args.results]
    check_targets(args, results)
    _refuse_streams_read_twice(results)
    with progress("making the page"):
        sections = [with_basis(_section(name), [name]) for name in results]
        write_page(args.output, sections, args.title)
    print(f"wrote {args.output}", file=sys.stderr)


def _is_stream(path: Path) -> bool:
    """Say whether this is a pipe or the like, whose content is there once."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _refuse_streams_read_twice(names: Sequence[str]) -> None:
    streams = [path for path in map(Path, names) if _is_stream(path)]
    for i, path in enumerate(streams):
        if any(path.samefile(other) for other in streams[:i]):
            raise InputError(
                f"{path} is named twice, but what comes through a pipe can be read once. Write it "
                "to a file (-o FILE.json) and name that."
            )


def _section(name: str) -> Section:
    """Return the section of a document, or of the audit of a table."""
    from errcomp.report.documents import is_document
    from errcomp.report.sections import section
    from errcomp.report.sections.reading import section_of_file

    if _is_stream(Path(name)):
        try:
            return section_of_file(name)
        except InputError as error:
            raise InputError(
                f"{error} Through a pipe comes what a command prints with --json; a table is "
                "given as a file."
            ) from error
    if is_document(name):
        return section_of_file(name)
    from errcomp.claims.auditing import audit

    plain: dict[str, Any] = {"predicted": None, "measured": None, "unit": None, "zeros": "raise"}
    try:
        pairs = load_pairs(argparse.Namespace(table=name, output=None, where=[], **plain))
    except InputError as error:
        if not Path(name).is_file():
            raise
        raise InputError(
            f"{error} To say how a table is read, let its audit write the page: errcomp audit "
            f"{name} --predicted … -o FILE{PAGE}"
        ) from error
    return section(audit(pairs), *pairs_at_hand(pairs))
