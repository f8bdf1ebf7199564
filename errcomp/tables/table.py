"""What all tables have in common: columns to group by, groups of rows, and selections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from errcomp.errors import InputError, describe_names, offer
from errcomp.results import Dropped
from errcomp.tables.frames import column_values, is_missing

if TYPE_CHECKING:
    from collections.abc import Collection

    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["Group", "Table", "check_keys", "dropped_rows", "one_of", "sort_key"]


def check_keys(by: str | Sequence[str], reserved: Sequence[str]) -> tuple[str, ...]:
    """Return the keys to group by; a single one may be given as it is.

    Parameters
    ----------
    by : str or sequence of str
        Keys asked for.
    reserved : sequence of str
        Columns of the result, which a key of the same name would overwrite.

    Raises
    ------
    InputError
        A key is no text, is given twice or has the name of a column of the result.

    Examples
    --------
    >>> check_keys("device", ["n", "mape"])
    ('device',)
    """
    keys = (by,) if isinstance(by, str) else tuple(by)
    for i, key in enumerate(keys):
        if not isinstance(key, str):
            raise InputError(f"keys to group by must be names of columns, got {key!r}")
        if key in keys[:i]:
            raise InputError(f"key {key!r} is given twice. Give it once.")
        if key in reserved:
            raise InputError(
                f"cannot group by {key!r}: the result has a column of that name. "
                "Rename the column in the table."
            )
    return keys


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share their key values: ``key`` names them, ``index`` are row positions."""

    key: dict[str, Any]
    index: NDArray[np.int64]


class Table(ABC):
    """Rows in use, with columns to group by.

    Attributes
    ----------
    source : str
        Named in messages.
    subject : str or None
        The tool that the table is about when it holds several.
    selection : dict of str to tuple of str
        Conditions by which rows were chosen from a larger table (see `where`).
    unit : str or None
        Unit of predictions and measurements.
    rows : ndarray of int, shape (n,)
        Number of each row (or line) as the user counts them.
    """

    source: str
    subject: str | None
    selection: dict[str, tuple[str, ...]]
    unit: str | None
    rows: NDArray[np.int64]
    _columns: Mapping[str, NDArray[Any]]
    _native: Any
    #: Name here → column of the data, where the user said so.
    _renamed: Mapping[str, str] = {}

    @abstractmethod
    def take(self, index: NDArray[Any]) -> Self:
        """Return the rows at these positions (or under this mask) as a table of their own."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n(self) -> int:
        """Number of rows in use."""
        return len(self)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns to group by."""
        return tuple(self._columns)

    @property
    def native(self) -> Any:
        """The frame that went in (columns renamed, no row removed); says which library to use."""
        return self._native

    def column(self, name: str) -> NDArray[Any]:
        """Return the values of one key for the rows in use, shape (n,).

        Raises
        ------
        InputError
            There is no such column; the message lists those that exist.
        """
        if name not in self._columns:
            now = [new for new, old in self._renamed.items() if old == name]
            called = f"It is called {now[0]!r} now. " if now else ""
            raise InputError(
                f"{self.source + ': ' if self.source else ''}no column {name!r}. {called}"
                f"{offer('Columns to group by', self.keys, wanted=str(name))}"
            )
        return self._columns[name]

    def codes(self, *names: str) -> NDArray[np.int64]:
        """Return the group of each row: which rows have equal values in these columns, shape (n,).

        Groups are numbered from 0 in the order in which they appear; missing values are equal to
        each other.

        Raises
        ------
        InputError
            A column does not exist or is named twice, or its values are lists or the like.
        """
        groups, _ = self._numbered(check_keys(names, ()))
        _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[codes]

    def groups(self, by: str | Sequence[str]) -> list[Group]:
        """Split the rows by the values of the keys, ordered by key; all rows if ``by`` is empty.

        Raises
        ------
        InputError
            A key does not exist or is given twice, or its values are lists or the like.
        """
        by = check_keys(by, ())
        if not by:
            return [Group({}, np.arange(len(self)))]
        numbers, columns = self._numbered(by)
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order])) + 1
        return [
            Group({name: column[index[0]] for name, column in columns.items()}, index)
            for index in np.split(order, starts)
            if len(index)
        ]

    def where(self, conditions: Mapping[str, Any]) -> Self:
        """Keep the rows whose key has the value given, or one of the values given.

        Raises
        ------
        InputError
            A key or a value does not occur; the message lists those that do.
        """
        chosen = as_options(conditions)
        mask = np.ones(len(self), dtype=bool)
        for name, options in chosen.items():
            texts = list(map(str, self.column(name)))
            there = set(texts)
            options = chosen[name] = meant(options, there)
            check_options_occur(name, options, there)
            mask &= one_of(texts, options)
        if not mask.any():
            asked = ", ".join(f"{name}={','.join(options)}" for name, options in chosen.items())
            raise InputError(f"no row satisfies all of: {asked}")
        part = self.take(mask)
        part.selection = {**self.selection, **chosen}
        return part

    @property
    def tools(self) -> tuple[str, ...]:
        """Names in the column ``tool``; empty when there is no such column."""
        if "tool" not in self._columns:
            return ()
        return tuple(sorted({str(name) for name in self._columns["tool"]}))

    def of_tool(self, name: str | None = None) -> Self:
        """Return the rows of one tool, or of the table's subject when no name is given.

        A table without a column ``tool``, or without a subject, is returned whole when no name is
        given; ``"all"`` returns the whole table, unless a tool has that name. Upper and lower case
        need not be right where only one tool can be meant.

        Raises
        ------
        InputError
            There is no such tool, or several differ from the name by case only; the message lists
            them.
        """
        tools = self.tools
        wanted = self.subject if name is None else str(name)
        if wanted is None or (wanted == "all" and "all" not in tools):
            return self
        found = tool_called(wanted, tools, self.source)
        return self if len(tools) == 1 else self.where({"tool": found})

    def _numbered(self, names: Sequence[str]) -> tuple[NDArray[np.int64], dict[str, list[Any]]]:
        """Return the group of each row, in the order of their keys, and the values of each key."""
        numbers = np.zeros(len(self), dtype=np.int64)
        columns = {}
        for name in names:
            columns[name] = values = _hashable(name, self.column(name))
            found = dict.fromkeys(values)
            ranks = {value: rank for rank, value in enumerate(sorted(found, key=sort_key))}
            column = np.fromiter(map(ranks.__getitem__, values), np.int64, len(values))
            # Renumbered without gaps, so that the product stays below n² and cannot overflow.
            numbers = np.unique(numbers * len(ranks) + column, return_inverse=True)[1]
        return numbers, columns


def dropped_rows(reason: str, rows: NDArray[np.int64]) -> tuple[Dropped, ...]:
    """Count rows that are not used, if there are any."""
    return (Dropped(reason, len(rows), tuple(rows[:3].tolist())),) if len(rows) else ()


def as_options(conditions: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the values asked for of each key, as text, each once."""
    return {
        name: tuple(
            dict.fromkeys(map(str, wanted if isinstance(wanted, list | tuple | set) else [wanted]))
        )
        for name, wanted in conditions.items()
    }


def meant(options: tuple[str, ...], there: Collection[str]) -> tuple[str, ...]:
    """Return the values that are meant: one with commas looks like several on a command line."""
    whole = ",".join(options)
    return (whole,) if whole in there and not set(there).issuperset(options) else options


def check_options_occur(name: str, options: Sequence[str], there: Collection[str]) -> None:
    """Raise if a key has not one of the values asked for; the message lists those it has."""
    for option in options:
        if option not in there:
            known = offer(f"Values of {name}", sorted(there), wanted=option)
            raise InputError(f"no row has {name}={option}. {known}")


def tool_called(wanted: str, tools: Sequence[str], source: str) -> str:
    """Return the tool of this name, in upper or lower case; raise if it is none or several."""
    found = [tool for tool in tools if tool == wanted]
    found = found or [tool for tool in tools if tool.lower() == wanted.lower()]
    if len(found) == 1:
        return found[0]
    prefix = f"{source}: " if source else ""
    if found:
        raise InputError(
            f"{prefix}several tools may be {wanted!r}. Tools in the table: {describe_names(tools)}"
        )
    there = offer("Tools in the table", tools, wanted=wanted)
    raise InputError(
        f"{prefix}no tool {wanted!r}. {there if tools else 'There is no column tool.'}"
    )


def one_of(texts: Sequence[str], options: Sequence[str]) -> NDArray[np.bool_]:
    """Say which of the texts is one of the options."""
    return np.fromiter(map(set(options).__contains__, texts), bool, len(texts))


def _hashable(name: str, values: NDArray[Any]) -> list[Any]:
    """Missing is None in every key: NaN is not equal to itself and would split a group."""
    plain: list[Any] = values.tolist()
    try:
        found = dict.fromkeys(plain)
    except TypeError as error:
        raise InputError(
            f"cannot group by {name!r}: its values are lists or the like. Give each part a column."
        ) from error
    if any(map(is_missing, found)):
        plain = [None if is_missing(v) else v for v in plain]
    return plain


def sort_key(value: Any) -> tuple[int, Any, str]:
    """Order values of any kind: numbers, then texts, then what is missing."""
    if value is None:
        return (2, 0.0, "")
    if isinstance(value, Real):
        return (0, value, "")
    return (1, 0.0, str(value))


# How many measurements stand behind each row of a table, and how far they scatter.


class Behind(NamedTuple):
    """What stands behind rows; arrays of shape (n,).

    Attributes
    ----------
    n : ndarray of int
        Measurements.
    scatter : ndarray
        Sum of squares of their logarithms about the mean, which is that of the row.
    alike : ndarray of bool
        All of them have the values of the row, which are then those that were written.
    """

    n: NDArray[np.int64]
    scatter: NDArray[np.float64]
    alike: NDArray[np.bool_]

    @classmethod
    def single(cls, n: int) -> Behind:
        """Return what stands behind n rows that are a measurement each."""
        return cls(np.ones(n, dtype=np.int64), np.zeros(n), np.ones(n, dtype=bool))

    def at(self, index: NDArray[Any]) -> Behind:
        """Return what stands behind the rows at these positions, or under this mask."""
        return Behind(*(values[index] for values in self))


# Columns of a large frame, each read when it is asked for.


class OnDemand(Mapping[str, "NDArray[Any]"]):
    """Columns of some rows of a frame as arrays.

    Parameters
    ----------
    frame : narwhals.DataFrame
        All rows.
    names : sequence of str
        Its columns that there are to be, and those that are known.
    index : ndarray of int or bool
        Which rows.
    known : dict of str to ndarray
        Columns of all rows that need not be read; what is read is added. Selections share it.
    """

    def __init__(
        self,
        frame: nw.DataFrame[Any],
        names: Sequence[str],
        index: NDArray[Any],
        known: dict[str, NDArray[Any]],
    ) -> None:
        self._frame, self._names, self.index, self._known = frame, tuple(names), index, known

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = column_values(self._frame, name)
        values: NDArray[Any] = self._known[name][self.index]
        return values

    def __contains__(self, name: object) -> bool:
        return name in self._names  # without reading the column

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def take(self, index: NDArray[Any]) -> OnDemand:
        """Return the columns of the rows at these positions, or under this mask."""
        return OnDemand(self._frame, self._names, self.index[index], self._known)
