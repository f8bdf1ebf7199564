"""Write files and folders whole or not at all; never replace a folder with files of others.

What is written reaches the disk before it takes its name, so that after a crash or a loss of power
there is the old file or the new one. After SIGKILL a hidden temporary file may be left, and of
several files of one command, some may be new.
"""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import shutil
import stat
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from errcomp.errors import InputError, describe_names
from errcomp.system.stopping import check_stopping

#: Characters of the target's name in the temporary name; each may take four bytes.
_BEGINNING = 40


class _Waiting(list[tuple[Path, Path]]):
    """Files that are written and wait for all others: temporary name and target."""


#: Of the innermost `together`. It goes with the block, even if a signal comes before this is reset.
_WAITING: ContextVar[weakref.ref[_Waiting] | None] = ContextVar("waiting", default=None)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside the target; it replaces the target if all goes well.

    Inside `together`, it replaces the target once all other files are written as well.

    Raises
    ------
    InputError
        The target is a folder, a special file or read-only, or cannot be written.
    """
    check_target(path)
    path = path.resolve() if path.is_symlink() else path
    block, deferred = _WAITING.get(), False
    waiting = None if block is None else block()
    with _told(path):
        temporary = _name_beside(path)
        try:  # a signal may come as soon as the file is there
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
            yield temporary
            # Before it has the mode of the target, which may not be readable.
            _to_disk(temporary)
            temporary.chmod(mode)
            check_stopping()
            if waiting is None:
                temporary.replace(path)
                _names_to_disk(path.parent)
            else:
                waiting.append((temporary, path))
                deferred = True
        finally:
            if not deferred:
                temporary.unlink(missing_ok=True)


def _name_beside(path: Path, end: str = "") -> Path:
    """Return a hidden name that nothing has.

    The target's name may be as long as a file name can be: only its beginning is taken.
    """
    return path.with_name(f".{path.name[:_BEGINNING]}.{secrets.token_hex(8)}{end}")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Convert errors of writing to ``InputError``: those of the system, and of Polars."""
    try:
        yield
    except OSError as error:
        raise _refusal(path, error) from error
    except Exception as error:
        # Polars has its own error for a full disk. It is not imported here.
        if not type(error).__module__.startswith("polars"):
            raise
        raise _refusal(path, error) from error


def _refusal(path: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0][:200]
    return InputError(
        f"{path}: cannot be written ({reason}). Check the disk and its permissions, or write "
        "elsewhere."
    )


def _to_disk(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _names_to_disk(folder: Path) -> None:
    """Wait until the names of a folder are on the disk, where the system can."""
    with suppress(OSError):
        _to_disk(folder)


@contextmanager
def together() -> Iterator[None]:
    """Let the files written inside (`replacing`) move into place at the end: all or none.

    Raises
    ------
    InputError
        A written file cannot be moved into place.
    """
    waiting, before = _Waiting(), _WAITING.get()
    try:
        _WAITING.set(weakref.ref(waiting))
        yield
        _move_all(waiting)
    finally:
        _WAITING.set(before)
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)


def _move_all(waiting: Sequence[tuple[Path, Path]]) -> None:
    """Give files their names; if one cannot get it, put those back that were replaced."""
    check_stopping()
    asides = [_name_beside(path, ".old") if path.exists() else None for _, path in waiting]
    try:
        _move(waiting, asides)
        _remove(asides)
    finally:  # again, if a signal came while they were removed
        _remove(asides)
    for folder in {path.parent for _, path in waiting}:
        _names_to_disk(folder)


def _move(waiting: Sequence[tuple[Path, Path]], asides: Sequence[Path | None]) -> None:
    """Replace each file, which gets its name in `asides` first; on any error put all back."""
    done = 0
    try:
        for (temporary, path), aside in zip(waiting, asides, strict=True):
            with _told(path):
                if aside is not None:
                    _second_name(path, aside)
                done += 1
                temporary.replace(path)
    except BaseException:
        for (_, path), aside in list(zip(waiting, asides, strict=True))[:done]:
            with suppress(OSError):
                if aside is None:
                    path.unlink(missing_ok=True)
                else:
                    aside.replace(path)
        raise


def _remove(paths: Sequence[Path | None]) -> None:
    for path in paths:
        if path is not None:
            path.unlink(missing_ok=True)


def _second_name(path: Path, aside: Path) -> None:
    """Give a file that will be replaced a second name, or copy it."""
    try:
        os.link(path, aside)
    except OSError:  # a file system without links
        shutil.copy2(path, aside)


def check_target(path: Path) -> None:
    """Refuse a file that cannot, or should not, be written; call this before the work.

    Raises
    ------
    InputError
        The target is a folder, a special file or read-only, or its folder is missing or
        read-only.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not an ordinary file; name a file")
    if path.exists() and not path.stat().st_mode & 0o222:
        raise InputError(f"{path} is read-only; name another file, or make it writable")
    folder = path.resolve().parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise InputError(
            f"{path}: cannot be written: the folder {folder} does not exist. Create it."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"{path}: cannot be written: the folder {folder} is read-only. Name another folder, or "
            "make this one writable."
        )


def _umask() -> int:
    """Return the mask of permissions for new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


#: Lists every file of a folder with its SHA-256, so that ``sha256sum -c`` checks it.
SUMS = "SHA256SUMS"
_README = "README.md"


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside the target; it replaces the target if all goes well.

    Raises
    ------
    InputError
        The target is a file or the current folder, or cannot be written.
    """
    target = path.resolve()  # a link to a folder stays a link
    if target.exists() and not target.is_dir():
        raise InputError(f"{path} is a file; name a folder")
    if target == Path.cwd():
        raise InputError(
            f"{path} is the current folder, which cannot be replaced; name another folder"
        )
    # Not a folder of tempfile, which only its owner could read.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with _told(path):
        _restore(target)
        try:
            temporary.mkdir()
            yield temporary
            for file in (*temporary.rglob("*"), temporary):
                _to_disk(file)
            _swap(temporary, target)
            _names_to_disk(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _restore(target: Path) -> None:
    """Put a folder back that was killed while it was replaced, between its two renames."""
    if not target.exists():
        left = sorted(target.parent.glob(f".{glob.escape(target.name)}.????????.old"))
        if len(left) == 1:
            left[0].rename(target)


def check_free(path: Path, heading: str) -> None:
    """Refuse a folder whose content would be lost: anything not written under this heading.

    Parameters
    ----------
    path : Path
        A folder, which need not exist.
    heading : str
        First line of the README of folders that may be replaced, if their files are unchanged.

    Raises
    ------
    InputError
        The folder holds other files, or files that were changed.
    """
    if not path.is_dir():
        return
    names = sorted(str(entry.relative_to(path)) for entry in path.rglob("*"))
    if not names:
        return
    known = _listed(path, heading)
    if not known:
        raise InputError(
            f"{path} is not empty and was not written by this command: it holds "
            f"{describe_names(names)}. Name an empty folder, or one that does not exist."
        )
    others = [name for name in names if name not in known and name != SUMS]
    if others:
        raise InputError(
            f"{path}: the folder would be replaced, and {describe_names(others)} would be lost. "
            "Move your files, or name another folder."
        )
    changed = [name for name, digest in known.items() if _changed(path / name, digest)]
    if changed:
        raise InputError(
            f"{path}: these files were changed after errcomp wrote them: "
            f"{describe_names(changed)}. Name another folder, or move this one away to keep the "
            "changes."
        )


def write_sums(folder: Path) -> None:
    """Write the checksums of all files of a folder into it."""
    files = sorted(file for file in folder.iterdir() if file.name != SUMS)
    lines = [f"{sha256_of(file)}  {file.name}\n" for file in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8", newline="")


def _listed(path: Path, heading: str) -> dict[str, str]:
    """Return the files that a folder lists with their checksums; none without the heading."""
    try:
        first, _, _ = (path / _README).read_text(encoding="utf-8").partition("\n")
        lines = (path / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    parts = [line.partition("  ") for line in lines]
    return {name: digest for digest, _, name in parts} if first == heading else {}


def _changed(file: Path, digest: str) -> bool:
    return file.exists() and sha256_of(file) != digest


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _swap(new: Path, target: Path) -> None:
    """Replace a folder if it exists; put the old folder back if that fails."""
    check_stopping()
    old = new.with_name(f"{new.name}.old")
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        elif old.exists():
            old.rename(target)
