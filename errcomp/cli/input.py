"""Arguments that name the input and how to read it, and the tables that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar, cast

from errcomp.cli.streams import tell
from errcomp.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from errcomp.tables import History, Kernels, Pairs
    from errcomp.tables.engine.pairs import PairRows
    from errcomp.tables.table import Table

    T = TypeVar("T", bound=Table)

#: Help of --seed where intervals are resampled.
SEED_HELP = "seed of the random resampling for intervals (default: 0)"
#: Number of files in a folder that suggestions of near names consider.
_FILES_LOOKED_AT = 1000


def add_table_arguments(parser: argparse.ArgumentParser, *, at_scale: bool = False) -> None:
    """Add TABLE and how to read it; at scale it may be larger than memory."""
    files = "Parquet files larger than memory, " if at_scale else ""
    parser.add_argument(
        "table",
        nargs="?",
        default="neusight",
        metavar="TABLE",
        help=f"file of pairs (CSV, Excel, Parquet, JSON, JSON lines), folder or quoted pattern of "
        f"such files, {files}output of a tool (see: errcomp readers), - for standard input, or "
        "name of a built-in table (default: neusight)",
    )
    group = parser.add_argument_group("reading the table")
    group.add_argument("--predicted", metavar="COLUMN", help="column that holds the predictions")
    group.add_argument("--measured", metavar="COLUMN", help="column that holds the measurements")
    add_column(group, "device, model, mode, tool, status, …")
    group.add_argument("--unit", help="unit of both columns, e.g. ms")
    group.add_argument(
        "--zeros",
        choices=("raise", "exclude"),
        default="raise",
        help="what to do with measurements that are not positive: raise an error (default), "
        "or exclude and count them",
    )
    group.add_argument(
        "--missing",
        choices=("raise", "exclude"),
        default="raise",
        help="what to do with rows without a prediction or a measurement: raise an error "
        "(default), or exclude and count them",
    )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        default=".",
        help="decimal separator in CSV (default: .); with a comma, fields must be separated by "
        "semicolons or tabs",
    )
    group.add_argument(
        "--exclude",
        type=Path,
        metavar="FILE",
        help="leave out, and count, the rows that FILE marks with exclude = true (without a column "
        "exclude: all its rows). errcomp measurements check -o rows.csv writes such a file",
    )
    add_where(group)


def add_column(parser: argparse._ActionsContainer, names: str) -> None:
    """Add ``--column``."""
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME=COLUMN",
        help=f"read COLUMN of the table as NAME ({names}); may be repeated",
    )


def add_where(
    parser: argparse._ActionsContainer,
    text: str = "use only the rows with one of these values, e.g. device=H100,L4; repeat the "
    "option for each further key",
) -> None:
    """Add ``--where``."""
    parser.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE[,VALUE]", help=text
    )


def add_interval_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for intervals."""
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
        help="how intervals are computed: log-t, bootstrap-t, percentile, bca, wilson, "
        "clopper-pearson or order-statistics (default: the validated method of each metric)",
    )
    parser.add_argument(
        "--cluster",
        metavar="KEYS",
        help="one or two keys that group pairs with correlated errors, e.g. model,device: "
        "intervals then treat each model or device as one unit (default: model and device if "
        "the table has them; `none` treats every pair as independent)",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help=SEED_HELP)


def add_jobs_argument(parser: argparse._ActionsContainer, purpose: str) -> None:
    """Add ``--jobs`` to a command that can run groups, fits or draws in parallel."""
    parser.add_argument(
        "--jobs",
        type=_at_most_one_a_core,
        metavar="N",
        help=f"number of processes that {purpose}, at most one per core (default: 1); the result "
        "does not depend on this number. More than one process needs the extra errcomp[jobs]",
    )


def add_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how to read a table of kernels."""
    group = parser.add_argument_group("reading the table")
    group.add_argument("--predicted", metavar="COLUMN", help="column that holds the predictions")
    group.add_argument("--measured", metavar="COLUMN", help="column that holds the measurements")
    group.add_argument("--unit", help="unit of all times, e.g. ms")
    group.add_argument(
        "--tool", metavar="NAME", help="use only the kernels that this tool predicted"
    )
    add_where(group)


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how to read a table of validations."""
    group = parser.add_argument_group("reading the table")
    add_column(group, "version, measured, predicted, date, released, series, …")
    group.add_argument(
        "--series",
        metavar="KEYS",
        help="columns that together identify a series, e.g. model,shape (default: the column "
        "named series, or else all columns that errcomp uses for nothing else)",
    )
    group.add_argument("--unit", help="unit of all measurements, e.g. ms")
    order = group.add_mutually_exclusive_group()
    order.add_argument(
        "--order",
        metavar="VERSION,VERSION",
        help="versions, oldest first; needed only if release dates, version numbers and dates of "
        "validation do not give their order",
    )
    order.add_argument(
        "--order-by",
        metavar="COLUMNS",
        help="columns of numbers or dates that order the versions, e.g. commit_date,position; or "
        "the word `rows`, for the order in which they first appear in the table. If columns of the "
        "stack are among them, e.g. version,stack_driver, each combination is a separate version",
    )
    order.add_argument(
        "--git-log",
        metavar="FILE",
        help="output of `git log` in the repository whose commits or tags are the versions; - "
        "reads standard input",
    )
    add_where(group)


def order_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return what orders the versions of a history, as arguments of its table."""
    if args.git_log:
        from errcomp.readers import git_log

        # Each table of a command asks for it, and standard input can be read only once.
        if isinstance(args.git_log, str):
            args.git_log = git_log.read(args.git_log)
    return {
        "order": args.git_log or parse_keys(args.order) or None,
        "order_by": parse_keys(args.order_by) or None,
    }


def seed(text: str) -> int:
    """Read a seed: a whole number that is not negative."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed: write a whole number, 0 or more")
    return number


def count(text: str) -> int:
    """Read a count: a whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count: write a whole number above 0")
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a fraction: write 5% or 0.05") from None


def error_share(text: str) -> float:
    """Read a fraction that is seldom above 1: a plain number from 1 on lacks its per cent sign.

    Examples
    --------
    >>> error_share("5%"), error_share("0.05"), error_share("150%")
    (0.05, 0.05, 1.5)
    """
    found = fraction(text)
    if found >= 1 and "%" not in text:
        percent = f"{text.strip()}%"
        raise argparse.ArgumentTypeError(
            f"{text!r} means {100 * found:g} %. Did you mean {percent!r}?"
        )
    return found


def _at_most_one_a_core(text: str) -> int:
    # More processes would take minutes to start, and wait for each other.
    return min(count(text), os.cpu_count() or 1)


def load_table(args: argparse.Namespace) -> Pairs:
    """Read the table that the arguments name; report on stderr what an artifact lacks."""
    pairs = cast("Pairs", _whole_table(args, large=False))
    if getattr(args, "exclude", None) is None:
        return pairs
    from errcomp.measurements.excluding import without_rows

    return without_rows(pairs, args.exclude)


def _whole_table(args: argparse.Namespace, *, large: bool) -> Pairs | PairRows:
    """Read the table, with the rows that --where selects; leave `large` ones to Polars."""
    if args.table == "-":
        from errcomp.cli.stdin import STDIN, standard_input

        with standard_input() as file:
            there = argparse.Namespace(**{**vars(args), "table": str(file)})
            piped = _whole_table(there, large=large)
        piped.source = STDIN
        return piped
    from errcomp.tables.engine.scanning import parquet_files

    columns = _columns_of(args)
    path = Path(args.table)
    if not path.is_file() and (files := parquet_files(path)):
        raise InputError(
            f"{path} holds {len(files):,} Parquet files. This command loads all pairs into memory, "
            "where they may not fit. Name one file; errcomp audit and errcomp metrics can read "
            "all of them."
        )
    if path.exists() or _is_pattern(path):
        return _pairs_in(path, columns, args, large=large)
    from errcomp import datasets

    if args.table not in datasets.names():
        raise no_such_table(args.table, "table", datasets.names())
    how = ("unit", "zeros", "missing", "decimal")
    if columns or any(
        getattr(args, name, None) not in (None, "raise", "keep", ".") for name in how
    ):
        raise InputError(
            f"{args.table} is a built-in table: its columns and unit are known, and all its rows "
            "have values. Leave out --predicted, --measured, --column, --unit, --zeros, --missing "
            "and --decimal."
        )
    command = {"kernels": "propagate", "history": "halflife fit"}.get(
        datasets.info(args.table).holds
    )
    if command:
        raise InputError(
            f"{args.table} is not a table of pairs. Use `errcomp {command} {args.table}`."
        )
    pairs: Pairs = datasets.load(args.table)
    return select(pairs, args.where)


def _is_pattern(path: Path) -> bool:
    from errcomp.readers.several import is_pattern

    return is_pattern(path)


def _pairs_in(
    path: Path, columns: dict[str, str], args: argparse.Namespace, *, large: bool
) -> Pairs | PairRows:
    """Read a file or folder: a table of pairs, or the output of a tool."""
    from errcomp.readers.plain import read_pairs, read_rows
    from errcomp.readers.rows import is_output
    from errcomp.tables import Pairs

    try:
        if not is_output(path, columns):
            read = read_rows if large else read_pairs
            pairs = read(path, columns=columns or None, unit=args.unit, **_of_text(args))
            tell_notes(path)
            if isinstance(pairs, Pairs):
                return select(pairs, args.where)
            return pairs.where(parse_where(args.where)) if args.where else pairs
        from errcomp.readers import read as ingest

        content = ingest(path, columns=columns or None, unit=args.unit, **_of_text(args))
    except InputError as error:
        if path.is_dir() and any(path.glob("*.parquet")):
            hint = f"To read only its Parquet files, quote a pattern: '{path / '*.parquet'}'"
            raise InputError(f"{error} {hint}") from None
        raise
    tell(content.report)
    if args.where and not content.tables:
        # Level and quantity are chosen before the tables become one table of pairs.
        return content.of(**parse_where(args.where)).pairs
    return select(content.pairs, args.where)


def _of_rows(args: argparse.Namespace) -> dict[str, Any]:
    """Return what to do with rows that cannot be used."""
    return {"zeros": args.zeros, "missing": args.missing}


def _of_text(args: argparse.Namespace) -> dict[str, Any]:
    """Return how to read text, and what to do with rows that cannot be used."""
    # A page of several tables has no option for it.
    return {**_of_rows(args), "decimal": getattr(args, "decimal", ".")}


def load_pairs(args: argparse.Namespace, *, single: bool) -> Pairs | PairRows:
    """Read the table that the arguments name; leave its rows on disk, or to Polars, if large.

    Where the options need `single` pairs, those of text stay in memory.
    """
    excludes = getattr(args, "exclude", None) is not None
    whole = single or excludes
    if args.table.lower().endswith(".csv"):  # only Parquet is read in place
        return load_table(args) if whole else _whole_table(args, large=True)
    from errcomp.tables.engine.scanning import is_large, scan

    if not is_large(args.table):
        return load_table(args) if whole else _whole_table(args, large=True)
    columns = _columns_of(args) or None
    if excludes:
        raise InputError(
            f"--exclude applies only to tables in memory, but {args.table} is read in place. Leave "
            "out --exclude, or filter the table before"
        )
    rows = scan(args.table, columns=columns, unit=args.unit, **_of_rows(args))
    return rows.where(parse_where(args.where)) if args.where else rows


def pairs_at_hand(pairs: Pairs | PairRows) -> list[Pairs]:
    """Return the pairs for figures that draw each pair; none if they are read in place."""
    from errcomp.tables import Pairs

    return [pairs] if isinstance(pairs, Pairs) else []


def load_kernels(args: argparse.Namespace, name: str, *, whole_runs: bool = False) -> Kernels:
    """Read the table of kernels that is named: a file, an artifact, or a built-in one.

    With `whole_runs`, a file without kernels is read as runs that were predicted as a whole.
    """
    from errcomp import datasets
    from errcomp.readers import kernels as reader

    if not Path(name).exists():
        if name not in datasets.kernel_tables():
            raise no_such_table(name, "table of kernels", datasets.kernel_tables())
        given = [n for n in ("predicted", "measured", "unit", "tool") if getattr(args, n)]
        if given:
            raise InputError(
                f"{name} is a built-in table: its columns, unit and tool are known, so leave out "
                f"--{', --'.join(given)}"
            )
        kernels: Kernels = datasets.load(name)
    else:
        columns = {
            key: given
            for key, given in (("predicted", args.predicted), ("measured", args.measured))
            if given
        }
        from errcomp.readers.rows import is_output

        if whole_runs and is_output(name, columns or None) and not reader.is_artifact(name):
            return _kernels_or_runs(name, args)
        kernels = reader.read(
            name,
            columns=columns or None,
            unit=args.unit,
            tool=args.tool,
            whole_runs=whole_runs,
        )
        tell_notes(name)
    return select(kernels, args.where)


def _kernels_or_runs(name: str, args: argparse.Namespace) -> Kernels:
    """Read the output of a tool: its kernels, or else the runs that it predicts as a whole."""
    from errcomp.readers.core.ingest import ingest

    if args.unit:
        raise InputError(f"{name} is the output of a tool, so its unit is known. Leave out --unit.")
    content = ingest(name)
    if content.tables or (content.rows["level"] == "kernel").any():
        kernels = content.kernels.of_tool(args.tool)
        tell_notes(name)
        return select(kernels, args.where)
    # Level and quantity are chosen before the rows become one table, whose runs then have names.
    where = parse_where(args.where)
    runs = where.pop("run", None)
    found = content.of(**where).predicted_runs.of_tool(args.tool)
    return found if runs is None else found.where({"run": runs})


def read_history(args: argparse.Namespace, name: str) -> History:
    """Read the table of validations that is named."""
    from errcomp.readers import history as reader
    from errcomp.readers.rows import is_output

    columns = parse_columns(args.column)
    if is_output(name, columns):
        from errcomp.readers.core.ingest import ingest

        where = parse_where(args.where)
        output = ingest(name)
        chosen = output.of(**where) if where else output
        return chosen.history_of(**order_of(args), series=parse_keys(args.series) or None)
    history = reader.read(
        name,
        columns=columns,
        series=parse_keys(args.series) or None,
        **order_of(args),
        unit=args.unit,
    )
    tell_notes(name)
    return select(history, args.where)


def tell_notes(name: str | Path) -> None:
    """Print a note if a table, which was read just now, may have been cut off."""
    if Path(name).is_file():
        from errcomp.readers.core.content import notes_on

        notes = notes_on(Path(name))
    else:
        from errcomp.readers.several import notes_on_table

        notes = notes_on_table(name)
    for note in notes:
        tell(f"note: {note}")


def _columns_of(args: argparse.Namespace) -> dict[str, str]:
    """Return name → column of the table, from --column and from --predicted and the like."""
    # A page of several tables has no options for columns.
    columns = parse_columns(getattr(args, "column", []))
    for name, given in (("predicted", args.predicted), ("measured", args.measured)):
        if given and columns.setdefault(name, given) != given:
            raise InputError(
                f"--{name} {given} and --column {name}={columns[name]} contradict each other: "
                "leave one out"
            )
    return columns


def no_such_table(name: str, kind: str, embedded: Sequence[str]) -> InputError:
    """Return the error for a name of neither a file nor a built-in table of this kind."""
    from errcomp.readers.core.source import is_url, url_refused

    if is_url(name):
        return url_refused(name)
    folder = Path(name).parent
    try:
        files = [str(folder / entry.name) for entry in islice(folder.iterdir(), _FILES_LOOKED_AT)]
    except OSError:
        files = []
    return InputError(
        f"{name}: no such file, and no built-in {kind} of that name. "
        f"{did_you_mean(name, [*embedded, *files])}Built-in: {', '.join(embedded)}"
    )


def parse_columns(items: list[str]) -> dict[str, str]:
    """Turn ``["device=gpu"]`` into name → column of the table.

    Examples
    --------
    >>> parse_columns(["device=gpu", "model=network"])
    {'device': 'gpu', 'model': 'network'}
    """
    columns: dict[str, str] = {}
    for item in items:
        name, sign, column = item.partition("=")
        if not sign or not name or not column:
            raise InputError(f"--column takes NAME=COLUMN, got {item!r}")
        if name in columns:
            raise InputError(f"--column names {name} twice: {columns[name]!r} and {column!r}")
        columns[name] = column
    return columns


def select(table: T, items: list[str]) -> T:
    """Keep the rows that --where selects; explain a failed --where that names several keys.

    A value may contain commas and equals signs, so only the table can show what was meant.
    """
    if not items:
        return table
    where = parse_where(items)
    try:
        return table.where(where)
    except InputError as error:
        for item in items:
            split = _one_key_each(item, table)
            if len(split) > 1:
                example = " ".join(f"--where {quote(condition)}" for condition in split)
                raise InputError(f"{error}. Write one --where per key: {example}") from None
        raise


def _one_key_each(item: str, table: Table) -> list[str]:
    """Split ``device=H100,L4,mode=training`` where the next key begins."""
    first = item.partition("=")[0]
    values = set(map(str, table.column(first))) if first in table.keys else set()
    split: list[str] = []
    for part in item.split(","):
        key, sign, _ = part.strip().partition("=")
        if not split or (sign and key in table.keys and part not in values):
            split.append(part.strip())
        else:
            split[-1] += f",{part}"
    return split


def parse_where(items: list[str]) -> dict[str, list[str]]:
    """Turn ``["device=H100,L4", "mode=inference"]`` into key → values.

    Examples
    --------
    >>> parse_where(["device=H100,L4", "mode=inference"])
    {'device': ['H100', 'L4'], 'mode': ['inference']}
    """
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
    keys = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    twice = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if twice:
        raise InputError(f"{text!r} names {', '.join(twice)} more than once")
    return keys
