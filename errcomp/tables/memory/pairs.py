"""The Pairs table, and the checks of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.results import Dropped
from errcomp.tables.columns import (
    Gaps,
    MissingColumnsError,
    Origin,
    Zeros,
    as_float,
    check_values,
    dropped_rows,
    failures,
    nothing_left,
    one_unit,
    rename,
    status_ok,
    two_numbers,
    without_units,
)
from errcomp.tables.frames import holds_numbers, key_columns, to_eager
from errcomp.tables.table import Table

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import ArrayLike, NDArray


#: Columns with a reserved meaning; every other column is a key to group by, too.
RESERVED_KEYS = (
    "tool",
    "level",
    "device",
    "model",
    "mode",
    "batch",
    "seq_len",
    "variant",
    "kernel_class",
    "version",
    "date",
    "repeat",
)
OPTIONS = "--predicted COLUMN --measured COLUMN --column NAME=COLUMN"
#: Columns that are not keys.
NOT_KEYS = ("predicted", "measured", "status", "unit")
#: Reasons for leaving out rows.
FAILED = "the prediction failed (status)"
NOT_POSITIVE = "measured is not positive"
MISSING = "predicted or measured is missing"
_FINITE = ("predicted must be finite", "Fix the prediction, or remove the row.")


def as_pairs(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check two arrays of predictions and measurements and return them as float64.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0, n >= 1.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    predicted, measured : ndarray, shape (m,)
        m = n unless rows were excluded.

    Raises
    ------
    InputError
        Shapes differ, nothing is left, values are not finite, or a measurement is not positive.

    Examples
    --------
    >>> as_pairs(predicted=[11.0, 90.0], measured=[10.0, 0.0])
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: measured must be positive, got 0.0 in row 2. Exclude such rows with \
zeros="exclude" (--zeros exclude; the result gives their number), or fix the measurement.
    """
    p = as_float("predicted", predicted)
    m = as_float("measured", measured)
    if p.shape != m.shape:
        raise InputError(
            f"predicted and measured must have the same length, got {len(p)} and {len(m)}"
        )
    keep = check_values(p, m, zeros=zeros, origin=Origin("", np.arange(1, len(p) + 1), "row"))
    p, m = p[keep], m[keep]
    if len(p) == 0:
        raise InputError("no pairs: give at least one prediction with its measurement")
    return p, m


def _without_measurements(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    import narwhals as nw

    return frame.with_columns(measured=nw.lit(None, dtype=nw.Float64()))


class Pairs(Table):
    """Pairs: each row is a predicted quantity and its measurement, with keys to group by.

    Parameters
    ----------
    data : dataframe or mapping of columns
        pandas, Polars, PyArrow, … with columns ``predicted`` and ``measured``. Every other column
        is a key, except ``status`` (rows whose status is not ok are failures: counted, not used)
        and ``unit`` (must be the same in all rows).
    columns : mapping, optional
        Renames columns of the data: ``{"measured": "latency_ms"}`` reads measured from latency_ms.
    unit : str, optional
        Unit of both columns. Must agree with a column ``unit``, if there is one.
    source : str
        Name of the table in messages, e.g. the file.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.
    missing : {"raise", "exclude", "keep"}
        What to do with rows without a prediction or a measurement: null, NaN, or in text an empty
        field, NA, N/A, NaN, null, none or a dash. "keep": rows without a measurement stay, with
        NaN, as choices for `errcomp.compare`; metrics refuse them. The table may then lack the
        column ``measured``.
    subject : str, optional
        The tool to audit if the table holds several.
    line_offset : int, optional
        Set by readers of text files: row i (from 0) is on line ``i + line_offset``.

    Raises
    ------
    InputError
        Columns are missing, values are not numbers, not finite or not positive, units are mixed,
        or no row is left.

    Examples
    --------
    >>> pairs = Pairs({"predicted": [11.0, 90.0], "measured": [10.0, 100.0], "device": ["A", "B"]})
    >>> pairs.n, pairs.keys
    (2, ('device',))
    >>> [(g.key, g.index.tolist()) for g in pairs.groups(["device"])]
    [({'device': 'A'}, [0]), ({'device': 'B'}, [1])]
    """

    _per_row = ("rows", "predicted", "measured")

    def __init__(
        self,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        unit: str | None = None,
        source: str = "",
        zeros: Zeros = "raise",
        missing: Gaps = "raise",
        subject: str | None = None,
        line_offset: int | None = None,
    ) -> None:
        frame = to_eager(data)
        columns = dict(columns or {})
        if not {"predicted", "measured"} <= {*frame.columns, *columns}:
            from errcomp.tables.guessing import with_guess

            columns = with_guess(columns, holds_numbers(frame), source)
        if missing == "keep" and "measured" not in {*frame.columns, *columns}:
            frame = _without_measurements(frame)
        try:
            frame = rename(frame, columns, source, options=OPTIONS)
        except MissingColumnsError as error:
            from errcomp.tables.guessing import possible_columns

            named = {side: columns.get(side, side) for side in ("predicted", "measured")}
            error.choices = possible_columns(holds_numbers(frame), named)
            raise
        frame = without_units(frame, ("predicted", "measured"), unit)
        origin = Origin.of_table(source, len(frame), line_offset)
        self.source, self.subject, self.selection = source, subject, {}
        ok = status_ok(frame)
        p, m, absent = two_numbers(frame, ok, origin, missing)
        given = ok & ~absent
        known = given & ~np.isnan(m) if missing == "keep" else given
        positive = np.ones(len(frame), dtype=bool)
        positive[known] = check_values(p[known], m[known], zeros=zeros, origin=origin.of(known))
        only = given & ~known
        if np.isinf(p[only]).any():
            origin.of(only).refuse(np.isinf(p[only]), p[only], *_FINITE)
        keep = given & positive
        self.dropped: tuple[Dropped, ...] = (
            *dropped_rows(FAILED, origin.rows[~ok]),
            *dropped_rows(MISSING, origin.rows[absent]),
            *dropped_rows(NOT_POSITIVE, origin.rows[~positive]),
        )
        if not keep.any():
            failed = failures(frame, ok, origin)
            raise nothing_left("pairs", self.dropped, self.prefix, failed=failed)
        self.unit = one_unit(frame, unit, keep, origin)
        self.predicted: NDArray[np.float64] = p[keep]
        self.measured: NDArray[np.float64] = m[keep]
        self.rows = origin.rows[keep]
        self._native = frame.to_native()
        self._renamed = columns
        names = [name for name in frame.columns if name not in NOT_KEYS]
        self._columns, self.unusable = key_columns(frame, names, keep, source)

    def __repr__(self) -> str:
        return f"Pairs(n={self.n}, keys={self.keys}, unit={self.unit!r}, source={self.source!r})"

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return iter(zip(self.predicted.tolist(), self.measured.tolist(), strict=True))
