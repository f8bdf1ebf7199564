"""Printed cells, candidate rules, and whether a rule gives the printed figure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from errcomp.claims.printed import Printed, parse_printed, written
from errcomp.claims.replicate.chance import chance
from errcomp.codec import Count, Document, Field, Meta, Names, Part, Share, if_known, key, shape_of
from errcomp.errors import InputError
from errcomp.report.shown import Shown

if TYPE_CHECKING:
    import polars as pl

    from errcomp.report.model import Report
    from errcomp.tables import Pairs

#: The result of recomputing a cell.
Status = Literal["reproduced", "reproduced under another rule", "not reproduced", "no data"]
Value = float | tuple[float, float]

#: Tables of the dataset that hold no printed cells.
INPUTS = ("runs", "platforms")
#: Most significant digits of a float.
_MOST_DECIMALS = 20
#: All statuses.
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Cell(Document):
    """One printed cell, recomputed.

    Attributes
    ----------
    table, where : str
        File of the transcription, and where the survey prints it.
    edition : str
        Edition of the survey with this figure.
    row, column, printed : str
        The cell, as printed.
    recomputed : float, tuple of two floats or None
        In ``unit``; two numbers for a range, or for bounds where the inputs leave the figure open.
        None without data.
    unit : str
        ``"fraction"`` (printed in per cent), ``"ratio"``, ``"count"``, ``"cycles"``, ``"s"``, …, or
        ``"text"``.
    status : {"reproduced", "reproduced under another rule", "not reproduced", "no data"}
        A cell is reproduced if it prints the same under the rule that the survey states or implies.
    rule : str
        The rule that ``recomputed`` follows; ``"none"`` without data.
    note : str
        The reason, and what a reader should know.
    decimals : int
        Printed decimals.
    tried : int or None
        Where the stated rule does not give the printed figure: number of all rules tried. None in a
        document of an older version, and where no other rule was tried.
    chance : float or None
        How often one of the other rules would give a figure that has nothing to do with them, see
        ``errcomp.claims.replicate.chance``.
    """

    KEYS: ClassVar = (
        *("table", "where", "edition", "row", "column", "printed", "recomputed", "unit", "status"),
        *("rule", "note", "decimals", if_known("tried"), if_known("chance")),
    )

    table: str
    where: str
    edition: str
    row: str
    column: str
    printed: str
    recomputed: Value | None
    unit: str
    status: Status
    rule: str
    note: str
    decimals: Annotated[int, Meta(ge=0, le=_MOST_DECIMALS)] = 0
    tried: Count | None = None
    chance: Share | None = None

    @property
    def recomputed_text(self) -> str:
        """The recomputed figure as the survey would print it, with one more decimal."""
        return show(self.recomputed, self.unit, self.decimals)

    def describe(self) -> str:
        """Say in a few sentences what was printed, what was recomputed, and the rule.

        Examples
        --------
        >>> from errcomp.claims import replicate_survey
        >>> cell = replicate_survey().cell("table6_neusight", "V100, inference", "survey")
        >>> print(cell.describe())
        Table 6, V100, inference, survey: 5.87% printed, 5.872 % recomputed: reproduced \
(mean APE, all 10 configurations).
        """
        recomputed = "" if self.recomputed is None else f", {self.recomputed_text} recomputed"
        rule = "" if self.rule == "none" else f" ({self.rule})"
        text = f"{self.where}, {self.row}, {self.column}: {self.printed} printed{recomputed}: "
        return f"{text}{self.status}{rule}.{' ' if self.note else ''}{self.note}"


def show(value: Value | None, unit: str, decimals: int) -> str:
    """Write a recomputed figure with one decimal more than was printed."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " to ".join(show(end, unit, decimals) for end in value)
    return written(value, unit, decimals).text


class _Counts(Part):
    """Number of cells with each status, by table and in all."""

    def write(self, result: Replication) -> Mapping[str, Any]:
        return {"counts": {name: dict(count) for name, count in result.counts().items()}}

    def read(self, field: Field) -> Mapping[str, Any]:
        counts, count = field.at("counts"), shape_of(Count)
        counts.at("all")
        return {
            "counted": {
                name: {status: count.read(counts.at(name).at(status)) for status in STATUSES}
                for name in counts.object()
            }
        }

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        counts = shape_of(Mapping[str, Mapping[str, Count]])
        return {"counts": counts.schema(names)}


@dataclass(frozen=True, slots=True)
class Replication(Shown, Document):
    """Every printed cell of the survey's tables with its status.

    Attributes
    ----------
    cells : tuple of Cell
        In the order of the survey.
    counted : mapping, optional
        Number of cells of all tables with each status, if ``cells`` are those of some tables.
    """

    SCHEMA: ClassVar = "errcomp.replication/1"
    COMMAND: ClassVar = "replicate"
    KEYS: ClassVar = (key("rows", "cells"), _Counts())

    cells: Annotated[tuple[Cell, ...], Meta(min_length=1)]
    counted: Mapping[str, Mapping[Status, int]] | None = None

    def view(self) -> Report:
        """Return the report of the replication.

        >>> from errcomp.claims import replicate_survey
        >>> replicate_survey().of_table("table8_vidur").view().tables[0].title
        'Table 8 and section 7.3 (table8_vidur)'
        """
        from errcomp.claims.view.replication import replication_view

        return replication_view(self)

    def of_table(self, name: str) -> Replication:
        """Return the cells of one table, with the counts of all.

        >>> from errcomp.claims import replicate_survey
        >>> {cell.table for cell in replicate_survey().of_table("table8_vidur").cells}
        {'table8_vidur'}
        """
        return Replication(self.tables()[name], self.counts())

    def tables(self) -> Mapping[str, tuple[Cell, ...]]:
        """Return the cells of each table, by the name of the table.

        >>> from errcomp.claims import replicate_survey
        >>> list(replicate_survey().tables())[:2]
        ['tools', 'table3_suite']
        """
        names = dict.fromkeys(cell.table for cell in self.cells)
        return {name: tuple(c for c in self.cells if c.table == name) for name in names}

    def counts(self) -> Mapping[str, Mapping[Status, int]]:
        """Return the number of cells with each status, by table and under ``"all"``.

        Examples
        --------
        >>> from errcomp.claims import replicate_survey
        >>> replicate_survey().counts()["table6_neusight"]["not reproduced"]
        0
        """
        if self.counted is not None:
            return self.counted
        groups = {**self.tables(), "all": self.cells}
        return {
            name: {status: sum(c.status == status for c in cells) for status in STATUSES}
            for name, cells in groups.items()
        }

    def cell(self, table: str, row: str, column: str) -> Cell:
        """Return one cell.

        Raises
        ------
        KeyError
            There is no such cell.

        Examples
        --------
        >>> import errcomp as ec
        >>> cell = ec.replicate_survey().cell("tools", "Timeloop", "claimed accuracy")
        >>> cell.printed, cell.status
        ('5–10%', 'no data')
        """
        for cell in self.cells:
            if (cell.table, cell.row, cell.column) == (table, row, column):
                return cell
        raise KeyError((table, row, column))


_UNITS = {"%": "fraction", "x": "ratio", "": "text"}
_FIGURE = re.compile(r"[<>~≤≥]?\s*\d+(?:\.\d+)?(?:–\d+(?:\.\d+)?)?\s*[%×]")


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """One cell as printed; its number is a fraction if a percentage was printed."""

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
        """The printed number, or the two ends of a range printed in a text."""
        if self.unit != "text":
            return (parse_printed(self.printed),)
        match = _FIGURE.search(self.printed)
        if match is None:
            return ()
        sign = match[0][-1]
        return tuple(parse_printed(end.rstrip(sign) + sign) for end in match[0].split("–"))

    @property
    def decimals(self) -> int:
        """Printed decimals."""
        return max((figure.decimals for figure in self.figures), default=0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule, and the figure that it gives.

    Attributes
    ----------
    rule : str
        The rule in words.
    value : float or tuple of two floats
        The figure, in the unit of the cell.
    stated : bool
        Whether the survey states the rule, or the words of the cell imply it.
    outwards : bool
        Whether the ends of a range are rounded away from each other, not to the nearest.
    searched : tuple of int and float, optional
        Where a search found the rule: the rules searched, and how many would fit by chance.
    """

    rule: str
    value: Value
    stated: bool = False
    outwards: bool = False
    searched: tuple[int, float] | None = None


class Source:
    """The input of the replication: printed cells, figures of runs, and pairs.

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
            if name not in INPUTS
        }
        #: Each tool with its platform, its type of model, and where the survey lists it.
        self.platforms = list(tables["platforms"].iter_rows(named=True))
        self._runs = {
            (row["tool"], row["run"], row["quantity"], row["statistic"]): float(row["value"])
            for row in tables["runs"].iter_rows(named=True)
        }
        self.pairs = pairs
        self._found: dict[str, Any] = {}

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Compute a slow result only once."""
        if name not in self._found:
            self._found[name] = compute()
        return self._found[name]

    @cached_property
    def neusight(self) -> Pairs:
        """The pairs of the tool that the survey recomputed."""
        return self.pairs.where({"tool": "neusight"})

    def run(self, tool: str, run: str, quantity: str, statistic: str = "mean") -> float | None:
        """Return a figure from a tool's own output, or None without output."""
        return self._runs.get((tool, run, quantity, statistic))

    def need(self, tool: str, run: str, quantity: str, statistic: str = "mean") -> float:
        """Return a figure that must be in the dataset."""
        value = self.run(tool, run, quantity, statistic)
        if value is None:
            raise InputError(
                f"the survey dataset has no {quantity} ({statistic}) for tool {tool}, run {run}"
            )
        return value

    def number(self, table: str, row: str, column: str) -> float:
        """Return a printed number, as a fraction if a percentage was printed."""
        for cell in self.cells[table]:
            if (cell.row, cell.column) == (row, column) and cell.value is not None:
                return cell.value
        raise InputError(
            f"the survey dataset has no printed number in table {table}, row {row}, column {column}"
        )


def judge(cell: PrintedCell, candidates: Iterable[Candidate], note: str = "") -> Cell:
    """Take the first rule that gives the printed cell; else say what the stated rule gives."""
    tried = list(candidates)
    for candidate in tried:
        fit = _fits(cell.figures, candidate)
        if fit == "no":
            continue
        notes = [note]
        if fit == "tie":
            notes.append(
                "The recomputed value is exactly halfway between two numbers with as many digits "
                "as printed; the survey prints the lower of the two."
            )
        if candidate.stated:
            return _cell(cell, candidate.value, "reproduced", candidate.rule, notes)
        notes += [_shown_rule(c, cell) for c in tried if c.stated]
        found = _cell(cell, candidate.value, STATUSES[1], candidate.rule, notes)
        return _with_chance(found, cell.figures, tried)
    first, *others = tried
    notes = [note, *_listed(others, cell)]
    found = _cell(cell, first.value, "not reproduced", first.rule, notes)
    return _with_chance(found, cell.figures, tried)


def judge_range(
    low: PrintedCell, high: PrintedCell, candidates: Iterable[Candidate], note: str = ""
) -> list[Cell]:
    """Recompute two cells that are the ends of a range: a rule must give both of them."""
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
    cells = [
        _cell(cell, end, status, first.rule, notes)
        for cell, end in zip((low, high), ends, strict=True)
    ]
    if status == "reproduced":
        return cells
    return [_with_chance(cell, figures, tried) for cell in cells]


def _with_chance(found: Cell, figures: Sequence[Printed], tried: Sequence[Candidate]) -> Cell:
    """Add how many rules were tried, and how often one but the stated would fit by chance."""
    stated, others = (
        [_ends(c, figures) for c in tried if c.stated is which] for which in (True, False)
    )
    if searched := next((c.searched for c in tried if c.searched), None):
        return replace(found, tried=searched[0], chance=min(1.0, searched[1]))
    if not others or any(figure.value is None for figure in figures) or not figures:
        return found
    units = [figure.high - figure.low for figure in figures]
    printed = [figure.value or 0.0 for figure in figures]
    at = next((ends for ends in stated if ends), None)
    fits = chance(printed, [ends for ends in others if ends], units, at)
    return replace(found, tried=len(tried), chance=fits)


def _ends(candidate: Candidate, figures: Sequence[Printed]) -> tuple[float, ...]:
    """Return a value for each printed figure, rounded as the rule says; empty where it has none."""
    value = candidate.value
    if not isinstance(value, tuple):
        return (value,) * len(figures)
    if len(figures) == 1:
        # Bounds give a single figure only if they are equal.
        return value[:1] if value[0] == value[1] else ()
    if len(figures) == len(value) and candidate.outwards:
        return tuple(
            _rounded_outwards(end, figure, down=i == 0)
            for i, (end, figure) in enumerate(zip(value, figures, strict=True))
        )
    return value if len(figures) == len(value) else ()


#: Recomputes one printed cell from a source.
Rule = Callable[[Source, PrintedCell], Cell]


def no_data(cell: PrintedCell, why: str) -> Cell:
    """Say why there is no data to recompute a cell."""
    return _cell(cell, None, "no data", "none", [why])


def said(
    cell: PrintedCell, holds: bool, value: Value, unit: str, rule: str, note: str = ""
) -> Cell:
    """Return the verdict on words: reproduced if they hold."""
    found = no_data(cell, note)
    status: Status = "reproduced" if holds else "not reproduced"
    decimals = 0 if unit in ("fraction", "count") else 1
    return replace(found, recomputed=value, unit=unit, status=status, rule=rule, decimals=decimals)


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
    """Return the unit of the cell's number, also if the number is within a text."""
    if cell.unit == "text" and cell.figures:
        return "fraction" if cell.figures[0].percent else "ratio"
    return cell.unit


def _listed(candidates: Iterable[Candidate], cell: PrintedCell) -> list[str]:
    """Say what the first few rules give, without other roundings of the same figure."""
    return [_shown_rule(candidate, cell) for candidate in candidates if not candidate.outwards][:4]


def _shown_rule(candidate: Candidate, cell: PrintedCell) -> str:
    shown = show(candidate.value, _unit_of(cell), cell.decimals)
    return f"{candidate.rule[:1].upper()}{candidate.rule[1:]}: {shown}."


def _fits(figures: tuple[Printed, ...], candidate: Candidate) -> str:
    """Say whether every figure matches ("yes"), only after rounding a tie down, or not."""
    values = _ends(candidate, figures)
    if not values:
        return "no"
    fits = {_fit(figure, end) for figure, end in zip(figures, values, strict=True)}
    return "no" if "no" in fits else "tie" if "tie" in fits else "yes"


def _fit(figure: Printed, value: float) -> str:
    # Ties are recognised before the interval decides: binary rounding puts them on either side.
    if figure.kind == "value" and math.isclose(value, figure.high, rel_tol=1e-9):
        return "tie"
    return "yes" if figure.contains(value) or math.isclose(value, figure.low) else "no"


def _rounded_outwards(value: float, figure: Printed, *, down: bool) -> float:
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
