"""Which data a model was fitted to: a hash that the order of rows and columns does not change."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.tables.frames import is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables import Kernels

__all__ = ["fingerprint"]

_NAMES = ("run", "kernel", "kernel_class", "device")
_TIMES = ("predicted", "measured", "run_measured")


def fingerprint(kernels: Kernels) -> str:
    r"""Return the SHA-256 of a table of kernels in a form that does not depend on its source.

    Every row is written as JSON, by name of the column; numbers as numbers (1 and 1.0 are the
    same), what is missing is left out. The rows are sorted by their bytes, and hashed after a first
    line with the unit, the number of rows and the runs with failed kernels.

    Parameters
    ----------
    kernels : Kernels

    Returns
    -------
    str
        64 hexadecimal digits. The same for the same rows in another order, with the columns in
        another order, from another library or file format, on another platform.

    Notes
    -----
    It says whether two tables are the same, not whether they say the same: in another unit, or
    with names written differently, the same times have another fingerprint. Misleads where numbers
    went through a text with fewer digits.

    Examples
    --------
    >>> from errcomp.tables import Kernels
    >>> one = Kernels({"run": ["a", "b"], "kernel": ["mm", "mm"], "measured": [1.0, 2.0]})
    >>> two = Kernels({"measured": [2, 1], "kernel": ["mm", "mm"], "run": ["b", "a"]})
    >>> fingerprint(one) == fingerprint(two), fingerprint(one)[:16]
    (True, '7d5bbd98371308a4')
    """
    columns = {name: getattr(kernels, name) for name in (*_NAMES, "count", *_TIMES)}
    columns |= {name: kernels.column(name) for name in kernels.keys if name not in columns}
    cells = [_cells(name, columns[name]) for name in sorted(columns)]
    rows = sorted(",".join(filter(None, row)).encode() for row in zip(*cells, strict=True))
    first = {"failed": sorted(kernels.incomplete), "n": kernels.n, "unit": kernels.unit}
    found = hashlib.sha256(json.dumps(first, sort_keys=True).encode())
    for row in rows:
        found.update(b"\n" + row)
    return found.hexdigest()


def _cells(name: str, values: NDArray[Any]) -> list[str]:
    """Return ``"name":value`` for each row, ``""`` where it is missing."""
    known: dict[Any, str] = {}
    found = []
    for value in values.tolist():
        # True is equal to 1 and must not be taken for it; what is no key is written anew.
        key = (type(value), value) if isinstance(value, str | int | float | bool) else None
        text = known.get(key) if key else None
        if text is None:
            text = "" if _is_blank(value) else f"{json.dumps(name)}:{json.dumps(_plain(value))}"
            if key:
                known[key] = text
        found.append(text)
    return found


def _is_blank(value: Any) -> bool:
    return value == "" if isinstance(value, str) else is_missing(value)


def _plain(value: Any) -> Any:
    """Return what JSON writes in one way: whole floats as integers, dates as ISO 8601."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, datetime.datetime):
        # A library without dates has midnight.
        date = value.time() == datetime.time() and value.tzinfo is None
        return (value.date() if date else value).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in sorted(value.items())}
    return str(value)
