"""A section about an audit: which claims hold, what the figures hide, every group, every pair."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from errcomp.claims.verdict import could_hold_as, spoken
from errcomp.report.model import Note, caveat_text, heading_of, key_text
from errcomp.report.page import Advice, Cell, Grid, Head, Section, Verdict
from errcomp.report.page._parts import Tone
from errcomp.report.sections._common import Drawing, pictures
from errcomp.report.tables.audit import (
    REPORTED,
    brackets_note,
    claimed,
    claimed_by,
    clusters_drawn,
    interval_sign,
    is_reported,
    name_of,
    not_used,
    stayed,
    subject,
    survey_word,
    unchecked,
    verdict_word,
)

if TYPE_CHECKING:
    from errcomp.claims.auditing import Audit, AuditRow
    from errcomp.claims.verdict import Verdict as Judged
    from errcomp.results import Caveat
    from errcomp.tables import Pairs

__all__ = ["audit_section"]

_TONES: dict[str, Tone] = {
    "consistent": "plain",
    "overstated": "bad",
    "understated": "doubt",
    "not verifiable": "doubt",
    "no claim": "plain",
}
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_ALONE = " if judged alone, not so if judged together"
#: Rows that are named where a method is told.
_NAMED = 3
#: Figures in a table of their own.
_OTHERS = ("median_ape", "gmape", "wape", "total_error", "bias", "within_10")


def audit_section(audit: Audit, pairs: Pairs | None = None) -> Section:
    """Return the section of an audit.

    Parameters
    ----------
    audit : Audit
    pairs : Pairs, optional
        Those that were audited; without them the figures of single pairs are left out.

    Returns
    -------
    Section
    """
    drawn, notes = pictures(_drawings(audit, pairs))
    if pairs is None and not audit.engine:
        notes.append("Figures of single pairs need the table itself: errcomp report TABLE.")
    notes += unchecked(audit) + stayed(audit)
    notes += [f"Not used: {not_used(one)}." for one in audit.dropped]
    if audit.others:
        notes.append(f"Also in the table, audited with --tool NAME: {', '.join(audit.others)}.")
    return Section(
        title=f"Is the claimed accuracy true? {subject(audit, 'The table given')}",
        verdicts=_verdicts(audit),
        advice=_overall_advice(audit),
        pictures=drawn,
        grids=[_groups(audit), _others(audit)],
        method=_method(audit),
        notes=notes,
    )


def _verdicts(audit: Audit) -> list[Verdict]:
    found = [Verdict(_spoken(one), f"— {_claim(one)}", _tone(one)) for one in audit.claims]
    found += [_of_overall(row) for row in audit.overall if row.verdict.claim is None]
    found += [
        _of_overall(row)
        for row in audit.overall
        if row.verdict.claim is not None and row.verdict.claim not in _claims(audit.claims)
    ]
    judged = [row for row in audit.rows if row.key and row.verdict.claim is not None]
    for word in dict.fromkeys(verdict_word(row.verdict) for row in judged):
        rows = [row for row in judged if verdict_word(row.verdict) == word]
        one = rows[0].verdict
        found.append(Verdict(_spoken(one), _of_groups(rows, len(judged)), _tone(one)))
    return found


def _tone(verdict: Judged) -> Tone:
    return _TONES[verdict.word] if verdict.together == verdict.word else "doubt"


def _spoken(verdict: Judged) -> str:
    alone = "" if verdict.together == verdict.word else _ALONE
    return f"{verdict.word.capitalize()}{alone}"


def _claims(verdicts: Sequence[Judged]) -> list[object]:
    return [one.claim for one in verdicts]


def _of_overall(row: AuditRow) -> Verdict:
    if row.verdict.claim is not None:
        return Verdict(_spoken(row.verdict), f"— {_claim(row.verdict)}", _tone(row.verdict))
    whose = f" of {row.tool}" if row.tool else ""
    return Verdict(
        f"MAPE {row.figures['mape'].format()}",
        f"over all {row.n:,} pair{'' if row.n == 1 else 's'}{whose}; no claim about all of them "
        "is known.",
    )


def _claim(verdict: Judged) -> str:
    return f"{claimed_by(verdict)}. {verdict.reason}"


def _of_groups(rows: Sequence[AuditRow], n: int) -> str:
    each = ", ".join(
        f"{name_of(row)} ({row.verdict.claim.shown if row.verdict.claim else ''} claimed, "
        f"{row.figures['mape'].format()} found, n={row.n:,})"
        for row in rows
    )
    return f"— {len(rows)} of {n} group{'' if n == 1 else 's'} with a claim: {each}."


def _overall_advice(audit: Audit) -> list[Advice]:
    found = [one for row in audit.overall for one in _advice(row.caveats, bool(row.cluster))]
    return list(dict.fromkeys([*found, *_advice(audit.caveats)]))


def _advice(caveats: Sequence[Caveat], by_cluster: bool = False) -> list[Advice]:
    """Say what to do about caveats; what was done already is said instead."""
    from errcomp.caveats import CHECKS

    known = {check.code: check for check in CHECKS}
    remedies = {code: check.remedy for code, check in known.items()}
    if by_cluster:
        remedies["clustered"] = (
            "Done here: the intervals marked ‡ draw whole clusters. Quote the number of clusters "
            "beside that of the pairs."
        )
    return [
        Advice(caveat_text(one.code, known[one.code].title), one.message, remedies[one.code])
        if one.code in known
        else Advice(one.code, one.message)
        for one in caveats
    ]


def _groups(audit: Audit) -> Grid:
    from errcomp.metrics import figure

    rows = _rows(audit)
    survey = any(map(survey_word, rows))
    heads = [
        *_key_heads(audit),
        Head("n", right=True),
        Head("Claimed", right=True),
        Head(f"MAPE [{100 * audit.level:g} %]", right=True, about=figure("mape").definition),
        Head(heading_of(figure("max_ape").label), right=True, about=figure("max_ape").definition),
        Head("Verdict", choice=True),
        *([Head("Survey", choice=True)] if survey else []),
        Head("Caveats", right=True),
    ]
    cells = [
        [
            *_key_cells(audit, row),
            Cell(str(row.n), float(row.n)),
            _claimed(row),
            _figure(row, "mape"),
            _figure(row, "max_ape"),
            Cell(verdict_word(row.verdict), tone=_tone(row.verdict)),
            *([Cell(survey_word(row))] if survey else []),
            _caveats(row),
        ]
        for row in rows
    ]
    brackets = brackets_note(audit, (row.verdict for row in rows))
    notes = [*_signs(rows), *([Note(brackets)] if brackets else [])]
    title = f"Groups by {' and '.join(audit.by)}" if audit.by else "All pairs"
    return Grid(title, heads, cells, notes)


def _caveats(row: AuditRow) -> Cell:
    """Return the number of caveats, and below the table the verdict's reason and their words."""
    more = _advice(row.caveats, bool(row.cluster))
    if row.verdict.claim is not None:
        averages = could_hold_as(row.verdict, row.figures)
        also = f" As the {spoken(averages)} of the same pairs it could hold." if averages else ""
        more.insert(0, Advice(_spoken(row.verdict), f"{row.verdict.reason}{also}"))
    n = len(row.caveats)
    about = f"{n} caveat{'' if n == 1 else 's'}"
    if row.verdict.claim is not None:
        about = f"{verdict_word(row.verdict)}, {about}"
    return Cell(str(n), float(n), more=more, about=f"{name_of(row) or 'all'}: {about}")


def _others(audit: Audit) -> Grid:
    from errcomp.metrics import figure

    heads = [
        *_key_heads(audit),
        Head("n", right=True),
        *(
            Head(heading_of(figure(name).label), right=True, about=figure(name).definition)
            for name in _OTHERS
        ),
    ]
    cells = [
        [
            *_key_cells(audit, row),
            Cell(str(row.n), float(row.n)),
            *(_figure(row, name) for name in _OTHERS),
        ]
        for row in _rows(audit)
    ]
    return Grid("Other figures of the same pairs", heads, cells)


def _rows(audit: Audit) -> list[AuditRow]:
    return [*audit.rows, *audit.overall] if audit.by else [*audit.overall]


def _key_heads(audit: Audit) -> list[Head]:
    several = len({row.tool for row in audit.rows}) > 1
    tool = [Head("Tool", choice=True)] if several else []
    return [*tool, *(Head(heading_of(key), choice=True) for key in audit.by)]


def _key_cells(audit: Audit, row: AuditRow) -> list[Cell]:
    several = len({row.tool for row in audit.rows}) > 1
    tool = [Cell(row.tool)] if several else []
    return [*tool, *(Cell(key_text(row.key.get(key, "all"))) for key in audit.by)]


def _signs(rows: Sequence[AuditRow]) -> Iterator[Note]:
    """Explain the signs that the table has."""
    if any(row.verdict.claim and is_reported(row.verdict.claim) for row in rows):
        yield Note(f"{REPORTED}.", "†")
    if drawn := clusters_drawn(rows):
        yield Note(f"{drawn}.", "‡")


def _claimed(row: AuditRow) -> Cell:
    claim = row.verdict.claim
    if claim is None:
        return Cell("—")
    return Cell(claimed(row.verdict), claim.high if claim.low is None else claim.low)


def _figure(row: AuditRow, name: str) -> Cell:
    found = row.figures[name]
    mark = interval_sign(row) if found.low is not None else ""
    return Cell(found.format() + mark, None if found.value != found.value else found.value)


def _method(audit: Audit) -> list[tuple[str, str]]:
    from errcomp.metrics import figure

    shown = ("mape", "max_ape", *_OTHERS)
    methods: dict[str, dict[str, list[str]]] = {}
    for row in _rows(audit):
        for name in shown:
            # Effective numbers differ from row to row; the way they are used does not.
            how = _NUMBERS.sub("…", row.figures[name].method)
            rows = methods.setdefault(how, {}).setdefault(heading_of(figure(name).label), [])
            rows.append(name_of(row) or "all")
    return [
        *((heading_of(figure(name).label), figure(name).definition) for name in shown),
        *(
            (
                f"Interval: {how}",
                "; ".join(f"{label} of {_few(rows)}" for label, rows in by.items()),
            )
            for how, by in methods.items()
            if how
        ),
        (
            "Verdicts",
            "A claim is overstated where the whole interval of the recomputed error lies above the "
            "numbers that would be printed like it, understated where it lies below, else "
            "consistent; not verifiable where the pairs cannot decide.",
        ),
        ("Coverage of the intervals", f"{100 * audit.level:g} %"),
        (
            "Coverage of those judged together",
            f"{100 * audit.joint_level:.4g} %, for {audit.judged_together} claim"
            f"{'' if audit.judged_together == 1 else 's'}",
        ),
        ("Seed", str(audit.seed)),
        ("Unit of the pairs", audit.unit or "not stated"),
    ]


def _few(names: Sequence[str]) -> str:
    """Name the first rows and count the others."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _drawings(audit: Audit, pairs: Pairs | None) -> list[Drawing]:
    from errcomp.report import audit_figures as draw

    found: list[Drawing] = [
        (
            "claimed",
            "What was claimed (diamonds) against what the pairs say (points, with intervals).",
            partial(draw.claimed, audit),
        )
    ]
    if pairs is None:
        return found
    everything = pairs
    tools = {row.tool for row in audit.rows} - {""}
    if len(tools) == 1:
        pairs = pairs.of_tool(*tools)
    by = tuple(key for key in ("device", "model") if key in pairs.keys) or audit.by
    found += [
        (
            "predicted",
            "Every pair. On the line a prediction is right; the bands are what is near enough.",
            partial(draw.predicted_against_measured, pairs),
        ),
        (
            "ecdf",
            "How many pairs err by less than so much: read upwards from an error you can accept.",
            partial(draw.ecdf, pairs),
        ),
        (
            "size",
            "Whether the error depends on the size of the prediction; pairs count as independent.",
            partial(draw.bland_altman, pairs),
        ),
    ]
    if by:
        found.append(
            (
                "groups",
                f"The errors of each {by[0]}: every point is a pair.",
                partial(draw.by_group, pairs, by=by[:1]),
            )
        )
    rows = "tool" if len(everything.tools) > 1 else "device"
    if {rows, "model"} <= set(everything.keys):
        found.append(
            (
                "coverage",
                "Which workloads are predicted at all, and how well.",
                partial(draw.coverage_map, everything, rows=rows, columns="model"),
            )
        )
    return found
