"""What goes in: the tables of pairs and of kernels, and the one place where each is checked."""

from __future__ import annotations

from errcomp.tables._table import Group, Table, check_keys
from errcomp.tables.kernels import Kernels, RunTotals
from errcomp.tables.pairs import RESERVED_KEYS, Pairs, Zeros, as_pairs

__all__ = [
    "RESERVED_KEYS",
    "Group",
    "Kernels",
    "Pairs",
    "RunTotals",
    "Table",
    "Zeros",
    "as_pairs",
    "check_keys",
]
