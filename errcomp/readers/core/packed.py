"""The content of a compressed file (gzip, xz, zstd), with a limit on its size."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from shlex import quote
from typing import Any, BinaryIO, cast

from errcomp.errors import InputError, MissingExtraError
from errcomp.system.limits import current, how_to_raise

__all__ = ["unpacking"]


def unpacking(file: BinaryIO, kind: str, error: Callable[[str], InputError], name: str) -> BinaryIO:
    """Return the content of a compressed file.

    Parameters
    ----------
    file : binary file
    kind : {"gzip", "xz", "zstd"}
    error : callable
        Makes the error of this file from a text.
    name : str
        Its name in the message about a package that is not installed.

    Raises
    ------
    InputError
        It is zstd, and zstandard is not installed. While reading: it is damaged, or unpacks to
        far more than files of measurements do.

    Examples
    --------
    >>> packed = io.BytesIO(gzip.compress(b"12 ms"))
    >>> unpacking(packed, "gzip", InputError, "log.gz").read()
    b'12 ms'
    """
    if kind == "zstd":
        try:
            import zstandard
        except ImportError as missing:
            lacking = MissingExtraError("zstandard", "formats", f"{name}: reading zstd")
            file.close()
            raise InputError(f"{lacking}; or unpack the file: zstd -d {quote(name)}") from missing
        content: Any = _Zstd(file, zstandard)
        broken: tuple[type[Exception], ...] = (zstandard.ZstdError,)
    elif kind == "xz":
        content, broken = lzma.LZMAFile(file), (lzma.LZMAError, EOFError)  # noqa: SIM115 - closed below
    else:
        content, broken = gzip.GzipFile(fileobj=file), (OSError, EOFError, zlib.error)
    return cast(
        "BinaryIO", io.BufferedReader(_Unpacked(file, content, kind, broken, error), 1 << 18)
    )


class _Zstd:
    """Reads zstd frames; unlike the reader of the library, it notices where one is cut off."""

    def __init__(self, file: BinaryIO, library: Any) -> None:
        self._file, self._library = file, library
        self._frame = library.ZstdDecompressor().decompressobj()
        self._packed = self._ready = b""
        self._at, self._begun = 0, False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""
        while self._at == len(self._ready):
            # Of a bomb, 2 KiB unpack to some 64 MiB.
            packed = self._packed or self._file.read(1 << 11)
            self._packed = b""
            if not packed:
                if self._begun:
                    raise self._library.ZstdError("cut off")
                return b""
            self._begun = True
            self._ready, self._at = self._frame.decompress(packed), 0
            if self._frame.eof:
                self._packed, self._begun = self._frame.unused_data, False
                self._frame = self._library.ZstdDecompressor().decompressobj()
        self._at, begin = min(self._at + size, len(self._ready)), self._at
        return self._ready[begin : self._at]

    def close(self) -> None:
        """Forget the bytes in memory."""
        self._ready, self._at = b"", 0


class _Unpacked(io.RawIOBase):
    """The content of a compressed file, with a limit on its size."""

    def __init__(
        self,
        file: BinaryIO,
        content: Any,
        kind: str,
        broken: tuple[type[Exception], ...],
        error: Callable[[str], InputError],
    ) -> None:
        self._file, self._content, self._kind, self._error = file, content, kind, error
        self._broken = broken
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._content.read(len(buffer))
        except self._broken as error:
            raise self._error(
                f"broken {self._kind} ({error}). The file may be incomplete: copy it again."
            ) from None
        self._done += len(data)
        # By the bytes read up to here: a bomb is met where it begins, not when memory is full.
        if self._done > current().most_unpacked(self._file.tell()):
            raise self._error(
                f"it unpacks to far more than its size, {self._done >> 20} MiB so far. "
                f"{how_to_raise('unpacked', '4GB')}"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._content.close()
        self._file.close()
        super().close()
