"""Which alternative is faster, how sure that is, and how often such choices are wrong."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from errcomp.cli.input import (
    add_table_arguments,
    fraction,
    load_kernels,
    load_table,
    parse_keys,
    seed,
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

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser
    from errcomp.tables import Kernels, Pairs

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "compare": (
        "errcomp compare neusight --evaluate",
        "errcomp compare neusight --between device --evaluate",
        "errcomp compare neusight --between device --where model=gpt3_xl",
    )
}


def build(parser: Parser) -> None:
    """Add ``compare``."""
    parser.description = (
        "Compare alternatives (--between) that were predicted under equal conditions. Report "
        "which one is best, the probability that one is faster than another, and which "
        "measurement would help most. Rows without a measurement are the choices to make; measured "
        "rows show how wrong the predictor is. --evaluate makes the choices from the predictions "
        "and checks them with the measurements."
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--between",
        metavar="KEYS",
        help="key whose values are the alternatives, e.g. device; with several keys, each "
        "combination is an alternative (default with --evaluate: every kind of choice that "
        "the table allows)",
    )
    parser.add_argument(
        "--within",
        metavar="KEYS",
        help="keys whose values must be equal between alternatives, e.g. model,mode,batch "
        "(default: those that describe the workload)",
    )
    parser.add_argument(
        "--per",
        metavar="COLUMN",
        help="divide times by this column: --between batch --per batch compares the time of one "
        "item",
    )
    parser.add_argument(
        "--price",
        metavar="COLUMN",
        help="column with the price per unit of time, or the power: compare costs, and find the "
        "alternatives that no other beats in both time and cost",
    )
    parser.add_argument(
        "--at-most",
        metavar="VALUE",
        help="limit, e.g. '200 ms': choose only among alternatives that meet it with a "
        "probability of at least --level",
    )
    parser.add_argument(
        "--at-least",
        metavar="VALUE",
        help="limit of a value that should be high, such as a throughput (instead of --at-most)",
    )
    parser.add_argument(
        "--higher", action="store_true", help="larger values are better (implied by --at-least)"
    )
    parser.add_argument(
        "--evaluate",
        action="store_true",
        help="evaluate the choices against the measurements: share of correct choices, regret, "
        "calibration",
    )
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="the rows are kernels: add them up and compare the runs",
    )
    parser.add_argument(
        "--errors",
        metavar="PATH",
        help="more measured pairs of the same predictor, to learn its errors from: a table with "
        "the same keys, or a built-in one",
    )
    parser.add_argument(
        "--tool",
        metavar="NAME",
        help="use only this tool; needed if the table has several and errcomp does not know the "
        "main one",
    )
    parser.add_argument(
        "--level",
        type=fraction,
        default=0.9,
        metavar="SHARE",
        help="a comparison with a lower probability is too close to call (default: 90%%)",
    )
    parser.add_argument(
        "--cluster",
        metavar="KEY",
        help="key whose values have independent errors; `none`: every condition is independent "
        "(default: the model, or another key with several values)",
    )
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="seed of the draws (default: 0)"
    )
    group = add_check_arguments(parser)
    group.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help="with --evaluate, exit with 1 if this is true: 'regret>5%%' (mean regret), "
        "'regret-max>50%%' (largest), 'wrong>5%%' (among comparisons that are at least 95 %% "
        "sure), 'right<90%%'; may be repeated",
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Compare, or evaluate, and print."""
    from errcomp.decisions import compare

    check_targets(args, [args.table, args.errors])
    if is_check(args) and not (args.evaluate and args.fail_on):
        raise InputError("a check needs --evaluate and a condition, e.g. --fail-on 'regret>5%'")
    if args.fail_on:
        from errcomp.decisions.view.check import limit

        for text in args.fail_on:
            limit(text)  # refused before the evaluation, which takes seconds
    if args.missing == "raise":
        args.missing = "keep"  # rows without a measurement are the choices to make
    pairs = load_kernels(args, args.table) if args.kernels else load_table(args)
    if args.between is None:
        _every_kind(args, pairs)
        return
    with progress("comparing", quiet=args.json):
        found = compare(
            pairs,
            between=parse_keys(args.between),
            within=parse_keys(args.within) or None,
            errors=args.errors,
            evaluate=args.evaluate,
            tool=args.tool,
            cluster=args.cluster,
            per=args.per,
            price=args.price,
            at_most=args.at_most,
            at_least=args.at_least,
            higher=args.higher,
            level=args.level,
            seed=args.seed,
        )
    if is_check(args):
        from errcomp.decisions.results import Decisions
        from errcomp.decisions.view.check import report_decisions

        assert isinstance(found, Decisions)
        finish(args, report_decisions(found, fail_on=args.fail_on))
    emit(args, found, found.view(), inputs=[args.table, args.errors])


def _every_kind(args: argparse.Namespace, pairs: Pairs | Kernels) -> None:
    """Evaluate every kind of choice, and print a row for each."""
    from errcomp.decisions import compare_kinds

    if not args.evaluate:
        raise InputError(
            "add --between KEY, the key whose values are the alternatives. Keys of "
            f"{args.table}: {', '.join(pairs.keys)}"
        )
    for name in ("within", "errors", "per", "cluster", "price", "at_most", "at_least", "higher"):
        if getattr(args, name):
            flag = name.replace("_", "-")
            raise InputError(
                f"--{flag} needs --between KEY: without it, every kind of choice is evaluated"
            )
    if is_check(args):
        raise InputError(
            "--fail-on, --junit and --markdown need --between KEY: without it, every kind of "
            "choice is evaluated"
        )
    with progress("comparing", quiet=args.json):
        found = compare_kinds(pairs, tool=args.tool, level=args.level, seed=args.seed)
    emit(args, found, found.view(), inputs=[args.table])
