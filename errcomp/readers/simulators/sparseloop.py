"""Sparseloop: stats files that count what is gated or skipped, and the tables of its artifact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from typing import Any

from errcomp.readers.core.keys import key
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import number_at
from errcomp.readers.core.wide import Value, long
from errcomp.readers.simulators.timeloop_stats import (
    QUANTITIES,
    UNITS,
    is_sparse,
    is_stats,
    read_stats,
)

__all__ = ["FORMATS", "read"]

_TOOL = "Sparseloop"
_PAIR = ("ground_truth_cycles", "sparseloop_cycles")
_TRUTH = re.compile(r"([^/:\s]+)\.txt:\s*CYC:\s*(\S+)\s*$")
_CYCLES = re.compile(
    r"([^/:\s]+)/(?:\S*/)?timeloop-(?:model|mapper)\.stats\.txt:\s*Cycles:\s*(\S+)\s*$"
)
_DENSITY = re.compile(r"[01]\.\d+:\s*$")
_AT_DENSITY = re.compile(r"\s+[01]\.\d+:\s*\d\S*\s*$")
_LAYER = re.compile(r"L\d+$")


def read(path: str | PathLike[str]) -> Output:
    r"""Read stats files of sparse designs, or the cycles that its artifact compares.

    Parameters
    ----------
    path : path
        ``timeloop-model.stats.txt`` of a design with sparse optimisations; the artifact's lists of
        cycles by layer (simulated, ground truth, both, or relative to the truth); its
        ``ground_truth`` by density. Or a folder or archive of them.

    Returns
    -------
    Output
        Of stats files what `errcomp.readers.simulators.timeloop.read` gives, and ``energy per
        algorithmic compute``. Of lists ``time`` in cycles by ``kernel`` (the layer): predicted,
        measured or both. What the artifact calls truth is not said to be silicon.

    Raises
    ------
    InputError
        A file is cut off, or has text where a number should be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ground_truth.txt"
    >>> _ = path.write_text("L01.txt:CYC: 1200\nL02.txt:CYC: 900\n")
    >>> read(path).rows.select("kernel", "measured", "unit").rows()
    [('L01', 1200.0, 'cycles'), ('L02', 900.0, 'cycles')]
    """
    return read_as(path, FORMATS)


def _stats(source: Source) -> bool:
    return is_stats(source) and is_sparse(source)


def _pairs(source: Source) -> bool:
    return "layer" in source.header and set(_PAIR) <= set(source.header)


def _read_pairs(source: Source) -> Output:
    sheet = source.sheet(("layer", *_PAIR))
    value = Value("time", "cycles", predicted=_PAIR[1], measured=_PAIR[0])
    keys = {"kernel": key(sheet, "layer")}
    return output(
        source.name, "sparseloop-pairs", long(sheet, (value,), keys, tool=_TOOL, level="kernel")
    )


def _all_are(lines: Sequence[str], pattern: re.Pattern[str]) -> bool:
    some = [line for line in lines if line.strip()]
    return bool(some) and all(pattern.match(line) for line in some)


def _truth(source: Source) -> bool:
    return _all_are(source.head_lines, _TRUTH)


def _cycles(source: Source) -> bool:
    return _all_are(source.head_lines, _CYCLES)


def _read_list(source: Source, name: str, pattern: re.Pattern[str], side: str) -> Output:
    rows = []
    for i, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        found = pattern.match(line)
        if found is None:
            raise source.error(
                f"{line[:60]!r} has another form than the lines above. The file may be cut off: "
                "copy it again.",
                line=i,
            )
        value = number_at(source, "the cycles", found[2], i)
        rows.append({**_ROW, "kernel": found[1], side: value})
    return output(source.name, name, rows)


_ROW = {"tool": _TOOL, "level": "kernel", "quantity": "time", "unit": "cycles"}


def _ratios(source: Source) -> bool:
    lines = [line for line in source.head_lines if line.strip()]
    if len(lines) != 3 or len(source.header) < 2:
        return False
    truth = {field.strip().strip('"') for field in lines[1].split(",")}
    return all(_LAYER.match(name) for name in source.header) and truth == {"1.0"}


def _read_ratios(source: Source) -> Output:
    sheet = source.sheet()
    if len(sheet) != 2:
        raise source.error(f"must have a row of truths and one of ratios, got {len(sheet)} rows.")
    common = {**_ROW, "quantity": "time over truth", "unit": "ratio"}
    rows: list[dict[str, Any]] = []
    for layer in sheet.columns:
        measured, predicted = sheet.numbers(layer).tolist()
        rows.append({**common, "kernel": layer, "predicted": predicted, "measured": measured})
    return output(source.name, "sparseloop-ratios", rows)


def _densities(source: Source) -> bool:
    lines = [line for line in source.head_lines if line.strip() and not line.startswith("#")]
    return (
        len(lines) > 1
        and bool(_DENSITY.match(lines[0]))
        and all(_DENSITY.match(line) or _AT_DENSITY.match(line) for line in lines)
    )


def _read_densities(source: Source) -> Output:
    rows = []
    content = source.yaml()
    for a, inner in content.items() if isinstance(content, dict) else ():
        for b, cycles in inner.items() if isinstance(inner, dict) else ():
            shares = all(isinstance(one, int | float) and 0 <= one <= 1 for one in (a, b))
            if not shares or not isinstance(cycles, int | float):
                raise source.error(
                    f"must hold cycles by density of A and density of B, got {str(cycles)[:40]!r} "
                    f"at {str(a)[:40]!r}, {str(b)[:40]!r}. Copy the file again."
                )
            measured = float(cycles) if abs(cycles) < 1e300 else float("inf")
            rows.append(
                {**_ROW, "density_a": float(a), "density_b": float(b), "measured": measured}
            )
    notes = ("Read off a figure of a paper by the authors of the artifact, as their comments say.",)
    return output(source.name, "sparseloop-densities", rows, notes=notes)


def _table(
    name: str, files: str, gives: Any, recognise: Any, read_table: Any, limits: str = ""
) -> Format:
    return Format(
        name=name,
        tool=_TOOL,
        files=files,
        levels=("kernel",),
        quantities=("time over truth",) if name == "sparseloop-ratios" else ("time",),
        units=("ratio",) if name == "sparseloop-ratios" else ("cycles",),
        gives=gives,
        reference="simulator",
        sample="MICRO 2022 artifact",
        recognise=recognise,
        read=read_table,
        limits=limits,
    )


_NOT_SILICON = (
    "The ground truth is of one processing element and no chip: taken for another simulator's. The "
    "artifact does not say where it comes from."
)
FORMATS = (
    Format(
        name="sparseloop-stats",
        tool=_TOOL,
        files="timeloop-model.stats.txt, timeloop-mapper.stats.txt of a sparse design",
        levels=("kernel",),
        quantities=QUANTITIES,
        units=UNITS,
        gives="predictions",
        sample="MICRO 2022 artifact; timeloop-accelergy-exercises of 2024",
        recognise=_stats,
        read=lambda source: read_stats(source, "sparseloop-stats", _TOOL),
        limits="A design without sparse optimisations gives the file of Timeloop, and is read as "
        "such.",
    ),
    _table(
        "sparseloop-pairs",
        "cycles by layer, simulated and truth",
        "both",
        _pairs,
        _read_pairs,
        _NOT_SILICON,
    ),
    _table(
        "sparseloop-truth",
        "ground_truth.txt",
        "measurements",
        _truth,
        lambda source: _read_list(source, "sparseloop-truth", _TRUTH, "measured"),
        _NOT_SILICON,
    ),
    _table(
        "sparseloop-cycles",
        "simulated.txt",
        "predictions",
        _cycles,
        lambda source: _read_list(source, "sparseloop-cycles", _CYCLES, "predicted"),
    ),
    _table(
        "sparseloop-ratios",
        "num_cycles.csv, relative to the truth",
        "both",
        _ratios,
        _read_ratios,
        "The ratios are rounded to three decimals: prefer the cycles.",
    ),
    _table(
        "sparseloop-densities",
        "ground_truth yaml, cycles by density",
        "measurements",
        _densities,
        _read_densities,
        "Truth only, read off a figure of another paper, whose design was simulated.",
    ),
)
