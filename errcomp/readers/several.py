"""Several files that are one table: those of a pattern, or of a folder that holds only tables."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError, describe_names
from errcomp.readers.core.source import files_readable, is_url

if TYPE_CHECKING:
    import polars as pl

__all__ = ["as_one_frame", "is_pattern", "notes_on_table", "table_files"]

#: Suffixes of the files that make a folder a table.
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
#: Column that names the file of each row.
FILE = "file"


def is_pattern(path: str | PathLike[str]) -> bool:
    """Say whether a name is a pattern of files, such as ``runs/*.csv``.

    Examples
    --------
    >>> is_pattern("runs/*.csv"), is_pattern("runs.csv")
    (True, False)
    """
    name = str(path)
    if not glob.has_magic(name) or Path(path).exists() or is_url(path):
        return False
    # A name with brackets alone is a pattern only if it fits a file.
    return "*" in name or "?" in name or any(_matches(Path(path)))


def table_files(path: str | PathLike[str]) -> list[Path]:
    r"""Return the files that are together one table, sorted; none if it is not such a path.

    A folder counts only if every file in it is a CSV or a JSON lines file, and no folder is in it;
    hidden files do not count. Whether they are output of a tool is not asked here.

    Raises
    ------
    InputError
        A pattern matches no file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv"):
    ...         _ = Path(folder, name).write_text("predicted,measured\n11,10\n")
    ...     [file.name for file in table_files(folder)]
    ['a.csv', 'b.csv']
    """
    if is_pattern(path):
        files = sorted(file for file in _matches(Path(path)) if file.is_file())
        if not files:
            raise InputError(f"{path}: no file matches this pattern. Check the folder and suffix.")
        return files
    with files_readable():
        folder = Path(path)
        if not folder.is_dir():
            return []
        files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
        return files if all(file.is_file() and _is_table(file) for file in files) else []


def _matches(pattern: Path) -> Iterator[Path]:
    root = Path(pattern.anchor)
    return root.glob(str(pattern.relative_to(root)))


def _is_table(file: Path) -> bool:
    return Path(file.name.lower().removesuffix(".gz")).suffix in _SUFFIXES


def notes_on_table(path: str | PathLike[str]) -> tuple[str, ...]:
    """Return the notes on the file of a table, or on each of its files."""
    from errcomp.readers.core.content import notes_on

    files = table_files(path) or [Path(path)]
    return tuple(note for file in files if file.is_file() for note in notes_on(file))


def as_one_frame(files: Sequence[Path], read: Callable[[Path], pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of all files, with a column ``file`` that names the file of each row.

    Parameters
    ----------
    files : sequence of path
    read : callable
        Reads one file.

    Returns
    -------
    polars.DataFrame
        Without the column if there is one file, or if the files have such a column.

    Raises
    ------
    InputError
        A file cannot be read, or the files differ in their columns or types.
    """
    import polars as pl

    frames = [read(file) for file in files]
    first = frames[0]
    for file, frame in zip(files, frames, strict=True):
        if odd := set(frame.columns) ^ set(first.columns):
            raise InputError(
                f"{files[0]} and {file} have different columns: only one of them has "
                f"{describe_names(sorted(odd))}. Name one file, or a pattern of files with the "
                "same columns."
            )
    if len(files) > 1 and FILE not in first.columns:
        frames = [
            frame.with_columns(pl.lit(file.name.split(".", 1)[0]).alias(FILE))
            for file, frame in zip(files, frames, strict=True)
        ]
    names = frames[0].columns
    try:
        return pl.concat([frame.select(names) for frame in frames], how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        # A column of numbers in one file is text in another: Pairs names the text.
        texts = [frame.select(pl.col(names).cast(pl.String)) for frame in frames]
        return pl.concat(texts)
