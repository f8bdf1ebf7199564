"""Sums over rows by group, fetched from an engine: checked, ordered, and added up further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.tables.frames import Added, Sum, is_missing
from errcomp.tables.table import sort_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Totals"]


#: Types whose values are all there; a check of each value costs more than what follows.
_NEVER_MISSING = {int, str, bool}


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums by group, ordered by key.

    Attributes
    ----------
    keys : mapping of str to list
        Values of each key, one per group; missing is None.
    n : ndarray of int, shape (groups,)
        Rows in each group.
    sums : mapping of Sum to ndarray, shape (groups,)
    """

    keys: Mapping[str, list[Any]]
    n: NDArray[np.int64]
    sums: Mapping[Sum, Floats]

    @classmethod
    def of(cls, found: Added) -> Totals:
        """Take what an engine has sent; `merged` orders it and puts parts together."""
        keys = {
            name: column if set(map(type, column)) <= _NEVER_MISSING else _with_none(column)
            for name, column in found.keys.items()
        }
        return cls(keys, found.n, found.sums)

    def __len__(self) -> int:
        return len(self.n)

    def key(self, i: int) -> dict[str, Any]:
        """Return the key of one group."""
        return {name: values[i] for name, values in self.keys.items()}

    def merged(self, by: Sequence[str]) -> Totals:
        """Add up the groups that share these keys; ordered by them."""
        numbers, count = self.numbered(by)
        if count == len(self):  # no two share them
            first = np.argsort(numbers)
        else:
            first = np.full(count, len(self), dtype=np.int64)
            np.minimum.at(first, numbers, np.arange(len(self)))
        there = first.tolist()
        keys = {name: [self.keys[name][i] for i in there] for name in by}
        known = {one: _known(one, values) for one, values in self.sums.items()}
        if count == len(self):
            return Totals(keys, self.n[first], {one: v[first] for one, v in known.items()})
        return Totals(
            keys,
            np.bincount(numbers, weights=self.n, minlength=count).astype(np.int64),
            {one: _added(one, values, numbers, count) for one, values in known.items()},
        )

    def numbered(self, by: Sequence[str]) -> tuple[NDArray[np.int64], int]:
        """Return the number of each group in the order of these keys, and how many there are."""
        numbers, count = np.zeros(len(self), dtype=np.int64), min(len(self), 1)
        for name in by:
            try:
                column, different = _ranked(self.keys[name])
            except TypeError as error:
                raise InputError(
                    f"cannot group by {name!r}: its values are lists or the like. Give each part "
                    "a column."
                ) from error
            if count < 2:
                numbers, count = column, different
            else:  # renumbered without gaps, so that the product cannot overflow
                numbers = np.unique(numbers * different + column, return_inverse=True)[1]
                count = int(numbers.max()) + 1
        return numbers, count

    def select(self, index: NDArray[Any]) -> Totals:
        """Return some of the groups."""
        chosen = np.arange(len(self))[index]
        return Totals(
            {name: [values[i] for i in chosen] for name, values in self.keys.items()},
            self.n[index],
            {one: values[index] for one, values in self.sums.items()},
        )


def _with_none(values: list[Any]) -> list[Any]:
    return [None if is_missing(v) else v for v in values]


def _ranked(values: list[Any]) -> tuple[NDArray[np.int64], int]:
    """Return the rank of each value among the different ones, and how many these are."""
    if set(map(type, values)) in ({int}, {str}):  # which NumPy orders alike, and faster
        different, ranks = np.unique(np.asarray(values), return_inverse=True)
        return ranks.astype(np.int64, copy=False), len(different)
    order = {v: rank for rank, v in enumerate(sorted(dict.fromkeys(values), key=sort_key))}
    return np.fromiter(map(order.__getitem__, values), np.int64, len(values)), len(order)


def _known(one: Sum, values: Floats) -> Floats:
    """Return what a figure over no row is where the term exists."""
    if one.how == "sum":
        return values
    return np.where(np.isnan(values), -np.inf if one.how == "max" else 0.0, values)


def _added(one: Sum, values: Floats, numbers: NDArray[np.int64], count: int) -> Floats:
    if one.how == "max":
        out = np.full(count, -np.inf)
        np.maximum.at(out, numbers, values)
        return out
    return np.bincount(numbers, weights=values, minlength=count).astype(np.float64, copy=False)
