"""Tables 2, 4, 10, 11 and 12: published claims, and words that are the survey's judgement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from errcomp.claims.registry import claims_of
from errcomp.claims.replicate.coverage import coverage_of
from errcomp.claims.replicate.judging import Candidate, PrintedCell, Source, judge, no_data
from errcomp.claims.replicate.neusight import group_extremes
from errcomp.claims.replicate.published import BY_NEUSIGHT, published_rules
from errcomp.claims.replicate.results import Cell
from errcomp.claims.replicate.rules import AGGREGATIONS
from errcomp.claims.replicate.runs import same_load

__all__ = ["table4", "table10", "table11_12", "tools"]


def _claim(source: Source, cell: PrintedCell) -> Cell:
    """Look for NeuSight's claim in its pairs; those of other tools are inputs."""
    if cell.row == "NeuSight":
        candidates, note = published_rules(source, cell)
        return judge(cell, candidates, note)
    known = claims_of(cell.row)
    if not cell.figures and not any(claim.kind in ("correlation", "share") for claim in known):
        return no_data(cell, "The survey prints no accuracy for this tool.")
    reason = f"{known[0].verifiable}: {known[0].reason}" if known else "not in the registry."
    return no_data(cell, f"A claim of the tool's authors, taken as printed; {reason}")


def tools(source: Source) -> Iterator[Cell]:
    """Judge the self-reported accuracies of Table 2."""
    for cell in source.cells["tools"]:
        yield _claim(source, cell)


def table4(source: Source) -> Iterator[Cell]:
    """Judge the published and the survey's own accuracy, and its verdicts."""
    for cell in source.cells["table4_accuracy"]:
        if cell.column == "published":
            yield _claim(source, cell)
        elif cell.row != "NeuSight":
            note = "A judgement in words: no measurement is published beside the tool's output."
            if cell.printed == "Ranking valid":
                note += f" {same_load(source)}"
            yield no_data(cell, note)
        elif cell.column == "survey result":
            pairs = source.neusight
            low, high = group_extremes(pairs, min), group_extremes(pairs, max)
            yield judge(
                cell,
                [
                    Candidate(_range_rule(a.rule), (float(a.value), float(b.value)), a.stated)
                    for a, b in zip(low, high, strict=True)
                    if isinstance(a.value, float) and isinstance(b.value, float)
                ],
                f"All {pairs.n} configurations together: "
                f"{100 * AGGREGATIONS['mean APE'](pairs):.2f} %.",
            )
        else:
            yield judge(cell, _overstatement(source), "Computed from the printed figures.")


def _range_rule(rule: str) -> str:
    return rule.replace("lowest", "lowest and highest", 1)


def _overstatement(source: Source) -> list[Candidate]:
    """Return recomputed over claimed: row by row, and everything over the headline claim."""
    table = "table6_neusight"
    survey = [c.value for c in source.cells[table] if c.column == "survey" and c.value]
    judged = {c.row: c.printed for c in source.cells[table] if c.column == "survey verdict"}
    ratios = {
        row: source.number(table, row, "survey") / source.number(table, row, "claimed")
        for row in judged
    }
    worst = [ratio for row, ratio in ratios.items() if judged[row] == "Mismatch"]
    headline = source.number("text_neusight", f"{BY_NEUSIGHT}: NeuSight, abstract", "value")
    rule = "survey over claim, row by row of Table 6"
    return [
        Candidate(f"{rule} ({len(ratios)} rows with a claim)", _ends(ratios.values()), stated=True),
        Candidate(f"{rule}, only those called a mismatch", _ends(worst)),
        Candidate(
            "lowest and highest survey figure over the headline claim",
            (min(survey) / headline, max(survey) / headline),
        ),
    ]


def _ends(values: Iterable[float]) -> tuple[float, float]:
    known = list(values) or [math.nan]
    return min(known), max(known)


#: Tools of Table 10 that Table 9 has a column for.
_COLUMNS: Mapping[str, str] = {
    "NeuSight": "neusight",
    "ASTRA-sim": "astrasim",
    "VIDUR": "vidur",
    "Timeloop": "timeloop",
    "nn-Meter": "nnmeter",
}


def table10(source: Source) -> Iterator[Cell]:
    """Recompute accuracy and coverage; the other columns are judgements."""
    for cell in source.cells["table10_cross_tool"]:
        if cell.column == "accuracy":
            yield _best_accuracy(source, cell)
        elif cell.column == "coverage of 36":
            yield _coverage(source, cell)
        else:
            note = "A judgement in words; no rule for it is stated."
            if (cell.row, cell.column) == ("NeuSight", "scope"):
                note += " The errors in the same row are of end-to-end latencies."
            yield no_data(cell, note)


def _best_accuracy(source: Source, cell: PrintedCell) -> Cell:
    if cell.row != "NeuSight":
        return _claim(source, cell)
    mean = 100 * AGGREGATIONS["mean APE"](source.neusight)
    note = f"The best group, as the caption says; all configurations together have {mean:.2f} %."
    return judge(cell, group_extremes(source.neusight, min), note)


def _coverage(source: Source, cell: PrintedCell) -> Cell:
    column = _COLUMNS.get(cell.row)
    if column is None:
        return no_data(cell, "Table 9 has no column for this tool.")
    total = float(sum(coverage_of(source, column, "SP").values()))
    rule = "scenarios of Table 9 with full or partial support, unweighted"
    return judge(cell, [Candidate(rule, total, stated=True)])


#: What it would take to check a column of Tables 11 and 12.
_DEPLOYMENT: Mapping[str, str] = {
    "docker": "Whether the project offered a container when the survey looked",
    "time to first output": "Working time of one person on one machine",
    "deterministic": "Output of repeated runs, which is not published",
    "installs": "One attempt on one machine",
    "runs": "One attempt on one machine",
    "failure mode": "A judgement in words of one attempt on one machine",
}


def table11_12(source: Source) -> Iterator[Cell]:
    """State for every deployment cell what it would take to check it."""
    for cell in source.cells["table11_12_deployment"]:
        what = _DEPLOYMENT[cell.column]
        yield no_data(cell, f"{what}; checking it means deploying the tool again.")
