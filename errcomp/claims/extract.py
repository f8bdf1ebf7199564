"""A table pasted from a paper as claims: each figure with its metric, subset and place.

Nothing is guessed that the table does not say: a column whose heading names no metric needs one
from the user, and cells that are not taken are listed with the reason.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errcomp.claims.entries import SCHEMA, check_entries
from errcomp.claims.pasted import Grid, tables_in
from errcomp.claims.printed import Printed, parse_printed
from errcomp.claims.registry import average_of, metric_of, plain
from errcomp.errors import InputError, offer
from errcomp.tables.columns import role_of

__all__ = ["Extracted", "extract"]

#: Headings of the column that names the tool of a row.
_TOOLS = ("tool", "method", "predictor", "approach", "simulator", "estimator", "technique")
_COUNTS = ("n", "count", "samples", "cases", "configs", "configurations", "runs", "pairs")
_WITHIN = re.compile(r"(?:within|≤|<=|<)\s*(?:±|\+/-)?\s*(\d+(?:\.\d+)?)\s*%", re.IGNORECASE)
#: Word of a heading → metric as in a file of claims, and aggregation.
_WORDS: Mapping[str, tuple[str, str]] = {
    "mape": ("MAPE", "mean"),
    "rmspe": ("RMSE", ""),
    "rmse": ("RMSE", ""),
    "mae": ("MAE", "mean"),
    "accuracy": ("accuracy", ""),
    "alignment": ("alignment", ""),
    "r2": ("R2", ""),
    "r²": ("R2", ""),
    "kendall": ("Kendall tau", ""),
    "tau": ("Kendall tau", ""),
    "correlation": ("correlation", ""),
    "pearson": ("correlation", ""),
    "error": ("error", ""),
    "err": ("error", ""),
    "errors": ("error", ""),
    "deviation": ("error", ""),
}
_AVERAGES = {
    **dict.fromkeys(("mean", "average", "avg"), "mean"),
    **dict.fromkeys(("geomean", "geometric"), "geometric mean"),
    **{"median": "median", "weighted": "weighted"},
}
#: Words for one of the errors: no claim about their average.
_SINGLE = ("max", "maximum", "worst", "min", "minimum", "best", "std", "sd", "stdev")
_MARKS = re.compile(r"\s*\^?[*†‡§¶]+$|\s*\^\S+$|^\*+|\s*±.*$|\s*\([^)]*\)$|\s*\[[^\]]*\]$")
_AMONG_METRICS = ("correlation", "R2", "Kendall tau")


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a table gives.

    Attributes
    ----------
    document : dict
        A file of claims, `errcomp.claims.entries.json_schema`.
    places : tuple of str
        Where the table has each entry.
    left_out : tuple of str
        Cells and columns that were not taken, with the reason.
    """

    document: dict[str, Any]
    places: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(slots=True)
class _Column:
    """A column: what its heading says."""

    at: int
    heading: str
    parts: tuple[str, ...]
    metric: str = ""
    aggregation: str = ""
    figures: int = 0
    texts: int = 0
    taken: bool = True


def extract(
    path: str | os.PathLike[str],
    *,
    tool: str,
    source: str,
    metric: str | None = None,
    number: int = 1,
    columns: str | None = None,
    only: Sequence[str] = (),
    common: Mapping[str, Any] | None = None,
) -> Extracted:
    r"""Turn a table pasted from a paper into a file of claims about one tool.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Markdown, LaTeX or HTML.
    tool : str
        The tool that the claims are about. Of a table with several tools, in rows or in columns,
        only the figures of this one are taken.
    source : str
        Publication and number of the table.
    metric : str, optional
        Metric of all figures, where the headings name none or another: ``"MAPE"``, …
    number : int
        Which table of the file, from 1.
    columns : str, optional
        The key whose values the headings of the numeric columns are: ``"device"`` for columns named
        V100 and H100.
    only : sequence of str
        Headings of the columns to take; by default all that hold figures.
    common : mapping, optional
        Keys that all entries have: level, reference, protocol, url, …

    Returns
    -------
    Extracted

    Raises
    ------
    InputError
        The file has no such table, no figure is found, a heading names no metric, the tool is not
        in the table, or an entry is not a claim.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("GPU,MAPE (%),n\nV100,5.2,10\nH100,2.3,12\n")
    >>> found = extract(path, tool="mine", source="Paper, Table 3")
    >>> [(one["printed"], one["subset"], one["n"]) for one in found.document["claims"]]
    [('5.2%', {'device': 'V100'}, 10), ('2.3%', {'device': 'H100'}, 12)]
    """
    path = Path(path)
    grids = tables_in(path)
    if not 1 <= number <= len(grids):
        raise InputError(f"{path}: table {number} was asked for, but the file has {len(grids)}.")
    taken = _Table(grids[number - 1], str(path), tool, metric, columns)
    taken.take(only)
    entries, places = [], []
    for entry, place in taken.entries():
        entries.append({**entry, "source": source, **(common or {})})
        places.append(place)
    if not entries:
        told = f" {taken.left_out[0]}" if taken.left_out else ""
        raise InputError(f"{path}: table {number} has no figure that could be a claim.{told}")
    _tell_apart(entries)
    document = {"schema": SCHEMA, "tool": tool, "claims": entries}
    check_entries(document, str(path))
    if len(grids) > 1:
        taken.left_out.append(f"{len(grids) - 1} other tables of the file. Add --number 2, …")
    return Extracted(document, tuple(places), tuple(dict.fromkeys(taken.left_out)))


def _tell_apart(entries: Sequence[dict[str, Any]]) -> None:
    """Give entries that the table describes alike a number: each is a claim of its own."""
    seen: Counter[str] = Counter()
    for entry in entries:
        key = repr([entry.get(name) for name in ("metric", "subset", "scope")])
        seen[key] += 1
        if seen[key] > 1:
            entry["scope"] = "; ".join([*filter(None, [entry.get("scope")]), f"no. {seen[key]}"])


class _Table:
    """One table and its columns; `left_out` collects cells and columns that give no claim."""

    def __init__(
        self, grid: Grid, name: str, tool: str, metric: str | None, columns: str | None
    ) -> None:
        self.grid, self.name, self.tool, self.metric, self.key = grid, name, tool, metric, columns
        self.left_out: list[str] = []
        rows = enumerate(grid.rows)
        first = next((i for i, row in rows if i and _has_figures(row)), len(grid.rows))
        # A row of one text within the table is the title of the rows below it.
        self.headings = [row for row in grid.rows[:first] if not _is_title(row)]
        titles = [row for row in grid.rows[:first] if _is_title(row)]
        self.body = [*titles, *grid.rows[first:]]
        self.percent = "%" in grid.caption
        self.columns = [self._column(at) for at in range(len(grid.rows[0]))]

    def _column(self, at: int) -> _Column:
        parts = tuple(dict.fromkeys(row[at] for row in self.headings if row[at]))
        column = _Column(at, " ".join(parts), parts)
        column.metric, column.aggregation = _metric_in(column.heading)
        cells = [row[at] for row in self.body if not _is_title(row) and row[at] not in _NOTHING]
        column.figures = sum(_figure(cell) is not None for cell in cells)
        column.texts = len(cells) - column.figures
        return column

    def entries(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield each entry, without its source, and its place."""
        counts = next((c for c in self.columns if _stem(c.heading) in _COUNTS), None)
        figures = [c for c in self.columns if c is not counts and _holds_figures(c)]
        # What is to the right of the figures is a remark.
        end = min((c.at for c in figures), default=0)
        labels = [c for c in self.columns if c is not counts and c.at < end]
        figures = self._of_tool([c for c in figures if c.taken])
        shared = set.intersection(*(set(c.parts) for c in figures)) if figures else set()
        tools, title = self._column_of_tools(labels), ""
        others: list[str] = []
        for row in self.body:
            if _is_title(row):
                title = next(filter(None, row))
                continue
            if tools is not None and not self._is_tool(row[tools.at]):
                others.append(row[tools.at])
                continue
            n = None if counts is None else _whole(row[counts.at])
            about = self._about(row, title, [c for c in labels if c is not tools])
            for column in figures:
                own = " ".join(part for part in column.parts if part not in shared)
                entry = self._entry(row, column, about, n, own)
                if entry is not None:
                    place = [*(row[c.at] for c in labels), column.heading]
                    yield entry, ", ".join(filter(None, place))
        if others:
            self.left_out.append(f"Rows of other tools: {', '.join(dict.fromkeys(others))}")

    def _column_of_tools(self, labels: Sequence[_Column]) -> _Column | None:
        """Return the column that names the tool of each row, if there is one."""
        named = [c for c in labels if _stem(c.heading) in _TOOLS]
        for column in named:
            if any(self._is_tool(row[column.at]) for row in self.body):
                return column
        if named:
            known = sorted({row[named[0].at] for row in self.body} - {""})
            raise InputError(
                f"{self.name}: no row is about {self.tool!r}. "
                f"{offer(f'Column {named[0].heading!r}', known, wanted=self.tool)}"
            )
        return None

    def take(self, only: Sequence[str]) -> None:
        """Leave out columns of figures with other headings than these."""
        known = [column.heading for column in self.columns]
        for heading in only:
            if heading not in known:
                raise InputError(
                    f"{self.name}: no column {heading!r}. {offer('Columns', known, wanted=heading)}"
                )
        if only:
            for column in self.columns:
                column.taken = column.heading in only or not _holds_figures(column)

    def _is_tool(self, text: str) -> bool:
        return plain(re.sub(r"\[.*?\]|\(.*?\)", "", text)) == plain(self.tool)

    def _of_tool(self, figures: list[_Column]) -> list[_Column]:
        """Return the columns of the tool, if headings name tools; say which were left out."""
        own = [c for c in figures if self._is_tool(c.heading)]
        if not own:
            return figures
        others = [c.heading for c in figures if c not in own]
        if others:
            self.left_out.append(f"Columns of other tools: {', '.join(others)}")
        return own

    def _about(self, row: Sequence[str], title: str, labels: Sequence[_Column]) -> dict[str, Any]:
        """Return subset and scope: what the row is about."""
        subset, scope = {}, [title] if title else []
        for column in labels:
            text = row[column.at]
            if text in _NOTHING:
                continue
            role = _role(column)
            if _stem(text) in _WHOLE:
                scope.append(text)
            elif role is not None:
                subset[role] = text
            else:
                scope.append(f"{column.heading}: {text}" if column.heading else text)
        return {"subset": subset, "scope": scope}

    def _entry(
        self,
        row: Sequence[str],
        column: _Column,
        about: Mapping[str, Any],
        n: int | None,
        own: str,
    ) -> dict[str, Any] | None:
        """Return the claim in a cell; `own` is what only the heading of its column says."""
        cell, heading = row[column.at], column.heading
        figure = _figure(cell)
        if figure is None:
            if cell not in _NOTHING:
                self.left_out.append(f"{cell!r} in column {heading!r}: not a figure")
            return None
        words = _stems(heading)
        if any(word in _SINGLE for word in words):
            self.left_out.append(f"Column {heading!r}: one of the errors, not their average")
            return None
        metric, aggregation = self._metric_of(column)
        printed = figure.text
        if not figure.percent and metric not in _AMONG_METRICS:
            if "%" in heading or self.percent or (self.metric and "%" in self.metric):
                printed = f"{printed}%"
            elif figure.low > 1:
                self.left_out.append(f"Column {heading!r}: no % sign and no unit")
                return None
        subset, scope = dict(about["subset"]), list(about["scope"])
        if self.key:
            subset[self.key] = _without_metric(own) or own
        elif (rest := _without_metric(own)) and not self._is_tool(rest):
            scope.append(rest)
        entry: dict[str, Any] = {"printed": printed, "metric": metric}
        if aggregation:
            entry["aggregation"] = aggregation
        if subset:
            entry["subset"] = subset
        if scope:
            entry["scope"] = "; ".join(scope)
        return entry if n is None else {**entry, "n": n}

    def _metric_of(self, column: _Column) -> tuple[str, str]:
        if self.metric:
            found, aggregation = _metric_in(self.metric)
            if not found:
                found, stated = metric_of(self.metric)
                aggregation = stated or ""
            return found, aggregation
        if column.metric:
            return column.metric, column.aggregation
        found, aggregation = _metric_in(self.grid.caption)
        if found:
            return found, aggregation
        raise InputError(
            f"{self.name}: the heading {column.heading!r} names no metric. Say which one it is: "
            "--metric MAPE (or median error, R2, share within 10%, …)"
        )


_NOTHING = ("", "—", "–", "-", "--", "N/A", "n/a")
_ROLES = ("device", "model", "mode", "batch", "seq_len")
_WHOLE = ("all", "overall", "average", "avg", "mean", "total")


def _role(column: _Column) -> str | None:
    """Return the key whose values a column holds, such as device."""
    stem = _stem(column.heading)
    return next((role for role in _ROLES if role_of(role, [stem]) is not None), None)


def _holds_figures(column: _Column) -> bool:
    return 0 < column.figures >= column.texts and _role(column) is None


def _stems(text: str) -> list[str]:
    return re.findall(r"[a-z²]+[0-9²]?", text.lower())


def _stem(text: str) -> str:
    """Return a heading as one word, without units and signs."""
    return "_".join(re.findall(r"[a-z]+", re.sub(r"\(.*?\)|\[.*?\]", "", text).lower()))


def _metric_in(text: str) -> tuple[str, str]:
    """Return the metric and the aggregation that a heading names; empty where it names none."""
    if within := _WITHIN.search(text):
        return f"share within {float(within[1]):g}%", ""
    words = _stems(text)
    metric, aggregation = next((_WORDS[word] for word in words if word in _WORDS), ("", ""))
    average = next((_AVERAGES[word] for word in words if word in _AVERAGES), "")
    if metric in ("error", "MAPE", "accuracy") and average:
        return ("error" if average != "mean" else metric), average_of(average)
    return metric, aggregation


def _without_metric(heading: str) -> str:
    """Return a heading without its metric and unit."""
    if _WITHIN.search(heading):
        return ""
    text = re.sub(r"\(\s*%\s*\)|\[\s*%\s*\]|%", " ", heading)
    known = {*_WORDS, *_AVERAGES}
    return " ".join(word for word in text.split() if not {*_stems(word)} & known).strip(" ,:/")


def _figure(cell: str) -> Printed | None:
    text = cell
    while (shorter := _MARKS.sub("", text).strip()) != text:
        text = shorter
    if re.fullmatch(r"[<>~≈≤≥]?\s*\d{1,3}(,\d{3})+(\.\d+)?\s*%?", text):
        text = text.replace(",", "")
    try:
        return parse_printed(text) if text else None
    except InputError:
        return None


def _has_figures(row: Sequence[str]) -> bool:
    return any(_figure(cell) is not None for cell in row[1:] or row)


def _is_title(row: Sequence[str]) -> bool:
    return len(row) > 2 and bool(row[0]) and {*row} <= {row[0], ""} and not _has_figures(row)


def _whole(text: str) -> int | None:
    text = text.replace(",", "")
    return int(text) if text.isdecimal() and int(text) else None
