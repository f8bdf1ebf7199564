"""Rows to search: the configurations that all tools named in the figures have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.caveats._case import cannot_match
from errcomp.errors import InputError, describe_rows, offer
from errcomp.tables import RESERVED_KEYS, Pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Configurations", "join", "quantities"]

#: More distinct whole numbers than this are taken for a quantity, not for a key to group by.
MOST_NUMBERS = 12


@dataclass(frozen=True, slots=True)
class Configurations:
    """The rows that a subset is made of, one per configuration.

    Attributes
    ----------
    names : tuple of str
        Names of the figures: the tools, in the order in which they were asked for.
    predicted, measured : ndarray, shape (tools, n)
        The pairs of each tool.
    columns : dict of str to list
        Key values of each configuration; missing values are None.
    ignored : dict of str to str
        Columns that are no keys, and why.
    left_out : dict of str to int
        Rows of each tool that another tool has no counterpart for.
    """

    names: tuple[str, ...]
    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    columns: dict[str, list[Any]]
    ignored: dict[str, str]
    left_out: dict[str, int]

    @property
    def n(self) -> int:
        """Number of configurations."""
        return int(self.predicted.shape[1])


def join(pairs: Pairs, names: Sequence[str], tool_key: str) -> Configurations:
    """Select the configurations that every tool named has, by all the keys they share.

    Parameters
    ----------
    pairs : Pairs
        Rows of one or several tools.
    names : sequence of str
        Tools, as in the column ``tool_key``. Without such a column (or with one tool in it) one
        name of any kind stands for the whole table.
    tool_key : str
        The column that says which tool a row is of.

    Returns
    -------
    Configurations

    Raises
    ------
    InputError
        A tool is not in the table, the tools share no configuration, or a tool has the same
        configuration twice, so that its rows cannot be matched with those of another tool.
    """
    rows = _rows_of_tools(pairs, names, tool_key)
    columns = {
        name: [_plain(v) for v in pairs.column(name).tolist()]
        for name in pairs.keys
        if name != tool_key
    }
    ignored = quantities(columns, rows)
    for name, values in columns.items():
        if len(names) > 1 and cannot_match(name, [[values[i] for i in part] for part in rows]):
            ignored.setdefault(name, "one value of its own in each tool: matches nothing")
    left_out: dict[str, int] = {}
    if len(names) > 1:
        rows, left_out = _match(pairs, names, rows, columns, set(ignored))
    first = {name: _stating_tool(values, rows) for name, values in columns.items()}
    return Configurations(
        tuple(names),
        np.stack([pairs.predicted[index] for index in rows]),
        np.stack([pairs.measured[index] for index in rows]),
        {name: [columns[name][i] for i in index] for name, index in first.items()},
        ignored,
        left_out,
    )


def quantities(
    columns: Mapping[str, list[Any]], rows: Sequence[NDArray[np.int64]]
) -> dict[str, str]:
    """Name the columns that describe a row without being a key: sums, counts, notes.

    A column of the reserved names is always a key. Any other is none where it holds fractions or
    many different numbers, or where a tool has it for some of its rows only.
    """
    found = {}
    for name, values in columns.items():
        if name in RESERVED_KEYS:
            continue
        stated = [[values[i] for i in index if values[i] is not None] for index in rows]
        present = [value for part in stated for value in part]
        numbers = {v for v in present if isinstance(v, int | float) and not isinstance(v, bool)}
        if any(isinstance(v, float) for v in numbers):
            found[name] = "holds fractions: a quantity, not a key"
        elif len(numbers) > MOST_NUMBERS:
            found[name] = f"holds {len(numbers)} different numbers: a quantity, not a key"
        elif any(0 < len(part) < len(index) for part, index in zip(stated, rows, strict=True)):
            found[name] = "missing in some rows: not a key unless asked for"
    return found


def _rows_of_tools(pairs: Pairs, names: Sequence[str], tool_key: str) -> list[NDArray[np.int64]]:
    everything = np.arange(pairs.n, dtype=np.int64)
    known = sorted({str(v) for v in pairs.column(tool_key)}) if tool_key in pairs.keys else []
    if len(names) == 1 and (not known or (len(known) == 1 and names[0] in ("", known[0]))):
        return [everything]
    if not known:
        raise InputError(
            f"figures for {len(names)} tools, but the table has no column {tool_key!r} that says "
            "which row is of which tool. Give one figure, or name the column (tool_key=...)."
        )
    texts = np.asarray([str(v) for v in pairs.column(tool_key)])
    for name in names:
        if name not in known:
            there = offer("Tools in the table", known, wanted=name)
            raise InputError(f"no rows of tool {name!r}. {there}")
    return [everything[texts == name] for name in names]


def _match(
    pairs: Pairs,
    names: Sequence[str],
    rows: list[NDArray[np.int64]],
    columns: Mapping[str, list[Any]],
    ignored: set[str],
) -> tuple[list[NDArray[np.int64]], dict[str, int]]:
    shared = [
        name
        for name, values in columns.items()
        if name not in ignored and all(any(values[i] is not None for i in index) for index in rows)
    ]
    if not shared:
        raise InputError(
            f"nothing to match the rows of {', '.join(names)} by: the table needs keys that "
            "describe a configuration (device, model, batch, …)."
        )
    tables: list[dict[tuple[Hashable, ...], int]] = []
    for name, index in zip(names, rows, strict=True):
        table: dict[tuple[Hashable, ...], int] = {}
        for i in index.tolist():
            key = tuple(columns[c][i] for c in shared)
            if key in table:
                twice = [int(pairs.rows[table[key]]), int(pairs.rows[i])]
                what = ", ".join(f"{c}={v}" for c, v in zip(shared, key, strict=True))
                raise InputError(
                    f"tool {name} has the configuration {what} twice ({describe_rows(twice)}), so "
                    "its rows cannot be matched with those of the other tools. Add a key that "
                    "tells them apart, e.g. repeat."
                )
            table[key] = i
        tables.append(table)
    common = [key for key in tables[0] if all(key in table for table in tables[1:])]
    if not common:
        raise InputError(
            f"{', '.join(names)} have no configuration in common (matched by {', '.join(shared)})"
        )
    matched = [np.asarray([table[key] for key in common], dtype=np.int64) for table in tables]
    left_out = {name: len(index) - len(common) for name, index in zip(names, rows, strict=True)}
    return matched, left_out


def _stating_tool(values: list[Any], rows: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Rows of the first tool that states this key: what only one tool states holds for the row."""
    for index in rows:
        if any(values[i] is not None for i in index):
            return index
    return rows[0]


def _plain(value: Any) -> Any:
    """Turn missing values into None and whole floats into integers, as a user would write them."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
