"""The backend of a table: the only module that chooses between memory and an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.tables.frames import in_engine
from errcomp.tables.table import Backend, check_keys

if TYPE_CHECKING:
    from errcomp.tables import History, Kernels, Pairs
    from errcomp.tables.engine.pairs import PairRows, PairTotals


class Content:
    """What a file holds, from which tables are made: `errcomp.readers.core.output.Output`."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def pairs(self) -> Pairs:
            """Its pairs."""

        @property
        def kernels(self) -> Kernels:
            """Its kernels."""

        @property
        def history(self) -> History:
            """Its history."""


def pairs_of(data: Any) -> Pairs | PairRows | PairTotals:
    """Return pairs unchanged, read them from a frame in memory, or leave them in an engine."""
    from errcomp.tables import Pairs

    if isinstance(data, Content):
        data = data.pairs
    if isinstance(data, Pairs):
        return data
    if not stays(data):
        return Pairs(data)
    from errcomp.tables.engine.pairs import PairRows, PairTotals

    return data if isinstance(data, PairRows | PairTotals) else PairRows(data)


def pairs_in_memory(data: Any) -> Pairs:
    """Return pairs as they are, or those of a frame; rows of a lazy frame are collected."""
    from errcomp.tables import Pairs

    if isinstance(data, Content):
        data = data.pairs
    if isinstance(data, Backend) and data.engine:
        raise InputError(
            f"this analysis needs every pair in memory, but these pairs stay in {data.engine}. "
            "Give the path of the table instead of scan(path), or a dataframe."
        )
    return data if isinstance(data, Pairs) else Pairs(data)


def kernels_of(data: Any, family: str | None) -> Kernels:
    """Return kernels unchanged, read them from a frame, or group those in an engine.

    Parameters
    ----------
    data : Kernels, KernelRows, dataframe or mapping of columns
    family : str, optional
        A further column that the caller needs.
    """
    from errcomp.tables import Kernels

    if isinstance(data, Content):
        data = data.kernels
    if isinstance(data, Kernels):
        return data
    if not stays(data):
        return Kernels(data)
    from errcomp.tables.engine.kernels import KernelRows

    rows = data if isinstance(data, KernelRows) else KernelRows(data)
    return rows.grouped([] if family is None else [family])


def kernels_in_memory(data: Any) -> Kernels:
    """Return kernels unchanged, or read them from a frame; a lazy frame is collected.

    Parameters
    ----------
    data : Kernels, dataframe or mapping of columns

    Raises
    ------
    InputError
        It is of another type, or the table cannot be used (see `errcomp.tables.Kernels`).
    """
    from errcomp.tables import Kernels

    if isinstance(data, Content):
        data = data.kernels
    if isinstance(data, Kernels):
        return data
    if isinstance(data, Backend):
        raise InputError(
            f"expected a table of kernels in memory, got {type(data).__name__}. errcomp needs "
            "every kernel of a run: pass the frame itself, which errcomp loads into memory."
        )
    return Kernels(data)


def history_of(data: Any, by: str | Sequence[str], cluster: str | None) -> History:
    """Return a history unchanged, read it from a frame, or group one in an engine.

    Parameters
    ----------
    data : History, HistoryRows, dataframe or mapping of columns
    by : str or sequence of str
    cluster : str, optional
        Columns that the caller needs.
    """
    from errcomp.tables import History

    if isinstance(data, Content):
        data = data.history
    if isinstance(data, History):
        return data
    if not stays(data):
        return History(data)
    from errcomp.tables.engine.history import HistoryRows

    rows = data if isinstance(data, HistoryRows) else HistoryRows(data)
    return rows.grouped((*check_keys(by, ()), *([] if cluster is None else [cluster])))


def stays(data: Any) -> bool:
    """Say whether the rows of a table are not in memory."""
    return bool(data.engine) if isinstance(data, Backend) else in_engine(data)
