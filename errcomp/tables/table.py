"""The common base of all tables: columns to group by, groups of rows, selections."""

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
from errcomp.tables.frames import LISTS, column_values, is_missing, refined, renumbered

if TYPE_CHECKING:
    from collections.abc import Collection

    import narwhals as nw
    from numpy.typing import NDArray


def check_keys(by: str | Sequence[str], reserved: Sequence[str]) -> tuple[str, ...]:
    """Return the keys to group by as a tuple; a single key may be a string.

    Parameters
    ----------
    by : str or sequence of str
        The requested keys.
    reserved : sequence of str
        Columns of the result, which keys must not overwrite.

    Raises
    ------
    InputError
        A key is not a string, is given twice, or has the name of a column of the result.

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
    """Rows with the same values of the keys: ``key`` has the values, ``index`` the positions."""

    key: dict[str, Any]
    index: NDArray[np.int64]


class Backend(ABC):
    """Interface of every table, in memory or in an engine.

    Attributes
    ----------
    source : str
        Name of the table in messages.
    engine : str
        Common name of the engine that holds the rows; empty for rows in memory.
    dropped : tuple of Dropped
        Counts of rows that are not used, with the reasons.
    """

    source: str
    engine: str = ""
    dropped: tuple[Dropped, ...]
    #: Name used here → column of the data, for renamed columns.
    _renamed: Mapping[str, str] = {}

    @property
    def prefix(self) -> str:
        """Beginning of messages."""
        return f"{self.source}: " if self.source else ""

    @abstractmethod
    def grouped(self, keys: Sequence[str] = ()) -> Table:
        """Return a table that can answer questions about these keys.

        For rows in an engine it holds groups of rows with their counts, sums, extremes and
        histograms. A table in memory returns itself.
        """


class Keyed(Backend):
    """A table with columns to group by and to select rows by.

    Attributes
    ----------
    subject : str or None
        The tool that the table is about if it holds several.
    selection : dict of str to tuple of str
        Conditions that selected these rows from a larger table (see `where`).
    unit : str or None
        Unit of predictions and measurements.
    """

    subject: str | None = None
    selection: dict[str, tuple[str, ...]]
    unit: str | None
    #: Columns that cannot be keys, and why.
    unusable: Mapping[str, str] = {}

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

        Examples
        --------
        >>> from errcomp import datasets
        >>> datasets.load("neusight").where({"device": ["H100", "L4"], "mode": "training"}).n
        60
        """

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise `InputError` if the table lacks one of these keys.

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> pairs = Pairs({"predicted": [11.0], "measured": [10.0], "device": ["A"]})
        >>> pairs.check_columns(["device"])
        """
        keys = self.keys
        for name in names:
            if name in self.unusable:
                raise not_a_key(name, self.unusable[name], self.prefix)
            if name not in keys:
                now = [new for new, old in self._renamed.items() if old == name]
                called = f"It is now called {now[0]!r}. " if now else ""
                raise InputError(
                    f"{self.prefix}no column {name!r}. {called}"
                    f"{offer('Columns to group by', keys, wanted=str(name))}"
                )

    def of_tool(self, name: str | None = None) -> Self:
        """Return the rows of one tool, by default of the table's subject.

        Without a name, a table without a column ``tool`` or without a subject is returned whole.
        ``"all"`` returns the whole table, unless a tool has that name. Case is ignored if the name
        is unambiguous without it.

        Raises
        ------
        InputError
            There is no such tool, or several differ only in case; the message lists the tools.

        Examples
        --------
        >>> from errcomp import datasets
        >>> pairs = datasets.load("neusight")
        >>> pairs.n, pairs.of_tool().n, pairs.of_tool("Habitat").tools
        (386, 146, ('habitat',))
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
    """A table whose rows can be read: rows of the data, or groups of them.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        Number of each row (or line) as the user counts them.
    """

    rows: NDArray[np.int64]
    _columns: Mapping[str, NDArray[Any]]
    _native: Any
    #: Attributes with one value per row.
    _per_row: ClassVar[tuple[str, ...]] = ("rows",)

    def grouped(self, keys: Sequence[str] = (), **_: Any) -> Self:
        """Return the table itself: its rows can be read.

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> pairs = Pairs({"predicted": [11.0], "measured": [10.0], "device": ["A"]})
        >>> pairs.grouped(["device"]) is pairs
        True
        """
        return self

    @cached_property
    def behind(self) -> Behind:
        """The measurements in each row: a single one, or several that an engine combined."""
        return Behind.single(len(self))

    def take(self, index: NDArray[Any]) -> Self:
        """Return the rows at these positions (or under this mask) as a new table.

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> pairs = Pairs({"predicted": [11.0, 9.0, 5.0], "measured": [10.0, 10.0, 10.0]})
        >>> worst = pairs.take(abs(pairs.predicted - pairs.measured) > 2)
        >>> worst.predicted.tolist(), worst.rows.tolist()
        ([5.0], [3])
        """
        part = object.__new__(type(self))
        # Cached results of all rows do not hold for a selection.
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
        """Number of rows of the data in each row, shape (rows,); 1 in memory."""
        return np.ones(len(self), dtype=np.int64)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns to group by."""
        return tuple(self._columns)

    @property
    def native(self) -> Any:
        """The frame that went in (columns renamed, no row removed)."""
        return self._native

    def to_frame(self) -> Any:
        """Return the frame that the table was made from; the same as `native`.

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> Pairs({"predicted": [11.0, 9.0], "measured": [10.0, 10.0]}).to_frame().shape
        (2, 2)
        """
        return self._native

    def column(self, name: str) -> NDArray[Any]:
        """Return the values of one key for the rows in use, shape (n,).

        Raises
        ------
        InputError
            There is no such column; the message lists those that exist.

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> pairs = Pairs({"predicted": [9.0] * 2, "measured": [10.0] * 2, "device": ["A", "B"]})
        >>> pairs.column("device").tolist()
        ['A', 'B']
        """
        self.check_columns((name,))
        return self._columns[name]

    def codes(self, *names: str) -> NDArray[np.int64]:
        """Return the group of each row, by its values in these columns, shape (n,).

        Groups are numbered from 0 in order of appearance. Missing values are equal to each other.

        Raises
        ------
        InputError
            A column does not exist or is named twice, or its values are lists or similar.

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> pairs = Pairs({"predicted": [9.0] * 3, "measured": [10.0] * 3, "device": [*"BAB"]})
        >>> pairs.codes("device").tolist()
        [0, 1, 0]
        """
        plain = self._plain(check_keys(names, ()))
        groups, _ = numbered(plain, len(self))
        codes = renumbered(groups)
        first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several, the last one written stays
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[codes]

    def groups(self, by: str | Sequence[str]) -> list[Group]:
        """Split the rows by the values of the keys, ordered by key; all rows if ``by`` is empty.

        Raises
        ------
        InputError
            A key does not exist or is given twice, or its values are lists or similar.

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> pairs = Pairs({"predicted": [9.0] * 3, "measured": [10.0] * 3, "device": [*"BAB"]})
        >>> [(group.key["device"], group.index.tolist()) for group in pairs.groups("device")]
        [('A', [1]), ('B', [0, 2])]
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

        Examples
        --------
        >>> from errcomp.tables import Pairs
        >>> pairs = Pairs({"predicted": [9.0] * 3, "measured": [10.0] * 3, "device": [*"BAB"]})
        >>> pairs.where({"device": "B"}).rows.tolist()
        [1, 3]
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
    """Return the requested values of each key, as text, without duplicates."""
    return {
        name: tuple(
            dict.fromkeys(map(str, wanted if isinstance(wanted, list | tuple | set) else [wanted]))
        )
        for name, wanted in conditions.items()
    }


def meant(options: tuple[str, ...], values: Collection[str]) -> tuple[str, ...]:
    """Return the requested values: one with commas looks like several on a command line."""
    whole = ",".join(options)
    return (whole,) if whole in values and not set(values).issuperset(options) else options


def check_options_occur(name: str, options: Sequence[str], values: Collection[str]) -> None:
    """Raise if a requested value of a key does not occur; the message lists those that do."""
    for option in options:
        if option not in values:
            known = offer(f"Values of {name}", sorted(values), wanted=option)
            raise InputError(f"no row has {name}={option}. {known}")


def tool_called(wanted: str, tools: Sequence[str], prefix: str) -> str:
    """Return the tool of this name, in any case; raise unless it is exactly one."""
    called = [tool for tool in tools if tool == wanted]
    called = called or [tool for tool in tools if tool.lower() == wanted.lower()]
    if len(called) == 1:
        return called[0]
    if called:
        raise InputError(
            f"{prefix}several tools match {wanted!r}. Tools in the table: {describe_names(tools)}"
        )
    hint = offer("Tools in the table", tools, wanted=wanted)
    if not tools:
        hint = "The table has no column 'tool'."
    raise InputError(f"{prefix}no tool {wanted!r}. {hint}")


def nothing_satisfies(chosen: Mapping[str, Sequence[str]]) -> InputError:
    """Return the error that no row has all requested values."""
    asked = ", ".join(f"{name}={','.join(options)}" for name, options in chosen.items())
    return InputError(f"no row has all of: {asked}")


def one_of(texts: Sequence[str], options: Sequence[str]) -> NDArray[np.bool_]:
    """Say which of the texts are among the options."""
    return np.fromiter(map(set(options).__contains__, texts), bool, len(texts))


def not_a_key(name: str, reason: str, prefix: str = "") -> InputError:
    """Return the error that a column cannot be a key."""
    remedy = " Put each element in a column of its own." if reason == LISTS else ""
    return InputError(f"{prefix}cannot group by {name!r}: {reason.rstrip('.')}.{remedy}")


def plain_values(name: str, values: NDArray[Any] | Sequence[Any]) -> list[Any]:
    """Replace missing values by None: NaN is not equal to itself and would split a group."""
    plain: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    try:
        different = dict.fromkeys(plain)
    except TypeError as error:
        raise not_a_key(name, LISTS) from error
    if any(map(is_missing, different)):
        plain = [None if is_missing(value) else value for value in plain]
    return plain


def numbered(columns: Mapping[str, Sequence[Any]], n: int) -> tuple[NDArray[np.int64], int]:
    """Return the group of each of n rows, numbered in the order of keys, and their number.

    Values are those of `plain_values`.
    """
    groups, count = np.zeros(n, dtype=np.int64), min(n, 1)
    for values in columns.values():
        different: Any = dict.fromkeys(values)
        # Whole numbers and texts need no sort key, which is faster.
        as_they_are = set(map(type, different)) in ({int}, {str})
        order = sorted(different) if as_they_are else sorted(different, key=sort_key)
        rank = {value: i for i, value in enumerate(order)}
        codes = np.fromiter(map(rank.__getitem__, values), np.int64, n)
        if count < 2:
            groups, count = codes, len(order)
        else:  # renumbered without gaps, so that the product stays below n² and cannot overflow
            groups = refined(groups, codes)
            count = int(groups.max()) + 1
    return groups, count


def sort_key(value: Any) -> tuple[int, Any, str]:
    """Order values of any kind: numbers, then texts, then missing values."""
    if value is None:
        return (2, 0.0, "")
    if isinstance(value, Real):
        return (0, value, "")
    return (1, 0.0, str(value))


# The measurements in each row of a table: their number and their scatter.


class Behind(NamedTuple):
    """The measurements in each row; arrays of shape (n,).

    Attributes
    ----------
    n : ndarray of int
        Number of measurements.
    scatter : ndarray
        Sum of squares of their logarithms about the mean, which is the row's value.
    alike : ndarray of bool
        All measurements are equal to the row's value, which then is exact.
    """

    n: NDArray[np.int64]
    scatter: NDArray[np.float64]
    alike: NDArray[np.bool_]

    @classmethod
    def single(cls, n: int) -> Behind:
        """Return n rows of a single measurement each."""
        return cls(np.ones(n, dtype=np.int64), np.zeros(n), np.ones(n, dtype=bool))

    def at(self, index: NDArray[Any]) -> Behind:
        """Return the measurements of the rows at these positions, or under this mask."""
        return Behind(*(values[index] for values in self))


# Columns of a large frame, each read at first use.


class OnDemand(Mapping[str, "NDArray[Any]"]):
    """Columns of some rows of a frame as arrays.

    Parameters
    ----------
    frame : narwhals.DataFrame
        All rows.
    names : sequence of str
        The columns to offer, of the frame or of `known`.
    index : ndarray of int or bool
        The rows to offer.
    known : dict of str to ndarray
        Columns already read, with all rows; further ones are added. Selections share it.
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
