"""Files that say the same twice: copies, and what a profiler made of one capture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import file_digest
from itertools import combinations
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from errcomp._units import factor
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.readers.output import Output

__all__ = ["same_bytes", "same_captures"]

#: More files than are made of one capture have the same times for another reason.
_MOST = 8
#: As many copies of one file are named; the others are counted.
_NAMED = 3


class _Kernel(NamedTuple):
    tool: str
    folder: str
    name: str
    instances: float
    total: str


def same_captures(found: Sequence[Output]) -> tuple[str, ...]:
    """Return a note of files in one folder that hold the same kernels with the same times.

    They are of one tool, and either of two formats or once with a row for each launch and once
    with sums; most kernels of the shorter one agree in how often they ran and in their total time
    (to four digits: some files are rounded).
    """
    rows = [_kernels(one) for one in found]
    having: dict[_Kernel, list[int]] = defaultdict(list)
    for i, kernels in enumerate(rows):
        for kernel in kernels:
            having[kernel].append(i)
    alike: Counter[tuple[int, int]] = Counter()
    for kernel, files in having.items():
        if len(files) <= _MOST:
            alike.update(
                (i, j)
                for i, j in combinations(files, 2)
                if found[i].formats != found[j].formats or rows[i][kernel] != rows[j][kernel]
            )
    pairs = [
        pair for pair, n in alike.items() if 2 * n > min(len(rows[pair[0]]), len(rows[pair[1]]))
    ]
    if not pairs:
        return ()
    first = min(pairs)[0]
    names = [found[first].files[0], *(found[j].files[0] for i, j in sorted(pairs) if i == first)]
    others = len({PurePath(found[i].files[0]).parent for i, _ in pairs}) - 1
    more = f" (here and in {others:,} more folder{'s'[: others > 1]})" if others else ""
    return (
        f"{', '.join(names)} hold the same kernels with the same times, as files of one capture "
        f"do{more}: together they count each kernel again. Keep one: --where file={names[0]}.",
    )


def _kernels(one: Output) -> dict[_Kernel, int]:
    """Return in how many rows each measured kernel of a file stands."""
    import polars as pl

    if "kernel" not in one.rows.columns:
        return {}
    of_kernel = (pl.col("level") == "kernel") & (pl.col("quantity") == "time")
    count = pl.col("count") if "count" in one.rows.columns else pl.lit(1)
    totals = (
        one.rows.filter(of_kernel & pl.col("measured").is_not_null())
        # A count may be text where a file is damaged.
        .with_columns(count=count.cast(pl.Float64, strict=False).fill_null(1))
        .group_by("tool", "kernel", "unit")
        .agg(
            pl.len().alias("rows"),
            pl.col("count").sum(),
            total=(pl.col("measured") * pl.col("count")).sum(),
        )
    )
    folder = str(PurePath(one.files[0]).parent)
    found = {}
    for tool, kernel, unit, rows, instances, total in totals.iter_rows():
        try:
            scale = factor(unit, "ns")
        except InputError:
            continue
        found[_Kernel(tool, folder, kernel, instances, f"{total * scale:.4g}")] = rows
    return found


def same_bytes(files: Sequence[tuple[str, Path]]) -> tuple[str, ...]:
    """Return a note of the files, by name and path, that are copies of one another."""
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
        f"{' and '.join(names[:_NAMED])}{_more(names)} are the same file byte for byte: their "
        "rows are counted once for each. Where one was to train a model and another to test it, "
        "nothing was tested."
        for names in copies.values()
        if len(names) > 1
    )


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
