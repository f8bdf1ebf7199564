"""How results are laid out as tables, and what tables are written to."""

from errcomp.report.tables._table import (
    Column,
    Table,
    caveat_text,
    clean,
    heading_of,
    key_text,
)

__all__ = ["Column", "Table", "caveat_text", "clean", "heading_of", "key_text"]
