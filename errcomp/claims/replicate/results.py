"""What replicating the survey found: one cell after the other, none unexplained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from errcomp._showing import Shown

__all__ = ["STATUSES", "Cell", "Replication", "Status", "Value"]

#: What came out of recomputing a cell.
Status = Literal["reproduced", "reproduced under another rule", "not reproduced", "no data"]
Value = float | tuple[float, float]

#: All statuses.
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed cell and what became of it.

    Attributes
    ----------
    table, where : str
        File of the transcription, and where the survey prints it.
    edition : str
        Edition of the survey that the figure is from.
    row, column, printed : str
        The cell, as printed.
    recomputed : float, tuple of two floats or None
        In ``unit``; two numbers for a range, or for bounds where the inputs leave the figure open.
        None where there is nothing to recompute it from.
    unit : str
        ``"fraction"`` (printed as percent), ``"ratio"``, ``"count"``, ``"cycles"``, ``"s"``, …, or
        ``"text"``.
    status : {"reproduced", "reproduced under another rule", "not reproduced", "no data"}
        Reproduced is what prints the same under the rule that the survey states or implies.
    rule : str
        The rule that ``recomputed`` follows; ``"none"`` without data.
    note : str
        Why, and what a reader should know.
    decimals : int
        Decimals printed.
    """

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
    decimals: int = 0

    @property
    def recomputed_text(self) -> str:
        """The recomputed figure as the survey would print it, with one more decimal."""
        return show(self.recomputed, self.unit, self.decimals)

    def describe(self) -> str:
        """Say in a few sentences what was printed, what was found and why.

        Examples
        --------
        >>> from errcomp.claims import replicate_survey
        >>> cell = replicate_survey().cell("table6_neusight", "V100, inference", "survey")
        >>> print(cell.describe())
        Table 6, V100, inference, survey: 5.87% printed, 5.872 % recomputed: reproduced \
(mean APE, all 10 configurations).
        """
        found = "" if self.recomputed is None else f", {self.recomputed_text} recomputed"
        rule = "" if self.rule == "none" else f" ({self.rule})"
        text = f"{self.where}, {self.row}, {self.column}: {self.printed} printed{found}: "
        return f"{text}{self.status}{rule}.{' ' if self.note else ''}{self.note}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: fractions, not percent; a range as a list of two."""
        value = self.recomputed
        return {
            "table": self.table,
            "where": self.where,
            "edition": self.edition,
            "row": self.row,
            "column": self.column,
            "printed": self.printed,
            "recomputed": list(value) if isinstance(value, tuple) else value,
            "unit": self.unit,
            "status": self.status,
            "rule": self.rule,
            "note": self.note,
            "decimals": self.decimals,
        }


def show(value: Value | None, unit: str, decimals: int) -> str:
    """Write a recomputed figure with one decimal more than was printed."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " to ".join(show(end, unit, decimals) for end in value)
    if unit == "fraction":
        return f"{100 * value:.{decimals + 1}f} %"
    if unit in ("count", "cycles") and value == int(value):
        return str(int(value))
    suffix = "" if unit in ("ratio", "count", "text") else f" {unit}"
    return f"{value:.{decimals + 1}f}{suffix}"


@dataclass(frozen=True, slots=True)
class Replication(Shown):
    """Every printed cell of the survey's tables with its status.

    Attributes
    ----------
    cells : tuple of Cell
        In the order of the survey.
    """

    cells: tuple[Cell, ...]

    def tables(self) -> Mapping[str, tuple[Cell, ...]]:
        """Return the cells of each table, by the name of the table."""
        names = dict.fromkeys(cell.table for cell in self.cells)
        return {name: tuple(c for c in self.cells if c.table == name) for name in names}

    def counts(self) -> Mapping[str, Mapping[Status, int]]:
        """Return how many cells have each status, by table and under ``"all"``.

        Examples
        --------
        >>> from errcomp.claims import replicate_survey
        >>> replicate_survey().counts()["table6_neusight"]["not reproduced"]
        0
        """
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
        """
        for cell in self.cells:
            if (cell.table, cell.row, cell.column) == (table, row, column):
                return cell
        raise KeyError((table, row, column))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the cells as rows, and the counts."""
        return {
            "rows": [cell.to_dict() for cell in self.cells],
            "counts": {name: dict(count) for name, count in self.counts().items()},
        }
