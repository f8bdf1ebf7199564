"""Report of an audit: which claims hold, what the metrics hide, every group and pair."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from errcomp.caveats import CHECKS
from errcomp.claims.verdict import could_hold_as, lacks_aggregation, recomputed_as, spoken
from errcomp.measurements.view.audited import side_notes, side_table
from errcomp.metrics import figure
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import (
    Advice,
    Cell,
    Column,
    Figure,
    Form,
    Note,
    Report,
    Table,
    Tone,
    Verdict,
    caveat_text,
    heading_of,
    key_heading,
    key_text,
    listing,
)
from errcomp.tables.columns import role_of, with_roles

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes

    from errcomp.claims.auditing import Audit, AuditRow
    from errcomp.claims.registry import Claim
    from errcomp.claims.verdict import Verdict as Judged
    from errcomp.results import Caveat, Dropped
    from errcomp.tables import Pairs

__all__ = [
    "INDEPENDENT",
    "audit_view",
    "is_an_error",
    "maybe_note",
    "stayed",
]

#: What the sign † means.
REPORTED = "Claim that the survey attributes to the tool without naming a source"
#: Said where no key could divide the pairs into clusters.
INDEPENDENT = (
    "Every pair counts as independent, because no column shows which pairs have correlated errors."
)
_TONES: Mapping[str, Tone] = {
    "consistent": "plain",
    "overstated": "bad",
    "understated": "doubt",
    "not verifiable": "doubt",
    "no claim": "plain",
}
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
#: Rows that are named beside a method.
_NAMED = 3
#: Metrics in a table of their own.
_OTHERS = ("median_ape", "gmape", "wape", "total_error", "bias", "within_10")


def audit_view(audit: Audit, pairs: Pairs | None = None) -> Report:
    """Return the report of an audit.

    Parameters
    ----------
    audit : Audit
    pairs : Pairs, optional
        The audited pairs; without them the report has no figures of single pairs.

    Returns
    -------
    Report
    """
    notes = []
    if pairs is None and not audit.engine:
        notes.append(
            "To plot individual pairs, make the report from the table instead of this result: "
            "errcomp report TABLE."
        )
    notes += unchecked(audit) + stayed(audit)
    notes += [f"Not used: {not_used(dropped)}." for dropped in audit.dropped]
    if audit.others:
        notes.append(
            f"Other tools in the table, to audit with --tool NAME: {', '.join(audit.others)}."
        )
    return Report(
        title=f"Does the claimed accuracy hold? {subject(audit, 'The given table')}",
        line=_line(audit),
        verdicts=_verdicts(audit),
        advice=_overall_advice(audit),
        tables=[_groups(audit), _other_figures(audit), *side_table(audit.measurements)],
        notes=notes,
        figures=_figures(audit, pairs),
        method=_method(audit),
        draw=partial(_claimed_figure, audit),
    )


def _line(audit: Audit) -> list[str]:
    # Without grouping keys, the only row is all pairs, as in `overall`.
    rows = [*(row for row in audit.rows if row.key), *audit.by_tool]
    words = Counter(row.verdict.shown for row in rows)
    judged = [f"{n} {word}" for word, n in words.items() if word != "no claim"]
    if len(audit.by_tool) != 1:
        n = sum(row.n for row in audit.by_tool)
        return [count(len(audit.by_tool), "tool"), *judged, f"n={n:,}"]
    (row,) = audit.by_tool
    return [f"MAPE {row.figures['mape'].format()}", *judged, f"n={row.n:,}"]


def _groups(audit: Audit) -> Table:
    """Lay out every group. To add a column to the audit, add it here."""
    rows = _rows(audit)
    judged = any(row.verdict.claim is not None for row in rows)
    columns = [
        *_keys(audit),
        *([Column("Claim", lambda row: row.verdict, _CLAIM, marks=_claim_sign)] if judged else []),
        Column(
            f"MAPE [{100 * audit.level:g} %]",
            lambda row: row.figures["mape"],
            forms.estimate,
            marks=interval_sign,
            about=figure("mape").definition,
        ),
        Column(
            "Max APE",
            lambda row: row.figures["max_ape"],
            forms.estimate,
            about=figure("max_ape").definition,
            on="page" if judged else None,  # a terminal has no room for it beside the claim
        ),
        *([Column("Verdict", lambda row: row.verdict, _VERDICT, choice=True)] if judged else []),
    ]
    if any(map(survey_word, rows)):
        columns.append(Column("Survey", survey_word, choice=True, on="page"))
    columns += [
        Column("Caveats", _worst_caveat, on="text"),
        Column("Caveats", lambda row: row, _CAVEATS, on="page"),
    ]
    words = "Claimed and recomputed accuracy" if judged else "Recomputed accuracy"
    title = f"{words}: {subject(audit, 'the given table')}"
    lead = " ".join(f"{claim_line(verdict)}" for verdict in audit.claims if _is_own(verdict))
    return Table(title, columns, rows, _notes(audit, rows), lead=lead)


def _other_figures(audit: Audit) -> Table:
    columns = [*_keys(audit), *map(_other_figure, _OTHERS)]
    return Table("Other metrics of the same pairs", columns, _rows(audit), on="page")


def _other_figure(name: str) -> Column:
    return Column(
        heading_of(figure(name).label),
        lambda row: row.figures[name],
        forms.estimate,
        marks=lambda row: interval_sign(row, name),
        about=figure(name).definition,
    )


def _keys(audit: Audit) -> list[Column]:
    """Return the columns that name a group, and the number of its pairs."""
    several = len({row.tool for row in audit.rows}) > 1
    return [
        *([Column("Tool", lambda row: row.tool, key=True)] if several else []),
        *(_key_column(name) for name in audit.by),
        Column("n", lambda row: row.n, forms.count, key=True),
    ]


def _rows(audit: Audit) -> list[AuditRow]:
    return [*audit.rows, *audit.by_tool] if audit.by else [*audit.by_tool]


def _written_claim(verdict: Judged) -> Cell:
    claim = verdict.claim
    if claim is None or claim.figure is None:
        return Cell("—")
    return forms.printed.write((claim.shown, claim.figure.number))


def _written_verdict(verdict: Judged) -> Cell:
    return Cell(verdict.shown, tone=_tone(verdict))


def _written_caveats(row: AuditRow) -> Cell:
    """Return the number of caveats; below the table, the verdict's reason and the caveats."""
    more = _advice(row.caveats, bool(row.cluster))
    if row.verdict.claim is not None:
        averages = could_hold_as(row.verdict, row.figures)
        also = (
            f" The {spoken(averages)} of the same pairs {'is' if len(averages) == 1 else 'are'} "
            "consistent with the claim."
            if averages
            else ""
        )
        more.insert(0, Advice(_head(row.verdict), f"{row.verdict.reason}{also}"))
    n = len(row.caveats)
    about = f"{n} caveat{'' if n == 1 else 's'}"
    if row.verdict.claim is not None:
        about = f"{row.verdict.shown}, {about}"
    return Cell(str(n), float(n), more=more, about=f"{name_of(row) or 'all'}: {about}")


_CLAIM = Form(_written_claim, right=True)
_VERDICT = Form(_written_verdict)
_CAVEATS = Form(_written_caveats, right=True)


def _key_column(name: str) -> Column:
    return Column(key_heading(name), lambda row: key_text(row.key.get(name, "all")), key=True)


def subject(result: Audit, unnamed: str) -> str:
    """Say what was audited: the table, and the tool if there is only one and it has a name."""
    tools = sorted({row.tool for row in result.rows} - {""})
    named = f", tool {tools[0]}" if len(tools) == 1 else ""
    return f"{result.source or unnamed}{named}"


def _claim_sign(row: AuditRow) -> str:
    """Return the sign of a figure that only the survey attributes to the tool."""
    claim = row.verdict.claim
    return "†" if claim is not None and claim.figure is not None and is_reported(claim) else ""


def is_reported(claim: Claim) -> bool:
    """Say whether the survey attributes the claim to the tool without a source."""
    return claim.claimed_by.startswith("the survey")


def maybe_note(result: Audit, verdicts: Iterable[Judged]) -> str:
    """Say what "maybe" before verdicts means; empty where no verdict has it."""
    if all(verdict.together == verdict.word for verdict in verdicts):
        return ""
    return (
        'A verdict with "maybe" is not significant after correcting for '
        f"{result.judged_together} claims."
    )


def interval_sign(row: AuditRow, name: str = "mape") -> str:
    """Return the sign of an interval that resamples whole clusters."""
    return "‡" if row.cluster and row.figures[name].low is not None else ""


def is_an_error(verdict: Judged) -> bool:
    """Say whether more is worse, as for an error; for a share or a correlation more is better."""
    return verdict.claim is None or verdict.claim.kind in ("error", "measured")


def survey_word(row: AuditRow) -> str:
    """Return the verdict of the survey if it is a single word."""
    words = row.verdict.claim.survey_verdict if row.verdict.claim else ""
    return words if len(words) <= len("Mismatch") else ""


def _worst_caveat(row: AuditRow) -> str:
    """Name the most serious caveat, and count the others: the checks run in this order."""
    codes = list(dict.fromkeys(caveat.code for caveat in row.caveats))
    return f"{codes[0]}{f' +{len(codes) - 1}' if len(codes) > 1 else ''}" if codes else ""


def _caveats_by_code(result: Audit, shown: Sequence[AuditRow]) -> list[Note]:
    """Say what each caveat means and which rows have it."""
    titles = {check.code: check.title for check in CHECKS if check.scope != "tools"}
    rows: dict[str, list[str]] = {}
    for row in shown:
        for code in dict.fromkeys(caveat.code for caveat in row.caveats):
            several = len(result.by_tool) > 1
            name = name_of(row, several) if row.key or several else "all"
            rows.setdefault(code, []).append(name)
    alone = len(shown) == 1
    items = (
        caveat_text(code, titles[code]) + ("" if alone else f" ({_first_few(rows[code])})")
        for code in titles
        if code in rows
    )
    return listing("Caveats, the most serious first:", items, on="text") if rows else []


def _notes(result: Audit, shown: Sequence[AuditRow]) -> list[Note]:
    """Explain the table. Notes that a page shows elsewhere are for text only."""
    notes = _signs(shown)
    notes += map(Note, (*_joint_notes(result), *_undecided_notes(result)))
    notes += _caveats_by_code(result, shown)
    notes += _how_to_ask(result)
    notes += (Note(text, on="text") for text in (*unchecked(result), *stayed(result)))
    for row in result.by_tool:
        if row.caveats:
            head = f"What the MAPE of all {row.n:,} pairs hides{_in_brackets(row.tool)}:"
            notes += listing(head, (caveat.message for caveat in row.caveats), on="text")
    others = [verdict for verdict in result.claims if not _is_own(verdict)]
    if others:
        notes += listing("Other claims:", map(claim_line, others), on="text")
    if result.caveats:
        notes += listing("Comparing these tools:", (c.message for c in result.caveats), on="text")
    notes += side_notes(result.measurements)
    notes += [Note(f"Not used: {not_used(dropped)}", on="text") for dropped in result.dropped]
    if result.others:
        tools = f"Other tools in the table, to audit with --tool NAME: {', '.join(result.others)}"
        notes.append(Note(tools, apart=True, on="text"))
    return notes


def _how_to_ask(result: Audit) -> list[Note]:
    """Say how to print a row's caveats in words."""
    example = next((row for row in result.rows if row.caveats), None)
    if example is None or len(result.rows) < 2:  # the caveats of a single group stand below
        return []
    several = len(result.by_tool) > 1 or result.others
    options = [f"--tool {quote(example.tool)}"] if several else []
    options += [f"--where {quote(f'{k}={v}')}" for k, v in example.key.items()]
    command = f"errcomp audit TABLE {' '.join(options)}"
    return [Note(f"To read a row's caveats in full: {command}", on="text")]


def _signs(shown: Sequence[AuditRow]) -> list[Note]:
    """Explain the signs that occur in the table."""
    notes = []
    if any(row.verdict.claim and is_reported(row.verdict.claim) for row in shown):
        notes.append(Note(REPORTED, "†"))
    if drawn := clusters_drawn(shown):
        notes.append(Note(drawn, "‡"))
    notes += [Note(text, "–") for text in without_interval(shown)]
    overstated = [row.verdict for row in shown if row.verdict.word == "overstated"]
    if any(is_an_error(verdict) for verdict in overstated):
        notes.append(Note("Overstated: the error is larger than claimed."))
    elif overstated:
        notes.append(Note("Overstated: the pairs give a lower value than claimed."))
    return notes


def clusters_drawn(rows: Sequence[AuditRow]) -> str:
    """Say which clusters are the sample of the intervals; nothing if single pairs are."""
    names = sorted({row.cluster.replace(",", " and ") for row in rows if interval_sign(row)})
    if not names:
        return ""
    by = "; by ".join(names)
    return f"Interval in which whole clusters (by {by}) count as independent, not single pairs"


def without_interval(rows: Sequence[AuditRow]) -> list[str]:
    """Say why metrics have no interval, each reason once."""
    reasons = (row.figures["mape"] for row in rows)
    return list(dict.fromkeys(estimate.method for estimate in reasons if estimate.low is None))


def not_used(dropped: Dropped) -> str:
    """Say how many rows were left out, and why."""
    return f"{dropped.n:,} row{'' if dropped.n == 1 else 's'}, {dropped.reason}"


def unchecked(result: Audit) -> list[str]:
    """Say that every pair counts as independent if no key names correlated ones."""
    if result.cluster_keys:
        return []
    return [
        f"{INDEPENDENT} If pairs of one model or device have correlated errors, the intervals are "
        "too narrow: name the column of the model or device with --column device=COLUMN or "
        "--cluster COLUMN."
    ]


def stayed(result: Audit) -> list[str]:
    """Say what an audit of pairs that stayed in an engine could not check."""
    if not result.engine:
        return []
    return [
        f"The pairs stayed in {result.engine}; errcomp read only sums and counts. Medians are "
        "approximate, within 0.5 % of their exact values. These caveats need single pairs and were "
        f"not checked: {', '.join(result.not_looked_for)}."
    ]


def _joint_notes(result: Audit) -> list[str]:
    """Say how many claims are checked, and which verdicts hold for all of them together."""
    verdicts = [*(row.verdict for row in result.rows if row.key), *result.claims]
    if not any(verdict.jointly for verdict in verdicts):
        return []
    note = (
        f"{result.judged_together} claims are checked, each at {100 * result.level:g} % confidence."
    )
    maybe = maybe_note(result, verdicts)
    if not maybe and any(verdict.word in ("overstated", "understated") for verdict in verdicts):
        maybe = "Correcting for the number of claims changes no verdict."
    return [f"{note} {maybe}".rstrip()]


def _undecided_notes(result: Audit) -> list[str]:
    """Say which claims another average would give."""
    notes = []
    undecided = [name_of(row) for row in result.rows if row.key and lacks_aggregation(row.verdict)]
    if undecided:
        notes.append(
            f"{', '.join(undecided)}: not verifiable, because the claim does not say how it was "
            "averaged. Name the average with --aggregation mean (or another)."
        )
    named = dict.fromkeys(
        name_of(row) if row.key else "all"
        for row in [*result.rows, *result.by_tool]
        if could_hold_as(row.verdict, row.figures)
    )
    if named:
        notes.append(
            f"{', '.join(named)}: the claim is compared with the mean, because its source calls "
            "it MAPE. The source does not say how the errors were averaged, and another average "
            "of the same pairs is consistent with the claim."
        )
    for row in result.rows:
        claim, averages = row.verdict.claim, [a for a in row.verdict.agreeing if a != "mean"]
        if claim and averages:
            verb = "matches" if len(averages) == 1 else "match"
            notes.append(
                f"{name_of(row) or 'all'}: the {spoken(averages)} of these pairs {verb} the claim "
                f"of {claim.shown}."
            )
    return notes


def name_of(row: AuditRow, with_tool: bool = False) -> str:
    """Return the name of a group; where groups of several tools are listed, with its tool."""
    tool = [row.tool] if with_tool or not row.key else []
    return " ".join([*tool, *map(key_text, row.key.values())])


def _in_brackets(tool: str) -> str:
    return f" (tool {tool})" if tool else ""


def _is_own(verdict: Judged) -> bool:
    """Say whether the user claims it: that is what the user asks about."""
    return verdict.claim is not None and verdict.claim.claimed_by == "the user"


def claim_line(verdict: Judged) -> str:
    """Say what was claimed, by whom and where, and what the pairs show."""
    return f"{claimed_by(verdict)}: {verdict.shown}. {verdict.reason}"


def claimed_by(verdict: Judged) -> str:
    """Say what was claimed, by whom and where."""
    claim = verdict.claim
    assert claim is not None  # these verdicts are made from claims
    subset = "".join(f", {value}" for value in claim.subset.values())
    source = f" ({claim.source})" if claim.source else ""
    head = f"{claim.tool} {claim.shown}".strip()
    return f"{head}{subset}{source}"


def _verdicts(audit: Audit) -> list[Verdict]:
    verdicts = [Verdict(_head(v), f"— {_claim(v)}", _tone(v)) for v in audit.claims]
    verdicts += [_of_overall(row) for row in audit.by_tool if row.verdict.claim is None]
    judged = [row for row in audit.rows if row.key and row.verdict.claim is not None]
    for word in dict.fromkeys(row.verdict.shown for row in judged):
        rows = [row for row in judged if row.verdict.shown == word]
        first = rows[0].verdict
        verdicts.append(Verdict(_head(first), _of_groups(rows, len(judged)), _tone(first)))
    return verdicts


def _tone(verdict: Judged) -> Tone:
    return _TONES[verdict.word] if verdict.together == verdict.word else "doubt"


def _head(verdict: Judged) -> str:
    return verdict.shown.capitalize()


def _of_overall(row: AuditRow) -> Verdict:
    whose = f" of tool {row.tool}" if row.tool else ""
    return Verdict(
        f"MAPE {row.figures['mape'].format()}",
        f"over all {row.n:,} pair{'' if row.n == 1 else 's'}{whose}. No claim about all these "
        "pairs is known.",
    )


def _claim(verdict: Judged) -> str:
    return f"{claimed_by(verdict)}. {verdict.reason}"


def _of_groups(rows: Sequence[AuditRow], n: int) -> str:
    each = ", ".join(
        f"{name_of(row)} ({claim.shown} claimed, "
        f"{recomputed_as(claim, row.verdict.recomputed or row.figures['mape'])} recomputed, "
        f"n={row.n:,})"
        for row in rows
        if (claim := row.verdict.claim)
    )
    return f"— {len(rows)} of {n} group{'' if n == 1 else 's'} with a claim: {each}."


def _overall_advice(audit: Audit) -> list[Advice]:
    advice = [note for row in audit.by_tool for note in _advice(row.caveats, bool(row.cluster))]
    return list(dict.fromkeys([*advice, *_advice(audit.caveats)]))


def _advice(caveats: Sequence[Caveat], by_cluster: bool = False) -> list[Advice]:
    """Say what to do about caveats, or what was done already."""
    known = {check.code: check for check in CHECKS}
    remedies = {code: check.remedy for code, check in known.items()}
    if by_cluster:
        remedies["clustered"] = (
            "The intervals marked ‡ already treat each cluster as one unit. Quote the number of "
            "clusters beside the number of pairs."
        )
    return [
        Advice(caveat_text(c.code, known[c.code].title), c.message, remedies[c.code])
        if c.code in known
        else Advice(c.code, c.message)
        for c in caveats
    ]


def _method(audit: Audit) -> list[tuple[str, str]]:
    shown = ("mape", "max_ape", *_OTHERS)
    methods: dict[str, dict[str, list[str]]] = {}
    for row in _rows(audit):
        for name in shown:
            # Methods that differ only in their numbers, such as effective sample sizes, are one.
            how = _NUMBERS.sub("…", row.figures[name].method)
            rows = methods.setdefault(how, {}).setdefault(heading_of(figure(name).label), [])
            rows.append(name_of(row) or "all")
    return [
        *((heading_of(figure(name).label), figure(name).definition) for name in shown),
        *(
            (
                f"Interval: {how}",
                "; ".join(f"{label} of {_first_few(rows)}" for label, rows in by.items()),
            )
            for how, by in methods.items()
            if how
        ),
        (
            "Verdicts",
            "A claim is overstated if the whole interval of the recomputed error lies above all "
            "numbers that match the claim when rounded. It is understated if the whole interval "
            "lies below these numbers, and otherwise consistent. A claim is not verifiable if the "
            "pairs cannot decide between these.",
        ),
        ("Coverage of the intervals", f"{100 * audit.level:g} %"),
        (
            "Coverage after correcting for all claims",
            f"{100 * audit.joint_level:.4g} % each, for {audit.judged_together} claim"
            f"{'' if audit.judged_together == 1 else 's'}",
        ),
        ("Seed", str(audit.seed)),
        ("Unit of the pairs", audit.unit or "not stated"),
    ]


def _first_few(names: Sequence[str]) -> str:
    """Name the first rows and count the others."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _figures(audit: Audit, pairs: Pairs | None) -> list[Figure]:
    figures = [
        Figure(
            "claimed",
            "Claimed errors (diamonds) and recomputed errors (points, with intervals).",
            partial(_claimed_figure, audit),
        )
    ]
    side = audit.measurements
    if side is not None and side.tools:
        figures.append(
            Figure(
                "noise",
                "The MAPE of each tool, what would remain of it without the noise of the "
                "measurements (with its interval), and the MAPE of a perfect predictor (dashed).",
                lambda: _drawing_of_measurements().errors_beside_noise(side),
            )
        )
    if pairs is None:
        return figures
    tools = {row.tool for row in audit.rows} - {""}
    own = pairs.of_tool(*tools) if len(tools) == 1 else pairs
    by = tuple(with_roles(("device", "model"), own.keys)) or audit.by
    figures += [
        Figure(
            "predicted",
            "Each point is a pair. Predictions on the line are exact; each band contains the "
            "predictions within the stated error.",
            lambda: _drawing().predicted_against_measured(own),
        ),
        Figure(
            "ecdf",
            "Share of pairs with at most a given error: find the error that you accept on the "
            "horizontal axis.",
            lambda: _drawing().ecdf(own),
        ),
        Figure(
            "size",
            "Does the error depend on the size of the prediction? Pairs count as independent.",
            lambda: _drawing().bland_altman(own),
        ),
    ]
    if by:
        caption = f"The errors of each {by[0]}: each point is one pair."
        figures.append(Figure("groups", caption, lambda: _drawing().by_group(own, by=by[:1])))
    rows = role_of("tool" if len(pairs.tools) > 1 else "device", pairs.keys)
    columns = role_of("model", pairs.keys)
    if rows and columns:
        figures.append(
            Figure(
                "coverage",
                "Which workloads have predictions, and how accurate the predictions are.",
                lambda: _drawing().coverage_map(pairs, rows=rows, columns=columns),
            )
        )
    return figures


def _claimed_figure(audit: Audit, ax: Axes | None = None) -> Axes:
    drawn: Axes = _drawing().claimed(audit, ax=ax)
    return drawn


def _drawing_of_measurements() -> ModuleType:
    from errcomp.measurements.view import figures

    return figures


def _drawing() -> ModuleType:
    """Import the figures of an audit only when they are needed."""
    from errcomp.claims.view import figures

    return figures
