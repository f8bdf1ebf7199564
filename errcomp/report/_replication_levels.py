"""Picture of the error by level: the ranges that the survey prints, and what is behind them."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from errcomp.claims.printed import parse_printed
from errcomp.errors import NotDefinedError
from errcomp.report import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.claims.replicate import Cell, Replication

__all__ = ["levels"]

_TABLE = "error_by_level"
#: Characters of a name before it is continued below.
_NAME = 20
_Range = tuple[float, float]


def levels(result: Replication, ax: Axes | None = None) -> Axes:
    """Draw the error range that the survey prints for each level against the one recomputed.

    A thick open bar is the printed range, a thin filled one what the rule behind it gives; beside
    it stands what became of both ends. Ranges that cannot be recomputed are counted below the
    title.

    Misleads where ranges are read as errors of one tool: most are of what several tools claim.

    Parameters
    ----------
    result : Replication
        From `errcomp.claims.replicate_survey`.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        No range of an error was recomputed.
    MissingExtraError
        Matplotlib is not installed.
    """
    ends = _ends(result)
    drawn = [(name, pair) for name, pair in ends.items() if _of_errors(pair)]
    if not drawn:
        raise NotDefinedError("no range of an error by level was recomputed: nothing to draw")
    ax = _style.canvas(ax, 1.5 + 0.42 * len(drawn))
    for y, (_, pair) in enumerate(drawn):
        _draw(ax, y, _printed(pair), _recomputed(pair))
        _style.beside(ax, y, pair[0].status, colour=_style.MUTED)
    _style.names_on_y(ax, [name for name, _ in drawn])
    ax.set_yticks(range(len(drawn)), ["\n".join(wrap(name, _NAME)) for name, _ in drawn])
    ax.set_xlim(left=0)
    _style.name_axes(ax, x="error (%)")
    without = len(ends) - len(drawn)
    notes = ["recomputed: from what the surveyed tools claim; NeuSight: from its pairs"]
    notes += [f"{without} more without data, or not of an error"] if without else []
    _style.heading(ax, "Error by level: printed and recomputed ranges", notes, room=_keys(ax))
    return ax


def _ends(result: Replication) -> dict[str, tuple[Cell, Cell]]:
    """Return the cells of both ends of each range, by the name of the level."""
    cells = {(c.row, c.column): c for c in result.tables().get(_TABLE, ())}
    names = dict.fromkeys(row for row, _ in cells)
    return {
        name: (cells[name, "low"], cells[name, "high"])
        for name in names
        if (name, "low") in cells and (name, "high") in cells
    }


def _of_errors(pair: tuple[Cell, Cell]) -> bool:
    return all(cell.unit == "fraction" and isinstance(cell.recomputed, float) for cell in pair)


def _printed(pair: tuple[Cell, Cell]) -> _Range:
    # An end printed as a bound or a range would reach as far as that does.
    low, high = (parse_printed(cell.printed) for cell in pair)
    return (
        low.low if low.value is None else low.value,
        high.high if high.value is None else high.value,
    )


def _recomputed(pair: tuple[Cell, Cell]) -> _Range:
    low, high = (cell.recomputed for cell in pair)
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high


def _draw(ax: Axes, y: int, printed: _Range, recomputed: _Range) -> None:
    from matplotlib.patches import Rectangle

    low, high = (100 * end for end in printed)
    ax.add_patch(
        Rectangle(
            (low, y - 0.24), high - low, 0.48, facecolor="white", edgecolor=_style.ORANGE, lw=1.6
        )
    )
    low, high = (100 * end for end in recomputed)
    ax.plot([low, high], [y, y], color=_style.BLUE, lw=5, solid_capstyle="butt", zorder=3)


def _keys(ax: Axes) -> float:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor="white", edgecolor=_style.ORANGE, lw=1.6, label="printed"),
        Line2D([], [], color=_style.BLUE, lw=5, label="recomputed"),
    ]
    return _style.keys(ax, [handles])
