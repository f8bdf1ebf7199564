"""Checks of how the errors are distributed: averages, tail, sign, size of the quantities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from errcomp.caveats._case import (
    AVERAGES,
    MATERIAL,
    NOTHING,
    SIMULATED,
    STUDENT,
    Finding,
    percent,
    plural,
)
from errcomp.caveats._registry import caveat
from errcomp.caveats._statistics import simulated_p
from errcomp.metrics.intervals import tolerance_share
from errcomp.results import Caveat, format_number
from errcomp.stats.significance import ranks, sign_p, spearman_less, student_ppf, student_sf

if TYPE_CHECKING:
    from errcomp.caveats._case import Case, Floats

#: Gaussian errors give a mean 1.51 times their geometric mean, Laplace errors 1.78 times: twice is
#: more than their shape.
FACTOR = 2.0
#: Twice as many errors of one sign as of the other.
ONE_SIDE = 2 / 3
#: A factor that removes less than half a point is no remedy.
WORTH_POINTS = 0.005


@caveat(
    "aggregation-matters",
    "Mean, median, geometric mean and weighted mean disagree",
    scope="pairs",
    order=160,
    why="Fires when the largest of the four averages is at least twice the smallest and further "
    "from it than in 95 % of samples of Laplace errors of this size (whose mean is 1.78 times "
    "their geometric mean, the most of the usual shapes); or when a claim is printed as another "
    "average than the mean.",
    remedy="Name the average with every figure; compare figures of one kind only.",
)
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


@caveat(
    "tail",
    "A few errors are far larger than the mean",
    scope="pairs",
    order=130,
    why="Fires when the largest error is at least 1.25 times as far above the mean as in half of "
    "all samples of this size, or the worst tenth errs 1.25 times as much beside the others, and "
    "95 % of samples of Laplace and of Student t errors (5 degrees of freedom) have less: normal, "
    "logistic and moderate log-normal errors have lighter tails than these. The share of cases "
    "below the largest error is the distribution-free tolerance limit (1 - confidence)^(1/n); "
    "where pairs of one cluster err alike, n is the number of clusters, and whole clusters stay "
    "below it.",
    remedy="Quote the largest error, or a quantile, beside the mean, and look at the worst cases.",
)
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
    p_values = [p_largest] if ratio >= MATERIAL * usual else []
    # Up to ten pairs, the worst tenth is the largest error: one test, not two.
    if worst > 1 and _beside_rest(share) >= MATERIAL * _beside_rest(usual_share):
        p_values.append(p_share)
    if not p_values:
        return NOTHING
    p = min(1.0, min(p_values) * (2 if worst > 1 else 1))
    below = tolerance_share(case.n, case.level)
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


def _stay_below(share: float, cases: str, level: float) -> str:
    confidence = f"{100 * level:.3g} % confidence"
    return f"At least {100 * share:.3g} % of {cases} stay below it ({confidence})."


def in_clusters(original: Caveat, key: str, groups: int, level: float) -> Caveat:
    """Restate what stays below the largest error where pairs of one cluster err alike.

    A cluster counts once, by its largest error: what is drawn independently are whole clusters.
    """
    share = tolerance_share(groups, level)
    before = _stay_below(original.evidence["share_below_max"], "independent cases", level)
    after = _stay_below(share, f"{key}s like these {groups:,}, with all their cases,", level)
    evidence = {**original.evidence, "cluster": key, "share_of_clusters_below_max": share}
    return Caveat(original.code, original.message.replace(before, after), evidence)


@caveat(
    "one-sided",
    "Most errors have one sign",
    scope="pairs",
    order=140,
    why="Fires when at least 2 of 3 errors have one sign (twice as many as the other) and a "
    "binomial test says that this is no chance. What a single factor would remove is measured on "
    "pairs left out of its fit, one at a time.",
    remedy="Where one factor helps, multiply predictions by one fitted on other measurements; "
    "where none does, look for what the errors have in common.",
)
def one_sided(case: Case) -> Finding | None:
    """Find errors of one sign, and say what one factor would remove from cases it has not seen."""
    high, low = case.sides
    if high + low == 0:
        return None
    if max(high, low) < ONE_SIDE * case.n:
        return NOTHING
    p = sign_p(high, high + low)
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


@caveat(
    "small-quantities",
    "The smallest quantities set the MAPE",
    scope="pairs",
    order=170,
    why="Fires when small measurements have larger relative errors (rank correlation, one-sided "
    "permutation test) and the MAPE is at least 1.25 times the error weighted by size.",
    remedy="Quote the weighted error (WAPE) for totals, and the MAPE for single cases.",
    needs_pairs=True,
)
def small_quantities(case: Case) -> Finding | None:
    """Find a MAPE that is made by the smallest measurements."""
    weighted = case.averages["weighted mean"]
    if case.n < 4 or case.mape == 0 or np.ptp(case.measured) == 0 or np.ptp(case.ape) == 0:
        return None
    if case.mape < MATERIAL * weighted:
        return NOTHING
    rho, p = spearman_less(case.measured, case.ape)
    if case.n <= SIMULATED:
        errors, sizes = ranks(case.ape), ranks(case.measured)
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


@caveat(
    "under-over-asymmetry",
    "Too low is cheaper than too high",
    scope="pairs",
    order=180,
    why="APE cannot exceed 100 % for predictions that are too low. Fires when counting the errors "
    "as factors, max(p/m, m/p) - 1, gives at least 1.25 times the MAPE (all predictions 20 % too "
    "low do), or when a prediction is not positive. A fact, no test.",
    remedy="Compare predictors by the log ratio of prediction to measurement.",
)
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


# The usual shapes of errors, which alone are no reason for a caveat: their limits for many pairs.
#
# Errors of a predictor without any problem may be uniform, normal, log-normal, logistic, Laplace or
# Student t. What sets off a test of their shape has to be rare under each. Laplace errors make the
# most of their worst tenth and of the choice of average; the largest of all is set by Laplace
# errors in small samples and by Student t with 5 degrees of freedom in large ones. The tests refer
# to these two, and so hold for lighter shapes as well.

#: Mean of absolute Student t errors: 2 sqrt(5) Gamma(3) / (4 sqrt(pi) Gamma(5 / 2)).
_STUDENT_MEAN = math.sqrt(5) * math.gamma(3) / (2 * math.sqrt(math.pi) * math.gamma(2.5))


def largest_over_mean(n: int) -> float:
    """Return the median of the largest error over the mean, the larger of the two shapes'.

    Examples
    --------
    >>> round(largest_over_mean(1000), 1)
    7.8
    """
    beyond = -math.expm1(math.log(0.5) / n)
    return max(-math.log(beyond), -student_ppf(beyond / 2, STUDENT) / _STUDENT_MEAN)


def p_of_largest(ratio: float, n: int) -> float:
    """Return the chance of a largest error of so many means, the larger of the two shapes'.

    The mean of many errors counts as known.

    Examples
    --------
    >>> round(p_of_largest(13.3, 1000), 2)
    0.05
    """
    beyond = max(math.exp(-ratio), 2 * float(student_sf(ratio * _STUDENT_MEAN, STUDENT)))
    return -math.expm1(n * math.log1p(-beyond)) if beyond < 1 else 1.0


def share_of_worst(fraction: float) -> float:
    """Return the share of the worst of many Laplace errors in their sum: f (1 - ln f).

    Examples
    --------
    >>> round(share_of_worst(0.1), 2)
    0.33
    """
    return fraction * (1 - math.log(fraction))


def p_of_worst(share: float, fraction: float, n: int) -> float:
    r"""Return the chance that the worst fraction of n Laplace errors has this share or more.

    The share :math:`s` of the errors above the quantile :math:`q = -\ln f` is asymptotically
    normal; its influence function is :math:`(x - q)_+ + f q - s x`, whose variance under the
    exponential law is :math:`f (2 - f) - s^2`.

    Examples
    --------
    >>> p_of_worst(share_of_worst(0.1), 0.1, 1000), round(p_of_worst(0.345, 0.1, 1000), 2)
    (0.5, 0.05)
    """
    usual = share_of_worst(fraction)
    variance = fraction * (2 - fraction) - usual**2
    return 0.5 * math.erfc((share - usual) / math.sqrt(2 * variance / n))


def p_of_averages(factor: float, n: int) -> float:
    r"""Return the chance that mean over geometric mean of n Laplace errors is this or larger.

    The logarithm of the ratio is asymptotically normal around Euler's constant, with variance
    :math:`(\pi^2 / 6 - 1) / n`; no other ratio of mean, median and geometric mean is as large.

    Examples
    --------
    >>> round(p_of_averages(1.86, 1000), 2)
    0.04
    """
    euler = 0.5772156649015329
    return 0.5 * math.erfc((math.log(factor) - euler) / math.sqrt((math.pi**2 / 3 - 2) / n))


def p_of_weighted_mean(ratio: float, spread: float) -> float:
    """Return the two-sided chance of this ratio of a weighted mean of Laplace errors to their mean.

    A sum of exponential errors with weights has nearly a gamma law with its mean and variance
    (Satterthwaite 1946); it is one where all weights are equal or there is one alone.

    Parameters
    ----------
    ratio : float
    spread : float
        Sum of the squares of the weights, less 1/n each.

    Examples
    --------
    >>> p_of_weighted_mean(1.0, 0.0), round(p_of_weighted_mean(1.5, 0.01), 5)
    (1.0, 1e-05)
    """
    if spread <= 0:
        return 1.0
    shape, x = 1 / spread, ratio / spread
    return min(1.0, 2 * float(min(special.gammainc(shape, x), special.gammaincc(shape, x))))
