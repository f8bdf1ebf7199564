"""The columns of a table of kernels, checked and turned into arrays of all its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.tables.columns import Origin, numeric, texts

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["counts_of", "insist", "names_of", "times_of"]

#: Sums of counts stay exact in floating point up to here.
_MOST = 2**53


def insist(frame: nw.DataFrame[Any], origin: Origin, *names: str) -> None:
    """Raise unless one of these columns is there."""
    if not set(names) & set(frame.columns):
        there = offer("Columns found", frame.columns, wanted=names[0])
        raise InputError(
            f"{origin.prefix}missing column {' or '.join(names)}. {there}. "
            "Name yours with columns={...}."
        )


def names_of(
    frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin
) -> dict[str, NDArray[Any]]:
    """Return run, kernel, kernel_class and, if there is one, device of all rows."""
    n, every = len(frame), np.ones(len(frame), dtype=bool)
    found = {"run": np.full(n, "run", dtype=object)}
    if "run" in frame.columns:
        # A failed kernel says which run is incomplete.
        found["run"] = texts(frame, "run", every, origin)
    for name in ("kernel", "kernel_class"):
        if name in frame.columns:
            found[name] = texts(frame, name, ok, origin)
    if "kernel" not in found:
        rows = zip(found["kernel_class"], origin.rows, strict=True)
        found["kernel"] = np.asarray([f"{kind}/{row}" for kind, row in rows], dtype=object)
    found.setdefault("kernel_class", found["kernel"])
    if "device" in frame.columns:
        found["device"] = texts(frame, "device", ok, origin, blank=True)
    return found


def counts_of(frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin) -> NDArray[np.int64]:
    """Return how often each kernel runs; 1 where nothing says so."""
    if "count" not in frame.columns:
        return np.ones(len(frame), dtype=np.int64)
    counts = numeric(frame, "count", ok, origin)
    bad = ok & ~((counts >= 1) & (counts < _MOST) & (counts == np.floor(counts)))
    if bad.any():
        raise InputError(
            f"{origin.prefix}count must be a whole number from 1 to {_MOST - 1}, got "
            f"{counts[bad][0]} in {origin.name(bad)}. Remove kernels that do not run, and "
            "give the others the number of times they do."
        )
    if counts[ok].sum() > _MOST:
        raise InputError(
            f"{origin.prefix}the counts add up to {counts[ok].sum():.3g}, above {_MOST}, where "
            "sums are no longer exact. Fix the counts."
        )
    return np.where(ok, counts, 1).astype(np.int64)


def times_of(
    frame: nw.DataFrame[Any],
    name: str,
    ok: NDArray[np.bool_],
    origin: Origin,
    *,
    blank: bool = False,
) -> NDArray[np.float64]:
    """Return a column of times, NaN where there is none."""
    if name not in frame.columns:
        return np.full(len(frame), np.nan)
    times = numeric(frame, name, ok, origin, blank=blank)
    end_to_end = name == "run_measured"
    fine = (times > 0 if end_to_end else times >= 0) & (times < np.inf)
    bad = ok & ~(fine | (np.isnan(times) & blank))
    if bad.any():
        raise InputError(
            f"{origin.prefix}{name} must be finite and {'positive' if end_to_end else '≥ 0'}, got "
            f"{times[bad][0]} in {origin.name(bad)}. Fix the value, or give the row a status if "
            "the prediction failed."
        )
    return times
