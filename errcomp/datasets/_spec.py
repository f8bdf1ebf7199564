"""What is known about an embedded dataset besides its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

#: What a dataset is: one table for ``load``, ``load_kernels`` or ``load_history``, or tables of
#: their own kind.
Holds = Literal["pairs", "kernels", "history", "tables"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an embedded table.

    Attributes
    ----------
    type : {"text", "integer", "number", "boolean"}
        How the values are read. An empty field is a missing value in every type.
    meaning : str
        One phrase for a reader.
    unit : str
        Unit of the values; empty for names and counts.
    """

    type: Literal["text", "integer", "number", "boolean"]
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """Where a dataset comes from and how it is made; one per module in ``errcomp.datasets``.

    Attributes
    ----------
    title, source, commit, licence, reference : str
        For people: what it is, repository, commit, licence with its copyright line, publication.
    tables : mapping of str to mapping of str to Column
        File name to its columns, in the order of the file.
    build : callable
        ``build(source)`` returns the bytes of every file in ``tables``, made from the original.
    holds : {"pairs", "kernels", "history", "tables"}
        What it is; all but tables are in one file.
    columns : mapping of str to str
        Column of the table of pairs or kernels to column of the file, where they differ.
    unit, subject : str, optional
        Unit of predicted and measured; the tool that an audit of this dataset is about.
    """

    title: str
    source: str
    commit: str
    licence: str
    reference: str
    tables: Mapping[str, Mapping[str, Column]]
    build: Callable[[Path], Mapping[str, bytes]]
    holds: Holds = "tables"
    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One file of a dataset: its columns, how many rows it has and its SHA-256."""

    file: str
    rows: int
    sha256: str
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What ``errcomp.datasets.info`` returns: the source of a dataset and its tables."""

    name: str
    holds: Holds
    title: str
    source: str
    commit: str
    licence: str
    reference: str
    unit: str | None
    tables: tuple[TableInfo, ...]

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "holds": self.holds,
            "title": self.title,
            "source": self.source,
            "commit": self.commit,
            "licence": self.licence,
            "reference": self.reference,
            "unit": self.unit,
            "rows": self.rows,
            "tables": [{"file": t.file, "rows": t.rows, "sha256": t.sha256} for t in self.tables],
            "columns": [
                {"table": t.file, "name": name, "type": c.type, "unit": c.unit}
                | {"meaning": c.meaning}
                for t in self.tables
                for name, c in t.columns.items()
            ],
        }
