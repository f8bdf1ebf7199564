"""MAESTRO: its table with one row per layer."""

from __future__ import annotations

import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, key, keys_of, long

_CYCLES, _ENERGY = "Runtime (Cycles)", "Activity count-based Energy (nJ)"
_VALUES = (
    Value("time", "cycles", predicted=_CYCLES),
    Value("energy", "nJ", predicted=_ENERGY),
    Value("throughput", "MACs/cycle", predicted="Throughput (MACs/Cycle)"),
    Value("area", "um^2", predicted="Area"),
    Value("power", "mW", predicted="Power"),
)
_KEYS = {
    "Neural Network Name": "model",
    "NumPEs": "num_pes",
    "Num MACs": "macs",
    "Avg number of utilized PEs": "utilized_pes",
}


def read(path: AnyPath) -> Output:
    r"""Read tables of MAESTRO (``--print_res_csv_file=true``).

    Parameters
    ----------
    path : path
        A table, or a folder or archive of tables.

    Returns
    -------
    Output
        For each layer, level "kernel", the predicted ``time`` (cycles), ``energy`` (nJ),
        ``throughput`` (MACs/cycle), ``area`` (um^2) and ``power`` (mW). ``kernel`` is the name of
        the layer, which may repeat in a network; ``layer`` counts the rows of a ``run`` (network
        and number of PEs) from 1.

    Raises
    ------
    InputError
        A row is cut off, or has text where a number should be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "net.csv"
    >>> _ = path.write_text("Neural Network Name, Layer Number, NumPEs, Runtime (Cycles), "
    ...     "Activity count-based Energy (nJ)\nNet,CONV1,256,1200,3.5e+02\n")
    >>> read(path).rows.select("run", "kernel", "quantity", "predicted", "unit").rows()
    [('Net/256', 'CONV1', 'time', 1200.0, 'cycles'), ('Net/256', 'CONV1', 'energy', 350.0, 'nJ')]
    """
    return read_as(path, FORMATS)


_tool = ToolFormats("MAESTRO", gives="predictions")


@_tool.reads(
    "maestro-layers",
    "table with one row per layer (CSV)",
    "kernel",
    (_CYCLES, "Layer Number", _ENERGY),
    quantities=tuple(value.quantity for value in _VALUES),
    units=tuple(value.unit for value in _VALUES),
    sample="tables in its repository (ResNet-50, MobileNetV2)",
    limits="The header has no units of area and power: MAESTRO uses um^2 and mW. "
    "Only the name of the file states the dataflow. Traffic, reuse and delays are left out.",
)
def _read(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet((_CYCLES, "Layer Number", _ENERGY))
    names = [name for name in ("Neural Network Name", "NumPEs") if name in sheet.columns]
    keys = {"kernel": key(sheet, "Layer Number").cast(pl.String), **keys_of(sheet, _KEYS)}
    if names:
        keys["run"] = sheet.frame.select(pl.concat_str(names, separator="/")).to_series()
        order = pl.DataFrame({"run": keys["run"]}).select(pl.int_range(1, pl.len() + 1).over("run"))
        keys["layer"] = order.to_series()
    else:
        keys["layer"] = pl.Series(np.arange(1, len(sheet) + 1))
    return Rows(long(sheet, _VALUES, keys))


FORMATS = _tool.formats
