"""End-to-end times of runs, with bands, from a calibrated model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.input import add_kernel_arguments, error_share, load_kernels, parse_where
from errcomp.cli.output import add_output_arguments, check_targets, emit

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "predict": (
        "errcomp predict ort-cpu --model ort.errcomp",
        "errcomp predict ort-cpu --model ort.errcomp --where model=mlp -o predicted.csv",
        "errcomp predict ort-cpu --model ort.errcomp --max-width 60%",
    )
}


def build(parser: Parser) -> None:
    """Add ``predict``."""
    parser.description = (
        "Predict the end-to-end time of each run from its kernels and a model that `errcomp "
        "calibrate fit` wrote. A warning marks each run that is unlike the runs that the model was "
        "fitted to. A run on an unknown device is predicted from all known devices, with the band "
        "for unknown devices."
    )
    parser.add_argument(
        "table",
        metavar="PATH",
        help="a table of kernels (CSV, Parquet, JSON, JSON lines), the output of a tool (see: "
        "errcomp readers), or the name of a built-in table",
    )
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="the model file")
    parser.add_argument(
        "--estimator",
        metavar="NAME",
        help="one of the model's estimators (default: the last that `calibrate show` lists)",
    )
    parser.add_argument(
        "--max-width",
        type=error_share,
        metavar="SHARE",
        help="leave out runs whose 90 %% band is wider than this share of the prediction, e.g. "
        "20%%",
    )
    add_kernel_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``predict``."""
    from errcomp.calibration.storing import load_model

    check_targets(args, [args.table, args.model])
    model = load_model(args.model)
    whole_runs = model.preparation.task == "prediction"
    kernels = load_kernels(args, args.table, whole_runs=whole_runs)
    unused: dict[str, str] = {}
    if "run" not in parse_where(args.where):
        # A run asked for by name is not left out: the error says what it lacks.
        kernels, unused = model.usable(kernels)
    predictions = model.predict(kernels, estimator=args.estimator)
    if args.max_width is not None:
        predictions, unsure = predictions.at_most(args.max_width)
        unused = {**unused, **unsure}
    document = predictions.to_dict()
    rows = document.pop("rows")
    document |= {
        "source": kernels.source,
        "model": str(args.model),
        "task": model.preparation.state.task,
        "unused": unused,
        "rows": rows,
    }
    emit(
        args,
        document,
        predictions.view(model, kernels.source, unused),
        inputs=[args.table, args.model],
        flat=predictions.flat(),
    )
