"""Groups of rows in an engine as a small table, whose messages name rows by their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.results import Dropped
from errcomp.tables.columns import Origin, nothing_left
from errcomp.tables.frames import Rows, frame_from_columns, to_eager

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = ["GroupOrigin", "check_numbers", "group_table", "nothing_in", "without_failures"]


@dataclass(frozen=True, slots=True)
class GroupOrigin(Origin):
    """Where groups of rows came from: rows in an engine have no numbers, but keys.

    Attributes
    ----------
    n : ndarray of int, shape (n,)
        Rows of each group.
    keys : mapping of str to sequence
        Values of each key, for all groups of the table.
    """

    n: NDArray[np.int64]
    keys: Mapping[str, Sequence[Any]]

    def name(self, which: Any) -> str:
        """Count the rows of these groups, and name the first three groups by their keys."""
        total = int(self.n[which].sum())
        places = (self.rows[which] - 1).tolist()
        # Groups that differ in what is no key have one label.
        labels = (", ".join(f"{k}={v[i]}" for k, v in self.keys.items()) for i in places)
        different = list(dict.fromkeys(labels))
        more = f" (and {len(different) - 3:,} more)" if len(different) > 3 else ""
        return f"{total:,} row{'s' if total > 1 else ''}: {'; '.join(different[:3])}{more}"

    def of(self, which: Any) -> GroupOrigin:
        """Return the origin of some of the groups."""
        return GroupOrigin(self.source, self.rows[which], self.word, self.n[which], self.keys)

    @classmethod
    def of_groups(
        cls, source: str, n: NDArray[np.int64], keys: Mapping[str, Sequence[Any]]
    ) -> GroupOrigin:
        """Name groups by their keys."""
        return cls(source, np.arange(1, len(n) + 1), "group", n, keys)


def check_numbers(rows: Rows, names: Sequence[str], source: str) -> None:
    """Raise if a column that is there holds no numbers: an engine reads none out of texts."""
    for name in names:
        if name in rows.schema and not rows.is_number(name):
            raise InputError(
                f"{source + ': ' if source else ''}{name} must be a number, but the column holds "
                f"{rows.schema[name]}. Cast it in {rows.engine} first."
            )


def without_failures(rows: Rows, reason: str) -> tuple[Rows, tuple[Dropped, ...]]:
    """Leave out the rows whose status says that they failed, counted."""
    if "status" not in rows.schema:
        return rows, ()
    kept = rows.ok()
    n = rows.count() - kept.count()
    return kept, (Dropped(reason, n),) if n else ()


def nothing_in(what: str, dropped: Sequence[Dropped], source: str) -> InputError:
    """Say that no row is left to work on."""
    nothing = to_eager({})
    why = [f"{one.n} dropped: {one.reason}" for one in dropped]
    origin = Origin.of_table(source, 0, None)
    return nothing_left(what, nothing, np.ones(0, dtype=bool), why, origin)


def group_table(
    columns: Mapping[str, Any], by: Sequence[str]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return groups as a frame ordered by these columns, and the order.

    Engines send groups in no particular order.
    """
    import polars as pl

    frame: pl.DataFrame = frame_from_columns(columns)
    # Whoever reads the table says what is wrong with lists.
    plain = [n for n in by if not frame.schema[n].is_nested() and frame.schema[n] != pl.Object]
    keys = frame.select(pl.col(plain).cast(pl.String, strict=False)).with_row_index("\0at")
    order = keys.sort(plain, nulls_last=True, maintain_order=True)["\0at"]
    return frame[order], order.to_numpy().astype(np.int64)
