"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from errcomp.errors import InputError

__all__ = ["check_target", "replacing", "together"]

#: Characters of its name that a file shows before it is whole; each may take four bytes.
_BEGINNING = 40
#: Files that are written and wait for the others: temporary name and target.
_WAITING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("waiting", default=None)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside the target; it takes the target's place when all went well.

    Inside `together` it does so once all other files are written as well.

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
    temporary, waiting = Path(name), _WAITING.get()
    kept = False
    try:
        yield temporary
        temporary.chmod(mode)
        if waiting is None:
            temporary.replace(path)
        else:
            waiting.append((temporary, path))
            kept = True
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        if not kept:
            temporary.unlink(missing_ok=True)


@contextmanager
def together() -> Iterator[None]:
    """Let the files written inside (`replacing`) take their places at the end: all or none.

    Raises
    ------
    InputError
        A file that is written cannot take its place.
    """
    waiting: list[tuple[Path, Path]] = []
    token = _WAITING.set(waiting)
    try:
        yield
        for temporary, path in waiting:
            try:
                temporary.replace(path)
            except OSError as error:
                raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        _WAITING.reset(token)
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Refuse a file that cannot, or should not, be written; best before the work is done.

    Raises
    ------
    InputError
        The target is a folder, no ordinary file, or read-only, or its folder is not there or
        takes no files.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no ordinary file; name a file")
    if path.exists() and not path.stat().st_mode & 0o222:
        raise InputError(f"{path} is read-only; name another file, or make it writable")
    folder = path.resolve().parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {folder}. Make it.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"{path}: cannot be written: the folder {folder} is read-only. Name another, or make "
            "it writable."
        )


def _umask() -> int:
    """Return the mask that a file made the ordinary way would get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
