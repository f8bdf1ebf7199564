"""Files, folders and archives of tools' outputs, read into one result."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.readers._captures import same_bytes, same_captures
from errcomp.readers._decode import files_readable
from errcomp.readers._looking import Along, Found, look
from errcomp.readers._processes import File, not_here, processes_for, read_files
from errcomp.readers.archives import is_archive, unpacked
from errcomp.readers.output import Output, Skipped
from errcomp.readers.registry import Format, read_source, recognise
from errcomp.readers.source import Source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ingest"]

Progress = Callable[[float, float], None]


def ingest(
    path: str | os.PathLike[str],
    *,
    among: Sequence[Format] | None = None,
    progress: Progress | None = None,
) -> Output:
    r"""Read the output of tools: a file, or all files of a folder or an archive that are known.

    Parameters
    ----------
    path : path
        Each file is recognised by its content; compressed ones are unpacked.
    among : sequence of Format, optional
        Only these formats.
    progress : callable, optional
        Called with the bytes read and those of all files.

    Returns
    -------
    Output
        Of several files, ``rows`` has a column ``file``; a run that two of them have is named
        after its file. Files that were not read are in ``skipped``, with the reason.

    Raises
    ------
    InputError
        Nothing could be read: the message says why of the first files.

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
            raise InputError(f"{path}: there is no such file or folder. Check the path.")
        if path.is_dir() and recognise(Source(path), among):
            return read_source(Source(path), among)
        if path.is_dir():
            return _folder(path, str(path), among, progress)
        if is_archive(path):
            with unpacked(path) as (folder, left_out):
                found = _folder(folder, str(path), among, progress)
            reason = "a link, or no plain file, in an archive"
            skipped = tuple(Skipped(name, reason) for name in left_out)
            return replace(found, skipped=(*found.skipped, *skipped))
    return read_source(Source(path), among)


def _folder(
    folder: Path, name: str, among: Sequence[Format] | None, progress: Progress | None
) -> Output:
    skipped: list[Skipped] = []
    paths = _files(folder, skipped)
    files = [File(path, path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths]
    every = _each(files, among, progress)
    found = [one for one in every if isinstance(one, Output)]
    skipped += [one for one in every if isinstance(one, Skipped)]
    along = [(one.name, one.whole) for one in every if isinstance(one, Along)]
    read = {one for output in found for one in output.formats}
    for shown, whole in along:
        if whole not in read:
            skipped.append(Skipped(shown, f"belongs to {whole}, of which there is no file"))
    if not found:
        first = "; ".join(f"{one.name}: {one.reason}" for one in skipped[:3])
        more = f" (and {len(skipped) - 3} more files)" if len(skipped) > 3 else ""
        raise InputError(f"{name}: no file in it could be read. {first or 'It is empty'}{more}")
    known = tuple(shown for shown, whole in along if whole in read)
    merged = _merged(found, skipped)
    values = [
        (file.name, file.path)
        for file, one in zip(files, every, strict=True)
        if isinstance(one, Output)
    ]
    return replace(merged, along=known, notes=(*merged.notes, *same_bytes(values)))


def _each(
    files: Sequence[File], among: Sequence[Format] | None, progress: Progress | None
) -> list[Found]:
    """Read each file: several at the same time where that pays, with the same result."""
    done: dict[int, Found] = {}
    if (processes := processes_for(files, among)) > 1:
        done = read_files(files, among, processes, progress)
        outputs = [(at, one) for at, one in done.items() if isinstance(one, Output)]
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
    """Return the files below a folder by name; folders that are closed are skipped."""

    def closed(error: OSError) -> None:
        shown = Path(error.filename).relative_to(folder).as_posix()
        skipped.append(Skipped(shown, f"cannot be read ({error.strerror})"))

    walk = os.walk(folder, onerror=closed)
    found = (Path(parent) / name for parent, _, names in walk for name in names)
    return sorted(path for path in found if path.is_file())


def _merged(found: Sequence[Output], skipped: Sequence[Skipped]) -> Output:
    import polars as pl

    if len(found) == 1:
        return replace(found[0], skipped=(*found[0].skipped, *skipped))
    frames = [one.rows.with_columns(file=pl.lit(one.files[0])) for one in found]
    named = _own_runs(frames)
    notes = dict.fromkeys(
        f"{one.files[0]}: {note}" if len(found) > 1 else note for one in found for note in one.notes
    )
    return Output(
        rows=pl.concat(named, how="diagonal_relaxed"),
        formats=tuple(dict.fromkeys(name for one in found for name in one.formats)),
        files=tuple(name for one in found for name in one.files),
        dropped=tuple(
            replace(drop, reason=f"{one.files[0]}: {drop.reason}")
            for one in found
            for drop in one.dropped
        ),
        skipped=tuple(skipped),
        notes=(*notes, *same_captures(found)),
    )


def _own_runs(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Name runs after their file where two files have one of the same name."""
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
