"""Checks of how the errors are distributed: averages, tail, sign, size of the quantities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from errcomp.caveats._case import (
    AVERAGES,
    GAUSS_CV,
    MATERIAL,
    NOTHING,
    SIMULATED,
    Finding,
    percent,
    plural,
)
from errcomp.caveats._statistics import simulated_p
from errcomp.results import Caveat, format_number

if TYPE_CHECKING:
    from errcomp.caveats._case import Case, Floats

__all__ = [
    "aggregation_matters",
    "agreeing",
    "asymmetric_error",
    "factor_errors",
    "one_sided",
    "out_of_sample_factor",
    "small_quantities",
    "tail",
]

#: Gaussian errors give a mean 1.51 times their geometric mean: twice is more than their shape.
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
    low, high = (getattr(case.claim, end, None) for end in ("low", "high"))
    if low is None or high is None:
        return []
    return [name for name in AVERAGES if low <= case.averages[name] < high]


def _spread(figures: list[float]) -> float:
    # An exact prediction makes the geometric mean 0: that says nothing about the other errors.
    positive = [f for f in figures if f > 0]
    return max(positive) / min(positive)


def _spread_p(case: Case, factor: float) -> float:
    """P-value of the largest ratio of averages if errors were Gaussian with one scale."""
    relative = case.measured / case.measured.max()
    weights = relative / relative.sum()
    if case.n <= SIMULATED:
        errors = case.gaussian_errors
        means = errors.mean(axis=1)
        others = [np.median(errors, axis=1), np.exp(np.log(errors).mean(axis=1)), errors @ weights]
        every = np.stack([means, *others])
        return simulated_p(factor, every.max(axis=0) / every.min(axis=0))
    unweighted = _spread([v for name, v in case.averages.items() if name != "weighted mean"])
    if unweighted >= FACTOR:  # more than five standard deviations from 1.51 at this size
        return 0.0
    deviation = GAUSS_CV * math.sqrt(((weights - 1 / case.n) ** 2).sum())
    gap = abs(math.log(case.averages["weighted mean"] / case.mape))
    return math.erfc(gap / deviation / math.sqrt(2)) if deviation > 0 else 1.0


def tail(case: Case) -> Finding | None:
    """Find a few errors that are far larger than the mean."""
    if case.n < 3 or case.mape == 0:
        return None
    worst = math.ceil(case.n / 10)
    largest = float(case.ape.max())
    ratio = largest / case.mape
    errors = case.scaled
    share = float(np.partition(errors, case.n - worst)[case.n - worst :].sum() / errors.sum())
    usual, p = _gaussian_maximum(case, ratio)
    if ratio < MATERIAL * usual:
        return NOTHING
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
        "max_over_mean_gaussian": usual,
        "share_of_worst": share,
        "share_below_max": below,
        "level": case.level,
    }
    return Finding(Caveat("tail", message, evidence), p)


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


def _gaussian_maximum(case: Case, ratio: float) -> tuple[float, float]:
    """Median of maximum over mean in Gaussian samples of this size, and p-value of this ratio."""
    from scipy.stats import norm

    if case.n <= SIMULATED:
        ratios = case.gaussian_errors.max(axis=1) / case.gaussian_errors.mean(axis=1)
        return float(np.median(ratios)), simulated_p(ratio, ratios)
    # The mean of so many is known: sqrt(2 / pi) standard deviations.
    mean = math.sqrt(2 / math.pi)
    usual = float(norm.isf((1 - 0.5 ** (1 / case.n)) / 2)) / mean
    beyond = 2 * float(norm.sf(ratio * mean))
    return usual, -math.expm1(case.n * math.log1p(-beyond))


def one_sided(case: Case) -> Finding | None:
    """Find errors of one sign, and say what one factor would remove from cases it has not seen."""
    from scipy.stats import binomtest

    high = int(np.count_nonzero(case.predicted > case.measured))
    low = int(np.count_nonzero(case.predicted < case.measured))
    if high + low == 0:
        return None
    if max(high, low) < ONE_SIDE * case.n:
        return NOTHING
    p = float(binomtest(high, high + low).pvalue)
    side = "high" if high > low else "low"
    factor, after = out_of_sample_factor(case.predicted, case.measured)
    evidence = {
        "share": max(high, low) / case.n,
        "side": side,
        "n": case.n,
        "factor": factor,
        "mape_before": case.mape,
        "mape_after": after,
    }
    message = f"{max(high, low):,} of {case.n:,} predictions are too {side}; "
    if factor is None or after is None:
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


def out_of_sample_factor(
    predicted: Floats, measured: Floats
) -> tuple[float, float] | tuple[None, None]:
    """Fit one factor to all pairs but one and apply it to that one, for each pair in turn.

    The factor is one over the median of predicted / measured. Returns the factor of all pairs and
    the MAPE of the pairs left out; None where there is only one pair or a median is not positive.
    """
    # Predictions of next to nothing, or of next to everything, have a factor no float can hold.
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = predicted / measured
        middle = float(np.median(ratio))
        if len(ratio) < 2 or not 0 < middle < math.inf:
            return None, None
        medians = _medians_without_each(ratio)
        if (medians <= 0).any():
            return None, None
        after = float(np.abs(ratio / medians - 1).mean())
        return (1 / middle, after) if math.isfinite(after + 1 / middle) else (None, None)


def _medians_without_each(ratio: Floats) -> Floats:
    n = len(ratio)
    order = np.argsort(ratio, kind="stable")
    ranks = np.empty(n, dtype=np.int64)
    ranks[order] = np.arange(n)
    ascending = ratio[order]

    def without(position: int) -> Floats:
        """Value at a position of the sorted ratios once each pair in turn is left out."""
        above = ascending[min(position + 1, n - 1)]
        result: Floats = np.where(position < ranks, ascending[position], above)
        return result

    return (without((n - 2) // 2) + without((n - 1) // 2)) / 2


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
    factors = factor_errors(case.predicted, case.measured)
    bad = int(np.count_nonzero(np.isinf(factors)))
    if bad:
        message = (
            f"{plural(bad, 'prediction')} of {case.n:,} {'is' if bad == 1 else 'are'} zero or "
            "negative; a zero counts as 100 % wrong in the MAPE, as no factor could make it right."
        )
        return Finding(Caveat("under-over-asymmetry", message, {"n_not_positive": bad}))
    # Shares of the largest: the sum of factors near the largest float would overflow.
    largest = float(factors.max())
    symmetric = largest * float((factors / largest).mean()) if largest > 0 else 0.0
    if case.mape == 0 or symmetric < MATERIAL * case.mape:
        return None
    under = float((case.predicted < case.measured).mean())
    message = (
        f"{100 * under:.0f} % of the predictions are too low, which APE caps at 100 %: counted as "
        f"factors either way, the mean error is {percent(symmetric)}, not {percent(case.mape)}."
    )
    evidence = {"mape": case.mape, "symmetric": symmetric, "share_under": under}
    return Finding(Caveat("under-over-asymmetry", message, evidence))


def factor_errors(predicted: Floats, measured: Floats) -> Floats:
    """Return exp(abs(ln(p / m))) - 1: twice too high and twice too low are both 1.

    Infinite where a prediction is not positive, or so small that no float is its factor.
    """
    with np.errstate(over="ignore", divide="ignore"):
        factors = np.maximum(predicted / measured, measured / predicted) - 1
    result: Floats = np.where(predicted > 0, factors, np.inf)
    return result
