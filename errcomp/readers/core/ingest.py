"""Reading files, folders and archives of tool output into one result."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import file_digest
from itertools import combinations
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from errcomp.errors import InputError
from errcomp.readers.core.output import Output, Skipped
from errcomp.readers.core.parallel import (
    Along,
    File,
    Outcome,
    look,
    not_here,
    processes_for,
    read_files,
)
from errcomp.readers.core.registry import Format, read_source, recognise
from errcomp.readers.core.source import Source, files_readable, refuse_special
from errcomp.system.processes import Progress
from errcomp.tables.units import factor

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AnyPath", "ingest", "read_as"]

AnyPath = str | os.PathLike[str]
Said = TypeVar("Said")
#: Files that are named one by one where they say the same.
_FILES = 5


def ingest(
    path: AnyPath | Sequence[AnyPath],
    *,
    among: Sequence[Format] | None = None,
    progress: Progress | None = None,
) -> Output:
    r"""Read the output of tools: a file, or all recognised files of a folder or an archive.

    Parameters
    ----------
    path : path or sequence of paths
        Each file is recognised by its content; compressed files are unpacked. Several files and
        folders are read like one folder that holds them.
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
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(one) for one in path]
    with files_readable():
        for path in paths:
            refuse_special(path)
            if not path.exists():
                raise InputError(f"{path}: no such file or folder. Check the path.")
        if len(paths) != 1:
            return _several(paths, among, progress)
        path = paths[0]
        if path.is_dir() and recognise(Source(path), among):
            return read_source(Source(path), among)
        if path.is_dir():
            return _folder(path, str(path), among, progress)
        from errcomp.readers.core.archives import is_archive, unpacked  # it loads much

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


def _several(
    paths: Sequence[Path], among: Sequence[Format] | None, progress: Progress | None
) -> Output:
    """Read files and folders; their names begin at the folder that they share."""
    absolute = list(dict.fromkeys(Path(os.path.normpath(path.absolute())) for path in paths))
    if not absolute:
        raise InputError("no path was given. Name a file or a folder.")
    shared = Path(os.path.commonpath([path.parent for path in absolute]))
    skipped: list[Skipped] = []
    files: list[Path] = []
    for path in absolute:
        if path.is_dir() and recognise(Source(path), among):
            raise InputError(f"{path}: cannot be read together with other paths. Give it alone.")
        files += _files(path, shared, skipped) if path.is_dir() else [path]
    return _together(list(dict.fromkeys(files)), shared, "the paths", skipped, among, progress)


def _folder(
    folder: Path, name: str, among: Sequence[Format] | None, progress: Progress | None
) -> Output:
    skipped: list[Skipped] = []
    paths = _files(folder, folder, skipped)
    return _together(paths, folder, name, skipped, among, progress)


def _together(
    paths: Sequence[Path],
    folder: Path,
    name: str,
    skipped: list[Skipped],
    among: Sequence[Format] | None,
    progress: Progress | None,
) -> Output:
    """Read files below a folder as one output; ``name`` is the name of all in messages."""
    files = [File(path, path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths]
    outcomes = _read_each(files, among, progress)
    outputs = [outcome for outcome in outcomes if isinstance(outcome, Output)]
    skipped += [outcome for outcome in outcomes if isinstance(outcome, Skipped)]
    along = [(outcome.name, outcome.whole) for outcome in outcomes if isinstance(outcome, Along)]
    read = {format_name for output in outputs for format_name in output.formats}
    for shown, whole in along:
        if whole not in read:
            skipped.append(
                Skipped(shown, f"is read only with a file of the format {whole}, which is missing")
            )
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


def _files(folder: Path, named_from: Path, skipped: list[Skipped]) -> list[Path]:
    """Return the files below a folder by name; unreadable folders are skipped."""

    def closed(error: OSError) -> None:
        shown = Path(error.filename).relative_to(named_from).as_posix()
        skipped.append(Skipped(shown, f"cannot be read ({error.strerror})"))

    walk = os.walk(folder, onerror=closed)
    paths = sorted(Path(parent) / name for parent, _, names in walk for name in names)
    skipped += [
        Skipped(path.relative_to(named_from).as_posix(), "a pipe, a device or a broken link")
        for path in paths
        if not path.is_file()
    ]
    return [path for path in paths if path.is_file()]


def _merged(outputs: Sequence[Output], skipped: Sequence[Skipped]) -> Output:
    import polars as pl

    if len(outputs) == 1:
        return replace(outputs[0], skipped=(*outputs[0].skipped, *skipped))
    frames = [output.rows.with_columns(file=pl.lit(output.files[0])) for output in outputs]
    named = _name_runs(frames)
    notes = _by_text((note, output.files[0], note) for output in outputs for note in output.notes)
    drops = _by_text(
        (drop.reason, output.files[0], drop) for output in outputs for drop in output.dropped
    )
    return Output(
        rows=pl.concat(named, how="diagonal_relaxed"),
        formats=tuple(dict.fromkeys(name for output in outputs for name in output.formats)),
        files=tuple(name for output in outputs for name in output.files),
        dropped=tuple(
            replace(one[0], reason=reason, n=sum(drop.n for drop in one), rows=one[0].rows)
            for reason, one in drops
        ),
        skipped=tuple(skipped),
        notes=(*dict.fromkeys(note for note, _ in notes), *same_captures(outputs)),
    )


def _by_text(found: Iterable[tuple[str, str, Said]]) -> list[tuple[str, list[Said]]]:
    """Put the name of its file before each text; what many files say is written once."""
    by_text: dict[str, list[tuple[str, Said]]] = {}
    every = list(found)
    for text, file, what in every:
        by_text.setdefault(text, []).append((file, what))
    told = []
    for text, file, what in every:
        if len(by_text.get(text, ())) <= _FILES:
            if text in by_text:
                told.append((f"{file}: {text}", [what]))
            continue
        all_of_it = by_text.pop(text)
        files = f"{file} and {len(all_of_it) - 1:,} more files"
        told.append((f"{files}: {text}", [what for _, what in all_of_it]))
    return told


def _name_runs(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Name runs after their file if two files have runs of the same name."""
    import polars as pl

    runs = [
        set(frame["run"].drop_nulls().unique().to_list()) if "run" in frame.columns else set()
        for frame in frames
    ]
    times = Counter(run for some in runs for run in some)
    twice = {run for run, n in times.items() if n > 1}
    return [
        frame
        if not some & twice
        else frame.with_columns(run=pl.col("file") + ":" + pl.col("run").cast(pl.String))
        for frame, some in zip(frames, runs, strict=True)
    ]


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
        f"{', '.join(names)} hold the same kernels with the same times, so they are probably "
        f"exports of one profile{more}. Together, they count each kernel more than once. Keep one: "
        f"--where file={names[0]}.",
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
        "rows are counted once per copy. Do not test a model on one copy after training it on "
        "another."
        for names in copies.values()
        if len(names) > 1
    )


def _and_more(names: Sequence[str]) -> str:
    return f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
