"""Tables of pairs too large for memory: Parquet files, read where they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from errcomp.errors import InputError, describe_names
from errcomp.tables.columns import Zeros

if TYPE_CHECKING:
    from errcomp.tables.engine.pairs import PairRows

__all__ = ["scan"]

#: From this many rows on a single file stays on disk: sums over it are then faster than its pairs.
LARGE = 1_000_000


def parquet_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the Parquet files that a path means: a file, a pattern, or a folder of them.

    Names that begin with a point or an underscore are left out, as Spark and Hive do: these write
    such files beside their tables. Empty where the path means none of these.

    Raises
    ------
    InputError
        A folder cannot be read.

    Examples
    --------
    >>> parquet_files("no-such-folder/*.parquet")
    []
    """
    given = Path(path)
    if given.is_dir():
        files = list(_inside(given))
        return files if all(map(_is_parquet, files)) else []
    if not given.exists() and has_magic(str(path)):
        # Path.glob takes no absolute pattern.
        names = [Path(name) for name in sorted(glob(str(path), recursive=True))]  # noqa: PTH207
        shown = [n for n in names if not any(map(_is_hidden, set(n.parts) - set(given.parts)))]
        # "logs/**" matches a folder and what is in it.
        return list(dict.fromkeys(file for name in shown for file in parquet_files(name)))
    return [given] if given.is_file() and _is_parquet(given) else []


def _inside(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}).") from error
    for name in names:
        if not _is_hidden(name.name):
            yield from _inside(name) if name.is_dir() else [name]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() in (".parquet", ".pq")


def is_large(path: str | os.PathLike[str]) -> bool:
    """Say whether a path means several Parquet files, or one of a million rows or more."""
    files = parquet_files(path)
    if len(files) == 1 and Path(path).is_file():
        try:
            rows = pl.scan_parquet(files[0], glob=False).select(pl.len()).collect().item()
        except pl.exceptions.PolarsError:
            return False  # the reader reports what is wrong
        return int(rows) >= LARGE
    return bool(files)


def scan(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
) -> PairRows:
    """Take Parquet files as one table of pairs whose rows are never all in memory.

    Sums over them are made by Polars' streaming engine, in memory that depends on the number of
    groups and not on that of rows.

    Parameters
    ----------
    path : path
        A file, a folder (with all that is in it), or a pattern such as ``"logs/**/*.parquet"``.
        Folders named ``key=value``, as Spark and Hive write them, are a column, unless the files
        have it themselves.
    columns, unit, zeros
        As in `errcomp.Pairs`.

    Returns
    -------
    PairRows
        For `errcomp.summarize`.

    Raises
    ------
    InputError
        There is no such file, one cannot be read, or the files or the names of their folders have
        different columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import errcomp as ec
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for i, predicted in enumerate([11.0, 12.0]):
    ...     part = pl.DataFrame({"predicted": [predicted], "measured": [10.0]})
    ...     part.write_parquet(folder / f"part-{i}.parquet")
    >>> rows = scan(folder)
    >>> round(ec.summarize(rows, figures="mape").pooled.figures["mape"].value, 3)
    0.15
    """
    from errcomp.tables.engine.pairs import PLACE, PairRows

    files = parquet_files(path)
    if not files:
        raise InputError(
            f"{path}: no Parquet file. Name a file, a folder of them, or a pattern in quotes such "
            'as "logs/*.parquet".'
        )
    _check_columns(files)
    hive = _has_keys_of_its_own(files[0])
    rows = pl.scan_parquet(files, include_file_paths=PLACE, glob=False, hive_partitioning=hive)
    return PairRows(rows, columns=columns, unit=unit, source=str(path), zeros=zeros, place=PLACE)


def _check_columns(files: Sequence[Path]) -> None:
    """Raise if a file is none, or has other columns than the first."""
    first: Mapping[str, pl.DataType] | None = None
    keys = _keys_of(files[0])
    for file in files:
        if _keys_of(file) != keys:
            raise InputError(
                f"{file}: the keys in the names of its folders ({describe_names(_keys_of(file))}) "
                f"are not those of {files[0]} ({describe_names(keys)}). Name files of one kind."
            )
        try:
            schema = _columns_of(file)
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).split("\n", maxsplit=1)[0][:120]
            raise InputError(f"{file}: no Parquet file that can be read ({reason}).") from error
        if first is None:
            first = schema
        elif schema != first:
            raise InputError(
                f"{file}: its columns are not those of {files[0]}: {_difference(first, schema)}. "
                "Name files of one kind, or write this one again with the same columns."
            )


def _keys_of(file: Path) -> list[str]:
    """Return the keys in the names of its folders: device=A/mode=train/part-0.parquet has two."""
    return [name.partition("=")[0] for name in file.parent.parts if "=" in name]


def _has_keys_of_its_own(file: Path) -> bool:
    """Say whether the names of its folders have keys that are no columns of the file."""
    keys, columns = _keys_of(file), _columns_of(file)
    twice = [key for key in keys if key in columns]
    if 0 < len(twice) < len(keys):
        raise InputError(
            f"{file}: {twice[0]} is in the names of its folders and a column as well. Rename one."
        )
    return bool(keys) and not twice


def _columns_of(file: Path) -> dict[str, pl.DataType]:
    return dict(pl.scan_parquet(file, glob=False, hive_partitioning=False).collect_schema())


def _difference(expected: Mapping[str, pl.DataType], other: Mapping[str, pl.DataType]) -> str:
    lost = [name for name in expected if name not in other]
    more = [name for name in other if name not in expected]
    kinds = [
        f"{name} is {other[name]} instead of {expected[name]}"
        for name in expected
        if name in other and expected[name] != other[name]
    ]
    parts = [
        f"it lacks {describe_names(lost)}" if lost else "",
        f"it has {describe_names(more)} besides" if more else "",
        *kinds[:3],
    ]
    return "; ".join(part for part in parts if part)
