"""What reading a file may cost, so that no file fills the memory or the disk, or never ends."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from errcomp.errors import InputError, offer

__all__ = ["Limits", "limits"]

MIB = 1 << 20
#: A compressed file may unpack to this many bytes, or to this many times its size: repetitive logs
#: compress to a hundredth, bombs to a thousandth.
_UNPACKED, _RATIO = 64 * MIB, 200
#: A Parquet file may have this many rows, or this many for each of its bytes.
_ROWS, _ROWS_PER_BYTE = 4_000_000, 64
#: A process that reads a file may take this much memory, or this many times the file's size.
_MEMORY, _TIMES = 4096 * MIB, 40
#: A file may take this long, or this long for each of its MiB.
_SECONDS, _SECONDS_PER_MIB = 60.0, 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the cost of a file; see `limits`.

    Attributes
    ----------
    unpacked : int or None
        Bytes that a compressed file or an archive may unpack to. None: 64 MiB, or 200 times its
        size if that is more.
    files : int
        Files in an archive.
    rows : int or None
        Rows of a Parquet file that is read into memory. None: 4 million, or 64 for each of its
        bytes if that is more.
    memory : int or None
        Bytes of memory of a process that reads a large file of a folder (None: 4 GiB, or 40 times
        the size of the file if that is more), and of a large text that is read as a table (None:
        the memory that is free).
    seconds : float or None
        Time to read one file. None: 60 s, or 5 s per MiB if that is more.

    Examples
    --------
    >>> Limits().most_unpacked(1 << 20) >> 20, Limits(unpacked=1000).most_unpacked(1 << 20)
    (200, 1000)
    """

    unpacked: int | None = None
    files: int = 20_000
    rows: int | None = None
    memory: int | None = None
    seconds: float | None = None

    def most_unpacked(self, size: int) -> int:
        """Return how many bytes this many compressed bytes may unpack to.

        Examples
        --------
        >>> Limits().most_unpacked(10)
        67108864
        """
        return max(_UNPACKED, _RATIO * size) if self.unpacked is None else self.unpacked

    def most_rows(self, size: int) -> int:
        """Return how many rows a Parquet file of this many bytes may have.

        Examples
        --------
        >>> Limits().most_rows(10), Limits().most_rows(1 << 20)
        (4000000, 67108864)
        """
        return max(_ROWS, _ROWS_PER_BYTE * size) if self.rows is None else self.rows

    def most_memory(self, size: int) -> int:
        """Return how much memory the process may take that reads a file of this many bytes.

        Examples
        --------
        >>> Limits().most_memory(10) >> 20
        4096
        """
        return max(_MEMORY, _TIMES * size) if self.memory is None else self.memory

    def most_seconds(self, size: int) -> float:
        """Return how long a file of this many bytes may take.

        Examples
        --------
        >>> Limits().most_seconds(10), Limits().most_seconds(100 << 20)
        (60.0, 500.0)
        """
        return (
            max(_SECONDS, _SECONDS_PER_MIB * size / MIB) if self.seconds is None else self.seconds
        )


_NOW: ContextVar[Limits | None] = ContextVar("limits", default=None)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kMGT]?)B?", re.ASCII)


def current() -> Limits:
    """Return the limits that hold here.

    Examples
    --------
    >>> current().files
    20000
    """
    return _NOW.get() or Limits()


@contextmanager
def limits(
    *,
    unpacked: int | None = None,
    files: int | None = None,
    rows: int | None = None,
    memory: int | None = None,
    seconds: float | None = None,
) -> Iterator[Limits]:
    """Set limits for what is read inside the block.

    Parameters
    ----------
    unpacked, files, rows, memory, seconds
        See `Limits`; None keeps the limit.

    Raises
    ------
    InputError
        A limit is not a positive number.

    Examples
    --------
    >>> with limits(files=50_000) as inside:
    ...     inside.files, current().files
    (50000, 50000)
    """
    given: dict[str, float | None] = {"unpacked": unpacked, "files": files, "rows": rows}
    given |= {"memory": memory, "seconds": seconds}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise InputError(f"the limit {name} must be a positive number, got {value!r}")
    token = _NOW.set(replace(current(), **chosen))  # type: ignore[arg-type]  # checked above
    try:
        yield current()
    finally:
        _NOW.reset(token)


def parsed(texts: Iterable[str]) -> dict[str, Any]:
    """Return the limits of an option: ``unpacked=4GB``.

    Raises
    ------
    InputError
        There is no such limit, or its value is not a number.

    Examples
    --------
    >>> parsed(["unpacked=1.5GB", "files=100000"])
    {'unpacked': 1500000000, 'files': 100000}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in Limits.__dataclass_fields__:
            names = list(Limits.__dataclass_fields__)
            raise InputError(f"no limit {name!r}. {offer('Limits', names, wanted=name)}")
        match = _AMOUNT.fullmatch(value)
        if match is None or not float(match[1]):
            raise InputError(
                f"--limit {name} must be a positive number such as 4000 or 4GB, got {value[:40]!r}"
            )
        amount = float(match[1]) * _UNITS[match[2]]
        found[name] = amount if name == "seconds" else round(amount)
    return found


def how_to_raise(name: str, value: str) -> str:
    """Return the end of a refusal: how to raise the limit.

    Examples
    --------
    >>> how_to_raise("unpacked", "4GB")
    'If you trust the file, raise the limit: --limit unpacked=4GB (in Python: errcomp.limits).'
    """
    return (
        f"If you trust the file, raise the limit: --limit {name}={value} (in Python: "
        "errcomp.limits)."
    )


class TookTooLongError(BaseException):
    """Raised within the block of `timed` when its time is over; no reader handles it by mistake."""


@contextmanager
def timed(seconds: float) -> Iterator[None]:
    """Raise `TookTooLongError` if the block takes longer, in the main thread of a POSIX system.

    Elsewhere, and where another timer runs, there is no limit.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def end(*_: object) -> None:
        raise TookTooLongError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
