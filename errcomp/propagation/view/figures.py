"""Figures of propagated errors: axes in, axes out, and reproducible files.

Each function takes a result and, optionally, axes to draw on, and returns the axes. They open no
window, do not touch pyplot, and leave Matplotlib's settings unchanged. Matplotlib is imported at
first use (``pip install 'errcomp[figures]'``). The palette follows Okabe and Ito (2008).

`bands` draws one run under each assumption, `budget` the sources of its error, `growth` the error
from level to level, `calibration` and `pit` the coverage of bands. `save` writes PNG, SVG or PDF.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, NotDefinedError, describe_names
from errcomp.propagation.terms import first_level
from errcomp.propagation.view.errors import budget, growth
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.axes import promised
from errcomp.report.drawing.hover import tell
from errcomp.report.drawing.saving import save
from errcomp.results import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.propagation.outcome import Outcome, Propagation
    from errcomp.propagation.validation import Validation

__all__ = ["bands", "budget", "calibration", "growth", "pit", "save"]


_THICKEST, _THINNEST = 0.66, 0.30
#: Bounds may lengthen the axis to either side by this many times the range of the rest.
_MOST_FOR_BOUNDS = 2.0
#: Least share of the axis of a band with a marked median; the mark would hide narrower bands.
_LEAST_FOR_MEDIAN = 0.015


def bands(propagation: Propagation, run: str | None = None, ax: Axes | None = None) -> Axes:
    r"""Draw the bands of one run under each assumption, with predicted and measured time.

    One row per assumption. The bands of an assumption are nested, the narrowest darkest and
    thickest; a white line is the median, where bands are wide enough to show it. Bounds for any
    dependence are outlines: they contain at least their level and have no median. The 90 % band (or
    the widest) is also written.
    A band without a finite end (a queue that may be saturated) runs to the edge and ends in an
    arrow, with the probability of saturation beside it. Bounds that would leave no room for other
    bands also end in an arrow.

    Misleads if bands of different runs are compared visually: each figure has its own axis.

    Parameters
    ----------
    propagation : Propagation
    run : str, optional
        The first run by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No such run.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from errcomp import Kernels
    >>> from errcomp.propagation import ClassError, ErrorModel, propagate
    >>> kernels = Kernels({"kernel": ["gemm"], "count": [32], "predicted": [1.0]}, unit="ms")
    >>> result = propagate(kernels, errors=ErrorModel({"gemm": ClassError(0.0, 0.1)}),
    ...                    correlation=["independent", "comonotonic"])
    >>> [name.get_text() for name in bands(result).get_yticklabels()]
    ['independent', 'comonotonic']
    """
    wanted = propagation.of(run).run
    outcomes = [outcome for outcome in propagation.outcomes if outcome.run == wanted]
    ax = _style.canvas(ax, 1.75 + 0.36 * len(outcomes))
    _set_limits(ax, outcomes)
    levels = sorted({band.level for outcome in outcomes for band in outcome.bands})
    for y, outcome in enumerate(outcomes):
        _row(ax, y, outcome, levels)
        _beside(ax, y, outcome, first_level(levels))
        _tell(ax, y, outcome)
    _style.names_on_y(
        ax,
        [outcome.assumption + (" (bounds)" if _is_bounds(outcome) else "") for outcome in outcomes],
        above=0.5,
    )
    if levels:
        _style.beside(
            ax, -0.75, f"{_percent(first_level(levels))} band", points=9, colour=_style.MUTED
        )
    unit = f" {propagation.unit}" if propagation.unit else ""
    room = _keys(ax, outcomes, levels, unit)
    ax.grid(axis="x", color=_style.GRID)
    quantity = _quantity(outcomes)
    _style.name_axes(ax, x=_text.with_unit(quantity, propagation.unit))
    n = propagation.model.n_runs
    _style.heading(
        ax,
        _text.of_run(quantity.capitalize(), wanted),
        [
            f"bands and median under {_text.count(len(outcomes), 'assumption')}; "
            + (f"errors fitted to n={_text.count(n, 'run')}" if n else "errors given, not fitted")
        ],
        room=room,
    )
    return ax


def _quantity(outcomes: Sequence[Outcome]) -> str:
    """Name the total. Only sums have budgets; without one it may be the time of a graph."""
    budgets = any(outcome.by_class is not None for outcome in outcomes)
    return "sum of kernel times" if budgets else "total time"


def _is_bounds(outcome: Outcome) -> bool:
    return outcome.median is None


def _percent(level: float) -> str:
    return f"{100 * level:.6g} %"


def _set_limits(ax: Axes, outcomes: Sequence[Outcome]) -> None:
    """Set limits around all finite values, with room for bands beside bounds."""
    core: list[float] = []
    wide: list[float] = []
    for outcome in outcomes:
        ends = [end for band in outcome.bands for end in (band.low, band.high)]
        (wide if _is_bounds(outcome) else core).extend(filter(math.isfinite, ends))
        points = (outcome.prediction, outcome.measured, outcome.median)
        core += [x for x in points if x is not None and math.isfinite(x)]
    if not core or all(map(_is_bounds, outcomes)):
        core, wide = core + wide, []
    low, high = min(core, default=0.0), max(core, default=1.0)
    most = _MOST_FOR_BOUNDS * (high - low)
    if wide and most:
        low, high = min(low, max(min(wide), low - most)), max(high, min(max(wide), high + most))
    room = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
    ax.set_xlim(low - room, high + room)
    if not core:
        ax.set_xticks([])  # nothing is finite, so a scale has no meaning


def _shade(level: float, levels: Sequence[float]) -> str:
    """Return the tint of a level: the narrowest is the darkest."""
    rank = levels.index(level) / max(len(levels) - 1, 1)
    return _style.blend(_style.BLUE, 0.9 - 0.68 * rank)


def _row(ax: Axes, y: int, outcome: Outcome, levels: Sequence[float]) -> None:
    left, right = ax.get_xlim()
    bounds = _is_bounds(outcome)
    for band in sorted(outcome.bands, key=lambda band: -band.level):
        rank = levels.index(band.level) / max(len(levels) - 1, 1)
        low, high = (min(max(end, left), right) for end in (band.low, band.high))
        ax.barh(
            y,
            high - low,
            height=_THICKEST + (_THINNEST - _THICKEST) * rank,
            left=low,
            facecolor="white" if bounds else _shade(band.level, levels),
            edgecolor=_style.MUTED if bounds else _style.BLUE,
            linewidth=0.8 if bounds else 0.6,
            zorder=2,
        )
    for beyond, edge, mark in (
        (any(band.high > right for band in outcome.bands), 1, ">"),
        (any(band.low < left for band in outcome.bands), 0, "<"),
    ):
        if beyond:
            ax.plot([edge], [y], mark, color=_style.INK, ms=6, clip_on=False, zorder=5,
                    transform=ax.get_yaxis_transform())  # fmt: skip
    narrowest = min((band.high - band.low for band in outcome.bands), default=0.0)
    wide = narrowest >= _LEAST_FOR_MEDIAN * (right - left)
    if outcome.median is not None and math.isfinite(outcome.median) and wide:
        half = _THICKEST / 2
        ax.plot([outcome.median] * 2, [y - half, y + half], color="white", lw=1.0, zorder=3)


def _tell(ax: Axes, y: int, outcome: Outcome) -> None:
    """Add a tooltip with the bands at the median of a row, or in the middle of the axes."""
    left, right = ax.get_xlim()
    middle = outcome.median
    known = middle is not None and math.isfinite(middle)
    ends = [f"median {format_number(middle)}"] if middle is not None and known else []
    ends += [f"{_percent(band.level)}: {_text.span(band.low, band.high)}" for band in outcome.bands]
    at = middle if middle is not None and known else (left + right) / 2
    tell(ax, [at], [y], [f"{outcome.assumption}\n{'; '.join(ends)}"])


def _beside(ax: Axes, y: int, outcome: Outcome, level: float) -> None:
    """Write a band and the probability of saturation."""
    lines = [_text.span(band.low, band.high) for band in outcome.bands if band.level == level]
    if outcome.saturated:
        lines.append(f"saturated: {_text.share(outcome.saturated)}")
    if lines:
        _style.beside(ax, y, "\n".join(lines), points=9)


def _keys(ax: Axes, outcomes: Sequence[Outcome], levels: Sequence[float], unit: str) -> float:
    """Mark predicted and measured time, and draw the key."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    tints: list[Patch] = []
    if not all(map(_is_bounds, outcomes)):
        tints += [
            Patch(facecolor=_shade(level, levels), edgecolor=_style.BLUE, lw=0.6,
                  label=_percent(level))
            for level in levels
        ]  # fmt: skip
    if any(map(_is_bounds, outcomes)):
        tints.append(Patch(facecolor="white", edgecolor=_style.MUTED, label="bounds: at least"))
    prediction, measured = outcomes[0].prediction, outcomes[0].measured
    dashed = Line2D([], [], color=_style.ORANGE, lw=1.4, ls=(0, (4, 2)))
    if math.isfinite(prediction):
        dashed = ax.axvline(prediction, color=_style.ORANGE, lw=1.4, ls=(0, (4, 2)), zorder=4)
        dashed.set_label(f"predicted {format_number(prediction)}{unit}, uncorrected")
    else:
        dashed.set_label("predicted: saturated")
    marks = [dashed]
    if measured is not None:
        marks += ax.plot(
            [measured] * len(outcomes), range(len(outcomes)), "D", ms=5, mfc="white", mew=1.3,
            color=_style.INK, ls="", zorder=4, label=f"measured {format_number(measured)}{unit}",
        )  # fmt: skip
    return _style.keys(ax, [tints, marks])


_BINS = 10
#: Characters of a name beside the axes.
_BESIDE = 24
#: Probability of the interval of a bin's count.
_BIN_LEVEL = 0.9


def calibration(validation: Validation, ax: Axes | None = None) -> Axes:
    r"""Draw the share of totals inside their bands against the share that should be.

    On the diagonal, bands cover as often as promised; below it they are too narrow, above it too
    wide. Vertical lines are the 95 % intervals of `coverage_interval`: totals of one device have
    correlated errors, so the lines are long with few devices. Points of one level are side by side
    so that their intervals are visible. Bounds for any dependence promise "at least" and should be
    above.

    Misleads if the line nearest to the diagonal is taken as the best assumption: among valid ones,
    prefer the lower interval score.

    Parameters
    ----------
    validation : Validation
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        No assumption was validated.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from errcomp.propagation.validation import Validation, ValidationRow
    >>> rows = [ValidationRow("estimated", level, level, level - 0.1, level + 0.05, 87, 8, 0.2, 0.3)
    ...         for level in (0.5, 0.9)]
    >>> axes = calibration(Validation(tuple(rows), {}, (), "device", "total", ()))
    >>> [line.get_ydata().tolist() for line in axes.lines if line.get_label() == "estimated"]
    [[50.0, 90.0]]
    """
    if not validation.rows:
        raise NotDefinedError("there is no coverage to draw: no assumption was validated")
    names = list(dict.fromkeys(row.assumption for row in validation.rows))
    levels = sorted({row.level for row in validation.rows})
    ax, room = promised(ax, levels, max(4.2, 1.6 + 0.19 * len(names)))
    tints, marks = _style.colours(names), _style.markers(names)
    offsets = room * (np.arange(len(names)) - (len(names) - 1) / 2) / max(len(names), 2)
    ends = []
    for i, name in enumerate(names):
        rows = sorted((r for r in validation.rows if r.assumption == name), key=lambda r: r.level)
        x = [100 * row.level + float(offsets[i]) for row in rows]
        y = [100 * row.coverage for row in rows]
        ax.plot(x, y, color=tints[i], marker=marks[i], ms=5, lw=1.0, zorder=4, label=name)
        low = [100 * row.coverage_low for row in rows]
        high = [100 * row.coverage_high for row in rows]
        ax.vlines(x, low, high, color=tints[i], lw=0.9, zorder=3)
        tell(
            ax,
            x,
            y,
            [
                f"{name}, {100 * row.level:g} % band\n{_text.share(row.coverage)} inside "
                f"[{_text.share(row.coverage_low)}, {_text.share(row.coverage_high)}], n={row.n:,}"
                for row in rows
            ],
        )
        ends.append((x[-1], y[-1], name + (" (bounds)" if name == "unknown" else "")))
    _style.side_labels(
        ax,
        [e[0] for e in ends],
        [e[1] for e in ends],
        _text.fitting([e[2] for e in ends], _BESIDE),
        tints,
    )
    _style.name_axes(ax, x="nominal coverage of the band", y="totals inside the band")
    row = validation.rows[0]
    word = validation.left_out or "cluster"
    how = f"each {word} held out in turn" if validation.left_out else "errors from another table"
    _style.heading(
        ax,
        f"Do bands hold? n={_text.count(row.n, 'total')}, {_text.count(row.n_clusters, word)}",
        [how, "thick black bars: nominal coverage; vertical lines: 95 % interval"],
        room=2,
    )
    return ax


def pit(validation: Validation, assumption: str, ax: Axes | None = None) -> Axes:
    r"""Draw where measured totals fall in their distributions (probability integral transform).

    Counts of :math:`u_i = F_i(y_i)` in ten bins. With the right distributions u is uniform: each
    bin holds n/10 on average, and with probability 90 % a number within the grey band, the central
    interval of the binomial distribution with n and 1/10. High at both ends: bands are too narrow.
    High in the middle: too wide. Leaning to one side: biased.

    Misleads if totals are correlated, e.g. those of one device: they fall into the same bins, which
    then leave the grey band more often than in 10 % of cases.

    Parameters
    ----------
    validation : Validation
    assumption : str
        An assumption with a distribution; bounds have none.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No such assumption, or it has no distribution.
    MissingExtraError
        Matplotlib is not installed.

    References
    ----------
    Dawid (1984), "Statistical Theory: The Prequential Approach", JRSS A 147(2), 278-292,
    doi:10.2307/2981683.

    Examples
    --------
    >>> import numpy as np
    >>> from errcomp.propagation.validation import Validation
    >>> result = Validation((), {"estimated": np.array([0.05, 0.55, 1.0])}, (), "device", "", ())
    >>> [int(bar.get_height()) for bar in pit(result, "estimated").patches]
    [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]
    """
    from scipy import stats

    if assumption not in validation.pit:
        validated = assumption in {row.assumption for row in validation.rows}
        why = "bounds have no distribution" if validated else "it was not validated"
        raise InputError(
            f"no PIT (probability integral transform) for {assumption!r}: {why}. Assumptions with "
            f"a PIT: {describe_names(list(validation.pit), wanted=str(assumption))}"
        )
    values = np.asarray(validation.pit[assumption], dtype=float)
    if not len(values) or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"PIT values of {assumption!r} must be one or more numbers from 0 to 1")
    n = len(values)
    counts, edges = np.histogram(values, bins=_BINS, range=(0.0, 1.0))
    tail = (1 - _BIN_LEVEL) / 2
    low, high = (float(stats.binom.ppf(q, n, 1 / _BINS)) for q in (tail, 1 - tail))
    ax = _style.canvas(ax, 3.4)
    from matplotlib.ticker import MaxNLocator

    ax.fill_between([0, 1], low, high, facecolor=_style.blend(_style.INK, 0.14),
                    edgecolor=_style.MUTED, lw=0.8, zorder=1)  # fmt: skip
    ax.hlines([low, high], 0, 1, color=_style.MUTED, lw=0.8, zorder=3)
    tint = _style.colours([assumption])[0]
    ax.bar(edges[:-1], counts, width=0.1, align="edge", color=tint, edgecolor="white", zorder=2)
    ax.axhline(n / _BINS, color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=4)
    tell(
        ax,
        edges[:-1] + 0.05,
        counts,
        [
            f"position {low_edge:.1f} to {low_edge + 0.1:.1f}\n"
            f"{_text.count(int(n_in_bin), 'total')} of {n:,}"
            for low_edge, n_in_bin in zip(edges[:-1], counts, strict=True)
        ],
    )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.08 * max(float(counts.max()), float(high)))
    _style.beside(
        ax, n / _BINS, f"uniform, and\n{_BIN_LEVEL:.0%} interval\nof a bin".replace("%", " %")
    )
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    _style.name_axes(
        ax,
        x="position of the total in its predicted distribution (0: below, 1: above)",
        y="totals",
    )
    _style.heading(
        ax,
        f"Quantiles (PIT), n={_text.count(n, 'total')}, assumption: {_text.shorten(assumption)}",
        ["flat: bands hold; high at the ends: too narrow; in the middle: too wide"],
        room=2,
    )
    return ax
