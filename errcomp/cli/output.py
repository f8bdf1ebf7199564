"""Output of every command: a table for people, a document for machines, files by suffix."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli.streams import say
from errcomp.codec import Document, json_text
from errcomp.errors import InputError, MissingExtraError, did_you_mean
from errcomp.report.model import Report
from errcomp.report.shown import Shown
from errcomp.report.text import briefly, render
from errcomp.report.writing import (
    FORMATS,
    PAGE,
    PICTURES,
    check_result_suffix,
    rendered,
    write_result,
)
from errcomp.system.files import check_target, replacing, sha256_of, together

if TYPE_CHECKING:
    from errcomp.report.junit import CheckReport

#: Libraries whose versions a page names.
_LIBRARIES = ("numpy", "scipy", "polars", "matplotlib")
#: Options that name a file to write, by their name in the arguments.
_OPTIONS = {"output": "-o", "target": "-o", "junit": "--junit", "markdown": "--markdown"}
_FILE_HELP = (
    "also write to FILE; the suffix sets the format: html (a page with plots), svg, pdf or png "
    "(the main plot), csv, parquet, json, md, tex"
)


def output_path(text: str) -> Path:
    """Refuse a format before the work is done, not after."""
    path = Path(text)
    try:
        check_result_suffix(path)
        check_target(path)
    except (InputError, MissingExtraError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return path


def add_output_arguments(
    parser: argparse.ArgumentParser,
    *,
    target: Callable[[str], Path] = output_path,
    metavar: str = "FILE",
    about: str = _FILE_HELP,
) -> None:
    """Add --json, --format, --explain and -o, which takes a file unless ``target`` says else."""
    group = parser.add_argument_group("output")
    printed = group.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    printed.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="format of the printed tables: text (default), md (GitHub), tex (LaTeX with "
        "booktabs and siunitx), csv (all digits)",
    )
    printed.add_argument(
        "--explain", action="store_true", help="below the tables, explain the terms they use"
    )
    group.add_argument("-o", "--output", metavar=metavar, type=target, help=about)


def add_target_argument(
    parser: argparse.ArgumentParser,
    text: str = "the file to write; the suffix sets the format: csv, parquet, json",
    *,
    required: bool = True,
) -> None:
    """Add -o of commands that write a table."""
    parser.add_argument("-o", "--output", required=required, metavar="FILE", help=text)


def emit(
    args: argparse.Namespace,
    result: Document | Mapping[str, Any],
    report: Report,
    *,
    inputs: Sequence[str | Path | None] = (),
    flat: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Write all requested files, or none; then print for machines or for people.

    ``inputs`` are the sources of the result: a page lists their checksums. ``flat`` are the rows
    for csv and parquet of a document whose rows are nested.
    """
    tables = report.tables_for("text")

    def document(*, columns: bool) -> Mapping[str, Any]:
        """Return the result for machines; it is computed only on demand."""
        if columns and isinstance(result, Shown):
            return result.rows_document()
        if columns and flat is not None:
            return {"rows": flat}
        return result.to_dict() if isinstance(result, Document) else result

    def write_output(path: Path) -> None:
        suffix = path.suffix.lower()
        form = with_basis(report, inputs) if suffix == PAGE else report
        write_result(path, document(columns=suffix in (".csv", ".parquet")), form)

    if args.output:
        beside(args, args.output, write_output)
    write_files(args.beside)
    if args.json:
        say(json_text(document(columns=False)))
    else:
        # Commands that exist to write files of their own take no --format.
        form = getattr(args, "format", FORMATS[0])
        if getattr(args, "explain", False):
            from errcomp.report.terms import explained

            tables.append(explained(tables))
        if form == FORMATS[0]:
            if not getattr(args, "explain", True):
                tables = [briefly(table) for table in tables]
            say("\n\n".join(map(render, tables)))
        else:
            say(rendered(form, document(columns=True) if form == "csv" else {}, tables))


def with_basis(report: Report, inputs: Sequence[str | Path | None]) -> Report:
    """Add to the method the versions in use, and the files or tables behind a report."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from errcomp import __version__

    versions = [f"errcomp {__version__}", f"Python {platform.python_version()}"]
    for name in _LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    sums = [told for name in inputs if name for told in _checksums(str(name))]
    basis = [("Made with", ", ".join(versions))]
    if sums:
        basis.append(("Made from", "; ".join(sums)))
    return replace(report, method=[*report.method, *basis])


def _checksums(name: str) -> Iterator[str]:
    """Yield an input with its checksum: a file, a built-in table, or each file of a folder.

    A store on a server has none.
    """
    from errcomp import datasets

    path = Path(name)
    if path.is_file():
        yield f"{name} (SHA-256 {sha256_of(path)})"
    elif path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            yield f"{file} (SHA-256 {sha256_of(file)})"
    elif name in datasets.names():
        for table in datasets.info(name).tables:
            yield f"{name}/{table.file} (SHA-256 {table.sha256})"


def parse_figures(items: Sequence[str], names: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the name and the file of each figure to draw."""
    figures = []
    for item in items:
        name, sign, path = item.partition("=")
        if not sign or name not in names or not path:
            raise InputError(
                f"--figure takes {' or '.join(f'{n}=FILE' for n in names)}, got {item!r}. "
                f"{did_you_mean(name, names) if name not in names else ''}".rstrip()
            )
        if Path(path).suffix.lower() not in PICTURES:
            raise InputError(
                f"--figure {item}: the suffix sets the format. Known suffixes: "
                f"{', '.join(PICTURES)}"
            )
        figures.append((name, Path(path)))
    return figures


def add_figure_argument(parser: argparse.ArgumentParser, text: str) -> None:
    """Add --figure, which takes what `parse_figures` reads."""
    parser.add_argument("--figure", action="append", default=[], metavar="NAME=FILE", help=text)


def add_figures(
    args: argparse.Namespace, drawn: Iterable[Any], figures: Iterable[tuple[str, Path]]
) -> None:
    """Write the figures of --figure together with the result."""
    from errcomp.propagation.view.figures import save

    for axes, (_, path) in zip(drawn, figures, strict=True):
        beside(args, path, partial(save, axes))


def add_check_arguments(
    parser: argparse.ArgumentParser,
    *,
    fail_on: Sequence[str] = (),
    meaning: str = "",
    title: str = "as a check in CI",
) -> argparse._ArgumentGroup:
    """Add --junit and --markdown, and --fail-on where failures can be chosen.

    Parameters
    ----------
    fail_on : sequence of str
        Choices of --fail-on. The text `meaning` says what fails in the files without a choice.
    meaning : str
        Help of --fail-on.
    title : str
        Title of the group of options.
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
        help='also write a summary in Markdown, e.g. to "$GITHUB_STEP_SUMMARY"; an existing FILE '
        "is replaced",
    )
    return group


def is_check(args: argparse.Namespace) -> bool:
    """Say whether the result decides the exit code or a file for CI."""
    return bool(args.fail_on or args.junit or args.markdown)


def add_checks(args: argparse.Namespace, report: CheckReport) -> None:
    """Write the requested files together with the result."""
    if args.junit is not None:
        beside(args, args.junit, partial(_write, report.junit()))
    if args.markdown is not None:
        beside(args, args.markdown, partial(_write, report.markdown.encode()))


def _write(text: bytes, path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(text)


def finish(args: argparse.Namespace, report: CheckReport) -> None:
    """Write the files, and set the exit code if --fail-on is given."""
    add_checks(args, report)
    args.exit_code = 1 if args.fail_on and report.failed else 0


def check_targets(
    args: argparse.Namespace,
    inputs: Iterable[Path | str | None],
    figures: Sequence[tuple[str, Path]] = (),
) -> None:
    """Refuse files that cannot be written, or must not be, before any work is done.

    Parameters
    ----------
    args : Namespace
        Its -o, --junit and --markdown, as far as the command has them.
    Files that the command reads; None, URLs and names of no file are ignored.
    figures : sequence of (str, Path)
        The figures of --figure.

    Raises
    ------
    InputError
        A file cannot be written, is one that is read, or is named twice.
    MissingExtraError
        Figures are asked for, and matplotlib is not installed.
    """
    named = [Path(name) for name in inputs if name is not None and "://" not in str(name)]
    read = [path for path in named if path.exists()]
    taken: dict[Path, str] = {}
    for option, target in _targets(args, figures):
        try:
            check_target(target)
        except InputError as error:
            raise InputError(f"{option}: {error}") from error
        if target.exists() and any(target.samefile(path) for path in read):
            raise InputError(f"{option}: {target} would overwrite an input; name another file")
        other = taken.setdefault(target.resolve(), option)
        if other is not option:
            raise InputError(
                f"{option}: {target} is also the file of {other}; name different files"
            )
    if figures and find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "figures", "drawing figures")


def _targets(
    args: argparse.Namespace, figures: Iterable[tuple[str, Path]]
) -> Iterator[tuple[str, Path]]:
    for name, option in _OPTIONS.items():
        target = getattr(args, name, None)
        if target is not None:
            yield option, Path(target)
    for name, target in figures:
        yield f"--figure {name}", target


def beside(args: argparse.Namespace, path: Path, write: Callable[[Path], object]) -> None:
    """Write a file together with the result of the command."""
    args.beside = [*getattr(args, "beside", ()), (path, write)]


def write_files(files: Iterable[tuple[Path, Callable[[Path], object]]]) -> None:
    """Write all of these files, or none, and name them on stderr."""
    files = list(files)
    if not files:
        return
    with together():
        for path, write in files:
            write(path)
    for path, _ in files:
        print(f"wrote {path}", file=sys.stderr)
