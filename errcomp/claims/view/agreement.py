"""Bland-Altman plot on the log scale: does the error depend on size?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.claims.view import parts
from errcomp.errors import InputError, NotDefinedError, describe_names
from errcomp.report.drawing import axes
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.tables import Pairs

    Floats = NDArray[np.float64]

_LEVEL = 0.95
#: Fewer pairs have no limits of agreement.
_FEWEST = 5
#: Significance at which a trend is drawn and a departure from the normal law is reported.
_CHANCE = 0.05
#: Shapiro and Wilk's W below this is far from normal (that of an exponential law is 0.82). The
#: second is the largest sample for which its p-value is valid.
_FAR, _MOST_TESTED = 0.93, 5000
#: Differences of logarithms up to this are rounding errors.
_ROUNDING = 1e-12
#: Ticks: relative errors whose labels are round.
_ROUND = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
_ROUND_BELOW = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Mean and limits of agreement of log-ratios, each with its interval; None without limits.

    Attributes
    ----------
    mean, low, high : tuple of float or None
        Value, lower and upper end of its 95 % interval.
    slope : tuple of float, or None
        Intercept, slope per unit of log size, and p-value, where the trend is significant.
    normality : float or None
        Shapiro and Wilk's W where the differences are far from normal.
    """

    mean: tuple[float, float, float] | None
    low: tuple[float, float, float] | None
    high: tuple[float, float, float] | None
    slope: tuple[float, float, float] | None
    normality: float | None


def agreement(difference: Floats, size: Floats) -> Agreement:
    r"""Compute limits of agreement of differences, and their trend with size.

    .. math::

        \bar d \pm t_{n-1} \frac{s}{\sqrt n}, \qquad
        \bar d \pm 1.96\,s, \quad
        \mathrm{SE} = s \sqrt{\frac{1}{n} + \frac{1.96^2}{2 (n - 1)}}

    Parameters
    ----------
    difference, size : array, shape (n,)
        ln(predicted / measured), and the logarithm of the size.

    Returns
    -------
    Agreement

    References
    ----------
    Bland and Altman (1999), "Measuring agreement in method comparison studies", Statistical
    Methods in Medical Research 8(2), 135-160, doi:10.1177/096228029900800204.

    Examples
    --------
    >>> found = agreement(np.array([-0.1, 0.0, 0.1, 0.0, 0.0]), np.arange(5.0))
    >>> [round(end, 3) for end in found.high]
    [0.139, -0.023, 0.301]
    """
    from scipy import stats

    n = len(difference)
    if n < _FEWEST:
        return Agreement(None, None, None, None, None)
    mean, sd = float(difference.mean()), float(difference.std(ddof=1))
    z, t = (float(law.ppf((1 + _LEVEL) / 2)) for law in (stats.norm, stats.t(n - 1)))
    of_mean = t * sd / math.sqrt(n)
    of_limit = t * sd * math.sqrt(1 / n + z**2 / (2 * (n - 1)))
    slope = None
    if np.ptp(size) > 0 and np.ptp(difference) > _ROUNDING:
        fit = stats.linregress(size, difference)
        if fit.pvalue < _CHANCE:
            slope = (float(fit.intercept), float(fit.slope), float(fit.pvalue))
    low, high = mean - z * sd, mean + z * sd
    return Agreement(
        (mean, mean - of_mean, mean + of_mean),
        (low, low - of_limit, low + of_limit),
        (high, high - of_limit, high + of_limit),
        slope,
        _far_from_normal(difference),
    )


def _far_from_normal(difference: Floats) -> float | None:
    from scipy import stats

    ordered = np.sort(difference)
    if len(ordered) > _MOST_TESTED:  # quantiles of the sample keep its shape
        ordered = np.quantile(ordered, (np.arange(_MOST_TESTED) + 0.5) / _MOST_TESTED)
    if np.ptp(ordered) <= _ROUNDING:
        return None
    test = stats.shapiro(ordered)
    far = test.statistic < _FAR and test.pvalue < _CHANCE
    return float(test.statistic) if far else None


def bland_altman(pairs: Any, ax: Axes | None = None) -> Axes:
    r"""Draw the relative error of each prediction against its size.

    Each point is a pair. Its height is :math:`d = \ln(p / m)`, labelled in per cent, so that twice
    and half the measurement are equally far from 0. Its place is the geometric mean
    :math:`\sqrt{p\,m}` of both, which favours neither. The solid line is the mean of d. The dashed
    lines are the 95 % limits of agreement, :math:`\bar d \pm 1.96\,s`: most pairs lie between them.
    The shaded areas are their 95 % intervals (Student's t), also written in brackets. A dotted line
    is the trend of d with ln size (least squares), drawn only if its slope is significant at 5 %.

    The limits assume differences that are normal, independent and equally spread at all sizes.
    Evidence against normality or equal spread is written below the title.

    Misleads where pairs of one model or device have correlated errors: the intervals are then too
    narrow, and the trend may be chance.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
        Of one tool, or of a table whose subject is one. Limits need five pairs or more.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        There is no pair, or pairs of several tools.
    NotDefinedError
        No prediction is positive.
    MissingExtraError
        Matplotlib is not installed.

    References
    ----------
    Bland and Altman (1986), "Statistical methods for assessing agreement between two methods of
    clinical measurement", Lancet 327, 307-310, doi:10.1016/S0140-6736(86)90837-8.

    Examples
    --------
    >>> axes = bland_altman({"predicted": [11.0, 70.0], "measured": [10.0, 100.0]})
    >>> axes.get_xlabel()
    'size: √(predicted × measured) (unit not stated)'
    """
    table, missing = _of_one_tool(parts.checked(pairs))
    difference = np.log(table.predicted) - np.log(table.measured)
    size = (np.log(table.predicted) + np.log(table.measured)) / 2
    summary = agreement(difference, size)
    ax = _style.canvas(ax, 4.2)
    _limits(ax, difference, size, summary)
    dense = table.n > parts.DENSE
    look = parts.Look("", np.arange(table.n), _style.BLUE, "o")
    parts.dots(ax, np.exp(size), difference, look, dense=dense)
    ax.axhline(0, color=_style.MUTED, lw=0.8, zorder=1)
    _lines(ax, summary)
    parts.tell_pairs(ax, table, np.arange(table.n), np.exp(size), difference)
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(
        ax,
        _text.with_unit("size: √(predicted × measured)", table.unit),
        "predicted − measured (% of measured)",
    )
    _style.heading(
        ax,
        f"Does the error{parts.of_table(table)} depend on size? n={_text.count(table.n, 'pair')}",
        _notes(table, summary, difference, missing),
        room=2,
    )
    return ax


def _of_one_tool(table: Pairs) -> tuple[Pairs, int]:
    """Return the pairs to draw, and how many predictions are not positive."""
    chosen = table.of_tool() if table.subject in table.tools else table
    if len(chosen.tools) > 1:
        raise InputError(
            f"limits of agreement need pairs of one tool, got {len(chosen.tools)} tools: "
            f"{describe_names(chosen.tools)}. Choose one with pairs.of_tool(NAME)."
        )
    shown = chosen.predicted > 0
    if not shown.any():
        raise NotDefinedError(
            f"none of the predictions is positive ({_text.count(chosen.n, 'pair')}), but the log "
            "scale needs positive numbers. Draw the errors instead (ecdf, by_group)."
        )
    return chosen if shown.all() else chosen.take(shown), int((~shown).sum())


def _limits(ax: Axes, difference: Floats, size: Floats, summary: Agreement) -> None:
    every = [float(difference.min()), float(difference.max()), 0.0]
    for ends in (summary.mean, summary.low, summary.high):
        every += ends or ()
    low, high = min(every), max(every)
    room = 0.06 * (high - low) or 0.05
    ax.set_ylim(low - room, high + room)
    x = np.exp([float(size.min()), float(size.max())])
    factor = max(1.15, float(x[1] / x[0]) ** 0.04)
    ax.set_xscale("log")
    ax.set_xlim(x[0] / factor, x[1] * factor)
    axes.log_ticks(ax.xaxis, apart=0.09)
    _percent_ticks(ax)


def _percent_ticks(ax: Axes) -> None:
    """Put ticks at round relative errors, from 0 outwards, where they have room."""
    low, high = ax.get_ylim()
    gap = 0.075 * (high - low)
    ticks = [0.0]
    for side, values in ((1, _ROUND), (-1, _ROUND_BELOW)):
        last = 0.0
        for value in values:
            at = math.log1p(side * value)
            if low <= at <= high and abs(at - last) >= gap:
                ticks.append(at)
                last = at
    ticks.sort()
    labels = [_tick(math.expm1(at)) for at in ticks]
    ax.set_yticks(ticks, labels)


def _tick(change: float) -> str:
    """Write a round relative error."""
    return f"{100 * change:+,.5g} %".replace("-", "−") if abs(change) > 1e-9 else "0 %"


def _percent(change: float) -> str:
    """Write a relative error with one decimal, or without decimals if it is 100 % or more."""
    if abs(change) < 0.0005:
        return "0.0"
    text = f"{100 * change:+.1f}" if abs(change) < 1 else f"{100 * change:+,.0f}"
    return text.replace("-", "−")


def _lines(ax: Axes, summary: Agreement) -> None:
    """Draw mean, limits and trend; label mean and limits at the right."""
    left, right = ax.get_xlim()
    if summary.slope is not None:
        intercept, slope, _ = summary.slope
        x = np.array([left, right])
        ax.plot(x, intercept + slope * np.log(x), color=_style.ORANGE, lw=1.8, ls=(0, (1, 1)),
                zorder=5, label="trend")  # fmt: skip
    if summary.mean is None or summary.low is None or summary.high is None:
        return
    told = (
        ("limit", summary.high, (0, (5, 2)), _style.INK),
        ("mean", summary.mean, "-", _style.BLUE),
        ("limit", summary.low, (0, (5, 2)), _style.INK),
    )
    texts = []
    for name, (value, low, high), dashes, tint in told:
        ax.axhspan(low, high, facecolor=_style.blend(tint, 0.14), edgecolor=_style.FAINT, lw=0.5,
                   zorder=0.5)  # fmt: skip
        ax.axhline(value, color=tint, lw=1.4, ls=dashes, zorder=4.5)
        middle, *ends = (_percent(math.expm1(end)) for end in (value, low, high))
        texts.append(f"{name} {middle} % [{', '.join(ends)}]")
    values = [row[1][0] for row in told]
    tints = [row[3] for row in told]
    _style.side_labels(ax, [right] * 3, values, texts, tints)


def _notes(table: Pairs, summary: Agreement, difference: Floats, missing: int) -> list[str]:
    if summary.low is None or summary.high is None:
        notes = [f"fewer than {_FEWEST} pairs: too few for the 95 % limits"]
    else:
        inside = (difference >= summary.low[0]) & (difference <= summary.high[0])
        notes = [
            f"{int(inside.sum()):,} of {table.n:,} pairs ({_text.share(float(inside.mean()))}) "
            "between the limits (95 % if normal); [ ]: 95 % intervals"
        ]
    if summary.slope is not None:
        per_ten = math.expm1(summary.slope[1] * math.log(10))
        notes.append(
            f"dotted: trend of predicted / measured, {_text.signed(per_ten)} per tenfold size "
            f"({_p_value(summary.slope[2])})"
        )
    elif summary.mean is not None:
        notes.append("no significant trend with size (5 % level)")
    if summary.normality is not None:
        low, high = (math.expm1(float(np.quantile(difference, q))) for q in (0.025, 0.975))
        notes.append(
            f"errors far from normal (Shapiro-Wilk W={summary.normality:.2f}): 95 % are between "
            f"{_percent(low)} and {_percent(high)} %"
        )
    notes += _uneven(table)
    if missing:
        notes.append(f"not drawn: {_text.count(missing, 'prediction')} of 0 or less")
    return notes


def _uneven(table: Pairs) -> list[str]:
    """Say that small quantities have larger errors, if the caveat's check finds it."""
    from errcomp.caveats._case import Case
    from errcomp.caveats.shape import small_quantities

    finding = small_quantities(Case(table))
    if finding is None or finding.caveat is None or finding.p is None or finding.p >= _CHANCE:
        return []
    smallest, share = (finding.caveat.evidence[k] for k in ("n_smallest", "share_of_error"))
    return [
        f"{_text.share(share)} of the MAPE comes from the smallest "
        f"{_text.count(smallest, 'pair')}: the limits are too wide for large ones"
    ]


def _p_value(p: float) -> str:
    return f"p={p:.2g}" if p >= 0.001 else "p<0.001"
