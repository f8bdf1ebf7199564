"""Facts about a built-in dataset, other than its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

#: Kind of a dataset: a table that ``load`` returns, or several other tables.
Holds = Literal["pairs", "kernels", "history", "tables"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a built-in table.

    Attributes
    ----------
    type : {"text", "integer", "number", "boolean"}
        How the values are read. An empty field is a missing value in every type.
    meaning : str
        Meaning, in a phrase.
    unit : str
        Unit of the values; empty for names and counts.
    """

    type: Literal["text", "integer", "number", "boolean"]
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """Where a dataset comes from and how to build it, declared by modules of this package.

    Attributes
    ----------
    title, source, commit, licence, reference : str
        Title, repository, commit, licence with its copyright line, and publication, as text.
    tables : mapping of str to mapping of str to Column
        File name → columns, in the order of the file.
    build : callable
        ``build(source)`` returns the content of every file in ``tables``, built from the original.
    holds : {"pairs", "kernels", "history", "tables"}
        Kind of the dataset; only ``"tables"`` has several files.
    columns : mapping of str to str
        Column of the table → column of the file, if they differ.
    unit, subject : str, optional
        Unit of predicted and measured; the tool that an audit of the dataset is about.
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
    """A file of a dataset: columns, number of rows and SHA-256."""

    file: str
    rows: int
    sha256: str
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """Result of ``errcomp.datasets.info``: the source of a dataset and its tables."""

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
        """Number of rows of all tables."""
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
