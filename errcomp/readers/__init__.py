"""One reader per native format; ``read`` recognises the format by content."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers.rows import is_output

if TYPE_CHECKING:
    from errcomp.readers.core.output import Output
    from errcomp.readers.delimited import Decimals
    from errcomp.tables import Gaps, Table, Zeros

__all__ = ["is_output", "read"]


def read(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Gaps = "raise",
    decimal: Decimals = ".",
) -> Output:
    r"""Read a table of pairs, or the output of a tool or profiler.

    Parameters
    ----------
    path : path
        A CSV, Excel, Parquet, JSON or JSON lines file of pairs, also compressed; or output in one
        of the formats that ``errcomp readers`` lists, recognised by its content: a file, a folder
        or an archive (zip, tar) of such files.
    columns, unit, zeros, missing, decimal
        For files of pairs, see ``errcomp.readers.plain.read_pairs``.

    Returns
    -------
    Output
        Its ``.pairs``, ``.kernels``, ``.runs`` and ``.history`` are tables (see
        `errcomp.readers.core.output.Output`); functions that take a table take it as well.

    Raises
    ------
    InputError
        The path is neither of these, or its content cannot be used.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = path.write_text('{"predicted": 11, "measured": 10}\n')
    >>> read(path).pairs.n
    1
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "astra.log"
    >>> _ = path.write_text("sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    >>> read(path).rows["predicted"].to_list()
    [1200.0, 300.0]
    """
    from errcomp.readers.learned.neusight.files import is_artifact

    if not is_output(path, columns):
        return _table(path, columns, unit, zeros=zeros, missing=missing, decimal=decimal)
    if columns or unit:
        raise InputError(
            f"{path} is the output of a tool, so its columns and unit are known. Leave out "
            "columns= and unit=."
        )
    if is_artifact(path):
        return _artifact(path)
    from errcomp.readers.core.ingest import ingest

    return ingest(path)


def _table(
    path: str | PathLike[str],
    columns: Mapping[str, str] | None,
    unit: str | None,
    **options: Any,
) -> Output:
    """Return a table of pairs, kernels or validations."""
    from errcomp.readers.core.output import Output
    from errcomp.readers.plain import read_pairs
    from errcomp.readers.several import notes_on_table
    from errcomp.tables.frames import to_eager

    pairs = read_pairs(path, columns=columns, unit=unit, **options)
    name = str(path)
    return Output(
        rows=to_eager(pairs.native).to_polars(),
        formats=("table",),
        files=(name,),
        dropped=pairs.dropped,
        notes=notes_on_table(path),
        tables={
            "pairs": lambda: pairs,
            "kernels": partial(_read_as, "kernels", name, columns, unit),
            "history": partial(_read_as, "history", name, columns, unit),
        },
    )


def _read_as(kind: str, path: str, columns: Mapping[str, str] | None, unit: str | None) -> Table:
    """Read a file as another kind of table."""
    table: Table = import_module(f"{__name__}.{kind}").read(path, columns=columns, unit=unit)
    return table


def _artifact(path: str | PathLike[str]) -> Output:
    """Return the artifact of NeuSight, which holds a table of pairs and a table of kernels."""
    from errcomp.readers.core.output import Output
    from errcomp.readers.learned import neusight

    artifact = neusight.read(path)
    return Output(
        rows=artifact.pairs.native,
        formats=("neusight",),
        files=(str(path),),
        dropped=artifact.pairs.dropped,
        notes=tuple(str(artifact.report).splitlines()),
        tables={
            "pairs": lambda: artifact.pairs,
            "kernels": lambda: artifact.kernels_of("all"),
        },
    )
