"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from errcomp.errors import InputError

__all__ = ["check_target", "replacing"]

#: Characters of its name that a file shows before it is whole; each may take four bytes.
_BEGINNING = 40


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside the target; it takes the target's place when all went well.

    Raises
    ------
    InputError
        The target is a folder, no ordinary file or read-only, or cannot be written.
    """
    check_target(path)
    path = path.resolve() if path.is_symlink() else path
    try:
        # The name may be as long as a file system allows: the temporary one takes its beginning.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_BEGINNING]}.")
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Refuse a file that cannot, or should not, be written; best before the work is done.

    Raises
    ------
    InputError
        The target is a folder, no ordinary file, or read-only, or its folder is not there.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no ordinary file; name a file")
    if path.exists() and not path.stat().st_mode & 0o222:
        raise InputError(f"{path} is read-only; name another file, or make it writable")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}. Make it.")


def _umask() -> int:
    """Return the mask that a file made the ordinary way would get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
