"""Timeloop: the stats file of a mapping of one layer on one accelerator."""

from __future__ import annotations

import re
from os import PathLike

from errcomp.readers.core.no_times import no_times
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.timeloop_stats import (
    QUANTITIES,
    UNITS,
    is_sparse,
    is_stats,
    read_stats,
)

__all__ = ["FORMATS", "read"]

#: A level of a mapping: its name, and the size of the tile of each data space in it.
_LEVEL = re.compile(r"\S+ \[ (?:\w+:\d+ ?(?:\([\d.]+\) ?)?)+\]\s*$")


def read(path: str | PathLike[str]) -> Output:
    r"""Read ``timeloop-mapper.stats.txt`` or ``timeloop-model.stats.txt``.

    Parameters
    ----------
    path : path
        A stats file, or a folder or archive of them (maps beside them are passed over).

    Returns
    -------
    Output
        Predictions for the one layer, level "kernel", with its number of ``computes``:

        * ``time`` in cycles (the file states no clock; GFLOP/s are for 1 GHz), ``energy`` in uJ,
          ``EDP``, ``area``, ``throughput``, ``utilization`` (% or, in older versions, a fraction);
        * by ``component``: ``energy per compute`` (fJ, older versions pJ; "Total" is their sum),
          ``component energy`` (pJ, all accesses, leakage, reductions and addresses) and
          ``component area`` (um^2, all ``instances``).

        The summary has two decimals. An energy that it rounds to 0 is the total per compute times
        the computes, in fJ or pJ; an area that it rounds to 0 is left out.

    Raises
    ------
    InputError
        The file is cut off, holds several results, or has text where a number should be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "timeloop-model.stats.txt"
    >>> _ = path.write_text('''Buffer and Arithmetic Levels
    ... Level 0
    ... === mac ===
    ... Summary Stats
    ... Cycles: 16
    ... Energy: 2.50 uJ
    ...
    ... Computes = 16
    ... fJ/Compute
    ...     Total = 156250000.00
    ... ''')
    >>> read(path).rows.select("quantity", "predicted", "unit").rows()[:2]
    [('time', 16.0, 'cycles'), ('energy', 2.5, 'uJ')]
    """
    return read_as(path, FORMATS)


def _stats(source: Source) -> bool:
    return is_stats(source) and not is_sparse(source)


def _map(source: Source) -> bool:
    head = source.head
    # Versions before 2022 do not name the innermost level.
    level = b"<< Compute >>" in head or any(_LEVEL.match(line) for line in source.head_lines)
    return level and b"for " in head and b" in [0:" in head


def _xml(source: Source) -> bool:
    head = source.head
    return b"<boost_serialization" in head and b"model::ArithmeticUnits" in head


FORMATS = (
    Format(
        name="timeloop-stats",
        tool="Timeloop",
        files="timeloop-mapper.stats.txt, timeloop-model.stats.txt",
        levels=("kernel",),
        quantities=QUANTITIES,
        units=UNITS,
        gives="predictions",
        sample="timeloop-accelergy-exercises of 2024, reference outputs",
        recognise=_stats,
        read=lambda source: read_stats(source, "timeloop-stats", "Timeloop"),
        limits="Names neither the layer nor the clock. Bandwidths, accesses and networks of levels "
        "are left out.",
    ),
    no_times(
        "timeloop-map",
        "Timeloop",
        "timeloop-mapper.map.txt",
        _map,
        "A mapping says how loops are split, and no figure.",
        sample="timeloop-accelergy-exercises of 2024, reference outputs",
        part_of="timeloop-stats",
    ),
    no_times(
        "timeloop-xml",
        "Timeloop",
        "timeloop-mapper.map+stats.xml",
        _xml,
        "The same numbers are in stats.txt.",
        sample="timeloop-accelergy-exercises of 2024, reference outputs",
        part_of="timeloop-stats",
    ),
)
