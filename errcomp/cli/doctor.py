"""``errcomp doctor``: is everything here that errcomp needs, and does it work?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from errcomp.cli._output import add_output_arguments, emit
from errcomp.cli._progress import progress
from errcomp.cli._streams import say
from errcomp.report.model import Column, Table

if TYPE_CHECKING:
    from errcomp.cli._checkup import Finding

__all__ = ["add_parser"]

_TITLES = {
    "environment": "Environment",
    "package": "Packages that are needed",
    "extra": "Extras",
    "dataset": "Embedded tables",
    "check": "A known figure, computed again",
}


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``doctor``."""
    parser = commands.add_parser(
        "doctor",
        help="is everything installed that is needed, and does it work?",
        description="Look at Python, the packages, the extras and the embedded tables, and compute "
        "a known figure. Exits with 1 if something is broken; an extra that is not installed is "
        "not.",
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Look, and print what was found even where the tables cannot be drawn."""
    from errcomp import __version__
    from errcomp.cli._checkup import BROKEN, checkup

    with progress("looking", quiet=args.json or not _can_draw()):
        findings = checkup()
    broken = [one.name for one in findings if one.state == BROKEN]
    args.exit_code = 1 if broken else 0
    document = {
        "schema": "errcomp.doctor/1",
        "version": __version__,
        "ok": not broken,
        "rows": [one.to_dict() for one in findings],
    }
    last = f"Broken: {', '.join(broken)}." if broken else "Everything that is needed works."
    if args.json or _can_draw():
        emit(args, document, _tables(findings, last))
        return
    for one in findings:
        say(" ".join(filter(None, (f"{one.name}:", one.found, one.state, one.note))))
    say(last)


def _can_draw() -> bool:
    """Say whether the package that draws tables can be imported."""
    try:
        import rich.console
        import rich.table  # noqa: F401
    except Exception:
        return False
    return True


def _tables(findings: Sequence[Finding], last: str) -> list[Table]:
    tables = []
    for group, title in _TITLES.items():
        rows = [one.to_dict() for one in findings if one.group == group]
        if not rows:
            continue
        columns = [Column("Name", lambda row: row["name"], key=True)]
        for header in ("Found", "Needed", "State", "Note"):
            key = header.lower()
            if any(row[key] for row in rows):
                columns.append(Column(header, lambda row, key=key: row[key]))  # type: ignore[misc]
        tables.append(Table(title, columns, rows))
    return [*tables, Table(last, (), ())]
