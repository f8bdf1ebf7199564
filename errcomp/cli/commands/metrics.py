"""Error metrics with intervals, for any groups; `metrics drivers`: which factors matter."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from errcomp.cli.input import (
    add_interval_arguments,
    add_jobs_argument,
    add_table_arguments,
    load_pairs,
    load_table,
    parse_keys,
)
from errcomp.cli.output import add_output_arguments, check_targets, emit
from errcomp.cli.parser import refuse_mistyped
from errcomp.cli.streams import progress
from errcomp.errors import InputError
from errcomp.report.model import Column, Table, report_of

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "metrics": (
        "errcomp metrics neusight --by device --figures mape,wape,p95_ape",
        "errcomp metrics drivers neusight",
        "errcomp metrics list",
    )
}


def build(parser: Parser) -> None:
    """Add ``metrics`` and its ``drivers``."""
    parser.description = (
        "Compute error metrics with intervals, for the whole table or for groups (--by). `errcomp "
        "metrics drivers [TABLE]` tests which factors change the error; `errcomp metrics list` "
        "explains every metric."
    )
    add_table_arguments(parser, at_scale=True)
    # `drivers` and `list` take the place of TABLE; their own table follows.
    parser.add_argument("rest", nargs="?", metavar="", help=argparse.SUPPRESS)
    parser.add_argument(
        "--by", metavar="KEYS", help="keys to group by, e.g. device,mode (default: none)"
    )
    parser.add_argument(
        "--tool",
        metavar="NAME",
        help="use only this tool; `all` uses every tool in the table (default: the main tool of "
        "the table, if errcomp knows it; otherwise all)",
    )
    parser.add_argument(
        "--figures",
        metavar="NAMES",
        help="which metrics, e.g. mape,wape,p95_ape (see: errcomp metrics list; default: the six "
        "most common)",
    )
    add_interval_arguments(parser)
    add_jobs_argument(parser, "evaluate groups (tables in memory only)")
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``metrics``, ``metrics list`` or ``metrics drivers``."""
    if args.table in ("list", "drivers"):
        _refuse(args, ("by", "figures", "cluster", "jobs"), f"metrics {args.table}")
        if args.table == "list":
            _list(args)
        else:
            args.table = args.rest or "neusight"
            run_drivers(args)
        return
    if args.rest:
        raise InputError(f"metrics takes one table, got {args.table} and {args.rest}")
    from errcomp import datasets
    from errcomp.summary import DEFAULT_FIGURES, FIGURES_AT_SCALE, summarize
    from errcomp.tables.engine.pairs import PairRows

    refuse_mistyped("metrics", args.table, ["drivers", "list"], datasets.names())
    check_targets(args, [args.table])
    asked = bool(args.figures) or args.jobs not in (None, 1) or args.method != "default"
    table = load_pairs(args, single=asked)
    pairs = table.of_tool(args.tool)
    by = parse_keys(args.by)
    large = isinstance(table, PairRows)
    if large and args.jobs not in (None, 1):
        raise InputError(
            f"--jobs applies only to tables in memory, but {args.table} is read in place by an "
            "engine that uses all cores. Leave out --jobs"
        )
    figures = parse_keys(args.figures) or (FIGURES_AT_SCALE if large else DEFAULT_FIGURES)
    with progress("computing", quiet=args.json):
        summary = summarize(
            pairs,
            by=by,
            figures=figures,
            level=args.level,
            method=args.method,
            cluster=parse_keys(args.cluster) or None,
            seed=args.seed,
            n_jobs=args.jobs,
        )
    if pairs is not table and summary.tool is not None:
        summary = replace(summary, not_used=table.n - pairs.n)
    emit(args, summary, summary.view(), inputs=[args.table])


def _refuse(args: argparse.Namespace, names: tuple[str, ...], command: str) -> None:
    """Refuse options that a command would ignore."""
    given = [f"--{name}" for name in names if getattr(args, name) is not None]
    if given:
        raise InputError(f"{command} does not take {', '.join(given)}")


def _list(args: argparse.Namespace) -> None:
    from errcomp.metrics import FIGURES

    rows = [
        {"name": f.name, "label": f.label, "definition": f.definition, "misleads": f.misleads}
        for f in FIGURES.values()
    ]
    columns = [
        Column("Name", lambda row: row["name"]),
        Column("Definition", lambda row: row["definition"]),
        Column("Misleads when", lambda row: row["misleads"]),
    ]
    document = {"schema": "errcomp.figures/1", "rows": rows}
    emit(args, document, report_of(Table("Figures", columns, rows)))


# ``errcomp metrics drivers``: which factors change the error, and whether statements hold.


def run_drivers(args: argparse.Namespace) -> None:
    """Compute and print: verdicts first, then contrasts, then regressions."""
    from errcomp.drivers import error_drivers as error_drivers

    check_targets(args, [args.table])
    pairs = load_table(args)
    with progress("comparing", quiet=args.json):
        result = error_drivers(pairs, tool=args.tool, level=args.level, seed=args.seed)
    emit(args, result, result.view(), inputs=[args.table])
