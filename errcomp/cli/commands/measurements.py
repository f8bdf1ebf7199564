"""Whether measurements are fit to evaluate a predictor, and which part of an error is whose."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from errcomp.cli.input import (
    add_table_arguments,
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
from errcomp.cli.stdin import standard_input
from errcomp.cli.streams import progress
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp import Kernels
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "measurements": ("errcomp measurements check ort-cpu --keys kernel,batch,variant",),
    "measurements check": (
        "errcomp measurements check ort-cpu --keys kernel,batch,variant",
        "errcomp measurements check neusight --measured measured_ms --by device",
    ),
    "measurements budget": (
        "errcomp measurements budget neusight",
        "errcomp measurements budget neusight-kernels --per-run",
    ),
    "measurements leakage": (
        "errcomp measurements leakage pairs.csv --training training.csv --predicted estimate "
        "--measured latency",
    ),
}


def build(parser: Parser) -> None:
    """Add ``measurements`` and its actions."""
    parser.description = (
        "Check the measured side of a table: rows that are copies, rows with equal keys and "
        "different values, impossible values, drift, and the error that a perfect predictor would "
        "show. budget says which part of an error comes from them, and which from the tool; "
        "leakage says whether the tool was trained on what it is evaluated on."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="copies, hidden keys, impossible values, noise floor and drift",
        description="Check whether measurements are good enough to evaluate a predictor. The "
        "result includes the floor of the MAPE: the error that even a perfect predictor would "
        "show, because the measurements are noisy.",
    )
    check.add_argument(
        "table",
        metavar="TABLE",
        help="file of measurements (CSV, Excel, Parquet, JSON, JSON lines), - for standard input, "
        "or name of a built-in table",
    )
    check.add_argument(
        "--measured",
        metavar="COLUMNS",
        help="column of measured values; if several are given, e.g. ttft,tpot, the first is "
        "checked, and rows count as copies only if they agree in all of these columns (default: "
        "measured, or a column recognised by its name)",
    )
    check.add_argument(
        "--keys",
        metavar="COLUMNS",
        help="columns that identify a configuration (default: all except quantities, identifiers, "
        "dates and repetitions; a cell such as a=1,b=2 is split into keys)",
    )
    check.add_argument(
        "--by",
        metavar="KEYS",
        help="keys to group by; each group gets its own floor of the MAPE",
    )
    check.add_argument("--unit", help="unit of the measurements, e.g. ms")
    group = add_check_arguments(check)
    group.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="FINDINGS",
        help="exit with 1 if the check finds one of these: copies; impossible (impossible "
        "values); hidden (rows with equal keys and different values); drift",
    )
    add_output_arguments(check)
    check.set_defaults(run=run)
    _build_budget(actions)
    _build_leakage(actions)


def _build_budget(actions: Any) -> None:
    parser = actions.add_parser(
        "budget",
        help="which part of a MAPE comes from measurements, kernels, composition, load or the tool",
        description="Split the MAPE of a tool into parts: noise of the measurements, rows with "
        "equal keys and different values, copies, the load of the system, errors of "
        "kernels, the difference between the sum of kernels and the time of the run, "
        "one factor common to all predictions, and the rest.",
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--tool",
        metavar="NAME",
        help="tool to analyse; needed if the table has several and errcomp does not know the main "
        "one",
    )
    parser.add_argument(
        "--kernels",
        metavar="PREDICTED,MEASURED",
        help="columns with the predicted and the measured sum of kernels (default: recognised by "
        "name, e.g. predicted_kernel_sum)",
    )
    parser.add_argument(
        "--per-run",
        action="store_true",
        help="rows are kernels: add them up, and compare each run with run_measured",
    )
    parser.add_argument(
        "--load",
        metavar="COLUMN",
        help="column with the load of the system (default: recognised by name, e.g. concurrency)",
    )
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="seed of the intervals (default: 0)"
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run_budget)


def run_budget(args: argparse.Namespace) -> None:
    """Attribute the error, and print."""
    from errcomp.measurements import budget

    check_targets(args, [args.table])
    kernels = parse_keys(args.kernels)
    if kernels and len(kernels) != 2:
        raise InputError(
            f"--kernels takes two columns, got {len(kernels)}: --kernels PREDICTED,MEASURED"
        )
    if args.per_run:
        pairs: Any = _kernels(args)
    else:
        pairs = load_table(args)
    with progress("drawing tables", quiet=args.json):
        found = budget(
            pairs,
            tool=args.tool,
            kernels=(kernels[0], kernels[1]) if kernels else None,
            load=args.load,
            seed=args.seed,
        )
    emit(args, found, found.view(), inputs=[args.table])


def _kernels(args: argparse.Namespace) -> Kernels:
    """Read a table of kernels."""
    unused = {"exclude": None, "kernels": None, "zeros": "raise", "missing": "raise"}
    given = [name for name, usual in unused.items() if getattr(args, name) not in (usual, "keep")]
    if given:
        raise InputError(
            f"leave out --{', --'.join(given)}: --per-run reads a table of kernels, and only "
            "tables of pairs have these options"
        )
    return load_kernels(args, args.table)


def _build_leakage(actions: Any) -> None:
    parser = actions.add_parser(
        "leakage",
        help="whether a predictor was trained on what it is evaluated on, and what that hides",
        description="Find the evaluated pairs whose measurement or configuration is also in the "
        "training table of the predictor, or whose configuration is close to one in that table. "
        "Report the error by distance from the training table. For comparison, report the error "
        "of a simple predictor when random rows, or all rows with one value of a key (e.g. one "
        "device), are held out from its fit to the evaluated table.",
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--training",
        metavar="FILE",
        required=True,
        help="table that the predictor was trained on, with the same column names",
    )
    parser.add_argument(
        "--tool",
        metavar="NAME",
        help="tool to analyse; needed if the table has several and errcomp does not know the main "
        "one",
    )
    parser.add_argument(
        "--keys",
        metavar="COLUMNS",
        help="columns by which rows are compared (default: all keys that both tables have)",
    )
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="seed of the intervals (default: 0)"
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run_leakage)


def run_leakage(args: argparse.Namespace) -> None:
    """Compare with the training table, and print."""
    from errcomp.measurements import leakage

    check_targets(args, [args.table, args.training])
    found = leakage(
        load_table(args),
        args.training,
        measured=args.measured,
        tool=args.tool,
        keys=parse_keys(args.keys) or None,
        seed=args.seed,
    )
    emit(args, found, found.view(), inputs=[args.table, args.training])


def run(args: argparse.Namespace) -> None:
    """Check, and print."""
    from errcomp.measurements.view.junit import conditions

    fail_on = conditions(args.fail_on)
    check_targets(args, [args.table])
    if args.table == "-":
        with standard_input() as file:
            _check(args, str(file), fail_on)
    else:
        _check(args, args.table, fail_on)


def _check(args: argparse.Namespace, table: str, fail_on: list[str]) -> None:
    from errcomp.measurements import check

    with progress("checking", quiet=args.json):
        found = check(
            table,
            measured=parse_keys(args.measured) or None,
            keys=parse_keys(args.keys) or None,
            by=parse_keys(args.by),
            unit=args.unit,
        )
    if is_check(args):
        from errcomp.measurements.view.junit import report_check

        finish(args, report_check(found, fail_on=fail_on))
    emit(args, found, found.view(), inputs=[args.table])
