"""Zip and tar archives, unpacked into a temporary folder without trusting their content."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from errcomp.errors import InputError
from errcomp.system.limits import current, how_to_raise

#: zipfile reads as many compressed bytes as it is asked for unpacked ones; what it has read ahead
#: raises the limit on them.
_PIECE, _MIB = 1 << 14, 1 << 20
#: Folders within each other, bytes of a name in one of them, and bytes of a whole name: file
#: systems and tools fail above.
_DEEPEST, _LONGEST, _LONGEST_PATH = 64, 255, 2048
#: Characters that no name needs: control characters, and halves of characters.
_NOT_IN_NAMES = ("Cc", "Cs")
#: First bytes of a compressed tar archive → what unpacks it.
_PACKED: tuple[tuple[bytes, Callable[[IO[bytes]], Any]], ...] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
    (b"\x5d\x00\x00", lzma.LZMAFile),
)
#: What zipfile and tarfile raise for damaged archives; a damaged header may be an index too large.
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError),
    *(ValueError, IndexError, OverflowError),
)
#: Reads at the end of a file: tarfile may look for bytes that are not there without end.
_MOST_IN_VAIN = 100


def is_archive(path: Path) -> bool:
    """Say whether this is a zip or a tar archive (also compressed), by content.

    A zip that holds a pickled object (written by torch.save) does not count.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return not any(name.endswith("/data.pkl") for name in archive.namelist())
        with _tar(path):
            return True
    except InputError:  # so large already that it is refused
        return True
    except (*_BROKEN, RuntimeError, MemoryError):
        return False


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Unpack an archive into a temporary folder; yields the folder and the names left out.

    Links, devices and sparse files are left out.

    Raises
    ------
    InputError
        It is broken, needs a password, unpacks to far more than its size (see
        `errcomp.system.limits`), has two entries with one name, or one whose name leads out of the
        folder or cannot be a file's name.
    """
    with tempfile.TemporaryDirectory(prefix="errcomp-") as name:
        folder = Path(name)
        try:
            left_out = (_unzip if zipfile.is_zipfile(path) else _untar)(path, folder)
        except InputError:
            raise
        except (NotImplementedError, RecursionError, MemoryError) as error:
            raise InputError(
                f"{path}: cannot be unpacked ({error or type(error).__name__}). Pack its files "
                "again as zip or tar.gz."
            ) from None
        except RuntimeError as error:  # how zipfile asks for a password
            raise InputError(f"{path}: cannot be unpacked ({error}). Unpack it yourself.") from None
        except _BROKEN as error:
            raise InputError(
                f"{path}: broken archive ({error}). The file may be incomplete: copy it again."
            ) from None
        yield folder, left_out


class _Guard:
    """Counts bytes, and refuses when they are far more than the compressed bytes behind them."""

    def __init__(self, path: Path, position: Callable[[], int]) -> None:
        self._path, self._position = path, position
        self._start, self._done = position(), 0

    def count(self, data: bytes) -> None:
        """Count bytes that were unpacked."""
        self._done += len(data)
        # By the bytes read up to here: a bomb is met where it begins, not when the disk is full.
        if self._done > current().most_unpacked(self._position() - self._start):
            raise InputError(
                f"{self._path}: unpacks to far more than its size, {self._done // _MIB} MiB so "
                f"far. {how_to_raise('unpacked', '4GB')}"
            )


class _Counted:
    """A file that counts the bytes that are read, wherever they are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.done = file, 0

    def read(self, n: int = -1) -> bytes:
        data = self._file.read(n)
        self.done += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Unpacking:
    """What is unpacked from an archive, with a limit on the number of its bytes.

    Headers count, too: a name in the header of a tar archive may be as large as a file.
    """

    def __init__(self, file: Any, guard: _Guard) -> None:
        self._file, self._guard, self._in_vain = file, guard, 0

    def read(self, n: int) -> bytes:
        data: bytes = self._file.read(n)
        self._in_vain += not data
        if self._in_vain > _MOST_IN_VAIN:
            raise EOFError("unexpected end of data")
        self._guard.count(data)
        return data


class _Folder:
    """The folder that an archive is unpacked into, and what is in it so far."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path, self._folder = path, folder
        self._files: set[tuple[str, ...]] = set()
        self._folders: set[tuple[str, ...]] = {()}
        self._entries = 0

    def place(self, name: str, *, is_folder: bool) -> Path:
        """Return where an entry belongs; refuse the archive if that is not a place of its own."""
        self._entries += 1
        self.check(self._entries)
        parts = self._parts(name, is_folder=is_folder)
        for depth in range(len(parts) - (not is_folder), 0, -1):
            if parts[:depth] in self._folders:
                break
            if parts[:depth] in self._files:
                raise self._refused(name, "needs a folder with the name of a file")
            self._folders.add(parts[:depth])
        if not is_folder:
            if parts in self._files:
                raise self._refused(name, "is in the archive twice")
            if parts in self._folders:
                raise self._refused(name, "is both a file and a folder")
            self._files.add(parts)
        return self._folder.joinpath(*parts)

    def check(self, entries: int) -> None:
        """Refuse the archive if these are too many entries."""
        if entries > current().files:
            raise InputError(
                f"{self._path}: more than {current().files:,} entries. "
                f"{how_to_raise('files', '100000')}"
            )

    def _parts(self, name: str, *, is_folder: bool) -> tuple[str, ...]:
        pure = PurePosixPath(name.replace("\\", "/"))
        parts = pure.parts
        if any(unicodedata.category(letter) in _NOT_IN_NAMES for letter in name):
            raise self._refused(
                name, "has a control character or another invalid character in its name"
            )
        if pure.is_absolute() or ".." in parts or (parts and ":" in parts[0]):
            raise self._refused(name, "points outside the archive, which may be malicious")
        if not parts and not is_folder:
            raise self._refused(name, "has no name")
        if len(parts) > _DEEPEST:
            raise self._refused(name, f"is more than {_DEEPEST} folders deep")
        lengths = [len(os.fsencode(part)) for part in parts]
        if lengths and (max(lengths) > _LONGEST or sum(lengths) > _LONGEST_PATH):
            raise self._refused(name, "has a name that is too long")
        return parts

    def _refused(self, name: str, why: str) -> InputError:
        shown = name if len(name) <= 100 else f"{name[:60]}…{name[-40:]}"
        return InputError(
            f"{self._path}: the entry {shown!r} {why}. Unpack the files you need yourself."
        )

    def write(self, source: _Unpacking, target: Path, name: str) -> None:
        """Write the content of an entry to its place."""
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = target.open("xb")
        except FileExistsError:  # on a file system that ignores case
            raise self._refused(
                name, "differs from another entry only in upper and lower case"
            ) from None
        with file:
            while piece := source.read(_PIECE):
                file.write(piece)


def _unzip(path: Path, folder: Path) -> tuple[str, ...]:
    target, left_out = _Folder(path, folder), []
    with path.open("rb") as raw:
        file = _Counted(raw)
        with zipfile.ZipFile(cast("IO[bytes]", file)) as archive:
            members = archive.infolist()
            target.check(len(members))  # before any is unpacked
            if sum(member.compress_size for member in members) > path.stat().st_size:
                raise InputError(
                    f"{path}: its entries overlap, which may be malicious. Unpack the files you "
                    "need yourself."
                )
            whole = _Guard(path, lambda: file.done)
            for member in members:
                name = member.orig_filename  # the other one ends at a NUL
                is_folder = name.endswith(("/", "\\"))
                place = target.place(name, is_folder=is_folder)
                if is_folder:
                    continue
                if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
                    left_out.append(name)
                    continue
                with archive.open(member) as source:
                    entry = _Unpacking(source, _Guard(path, lambda: file.done))
                    target.write(_Unpacking(entry, whole), place, name)
    return tuple(left_out)


def _untar(path: Path, folder: Path) -> tuple[str, ...]:
    target, left_out = _Folder(path, folder), []
    with _tar(path) as (archive, position):
        for member in archive:
            place = target.place(member.name, is_folder=member.isdir())
            if member.isdir():
                continue
            regular = member.isreg() and not member.issparse()
            source = archive.extractfile(member) if regular else None
            if source is None:  # links and devices
                left_out.append(member.name)
                continue
            with source:
                target.write(_Unpacking(source, _Guard(path, position)), place, member.name)
    return tuple(left_out)


@contextmanager
def _tar(path: Path) -> Iterator[tuple[tarfile.TarFile, Callable[[], int]]]:
    """Open a tar archive; yields it and a function that returns the compressed bytes read."""
    with path.open("rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        opener = next((opener for magic, opener in _PACKED if head.startswith(magic)), None)
        file = raw if opener is None else opener(raw)
        unpacking = cast("IO[bytes]", _Unpacking(file, _Guard(path, raw.tell)))
        # As a stream: one that is not compressed is as safe, and nothing is unpacked twice.
        with tarfile.open(fileobj=unpacking, mode="r|", bufsize=128 * tarfile.BLOCKSIZE) as archive:
            yield archive, raw.tell
