"""What each run and each column of the features is to the hierarchical model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats, Names
from errcomp.calibration.hierarchical import Columns
from errcomp.errors import InputError, describe_names

__all__ = ["UNKNOWN", "Level", "assign_columns"]

#: The group of the runs without a name, beside groups with one.
UNKNOWN = "(unknown)"
#: A column whose standard deviation is a smaller share of its size is constant.
_CONSTANT = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Groups that are pooled over.

    Attributes
    ----------
    names : tuple of str
        Of the groups; none where no run has a name.
    of : ndarray of str, shape (n,)
        Group of each run.
    """

    names: tuple[str, ...]
    of: Names

    @classmethod
    def from_names(cls, given: Names) -> Self:
        """Group runs by name; those without one are a group of their own."""
        if not any(given):
            return cls((), given)
        of = given.copy()
        of[of == ""] = UNKNOWN
        return cls(tuple(sorted(set(of.tolist()))), of)

    @property
    def index(self) -> NDArray[np.int64] | None:
        """Position of the group of each run; None without groups."""
        if not self.names:
            return None
        at = {name: i for i, name in enumerate(self.names)}
        return np.asarray([at[name] for name in self.of], dtype=np.int64)


def assign_columns(
    x: Floats,
    names: Sequence[str] | None,
    *,
    launch: Sequence[int | str],
    offset: int | str | None,
) -> tuple[Columns, tuple[str, ...]]:
    """Return what each column is, and caveats: what was dropped, and what only the prior says.

    Raises
    ------
    InputError
        A column is not there, or has two parts.
    """
    labels = [str(name) for name in (range(x.shape[1]) if names is None else names)]
    costs = tuple(_position(column, "launch", x.shape[1], names) for column in launch)
    at = None if offset is None else _position(offset, "offset", x.shape[1], names)
    taken = [*costs, *([] if at is None else [at])]
    if len(set(taken)) < len(taken):
        raise InputError(
            f"launch={launch!r} and offset={offset!r} name a column twice. Each column has one "
            "part."
        )
    others = [column for column in range(x.shape[1]) if column not in taken]
    constant = [c for c in others if x[:, c].std() <= _CONSTANT * np.abs(x[:, c]).max()]
    idle = [c for c in costs if not x[:, c].any()]
    caveats = {
        "dropped, because all runs have the same value": constant,
        "0 in all runs, so that only the prior says what it costs": idle,
    }
    kept = tuple(column for column in others if column not in constant)
    center, scale = x[:, kept].mean(axis=0), x[:, kept].std(axis=0)
    return Columns(tuple(labels), costs, at, kept, center, scale), tuple(
        f"{what}: {describe_names([labels[c] for c in which])}"
        for what, which in caveats.items()
        if which
    )


def _position(column: int | str, word: str, columns: int, names: Sequence[str] | None) -> int:
    """Return the position of a column."""
    if isinstance(column, str):
        known = [] if names is None else [str(name) for name in names]
        if column in known:
            return known.index(column)
        there = describe_names(known, wanted=column) if known else "none: X has no names"
        raise InputError(f"{word} names the column {column!r}, which X lacks. Columns: {there}.")
    if not 0 <= column < columns:
        raise InputError(f"{word} is column {column}, but X has columns 0 to {columns - 1}.")
    return int(column)
