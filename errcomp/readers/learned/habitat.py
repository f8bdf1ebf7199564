"""Habitat: run times of training iterations, predicted from one GPU to others."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from errcomp.readers.core.keys import has
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, Gives, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.core.wide import Value, rows_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "read"]

_TOOL = "Habitat"
_BOTH = ("run_time_ms_predicted", "run_time_ms_measured")
#: <model>+<batch>-<origin>[-<dest>]-<what>.csv: what the file itself does not say.
_NAME = re.compile(
    r"(?P<model>[A-Za-z0-9_]+)(?:\+(?P<batch>\d+))?(?:-(?P<origin>[A-Za-z0-9]+?))?"
    r"(?:-(?P<dest>[A-Za-z0-9]+))?-(?:e2e|breakdown)(?:-combined)?\.csv(?:\.gz)?"
)


def read(path: str | PathLike[str]) -> Output:
    r"""Read CSV files of Habitat's experiments.

    Parameters
    ----------
    path : path
        ``<config>-<origin>-e2e.csv``, ``<config>-<origin>-<dest>-breakdown.csv``, what was
        combined of them (``-combined.csv``), or a folder or archive of them.

    Returns
    -------
    Output
        ``time`` of an iteration, or of each operation (``kernel``, numbered by ``position``), in
        ms on a ``device``, predicted from measurements on ``origin``; combined files have the
        measured time beside it. On the origin itself the time is measured.

    Raises
    ------
    InputError
        A value is no number, or the name of a breakdown does not say of which GPU it is.

    Notes
    -----
    Model, batch size and (of a breakdown) the GPUs stand in the name of a file only. Written after
    the source code: no results are in the repository.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "resnet50+16-V100-e2e.csv"
    >>> _ = path.write_text("device,run_time_ms\nV100,95.5\nT4,210.0\n")
    >>> read(path).rows.select("model", "device", "origin", "predicted", "measured").rows()
    [('resnet50', 'V100', 'V100', None, 95.5), ('resnet50', 'T4', 'V100', 210.0, None)]
    """
    return read_as(path, FORMATS)


def _named(source: Source) -> dict[str, str]:
    match = _NAME.fullmatch(source.path.name)
    found = match.groupdict() if match else {}
    return {name: value for name, value in found.items() if value is not None}


def _is_e2e(source: Source) -> bool:
    return source.header == ("device", "run_time_ms")


def _read_e2e(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet(["device", "run_time_ms"])
    named = _named(source)
    # The origin is written first; the name of the file says so too.
    origin = named.get("origin") or sheet.texts("device")[0]
    measure = Value("time", "ms", predicted="run_time_ms")
    rows = rows_of(sheet, _TOOL, "model", [measure], {"device": "device"})
    own = pl.col("device") == origin
    rows = rows.with_columns(
        measured=pl.when(own).then(pl.col("predicted")),
        predicted=pl.when(~own).then(pl.col("predicted")),
        origin=pl.lit(origin),
    )
    notes = []
    if origin not in sheet.texts("device"):
        raise source.error(
            f"the name says that {origin!r} was measured, which is none of its devices. Give the "
            "file the name that Habitat gave it."
        )
    if "origin" not in named:
        notes.append(f"{origin}, the first device, is taken to be the measured one.")
    return output(source.name, "habitat-e2e", _identified(rows, named), notes=notes)


def _identified(rows: pl.DataFrame, named: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    batch = named.get("batch")
    return rows.with_columns(
        model=pl.lit(named.get("model"), dtype=pl.String),
        batch=pl.lit(None if batch is None else int(batch), dtype=pl.Int64),
    )


def _is_breakdown(source: Source) -> bool:
    return source.header == ("operation", "run_time_ms")


def _read_breakdown(source: Source) -> Output:
    named = _named(source)
    if not {"origin", "dest"} <= named.keys():
        raise source.error(
            "its name does not say of which GPU it is, nor does its content. Give it the name that "
            "Habitat gave it: <config>-<origin>-<dest>-breakdown.csv."
        )
    own = named["origin"] == named["dest"]
    columns = ("", "run_time_ms") if own else ("run_time_ms", "")
    rows = _operations(source, Value("time", "ms", *columns), named)
    return output(source.name, "habitat-breakdown", rows)


def _operations(source: Source, measure: Value, named: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    sheet = source.sheet(["operation"])
    rows = rows_of(sheet, _TOOL, "kernel", [measure], {"kernel": "operation"})
    rows = rows.with_columns(
        position=pl.int_range(1, len(rows) + 1),
        origin=pl.lit(named.get("origin"), dtype=pl.String),
        device=pl.lit(named.get("dest"), dtype=pl.String),
    )
    return _identified(rows, named)


def _is_combined(source: Source) -> bool:
    return has(source.header, "origin_device", "dest_device", *_BOTH)


def _read_combined(source: Source) -> Output:
    sheet = source.sheet(_BOTH)
    keys = {"origin": "origin_device", "device": "dest_device"}
    rows = rows_of(sheet, _TOOL, "model", [Value("time", "ms", *_BOTH)], keys)
    return output(source.name, "habitat-combined", _identified(rows, _named(source)))


def _is_combined_breakdown(source: Source) -> bool:
    return has(source.header, "operation", *_BOTH)


def _read_combined_breakdown(source: Source) -> Output:
    rows = _operations(source, Value("time", "ms", *_BOTH), _named(source))
    return output(source.name, "habitat-combined-breakdown", rows)


def _format(
    what: str,
    files: str,
    level: str,
    gives: Gives,
    recognise: Callable[[Source], bool],
    call: Callable[[Source], Output],
) -> Format:
    return Format(
        name=f"habitat-{what}",
        tool=_TOOL,
        files=files,
        levels=(level,),
        quantities=("time",),
        units=("ms",),
        gives=gives,
        reference="hardware",
        sample="",
        recognise=recognise,
        read=call,
        limits="Model, batch size and GPUs that only the name of a file says are taken from it.",
    )


FORMATS = (
    _format("e2e", "<config>-<origin>-e2e.csv", "model", "both", _is_e2e, _read_e2e),
    _format(
        "breakdown",
        "<config>-<origin>-<dest>-breakdown.csv",
        "kernel",
        "predictions",
        _is_breakdown,
        _read_breakdown,
    ),
    _format("combined", "<config>-e2e-combined.csv", "model", "both", _is_combined, _read_combined),
    _format(
        "combined-breakdown",
        "<config>-<origin>-<dest>-breakdown-combined.csv",
        "kernel",
        "both",
        _is_combined_breakdown,
        _read_combined_breakdown,
    ),
)
