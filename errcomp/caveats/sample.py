"""Checks of what the sample is: how many, how independent, what is twice in it or missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.caveats._case import (
    GAUSS_CV,
    MATERIAL,
    NOTHING,
    Finding,
    percent,
    plural,
    refine,
)
from errcomp.caveats._statistics import simulated_p
from errcomp.errors import InputError
from errcomp.metrics import mape
from errcomp.metrics.intervals.dependence import CLUSTER_KEYS
from errcomp.results import Caveat, format_number
from errcomp.stats.multiple import holm

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from errcomp.caveats._case import Case, Ints
    from errcomp.caveats._sums import Moments

__all__ = [
    "clustered",
    "duplicated_configurations",
    "failures",
    "few_configurations",
    "quantile_caveat",
]

#: From here on the package's intervals have to reach 90 % where they promise 95 %.
FEW = 10
#: Share of failed rows from which the P99 of the error cannot be known.
FAILED = 0.01
#: Keys name the configuration when they leave at most a tenth more different predictions.
SETTLED = 1.1
#: Share of rows equal in every number from which rounding is no explanation.
ALIKE = 0.1
#: NumPy's nine sample quantiles of Hyndman and Fan (1996).
RULES = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
)


def few_configurations(case: Case) -> Finding | None:
    """Find a figure that rests on too few pairs, and say what Gaussian errors would leave open."""
    from scipy.stats import norm, t

    if case.n >= FEW:
        return None
    z = float(norm.ppf(0.5 + case.level / 2))
    needed = math.ceil((z * GAUSS_CV / (MATERIAL - 1)) ** 2)
    # Student's interval of their mean, relative to it; a single error has none.
    spread = float(t.ppf(0.5 + case.level / 2, case.n - 1)) * GAUSS_CV if case.n > 1 else None
    uncertain = None if spread is None else spread / math.sqrt(case.n)
    what = (
        "one error says nothing of the next"
        if uncertain is None
        else f"with Gaussian errors their mean is uncertain by {100 * uncertain:.0f} %"
    )
    message = (
        f"Only {plural(case.n, 'pair')}: {what}; about {needed} tell the MAPE to within a quarter."
    )
    evidence = {"n": case.n, "relative_uncertainty": uncertain, "n_for_quarter": needed}
    return Finding(Caveat("few-configurations", message, evidence))


def clustered(case: Case) -> Finding | None:
    """Find pairs that are not independent because those of one model or device err alike."""
    tried = []
    for key in case.varying(CLUSTER_KEYS):
        codes = case.codes(key)[0]
        groups = int(codes.max()) + 1
        if groups < case.n and (moments := case.moments(codes)).differ:
            tried.append((key, *_one_way(case, codes, moments)))
    if not tried:
        return None
    adjusted = holm([p for *_, p in tried])
    # A design effect of 1.25 squared makes an interval a quarter wider.
    found = [(p, t) for p, t in zip(adjusted, tried, strict=True) if t[3] >= MATERIAL**2]
    if not found:
        return NOTHING
    # Of several that are significant, the one that costs most.
    significant = [item for item in found if item[0] <= 1 - case.level]
    p, (key, groups, icc, effect, _) = max(
        significant or [min(found, key=lambda item: item[0])], key=lambda item: item[1][3]
    )
    effective = case.n / effect
    message = (
        f"Pairs of one {key} err alike (intraclass correlation {icc:.2f}): {case.n:,} pairs tell "
        f"as much as {effective:.0f} independent ones."
    )
    evidence = {
        "key": key,
        "groups": groups,
        "intraclass_correlation": icc,
        "design_effect": effect,
        "effective_n": effective,
        "n": case.n,
    }
    return Finding(Caveat("clustered", message, evidence), p)


def _one_way(case: Case, codes: Ints, moments: Moments) -> tuple[int, float, float, float]:
    """One-way random effects: groups, intraclass correlation, design effect of the mean, p.

    Analysis-of-variance estimator with n0 = (n - sum(n_j^2) / n) / (k - 1) (Donner 1986); the
    design effect of an unweighted mean is 1 + (sum(n_j^2) / n - 1) ICC (Kish 1965).
    """
    n, sizes, groups = case.n, moments.sizes, len(moments.sizes)
    b, w = moments.between / (groups - 1), moments.within / (n - groups)
    balance = float((sizes.astype(np.float64) ** 2).sum() / n)
    n0 = (n - balance) / (groups - 1)
    icc = (b - w) / (b + (n0 - 1) * w)
    effect = max(1.0, 1 + (balance - 1) * icc)
    if case.simulates:
        null = (sizes * (case.shuffled_means(codes) - moments.mean) ** 2).sum(axis=1)
        return groups, icc, effect, simulated_p(moments.between, null)
    return groups, icc, effect, _one_way_p(case.log_moments(codes))


def _one_way_p(logs: Moments) -> float:
    """P-value of Fisher's one-way test of the logarithms of errors.

    Of the errors themselves it would be wrong: one large error in a small group is nothing unusual
    in errors with a heavy tail, and the F distribution takes it for one.
    """
    from scipy.stats import f

    groups, n = len(logs.sizes), int(logs.sizes.sum())
    if groups < 2 or groups == n or not logs.differ:
        return 1.0
    if logs.within == 0:
        return 0.0
    ratio = (logs.between / (groups - 1)) / (logs.within / (n - groups))
    return float(f.sf(ratio, groups - 1, n - groups))


def duplicated_configurations(case: Case) -> Finding | None:
    """Find rows that repeat a configuration: same keys and same prediction."""
    keys = [*case.configuration_keys, *(k for k in ("level", "reference") if k in case.pairs.keys)]
    configured = case.cells(keys)
    cell = refine(configured, np.unique(case.predicted, return_inverse=True)[1])
    exact = refine(cell, np.unique(case.measured, return_inverse=True)[1])
    identical = case.n - _count(exact)
    # Where the keys do not settle the prediction they do not name the configuration, and equal
    # numbers may be different configurations that were rounded alike.
    if not keys or _count(cell) > SETTLED * _count(configured):
        if identical < ALIKE * case.n:
            return None
        cell = exact
    repeated = case.n - _count(cell)
    if repeated == 0:
        return None
    first = np.unique(cell, return_index=True)[1]
    once = mape(predicted=case.predicted[first], measured=case.measured[first])
    message = (
        f"{case.n:,} rows are {plural(len(first), 'configuration')}: {repeated:,} repeat keys and "
        f"prediction ({identical:,} the measurement too). Counting each once: {percent(once)}, not "
        f"{percent(case.mape)}."
    )
    evidence = {
        "n": case.n,
        "configurations": len(first),
        "repeated": repeated,
        "identical": identical,
        "mape": case.mape,
        "mape_once": once,
        "keys": keys,
    }
    return Finding(Caveat("duplicated-configurations", message, evidence))


def _count(cell: Ints) -> int:
    return int(cell.max()) + 1


def failures(case: Case) -> Finding | None:
    """Find rows that were left out, about which the figure says nothing."""
    dropped = sum(d.n for d in case.pairs.dropped)
    total = case.n + dropped
    if dropped < FAILED * total:
        return None
    reasons = "; ".join(f"{d.n:,}: {d.reason}" for d in case.pairs.dropped)
    message = (
        f"{dropped:,} of {total:,} rows ({percent(dropped / total)}) are not in the figure "
        f"({reasons}): it holds for the others only."
    )
    evidence = {
        "dropped": dropped,
        "rows": total,
        "share": dropped / total,
        "reasons": {d.reason: d.n for d in case.pairs.dropped},
    }
    return Finding(Caveat("failures", message, evidence))


def quantile_caveat(
    values: ArrayLike, q: float, *, level: float = 0.95, unit: str = ""
) -> Caveat | None:
    r"""Say what a high (or low) quantile of a sample leaves open; None if the sample is enough.

    Definition: the nine sample quantiles of NumPy (Hyndman and Fan 1996), and the distribution-free
    bounds from order statistics. A sample has a one-sided bound for the quantile on the side of its
    tail only if the most extreme value is one with the confidence asked for:

    .. math:: n \ge \ln(1 - \text{level}) \, / \, \ln \max(q, 1 - q)

    which is 299 for a P99 at 95 %. That is the threshold.

    Parameters
    ----------
    values : array_like, shape (n,)
        The sample, e.g. one latency per request. Finite.
    q : float
        Between 0 and 1: 0.99 is the P99.
    level : float
        Confidence of the bounds.
    unit : str
        Written behind the numbers.

    Returns
    -------
    Caveat or None
        Evidence: ``n``, ``n_needed``, ``q``, the lowest and highest of the nine rules, and the
        distribution-free bounds ``low`` and ``high`` (None where there is none).

    Raises
    ------
    InputError
        There are no values, some are not finite, or q or level is outside (0, 1).

    References
    ----------
    Hyndman and Fan (1996), "Sample quantiles in statistical packages", The American Statistician
    50(4), 361-365, doi:10.1080/00031305.1996.10473566.
    David and Nagaraja (2003), "Order Statistics", 3rd ed., Wiley, section 7.1 (distribution-free
    intervals for quantiles).

    Examples
    --------
    >>> found = quantile_caveat(range(1, 51), 0.99)
    >>> found.evidence["n_needed"], found.evidence["high"], found.evidence["low"]
    (299, None, 48.0)
    >>> quantile_caveat(range(1, 301), 0.99) is None
    True
    """
    sample = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if not (0 < q < 1 and 0 < level < 1):
        raise InputError(f"q and level must lie between 0 and 1, got {q!r} and {level!r}")
    if len(sample) == 0 or not np.isfinite(sample).all():
        raise InputError("a quantile needs at least one value, all of them finite")
    n = len(sample)
    needed = math.ceil(math.log(1 - level) / math.log(max(q, 1 - q)))
    if n >= needed:
        return None
    rules = [float(np.quantile(sample, q, method=rule)) for rule in RULES]  # type: ignore[call-overload]
    low, high = _bounds(sample, q, level)
    end = f" {unit}" if unit else ""
    known, asked = (low, "an upper") if q >= 0.5 else (high, "a lower")
    word = "at least" if q >= 0.5 else "at most"
    sure = f"only {word} {format_number(known)}{end}" if known is not None else "nothing"
    message = (
        f"P{100 * q:g} from {plural(n, 'value')}: {format_number(min(rules))} to "
        f"{format_number(max(rules))}{end}, depending on the rule; {sure} is sure "
        f"({100 * level:g} %), {asked} bound takes {needed:,} values."
    )
    evidence: dict[str, Any] = {
        "q": q,
        "n": n,
        "n_needed": needed,
        "rules_low": min(rules),
        "rules_high": max(rules),
        "low": low,
        "high": high,
        "level": level,
    }
    return Caveat("p99-few-samples", message, evidence)


def _bounds(sample: Any, q: float, level: float) -> tuple[float | None, float | None]:
    """One-sided distribution-free bounds of the quantile: order statistics, or None."""
    from scipy.stats import binom

    n = len(sample)
    # P(X_(r) <= quantile) = P(Bin(n, q) >= r): the largest r for which it reaches the level, and
    # P(X_(r) >= quantile) = P(Bin(n, q) <= r - 1): the smallest.
    ranks = np.arange(1, n + 1)
    lower = np.flatnonzero(binom.sf(ranks - 1, n, q) >= level)
    upper = np.flatnonzero(binom.cdf(ranks - 1, n, q) >= level)
    low = float(sample[lower[-1]]) if len(lower) else None
    high = float(sample[upper[0]]) if len(upper) else None
    return low, high
