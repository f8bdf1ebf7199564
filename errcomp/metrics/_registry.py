"""Every scalar figure by name: what people call it, its unit, its definition, when it misleads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from errcomp.errors import InputError, did_you_mean
from errcomp.metrics import agreement, averages, ranked, signed, squared

__all__ = ["FIGURES", "Figure", "FigureKind", "FigureUnit", "figure"]

FigureUnit = Literal["fraction", "ratio", "log", "correlation", "measured"]
FigureKind = Literal["mean", "smooth", "share", "quantile", "maximum", "rank"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One scalar figure of predictions and measurements.

    Attributes
    ----------
    name : str
        Name in code and on the command line.
    label : str
        What people read.
    unit : str
        ``"fraction"`` (shown as percent), ``"ratio"``, ``"log"``, ``"correlation"`` (a plain number
        of at most 1) or ``"measured"`` (the unit of the data).
    function : callable
        ``function(predicted=..., measured=..., zeros="raise")`` gives a float.
    definition : str
        Denominator and aggregation in one sentence.
    misleads : str
        When not to trust it, in one sentence.
    kind : str
        What it is in statistical terms, which decides how an interval can be made: ``"mean"`` of
        one value per pair, ``"smooth"`` function of such means, ``"share"`` of pairs,
        ``"quantile"``, ``"maximum"``, or ``"rank"`` (of the order of the values only).
    """

    name: str
    label: str
    unit: FigureUnit
    function: Callable[..., float]
    definition: str
    misleads: str
    kind: FigureKind


def _within(percent: int) -> Figure:
    return Figure(
        f"within_{percent}",
        f"share within {percent} %",
        "fraction",
        partial(ranked.share_within, threshold=percent / 100),
        f"Share of the pairs whose absolute error is at most {percent} % of their measurement.",
        "Says nothing about how far off the other pairs are.",
        "share",
    )


def _percentile(percent: int) -> Figure:
    return Figure(
        f"p{percent}_ape",
        f"P{percent} APE",
        "fraction",
        partial(ranked.ape_quantile, q=percent / 100),
        f"The {percent}th percentile of the absolute errors, each as a share of its measurement, "
        "with linear interpolation between neighbours.",
        f"With fewer than {1000 // (100 - percent)} pairs fewer than ten errors lie above it; with "
        "few it is an interpolation between the largest two.",
        "quantile",
    )


def _approximate(name: str, percent: int) -> Figure:
    exact = "median APE" if percent == 50 else f"P{percent} APE"
    return Figure(
        f"{name}_approx",
        f"{exact} ±0.5 %",
        "fraction",
        partial(ranked.approximate_ape_quantile, q=percent / 100),
        f"The {'median' if percent == 50 else f'{percent}th percentile'} of the absolute errors, "
        "each as a share of its measurement, to within half a per cent of itself: from counts in "
        "buckets 1 % wide, which engines can add up.",
        "Two of them that differ by less than 1 % may be equal.",
        "quantile",
    )


_ALL = (
    Figure(
        "mape",
        "MAPE",
        "fraction",
        averages.mape,
        "Arithmetic mean over pairs of the absolute error, each as a share of its measurement.",
        "Small quantities that are off by large factors dominate it, and predictors that are too "
        "low look better than those that are too high.",
        "mean",
    ),
    Figure(
        "median_ape",
        "median APE",
        "fraction",
        ranked.median_ape,
        "Median over pairs of the absolute error, each as a share of its measurement.",
        "Says nothing about the larger half of the errors.",
        "quantile",
    ),
    Figure(
        "gmape",
        "GMAPE",
        "fraction",
        averages.gmape,
        "Geometric mean over pairs of the absolute error, each as a share of its measurement; "
        "0 if any prediction is exact.",
        "Never above the MAPE; a few predictions that happen to be nearly exact pull it down.",
        "smooth",
    ),
    Figure(
        "gm_ratio",
        "geometric mean of predicted/measured",
        "ratio",
        averages.gm_ratio,
        "Geometric mean over pairs of the prediction divided by its measurement.",
        "A measure of bias, not of accuracy: too high and too low by the same factor cancel.",
        "smooth",
    ),
    Figure(
        "wape",
        "WAPE",
        "fraction",
        averages.wape,
        "Sum of all absolute errors divided by the sum of all measurements.",
        "Large quantities dominate; small ones hardly count, however wrong they are.",
        "smooth",
    ),
    Figure(
        "total_error",
        "error of the total",
        "fraction",
        signed.total_error,
        "Sum of all predictions minus the sum of all measurements, divided by the sum of all "
        "measurements; the relative difference of the two means.",
        "Errors of opposite sign cancel: small for a sum says nothing of a single pair, nor of "
        "another mix of pairs.",
        "smooth",
    ),
    Figure(
        "bias",
        "mean signed error",
        "fraction",
        signed.bias,
        "Arithmetic mean over pairs of predicted minus measured, each as a share of its "
        "measurement.",
        "A measure of direction, not of accuracy: errors of opposite sign cancel.",
        "mean",
    ),
    Figure(
        "smape",
        "sMAPE",
        "fraction",
        averages.smape,
        "Arithmetic mean over pairs of the absolute error, each as a share of half the sum of the "
        "absolute prediction and measurement (0 to 200 %).",
        "Several definitions are in use that differ by a factor of two; it cannot exceed 200 %.",
        "mean",
    ),
    Figure(
        "mae",
        "MAE",
        "measured",
        averages.mae,
        "Arithmetic mean over pairs of the absolute error, in the unit of the data.",
        "Large quantities dominate; means nothing without the unit. A published MAE in percent is "
        "a MAPE.",
        "mean",
    ),
    Figure(
        "rmse",
        "RMSE",
        "measured",
        squared.rmse,
        "Square root of the mean over pairs of the squared error, in the unit of the data.",
        "The largest quantities dominate by their square; means nothing without the unit.",
        "smooth",
    ),
    Figure(
        "rmspe",
        "RMSPE",
        "fraction",
        squared.rmspe,
        "Square root of the mean over pairs of the squared error, each error as a share of its "
        "measurement.",
        "One pair that is far off sets it.",
        "smooth",
    ),
    Figure(
        "rmsle",
        "RMSLE",
        "log",
        squared.rmsle,
        "Square root of the mean over pairs of the squared natural logarithm of "
        "predicted/measured (nothing added to either).",
        "Not a percentage, and not the figure of the same name with 1 added to both values.",
        "smooth",
    ),
    Figure(
        "max_ape",
        "max APE",
        "fraction",
        ranked.max_ape,
        "Largest absolute error of all pairs, each as a share of its measurement.",
        "Grows with the number of pairs, so that it does not compare between samples of different "
        "size and bounds no future error.",
        "maximum",
    ),
    *(_percentile(p) for p in (90, 95, 99)),
    _approximate("median_ape", 50),
    *(_approximate(f"p{p}_ape", p) for p in (90, 95, 99)),
    *(_within(p) for p in (5, 10, 20)),
    Figure(
        "r2",
        "R²",
        "correlation",
        agreement.r2,
        "One minus the sum of squared errors divided by the sum of squared deviations of the "
        "measurements from their mean.",
        "Near 1 whenever the measurements span orders of magnitude, even if small ones are off by "
        "large factors.",
        "smooth",
    ),
    Figure(
        "pearson",
        "Pearson correlation",
        "correlation",
        agreement.pearson,
        "Covariance of predictions and measurements divided by the product of their standard "
        "deviations.",
        "Not an error: predictions ten times too high can correlate perfectly.",
        "smooth",
    ),
    Figure(
        "spearman",
        "Spearman rank correlation",
        "correlation",
        agreement.spearman,
        "Pearson's correlation of the ranks of predictions and measurements, ties sharing their "
        "mean rank.",
        "Not an error: it sees the order only.",
        "rank",
    ),
    Figure(
        "kendall",
        "Kendall tau-b",
        "correlation",
        agreement.kendall,
        "Pairs of pairs in the same order minus those in the opposite order, divided by the "
        "geometric mean of the numbers not tied in the predictions and in the measurements.",
        "Not an error: it sees the order only.",
        "rank",
    ),
    Figure(
        "top_1_regret",
        "top-1 regret",
        "fraction",
        partial(agreement.top_k_regret, k=1),
        "Measurement of the candidate predicted lowest minus the lowest measurement, divided by "
        "the lowest measurement.",
        "Means something only where the rows are alternatives to choose from, and low is good.",
        "rank",
    ),
)

#: All scalar figures by name.
FIGURES: dict[str, Figure] = {one.name: one for one in _ALL}


def figure(name: str) -> Figure:
    """Look up a figure by name.

    Parameters
    ----------
    name : str
        A key of ``FIGURES``.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        There is no such figure; the message has the closest name and lists all.

    Examples
    --------
    >>> figure("mape").label, figure("mape").unit
    ('MAPE', 'fraction')
    """
    if name in FIGURES:
        return FIGURES[name]
    hint = did_you_mean(str(name), FIGURES)
    raise InputError(f"no figure {name!r}. {hint}Figures: {', '.join(FIGURES)}")
