"""Shared by all readers: sources, sheets, rows, and the registry of formats."""

from errcomp.readers.core.ingest import AnyPath, read_as
from errcomp.readers.core.output import Output, Rows
from errcomp.readers.core.registry import Format, ToolFormats
from errcomp.readers.core.source import Source

__all__ = [
    "AnyPath",
    "Format",
    "Output",
    "Rows",
    "Source",
    "ToolFormats",
    "read_as",
]
