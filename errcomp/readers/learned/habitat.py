"""Habitat: run times of training iterations, predicted from one GPU to others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, rows_of
from errcomp.readers.core.values import digits

if TYPE_CHECKING:
    import polars as pl


_BOTH = ("run_time_ms_predicted", "run_time_ms_measured")
#: <model>+<batch>-<origin>[-<dest>]-<what>.csv: facts that the file does not hold.
_NAME = re.compile(
    r"(?P<model>[A-Za-z0-9_]+)(?:\+(?P<batch>\d+))?(?:-(?P<origin>[A-Za-z0-9]+?))?"
    r"(?:-(?P<dest>[A-Za-z0-9]+))?-(?:e2e|breakdown)(?:-combined)?\.csv(?:\.gz)?"
)


def read(path: AnyPath) -> Output:
    r"""Read CSV files of Habitat's experiments.

    Parameters
    ----------
    path : path
        ``<config>-<origin>-e2e.csv``, ``<config>-<origin>-<dest>-breakdown.csv``, files combined
        from them (``-combined.csv``), or a folder or archive of them.

    Returns
    -------
    Output
        ``time`` of an iteration, or of each operation (``kernel``, numbered by ``position``), in
        ms on a ``device``, predicted from measurements on ``origin``; combined files also have the
        measured time. On the origin itself the time is measured.

    Raises
    ------
    InputError
        A value is not a number, or the name of a breakdown lacks its GPU.

    Notes
    -----
    Model, batch size and (for breakdowns) the GPUs are only in the name of a file. Written from the
    source code: the repository holds no results.

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
    parts = match.groupdict() if match else {}
    return {name: value for name, value in parts.items() if value is not None}


def _is_e2e(source: Source) -> bool:
    return source.header == ("device", "run_time_ms")


_tool = ToolFormats(
    "Habitat",
    gives="both",
    reference="hardware",
    limits="Model, batch size and GPUs come from the name of the file if its content lacks them.",
)


@_tool.reads("habitat-e2e", "<config>-<origin>-e2e.csv", "model: time (ms)", _is_e2e)
def _read_e2e(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(["device", "run_time_ms"])
    named = _named(source)
    # The origin is written first; the name of the file names it, too.
    origin = named.get("origin") or sheet.texts("device")[0]
    measure = Value("time", "ms", predicted="run_time_ms")
    rows = rows_of(sheet, [measure], {"device": "device"})
    own = pl.col("device") == origin
    rows = rows.with_columns(
        measured=pl.when(own).then(pl.col("predicted")),
        predicted=pl.when(~own).then(pl.col("predicted")),
        origin=pl.lit(origin),
    )
    notes = []
    if origin not in sheet.texts("device"):
        raise source.error(
            f"the file name gives {origin!r} as the measured device, but no row is about that "
            "device. Restore the original name."
        )
    if "origin" not in named:
        notes.append(
            f"{origin}, the first device in the file, is assumed to be the measured device."
        )
    return Rows(_identified(rows, named), notes=notes)


def _identified(rows: pl.DataFrame, named: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    batch = named.get("batch")
    return rows.with_columns(
        model=pl.lit(named.get("model"), dtype=pl.String),
        batch=pl.lit(None if batch is None else digits(batch), dtype=pl.Int64),
    )


@_tool.reads(
    "habitat-breakdown",
    "<config>-<origin>-<dest>-breakdown.csv",
    "kernel: time (ms)",
    lambda source: source.header == ("operation", "run_time_ms"),
    gives="predictions",
)
def _read_breakdown(source: Source) -> Rows:
    named = _named(source)
    if not {"origin", "dest"} <= named.keys():
        raise source.error(
            "neither the name nor the content of the file says which GPU it is for. Restore the "
            "original name: <config>-<origin>-<dest>-breakdown.csv."
        )
    own = named["origin"] == named["dest"]
    columns = ("", "run_time_ms") if own else ("run_time_ms", "")
    return Rows(_operations(source, Value("time", "ms", *columns), named))


def _operations(source: Source, measure: Value, named: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    sheet = source.sheet(["operation"])
    rows = rows_of(sheet, [measure], {"kernel": "operation"})
    rows = rows.with_columns(
        position=pl.int_range(1, len(rows) + 1),
        origin=pl.lit(named.get("origin"), dtype=pl.String),
        device=pl.lit(named.get("dest"), dtype=pl.String),
    )
    return _identified(rows, named)


@_tool.reads(
    "habitat-combined",
    "<config>-e2e-combined.csv",
    "model: time (ms)",
    ("origin_device", "dest_device", *_BOTH),
)
def _read_combined(source: Source) -> Rows:
    sheet = source.sheet(_BOTH)
    keys = {"origin": "origin_device", "device": "dest_device"}
    rows = rows_of(sheet, [Value("time", "ms", *_BOTH)], keys)
    return Rows(_identified(rows, _named(source)))


@_tool.reads(
    "habitat-combined-breakdown",
    "<config>-<origin>-<dest>-breakdown-combined.csv",
    "kernel: time (ms)",
    ("operation", *_BOTH),
)
def _read_combined_breakdown(source: Source) -> Rows:
    return Rows(_operations(source, Value("time", "ms", *_BOTH), _named(source)))


FORMATS = _tool.formats
