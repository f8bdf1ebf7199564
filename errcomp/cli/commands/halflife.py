"""How long a calibrated model stays valid: fit, forecast, check, blame, show."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from errcomp.cli.histories import HISTORY, add_reading, load_history
from errcomp.cli.input import (
    add_jobs_argument,
    fraction,
    parse_keys,
    read_history,
    seed,
)
from errcomp.cli.output import (
    add_check_arguments,
    add_checks,
    add_figure_argument,
    add_figures,
    add_output_arguments,
    check_targets,
    emit,
    parse_figures,
)
from errcomp.cli.streams import progress
from errcomp.errors import InputError
from errcomp.report.model import report_of

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "halflife": ("errcomp halflife show ort",),
    "halflife fit": ("errcomp halflife fit ort-releases --where level=model --cluster model",),
    "halflife forecast": (
        "errcomp halflife forecast ort-releases --where level=model --cluster model --error 10%",
    ),
    "halflife check": (
        "errcomp halflife check history.db new.csv --junit check.xml --markdown check.md",
        "errcomp halflife check history.db --dry-run",
    ),
    "halflife blame": ("errcomp halflife blame ort-releases",),
    "halflife show": ("errcomp halflife show ort",),
}

#: Studies that `show` knows: the dataset, and how it is grouped.
STUDIES = {"ort": "ort-releases"}
_FIGURES = ("errors", "survival", "variogram", "heat")


def build(parser: Parser) -> None:
    """Add ``halflife fit|forecast|check|blame|show``."""
    parser.description = (
        "A calibrated model fits the software that it was calibrated on. Its half-life is the time "
        "after which its error has doubled because the software changed."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    fit = actions.add_parser(
        "fit",
        help="half-lives by several methods, with intervals, and the releases responsible",
        description="Estimate half-lives from validations under successive versions, in three "
        "ways: from the time until the error of each series doubles, with and without an assumed "
        "distribution; from the RMS error over all series; and from how far errors drift between "
        "versions (variogram). Also find steps in the error, and the release of each step.",
    )
    fit.add_argument("history", metavar="HISTORY", help=HISTORY)
    fit.add_argument(
        "--by", metavar="KEYS", help="keys to group series by, e.g. level,kernel_class"
    )
    fit.add_argument(
        "--cluster",
        metavar="KEY",
        help="column that groups series whose errors change together, e.g. model or system",
    )
    _add_error(
        fit,
        "error that the model promised at calibration; a half-life is the time until it has "
        "doubled (default: the error at the first version)",
    )
    fit.add_argument(
        "--alpha",
        type=_share,
        default=0.05,
        help="chance of finding a step in a series that has none (default: 5%%)",
    )
    fit.add_argument("--seed", type=seed, default=0, help="seed of the random draws (default: 0)")
    add_figure_argument(
        fit,
        "draw the plot NAME and write it to FILE (png, svg or pdf); may be repeated. NAME is "
        "errors, survival or variogram (of one group), or heat (a heat map, groups by releases)",
    )
    add_jobs_argument(fit, "fit groups")
    add_reading(fit)
    add_output_arguments(fit)
    fit.set_defaults(run=_fit)

    _add_forecast(actions)

    gate = actions.add_parser(
        "check",
        help="compare a new version with the history: exit 1 if errors grew beyond noise",
        description="Compare the validations of a new version with the history. The chance of "
        "even one false alarm, over all series and the first 1,000 versions checked, "
        "is at most --alpha. One bad run is never a regression: the check asks for a "
        "repeat, and says how many runs are needed to decide.",
    )
    gate.add_argument("history", metavar="HISTORY", help=HISTORY)
    gate.add_argument("new", metavar="NEW", nargs="?", help="table of validations of a new version")
    gate.add_argument(
        "--dry-run",
        action="store_true",
        help="without NEW: replay the check over the history; count its alarms with the versions "
        "in true and in random order, and show how soon it finds each step",
    )
    gate.add_argument(
        "--by", metavar="KEYS", help="keys to group the series by in the report, e.g. device"
    )
    _add_error(gate, "error that the model promised: an error within it is not a regression")
    gate.add_argument(
        "--margin", type=_share, default=0.0, help="growth of the error to ignore, e.g. 2%%"
    )
    gate.add_argument(
        "--alpha",
        type=_share,
        default=0.05,
        help="chance of even one false alarm in 1,000 versions (default: 5%%)",
    )
    gate.add_argument(
        "--recalibrate",
        action="store_true",
        help="also fit correction factors to the validations since the last step, and compare "
        "the errors with and without them",
    )
    add_reading(gate)
    add_check_arguments(
        gate,
        fail_on=("repeat",),
        meaning="repeat: exit with 1 also if a repeat is needed. A regression always exits with 1",
    )
    add_output_arguments(gate)
    gate.set_defaults(run=_check)

    _add_blame(actions)

    show = actions.add_parser(
        "show",
        help="a built-in study of half-lives",
        description="Show the half-lives of a built-in study. In the study `ort`, a model that was "
        "fitted at the first release predicts the times of small networks under every release of "
        "ONNX Runtime from 1.15 to 1.31.",
    )
    show.add_argument("name", choices=tuple(STUDIES), help="which study")
    add_output_arguments(show)
    show.set_defaults(run=_show)


def _add_forecast(actions: argparse._SubParsersAction[Any]) -> None:
    parser = actions.add_parser(
        "forecast",
        help="probability that a model's error stays within its promise, now and later",
        description="Forecast the probability that a model's error stays within the promised "
        "limit, now and some releases or months ahead, and the time at which that "
        "probability drops below --below. Three methods give a forecast each: "
        "survival, from how long past series stayed within the promise; drift, from "
        "how far past errors drifted; and steps, from the size and rate of past steps "
        "in the error.",
    )
    parser.add_argument("history", metavar="HISTORY", help=HISTORY)
    parser.add_argument("--by", metavar="KEYS", help="keys to group series by, e.g. level")
    parser.add_argument(
        "--cluster",
        metavar="KEY",
        help="column that groups series whose errors change together, e.g. model or system",
    )
    _add_error(
        parser, "largest error that the model promised (default: twice its error at calibration)"
    )
    parser.add_argument(
        "--below",
        type=_share,
        default=0.9,
        metavar="SHARE",
        help="report the time at which the probability drops below SHARE (default: 90%%)",
    )
    parser.add_argument(
        "--age",
        type=int,
        default=0,
        metavar="N",
        help="releases since the calibration (default: 0, for a model calibrated at the "
        "last version)",
    )
    parser.add_argument(
        "--seed", type=seed, default=0, help="seed of the random draws (default: 0)"
    )
    add_reading(parser)
    add_output_arguments(parser)
    parser.set_defaults(run=_forecast)


def _add_blame(actions: argparse._SubParsersAction[Any]) -> None:
    parser = actions.add_parser(
        "blame",
        help="which operators made a network slower or faster, and since which version",
        description="Say why measured times of whole runs or networks changed: which of their "
        "parts (kernels, operators) changed, since which version, and how much of the "
        "change each part explains. The history needs rows for wholes and for parts, and "
        "a column `level` that says which of the two a row is. A part belongs to the "
        "whole with the same values in shared columns, e.g. model; among several such "
        "wholes, to the one whose name begins the name of the part.",
    )
    parser.add_argument("history", metavar="HISTORY", help=HISTORY)
    parser.add_argument(
        "--whole",
        metavar="LEVEL",
        help="level of the rows of wholes (default: the first of run, network, model, … that the "
        "history has)",
    )
    parser.add_argument(
        "--part",
        metavar="LEVEL",
        help="level of the rows of parts (default: the first of kernel, operator, op, … that the "
        "history has)",
    )
    parser.add_argument(
        "--by",
        metavar="KEYS",
        help="keys to group parts by (default: the first of kernel_class, op, … that all parts "
        "have)",
    )
    parser.add_argument(
        "--version",
        metavar="VERSION",
        help="explain this version alone, whether or not a step is found there",
    )
    parser.add_argument(
        "--alpha",
        type=_share,
        default=0.05,
        help="chance of finding a step in a series that has none (default: 5%%)",
    )
    add_reading(parser)
    add_output_arguments(parser)
    parser.set_defaults(run=_blame)


def _add_error(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument("--error", type=_share, metavar="SHARE", help=f"{meaning}, e.g. 5%%")


def _share(text: str) -> float:
    """Read a fraction below 1."""
    number = fraction(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100 % (write 5% or 0.05)")
    return number


def _fit(args: argparse.Namespace) -> None:
    from errcomp.halflife.fitting import half_life

    figures = parse_figures(args.figure, _FIGURES)
    check_targets(args, [args.history], figures)
    history = load_history(args, args.history)
    with progress("fitting half-lives", quiet=args.json) as report:
        half_lives = half_life(
            history,
            by=parse_keys(args.by),
            error=args.error,
            cluster=args.cluster,
            alpha=args.alpha,
            seed=args.seed,
            n_jobs=args.jobs,
            progress=report,
        )
    if figures:
        from errcomp.halflife.view.figures import draw

        add_figures(args, [draw(half_lives, name) for name, _ in figures], figures)
    emit(args, half_lives, half_lives.view(), inputs=[args.history])


def _forecast(args: argparse.Namespace) -> None:
    from errcomp.halflife.forecast import forecast_half_life

    check_targets(args, [args.history])
    history = load_history(args, args.history)
    with progress("forecasting", quiet=args.json) as report:
        forecast = forecast_half_life(
            history,
            by=parse_keys(args.by),
            error=args.error,
            cluster=args.cluster,
            age=args.age,
            below=args.below,
            seed=args.seed,
            progress=report,
        )
    emit(args, forecast, forecast.view(), inputs=[args.history])


def _check(args: argparse.Namespace) -> None:
    from errcomp.halflife.gate.checking import check_validation
    from errcomp.halflife.view.gate import report_halflife

    if args.dry_run:
        _dry_run(args)
        return
    if args.new is None:
        raise InputError(
            "NEW is missing: the table of validations of a new version. To see what the check "
            "would have done with the history, add --dry-run."
        )
    check_targets(args, [args.history, args.new])
    history = load_history(args, args.history)
    with progress("checking", quiet=args.json):
        checked = check_validation(
            history,
            read_history(args, args.new),
            by=parse_keys(args.by),
            error=args.error,
            margin=args.margin,
            alpha=args.alpha,
            recalibrated=args.recalibrate,
        )
    add_checks(args, report_halflife(checked.result, fail_on=args.fail_on))
    # Set before anything is printed: the reader of the output may close the pipe.
    args.exit_code = 1 if checked.result.outcome in ("regression", *args.fail_on) else 0
    emit(args, checked, checked.view(), inputs=[args.history, args.new])


def _dry_run(args: argparse.Namespace) -> None:
    from errcomp.halflife.gate.dry_run import dry_run

    unused = {
        "NEW": args.new,
        "--recalibrate": args.recalibrate,
        "--junit": args.junit,
        "--markdown": args.markdown,
        "--fail-on": args.fail_on,
    }
    if given := [name for name, value in unused.items() if value]:
        raise InputError(
            f"--dry-run uses only the history. Leave out {', '.join(given)}, or --dry-run."
        )
    check_targets(args, [args.history])
    history = load_history(args, args.history)
    with progress("going through the history", quiet=args.json) as report:
        done = dry_run(
            history,
            by=parse_keys(args.by),
            error=args.error,
            margin=args.margin,
            alpha=args.alpha,
            progress=report,
        )
    emit(args, done, done.view(), inputs=[args.history])


def _blame(args: argparse.Namespace) -> None:
    from errcomp.halflife.steps.blame import blame

    check_targets(args, [args.history])
    found = blame(
        load_history(args, args.history),
        whole=args.whole,
        part=args.part,
        by=parse_keys(args.by),
        version=args.version,
        alpha=args.alpha,
    )
    emit(args, found, found.view(), inputs=[args.history])


def _show(args: argparse.Namespace) -> None:
    from errcomp import datasets
    from errcomp.halflife.fitting import release_study
    from errcomp.halflife.view.study import study_tables

    history = datasets.load(STUDIES[args.name])
    with progress("fitting half-lives", quiet=args.json) as report:
        study = release_study(history, progress=report)
    document = {"schema": "errcomp.half-life-study/1", **study.to_dict()}
    parts = ("modelled", "looked_up", "classes", "networks")
    flat = [{"part": part, **row} for part in parts for row in document[part]["rows"]]
    emit(args, document, report_of(*study_tables(study)), flat=flat)
