"""Picture of the bands of one run, assumption by assumption."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from errcomp.report import _style, _text
from errcomp.report._hover import tell
from errcomp.results import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.propagation.outcome import Outcome, Propagation

__all__ = ["bands"]

#: The band written out beside its bar, where it was computed.
_PRINTED = 0.9
_THICKEST, _THINNEST = 0.66, 0.30
#: Bounds may make the axis longer by so many times the range of all else, to either side.
_MOST_FOR_BOUNDS = 2.0
#: A median is marked in bands that take up this share of the axis or more: it would hide others.
_LEAST_FOR_MEDIAN = 0.015


def bands(propagation: Propagation, run: str | None = None, ax: Axes | None = None) -> Axes:
    r"""Draw the bands of one run under each assumption, against what was predicted and measured.

    One row per assumption. The bands of an assumption lie within each other, the narrowest darkest
    and thickest; a white line is the median, where bands are wide enough to show it. Bounds for any
    dependence are outlines: they hold at least their level and have no median. The 90 % band (the
    widest, without one) is written beside.
    A band without a finite end (a queue that may be saturated) runs to the edge and ends in an
    arrow; the probability of saturation is written beside it. So do bounds that would leave the
    other bands no room.

    Misleads where bands of different runs are compared by eye: each picture has its own axis.

    Parameters
    ----------
    propagation : Propagation
    run : str, optional
        The first run by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        There is no such run.
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
        _beside(ax, y, outcome, _printed(levels))
        _tell(ax, y, outcome)
    _style.names_on_y(
        ax,
        [outcome.assumption + (" (bounds)" if _is_bounds(outcome) else "") for outcome in outcomes],
        above=0.5,
    )
    if levels:
        _style.beside(
            ax, -0.75, f"{_percent(_printed(levels))} band", points=9, colour=_style.MUTED
        )
    unit = f" {propagation.unit}" if propagation.unit else ""
    room = _keys(ax, outcomes, levels, unit)
    ax.grid(axis="x", color=_style.GRID)
    what = _what(outcomes)
    _style.name_axes(ax, x=_text.with_unit(what, propagation.unit))
    n = propagation.model.n_runs
    _style.heading(
        ax,
        _text.of_run(what.capitalize(), wanted),
        [
            f"bands and median under {_text.count(len(outcomes), 'assumption')}; "
            + (f"errors fitted to n={_text.count(n, 'run')}" if n else "errors given, not fitted")
        ],
        room=room,
    )
    return ax


def _what(outcomes: Sequence[Outcome]) -> str:
    """Say what the total is. Only sums have budgets; without one it may be that of a graph."""
    budgets = any(outcome.by_class is not None for outcome in outcomes)
    return "sum of kernel times" if budgets else "total time"


def _is_bounds(outcome: Outcome) -> bool:
    return outcome.median is None


def _printed(levels: Sequence[float]) -> float:
    return _PRINTED if _PRINTED in levels else max(levels, default=_PRINTED)


def _percent(level: float) -> str:
    return f"{100 * level:.6g} %"


def _set_limits(ax: Axes, outcomes: Sequence[Outcome]) -> None:
    """Set limits around all that is finite, as far as bounds leave room for the rest."""
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
        ax.set_xticks([])  # nothing is finite: a scale would mean nothing


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
    """Say at the median of a row, or in the middle of the axes, what its bands are."""
    left, right = ax.get_xlim()
    middle = outcome.median
    known = middle is not None and math.isfinite(middle)
    told = [f"median {format_number(middle)}"] if middle is not None and known else []
    told += [f"{_percent(band.level)}: {_text.span(band.low, band.high)}" for band in outcome.bands]
    at = middle if middle is not None and known else (left + right) / 2
    tell(ax, [at], [y], [f"{outcome.assumption}\n{'; '.join(told)}"])


def _beside(ax: Axes, y: int, outcome: Outcome, level: float) -> None:
    """Write a band and the probability of saturation."""
    lines = [_text.span(band.low, band.high) for band in outcome.bands if band.level == level]
    if outcome.saturated:
        lines.append(f"saturated: {_text.share(outcome.saturated)}")
    if lines:
        _style.beside(ax, y, "\n".join(lines), points=9)


def _keys(ax: Axes, outcomes: Sequence[Outcome], levels: Sequence[float], unit: str) -> float:
    """Mark what was predicted and measured, and say what all marks mean."""
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
