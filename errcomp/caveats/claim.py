"""Checks of a claim against its pairs: level, reference, metric, averaging, digits.

A claim is any object with some of the attributes named in `errcomp.caveats.check`; missing
attributes are not checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.caveats._case import MATERIAL, UNSAID, Finding, percent, plural, signed
from errcomp.caveats._registry import caveat
from errcomp.caveats.sample import quantile_caveat
from errcomp.caveats.shape import agreeing
from errcomp.metrics import figure
from errcomp.results import Caveat, format_fraction, format_number

if TYPE_CHECKING:
    from errcomp.caveats._case import Case

#: Kinds of references that are not comparable, and the word for a reference that is not stated.
REFERENCE_KINDS = ("hardware", "RTL", "simulator", "estimate", "another predictor")
UNKNOWN = "unknown"

#: Words for metrics that are not a relative error, and the metric of the same pairs to compare.
_OTHER_METRICS = {
    r"kendall|tau": "kendall",
    r"spearman|rank corr": "spearman",
    r"r2|r²|r\^2|squared corr|determination": "r2",
    r"corr|pearson": "pearson",
    r"rmspe": "rmspe",
    r"rmsle": "rmsle",
    r"rmse|root mean": "rmse",
    r"\bmae\b|mean absolute error": "mae",
    r"within ?20\b": "within_20",
    r"within ?10\b": "within_10",
    r"within ?5\b": "within_5",
}
_KINDS = (
    ("rtl", "RTL"),
    ("hardware", "hardware"),
    ("simul", "simulator"),
    ("estimate", "estimate"),
)
_QUANTILE = re.compile(
    r"\bp(\d{1,2}(?:\.\d+)?)\b|\b(\d{1,2}(?:\.\d+)?)(?:th|st|nd|rd)? ?percentile"
)


@caveat(
    "level-mismatch",
    "Figures of different levels (kernel, model, system) are mixed",
    scope="pairs",
    order=30,
    why="Fires when the pairs mix levels (kernel, model, system, …), or when the claim is about "
    "another level. No significance test is involved. Errors cancel or add up from level to level, "
    "so a kernel error says nothing about a model.",
    remedy="Quote the error of each level separately; use `errcomp propagate` to compute the error "
    "of a run from the errors of its kernels.",
    of_errors=False,
)
def level_mismatch(case: Case) -> Finding | None:
    """Find pairs of several levels in one metric, or of another level than the claim."""
    if "level" not in case.pairs.keys:
        return None
    codes, values = case.codes("level")
    counts = {str(v): int(c) for v, c in zip(values, case.sizes(codes), strict=True)}
    if len(counts) > 1:
        parts = " and ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
        message = (
            f"These pairs mix levels: {parts}. A single metric over all these pairs describes none "
            "of the levels."
        )
        return Finding(Caveat("level-mismatch", message, {"levels": counts}))
    claimed = case.said("level")
    (level,) = counts
    if not claimed or level in re.split(r"\s*(?:,|/|\band\b|\bor\b)\s*", claimed.lower()):
        return None
    message = (
        f"The claim is about the {claimed} level, but the level of the {plural(case.n, 'pair')} "
        f"here is {level}: figures of different levels are not comparable."
    )
    return Finding(Caveat("level-mismatch", message, {"claim": claimed, "levels": counts}))


@caveat(
    "reference-mismatch",
    "The claim and these measurements have different references",
    scope="claim",
    order=40,
    why="Fires when the claim and the pairs have different references (hardware, RTL simulation, a "
    "simulator, another predictor), or when the reference of the pairs is given as unknown. The "
    "reference of the pairs is in the column `reference`; without this column it is hardware. No "
    "significance test is involved. An error of 1 % against a simulator that is itself 15 % off is "
    "not an error of 1 % against hardware. If the references differ, the claim is not verifiable.",
    remedy="Compare only figures with the same reference, or add the error of the reference "
    "itself.",
    of_errors=False,
)
def reference_mismatch(case: Case) -> Finding | None:
    """Find a claim with another reference than these pairs."""
    claimed = case.said("reference")
    stated = "reference" in case.pairs.keys
    references = case.codes("reference")[1] if stated else ["hardware"]
    kinds = kinds_of_references(references)
    kind = "unclear" if claimed.lower().startswith("unclear") else claimed
    if kinds == [kind_of_reference(claimed)]:
        return None
    if not claimed:
        # A claim without a reference means hardware, unless the pairs state another one.
        if not case.claimed or not set(kinds) & set(REFERENCE_KINDS[1:]):
            return None
        message = (
            f"The reference of these pairs is {' and '.join(kinds)}, but the reference of the "
            "claim is not stated: the errors of these pairs are not errors against hardware."
        )
    elif not set(kinds) - {kind_of_reference(claimed), UNKNOWN}:
        some = "" if kinds == [UNKNOWN] else "some of "
        message = (
            f"The claim's reference is {kind}; {some}these pairs do not state their reference, so "
            "the reference of the claim is assumed."
        )
    else:
        assumed = "" if stated else " (assumed, not stated)"
        message = (
            f"The claim's reference is {kind}, but the reference of these pairs is "
            f"{' and '.join(kinds)}{assumed}: figures with different references are not "
            "comparable."
        )
    evidence = {"claim": claimed, "pairs": kinds, "stated_in_pairs": stated}
    return Finding(Caveat("reference-mismatch", message, evidence))


def kinds_of_references(values: Iterable[Any]) -> list[str]:
    """Return the kinds of references in a column, each once; missing ones are unknown.

    Examples
    --------
    >>> kinds_of_references(["hardware", None, "hardware traces", "rtl"])
    ['RTL', 'hardware', 'unknown']
    """
    texts = {"" if v is None or v != v else str(v).strip() for v in values}
    return sorted(
        {UNKNOWN if t.lower() in (*UNSAID, "unclear") else kind_of_reference(t) for t in texts}
    )


def kind_of_reference(text: str) -> str:
    """Return the kind of a reference.

    Examples
    --------
    >>> [kind_of_reference(t) for t in ("hardware serving traces", "RTL simulation", "simulator")]
    ['hardware', 'RTL', 'simulator']
    """
    plain = text.lower()
    for word, kind in _KINDS:
        if word in plain and not plain.startswith("unclear"):
            return kind
    return "another predictor" if "predict" in plain else text


def figure_meant(metric: str) -> str:
    """Return the metric that a name means, if it is not a relative error.

    Examples
    --------
    >>> figure_meant("IPC correlation"), figure_meant("R²"), figure_meant("MAPE")
    ('pearson', 'r2', '')
    """
    plain = metric.lower()
    return next((name for words, name in _OTHER_METRICS.items() if re.search(words, plain)), "")


@caveat(
    "metric-mismatch",
    "The claim quotes a correlation, a share, an MAE or a squared error, not a relative error",
    scope="claim",
    order=50,
    why="Fires when the claim's metric is a correlation, a share, an MAE or a squared error. The "
    "message gives the claimed metric and the MAPE, both computed from these pairs. No "
    "significance test is involved. A predictor that always predicts twice the measured value has "
    "a correlation of 1 and a MAPE of 100 %.",
    remedy="Ask the source for the relative error, or compute it from the pairs; do not rank tools "
    "by different metrics.",
    of_errors=False,
)
def metric_mismatch(case: Case) -> Finding | None:
    """Find a claim about a metric that is not a relative error, and show both kinds."""
    metric = case.said("metric")
    name = figure_meant(metric)
    if not name or (name == "mae" and "%" in case.claimed):  # an MAE in per cent is a MAPE
        return None
    spec = figure(name)
    value = case.value(name)
    written = format_fraction(value) if spec.unit == "fraction" else format_number(value, 3)
    if spec.unit == "measured" and case.pairs.unit:
        written += f" {case.pairs.unit}"
    if math.isnan(value) and case.weights is None:
        written = "needs single pairs"
    moral = "doubling all predictions would not change the correlation"
    if spec.unit != "correlation" or name == "r2":  # scaling changes R², but no correlation
        moral = "these two metrics cannot be compared"
    quoted = f"{metric} ({case.claimed})" if case.claimed else metric
    message = (
        f"The claim quotes {quoted}, not a relative error. From these pairs: {spec.label} "
        f"{written}, MAPE {percent(case.mape)}; {moral}."
    )
    known = None if math.isnan(value) else value
    evidence = {"metric": metric, "figure": name, "value": known, "mape": case.mape}
    return Finding(Caveat("metric-mismatch", message, evidence))


@caveat(
    "aggregation-not-stated",
    "The claim does not say how it was averaged",
    scope="claim",
    order=150,
    why="Fires when the claim's aggregation is not stated, the four averages of these pairs (mean, "
    "median, geometric mean, weighted mean) differ by a factor of at least 1.25, and the mean does "
    "not round to the claim. No significance test is involved.",
    remedy="If the figure is yours, name its average (--aggregation mean). If it is not, ask the "
    "source; until you know, it may be a median or a geometric mean, which are often smaller than "
    "the mean.",
)
def aggregation_not_stated(case: Case) -> Finding | None:
    """Find a claimed error of unknown average, where the average matters."""
    if getattr(case.claim, "aggregation", None) != "not stated" or case.n < 2:
        return None
    fits = agreeing(case)
    figures = case.averages
    low, high = min(figures.values()), max(figures.values())
    apart = high > low and high >= MATERIAL * low
    if (
        not case.claimed
        or "mean" in fits
        or not apart
        or getattr(case.claim, "kind", "error") != "error"
    ):
        return None
    written = ", ".join(f"{name} {percent(value)}" for name, value in figures.items())
    fitting = f"{case.claimed} matches only the {' and the '.join(fits)}"
    verdict = fitting if fits else f"none agrees with {case.claimed}"
    message = (
        f"The claim {case.claimed} does not name its average. Errors here: {written}; {verdict}."
    )
    evidence = {**{k.replace(" ", "_"): v for k, v in figures.items()}, "fits": fits}
    return Finding(Caveat("aggregation-not-stated", message, evidence))


@caveat(
    "rounded-before-averaging",
    "The claim is reproduced only if errors are rounded first",
    scope="claim",
    order=210,
    why="Fires when the mean error rounds to the claim only if each error is first rounded to as "
    "many decimals as the claim has. No significance test is involved.",
    remedy="Average the unrounded errors, and round the result.",
    needs_pairs=True,
)
def rounded_before_averaging(case: Case) -> Finding | None:
    """Find a claimed mean that these pairs give only if each error is rounded as printed."""
    if not re.fullmatch(r"\d+(\.\d+)?\s*%", case.claimed):
        return None
    number = case.claimed.rstrip("% ")
    decimals = len(number.partition(".")[2])
    rounded = float(np.round(100 * case.ape, decimals).mean()) / 100
    texts = [f"{100 * value:.{decimals}f}" for value in (case.mape, rounded)]
    if texts[0] == texts[1] or number != texts[1]:
        return None
    message = (
        f"The mean error of these pairs rounds to {texts[0]} %. It is {texts[1]} %, as claimed, "
        f"only if every error is first rounded to {plural(decimals, 'decimal')}."
    )
    evidence = {"mape": case.mape, "mean_of_rounded": rounded, "decimals": decimals}
    return Finding(Caveat("rounded-before-averaging", message, evidence))


@caveat(
    "p99-few-samples",
    "A high quantile from too few values",
    scope="claim",
    order=220,
    why="Fires when the claim is a quantile of the errors, such as the P99, and the pairs are too "
    "few for a bound that holds whatever the distribution. An upper bound on the P99 with 95 % "
    "confidence needs 299 pairs (n >= ln 0.05 / ln 0.99).",
    remedy="State how the quantile was computed (NumPy offers nine definitions), or quote a lower "
    "quantile.",
    needs_pairs=True,
)
def quantile_claim(case: Case) -> Finding | None:
    """Find a claimed quantile of the error for which these pairs are too few."""
    match = _QUANTILE.search(case.said("metric").lower())
    if not match:
        return None
    q = float(match[1] or match[2]) / 100
    if not 0 < q < 1:
        return None
    caveat = quantile_caveat(100 * case.ape, q, level=case.level, unit="%")
    if caveat is None:
        return None
    fractions = ("rules_low", "rules_high", "low", "high")
    evidence = {
        k: v / 100 if k in fractions and v is not None else v for k, v in caveat.evidence.items()
    }
    return Finding(Caveat(caveat.code, caveat.message, evidence))


@caveat(
    "cancelling-errors",
    "Errors of opposite sign cancel in the sum",
    scope="claim",
    order=200,
    why="Fires when the claim is stated as the error of a total (of a sum, or a difference of "
    "means), or when the error of the total rounds to the claim and no average does (mean, median, "
    "geometric mean, weighted mean). The MAPE must also be at least 1.25 times the error of the "
    "total. No significance test is involved.",
    remedy="Use the error of the total only for sums; quote the MAPE or the WAPE for single cases.",
)
def claimed_total(case: Case) -> Finding | None:
    """Find a claim that is the error of a total, stated or because no average gives it."""
    claim = case.claim
    low, high = (getattr(claim, end, None) for end in ("low", "high"))
    # Many figures are within a bound or a range, so a total within it says nothing.
    if low is None or high is None or getattr(claim, "kind", "error") != "error":
        return None
    total = case.total_error
    averages = case.averages
    stated = getattr(claim, "aggregation", None) == "total"
    if not stated and not (
        _is_one_number(claim)
        and low <= abs(total) < high
        and not any(low <= value < high for value in averages.values())
    ):
        return None
    if case.mape < MATERIAL * abs(total):
        return None
    weighted = averages["weighted mean"]
    is_one = "is" if stated else "matches"
    message = (
        f"The claim {case.claimed} {is_one} the error of the total ({signed(total)}), "
        "where errors of opposite sign cancel: the MAPE of single pairs is "
        f"{percent(case.mape)} ({percent(weighted)} weighted by size)."
    )
    evidence = {"total_error": total, "mape": case.mape, "wape": weighted, "stated": stated}
    return Finding(Caveat("cancelling-errors", message, evidence))


def _is_one_number(claim: object) -> bool:
    printed = str(getattr(claim, "printed", "")).strip()
    return printed[:1].isdigit() and not any(c in printed for c in "-–—")
