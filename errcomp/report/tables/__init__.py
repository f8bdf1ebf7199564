"""How results are laid out as tables, and what tables are written to."""

from errcomp.report.tables._table import Column, Table

__all__ = ["Column", "Table"]
