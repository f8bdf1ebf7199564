"""Sparseloop: stats files that count gated and skipped operations, and the artifact's tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, key, long
from errcomp.readers.core.values import number_at
from errcomp.readers.simulators.timeloop import (
    QUANTITIES,
    UNITS,
    is_sparse,
    is_stats,
    read_stats,
)

_PAIR = ("ground_truth_cycles", "sparseloop_cycles")
_TRUTH = re.compile(r"([^/:\s]+)\.txt:\s*CYC:\s*(\S+)\s*$")
_CYCLES = re.compile(
    r"([^/:\s]+)/(?:\S*/)?timeloop-(?:model|mapper)\.stats\.txt:\s*Cycles:\s*(\S+)\s*$"
)
_DENSITY = re.compile(r"[01]\.\d+:\s*$")
_AT_DENSITY = re.compile(r"\s+[01]\.\d+:\s*\d\S*\s*$")
_LAYER = re.compile(r"L\d+$")


def read(path: AnyPath) -> Output:
    r"""Read stats files of sparse designs, or the cycles compared in its artifact.

    Parameters
    ----------
    path : path
        ``timeloop-model.stats.txt`` of a design with sparse optimisations; the artifact's lists of
        cycles by layer (simulated, ground truth, both, or relative to the truth); its
        ``ground_truth`` by density; or a folder or archive of them.

    Returns
    -------
    Output
        For stats files, the rows of `errcomp.readers.simulators.timeloop.read`, and ``energy per
        algorithmic compute``. For lists, ``time`` in cycles by ``kernel`` (the layer): predicted,
        measured or both. The artifact's ground truth is not stated to be silicon.

    Raises
    ------
    InputError
        A file is cut off, or has text instead of a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ground_truth.txt"
    >>> _ = path.write_text("L01.txt:CYC: 1200\nL02.txt:CYC: 900\n")
    >>> read(path).rows.select("kernel", "measured", "unit").rows()
    [('L01', 1200.0, 'cycles'), ('L02', 900.0, 'cycles')]
    """
    return read_as(path, FORMATS)


_NOT_SILICON = (
    "The ground truth is for a single processing element, not for a chip, and the artifact does "
    "not state its source. errcomp reads it as the output of another simulator."
)
_HELD = "kernel: time (cycles)"
_tool = ToolFormats("Sparseloop", reference="simulator", sample="MICRO 2022 artifact")

_tool.reads(
    "sparseloop-stats",
    "timeloop-model.stats.txt, timeloop-mapper.stats.txt of a sparse design",
    "kernel",
    lambda source: is_stats(source) and is_sparse(source),
    quantities=QUANTITIES,
    units=UNITS,
    gives="predictions",
    reference=None,
    sample="MICRO 2022 artifact; timeloop-accelergy-exercises of 2024",
    limits="Files of designs without sparse optimisations are read as files of Timeloop.",
)(read_stats)


@_tool.reads(
    "sparseloop-pairs",
    "cycles by layer: simulated and ground truth",
    _HELD,
    ("layer", *_PAIR),
    gives="both",
    limits=_NOT_SILICON,
)
def _read_pairs(source: Source) -> Rows:
    sheet = source.sheet(("layer", *_PAIR))
    value = Value("time", "cycles", predicted=_PAIR[1], measured=_PAIR[0])
    keys = {"kernel": key(sheet, "layer")}
    return Rows(long(sheet, (value,), keys))


def _all_are(lines: Sequence[str], pattern: re.Pattern[str]) -> bool:
    some = [line for line in lines if line.strip()]
    return bool(some) and all(pattern.match(line) for line in some)


def _read_list(source: Source, pattern: re.Pattern[str], side: str) -> Rows:
    rows = []
    for i, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        match = pattern.match(line)
        if match is None:
            raise source.error(
                f"{line[:60]!r} differs in form from the lines above. The file may be incomplete: "
                "copy it again.",
                line=i,
            )
        value = number_at(source, "the cycles", match[2], i)
        rows.append({"kernel": match[1], side: value})
    return Rows(rows)


def _ratios(source: Source) -> bool:
    lines = [line for line in source.head_lines if line.strip()]
    if len(lines) != 3 or len(source.header) < 2:
        return False
    truth = {field.strip().strip('"') for field in lines[1].split(",")}
    return all(_LAYER.match(name) for name in source.header) and truth == {"1.0"}


_tool.reads(
    "sparseloop-truth",
    "ground_truth.txt",
    _HELD,
    lambda source: _all_are(source.head_lines, _TRUTH),
    gives="measurements",
    limits=_NOT_SILICON,
)(lambda source: _read_list(source, _TRUTH, "measured"))

_tool.reads(
    "sparseloop-cycles",
    "simulated.txt",
    _HELD,
    lambda source: _all_are(source.head_lines, _CYCLES),
    gives="predictions",
)(lambda source: _read_list(source, _CYCLES, "predicted"))


@_tool.reads(
    "sparseloop-ratios",
    "num_cycles.csv, relative to the ground truth",
    "kernel: time over truth (ratio)",
    _ratios,
    gives="both",
    limits="The ratios are rounded to three decimals: prefer the files with cycles.",
)
def _read_ratios(source: Source) -> Rows:
    sheet = source.sheet()
    if len(sheet) != 2:
        raise source.error(f"expected two rows, ground truth and ratios, got {len(sheet)}.")
    rows: list[dict[str, Any]] = []
    for layer in sheet.columns:
        measured, predicted = sheet.numbers(layer).tolist()
        rows.append({"kernel": layer, "predicted": predicted, "measured": measured})
    return Rows(rows)


def _densities(source: Source) -> bool:
    lines = [line for line in source.head_lines if line.strip() and not line.startswith("#")]
    return (
        len(lines) > 1
        and bool(_DENSITY.match(lines[0]))
        and all(_DENSITY.match(line) or _AT_DENSITY.match(line) for line in lines)
    )


@_tool.reads(
    "sparseloop-densities",
    "ground_truth yaml, cycles by density",
    _HELD,
    _densities,
    gives="measurements",
    limits="The file holds only ground truth, from a plot in another paper, which simulated its "
    "own design.",
)
def _read_densities(source: Source) -> Rows:
    rows = []
    content = source.yaml()
    for a, inner in content.items() if isinstance(content, dict) else ():
        for b, cycles in inner.items() if isinstance(inner, dict) else ():
            shares = all(isinstance(share, int | float) and 0 <= share <= 1 for share in (a, b))
            if not shares or not isinstance(cycles, int | float):
                raise source.error(
                    "expected cycles by density of A and density of B, got cycles "
                    f"{str(cycles)[:40]!r} at densities {str(a)[:40]!r} and {str(b)[:40]!r}. Copy "
                    "the file again."
                )
            measured = float(cycles) if abs(cycles) < 1e300 else float("inf")
            rows.append({"density_a": float(a), "density_b": float(b), "measured": measured})
    notes = ("The authors of the artifact read these values from a plot in a paper.",)
    return Rows(rows, notes=notes)


FORMATS = _tool.formats
