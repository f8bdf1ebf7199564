"""Write one HTML page of results, with plots and sortable tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from errcomp.cli.input import load_pairs, pairs_at_hand
from errcomp.cli.output import check_targets, with_basis
from errcomp.cli.streams import progress
from errcomp.errors import InputError
from errcomp.report.writing import PAGE, write_page

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser
    from errcomp.report.model import Report

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {"report": ("errcomp report neusight -o report.html",)}

_STDIN = Path("/dev/stdin")
#: Options that say how a table is read, which a page of several results does not take.
_OF_A_TABLE = (
    *("--predicted", "--measured", "--column", "--unit", "--zeros", "--missing"),
    *("--where", "--by"),
)
_ASK_AUDIT = "To set how a table is read, use `errcomp audit`, which also writes the page:"
_COLUMNS = "--predicted COLUMN --measured COLUMN -o"


def build(parser: Parser) -> None:
    """Add ``report``."""
    parser.description = (
        "Write one self-contained page: first the verdicts, then the remedy for each caveat, "
        "interactive plots, tables to sort and filter, and how each result was computed. A RESULT "
        "is a file that another command wrote with -o FILE.json, or a table of pairs, which is "
        "audited. Every command also writes its own page with -o FILE.html."
    )
    parser.add_argument(
        "results",
        nargs="*",
        default=["neusight"],
        metavar="RESULT",
        help="JSON document that a command wrote (- reads it from standard input), or a table of "
        "pairs: a file, output of a tool, or the name of a built-in table (default: neusight)",
    )
    parser.add_argument(
        "--title",
        help="title of the page (default: the title of the result, or the number of results if "
        "there are several)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=Path(f"report{PAGE}"),
        help=f"the page to write (default: report{PAGE})",
    )
    ask = f"{_ASK_AUDIT} errcomp audit TABLE {_COLUMNS} FILE{PAGE}"
    parser.elsewhere = dict.fromkeys(_OF_A_TABLE, ask)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """View each result and write the page."""
    if args.output.suffix.lower() != PAGE:
        raise InputError(
            f"{args.output}: a report is an HTML page; name a file that ends in {PAGE}"
        )
    if "" in args.results:
        raise InputError("a RESULT is empty; name a file, a folder or a built-in table")
    if "-" in args.results and not _STDIN.exists():
        raise InputError("-: standard input is closed; name a file")
    results = [str(_STDIN) if name == "-" else name for name in args.results]
    check_targets(args, results)
    _refuse_streams_read_twice(results)
    with progress("making the page"):
        reports = [with_basis(_report(name, args), [name]) for name in results]
        write_page(args.output, reports, args.title)
    print(f"wrote {args.output}", file=sys.stderr)


def _is_stream(path: Path) -> bool:
    """Say whether this is a pipe or similar, which can be read only once."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _refuse_streams_read_twice(names: Sequence[str]) -> None:
    streams = [path for path in map(Path, names) if _is_stream(path)]
    for i, path in enumerate(streams):
        if any(path.samefile(other) for other in streams[:i]):
            raise InputError(
                f"{path} is named twice, but a pipe can be read only once. Write it to a file "
                "(-o FILE.json) and name that file."
            )


def _report(name: str, args: argparse.Namespace) -> Report:
    """Return the view of a document, or of the audit of a table.

    Where an error leaves a choice of columns, `args.instead` is the command to complete.
    """
    from errcomp.documents import is_document, view_of_file

    if _is_stream(Path(name)):
        try:
            return view_of_file(name)
        except InputError as error:
            raise InputError(
                f"{error} Only the JSON that a command prints with --json can be read from a pipe. "
                "Give a table as a file."
            ) from error
    if is_document(name):
        return view_of_file(name)
    from errcomp.claims.auditing import audit

    plain: dict[str, Any] = {
        "predicted": None,
        "measured": None,
        "unit": None,
        "zeros": "raise",
        "missing": "raise",
    }
    try:
        args_of = argparse.Namespace(table=name, output=None, where=[], **plain)
        pairs = load_pairs(args_of, single=True)
    except InputError as error:
        if not Path(name).is_file():
            raise
        args.instead = ["audit", name, "-o", str(args.output)]
        ask = f"{error} {_ASK_AUDIT}"
        if not getattr(error, "choices", ()):
            ask = f"{ask} {join(['errcomp', 'audit', name])} {_COLUMNS} {args.output}"
        error.args = (ask,)
        raise
    return audit(pairs).view(*pairs_at_hand(pairs))
