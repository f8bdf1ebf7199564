"""Join predictions in one file to measurements in another."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.input import add_where, fraction, parse_where
from errcomp.cli.output import add_target_argument, check_targets
from errcomp.cli.parser import Renamed
from errcomp.cli.streams import tell
from errcomp.errors import InputError
from errcomp.report.writing import write_frame

if TYPE_CHECKING:
    import polars as pl

    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "join": (
        "errcomp join predicted.csv measured.csv --on model,layer=layer_id -o joined.csv",
        "errcomp join predicted.csv measured.csv --on model --match order -o joined.csv",
    )
}

_HERTZ = {"ghz": 1e9, "mhz": 1e6, "khz": 1e3, "hz": 1.0}


def build(parser: Parser) -> None:
    """Add ``join``."""
    parser.description = (
        "Join predictions to measurements by keys, by order within keys, or by normalised names. "
        "Unmatched and ambiguous rows are counted; too few matches are an error."
    )
    source = "output of a tool (as for ingest), or a table"
    parser.add_argument("predicted", metavar="PREDICTED", help=f"{source} with predictions")
    parser.add_argument("measured", metavar="MEASURED", help=f"{source} with measurements")
    parser.add_argument(
        "--on",
        required=True,
        metavar="KEY[=OTHER],…",
        help="keys that must agree; write layer=layer_id if the column is named layer_id in "
        "the measurements",
    )
    parser.add_argument(
        "--match",
        choices=("keys", "order", "name"),
        default="keys",
        help="how rows are matched: keys, by equal values (default); order, by equal keys and "
        "then by position; name, by kernel names that are demangled and stripped of "
        "arguments and numbers",
    )
    parser.add_argument("--by", action=Renamed, today="--match", choices=("keys", "order", "name"))
    parser.add_argument(
        "--aliases",
        type=Path,
        metavar="FILE",
        help="with --match name: JSON object that maps kernel names in PREDICTED to names in "
        "MEASURED",
    )
    parser.add_argument(
        "--least",
        type=_share,
        default=0.9,
        metavar="SHARE",
        help="fail if less than this share of the smaller table's rows match (default: 90%%)",
    )
    parser.add_argument(
        "--clock",
        type=_hertz,
        metavar="CLOCK",
        help="clock rate that converts cycles to times, e.g. 1.2GHz",
    )
    parser.add_argument("--level", metavar="NAME", help="only rows of this level")
    parser.add_argument("--quantity", metavar="NAME", help="only rows of this quantity")
    add_where(
        parser,
        "use only the rows with one of these values; a table without the key keeps all its rows; "
        "may be repeated",
    )
    add_target_argument(parser)
    parser.set_defaults(run=run)


def _share(text: str) -> float:
    number = fraction(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} must be above 0 and at most 100 %")
    return number


def _hertz(text: str) -> float:
    plain = text.lower().strip()
    scale = next((value for name, value in _HERTZ.items() if plain.endswith(name)), None)
    if scale is None or not float(plain.rstrip("ghzmk ")) > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a clock rate: write 1.2GHz or 1200MHz")
    return float(plain.rstrip("ghzmk ")) * scale


def run(args: argparse.Namespace) -> None:
    """Join, write, and report the rows without a match."""
    from errcomp.readers.joining import join

    keys: dict[str, str] = {}
    for part in args.on.split(","):
        key, _, other = part.partition("=")
        if not key.strip():
            raise InputError(
                f"--on {args.on}: a key is empty. Separate keys by commas: --on run,kernel."
            )
        keys[key.strip()] = other.strip() or key.strip()
    check_targets(args, [args.predicted, args.measured, args.aliases])
    joined = join(
        predicted=_rows(args, args.predicted, "predicted"),
        measured=_rows(args, args.measured, "measured"),
        on=keys,
        match=args.match,
        least=args.least,
        aliases=_aliases(args.aliases),
        clock_hz=args.clock,
    )
    write_frame(Path(args.output), joined.rows)
    tell("\n".join(joined.lines()))
    print(f"wrote {len(joined.rows)} pairs to {args.output}", file=sys.stderr)


def _rows(args: argparse.Namespace, name: str, value: str) -> pl.DataFrame:
    """Read one side: the output of a tool, or a table that has the column."""
    import polars as pl

    from errcomp.readers.core.ingest import ingest
    from errcomp.readers.core.registry import recognise
    from errcomp.readers.core.source import Source
    from errcomp.readers.plain import NAMES, read_frame

    path = Path(name)
    if path.is_file() and not recognise(Source(path)):
        rows, _ = read_frame(path, {}, NAMES, (value,))
    else:
        rows = ingest(path).rows
    conditions = {key: [text] for key in ("level", "quantity") if (text := getattr(args, key))}
    conditions |= {key: list(values) for key, values in parse_where(args.where).items()}
    for key, values in conditions.items():
        if key in rows.columns:
            rows = rows.filter(pl.col(key).cast(pl.String).is_in(values))
    if rows.is_empty():
        raise InputError(
            f"{name}: no row meets the conditions. Check --level, --quantity and --where."
        )
    return rows


def _aliases(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    from errcomp.readers.core.source import Source

    aliases = Source(path).json()
    if not isinstance(aliases, dict) or not all(isinstance(v, str) for v in aliases.values()):
        raise InputError(
            f"{path}: expected a JSON object that maps predicted names to measured names: "
            '{"predicted": "measured"}.'
        )
    return aliases
