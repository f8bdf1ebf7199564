"""AMALi: predicted and measured cycles of kernels."""

from __future__ import annotations

import re

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, key, rows_of

#: Columns of predictions: the model, and the models that it builds on.
_MODEL = re.compile(r"(?:AMALI|GCoM)(?:\+[\w+]+)?", re.IGNORECASE)
_MEASURED = "HW"
_RUN = re.compile(r"Column_(\d+)")


def read(path: AnyPath) -> Output:
    r"""Read results of AMALi (``<app>_AMALi_results.csv``) and its tables of measurements.

    Parameters
    ----------
    path : path
        A table, or a folder or archive of them.

    Returns
    -------
    Output
        ``time`` of each kernel in cycles. Results: the prediction of each model (``variant``:
        AMALi, GCoM, GCoM+KLL, …), with the measurement if the table has a column ``HW``.
        Tables of measurements (``Column_1`` … ``Average``): the average, with
        ``measured_spread`` and ``n_repeats``.

    Raises
    ------
    InputError
        A value is not a number, or there are no rows.

    Notes
    -----
    The parts of the cycle stack (selected, wait, drain, …) are not read. Written from the
    documentation: no results are published.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "gemm_AMALi_results.csv"
    >>> _ = path.write_text("kernel_id,kernel_name,AMALi,selected,wait\n1,gemm,1200,700,500\n")
    >>> read(path).rows.select("kernel", "kernel_id", "unit", "predicted").rows()
    [('gemm', 1, 'cycles', 1200.0)]
    """
    return read_as(path, FORMATS)


def _names(source: Source) -> str:
    return next((name for name in source.header if name.startswith("kernel_name")), "")


def _is_results(source: Source) -> bool:
    models = any(_MODEL.fullmatch(name) for name in source.header)
    return models and "kernel_id" in source.header and bool(_names(source))


_tool = ToolFormats("AMALi", gives="both", reference="hardware")


@_tool.reads(
    "amali-results",
    "<app>_AMALi_results.csv",
    "kernel: time (cycles)",
    _is_results,
    limits="The parts of the cycle stack are not read.",
)
def _read_results(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(["kernel_id", _names(source)])
    # Spreadsheets leave rows of only commas.
    filled = sheet.frame.select(pl.any_horizontal(pl.all() != "").alias("any"))["any"].to_numpy()
    empty = int((~filled).sum())
    sheet = sheet.take(filled) if empty else sheet
    models = [name for name in sheet.columns if _MODEL.fullmatch(name)]
    if not models:
        raise source.error("no column of predictions (AMALi, GCoM, GCoM+KLL, ...).")
    measured = _MEASURED if _MEASURED in sheet.columns else ""
    keys = {"kernel": _names(source), "kernel_id": "kernel_id"}
    frames = [
        rows_of(sheet, [Value("time", "cycles", model, measured)], keys, variant=model)
        for model in models
    ]
    return Rows(pl.concat(frames), dropped={"empty row": empty})


@_tool.reads(
    "amali-measured",
    "HW/<app>_10_m.csv",
    "kernel: time (cycles)",
    ("Kernel Name", "Column_1", "Average"),
    gives="measurements",
)
def _read_measured(source: Source) -> Rows:
    import numpy as np
    import polars as pl

    sheet = source.sheet(["Kernel Name", "Column_1", "Average"])
    runs = [name for name in sheet.columns if _RUN.fullmatch(name)]
    times = np.column_stack([sheet.numbers(name) for name in runs])
    n = np.sum(~np.isnan(times), axis=1)
    average = sheet.numbers("Average")
    spread = np.full(len(times), np.nan)
    several = (n > 1) & (average > 0)
    spread[several] = np.nanstd(times[several], axis=1, ddof=1) / average[several]
    spread[~np.isfinite(spread)] = np.nan  # infinite or huge times
    keys = {"kernel": "Kernel Name"}
    measure = Value("time", "cycles", measured="Average")
    rows = rows_of(sheet, [measure], keys, tool="ncu")
    rows = rows.with_columns(
        pl.Series("measured_spread", spread, nan_to_null=True), pl.Series("n_repeats", n)
    )
    for column in ("kernel id", "kernel_id"):
        if column in sheet.columns:
            rows = rows.with_columns(key(sheet, column, "kernel_id"))
    return Rows(rows)


FORMATS = _tool.formats
