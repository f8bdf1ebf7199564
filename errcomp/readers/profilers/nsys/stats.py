"""Tables of ``nsys stats``: CSV, TSV or JSON, or columns of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core import Rows, Source
from errcomp.readers.core.sheet import Sheet, sheet_of
from errcomp.readers.core.values import decimal_comma, with_point

if TYPE_CHECKING:
    import polars as pl


Kind = Literal["trace", "sum", "other"]
_COLUMN = re.compile(r"((?:.*?\S)??)\s*(?:\(\s*((?:[^()]*[^()\s])?)\s*\))?")
_UNITS = {"ns": "ns", "nsec": "ns", "nanoseconds": "ns", "us": "us", "µs": "us", "μs": "us"}
_UNITS |= {"usec": "us", "ms": "ms", "msec": "ms", "s": "s", "sec": "s", "seconds": "s"}
#: Names of the columns in all versions, in lower case and without the unit.
_ALIASES = {
    "start": ("start", "kernel start"),
    "duration": ("duration", "kernel dur"),
    "correlation": ("corrid", "corr id", "correlation id"),
    "name": ("name", "kernel name", "operation"),
    "total": ("total time",),
    "count": ("instances", "kern inst", "count", "operations", "calls"),
    "average": ("avg", "average", "kavg"),
    "median": ("med", "median", "kmed"),
    "minimum": ("min", "minimum", "kmin"),
    "maximum": ("max", "maximum", "kmax"),
    "deviation": ("stddev", "kstddev"),
    "device": ("device", "devid"),
    "stream": ("strm", "stream"),
    "range": ("nvtx range",),
    "grid": ("gridxyz",),
    "block": ("blockxyz",),
    "size": ("bytes",),
    "category": ("category",),
}
_ALIASES |= {f"grid{axis}": (f"grd{axis}",) for axis in "xyz"}
_ALIASES |= {f"block{axis}": (f"blk{axis}",) for axis in "xyz"}
_WORDS = ("name", "device", "range", "grid", "block")
#: Columns of tables about the host only.
_HOST = frozenset(("num calls", "result", "style", "event name", "tid", "pid", "num gpu ops"))
#: Tables of MPI and the like count instances of calls, like tables of kernels.
_HOST |= {"source"}
#: Tables that list the same kernels, the best first; cuda_gpu_sum has kernels and copies.
_VARIANTS = ("by grid", "by name", "by launch", "by range")
_COPIES, _ALL = "copies", "all"
_RULE = re.compile(r"\s*-{2,}(?:\s+-{2,})+\s*")
#: The same within lines around each field (--format table).
_BOX = re.compile(r"\s*\+(?:-{2,}\+)+\s*")
_WORDS_OF_HEADERS = ("Duration", "Total", "Dur (", "Projected", "KAvg")
_ENDS = re.compile(r"\s*(?:Processing \[|SKIPPED|NOTICE|\[\d+/\d+\] |\*\* )")
_DEVICE = re.compile(r"(.*) \((\d+)\)")
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class _Header:
    """A header line of a table: the meaning and the unit of each column."""

    kind: Kind
    columns: Mapping[str, str]
    units: Mapping[str, str]


def kind_of(source: Source) -> Kind | None:
    """Return the subject of the tables in the head of a file; None without nsys tables."""
    if source.head.lstrip()[:1] == b"[":
        header = _header(source.json_names)
        return None if header is None else header.kind
    kinds = {header.kind for _, header in _headers(source.head_lines)}
    # The program's own output may exceed the head.
    if not kinds and "Collecting data..." in map(str.strip, source.head_lines):
        try:
            kinds = {header.kind for _, header in _headers(source.lines())}
        except InputError:
            return None
    order: tuple[Kind, ...] = ("trace", "sum", "other")
    return next((kind for kind in order if kind in kinds), None)


def read_tables(source: Source) -> Rows:
    """Read the traces of a file, or else the sums."""
    import polars as pl

    if source.head.lstrip()[:1] == b"[":
        return _of_json(source)
    lines = source.lines()
    headers = list(_headers(lines))
    kind = "trace" if any(header.kind == "trace" for _, header in headers) else "sum"
    variants = {_variant(header) for _, header in headers if header.kind == kind}
    chosen = _without_doubles(variants)
    notes = []
    if left_out := sum(header.kind != kind for _, header in headers):
        why = " or summarise the trace" if kind == "trace" else ""
        notes.append(
            f"Tables that are about the host{why} are left out: {left_out} of {len(headers)}."
        )
    if chosen < variants:
        notes.append(
            "Tables that list the same work as others are left out: "
            f"{', '.join(sorted(variants - chosen))}."
        )
    frames = []
    host = 0
    for place, (at, header) in enumerate(headers):
        if header.kind != kind or _variant(header) not in chosen:
            continue
        last = headers[place + 1][0] if place + 1 < len(headers) else len(lines)
        sheet = _sheet(source, lines[at:last], at + 1, header)
        if sheet is not None:
            sheet, gone = _of_gpu(sheet, header)
            host += gone
            frames.append(_rows(source, sheet, header))
    if not frames:
        raise source.error("a table has a header but no rows. Export it again.")
    return _output(pl.concat(frames, how="diagonal_relaxed"), host, notes)


def _output(frame: pl.DataFrame, host: int, notes: Sequence[str]) -> Rows:
    return Rows(frame, dropped={"calls on the host": host}, notes=notes)


def _of_json(source: Source) -> Rows:
    """Read a table as a list of objects, one for each row."""
    rows = source.json()
    header = _header(source.json_names)
    if not isinstance(rows, list) or header is None:
        raise source.error("not a list of rows with the columns of nsys stats. Export it again.")
    names = list(source.json_names)
    lines = [_SEPARATOR.join(names)]
    for number, row in enumerate(rows, start=1):
        fields = row if isinstance(row, dict) else {}
        missing = next((name for name in names if name not in fields), None)
        if missing is not None:
            raise source.error(f"row {number} has no {missing!r}. Export it again.")
        lines.append(_SEPARATOR.join(_field(row[name]) for name in names))
    sheet, host = _of_gpu(sheet_of(source.name, lines, separator=_SEPARATOR), header)
    return _output(_rows(source, sheet, header), host, [])


def _field(value: Any) -> str:
    """Return a value as a field of one line."""
    return "" if value is None else " ".join(str(value).replace('"', "'").split(_SEPARATOR))


def _of_gpu(sheet: Sheet, header: _Header) -> tuple[Sheet, int]:
    """Leave out calls of the host, which cuda_api_gpu_sum mixes with kernels."""
    if "category" not in header.columns:
        return sheet, 0
    texts = sheet.texts(header.columns["category"])
    host = np.array(["API" in text.upper() for text in texts], dtype=bool)
    return sheet.take(~host), int(host.sum())


def _variant(header: _Header) -> str:
    """Return the kind of a table about the GPU: what it lists, and how."""
    columns = header.columns
    if "category" in columns:
        return _ALL
    if "range" in columns:
        return "by range"
    if columns.get("start", "").startswith("Kernel") or not {"total", "start"} & set(columns):
        return "by launch"
    if columns["name"].startswith("Operation"):
        return _COPIES
    return "by grid" if {"grid", "gridx"} & set(columns) else "by name"


def _without_doubles(variants: set[str]) -> set[str]:
    """Return the variants to read, so that nothing is read twice."""
    kernels = [variant for variant in _VARIANTS if variant in variants]
    if kernels:
        return {kernels[0]} | variants & {_COPIES}
    return {_ALL} if _ALL in variants else variants


def _headers(lines: Sequence[str]) -> Iterator[tuple[int, _Header]]:
    """Yield the headers of tables with their lines; of repeated headers the first."""
    known = None
    for at, line in enumerate(lines):
        if not any(word in line for word in _WORDS_OF_HEADERS):
            continue
        under = lines[at + 1] if at + 1 < len(lines) else ""
        if _RULE.fullmatch(under) or _BOX.fullmatch(under):
            columns = _cells(line, _column_spans(under))
        elif ("," in line or "\t" in line) and line != known:
            separator = "," if "," in line else "\t"
            columns = [field.strip().strip('"') for field in line.split(separator)]
            known = line
        else:
            continue
        header = _header(columns)
        if header is not None:
            yield at, header


def _header(columns: Sequence[str]) -> _Header | None:
    parts: dict[str, tuple[str, str]] = {}
    for column in columns:
        match = _COLUMN.fullmatch(column)
        if match is not None:
            parts.setdefault(match[1].lower(), (column, match[2] or ""))
    named = {
        role: parts[name]
        for role, names in _ALIASES.items()
        if (name := next((alias for alias in names if alias in parts), None))
    }
    kind = _kind(set(parts), set(named))
    if kind is None:
        return None
    return _Header(
        kind,
        {role: column for role, (column, _) in named.items()},
        {role: unit for role, (_, unit) in named.items()},
    )


def _kind(columns: set[str], roles: set[str]) -> Kind | None:
    if "app time" in columns:
        return None  # a table of another profiler, which has more columns
    if columns >= {"kernel start", "kernel dur", "kernel name"}:
        return "trace"
    if {"start", "duration", "correlation", "name"} <= roles and not columns & _HOST:
        return "trace"
    if columns >= {"total time", "kern inst", "kernel name"} or columns >= {"kavg", "kernel name"}:
        return "sum"
    # OpenMP tables have the columns "Count" and "Name".
    counted = "instances" in columns or ("operation" in columns and "count" in roles)
    if {"total", "name"} <= roles and counted and not columns & _HOST:
        return "sum"
    counts = {"num calls", "instances", "count", "range", "range instances"}
    host = (
        (columns >= {"total time", "time"} and columns & counts)
        or columns >= {"start", "duration", "name", "result"}
        or columns >= {"projected start", "projected duration"}
        or columns >= {"total", "count", "operation", "avg"}
    )
    return "other" if host else None


def _column_spans(rule: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"-+", rule)]


def _cells(line: str, places: Sequence[tuple[int, int]]) -> list[str]:
    """Cut a line at the columns under the header's rule; the last column has no end."""
    inner = [line[start:end].strip() for start, end in places[:-1]]
    last = line[places[-1][0] :].rstrip()
    return [*inner, (last.removesuffix("|") if line.lstrip()[:1] == "|" else last).strip()]


def _sheet(source: Source, lines: Sequence[str], first_line: int, header: _Header) -> Sheet | None:
    """Return a table up to its end; None if it has no rows."""
    boxed = len(lines) > 1 and _BOX.fullmatch(lines[1]) is not None
    printed = boxed or (len(lines) > 1 and _RULE.fullmatch(lines[1]) is not None)
    last = 2 if printed else 1
    while last < len(lines) and lines[last].strip() and not _ENDS.match(lines[last]):
        if boxed and _BOX.fullmatch(lines[last]):
            break
        last += 1
    if last == (2 if printed else 1):
        return None
    if not printed:
        return sheet_of(source.name, lines[:last], first_line=first_line)
    places = _column_spans(lines[1])
    rows = [_cells(line.replace('"', "'"), places) for line in (lines[0], *lines[2:last])]
    words = {header.columns.get(role) for role in _WORDS}
    numbers = [i for i, column in enumerate(rows[0]) if column not in words]
    comma = decimal_comma(row[i] for row in rows[1:] for i in numbers)
    for row in rows[1:]:
        for i in numbers:
            row[i] = with_point(row[i], comma=comma)
    head, *joined = (_SEPARATOR.join(row) for row in rows)
    # An empty line in place of the rule keeps the numbers of lines.
    lines = [head, "", *joined]
    return sheet_of(source.name, lines, first_line=first_line, separator=_SEPARATOR)


def _unit(source: Source, header: _Header, role: str) -> str:
    """Return the unit of a column; tables without one are in ns."""
    unit = header.units.get(role) or header.units.get("total") or "ns"
    if unit.lower() not in _UNITS:
        raise source.error(
            f"the times of column {header.columns[role]!r} are in {unit!r}, an unknown unit. "
            "Export it with --timeunit nsec."
        )
    return _UNITS[unit.lower()]


def _rows(source: Source, sheet: Sheet, header: _Header) -> pl.DataFrame:
    import polars as pl

    columns = header.columns
    if header.kind == "trace":
        unit = _unit(source, header, "duration")
        fields: dict[str, Any] = {"measured": sheet.numbers(columns["duration"])}
    else:
        count = sheet.numbers(columns["count"])
        if "total" in columns:
            unit = _unit(source, header, "total")
            # More digits than the printed average.
            mean = sheet.numbers(columns["total"]) / count
        else:
            unit = _unit(source, header, "average")
            mean = sheet.numbers(columns["average"])
        # The mean of an unknown number of calls has no part in a total.
        counted = (count > 0) & (count < 2**53)
        fields = {"measured": np.where(counted, mean, np.nan)}
        fields["count"] = pl.Series(np.where(counted, count, 0)).cast(pl.Int64)
        for role in ("median", "minimum", "maximum", "deviation"):
            if role in columns:
                fields[role] = sheet.numbers(columns[role])
    if "start" in columns:
        fields["start"] = sheet.numbers(columns["start"])
    if "size" in columns:
        fields["size"] = sheet.numbers(columns["size"])
        fields["size_unit"] = pl.lit(header.units["size"] or "B")
    fields |= _names(sheet, columns)
    for shape in ("grid", "block"):
        fields |= _shape(sheet, columns, shape)
    fields |= _device_columns(sheet, columns)
    fields["unit"] = [unit] * len(sheet)
    lists = {name: value for name, value in fields.items() if not isinstance(value, pl.Expr)}
    frame = pl.DataFrame(lists, nan_to_null=True)
    if "size_unit" in fields:
        known = pl.col("size").is_not_null()
        frame = frame.with_columns(size_unit=pl.when(known).then(fields["size_unit"]))
    return frame


def _names(sheet: Sheet, columns: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Return the names of kernels, the ranges in front of them, and the classes of other work."""
    names = sheet.texts(columns["name"])
    split = {name: _split(name) for name in set(names)}
    fields: dict[str, list[str | None]] = {
        "kernel": [split[name][1] for name in names],
        "kernel_class": [_class_of(split[name][1]) for name in names],
        "range": [split[name][0] for name in names],
    }
    if "range" in columns:
        fields["range"] = [text or None for text in sheet.texts(columns["range"])]
    return fields


def _split(name: str) -> tuple[str | None, str]:
    """Split "step 1/forward/void gemm<float>(int)" into the ranges and the kernel."""
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        letter = name[at]
        depth += (letter in ")>]") - (letter in "(<[")
        if letter == "/" and depth == 0 and not name[:at].endswith("operator"):
            return (name[:at], name[at + 1 :]) if name[at + 1 :].strip() else (None, name)
    return None, name


def _class_of(name: str) -> str:
    if name.startswith("[CUDA memcpy"):
        return "memcpy"
    return "memset" if name.startswith("[CUDA memset") else name


def _shape(sheet: Sheet, columns: Mapping[str, str], shape: str) -> dict[str, list[str | None]]:
    """Return a grid or block as "128x1x1"."""
    if shape in columns:
        shapes = ["x".join(text.split()) for text in sheet.texts(columns[shape])]
    elif f"{shape}x" in columns:
        axes = [
            sheet.texts(columns[f"{shape}{axis}"]) for axis in "xyz" if f"{shape}{axis}" in columns
        ]
        shapes = ["x".join(filter(None, sizes)) for sizes in zip(*axes, strict=True)]
    else:
        return {}
    return {shape: [text or None for text in shapes]}


def _device_columns(sheet: Sheet, columns: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the device, "NVIDIA B200 (0)", and the stream."""
    fields: dict[str, list[Any]] = {}
    if "stream" in columns:
        fields["stream"] = [text or None for text in sheet.texts(columns["stream"])]
    if "device" in columns:
        texts = sheet.texts(columns["device"])
        split = {text: _DEVICE.fullmatch(text) for text in set(texts)}
        fields["device"] = [match[1] if (match := split[text]) else text for text in texts]
        fields["device_id"] = [match[2] if (match := split[text]) else None for text in texts]
    return fields
