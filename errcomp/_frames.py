"""The one file that knows Narwhals: the user's own frame in, arrays and native frames out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["column_values", "frame_from_columns", "to_eager"]


def to_eager(native: Any) -> nw.DataFrame[Any]:
    """Wrap a dataframe of any supported library; collect lazy ones; mappings become Polars."""
    import narwhals as nw

    if isinstance(native, Mapping):
        import polars as pl

        native = pl.DataFrame(dict(native))
    try:
        frame = nw.from_native(native)
    except TypeError as error:
        raise InputError(
            f"expected a dataframe (pandas, Polars, PyArrow, …) or a mapping of columns, "
            f"got {type(native).__name__}"
        ) from error
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def column_values(frame: nw.DataFrame[Any], name: str) -> NDArray[Any]:
    """Return one column as an array; missing is NaN among floats, None among everything else."""
    series = frame[name]
    if series.dtype.is_numeric() and series.null_count() == 0:
        return np.asarray(series.to_numpy())
    if series.dtype.is_float():
        return np.asarray([np.nan if v is None else v for v in series.to_list()])
    values = np.empty(len(series), dtype=object)
    values[:] = [None if v is None or v != v else v for v in series.to_list()]
    return values


def frame_from_columns(columns: Mapping[str, Iterable[Any]], like: Any = None) -> Any:
    """Build a native frame of the same library as ``like`` (Polars when there is none)."""
    import polars as pl

    data: dict[str, Sequence[Any]] = {name: list(values) for name, values in columns.items()}
    if like is None:
        return pl.DataFrame(data, strict=False)
    import narwhals as nw

    return nw.from_dict(data, backend=nw.get_native_namespace(like)).to_native()
