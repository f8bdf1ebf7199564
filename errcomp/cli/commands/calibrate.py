"""Correct the sum of kernel times to end-to-end times: fit, evaluate, check, adapt, show."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli.input import (
    add_jobs_argument,
    add_kernel_arguments,
    load_kernels,
    parse_keys,
    seed,
    select,
)
from errcomp.cli.output import (
    add_check_arguments,
    add_figure_argument,
    add_figures,
    add_output_arguments,
    beside,
    check_targets,
    emit,
    finish,
    parse_figures,
)
from errcomp.cli.streams import progress, warnings_told
from errcomp.errors import InputError, MissingExtraError
from errcomp.report.model import report_of

if TYPE_CHECKING:
    from errcomp.calibration.composition import Composition
    from errcomp.cli.parser import Parser
    from errcomp.tables import Kernels

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "calibrate": (
        "errcomp calibrate fit ort-cpu --estimator device -o ort.errcomp",
        "errcomp predict ort-cpu --model ort.errcomp",
    ),
    "calibrate fit": (
        "errcomp calibrate fit ort-cpu --estimator device -o ort.errcomp",
        "errcomp calibrate fit torch-cpu --estimator linear -o torch.errcomp",
    ),
    "calibrate evaluate": (
        "errcomp calibrate evaluate neusight-kernels --estimator linear --split leave-device-out",
    ),
    "calibrate check": ("errcomp calibrate check neusight-kernels",),
    "calibrate adapt": (
        "errcomp calibrate adapt gpu.errcomp neusight-kernels --where device=H100 --where "
        "model=opt_13 -o h100.errcomp",
    ),
    "calibrate show": ("errcomp calibrate show ort.errcomp",),
}

_EMBEDDED = "neusight-kernels"
_TASKS = ("composition", "prediction")
_SPLITS = ("leave-model-out", "leave-device-out")
_FIGURES = {
    "fit": ("overhead", "posterior"),
    "evaluate": ("predicted", "residuals", "coverage", "abstention"),
}
_CONDITIONS = ("worse", "narrow")
_FAIL_ON = (
    "worse: exit with 1 when a chosen estimator is worse than the plain sum of kernels (the "
    "interval for the difference of their errors lies above 0). narrow: exit with 1 when the "
    "90 %% band of a chosen estimator is too narrow (the interval for its coverage lies below "
    "90 %%). May be repeated. The chance of even one false alarm in all tests is at most 5 %%. "
    "Without --fail-on the exit code is 0, and the files of --junit and --markdown report either "
    "condition as a failure"
)
#: Number of tables drawn from the posterior predictive distribution.
_TABLES = 500
_PACKAGES = {"sklearn": "scikit-learn"}


def build(parser: Parser) -> None:
    """Add ``calibrate fit|evaluate|show``."""
    parser.description = (
        "The end-to-end time of a run differs from the sum of its kernel times. Fit a model of "
        "the difference to measured runs, evaluate it on held-out models and devices, and "
        "predict with `errcomp predict`."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    fit = actions.add_parser(
        "fit",
        help="fit to measured runs and write a model file",
        description="Fit estimators to runs measured end to end, calibrate their "
        "bands on held-out models and devices, and write one model file.",
    )
    _add_table(fit)
    fit.add_argument(
        "-o", dest="target", type=Path, required=True, metavar="MODEL",
        help="the model file to write, by convention *.errcomp; an existing file is replaced",
    )  # fmt: skip
    fit.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    add_figure_argument(
        fit,
        "draw the plot NAME and write it to FILE (png, svg or pdf); may be repeated. NAME is "
        "overhead (per launch and device) or posterior (measured runs against runs that the fitted "
        "model simulates)",
    )
    fit.set_defaults(run=_fit, output=None)

    judge = actions.add_parser(
        "evaluate",
        help="errors and bands on held-out models, devices and vendors",
        description="Hold out each group of runs in turn (--split), fit to the other runs, and "
        "evaluate the predictions for the held-out runs: errors with intervals, coverage of the "
        "bands, and the error of the most confident predictions. No held-out run is used for "
        "tuning.",
    )
    _add_table(judge)
    judge.add_argument(
        "--split",
        metavar="NAMES",
        default=",".join(_SPLITS),
        help="leave-model-out, leave-device-out, leave-model-and-device-out, leave-vendor-out, "
        "or random (10 folds; too optimistic for new models and devices); default: "
        "leave-model-out,leave-device-out",
    )
    add_jobs_argument(judge, "fit estimators")
    add_check_arguments(judge, fail_on=_CONDITIONS, meaning=_FAIL_ON)
    add_output_arguments(judge)
    add_figure_argument(
        judge,
        "draw the plot NAME for the first split and write it to FILE (png, svg or pdf); may be "
        "repeated. NAME is predicted, residuals, coverage, or abstention (error of the runs with "
        "the narrowest bands, by the share of runs kept)",
    )
    judge.set_defaults(run=_evaluate)

    check = actions.add_parser(
        "check",
        help="name runs whose kernels are implausible, with the evidence",
        description="List the runs whose measurements look unreliable. The evidence comes from "
        "the kernels of a run, not from its total time: matrix products or all kernels far "
        "slower than in other runs, more memory needed than the device has, missing kernels, "
        "or a host that is slower than the kernels.",
    )
    _add_path(check)
    _add_task(check)
    add_kernel_arguments(check)
    add_output_arguments(check)
    check.set_defaults(run=_check)

    adapt = actions.add_parser(
        "adapt",
        help="move a fitted model by a few measured runs of a device",
        description="Adapt a fitted model to devices, using a few measured runs of each. How far "
        "the predictions move is learned from held-out devices: the more similar the errors of "
        "runs on one of these devices, the further. The bands become as wide as was needed to "
        "cover the other runs of these devices.",
    )
    adapt.add_argument("model", type=Path, metavar="MODEL", help="the model file")
    adapt.add_argument(
        "table",
        metavar="PATH",
        help="table of kernels of the measured runs, with the columns device and run_measured, or "
        "output of a tool (see: errcomp readers)",
    )
    adapt.add_argument(
        "-o", dest="target", type=Path, required=True, metavar="NEW",
        help="the adapted model file to write; an existing file is replaced",
    )  # fmt: skip
    adapt.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    _add_runs(adapt)
    add_kernel_arguments(adapt)
    adapt.set_defaults(run=_adapt, output=None)

    show = actions.add_parser(
        "show",
        help="what a model file was fitted to, when, and how its bands were calibrated",
        description="Show what a model file was fitted to, when and with which libraries; the "
        "ranges of the features; how the bands were calibrated; and the overhead per "
        "launch.",
    )
    show.add_argument("model", type=Path, metavar="MODEL", help="the model file")
    add_output_arguments(show)
    show.set_defaults(run=_show)


def _estimators_help() -> str:
    """Name the estimators, and the extras that they need."""
    from errcomp.calibration.estimators import (
        BASELINES,
        WITHOUT_EXTRA,
        default_estimators,
        estimators,
        stacked,
    )

    extras: dict[str, list[str]] = {}
    for name, estimator in estimators().items():
        if estimator.role != "baseline":
            weighed = (
                f" (weighted mean of {', '.join(stacked())})"
                if estimator.role == "combination"
                else ""
            )
            extras.setdefault(estimator.extra, []).append(name + weighed)
    needs = [
        f"{', '.join(names)} need{'' if len(names) > 1 else 's'} "
        f"{f'the extra errcomp[{extra}]' if extra else 'no extra'}"
        for extra, names in extras.items()
    ]
    return (
        f"estimators, separated by commas. {'; '.join(needs)}; {', '.join(BASELINES)} are simple "
        f"baselines. Default: {','.join(default_estimators())}; without that extra, "
        f"{','.join(WITHOUT_EXTRA)}"
    )


def _add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        nargs="?",
        default=_EMBEDDED,
        metavar="PATH",
        help="a table of kernels (CSV, Parquet, JSON, JSON lines) that has the column run_measured "
        "(measured time of the whole run), the output of a tool (see: errcomp readers), "
        f"or the name of a built-in table (default: {_EMBEDDED})",
    )


def _add_task(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--task",
        choices=_TASKS,
        default=_TASKS[0],
        help="which sum to turn into the time of the run: composition, the sum of the measured "
        "kernel times (default); or prediction, the sum of the predicted kernel times (in a "
        "table without kernels: the prediction of each row)",
    )


def _add_table(parser: argparse.ArgumentParser) -> None:
    _add_path(parser)
    _add_task(parser)
    parser.add_argument(
        "--estimator",
        metavar="NAMES",
        help=_estimators_help(),
    )
    parser.add_argument(
        "--keep-flagged",
        action="store_true",
        help="also fit to runs whose measurements look unreliable (see: errcomp calibrate check)",
    )
    _add_runs(parser)
    add_kernel_arguments(parser)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        metavar="FILE",
        help="file with the measured times of the runs, if PATH lacks them",
    )
    parser.add_argument(
        "--seed", type=seed, default=0, help="seed of the random draws (default: 0)"
    )


def _fit(args: argparse.Namespace) -> None:
    from errcomp.calibration.composition import Composition
    from errcomp.calibration.estimators import estimators as known
    from errcomp.calibration.estimators import fitted_for
    from errcomp.calibration.estimators.bayesian.diagnostics import SamplingError
    from errcomp.calibration.modelfile import check_target
    from errcomp.calibration.storing import library_versions, save_model
    from errcomp.calibration.view.model import fit_tables, model_document

    estimators = _estimators(args)
    named = [item.partition("=")[0] in _FIGURES["fit"] for item in args.figure]
    if any(named) and not any(known()[name].explains for name in fitted_for(estimators)):
        raise InputError("--figure draws the Bayesian fit: add bayesian to --estimator")
    figures = parse_figures(args.figure, _FIGURES["fit"])
    check_targets(args, [args.table, args.runs], figures)
    check_target(args.target)
    kernels = _load(args, args.task)
    with warnings_told(Warning), progress("fitting", quiet=args.json) as report:
        fitted = Composition(
            task=args.task,
            estimators=estimators,
            seed=args.seed,
            keep_flagged=args.keep_flagged,
        )
        try:
            fitted.fit(kernels, progress=report)
        except SamplingError as error:
            raise InputError(
                f"{error} On the command line: choose --estimator boosted or linear."
            ) from error
    today = datetime.date.today().isoformat()
    stored = replace(fitted.model_, created=today, versions=library_versions())
    document = {
        "schema": "errcomp.calibrate-fit/1",
        "source": kernels.source,
        "model": str(args.target),
        "seed": args.seed,
        **model_document(stored),
        "unused": fitted.unused_,
        "diagnostics": _diagnostics(fitted),
    }
    drawn = [_drawn_fit(name, fitted, kernels, args.seed) for name, _ in figures]
    beside(args, args.target, lambda path: save_model(stored, path, created=stored.created))
    add_figures(args, drawn, figures)
    emit(args, document, report_of(*fit_tables(document)))


def _evaluate(args: argparse.Namespace) -> None:
    from errcomp.calibration.evaluation.composed import evaluate_composition
    from errcomp.calibration.evaluation.splits import check_split
    from errcomp.calibration.view.check import report_evaluation
    from errcomp.calibration.view.evaluation import draw

    estimators = _estimators(args)
    splits = parse_keys(args.split)
    if not splits:
        raise InputError(f"--split takes names separated by commas, got {args.split!r}")
    for name in splits:
        check_split(name)
    figures = parse_figures(args.figure, _FIGURES["evaluate"])
    check_targets(args, [args.table, args.runs], figures)
    kernels = _load(args, args.task)
    with warnings_told(Warning), progress("evaluating", quiet=args.json) as report:
        evaluation = evaluate_composition(
            kernels,
            task=args.task,
            estimators=estimators,
            splits=splits,
            seed=args.seed,
            n_jobs=args.jobs,
            keep_flagged=args.keep_flagged,
            progress=report,
        )
    drawn = [draw(name, evaluation, evaluation.rows[0].split) for name, _ in figures]
    add_figures(args, drawn, figures)
    fail_on = args.fail_on or _CONDITIONS
    finish(args, report_evaluation(evaluation, estimators=estimators, fail_on=fail_on))
    emit(args, evaluation, evaluation.view(), inputs=[args.table, args.runs])


def _check(args: argparse.Namespace) -> None:
    from errcomp.calibration.plausibility import check_runs

    check_targets(args, [args.table])
    kernels = load_kernels(args, args.table, whole_runs=args.task == "prediction")
    found = check_runs(kernels, task=args.task)
    emit(args, found, found.view(), inputs=[args.table])


def _adapt(args: argparse.Namespace) -> None:
    from errcomp.calibration.modelfile import check_target
    from errcomp.calibration.storing import load_model, save_model
    from errcomp.calibration.transfer.adaptation import adapt_model

    check_targets(args, [args.model, args.table, args.runs])
    check_target(args.target)
    model = load_model(args.model)
    found = adapt_model(model, _load(args, model.preparation.task), seed=args.seed)
    beside(args, args.target, lambda path: save_model(found.model, path, created=model.created))
    emit(args, found, found.view(), inputs=[args.model, args.table, args.runs])


def _show(args: argparse.Namespace) -> None:
    from errcomp.calibration.storing import load_model
    from errcomp.calibration.view.model import model_document, model_tables

    check_targets(args, [args.model])
    known = model_document(load_model(args.model))
    document = {"schema": "errcomp.model/1", "model": str(args.model), **known}
    emit(args, document, report_of(*model_tables(document)))


def _estimators(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the chosen estimators; refuse those that cannot be fitted here."""
    from errcomp.calibration.estimators import (
        WITHOUT_EXTRA,
        check_estimators,
        default_estimators,
        needs_of,
    )
    from errcomp.cli.streams import tell

    if args.estimator is None:
        usual = default_estimators()
        if all(find_spec(package) for _, package, _ in needs_of(usual)):
            return check_estimators(usual)
        tell(
            f"note: {', '.join(WITHOUT_EXTRA)} alone is fitted; {', '.join(usual)} need the extra "
            "errcomp[calibration]"
        )
        return check_estimators(WITHOUT_EXTRA)
    names = parse_keys(args.estimator)
    if not names:
        raise InputError(f"--estimator takes names separated by commas, got {args.estimator!r}")
    chosen = check_estimators(names)
    for name, package, extra in needs_of(chosen):
        if find_spec(package) is None:
            lacking = MissingExtraError(
                _PACKAGES.get(package, package), extra, f"fitting the estimator {name}"
            )
            raise InputError(
                f"{lacking}; or choose --estimator physics, which needs no extra packages"
            )
    return chosen


def _load(args: argparse.Namespace, task: str) -> Kernels:
    """Read the kernels, and the runs from their own table, if --runs names it."""
    if args.runs is None:
        return load_kernels(args, args.table, whole_runs=task == "prediction")
    from errcomp.readers.plain import NAMES, read_frame
    from errcomp.tables import Runs, with_runs

    # Both tables are joined in full before --where selects runs.
    kernels = load_kernels(argparse.Namespace(**{**vars(args), "where": []}), args.table)
    frame, line_offset = read_frame(Path(args.runs), {}, NAMES | {"run"}, ("predicted", "measured"))
    runs = Runs(frame, unit=args.unit, source=args.runs, line_offset=line_offset)
    joined = with_runs(kernels, runs)
    return select(joined, args.where)


def _diagnostics(fitted: Composition) -> dict[str, Any] | None:
    """Return the diagnostics of sampling, if there was any, without its duration, which varies."""
    sampled = next((fit for fit in fitted.members_.values() if hasattr(fit, "diagnostics_")), None)
    if sampled is None:
        return None
    diagnostics = asdict(sampled.diagnostics_)
    del diagnostics["seconds"]
    return {**diagnostics, "caveats": list(sampled.caveats_)}


def _drawn_fit(name: str, fitted: Composition, kernels: Kernels, seed: int) -> Any:
    """Draw the Bayesian fit."""
    from errcomp.calibration.estimators import columns_of
    from errcomp.calibration.estimators.bayesian.hierarchical import HierarchicalModel
    from errcomp.calibration.view import figures as draw
    from errcomp.calibration.view.model import LAUNCH_WORDS, overheads

    model = fitted.model_
    note = f"{fitted.task} of {kernels.source or 'the table'}, {len(model.training)} runs"
    if name == "overhead":
        draws: dict[str, dict[str, Any]] = {}
        for kind, cost in overheads(model):
            costs = draws.setdefault(cost.device or "(a new device)", {})
            costs[LAUNCH_WORDS.get(kind, kind)] = cost.draws
        return draw.overhead(draws, note=note)
    assert model.explaining is not None  # --figure asked for it
    physical = model.members[model.explaining]
    assert isinstance(physical, HierarchicalModel)
    design = fitted.design_
    made = physical.sample(
        design.x[:, columns_of(model.explaining, fitted.task)],
        device=design.device,
        model=design.model,
        seed=seed,
    )
    return draw.posterior(design.log_ratio, made[:: max(1, len(made) // _TABLES)], note=note)
