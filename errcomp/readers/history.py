"""Tables of validations that people write themselves, or that a store exported."""

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
    unit: str | None = None,
) -> History:
    r"""Read a history from a CSV (also gzipped), Parquet, JSON or JSON lines file.

    Its columns are those of `errcomp.tables.History`. Versions stay text, those of the
    stack (``stack_cuda``) as well: 12.10 is not 12.1.

    Parameters
    ----------
    path : path
    columns : mapping of str to str, optional
        ``{"version": "round"}``: which of its columns is what.
    series : sequence of str, optional
        Columns that together name the unit of observation.
    order : sequence of str, optional
        Versions, oldest first, where neither release dates, numbers nor dates can order them.
    unit : str, optional
        Unit of all measurements; a column ``unit`` must agree.

    Returns
    -------
    History
        Its messages name the line (CSV, JSON lines) or row (Parquet, JSON) of the file.

    Raises
    ------
    InputError
        The file cannot be read (see ``errcomp.readers.plain.read_pairs``), or what it holds is no
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
    # Which components there are is known only now; read as numbers they have lost digits.
    given = [name for name in frame.columns if name.startswith("stack_")]
    stack = {*given, *(old for new, old in wanted.items() if new.startswith("stack_"))}
    if any(frame[name].dtype != pl.String for name in stack.intersection(frame.columns)):
        frame, offset = read_frame(path, wanted, _NAMES | stack, _NUMBERS)
    return History(
        frame,
        columns=wanted,
        series=series,
        order=order,
        unit=unit,
        source=str(path),
        line_offset=offset,
    )
