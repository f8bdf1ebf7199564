"""Tables of pairs written by users: CSV, Excel, Parquet, JSON and JSON lines."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers.core.content import (
    FILE_FORMATS,
    Format,
    decode,
    detect,
    load_bytes,
    tell_left_out,
)
from errcomp.readers.core.source import files_readable
from errcomp.readers.delimited import DECIMALS, Decimals, csv_frame, regular_frame
from errcomp.system.limits import current, how_to_raise
from errcomp.tables import Gaps, Pairs, Zeros

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import polars as pl

    from errcomp.tables.engine.pairs import PairRows

__all__ = ["NAMES", "read_frame", "read_pairs", "read_rows"]


#: Columns that stay text: version "1.10" is not version 1.1.
NAMES = frozenset(
    (
        "tool",
        "level",
        "device",
        "model",
        "mode",
        "variant",
        "kernel_class",
        "version",
        "date",
        "status",
        "unit",
    )
)
_NUMBERS = ("predicted", "measured")


def read_pairs(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Gaps = "raise",
    format: Format | None = None,  # noqa: A002 - as in other readers
    decimal: Decimals = ".",
) -> Pairs:
    r"""Read predictions and measurements from a CSV, Excel, Parquet, JSON or JSON lines file.

    CSV is separated by comma, tab or semicolon (whichever its header has); lines that begin with
    ``#`` are comments. Text may be compressed (gzip, xz, zstd). A column is numeric if all its
    values are numbers; columns of names (device, version, …) stay text, and so do integers that a
    float would round. Numbers with units (``12 ms``) are converted to one unit. An apostrophe in
    front of ``=``, ``+``, ``-`` or ``@``, by which spreadsheets and errcomp mark text, is removed.
    JSON is a list of records, or an object with such a list as ``rows``. Of an Excel workbook, the
    first sheet is read.

    Parameters
    ----------
    path : path
        The file; or a folder of CSV or JSON lines files, or a pattern such as ``runs/*.csv``, whose
        files have the same columns. With several files, the key ``file`` names the file of a row.
    columns : mapping of str to str, optional
        ``{"predicted": "pred_ms", "measured": "real_ms"}``: name here → column of the file.
    unit : str, optional
        Unit of both, e.g. ``"ms"``; a column ``unit`` must agree.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.
    missing : {"raise", "exclude", "keep"}
        What to do with rows without a prediction or a measurement; "keep": see `Pairs`.
    format : {"csv", "excel", "parquet", "jsonl", "json"}, optional
        Default: recognised by content.
    decimal : {".", ","}
        Sign before the decimals of a number in CSV; a comma needs tabs or semicolons between
        fields.

    Returns
    -------
    Pairs
        Messages name the line (CSV, JSON lines) or row (Parquet, JSON) of the file.

    Raises
    ------
    InputError
        The file is missing, cut off, not text, has no rows, rows of unequal length, two columns
        with the same name, or invalid values (see ``Pairs``). Excel and zstd need
        ``errcomp[formats]``.

    Warns
    -----
    LeftOutWarning
        Columns of lists or objects were left out.

    Notes
    -----
    Misleads if an identifier looks like a number (``gpu`` 1.10 and 1.1 are then equal):
    name such a column ``device`` or ``version``, or use Parquet or JSON, which have types.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text("device,pred,real\nA,11,10\nB,90,100\n")
    >>> pairs = read_pairs(path, columns={"predicted": "pred", "measured": "real"}, unit="ms")
    >>> pairs.n, pairs.keys, pairs.unit
    (2, ('device',), 'ms')
    """
    wanted = dict(columns or {})
    options: dict[str, Any] = {"unit": unit, "zeros": zeros, "missing": missing}
    if _is_file(path):
        frame, line_offset = read_frame(Path(path), wanted, NAMES, _NUMBERS, format, decimal)
        options["line_offset"] = line_offset
        return Pairs(frame, columns=wanted, source=str(path), **options)
    from errcomp.readers.several import as_one_frame, table_files

    files = table_files(path) or [Path(path)]
    read = partial(read_frame, columns=wanted, names=NAMES, numbers=_NUMBERS, decimal=decimal)
    frame = as_one_frame(files, lambda file: read(file, format=format)[0])
    try:
        return Pairs(frame, columns=wanted, source=str(path), **options)
    except InputError:
        for file in files:  # a file's own error names its line
            read_pairs(file, columns=columns, format=format, decimal=decimal, **options)
        raise


def read_rows(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> Pairs | PairRows:
    r"""Read pairs as `read_pairs` does, but leave the sums of a million rows or more to Polars.

    Rows of which one cannot be used are always `Pairs`, whose errors name lines.

    Parameters
    ----------
    path, columns, **options
        As in `read_pairs`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text("predicted,measured\n11,10\n")
    >>> type(read_rows(path)).__name__  # of a million lines: PairRows
    'Pairs'
    """
    from errcomp.tables.engine.scanning import LARGE

    if not _is_file(path):
        return read_pairs(path, columns=columns, **options)
    how = {name: options.pop(name) for name in ("format", "decimal") if name in options}
    wanted = dict(columns or {})
    frame, line_offset = read_frame(Path(path), wanted, NAMES, _NUMBERS, **how)
    if frame.height >= LARGE and not {*_NUMBERS} <= {*frame.columns, *wanted}:
        from errcomp.tables.frames import holds_numbers, to_eager
        from errcomp.tables.guessing import with_guess

        wanted = with_guess(wanted, holds_numbers(to_eager(frame)), str(path))
    if frame.height >= LARGE and _all_usable(frame, wanted):
        from errcomp.tables.engine.pairs import PairRows

        return PairRows(frame.lazy(), columns=wanted, source=str(path), **options)
    return Pairs(frame, columns=wanted, source=str(path), line_offset=line_offset, **options)


def _is_file(path: str | PathLike[str]) -> bool:
    with files_readable():
        return Path(path).is_file()


def _all_usable(frame: pl.DataFrame, columns: Mapping[str, str]) -> bool:
    """Say whether all rows have positive measurements and finite predictions."""
    names = [columns.get(name, name) for name in _NUMBERS]
    if not all(name in frame.columns and frame.schema[name].is_numeric() for name in names):
        return False
    both = [frame[name] for name in names]
    if any(column.null_count() or not column.is_finite().all() for column in both):
        return False
    return bool((both[1] > 0).all())


def read_frame(
    path: Path,
    columns: Mapping[str, str],
    names: frozenset[str],
    numbers: Sequence[str],
    format: Format | None = None,  # noqa: A002 - as in other readers
    decimal: Decimals = ".",
) -> tuple[pl.DataFrame, int | None]:
    r"""Read a CSV, Excel, Parquet, JSON or JSON lines file as a dataframe.

    Parameters
    ----------
    path : Path
        The file.
    columns : mapping of str to str
        Name here → column of the file; the columns keep their names.
    names, numbers
        Columns that stay text, and columns that must be numbers, or numbers with units.
    format : {"csv", "excel", "parquet", "jsonl", "json"}, optional
        Default: recognised by content.
    decimal : {".", ","}
        Sign before the decimals of a number in CSV.

    Returns
    -------
    frame : polars.DataFrame
    line_offset : int or None
        Line of the first row; None if lines are not rows.

    Raises
    ------
    InputError
        See `read_pairs`.

    Warns
    -----
    LeftOutWarning
        Columns of lists or objects were left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text("version,pred\n1.10,11\n1.9,90\n")
    >>> frame, line_offset = read_frame(
    ...     path, {"predicted": "pred"}, frozenset({"version"}), ["predicted"])
    >>> frame.rows(), line_offset
    ([('1.10', 11), ('1.9', 90)], 2)
    """
    if format is not None and format not in FILE_FORMATS:
        raise InputError(f"format must be one of {', '.join(FILE_FORMATS)}, got {format!r}")
    if decimal not in DECIMALS:
        raise InputError(f"decimal must be one of {DECIMALS}, got {decimal!r}")
    text_columns = names | {old for new, old in columns.items() if new in names}
    if format in (None, "csv") and decimal == ".":
        regular = regular_frame(path, text_columns)
        if regular is not None:
            for new in numbers:
                _check_numbers(path, regular, columns.get(new, new))
            return regular, 2
    content = load_bytes(path)
    kind = format or detect(path, content)
    wanted = {*names, *columns.values(), *(columns.get(new, new) for new in numbers)}
    line_offset: int | None = None
    if kind == "parquet":
        frame = _parquet_frame(path, content, wanted)
    elif kind == "excel":
        from errcomp.readers.workbook import workbook_frame

        frame, line_offset = workbook_frame(path, content, text_columns)
    elif kind == "csv":
        frame, line_offset = csv_frame(path, decode(path, content), text_columns, decimal)
    else:
        from errcomp.readers import records

        text, lines = decode(path, content), kind == "jsonl"
        frame = (records.json_lines_frame if lines else records.json_frame)(path, text, wanted)
        line_offset = 1 if lines else None
    for new in numbers:
        _check_numbers(path, frame, columns.get(new, new))
    return frame, line_offset


def _check_numbers(path: Path, frame: pl.DataFrame, name: str) -> None:
    """Refuse a numeric column of another type; Pairs checks for missing columns."""
    import polars as pl

    if name not in frame.columns:
        return
    dtype = frame.schema[name]
    if not (dtype.is_numeric() or dtype in (pl.String, pl.Null, pl.Categorical, pl.Enum)):
        raise InputError(
            f"{path}: {name} must be a column of numbers, but its type is {dtype}. Convert it."
        )


def _parquet_frame(path: Path, content: bytes, needed: Collection[str]) -> pl.DataFrame:
    import polars as pl

    if not content.startswith(b"PAR1"):
        raise InputError(f"{path}: not Parquet: it does not begin with PAR1. Export it again.")
    if not content.endswith(b"PAR1"):
        raise InputError(f"{path}: cut off: Parquet must end with PAR1. Copy the file again.")
    most = current().most_rows(len(content))
    try:
        with _silent_stderr():
            stated = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
            frame = pl.read_parquet(io.BytesIO(content)) if stated <= most else None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        panic = isinstance(error, pl.exceptions.PanicException)
        reason = "damaged within" if panic else str(error).strip().split("\n")[0]
        raise InputError(f"{path}: broken Parquet ({reason}). Export it again.") from error
    if frame is None:
        raise InputError(
            f"{path}: claims {stated:,} rows in only {len(content):,} bytes. "
            f"{how_to_raise('rows', '1G')}"
        )
    if frame.height == 0:
        raise InputError(f"{path}: the table has no rows. Add rows.")
    nested = [n for n, dtype in frame.schema.items() if dtype.is_nested() or dtype == pl.Binary]
    for name in nested:
        if name in needed:
            raise InputError(
                f"{path}: {name} must be one value per row, but its type is {frame.schema[name]}. "
                "Put each element in a column of its own."
            )
    tell_left_out(path, nested)
    return frame.drop(nested).with_columns(pl.col(pl.Decimal).cast(pl.Float64))


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Silence stderr: Polars prints there when it panics on a damaged file."""
    try:
        stderr = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    sys.stderr.flush()
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
