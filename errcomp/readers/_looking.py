"""One file of a folder: read, left out for a reason, or read along with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errcomp.errors import InputError
from errcomp.readers.core.archives import is_archive
from errcomp.readers.core.output import Output, Skipped
from errcomp.readers.core.registry import Format, read_source, recognise
from errcomp.readers.core.source import Source

__all__ = ["Along", "Found", "is_data", "look"]

#: What is beside results and is not one.
_NOT_DATA = (".md", ".rst", ".py", ".ipynb", ".sh", ".png", ".pdf", ".svg", ".html", ".gitignore")


@dataclass(frozen=True, slots=True)
class Along:
    """A file that belongs to those of the format ``whole``."""

    name: str
    whole: str


Found = Output | Skipped | Along


def is_data(path: Path) -> bool:
    """Say whether a file may be the output of a tool, by its name."""
    return not path.name.startswith(".") and path.suffix.lower() not in _NOT_DATA


def look(path: Path, name: str, among: Sequence[Format] | None) -> Found:
    """Read a file, or say why not; ``name`` is what messages call it."""
    source = Source(path, name=name)
    try:
        if not is_data(path):
            return Skipped(name, "no output of a tool, by its name")
        if is_archive(path):
            return Skipped(name, "an archive within: give it by itself")
        if not source.head.strip():
            return Skipped(name, "empty: the run may have failed")
        possible = recognise(source, among)
        if len(possible) == 1 and possible[0].part_of:
            return Along(name, possible[0].part_of)
        return read_source(source, among)
    except InputError as error:
        return Skipped(name, str(error).removeprefix(f"{name}: "))
