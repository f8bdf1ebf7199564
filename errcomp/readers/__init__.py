"""One reader per native format; ``read`` recognises the format by content."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.readers._decode import files_readable
from errcomp.tables import Pairs, Zeros

if TYPE_CHECKING:
    from errcomp.readers.neusight import NeusightArtifact

__all__ = ["read"]


def read(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
) -> Pairs | NeusightArtifact:
    r"""Read a file of pairs or the folder of an artifact, whichever the path is.

    Parameters
    ----------
    path : path
        A CSV (also gzipped), Parquet, JSON or JSON lines file, or the root of the NeuSight
        artifact.
    columns, unit, zeros
        For files, see ``errcomp.readers.plain.read_pairs``.

    Returns
    -------
    Pairs or NeusightArtifact
        An artifact has its pairs as ``.pairs``, its operators as ``.kernels``.

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
    """
    with files_readable():
        artifact = Path(path).is_dir()
    if not artifact:
        from errcomp.readers.plain import read_pairs

        return read_pairs(path, columns=columns, unit=unit, zeros=zeros)
    if columns or unit:
        raise InputError(
            f"{path}: the columns and the unit of an artifact are known. Leave them out."
        )
    from errcomp.readers import neusight

    return neusight.read(path)
