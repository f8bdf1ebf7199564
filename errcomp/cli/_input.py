"""Arguments that say which table to work on, shared by several commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from errcomp.errors import InputError
    from errcomp.tables import Pairs

__all__ = [
    "SEED_HELP",
    "add_interval_arguments",
    "add_table_arguments",
    "add_where",
    "count",
    "fraction",
    "load_table",
    "no_such_table",
    "parse_keys",
    "parse_where",
    "seed",
]


#: Of --seed, which draws intervals.
SEED_HELP = "of the draws that make intervals (default: 0)"
#: Of a folder with more files the nearest name is sought among these.
_FILES_LOOKED_AT = 1000


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
    parser: argparse._ActionsContainer,
    text: str = "only rows with one of these values, e.g. device=H100,L4; may be repeated",
) -> None:
    """Add which rows to take."""
    parser.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE[,VALUE]", help=text
    )


def add_interval_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how intervals are made."""
    parser.add_argument(
        "--level",
        type=fraction,
        default=0.95,
        metavar="SHARE",
        help="coverage of the intervals (default: 95%%)",
    )
    parser.add_argument(
        "--method",
        default="default",
        metavar="NAME",
        help="how intervals are made: log-t, bootstrap-t, percentile, bca, wilson, "
        "clopper-pearson or order-statistics (default: what was shown to hold for each figure)",
    )
    parser.add_argument(
        "--cluster",
        metavar="KEYS",
        help="keys of which rows with equal values err together, e.g. model: intervals then "
        "resample whole groups of them (default: none)",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help=SEED_HELP)


def seed(text: str) -> int:
    """Read a seed: a whole number that is not negative."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: write a whole number, 0 or more")
    return number


def count(text: str) -> int:
    """Read how many: a whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count: write a whole number above 0")
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
        raise no_such_table(args.table, "table", datasets.names())
    return pairs.where(parse_where(args.where)) if args.where else pairs


def no_such_table(name: str, kind: str, embedded: Sequence[str]) -> InputError:
    """Return the refusal of what is neither a file nor an embedded table of this kind."""
    from errcomp.errors import InputError, did_you_mean

    folder = Path(name).parent
    try:
        files = [str(folder / one.name) for one in islice(folder.iterdir(), _FILES_LOOKED_AT)]
    except OSError:
        files = []
    return InputError(
        f"{name}: no such file, and no embedded {kind} of that name. "
        f"{did_you_mean(name, [*embedded, *files])}Embedded: {', '.join(embedded)}"
    )


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
