"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from errcomp.errors import InputError

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside the target; it takes the target's place when all went well.

    Raises
    ------
    InputError
        The target is a folder or cannot be written.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Return the mask that a file made the ordinary way would get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
