"""``errcomp claims``: what tools say of themselves, and which subset reproduces a figure."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import add_table_arguments, load_table, parse_keys, seed
from errcomp.cli._output import Column, Table, add_output_arguments, emit

if TYPE_CHECKING:
    from errcomp.claims.search import SearchResult
    from errcomp.tables import Pairs

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``claims list|show|search``."""
    parser = commands.add_parser(
        "claims", help="published accuracy claims: list, show, and find what reproduces one"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="every claim known, a line each")
    listing.add_argument("--level", help="only claims of this level, e.g. kernel")
    add_output_arguments(listing)
    listing.set_defaults(run=_list)

    show = actions.add_parser("show", help="all that is known of the claims of one tool")
    show.add_argument("tool")
    add_output_arguments(show)
    show.set_defaults(run=_show)

    search = actions.add_parser(
        "search",
        help="find the subset and aggregation that reproduce a published figure",
        description="Find which subset of the pairs, under which aggregation, reproduces one or "
        "several published figures at once. Several figures must come from the same subset: then "
        "chance matches vanish.",
    )
    add_table_arguments(search)
    search.add_argument(
        "--figure",
        action="append",
        required=True,
        metavar="TOOL=FIGURE",
        help='a published figure as printed, e.g. "neusight=2.3%%"; may be repeated',
    )
    search.add_argument("--keys", metavar="KEYS", help="only subsets over these keys")
    search.add_argument("--top", type=int, default=10, help="matches shown (default: 10)")
    search.add_argument("--seed", type=seed, default=0)
    add_output_arguments(search)
    search.set_defaults(run=_search)


def _list(args: argparse.Namespace) -> None:
    from errcomp.claims.registry import claims

    known = [c for c in claims() if args.level is None or args.level in c.level]
    if not known:
        from errcomp.errors import InputError

        levels = ", ".join(sorted({c.level for c in claims()}))
        raise InputError(f"no claim of level {args.level!r}. Levels: {levels}")
    columns = [
        Column("Tool", lambda r: r["tool"]),
        Column("Figure", lambda r: r["printed"] or "—", right=True),
        Column("Metric", lambda r: r["metric"]),
        Column("Aggregation", lambda r: r["aggregation"]),
        Column("Level", lambda r: r["level"]),
        Column("Against", lambda r: r["reference"]),
        Column("Subset", lambda r: ", ".join(r["subset"].values())),
        Column("Can be checked", lambda r: r["verifiable"]),
    ]
    rows = [c.to_dict() for c in known]
    note = "Figures of different levels or references answer different questions: never rank them."
    table = Table("Published accuracy claims", columns, rows, [note])
    emit(args, {"schema": "errcomp.claims/1", "rows": rows}, [table])


def _show(args: argparse.Namespace) -> None:
    from errcomp.claims.registry import find

    rows = [c.to_dict() for c in find(args.tool)]
    tables = [_claim_table(row) for row in rows]
    emit(args, {"schema": "errcomp.claims/1", "rows": rows}, tables)


def _claim_table(row: Mapping[str, Any]) -> Table:
    shown = {
        "metric": row["metric"],
        "aggregation": row["aggregation"],
        "level": row["level"],
        "against": row["reference"],
        "quantity": row["quantity"],
        "workloads": row["workloads"],
        "subset": ", ".join(f"{k} {v}" for k, v in row["subset"].items()),
        "source": row["source"],
        "said by": row["claimed_by"],
        "can be checked": f"{row['verifiable']}. {row['reason']}",
        "survey's verdict": row["survey_verdict"],
        "note": row["note"],
    }
    rows = [{"name": k, "value": v} for k, v in shown.items() if v]
    columns = [Column("", lambda r: r["name"]), Column("", lambda r: r["value"])]
    return Table(f"{row['tool']}: {row['printed'] or 'no figure'}", columns, rows)


def _search(args: argparse.Namespace) -> None:
    from errcomp.claims.search import search_claim
    from errcomp.cli._progress import progress
    from errcomp.errors import InputError

    pairs = load_table(args)
    figures: dict[str, str] = {}
    for item in args.figure:
        tool, sign, printed = item.partition("=")
        if not sign:
            tool, printed = pairs.subject or "", item
        if tool in figures:
            raise InputError(f"two figures for {tool or 'the table'}: {figures[tool]}, {printed}")
        figures[tool] = printed
    with progress("searching subsets", quiet=args.json) as report:
        result = search_claim(
            pairs,
            figures,
            keys=parse_keys(args.keys) or None,
            top=args.top,
            seed=args.seed,
            progress=report,
        )
    document = {"schema": "errcomp.search/1", "source": pairs.source, **result.to_dict()}
    emit(args, document, [_search_table(result, pairs)])


def _search_table(result: SearchResult, pairs: Pairs) -> Table:
    tools = list(result.figures)
    columns = [
        Column("Subset and rule", lambda r: r["match"].description),
        Column("n", lambda r: str(r["match"].n), right=True),
        *(_figure_column(tool) for tool in tools),
        Column("By chance", lambda r: format_chance(r["match"].expected_by_chance), right=True),
    ]
    published = ", ".join(f"{t} {f.text}".strip() for t, f in result.figures.items())
    notes = [
        result.conclusion,
        "By chance: how many matches as simple as this an unrelated figure would have on average.",
        *_left_out(result, pairs),
    ]
    rows = [{"match": match} for match in result.matches]
    return Table(f"What reproduces {published} in {pairs.source}", columns, rows, notes)


def _left_out(result: SearchResult, pairs: Pairs) -> list[str]:
    """Say which rows the search could not use, and what the best subset is with them."""
    left_out = {tool: n for tool, n in result.searched["left_out"].items() if n}
    if not left_out:
        return []
    rows = ", ".join(f"{n} of {tool}" for tool, n in left_out.items())
    notes = [
        f"Only the {result.searched['configurations']} configurations that all of them have were "
        f"searched; left out: {rows}."
    ]
    for tool in left_out if result.matches else ():
        best = result.matches[0]
        n = pairs.of_tool(tool).where(best.where).n
        if n > best.n:
            notes.append(
                f"In the first subset {tool} has {n} in all, of which {best.n} are shared."
            )
    return notes


def _figure_column(tool: str) -> Column:
    from errcomp.results import format_fraction

    return Column(tool or "Figure", lambda r: format_fraction(r["match"].values[tool]), right=True)


def format_chance(expected: float) -> str:
    """Write an expected count: small ones as a bound a reader can hold on to.

    Examples
    --------
    >>> format_chance(0.00004), format_chance(0.25), format_chance(1234.5)
    ('< 0.001', '0.25', '1234')
    """
    if expected < 0.001:
        return "< 0.001"
    return f"{expected:.2g}" if expected < 100 else f"{expected:.0f}"
