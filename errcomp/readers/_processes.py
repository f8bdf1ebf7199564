"""Several large files of a folder, read by processes at the same time.

Each process is a Python of its own that takes one file after the other. It gets paths, one JSON
line each, and answers with a JSON line and the rows in Arrow's format: nothing that could be
executed. The ``multiprocessing`` of Python would import the user's own script in each process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

from errcomp.errors import InputError
from errcomp.readers._looking import Along, Found, is_data, look
from errcomp.readers.output import Output, Skipped
from errcomp.readers.registry import Format, formats
from errcomp.results import Dropped

__all__ = ["File", "main", "not_here", "processes_for", "read_files"]

#: Each needs a few times the size of its file in memory.
_MOST = 2
#: Bytes beside the largest file that take longer to read than processes take to start.
_PAYS = 32 << 20
_GZIP, _UNPACKED = b"\x1f\x8b", 10
_START_S = 30.0
_READY = b"ready\n"
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from errcomp.readers._processes import main; main()"
)


@dataclass(frozen=True, slots=True)
class File:
    """A file of a folder; ``name`` is what messages call it."""

    path: Path
    name: str
    size: int


def processes_for(files: Sequence[File], among: Sequence[Format] | None) -> int:
    """Return how many processes pay for these files; fewer than 2: read them in this one."""
    if os.name != "posix" or not sys.executable:
        return 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    sizes = [_unpacked_size(file) for file in files if is_data(file.path)]
    beside = sum(sizes) - max(sizes, default=0)
    if beside < _PAYS or (among is not None and not set(among) <= set(formats())):
        return 1
    return min(cores, _MOST)


def _unpacked_size(file: File) -> int:
    if file.size * _UNPACKED < _PAYS // 100:  # of many small files none is opened
        return file.size
    try:
        with file.path.open("rb") as content:
            return file.size * (_UNPACKED if content.read(2) == _GZIP else 1)
    except OSError:  # reading it says so
        return file.size


def read_files(
    files: Sequence[File],
    among: Sequence[Format] | None,
    processes: int,
    progress: Callable[[float, float], None] | None = None,
) -> dict[int, Found]:
    """Read files in processes; those that are left are to be read here.

    Returns
    -------
    dict of int to Found
        By place in ``files``. A file is missing if no process could be started, or if what was
        found of it (an error in a reader) cannot be sent.

    Raises
    ------
    InputError
        A process was ended while it read a file.
    """
    # The largest first: the last one to be read is a small one.
    waiting = sorted(range(len(files)), key=lambda i: (files[i].size, -i))
    found: dict[int, Found] = {}
    done, total = 0, sum(file.size for file in files)
    with _children(processes, among) as children, selectors.DefaultSelector() as selector:
        for child in children:
            child.give(waiting, files)
            if child.at is not None:
                selector.register(child.replies, selectors.EVENT_READ, child)
        while selector.get_map():
            for key, _ in selector.select():
                child = key.data
                at = child.at
                answer = child.answer(files[at])
                child.give(waiting, files)
                if child.at is None:
                    selector.unregister(child.replies)
                if answer is None:
                    continue
                found[at] = answer
                done += files[at].size
                if progress is not None:
                    progress(done, total)
    return found


class _Child:
    """A process that reads files, and which one it reads."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self.at: int | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CODE, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.jobs = cast("IO[bytes]", self.process.stdin)
        self.replies = cast("IO[bytes]", self.process.stdout)
        self._say(names)

    def is_ready(self) -> bool:
        """Wait until it has loaded the readers; False if it cannot (no Python of its own, say)."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.replies, selectors.EVENT_READ)
            return bool(selector.select(_START_S)) and self.replies.readline() == _READY

    def give(self, waiting: list[int], files: Sequence[File]) -> None:
        """Let it read the next file, if one is left."""
        self.at = waiting.pop() if waiting else None
        if self.at is not None:
            self._say([os.fspath(files[self.at].path), files[self.at].name])

    def answer(self, file: File) -> Found | None:
        """Take what it found; None if that cannot be sent."""
        head = self.replies.readline()
        if not head.endswith(b"\n"):
            raise self._ended(file)
        kind, size, told = json.loads(head)
        rows = self.replies.read(size)
        if len(rows) < size:
            raise self._ended(file)
        return _unpacked(kind, told, rows)

    def _ended(self, file: File) -> InputError:
        code = self.process.wait()
        why = f"signal {-code}; the memory may not suffice" if code < 0 else f"exit {code}"
        return InputError(
            f"{file.path}: the process that read it was ended ({why}). Read this file by itself, "
            "or less of it."
        )

    def _say(self, what: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # it was ended: there will be no answer
            self.jobs.write(json.dumps(what).encode() + b"\n")
            self.jobs.flush()

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.jobs.close()
        self.replies.close()
        self.process.wait()


@contextmanager
def _children(number: int, among: Sequence[Format] | None) -> Iterator[list[_Child]]:
    """Start processes; yields those that are ready, and ends them."""
    names = None if among is None else [one.name for one in among]
    started: list[_Child] = []
    try:
        with contextlib.suppress(OSError):  # the system gives no more processes
            for _ in range(number):
                started.append(_Child(names))  # noqa: PERF401 - what was started is to be ended
        yield [child for child in started if child.is_ready()]
    finally:
        for child in started:
            child.end()


def main() -> None:
    """Read the files that the parent names, until it names no more."""
    # Who presses Ctrl-C ends the parent, which ends this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a reader may print must not come between the answers.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs = sys.stdin.buffer
    names = json.loads(jobs.readline())
    known = {one.name: one for one in formats()}
    among = None if names is None else [known[name] for name in names]
    replies.write(_READY)
    replies.flush()
    for job in jobs:
        path, name = json.loads(job)
        try:
            kind, told, rows = _packed(look(Path(path), name, among))
        except Exception:  # an error of the reader: the parent meets it by itself
            kind, told, rows = "again", {}, b""
        replies.write(json.dumps([kind, len(rows), told]).encode() + b"\n" + rows)
        replies.flush()


def _packed(found: Found) -> tuple[str, dict[str, Any], bytes]:
    if isinstance(found, Skipped):
        return "skipped", asdict(found), b""
    if isinstance(found, Along):
        return "along", asdict(found), b""
    content = io.BytesIO()
    found.rows.write_ipc(content)
    told = {
        "formats": found.formats,
        "files": found.files,
        "dropped": [asdict(one) for one in found.dropped],
        "skipped": [asdict(one) for one in found.skipped],
        "notes": found.notes,
        "along": found.along,
    }
    # A graph is made when it is asked for: it stays in the process that read the file.
    return "output" if found.graph is None else "graph", told, content.getvalue()


def _unpacked(kind: str, told: dict[str, Any], rows: bytes) -> Found | None:
    if kind == "again":
        return None
    if kind == "skipped":
        return Skipped(**told)
    if kind == "along":
        return Along(**told)
    import polars as pl

    return Output(
        rows=pl.read_ipc(rows),
        formats=tuple(told["formats"]),
        files=tuple(told["files"]),
        dropped=tuple(
            Dropped(one["reason"], one["n"], tuple(one["rows"])) for one in told["dropped"]
        ),
        skipped=tuple(Skipped(**one) for one in told["skipped"]),
        notes=tuple(told["notes"]),
        graph=not_here if kind == "graph" else None,
        along=tuple(told["along"]),
    )


def not_here() -> dict[str, Any]:
    """Stand for the graph of a file that another process read."""
    raise RuntimeError("the graph is in the process that read the file: read it again in this one")
