"""Zip and tar archives, unpacked into a temporary folder without trusting their content."""

from __future__ import annotations

import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from errcomp.errors import InputError

#: Logs compress to a hundredth; archives that unpack to far more are bombs.
_RATIO, _FREE = 200, 1 << 28
_MOST_FILES = 20_000
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError)


def is_archive(path: Path) -> bool:
    """Say whether this is a zip or a tar archive (also compressed), by content.

    A zip that holds a pickled object (written by torch.save) does not count.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return not any(name.endswith("/data.pkl") for name in archive.namelist())
        return tarfile.is_tarfile(path)
    except (*_BROKEN, ValueError, RuntimeError):
        return False


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Unpack an archive into a temporary folder; yields the folder and the names left out.

    Raises
    ------
    InputError
        It is broken, needs a password, unpacks to far more than its size, or holds a path outside
        the folder.
    """
    with tempfile.TemporaryDirectory(prefix="errcomp-") as name:
        folder = Path(name)
        try:
            left_out = (_unzip if zipfile.is_zipfile(path) else _untar)(path, folder)
        except InputError:
            raise
        except RuntimeError as error:  # how zipfile asks for a password
            raise InputError(f"{path}: cannot be unpacked ({error}). Unpack it yourself.") from None
        except (*_BROKEN, NotImplementedError, ValueError) as error:
            raise InputError(
                f"{path}: broken archive ({error}). It may be cut off: copy it again."
            ) from None
        yield folder, left_out


class _Room:
    """Limits on unpacked files and bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left = max(_FREE, _RATIO * path.stat().st_size)
        self.files = 0

    def copy(self, source: IO[bytes], target: Path) -> None:
        self.files += 1
        if self.files > _MOST_FILES:
            raise InputError(
                f"{self.path}: more than {_MOST_FILES:,} files. Unpack it, and give one of its "
                "folders."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            while piece := source.read(1 << 20):
                self.left -= len(piece)
                if self.left < 0:
                    raise InputError(
                        f"{self.path}: unpacks to more than {_RATIO} times its size. If that is "
                        "expected, unpack it yourself and give the folder."
                    )
                file.write(piece)


def _target(path: Path, name: str, folder: Path) -> Path:
    """Return the path for a member; refuse the archive if a member leads out of the folder."""
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or (pure.parts and ":" in pure.parts[0]):
        raise InputError(
            f"{path}: the entry {name!r} points outside the archive, which may be malicious. "
            "Unpack the files you need yourself."
        )
    return folder.joinpath(*pure.parts)


def _unzip(path: Path, folder: Path) -> tuple[str, ...]:
    room = _Room(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            target = _target(path, member.filename, folder)
            if not member.is_dir():
                with archive.open(member) as source:
                    room.copy(source, target)
    return ()


def _untar(path: Path, folder: Path) -> tuple[str, ...]:
    room, left_out = _Room(path), []
    with tarfile.open(path) as archive:
        for member in archive:
            target = _target(path, member.name, folder)
            if member.isdir():
                continue
            source = archive.extractfile(member) if member.isreg() else None
            if source is None:  # links and devices
                left_out.append(member.name)
                continue
            with source:
                room.copy(source, target)
    return tuple(left_out)
