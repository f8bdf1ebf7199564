"""Tables of pairs that people write themselves: CSV, Parquet, JSON and JSON lines."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.readers._csv import csv_frame, decimal_commas
from errcomp.readers._decode import FILE_FORMATS, Format, decode, detect, load_bytes
from errcomp.readers._records import json_frame, json_lines_frame
from errcomp.tables import Pairs, Zeros

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NAMES", "read_frame", "read_pairs"]

#: Columns of names: version "1.10" is not version 1.1.
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
    format: Format | None = None,  # noqa: A002 - what other readers call it
) -> Pairs:
    r"""Read predictions and measurements from a CSV, Parquet, JSON or JSON lines file.

    CSV is separated by comma, tab or semicolon (whichever its header has) and may be gzipped. A
    column is one of numbers if all its values are; columns of names (device, version, …) stay
    text, and so do integers that a float would round. JSON is a list of records, or an object
    whose ``rows`` are one.

    Parameters
    ----------
    path : path
        The file.
    columns : mapping of str to str, optional
        ``{"predicted": "pred_ms", "measured": "real_ms"}``: which of its columns is what.
    unit : str, optional
        Unit of both, e.g. ``"ms"``; if there is a column ``unit`` it must agree.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.
    format : {"csv", "parquet", "jsonl", "json"}, optional
        Recognised by content when not given.

    Returns
    -------
    Pairs
        Its messages name the line (CSV, JSON lines) or row (Parquet, JSON) of the file.

    Raises
    ------
    InputError
        The file is missing, cut off, not text, has no rows, rows of unequal length, two columns of
        one name or nested values; or its values cannot be used (see ``Pairs``).

    Notes
    -----
    Misleads where an identifier looks like a number (``gpu`` 1.10 and 1.1 are then the same):
    name such a column ``device`` or ``version``, or give Parquet or JSON, which have types.

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
    frame, line_offset = read_frame(Path(path), wanted, NAMES, _NUMBERS, format)
    return Pairs(
        frame,
        columns=wanted,
        unit=unit,
        source=str(path),
        zeros=zeros,
        line_offset=line_offset,
    )


def read_frame(
    path: Path,
    columns: Mapping[str, str],
    names: frozenset[str],
    numbers: Sequence[str],
    format: Format | None = None,  # noqa: A002 - what other readers call it
) -> tuple[pl.DataFrame, int | None]:
    """Read a CSV, Parquet, JSON or JSON lines file as it is.

    Parameters
    ----------
    path : Path
        The file.
    columns : mapping of str to str
        Which of its columns is what; they keep their names.
    names, numbers
        Columns of names, which stay text, and columns that can only be numbers.
    format : {"csv", "parquet", "jsonl", "json"}, optional
        Recognised by content when not given.

    Returns
    -------
    frame : polars.DataFrame
    line_offset : int or None
        Line of the first row; None where lines are not rows.

    Raises
    ------
    InputError
        See `read_pairs`.
    """
    if format is not None and format not in FILE_FORMATS:
        raise InputError(f"format must be one of {', '.join(FILE_FORMATS)}, got {format!r}")
    content = load_bytes(path)
    kind = format or detect(path, content)
    line_offset: int | None = None
    if kind == "parquet":
        frame = _parquet_frame(path, content)
    elif kind == "csv":
        text_columns = names | {old for new, old in columns.items() if new in names}
        frame, line_offset = csv_frame(path, decode(path, content), text_columns)
    elif kind == "jsonl":
        frame, line_offset = json_lines_frame(path, decode(path, content)), 1
    else:
        frame = json_frame(path, decode(path, content))
    for new in numbers:
        _check_numbers(path, frame, columns.get(new, new), line_offset)
    return frame, line_offset


def _check_numbers(path: Path, frame: pl.DataFrame, name: str, line_offset: int | None) -> None:
    """Refuse a column that can only be read as numbers by mistake; missing ones are for Pairs."""
    import polars as pl

    if name not in frame.columns:
        return
    dtype = frame.schema[name]
    if not (dtype.is_numeric() or dtype in (pl.String, pl.Null, pl.Categorical, pl.Enum)):
        raise InputError(
            f"{path}: {name} must be a column of numbers, but its type is {dtype}. Convert it."
        )
    decimal_commas(path, frame[name], line_offset)


def _parquet_frame(path: Path, content: bytes) -> pl.DataFrame:
    import polars as pl

    if not content.startswith(b"PAR1"):
        raise InputError(f"{path}: not Parquet: it does not begin with PAR1. Write it again.")
    if not content.endswith(b"PAR1"):
        raise InputError(f"{path}: Parquet that does not end with PAR1: cut off. Copy it again.")
    try:
        with _silent_stderr():
            frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        panic = isinstance(error, pl.exceptions.PanicException)
        reason = "damaged within" if panic else str(error).strip().split("\n")[0]
        raise InputError(f"{path}: broken Parquet ({reason}). Write it again.") from error
    if frame.height == 0:
        raise InputError(f"{path}: the table has no rows. Add rows.")
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype == pl.Binary:
            raise InputError(
                f"{path}: {name} must be one value per row, but its type is {dtype}. Leave it "
                "out, or give each part a column."
            )
    return frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64))


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Keep off the terminal what Polars prints there itself when a damaged file makes it panic."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    sys.stderr.flush()
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
