"""Tables 3 and 9: how many scenarios the tools cover, and what of it follows from the table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from errcomp.claims.replicate.judging import Candidate, PrintedCell, Source, judge, no_data
from errcomp.claims.replicate.results import Cell

__all__ = ["coverage_of", "table3", "table9_coverage", "table9_totals"]

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
    found: dict[str, int] = {}
    for cell in source.cells[_COVERAGE]:
        if cell.column == tool:
            counts = _COUNT.findall(cell.printed)
            found[cell.row] = sum(int(n) for n, letter in counts if letter in letters)
    return found


def _suite(source: Source) -> dict[str, int]:
    return {cell.row: int(cell.value or 0) for cell in source.cells[_SUITE_TABLE]}


def _tools(source: Source) -> list[str]:
    columns = dict.fromkeys(cell.column for cell in source.cells[_TOTALS])
    return [name for name in columns if name != "suite"]


def _covered(source: Source, letters: str, at_least: int) -> _Bounds:
    """Return how many scenarios at least this many tools (1 or 2) cover."""
    low = high = 0
    for category, size in _suite(source).items():
        counts = [coverage_of(source, tool, letters).get(category, 0) for tool in _tools(source)]
        possible = [
            more if at_least == 2 else once + more for once, more in _reachable(counts, size)
        ]
        low, high = low + min(possible), high + max(possible)
    return _Bounds(low, high)


def _reachable(counts: Sequence[int], size: int) -> set[tuple[int, int]]:
    """Return every possible pair of scenarios covered once and covered more than once.

    One tool after the other, ``again`` of its scenarios are ones that had been covered once,
    ``new`` are ones that had not been covered, and the rest had been covered more often.
    """
    states = {(0, 0)}
    for count in counts:
        states = {
            (once - again + new, more + again)
            for once, more in states
            for again in range(min(count, once) + 1)
            for new in range(min(count - again, size - once - more) + 1)
            if count - again - new <= more
        }
    return states


def table3(source: Source) -> Iterator[Cell]:
    """State that the suite is a definition, and what it adds up to."""
    total = sum(_suite(source).values())
    for cell in source.cells[_SUITE_TABLE]:
        yield no_data(
            cell,
            f"A definition of the survey, not a result. All categories add up to {total}.",
        )


def table9_coverage(source: Source) -> Iterator[Cell]:
    """Compare the sizes with Table 3; what a tool covers is the survey's judgement."""
    suite = _suite(source)
    for cell in source.cells[_COVERAGE]:
        if cell.column == "scenarios":
            same = Candidate("scenarios of the category in Table 3", suite[cell.row], stated=True)
            yield judge(cell, [same], "The same number printed twice.")
            continue
        claimed = sum(int(n) for n, _ in _COUNT.findall(cell.printed))
        fits = f"{claimed} of {suite[cell.row]}"
        yield no_data(
            cell,
            f"The survey's judgement ({fits} scenarios); which scenarios are meant is not printed.",
        )


def table9_totals(source: Source) -> Iterator[Cell]:
    """Recompute the totals from the cells of Table 9 under each way of counting partial support."""
    suite = _suite(source)
    n = sum(suite.values())
    for cell in source.cells[_TOTALS]:
        if cell.column != "suite":
            yield judge(cell, _of_tool(source, cell, n))
        elif cell.row.startswith("T4+I5+D1"):
            total = float(sum(suite[name] for name in _NAMED))
            yield judge(cell, [Candidate("sum of the three categories in Table 3", total, True)])
        elif cell.row.startswith("workloads said"):
            yield judge(cell, _headline(source, n), "The headline's half is of no count printed.")
        else:
            yield judge(cell, _of_suite(source, cell, n), _BOUNDS)


_BOUNDS = (
    "Table 9 says how many scenarios a tool covers, not which, so a count of several tools may "
    "only be known within bounds."
)


def _of_tool(source: Source, cell: PrintedCell, n: int) -> list[Candidate]:
    full = sum(coverage_of(source, cell.column, "S").values())
    partial = sum(coverage_of(source, cell.column, "P").values())
    if cell.row == "supported":
        return [Candidate("sum of S over the categories", full, stated=True)]
    if cell.row == "partial":
        return [Candidate("sum of P over the categories", partial, stated=True)]
    return [
        Candidate(f"(S + P/2) / {n}", (full + partial / 2) / n, stated=True),
        Candidate(f"S / {n}", full / n),
        Candidate(f"(S + P) / {n}", (full + partial) / n),
    ]


#: Both ways of counting a partial: the one that "covered" suggests comes first.
_WAYS: Mapping[str, str] = {
    "SP": "full or partial support counts",
    "S": "only full support counts",
}


def _of_suite(source: Source, cell: PrintedCell, n: int) -> list[Candidate]:
    at_most_one = cell.row.startswith("at most one")
    scale = n if "%" in cell.row else 1
    found = []
    for letters, way in _WAYS.items():
        bounds = _covered(source, letters, 2 if at_most_one else 1)
        low, high = bounds.value
        if not cell.row.startswith("union"):
            low, high = n - high, n - low
        value = low / scale if low == high else (low / scale, high / scale)
        found.append(Candidate(way, value, stated=letters == "SP"))
    if at_most_one and scale == n:
        count = source.number(_TOTALS, "at most one tool, scenarios", "suite")
        found.append(
            Candidate(f"the printed count, itself not reproduced, over {n}", count / scale)
        )
    return found


def _headline(source: Source, n: int) -> list[Candidate]:
    suite = _suite(source)
    named = sum(suite[name] for name in _NAMED) / n
    none = [
        (way, 1 - bounds.high / n, 1 - bounds.low / n)
        for way, bounds in ((w, _covered(source, letters, 1)) for letters, w in _WAYS.items())
    ]
    return [
        Candidate(f"T4, I5 and D1, which the sentence names, over {n}", named, stated=True),
        *(
            Candidate(
                f"scenarios without a tool over {n}, {way}", low if low == high else (low, high)
            )
            for way, low, high in none
        ),
    ]
