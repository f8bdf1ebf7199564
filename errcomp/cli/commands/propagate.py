"""Compute the error of a run from kernel errors; `propagate validate` tests the bands."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.input import (
    add_jobs_argument,
    add_kernel_arguments,
    fraction,
    load_kernels,
    parse_keys,
    seed,
    tell_notes,
)
from errcomp.cli.output import (
    add_check_arguments,
    add_figure_argument,
    add_figures,
    add_output_arguments,
    check_targets,
    emit,
    finish,
    parse_figures,
)
from errcomp.cli.parser import Renamed, refuse_mistyped
from errcomp.cli.streams import progress
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser
    from errcomp.propagation import Correlation, ErrorModel

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "propagate": (
        "errcomp propagate neusight-kernels --where device=H100",
        "errcomp propagate kernels.csv --spread 10% --correlation independent,comonotonic",
        "errcomp propagate validate neusight-kernels --where device=H100,L4,V100",
    )
}

#: Options that `propagate validate` does not take.
_NOT_VALIDATED = ("errors", "spread", "bias", "graph", "matrix", "draws", "precision", "jobs")
_EMBEDDED = "neusight-kernels"
_DRAWS = 16_384
_KINDS = ("log-ratio", "relative", "absolute")
_FAIL_ON = (
    "narrow: exit with 1 when the 90 %% band is too narrow under the first assumption of "
    "--correlation (the 95 %% interval of its coverage lies below 90 %%). Only this band and this "
    "assumption are tested; bands that are too wide do not fail"
)
_CORRELATION_HELP = (
    "assumptions about the correlation of kernel errors, separated by commas, with the main one "
    "first. Names: estimated (from measured kernels), independent, repeats (all executions of a "
    "kernel have the same error), classes or devices (kernels of one class, or on one device, "
    "share their error), comonotonic (all errors move together), matrix (read from --matrix), "
    "unknown (bounds that hold for any correlation). classes=0.3 sets the correlation within a "
    "kernel class to 0.3 instead of 1"
)


def build(parser: Parser) -> None:
    """Add ``propagate`` and its ``validate``."""
    parser.description = (
        "Compute the error of a run's time from the errors of its kernels, under several "
        "assumptions about the correlation of those errors. `errcomp propagate validate [TABLE]` "
        "tests the resulting bands against the measured times of runs."
    )
    parser.add_argument(
        "table",
        nargs="?",
        default=_EMBEDDED,
        metavar="TABLE",
        help="a table of kernels (CSV, Parquet, JSON, JSON lines), the output of a tool (see: "
        f"errcomp readers), or the name of a built-in table (default: {_EMBEDDED})",
    )
    # `validate` takes the place of TABLE; its own table follows.
    parser.add_argument("rest", nargs="?", metavar="", help=argparse.SUPPRESS)
    parser.add_argument("--correlation", metavar="NAMES", help=_CORRELATION_HELP)
    parser.add_argument("--assume", action=Renamed, today="--correlation", metavar="NAMES")
    parser.add_argument("--run", dest="only", metavar="NAME", help="only this run")
    _add_errors(parser)
    add_kernel_arguments(parser)
    graph = parser.add_argument_group("graph, correlations and draws")
    graph.add_argument("--graph", type=Path, metavar="FILE", help="execution graph (JSON)")
    graph.add_argument(
        "--matrix", type=Path, metavar="FILE", help="correlations (CSV) for --correlation matrix"
    )
    graph.add_argument(
        "--draws",
        type=int,
        help=f"with --graph: number of Monte Carlo draws (default: {_DRAWS})",
    )
    graph.add_argument(
        "--precision",
        type=fraction,
        metavar="FRACTION",
        help="with --graph: draw until the quantiles of the run's time have this relative "
        "precision, e.g. 0.5%%",
    )
    graph.add_argument("--seed", type=seed, default=0, help="seed of the draws (default: 0)")
    add_jobs_argument(graph, "draw random samples")
    check = parser.add_argument_group("propagate validate")
    check.add_argument(
        "--leave-out",
        metavar="KEY",
        help="hold out each value of this key in turn (default: device)",
    )
    check.add_argument(
        "--test", metavar="TABLE", help="with --train: table of the runs to test the bands on"
    )
    add_check_arguments(
        parser, fail_on=("narrow",), meaning=_FAIL_ON, title="propagate validate as a check in CI"
    )
    add_output_arguments(parser)
    add_figure_argument(
        parser,
        "draw the plot NAME and write it to FILE (png, svg or pdf). NAME is bands or budget (what "
        "each kernel class contributes to the error); for validate: coverage or pit",
    )
    parser.set_defaults(run=run)


def _add_errors(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "errors of the kernels (default: estimated from the table's own runs)"
    )
    group.add_argument(
        "--train", metavar="TABLE", help="estimate the errors from the measured runs of this table"
    )
    group.add_argument(
        "--errors",
        type=Path,
        metavar="FILE",
        help="read the errors from a file with the columns kernel_class, spread, bias",
    )
    group.add_argument(
        "--spread",
        type=_amount,
        metavar="FRACTION",
        help="standard deviation of the error, the same for all kernels, e.g. 10%% or 0.1; a time "
        "with --kind absolute",
    )
    group.add_argument(
        "--bias",
        type=_amount,
        metavar="FRACTION",
        help="bias, the same for all kernels (default: 0); write --bias=-5%% for a negative bias",
    )
    group.add_argument(
        "--kind",
        choices=_KINDS,
        default="log-ratio",
        help="how errors are expressed: log-ratio, ln(measured / predicted) (default); relative, "
        "measured / predicted - 1; or absolute, measured - predicted, in the table's unit",
    )


def _amount(text: str) -> tuple[float, bool]:
    """Read an error, and say whether it was given in per cent."""
    return fraction(text), "%" in text


def run(args: argparse.Namespace) -> None:
    """Run ``propagate`` or ``propagate validate``."""
    from errcomp import datasets

    read = ("table", "rest", "train", "test", "errors", "graph", "matrix")
    inputs = [getattr(args, name) for name in read]
    if args.table == "validate":
        _validate(args, inputs)
        return
    refuse_mistyped("propagate", args.table, ["validate"], datasets.kernel_tables())
    if args.rest:
        raise InputError(f"propagate takes one table, got {args.table} and {args.rest}")
    for name in ("leave_out", "test", "junit", "markdown", "fail_on"):
        if getattr(args, name) not in (None, []):
            raise InputError(f"--{name.replace('_', '-')} needs propagate validate")
    for name in ("draws", "precision", "jobs"):
        if getattr(args, name) is not None and args.graph is None:
            raise InputError(
                f"--{name} needs --graph: without a graph, sums are computed exactly, without draws"
            )
    from errcomp.propagation import fit_errors, propagate

    figures = parse_figures(args.figure, ("bands", "budget"))
    check_targets(args, inputs, figures)
    assumptions = _assumptions(args)
    kernels = load_kernels(args, args.table)
    errors = _errors(args)
    if args.only:
        if errors is None and kernels.n_runs > 1:
            # Errors fitted to the other runs keep the bands free of hindsight.
            errors = fit_errors(kernels.take(kernels.run != args.only), kind=args.kind)
        kernels = kernels.where({"run": [args.only]})
    graph = None
    if args.graph is not None:
        from errcomp.propagation.graph import read_graph

        graph = read_graph(args.graph)
    with progress("propagating", quiet=args.json) as report:
        result = propagate(
            kernels,
            correlation=assumptions,
            errors=errors,
            kind=args.kind,
            graph=graph,
            draws=_DRAWS if args.draws is None else args.draws,
            precision=args.precision,
            seed=args.seed,
            n_jobs=args.jobs,
            progress=report,
        )
    if figures:
        from errcomp.propagation.view import figures as draw

        drawn = [
            draw.bands(result) if n == "bands" else draw.budget(result.of()) for n, _ in figures
        ]
        add_figures(args, drawn, figures)
    emit(args, result, result.view(), inputs=inputs)


def _validate(args: argparse.Namespace, inputs: Sequence[Path | str | None]) -> None:
    for name in (*_NOT_VALIDATED, "only"):
        if getattr(args, name) is not None:
            option = "run" if name == "only" else name
            raise InputError(f"propagate validate does not take --{option}")
    if (args.train is None) != (args.test is None):
        raise InputError(
            "--train and --test go together: the errors are fitted to one table and tested on the "
            "other"
        )
    if args.train is not None and args.rest:
        raise InputError(f"--train and --test replace TABLE: leave out {args.rest}")
    from errcomp.propagation import fit_errors, validate
    from errcomp.propagation.view.check import report_validation

    figures = parse_figures(args.figure, ("coverage", "pit"))
    check_targets(args, inputs, figures)
    if "matrix" in parse_keys(args.correlation):
        raise InputError(
            'propagate validate does not take the assumption "matrix": a matrix belongs to one run'
        )
    assume = _assumptions(args)
    with_pit = [assumption.name for assumption in assume or () if assumption.name != "unknown"]
    if assume and not with_pit and "pit" in [name for name, _ in figures]:
        raise InputError(
            'the assumption "unknown" gives bounds without a distribution: --figure pit needs '
            "another assumption"
        )
    kernels = load_kernels(args, args.test or args.rest or _EMBEDDED)
    errors = None
    if args.train is not None:
        errors = fit_errors(load_kernels(args, args.train), kind=args.kind)
    with progress("validating", quiet=args.json) as report:
        validation = validate(
            kernels,
            leave_out=args.leave_out or "device",
            errors=errors,
            correlation=assume,
            kind=args.kind,
            progress=report,
        )
    if figures:
        from errcomp.propagation.view import figures as draw

        first = next(iter(validation.pit), "")
        drawn = [
            draw.calibration(validation) if n == "coverage" else draw.pit(validation, first)
            for n, _ in figures
        ]
        add_figures(args, drawn, figures)
    finish(args, report_validation(validation))
    inputs = [args.test or args.rest or _EMBEDDED, args.train]
    emit(args, validation, validation.view(), inputs=inputs)


def _errors(args: argparse.Namespace) -> ErrorModel | None:
    """Return the errors from the options or from another table; None if there are neither."""
    from errcomp.propagation import fit_errors, given_errors, read_errors

    given = [name for name in ("train", "errors", "spread") if getattr(args, name) is not None]
    if len(given) > 1:
        raise InputError(f"give the errors in one way only, got --{' and --'.join(given)}")
    if args.bias is not None and args.spread is None:
        raise InputError("--bias needs --spread; to set both by class, use --errors FILE")
    if args.train is not None:
        return fit_errors(load_kernels(args, args.train), kind=args.kind)
    if args.errors is not None:
        errors = read_errors(args.errors, kind=args.kind)
        tell_notes(args.errors)
        return errors
    if args.spread is not None:
        spread, bias = (_error_given(args, name) for name in ("spread", "bias"))
        return given_errors(spread, bias, kind=args.kind)
    return None


def _error_given(args: argparse.Namespace, name: str) -> float:
    """Return an error that was given; 0 where it was not."""
    value, percent = getattr(args, name) or (0.0, False)
    if percent and args.kind == "absolute":
        raise InputError(
            f"--{name} is in per cent, but errors of --kind absolute are times in the table's "
            "unit. Give a time, or --kind relative."
        )
    return float(value)


def _assumptions(args: argparse.Namespace) -> list[Correlation] | None:
    from errcomp.propagation import correlation

    names = parse_keys(args.correlation)
    if args.matrix is not None and "matrix" not in names:
        raise InputError("--matrix needs --correlation matrix")
    if args.correlation is None:
        return None
    if not names:
        raise InputError(f"--correlation takes names separated by commas, got {args.correlation!r}")
    assumptions = []
    for text in names:
        name, sign, share = text.partition("=")
        if text == "matrix":
            assumptions.append(_correlation_of(args.matrix))
        else:
            assumptions.append(correlation(name, _share(text, share) if sign else None))
    return assumptions


def _share(text: str, share: str) -> float:
    try:
        return fraction(share)
    except argparse.ArgumentTypeError:
        raise InputError(f"--correlation {text}: {share!r} is not a number") from None


def _correlation_of(path: Path | None) -> Correlation:
    import numpy as np

    from errcomp.propagation import correlation

    if path is None:
        raise InputError("--correlation matrix needs --matrix FILE: one row per kernel, no header")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an empty file, which is refused below
            matrix = np.loadtxt(path, delimiter=",", ndmin=2)
    except ValueError as error:
        raise InputError(
            f"{path} must hold numbers separated by commas, without a header ({error})"
        ) from None
    try:
        return correlation("matrix", matrix=matrix)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
