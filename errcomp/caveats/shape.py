"""Checks of the distribution of errors: averages, tail, sign, size of the quantities."""

from __future__ import annotations

import math
from functools import lru_cache
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
    laplace_errors,
    largest_of_usual,
    percent,
    plural,
)
from errcomp.caveats._registry import caveat
from errcomp.caveats._statistics import simulated_p
from errcomp.metrics.intervals import tolerance_share
from errcomp.metrics.intervals.direct import lower_share
from errcomp.results import Caveat, format_number
from errcomp.stats.significance import ranks, sign_p, spearman_less, student_ppf, student_sf

if TYPE_CHECKING:
    from errcomp.caveats._case import Case, Floats

#: The mean of Gaussian errors is 1.51 times their geometric mean, that of Laplace errors 1.78
#: times. Twice is more than these shapes explain.
FACTOR = 2.0
#: Twice as many errors of one sign as of the other.
ONE_SIDE = 2 / 3
#: A factor is worth mentioning if it removes at least half a point.
WORTH_POINTS = 0.005


@caveat(
    "aggregation-matters",
    "Mean, median, geometric mean and weighted mean disagree",
    scope="pairs",
    order=160,
    why="Fires when the largest of the four averages (mean, median, geometric mean, weighted mean) "
    "is at least twice the smallest, and that ratio is larger than in 95 % of simulated samples of "
    "as many Laplace errors. Of the usual distributions of errors, Laplace errors have the largest "
    "ratio of mean to geometric mean, 1.78. Also fires when the claim matches another average and "
    "not the mean.",
    remedy="State with every figure which average it is; compare only figures with the same "
    "average.",
)
def aggregation_matters(case: Case) -> Finding | None:
    """Find errors whose mean, median, geometric mean and weighted mean disagree."""
    claim = case.claim
    if case.n < 3 or case.mape == 0 or getattr(claim, "aggregation", None) == "not stated":
        return None
    figures = case.averages
    factor = _spread(list(figures.values()))
    fits = agreeing(case)
    evidence = {**{k.replace(" ", "_"): v for k, v in figures.items()}, "factor": factor}
    written = ", ".join(f"{name} {percent(value)}" for name, value in figures.items())
    if fits and "mean" not in fits:
        message = f"The claim {case.claimed} matches only the {' and the '.join(fits)}: {written}."
        return Finding(Caveat("aggregation-matters", message, {**evidence, "fits": fits}))
    if factor < FACTOR:
        return NOTHING
    p = _spread_p(case, factor)
    message = (
        f"{written[0].upper()}{written[1:]}: the choice of average alone changes the figure "
        f"by a factor of {factor:.1f}."
    )
    return Finding(Caveat("aggregation-matters", message, evidence), p)


def agreeing(case: Case) -> list[str]:
    """Name the averages that round to the claim; none without a claimed figure."""
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
    # If the weights are unknown or the sample is large: two tests, each at half the level.
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
    why="Compares the largest error with the mean error, and the sum of the worst tenth of the "
    "errors with the sum of the others. Fires when either ratio is at least 1.25 times its usual "
    "value (the median in simulated samples of this size), and larger than in 95 % of these "
    "samples. The simulated errors have a Laplace distribution; for the largest error, a Student t "
    "distribution with 5 degrees of freedom is tried as well. Normal, logistic and moderate "
    "log-normal errors have lighter tails, so they rarely trigger this caveat. The message also "
    "gives the share of independent cases that have smaller errors than the largest: at least (1 - "
    "confidence)^(1/n), whatever the distribution. If pairs of a cluster have correlated errors, n "
    "is the number of clusters, and the share refers to clusters.",
    remedy="Quote the largest error, or a quantile, beside the mean, and inspect the worst cases.",
)
def tail(case: Case) -> Finding | None:
    """Find a few errors that are larger, compared with the others, than usual shapes explain."""
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
        f"The worst {worst:,} of {plural(case.n, 'error')} {'makes' if worst == 1 else 'make'} up "
        f"{100 * share:.0f} % of the sum. The largest, {percent(largest)}, is {ratio:.1f} times "
        f"the mean. {_stay_below(below, 'independent cases', case.level)}"
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
    """Return the sum of these errors as a multiple of that of all others."""
    return share / (1 - share) if share < 1 else math.inf


def _largest(case: Case, ratio: float) -> tuple[float, float]:
    """Median of maximum over mean in errors of usual shapes, and p-value of this ratio.

    Of Laplace errors or of Student t errors with 5 degrees of freedom, whichever is larger.
    """
    if case.n > SIMULATED:
        return largest_over_mean(case.n), p_of_largest(ratio, case.n)
    ratios = largest_of_usual(case.n, case.seed)
    return max(float(np.median(r)) for r in ratios), max(simulated_p(ratio, r) for r in ratios)


def _worst(case: Case, worst: int, share: float) -> tuple[float, float]:
    """Median of the share of this many worst Laplace errors, and p-value of this share."""
    if case.n > SIMULATED:
        return share_of_worst(worst / case.n), p_of_worst(share, worst / case.n, case.n)
    shares = _shares_of_worst(case.n, case.seed, worst)
    return float(np.median(shares)), simulated_p(share, shares)


@lru_cache(maxsize=64)
def _shares_of_worst(n: int, seed: int, worst: int) -> Floats:
    """Return the share of this many worst in the sum of Laplace errors, in samples of n."""
    errors = laplace_errors(n, seed)
    last = np.partition(errors, n - worst, axis=1)[:, n - worst :]
    shares: Floats = last.sum(axis=1) / errors.sum(axis=1)
    return shares


def _stay_below(share: float, cases: str, level: float) -> str:
    confidence = f"{100 * level:.3g} % confidence"
    return f"At least {lower_share(share)} of {cases} err less ({confidence})."


def in_clusters(original: Caveat, key: str, groups: int, level: float) -> Caveat:
    """Restate the share below the largest error where pairs of a cluster have correlated errors.

    A cluster counts once, by its largest error, because only whole clusters are independent.
    """
    share = tolerance_share(groups, level)
    before = _stay_below(original.evidence["share_below_max"], "independent cases", level)
    after = _stay_below(share, f"{key}s like these {groups:,} (all cases of each)", level)
    evidence = {**original.evidence, "cluster": key, "share_of_clusters_below_max": share}
    return Caveat(original.code, original.message.replace(before, after), evidence)


@caveat(
    "one-sided",
    "Most errors have the same sign",
    scope="pairs",
    order=140,
    why="Fires when at least 2 of 3 errors have the same sign and a binomial test is significant. "
    "If single pairs are known, the message says how far one factor for all predictions would "
    "reduce the MAPE, estimated by leaving out one pair at a time.",
    remedy="If a factor helps, multiply predictions by a factor fitted on other measurements. If "
    "not, find what the errors have in common.",
)
def one_sided(case: Case) -> Finding | None:
    """Find errors of one sign, and say how much a factor would reduce errors of other cases."""
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
        message += (
            "whether one correction factor would help can be computed only from single pairs."
        )
    elif factor is None or after is None:
        message += "most predictions are zero or negative, so no factor can correct them."
    elif case.mape - after >= WORTH_POINTS:
        message += (
            f"multiplying all {case.n:,} by {format_number(factor, 2 if factor < 1 else 3)} would "
            f"reduce the MAPE from {percent(case.mape)} to {percent(after)} (estimated by leaving "
            "out one pair at a time)."
        )
    else:
        says = "a single factor gains little" if after < case.mape else "no single factor helps"
        message += (
            f"but {says}: the best would change the MAPE from {percent(case.mape)} to "
            f"{percent(after)} (estimated by leaving out one pair at a time)."
        )
    return Finding(Caveat("one-sided", message, evidence), p)


@caveat(
    "small-quantities",
    "The smallest quantities dominate the MAPE",
    scope="pairs",
    order=170,
    why="Fires when small measurements have larger relative errors (rank correlation, one-sided "
    "permutation test) and the MAPE is at least 1.25 times the error weighted by size.",
    remedy="Quote the weighted error (WAPE) for totals, and the MAPE for single cases.",
    needs_pairs=True,
)
def small_quantities(case: Case) -> Finding | None:
    """Find a MAPE that the smallest measurements dominate."""
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
    k = len(smallest)
    few = (
        f"The smallest {k:,} measurements make up" if k > 1 else "The smallest measurement makes up"
    )
    message = (
        f"{few} {100 * of_error:.0f} % of the MAPE, but only {percent(of_total)} of the measured "
        f"total. The MAPE is {percent(case.mape)}; if errors are weighted by size, it is "
        f"{percent(weighted)}."
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
    "The MAPE penalises low predictions less than high ones",
    scope="pairs",
    order=180,
    why="APE cannot exceed 100 % for predictions that are too low. Fires when the mean error as a "
    "factor, max(p/m, m/p) - 1, is at least 1.25 times the MAPE (as it is if all predictions are "
    "20 % too low), or when a prediction is 0 or less. No significance test is involved.",
    remedy="Compare predictors by the log-ratio of prediction to measurement.",
)
def asymmetric_error(case: Case) -> Finding | None:
    """Find a MAPE that is small because predictions that are too low cost at most 100 %."""
    if bad := case.not_positive:
        message = (
            f"{plural(bad, 'prediction')} of {case.n:,} {'is' if bad == 1 else 'are'} zero or "
            "negative. A zero counts as only 100 % in the MAPE, although no factor could correct "
            "it."
        )
        return Finding(Caveat("under-over-asymmetry", message, {"n_not_positive": bad}))
    symmetric = case.symmetric
    if case.mape == 0 or symmetric < MATERIAL * case.mape:
        return None
    under = case.sides[1] / case.n
    message = (
        f"{100 * under:.0f} % of the predictions are too low, and their APEs cannot exceed 100 %. "
        f"The MAPE is {percent(case.mape)}; the mean error as a factor, max(p/m, m/p) - 1, is "
        f"{percent(symmetric)}."
    )
    evidence = {"mape": case.mape, "symmetric": symmetric, "share_under": under}
    return Finding(Caveat("under-over-asymmetry", message, evidence))


# Limits of the usual shapes of errors for many pairs. A usual shape alone must not cause a caveat.
#
# Errors of a predictor without any problem may be uniform, normal, log-normal, logistic, Laplace or
# Student t. A test of their shape must rarely fire under each. Of these, Laplace errors have the
# largest share of the worst tenth and the largest ratio of averages. The largest error is most
# extreme for Laplace errors in small samples, and for Student t with 5 degrees of freedom in large
# ones. The tests use these two, so they also hold for lighter tails.

#: Mean of absolute Student t errors: 2 sqrt(5) Gamma(3) / (4 sqrt(pi) Gamma(5 / 2)).
_STUDENT_MEAN = math.sqrt(5) * math.gamma(3) / (2 * math.sqrt(math.pi) * math.gamma(2.5))


def largest_over_mean(n: int) -> float:
    """Return the median of the largest error over the mean, the larger of the two shapes.

    Examples
    --------
    >>> round(largest_over_mean(1000), 1)
    7.8
    """
    beyond = -math.expm1(math.log(0.5) / n)
    return max(-math.log(beyond), -student_ppf(beyond / 2, STUDENT) / _STUDENT_MEAN)


def p_of_largest(ratio: float, n: int) -> float:
    """Return the chance of such a multiple of the mean as the largest error.

    It is the larger of the two shapes. The mean of many errors counts as known.

    Examples
    --------
    >>> round(p_of_largest(13.3, 1000), 2)
    0.05
    """
    beyond = max(math.exp(-ratio), 2 * float(student_sf(ratio * _STUDENT_MEAN, STUDENT)))
    return -math.expm1(n * math.log1p(-beyond)) if beyond < 1 else 1.0


def share_of_worst(fraction: float) -> float:
    """Return the share of the worst fraction f of many Laplace errors: f (1 - ln f).

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
    """Return the two-sided chance of this ratio of weighted to plain mean of Laplace errors.

    A weighted sum of exponential errors is nearly gamma-distributed with its mean and variance
    (Satterthwaite 1946), and exactly so with equal weights or a single one.

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
