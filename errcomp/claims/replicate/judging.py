"""Printed cells, candidate rules, and whether a rule prints what the survey printed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from errcomp.claims.printed import Printed, parse_printed
from errcomp.claims.replicate.results import Cell, Status, Value, show
from errcomp.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from errcomp.tables import Pairs

__all__ = ["Candidate", "PrintedCell", "Source", "judge", "judge_range", "no_data"]

_UNITS = {"%": "fraction", "x": "ratio", "": "text"}
_FIGURE = re.compile(r"[<>~≤≥]?\s*\d+(?:\.\d+)?(?:–\d+(?:\.\d+)?)?\s*[%×]")


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """One cell as printed, with its number as a fraction where a percentage was printed."""

    table: str
    where: str
    edition: str
    row: str
    column: str
    printed: str
    value: float | None
    unit: str

    @property
    def figures(self) -> tuple[Printed, ...]:
        """The number printed, or the two ends of the range printed in a text."""
        if self.unit != "text":
            return (parse_printed(self.printed),)
        found = _FIGURE.search(self.printed)
        if found is None:
            return ()
        sign = found[0][-1]
        return tuple(parse_printed(end.rstrip(sign) + sign) for end in found[0].split("–"))

    @property
    def decimals(self) -> int:
        """Decimals printed."""
        return max((figure.decimals for figure in self.figures), default=0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to arrive at a figure.

    Attributes
    ----------
    rule : str
        The rule in words.
    value : float or tuple of two floats
        What it gives, in the unit of the cell.
    stated : bool
        Whether this is the rule that the survey states or that the words of the cell imply.
    outwards : bool
        The ends of a range are rounded away from each other, not to the nearest.
    """

    rule: str
    value: Value
    stated: bool = False
    outwards: bool = False


class Source:
    """Everything that the replication works from: printed cells, run figures and pairs.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        The ``survey`` dataset.
    pairs : Pairs
        The ``neusight`` dataset.
    """

    def __init__(self, tables: Mapping[str, pl.DataFrame], pairs: Pairs) -> None:
        self.cells = {
            name: tuple(_printed_cell(row) for row in frame.iter_rows(named=True))
            for name, frame in tables.items()
            if name != "runs"
        }
        self._runs = {
            (row["tool"], row["run"], row["quantity"], row["statistic"]): float(row["value"])
            for row in tables["runs"].iter_rows(named=True)
        }
        self.pairs = pairs
        self._found: dict[str, Any] = {}

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Compute something slow at its first use only."""
        if name not in self._found:
            self._found[name] = compute()
        return self._found[name]

    @cached_property
    def neusight(self) -> Pairs:
        """The pairs of the tool that the survey recomputed."""
        return self.pairs.where({"tool": "neusight"})

    def run(self, tool: str, run: str, quantity: str, statistic: str = "mean") -> float | None:
        """Return a figure derived from a tool's own output, or None where there is no output."""
        return self._runs.get((tool, run, quantity, statistic))

    def need(self, tool: str, run: str, quantity: str, statistic: str = "mean") -> float:
        """Return a figure that the dataset must have."""
        value = self.run(tool, run, quantity, statistic)
        if value is None:
            raise InputError(f"the survey dataset has no {quantity} ({statistic}) of {tool}, {run}")
        return value

    def number(self, table: str, row: str, column: str) -> float:
        """Return a printed number, as a fraction where a percentage was printed."""
        for cell in self.cells[table]:
            if (cell.row, cell.column) == (row, column) and cell.value is not None:
                return cell.value
        raise InputError(f"the survey dataset prints no number in {table}, {row}, {column}")


def judge(cell: PrintedCell, candidates: Iterable[Candidate], note: str = "") -> Cell:
    """Take the first rule that prints the cell as it is; say what the stated one gives if not."""
    tried = list(candidates)
    for candidate in tried:
        fit = _fits(cell.figures, candidate)
        if fit == "no":
            continue
        status: Status = "reproduced" if candidate.stated else "reproduced under another rule"
        notes = [note]
        if fit == "tie":
            notes.append(
                "It is exactly halfway between two printed figures, of which the lower is printed."
            )
        if not candidate.stated:
            notes += [_gives(c, cell) for c in tried if c.stated]
        return _cell(cell, candidate.value, status, candidate.rule, notes)
    first, *others = tried
    return _cell(cell, first.value, "not reproduced", first.rule, [note, *_listed(others, cell)])


def judge_range(
    low: PrintedCell, high: PrintedCell, candidates: Iterable[Candidate], note: str = ""
) -> list[Cell]:
    """Judge two cells that are the ends of one range: a rule must print both of them."""
    tried = list(candidates)
    figures = (*low.figures, *high.figures)
    chosen = next((c for c in tried if _fits(figures, c) != "no"), None)
    first = chosen or tried[0]
    others = [c for c in tried if c is not first and (chosen is None or c.stated)]
    status: Status = "not reproduced"
    if chosen is not None:
        status = "reproduced" if chosen.stated else "reproduced under another rule"
    ends = first.value if isinstance(first.value, tuple) else (first.value, first.value)
    notes = [note, *_listed(others, low)]
    return [
        _cell(cell, end, status, first.rule, notes)
        for cell, end in zip((low, high), ends, strict=True)
    ]


def no_data(cell: PrintedCell, why: str) -> Cell:
    """Say why there is nothing to recompute a cell from."""
    return _cell(cell, None, "no data", "none", [why])


def _cell(
    cell: PrintedCell, value: Value | None, status: Status, rule: str, notes: Iterable[str]
) -> Cell:
    return Cell(
        table=cell.table,
        where=cell.where,
        edition=cell.edition,
        row=cell.row,
        column=cell.column,
        printed=cell.printed,
        recomputed=value,
        unit=_unit_of(cell),
        status=status,
        rule=rule,
        note=" ".join(note for note in notes if note),
        decimals=cell.decimals,
    )


def _unit_of(cell: PrintedCell) -> str:
    """Return the unit of the cell's number, also where it stands in a text."""
    if cell.unit == "text" and cell.figures:
        return "fraction" if cell.figures[0].percent else "ratio"
    return cell.unit


def _listed(candidates: Iterable[Candidate], cell: PrintedCell) -> list[str]:
    """Say what the first few rules give; other roundings of the same figure add nothing."""
    return [_gives(candidate, cell) for candidate in candidates if not candidate.outwards][:4]


def _gives(candidate: Candidate, cell: PrintedCell) -> str:
    shown = show(candidate.value, _unit_of(cell), cell.decimals)
    return f"{candidate.rule[:1].upper()}{candidate.rule[1:]}: {shown}."


def _fits(figures: tuple[Printed, ...], candidate: Candidate) -> str:
    """Say whether every figure is printed so ("yes"), only after rounding a tie down, or not."""
    value = candidate.value
    if isinstance(value, float | int):
        values: tuple[float, ...] = (value,) * len(figures)
    elif len(figures) == 1:
        # Bounds of one figure leave it open unless they agree.
        values = value[:1] if value[0] == value[1] else ()
    else:
        values = value
    if not figures or len(values) != len(figures):
        return "no"
    if candidate.outwards:
        values = tuple(
            _outwards(end, figure, down=i == 0)
            for i, (end, figure) in enumerate(zip(values, figures, strict=True))
        )
    found = {_fit(figure, end) for figure, end in zip(figures, values, strict=True)}
    return "no" if "no" in found else "tie" if "tie" in found else "yes"


def _fit(figure: Printed, value: float) -> str:
    # A tie is recognised before the interval decides: binary rounding puts it on either side.
    if figure.kind == "value" and math.isclose(value, figure.high, rel_tol=1e-9):
        return "tie"
    return "yes" if figure.contains(value) or math.isclose(value, figure.low) else "no"


def _outwards(value: float, figure: Printed, *, down: bool) -> float:
    scale = (100.0 if figure.percent else 1.0) * 10.0**figure.decimals
    # Rounded first: 0.07 * 100 is a little more than 7, and its ceiling must not be 8.
    units = round(value * scale, 9)
    return (math.floor(units) if down else math.ceil(units)) / scale


def _printed_cell(row: Mapping[str, str | float | None]) -> PrintedCell:
    text, unit, value = str(row["printed"]), str(row["unit"] or ""), row["value"]
    number = None if value is None else float(value)
    if unit == "%":
        text, number = f"{text}%", None if number is None else number / 100
    elif unit == "x":
        text = f"{text}×"
    return PrintedCell(
        table=str(row["table"]),
        where=str(row["where"]),
        edition=str(row["edition"]),
        row=str(row["row"]),
        column=str(row["column"]),
        printed=text,
        value=number,
        unit=_UNITS.get(unit, unit),
    )
