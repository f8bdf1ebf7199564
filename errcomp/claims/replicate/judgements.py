"""Tables 2, 3, 4 and 9 to 12: published claims, counts, and assessments of the survey."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from errcomp.claims.registry import VERIFIABLE, claims_of
from errcomp.claims.replicate.judging import Candidate, Cell, PrintedCell, Source, judge, no_data
from errcomp.claims.replicate.neusight import (
    AGGREGATIONS,
    BY_NEUSIGHT,
    group_extremes,
    published_rules,
)
from errcomp.claims.replicate.runs import same_load


def _claim(source: Source, cell: PrintedCell) -> Cell:
    """Recompute NeuSight's claim from its pairs; claims of other tools are inputs."""
    if cell.row == "NeuSight":
        candidates, note = published_rules(source, cell)
        return judge(cell, candidates, note)
    known = [c for c in claims_of(cell.row) if not c.edition.startswith("not in the survey")]
    if not cell.figures and not any(claim.kind in ("correlation", "share") for claim in known):
        return no_data(cell, "The survey prints no accuracy for this tool.")
    reason = ". It is not among the claims that errcomp knows."
    if known:
        first = known[0]
        why = "" if first.verifiable == "verifiable" else f": {VERIFIABLE[first.verifiable]}"
        reason = f"{why}. {first.reason}"
        if first.claimed_by.startswith("the survey"):
            told = "The authors do not state this figure; it was not recomputed"
            return no_data(cell, f"{told}{reason} {first.note}")
    return no_data(cell, f"This is a claim of the tool's authors, which was not recomputed{reason}")


def tools(source: Source) -> Iterator[Cell]:
    """Recompute the self-reported accuracies of Table 2."""
    for cell in source.cells["tools"]:
        yield _claim(source, cell)


def table4(source: Source) -> Iterator[Cell]:
    """Recompute the published and the survey's own accuracy, and its verdicts."""
    for cell in source.cells["table4_accuracy"]:
        if cell.column == "published":
            yield _claim(source, cell)
        elif cell.row != "NeuSight":
            note = (
                "This is an assessment in words: no measurements are published with the tool's "
                "output."
            )
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
                f"The mean APE of all {pairs.n} configurations together is "
                f"{100 * AGGREGATIONS['mean APE'](pairs):.2f} %.",
            )
        else:
            yield judge(cell, _overstatement(source), "Computed from the printed figures.")


def _range_rule(rule: str) -> str:
    return rule.replace("lowest", "lowest and highest", 1)


def _overstatement(source: Source) -> list[Candidate]:
    """Return recomputed over claimed: row by row, and all rows over the headline claim."""
    table = "table6_neusight"
    survey = [c.value for c in source.cells[table] if c.column == "survey" and c.value]
    judged = {c.row: c.printed for c in source.cells[table] if c.column == "survey verdict"}
    ratios = {
        row: source.number(table, row, "survey") / source.number(table, row, "claimed")
        for row in judged
    }
    worst = [ratio for row, ratio in ratios.items() if judged[row] == "Mismatch"]
    headline = source.number("text_neusight", f"{BY_NEUSIGHT}: NeuSight, abstract", "value")
    rule = "lowest and highest ratio of the survey's error to the claim in Table 6"
    return [
        Candidate(f"{rule} ({len(ratios)} rows have a claim)", _ends(ratios.values()), stated=True),
        Candidate(f"{rule}, only in rows that the survey calls a mismatch", _ends(worst)),
        Candidate(
            "lowest and highest error of the survey in Table 6, divided by the headline claim",
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
    """Recompute accuracy and coverage; the other columns are assessments."""
    for cell in source.cells["table10_cross_tool"]:
        if cell.column == "accuracy":
            yield _best_accuracy(source, cell)
        elif cell.column == "coverage of 36":
            yield _coverage(source, cell)
        else:
            note = "This is an assessment in words; the survey states no rule for it."
            if (cell.row, cell.column) == ("NeuSight", "scope"):
                note += " The errors in this row are errors of end-to-end latencies."
            yield no_data(cell, note)


def _best_accuracy(source: Source, cell: PrintedCell) -> Cell:
    if cell.row != "NeuSight":
        return _claim(source, cell)
    mean = 100 * AGGREGATIONS["mean APE"](source.neusight)
    note = (
        "The caption says that this is the error of the best group. All configurations together "
        f"have an error of {mean:.2f} %."
    )
    return judge(cell, group_extremes(source.neusight, min), note)


def _coverage(source: Source, cell: PrintedCell) -> Cell:
    column = _COLUMNS.get(cell.row)
    if column is None:
        return no_data(cell, "Table 9 has no column for this tool.")
    total = float(sum(coverage_of(source, column, "SP").values()))
    rule = "number of scenarios in Table 9 with full or partial support"
    return judge(cell, [Candidate(rule, total, stated=True)])


#: Basis of each column of Tables 11 and 12.
_DEPLOYMENT: Mapping[str, str] = {
    "docker": "This says whether the project offered a container at the time of the survey",
    "time to first output": "This is the working time of one person on one machine",
    "deterministic": "This compares the output of repeated runs, which is not published",
    "installs": "This is the result of one attempt on one machine",
    "runs": "This is the result of one attempt on one machine",
    "failure mode": "This is an assessment in words of one attempt on one machine",
}


def table11_12(source: Source) -> Iterator[Cell]:
    """Say for every deployment cell how it could be checked."""
    for cell in source.cells["table11_12_deployment"]:
        deployment = _DEPLOYMENT[cell.column]
        yield no_data(cell, f"{deployment}; to check it, the tool must be deployed again.")


# Tables 3 and 9: how many scenarios the tools cover, and which totals follow from the table.


_COVERAGE, _TOTALS = "table9_coverage", "table9_totals"
_SUITE_TABLE = "table3_suite"
_COUNT = re.compile(r"(\d+)([SP])")
#: The categories that the survey's headline sentence names.
_NAMED = ("T4", "I5", "D1")


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Lowest and highest number of scenarios that the counts of Table 9 allow.

    The table says how many scenarios of a category each tool covers, not which ones.
    """

    low: int
    high: int

    @property
    def value(self) -> tuple[float, float]:
        return float(self.low), float(self.high)


def coverage_of(source: Source, tool: str, letters: str) -> dict[str, int]:
    """Return how many scenarios of each category a tool covers, S (fully), P (partly) or both."""
    by_row: dict[str, int] = {}
    for cell in source.cells[_COVERAGE]:
        if cell.column == tool:
            counts = _COUNT.findall(cell.printed)
            by_row[cell.row] = sum(int(n) for n, letter in counts if letter in letters)
    return by_row


def suite_of(source: Source) -> dict[str, int]:
    """Return the number of scenarios of each category of Table 3."""
    return {cell.row: int(cell.value or 0) for cell in source.cells[_SUITE_TABLE]}


def _tools(source: Source) -> list[str]:
    columns = dict.fromkeys(cell.column for cell in source.cells[_TOTALS])
    return [name for name in columns if name != "suite"]


def _covered(source: Source, letters: str, at_least: int) -> _Bounds:
    """Return how many scenarios at least this many tools (1 or 2) cover."""
    low = high = 0
    for category, size in suite_of(source).items():
        counts = [coverage_of(source, tool, letters).get(category, 0) for tool in _tools(source)]
        possible = [
            more if at_least == 2 else once + more for once, more in _reachable(counts, size)
        ]
        low, high = low + min(possible), high + max(possible)
    return _Bounds(low, high)


def _reachable(counts: Sequence[int], size: int) -> set[tuple[int, int]]:
    """Return every possible pair of scenarios covered once and covered more than once.

    The tools are added one by one: ``again`` of a tool's scenarios were covered once before,
    ``new`` were not covered, and the rest were covered more often.
    """
    states = {(0, 0)}
    for count in counts:
        states = {
            (once - repeated + new, more + repeated)
            for once, more in states
            for repeated in range(min(count, once) + 1)
            for new in range(min(count - repeated, size - once - more) + 1)
            if count - repeated - new <= more
        }
    return states


def table3(source: Source) -> Iterator[Cell]:
    """Say that the suite is a definition, and give its sum."""
    total = sum(suite_of(source).values())
    for cell in source.cells[_SUITE_TABLE]:
        yield no_data(
            cell,
            f"The survey chose this number; it is not a result. All categories add up to {total} "
            "scenarios.",
        )


def table9_coverage(source: Source) -> Iterator[Cell]:
    """Compare the sizes with Table 3; the survey decides what a tool covers."""
    suite = suite_of(source)
    for cell in source.cells[_COVERAGE]:
        if cell.column == "scenarios":
            same = Candidate(
                "number of scenarios of this category in Table 3", suite[cell.row], stated=True
            )
            yield judge(cell, [same], "Tables 3 and 9 print the same number.")
            continue
        claimed = sum(int(n) for n, _ in _COUNT.findall(cell.printed))
        fits = f"{claimed} of {suite[cell.row]}"
        yield no_data(
            cell,
            f"This is the survey's assessment ({fits} scenarios); the survey does not say which "
            "scenarios.",
        )


def table9_totals(source: Source) -> Iterator[Cell]:
    """Recompute the totals from the cells of Table 9 under each way of counting partial support."""
    suite = suite_of(source)
    n = sum(suite.values())
    for cell in source.cells[_TOTALS]:
        if cell.column != "suite":
            yield judge(cell, _of_tool(source, cell, n))
        elif cell.row.startswith("T4+I5+D1"):
            total = float(sum(suite[name] for name in _NAMED))
            yield judge(
                cell, [Candidate("number of scenarios of T4, I5 and D1 in Table 3", total, True)]
            )
        elif cell.row.startswith("workloads said"):
            yield judge(
                cell,
                _headline(source, n),
                "The headline states one half; none of the printed counts gives one half.",
            )
        else:
            count = source.number(_TOTALS, "at most one tool, scenarios", "suite")
            share = (
                f" The printed count, {count:g}, divided by {n} is {100 * count / n:.1f} %, but "
                "the count is not reproduced."
            )
            said = share if cell.row == "at most one tool, %" else ""
            yield judge(cell, _of_suite(source, cell, n), _BOUNDS + said)


_BOUNDS = (
    "Table 9 says how many scenarios each tool covers, but not which ones, so for several tools "
    "together it may give only a range."
)


def _of_tool(source: Source, cell: PrintedCell, n: int) -> list[Candidate]:
    full = sum(coverage_of(source, cell.column, "S").values())
    partial = sum(coverage_of(source, cell.column, "P").values())
    if cell.row == "supported":
        return [Candidate("scenarios with full support (S), all categories", full, stated=True)]
    if cell.row == "partial":
        return [
            Candidate("scenarios with partial support (P), all categories", partial, stated=True)
        ]
    return [
        Candidate(f"(S + P/2) / {n}", (full + partial / 2) / n, stated=True),
        Candidate(f"S / {n}", full / n),
        Candidate(f"(S + P) / {n}", (full + partial) / n),
    ]


#: Both ways of counting partial support; the one that "covered" suggests is first.
_WAYS: Mapping[str, str] = {
    "SP": "counting full and partial support",
    "S": "counting full support only",
}


def _of_suite(source: Source, cell: PrintedCell, n: int) -> list[Candidate]:
    at_most_one = cell.row.startswith("at most one")
    scale = n if "%" in cell.row else 1
    candidates = []
    for letters, way in _WAYS.items():
        bounds = _covered(source, letters, 2 if at_most_one else 1)
        low, high = bounds.value
        if not cell.row.startswith("union"):
            low, high = n - high, n - low
        value = low / scale if low == high else (low / scale, high / scale)
        candidates.append(Candidate(way, value, stated=letters == "SP"))
    return candidates


def _headline(source: Source, n: int) -> list[Candidate]:
    suite = suite_of(source)
    named = sum(suite[name] for name in _NAMED) / n
    none = [
        (way, 1 - bounds.high / n, 1 - bounds.low / n)
        for way, bounds in ((w, _covered(source, letters, 1)) for letters, w in _WAYS.items())
    ]
    return [
        Candidate(
            "number of scenarios of T4, I5 and D1, the categories that the sentence names, divided "
            f"by {n}",
            named,
            stated=True,
        ),
        *(
            Candidate(
                f"scenarios that no tool covers, divided by {n}; {way}",
                low if low == high else (low, high),
            )
            for way, low, high in none
        ),
    ]
