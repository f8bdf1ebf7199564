"""``errcomp audit``: is the claimed accuracy true, for what, and what does the figure hide?"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import add_table_arguments, fraction, load_table, parse_keys, seed
from errcomp.cli._output import Column, Table, add_output_arguments, emit
from errcomp.cli._progress import progress

if TYPE_CHECKING:
    from errcomp.claims.auditing import Audit, AuditRow
    from errcomp.claims.registry import Claim
    from errcomp.claims.verdict import Verdict

__all__ = ["add_parser"]

_VERDICTS = ("overstated", "understated", "not verifiable")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``audit``."""
    parser = commands.add_parser(
        "audit",
        help="claimed against recomputed accuracy, with intervals, verdicts and caveats",
        description="Compare what a tool claims of itself with what its pairs of prediction and "
        "measurement say.",
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--by",
        metavar="KEYS",
        help="keys to group by (default: device,mode as far as the table has them)",
    )
    parser.add_argument("--tool", help="only this tool; `all` for every tool in the table")
    parser.add_argument(
        "--claim",
        metavar="FIGURE",
        help='a figure to judge instead of the known ones, e.g. "2.3%%"',
    )
    parser.add_argument(
        "--aggregation",
        choices=("mean", "median", "geometric mean", "weighted", "total"),
        help="of --claim, where its source states it (total: of a sum, or of a difference of "
        "means)",
    )
    parser.add_argument(
        "--metric",
        choices=("error", "correlation", "share within 10%"),
        help="what sort of figure --claim is (default: error)",
    )
    parser.add_argument("--level", type=fraction, default=0.95, help="coverage (default: 95%%)")
    parser.add_argument("--method", default="default", help="how intervals are made")
    parser.add_argument("--cluster", metavar="KEYS", help="resample whole clusters of these keys")
    parser.add_argument("--seed", type=seed, default=0)
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="VERDICT",
        choices=_VERDICTS,
        help="exit with 1 when a verdict is this; may be repeated",
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Audit, print, and fail if a verdict asked for was found."""
    from errcomp.claims.auditing import audit
    from errcomp.claims.registry import user_claim
    from errcomp.errors import InputError

    if args.aggregation is not None and args.claim is None:
        raise InputError("--aggregation says how --claim was averaged: give the claim as well")
    if args.metric is not None and args.claim is None:
        raise InputError("--metric says what sort of figure --claim is: give the claim as well")
    pairs = load_table(args)
    claims: list[Claim] | None = None
    if args.claim is not None:
        claims = [
            user_claim(args.claim, aggregation=args.aggregation, metric=args.metric or "error")
        ]
    with progress("auditing", quiet=args.json):
        result = audit(
            pairs,
            by=None if args.by is None else parse_keys(args.by),
            tool=args.tool,
            claims=claims,
            level=args.level,
            method=args.method,
            cluster=parse_keys(args.cluster) or None,
            seed=args.seed,
        )
    found = {row.verdict.word for row in result.rows} | {v.word for v in result.claims}
    args.exit_code = 1 if found & set(args.fail_on) else 0
    emit(args, {"schema": "errcomp.audit/1", **result.to_dict()}, audit_tables(result))


def audit_tables(result: Audit) -> list[Table]:
    """Lay the audit out for people: the groups, then what to know about them."""
    shown = [*result.rows, *result.overall] if result.by else [*result.overall]
    letters = _caveat_letters(shown)
    several = len({row.tool for row in result.rows}) > 1
    columns = [
        *([Column("Tool", lambda r: r["row"].tool, key=True)] if several else []),
        *(_key_column(name) for name in result.by),
        Column("n", lambda r: str(r["row"].n), right=True, key=True),
        Column("Claimed", lambda r: _claimed(r["row"].verdict), right=True),
        Column(
            f"MAPE [{100 * result.level:g} %]",
            lambda r: r["row"].figures["mape"].format() + ("‡" if r["row"].cluster else ""),
            right=True,
        ),
        Column("Max APE", lambda r: r["row"].figures["max_ape"].format(), right=True),
        Column("Verdict", lambda r: _word(r["row"])),
        *([Column("Survey", lambda r: _survey(r["row"]))] if any(map(_survey, shown)) else []),
        Column("Caveats", lambda r: "".join(letters[c.code] for c in r["row"].caveats)),
    ]
    title = f"Claimed and recomputed accuracy: {result.source or 'the table given'}"
    tools = sorted({row.tool for row in result.rows} - {""})
    if len(tools) == 1:
        title += f", {tools[0]}"
    return [Table(title, columns, [{"row": row} for row in shown], _notes(result, shown, letters))]


def _key_column(name: str) -> Column:
    return Column(name.capitalize(), lambda r: str(r["row"].key.get(name, "all")), key=True)


def _claimed(verdict: Verdict) -> str:
    claim = verdict.claim
    if claim is None:
        return "—"
    return claim.printed.replace("%", " %") + ("†" if _reported(claim) else "")


def _reported(claim: Claim) -> bool:
    """Say whether somebody else reports the claim and does not say where it was made."""
    return claim.claimed_by.startswith("the survey")


def _word(row: AuditRow) -> str:
    decided = row.verdict.word in ("overstated", "understated")
    return row.verdict.word + ("*" if decided and not row.independent else "")


def _survey(row: AuditRow) -> str:
    words = row.verdict.claim.survey_verdict if row.verdict.claim else ""
    return words if len(words) <= len("Mismatch") else ""


def _caveat_letters(rows: Sequence[AuditRow]) -> Mapping[str, str]:
    """Give each caveat a letter, the most frequent first, so that a row stays one line."""
    counts = Counter(caveat.code for row in rows for caveat in row.caveats)
    return {code: _LETTERS[i] for i, (code, _) in enumerate(counts.most_common())}


def _notes(result: Audit, shown: Sequence[AuditRow], letters: Mapping[str, str]) -> list[str]:
    from errcomp.caveats import CHECKS

    titles = {check.code: check.title for check in CHECKS if check.scope != "tools"}
    notes = [f" {letter}  {titles[code]}" for code, letter in letters.items()]
    notes += _signs(result, shown)
    notes += _about_rows(result)
    for row in result.overall:
        if row.caveats:
            notes += ["", f"What the figure over all {row.n} pairs hides{_of(row.tool)}:"]
            notes += [f" · {caveat.message}" for caveat in row.caveats]
    if result.claims:
        notes += ["", "Other claims:", *(f" · {_claim_line(v)}" for v in result.claims)]
    if result.caveats:
        notes += ["", "Comparing these tools:", *(f" · {c.message}" for c in result.caveats)]
    notes += [f"Not used: {d.n} rows, {d.reason}" for d in result.dropped]
    if result.others:
        notes += ["", f"Also in the table, audited with --tool NAME: {', '.join(result.others)}"]
    return notes


def _signs(result: Audit, shown: Sequence[AuditRow]) -> list[str]:
    """Explain the signs in the table that need it, and only those."""
    notes = []
    if any(row.verdict.claim and _reported(row.verdict.claim) for row in shown):
        notes.append(" †  Attributed to the tool by the survey, which does not say where it stands")
    if any(_word(row).endswith("*") for row in shown):
        notes.append(" *  If the pairs were independent, which they are not (see the caveats)")
    clusters = sorted({row.cluster for row in shown} - {""})
    if clusters:
        notes.append(
            f" ‡  Interval by whole clusters ({' or '.join(clusters)}), not by single pairs"
        )
    if any(row.verdict.word == "overstated" for row in shown):
        notes.append("Overstated: the accuracy is, so the error is larger than claimed.")
    return notes


def _about_rows(result: Audit) -> list[str]:
    """Say what follows for the rows together, and which claims another average would print."""
    from errcomp.claims.verdict import spoken

    notes = []
    judged = [row for row in result.rows if row.verdict.jointly]
    if judged:
        kept = [_name(row) for row in judged if row.verdict.jointly == "overstated"]
        notes.append(
            f"{len(judged)} claims are judged, each at {100 * result.level:g} %. At the level that "
            f"holds for all of them together, overstated: {', '.join(kept) or 'none'}."
        )
    for row in result.rows:
        claim, averages = row.verdict.claim, [a for a in row.verdict.agreeing if a != "mean"]
        if claim and averages:
            notes.append(
                f"{_name(row)}: the {spoken(averages)} of these pairs prints as {claim.printed}."
            )
    if any(row.caveats for row in result.rows) and result.by:
        example = next(row for row in result.rows if row.caveats)
        where = " ".join(f"--where {k}={v}" for k, v in example.key.items())
        notes.append(f"A row's caveats in words: errcomp audit TABLE {where}")
    return notes


def _name(row: AuditRow) -> str:
    return " ".join([*([row.tool] if not row.key else []), *map(str, row.key.values())])


def _of(tool: str) -> str:
    return f" ({tool})" if tool else ""


def _claim_line(verdict: Verdict) -> str:
    claim = verdict.claim
    assert claim is not None  # these verdicts are made from claims
    subset = "".join(f", {value}" for value in claim.subset.values())
    source = f" ({claim.source})" if claim.source else ""
    head = f"{claim.tool} {claim.printed}".strip()
    return f"{head}{subset}{source}: {verdict.word}. {verdict.reason}"
