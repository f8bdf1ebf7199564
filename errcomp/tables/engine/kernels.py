"""Kernels whose rows stay in an engine, reduced there to groups for learning corrections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errcomp.tables.columns import Origin
from errcomp.tables.engine.groups import Cells, EngineRows, GroupOrigin, group_table
from errcomp.tables.memory.kernels import Kernels
from errcomp.tables.memory.pairs import FAILED
from errcomp.tables.table import Behind

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["KernelRows"]

#: Width of the buckets of log measurements: values more than 2 % apart stay separate.
BUCKET = 0.02
#: Columns that identify a kernel, and the weight of a correction.
_KEYS = (
    *("run", "kernel", "kernel_class", "device", "mode", "phase", "shape", "tool"),
    *("predicted", "count", "unit"),
)
_NAMES = ("run", "kernel", "kernel_class", "count")


class KernelRows(EngineRows):
    """Kernels in an engine, for `errcomp.calibration.KernelCorrection`.

    Measurements of one kernel (run, class, name, device, mode, phase, shape, predicted time and
    count) within 2 % of each other are combined inside the engine: their number, and mean and
    scatter of their logarithms. Of the results,

    * exact are the numbers of kernels and of dropped kernels, sizes, weights, means and scatter;
      everything is exact if measurements of a kernel in a run are either equal or over 2 % apart.
    * approximate are the weights of outliers, medians, and the floor below which a typical time
      replaces a prediction. Each uses the mean of measurements within 2 %. In the tests, factors
      agree to 0.1 %.

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
        The engine's common name.
    dropped : tuple of Dropped
        Failed predictions.

    Raises
    ------
    InputError
        Columns are missing or not numeric.
    EngineError
        The engine failed; the message is its own.

    Notes
    -----
    There is one group per different kernel of a run. Misleads if ``predicted`` differs from row to
    row of one kernel (a predictor that is not deterministic): every row is then a group of its own,
    and more than ten million groups are refused.

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
        self._unit = unit
        super().__init__(
            data,
            columns,
            source,
            required=("predicted", "measured"),
            optional=_NAMES,
            options="--predicted COLUMN --measured COLUMN",
            numbers=("predicted", "measured", "count"),
            failed=FAILED,
        )

    def grouped(self, keys: Sequence[str] = ()) -> Kernels:
        """Return groups of rows as kernels to learn from: they do not add up to runs.

        Parameters
        ----------
        keys : sequence of str
            Further columns that the caller needs.

        Examples
        --------
        >>> import polars as pl
        >>> data = {"kernel_class": ["BMM"] * 3, "predicted": [1] * 3, "measured": [1.2, 1.2, 1.5]}
        >>> sorted(KernelRows(pl.LazyFrame(data)).grouped().behind.n.tolist())
        [1, 2]
        """
        by = [name for name in dict.fromkeys((*_KEYS, *keys)) if name in self._rows.schema]
        return _GroupedKernels(self._cells("kernels", by, bucketed="measured", width=BUCKET), self)


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
        return GroupOrigin.of_groups(frame, self._cell_keys, self.behind.n, source)
