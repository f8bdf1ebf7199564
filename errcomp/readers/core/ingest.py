"""Reading files, folders and archives of tool output into one result."""

from __future__ import annotations

import contextlib
import io
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import file_digest
from itertools import combinations
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from errcomp.errors import InputError
from errcomp.readers.core.archives import is_archive, unpacked
from errcomp.readers.core.output import Output, Skipped
from errcomp.readers.core.registry import Format, formats, read_source, recognise
from errcomp.readers.core.source import Source, files_readable
from errcomp.results import Dropped
from errcomp.system.processes import Progress
from errcomp.tables.units import factor

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AnyPath", "ingest", "read_as"]

AnyPath = str | os.PathLike[str]


def ingest(
    path: AnyPath,
    *,
    among: Sequence[Format] | None = None,
    progress: Progress | None = None,
) -> Output:
    r"""Read the output of tools: a file, or all recognised files of a folder or an archive.

    Parameters
    ----------
    path : path
        Each file is recognised by its content; compressed files are unpacked.
    among : sequence of Format, optional
        Only these formats.
    progress : callable, optional
        Called with the bytes read, and the total.

    Returns
    -------
    Output
        For several files, ``rows`` has a column ``file``; a run that occurs in two files is named
        after its file. ``skipped`` lists the files that were not read, with the reason.

    Raises
    ------
    InputError
        Nothing could be read: the message gives the reasons for the first files.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "astra.log"
    >>> _ = path.write_text(
    ...     "sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    >>> ingest(path).rows["quantity"].unique().sort().to_list()
    ['exposed communication', 'time']
    """
    path = Path(path)
    with files_readable():
        if not path.exists():
            raise InputError(f"{path}: no such file or folder. Check the path.")
        if path.is_dir() and recognise(Source(path), among):
            return read_source(Source(path), among)
        if path.is_dir():
            return _folder(path, str(path), among, progress)
        if is_archive(path):
            with unpacked(path) as (folder, left_out):
                output = _folder(folder, str(path), among, progress)
            reason = "a link or a special file in an archive"
            skipped = tuple(Skipped(name, reason) for name in left_out)
            return replace(output, skipped=(*output.skipped, *skipped))
    return read_source(Source(path), among)


def read_as(path: AnyPath, among: Sequence[Format]) -> Output:
    r"""Read a file, or all files of a folder or archive, as the output of one tool.

    Raises
    ------
    InputError
        No file is in one of the formats.

    Examples
    --------
    >>> import tempfile
    >>> from errcomp.readers.core.registry import formats_of
    >>> path = Path(tempfile.mkdtemp()) / "astra.log"
    >>> _ = path.write_text(
    ...     "sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    >>> read_as(path, formats_of("ASTRA-sim")).rows["predicted"].to_list()
    [1200.0, 300.0]
    """
    return ingest(path, among=among)


def _folder(
    folder: Path, name: str, among: Sequence[Format] | None, progress: Progress | None
) -> Output:
    skipped: list[Skipped] = []
    paths = _files(folder, skipped)
    files = [File(path, path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths]
    outcomes = _read_each(files, among, progress)
    outputs = [outcome for outcome in outcomes if isinstance(outcome, Output)]
    skipped += [outcome for outcome in outcomes if isinstance(outcome, Skipped)]
    along = [(outcome.name, outcome.whole) for outcome in outcomes if isinstance(outcome, Along)]
    read = {format_name for output in outputs for format_name in output.formats}
    for shown, whole in along:
        if whole not in read:
            skipped.append(Skipped(shown, f"belongs to files of {whole}, which are missing"))
    if not outputs:
        first = "; ".join(f"{skip.name}: {skip.reason}" for skip in skipped[:3])
        more = f" (and {len(skipped) - 3} more files)" if len(skipped) > 3 else ""
        raise InputError(f"{name}: no file in it could be read. {first or 'It is empty'}{more}")
    known = tuple(shown for shown, whole in along if whole in read)
    merged = _merged(outputs, skipped)
    values = [
        (file.name, file.path)
        for file, outcome in zip(files, outcomes, strict=True)
        if isinstance(outcome, Output)
    ]
    return replace(merged, along=known, notes=(*merged.notes, *same_bytes(values)))


def _read_each(
    files: Sequence[File], among: Sequence[Format] | None, progress: Progress | None
) -> list[Outcome]:
    """Read each file, in parallel if that is faster, with the same result."""
    done: dict[int, Outcome] = {}
    if (processes := processes_for(files, among)) > 1:
        done = read_files(files, among, processes, progress)
        outputs = [(at, outcome) for at, outcome in done.items() if isinstance(outcome, Output)]
        if len(outputs) == 1 and outputs[0][1].graph is not_here:
            del done[outputs[0][0]]
    so_far, total = sum(files[at].size for at in done), sum(file.size for file in files)
    for at, file in enumerate(files):
        if at in done:
            continue
        done[at] = look(file.path, file.name, among)
        so_far += file.size
        if progress is not None:
            progress(so_far, total)
    return [done[at] for at in range(len(files))]


def _files(folder: Path, skipped: list[Skipped]) -> list[Path]:
    """Return the files below a folder by name; unreadable folders are skipped."""

    def closed(error: OSError) -> None:
        shown = Path(error.filename).relative_to(folder).as_posix()
        skipped.append(Skipped(shown, f"cannot be read ({error.strerror})"))

    walk = os.walk(folder, onerror=closed)
    paths = (Path(parent) / name for parent, _, names in walk for name in names)
    return sorted(path for path in paths if path.is_file())


def _merged(outputs: Sequence[Output], skipped: Sequence[Skipped]) -> Output:
    import polars as pl

    if len(outputs) == 1:
        return replace(outputs[0], skipped=(*outputs[0].skipped, *skipped))
    frames = [output.rows.with_columns(file=pl.lit(output.files[0])) for output in outputs]
    named = _name_runs(frames)
    notes = dict.fromkeys(
        f"{output.files[0]}: {note}" if len(outputs) > 1 else note
        for output in outputs
        for note in output.notes
    )
    return Output(
        rows=pl.concat(named, how="diagonal_relaxed"),
        formats=tuple(dict.fromkeys(name for output in outputs for name in output.formats)),
        files=tuple(name for output in outputs for name in output.files),
        dropped=tuple(
            replace(drop, reason=f"{output.files[0]}: {drop.reason}")
            for output in outputs
            for drop in output.dropped
        ),
        skipped=tuple(skipped),
        notes=(*notes, *same_captures(outputs)),
    )


def _name_runs(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Name runs after their file if two files have runs of the same name."""
    import polars as pl

    runs = [
        set(frame["run"].drop_nulls().unique().to_list()) if "run" in frame.columns else set()
        for frame in frames
    ]
    every = [run for some in runs for run in some]
    twice = (
        {run for run in every if every.count(run) > 1} if len(every) > len(set(every)) else set()
    )
    return [
        frame
        if not some & twice
        else frame.with_columns(run=pl.col("file") + ":" + pl.col("run").cast(pl.String))
        for frame, some in zip(frames, runs, strict=True)
    ]


# One file of a folder: read, skipped with a reason, or read together with another.

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
    source = Source(path, name=name)
    try:
        if not is_data(path):
            return Skipped(name, "not a tool's output, according to its name")
        if is_archive(path):
            return Skipped(name, "an archive: give it on its own")
        if not source.head.strip():
            return Skipped(name, "empty: the run may have failed")
        possible = recognise(source, among)
        if len(possible) == 1 and possible[0].part_of:
            return Along(name, possible[0].part_of)
        return read_source(source, among)
    except InputError as error:
        return Skipped(name, str(error).removeprefix(f"{name}: "))


# Several large files of a folder, read in parallel by processes.
#
# Each process is a separate Python that reads one file after the other. It receives paths, one
# JSON line each, and answers with a JSON line and the rows in Arrow's format: nothing executable.
# Python's ``multiprocessing`` would import the user's own script in each process.

#: Memory that a process needs, as a multiple of the size of its file.
_MOST = 2
#: Bytes, without the largest file, that take longer to read than processes to start.
_PAYS = 32 << 20
_GZIP, _UNPACKED = b"\x1f\x8b", 10
_START_S = 30.0
_READY = b"ready\n"
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from errcomp.readers.core.ingest import main; main()"
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
    if file.size * _UNPACKED < _PAYS // 100:  # small files are not opened
        return file.size
    try:
        with file.path.open("rb") as content:
            return file.size * (_UNPACKED if content.read(2) == _GZIP else 1)
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
        result (an error in a reader) cannot be sent.

    Raises
    ------
    InputError
        A process was killed while it read a file.
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
        self._send(names)

    def is_ready(self) -> bool:
        """Wait until it has loaded the readers; False if it cannot (no Python of its own, say)."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.replies, selectors.EVENT_READ)
            return bool(selector.select(_START_S)) and self.replies.readline() == _READY

    def give(self, waiting: list[int], files: Sequence[File]) -> None:
        """Let it read the next file, if any is left."""
        self.at = waiting.pop() if waiting else None
        if self.at is not None:
            self._send([os.fspath(files[self.at].path), files[self.at].name])

    def answer(self, file: File) -> Outcome | None:
        """Return its result; None if that cannot be sent."""
        head = self.replies.readline()
        if not head.endswith(b"\n"):
            raise self._ended(file)
        kind, size, described = json.loads(head)
        rows = self.replies.read(size)
        if len(rows) < size:
            raise self._ended(file)
        return _unpacked(kind, described, rows)

    def _ended(self, file: File) -> InputError:
        code = self.process.wait()
        why = f"signal {-code}; memory may have run out" if code < 0 else f"exit {code}"
        return InputError(
            f"{file.path}: the process that read it was killed ({why}). Load this file on its own, "
            "or only part of it."
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
    names = json.loads(jobs.readline())
    known = {entry.name: entry for entry in formats()}
    among = None if names is None else [known[name] for name in names]
    replies.write(_READY)
    replies.flush()
    for job in jobs:
        path, name = json.loads(job)
        try:
            kind, described, rows = _packed(look(Path(path), name, among))
        except Exception:  # a bug in the reader: the parent raises it itself
            kind, described, rows = "again", {}, b""
        replies.write(json.dumps([kind, len(rows), described]).encode() + b"\n" + rows)
        replies.flush()


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
        "the graph is only in the process that read the file: load the file in this process"
    )


# Duplicated files: copies, and several exports of one capture of a profiler.

#: More files than this with the same times are not exports of one capture.
_MOST_NAMED = 8
#: Number of copies of a file that a note names; it counts the others.
_NAMED = 3


class _Kernel(NamedTuple):
    tool: str
    folder: str
    name: str
    instances: float
    total: str


def same_captures(outputs: Sequence[Output]) -> tuple[str, ...]:
    """Return a note about files in one folder that hold the same kernels with the same times.

    They are from one tool, in two formats, or once with one row per launch and once with sums. Most
    kernels of the shorter file agree in their number of executions and their total time (to four
    digits: some files are rounded).
    """
    rows = [_kernels(output) for output in outputs]
    having: dict[_Kernel, list[int]] = defaultdict(list)
    for i, kernels in enumerate(rows):
        for kernel in kernels:
            having[kernel].append(i)
    alike: Counter[tuple[int, int]] = Counter()
    for kernel, files in having.items():
        if len(files) <= _MOST_NAMED:
            alike.update(
                (i, j)
                for i, j in combinations(files, 2)
                if outputs[i].formats != outputs[j].formats or rows[i][kernel] != rows[j][kernel]
            )
    pairs = [
        pair for pair, n in alike.items() if 2 * n > min(len(rows[pair[0]]), len(rows[pair[1]]))
    ]
    if not pairs:
        return ()
    first = min(pairs)[0]
    same = [first, *(j for i, j in sorted(pairs) if i == first)]
    names = [outputs[i].files[0] for i in same]
    others = len({PurePath(outputs[i].files[0]).parent for i, _ in pairs}) - 1
    more = f" (here and in {others:,} more folder{'s'[: others > 1]})" if others else ""
    return (
        f"{', '.join(names)} hold the same kernels with the same times, like exports of one "
        f"capture{more}: loaded together, they count each kernel more than once. Keep one: --where "
        f"file={names[0]}.",
    )


def _kernels(output: Output) -> dict[_Kernel, int]:
    """Return the number of rows of each measured kernel of a file."""
    import polars as pl

    if "kernel" not in output.rows.columns:
        return {}
    of_kernel = (pl.col("level") == "kernel") & (pl.col("quantity") == "time")
    count = pl.col("count") if "count" in output.rows.columns else pl.lit(1)
    totals = (
        output.rows.filter(of_kernel & pl.col("measured").is_not_null())
        # A count may be text in a damaged file.
        .with_columns(count=count.cast(pl.Float64, strict=False).fill_null(1))
        .group_by("tool", "kernel", "unit")
        .agg(
            pl.len().alias("rows"),
            pl.col("count").sum(),
            total=(pl.col("measured") * pl.col("count")).sum(),
        )
    )
    folder = str(PurePath(output.files[0]).parent)
    counts = {}
    for tool, kernel, unit, rows, instances, total in totals.iter_rows():
        try:
            scale = factor(unit, "ns")
        except InputError:
            continue
        counts[_Kernel(tool, folder, kernel, instances, f"{total * scale:.4g}")] = rows
    return counts


def same_bytes(files: Sequence[tuple[str, Path]]) -> tuple[str, ...]:
    """Return a note about files, given by name and path, that are copies of each other."""
    by_size: dict[int, list[tuple[str, Path]]] = defaultdict(list)
    for name, path in files:
        by_size[path.stat().st_size].append((name, path))
    copies: dict[bytes, list[str]] = defaultdict(list)
    for some in by_size.values():
        if len(some) > 1:
            for name, path in some:
                with path.open("rb") as content:
                    copies[file_digest(content, "sha256").digest()].append(name)
    return tuple(
        f"{' and '.join(names[:_NAMED])}{_and_more(names)} are byte-for-byte the same file: their "
        "rows are counted once per copy. A model trained on one copy and tested on another has not "
        "been tested."
        for names in copies.values()
        if len(names) > 1
    )


def _and_more(names: Sequence[str]) -> str:
    return f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
