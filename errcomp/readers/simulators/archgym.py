"""ArchGym: designs tried by an agent, and the results of the simulator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, key, long

if TYPE_CHECKING:
    import polars as pl


_OBSERVATION = re.compile(r"observation-(\d{1,3})")
_ACTIONS = {"topology-name", "scheduling-policy", "collective-optimization"}
_MOST = 32


def read(path: AnyPath) -> Output:
    r"""Read ``observations_feasible.csv``, with ``actions_feasible.csv`` from the same folder.

    Parameters
    ----------
    path : path
        The observations, or a folder or archive with both. Row i of one file belongs to row i of
        the other. The file of actions has "actions" in its name instead of "observations".

    Returns
    -------
    Output
        The observations of each ``design`` (its row, from 0), level "system", with its parameters
        as keys. They are results of a simulator, and the truth for a proxy trained on them, so they
        are given as measured. Their meaning and units are not published: ``quantity`` is the name
        of the column, ``unit`` is "unknown".

    Raises
    ------
    InputError
        A row is cut off, has text instead of a number, or the files have different numbers of
        rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "observations_feasible.csv"
    >>> _ = path.write_text("observation-1,observation-2\n616.5,1.5\n")
    >>> read(path).rows.select("design", "quantity", "measured").rows()
    [(0, 'observation-1', 616.5), (0, 'observation-2', 1.5)]
    """
    return read_as(path, FORMATS)


def _recognise(source: Source) -> bool:
    header = source.header
    return len(header) > 1 and all(_OBSERVATION.fullmatch(name) for name in header)


def _actions(source: Source) -> bool:
    return set(source.header) >= _ACTIONS


_tool = ToolFormats(
    "ArchGym", gives="measurements", reference="simulator", sample="proxy pipeline, first 500 rows"
)


@_tool.reads(
    "archgym-observations",
    "observations_feasible.csv",
    "system",
    _recognise,
    quantities=tuple(f"observation-{i + 1}" for i in range(_MOST)),
    units=("unknown",),
    limits="The published observations have neither names nor units; the first looks like the "
    "simulated time.",
)
def _read(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet()
    values = [Value(name, "unknown", measured=name) for name in sheet.columns[:_MOST]]
    keys: dict[str, pl.Series] = {"design": pl.Series(np.arange(len(sheet)))}
    notes = []
    beside = source.sibling(source.path.name.replace("observations", "actions"))
    if beside is None or not _actions(beside):
        notes.append(
            "The folder has no file of actions, so only the row number identifies a design."
        )
    else:
        keys |= _parameters(source, beside, len(sheet))
    return Rows(long(sheet, values, keys), notes=notes)


def _parameters(source: Source, beside: Source, n: int) -> dict[str, pl.Series]:
    sheet = beside.sheet()
    if len(sheet) != n:
        raise InputError(
            f"{source.name}: {n} rows of observations, but {len(sheet)} rows of actions in "
            f"{beside.name}. Row i of one file belongs to row i of the other: copy both files "
            "again."
        )
    return {name.replace("-", "_"): key(sheet, name) for name in sheet.columns}


_tool.knows(
    "archgym-actions",
    "actions_feasible.csv",
    _actions,
    "The file holds the parameters of designs, but no results.",
    part_of="archgym-observations",
)

FORMATS = _tool.formats
