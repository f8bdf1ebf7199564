"""Pictures of bands of runs left out: whether they hold, and what abstaining gains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import NotDefinedError
from errcomp.report import _style, _text
from errcomp.report._hover import tell
from errcomp.report._promised import promised

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.evaluation.scoring import Abstention

__all__ = ["abstention", "coverage"]

#: The same estimator looks the same in every figure; those to be looked at first come first.
_ESTIMATORS = ("stack", "bayesian", "boosted", "linear", "device", "global", "sum")
#: The share of runs whose error is written out in an abstention curve.
_SHARE = 0.8
#: Characters of the name of a line beside its end.
_BESIDE = 24
#: A mean of fewer runs is not drawn.
_FEWEST = 5


def coverage(
    found: Mapping[str, Sequence[tuple[float, float, float, float]]],
    *,
    n: int,
    clusters: str = "",
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of runs measured inside their bands against the share that should be.

    On the dashed line bands hold what they promise; below it they are too narrow, above it wider
    than need be. Vertical lines are intervals that take runs of one group as alike: few groups make
    them wide. Points of one level stand side by side so that their intervals can be seen.

    Misleads where only the average is looked at: bands may hold over all runs and fail in a group.

    Parameters
    ----------
    found : mapping of str to sequence of (level, coverage, low, high)
        Per estimator, all fractions; low and high are NaN where there is no interval.
    n : int
        Runs behind every point.
    clusters : str
        What the intervals take as alike, e.g. ``"8 devices"``.
    note : str
        How the runs were left out, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        No estimator has a band.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = coverage({"stack": [(0.5, 0.55, 0.4, 0.7), (0.9, 0.88, 0.8, 0.95)]}, n=87,
    ...                 clusters="8 devices")
    >>> axes.get_title(loc="left")
    'Do the bands hold? n=87 runs, 8 devices'
    """
    names = [name for name in _ordered(found) if len(found[name])]
    if not names:
        raise NotDefinedError("there is no coverage to draw: no estimator has bands")
    levels = sorted({point[0] for name in names for point in found[name]})
    ax, room = promised(ax, levels, 4.2)
    offsets = room * (np.arange(len(names)) - (len(names) - 1) / 2) / max(len(names), 2)
    ends = []
    for i, name in enumerate(names):
        level, share, low, high = 100 * np.asarray(sorted(found[name]), dtype=np.float64).T
        x, (tint, mark) = level + offsets[i], _look(name, names)
        ax.plot(x, share, color=tint, marker=mark, ms=5, lw=1.0, zorder=4, label=name)
        ax.vlines(x, low, high, color=tint, lw=0.9, zorder=3)
        tell(
            ax,
            x,
            share,
            [
                f"{name}, {one:g} % band\n{there:.3g} % inside"
                + (f" [{least:.3g}, {most:.3g}]" if np.isfinite(least + most) else "")
                for one, there, least, most in zip(level, share, low, high, strict=True)
            ],
        )
        ends.append((float(x[-1]), float(share[-1])))
    _side_labels(ax, ends, names)
    _style.name_axes(ax, x="probability of the band", y="runs measured inside")
    of = f", {clusters}" if clusters else ""
    _style.heading(
        ax,
        f"Do the bands hold? n={_text.count(n, 'run')}{of}",
        [*([note] if note else []), "thick black bars: as promised; vertical: 95 % interval"],
        room=2,
    )
    return ax


def abstention(
    curves: Mapping[str, Abstention],
    *,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean error of the runs answered against their share, surest first.

    One line per estimator. A line that falls to the left says that narrow bands are a sign of
    small errors; a flat one that they tell nothing. Beside each line stands the error where 80 % of
    the runs are answered. Runs with bands of one width are answered in no order: each counts with
    the mean error of all of them, so that a line bends only where widths differ.

    Misleads at the left end, where a mean is that of a handful of runs: shares of fewer than five
    runs are not drawn.

    Parameters
    ----------
    curves : mapping of str to Abstention
        Per estimator, from `errcomp.calibration.evaluation.scoring.abstention_curve`; errors as
        fractions.
    note : str
        How the runs were left out, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        There is no curve.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from errcomp.calibration.evaluation.scoring import abstention_curve
    >>> curve = abstention_curve([0.01, 0.02, 0.03, 0.04, 0.1], [1.0, 2.0, 3.0, 4.0, 5.0])
    >>> axes = abstention({"stack": curve})
    >>> [text.get_text() for text in axes.texts if "stack" in text.get_text()]
    ['stack 2.5 %']
    """
    names = _ordered(curves)
    if not names:
        raise NotDefinedError("there is no abstention curve to draw: no estimator has bands")
    ax = _style.canvas(ax, 4.0)
    drawn = {}
    for name in names:
        curve = curves[name]
        there = np.arange(len(curve.share)) >= min(_FEWEST, len(curve.share)) - 1
        drawn[name] = (100 * curve.share[there], 100 * curve.mean_error[there])
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 1.08 * max(float(y.max()) for _, y in drawn.values()) or 1.0)
    ax.axvline(100 * _SHARE, color=_style.MUTED, lw=0.9, ls=(0, (4, 2)), zorder=1)
    for i, (name, (x, y)) in enumerate(drawn.items()):
        tint, mark = _look(name, names)
        # Marks, for colour alone tells nothing in grey; not above each other.
        start, step = len(x) * (i + 1) // (6 * len(drawn)), max(1, len(x) // 6)
        every = sorted({*range(start, len(x), step), len(x) - 1})
        ax.plot(x, y, color=tint, marker=mark, ms=4, lw=1.3, zorder=3, label=name,
                markevery=every, clip_on=False)  # fmt: skip
        tell(
            ax,
            x[every],
            y[every],
            [
                f"{name}\n{_text.share(y[k] / 100)} off where {_text.share(x[k] / 100)} answered"
                for k in every
            ],
        )
    ends = [(float(x[-1]), float(y[-1])) for x, y in drawn.values()]
    _side_labels(ax, ends, names, [_text.share(curves[name].at(_SHARE)) for name in names])
    ax.set_xticks(range(0, 101, 20), [f"{x} %" for x in range(0, 101, 20)])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.6g} %")
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(
        ax, x="share of runs answered, narrowest bands first", y="mean |error| (% of measured)"
    )
    n = max(len(curve.share) for curve in curves.values())
    _style.heading(
        ax,
        f"What abstaining gains, n={_text.count(n, 'run')}",
        [
            *([note] if note else []),
            f"beside the lines: mean error of the surest {_SHARE:.0%}".replace("%", " %"),
        ],
        room=2,
    )
    return ax


def _ordered(names: Iterable[str]) -> list[str]:
    """Return estimators in the order of their looks; names that are not known follow."""
    there = list(names)
    return [n for n in _ESTIMATORS if n in there] + [n for n in there if n not in _ESTIMATORS]


def _look(name: str, names: Sequence[str]) -> tuple[str, str]:
    """Return colour and marker of one of these estimators."""
    every = [*_ESTIMATORS, *(other for other in names if other not in _ESTIMATORS)]
    at = every.index(name)
    return _style.colours(every)[at], _style.markers(every)[at]


def _side_labels(
    ax: Axes,
    ends: Sequence[tuple[float, float]],
    names: Sequence[str],
    values: Sequence[str] = (),
) -> None:
    """Name the lines at their right ends, each with its value if there are any."""
    texts = _text.fitting(names, _BESIDE)
    if values:
        texts = [f"{text} {value}" for text, value in zip(texts, values, strict=True)]
    tints = [_look(name, names)[0] for name in names]
    _style.side_labels(ax, [x for x, _ in ends], [y for _, y in ends], texts, tints)
