"""What all tables have in common: columns to group by, groups of rows, and selections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from errcomp.errors import InputError, describe_names, offer
from errcomp.results import Dropped
from errcomp.tables.frames import column_values, is_missing

if TYPE_CHECKING:
    from collections.abc import Collection

    import narwhals as nw
    from numpy.typing import NDArray


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


class Backend(ABC):
    """What every table is asked, in memory or in an engine.

    Attributes
    ----------
    source : str
        Named in messages.
    engine : str
        What people call the engine that holds the rows; empty where they are in memory.
    dropped : tuple of Dropped
        Rows that are not used, with reasons.
    """

    source: str
    engine: str = ""
    dropped: tuple[Dropped, ...]
    #: Name here → column of the data, where the user said so.
    _renamed: Mapping[str, str] = {}

    @property
    def prefix(self) -> str:
        """What a message begins with."""
        return f"{self.source}: " if self.source else ""

    @abstractmethod
    def grouped(self, keys: Sequence[str] = ()) -> Table:
        """Return what a question about these keys needs.

        An engine answers with groups of its rows, and what is known of each: counts, sums,
        extremes, histograms. A table in memory answers with itself: its rows are at hand.
        """


class Keyed(Backend):
    """A table with columns to group by, and to choose rows by.

    Attributes
    ----------
    subject : str or None
        The tool that the table is about when it holds several.
    selection : dict of str to tuple of str
        Conditions by which rows were chosen from a larger table (see `where`).
    unit : str or None
        Unit of predictions and measurements.
    """

    subject: str | None = None
    selection: dict[str, tuple[str, ...]]
    unit: str | None

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """Names of the columns to group by."""

    @property
    @abstractmethod
    def tools(self) -> tuple[str, ...]:
        """Names in the column ``tool``; empty when there is no such column."""

    @abstractmethod
    def where(self, conditions: Mapping[str, Any]) -> Self:
        """Keep the rows whose key has the value given, or one of the values given.

        Raises
        ------
        InputError
            A key or a value does not occur; the message lists those that do.
        """

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise if there is no such key."""
        keys = self.keys
        for name in names:
            if name not in keys:
                now = [new for new, old in self._renamed.items() if old == name]
                called = f"It is called {now[0]!r} now. " if now else ""
                raise InputError(
                    f"{self.prefix}no column {name!r}. {called}"
                    f"{offer('Columns to group by', keys, wanted=str(name))}"
                )

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
        wanted = self.subject if name is None else str(name)
        if wanted is None:
            return self
        tools = self.tools
        if wanted == "all" and "all" not in tools:
            return self
        tool = tool_called(wanted, tools, self.prefix)
        return self if len(tools) == 1 else self.where({"tool": tool})


class Table(Keyed):
    """Rows at hand, with columns to group by: each a row of the data, or a group of its rows.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        Number of each row (or line) as the user counts them.
    """

    rows: NDArray[np.int64]
    _columns: Mapping[str, NDArray[Any]]
    _native: Any
    #: Attributes that have a value for each row.
    _per_row: ClassVar[tuple[str, ...]] = ("rows",)

    def grouped(self, keys: Sequence[str] = (), **_: Any) -> Self:
        """Return the table: its rows are at hand, each one of the data or a group of these."""
        return self

    @cached_property
    def behind(self) -> Behind:
        """What stands behind each row: one measurement, or several that an engine put together."""
        return Behind.single(len(self))

    def take(self, index: NDArray[Any]) -> Self:
        """Return the rows at these positions (or under this mask) as a table of their own."""
        part = object.__new__(type(self))
        # What was computed from all rows does not hold for a selection.
        known = {k: v for k, v in vars(self).items() if not _is_cached(type(self), k)}
        vars(part).update(known)
        for name in self._per_row:
            values = getattr(self, name)
            setattr(part, name, None if values is None else values[index])
        if "behind" in vars(self):
            part.behind = self.behind.at(index)
        part.dropped = ()
        if isinstance(self._columns, OnDemand):
            part._columns = self._columns.take(index)
        else:
            part._columns = {name: values[index] for name, values in self._columns.items()}
        return part

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n(self) -> int:
        """Number of rows in use."""
        return len(self)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of the data that each row stands for, shape (rows,): one, in memory."""
        return np.ones(len(self), dtype=np.int64)

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
        self.check_columns((name,))
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
        plain = self._plain(check_keys(names, ()))
        groups, _ = numbered(plain, len(self))
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
        columns = self._plain(by)
        numbers, _ = numbered(columns, len(self))
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
            distinct = set(texts)
            options = chosen[name] = meant(options, distinct)
            check_options_occur(name, options, distinct)
            mask &= one_of(texts, options)
        if not mask.any():
            raise nothing_satisfies(chosen)
        part = self.take(mask)
        part.selection = {**self.selection, **chosen}
        return part

    @property
    def tools(self) -> tuple[str, ...]:
        """Names in the column ``tool``; empty when there is no such column."""
        if "tool" not in self._columns:
            return ()
        return tuple(sorted({str(name) for name in self._columns["tool"]}))

    def _plain(self, names: Iterable[str]) -> dict[str, list[Any]]:
        return {name: plain_values(name, self.column(name)) for name in names}


def _is_cached(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)


def as_options(conditions: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the values asked for of each key, as text, each once."""
    return {
        name: tuple(
            dict.fromkeys(map(str, wanted if isinstance(wanted, list | tuple | set) else [wanted]))
        )
        for name, wanted in conditions.items()
    }


def meant(options: tuple[str, ...], values: Collection[str]) -> tuple[str, ...]:
    """Return the values that are meant: one with commas looks like several on a command line."""
    whole = ",".join(options)
    return (whole,) if whole in values and not set(values).issuperset(options) else options


def check_options_occur(name: str, options: Sequence[str], values: Collection[str]) -> None:
    """Raise if a key has not one of the values asked for; the message lists those it has."""
    for option in options:
        if option not in values:
            known = offer(f"Values of {name}", sorted(values), wanted=option)
            raise InputError(f"no row has {name}={option}. {known}")


def tool_called(wanted: str, tools: Sequence[str], prefix: str) -> str:
    """Return the tool of this name, in upper or lower case; raise if it is none or several."""
    called = [tool for tool in tools if tool == wanted]
    called = called or [tool for tool in tools if tool.lower() == wanted.lower()]
    if len(called) == 1:
        return called[0]
    if called:
        raise InputError(
            f"{prefix}several tools may be {wanted!r}. Tools in the table: {describe_names(tools)}"
        )
    hint = offer("Tools in the table", tools, wanted=wanted)
    raise InputError(f"{prefix}no tool {wanted!r}. {hint if tools else 'There is no column tool.'}")


def nothing_satisfies(chosen: Mapping[str, Sequence[str]]) -> InputError:
    """Say that no row has all the values asked for."""
    asked = ", ".join(f"{name}={','.join(options)}" for name, options in chosen.items())
    return InputError(f"no row satisfies all of: {asked}")


def one_of(texts: Sequence[str], options: Sequence[str]) -> NDArray[np.bool_]:
    """Say which of the texts is one of the options."""
    return np.fromiter(map(set(options).__contains__, texts), bool, len(texts))


def plain_values(name: str, values: NDArray[Any] | Sequence[Any]) -> list[Any]:
    """Missing is None in every key: NaN is not equal to itself and would split a group."""
    plain: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    try:
        different = dict.fromkeys(plain)
    except TypeError as error:
        raise InputError(
            f"cannot group by {name!r}: its values are lists or the like. Give each part a column."
        ) from error
    if any(map(is_missing, different)):
        plain = [None if is_missing(value) else value for value in plain]
    return plain


def numbered(columns: Mapping[str, Sequence[Any]], n: int) -> tuple[NDArray[np.int64], int]:
    """Return the group of each of n rows, numbered in the order of their keys, and the count.

    Values are those of `plain_values`.
    """
    groups, count = np.zeros(n, dtype=np.int64), min(n, 1)
    for values in columns.values():
        different: Any = dict.fromkeys(values)
        # Whole numbers, or texts, are ordered as they are, and faster.
        as_they_are = set(map(type, different)) in ({int}, {str})
        order = sorted(different) if as_they_are else sorted(different, key=sort_key)
        rank = {value: i for i, value in enumerate(order)}
        codes = np.fromiter(map(rank.__getitem__, values), np.int64, n)
        if count < 2:
            groups, count = codes, len(order)
        else:  # renumbered without gaps, so that the product stays below n² and cannot overflow
            groups = np.unique(groups * len(order) + codes, return_inverse=True)[1]
            count = int(groups.max()) + 1
    return groups, count


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
