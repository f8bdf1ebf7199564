"""Report of comparisons that nobody measured: choices, and every two alternatives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.decisions.view.evaluation import named, per_item, varied
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import (
    Column,
    Figure,
    Report,
    Table,
    Tone,
    Verdict,
)
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.decisions.comparing import Comparison

#: Rows of a printed table.
_MOST = 20


def comparison_view(found: Comparison) -> Report:
    """Return the report of comparisons."""
    what = named(found.between)
    title = f"Comparisons of the {what}" + (f" by {found.tool}" if found.tool else "")
    called = int(found.called.sum())
    tone: Tone = "good" if called == len(found) else "doubt"
    text = (
        f"of {count(len(found), 'comparison')}. A comparison is called if one alternative is "
        f"better with a probability of at least {100 * found.level:g} %."
    )
    draw = partial(probabilities, found)
    return Report(
        title=title,
        line=[f"{called:,} of {len(found):,} called", f"n={len(found):,}"],
        verdicts=[Verdict(f"{called:,} called", text, tone), *_answers(found)],
        tables=[*_asked(found, what), _rows(found, title)],
        figures=[Figure("probabilities", _CAPTION, draw)],
        method=[("Probabilities", _basis(found)), ("Seed", str(found.seed))],
        draw=draw,
    )


_CAPTION = "Probability that the first alternative is better, the least sure first."


def _basis(found: Comparison) -> str:
    rows = count(found.taught, "measured pair")
    if not found.left_out:
        return f"error model of {rows}"
    own = "two alternatives" if found.left_out == "alternatives" else "condition"
    return f"error model of {rows}; for each comparison, without the pairs of its {own}"


def _answers(found: Comparison) -> list[Verdict]:
    """Return the answer where there is a single choice to make."""
    if len(found.choices) != 1:
        return []
    (choice,) = found.choices
    limit = _limit(found)
    if not choice.chosen:
        best = max(found.alternatives, key=lambda row: row.p_within)
        chance = forms.probability.write(best.p_within).text
        likely = (
            f"The most likely to meet it is {best.name} ({chance})."
            if best.p_within >= 0.005
            else f"For each of them, the probability is {chance}."
        )
        text = f"is at least {100 * found.level:g} % sure to meet the limit ({limit}). {likely}"
        return [Verdict("No alternative", text, "bad")]
    among = (
        f"the alternatives at least {100 * found.level:g} % sure to meet the limit ({limit})"
        if limit
        else f"{choice.n}"
    )
    text = (
        f"is the best of {among} with a probability of {100 * choice.p_best:.0f} %; expected "
        f"regret {format_fraction(choice.expected_regret)}."
    )
    sure: Tone = "good" if choice.p_best >= found.level else "doubt"
    return [Verdict(choice.chosen, text, sure)]


def _limit(found: Comparison) -> str:
    """Return the limit as text; empty without one."""
    if np.isnan(found.limit):
        return ""
    return f"{'≥' if found.higher else '≤'} {found.limit:g}{f' {found.unit}' if found.unit else ''}"


def _asked(found: Comparison, what: str) -> list[Table]:
    """Return the tables of what was asked: the choices, or the alternatives of a single one."""
    if not found.choices:
        return []
    if len(found.choices) > 1:
        return [_choices(found, what)]
    return [_choices(found, what), _alternatives(found, what)]


def _alternatives(found: Comparison, what: str) -> Table:
    order = {"chosen": 0, "too close to call": 1}
    each = sorted(found.alternatives, key=lambda row: (order.get(row.word, 2), -row.p_best))
    rows = each[:_MOST]
    unit = f" ({found.unit})" if found.unit else ""
    known = not np.isnan(rows[0].median)
    limit, priced = not np.isnan(found.limit), bool(found.price)
    cost = next((row.cost for row in each if row.word == "chosen"), rows[0].cost)
    columns = [
        Column(what.capitalize(), lambda row: row.name),
        Column(f"Predicted{unit}", lambda row: row.predicted, forms.number),
        *([Column(f"Likely{unit}", lambda row: (row.low, row.high), forms.band)] * known),
        *([Column("Cost", lambda row: row.cost / cost - 1, forms.change)] * (priced and known)),
        Column("P best", lambda row: row.p_best, forms.probability),
        *([Column("P within limit", lambda row: row.p_within, forms.probability)] * limit),
        *([Column("P on front", lambda row: row.p_front, forms.probability)] * priced),
        Column("", lambda row: row.word),
    ]
    notes = [*_more(len(each), "alternative", lead="")]
    if known:
        share = f"{100 * found.level:g}"
        notes.append(f"Likely: band that holds the true value with a probability of {share} %.")
    else:
        notes.append(
            "Too few conditions were measured to estimate values: only differences between "
            "alternatives are known."
        )
    if priced:
        notes.append("Cost: change from the cost of the chosen alternative.")
        notes.append(
            "P on front: probability that no other alternative is as "
            f"{'good' if found.higher else 'fast'} at the same or a lower cost."
        )
    if limit:
        share = f"{100 * found.level:g}"
        notes.append(
            f"Limit: {_limit(found)}. The choice is among alternatives that meet it with a "
            f"probability of at least {share} %."
        )
    return Table(f"Alternatives by {what}", columns, rows, notes)


def _choices(found: Comparison, what: str) -> Table:
    rows = sorted(found.choices, key=lambda row: row.p_best)[:_MOST]
    columns = [
        *varied(found.within, [row.condition for row in rows]),
        Column("Chosen", lambda row: row.chosen or "–"),
        Column("P best", lambda row: row.p_best, forms.probability),
        Column("Expected regret", lambda row: row.expected_regret, forms.percent),
        Column("Measure next", lambda row: row.measure or "–"),
        Column("Saves", lambda row: row.saves, forms.percent),
        Column("Of", lambda row: row.n, forms.count),
    ]
    notes = [
        f"Expected regret: what the choice is expected to lose, as a share of {_measure(found)}.",
        "Measure next: the alternative whose measurement lowers the expected regret most (–: no "
        "measurement would change the choice with a probability of at least 1 %). Saves: what this "
        "measurement is expected to save.",
        *_more(len(found.choices), "choice"),
    ]
    return Table(f"Best {what}", columns, rows, notes)


def _rows(found: Comparison, title: str) -> Table:
    order = np.argsort(found.p_faster, kind="stable")[:_MOST].tolist()
    conditions = [found.conditions[found.condition[i]] for i in order]
    rows: list[dict[str, Any]] = [
        {
            "condition": condition,
            "first": found.first[i],
            "second": found.second[i],
            "ratio": float(found.predicted_ratio[i]),
            "measured": float(found.measured_ratio[i]),
            "p": float(found.p_faster[i]),
            "word": found.words[i],
        }
        for i, condition in zip(order, conditions, strict=True)
    ]
    measured = bool(np.isfinite(found.measured_ratio).any())
    columns = [
        *varied(found.within, conditions),
        Column("First", lambda row: row["first"]),
        Column("Second", lambda row: row["second"]),
        Column("Predicted ratio", lambda row: row["ratio"], forms.fixed(2)),
        *([Column("Measured ratio", lambda row: row["measured"], forms.fixed(2))] * measured),
        Column(f"P {found.word}", lambda row: row["p"], forms.probability),
        Column("First is", lambda row: row["word"]),
    ]
    notes = [
        f"Ratio: {_ratio(found)}. P {found.word}: probability that the first is {found.word}, from "
        f"the {_basis(found)}.",
        *_more(len(found), "comparison", of="" if found.every else " with a chosen alternative"),
        *per_item(found),
    ]
    if found.repeated:
        notes.append(
            f"{count(found.repeated, 'row')} repeat another row; their values are averaged"
        )
    notes += [f"{count(d.n, 'row')} not used: {d.reason}" for d in found.dropped]
    return Table(title, columns, rows, notes)


def _measure(found: Comparison) -> str:
    if found.price:
        return "the cost of the best"
    return "the value of the best" if found.higher else "the time of the best"


def _ratio(found: Comparison) -> str:
    if found.price:
        return "cost of the second / cost of the first"
    if found.higher:
        return "value of the first / value of the second"
    return "time of the second / time of the first"


def _more(
    n: int, noun: str, *, lead: str = "The least sure are listed first; ", of: str = ""
) -> list[str]:
    """Say where the rows are that a table leaves out; ``of``: the only ones that were kept."""
    every = "" if of else "all "
    others = "; there are too many to list the others" if of else ""
    return [f"{lead}--json lists {every}{count(n, noun)}{of}{others}."] if n > _MOST else []


def probabilities(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the probability of each comparison, the least sure first."""
    from errcomp.report.drawing.forest import Row, forest

    order = np.argsort(found.p_faster, kind="stable").tolist()
    rows = [
        Row(
            f"{found.first[i]} < {found.second[i]}",
            100 * float(found.p_faster[i]),
            None,
            None,
            forms.probability.write(float(found.p_faster[i])).text,
            strong=bool(found.called[i]),
        )
        for i in order
    ]
    return forest(
        ax,
        rows,
        title=f"Which {named(found.between)} is {found.word}? n={len(found):,} comparisons",
        notes=["the least sure first; filled: called"],
        x=f"probability that the first is {found.word} (%)",
        beside=f"P {found.word}",
        reference=(100 * found.level, f"called from {100 * found.level:g} %"),
    )
