"""Figures of a fitted model: launch costs, and whether the model could have made the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError, NotDefinedError, renamed
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INNER, _OUTER = 0.5, 0.9


def overhead(
    draws: Mapping[str, Mapping[str, ArrayLike]],
    *,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the posterior of the overhead per launch, device by device, in µs.

    A thick line is the central 50 %, a thin line the central 90 %, the point the median. With a
    single kind of launch the median and the 90 % are also written. Compare them with facts about
    the device: on a GPU launching a kernel alone takes a few µs, and a run hides them behind other
    work.

    Misleads if devices are compared by whether their lines overlap: they share a prior, so their
    posteriors are not independent.

    Parameters
    ----------
    draws : mapping of str to mapping of str to array_like, shape (draws,)
        Per device and kind of launch, in µs. Below 0 where a run adds time between kernels. A name
        in brackets, such as ``(a new device)``, is drawn but not counted.
    note : str
        Data of the fit, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        There is no device.
    InputError
        A device has no draws, or they are not finite.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = overhead({"H100": {"all": [3.0, 4.0, 5.0]}, "V100": {"all": [6.0, 7.0, 8.0]}})
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['H100', 'V100']
    """
    kinds = list(dict.fromkeys(kind for costs in draws.values() for kind in costs))
    if not kinds:
        raise NotDefinedError("there is no launch cost to draw: no device has posterior draws")
    ax = _style.canvas(ax, 1.7 + (0.2 + 0.12 * len(kinds)) * len(draws))
    tints, marks = _style.colours(kinds), _style.markers(kinds)
    steps = 0.66 * ((np.arange(len(kinds)) + 0.5) / len(kinds) - 0.5)
    ends = [0.0]
    for row, (name, costs) in enumerate(draws.items()):
        for kind, given in costs.items():
            i = kinds.index(kind)
            y = row + steps[i]
            values = _finite(given, f"the draws of {name!r}")
            middle, outer = float(np.median(values)), _central(values, _OUTER)
            for ends_of, width in ((outer, 1.2), (_central(values, _INNER), 4.5)):
                ax.plot(ends_of, [y, y], color=tints[i], lw=width, solid_capstyle="butt",
                        zorder=2)  # fmt: skip
            ax.plot([middle], [y], marks[i], mfc="white", mec=_style.INK, ms=4.5, mew=1.1,
                    zorder=3)  # fmt: skip
            told = f"median {_cost(middle)} µs, {100 * _OUTER:g} % interval {_text.span(*outer)}"
            tell(ax, [middle], [y], [f"{_text.shorten(name)}, {_text.shorten(kind)}\n{told}"])
            if len(kinds) == 1:
                _style.beside(ax, y, f"{_cost(middle)}  [{_text.span(*outer)}]", points=9)
            ends += [*outer]
    room = 0.06 * (max(ends) - min(ends)) or 1.0
    ax.set_xlim(min(ends) - room * (min(ends) < 0), max(ends) + room * (max(ends) > 0))
    ax.axvline(0, color=_style.INK, lw=0.9, ls=(0, (4, 2)), zorder=1)
    _style.names_on_y(ax, list(draws), above=0.5 if len(kinds) == 1 else 0.0)
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="overhead per launch (µs)")
    counted = sum(not name.startswith("(") for name in draws)
    _style.heading(
        ax,
        f"Cost of a launch, n={_text.count(counted, 'device')}",
        [*([note] if note else []), "thick: central 50 % of the posterior; thin: 90 %"],
        room=_kinds(ax, kinds),
    )
    return ax


def _cost(value: float) -> str:
    """Write a median with one decimal, or with two digits if it would be 0."""
    text = f"{value:,.1f}" if abs(value) >= 0.05 or not value else f"{value:.2g}"
    return text.replace("-", "−")


def _kinds(ax: Axes, kinds: Sequence[str]) -> float:
    """Draw the key of the kinds, or the heading of a single one; return its height in points."""
    if len(kinds) == 1:
        _style.beside(ax, -0.75, "median [90 %]", points=9, colour=_style.MUTED)
        return 2
    from matplotlib.lines import Line2D

    looks = zip(_text.fitting(kinds), _style.colours(kinds), _style.markers(kinds), strict=True)
    handles = [
        Line2D([], [], color=tint, marker=mark, mfc="white", mec=_style.INK, ms=4.5, lw=3,
               label=text)
        for text, tint, mark in looks
    ]  # fmt: skip
    return _style.keys(ax, [handles])


@renamed(observed="measured")
def posterior(
    measured: ArrayLike,
    draws: ArrayLike,
    *,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the distribution of the observed ratios against those simulated by the fitted model.

    The dark line is the share of runs whose ratio of measured time to sum of kernels is at most x
    (empirical distribution). The band holds, at each x, the central 90 % of that share in tables of
    as many runs drawn from the posterior predictive. Where the line leaves the band, the model does
    not describe the data: its tails are too light, or it lacks a hump.

    Misleads as a proof: the data were in the fit, and a model that repeats them stays inside.

    Parameters
    ----------
    measured : array_like, shape (n,)
        Log-ratios of the runs.
    draws : array_like, shape (tables, n)
        Log-ratios drawn for the same runs.
    note : str
        The fit, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        Shapes do not fit, there is no run or table, or a value is not finite.
    MissingExtraError
        Matplotlib is not installed.

    References
    ----------
    Gelman, Meng and Stern (1996), "Posterior predictive assessment of model fitness via realized
    discrepancies", Statistica Sinica 6(4), 733-760.

    Examples
    --------
    >>> axes = posterior([0.0, 0.1], [[0.0, 0.1], [0.05, 0.2]])
    >>> axes.get_title(loc="left")
    'Could the model have produced these n=2 runs?'
    """
    truth = _finite(measured, "measured")
    made = np.asarray(draws, dtype=np.float64)
    if made.ndim != 2 or made.shape[1] != len(truth) or not len(made):
        raise InputError(
            f"draws must have one row per simulation and one column per run, shape "
            f"(simulations, {len(truth)}), got {made.shape}"
        )
    made = np.sort(_finite(made.ravel(), "draws").reshape(made.shape), axis=1)
    ax = _style.canvas(ax, 3.8)
    # Without the outermost 0.5 % of the draws on each side, which would squeeze the runs.
    ends = np.quantile(made, [0.005, 0.995])
    grid = np.linspace(min(ends[0], truth.min()), max(ends[1], truth.max()), 400)
    shares = np.stack([np.searchsorted(table, grid, side="right") for table in made]) / len(truth)
    low, high = np.quantile(shares, [0.05, 0.95], axis=0)
    x = 100 * np.expm1(grid)
    ax.fill_between(x, 100 * low, 100 * high, facecolor=_style.blend(_style.BLUE, 0.35),
                    edgecolor=_style.BLUE, lw=0.5, zorder=2,
                    label="90 % of drawn tables")  # fmt: skip
    ax.plot(x, 100 * np.median(shares, axis=0), color=_style.BLUE, lw=1.0, ls=(0, (4, 2)),
            zorder=3, label="median of drawn tables")  # fmt: skip
    steps = np.sort(truth)
    ax.step(
        100 * np.expm1(np.concatenate([grid[:1], steps, grid[-1:]])),
        100 * np.concatenate([[0], np.arange(1, len(steps) + 1) / len(steps), [1]]),
        where="post", color=_style.INK, lw=1.4, zorder=4, label="observed",
    )  # fmt: skip
    handles = [ax.lines[1], ax.lines[0], ax.collections[0]]
    ax.set_xlim(float(x[0]), float(x[-1]))
    ax.set_ylim(0, 100)
    ax.set_yticks(range(0, 101, 20), [f"{y} %" for y in range(0, 101, 20)])
    ax.grid(color=_style.GRID)
    _style.name_axes(ax, x="measured time above the sum of kernels (%)", y="runs at or below")
    _style.heading(
        ax,
        f"Could the model have produced these n={_text.count(len(truth), 'run')}?",
        [
            *([note] if note else []),
            f"compared with {_text.count(len(made), 'table')} drawn from the model",
        ],
        room=_style.keys(ax, [handles]),
    )
    return ax


def _finite(values: ArrayLike, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return finite values, shape (n,), n at least 1."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise InputError(f"{name} must be one or more finite numbers, got {array!r:.80}")
    return array


def _central(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], level: float
) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
