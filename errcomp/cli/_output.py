"""One way out for every command: a table for people, a document for machines, a file by suffix."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli._streams import say
from errcomp.cli._targets import beside, write_files
from errcomp.errors import InputError
from errcomp.report.model import Table
from errcomp.report.tables.plain import plain
from errcomp.report.tables.writing import FORMATS, SUFFIXES, check_suffix, rendered, write
from errcomp.system.files import check_target

if TYPE_CHECKING:
    from errcomp.report.page import Section

__all__ = ["PAGE", "add_output_arguments", "emit", "output_path", "write_page"]

#: What a page is named by.
PAGE = ".html"


_FILE_HELP = (
    "also write to FILE; the suffix says how: html (a page with figures), csv, parquet, json, md, "
    "tex"
)


def output_path(text: str) -> Path:
    """Refuse a format before the work is done, not after."""
    path = Path(text)
    try:
        check_suffix(path, (PAGE, *SUFFIXES))
        check_target(path)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return path


def add_output_arguments(
    parser: argparse.ArgumentParser,
    *,
    target: Callable[[str], Path] = output_path,
    metavar: str = "FILE",
    about: str = _FILE_HELP,
) -> None:
    """Add --json, --format and -o, which takes a file unless ``target`` takes something else."""
    group = parser.add_argument_group("output")
    printed = group.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    printed.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="print tables to paste: md (GitHub), tex (booktabs and siunitx), csv (all digits)",
    )
    group.add_argument("-o", "--output", metavar=metavar, type=target, help=about)


def emit(
    args: argparse.Namespace,
    document: Mapping[str, Any],
    tables: Sequence[Table],
    *,
    section: Callable[[], Section] | None = None,
    inputs: Sequence[str | Path | None] = (),
    flat: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Write all files that were asked for, or none; then print for machines or for people.

    ``section`` makes what a page shows; without it a page shows the tables. ``inputs`` are what
    the result was made from: a page names their checksums. ``flat`` are plain columns for csv and
    parquet where the rows of the document are nested.
    """
    columns = document if flat is None else {"rows": flat}

    def write_result(path: Path) -> None:
        if path.suffix.lower() == PAGE:
            from errcomp.report.sections import with_basis
            from errcomp.report.sections.general import section_of_tables

            made = section() if section else section_of_tables(tables)
            write_page(path, [with_basis(made, inputs)])
        else:
            wanted = path.suffix.lower() in (".csv", ".parquet")
            write(path, columns if wanted else document, tables)

    if args.output:
        beside(args, args.output, write_result)
    write_files(args.beside)
    if args.json:
        say(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        # Commands whose own files are what they are for take no --format.
        say(rendered(getattr(args, "format", FORMATS[0]), columns, tables))


def write_page(path: Path, sections: Sequence[Section], title: str | None = None) -> None:
    """Write a page, whole or not at all."""
    from errcomp import __version__
    from errcomp.report.page import page
    from errcomp.system.files import replacing

    text = page(
        sections,
        title=title or (sections[0].title if len(sections) == 1 else f"{len(sections)} results"),
        made_by=f"errcomp {__version__}",
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="xmlcharrefreplace")
