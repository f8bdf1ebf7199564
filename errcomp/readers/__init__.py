"""One reader per native format; ``read`` recognises the format by content."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.readers.core.source import files_readable
from errcomp.tables import Pairs, Zeros

if TYPE_CHECKING:
    from errcomp.readers.core.output import Output
    from errcomp.readers.learned.neusight import NeusightArtifact

__all__ = ["is_output", "read"]


def read(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
) -> Pairs | NeusightArtifact | Output:
    r"""Read a table of pairs, or the output of a tool or profiler, whichever the path is.

    Parameters
    ----------
    path : path
        A CSV (also gzipped), Parquet, JSON or JSON lines file of pairs; or output in one of the
        formats that ``errcomp readers`` lists, recognised by its content: a file, a folder or an
        archive (zip, tar) of such files.
    columns, unit, zeros
        For files of pairs, see ``errcomp.readers.plain.read_pairs``.

    Returns
    -------
    Pairs, Output or NeusightArtifact
        Outputs have ``.pairs`` and ``.kernels`` (and ``.runs``, ``.history``: see
        `errcomp.readers.core.output.Output`). The artifact of NeuSight has its pairs as ``.pairs``,
        its operators as ``.kernels``.

    Raises
    ------
    InputError
        The path is neither, or what it holds cannot be used.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = path.write_text('{"predicted": 11, "measured": 10}\n')
    >>> read(path).n
    1
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "astra.log"
    >>> _ = path.write_text("sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    >>> read(path).rows["predicted"].to_list()
    [1200.0, 300.0]
    """
    from errcomp.readers.learned.neusight.files import is_artifact

    if is_output(path, columns):
        if columns or unit:
            raise InputError(
                f"{path}: the columns and the unit of a tool's output are known. Leave them out."
            )
        if is_artifact(path):
            from errcomp.readers.learned import neusight

            return neusight.read(path)
        from errcomp.readers.core.ingest import ingest

        return ingest(path)
    from errcomp.readers.plain import read_pairs

    return read_pairs(path, columns=columns, unit=unit, zeros=zeros)


def is_output(path: str | PathLike[str], columns: Mapping[str, str] | None = None) -> bool:
    """Say whether this is a folder, an archive or a file in the format of a tool, not a table.

    A file whose columns the user names is read as a table, whoever wrote it.

    Raises
    ------
    InputError
        It cannot be read.
    """
    with files_readable():
        if Path(path).is_dir():
            return True
    if columns or not Path(path).is_file():
        return False
    from errcomp.readers.core.archives import is_archive
    from errcomp.readers.core.registry import recognise
    from errcomp.readers.core.source import Source
    from errcomp.readers.rows import is_rows

    source = Source(path)
    if is_rows(source):
        return True
    # No tool calls a column so; the readers, which take a moment to load, are not asked then.
    if {"predicted", "measured"}.intersection((*source.header, *source.json_names)):
        return False
    return is_archive(Path(path)) or bool(recognise(source))
