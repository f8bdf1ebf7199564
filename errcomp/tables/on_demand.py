"""Columns of a large frame, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errcomp.tables.frames import column_values

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["OnDemand"]


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
