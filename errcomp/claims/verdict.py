"""Verdict on a claim: it follows from the interval of the recomputed metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from errcomp.caveats.claim import (
    REFERENCE_KINDS,
    UNKNOWN,
    figure_meant,
    kind_of_reference,
    kinds_of_references,
)
from errcomp.claims.printed import parse_printed
from errcomp.claims.registry import Claim
from errcomp.codec import Derived, Document, Field, Undefined, key
from errcomp.metrics import figure
from errcomp.results import Estimate

if TYPE_CHECKING:
    from errcomp.tables.table import Table

__all__ = [
    "AGGREGATIONS",
    "Verdict",
    "Word",
    "could_hold_as",
    "figures_for",
    "judge",
    "lacks_aggregation",
    "recomputed_as",
    "spoken",
    "word_of",
]

#: The verdicts.
Word = Literal["consistent", "overstated", "understated", "not verifiable", "no claim"]

Aggregation = Literal["mean", "median", "geometric mean", "weighted"]

#: Aggregation of absolute percentage errors and the metric that computes it.
AGGREGATIONS: Mapping[str, str] = {
    "mean": "mape",
    "median": "median_ape",
    "geometric mean": "gmape",
    "weighted": "wape",
}
#: Aggregations that a source may name, and the metric that each means. The error of a total is a
#: metric of its own: a source means it only if it says so.
_BY_AGGREGATION: Mapping[str, str] = {**AGGREGATIONS, "total": "total_error"}
#: Metrics whose name fixes the aggregation.
_BY_METRIC = {"share within 10%": "within_10"}
_ERROR_METRICS = ("MAPE", "MAE", "error", "accuracy", "alignment")
#: Means by their name.
_MEANS = ("MAPE", "MAE")
#: What a source may mean by "correlation" if it does not say which.
_CORRELATIONS = ("pearson", "spearman", "r2")
#: What follows if the average is not named: by a source, and by the user's own claim.
_UNSAID = (
    ", and the source does not say which average the claim is",
    ". Name the average with --aggregation mean (or median, geometric mean, weighted)",
)

#: Fewer pairs miss a kind of error that every fifth run has in more than 7 % of samples: too few
#: to show that a tool is better than claimed.
FEWEST_BELOW = 12


def _of_claim(name: str, type_: Any, attribute: str) -> Derived:
    """Return the key under which a row repeats what its claim says."""
    return Derived(name, type_, lambda verdict: getattr(verdict.claim, attribute, None))


@dataclass(frozen=True, slots=True)
class Verdict(Document):
    """What the pairs show about a claim.

    Attributes
    ----------
    word : {"consistent", "overstated", "understated", "not verifiable", "no claim"}
        The verdict.
    reason : str
        One sentence.
    claim : Claim or None
        The claim that was checked.
    recomputed : Estimate or None
        The metric by the claim's own definition (the mean where it states none).
    ratio : float or None
        Recomputed over claimed; over the nearer end for a bound or a range.
    aggregations : mapping of str to float
        The same pairs under every aggregation.
    agreeing : tuple of str
        Aggregations under which the pairs give a number that would be printed like the claim.
    jointly : str or None
        The verdict at the level that holds for all claims together (Bonferroni); None for a single
        claim.
    """

    KEYS: ClassVar = (
        _of_claim("claimed", float | None, "central"),
        _of_claim("claimed_printed", str | None, "printed"),
        _of_claim("claimed_low", float | None, "low"),
        _of_claim("claimed_high", float | None, "high"),
        _of_claim("claim_source", str | None, "source"),
        _of_claim("claimed_by", str | None, "claimed_by"),
        key("verdict", "word"),
        key("verdict_jointly", "jointly"),
        *("reason", "ratio", "aggregations"),
        key("agreeing_aggregations", "agreeing", tuple[Aggregation, ...]),
        Derived(
            "survey_verdict", str | None, lambda v: (v.claim and v.claim.survey_verdict) or None
        ),
        *("claim", "recomputed"),
    )

    word: Word
    reason: str
    claim: Claim | None = None
    recomputed: Estimate | None = None
    ratio: float | None = None
    aggregations: Mapping[str, Annotated[float, Undefined]] = field_(default_factory=dict)
    agreeing: tuple[str, ...] = ()
    jointly: Word | None = None

    def _agree(self, field: Field) -> None:
        """Refuse a verdict that does not follow from the claim and the interval."""
        if self.word not in ("consistent", "overstated", "understated"):
            return
        if self.claim is None or self.recomputed is None:
            field.at("verdict").refuse(
                "another verdict, or come with both a claim and a recomputed metric"
            )
        follows = word_of(self.claim, self.recomputed)
        if self.word != follows:
            field.at("verdict").refuse(f"{follows!r}, which follows from the interval")

    @property
    def together(self) -> Word:
        """The verdict after correcting for the number of claims.

        Over- and understated only if that holds for all claims together: true claims must not look
        wrong because they are many.
        """
        decided = self.word in ("overstated", "understated")
        return self.jointly or self.word if decided else self.word

    @property
    def shown(self) -> str:
        """The verdict, with "maybe" where it does not hold for all claims together."""
        return self.word if self.together == self.word else f"maybe {self.word}"


def judge(claim: Claim | None, figures: Mapping[str, Estimate], pairs: Table) -> Verdict:
    """Compare one claim with the recomputed metrics.

    Definition: let [L, H] be the interval of the metric that the claim names and C the numbers that
    would be printed like the claim: [a, b) for a value, with b for a range and for "≤ b".
    *Overstated* when L lies above all of C (the error is larger than claimed), *understated* when H
    lies below all of C, *consistent* when they overlap.

    A MAPE is a mean by its name. An "error" of unstated aggregation is taken as a mean, but it is
    over- or understated only if the median, the geometric and the weighted mean of the pairs agree.
    For a share or a correlation more is better: *overstated* when H < a. A correlation is Pearson's
    unless its source says otherwise. It is never understated: rare large errors that the pairs do
    not show would lower it.

    Parameters
    ----------
    claim : Claim or None
        None gives "no claim".
    figures : mapping of str to Estimate
        At least those in `AGGREGATIONS`, ``total_error``, ``within_10`` and those that
        `figures_for` names, all of the same pairs.
    pairs : Table
        The pairs behind the metrics; their ``level`` and ``reference`` must be the claim's.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> from errcomp.claims.registry import user_claim
    >>> from errcomp.metrics.intervals import estimate
    >>> from errcomp.tables import Pairs
    >>> data = {"predicted": [1.1, 1.2, 1.3, 1.4] * 5, "measured": [1.0] * 20}
    >>> names = [*AGGREGATIONS.values(), "total_error", "within_10"]
    >>> figures = {name: estimate(name, **data) for name in names}
    >>> judge(user_claim("5%", aggregation="mean"), figures, Pairs(data)).word
    'overstated'
    """
    if claim is None:
        return Verdict("no claim", "No claim is about exactly these pairs.")
    aggregations = {name: figures[key].value for name, key in AGGREGATIONS.items()}
    obstacle = _obstacle(claim, pairs)
    name = _figure_name(claim)
    if obstacle or name is None or claim.interval is None or name not in figures:
        reason = obstacle or (
            f"{claim.metric} cannot be computed from these pairs."
            if claim.metric
            else "The claim names no metric."
        )
        if not obstacle and name is not None and claim.kind == "correlation":
            reason = (
                f"The claim is a correlation ({figure(name).label}), which needs single pairs; "
                "only sums are available here. Load the table into memory first."
            )
        return Verdict("not verifiable", reason, claim, aggregations=aggregations)
    recomputed = _size(figures[name]) if name == "total_error" else figures[name]
    low, high = claim.interval
    agreeing = tuple(
        name
        for name, value in aggregations.items()
        if claim.kind == "error" and claim.contains(value)
    )
    word = word_of(claim, recomputed)
    ratio = _ratio(recomputed.value, low, high, claim)
    reason = _sentence(word, claim, recomputed, ratio, agreeing)
    if undecided := _undecided(word, claim, recomputed, figures):
        word, reason = "not verifiable", undecided
    reason += _reading(claim, name, figures, word)
    return Verdict(word, reason, claim, recomputed, ratio, aggregations, agreeing)


def _undecided(
    word: Word, claim: Claim, recomputed: Estimate, figures: Mapping[str, Estimate]
) -> str:
    """Say why the interval's verdict does not decide the claim; empty where it does."""
    n, label = recomputed.n, figure(recomputed.figure).label
    if word == "not verifiable" and claim.kind == "correlation":
        has = " has" if recomputed.method.startswith("no ") else ":"
        return f"{label} {recomputed.format()}{has} {recomputed.method}."
    if word == "not verifiable":
        told = recomputed.method.startswith("no interval")
        why = recomputed.method if told else f"no interval from {n:,} pairs"
        why = why.removeprefix("no interval: ")
        return f"{why[:1].upper()}{why[1:]}."
    if word == "understated" and n < FEWEST_BELOW:
        return (
            f"{recomputed.format()} from {n:,} pairs is better than {claim.shown}, but {n:,} pairs "
            f"may have missed rare large errors: at least {FEWEST_BELOW} pairs are needed."
        )
    # Missing rare outliers make an interval of a correlation too high (docs/intervals.md).
    if word == "understated" and claim.kind == "correlation":
        return (
            f"{label} {recomputed.format()} from {n:,} pairs is higher than {claim.shown}, but a "
            "few large errors that these pairs do not show could lower the correlation."
        )
    if word == "consistent" or not _is_open(claim):
        return ""
    same = (word, "not verifiable")
    others = [key for key in AGGREGATIONS.values() if word_of(claim, figures[key]) not in same]
    if not others:
        return ""
    names = [name for name, key in AGGREGATIONS.items() if key in others]
    return (
        f"{word.capitalize()} if the claim is a mean ({recomputed.format()} here), but the "
        f"{spoken(names)} of the same {n:,} pairs could be "
        f"{claim.shown}{_UNSAID[claim.claimed_by == 'the user']}."
    )


def figures_for(claim: Claim | None) -> tuple[str, ...]:
    """Return the metrics that `judge` needs for a claim, in addition to those of every audit.

    Examples
    --------
    >>> from errcomp.claims.registry import user_claim
    >>> figures_for(user_claim("0.97", metric="Kendall tau")), figures_for(user_claim("2.3%"))
    (('kendall',), ())
    """
    name = None if claim is None else _figure_name(claim)
    if claim is None or name is None or claim.kind not in ("correlation", "measured"):
        return ()
    return _CORRELATIONS if _is_any_correlation(claim) else (name,)


def _is_any_correlation(claim: Claim) -> bool:
    """Say whether a source leaves open which correlation it means; Pearson's is assumed."""
    words = claim.metric.lower()
    return claim.kind == "correlation" and "corr" in words and figure_meant(words) == "pearson"


def _reading(claim: Claim, name: str, figures: Mapping[str, Estimate], word: Word) -> str:
    """Say which metric was assumed where the claim's could mean several."""
    if claim.metric == "MAE" and name == "mape":
        return " An MAE has the unit of the pairs, so a claim in per cent is treated as a MAPE."
    if name == "r2":
        return " R² is computed as 1 − Σ(p − m)² / Σ(m − m̄)², not as the square of a correlation."
    named = not _is_any_correlation(claim) or "pearson" in claim.metric.lower()
    if named or word != "overstated":
        return ""
    low, high = claim.interval or (math.inf, math.inf)
    values = {figure(other).label: figures[other].value for other in _CORRELATIONS[1:]}
    values["the square of Pearson's correlation"] = figures["pearson"].value ** 2
    fits = [label for label, value in values.items() if low <= value < high]
    if not fits:
        return " The source does not say which correlation the claim is."
    verb = "rounds" if len(fits) == 1 else "round"
    return (
        f" The source does not say which correlation the claim is: {' and '.join(fits)} of the "
        f"same pairs {verb} to {claim.shown}."
    )


def could_hold_as(verdict: Verdict, figures: Mapping[str, Estimate]) -> tuple[str, ...]:
    """Return the other averages under which an over- or understated error could be as claimed.

    A claim called a MAPE is taken as a mean. Where its source does not say how it was averaged, a
    reader should know whether that assumption decides the verdict.

    Examples
    --------
    >>> from errcomp.claims.registry import user_claim
    >>> lows = {"mape": 0.056, "median_ape": 0.02, "gmape": 0.04, "wape": 0.05}
    >>> figures = {name: Estimate(name, 0.09, low=low, high=0.12) for name, low in lows.items()}
    >>> could_hold_as(Verdict("overstated", "", user_claim("2.3%"), figures["mape"]), figures)
    ('median',)
    """
    claim = verdict.claim
    decided = verdict.word in ("overstated", "understated")
    if claim is None or not decided or claim.aggregation != "not stated" or claim.kind != "error":
        return ()
    return tuple(
        name for name, key in AGGREGATIONS.items() if word_of(claim, figures[key]) == "consistent"
    )


def lacks_aggregation(verdict: Verdict) -> bool:
    """Say whether the user's own claim is undecided only because it names no average.

    Examples
    --------
    >>> from errcomp.claims.registry import user_claim
    >>> mape = Estimate("mape", 0.0874, low=0.056, high=0.121, level=0.95, method="log-t")
    >>> lacks_aggregation(Verdict("not verifiable", "", user_claim("2.3%"), mape))
    True
    """
    claim, found = verdict.claim, verdict.recomputed
    if claim is None or found is None or found.low is None:
        return False
    by_user = claim.claimed_by == "the user"
    return by_user and verdict.word == "not verifiable" and _is_open(claim)


def spoken(aggregations: Sequence[str]) -> str:
    """Join the names of aggregations for a sentence.

    Examples
    --------
    >>> spoken(["median", "weighted"])
    'median and the weighted mean'
    """
    return " and the ".join("weighted mean" if a == "weighted" else a for a in aggregations)


def recomputed_as(claim: Claim, recomputed: Estimate) -> str:
    """Write what a claim is compared with, and the name of the metric if it is not an error.

    Examples
    --------
    >>> from errcomp.claims.registry import user_claim
    >>> share = Estimate("within_10", 0.6, low=0.5, high=0.7)
    >>> recomputed_as(user_claim("60%", metric="within-10"), share)
    'share within 10 %: 60.00 % [50.0, 70.0]'
    """
    if claim.kind == "error":
        return recomputed.format()
    colon = ":" if claim.kind == "share" else ""
    return f"{figure(recomputed.figure).label}{colon} {recomputed.format()}"


def _size(total: Estimate) -> Estimate:
    """Return the size of a signed error, because claims are printed without a sign."""
    size = replace(total, value=abs(total.value), definition=f"{total.definition} Its size.")
    if total.low is None or total.high is None:
        return size
    ends = sorted((abs(total.low), abs(total.high)))
    low = 0.0 if total.low <= 0 <= total.high else ends[0]
    return replace(size, low=low, high=ends[1])


def _is_open(claim: Claim) -> bool:
    """Say whether the source leaves open how many errors became one figure."""
    return (
        claim.kind == "error" and claim.aggregation == "not stated" and claim.metric not in _MEANS
    )


def word_of(claim: Claim, recomputed: Estimate) -> Word:
    """Compare the interval of a metric with the numbers that print like the claim.

    Examples
    --------
    >>> from errcomp.claims.registry import user_claim
    >>> mape = Estimate("mape", 0.0874, low=0.056, high=0.121, level=0.95, method="log-t")
    >>> word_of(user_claim("2.3%"), mape), word_of(user_claim("10%"), mape)
    ('overstated', 'consistent')
    """
    claimed = claim.figure
    assert claimed is not None  # the caller has seen to that
    if recomputed.low is None or recomputed.high is None:
        return "not verifiable"
    # More is worse for an error, better for a share or a correlation.
    more_is_worse = claim.kind in ("error", "measured")
    if claimed.lies_below(recomputed.low):
        return "overstated" if more_is_worse else "understated"
    if claimed.lies_above(recomputed.high):
        return "understated" if more_is_worse else "overstated"
    return "consistent"


def _figure_name(claim: Claim) -> str | None:
    if claim.metric in _BY_METRIC:
        return _BY_METRIC[claim.metric]
    if claim.kind == "correlation":
        return figure_meant(claim.metric) or None
    if claim.kind == "measured":
        return "mae" if claim.metric == "MAE" else None
    if claim.kind != "error" or claim.metric not in _ERROR_METRICS:
        return None
    return _BY_AGGREGATION.get(claim.aggregation, "mape")


def _obstacle(claim: Claim, pairs: Table) -> str:
    """Say why these pairs cannot decide this claim; empty when they can."""
    if not claim.printed:
        return "The source gives no figure."
    if not claim.subset and not claim.scope.startswith("not stated"):
        return (
            f"The claim is about {claim.scope}. The table does not say which rows those are: "
            "find them with `errcomp claims search`, or select them with --where and check them "
            f"with --claim {claim.printed}."
        )
    partial = set(pairs.selection) - set(claim.subset) - {"tool"}
    if partial and claim.claimed_by != "the user":
        chosen = ", ".join(f"{key} {' or '.join(pairs.selection[key])}" for key in sorted(partial))
        return f"Only rows with {chosen} were selected; the claim is about more rows than these."
    if "level" in pairs.keys and claim.level != "not stated":
        levels = sorted({str(level) for level in pairs.column("level")})
        if not any(level in claim.level for level in levels):
            return (
                f"The claim is about the {claim.level} level, but the pairs are of the "
                f"{' and '.join(levels)} level: figures of different levels are not comparable."
            )
    return _other_reference(claim, pairs)


def _other_reference(claim: Claim, pairs: Table) -> str:
    """Say that the pairs' reference is not that of the claim; empty if it is.

    Pairs without a stated reference are compared: most claims and most measurements are about
    hardware. The caveat "reference-mismatch" says that the reference is unknown.
    """
    claimed = kind_of_reference(claim.reference)
    if "reference" not in pairs.keys or claimed not in REFERENCE_KINDS:
        return ""
    found = kinds_of_references(pairs.column("reference"))
    others = [kind for kind in found if kind not in (claimed, UNKNOWN)]
    if not others:
        return ""
    kinds = " and ".join(kind for kind in found if kind != UNKNOWN)
    remedy = " Select one reference: --where reference=…" if len(found) > 1 else ""
    return (
        f"The claim's reference is {claim.reference}, but the reference of these pairs is "
        f"{kinds}: figures with different references are not comparable.{remedy}"
    )


def _ratio(value: float, low: float, high: float, claim: Claim) -> float | None:
    printed = parse_printed(claim.printed)
    nearest = (low + high) / 2 if printed.kind == "value" else min(max(value, low), high)
    return value / nearest if nearest > 0 else None


def _sentence(
    word: Word,
    claim: Claim,
    recomputed: Estimate,
    ratio: float | None,
    agreeing: tuple[str, ...],
) -> str:
    found = f"{recomputed_as(claim, recomputed)} from {recomputed.n:,} pairs"
    found = found[:1].upper() + found[1:]
    if word == "consistent":
        if parse_printed(claim.printed).kind == "value":
            return f"{found}: {claim.shown} is within the interval."
        return f"{found}: the interval overlaps the claim {claim.shown}."
    side = "above" if recomputed.value > (claim.high or 0.0) else "below"
    times = "" if ratio is None else f", {ratio:.1f} times the claim"
    text = f"{found}{times}: the whole interval is {side} {claim.shown}."
    others = [name for name in agreeing if AGGREGATIONS[name] != recomputed.figure]
    if others:
        verb = "matches" if len(others) == 1 else "match"
        text += f" The {spoken(others)} of the same pairs {verb} the claim of {claim.shown}."
    return text
