"""Figures of the error: its growth from level to level, and its sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

import numpy as np

from errcomp.errors import InputError, NotDefinedError, describe_names
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.propagation.outcome import Outcome
    from errcomp.propagation.sums import Budget
    from errcomp.propagation.terms import Floats


#: Name of a level, its relative standard deviation, and its interval if known.
Step: TypeAlias = tuple[str, float, float | None, float | None]

#: With more lines the factors of single steps would cover them.
_LINES_WITH_FACTORS = 6
#: Place of the factor along a step: past the middle, where lines are further apart.
_ALONG = 0.58
#: Characters of the name of a line beside its end.
_BESIDE = 22


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    steps: tuple[Step, ...]


def growth(
    steps: Sequence[Step] | Sequence[Outcome] | Mapping[str, Sequence[Step]], ax: Axes | None = None
) -> Axes:
    r"""Draw the relative error at each level, and its factor from one level to the next.

    The factor from level l to the next is :math:`(\sigma / \mu)_{l+1} \,/\, (\sigma / \mu)_l`:
    below 1 errors cancel on the way up, above 1 they are amplified. The axis is logarithmic: lines
    of equal slope have equal factors. At the right is the error at the last level and, in brackets,
    the factor from the first level to it.

    Misleads if read as accuracy: it shows only the spread, not the bias.

    Parameters
    ----------
    steps : sequence of (str, float, float or None, float or None), or of Outcome, or mapping
        Levels from low to high: name, relative standard deviation (a fraction, > 0) and the ends
        of its interval, or None. Several lines: a mapping of an assumption to its levels. Each
        outcome is a line from the kernels to the total; those without a standard deviation
        (bounds) are named below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A step does not have four values, a standard deviation is not positive and finite, an
        interval does not contain its value, a level is duplicated, two lines have different orders
        of levels, or two outcomes have the same run and assumption.
    NotDefinedError
        There is nothing to draw: no step, or no outcome with a standard deviation.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = growth({"independent": [("kernel", 0.1, None, None), ("model", 0.01, None, None)],
    ...                "comonotonic": [("kernel", 0.1, None, None), ("model", 0.1, None, None)]})
    >>> [text.get_text() for text in axes.texts if "×" in text.get_text()][:2]
    ['×0.10', '×1.00']
    """
    lines, left_out = _read(steps)
    levels = _levels(lines)
    ax = _style.canvas(ax, max(3.4, 1.4 + 0.19 * len(lines)))
    _axes(ax, lines, levels)
    names = [line.name for line in lines]
    tints, marks = _style.colours(names), _style.markers(names)
    crowded = len(lines) > _LINES_WITH_FACTORS
    for i, line in enumerate(lines):
        # Side by side, so that intervals do not hide each other.
        dodge = 0.0 if crowded else 0.05 * (i - (len(lines) - 1) / 2)
        _draw(ax, line, [levels[step[0]] for step in line.steps], dodge, tints[i], marks[i])
    if not crowded:
        _factors(ax, lines, levels, tints)
    # The factor from the first level to the last, unless the line already has it.
    overall = [len(line.steps) > (1 if crowded else 2) for line in lines]
    _style.side_labels(
        ax,
        [levels[line.steps[-1][0]] for line in lines],
        [line.steps[-1][1] for line in lines],
        [
            _end_label(*end)
            for end in zip(_text.fitting(names, _BESIDE), lines, overall, strict=True)
        ],
        tints,
    )
    _title(ax, lines, len(levels), crowded, any(overall), left_out)
    return ax


def _title(
    ax: Axes,
    lines: Sequence[_Line],
    n_levels: int,
    crowded: bool,
    overall: bool,
    left_out: Sequence[str],
) -> None:
    remarks = []
    if not crowded and n_levels > 1:
        remarks.append("×: factor from level to level")
    if overall:
        remarks.append("in brackets: from the first to the last level")
    notes = ["; ".join(remarks)] if remarks else []
    if left_out:
        notes.append(
            f"not shown, because they have no standard deviation: {describe_names(left_out)}"
        )
    n = f"n={_text.count(n_levels, 'level')}"
    if len(lines) > 1:
        n += f", {_text.count(len(lines), 'assumption')}"
    _style.heading(ax, f"Relative error per level ({n})", notes, room=2)


def _read(
    steps: Sequence[Step] | Sequence[Outcome] | Mapping[str, Sequence[Step]],
) -> tuple[list[_Line], list[str]]:
    """Return the lines to draw, and the names of outcomes without one."""
    if isinstance(steps, Mapping):
        lines = [_Line(str(name), _steps(of, str(name))) for name, of in steps.items()]
        left_out: list[str] = []
    elif isinstance(steps, Sequence) and any(map(_is_outcome, steps)):
        lines, left_out = _of_outcomes(steps)
    else:
        lines, left_out = [_Line("", _steps(steps, ""))], []
    lines = [line for line in lines if line.steps]
    if not lines:
        raise NotDefinedError(
            "the growth of the error cannot be drawn: no level has a standard deviation above 0. "
            "Bounds never have a standard deviation."
        )
    return lines, left_out


def _is_outcome(step: object) -> TypeGuard[Outcome]:
    """Return whether this is an `Outcome`, and not a given level."""
    return hasattr(step, "assumption")


def _of_outcomes(outcomes: Sequence[object]) -> tuple[list[_Line], list[str]]:
    accepted = [outcome for outcome in outcomes if _is_outcome(outcome)]
    if len(accepted) < len(outcomes):
        raise InputError("steps must be either outcomes or levels, got both")
    one_run = len({outcome.run for outcome in accepted}) == 1
    lines: list[_Line] = []
    left_out: list[str] = []
    seen: set[str] = set()
    for outcome in accepted:
        name = outcome.assumption if one_run else f"{outcome.assumption}, {outcome.run}"
        if name in seen:
            raise InputError(f"the outcome of {name!r} is given twice. Give it once.")
        seen.add(name)
        if outcome.relative_sd and outcome.kernel_sd:
            of = [
                ("kernel", outcome.kernel_sd, None, None),
                ("total", outcome.relative_sd, None, None),
            ]
            lines.append(_Line(name, _steps(of, name)))
        else:
            left_out.append(name)
    return lines, left_out


def _steps(steps: object, line: str) -> tuple[Step, ...]:
    of = f" of {line!r}" if line else ""
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise InputError(f"levels{of} must be a sequence, got {type(steps).__name__}")
    out: list[Step] = []
    for step in steps:
        if isinstance(step, str) or not isinstance(step, Sequence) or len(step) != 4:
            raise InputError(
                f"a level{of} must be (name, relative sd, low, high), with None for both ends if "
                f"there is no interval, got {step!r}"
            )
        out.append(_step(str(step[0]), step[1], step[2], step[3], of))
    names = [step[0] for step in out]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"level {name!r}{of} is given twice. Give it once.")
    return tuple(out)


def _step(name: str, sd: object, low: object, high: object, of: str) -> Step:
    value, ends = _positive(sd), tuple(map(_positive, (low, high)))
    if value is None:
        raise InputError(
            f"relative sd at level {name!r}{of} must be a positive, finite number, got {sd!r}"
        )
    if low is None and high is None:
        return name, value, None, None
    if ends[0] is None or ends[1] is None or not ends[0] <= value <= ends[1]:
        raise InputError(
            f"the interval at level {name!r}{of} must be positive, finite and contain its value "
            f"{value!r}, got {low!r} to {high!r}. Without an interval, give None for both ends."
        )
    return name, value, ends[0], ends[1]


def _positive(value: object) -> float | None:
    if isinstance(value, int | float | np.integer | np.floating) and 0 < value < math.inf:
        return float(value)
    return None


def _levels(lines: Sequence[_Line]) -> dict[str, int]:
    """Return the place of each level on the axis; all lines have the same order."""
    names = list(dict.fromkeys(step[0] for line in lines for step in line.steps))
    at = {name: i for i, name in enumerate(names)}
    for line in lines:
        places = [at[step[0]] for step in line.steps]
        if places != sorted(places):
            raise InputError(
                f"the levels of {line.name!r} ({', '.join(step[0] for step in line.steps)}) are "
                f"not in the order of other lines ({', '.join(names)}). Use one order."
            )
    return at


def _axes(ax: Axes, lines: Sequence[_Line], levels: Mapping[str, int]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    values = [v for line in lines for step in line.steps for v in step[1:] if v is not None]
    low, high = min(values) / 1.6, max(values) * 1.6  # at least one of 1, 2, 5 lies between
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    subs = (1.0, 2.0, 5.0) if high / low < 1e3 else (1.0,)
    ax.yaxis.set_major_locator(LogLocator(subs=subs))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g} %"))
    width = max(6, 60 // len(levels))
    names = _text.fitting(list(levels), 2 * width)
    texts = ["\n".join(wrap(name, width)) for name in names]
    ax.set_xticks(range(len(levels)), texts)
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
    ax.set_xlim(-0.3, len(levels) - 0.7)
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(ax, y="relative standard deviation")


def _draw(
    ax: Axes, line: _Line, places: Sequence[int], dodge: float, colour: str, mark: str
) -> None:
    values = [step[1] for step in line.steps]
    ax.plot(places, values, color=colour, marker=mark, ms=5, lw=1.6, zorder=3)
    told = [
        f"{', '.join(filter(None, (_text.shorten(line.name) if line.name else '', name)))}\n"
        f"relative standard deviation {_text.share(sd)}"
        + (f" [{_text.share(low)}, {_text.share(high)}]" if low and high else "")
        for name, sd, low, high in line.steps
    ]
    tell(ax, places, values, told)
    for place, (_, _, low, high) in zip(places, line.steps, strict=True):
        if low is not None and high is not None:
            ax.plot([place + dodge] * 2, [low, high], color=colour, lw=1.0, zorder=2)


def _factors(
    ax: Axes, lines: Sequence[_Line], levels: Mapping[str, int], tints: Sequence[str]
) -> None:
    """Write the factor on each step, moved apart where they would overlap."""
    tint_of: dict[tuple[float, float, str], str] = {}
    for line, tint in zip(lines, tints, strict=True):
        for a, b in zip(line.steps, line.steps[1:], strict=False):
            x = (1 - _ALONG) * levels[a[0]] + _ALONG * levels[b[0]]
            spot = (x, a[1] ** (1 - _ALONG) * b[1] ** _ALONG, _factor(b[1] / a[1]))
            # A factor that several lines share has the colour of none.
            tint_of[spot] = _style.INK if spot in tint_of else tint
    for x in dict.fromkeys(spot[0] for spot in tint_of):
        here = [spot for spot in tint_of if spot[0] == x]
        heights = _style.apart(ax, [x] * len(here), [spot[1] for spot in here])
        for spot, height in zip(here, heights, strict=True):
            ax.text(
                x,
                height,
                spot[2],
                transform=ax.get_xaxis_transform(),
                ha="center",
                va="center",
                fontsize=_style.SMALL,
                color=_style.legible(tint_of[spot]),
                zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )


def _end_label(name: str, line: _Line, overall: bool) -> str:
    text = f"{name} " if line.name else ""
    text += _text.share(line.steps[-1][1])
    if overall:
        text += f" ({_factor(line.steps[-1][1] / line.steps[0][1])})"
    return text


def _factor(value: float) -> str:
    """Write a factor with two or three digits: ×0.056, ×0.42, ×1.24, ×31.6."""
    if not 1e-4 <= value < 1e5:
        return f"×{value:.1e}"
    power = math.floor(math.log10(value))
    return f"×{value:.{max(0, (1 if power < 0 else 2) - power)}f}"


#: Columns of numbers beside the axes, in points.
_ERROR_AT, _TIME_AT = 6.0, 48.0
_COST = _style.FAINT
#: Hatched, because orange and blue look the same in grey.
_OFFSETS: dict[str, Any] = {
    "facecolor": _style.ORANGE, "edgecolor": "white", "linewidth": 0.0, "hatch": "////",
}  # fmt: skip
#: Per cent up to which ticks at 0, 20, …, 100 suffice.
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
    The thin bar below each is the share of time, from the same start: if it is shorter, the class
    has a larger share of the error than of the time.

    Misleads if a small contribution is taken as a sign of a good predictor: the kernel may take
    little time. With a common cause the contributions depend on the assumed correlation.

    Parameters
    ----------
    outcome : Outcome
    by : {"class", "kernel"}
        Kind of the rows.
    top : int
        Number of rows, by size of the contribution; if there are at least two others, they make
        one more row.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; by default new axes in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        ``by`` is unknown or ``top`` is not a positive integer.
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
    shares = _checked(outcome, by, top)
    names, error, time = _shown(shares, outcome.run, top)
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
    _style.name_axes(ax, x="cumulative share of the variance of the sum (%)")
    spread = f"; sd {_text.share(outcome.relative_sd)} of the mean" if outcome.relative_sd else ""
    noun = "class" if by == "class" else "kernel"
    _style.heading(
        ax,
        f"{_text.of_run('Error of the sum of kernel times', outcome.run)}, by {noun}",
        [f"n={_text.count(len(shares.names), noun)}; assumption: {outcome.assumption}{spread}"],
        room=room,
    )
    return ax


def _checked(outcome: Outcome, by: str, top: int) -> Budget:
    if by not in ("class", "kernel"):
        raise InputError(f'by must be "class" or "kernel", got {by!r}')
    if not isinstance(top, int | np.integer) or isinstance(top, bool) or top < 1:
        raise InputError(f"top must be a positive integer, got {top!r}")
    shares = outcome.by_class if by == "class" else outcome.by_kernel
    if shares is None or not len(shares.names):
        raise NotDefinedError(
            f"run {outcome.run!r} has no error budget (shares of the variance) under "
            f"{outcome.assumption!r}: it does not exist for bounds, for totals of graphs, or if "
            "all errors are 0. Choose another assumption."
        )
    return shares


def _shown(shares: Budget, run: str, top: int) -> tuple[list[str], Floats, Floats]:
    """Return the largest contributions in decreasing order, and the sum of the others."""
    names = [str(name).removeprefix(f"{run}/") for name in shares.names]
    if len(names) <= top + 1:
        return names, shares.first_order, shares.share_of_time
    largest = np.argsort(-np.abs(shares.first_order), kind="stable")[:top]
    largest = largest[np.argsort(-shares.first_order[largest], kind="stable")]
    others = np.setdiff1d(np.arange(len(names)), largest)
    error, time = (
        np.append(values[largest], values[others].sum())
        for values in (shares.first_order, shares.share_of_time)
    )
    return [*(names[i] for i in largest), f"{len(others):,} others"], error, time


def _waterfall(ax: Axes, error: Floats, time: Floats) -> float:
    """Draw the bars and return the height of their keys in points."""
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
