"""Caveats that other parts of the package attach: to an interval, or to the drivers of an error."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ELSEWHERE", "Note"]


@dataclass(frozen=True, slots=True)
class Note:
    """What a caveat means that no check of pairs finds; see `errcomp.caveats.Check`."""

    code: str
    title: str
    why: str
    remedy: str


ELSEWHERE: tuple[Note, ...] = (
    Note(
        "few-configurations",
        "An interval from few pairs",
        "Attached to an interval whose method, in simulations of samples of this size and larger, "
        "covered the truth in fewer than 93 % of cases where it says 95 % (docs/intervals.md).",
        "Read the interval as too narrow, measure more configurations, or use the default method.",
    ),
    Note(
        "few-clusters",
        "An interval from few clusters",
        "The same for intervals that draw whole clusters: what counts is the number of clusters, "
        "however many pairs each has. Below 3 clusters there is no interval. Also attached to a "
        "regression, whose intervals tend to be too narrow with few clusters.",
        "Read the interval as too narrow, or measure more models or devices rather than more "
        "configurations of these.",
    ),
    Note(
        "errors-near-zero",
        "Some errors are next to zero",
        "Attached to drivers of an error when an error lies below one hundredth of the median: its "
        "ratio to any other would be a ratio to noise. It counts as that hundredth.",
        "Nothing, if there are few; with many, read the effects in points instead of ratios.",
    ),
    Note(
        "same-predictions",
        "Devices that the tool does not tell apart",
        "Attached to drivers when devices share 3 configurations or more, each with one "
        "prediction: their errors are not independent, and they count as one device.",
        "Ask the tool's authors whether the devices are meant to be one.",
    ),
    Note(
        "no-matched-configurations",
        "A factor that nothing was held equal for",
        "Attached to drivers when no two configurations differ in a factor and agree in everything "
        "else. A fact, no test.",
        "Measure one configuration at both levels of the factor.",
    ),
    Note(
        "no-regression",
        "No regression on all factors",
        "Attached to drivers when statsmodels is not installed, or the rows are fewer than the "
        "coefficients need. The matched contrasts stand without it.",
        "Install errcomp[drivers], or name fewer factors.",
    ),
    Note(
        "mixed-model-fallback",
        "Least squares in place of a mixed model",
        "Attached to a regression whose mixed model could not be fitted; the standard errors are "
        "clustered instead.",
        "Nothing: the intervals are those of the method named.",
    ),
    Note(
        "model-not-adjusted",
        "A regression that does not adjust for the model",
        "Attached to a regression with too few rows for a coefficient of each model.",
        "Trust the matched contrasts, which compare each model with itself.",
    ),
)
