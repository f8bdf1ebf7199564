"""Model files are written whole or not at all, and read with every byte checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from errcomp.calibration.modelfile.container import LARGEST, check_bytes, pack, unpack
from errcomp.calibration.modelfile.content import ModelContent
from errcomp.calibration.modelfile.manifest import (
    SCHEMA,
    content_of,
    entries_of,
    manifest_of,
    stored,
)
from errcomp.errors import InputError
from errcomp.system.files import replacing

__all__ = ["MIGRATIONS", "check_target", "read_model", "write_model"]

_Stored = dict[str, NDArray[Any] | bytes]
_Step = Callable[[dict[str, Any], _Stored], tuple[dict[str, Any], _Stored]]

#: For each schema that can be read, what makes the next one of manifest and entries; nothing for
#: the one that is written now.
MIGRATIONS: dict[int, _Step | None] = {SCHEMA: None}


def write_model(path: str | PathLike[str], content: ModelContent) -> None:
    """Write a fitted model to one file.

    The same content makes the same bytes. The file appears under its name when it is complete and
    on the disk, or not at all.

    Parameters
    ----------
    path : path
        By convention ``*.errcomp``. A model file of this name is replaced.
    content : ModelContent

    Raises
    ------
    InputError
        The content cannot be stored, the file would be larger than 256 MiB, the name belongs to
        a file that is no model (nothing else is overwritten), or the file cannot be written.

    Examples
    --------
    See `read_model`.
    """
    path = Path(path)
    data = pack(entries_of(content))
    if len(data) > LARGEST:
        raise InputError(
            f"{path}: the model has {len(data):,} bytes; a model file has at most {LARGEST:,}. "
            "Keep fewer posterior draws, or fewer trees."
        )
    # What cannot be read again must not be written.
    _parse(data)
    check_target(path)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_model(path: str | PathLike[str]) -> ModelContent:
    """Read a fitted model; needs NumPy only, and runs nothing that the file holds.

    Every entry has its SHA-256 in the manifest, the manifest has its own, and every byte around
    them is known in advance: a file that was changed anywhere is refused.

    Parameters
    ----------
    path : path

    Returns
    -------
    ModelContent
        ``content.member(name).restore()`` is the fitted model.

    Raises
    ------
    InputError
        It is no model file, was cut off or changed, was written by a newer errcomp, is larger
        than 256 MiB, or something in it cannot be.

    Notes
    -----
    Checksums find damage. They do not say who wrote a file: somebody who makes one with other
    numbers gives it fitting checksums. Reading such a file can do no harm; what it predicts may
    be wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from errcomp.calibration.modelfile import FeatureRange, Member
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "gpu.errcomp"
    >>> content = ModelContent(
    ...     task="composition",
    ...     unit="ms",
    ...     features=(FeatureRange("matmul_share", "1", 0.2, 0.9),),
    ...     devices=("A100", "V100"),
    ...     models=("bert",),
    ...     modes=("inference",),
    ...     levels=(0.5, 0.9),
    ...     members=(Member("line", "linear", {"loss": "huber"}, {"slope": np.ones(1)}),),
    ...     fingerprint="0" * 64,
    ...     versions={"errcomp": "0.1.0"},
    ...     created="2025-01-31",
    ... )
    >>> write_model(path, content)
    >>> read_model(path).member("line").arrays["slope"].tolist()
    [1.0]
    """
    path = Path(path)
    try:
        return _parse(_bytes_of(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _parse(data: bytes) -> ModelContent:
    entries = unpack(data)
    manifest = manifest_of(entries)
    schema = manifest["schema"]
    if schema > SCHEMA:
        raise InputError(
            f"was written by a newer errcomp (schema {schema}; this one reads up to {SCHEMA}). "
            "Upgrade errcomp."
        )
    if schema not in MIGRATIONS:
        raise InputError(
            f"has schema {schema}, which there never was. Copy the file again, or write the "
            "model again."
        )
    check_bytes(data, entries)
    found = stored(manifest, entries)
    while (step := MIGRATIONS[schema]) is not None:
        manifest, found = step(manifest, found)
        schema += 1
    return content_of(manifest, found)


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a file, no more than a model can have."""
    try:
        if path.exists() and not path.is_file():
            raise InputError("is a folder or a device. Name a model file.")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}). Check the path.") from error
    except ValueError as error:  # a zero byte in the name
        raise InputError(f"there is no such file ({error}). Check the path.") from error
    if len(data) > LARGEST:
        raise InputError(f"is larger than {LARGEST >> 20} MiB, and no model file is.")
    return data


def check_target(path: str | PathLike[str]) -> None:
    """Refuse a name that no model can be written to, before the work that makes the model.

    Raises
    ------
    InputError
        It is a folder, its folder is not there, or it belongs to a file that is no model; one
        that a newer errcomp wrote is one.
    """
    path = Path(path)
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: no file can have a zero byte in its name. Name another.")
    if path.is_dir():
        raise InputError(f"{path}: is a folder. Name a file.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}. Make it first.")
    if not os.path.lexists(path):
        return
    try:
        manifest_of(unpack(_bytes_of(path)))
    except InputError as error:
        raise InputError(
            f"{path}: exists and is no model file that can be read, so it is not overwritten. "
            "Name another file, or remove it first."
        ) from error
