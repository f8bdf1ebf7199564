"""Arguments that say which table to work on, shared by several commands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from errcomp.tables import Pairs

__all__ = [
    "add_table_arguments",
    "add_where",
    "fraction",
    "load_table",
    "parse_keys",
    "parse_where",
    "seed",
]


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add TABLE and how to read it."""
    parser.add_argument(
        "table",
        nargs="?",
        default="neusight",
        metavar="TABLE",
        help="file of pairs (CSV, Parquet, JSON, JSON lines), folder of an artifact, or name of an "
        "embedded table (default: neusight)",
    )
    group = parser.add_argument_group("reading the table")
    group.add_argument("--predicted", metavar="COLUMN", help="column that holds the predictions")
    group.add_argument("--measured", metavar="COLUMN", help="column that holds the measurements")
    group.add_argument("--unit", help="unit of both columns, e.g. ms")
    group.add_argument(
        "--zeros",
        choices=("raise", "exclude"),
        default="raise",
        help="measurements that are not positive: raise (default) or exclude and count them",
    )
    add_where(group)


def add_where(
    parser: argparse._ActionsContainer, text: str = "only these rows; may be repeated"
) -> None:
    """Add which rows to take."""
    parser.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE[,VALUE]", help=text
    )


def seed(text: str) -> int:
    """Read a seed: a whole number that is not negative."""
    number = int(text)
    if not 0 <= number < 2**63:
        raise ValueError
    return number


def fraction(text: str) -> float:
    """Read a fraction, in per cent or plain.

    Examples
    --------
    >>> fraction("10%"), fraction("0.1")
    (0.1, 0.1)
    """
    plain = text.strip()
    try:
        return float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no fraction: write 5% or 0.05") from None


def load_table(args: argparse.Namespace) -> Pairs:
    """Read the table that the arguments name; what an artifact lacks is said on stderr."""
    from errcomp import datasets, readers
    from errcomp.errors import InputError
    from errcomp.readers.output import Output
    from errcomp.tables import Pairs

    columns = {
        name: given
        for name, given in (("predicted", args.predicted), ("measured", args.measured))
        if given
    }
    path = Path(args.table)
    if path.exists():
        options = {"columns": columns or None, "unit": args.unit, "zeros": args.zeros}
        output = getattr(args, "output", None)
        if output is not None and output.exists() and output.samefile(path):
            raise InputError(
                f"{path}: -o would overwrite the table that is read; name another file"
            )
        found = readers.read(path, **options)
        if isinstance(found, Pairs):
            pairs = found
        else:
            print(found.report, file=sys.stderr)
            if isinstance(found, Output) and args.where:
                # Which level or quantity is chosen before there is one table of pairs.
                return found.of(**parse_where(args.where)).pairs
            pairs = found.pairs
    elif args.table in datasets.names():
        if columns or args.unit:
            raise InputError(
                f"{args.table} is an embedded table: its columns and unit are known, "
                "leave out --predicted, --measured and --unit"
            )
        pairs = datasets.load(args.table)
    else:
        raise InputError(
            f"{args.table}: no such file, and no embedded table of that name. "
            f"Embedded tables: {', '.join(datasets.names())}"
        )
    return pairs.where(parse_where(args.where)) if args.where else pairs


def parse_where(items: list[str]) -> dict[str, list[str]]:
    """Turn ``["device=H100,L4", "mode=inference"]`` into key → values.

    Examples
    --------
    >>> parse_where(["device=H100,L4", "mode=inference"])
    {'device': ['H100', 'L4'], 'mode': ['inference']}
    """
    from errcomp.errors import InputError

    where: dict[str, list[str]] = {}
    for item in items:
        key, sign, values = item.partition("=")
        if not sign or not key or not values:
            raise InputError(f"--where takes KEY=VALUE[,VALUE], got {item!r}")
        where.setdefault(key, []).extend(values.split(","))
    return where


def parse_keys(text: str | None) -> tuple[str, ...]:
    """Turn ``"device,mode"`` into its keys.

    Examples
    --------
    >>> parse_keys("device, mode"), parse_keys(None)
    (('device', 'mode'), ())
    """
    from errcomp.errors import InputError

    keys = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    twice = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if twice:
        raise InputError(f"{', '.join(twice)} is named twice in {text!r}")
    return keys
