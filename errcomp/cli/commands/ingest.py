"""Turn the output of a tool or profiler into a table."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.input import add_where, parse_where, select
from errcomp.cli.output import add_target_argument, check_targets
from errcomp.cli.streams import progress, say, tell
from errcomp.errors import InputError
from errcomp.report.preview import preview
from errcomp.report.text import render
from errcomp.report.writing import write_frame

if TYPE_CHECKING:
    import polars as pl

    from errcomp.cli.parser import Parser
    from errcomp.readers.core.output import Output
    from errcomp.tables import Table

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "ingest": (
        "errcomp ingest trace.json --table kernels -o kernels.parquet",
        "errcomp ingest kineto-trace trace.json -o rows.csv",
        "errcomp ingest bert_H100.json --from-name '{model}_{device}.json' --set mode=training",
    )
}

_TABLES = ("rows", "pairs", "kernels", "runs", "history", "graph")
#: Level of the NeuSight artifact → kind of table.
_OF_LEVEL = {"model": "pairs", "kernel": "kernels"}


def build(parser: Parser) -> None:
    """Add ``ingest``."""
    parser.description = (
        "Read files, folders or an archive of tool output, and write their content as a table, or "
        "show its first rows. Each file is recognised by its content (`errcomp readers` lists the "
        "formats). Skipped files and rows are reported, with the reason."
    )
    parser.add_argument(
        "path",
        nargs="+",
        metavar="[FORMAT] PATH",
        help="files and folders, or one zip or tar archive; if errcomp cannot recognise their "
        "content, put the name of its format or tool first (see: errcomp readers)",
    )
    add_target_argument(
        parser,
        "the file to write; the suffix sets the format: csv, parquet, json (default: show the "
        "first rows)",
        required=False,
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="give all rows a key that the files lack, e.g. --set device=H100; may be repeated",
    )
    parser.add_argument(
        "--from-name",
        metavar="PATTERN",
        help="take keys from the name of each file, e.g. '{model}_{device}_b{batch}.json'; * is "
        "any text",
    )
    parser.add_argument(
        "--table",
        choices=_TABLES,
        help="what to write: rows (every predicted or measured value, the default), pairs (values "
        "both predicted and measured), kernels or runs (their times), history (validations by "
        "version), or graph (dependencies between kernels, as JSON)",
    )
    parser.add_argument("--level", metavar="NAME", help="only rows of this level, e.g. request")
    parser.add_argument("--quantity", metavar="NAME", help="only rows of this quantity, e.g. ttft")
    add_where(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read, write, and report on stderr what was read, and what was skipped and why."""
    from errcomp.readers.kernels import is_artifact

    chosen, names = _format_and_paths(args.path)
    check_targets(args, names)
    keys = _keys(args.set)
    if chosen == "neusight" or (not chosen and is_artifact(names[0])):
        if len(names) > 1 or keys or args.from_name:
            raise InputError(
                f"{names[0]} is the artifact of NeuSight: read it alone, without --set and "
                "--from-name. Its rows have a model and a device."
            )
        frame, report = _artifact(args, names[0])
    else:
        output = _with_keys(_read(names, chosen), keys, args.from_name)
        report = output.report
        if args.table == "graph":
            _write_graph(args.output, output)
            tell(report)
            return
        frame = _frame(output, args)
    if args.output:
        write_frame(Path(args.output), frame)
        tell(report)
        print(f"wrote {len(frame)} rows to {args.output}", file=sys.stderr)
        return
    tell(report)
    say(render(preview(frame, f"To write all rows, add -o {args.table or 'rows'}.parquet.")))


def _format_and_paths(words: list[str]) -> tuple[str, list[str]]:
    """Return the name of a format or tool, empty if none is given, and the paths."""
    from errcomp.readers.core.registry import formats_of

    first, *others = words
    if not others or Path(first).exists():
        return "", words
    if first != "neusight":
        try:
            formats_of(first)
        except InputError as error:
            raise InputError(f"{first}: no such file or folder, and {error}") from None
    return first, others


def _keys(items: list[str]) -> dict[str, str]:
    """Turn ``["model=bert"]`` into key → value."""
    keys: dict[str, str] = {}
    for item in items:
        key, sign, value = item.partition("=")
        if not sign or not key or not value:
            raise InputError(f"--set takes KEY=VALUE, got {item!r}")
        if key in keys:
            raise InputError(f"--set gives {key} twice: {keys[key]!r} and {value!r}")
        keys[key] = value
    return keys


def _with_keys(output: Output, keys: dict[str, str], pattern: str | None) -> Output:
    from errcomp.readers.core.keys import with_keys, with_keys_from_names

    if pattern is not None:
        try:
            output = with_keys_from_names(output, pattern)
        except InputError as error:
            raise InputError(f"--from-name: {error}") from None
    return with_keys(output, keys)


def _read(names: list[str], chosen: str) -> Output:
    from errcomp.readers.core.ingest import ingest
    from errcomp.readers.core.registry import formats_of

    among = formats_of(chosen) if chosen else None
    try:
        with progress("reading") as report:
            return ingest(names, among=among, progress=report)
    except InputError as error:
        hint = "" if chosen else _hint(names[0])
        if not hint:
            raise
        raise InputError(f"{error} {hint}") from error


def _hint(name: str) -> str:
    """Suggest what was meant by a name that cannot be ingested; empty if unclear."""
    from errcomp.readers.core.registry import formats
    from errcomp.readers.core.source import Source

    path, word = Path(name), name.lower()
    if not path.exists():
        tools = {reader.tool.lower() for reader in formats()}
        tools |= {reader.name.partition("-")[0] for reader in formats()}
        if word in tools:
            return f"{name} is the name of a tool: `errcomp readers --tool {name}` lists its files."
    elif path.is_file():
        source = Source(path)
        if {"predicted", "measured"} <= {*source.header, *source.json_names}:
            return f"It is already a table of pairs: errcomp audit {shlex.quote(name)}"
    return ""


def _frame(output: Output, args: argparse.Namespace) -> pl.DataFrame:
    """Return the selected rows, as the selected table."""
    keys = {name: getattr(args, name) for name in ("level", "quantity") if getattr(args, name)}
    for conditions in (keys, parse_where(args.where)):
        if conditions:
            output = output.of(**conditions)
    if args.table in (None, "rows"):
        return output.rows
    table: Table = getattr(output, args.table)
    return _rows_in_use(table)


def _rows_in_use(table: Table) -> pl.DataFrame:
    frame: pl.DataFrame = table.native[table.rows - 1]
    return frame


def _write_graph(target: str | None, output: Output) -> None:
    from errcomp.system.files import replacing

    if target is None:
        raise InputError("--table graph is written to a file. Add -o graph.json.")
    path = Path(target)
    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: a graph is written as JSON. Name a file that ends in .json.")
    if output.graph is None:
        raise InputError(
            f"{output.name} has no graph: dependencies are known only from the trace of a single "
            "run."
        )
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(output.graph()) + "\n", encoding="utf-8")
    print(f"wrote the graph to {path}", file=sys.stderr)


def _artifact(args: argparse.Namespace, name: str) -> tuple[pl.DataFrame, str]:
    """Read the artifact of NeuSight, which holds a table of pairs and a table of kernels."""
    from errcomp.readers.learned import neusight

    wanted = args.table or _OF_LEVEL.get(args.level or "model", "")
    if wanted not in ("pairs", "kernels") or (args.table and args.level) or args.quantity:
        raise InputError(
            f"{name}: the artifact of NeuSight can only be read as pairs (--table pairs, one row "
            "per configuration) or kernels (--table kernels, one row per operator). Choose one, "
            "without --level and --quantity."
        )
    with progress("reading configurations") as report:
        artifact = neusight.read(name, progress=report)
    table: Table = artifact.kernels_of("all") if wanted == "kernels" else artifact.pairs
    return _rows_in_use(select(table, args.where)), str(artifact.report)
