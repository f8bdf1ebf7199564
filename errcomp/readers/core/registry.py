"""Which formats are known, and which of them a file is in."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

from errcomp.errors import ErrcompError, InputError, offer
from errcomp.readers.core.output import Output
from errcomp.readers.core.source import Source

__all__ = [
    "ENTRY_POINTS",
    "REFERENCES",
    "Format",
    "formats",
    "formats_of",
    "read_as",
    "read_source",
    "recognise",
]

#: Packages add readers under this name: each entry point is a sequence of formats.
ENTRY_POINTS = "errcomp.readers"
Gives = Literal["predictions", "measurements", "both", "neither"]
Reference = Literal["hardware", "rtl", "simulator", "estimate", "unknown"]
#: What a measured value may have been measured on.
REFERENCES: tuple[Reference, ...] = get_args(Reference)


@dataclass(frozen=True, slots=True)
class Format:
    """One format of one tool.

    Attributes
    ----------
    name : str
        Short and unique, e.g. ``vidur-requests``.
    tool : str
        As its authors write it.
    files : str
        What it is, for people: ``request_metrics.csv``.
    levels, quantities, units : tuple of str
        Of the rows it gives, see `Output`.
    gives : {"predictions", "measurements", "both", "neither"}
    sample : str
        The version or origin of the real sample it was tested with; empty if it was tested with
        files written after the documentation only.
    recognise : callable
        Takes a `Source`, says whether it is in this format, by content. Must be quick (look at
        ``head``, ``head_lines``, ``header``, ``json_names``) and must not raise.
    read : callable or None
        Takes a `Source`, returns an `Output` or raises InputError. None where there is nothing
        that could be read: `limits` says why.
    limits : str
        What it does not do, or why it cannot be read; a sentence.
    part_of : str
        Name of the format that reads this file along with its own: by itself it gives no rows.
    folder : bool
        It is a folder as a whole, not a file.
    reference : {"hardware", "rtl", "simulator", "estimate", "unknown"}, optional
        What its measured values were measured on: the column ``reference`` of its rows. Where a
        file says it itself, `read` gives the column, which stands. Not stated: unknown.
    """

    name: str
    tool: str
    files: str
    levels: tuple[str, ...]
    quantities: tuple[str, ...]
    units: tuple[str, ...]
    gives: Gives
    sample: str
    recognise: Callable[[Source], bool]
    read: Callable[[Source], Output] | None
    limits: str = ""
    part_of: str = ""
    folder: bool = False
    reference: Reference | None = None


def _modules() -> Iterator[str]:
    """Yield the names of all modules that may declare ``FORMATS``: those of the package's rooms."""
    import errcomp.readers as own

    for info in pkgutil.iter_modules(own.__path__, f"{own.__name__}."):
        yield info.name
        if info.ispkg:
            package = import_module(info.name)
            yield from (m.name for m in pkgutil.iter_modules(package.__path__, f"{info.name}."))


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats: those of this package, then those of others.

    Raises
    ------
    InputError
        A package adds something that is no format, or one of a name that is taken.
    """
    found: list[Format] = []
    # In the order of their names, whichever room they stand in.
    for module in sorted(_modules(), key=lambda name: name.rpartition(".")[2]):
        found += getattr(import_module(module), "FORMATS", ())
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            given = tuple(entry.load())
        except Exception as error:
            raise InputError(
                f"the reader {entry.name!r} of {entry.value} cannot be loaded ({error}). Update or "
                "remove the package."
            ) from error
        for one in given:
            if not isinstance(one, Format) or one.name in {known.name for known in found}:
                what = repr(one.name) if isinstance(one, Format) else f"a {type(one).__name__}"
                raise InputError(
                    f"the reader {entry.name!r} of {entry.value} gives {what}, which is no format "
                    "or has the name of another. Update or remove the package."
                )
            found.append(one)
    return tuple(found)


def formats_of(name: str) -> tuple[Format, ...]:
    """Return the format of this name, or all of the tool of this name.

    Raises
    ------
    InputError
        There is none; the message lists the nearest.
    """
    known = formats()
    plain = name.lower().replace(" ", "-")
    found = tuple(one for one in known if plain == one.name)
    found = found or tuple(one for one in known if plain == one.tool.lower().replace(" ", "-"))
    if not found:
        options = list(dict.fromkeys([*(one.tool for one in known), *(one.name for one in known)]))
        raise InputError(f"no format or tool {name!r}. {offer('Known', options, wanted=name)}")
    return found


def recognise(source: Source, among: Iterable[Format] | None = None) -> list[Format]:
    """Return the formats that a file or folder may be in: one or none, of a file rarely several."""
    folder = source.path.is_dir()
    known = formats() if among is None else among
    return [one for one in known if one.folder == folder and one.recognise(source)]


def read_source(source: Source, among: Sequence[Format] | None = None) -> Output:
    """Read one file in the format that its content shows.

    Parameters
    ----------
    source : Source
    among : sequence of Format, optional
        Only these; all formats by default.

    Raises
    ------
    InputError
        It is in none of the formats, is read along with another file, or cannot be used.
    """
    possible = recognise(source, among)
    if not possible:
        if not source.path.is_dir() and not source.head.strip():
            raise source.error("the file is empty. The run may have failed, or copy it again.")
        if source.head.startswith(b"PK\x03\x04"):
            raise source.error("a zip archive that is cut off or damaged. Copy it again.")
        known = "" if among is None else f" ({', '.join(one.files for one in among)})"
        begins = next((line for line in source.head_lines if line.strip()), "")[:60]
        raise source.error(
            f"not recognised as the output of a tool that is known{known}; it begins with "
            f"{begins!r}. `errcomp readers` lists the formats."
        )
    if len(possible) > 1:
        names = ", ".join(one.name for one in possible)
        raise source.error(f"may be {names}. Say which: errcomp ingest FORMAT PATH.")
    return _read(source, possible[0])


def _read(source: Source, chosen: Format) -> Output:
    if chosen.read is None:
        what = f"is {chosen.files} of {chosen.tool}"
        if chosen.part_of:
            whole = next((one for one in formats() if one.name == chosen.part_of), None)
            files = chosen.part_of if whole is None else whole.files
            raise source.error(
                f"{what}, which is read along with {files}. Give that, or the folder."
            )
        raise source.error(f"{what}, which cannot be read. {chosen.limits}")
    try:
        return _with_reference(chosen.read(source), chosen)
    except (ErrcompError, MemoryError):
        raise
    except RecursionError:
        raise source.error("nested too deeply. The file may be damaged.") from None


def _with_reference(found: Output, chosen: Format) -> Output:
    """State what measured values were measured on, where the reader did not."""
    if chosen.gives not in ("measurements", "both"):
        return found
    import polars as pl

    rows, word = found.rows, pl.lit(chosen.reference or "unknown")
    there = rows["measured"].is_not_null()
    if not there.any():
        return found
    # One word for all rows takes no memory, a column of text 16 bytes a row.
    column = word if there.all() else pl.when(pl.col("measured").is_not_null()).then(word)
    if "reference" in rows.columns:
        column = pl.coalesce(pl.col("reference").cast(pl.String), column)
    first = rows.columns[: rows.columns.index("status") + 1]
    rest = pl.exclude(*first, "reference")
    return replace(found, rows=rows.select(*first, column.alias("reference"), rest))


def read_as(path: str | PathLike[str], among: Sequence[Format]) -> Output:
    """Read a file, or all files of a folder or archive, as the output of one tool.

    Raises
    ------
    InputError
        Nothing there is in one of the formats.
    """
    from errcomp.readers.core.ingest import ingest

    return ingest(Path(path), among=among)
