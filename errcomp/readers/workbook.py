"""Excel workbooks that people wrote: the first sheet as a table."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import GuessedWarning, InputError, MissingExtraError, warn_caller
from errcomp.readers.delimited import header_of, typed_frame
from errcomp.system.limits import current, how_to_raise

if TYPE_CHECKING:
    import polars as pl

#: Files of a workbook that make a zip archive one.
_OF_EXCEL = "xl/workbook.xml"


def is_workbook(path: Path) -> bool:
    r"""Say whether a file is an Excel workbook (.xlsx), by content.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text("predicted,measured\n11,10\n")
    >>> is_workbook(path)
    False
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _OF_EXCEL in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def workbook_frame(
    path: Path, content: bytes, names: frozenset[str]
) -> tuple[pl.DataFrame, int | None]:
    """Read the first sheet of a workbook; its header is the first row that fills two cells.

    Parameters
    ----------
    path : Path
        Path in messages.
    content : bytes
    names : frozenset of str
        Columns that stay text even if all their values are numbers.

    Returns
    -------
    frame : polars.DataFrame
        As from CSV: columns are numbers if all their values are.
    line_offset : int or None
        Row of the sheet that holds the first row; None if blank rows are among the rows.

    Raises
    ------
    InputError
        fastexcel is not installed, the workbook is damaged or unpacks to far more than its size,
        or its sheet has no rows.

    Warns
    -----
    GuessedWarning
        The workbook has several sheets; names the one that was read.
    """
    import polars as pl

    _check_archive(path, content)
    try:
        import fastexcel
    except ImportError as error:
        lacking = MissingExtraError("fastexcel", "formats", f"{path}: reading Excel")
        raise InputError(f"{lacking}; or save the sheet as CSV") from error
    try:
        book = fastexcel.read_excel(content)
        sheets = book.sheet_names
        raw = book.load_sheet(0, header_row=None, dtypes="string").to_polars()
    except (fastexcel.FastExcelError, ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{path}: a damaged Excel workbook ({reason}). Save it again, or as CSV."
        ) from error
    if len(sheets) > 1:
        warn_caller(
            f"{path}: read the first of {len(sheets)} sheets, {sheets[0]!r}", GuessedWarning
        )
    cells = pl.all().str.strip_chars().replace("", None).is_not_null()
    filled = raw.select(pl.sum_horizontal(cells)).to_series() if raw.width else pl.Series([0])
    # A title above the table fills one cell.
    wide = (filled > 1).arg_true().to_list()
    kept = [i for i in (filled > 0).arg_true().to_list() if wide and i >= wide[0]]
    if len(kept) < 2:
        raise InputError(
            f"{path}: sheet {sheets[0]!r} needs a header of at least two columns, and a row below "
            "it. Add rows."
        )
    frame = raw[kept[1:]]
    frame.columns = header_of(path, [text or "" for text in raw.row(kept[0])], kept[0] + 1)
    together = kept[-1] - kept[0] == len(kept) - 1
    return typed_frame(frame, names, "."), kept[0] + 2 if together else None


def _check_archive(path: Path, content: bytes) -> None:
    """Refuse another archive than a workbook, and one that unpacks to far more than its size."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            is_book = _OF_EXCEL in archive.namelist()
    except (zipfile.BadZipFile, ValueError) as error:
        raise InputError(
            f"{path}: a damaged Excel workbook ({error}). Save it again, or as CSV."
        ) from error
    if not is_book:
        raise InputError(f"{path}: a zip archive, not a table. Unpack it, and name a file in it.")
    if size > current().most_unpacked(len(content)):
        raise InputError(
            f"{path}: it unpacks to far more than its size, {size >> 20} MiB. "
            f"{how_to_raise('unpacked', '4GB')}"
        )
