"""Compare claimed with recomputed accuracy: intervals, verdicts and caveats."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from errcomp.cli.input import (
    add_interval_arguments,
    add_table_arguments,
    load_pairs,
    pairs_at_hand,
    parse_keys,
)
from errcomp.cli.output import (
    add_check_arguments,
    add_output_arguments,
    check_targets,
    emit,
    finish,
    is_check,
)
from errcomp.cli.streams import progress
from errcomp.errors import InputError

T = TypeVar("T")

if TYPE_CHECKING:
    from errcomp.claims.registry import Claim
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "audit": (
        "errcomp audit neusight --where device=H100",
        "errcomp audit pairs.csv --predicted estimate --measured latency --claim 5% "
        "--aggregation mean",
    )
}

_VERDICTS = ("overstated", "understated", "not verifiable")
_FAIL_ON = (
    "exit with 1 if a claim has this verdict: overstated, understated or not verifiable; may be "
    "repeated. Verdicts are corrected for the number of claims, so that many true claims do not "
    "fail by chance. Without --fail-on the exit code is 0, and the files of --junit and "
    "--markdown report overstated claims as failures"
)


def build(parser: Parser) -> None:
    """Add ``audit``."""
    parser.description = (
        "Compare the accuracy that a tool claims with the accuracy recomputed from its "
        "predictions and measurements."
    )
    add_table_arguments(parser, at_scale=True)
    parser.add_argument(
        "--by",
        metavar="KEYS",
        help="keys to group by (default: device,mode if the table has them)",
    )
    parser.add_argument(
        "--tool",
        metavar="NAME",
        help="audit only this tool; `all` audits every tool in the table (default: the main tool "
        "of the table, if errcomp knows it; otherwise all)",
    )
    parser.add_argument(
        "--keys",
        metavar="KEYS",
        help="columns that identify a configuration, e.g. model,batch. Tools are compared on rows "
        "with equal values in these columns (default: all columns that distinguish rows, except "
        "those that have one value per tool, such as its trace or its version)",
    )
    parser.add_argument(
        "--claim",
        metavar="FIGURE",
        help="a claimed figure to check instead of the published claims, with or without its "
        'metric, e.g. "2.3%%" or "MAPE 2.3 %%"',
    )
    parser.add_argument(
        "--claims",
        metavar="FILE",
        help="a file of claims to check instead of the published claims (JSON; see: errcomp claims "
        "check)",
    )
    parser.add_argument(
        "--aggregation",
        type=_average,
        choices=("mean", "median", "geometric-mean", "weighted", "total"),
        help="how --claim was averaged: mean for a MAPE; total if the figure compares two sums or "
        "two means. Omit this option if the source does not say: the claim then counts as wrong "
        "only if it is wrong under every kind of average",
    )
    parser.add_argument(
        "--metric",
        type=_metric,
        metavar="NAME",
        help="metric of --claim: mape, mae (in the table's unit), correlation (Pearson's), r2, "
        "kendall-tau, within-10, or error (default), if the source does not say which error "
        "metric it is",
    )
    add_interval_arguments(parser)
    add_check_arguments(parser, fail_on=_VERDICTS, meaning=_FAIL_ON)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def _average(text: str) -> str:
    from errcomp.claims.registry import average_of

    return _checked(average_of, text).replace(" ", "-")


def _metric(text: str) -> str:
    from errcomp.claims.registry import metric_of

    _checked(metric_of, text)
    return text


def _checked(read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> None:
    """Audit, print, and fail on the verdicts of --fail-on."""
    from errcomp.claims.auditing import USUAL_KEYS, audit
    from errcomp.claims.registry import user_claim

    if args.aggregation is not None and args.claim is None:
        raise InputError("--aggregation says how --claim was averaged: give --claim as well")
    if args.metric is not None and args.claim is None:
        raise InputError("--metric is the metric of --claim: give --claim as well")
    if args.claims is not None and args.claim is not None:
        raise InputError("--claim and --claims both say what to check. Give one of them")
    check_targets(args, [args.table, *([args.claims] if args.claims else [])])
    claims: list[Claim] | None = None
    if args.claims is not None:
        from errcomp.claims.entries import read_claims

        claims = list(read_claims(args.claims))
    # A page has pictures of single pairs.
    pairs = load_pairs(args, single=args.method != "default" or args.output is not None)
    if args.claim is not None:
        claims = [
            user_claim(args.claim, aggregation=args.aggregation, metric=args.metric or "error")
        ]
    with progress("auditing", quiet=args.json):
        result = audit(
            pairs,
            by=USUAL_KEYS if args.by is None else parse_keys(args.by),
            tool=args.tool,
            claims=claims,
            level=args.level,
            method=args.method,
            cluster=parse_keys(args.cluster) or None,
            keys=parse_keys(args.keys) or (),
            seed=args.seed,
        )
    if is_check(args):
        from errcomp.claims.view.audit_check import report_audit

        report = report_audit(result, fail_on=args.fail_on or _VERDICTS[:1])
        if args.fail_on and not report.cases:
            raise InputError(
                f"--fail-on {args.fail_on[0]} has nothing to check: errcomp knows no claim about "
                'these pairs. Add one, e.g. --claim "5%" --aggregation mean'
            )
        finish(args, report)
    emit(
        args,
        result,
        result.view(*pairs_at_hand(pairs)),
        inputs=[args.table],
    )
