"""Files of a folder: each is read, or skipped with a reason, here or in a process of its own.

Each process is a separate Python that reads one file after the other. It receives paths, one JSON
line each, and answers with a JSON line and the rows in Arrow's format: nothing executable. Python's
``multiprocessing`` would import the user's own script in each process.
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
from errcomp.readers.core.output import Output, Skipped
from errcomp.readers.core.registry import Format, formats, read_source, recognise
from errcomp.readers.core.source import PACKED, UNPACKED_TIMES, Source
from errcomp.results import Dropped
from errcomp.system.limits import current, limits

#: Suffixes of files that are not results.
_NOT_DATA = (".md", ".rst", ".py", ".ipynb", ".sh", ".png", ".pdf", ".svg", ".html", ".gitignore")


@dataclass(frozen=True, slots=True)
class Along:
    """A file that belongs to files of the format ``whole``."""

    name: str
    whole: str


Outcome = Output | Skipped | Along


def is_data(path: Path) -> bool:
    """Say whether a file may be the output of a tool, by its name."""
    return not path.name.startswith(".") and path.suffix.lower() not in _NOT_DATA


def look(path: Path, name: str, among: Sequence[Format] | None) -> Outcome:
    """Read a file, or say why not; ``name`` is its name in messages."""
    from errcomp.readers.core.archives import is_archive

    source = Source(path, name=name)
    try:
        if not is_data(path):
            return Skipped(name, "not a tool's output, according to its name")
        if is_archive(path):
            return Skipped(name, "an archive: read it on its own")
        if not source.head.strip():
            return Skipped(name, "empty: the run may have failed")
        possible = recognise(source, among)
        if len(possible) == 1 and possible[0].part_of:
            return Along(name, possible[0].part_of)
        return read_source(source, among, possible)
    except InputError as error:
        return Skipped(name, str(error).removeprefix(f"{name}: "))


# Several large files, read by processes.

#: Processes at most: each needs several times the size of its file in memory.
_MOST = 2
#: Bytes, without the largest file, that take longer to read than processes to start.
_PAYS = 32 << 20
_START_S = 30.0
_READY = b"ready\n"
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from errcomp.readers.core.parallel import main; main()"
)


@dataclass(frozen=True, slots=True)
class File:
    """A file of a folder; ``name`` is its name in messages."""

    path: Path
    name: str
    size: int


def processes_for(files: Sequence[File], among: Sequence[Format] | None) -> int:
    """Return the number of processes worth starting; below 2, read the files in this process."""
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
    if file.size * UNPACKED_TIMES < _PAYS // 100:  # small files are not opened
        return file.size
    try:
        with file.path.open("rb") as content:
            packed = content.read(max(map(len, PACKED))).startswith(PACKED)
            return file.size * (UNPACKED_TIMES if packed else 1)
    except OSError:  # reading it reports the error
        return file.size


def read_files(
    files: Sequence[File],
    among: Sequence[Format] | None,
    processes: int,
    progress: Callable[[float, float], None] | None = None,
) -> dict[int, Outcome]:
    """Read files in processes; the caller reads those without a result.

    Returns
    -------
    dict of int to Outcome
        By position in ``files``. A file is missing if no process could be started, or if its
        result (an error in a reader) cannot be sent. A file whose process was killed is skipped.
    """
    # Largest first, so that no process ends late with a large file.
    waiting = sorted(range(len(files)), key=lambda i: (files[i].size, -i))
    outcomes: dict[int, Outcome] = {}
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
                outcomes[at] = answer
                done += files[at].size
                if progress is not None:
                    progress(done, total)
    return outcomes


class _Child:
    """A process that reads files, and the file it is reading."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self.at: int | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CODE, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.jobs = cast("IO[bytes]", self.process.stdin)
        self.replies = cast("IO[bytes]", self.process.stdout)
        self._send([names, asdict(current())])

    def is_ready(self) -> bool:
        """Wait until it has loaded the readers; False if it cannot (no Python of its own, say)."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.replies, selectors.EVENT_READ)
            return bool(selector.select(_START_S)) and self.replies.readline() == _READY

    def give(self, waiting: list[int], files: Sequence[File]) -> None:
        """Let it read the next file, if any is left."""
        self.at = waiting.pop() if waiting and self.process.returncode is None else None
        if self.at is not None:
            self._send([os.fspath(files[self.at].path), files[self.at].name])

    def answer(self, file: File) -> Outcome | None:
        """Return its result; None if that cannot be sent."""
        head = self.replies.readline()
        if not head.endswith(b"\n"):
            return self._ended(file)
        kind, size, described = json.loads(head)
        rows = self.replies.read(size)
        if len(rows) < size:
            return self._ended(file)
        return _unpacked(kind, described, rows)

    def _ended(self, file: File) -> Skipped:
        code = self.process.wait()
        why = f"signal {-code}; memory may have run out" if code < 0 else f"exit {code}"
        return Skipped(
            file.name,
            f"the process that was reading it was killed ({why}). Load this file on its own, or "
            "only part of it.",
        )

    def _send(self, message: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # it was killed: no answer will come
            self.jobs.write(json.dumps(message).encode() + b"\n")
            self.jobs.flush()

    def end(self) -> None:
        """Stop it, whatever it is doing."""
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.jobs.close()
        self.replies.close()
        self.process.wait()


@contextmanager
def _children(number: int, among: Sequence[Format] | None) -> Iterator[list[_Child]]:
    """Start processes; yield those that are ready, and stop them at the end."""
    names = None if among is None else [entry.name for entry in among]
    started: list[_Child] = []
    try:
        with contextlib.suppress(OSError):  # no more processes are available
            for _ in range(number):
                started.append(_Child(names))  # noqa: PERF401 - all started processes must be stopped
        yield [child for child in started if child.is_ready()]
    finally:
        for child in started:
            child.end()


def main() -> None:
    """Read the files that the parent names, until there are no more."""
    # Ctrl-C stops the parent, which stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Output that a reader prints must not mix with the answers.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs = sys.stdin.buffer
    names, given = json.loads(jobs.readline())
    known = {entry.name: entry for entry in formats()}
    among = None if names is None else [known[name] for name in names]
    replies.write(_READY)
    replies.flush()
    with limits(**given):
        for job in jobs:
            path, name = json.loads(job)
            _confine(Path(path).stat().st_size)
            try:
                kind, described, rows = _packed(look(Path(path), name, among))
            except Exception:  # a bug outside of the readers: the parent raises it itself
                kind, described, rows = "again", {}, b""
            replies.write(json.dumps([kind, len(rows), described]).encode() + b"\n" + rows)
            replies.flush()


def _confine(size: int) -> None:
    """Let the system end this process if a file takes far more than others of its size."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + current().most_seconds(size)
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, current().most_memory(size)),
        # Later than the timer of `timed`, which gives a reason.
        (resource.RLIMIT_CPU, round(2 * seconds) + 10),
    ):
        _, hard = resource.getrlimit(kind)
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):  # not on every system
            resource.setrlimit(kind, (lower, hard))


def _packed(outcome: Outcome) -> tuple[str, dict[str, Any], bytes]:
    if isinstance(outcome, Skipped):
        return "skipped", asdict(outcome), b""
    if isinstance(outcome, Along):
        return "along", asdict(outcome), b""
    content = io.BytesIO()
    outcome.rows.write_ipc(content)
    described = {
        "formats": outcome.formats,
        "files": outcome.files,
        "dropped": [asdict(drop) for drop in outcome.dropped],
        "skipped": [asdict(skip) for skip in outcome.skipped],
        "notes": outcome.notes,
        "along": outcome.along,
    }
    # Graphs are built on demand, so they stay in the process that read the file.
    return "output" if outcome.graph is None else "graph", described, content.getvalue()


def _unpacked(kind: str, described: dict[str, Any], rows: bytes) -> Outcome | None:
    if kind == "again":
        return None
    if kind == "skipped":
        return Skipped(**described)
    if kind == "along":
        return Along(**described)
    import polars as pl

    return Output(
        rows=pl.read_ipc(rows),
        formats=tuple(described["formats"]),
        files=tuple(described["files"]),
        dropped=tuple(
            Dropped(drop["reason"], drop["n"], tuple(drop["rows"])) for drop in described["dropped"]
        ),
        skipped=tuple(Skipped(**skip) for skip in described["skipped"]),
        notes=tuple(described["notes"]),
        graph=not_here if kind == "graph" else None,
        along=tuple(described["along"]),
    )


def not_here() -> dict[str, Any]:
    """Raise in place of the graph of a file that another process read."""
    raise RuntimeError(
        "only the process that read the file has its graph: read the file in this process"
    )
