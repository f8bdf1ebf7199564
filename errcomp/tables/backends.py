"""Which backend holds a table: the one place that chooses between memory and an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from errcomp.tables.frames import in_engine
from errcomp.tables.table import Backend, check_keys

if TYPE_CHECKING:
    from errcomp.tables import History, Kernels, Pairs
    from errcomp.tables.engine.pairs import PairRows, PairTotals


def pairs_of(data: Any) -> Pairs | PairRows | PairTotals:
    """Return pairs as they are, those of a frame in memory, or those that stay in an engine."""
    from errcomp.tables import Pairs

    if isinstance(data, Pairs):
        return data
    if not stays(data):
        return Pairs(data)
    from errcomp.tables.engine.pairs import PairRows, PairTotals

    return data if isinstance(data, PairRows | PairTotals) else PairRows(data)


def kernels_of(data: Any, family: str | None) -> Kernels:
    """Return kernels as they are, those of a frame in memory, or groups of those in an engine.

    Parameters
    ----------
    data : Kernels, KernelRows, dataframe or mapping of columns
    family : str, optional
        Further column that will be asked for.
    """
    from errcomp.tables import Kernels

    if isinstance(data, Kernels):
        return data
    if not stays(data):
        return Kernels(data)
    from errcomp.tables.engine.kernels import KernelRows

    rows = data if isinstance(data, KernelRows) else KernelRows(data)
    return rows.grouped([] if family is None else [family])


def history_of(data: Any, by: str | Sequence[str], cluster: str | None) -> History:
    """Return a history as it is, that of a frame in memory, or groups of one in an engine.

    Parameters
    ----------
    data : History, HistoryRows, dataframe or mapping of columns
    by : str or sequence of str
    cluster : str, optional
        Columns that will be asked for.
    """
    from errcomp.tables import History

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
