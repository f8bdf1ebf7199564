"""``errcomp predict``: what runs take, from a stored model and the kernels alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from errcomp.cli._input import parse_where
from errcomp.cli._kernels import add_reading_arguments, load_kernels
from errcomp.cli._output import add_output_arguments, emit
from errcomp.cli._targets import check_targets

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``predict``."""
    parser = commands.add_parser(
        "predict",
        help="what runs take end to end, with bands, from a calibrated model",
        description="Predict the end-to-end time of each run from its kernels and a model that "
        "`errcomp calibrate fit` wrote. Runs unlike those of the fit are answered with a warning, "
        "those on an unknown device from all devices, with the band that belongs to that.",
    )
    parser.add_argument(
        "table",
        metavar="PATH",
        help="table of kernels (CSV, Parquet, JSON, JSON lines), folder of an artifact, or name of "
        "an embedded table",
    )
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="the model file")
    parser.add_argument(
        "--estimator",
        metavar="NAME",
        help="one of the model's estimators (default: the last that `calibrate show` lists)",
    )
    add_reading_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``predict``."""
    from errcomp.calibration.storing import load_model
    from errcomp.report.sections.general import section_of_result
    from errcomp.report.tables.predictions import flat_predictions, prediction_tables

    check_targets(args, [args.table, args.model])
    model = load_model(args.model)
    kernels = load_kernels(args, args.table)
    unused: dict[str, str] = {}
    if "run" not in parse_where(args.where):
        # A run that is asked for by name is not left out: it is said what it lacks.
        kernels, unused = model.usable(kernels)
    found = model.predict(kernels, estimator=args.estimator)
    document = {
        "schema": "errcomp.predictions/1",
        "source": kernels.source,
        "model": str(args.model),
        "task": model.preparation.state.task,
        "estimator": found.estimator,
        "unit": found.unit,
        "levels": list(found.levels),
        "notes": list(found.notes),
        "unused": unused,
        "rows": found.rows(),
    }
    tables = prediction_tables(found, model, kernels.source, unused)
    emit(
        args,
        document,
        tables,
        section=lambda: section_of_result(found, tables),
        inputs=[args.table, args.model],
        flat=flat_predictions(found),
    )
