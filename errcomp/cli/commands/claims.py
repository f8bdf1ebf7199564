"""Published accuracy claims: list them, show them, search the subset behind a figure."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from errcomp.cli.input import (
    SEED_HELP,
    add_table_arguments,
    count,
    load_table,
    parse_keys,
    seed,
)
from errcomp.cli.output import add_output_arguments, check_targets, emit
from errcomp.cli.parser import Renamed
from errcomp.cli.stdin import standard_input
from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item, report_of

if TYPE_CHECKING:
    from errcomp.claims.registry import Claim
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "claims": ("errcomp claims show NeuSight",),
    "claims list": ("errcomp claims list --level kernel",),
    "claims show": ("errcomp claims show NeuSight",),
    "claims search": (
        "errcomp claims search neusight --value neusight=8.9% --where vendor=NVIDIA",
        "errcomp claims search neusight --value neusight=2.3% --value habitat=121.4%",
    ),
    "claims check": ("errcomp claims check", "errcomp claims check mine.json"),
    "claims extract": (
        'errcomp claims extract paper.csv --tool mine --source "Paper, Table 3" --to mine.json',
    ),
    "claims board": ("errcomp claims board", "errcomp claims board neusight -o board.html"),
    "claims forensics": ("errcomp claims forensics", "errcomp claims forensics printed.csv"),
}


#: Keys that all entries of an extracted table may have.
_COMMON = {
    "level": "level at which all figures were evaluated, e.g. kernel or model",
    "reference": "what the predictions were compared with, e.g. hardware",
    "protocol": "how it was evaluated, e.g. held-out networks",
    "url": "where the source can be looked up",
}


def build(parser: Parser) -> None:
    """Add ``claims list|show|check|extract|search|board|forensics``."""
    parser.description = (
        "What tools claim about their own accuracy: each figure with its metric, aggregation, "
        "level, reference, subset and source. `check` reads your own file of claims, and `extract` "
        "makes one of a table; `search` "
        "finds the subset of a table that reproduces a figure; `board` compares the tools of many "
        "tables; `forensics` checks printed figures that come without a table."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser(
        "list",
        help="every known claim, one per line",
        description="List every published claim that errcomp knows: what it is about, and whether "
        "it can be checked.",
    )
    listing.add_argument("--level", metavar="NAME", help="only claims of this level, e.g. kernel")
    add_output_arguments(listing)
    listing.set_defaults(run=_list)

    show = actions.add_parser(
        "show",
        help="everything known about the claims of one tool",
        description="Show all claims about one tool: what exactly is claimed, where, by whom, "
        "whether it can be checked, and what the survey that errcomp replicates found.",
    )
    show.add_argument("tool", metavar="TOOL", help="name of the tool (see: errcomp claims list)")
    add_output_arguments(show)
    show.set_defaults(run=_show)

    check = actions.add_parser(
        "check",
        help="check a file of claims, or those of errcomp, and list what its entries leave open",
        description="Check a file of claims about a tool. The file is JSON with the keys `schema` "
        '("errcomp.claims-of-a-tool/2"), `tool` and `claims`, a list of figures, each with the '
        "keys `printed`, `metric` and `source`. The table lists what each entry does not state, "
        "such as its protocol. `errcomp audit TABLE --claims FILE` compares the entries with "
        "pairs.",
    )
    check.add_argument(
        "file", nargs="?", metavar="FILE", help="file of claims (default: those of errcomp itself)"
    )
    check.add_argument(
        "--fail-on",
        choices=("missing",),
        metavar="WHAT",
        help="missing: exit with code 1 if an entry leaves something open, such as its protocol",
    )
    add_output_arguments(check)
    check.set_defaults(run=_check)

    extract = actions.add_parser(
        "extract",
        help="turn a table pasted from a paper into a file of claims",
        description="Turn a table pasted from a paper (CSV, TSV, Markdown, LaTeX or HTML) into a "
        "file of claims. The preview shows each figure with its metric and subset, and what is "
        "left out; compare it with the paper, then write the file with --to.",
    )
    extract.add_argument(
        "file", metavar="TABLE", help="file of the table: .csv .tsv .md .tex .html"
    )
    extract.add_argument("--tool", required=True, metavar="NAME", help="tool of the figures")
    extract.add_argument(
        "--source",
        required=True,
        metavar="TEXT",
        help='where the table is printed, e.g. "Lee et al. 2025, Table 3"',
    )
    extract.add_argument(
        "--metric",
        metavar="NAME",
        help="metric of all figures, if the headings name none or a wrong one, e.g. MAPE",
    )
    extract.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="HEADING",
        help="take only the figures of this column; may be repeated",
    )
    extract.add_argument(
        "--columns-are",
        metavar="KEY",
        help="the headings of the numeric columns are values of this key, e.g. device",
    )
    extract.add_argument(
        "--number", type=count, default=1, metavar="N", help="which table of the file (default: 1)"
    )
    for key, told in _COMMON.items():
        extract.add_argument(f"--{key}", metavar="TEXT", help=told)
    extract.add_argument("--to", metavar="FILE", help="write the claims to this JSON file")
    add_output_arguments(extract)
    extract.set_defaults(run=_extract)

    search = actions.add_parser(
        "search",
        help="find the subset and aggregation that reproduce a published figure",
        description="Find the subset of the pairs, and the aggregation, that reproduce one or "
        "several published figures. Several figures must come from the same subset, which rules "
        "out most chance matches.",
    )
    add_table_arguments(search)
    search.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="TOOL=VALUE",
        help='a published figure as printed, e.g. "neusight=2.3%%"; may be repeated',
    )
    search.add_argument("--figure", action=Renamed, today="--value")
    search.add_argument(
        "--keys",
        metavar="KEYS",
        help="only subsets defined by these keys, e.g. device,model (default: all keys)",
    )
    search.add_argument(
        "--top", type=count, default=10, metavar="N", help="number of matches to show (default: 10)"
    )
    search.add_argument("--seed", type=seed, default=0, metavar="N", help=SEED_HELP)
    add_output_arguments(search)
    search.set_defaults(run=_search)

    board = actions.add_parser(
        "board",
        help="recompute the errors of all tools in files of pairs, and compare those of one file",
        description="Recompute the error of every tool in tables and tool output, with intervals, "
        "coverage (how many cases each predicts) and the command behind each row. Tools are "
        "compared only within one source, level and quantity, on the cases that both predict: "
        "more accurate, less accurate, or indistinguishable.",
    )
    board.add_argument(
        "sources",
        nargs="*",
        metavar="PATH",
        help="files, folders with the output of tools, or names of built-in tables (default: the "
        "built-in tables of pairs)",
    )
    board.add_argument("--seed", type=seed, default=0, metavar="N", help=SEED_HELP)
    add_output_arguments(board)
    board.set_defaults(run=_board)

    forensics = actions.add_parser(
        "forensics",
        help="check printed figures that come without data: can they all be true?",
        description="Check figures that a paper prints without its data: can a single set of "
        "errors have all of them? Each row of FILE is a figure, with the columns `quantity` "
        "(mean, median, max, share within 10%, p90, bias, …) and `value`, as printed. The columns "
        "`n`, `part` (a subset or a case) and `group` (a table) are optional. The answer is "
        "possible, impossible (with a proof that you can check by hand), or possible only "
        "under a condition, which is stated. The check allows for rounding.",
    )
    forensics.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="CSV, Excel, Parquet or JSON of figures, or - for standard input (default: the "
        "published claims that errcomp knows)",
    )
    forensics.add_argument(
        "--fail-on",
        choices=("impossible",),
        metavar="WHAT",
        help="impossible: exit with code 1 if any figures contradict each other",
    )
    add_output_arguments(forensics)
    forensics.set_defaults(run=_forensics)


def _list(args: argparse.Namespace) -> None:
    from errcomp.claims.registry import claims

    known = [c for c in claims() if args.level is None or args.level in c.level]
    if not known:
        from errcomp.errors import InputError, offer

        levels = sorted({c.level for c in claims()})
        raise InputError(
            f"no claim of level {args.level!r}. {offer('Levels', levels, wanted=args.level)}"
        )
    columns = [
        Column("Tool", lambda c: c.tool),
        Column("Figure", _figure, forms.printed),
        Column("Metric", lambda c: c.metric),
        Column("Aggregation", lambda c: c.aggregation),
        Column("Level", lambda c: c.level),
        Column("Against", lambda c: c.reference),
        Column("Subset", lambda c: ", ".join(c.subset.values())),
        Column("Can be checked", lambda c: c.verifiable),
    ]
    note = "Do not rank figures of different levels or references: they answer different questions."
    table = Table("Published accuracy claims", columns, known, [note])
    rows = [_row(c) for c in known]
    emit(args, {"schema": "errcomp.claims/1", "rows": rows}, report_of(table))


def _row(claim: Claim) -> dict[str, Any]:
    """Return a claim for machines, with the publication of its tool."""
    from errcomp.claims.registry import work_of

    work = work_of(claim.tool)
    return {
        **claim.to_dict(),
        "protocol": claim.protocol,
        "n": claim.n,
        "url": claim.url,
        "checked": claim.checked,
        "work": {"title": work.title, "year": work.year, "url": work.url},
    }


def _figure(claim: Claim) -> tuple[str, float | None]:
    """Return the figure as printed (for an accuracy: not the error that it implies)."""
    from errcomp.claims.printed import parse_printed

    return (claim.printed, parse_printed(claim.printed).number) if claim.printed else ("—", None)


def _show(args: argparse.Namespace) -> None:
    from errcomp.claims.registry import find

    rows = [_row(c) for c in find(args.tool)]
    tables = [_claim_table(row) for row in rows]
    emit(args, {"schema": "errcomp.claims/1", "rows": rows}, report_of(*tables))


def _claim_table(row: Mapping[str, Any]) -> Table:
    shown = {
        "metric": row["metric"],
        "aggregation": row["aggregation"],
        "level": row["level"],
        "against": row["reference"],
        "quantity": row["quantity"],
        "workloads": row["workloads"],
        "protocol": row["protocol"],
        "n": str(row["n"]),
        "subset": ", ".join(f"{k} {v}" for k, v in row["subset"].items()),
        "source": row["source"],
        "printed at": row["url"],
        "checked": row["checked"],
        "tool's publication": f"{row['work']['title']} ({row['work']['year']}), "
        f"{row['work']['url']}",
        "claimed by": row["claimed_by"],
        "can be checked": f"{row['verifiable']}. {row['reason']}",
        "survey's verdict": row["survey_verdict"],
        "note": row["note"],
    }
    rows = [{"name": k, "value": v} for k, v in shown.items() if v]
    columns = [Column("", lambda r: r["name"]), Column("", lambda r: r["value"])]
    return Table(f"{row['tool']}: {row['printed'] or 'no figure'}", columns, rows)


def _check(args: argparse.Namespace) -> None:
    from errcomp.claims.entries import check_claims

    check_targets(args, [args.file] if args.file else [])
    rows = check_claims(args.file)
    columns = [
        Column("Tool", lambda r: r["tool"]),
        Column("Figure", lambda r: r["printed"] or "—"),
        Column("Metric", lambda r: r["metric"]),
        Column("Source", lambda r: r["source"]),
        Column("Missing", lambda r: ", ".join(r["missing"])),
    ]
    complete = sum(not row["missing"] for row in rows)
    note = (
        f"{complete} of {len(rows)} entries have all keys. Where a source was read and does not "
        'say something, write "not stated".'
    )
    table = Table(f"Claims in {args.file or 'the registry'}", columns, rows, [note])
    emit(args, {"schema": "errcomp.claims-check/1", "rows": rows}, report_of(table))
    args.exit_code = 1 if args.fail_on and complete < len(rows) else 0


def _extract(args: argparse.Namespace) -> None:
    from errcomp.claims.extract import extract
    from errcomp.cli.streams import tell
    from errcomp.codec import json_text
    from errcomp.system.files import check_target, replacing

    check_targets(args, [args.file])
    if args.to is not None:
        check_target(Path(args.to))
    common = {key: getattr(args, key) for key in _COMMON if getattr(args, key)}
    found = extract(
        args.file,
        tool=args.tool,
        source=args.source,
        metric=args.metric,
        number=args.number,
        columns=args.columns_are,
        only=args.column,
        common=common,
    )
    rows = [
        {**entry, "place": place}
        for entry, place in zip(found.document["claims"], found.places, strict=True)
    ]
    columns = [
        Column("Figure", lambda r: (r["printed"], None), forms.printed),
        Column("Metric", lambda r: r["metric"]),
        Column("Aggregation", lambda r: r.get("aggregation", "not stated")),
        Column("Subset", lambda r: ", ".join(f"{k} {v}" for k, v in r.get("subset", {}).items())),
        Column("Scope", lambda r: r.get("scope", "")),
        Column("n", lambda r: r.get("n"), forms.count),
        Column("In the table", lambda r: r["place"]),
    ]
    notes: list[Note | str] = [item(f"Left out: {one}.") for one in found.left_out]
    if args.to is None:
        notes.append("Compare the rows with the paper, then write them: --to claims.json")
    table = Table(f"Claims about {args.tool} in {args.file}", columns, rows, notes)
    document = {"schema": "errcomp.claims-extract/1", "rows": rows, "left_out": found.left_out}
    emit(args, document, report_of(table))
    if args.to is not None:
        with replacing(Path(args.to)) as path:
            path.write_text(json_text(found.document) + "\n", encoding="utf-8")
        tell(f"wrote {args.to}")


def _search(args: argparse.Namespace) -> None:
    from errcomp.claims.search import search_claim
    from errcomp.cli.streams import progress
    from errcomp.errors import InputError

    if not args.value:
        example = f"errcomp claims search {quote(args.table)} --value 2.3%"
        raise InputError(f"no published figure is given. Add one: {example}")
    check_targets(args, [args.table])
    pairs = load_table(args)
    figures: dict[str, str] = {}
    for value in args.value:
        tool, sign, printed = value.partition("=")
        if not sign:
            tool, printed = pairs.subject or "", value
        if tool in figures:
            raise InputError(
                f"two figures for {tool or 'the table'}: {figures[tool]}, {printed}. Keep one"
            )
        figures[tool] = printed
    with progress("searching subsets", quiet=args.json) as report:
        result = search_claim(
            pairs,
            figures,
            keys=parse_keys(args.keys) or None,
            top=args.top,
            seed=args.seed,
            progress=report,
        )
    emit(args, result, result.view(), inputs=[args.table])


def _board(args: argparse.Namespace) -> None:
    from errcomp.claims.board import board

    check_targets(args, args.sources)
    result = board(*args.sources, seed=args.seed)
    emit(args, result, result.view(), inputs=args.sources)


def _forensics(args: argparse.Namespace) -> None:
    from errcomp.claims.forensics import forensics
    from errcomp.claims.forensics.embedded import registry_figures

    check_targets(args, [args.file] if args.file else [])
    if args.file is None:
        result = replace(forensics(registry_figures()), source="the registry")
    elif args.file == "-":
        with standard_input() as path:
            result = replace(forensics(path), source="standard input")
    else:
        result = forensics(args.file)
    emit(args, result, result.view(), inputs=[args.file] if args.file else [])
    args.exit_code = 1 if args.fail_on and result.impossible else 0
