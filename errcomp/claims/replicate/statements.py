"""Table 1, and what the survey's sentences state: counts, comparisons and orders, recomputed.

A statement in words is *reproduced* if it holds for the printed tables, or for the pairs that it is
about. Its recomputed figure is the number that decides: a count, a share or a ratio, which the rule
names.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from errcomp.claims.replicate.judgements import coverage_of, suite_of
from errcomp.claims.replicate.judging import (
    Candidate,
    Cell,
    PrintedCell,
    Rule,
    Source,
    judge,
    no_data,
    said,
)
from errcomp.claims.replicate.measured import MEASURED

_TABLE1 = "table1_taxonomy"
#: Tools of Table 2 that the first edition does not list there.
_NEW = ("Path Forward (Li et al.)", "Echo", "PRISM")
_FROM_PRINTED = "This was computed from other printed figures."


def table1(source: Source) -> Iterator[Cell]:
    """Count the tools of each type and platform in Table 2, then those that only the text names."""
    cells = source.cells[_TABLE1]
    total = sum(cell.value or 0 for cell in cells)
    listed = sum(tool["listed"] == "Table 2" for tool in source.platforms)
    sums = f"The cells of Table 1 add up to {total:g}, but Table 2 lists {listed} tools."
    for cell in cells:
        same = [
            tool
            for tool in source.platforms
            if (tool["method"], tool["platform"]) == (cell.row, cell.column)
        ]
        table = [tool["tool"] for tool in same if tool["listed"] == "Table 2"]
        names = f" Those in Table 2: {', '.join(table)}." if table else ""
        candidates = [
            Candidate("number of tools of this type and platform in Table 2", len(table), True)
        ]
        if len(same) > len(table):
            more = ", ".join(tool["tool"] for tool in same if tool["listed"] != "Table 2")
            rule = (
                "number of tools of this type and platform in Table 2, and those that only the "
                f"text names ({more})"
            )
            candidates.append(Candidate(rule, len(same)))
        yield judge(cell, candidates, sums + names)


def statements(source: Source) -> Iterator[Cell]:
    """Check each statement; if its source is not published, it has no data."""
    for cell in source.cells["statements"]:
        if cell.row in _RULES:
            yield _RULES[cell.row](source, cell)
        else:
            yield no_data(cell, _NO_DATA[cell.row])


# Counts in Tables 1, 2, 3, 11 and 12.


def _grid(source: Source) -> dict[str, dict[str, int]]:
    """Return Table 1: type of model → platform → number of tools."""
    grid: dict[str, dict[str, int]] = {}
    for cell in source.cells[_TABLE1]:
        grid.setdefault(cell.row, {})[cell.column] = int(cell.value or 0)
    return grid


def _listed(source: Source) -> list[str]:
    return [tool["tool"] for tool in source.platforms if tool["listed"] == "Table 2"]


def _surveyed(source: Source, cell: PrintedCell) -> Cell:
    new = _NEW if cell.edition == "first" else ()
    n = sum(name not in new for name in _listed(source))
    without = f" of the first edition, which lacks {', '.join(new)}" if new else ""
    return judge(cell, [Candidate(f"rows of Table 2{without}", n, True)])


def _types(source: Source, cell: PrintedCell) -> Cell:
    return judge(cell, [Candidate("rows of Table 1", len(_grid(source)), True)])


def _types_for_gpus(source: Source, cell: PrintedCell) -> Cell:
    without = [method for method, row in _grid(source).items() if not row["GPU"]]
    n = len(_grid(source)) - len(without)
    note = f"Types of which Table 1 has no tool for GPUs: {', '.join(without)}."
    return judge(cell, [Candidate("rows of Table 1 with a tool for GPUs", n, True)], note)


def _only(method: str, platform: str) -> Rule:
    def rule(source: Source, cell: PrintedCell) -> Cell:
        row = _grid(source)[method]
        others = sum(count for name, count in row.items() if name != platform)
        text = f"{method} tools in Table 1 for platforms other than {platform}"
        return said(cell, not others, float(others), "count", text)

    return rule


def _none(method: str, platform: str) -> Rule:
    def rule(source: Source, cell: PrintedCell) -> Cell:
        n = _grid(source)[method][platform]
        return said(cell, not n, float(n), "count", f"{method} tools for {platform} in Table 1")

    return rule


def _gaps(source: Source, cell: PrintedCell) -> Cell:
    zeros = sum(not count for row in _grid(source).values() for count in row.values())
    rule = "cells of Table 1 with 0, which its caption calls a research gap"
    return judge(cell, [Candidate(rule, zeros, True)], "The text names three of them.")


def _least_studied(source: Source, cell: PrintedCell) -> Cell:
    sums: Counter[str] = Counter()
    for row in _grid(source).values():
        sums.update(row)
    fewest = min(sums.values())
    least = [name for name, count in sums.items() if count == fewest]
    counts = ", ".join(f"{name} {count}" for name, count in sums.items())
    return said(
        cell, least == ["CPU"], float(sums["CPU"]), "count", "tools for CPUs in Table 1",
        f"By platform: {counts}. Table 2 lists no tool for CPUs.",
    )  # fmt: skip


def _share_of_cnns(source: Source, cell: PrintedCell) -> Cell:
    some, every = (
        source.number("statements", row, "stated")
        for row in ("tools that validate only on CNNs", "tools with a known validation")
    )
    return judge(
        cell,
        [
            Candidate(
                f"{some:g} tools that validate only on CNNs, of {every:g} with a known validation",
                some / every,
                True,
            )
        ],
        _FROM_PRINTED,
    )


def _scenarios(source: Source, cell: PrintedCell) -> Cell:
    rule = "sum of the scenarios in Table 3"
    return judge(cell, [Candidate(rule, sum(suite_of(source).values()), True)])


def _categories(source: Source, cell: PrintedCell) -> Cell:
    return judge(cell, [Candidate("rows of Table 3", len(suite_of(source)), True)])


def _deployed(source: Source) -> dict[str, dict[str, str]]:
    """Return the rows of Tables 11 and 12: table and tool → column → cell."""
    rows: dict[str, dict[str, str]] = {}
    for cell in source.cells["table11_12_deployment"]:
        rows.setdefault(f"{cell.where}, {cell.row}", {})[cell.column] = cell.printed
    return rows


def _full(source: Source) -> dict[str, dict[str, str]]:
    return {name: row for name, row in _deployed(source).items() if name.startswith("Table 11,")}


def _tools_in_full(source: Source, cell: PrintedCell) -> Cell:
    return judge(cell, [Candidate("rows of Table 11", len(_full(source)), True)])


def _tools_tested(source: Source, cell: PrintedCell) -> Cell:
    return judge(cell, [Candidate("rows of Tables 11 and 12", len(_deployed(source)), True)])


def _one_of_each_type(source: Source, cell: PrintedCell) -> Cell:
    tools = [name.partition(", ")[2] for name in _full(source)]
    types = Counter(tool["method"] for tool in source.platforms if tool["tool"] in tools)
    counts = ", ".join(f"{method} {types[method]}" for method in _grid(source))
    n = sum(types[method] == 1 for method in _grid(source))
    rule = (
        f"types of Table 1 (of {len(_grid(source))}) to which exactly one of the {len(tools)} "
        "evaluated tools belongs"
    )
    return said(cell, n == len(_grid(source)), float(n), "count", rule, f"By type: {counts}.")


def _strong(source: Source, cell: PrintedCell) -> Cell:
    strong = [
        name
        for name, row in _full(source).items()
        if (row["docker"], row["deterministic"]) == ("yes", "yes")
        and row["time to first output"].startswith("<")
    ]
    rule = (
        "rows of Table 11 with a container, valid output in less than 30 minutes, and the same "
        "output in each run"
    )
    return judge(cell, [Candidate(rule, len(strong), True)], _FROM_PRINTED)


def _identical(source: Source, cell: PrintedCell) -> Cell:
    n = sum(row["deterministic"] == "yes" for row in _full(source).values())
    return judge(
        cell,
        [Candidate("rows of Table 11 with the same output in each run", n, True)],
        _FROM_PRINTED,
    )


# Tables 9 and 2: coverage, claims and their order.


def _of_vidur(source: Source, cell: PrintedCell) -> Cell:
    names = ("I1", "I2", "I3")
    full, some = (coverage_of(source, "vidur", letters) for letters in ("S", "SP"))
    return judge(
        cell,
        [
            Candidate(
                "scenarios of I1 to I3 with full or partial support",
                sum(some.get(n, 0) for n in names),
                True,
            ),
            Candidate(
                "scenarios of I1 to I3 with full support, those with partial support not counted",
                sum(full.get(n, 0) for n in names),
            ),
        ],
    )


def _inference_scenarios(source: Source, cell: PrintedCell) -> Cell:
    n = sum(suite_of(source)[name] for name in ("I1", "I2", "I3"))
    return judge(cell, [Candidate("scenarios of I1, I2 and I3 in Table 3", n, True)])


def _union(source: Source, cell: PrintedCell) -> Cell:
    n = source.number("table9_totals", "union of all tools, scenarios", "suite")
    total = sum(suite_of(source).values())
    return judge(
        cell, [Candidate(f"the printed count, divided by {total}", n / total, True)],
        f"{_FROM_PRINTED} The printed count follows only if partial support does not count.",
    )  # fmt: skip


def _left_open(source: Source, cell: PrintedCell) -> Cell:
    weighted = source.number("table9_totals", "coverage, % weighted", "astrasim")
    some = sum(coverage_of(source, "astrasim", "SP").values())
    total = sum(suite_of(source).values())
    return judge(
        cell,
        [
            Candidate("100 % minus the printed weighted coverage", 1 - weighted, True),
            Candidate("scenarios without any support", 1 - some / total),
        ],
        f"{_FROM_PRINTED} {total - some} of {total} scenarios have no support at all "
        f"({100 * (1 - some / total):.0f} %).",
    )


def _covers(source: Source, cell: PrintedCell) -> Cell:
    some = {tool: coverage_of(source, tool, "SP") for tool in _tools(source)}
    counts = {tool: sum(of.get(c, 0) for c in ("T4", "I5", "D1")) for tool, of in some.items()}
    tools = [(tool, count) for tool, count in counts.items() if count]
    names = ", ".join(f"{name} ({count} scenarios, partial)" for name, count in tools)
    note = f"With any support: {names or 'none'}. With full support: none."
    rule = "tools with full or partial support in T4, I5 or D1"
    return said(cell, not tools, float(len(tools)), "count", rule, note)


def _tools(source: Source) -> list[str]:
    columns = dict.fromkeys(cell.column for cell in source.cells["table9_coverage"])
    return [name for name in columns if name != "scenarios"]


def _shared(source: Source, cell: PrintedCell) -> Cell:
    shared = 0
    where: list[str] = []
    for category, size in suite_of(source).items():
        counts = [coverage_of(source, tool, "SP").get(category, 0) for tool in _tools(source)]
        least = max((a + b - size for a, b in itertools.combinations(counts, 2)), default=0)
        if least > 0:
            shared, where = shared + least, [*where, f"{category} (at least {least} of {size})"]
    rule = "scenarios that two tools must share, from the counts of Table 9"
    note = (
        "In these categories, the counts of two tools add up to more than all scenarios, so the "
        f"tools must share some: {', '.join(where)}."
    )
    return said(cell, not shared, float(shared), "count", rule, note if where else "")


def _without_full(source: Source, cell: PrintedCell) -> Cell:
    without = [
        category
        for category in suite_of(source)
        if not any(coverage_of(source, tool, "S").get(category, 0) for tool in _tools(source))
    ]
    rule = "categories of Table 9 without full support"
    holds = set(without) == set(cell.printed.split(", "))
    names = f"Categories: {', '.join(without)}."
    return said(cell, holds, float(len(without)), "count", rule, names)


def _lowest_claim(source: Source, cell: PrintedCell) -> Cell:
    below = {
        c.row: c.printed
        for c in source.cells["tools"]
        if c.row in _listed(source)
        and (match := re.fullmatch(r"~?<?(\d+(?:\.\d+)?)%", c.printed))
        and float(match[1]) < 1
    }
    others = " and ".join(f"{name} {printed}" for name, printed in below.items())
    return said(
        cell, not below, float(len(below)), "count",
        "tools in Table 2 with a claim below 1 %",
        f"Below 1 %: {others}. The claim “< 1 %” may stand for a larger or a smaller error than "
        "theirs." if below else "",
    )  # fmt: skip


#: The order of section 7.9 by claimed error, and by reliability with ties as printed.
_CLAIMED = ("nn-Meter", "NeuSight", "VIDUR", "Timeloop", "ASTRA-sim")
_RELIABLE = {"VIDUR": 1.5, "ASTRA-sim": 1.5, "Timeloop": 3.0, "NeuSight": 4.0, "nn-Meter": 5.0}


def _correlation(source: Source, cell: PrintedCell) -> Cell:
    reliable = np.asarray([_RELIABLE[name] for name in _CLAIMED])
    order = np.arange(1.0, len(_CLAIMED) + 1)
    found = float(np.corrcoef(order, reliable)[0, 1])
    every = [
        float(np.corrcoef(order, np.asarray(ranks))[0, 1])
        for ranks in itertools.permutations(reliable)
    ]
    p = sum(abs(other) >= abs(found) - 1e-9 for other in every) / len(every)
    return said(
        cell, found < 0, found, "ratio",
        "rank correlation (Spearman) of the printed orders by claimed error and by reliability",
        f"With five tools, a correlation at least as strong arises by chance in {100 * p:.0f} % of "
        "all orders: it is not significant.",
    )  # fmt: skip


def _reversal(source: Source, cell: PrintedCell) -> Cell:
    pairs = list(itertools.combinations(_CLAIMED, 2))
    kept = [f"{a} before {b}" for a, b in pairs if _RELIABLE[a] < _RELIABLE[b]]
    tied = [f"{a} and {b}" for a, b in pairs if _RELIABLE[a] == _RELIABLE[b]]
    reversed_ = len(pairs) - len(kept) - len(tied)
    return said(
        cell, not kept and not tied, float(reversed_), "count",
        f"pairs of tools, of {len(pairs)}, that rank in opposite orders by claimed error and by "
        "reliability",
        f"In the same order by both: {', '.join(kept)}. Equal in reliability: {', '.join(tied)}.",
    )  # fmt: skip


def _product(source: Source, cell: PrintedCell) -> Cell:
    *factors, product = map(int, re.findall(r"\d+", cell.printed))
    value = float(math.prod(factors))
    return said(
        cell, value == product, value, "count", "product of the factors that the statement prints"
    )


_RULES: Mapping[str, Rule] = {
    "tools surveyed": _surveyed,
    "tools surveyed, first edition": _surveyed,
    "types of models": _types,
    "types of models for GPUs": _types_for_gpus,
    "platforms of trace-driven methods": _only("trace-driven", "distributed"),
    "hybrid tools for edge devices": _none("hybrid", "edge"),
    "ML-augmented tools for distributed systems": _none("ML-augmented", "distributed"),
    "research gaps": _gaps,
    "least studied platform": _least_studied,
    "tools that validate only on CNNs, %": _share_of_cnns,
    "scenarios of the suite": _scenarios,
    "categories of the suite": _categories,
    "tools with full experiments": _tools_in_full,
    "tools tested": _tools_tested,
    "tools evaluated for each type of model": _one_of_each_type,
    "tools with a container, quick and repeatable": _strong,
    "tools with identical output in three runs": _identical,
    "inference scenarios that VIDUR covers": _of_vidur,
    "inference scenarios in I1 to I3": _inference_scenarios,
    "nn-Meter's claim among all tools": _lowest_claim,
    "scenarios that some tool covers, %": _union,
    "tools that cover T4, I5 or D1": _covers,
    "scenarios that ASTRA-sim leaves open, %": _left_open,
    "scenarios that two tools predict": _shared,
    "categories without full support": _without_full,
    "claimed accuracy and reliability": _correlation,
    "ranking by reliability": _reversal,
    "GPUs of the worked example": _product,
    **MEASURED,
}

_LITERATURE = "The survey's count of papers; it lists neither the candidates nor what each says."
_OTHERS = "The survey takes this from another source; it was not recomputed."
_ATTEMPTS = "An observation of one attempt on one machine; to check it, the tool must be deployed."
_GOAL = (
    "A goal, not a result. `errcomp calibrate evaluate neusight` shows what is reached on models "
    "and devices held out."
)
_NO_DATA: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("candidate papers", "papers left after screening", "papers classified"),
            *("foundational works", "tools with a known validation"),
            "tools that validate only on CNNs",
        ),
        _LITERATURE,
    ),
    **dict.fromkeys(
        (
            "slowdown of cycle-accurate simulators",
            "IPC correlation of cycle-accurate simulators",
            "error of Accel-Sim after reverse engineering",
            "speed of Timeloop, times that of RTL",
            "platforms of LitePred",
            "samples that HELP needs",
            "improvement by transfer learning",
            "devices that Echo scales to",
            "FP16 peak of an A100 in TFLOPS",
            "FlashAttention's speed-up of attention",
        ),
        _OTHERS,
    ),
    "attempts to deploy nn-Meter": _ATTEMPTS,
    "years until nn-Meter was unusable": _ATTEMPTS,
    "goal for the composition error": _GOAL,
    "goal for the error delta on new hardware": _GOAL,
    "goal for the scenarios with a tool": "A goal, not a result.",
}
