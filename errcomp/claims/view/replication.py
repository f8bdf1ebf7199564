"""Report of published tables recomputed, cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from errcomp.claims.printed import parse_printed, written
from errcomp.errors import InputError, NotDefinedError
from errcomp.report import forms
from errcomp.report.drawing import style as _style
from errcomp.report.drawing.hover import tell
from errcomp.report.drawing.words import count as counted
from errcomp.report.model import Cell as TableCell
from errcomp.report.model import Column, Figure, Form, Note, Report, Table, item
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.claims.replicate import Cell, Replication
    from errcomp.claims.replicate.judging import Status

__all__ = ["cells", "counts_of", "levels", "replication_view"]

_TABLE = "error_by_level"
#: Characters of a name before it is continued below.
_NAME = 20
_Range = tuple[float, float]


def replication_view(result: Replication) -> Report:
    """Return the tables, cell by cell, and the count of the cells of all tables."""
    tables = [*(_table(name, cells) for name, cells in result.tables().items()), counts_of(result)]
    statuses = Counter(cell.status for cell in result.cells)
    draw = partial(cells, result)
    return Report(
        title=tables[0].title,
        line=[
            *(f"{n} {status}" for status, n in statuses.items()),
            f"n={len(result.cells):,} cells",
        ],
        tables=tables,
        figures=[Figure("figure", "How many printed cells of each table are reproduced.", draw)],
        draw=draw,
    )


def _table(name: str, cells: Sequence[Cell]) -> Table:
    """Show the recomputed cells as rows; rules and notes below, each only once."""
    notes: dict[str, int] = {}
    rows = []
    for cell in cells:
        if cell.status != "no data":
            number = notes.setdefault(f"{cell.rule}. {cell.note}".strip(), len(notes) + 1)
            rows.append((cell, f"[{number}]"))
    columns = [
        Column("Row", lambda row: row[0].row),
        _second(cells),
        Column("Printed", lambda row: (row[0].printed, _number(row[0].printed)), forms.printed),
        Column("Recomputed", lambda row: row[0], _RECOMPUTED),
        Column("Status", lambda row: row[0].status),
        Column("Rule", lambda row: row[1]),
    ]
    if any(cell.chance is not None for cell in cells):
        columns.append(Column("Chance (rules)", lambda row: row[0], _CHANCE))
    below = [Note(text, f"[{number}]") for text, number in notes.items()]
    without: dict[str, list[str]] = {}
    for cell in cells:
        if cell.status == "no data":
            without.setdefault(cell.note, []).append(f"{cell.row} ({cell.column})")
    below += [item(f"Not recomputed: {', '.join(names)}. {why}") for why, names in without.items()]
    if any(cell.chance is not None for cell in cells):
        below.append(Note(_OF_CHANCE))
    places = {cell.where for cell in cells}
    title = cells[0].where if len(places) == 1 else "Several sections"
    return Table(f"{title} ({name})", columns, rows, below)


_OF_CHANCE = (
    "Chance (rules): shown where no stated rule gives the printed figure. It is the probability "
    "that one of the other rules would give a random figure. In brackets: the number of rules "
    "tried."
)


def _second(cells: Sequence[Cell]) -> Column:
    """Return the column of the table; where all cells are of one column, their places."""
    if len({cell.column for cell in cells}) > 1 or len({cell.where for cell in cells}) == 1:
        return Column("Column", lambda row: row[0].column)
    return Column("Where", lambda row: row[0].where)


def _chance(cell: Cell) -> TableCell:
    if cell.chance is None or cell.tried is None:
        return TableCell("")
    return TableCell(f"{format_fraction(cell.chance)} ({cell.tried:,})", cell.chance)


def _number(printed: str) -> float | None:
    """Return the number that a cell prints; None where it prints words."""
    try:
        return parse_printed(printed).number
    except InputError:
        return None


def _written(cell: Cell) -> TableCell:
    """Return the recomputed figure; a range is sorted by its lower end."""
    value = cell.recomputed
    if value is None or isinstance(value, tuple):
        return TableCell(cell.recomputed_text, value and value[0])
    return forms.figure(written(value, cell.unit, cell.decimals), value)


_RECOMPUTED, _CHANCE = Form(_written, right=True), Form(_chance, right=True)


def counts_of(result: Replication) -> Table:
    """Return how many cells of each table have each status."""
    counts = result.counts()
    columns = [
        Column("Table", lambda name: name),
        *(_count_column(status, counts) for status in next(iter(counts.values()))),
    ]
    return Table("Cells by status", columns, [*counts], _by_chance(result))


def _by_chance(result: Replication) -> list[Note]:
    """Say how many cells another rule gives, and how many it would by chance."""
    tried = [cell for cell in result.cells if cell.chance is not None]
    if not tried or result.counted is not None:
        return []
    given = [cell for cell in tried if cell.status == "reproduced under another rule"]
    expected = sum(cell.chance or 0.0 for cell in tried)
    weak = sum((cell.chance or 0.0) > _WEAK for cell in given)
    text = (
        f"In {counted(len(tried), 'cell')}, the stated rule does not give the figure and other "
        f"rules were tried. In {len(given)} of these cells, another rule gives the figure; by "
        f"chance, this would be expected in about {expected:.1f} cells."
    )
    if weak:
        text += (
            f" {weak} of the {len(given)} could match by coincidence with a chance above "
            f"{format_fraction(_WEAK)}, so those {weak} say little about the rule."
        )
    return [Note(text)]


_WEAK = 0.05


def _count_column(status: Status, counts: Mapping[str, Mapping[Status, int]]) -> Column:
    return Column(status.capitalize(), lambda name: counts[name][status], forms.number_or("·"))


def cells(found: Replication, ax: Axes | None = None) -> Axes:
    """Draw how many printed cells of each table were reproduced, and how.

    Parameters
    ----------
    found : Replication
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    """
    from matplotlib.patches import Patch

    counts = {name: row for name, row in found.counts().items() if name != "all"}
    statuses = list(next(iter(counts.values())))
    looks: list[dict[str, Any]] = [  # hatched, because orange and blue are the same grey in print
        {"facecolor": _style.BLUE, "edgecolor": _style.MUTED},
        {"facecolor": _style.blend(_style.BLUE, 0.4), "edgecolor": _style.MUTED},
        {"facecolor": _style.ORANGE, "edgecolor": "white", "hatch": "////"},
        {"facecolor": "white", "edgecolor": _style.MUTED},
    ]
    ax = _style.canvas(ax, 1.7 + 0.3 * len(counts))
    for y, (name, row) in enumerate(counts.items()):
        start = 0
        for status, look in zip(statuses, looks, strict=True):
            n = row[status]
            ax.barh(y, n, left=start, height=0.6, lw=0.6, **look)
            if n:
                tell(ax, [start + n / 2], [float(y)], [f"{name}\n{n} {status}"])
            start += n
        _style.beside(ax, y, f"n={start}")
    _style.names_on_y(ax, list(counts))
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="printed cells")
    key = [
        Patch(lw=0.6, label=status, **look) for status, look in zip(statuses, looks, strict=True)
    ]
    total = sum(sum(row.values()) for row in counts.values())
    _style.heading(
        ax, f"Which printed figures are reproduced, n={counted(total, 'cell')}",
        room=_style.keys(ax, [key]),
    )  # fmt: skip
    return ax


def levels(result: Replication, ax: Axes | None = None) -> Axes:
    """Draw the printed and the recomputed error range of each level of the survey.

    A thick open bar is the printed range, a thin filled bar the recomputed one, with the status of
    both ends beside it. Ranges that cannot be recomputed are counted below the title.

    Misleads where a range is read as the error of one tool: most ranges span claims of several.

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
        raise NotDefinedError(
            "nothing to draw: no range of errors was recomputed for a level (kernel, model, ...)"
        )
    ax = _style.canvas(ax, 1.5 + 0.42 * len(drawn))
    for y, (_, pair) in enumerate(drawn):
        _draw(ax, y, _printed(pair), _recomputed(pair))
        _style.beside(ax, y, pair[0].status, colour=_style.MUTED)
    _style.names_on_y(ax, [name for name, _ in drawn])
    ax.set_yticks(range(len(drawn)), ["\n".join(wrap(name, _NAME)) for name, _ in drawn])
    ax.set_xlim(left=0)
    _style.name_axes(ax, x="error (%)")
    without = len(ends) - len(drawn)
    notes = ["recomputed from the claims of the surveyed tools, and for NeuSight from its pairs"]
    if without:
        more = f"{without} more range{'s' if without > 1 else ''}"
        notes.append(f"not drawn (no data, or not errors): {more}")
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
