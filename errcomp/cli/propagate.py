"""``errcomp propagate``: what kernel errors become; ``propagate validate``: whether that holds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import parse_keys, parse_where, seed
from errcomp.cli._output import add_output_arguments, emit
from errcomp.cli._progress import progress
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.propagation import Correlation, ErrorModel
    from errcomp.tables import Kernels

__all__ = ["add_parser"]

_EMBEDDED = "neusight-kernels"
_KINDS = ("log-ratio", "relative", "absolute")
_ASSUME_HELP = (
    "what kernel errors share, the assumption to rely on first: estimated, independent, repeats, "
    "classes, devices, comonotonic, matrix, unknown; classes=0.3 sets the correlation within a "
    "class"
)


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``propagate`` and its ``validate``."""
    parser = commands.add_parser(
        "propagate",
        help="what kernel errors become in a run; `propagate validate`: do such bands hold?",
        description="What the errors of kernels become in the time of a run, under every "
        "assumption on their correlation. `errcomp propagate validate [TABLE]` holds such bands "
        "against measured totals.",
    )
    parser.add_argument(
        "table",
        nargs="?",
        default=_EMBEDDED,
        metavar="TABLE",
        help="table of kernels (CSV, Parquet, JSON, JSON lines), folder of an artifact, or name of "
        f"an embedded table (default: {_EMBEDDED})",
    )
    # `validate` stands where TABLE stands; its own table follows.
    parser.add_argument("rest", nargs="?", metavar="", help=argparse.SUPPRESS)
    parser.add_argument("--assume", metavar="NAMES", help=_ASSUME_HELP)
    parser.add_argument("--run", dest="only", metavar="NAME", help="only this run")
    _add_errors(parser)
    _add_reading(parser)
    graph = parser.add_argument_group("more than a sum")
    graph.add_argument("--graph", type=Path, metavar="FILE", help="execution graph (JSON)")
    graph.add_argument("--matrix", type=Path, metavar="FILE", help="correlations (CSV) for matrix")
    graph.add_argument("--draws", type=int, default=16_384, help="Monte Carlo draws with a graph")
    graph.add_argument(
        "--precision",
        type=float,
        metavar="FRACTION",
        help="draw until quantiles are known to this fraction, e.g. 0.005",
    )
    graph.add_argument("--seed", type=seed, default=0)
    check = parser.add_argument_group("propagate validate")
    check.add_argument(
        "--leave-out", metavar="KEY", help="fit without each value of it in turn (default: device)"
    )
    check.add_argument("--test", metavar="TABLE", help="with --train: the runs to judge")
    add_output_arguments(parser)
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="draw bands or budget (validate: coverage or pit) to a png, svg or pdf",
    )
    parser.set_defaults(run=run)


def _add_errors(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("errors of the kernels (default: from the table's own runs)")
    group.add_argument("--train", metavar="TABLE", help="fit to the measured runs of this table")
    group.add_argument(
        "--errors", type=Path, metavar="FILE", help="given: columns kernel_class, spread, bias"
    )
    group.add_argument("--spread", type=float, help="given: one standard deviation for all kernels")
    group.add_argument("--bias", type=float, help="given: bias of all kernels (default: 0)")
    group.add_argument(
        "--kind",
        choices=_KINDS,
        default="log-ratio",
        help="scale of the errors: of ln(measured/predicted) (default), of measured/predicted, or "
        "in the table's unit",
    )


def _add_reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading the table")
    group.add_argument("--predicted", metavar="COLUMN", help="column that holds the predictions")
    group.add_argument("--measured", metavar="COLUMN", help="column that holds the measurements")
    group.add_argument("--unit", help="unit of all times, e.g. ms")
    group.add_argument("--tool", help="only the kernels that this tool predicted")
    group.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE[,VALUE]",
        help="only these rows; may be repeated",
    )


def run(args: argparse.Namespace) -> None:
    """Run ``propagate`` or ``propagate validate``."""
    if args.table == "validate":
        _validate(args)
        return
    if args.rest:
        raise InputError(f"propagate takes one table, got {args.table} and {args.rest}")
    for name in ("leave_out", "test"):
        if getattr(args, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} is for propagate validate")
    from errcomp.cli._propagation_tables import propagation_tables
    from errcomp.propagation import fit_errors, propagate

    figures = _figures(args.figure, ("bands", "budget"))
    kernels = load_kernels(args, args.table)
    errors = _errors(args)
    if args.only:
        if errors is None and kernels.n_runs > 1:
            # The other runs know the errors, and their bands are then none of hindsight.
            errors = fit_errors(kernels.take(kernels.run != args.only), kind=args.kind)
        kernels = kernels.where({"run": [args.only]})
    graph = None
    if args.graph is not None:
        from errcomp.propagation.graph import read_graph

        graph = read_graph(args.graph)
    with progress("propagating", quiet=args.json) as report:
        found = propagate(
            kernels,
            correlation=_assumptions(args, kernels),
            errors=errors,
            kind=args.kind,
            graph=graph,
            draws=args.draws,
            precision=args.precision,
            seed=args.seed,
            progress=report,
        )
    document = found.to_dict()
    document["rows"] = document.pop("outcomes")
    document = {"schema": "errcomp.propagate/1", "source": kernels.source, **document}
    emit(args, document, propagation_tables(found, kernels.source))
    if figures:
        from errcomp.report import figures as draw

        for name, path in figures:
            axes = draw.bands(found) if name == "bands" else draw.budget(found.of())
            draw.save(axes, path)


def _validate(args: argparse.Namespace) -> None:
    for name, option in (
        *((name, name) for name in ("errors", "spread", "bias", "graph", "matrix")),
        ("only", "run"),
    ):
        if getattr(args, name) is not None:
            raise InputError(f"propagate validate does not take --{option}")
    if (args.train is None) != (args.test is None):
        raise InputError("--train and --test go together: fit to one, judge the other")
    if args.train is not None and args.rest:
        raise InputError(f"with --train and --test there is no other table, got {args.rest}")
    from errcomp.cli._propagation_tables import validation_tables
    from errcomp.propagation import fit_errors, validate
    from errcomp.propagation.validation import COMPARED

    figures = _figures(args.figure, ("coverage", "pit"))
    kernels = load_kernels(args, args.test or args.rest or _EMBEDDED)
    errors = None
    if args.train is not None:
        errors = fit_errors(load_kernels(args, args.train), kind=args.kind)
    assume = parse_keys(args.assume) or COMPARED
    with progress("validating", quiet=args.json) as report:
        found = validate(
            kernels,
            leave_out=args.leave_out or "device",
            errors=errors,
            assume=assume,
            kind=args.kind,
            progress=report,
        )
    document = {"schema": "errcomp.validation/1", "source": kernels.source, **found.to_dict()}
    emit(args, document, validation_tables(found, kernels.source))
    if figures:
        from errcomp.report import figures as draw

        for name, path in figures:
            axes = draw.calibration(found) if name == "coverage" else draw.pit(found, assume[0])
            draw.save(axes, path)


def load_kernels(args: argparse.Namespace, name: str) -> Kernels:
    """Read the table of kernels that is named: a file, an artifact, or an embedded one."""
    from errcomp import datasets
    from errcomp.readers import kernels as reader

    if not Path(name).exists():
        if name not in datasets.kernel_tables():
            raise InputError(
                f"{name}: no such file, and no embedded table of kernels of that name. "
                f"Embedded: {', '.join(datasets.kernel_tables())}"
            )
        given = [n for n in ("predicted", "measured", "unit", "tool") if getattr(args, n)]
        if given:
            raise InputError(
                f"{name} is an embedded table: its columns, unit and tool are known, leave out "
                f"--{', --'.join(given)}"
            )
        found = datasets.load_kernels(name)
    else:
        columns = {
            key: given
            for key, given in (("predicted", args.predicted), ("measured", args.measured))
            if given
        }
        found = reader.read(name, columns=columns or None, unit=args.unit, tool=args.tool)
    return found.where(parse_where(args.where)) if args.where else found


def _errors(args: argparse.Namespace) -> ErrorModel | None:
    """Return the errors that were given or are to be fitted to another table."""
    from errcomp.propagation import fit_errors, given_errors, read_errors

    given = [name for name in ("train", "errors", "spread") if getattr(args, name) is not None]
    if len(given) > 1:
        raise InputError(f"errors come from one place, got --{' and --'.join(given)}")
    if args.bias is not None and args.spread is None:
        raise InputError("--bias goes with --spread; by class give both in --errors FILE")
    if args.train is not None:
        return fit_errors(load_kernels(args, args.train), kind=args.kind)
    if args.errors is not None:
        return read_errors(args.errors, kind=args.kind)
    if args.spread is not None:
        return given_errors(args.spread, args.bias or 0.0, kind=args.kind)
    return None


def _assumptions(args: argparse.Namespace, kernels: Kernels) -> list[Correlation] | None:
    from errcomp.propagation import correlation

    names = parse_keys(args.assume)
    if args.matrix is not None and "matrix" not in names:
        raise InputError("--matrix is for --assume matrix")
    if not names:
        return None
    found = []
    for text in names:
        name, sign, share = text.partition("=")
        if name == "matrix":
            found.append(correlation(name, matrix=_matrix(args.matrix)))
        elif sign:
            try:
                found.append(correlation(name, float(share)))
            except ValueError as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"--assume {text}: {share!r} is not a number") from None
        else:
            found.append(correlation(name))
    return found


def _matrix(path: Path | None) -> Any:
    import numpy as np

    if path is None:
        raise InputError("--assume matrix needs --matrix FILE: one row per kernel, no header")
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except ValueError as error:
        raise InputError(
            f"{path}: not a table of numbers separated by commas without header ({error})"
        ) from None


def _figures(items: Sequence[str], names: Sequence[str]) -> list[tuple[str, Path]]:
    found = []
    for item in items:
        name, sign, path = item.partition("=")
        if not sign or name not in names or not path:
            raise InputError(
                f"--figure takes {' or '.join(f'{n}=FILE' for n in names)}, got {item}"
            )
        found.append((name, Path(path)))
    return found
