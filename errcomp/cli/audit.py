"""``errcomp audit``: is the claimed accuracy true, for what, and what does the figure hide?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import add_table_arguments, fraction, load_table, parse_keys, seed
from errcomp.cli._output import add_output_arguments, emit
from errcomp.cli._progress import progress

if TYPE_CHECKING:
    from errcomp.claims.registry import Claim

__all__ = ["add_parser"]

_VERDICTS = ("overstated", "understated", "not verifiable")


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``audit``."""
    parser = commands.add_parser(
        "audit",
        help="claimed against recomputed accuracy, with intervals, verdicts and caveats",
        description="Compare what a tool claims of itself with what its pairs of prediction and "
        "measurement say.",
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--by",
        metavar="KEYS",
        help="keys to group by (default: device,mode as far as the table has them)",
    )
    parser.add_argument("--tool", help="only this tool; `all` for every tool in the table")
    parser.add_argument(
        "--claim",
        metavar="FIGURE",
        help='a figure to judge instead of the known ones, e.g. "2.3%%"',
    )
    parser.add_argument(
        "--aggregation",
        choices=("mean", "median", "geometric mean", "weighted", "total"),
        help="of --claim, where its source states it (total: of a sum, or of a difference of "
        "means)",
    )
    parser.add_argument(
        "--metric",
        choices=("error", "correlation", "share within 10%"),
        help="what sort of figure --claim is (default: error)",
    )
    parser.add_argument("--level", type=fraction, default=0.95, help="coverage (default: 95%%)")
    parser.add_argument("--method", default="default", help="how intervals are made")
    parser.add_argument("--cluster", metavar="KEYS", help="resample whole clusters of these keys")
    parser.add_argument("--seed", type=seed, default=0)
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="VERDICT",
        choices=_VERDICTS,
        help="exit with 1 when a verdict is this; may be repeated",
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Audit, print, and fail if a verdict asked for was found."""
    from errcomp.claims.auditing import audit
    from errcomp.claims.registry import user_claim
    from errcomp.errors import InputError
    from errcomp.report.tables.audit import audit_tables

    if args.aggregation is not None and args.claim is None:
        raise InputError("--aggregation says how --claim was averaged: give the claim as well")
    if args.metric is not None and args.claim is None:
        raise InputError("--metric says what sort of figure --claim is: give the claim as well")
    pairs = load_table(args)
    claims: list[Claim] | None = None
    if args.claim is not None:
        claims = [
            user_claim(args.claim, aggregation=args.aggregation, metric=args.metric or "error")
        ]
    with progress("auditing", quiet=args.json):
        result = audit(
            pairs,
            by=None if args.by is None else parse_keys(args.by),
            tool=args.tool,
            claims=claims,
            level=args.level,
            method=args.method,
            cluster=parse_keys(args.cluster) or None,
            seed=args.seed,
        )
    found = {row.verdict.word for row in result.rows} | {v.word for v in result.claims}
    args.exit_code = 1 if found & set(args.fail_on) else 0
    emit(args, {"schema": "errcomp.audit/1", **result.to_dict()}, audit_tables(result))
