"""Checks of what a sum hides: errors of opposite sign cancel in it, and rank tools otherwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from errcomp.caveats._case import MATERIAL, NOTHING, Finding, percent
from errcomp.caveats._statistics import paired_p
from errcomp.caveats.comparisons import groupings
from errcomp.results import Caveat
from errcomp.stats.multiple import holm

if TYPE_CHECKING:
    from errcomp.caveats._case import Case, Floats, Ints
    from errcomp.caveats.tools import Tools

__all__ = ["claimed_total", "groups_that_cancel", "ranking_by_total"]

#: At least half of what the groups are off has to cancel.
CANCELLED = 0.5
#: Fewer pairs do not tell that the total of a group is off.
LEAST_PER_GROUP = 5
#: A total that is off by less than this is off by rounding.
_ROUNDING = 1e-12
#: Times on several devices are alternatives; nobody adds them up.
NOT_ADDED = ("device",)


def signed(value: float) -> str:
    """Write a fraction as percent with its sign.

    Examples
    --------
    >>> signed(0.0514), signed(-0.09)
    ('+5.14 %', '-9.00 %')
    """
    return f"{'+' if value > 0 else ''}{percent(value)}"


def claimed_total(case: Case) -> Finding | None:
    """Find a claim that is the error of a total, or that no average of these errors prints as."""
    claim = case.claim
    low, high = (getattr(claim, end, None) for end in ("low", "high"))
    # A bound or a range is met by many figures: that one of them is the total says nothing.
    if low is None or high is None or getattr(claim, "kind", "error") != "error":
        return None
    total = case.total_error
    averages = case.averages
    said = getattr(claim, "aggregation", None) == "total"
    if not said and not (
        _is_one_number(claim)
        and low <= abs(total) < high
        and not any(low <= value < high for value in averages.values())
    ):
        return None
    if case.mape < MATERIAL * abs(total):
        return None
    weighted = averages["weighted mean"]
    is_one = "is" if said else "prints as"
    message = (
        f"The claim {case.claimed} {is_one} the error of the total or of means "
        f"({signed(total)}), where errors of opposite sign cancel: single pairs are "
        f"{percent(case.mape)} off (weighted {percent(weighted)})."
    )
    evidence = {"total_error": total, "mape": case.mape, "wape": weighted, "stated": said}
    return Finding(Caveat("cancelling-errors", message, evidence))


def _is_one_number(claim: object) -> bool:
    printed = str(getattr(claim, "printed", "")).strip()
    return printed[:1].isdigit() and not any(c in printed for c in "-–—")


class _Groups(NamedTuple):
    """Totals of groups: how far each is off and how surely, and how far all together.

    Attributes
    ----------
    off, deviation, share : ndarray, shape (groups,)
        Error of each total, its standard error (of a ratio of sums), and its share of all.
    size : ndarray of int, shape (groups,)
        Pairs in each.
    together : float
        Error of the total of all.
    """

    keys: tuple[str, ...]
    codes: Ints
    size: Ints
    off: Floats
    deviation: Floats
    share: Floats
    together: float

    @property
    def gross(self) -> float:
        """Mean over groups of the size of the error of their total, weighted by their size."""
        return float((np.abs(self.off) * self.share).sum())


def groups_that_cancel(case: Case) -> Finding | None:
    """Find groups whose totals are off to either side, so that the sum of all looks right."""
    tried = []
    for grouping in groupings(case):
        keys = tuple(key for key in grouping if key not in NOT_ADDED)
        if not case.varying(keys):
            continue
        found = _groups(case, keys)
        if np.count_nonzero(found.size >= LEAST_PER_GROUP) > 1:
            tried.append((found, _both_sides(found)))
    if not tried:
        return None
    corrected = holm([p for _, p in tried])
    cancelling = [
        (p, found)
        for p, (found, _) in zip(corrected, tried, strict=True)
        if max(abs(found.together), _ROUNDING) < CANCELLED * found.gross
        and found.gross >= MATERIAL * _by_chance(found)
    ]
    if not cancelling:
        return NOTHING
    p, found = min(cancelling, key=lambda item: item[0])
    lowest, highest = found.off.argmin(), found.off.argmax()
    names = [_name(case, found, group) for group in (lowest, highest)]
    ends = [float(found.off[group]) for group in (lowest, highest)]
    evidence = {
        "keys": list(found.keys),
        "groups": len(found.off),
        "total_error": found.together,
        "mean_group_total_error": found.gross,
        "lowest": names[0],
        "lowest_total_error": ends[0],
        "highest": names[1],
        "highest_total_error": ends[1],
    }
    message = (
        f"Errors cancel between groups of {' × '.join(found.keys)}: the sum of all is off by "
        f"{signed(found.together)}, the sums of the {len(found.off)} groups by "
        f"{percent(found.gross)} on average (weighted by size), from {signed(ends[0])} "
        f"({names[0]}) to {signed(ends[1])} ({names[1]})."
    )
    return Finding(Caveat("cancelling-errors", message, evidence), p)


def _groups(case: Case, keys: tuple[str, ...]) -> _Groups:
    codes = case.cells(keys)
    size = case.sizes(codes)
    measured, off, scatter = case.totals(codes)
    # One pair alone has no standard error, and is never sure.
    scatter = np.where(size > 1, np.sqrt(size / np.maximum(size - 1, 1)) * scatter, np.inf)
    return _Groups(
        keys=keys,
        codes=codes,
        size=size,
        off=off,
        deviation=scatter / measured,
        share=measured / measured.sum(),
        together=case.total_error,
    )


def _both_sides(found: _Groups) -> float:
    """P-value of: one group's total is truly too low and another's too high (Bonferroni)."""
    from scipy.stats import t

    enough = found.size >= LEAST_PER_GROUP
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(found.off == 0, 0.0, found.off / found.deviation)[enough]
    df = found.size[enough] - 1
    sides = [float(np.min(t.sf(side * statistic, df))) for side in (1, -1)]
    return min(1.0, max(sides) * len(df))


def _by_chance(found: _Groups) -> float:
    """Mean size of the groups' errors if all were off as all together: a folded normal each."""
    from scipy.stats import norm

    spread = np.where(found.size > 1, found.deviation, 0.0)
    mean = abs(found.together)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread > 0, mean / spread, np.inf)
    folded = 2 * spread * norm.pdf(ratio) + mean * (1 - 2 * norm.sf(ratio))
    return float((folded * found.share).sum())


def _name(case: Case, found: _Groups, group: np.intp) -> str:
    row = int(np.flatnonzero(found.codes == group)[0])
    return " ".join(str(case.pairs.column(key)[row]) for key in found.keys)


def ranking_by_total(tools: Tools) -> Finding | None:
    """Find two tools of which one errs less pair by pair, and the other in the sum."""
    case = tools.case
    found: list[tuple[float, tuple[Any, ...]]] = []
    largest = float(case.measured.max())
    relative, error = case.ape, (case.predicted - case.measured) / largest
    for a, b in tools.two():
        shared = tools.common([a, b])
        rows = [tools.on(tool, shared) for tool in (a, b)]
        if len(shared) < 2:
            continue
        apes = [tools.by_configuration(r, relative[r]) for r in rows]
        errors = [tools.by_configuration(r, error[r]) for r in rows]
        scale = [float(tools.by_configuration(r, case.measured[r] / largest).sum()) for r in rows]
        totals = [float(e.sum()) / s for e, s in zip(errors, scale, strict=True)]
        first, second = (0, 1) if apes[0].mean() < apes[1].mean() else (1, 0)
        if abs(totals[first]) <= max(MATERIAL * abs(totals[second]), _ROUNDING):
            found.append((1.0, ()))
            continue
        # Towards zero is better: each error counts by the sign of its own total.
        sides = [math.copysign(1.0, t) * e for t, e in zip(totals, errors, strict=True)]
        means = [float(apes[i].mean()) for i in (first, second)]
        chance = paired_p(sides[0], sides[1])
        names = [tools.names[(a, b)[i]] for i in (first, second)]
        in_order = (totals[first], totals[second])
        found.append((paired_p(apes[0], apes[1]), (names, means, in_order, chance)))
    return _reversed_ranking(found, case.level)


def _reversed_ranking(found: list[tuple[float, tuple[Any, ...]]], level: float) -> Finding | None:
    if not found:
        return None
    p, (_, best) = min(
        zip(holm([f[0] for f in found]), found, strict=True), key=lambda item: item[0]
    )
    if not best:
        return NOTHING
    (first, second), means, totals, chance = best
    sure = "" if chance <= 1 - level else f"; that may be chance, p = {chance:.2g}"
    message = (
        f"{first} beats {second} pair by pair (MAPE {percent(means[0])} against "
        f"{percent(means[1])}) and loses in the sum ({signed(totals[0])} against "
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
