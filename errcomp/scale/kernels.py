"""Kernels whose rows stay in an engine, reduced inside it to what corrections are learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errcomp.scale._groups import (
    GroupOrigin,
    check_numbers,
    group_table,
    nothing_in,
    without_failures,
)
from errcomp.tables.columns import Origin, rename
from errcomp.tables.frames import Cells, Rows, cells_of, in_engine
from errcomp.tables.kernels import Kernels
from errcomp.tables.table import Behind

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["KernelRows"]

#: Width of the buckets of log measurements: kernels 2 % apart are told apart.
BUCKET = 0.02
#: What tells kernels apart, and what a correction weighs them by.
_KEYS = (
    *("run", "kernel", "kernel_class", "device", "mode", "shape", "tool"),
    *("predicted", "count", "unit"),
)
_NAMES = ("run", "kernel", "kernel_class", "count")


def kernels_of(data: Any, family: str | None) -> tuple[Kernels, Behind]:
    """Return kernels, and how many measurements stand behind each row.

    Parameters
    ----------
    data : Kernels, KernelRows, dataframe or mapping of columns
    family : str, optional
        Further column that will be asked for.

    Returns
    -------
    kernels : Kernels
        To learn from; those of an engine do not add up to runs.
    behind : Behind
    """
    if in_engine(data):
        data = KernelRows(data)
    if isinstance(data, KernelRows):
        groups = data._grouped(family)
        return groups, groups.behind
    table = data if isinstance(data, Kernels) else Kernels(data)
    return table, Behind.single(table.n)


class KernelRows:
    """Kernels in an engine, for `errcomp.calibration.KernelCorrection`.

    Measurements of one kernel (run, class, name, device, mode, shape, predicted time and count)
    that are within 2 % of each other are put together inside the engine: number, mean and scatter
    of their logarithms. In what is learnt

    * exact: numbers of kernels and of those dropped, sizes, weights, means and scatter; and all
      where no two measurements of a kernel in a run are within 2 % of each other but different.
    * approximate: what a single measurement counts for as an outlier, medians, and the floor below
      which a typical time stands in for a prediction. Each is that of the mean of its 2 %: factors
      agree to 0.1 % in the tests.

    Parameters
    ----------
    data : lazy frame
        Polars LazyFrame, DuckDB relation, Dask or Spark dataframe, …; a frame in memory counts as
        an engine too. Columns as in `errcomp.tables.Kernels`; times and counts must be numbers.
    columns, unit, source
        As in `errcomp.tables.Kernels`.

    Attributes
    ----------
    native
        The frame that went in.
    engine : str
        What people call the engine.
    dropped : tuple of Dropped
        Failed predictions.

    Raises
    ------
    InputError
        Columns are missing or hold no numbers.
    EngineError
        The engine failed, in its own words.

    Notes
    -----
    Groups are as many as there are different kernels in runs. Misleads where ``predicted`` differs
    from row to row of one kernel (a predictor that is not deterministic): every row is a group
    then, and more than ten million groups are refused.

    Examples
    --------
    >>> import polars as pl
    >>> from errcomp.calibration import KernelCorrection
    >>> rows = KernelRows(
    ...     pl.LazyFrame(
    ...         {
    ...             "kernel_class": ["BMM"] * 4,
    ...             "predicted": [1.0] * 4,
    ...             "measured": [1.21, 1.215, 1.2, 0.0],
    ...         }
    ...     )
    ... )
    >>> found = KernelCorrection().fit(rows)
    >>> rows.engine, found.n_, [(one.reason, one.n) for one in found.dropped_]
    ('Polars', 3, [('measured as 0', 1)])
    """

    def __init__(
        self,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        unit: str | None = None,
        source: str = "",
    ) -> None:
        rows = Rows(data)
        known = ("predicted", "measured", *(name for name in _NAMES if name in rows.schema))
        found = Rows(rows.asked(lambda: rename(rows.frame, columns or {}, source, known)))
        self.native, self.engine, self.source, self._unit = data, rows.engine, source, unit
        check_numbers(found, ("predicted", "measured", "count"), source)
        self._rows, self.dropped = without_failures(found, "the prediction failed (status)")

    def _grouped(self, family: str | None) -> _GroupedKernels:
        # Not for everyone: the rows of this table do not add up to runs.
        wanted = dict.fromkeys((*_KEYS, *([] if family is None else [family])))
        cells = cells_of(
            self._rows,
            [name for name in wanted if name in self._rows.schema],
            bucketed="measured",
            source=self.source,
            width=BUCKET,
        )
        if not len(cells.n):
            raise nothing_in("kernels", self.dropped, self.source)
        return _GroupedKernels(cells, self)


class _GroupedKernels(Kernels):
    """Kernels that are groups of rows."""

    def __init__(self, cells: Cells, rows: KernelRows) -> None:
        measured = cells.logs["measured"]
        columns = {**cells.keys, "measured": measured.written()}
        frame, order = group_table(columns, tuple(columns))
        self.behind = Behind(cells.n[order], measured.scatter[order], measured.alike[order])
        self._cell_keys = tuple(cells.keys)
        super().__init__(frame, unit=rows._unit, source=rows.source)

    def _origin(self, frame: nw.DataFrame[Any], source: str, line_offset: int | None) -> Origin:
        keys = {name: frame[name].to_list() for name in self._cell_keys}
        return GroupOrigin.of_groups(source, self.behind.n, keys)
