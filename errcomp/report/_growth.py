"""Picture of how the error grows or shrinks from level to level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from errcomp.errors import InputError, NotDefinedError, describe_names
from errcomp.propagation.outcome import Outcome
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Step", "growth"]

#: Name of a level, relative standard deviation there, and its interval where one is known.
Step: TypeAlias = tuple[str, float, float | None, float | None]

#: Beyond this number of lines the factors of the single steps would cover the lines.
_LINES_WITH_FACTORS = 6
#: Where along a step its factor stands: past the middle, lines that fan out are further apart.
_ALONG = 0.58
#: Characters of the name of a line beside its end.
_BESIDE = 22


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    steps: tuple[Step, ...]


def growth(
    steps: Sequence[Step] | Sequence[Outcome] | Mapping[str, Sequence[Step]],
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the relative error at each level, and the factor it grows by from one to the next.

    The factor from level l to the next is :math:`(\sigma / \mu)_{l+1} \,/\, (\sigma / \mu)_l`:
    below 1 errors cancel on the way up, above 1 they are amplified. The axis is logarithmic: lines
    of equal slope have equal factors. At the right stands the error at the last level and, in
    brackets, the factor from the first level to it.

    Misleads where it is read as accuracy: a bias does not show, only the spread that remains.

    Parameters
    ----------
    steps : sequence of (str, float, float or None, float or None), or of Outcome, or mapping
        Levels from low to high: name, relative standard deviation (a fraction, > 0) and the ends
        of its interval, None where there is none. Several lines: a mapping of an assumption to its
        levels. Outcomes make a line each, from the kernels to the total; those without a standard
        deviation (bounds) are named below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A step is not four values, a standard deviation is not positive and finite, an interval
        does not hold its value, a level is there twice, levels of two lines are in another order,
        or two outcomes are of the same run and assumption.
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
    # From the first level to the last, where that is not what stands on the line already.
    overall = [len(line.steps) > (1 if crowded else 2) for line in lines]
    _style.side_labels(
        ax,
        [levels[line.steps[-1][0]] for line in lines],
        [line.steps[-1][1] for line in lines],
        [
            _at_the_end(*one)
            for one in zip(_text.fitting(names, _BESIDE), lines, overall, strict=True)
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
    told = []
    if not crowded and n_levels > 1:
        told.append("×: factor from level to level")
    if overall:
        told.append("in brackets: from first to last")
    notes = ["; ".join(told)] if told else []
    if left_out:
        notes.append(f"not shown, as without standard deviation: {describe_names(left_out)}")
    n = f"n={_text.count(n_levels, 'level')}"
    if len(lines) > 1:
        n += f", {_text.count(len(lines), 'assumption')}"
    _style.heading(ax, f"Relative error per level ({n})", notes, room=2)


def _read(
    steps: Sequence[Step] | Sequence[Outcome] | Mapping[str, Sequence[Step]],
) -> tuple[list[_Line], list[str]]:
    """Return the lines to draw, and the names of outcomes that have none."""
    if isinstance(steps, Mapping):
        found = [_Line(str(name), _steps(of, str(name))) for name, of in steps.items()]
        left_out: list[str] = []
    elif isinstance(steps, Sequence) and any(isinstance(step, Outcome) for step in steps):
        found, left_out = _of_outcomes(steps)
    else:
        found, left_out = [_Line("", _steps(steps, ""))], []
    found = [line for line in found if line.steps]
    if not found:
        raise NotDefinedError(
            "there is no growth to draw: no level with a standard deviation is given. Bounds have "
            "none, nor have kernels without error."
        )
    return found, left_out


def _of_outcomes(outcomes: Sequence[object]) -> tuple[list[_Line], list[str]]:
    kept = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    if len(kept) < len(outcomes):
        raise InputError("steps must be all outcomes or all levels, got both")
    one_run = len({outcome.run for outcome in kept}) == 1
    lines: list[_Line] = []
    left_out: list[str] = []
    seen: set[str] = set()
    for outcome in kept:
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
                f"a level{of} must be (name, relative sd, low, high), with None where there is no "
                f"interval, got {step!r}"
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
            f"the interval at level {name!r}{of} must be positive, finite and hold its value "
            f"{value!r}, got {low!r} to {high!r}. Give None twice where there is none."
        )
    return name, value, ends[0], ends[1]


def _positive(value: object) -> float | None:
    if isinstance(value, int | float | np.integer | np.floating) and 0 < value < math.inf:
        return float(value)
    return None


def _levels(lines: Sequence[_Line]) -> dict[str, int]:
    """Return the place of each level on the axis; all lines have them in one order."""
    names = list(dict.fromkeys(step[0] for line in lines for step in line.steps))
    at = {name: i for i, name in enumerate(names)}
    for line in lines:
        places = [at[step[0]] for step in line.steps]
        if places != sorted(places):
            raise InputError(
                f"the levels of {line.name!r} ({', '.join(step[0] for step in line.steps)}) are in "
                f"another order than those of other lines ({', '.join(names)}). Use one order."
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
            tint_of[spot] = _style.INK if spot in tint_of else tint  # of several lines: of none
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


def _at_the_end(name: str, line: _Line, overall: bool) -> str:
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
