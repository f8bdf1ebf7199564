"""Report of choices as they would have been made: the answer, calibration, other ways to choose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from errcomp.decisions.view.figures import reliability, top_regret, tournament
from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import (
    Cell,
    Column,
    Figure,
    Form,
    Report,
    Table,
    Tone,
    Verdict,
    key_heading,
    key_text,
)
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.decisions.comparing import Comparison
    from errcomp.decisions.results import Decisions, Duel

#: Mean gap of stated and found shares up to which probabilities are calibrated, and share of
#: comparisons that is right from which on an answer is good.
_CALIBRATED, _GOOD = 0.03, 0.9
#: Rows of the tables of misses.
_MISSES = 10


def decisions_view(found: Decisions) -> Report:
    """Return the report of an evaluation."""
    what = named(found.between)
    title = f"Choosing the {what}" + (f" by {found.tool}" if found.tool else "")
    tables = [
        _summary(found, title),
        _by_ratio(found),
        _calibration(found),
        *([_top(found, what)] if len(found.top) > 1 else []),
        _ways(found),
        *_misses(found, what),
    ]
    return Report(
        title=title,
        line=[f"{100 * found.right.value:.0f} % of comparisons right", f"n={found.n:,}"],
        verdicts=_verdicts(found, what),
        tables=tables,
        figures=[
            Figure("reliability", _RELIABILITY, partial(reliability, found)),
            Figure("regret", _REGRET, partial(top_regret, found)),
            *([Figure("tournament", _TOURNAMENT, partial(tournament, found))] * bool(found.duels)),
        ],
        method=[
            ("Comparisons", f"every two alternatives with equal {listed(found.within)}"),
            ("Probabilities", _source(found)),
            ("Seed", str(found.seed)),
        ],
        draw=partial(_draw, found),
    )


_RELIABILITY = (
    "Probability of the alternative called faster against the share in which it was; on the line, "
    "probabilities come true."
)
_REGRET = "Time lost if the k predicted fastest are measured and the best of them is taken."
_TOURNAMENT = "Share of comparisons of two alternatives in which the predicted faster one was."


def named(keys: Sequence[str]) -> str:
    """Return the names of keys as words."""
    return " and ".join(key.replace("_", " ") for key in keys)


def listed(keys: Sequence[str]) -> str:
    """Return the names of keys as a list."""
    return ", ".join(keys) or "nothing"


def varied(keys: Sequence[str], conditions: Sequence[Mapping[str, object]]) -> list[Column]:
    """Return a column for each key that differs between these conditions."""
    return [
        _key(name)
        for name in keys
        if len({str(condition.get(name)) for condition in conditions}) > 1
    ]


def per_item(found: Decisions | Comparison) -> list[str]:
    """Say what times stand for, where they depend on what is chosen."""
    notes = []
    if found.per:
        notes.append(f"Times are divided by {found.per}.")
    elif "batch" in found.between:
        notes.append("Whole batches are compared. For the time of one item: --per batch.")
    if found.price:
        what = "divided by the value" if found.higher else "times the time"
        notes.append(f"Costs are compared ({found.price} {what}): read 'faster' as 'cheaper'.")
    elif found.higher:
        notes.append("Higher values are better: read 'faster' as 'higher'.")
    return notes


def _draw(found: Decisions, figure: str = "reliability", ax: Axes | None = None) -> Axes:
    """Draw one of the figures: reliability, regret or tournament."""
    known = {"reliability": reliability, "regret": top_regret, "tournament": tournament}
    if figure not in known:
        raise InputError(f"no figure {figure!r}. Figures: {', '.join(known)}")
    return known[figure](found, ax=ax)


def _verdicts(found: Decisions, what: str) -> list[Verdict]:
    right = found.right
    tone: Tone = "good" if right.value >= _GOOD else "bad" if right.value < 0.75 else "doubt"
    verdicts = [
        Verdict(
            f"Right in {100 * right.value:.0f} %",
            f"{_ends(right.low, right.high)}of {count(found.n, 'comparison')} of two "
            f"alternatives ({what}).",
            tone,
        ),
        Verdict("9 in 10", f"{_needed(found)}", "plain"),
        Verdict(
            f"Regret {format_fraction(found.regret.value)}",
            f"on average over {count(found.choices, 'choice')}; the worst choice lost "
            f"{format_fraction(found.regret_max)}. The best alternative was taken in "
            f"{100 * found.best.value:.0f} % of the choices.",
            "good" if found.regret.value <= 0.02 else "doubt",
        ),
    ]
    if found.calibration:
        gap = _gap(found)
        fits = gap <= _CALIBRATED
        text = (
            f"the stated probability and the share of right comparisons differ by {100 * gap:.1f} "
            "points on average, over five groups of equally many comparisons."
        )
        head = "Calibrated" if fits else "Not calibrated"
        verdicts.append(Verdict(head, text, "good" if fits else "bad"))
    return verdicts


def _gap(found: Decisions) -> float:
    rows = found.calibration
    return sum(abs(row.stated - row.found.value) for row in rows) / len(rows)


def _ends(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"[{100 * low:.0f}, {100 * high:.0f}] "


def _needed(found: Decisions) -> str:
    if math.isinf(found.needed):
        return "No predicted difference is large enough for its order to be right 9 times in 10."
    high = "∞" if math.isinf(found.needed_high) else f"{100 * found.needed_high:.0f}"
    return (
        f"A predicted difference must be at least {100 * found.needed:.0f} % "
        f"[{100 * found.needed_low:.0f}, {high}] for its order to be right 9 times in 10."
    )


def _source(found: Decisions) -> str:
    if not found.left_out:
        return "not computed: too few alternatives and conditions to leave some out"
    own = "two alternatives" if found.left_out == "alternatives" else found.cluster or "condition"
    return (
        "learned from the errors of measured pairs; for each comparison, the pairs of its "
        f"{own} are left out"
    )


def _summary(found: Decisions, title: str) -> Table:
    rows: list[tuple[str, object, object]] = [
        ("Comparisons right", found.right, forms.estimate),
        ("Choices that took the best", found.best, forms.estimate),
        ("Mean regret", found.regret, forms.estimate),
        ("Largest regret", found.regret_max, forms.percent),
        ("Called", found.share_called, forms.percent),
        ("Wrong where 95 % sure", found.wrong_when_sure, forms.percent),
    ]
    columns = [
        Column("", lambda row: row[0], key=True),
        Column("Value [95 %]", lambda row: row[1:], _ANY),
    ]
    notes = [
        _needed(found),
        f"{count(found.n, 'comparison')} of two alternatives and {count(found.choices, 'choice')} "
        f"of {named(found.between)}, each at equal {listed(found.within)}.",
        f"Called: comparisons that are at least {100 * found.level:g} % sure. At least 95 % sure: "
        f"{count(found.sure, 'comparison')}. Probabilities are {_source(found)}.",
        f"Regret: measured {'cost' if found.price else 'time'} of the chosen alternative / "
        f"measured {'cost' if found.price else 'time'} of the best, minus 1.",
        *per_item(found),
    ]
    if found.ties:
        notes.append(f"{count(found.ties, 'comparison')} not counted: the measured times are equal")
    if found.repeated:
        notes.append(
            f"{count(found.repeated, 'row')} repeat another row; their measurements are averaged"
        )
    notes += [f"{count(d.n, 'row')} not used: {d.reason}" for d in found.dropped]
    return Table(title, columns, rows, notes)


def _write(value: tuple[object, Form]) -> Cell:
    figure, form = value
    return form.write(figure)


_ANY = Form(_write, right=True)


def _by_ratio(found: Decisions) -> Table:
    def difference(row: object) -> str:
        low, high = (100 * (end - 1) for end in (row.above, row.below))  # type: ignore[attr-defined]
        return f"{low:.0f} % or more" if math.isinf(high) else f"{low:.0f} to {high:.0f} %"

    columns = [
        Column("Predicted difference", difference, key=True),
        Column("Right [95 %]", lambda row: row.right, forms.estimate),
        Column("n", lambda row: row.n, forms.count),
    ]
    return Table("By predicted difference", columns, found.by_ratio)


def _calibration(found: Decisions) -> Table:
    columns = [
        Column("Stated", lambda row: row.stated, forms.probability, key=True),
        Column("Right [95 %]", lambda row: row.found, forms.estimate),
        Column("n", lambda row: row.n, forms.count),
    ]
    notes = [
        "Results by assumption about the correlation of the errors. "
        + " ".join(
            f"{row.errors.capitalize()}: {100 * row.called:.0f} % of comparisons are at least "
            f"{100 * found.level:g} % sure, {_wrong(row.wrong_when_sure)}; stated probabilities "
            f"and shares of right comparisons differ by {100 * row.gap:.1f} points."
            for row in found.assumptions
        )
    ] if found.assumptions else []  # fmt: skip
    return Table(
        "Stated probability that one is faster, and how often it was",
        columns,
        found.calibration,
        notes,
    )


def _wrong(share: float) -> str:
    if math.isnan(share):
        return "none at least 95 % sure"
    return f"and {format_fraction(share)} of those at least 95 % sure are wrong"


def _top(found: Decisions, what: str) -> Table:
    columns = [
        Column("k", lambda row: row.k, forms.count, key=True),
        Column("Holds the best", lambda row: row.holds_best, forms.percent),
        Column("Mean regret", lambda row: row.regret_mean, forms.percent),
        Column("Largest", lambda row: row.regret_max, forms.percent),
        Column("Choices", lambda row: row.choices, forms.count),
    ]
    note = (
        f"In each choice of {what}, the k alternatives predicted to be fastest are measured, and "
        "the best of them is taken."
    )
    return Table("Measuring the k predicted fastest", columns, found.top, [note])


def _ways(found: Decisions) -> Table:
    columns = [
        Column("Choosing by", lambda row: row.way, key=True),
        Column("Right", lambda row: row.right, forms.percent),
        Column("Here", lambda row: row.own_right, forms.percent),
        Column("Mean regret", lambda row: row.regret_mean, forms.percent),
        Column("Here", lambda row: row.own_regret_mean, forms.percent),
        Column("n", lambda row: row.n, forms.count),
    ]
    note = (
        f"Here: the result of choosing by {found.tool or 'the predictions'}, on the same "
        "comparisons and choices. At random: the mean over all alternatives."
    )
    return Table("Other ways to choose", columns, found.ways, [note])


def _misses(found: Decisions, what: str) -> list[Table]:
    """Return the pairs of alternatives that are confused, and the choices that lost time."""
    tables = []
    wrong = [duel for duel in found.duels if duel.right < duel.n]
    if wrong:
        columns = [
            Column("First", lambda row: row.first, key=True),
            Column("Second", lambda row: row.second, key=True),
            Column("Right", lambda row: row.right / row.n, forms.percent),
            Column("n", lambda row: row.n, forms.count),
        ]
        notes = _more(len(wrong), "pair")
        tables.append(Table("Confused pairs", columns, _first(wrong), notes))
    lost = sorted((row for row in found.rows if row.regret > 0), key=lambda row: -row.regret)
    if lost:
        columns = [
            *varied(found.within, [row.condition for row in lost[:_MISSES]]),
            Column("Chosen", lambda row: row.chosen),
            Column("Best", lambda row: row.best),
            Column("Regret", lambda row: row.regret, forms.percent),
        ]
        title = f"Choices of the {what} that lost time"
        tables.append(Table(title, columns, lost[:_MISSES], _more(len(lost), "choice")))
    return tables


def _first(rows: list[Duel]) -> list[Duel]:
    return rows[:_MISSES]


def _more(n: int, noun: str) -> list[str]:
    return [f"{count(n - _MISSES, noun)} more: --json"] if n > _MISSES else []


def _key(name: str) -> Column:
    def value(row: Any) -> str:
        condition = row["condition"] if isinstance(row, dict) else row.condition
        return key_text(condition.get(name))

    return Column(key_heading(name), value, key=True)
