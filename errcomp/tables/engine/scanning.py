"""Tables of pairs too large for memory: Parquet files, read in place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from errcomp.errors import InputError, describe_names
from errcomp.tables.columns import Missing, Zeros

if TYPE_CHECKING:
    from errcomp.tables.engine.pairs import PairRows

__all__ = ["scan"]

#: Rows of a single file that stays on disk: from this size, sums in place are faster.
LARGE = 1_000_000


def parquet_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the Parquet files of a path: a file, a pattern, or a folder of files.

    Names that begin with a dot or an underscore are left out, as in Spark and Hive, which write
    such files beside their tables. Empty if the path is none of these.

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
        # Path.glob does not accept absolute patterns.
        names = [Path(name) for name in sorted(glob(str(path), recursive=True))]  # noqa: PTH207
        shown = [n for n in names if not any(map(_is_hidden, set(n.parts) - set(given.parts)))]
        # "logs/**" matches a folder and its content.
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
    """Say whether a path is several Parquet files, or a single one of a million rows or more."""
    files = parquet_files(path)
    if len(files) == 1 and Path(path).is_file():
        try:
            rows = pl.scan_parquet(files[0], glob=False).select(pl.len()).collect().item()
        except pl.exceptions.PolarsError:
            return False  # the reader reports the error
        return int(rows) >= LARGE
    return bool(files)


def scan(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Missing = "raise",
) -> PairRows:
    """Read Parquet files as one table of pairs, whose rows are never all in memory.

    Polars' streaming engine computes the sums. Memory depends on the number of groups, not on the
    number of rows.

    Parameters
    ----------
    path : path
        A file, a folder (with all its subfolders), or a pattern such as ``"logs/**/*.parquet"``.
        Folders named ``key=value``, as Spark and Hive write them, become a column, unless the files
        have that column.
    columns, unit, zeros, missing
        As in `errcomp.Pairs`.

    Returns
    -------
    PairRows
        For `errcomp.summarize`.

    Raises
    ------
    InputError
        There is no such file, a file cannot be read, or files or names of folders differ in their
        columns.

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
            f"{path}: no Parquet file. Name a Parquet file, a folder of Parquet files, or a "
            'pattern in quotes such as "logs/*.parquet".'
        )
    _check_columns(files)
    hive = _has_keys_of_its_own(files[0])
    rows = pl.scan_parquet(files, include_file_paths=PLACE, glob=False, hive_partitioning=hive)
    return PairRows(
        rows,
        columns=columns,
        unit=unit,
        source=str(path),
        zeros=zeros,
        missing=missing,
        place=PLACE,
    )


def _check_columns(files: Sequence[Path]) -> None:
    """Raise if a file is invalid, or has other columns than the first."""
    first: Mapping[str, pl.DataType] | None = None
    keys = _keys_of(files[0])
    for file in files:
        if _keys_of(file) != keys:
            raise InputError(
                f"{file}: the names of its folders have the keys {describe_names(_keys_of(file))}, "
                f"but the folders of {files[0]} have the keys {describe_names(keys)}. Give files "
                "with the same keys."
            )
        try:
            schema = _columns_of(file)
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).split("\n", maxsplit=1)[0][:120]
            raise InputError(f"{file}: not a readable Parquet file ({reason}).") from error
        if first is None:
            first = schema
        elif schema != first:
            raise InputError(
                f"{file}: its columns differ from those of {files[0]}: "
                f"{_difference(first, schema)}. Give files with the same columns, or rewrite this "
                "file."
            )


def _keys_of(file: Path) -> list[str]:
    """Return the keys in the names of folders: device=A/mode=train/part-0.parquet has two."""
    return [name.partition("=")[0] for name in file.parent.parts if "=" in name]


def _has_keys_of_its_own(file: Path) -> bool:
    """Say whether a file's folders name keys, and whether all are missing from its columns."""
    keys, columns = _keys_of(file), _columns_of(file)
    twice = [key for key in keys if key in columns]
    if 0 < len(twice) < len(keys):
        raise InputError(
            f"{file}: the file has a column {twice[0]!r}, and a folder in its path sets this key, "
            f"too ({twice[0]}=…). Rename one of them."
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
        f"it also has {describe_names(more)}" if more else "",
        *kinds[:3],
    ]
    return "; ".join(part for part in parts if part)
