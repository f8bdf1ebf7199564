"""An audit as a table: the groups, then what to know about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, caveat_text, heading_of, key_text, listing

if TYPE_CHECKING:
    from errcomp.claims.auditing import Audit, AuditRow
    from errcomp.claims.registry import Claim
    from errcomp.claims.verdict import Verdict
    from errcomp.results import Dropped

__all__ = [
    "audit_tables",
    "brackets_note",
    "claim_line",
    "claimed",
    "claimed_by",
    "interval_sign",
    "is_an_error",
    "is_reported",
    "name_of",
    "not_used",
    "stayed",
    "subject",
    "survey_word",
    "unchecked",
    "verdict_word",
]

#: What the sign † means.
REPORTED = "Attributed to the tool by the survey, which does not say where it stands"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def audit_tables(result: Audit) -> list[Table]:
    """Lay the audit out for people: the groups, then what to know about them."""
    shown = [*result.rows, *result.overall] if result.by else [*result.overall]
    letters = _caveat_letters(shown)
    several = len({row.tool for row in result.rows}) > 1
    columns = [
        *([Column("Tool", lambda r: r["row"].tool, key=True)] if several else []),
        *(_key_column(name) for name in result.by),
        Column("n", lambda r: r["row"].n, forms.count, key=True),
        Column("Claim", lambda r: claimed(r["row"].verdict) or "—", form=forms.as_written),
        Column(
            f"MAPE [{100 * result.level:g} %]",
            lambda r: r["row"].figures["mape"],
            forms.estimate,
            marks=lambda r: interval_sign(r["row"]),
        ),
        Column("Max APE", lambda r: r["row"].figures["max_ape"], forms.estimate),
        Column("Verdict", lambda r: verdict_word(r["row"].verdict)),
        *(
            [Column("Survey", lambda r: survey_word(r["row"]))]
            if any(map(survey_word, shown))
            else []
        ),
        Column("Caveat", lambda r: "".join(letters[c.code] for c in r["row"].caveats)),
    ]
    title = f"Claimed and recomputed accuracy: {subject(result, 'the table given')}"
    return [Table(title, columns, [{"row": row} for row in shown], _notes(result, shown, letters))]


def _key_column(name: str) -> Column:
    return Column(heading_of(name), lambda r: key_text(r["row"].key.get(name, "all")), key=True)


def subject(result: Audit, unnamed: str) -> str:
    """Say what was audited: the table, and the tool where it is one that has a name."""
    tools = sorted({row.tool for row in result.rows} - {""})
    named = f", tool {tools[0]}" if len(tools) == 1 else ""
    return f"{result.source or unnamed}{named}"


def claimed(verdict: Verdict) -> str:
    """Return the claimed figure with the sign of one that only the survey reports."""
    claim = verdict.claim
    return "" if claim is None else claim.shown + ("†" if is_reported(claim) else "")


def is_reported(claim: Claim) -> bool:
    """Say whether somebody else reports the claim and does not say where it was made."""
    return claim.claimed_by.startswith("the survey")


def verdict_word(verdict: Verdict) -> str:
    """Return the verdict: in brackets where it does not hold for all claims together."""
    return verdict.word if verdict.together == verdict.word else f"({verdict.word})"


def brackets_note(result: Audit, verdicts: Iterable[Verdict]) -> str:
    """Say what brackets around verdicts mean; empty where none of them has any."""
    if all(verdict.together == verdict.word for verdict in verdicts):
        return ""
    return (
        "In brackets: not so at the level that holds for all "
        f"{result.judged_together} claims together."
    )


def interval_sign(row: AuditRow) -> str:
    """Return the sign of an interval that draws whole clusters."""
    return "‡" if row.cluster and row.figures["mape"].low is not None else ""


def is_an_error(verdict: Verdict) -> bool:
    """Say whether more of what was claimed is worse; of a share or a correlation it is better."""
    return verdict.claim is None or verdict.claim.kind in ("error", "measured")


def survey_word(row: AuditRow) -> str:
    """Return the verdict of the survey where it is one word."""
    words = row.verdict.claim.survey_verdict if row.verdict.claim else ""
    return words if len(words) <= len("Mismatch") else ""


def _caveat_letters(rows: Sequence[AuditRow]) -> Mapping[str, str]:
    """Give each caveat a letter, the most frequent first, so that a row stays one line."""
    counts = Counter(caveat.code for row in rows for caveat in row.caveats)
    return {code: _LETTERS[i] for i, (code, _) in enumerate(counts.most_common())}


def _notes(result: Audit, shown: Sequence[AuditRow], letters: Mapping[str, str]) -> list[Note]:
    from errcomp.caveats import CHECKS

    titles = {check.code: check.title for check in CHECKS if check.scope != "tools"}
    notes = [Note(caveat_text(code, titles[code]), letter) for code, letter in letters.items()]
    notes += _signs(result, shown)
    told = [*_together(result), *_about_rows(result), *unchecked(result), *stayed(result)]
    notes += map(Note, told)
    for row in result.overall:
        if row.caveats:
            head = f"What the figure over all {row.n:,} pairs hides{_of(row.tool)}:"
            notes += listing(head, (caveat.message for caveat in row.caveats))
    if result.claims:
        notes += listing("Other claims:", map(claim_line, result.claims))
    if result.caveats:
        notes += listing("Comparing these tools:", (c.message for c in result.caveats))
    notes += [Note(f"Not used: {not_used(d)}") for d in result.dropped]
    if result.others:
        others = f"Also in the table, audited with --tool NAME: {', '.join(result.others)}"
        notes.append(Note(others, apart=True))
    return notes


def _signs(result: Audit, shown: Sequence[AuditRow]) -> list[Note]:
    """Explain the signs in the table that need it, and only those."""
    notes = []
    if any(row.verdict.claim and is_reported(row.verdict.claim) for row in shown):
        notes.append(Note(REPORTED, "†"))
    if drawn := clusters_drawn(shown):
        notes.append(Note(drawn, "‡"))
    notes += [Note(text, "–") for text in without_interval(shown)]
    overstated = [row.verdict for row in shown if row.verdict.word == "overstated"]
    if any(is_an_error(verdict) for verdict in overstated):
        notes.append(Note("Overstated: the accuracy is, so the error is larger than claimed."))
    elif overstated:
        notes.append(Note("Overstated: the pairs give a lower figure than claimed."))
    return notes


def clusters_drawn(rows: Sequence[AuditRow]) -> str:
    """Say which clusters the intervals draw; nothing if they draw single pairs."""
    names = sorted({row.cluster.replace(",", " and ") for row in rows if interval_sign(row)})
    return f"Interval by whole clusters ({'; '.join(names)}), not by single pairs" if names else ""


def without_interval(rows: Sequence[AuditRow]) -> list[str]:
    """Say why figures have no interval, each reason once."""
    reasons = (row.figures["mape"] for row in rows)
    return list(dict.fromkeys(one.method for one in reasons if one.low is None))


def not_used(dropped: Dropped) -> str:
    """Say how many rows were left out, and why."""
    return f"{dropped.n:,} row{'' if dropped.n == 1 else 's'}, {dropped.reason}"


def unchecked(result: Audit) -> list[str]:
    """Say that every pair counts as independent where no key tells which err alike."""
    if result.cluster_keys:
        return []
    return [
        "Every pair counts as independent, as no key says which ones err alike. If pairs of one "
        "model or device do, the intervals are too narrow: name such a column, --column "
        "device=COLUMN or --cluster COLUMN."
    ]


def stayed(result: Audit) -> list[str]:
    """Say what an audit of pairs that stayed in an engine could not look at."""
    if not result.engine:
        return []
    return [
        f"The pairs stayed where they are ({result.engine}), and only sums and counts were read: "
        "medians are within 0.5 % of the exact ones. Not looked for, as it takes single pairs: "
        f"{', '.join(result.not_looked_for)}."
    ]


def _together(result: Audit) -> list[str]:
    """Say how many claims are judged, and which verdicts hold for all of them together."""
    verdicts = [*(row.verdict for row in result.rows if row.key), *result.claims]
    if not any(verdict.jointly for verdict in verdicts):
        return []
    note = f"{result.judged_together} claims are judged, each at {100 * result.level:g} %."
    brackets = brackets_note(result, verdicts)
    if not brackets and any(one.word in ("overstated", "understated") for one in verdicts):
        brackets = "What is over- or understated is so at the level that holds for all of them too."
    return [f"{note} {brackets}".rstrip()]


def _about_rows(result: Audit) -> list[str]:
    """Say which claims another average would print, and how to read a row's caveats."""
    from errcomp.claims.verdict import could_hold_as, lacks_aggregation, spoken

    notes = []
    undecided = [name_of(row) for row in result.rows if row.key and lacks_aggregation(row.verdict)]
    if undecided:
        notes.append(
            f"{', '.join(undecided)}: not verifiable because the claim does not say how it was "
            "averaged. Say which it is with --aggregation mean (or another average)."
        )
    named = dict.fromkeys(
        name_of(row) if row.key else "all"
        for row in [*result.rows, *result.overall]
        if could_hold_as(row.verdict, row.figures)
    )
    if named:
        notes.append(
            f"{', '.join(named)}: judged as means, as the name MAPE says. The source does not say "
            "how it averaged, and as another average of the same pairs the claim could hold."
        )
    for row in result.rows:
        claim, averages = row.verdict.claim, [a for a in row.verdict.agreeing if a != "mean"]
        if claim and averages:
            verb = "prints" if len(averages) == 1 else "print"
            notes.append(
                f"{name_of(row) or 'all'}: the {spoken(averages)} of these pairs {verb} as "
                f"{claim.shown}."
            )
    if any(row.caveats for row in result.rows) and result.by:
        example = next(row for row in result.rows if row.caveats)
        where = " ".join(f"--where {quote(f'{k}={v}')}" for k, v in example.key.items())
        notes.append(f"A row's caveats in words: errcomp audit TABLE {where}")
    return notes


def name_of(row: AuditRow) -> str:
    """Return what a group is called."""
    return " ".join([*([row.tool] if not row.key else []), *map(key_text, row.key.values())])


def _of(tool: str) -> str:
    return f" ({tool})" if tool else ""


def claim_line(verdict: Verdict) -> str:
    """Say what was claimed, by whom and where, and what the pairs say of it."""
    return f"{claimed_by(verdict)}: {verdict_word(verdict)}. {verdict.reason}"


def claimed_by(verdict: Verdict) -> str:
    """Say what was claimed, by whom and where."""
    claim = verdict.claim
    assert claim is not None  # these verdicts are made from claims
    subset = "".join(f", {value}" for value in claim.subset.values())
    source = f" ({claim.source})" if claim.source else ""
    head = f"{claim.tool} {claim.shown}".strip()
    return f"{head}{subset}{source}"
