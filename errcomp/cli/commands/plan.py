"""What to measure next: runs for a model, pairs for a figure, repeats for a gate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.histories import HISTORY, add_reading, load_history
from errcomp.cli.input import (
    add_kernel_arguments,
    count,
    error_share,
    fraction,
    load_kernels,
    parse_keys,
    seed,
)
from errcomp.cli.output import add_output_arguments, check_targets, emit
from errcomp.cli.streams import progress
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "plan": (
        "errcomp plan claim --error 5% --power 80%",
        "errcomp plan runs --model gpu.errcomp --candidates neusight-kernels --where device=H100",
    ),
    "plan runs": (
        "errcomp plan runs --model gpu.errcomp --candidates neusight-kernels --where device=H100",
    ),
    "plan claim": (
        "errcomp plan claim --error 5% --power 80%",
        "errcomp plan claim --error 15% --pilot neusight --cluster model",
    ),
    "plan gate": (
        "errcomp plan gate --change 5% --noise 2% --count 20",
        "errcomp plan gate history.db --change 10%",
    ),
}


def build(parser: Parser) -> None:
    """Add ``plan`` and its actions."""
    parser.description = (
        "Plan measurements: which runs narrow the bands of a calibrated model most, how many "
        "pairs support a figure about an error, and how many repeats find a change."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    runs = actions.add_parser(
        "runs",
        help="which runs to measure next, so that bands of a model become narrow",
        description="Choose which runs to measure, so that a model adapted to them (errcomp "
        "calibrate adapt) has the narrowest 90 % bands for other runs. How much one "
        "run reveals about others on its device is learned from devices that are held "
        "out from the fit.",
    )
    runs.add_argument("--model", type=Path, required=True, metavar="FILE", help="the model file")
    runs.add_argument(
        "--candidates",
        required=True,
        metavar="PATH",
        help="table of the kernels of the runs to choose from, with a column device; or the name "
        "of a built-in table",
    )
    runs.add_argument(
        "--targets",
        metavar="PATH",
        help="table of kernels of the runs whose bands should become narrow (default: the "
        "candidates)",
    )
    runs.add_argument(
        "-k", dest="k", type=count, default=3, metavar="N", help="number of runs (default: 3)"
    )
    runs.add_argument(
        "--seed", type=seed, default=0, help="seed of the random choices (default: 0)"
    )
    add_kernel_arguments(runs)
    add_output_arguments(runs)
    runs.set_defaults(run=_runs)
    claim = actions.add_parser(
        "claim",
        help="how many pairs support a figure such as < 5 %%",
        description="Compute how many pairs are needed for the whole interval of the MAPE to lie "
        "below a figure, for several true errors. With --pilot, the spread of the "
        "errors comes from pairs that were measured already; if the errors of a model "
        "or a device are correlated, the result is the number of models or devices "
        "to measure, not of pairs.",
    )
    _add_claim(claim)
    add_output_arguments(claim)
    claim.set_defaults(run=_claim)
    gate = actions.add_parser(
        "gate",
        help="how many repeats of each validation find a change that matters",
        description="Compute how many repeats of each validation (a prediction and its "
        "measurement) `errcomp halflife check` needs to find a change, by simulating "
        "that check. The noise is given, or learned from a history. Repeats average "
        "out the noise within a look (one check of a new version), but not the noise "
        "between looks.",
    )
    _add_gate(gate)
    add_output_arguments(gate)
    gate.set_defaults(run=_gate)


def _add_claim(claim: argparse.ArgumentParser) -> None:
    claim.add_argument(
        "--error", type=error_share, required=True, metavar="FIGURE", help="the figure, e.g. 5%%"
    )
    claim.add_argument(
        "--power",
        type=fraction,
        default=0.8,
        metavar="SHARE",
        help="probability that the whole interval lies below the figure (default: 80%%)",
    )
    claim.add_argument(
        "--expected",
        metavar="ERRORS",
        help="true errors, separated by commas, e.g. 3%%,4%% (default: 40, 60, 80 and 90 %% of the "
        "figure, and the error of the pilot)",
    )
    claim.add_argument(
        "--pilot", metavar="PATH", help="pairs that were measured already, or a built-in table"
    )
    claim.add_argument(
        "--tool",
        metavar="NAME",
        help="tool of the pilot, if it has several (default: the main tool of the table, if any)",
    )
    claim.add_argument(
        "--cluster",
        metavar="KEY",
        help="key of the pilot whose values have independent errors; `none` if all pairs are "
        "independent (default: model or device, whichever has fewer values)",
    )
    claim.add_argument(
        "--level", type=fraction, default=0.95, metavar="SHARE", help="coverage (default: 95%%)"
    )
    claim.add_argument("--seed", type=seed, default=0, help="seed of the draws (default: 0)")


def _add_gate(gate: argparse.ArgumentParser) -> None:
    gate.add_argument("history", metavar="HISTORY", nargs="?", help=HISTORY)
    gate.add_argument(
        "--change", type=error_share, required=True, metavar="SHARE", help="the change, e.g. 5%%"
    )
    gate.add_argument(
        "--noise",
        type=error_share,
        metavar="SHARE",
        help="standard deviation of one run within a look (default: from HISTORY)",
    )
    gate.add_argument(
        "--between",
        type=fraction,
        metavar="SHARE",
        help="standard deviation between looks, which all repeats of a look share (default: from "
        "HISTORY, or none)",
    )
    gate.add_argument(
        "--count",
        type=count,
        metavar="N",
        help="number of series, e.g. models, that `halflife check` compares (default: as in "
        "HISTORY, or 1)",
    )
    gate.add_argument(
        "--looks",
        type=count,
        metavar="N",
        help="looks before the change (default: as in HISTORY, or 30)",
    )
    gate.add_argument(
        "--within",
        type=count,
        default=3,
        metavar="N",
        help="number of looks within which the change is found (default: 3)",
    )
    gate.add_argument(
        "--power",
        type=fraction,
        default=0.9,
        metavar="SHARE",
        help="probability of finding the change within that many looks (default: 90%%)",
    )
    gate.add_argument(
        "--alpha",
        type=fraction,
        default=0.05,
        metavar="SHARE",
        help="chance of even one false alarm in 1,000 looks (default: 5%%)",
    )
    gate.add_argument("--seed", type=seed, default=0, help="seed of the draws (default: 0)")
    add_reading(gate)


def _runs(args: argparse.Namespace) -> None:
    from errcomp.calibration.storing import load_model
    from errcomp.calibration.transfer.choosing import plan_runs

    check_targets(args, [args.model, args.candidates, args.targets])
    model = load_model(args.model)
    whole_runs = model.preparation.task == "prediction"
    candidates, targets = (
        None if name is None else load_kernels(args, name, whole_runs=whole_runs)
        for name in (args.candidates, args.targets)
    )
    found = plan_runs(model, candidates, k=args.k, targets=targets, seed=args.seed)
    emit(args, found, found.view(), inputs=[args.model, args.candidates, args.targets])


def _claim(args: argparse.Namespace) -> None:
    from errcomp.planning.claim import plan_claim

    check_targets(args, [args.pilot])
    for name in ("cluster", "tool"):
        if getattr(args, name) is not None and args.pilot is None:
            raise InputError(f"--{name} applies only to a pilot: add --pilot TABLE")
    expected = None
    if args.expected is not None:
        try:
            expected = [error_share(text) for text in parse_keys(args.expected)]
        except (argparse.ArgumentTypeError, ValueError) as error:
            raise InputError(f"--expected: {error}") from error
    found = plan_claim(
        args.error,
        power=args.power,
        expected=expected,
        pilot=args.pilot,
        tool=args.tool,
        cluster=args.cluster,
        level=args.level,
        seed=args.seed,
    )
    emit(args, found, found.view(), inputs=[args.pilot])


def _gate(args: argparse.Namespace) -> None:
    from errcomp.halflife.gate.planning import plan_gate

    check_targets(args, [args.history])
    history = None if args.history is None else load_history(args, args.history)
    with progress("simulating", quiet=args.json) as report:
        found = plan_gate(
            args.change,
            noise=args.noise,
            between=args.between,
            history=history,
            series=args.count,
            looks=args.looks,
            within=args.within,
            power=args.power,
            alpha=args.alpha,
            seed=args.seed,
            progress=report,
        )
    emit(args, found, found.view(), inputs=[args.history])
