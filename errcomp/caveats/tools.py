"""Checks between the tools of one table: coverage, Simpson's paradox, rankings, bases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from errcomp.caveats._case import (
    MATERIAL,
    NOTHING,
    Case,
    Finding,
    configuration,
    percent,
    signed,
)
from errcomp.caveats._registry import caveat
from errcomp.caveats._statistics import factor_errors, paired_p
from errcomp.caveats.claim import UNKNOWN, kinds_of_references
from errcomp.caveats.comparisons import GROUP_KEYS
from errcomp.errors import InputError
from errcomp.results import Caveat
from errcomp.stats.significance import holm
from errcomp.tables.configurations import cannot_match

if TYPE_CHECKING:
    from errcomp.caveats._case import Floats, Ints
    from errcomp.tables import Pairs

    _Tried = TypeVar("_Tried", bound=tuple[float, *tuple[Any, ...]])

#: Smallest share of all configurations that a tool must cover to be comparable.
COVERED = 0.9
#: Difference of the two bases that is visible in per cent without decimals.
POINT = 0.01
#: A smaller error of a total is rounding.
_ROUNDING = 1e-12


class Tools:
    """The tools of a table: the tool and the configuration of each row.

    Parameters
    ----------
    pairs : Pairs
    tool_key : str
        The column that names them.
    keys : sequence of str
        Columns that together name a configuration; found automatically if empty.
    """

    def __init__(self, pairs: Pairs, tool_key: str, keys: Sequence[str] = ()) -> None:
        case = Case(pairs)
        codes, names = case.codes(tool_key)
        self.case = case
        self.tool_key = tool_key
        self.names = [str(name) for name in names]
        self.rows: list[Ints] = [np.flatnonzero(codes == i) for i in range(len(names))]
        #: Columns that name the tool, not the configuration, so they cannot match rows.
        self.unmatched = () if keys else self._of_one_value()
        chosen = keys or configuration(case, without=(tool_key, *self.unmatched))
        self.keys = tuple(chosen)
        # Without keys, every row is its own configuration.
        self.named = bool(self.keys)
        self.configurations: Ints = case.cells(self.keys) if self.keys else np.arange(case.n)

    def _of_one_value(self) -> tuple[str, ...]:
        """Return the columns that are constant within each tool and differ between tools."""
        if len(self.names) < 2:
            return ()
        codes = {key: self.case.codes(key)[0] for key in self.case.pairs.keys}
        return tuple(
            key
            for key, code in codes.items()
            if key != self.tool_key and cannot_match(key, [code[rows] for rows in self.rows])
        )

    def disjoint(self) -> list[str]:
        """Return the keys without a value that all tools have."""
        keys = []
        for key in self.keys:
            code = self.case.codes(key)[0]
            if not set.intersection(*(set(code[rows].tolist()) for rows in self.rows)):
                keys.append(key)
        return keys

    def own(self, tool: int) -> float:
        """Return the MAPE of a tool on all its rows."""
        return float(self.case.ape[self.rows[tool]].mean())

    def on(self, tool: int, configurations: Ints) -> Ints:
        """Return the rows of a tool that are one of these configurations."""
        rows = self.rows[tool]
        return rows[np.isin(self.configurations[rows], configurations)]

    def common(self, tools: list[int]) -> Ints:
        """Return the configurations that all these tools have."""
        shared = np.unique(self.configurations)
        for tool in tools:
            shared = np.intersect1d(shared, self.configurations[self.rows[tool]])
        return shared

    def by_configuration(self, rows: Ints, values: Floats) -> Floats:
        """Mean of the values in each configuration of the rows, in the order of these."""
        cell = np.unique(self.configurations[rows], return_inverse=True)[1]
        return np.bincount(cell, weights=values) / np.bincount(cell)

    def two(self) -> Iterator[tuple[int, int]]:
        """Iterate over every pair of tools."""
        return combinations(range(len(self.names)), 2)

    def matched(self) -> Iterator[tuple[tuple[int, int], list[Ints]]]:
        """Iterate over pairs of tools that share two configurations, with the rows of either."""
        for two in self.two():
            shared = self.common([*two])
            if len(shared) > 1:
                yield two, [self.on(tool, shared) for tool in two]


def _surest(tried: list[_Tried]) -> tuple[float, _Tried]:
    """Return the comparison of two tools with the smallest p-value, and that after correction."""
    corrected = holm([attempt[0] for attempt in tried])
    return min(zip(corrected, tried, strict=True), key=lambda item: item[0])


@caveat(
    "coverage-differs",
    "The tools were run on different configurations",
    scope="tools",
    order=250,
    why="Fires when a tool has less than 90 % of all configurations in the table, or when its MAPE "
    "on the common configurations differs from its MAPE on all its own configurations by a factor "
    "of at least 1.25. No significance test is involved.",
    remedy="Compare the tools on their common configurations, and report how many configurations "
    "each tool covers.",
)
def coverage_differs(tools: Tools) -> Finding | None:
    """Find tools that were run on different configurations."""
    if not tools.named:
        return None
    everyone = list(range(len(tools.names)))
    total = len(np.unique(tools.configurations))
    counts = [len(np.unique(tools.configurations[tools.rows[t]])) for t in everyone]
    shared = tools.common(everyone)
    own = [tools.own(t) for t in everyone]
    # Without common configurations there is no common figure: each tool keeps its own.
    common = [_mean(tools, tools.on(t, shared)) for t in everyone] if len(shared) else own
    moved = [max(a, b) >= MATERIAL * min(a, b) for a, b in zip(own, common, strict=True) if a != b]
    if min(counts) >= COVERED * total and not any(moved):
        return None
    most = counts.index(max(counts))
    least = max(t for t in everyone if counts[t] == min(counts))
    message = (
        f"Of {total:,} configurations, {tools.names[most]} has {counts[most]:,} and "
        f"{tools.names[least]} {counts[least]:,}; "
    )
    if len(shared):
        message += (
            f"on the {len(shared):,} that all tools have, the MAPE of {tools.names[most]} is "
            f"{percent(common[most])} instead of {percent(own[most])}."
        )
    else:
        disjoint = tools.disjoint()
        why = f" (nor any value of {' or '.join(disjoint)})" if disjoint else ""
        message += (
            f"the tools have no configuration in common{why}, so their metrics are not comparable."
        )
    if tools.unmatched:
        message += (
            f" Not used to match rows: {', '.join(tools.unmatched)} (constant within each tool, "
            "different between tools)."
        )
    evidence = {
        "keys": list(tools.keys),
        "not_matched_by": list(tools.unmatched),
        "configurations": total,
        "common": len(shared),
        "tools": {
            name: {
                "configurations": counts[t],
                "mape_own": own[t],
                "mape_common": common[t] if len(shared) else None,
            }
            for t, name in enumerate(tools.names)
        },
    }
    return Finding(Caveat("coverage-differs", message, evidence))


def _mean(tools: Tools, rows: Ints) -> float:
    return float(tools.case.ape[rows].mean())


@caveat(
    "simpsons-paradox",
    "Better in every group, worse overall",
    scope="tools",
    order=260,
    why="Fires when one of two tools has the lower MAPE in every group by device, model, mode or "
    "kernel_class that both tools have, but the higher MAPE over these groups together. This "
    "cannot happen when both tools have the same configurations. No significance test is involved.",
    remedy="Compare within groups, or by the mean over groups.",
)
def simpsons_paradox(tools: Tools) -> Finding | None:
    """Find a tool that is better in every group, but worse over all of them together."""
    case = tools.case
    for key in case.varying(GROUP_KEYS):
        codes, values = case.codes(key)
        for a, b in tools.two():
            shared = np.intersect1d(codes[tools.rows[a]], codes[tools.rows[b]])
            if len(shared) < 2:
                continue
            rows = [r[np.isin(codes[r], shared)] for r in (tools.rows[a], tools.rows[b])]
            pooled = [float(case.ape[r].mean()) for r in rows]
            groups = np.array([[case.ape[r[codes[r] == g]].mean() for g in shared] for r in rows])
            better, worse = (0, 1) if pooled[0] > pooled[1] else (1, 0)
            if pooled[0] == pooled[1] or not (groups[better] < groups[worse]).all():
                continue
            first, second = (tools.names[(a, b)[i]] for i in (better, worse))
            message = (
                f"{first} has a lower MAPE than {second} in each of {len(shared)} groups of {key}, "
                f"but a higher one overall ({percent(pooled[better])} against "
                f"{percent(pooled[worse])}): the pairs of the two tools are distributed "
                "differently over the groups."
            )
            evidence = {
                "key": key,
                "better": first,
                "worse": second,
                "mape_better": pooled[better],
                "mape_worse": pooled[worse],
                "groups": {
                    str(values[g]): [float(groups[better][i]), float(groups[worse][i])]
                    for i, g in enumerate(shared)
                },
            }
            return Finding(Caveat("simpsons-paradox", message, evidence))
    return None


@caveat(
    "under-over-asymmetry",
    "The ranking depends on how much low predictions are penalised",
    scope="tools",
    order=270,
    why="Fires when one tool has the lower MAPE and the other the lower mean error as a factor, "
    "max(p/m, m/p) - 1, on their common configurations. Both differences must be significant "
    "(paired t-tests, corrected for the number of pairs of tools by Holm's method).",
    remedy="Rank by the log-ratio of prediction to measurement, or give both rankings.",
)
def ranking_asymmetry(tools: Tools) -> Finding | None:
    """Find two tools whose order changes if a factor too low counts like one too high."""
    tried: list[tuple[float, tuple[int, int], list[float]]] = []
    every = factor_errors(tools.case.predicted, tools.case.measured)
    for (a, b), rows in tools.matched():
        apes = [tools.by_configuration(r, tools.case.ape[r]) for r in rows]
        factors = [tools.by_configuration(r, every[r]) for r in rows]
        if not np.isfinite(factors).all():
            continue
        gaps = [float((x[0] - x[1]).mean()) for x in (apes, factors)]
        if gaps[0] * gaps[1] >= 0 or min(np.ptp(x[0] - x[1]) for x in (apes, factors)) == 0:
            tried.append((1.0, (a, b), []))
            continue
        p = max(paired_p(x[0], x[1]) for x in (apes, factors))
        tried.append((p, (a, b), [float(v.mean()) for x in (apes, factors) for v in x]))
    if not tried:
        return None
    p, (_, (a, b), figures) = _surest(tried)
    if not figures:
        return NOTHING
    if figures[0] > figures[1]:
        a, b, figures = b, a, [figures[i] for i in (1, 0, 3, 2)]
    message = (
        f"{tools.names[a]} beats {tools.names[b]} by MAPE ({percent(figures[0])} against "
        f"{percent(figures[1])}), but loses by the mean error as a factor, max(p/m, m/p) - 1 "
        f"({percent(figures[2])} against {percent(figures[3])}), which, unlike MAPE, does not "
        "favour predictions that are too low."
    )
    names = ("mape_first", "mape_second", "symmetric_first", "symmetric_second")
    evidence = {
        "first": tools.names[a],
        "second": tools.names[b],
        **dict(zip(names, figures, strict=True)),
    }
    return Finding(Caveat("under-over-asymmetry", message, evidence), p)


@dataclass(frozen=True, slots=True)
class RelativeDifference:
    """Relative difference of two numbers, on either base.

    Attributes
    ----------
    first, second : float
        The numbers.
    of_first : float
        ``(second - first) / first``, a fraction.
    of_second : float
        ``(first - second) / second``, a fraction.
    """

    first: float
    second: float
    of_first: float
    of_second: float


def relative_difference(first: float, second: float) -> RelativeDifference:
    r"""Relative difference of two numbers on both bases, which are never the same.

    .. math:: d_1 = (b - a) / a, \qquad d_2 = (a - b) / b = -d_1 / (1 + d_1)

    Definition: the base is the divisor. "b is 10.7 % lower than a" has base a, "a is 12.0 % higher
    than b" has base b, and both mean the same. Misleads when the base is not named.

    Parameters
    ----------
    first, second : float
        Same unit, finite, greater than zero.

    Returns
    -------
    RelativeDifference

    Raises
    ------
    InputError
        A number is not finite or not positive.

    References
    ----------
    None: elementary arithmetic.

    Examples
    --------
    >>> d = relative_difference(0.177, 0.158)
    >>> round(d.of_first, 3), round(d.of_second, 3)
    (-0.107, 0.12)
    """
    for name, value in (("first", first), ("second", second)):
        if not np.isfinite(value) or value <= 0:
            raise InputError(f"{name} must be finite and positive, got {value!r}")
    return RelativeDifference(first, second, (second - first) / first, (first - second) / second)


@caveat(
    "other-base",
    "A relative difference depends on which tool is the base",
    scope="tools",
    order=290,
    why="Fires when the relative difference between the MAPEs of the two best tools depends on the "
    "base by at least one percentage point: if A is 10 % below B, then B is 11 % above A. Does not "
    "fire if one MAPE is at least twice the other, because that is usually quoted as a factor. No "
    "significance test is involved.",
    remedy="State which tool is the base, or quote both errors.",
)
def other_base(tools: Tools) -> Finding | None:
    """Show both bases of the difference between the two best tools, if they visibly differ."""
    shared = tools.common(list(range(len(tools.names))))
    figures = [
        _mean(tools, tools.on(t, shared)) if len(shared) else tools.own(t)
        for t in range(len(tools.names))
    ]
    best, other = (int(i) for i in np.argsort(figures, kind="stable")[:2])
    if figures[best] <= 0:
        return None
    gap = relative_difference(figures[other], figures[best])
    # A factor of two or more is usually quoted as a factor, which has a single base.
    if gap.of_second >= 1 or gap.of_second + gap.of_first < POINT:
        return None
    message = (
        f"{tools.names[best]}'s MAPE ({percent(figures[best])}) is {percent(-gap.of_first)} below "
        f"{tools.names[other]}'s ({percent(figures[other])}); {tools.names[other]}'s is "
        f"{percent(gap.of_second)} above {tools.names[best]}'s. State which of the two is the base."
    )
    evidence = {
        "best": tools.names[best],
        "other": tools.names[other],
        "mape_best": figures[best],
        "mape_other": figures[other],
        "below": -gap.of_first,
        "above": gap.of_second,
    }
    return Finding(Caveat("other-base", message, evidence))


@caveat(
    "level-mismatch",
    "The tools predict different levels",
    scope="tools",
    order=230,
    why="Fires when the pairs of two tools are at different levels. No significance test is "
    "involved.",
    remedy="Rank only tools that predict the same level.",
)
def level_differs(tools: Tools) -> Finding | None:
    """Find tools whose pairs are at different levels."""
    return _kinds_differ(tools, "level", "level-mismatch", lambda values: sorted(map(str, values)))


@caveat(
    "reference-mismatch",
    "The tools were compared with different references",
    scope="tools",
    order=240,
    why="Fires when the pairs of two tools have different references (column `reference`). No "
    "significance test is involved.",
    remedy="Rank only tools that were compared with the same reference.",
)
def reference_differs(tools: Tools) -> Finding | None:
    """Find tools with different known references."""

    def known(values: Iterable[Any]) -> list[str]:
        return [kind for kind in kinds_of_references(values) if kind != UNKNOWN]

    return _kinds_differ(tools, "reference", "reference-mismatch", known)


def _kinds_differ(
    tools: Tools, key: str, code: str, kinds_of: Callable[[Iterable[Any]], list[str]]
) -> Finding | None:
    if key not in tools.case.pairs.keys:
        return None
    values = tools.case.pairs.column(key)
    every = {
        name: kinds_of(set(values[rows].tolist()))
        for name, rows in zip(tools.names, tools.rows, strict=True)
    }
    stated = {name: kinds for name, kinds in every.items() if kinds}
    if not stated:
        return None
    first = next(iter(stated))
    other = next((name for name, kinds in stated.items() if kinds != stated[first]), None)
    if other is None:
        return None
    message = (
        f"The tools differ in {key} ({first}: {' and '.join(stated[first])}; {other}: "
        f"{' and '.join(stated[other])}): their metrics are not comparable."
    )
    return Finding(Caveat(code, message, {"tools": stated}))


@caveat(
    "cancelling-errors",
    "The ranking depends on whether errors can cancel",
    scope="tools",
    order=280,
    why="Fires when one tool has the lower MAPE (paired t-test, corrected for the number of pairs "
    "of tools by Holm's method), but the error of its total is at least 1.25 times the error of "
    "the other tool's total, on their common configurations. The message says if the difference "
    "between the totals could be chance.",
    remedy="Rank by the error that matters for your use (of single pairs or of the total), and "
    "compare both tools with a constant prediction.",
)
def ranking_by_total(tools: Tools) -> Finding | None:
    """Find two tools of which one is better pair by pair, and the other in the sum."""
    case = tools.case
    tried: list[tuple[float, tuple[Any, ...]]] = []
    largest = float(case.measured.max())
    relative, error = case.ape, (case.predicted - case.measured) / largest
    for two, rows in tools.matched():
        apes = [tools.by_configuration(r, relative[r]) for r in rows]
        errors = [tools.by_configuration(r, error[r]) for r in rows]
        scale = [float(tools.by_configuration(r, case.measured[r] / largest).sum()) for r in rows]
        totals = [float(e.sum()) / s for e, s in zip(errors, scale, strict=True)]
        first, second = (0, 1) if apes[0].mean() < apes[1].mean() else (1, 0)
        if abs(totals[first]) < max(MATERIAL * abs(totals[second]), _ROUNDING):
            tried.append((1.0, ()))
            continue
        # Closer to zero is better: each error counts with the sign of its own total.
        sides = [math.copysign(1.0, t) * e for t, e in zip(totals, errors, strict=True)]
        means = [float(apes[i].mean()) for i in (first, second)]
        chance = paired_p(sides[0], sides[1])
        names = [tools.names[two[i]] for i in (first, second)]
        in_order = (totals[first], totals[second])
        tried.append((paired_p(apes[0], apes[1]), (names, means, in_order, chance)))
    return _reversed_ranking(tried, case.level) if tried else None


def _reversed_ranking(tried: list[tuple[float, tuple[Any, ...]]], level: float) -> Finding:
    p, (_, best) = _surest(tried)
    if not best:
        return NOTHING
    (first, second), means, totals, chance = best
    sure = "" if chance <= 1 - level else f"; this difference may be chance, p = {chance:.2g}"
    message = (
        f"{first} beats {second} pair by pair (MAPE {percent(means[0])} against "
        f"{percent(means[1])}), but loses in the sum ({signed(totals[0])} against "
        f"{signed(totals[1])}{sure}), where errors of opposite sign cancel."
    )
    evidence = {
        "first": first,
        "second": second,
        "mape_first": means[0],
        "mape_second": means[1],
        "total_error_first": totals[0],
        "total_error_second": totals[1],
        "p_value_of_totals": chance,
    }
    return Finding(Caveat("cancelling-errors", message, evidence), p)
