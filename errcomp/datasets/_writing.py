"""Files of a dataset written out: as the user wants them, whole or not at all."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp._files import replacing
from errcomp.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["as_bytes", "sha256", "write"]


def as_bytes(frame: pl.DataFrame, target: Path) -> bytes:
    """Return a table in the format of a suffix."""
    buffer = io.BytesIO()
    if target.suffix == ".parquet":
        frame.write_parquet(buffer)
    elif target.suffix == ".json":
        frame.write_json(buffer)
    elif target.suffix in (".jsonl", ".ndjson"):
        frame.write_ndjson(buffer)
    else:
        raise InputError(
            f"{target}: unknown suffix {target.suffix!r}. Use .csv, .parquet, .json or .jsonl."
        )
    return buffer.getvalue()


def write(path: Path, content: bytes) -> None:
    """Write a file, complete or not at all, and the folder for it if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def sha256(content: bytes) -> str:
    """Return the checksum of a content as text."""
    return hashlib.sha256(content).hexdigest()
