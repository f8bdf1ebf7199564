"""Checks of how the errors are distributed: averages, tail, sign, size of the quantities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from errcomp.caveats._case import (
    AVERAGES,
    MATERIAL,
    NOTHING,
    SIMULATED,
    Finding,
    percent,
    plural,
)
from errcomp.caveats._statistics import simulated_p
from errcomp.caveats._usual import (
    largest_over_mean,
    p_of_averages,
    p_of_largest,
    p_of_weighted_mean,
    p_of_worst,
    share_of_worst,
)
from errcomp.results import Caveat, format_number

if TYPE_CHECKING:
    from errcomp.caveats._case import Case, Floats

__all__ = [
    "aggregation_matters",
    "agreeing",
    "asymmetric_error",
    "one_sided",
    "small_quantities",
    "tail",
]

#: Gaussian errors give a mean 1.51 times their geometric mean, Laplace errors 1.78 times: twice is
#: more than their shape.
FACTOR = 2.0
#: Twice as many errors of one sign as of the other.
ONE_SIDE = 2 / 3
#: A factor that removes less than half a point is no remedy.
WORTH_POINTS = 0.005


def aggregation_matters(case: Case) -> Finding | None:
    """Find errors whose mean, median, geometric mean and weighted mean tell different stories."""
    claim = case.claim
    if case.n < 3 or case.mape == 0 or getattr(claim, "aggregation", None) == "not stated":
        return None
    figures = case.averages
    factor = _spread(list(figures.values()))
    fits = agreeing(case)
    evidence = {**{k.replace(" ", "_"): v for k, v in figures.items()}, "factor": factor}
    written = ", ".join(f"{name} {percent(value)}" for name, value in figures.items())
    if fits and "mean" not in fits:
        message = f"The claim {case.claimed} fits the {' and the '.join(fits)} only: {written}."
        return Finding(Caveat("aggregation-matters", message, {**evidence, "fits": fits}))
    if factor < FACTOR:
        return NOTHING
    p = _spread_p(case, factor)
    message = (
        f"{written[0].upper()}{written[1:]}: the way of averaging alone moves the figure "
        f"by a factor of {factor:.1f}."
    )
    return Finding(Caveat("aggregation-matters", message, evidence), p)


def agreeing(case: Case) -> list[str]:
    """Name the averages that would be printed as the claim was; none without a claimed figure."""
    if getattr(case.claim, "kind", "error") != "error":
        return []
    contains = getattr(case.claim, "contains", None)
    if contains is None:
        low, high = (getattr(case.claim, end, None) for end in ("low", "high"))
        if low is None or high is None:
            return []
        return [name for name in AVERAGES if low <= case.averages[name] < high]
    return [name for name in AVERAGES if contains(case.averages[name])]


def _spread(figures: list[float]) -> float:
    # An exact prediction makes the geometric mean 0: that says nothing about the other errors.
    positive = [f for f in figures if f > 0]
    return max(positive) / min(positive)


def _spread_p(case: Case, factor: float) -> float:
    """P-value of the largest ratio of averages if errors were Laplace with one scale."""
    if case.simulates and case.weights is not None:
        errors = case.laplace_errors
        every = np.stack([*_unweighted(errors), errors @ case.weights])
        return simulated_p(factor, every.max(axis=0) / every.min(axis=0))
    # The weights are not at hand, or the limit holds: two tests, each at half the level.
    unweighted = _spread([v for name, v in case.averages.items() if name != "weighted mean"])
    p = p_of_weighted_mean(case.averages["weighted mean"] / case.mape, case.weights_spread)
    if case.n > SIMULATED:
        return min(1.0, 2 * min(p, p_of_averages(unweighted, case.n)))
    every = _unweighted(case.laplace_errors)
    return min(1.0, 2 * min(p, simulated_p(unweighted, every.max(axis=0) / every.min(axis=0))))


def _unweighted(errors: Floats) -> Floats:
    """Return mean, median and geometric mean of each sample of errors."""
    averages = [errors.mean(axis=1), np.median(errors, axis=1), np.exp(np.log(errors).mean(axis=1))]
    return np.stack(averages)


def tail(case: Case) -> Finding | None:
    """Find a few errors that are larger, beside the others, than errors of usual shapes are."""
    if case.n < 3 or case.mape == 0:
        return None
    worst = math.ceil(case.n / 10)
    largest = case.largest
    ratio = largest / case.mape
    share = case.share_of_worst(worst)
    usual, p_largest = _largest(case, ratio)
    usual_share, p_share = _worst(case, worst, share)
    found = [p_largest] if ratio >= MATERIAL * usual else []
    # Of ten or fewer the worst tenth is the largest: one test, not two.
    if worst > 1 and _beside_rest(share) >= MATERIAL * _beside_rest(usual_share):
        found.append(p_share)
    if not found:
        return NOTHING
    p = min(1.0, min(found) * (2 if worst > 1 else 1))
    below = share_below_largest(case.n, case.level)
    message = (
        f"The worst {worst:,} of {case.n:,} make {100 * share:.0f} % of the error; the largest, "
        f"{percent(largest)}, is {ratio:.1f} times the mean. "
        f"{_stay_below(below, 'independent cases', case.level)}"
    )
    evidence = {
        "max_ape": largest,
        "mape": case.mape,
        "max_over_mean": ratio,
        "worst": worst,
        "max_over_mean_usual": usual,
        "share_of_worst": share,
        "share_of_worst_usual": usual_share,
        "share_below_max": below,
        "level": case.level,
    }
    return Finding(Caveat("tail", message, evidence), p)


def _beside_rest(share: float) -> float:
    """Return the errors of some as a multiple of all the others'."""
    return share / (1 - share) if share < 1 else math.inf


def _largest(case: Case, ratio: float) -> tuple[float, float]:
    """Median of maximum over mean in errors of usual shapes, and p-value of this ratio.

    Of Laplace errors or Student t errors with 5 degrees of freedom, whichever has it the larger.
    """
    if case.n > SIMULATED:
        return largest_over_mean(case.n), p_of_largest(ratio, case.n)
    ratios = [e.max(axis=1) / e.mean(axis=1) for e in (case.laplace_errors, case.student_errors)]
    return max(float(np.median(r)) for r in ratios), max(simulated_p(ratio, r) for r in ratios)


def _worst(case: Case, worst: int, share: float) -> tuple[float, float]:
    """Median of the share of so many worst in Laplace errors, and p-value of this share."""
    if case.n > SIMULATED:
        return share_of_worst(worst / case.n), p_of_worst(share, worst / case.n, case.n)
    errors = case.laplace_errors
    last = np.partition(errors, case.n - worst, axis=1)[:, case.n - worst :]
    shares = last.sum(axis=1) / errors.sum(axis=1)
    return float(np.median(shares)), simulated_p(share, shares)


def share_below_largest(n: int, level: float) -> float:
    r"""Return the share of a population that stays below the largest of n independent draws.

    At least this share with confidence :math:`\gamma`, whatever the distribution:
    :math:`(1 - \gamma)^{1/n}` (Wilks 1941).

    Examples
    --------
    >>> round(share_below_largest(59, 0.95), 3)
    0.95
    """
    return float((1 - level) ** (1 / n))


def _stay_below(share: float, what: str, level: float) -> str:
    confidence = f"{100 * level:.3g} % confidence"
    return f"At least {100 * share:.3g} % of {what} stay below it ({confidence})."


def in_clusters(found: Caveat, key: str, groups: int, level: float) -> Caveat:
    """Restate what stays below the largest error where pairs of one cluster err alike.

    A cluster counts once, by its largest error: what is drawn independently are whole clusters.
    """
    share = share_below_largest(groups, level)
    before = _stay_below(found.evidence["share_below_max"], "independent cases", level)
    after = _stay_below(share, f"{key}s like these {groups:,}, with all their cases,", level)
    evidence = {**found.evidence, "cluster": key, "share_of_clusters_below_max": share}
    return Caveat(found.code, found.message.replace(before, after), evidence)


def one_sided(case: Case) -> Finding | None:
    """Find errors of one sign, and say what one factor would remove from cases it has not seen."""
    from scipy.stats import binomtest

    high, low = case.sides
    if high + low == 0:
        return None
    if max(high, low) < ONE_SIDE * case.n:
        return NOTHING
    p = float(binomtest(high, high + low).pvalue)
    side = "high" if high > low else "low"
    tried = case.out_of_sample_factor()
    factor, after = tried or (None, None)
    evidence = {
        "share": max(high, low) / case.n,
        "side": side,
        "n": case.n,
        "factor": factor,
        "mape_before": case.mape,
        "mape_after": after,
    }
    message = f"{max(high, low):,} of {case.n:,} predictions are too {side}; "
    if tried is None:
        message += "whether one factor would help takes single pairs."
    elif factor is None or after is None:
        message += "most are zero or negative, so that no factor can correct them."
    elif case.mape - after >= WORTH_POINTS:
        message += (
            f"multiplying by {format_number(factor, 3)} would cut the MAPE from "
            f"{percent(case.mape)} to {percent(after)} (leaving out one pair at a time)."
        )
    else:
        message += (
            f"yet no single factor helps: leaving out one pair at a time, the MAPE goes from "
            f"{percent(case.mape)} to {percent(after)}."
        )
    return Finding(Caveat("one-sided", message, evidence), p)


def small_quantities(case: Case) -> Finding | None:
    """Find a MAPE that is made by the smallest measurements."""
    from scipy.stats import rankdata, spearmanr

    weighted = case.averages["weighted mean"]
    if case.n < 4 or case.mape == 0 or np.ptp(case.measured) == 0 or np.ptp(case.ape) == 0:
        return None
    if case.mape < MATERIAL * weighted:
        return NOTHING
    found = spearmanr(case.measured, case.ape, alternative="less")
    rho, p = float(found.statistic), float(found.pvalue)
    if case.n <= SIMULATED:
        errors, sizes = rankdata(case.ape), rankdata(case.measured)
        p = simulated_p(-float(errors @ sizes), -(errors[case.permutations] @ sizes))
    smallest = np.argsort(case.measured, kind="stable")[: max(1, case.n // 4)]
    of_error = float(case.scaled[smallest].sum() / case.scaled.sum())
    relative = case.measured / case.measured.max()
    of_total = float(relative[smallest].sum() / relative.sum())
    message = (
        f"The smallest {plural(len(smallest), 'measurement')} make {100 * of_error:.0f} % of the "
        f"MAPE and {percent(of_total)} of the total: MAPE {percent(case.mape)}, weighted by "
        f"size {percent(weighted)}."
    )
    evidence = {
        "mape": case.mape,
        "wape": weighted,
        "rank_correlation": rho,
        "n_smallest": len(smallest),
        "share_of_error": of_error,
        "share_of_total": of_total,
    }
    return Finding(Caveat("small-quantities", message, evidence), p)


def asymmetric_error(case: Case) -> Finding | None:
    """Find a MAPE that looks small because under-prediction cannot cost more than 100 %."""
    if bad := case.not_positive:
        message = (
            f"{plural(bad, 'prediction')} of {case.n:,} {'is' if bad == 1 else 'are'} zero or "
            "negative; a zero counts as 100 % wrong in the MAPE, as no factor could make it right."
        )
        return Finding(Caveat("under-over-asymmetry", message, {"n_not_positive": bad}))
    symmetric = case.symmetric
    if case.mape == 0 or symmetric < MATERIAL * case.mape:
        return None
    under = case.sides[1] / case.n
    message = (
        f"{100 * under:.0f} % of the predictions are too low, which APE caps at 100 %: counted as "
        f"factors either way, the mean error is {percent(symmetric)}, not {percent(case.mape)}."
    )
    evidence = {"mape": case.mape, "symmetric": symmetric, "share_under": under}
    return Finding(Caveat("under-over-asymmetry", message, evidence))
