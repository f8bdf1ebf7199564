"""Verdicts of a gate: what became of each series, why it cannot be told, and what moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_names
from errcomp.halflife.gate.shifts import Law, Shifts, holm_adjusted, means, p_values
from errcomp.halflife.panel import Panel

__all__ = [
    "GREW",
    "VERDICTS",
    "as_labels",
    "as_parts",
    "as_position",
    "as_promise",
    "as_since",
    "first_versions",
    "moved_by",
    "reasons",
    "verdicts",
]

Floats = NDArray[np.float64]

#: What a series can be told to be; only the first one is a regression.
VERDICTS = (
    "error grew",
    "moved within the promise",
    "error no larger",
    "as before",
    "cannot be told",
    "not validated",
)
GREW, _WITHIN, _NO_LARGER, _AS_BEFORE, _UNKNOWN, _ABSENT = VERDICTS
#: Predictions are computed: a change above rounding is a change.
_ROUNDING = 1e-9


def as_position(panel: Panel, version: str | None) -> int:
    """Return where a version stands in a panel; without one, the last."""
    if version is not None and version not in panel.versions:
        raise InputError(
            f"there is no version {version!r}; there are "
            f"{describe_names(panel.versions, wanted=version)}."
        )
    at = len(panel.versions) - 1 if version is None else panel.versions.index(version)
    if at < 1:
        raise InputError(
            f"version {panel.versions[at]} is the first: there is nothing to compare it with. "
            "Name a later version."
        )
    return at


def as_since(since: ArrayLike, panel: Panel) -> NDArray[np.int64]:
    """Return the position of each series' calibration, one number standing for all."""
    given = np.asarray(since)
    if given.dtype.kind not in "iu" or given.shape not in ((), (panel.n_series,)):
        raise InputError(
            f"since must be positions of versions, whole numbers, one for each of the "
            f"{panel.n_series} series or one for all, got {given.dtype} of shape {given.shape}."
        )
    return np.broadcast_to(given, panel.n_series).astype(np.int64)


def first_versions(panel: Panel) -> NDArray[np.int64]:
    """Return the first version of each series."""
    found: NDArray[np.int64] = panel.version[panel.starts[:-1]]
    return found


def as_promise(promised: ArrayLike | None, s: int) -> Floats:
    """Return the promised error of each series, NaN where there is none."""
    if promised is None:
        return np.full(s, np.nan)
    given = np.asarray(promised, dtype=float)
    if given.shape not in ((), (s,)) or not ((given > 0) & np.isfinite(given)).all():
        raise InputError(
            f"promised must be errors on the log scale, above 0 and finite, one for each of the "
            f"{s} series or one for all, got {promised!r}."
        )
    return np.broadcast_to(given, s).copy()


def as_labels(groups: Sequence[str] | None, panel: Panel) -> tuple[str, ...]:
    """Return the group of each series; its own name where no groups are given."""
    if groups is None:
        return tuple(panel.names)
    if len(groups) != panel.n_series:
        raise InputError(f"groups must be {panel.n_series} names, one a series, got {len(groups)}.")
    return tuple(str(one) for one in groups)


def as_parts(
    panel: Panel,
    first: NDArray[np.int64],
    at: int,
    found: Shifts,
    reference: ArrayLike | None,
    predictor: ArrayLike | None,
) -> tuple[Floats, Floats]:
    """Return how far measurement and prediction of each series moved."""
    if reference is None and predictor is None:
        if panel.frozen_at_first:
            return found.shift, np.where(np.isnan(found.shift), np.nan, 0.0)
        return np.full(panel.n_series, np.nan), np.full(panel.n_series, np.nan)
    if reference is None or predictor is None:
        raise InputError("reference and predictor go together: give both or neither.")
    rows = [np.asarray(part, dtype=float) for part in (reference, predictor)]
    if any(part.shape != panel.error.shape for part in rows):
        raise InputError(
            f"reference and predictor must have {len(panel.error)} values, one a row of the "
            f"panel, got shapes {rows[0].shape} and {rows[1].shape}."
        )
    series = np.repeat(np.arange(panel.n_series), np.diff(panel.starts))
    base = (panel.version < at) & (panel.version >= first[series])
    is_new = panel.version == at
    parts = []
    for part in rows:
        new = np.full(panel.n_series, np.nan)
        new[series[is_new]] = part[is_new]
        parts.append(new - means(part[base], series[base], found.n))
    off = np.abs(parts[0] + parts[1] - found.shift) > 1e-6
    if off.any():
        names = [panel.names[i] for i in np.flatnonzero(off)[:3]]
        raise InputError(
            "reference and predictor must add up to the change of the error "
            f"(log measured before - now, log predicted now - before), not so in {int(off.sum())} "
            f"series: {', '.join(names)}."
        )
    return parts[0], parts[1]


def verdicts(found: Shifts, p: Floats, moved: NDArray[np.bool_], promise: Floats) -> NDArray[Any]:
    """Return the word for each series."""
    verdict = np.full(len(p), _AS_BEFORE, dtype=object)
    grew = np.abs(found.new) > np.abs(found.level)
    within = np.abs(found.new) <= promise
    verdict[moved & grew & ~within] = GREW
    verdict[moved & grew & within] = _WITHIN
    verdict[moved & ~grew] = _NO_LARGER
    verdict[np.isnan(p)] = _UNKNOWN
    verdict[np.isnan(found.new)] = _ABSENT
    return verdict


def reasons(found: Shifts, panel: Panel) -> NDArray[Any]:
    """Return why nothing can be told of a series; empty where something can."""
    why = np.full(panel.n_series, "", dtype=object)
    unknown = (found.noise == 0) & ~np.isnan(found.new)
    why[unknown] = "all values of the baseline are equal and the noise is not known"
    why[unknown & (found.n < 2)] = "one version in the baseline and no repeats to tell the noise"
    why[unknown & (panel.noise_df > 0)] = "its repeats are all equal, which rounding explains"
    why[unknown & (found.n == 0)] = "no version in the baseline"
    return why


def moved_by(
    reference: Floats,
    predictor: Floats,
    found: Shifts,
    moved: NDArray[np.bool_],
    *,
    margin: float,
    level: float,
    law: Law,
) -> NDArray[Any]:
    """Name what moved. Noise is that of the measurement: a prediction moves or it does not."""
    p = p_values(reference, found.se, found.df, margin=margin, law=law)
    by_reference = holm_adjusted(p) <= level
    by_predictor = np.abs(predictor) > max(margin, _ROUNDING)
    # An error that moved was moved by something: the larger part, where neither is beyond noise.
    neither = moved & ~by_reference & ~by_predictor
    by_reference |= neither & (np.abs(reference) >= np.abs(predictor))
    by_predictor |= neither & (np.abs(reference) < np.abs(predictor))
    name = np.full(len(reference), "", dtype=object)
    name[by_reference] = "reference"
    name[by_predictor] = "predictor"
    name[by_reference & by_predictor] = "both"
    name[moved & np.isnan(reference)] = "unknown"
    return name
