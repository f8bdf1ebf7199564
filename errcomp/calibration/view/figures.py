"""Figures of calibrated models: axes in, axes out, arrays drawn unchanged.

`predicted`, `residuals`, `coverage` and `abstention` show held-out runs; `overhead` and `posterior`
show a fit. They open no window, do not touch pyplot, and leave Matplotlib's settings unchanged.
Matplotlib is imported at first use (``pip install 'errcomp[figures]'``).
`errcomp.report.drawing.saving.save` writes the axes to a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.calibration.view.parameters import overhead, posterior
from errcomp.errors import InputError, NotDefinedError
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.axes import promised
from errcomp.report.drawing.hover import tell
from errcomp.results import format_number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from errcomp.calibration.evaluation.scoring import Abstention

__all__ = ["abstention", "coverage", "overhead", "posterior", "predicted", "residuals"]

#: An estimator has the same colour and marker in every figure; the most important come first.
_ESTIMATORS = ("stack", "bayesian", "boosted", "linear", "device", "global", "sum")
#: Share of runs whose error is written beside an abstention curve.
_SHARE = 0.8
#: Characters of the name of a line beside its end.
_BESIDE = 24
#: Fewest runs of a mean that is drawn.
_FEWEST = 5


def coverage(
    found: Mapping[str, Sequence[tuple[float, float, float, float]]],
    *,
    n: int,
    drawn: str = "",
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of runs measured inside their bands against the share that should be.

    On the dashed line, bands cover as often as promised; below it they are too narrow, above it too
    wide. Vertical lines are intervals that treat runs of one group as correlated, so the lines are
    long with few groups. Points of one level are side by side so that their intervals are visible.

    Misleads as an average: bands may be right over all runs and fail in a group.

    Parameters
    ----------
    found : mapping of str to sequence of (level, coverage, low, high)
        Per estimator, all fractions; low and high are NaN without an interval.
    n : int
        Runs at every point.
    drawn : str
        Clusters of the intervals, e.g. ``"8 devices"``.
    note : str
        How the runs were held out, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

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
    ...                 drawn="8 devices")
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
                f"{name}, {probability:g} % band\n{inside:.3g} % inside"
                + (f" [{least:.3g}, {most:.3g}]" if np.isfinite(least + most) else "")
                for probability, inside, least, most in zip(level, share, low, high, strict=True)
            ],
        )
        ends.append((float(x[-1]), float(share[-1])))
    _side_labels(ax, ends, names)
    _style.name_axes(ax, x="nominal coverage of the band", y="runs inside the band")
    of = f", {drawn}" if drawn else ""
    _style.heading(
        ax,
        f"Do the bands hold? n={_text.count(n, 'run')}{of}",
        [
            *([note] if note else []),
            "thick black bars: nominal coverage; vertical lines: 95 % interval",
        ],
        room=2,
    )
    return ax


def abstention(
    curves: Mapping[str, Abstention],
    *,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean error of the runs kept against their share, narrowest bands first.

    One line per estimator. If a line falls to the left, narrow bands indicate small errors; if it
    is flat, widths are unrelated to errors. Beside each line is the error when 80 % of the runs are
    kept. Runs with equally wide bands each count with the mean of their errors, so a line bends
    only where widths differ.

    Misleads at the left end, where the mean is over a few runs; shares of fewer than five runs are
    not drawn.

    Parameters
    ----------
    curves : mapping of str to Abstention
        Per estimator, from `errcomp.calibration.evaluation.scoring.abstention_curve`; errors as
        fractions.
    note : str
        How the runs were held out, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

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
        raise NotDefinedError(
            "the error of the most confident runs cannot be drawn: no estimator has bands"
        )
    ax = _style.canvas(ax, 4.0)
    drawn = {}
    for name in names:
        curve = curves[name]
        shown = np.arange(len(curve.share)) >= min(_FEWEST, len(curve.share)) - 1
        drawn[name] = (100 * curve.share[shown], 100 * curve.mean_error[shown])
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 1.08 * max(float(y.max()) for _, y in drawn.values()) or 1.0)
    ax.axvline(100 * _SHARE, color=_style.MUTED, lw=0.9, ls=(0, (4, 2)), zorder=1)
    for i, (name, (x, y)) in enumerate(drawn.items()):
        tint, mark = _look(name, names)
        # Marks, because colours look alike in grey; shifted, so that they do not overlap.
        start, step = len(x) * (i + 1) // (6 * len(drawn)), max(1, len(x) // 6)
        every = sorted({*range(start, len(x), step), len(x) - 1})
        ax.plot(x, y, color=tint, marker=mark, ms=4, lw=1.3, zorder=3, label=name,
                markevery=every, clip_on=False)  # fmt: skip
        tell(
            ax,
            x[every],
            y[every],
            [
                f"{name}\nmean error {_text.share(y[k] / 100)} of the most confident "
                f"{_text.share(x[k] / 100)}"
                for k in every
            ],
        )
    ends = [(float(x[-1]), float(y[-1])) for x, y in drawn.values()]
    _side_labels(ax, ends, names, [_text.share(curves[name].at(_SHARE)) for name in names])
    ax.set_xticks(range(0, 101, 20), [f"{x} %" for x in range(0, 101, 20)])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.6g} %")
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(
        ax, x="share of runs kept, narrowest bands first", y="mean |error| (% of measured)"
    )
    n = max(len(curve.share) for curve in curves.values())
    _style.heading(
        ax,
        f"Error of the most confident runs, n={_text.count(n, 'run')}",
        [
            *([note] if note else []),
            f"beside the lines: mean error of the most confident {_SHARE:.0%}".replace("%", " %"),
        ],
        room=2,
    )
    return ax


def _ordered(names: Iterable[str]) -> list[str]:
    """Return estimators in the order of their looks; unknown names follow."""
    given = list(names)
    return [n for n in _ESTIMATORS if n in given] + [n for n in given if n not in _ESTIMATORS]


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


#: Models beyond this number share one mark; characters of a model's name in the key.
_MOST_MODELS, _KEY = 7, 24
#: Marks that are drawn larger to be as visible as others.
_SIZES = {"*": 8.0, "P": 6.5}
#: Ratio of the ends of a time axis from which only powers of ten are labelled, and ratio below
#: which labels are evenly spaced.
_DECADES_FROM, _EVEN_BELOW = 300.0, 6.0
#: Points to the columns of numbers beside the axes.
_COUNT_AT, _ERROR_AT = 6.0, 40.0


def predicted(
    *,
    measured: ArrayLike,
    predicted: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    unit: str | None = None,
    level: float = 0.9,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw predicted against measured times with the band of each run, on logarithmic scales.

    On the diagonal a prediction is right. A filled circle is a run measured inside its band, an
    open diamond a run outside it: its vertical line does not reach the diagonal.

    Misleads over many orders of magnitude, where an error of 20 % is hardly visible: `residuals`
    shows the errors.

    Parameters
    ----------
    measured, predicted, low, high : array_like, shape (n,)
        Times above 0, in `unit`, of held-out runs.
    unit : str, optional
    level : float
        Probability of the band.
    note : str
        How the runs were held out and predicted, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        Shapes differ, there is no run, or a time is not positive and finite.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = predicted(measured=[10.0, 100.0], predicted=[11.0, 80.0], low=[9.0, 70.0],
    ...                  high=[12.0, 90.0], unit="ms")
    >>> axes.get_title(loc="left")
    'Predicted against measured, n=2 runs'
    """
    given = {"measured": measured, "predicted": predicted, "low": low, "high": high}
    times = _checked_arrays(given)
    for name, values in times.items():
        if not (values > 0).all():
            raise InputError(f"{name} must be above 0, got {values.min()!r} (logarithmic scale)")
    truth, centre = times["measured"], times["predicted"]
    inside = (times["low"] <= truth) & (truth <= times["high"])
    ax = _style.canvas(ax, 4.6)
    from matplotlib.lines import Line2D

    ax.set_xscale("log")
    ax.set_yscale("log")
    every = np.concatenate(list(times.values()))
    ends = [float(every.min()) / 1.15, float(every.max()) * 1.15]
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    _label_times(ax.xaxis, *ends)
    _label_times(ax.yaxis, *ends)
    marks: list[Artist] = list(
        ax.plot(ends, ends, color=_style.INK, lw=0.9, ls=(0, (4, 2)), zorder=2, label="equal")
    )
    for part, tint, mark, face, word in (
        (inside, _style.BLUE, "o", _style.BLUE, "inside"),
        (~inside, _style.ORANGE, "D", "white", "outside"),
    ):
        style: dict[str, Any] = {"color": tint, "marker": mark, "mfc": face}
        style |= {"ms": 4.5, "mew": 1.1, "ls": ""}
        ax.vlines(truth[part], times["low"][part], times["high"][part], color=tint, lw=0.9,
                  zorder=3)  # fmt: skip
        ax.plot(truth[part], centre[part], **style, zorder=4, label=word)
        tell(
            ax,
            truth[part],
            centre[part],
            [
                f"run {run + 1}\npredicted {format_number(centre[run])}, measured "
                f"{format_number(truth[run])}: {word} the band "
                f"{_text.span(times['low'][run], times['high'][run])}"
                for run in np.flatnonzero(part)
            ],
        )
        marks.append(Line2D([], [], **style, label=f"measured {word} the {100 * level:g} % band"))
    ax.grid(color=_style.GRID)
    _style.name_axes(ax, _text.with_unit("measured", unit), _text.with_unit("predicted", unit))
    _style.heading(
        ax,
        f"Predicted against measured, n={_text.count(len(truth), 'run')}",
        [
            *([note] if note else []),
            f"{_text.share(float(inside.mean()))} of the runs inside the band",
        ],
        room=_style.keys(ax, [marks]),
    )
    return ax


def _label_times(axis: Axis, low: float, high: float) -> None:
    """Write times as plain numbers instead of powers on a logarithmic axis."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    if high / low < _DECADES_FROM:  # at even distances there, up to one decade
        places = LogLocator(subs=(1.0, 2.0, 5.0)).tick_values(low, high)
        if high / low < _EVEN_BELOW:
            places = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)
            axis.set_ticks([], minor=True)
    else:
        places = LogLocator(numticks=9).tick_values(low, high)
    at = [float(place) for place in places if low <= place <= high]
    axis.set_ticks(at, [_text.number(x) for x in at])
    axis.set_minor_formatter(NullFormatter())


def residuals(
    *,
    error: ArrayLike,
    device: ArrayLike,
    model: ArrayLike,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the signed error of each run, by device and model.

    .. math:: e_r = \frac{\text{predicted}_r - \text{measured}_r}{\text{measured}_r}

    One row per device, one mark per model; the vertical bar of a row is its median. Marks that lie
    together away from 0 show an error shared by a device's or a model's runs. Beside each row are
    its number of runs and its mean absolute error.

    Misleads if both directions are compared: a prediction can be at most 100 % too short, but any
    amount too long.

    Parameters
    ----------
    error : array_like, shape (n,)
        Fractions, of held-out runs; above 0 the prediction is too long.
    device, model : array_like of str, shape (n,)
        ``""`` where unknown.
    note : str
        How the runs were held out and predicted, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        Shapes differ, there is no run, or an error is not finite.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = residuals(error=[0.1, -0.05, 0.02], device=["H100", "H100", "V100"],
    ...                  model=["bert", "gpt2", "bert"])
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['H100', 'V100']
    """
    errors = _checked_arrays({"error": error})["error"]
    rows, of_row = _groups(device, len(errors), "device")
    models, of_model = _groups(model, len(errors), "model")
    ax = _style.canvas(ax, 1.9 + 0.34 * len(rows))
    ax.axvline(0, color=_style.INK, lw=0.9, ls=(0, (4, 2)), zorder=1)
    drawn = models[:_MOST_MODELS] if len(models) > _MOST_MODELS + 1 else models
    tints, marks = _style.colours(models), _style.markers(models)
    # Marks of a row are on separate lines, so that none hides another.
    steps = 0.56 * ((np.arange(len(models)) + 0.5) / len(models) - 0.5)
    short = _text.fitting([name or "(unknown)" for name in models], _KEY)
    handles: list[Artist] = []
    for i, name in enumerate(models):
        own, known = of_model == i, name in drawn
        handles += ax.plot(
            100 * errors[own], of_row[own] + steps[i], ls="", zorder=4,
            ms=_SIZES.get(marks[i], 5.5) if known else 4.5, mew=0.4 if known else 0.9,
            marker=marks[i] if known else "x",
            color=tints[i] if known else _style.MUTED, mec="white" if known else _style.MUTED,
            label=short[i] if known else "other models",
        )[: known or i == len(drawn)]  # fmt: skip
    tell(
        ax,
        100 * errors,
        of_row + steps[of_model],
        [
            f"{_text.shorten(rows[row] or '(unknown)')}, {short[kind]}\nerror "
            f"{_text.signed(residual)}"
            for residual, row, kind in zip(errors, of_row, of_model, strict=True)
        ],
    )
    for y in range(len(rows)):
        here = errors[of_row == y]
        middle = 100 * float(np.median(here))
        ax.plot([middle] * 2, [y - 0.38, y + 0.38], color=_style.INK, lw=1.6, zorder=3)
        _style.beside(ax, y, f"n={len(here):,}", points=_COUNT_AT)
        _style.beside(ax, y, _text.share(float(np.abs(here).mean())), points=_ERROR_AT)
    _style.names_on_y(ax, [row or "(unknown)" for row in rows], above=0.5)
    _style.beside(ax, -0.75, "mean |error|", points=_ERROR_AT, colour=_style.MUTED)
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="predicted − measured (% of measured)")
    of = f"{_text.count(len(rows), 'device')}, {_text.count(len(models), 'model')}"
    _style.heading(
        ax,
        f"Errors by device and model, n={_text.count(len(errors), 'run')}: {of}",
        [*([note] if note else []), "vertical bar: median of the device"],
        room=_style.keys(ax, [handles]),
    )
    return ax


def _checked_arrays(given: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
    """Return finite arrays of one shape (n,), n at least 1."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in given.items()}
    shapes = {name: values.shape for name, values in arrays.items()}
    first = next(iter(shapes.values()))
    if len(set(shapes.values())) > 1 or len(first) != 1 or first == (0,):
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InputError(f"arrays must have one value per run and at least one run, got {told}")
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            at = int(np.argmin(np.isfinite(values)))
            raise InputError(f"{name} must be finite, got {values[at]} in row {at + 1}")
    return arrays


def _groups(names: ArrayLike, n: int, word: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the sorted names, and the position of each run's name."""
    values = np.asarray(names, dtype=object)
    if values.shape != (n,):
        raise InputError(f"{word} must have one name per run, shape ({n},), got {values.shape}")
    labels = sorted({str(value) for value in values})
    return labels, np.asarray([labels.index(str(value)) for value in values], dtype=np.int64)
