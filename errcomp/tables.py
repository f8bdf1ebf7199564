"""What goes in: the Pairs table and the one place where pairs are checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp._columns import (
    STATUS_WORDS,
    Origin,
    Zeros,
    as_float,
    check_values,
    numeric,
    one_unit,
    rename,
    status_ok,
)
from errcomp._frames import column_values, is_missing, to_eager
from errcomp.errors import InputError, describe_names
from errcomp.results import Dropped

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["RESERVED_KEYS", "Group", "Pairs", "Zeros", "as_pairs", "check_keys"]

#: Columns with a meaning of their own; every other column is a key to group by as well.
RESERVED_KEYS = (
    "tool",
    "level",
    "device",
    "model",
    "mode",
    "batch",
    "seq_len",
    "variant",
    "kernel_class",
    "version",
    "date",
    "repeat",
)
_NOT_KEYS = ("predicted", "measured", "status", "unit")


def as_pairs(
    predicted: ArrayLike, measured: ArrayLike, *, zeros: Zeros = "raise"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check two arrays of predictions and measurements and return them as float64.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0, n >= 1.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    predicted, measured : ndarray, shape (m,)
        m = n unless rows were excluded.

    Raises
    ------
    InputError
        Shapes differ, nothing is left, values are not finite, or a measurement is not positive.

    Examples
    --------
    >>> as_pairs([11.0, 90.0], [10.0, 0.0])
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: measured must be positive, got 0.0 in row 2. Exclude such rows with \
zeros="exclude" (--zeros exclude; they will be counted), or fix the measurement.
    """
    p = as_float("predicted", predicted)
    m = as_float("measured", measured)
    if p.shape != m.shape:
        raise InputError(
            f"predicted and measured must have the same length, got {len(p)} and {len(m)}"
        )
    keep = check_values(p, m, zeros=zeros, origin=Origin("", np.arange(1, len(p) + 1), "row"))
    p, m = p[keep], m[keep]
    if len(p) == 0:
        raise InputError("no pairs: at least one prediction with its measurement is needed")
    return p, m


def _dropped(reason: str, rows: NDArray[np.int64]) -> tuple[Dropped, ...]:
    return (Dropped(reason, len(rows), tuple(rows[:3].tolist())),) if len(rows) else ()


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


class Pairs:
    """One predicted quantity and its measurement in each row, with keys to group by.

    Parameters
    ----------
    data : dataframe or mapping of columns
        pandas, Polars, PyArrow, … with columns ``predicted`` and ``measured``. Every other column
        is a key, except ``status`` (rows whose status is not ok are failures: counted, not used)
        and ``unit`` (must be the same in all rows).
    columns : mapping, optional
        Renames columns of the data: ``{"measured": "latency_ms"}`` reads measured from latency_ms.
    unit : str, optional
        Unit of both columns. Must agree with a ``unit`` column where there is one.
    source : str
        Named in messages, e.g. the file.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.
    subject : str, optional
        The tool that an audit is about when the table holds several.
    line_offset : int, optional
        Given by readers of text files: row i (from 0) stands on line ``i + line_offset``.

    Raises
    ------
    InputError
        Columns are missing, values are not numbers, not finite or not positive, units are mixed,
        or no row is left.

    Examples
    --------
    >>> pairs = Pairs({"predicted": [11.0, 90.0], "measured": [10.0, 100.0], "device": ["A", "B"]})
    >>> pairs.n, pairs.keys
    (2, ('device',))
    >>> [(g.key, g.index.tolist()) for g in pairs.groups(["device"])]
    [({'device': 'A'}, [0]), ({'device': 'B'}, [1])]
    """

    def __init__(
        self,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        unit: str | None = None,
        source: str = "",
        zeros: Zeros = "raise",
        subject: str | None = None,
        line_offset: int | None = None,
    ) -> None:
        frame = rename(to_eager(data), columns or {}, source)
        word, offset = ("row", 1) if line_offset is None else ("line", line_offset)
        origin = Origin(source, np.arange(len(frame), dtype=np.int64) + offset, word)
        self.source, self.subject = source, subject
        #: Conditions by which rows were chosen from a larger table (see `where`).
        self.selection: dict[str, tuple[str, ...]] = {}
        ok = status_ok(frame)
        p, m = (numeric(frame, name, ok, origin) for name in ("predicted", "measured"))
        positive = np.ones(len(frame), dtype=bool)
        positive[ok] = check_values(p[ok], m[ok], zeros=zeros, origin=origin.of(ok))
        keep = ok & positive
        self.dropped: tuple[Dropped, ...] = (
            *_dropped("the prediction failed (status)", origin.rows[~ok]),
            *_dropped("measured is not positive", origin.rows[~positive]),
        )
        if not keep.any():
            reasons = [f"{d.n} dropped: {d.reason}" for d in self.dropped]
            if not ok.all():
                status = str(column_values(frame, "status")[~ok][0])
                reasons.append(
                    f"{origin.name(~ok)} with status {status!r}, while {STATUS_WORDS} mean success"
                )
            why = "; ".join(reasons) or "the table is empty"
            raise InputError(f"{origin.prefix}no pairs to work on ({why})")
        self.unit = one_unit(frame, unit, keep, origin)
        self.predicted: NDArray[np.float64] = p[keep]
        self.measured: NDArray[np.float64] = m[keep]
        self.rows: NDArray[np.int64] = origin.rows[keep]
        self._native = frame.to_native()
        self._columns: dict[str, NDArray[Any]] = {
            name: column_values(frame, name)[keep]
            for name in frame.columns
            if name not in _NOT_KEYS
        }

    def __len__(self) -> int:
        return len(self.predicted)

    def __repr__(self) -> str:
        return f"Pairs(n={self.n}, keys={self.keys}, unit={self.unit!r}, source={self.source!r})"

    @property
    def n(self) -> int:
        """Number of pairs in use."""
        return len(self.predicted)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns to group by."""
        return tuple(self._columns)

    @property
    def native(self) -> Any:
        """The frame that went in (columns renamed, no row removed); says which library to use."""
        return self._native

    def column(self, name: str) -> NDArray[Any]:
        """Return the values of one key for the pairs in use, shape (n,).

        Raises
        ------
        InputError
            There is no such column; the message lists those that exist.
        """
        if name not in self._columns:
            raise InputError(
                f"{self.source + ': ' if self.source else ''}no column {name!r}. "
                f"Columns to group by: {describe_names(self.keys, wanted=str(name))}"
            )
        return self._columns[name]

    def groups(self, by: str | Sequence[str]) -> list[Group]:
        """Split the rows by the values of the keys, ordered by key; all rows if ``by`` is empty.

        Raises
        ------
        InputError
            A key does not exist or is given twice, or its values are lists or the like.
        """
        by = check_keys(by, ())
        if not by:
            return [Group({}, np.arange(self.n))]
        columns = [_hashable(name, self.column(name)) for name in by]
        found: dict[tuple[Any, ...], list[int]] = {}
        for i, values in enumerate(zip(*columns, strict=True)):
            found.setdefault(values, []).append(i)
        ordered = sorted(found, key=lambda values: [_sort_key(v) for v in values])
        return [
            Group(dict(zip(by, values, strict=True)), np.asarray(found[values], dtype=np.int64))
            for values in ordered
        ]

    def take(self, index: NDArray[Any]) -> Pairs:
        """Return the pairs at these positions (or under this mask) as a table of their own."""
        part = object.__new__(Pairs)
        part.source, part.subject, part.unit = self.source, self.subject, self.unit
        part.dropped, part.selection = (), self.selection
        part.predicted, part.measured = self.predicted[index], self.measured[index]
        part.rows = self.rows[index]
        part._native = self._native
        part._columns = {name: values[index] for name, values in self._columns.items()}
        return part

    def where(self, conditions: Mapping[str, Any]) -> Pairs:
        """Keep the pairs whose key has the value given, or one of the values given.

        Raises
        ------
        InputError
            A key or a value does not occur; the message lists those that do.
        """
        chosen = {
            name: tuple(
                dict.fromkeys(
                    map(str, wanted if isinstance(wanted, list | tuple | set) else [wanted])
                )
            )
            for name, wanted in conditions.items()
        }
        mask = np.ones(self.n, dtype=bool)
        for name, options in chosen.items():
            texts = np.asarray([str(v) for v in self.column(name)])
            for option in options:
                if not (texts == option).any():
                    known = describe_names(sorted(set(texts.tolist())), wanted=option)
                    raise InputError(f"no row has {name}={option}. Values of {name}: {known}")
            mask &= np.isin(texts, options)
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

    def of_tool(self, name: str | None = None) -> Pairs:
        """Return the pairs of one tool, or of the table's subject when no name is given.

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
        found = [tool for tool in tools if tool == wanted]
        found = found or [tool for tool in tools if tool.lower() == wanted.lower()]
        if len(found) != 1:
            there = describe_names(tools, wanted=wanted) if tools else "there is no column tool"
            what = "several tools may be" if found else "no tool"
            raise InputError(
                f"{self.source + ': ' if self.source else ''}{what} {wanted!r}. "
                f"Tools in the table: {there}"
            )
        return self if len(tools) == 1 else self.where({"tool": found[0]})

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return iter(zip(self.predicted.tolist(), self.measured.tolist(), strict=True))


def _hashable(name: str, values: NDArray[Any]) -> list[Any]:
    """Missing is None in every key: NaN is not equal to itself and would split a group."""
    plain = [None if is_missing(v) else v for v in values.tolist()]
    try:
        set(plain)
    except TypeError as error:
        raise InputError(
            f"cannot group by {name!r}: its values are lists or the like. Give each part a column."
        ) from error
    return plain


def _sort_key(value: Any) -> tuple[int, Any, str]:
    if value is None:
        return (2, 0.0, "")
    if isinstance(value, Real):
        return (0, value, "")
    return (1, 0.0, str(value))
