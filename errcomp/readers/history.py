"""Tables of validations: written by users, or exported from a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from errcomp.readers.plain import NAMES, read_frame
from errcomp.tables import History

__all__ = ["read"]

_NAMES = NAMES | {"series", "predictor", "predictor_version", "released"}
_NUMBERS = ("measured", "predicted", "measured_spread", "n_repeats")


def read(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    series: Sequence[str] | None = None,
    order: Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    unit: str | None = None,
) -> History:
    r"""Read a history from a CSV (also gzipped), Parquet, JSON or JSON lines file.

    Its columns are those of `errcomp.tables.History`. Versions, also those of the stack
    (``stack_cuda``), stay text: 12.10 is not 12.1.

    Parameters
    ----------
    path : path
    columns : mapping of str to str, optional
        ``{"version": "round"}``: name here → column of the file.
    series : sequence of str, optional
        Columns that together name a series.
    order, order_by
        What orders the versions, as for `errcomp.tables.History`.
    unit : str, optional
        Unit of all measurements; a column ``unit`` must agree.

    Returns
    -------
    History
        Messages name the line (CSV, JSON lines) or row (Parquet, JSON) of the file.

    Raises
    ------
    InputError
        The file cannot be read (see ``errcomp.readers.plain.read_pairs``), or its content is not a
        history.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "history.csv"
    >>> _ = path.write_text("round,op,ms\n1.9,Gelu,4.0\n1.10,Gelu,2.0\n")
    >>> history = read(path, columns={"version": "round", "measured": "ms"}, unit="ms")
    >>> history.versions, history.measured.tolist()
    (('1.9', '1.10'), [4.0, 2.0])
    """
    import polars as pl

    wanted, path = dict(columns or {}), Path(path)
    frame, offset = read_frame(path, wanted, _NAMES, _NUMBERS)
    # The stack components are known only now; read as numbers, their versions lose digits.
    given = [name for name in frame.columns if name.startswith("stack_")]
    stack = {*given, *(old for new, old in wanted.items() if new.startswith("stack_"))}
    if any(frame[name].dtype != pl.String for name in stack.intersection(frame.columns)):
        frame, offset = read_frame(path, wanted, _NAMES | stack, _NUMBERS)
    return History(
        frame,
        columns=wanted,
        series=series,
        order=order,
        order_by=order_by,
        unit=unit,
        source=str(path),
        line_offset=offset,
    )
