"""What goes in: pairs, kernels, runs and histories, and the one place where each is checked."""

from __future__ import annotations

from errcomp.tables.history import History
from errcomp.tables.kernels import Kernels, RunTotals
from errcomp.tables.pairs import RESERVED_KEYS, Pairs, Zeros, as_pairs
from errcomp.tables.runs import Runs, with_runs
from errcomp.tables.table import Group, Table, check_keys

__all__ = [
    "RESERVED_KEYS",
    "Group",
    "History",
    "Kernels",
    "Pairs",
    "RunTotals",
    "Runs",
    "Table",
    "Zeros",
    "as_pairs",
    "check_keys",
    "with_runs",
]
