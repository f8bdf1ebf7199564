"""The input tables: pairs, kernels, runs and histories, each checked in one place."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from errcomp.tables.columns import Gaps as Gaps
    from errcomp.tables.columns import Missing as Missing
    from errcomp.tables.columns import Zeros as Zeros
    from errcomp.tables.memory.history import History as History
    from errcomp.tables.memory.kernels import Kernels as Kernels
    from errcomp.tables.memory.kernels import RunTotals as RunTotals
    from errcomp.tables.memory.pairs import RESERVED_KEYS as RESERVED_KEYS
    from errcomp.tables.memory.pairs import Pairs as Pairs
    from errcomp.tables.memory.pairs import as_pairs as as_pairs
    from errcomp.tables.memory.runs import Runs as Runs
    from errcomp.tables.memory.runs import with_runs as with_runs
    from errcomp.tables.table import Group as Group
    from errcomp.tables.table import Table as Table
    from errcomp.tables.table import check_keys as check_keys

#: Each table is imported at first use: reading pairs must not wait for histories.
_HOMES = {
    "RESERVED_KEYS": "memory.pairs",
    "Group": "table",
    "History": "memory.history",
    "Kernels": "memory.kernels",
    "Pairs": "memory.pairs",
    "RunTotals": "memory.kernels",
    "Runs": "memory.runs",
    "Table": "table",
    "Gaps": "columns",
    "Missing": "columns",
    "Zeros": "columns",
    "as_pairs": "memory.pairs",
    "check_keys": "table",
    "with_runs": "memory.runs",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
