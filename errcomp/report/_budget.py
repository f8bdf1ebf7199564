"""Picture of an error budget: which kernels the error of a total comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from errcomp.errors import InputError, NotDefinedError
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.propagation.outcome import Outcome
    from errcomp.propagation.sums import Budget
    from errcomp.propagation.terms import Floats

__all__ = ["budget"]

#: Columns of numbers beside the axes, in points.
_ERROR_AT, _TIME_AT = 6.0, 48.0
_COST = _style.FAINT
#: Hatched, for print in grey tells no orange from blue.
_OFFSETS: dict[str, Any] = {
    "facecolor": _style.ORANGE, "edgecolor": "white", "linewidth": 0.0, "hatch": "////",
}  # fmt: skip
#: Percent up to which ticks at 0, 20, …, 100 suffice.
_TO_THE_HUNDRED = 120.0


def budget(
    outcome: Outcome,
    by: Literal["class", "kernel"] = "class",
    top: int = 10,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the error budget of a total as a waterfall that accumulates to 100 %.

    A bar is the first-order contribution of a class (or kernel),
    :math:`\operatorname{Cov}(X_g, S) / \operatorname{Var} S`; it starts where the one above it
    ended. Contributions below zero, whose errors offset those of others, run back and are hatched.
    The thin bar below each is the share of time, from the same start: where it is the shorter one,
    the class errs more than it costs.

    Misleads where a small contribution is taken for a good predictor: the kernel may take little
    time. And with a common cause the contributions depend on the assumption on correlation.

    Parameters
    ----------
    outcome : Outcome
    by : {"class", "kernel"}
        What a row is.
    top : int
        Rows, by size of the contribution; all others together make one more, where there are at
        least two.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        ``by`` is unknown or ``top`` is no positive integer.
    NotDefinedError
        The outcome has no budget: bounds, the total of a graph, or kernels without error.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from errcomp import Kernels
    >>> from errcomp.propagation import given_errors, propagate
    >>> kernels = Kernels({"kernel": ["gemm", "softmax"], "count": [32, 32],
    ...                    "predicted": [1.0, 0.2]}, unit="ms")
    >>> result = propagate(kernels, errors=given_errors(0.1), correlation="repeats")
    >>> axes = budget(result.of(), by="kernel")
    >>> [name.get_text() for name in axes.get_yticklabels()]
    ['gemm', 'softmax']
    >>> [round(float(bar.get_width()), 1) for bar in axes.containers[0]]
    [96.2, 3.8]
    """
    found = _checked(outcome, by, top)
    names, error, time = _shown(found, outcome.run, top)
    ax = _style.canvas(ax, 1.75 + 0.36 * len(names))
    room = _waterfall(ax, error, time)
    tell(
        ax,
        100 * (np.cumsum(error) - error / 2),
        range(len(names)),
        [
            f"{name}\n{_text.share(part)} of the variance, {_text.share(cost)} of the time"
            for name, part, cost in zip(_text.fitting(names), error, time, strict=True)
        ],
    )
    _style.names_on_y(ax, names, above=0.5)
    for points, values, colour, title in (
        (_ERROR_AT, error, _style.BLUE, "error"),
        (_TIME_AT, time, _style.MUTED, "time"),
    ):
        _style.beside(ax, -0.75, title, points=points, colour=colour)
        for y, value in enumerate(values):
            _style.beside(ax, y, _text.share(value), points=points, colour=_style.INK)
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="share of the variance of the sum, accumulated (%)")
    spread = f"; sd {_text.share(outcome.relative_sd)} of the mean" if outcome.relative_sd else ""
    noun = "class" if by == "class" else "kernel"
    _style.heading(
        ax,
        f"{_text.of_run('Error of the sum of kernel times', outcome.run)}, by {noun}",
        [f"n={_text.count(len(found.names), noun)}; assumption: {outcome.assumption}{spread}"],
        room=room,
    )
    return ax


def _checked(outcome: Outcome, by: str, top: int) -> Budget:
    if by not in ("class", "kernel"):
        raise InputError(f'by must be "class" or "kernel", got {by!r}')
    if not isinstance(top, int | np.integer) or isinstance(top, bool) or top < 1:
        raise InputError(f"top must be a positive integer, got {top!r}")
    found = outcome.by_class if by == "class" else outcome.by_kernel
    if found is None or not len(found.names):
        raise NotDefinedError(
            f"run {outcome.run!r} has no error budget under {outcome.assumption!r}: bounds and "
            "totals of graphs have none, nor have kernels without error. Take another assumption."
        )
    return found


def _shown(found: Budget, run: str, top: int) -> tuple[list[str], Floats, Floats]:
    """Return the largest contributions in falling order, and the others together."""
    names = [str(name).removeprefix(f"{run}/") for name in found.names]
    if len(names) <= top + 1:
        return names, found.first_order, found.share_of_time
    largest = np.argsort(-np.abs(found.first_order), kind="stable")[:top]
    largest = largest[np.argsort(-found.first_order[largest], kind="stable")]
    others = np.setdiff1d(np.arange(len(names)), largest)
    error, time = (
        np.append(values[largest], values[others].sum())
        for values in (found.first_order, found.share_of_time)
    )
    return [*(names[i] for i in largest), f"{len(others):,} others"], error, time


def _waterfall(ax: Axes, error: Floats, time: Floats) -> float:
    """Draw the bars and return the points that their keys take."""
    from matplotlib.patches import Patch

    percent = 100 * error
    end = np.cumsum(percent)
    start = end - percent
    rows = np.arange(len(percent))
    bars = ax.barh(rows - 0.1, percent, 0.44, left=start, color=_style.BLUE, zorder=3)
    for bar, value in zip(bars, percent, strict=True):
        if value < 0:
            bar.set(**_OFFSETS)
    ax.barh(rows + 0.24, 100 * time, 0.14, left=start, color=_COST, zorder=3)
    for row in rows[:-1]:
        ax.plot([end[row]] * 2, [row - 0.32, row + 1.12], color=_style.MUTED, lw=0.7, zorder=2)
    edges = np.concatenate([end, start + 100 * time, [0.0, 100.0]])
    low, high = float(edges.min()), float(edges.max())
    room = 0.02 * (high - low)
    ax.set_xlim(low - (room if low < 0 else 0.0), high + room)
    if end.min() >= 0 and end.max() < _TO_THE_HUNDRED:
        ax.set_xticks(range(0, 101, 20))  # only shares of time reach far beyond
    keys = [Patch(color=_style.BLUE, label="adds to the error")]
    if (percent < 0).any():
        keys.append(Patch(**_OFFSETS, label="offsets errors of others"))
    keys.append(Patch(color=_COST, label="share of time"))
    return _style.keys(ax, [keys])
