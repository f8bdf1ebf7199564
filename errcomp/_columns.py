"""Columns of a user's table turned into arrays, each with the row or line that a message names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp._frames import column_values
from errcomp.errors import InputError, describe_rows

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["Origin", "numeric", "one_unit", "rename", "status_ok"]

_STATUS_OK = ("", "ok", "success", "0", "none")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the rows of a table came from, for messages.

    Attributes
    ----------
    source : str
        Name of the file or dataset; may be empty.
    rows : ndarray of int, shape (n,)
        Number of each row as the user counts them.
    word : {"row", "line"}
        What is counted.
    """

    source: str
    rows: NDArray[np.int64]
    word: str

    @property
    def prefix(self) -> str:
        """Return what a message begins with."""
        return f"{self.source}: " if self.source else ""

    def name(self, which: Any) -> str:
        """Name the rows at these positions (or under this mask): the first three and a count."""
        return describe_rows(self.rows[which].tolist(), word=self.word)

    def of(self, which: Any) -> Origin:
        """Return the origin of some of the rows."""
        return Origin(self.source, self.rows[which], self.word)


def rename(frame: nw.DataFrame[Any], columns: Mapping[str, str], source: str) -> nw.DataFrame[Any]:
    """Give the user's columns their names here, and insist on the two that must be there."""
    where = f"{source}: " if source else ""
    missing = [c for c in columns.values() if c not in frame.columns]
    missing += [c for c in ("predicted", "measured") if c not in columns and c not in frame.columns]
    if missing:
        raise InputError(
            f"{where}missing column{'s' if len(missing) > 1 else ''} {', '.join(missing)}. "
            f"Columns found: {', '.join(frame.columns) or 'none'}. "
            "Name yours with --predicted COLUMN --measured COLUMN (columns={...} in Python)."
        )
    # A column that a rename would collide with is not what the user asked for: it makes way.
    clash = [new for new, old in columns.items() if new != old and new in frame.columns]
    return frame.drop(clash).rename({old: new for new, old in columns.items() if old != new})


def status_ok(frame: nw.DataFrame[Any]) -> NDArray[np.bool_]:
    """Say which predictions did not fail; without a column ``status`` none did."""
    if "status" not in frame.columns:
        return np.ones(len(frame), dtype=bool)
    values = column_values(frame, "status")
    return np.asarray(
        [v is None or v != v or str(v).strip().lower() in _STATUS_OK for v in values], dtype=bool
    )


def numeric(
    frame: nw.DataFrame[Any], name: str, used: NDArray[np.bool_], origin: Origin
) -> NDArray[np.float64]:
    """Return a column as float64; rows that are not used may hold anything."""
    values = column_values(frame, name)
    if values.dtype.kind in "fiu":
        numbers = values.astype(np.float64)
        absent = np.asarray(frame[name].is_null().to_list(), dtype=bool) & used
    else:
        numbers, absent = _from_objects(values, name, used, origin)
    if absent.any():
        raise InputError(
            f"{origin.prefix}{name} is missing in {origin.name(absent)}. Fill it in, remove the "
            "row, or give it a status if the prediction failed."
        )
    return numbers


def _from_objects(
    values: NDArray[Any], name: str, used: NDArray[np.bool_], origin: Origin
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    numbers = np.full(len(values), np.nan)
    absent = np.zeros(len(values), dtype=bool)
    bad = []
    for i in np.flatnonzero(used):
        value = values[i]
        absent[i] = value is None or (isinstance(value, str) and not value.strip())
        if absent[i]:
            continue
        try:
            # True is no measurement, although Python would take it for 1.
            numbers[i] = float("yes" if isinstance(value, bool | np.bool_) else value)
        except (TypeError, ValueError):
            bad.append(i)
    if bad:
        raise InputError(
            f"{origin.prefix}{name} must be a number, got {values[bad[0]]!r} in "
            f"{origin.name(bad)}. Fix the value, or give the row a status if the prediction failed."
        )
    return numbers, absent


def one_unit(
    frame: nw.DataFrame[Any], unit: str | None, used: NDArray[np.bool_], origin: Origin
) -> str | None:
    """Return the unit that all rows in use have; raise when they have several."""
    if "unit" not in frame.columns:
        return unit
    values = column_values(frame, "unit")[used]
    expected = unit if unit is not None else values[0]
    other = np.asarray([v != expected for v in values], dtype=bool)
    if other.any():
        raise InputError(
            f"{origin.prefix}mixed units: {expected!r} and {values[other][0]!r} "
            f"(the second in {origin.of(used).name(other)}). Convert all rows to one unit first."
        )
    return None if expected is None else str(expected)
