"""Whether a file is the output of a tool; rows that ``errcomp ingest`` wrote, read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from errcomp.errors import describe_names
from errcomp.readers.core import AnyPath, Source, ToolFormats, read_as
from errcomp.readers.core.output import LEVELS, Output, Rows
from errcomp.readers.core.sheet import to_numbers
from errcomp.readers.core.source import files_readable

_COLUMNS = {"tool", "level", "quantity", "unit", "predicted", "measured", "status"}


def is_output(path: str | PathLike[str], columns: Mapping[str, str] | None = None) -> bool:
    r"""Return whether a path is the output of a tool: a folder, an archive or a known format.

    A folder that holds only tables is a table (see ``errcomp.readers.several``), and a file with
    columns named by the user always is.

    Raises
    ------
    InputError
        The path cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log, table = Path(folder, "astra.log"), Path(folder, "pairs.csv")
    ...     _ = log.write_text(
    ...         "sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    ...     _ = table.write_text("predicted,measured\n11,10\n")
    ...     is_output(log), is_output(table)
    (True, False)
    """
    with files_readable():
        if Path(path).is_dir():
            from errcomp.readers.several import table_files

            files = table_files(path)
            return not files or any(map(is_output, files))
    if columns or not Path(path).is_file():
        return False
    from errcomp.readers.core.archives import is_archive
    from errcomp.readers.core.registry import recognise

    source = Source(path)
    if is_rows(source):
        return True
    if has_our_names((*source.header, *source.json_names)):
        return False
    from errcomp.readers.workbook import is_workbook

    if is_workbook(Path(path)):
        return False
    return is_archive(Path(path)) or bool(recognise(source))


def has_our_names(names: Iterable[str]) -> bool:
    """Return whether columns have names that no tool uses: people wrote the table.

    The readers, which are slow to load, need not look at it. One tool has predicted and actual.

    Examples
    --------
    >>> has_our_names(["predicted"]), has_our_names(["predicted", "actual"])
    (True, False)
    """
    some = set(names)
    return "measured" in some or ("predicted" in some and "actual" not in some)


def read(path: AnyPath) -> Output:
    r"""Read a table of rows that ``errcomp ingest`` wrote.

    Parameters
    ----------
    path : path
        CSV, Parquet or JSON.

    Returns
    -------
    Output

    Raises
    ------
    InputError
        It is not such a table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text(
    ...     "tool,level,quantity,unit,predicted,measured,status\nx,model,time,ms,2.5,2,\n")
    >>> read(path).pairs.predicted.tolist()
    [2.5]
    """
    return read_as(path, FORMATS)


def is_rows(source: Source) -> bool:
    """Say whether a file has the columns that ``errcomp ingest`` writes."""
    if not source.head.startswith(b"PAR1"):
        return {*source.header, *source.json_names} >= _COLUMNS
    import polars as pl

    try:
        return set(pl.read_parquet_schema(source.path)) >= _COLUMNS
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return False


_tool = ToolFormats("errcomp", gives="both", reference="unknown")


@_tool.reads(
    "errcomp-rows",
    "rows that errcomp ingest wrote (CSV, Parquet, JSON)",
    "",
    is_rows,
    levels=LEVELS,
    quantities=("any",),
    units=("any",),
    sample="written by errcomp",
)
def _read(source: Source) -> Rows:
    import polars as pl

    from errcomp.readers.core.content import notes_on
    from errcomp.readers.plain import NAMES, read_frame

    names = NAMES | {"quantity", "run", "kernel", "request"}
    frame, _ = read_frame(source.path, {}, names, ("predicted", "measured"))
    if missing := sorted(_COLUMNS.difference(frame.columns)):
        raise source.error(
            f"missing column {missing[0]!r}: this file was not written by `errcomp ingest`. "
            f"Columns found: {describe_names(frame.columns, wanted=missing[0])}."
        )
    for name in ("level", "quantity"):
        if frame[name].has_nulls():
            at = frame[name].is_null().arg_true()[0]
            raise source.error(
                f"row {at + 1} has no {name}. The file may be damaged: copy it again."
            )
    for name in ("predicted", "measured"):
        values, bad = to_numbers(frame[name].cast(pl.String))
        if bad.any():
            at = int(bad.argmax())
            raise source.error(
                f"{name} must be a number, got {str(frame[name][at])[:40]!r} in row {at + 1}. The "
                "file may be damaged: copy it again."
            )
        frame = frame.with_columns(pl.Series(name, values, nan_to_null=True))
    return Rows(frame, notes=notes_on(source.path))


FORMATS = _tool.formats
