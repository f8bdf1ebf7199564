"""``errcomp metrics drivers``: which factors move the error, and what to think of statements."""

from __future__ import annotations

import argparse

from errcomp.cli._input import load_table
from errcomp.cli._output import emit
from errcomp.cli._progress import progress
from errcomp.cli._targets import check_targets

__all__ = ["run_drivers"]


def run_drivers(args: argparse.Namespace) -> None:
    """Compute, print verdicts first, then contrasts, then the regressions."""
    from errcomp.drivers import error_drivers as error_drivers
    from errcomp.report.sections import section
    from errcomp.report.tables.drivers import drivers_tables

    check_targets(args, [args.table])
    pairs = load_table(args)
    with progress("comparing", quiet=args.json):
        result = error_drivers(pairs, tool=args.tool, level=args.level, seed=args.seed)
    document = {"schema": "errcomp.drivers/1", "source": pairs.source, **result.to_dict()}
    document["rows"] = result.rows()
    emit(
        args,
        document,
        drivers_tables(result),
        section=lambda: section(result),
        inputs=[args.table],
    )
