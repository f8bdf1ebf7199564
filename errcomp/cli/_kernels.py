"""Arguments that say which table of kernels to work on, and what else kernel commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import add_where, no_such_table, select
from errcomp.cli._targets import beside
from errcomp.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from errcomp.tables import Kernels

__all__ = ["add_figures", "add_reading_arguments", "load_kernels", "parse_figures"]

_PICTURES = (".png", ".svg", ".pdf")


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how to read a table of kernels."""
    group = parser.add_argument_group("reading the table")
    group.add_argument("--predicted", metavar="COLUMN", help="column that holds the predictions")
    group.add_argument("--measured", metavar="COLUMN", help="column that holds the measurements")
    group.add_argument("--unit", help="unit of all times, e.g. ms")
    group.add_argument("--tool", metavar="NAME", help="only the kernels that this tool predicted")
    add_where(group)


def load_kernels(args: argparse.Namespace, name: str) -> Kernels:
    """Read the table of kernels that is named: a file, an artifact, or an embedded one."""
    from errcomp import datasets
    from errcomp.readers import kernels as reader

    if not Path(name).exists():
        if name not in datasets.kernel_tables():
            raise no_such_table(name, "table of kernels", datasets.kernel_tables())
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
    return select(found, args.where)


def parse_figures(items: Sequence[str], names: Sequence[str]) -> list[tuple[str, Path]]:
    """Return what is to be drawn, and where to."""
    found = []
    for item in items:
        name, sign, path = item.partition("=")
        if not sign or name not in names or not path:
            raise InputError(
                f"--figure takes {' or '.join(f'{n}=FILE' for n in names)}, got {item!r}. "
                f"{did_you_mean(name, names) if name not in names else ''}".rstrip()
            )
        if Path(path).suffix.lower() not in _PICTURES:
            raise InputError(
                f"--figure {item}: the suffix says how it is written. Known: {', '.join(_PICTURES)}"
            )
        found.append((name, Path(path)))
    return found


def add_figures(
    args: argparse.Namespace, drawn: Iterable[Any], figures: Iterable[tuple[str, Path]]
) -> None:
    """Have what --figure asked for written beside the result."""
    from errcomp.report.figures import save

    for axes, (_, path) in zip(drawn, figures, strict=True):
        beside(args, path, partial(save, axes))
