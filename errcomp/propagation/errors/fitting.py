"""Fits a model of a predictor's errors to measured runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize

from errcomp.errors import InputError, renamed
from errcomp.propagation.errors import ClassError, ErrorModel
from errcomp.propagation.errors.components import Components, estimate_components
from errcomp.propagation.errors.residuals import NOT_MODELLED, Residuals, residuals
from errcomp.propagation.errors.tails import (
    NORMAL_TAILS,
    Tails,
    estimate_df,
    normal_scores,
    observe,
    variance_df,
)
from errcomp.propagation.terms import KINDS, Floats, Integers, Kind, is_number
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.tables import Kernels

#: The floor, below which times carry no information, is this quantile of the measured times.
_FLOOR_QUANTILE = 0.01
#: Ratio of a run that was measured as 0; its logarithm exists.
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class _Fit:
    """Locations, spreads and residuals of one set of runs."""

    location: Location
    residual: Floats
    weight: Floats
    spread: Floats
    of_row: Floats
    size: Floats
    exponent: float


@renamed(confidence="level")
def fit_errors(
    kernels: Kernels | Any,
    *,
    kind: Kind = "log-ratio",
    by_size: bool = False,
    level: float | None = 0.9,
) -> ErrorModel:
    r"""Fit bias, spread and correlation of a predictor's errors to measured runs.

    Weights are shares of the run's predicted time, so that the error model fits totals. Per class c
    with ratios y = measured / predicted:

    * location: the weighted mean of each device, then Huber's estimate over devices;
    * spread: the weighted root mean square of y / location − 1, with the location from the
      *other* devices, so that it is the error of a prediction for a new device;
    * log-ratio: the log-normal with the same mean and variance, spread² = ln(1 + cv²),
      bias = ln(location) − spread² / 2.

    The spread is not robust on purpose: outliers also occur in totals. The distribution of errors
    is estimated from the totals of the training runs (`Tails`), correlations by
    `estimate_components`.

    Parameters
    ----------
    kernels : Kernels
        Predicted and measured kernels; runs with unmeasured kernels are left out.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of the errors.
    by_size : bool
        Let the spread depend on the predicted time within a class (power law).
    level : float or None
        Nominal coverage of the intervals of the components. None: no intervals, which is much
        faster.

    Returns
    -------
    ErrorModel
        With ``components`` and ``tails``.

    Raises
    ------
    InputError
        No run has predictions and measurements of all its kernels, kernels are of several tools,
        most devices (or runs) were measured as 0, kind is unknown, the level is not in (0, 1), or
        `by_size` is used with absolute errors.

    Examples
    --------
    >>> from errcomp import Kernels
    >>> kernels = Kernels({"run": ["r1", "r2", "r3"], "kernel": ["gemm"] * 3,
    ...                    "device": ["A", "B", "C"], "predicted": [1.0, 1.0, 1.0],
    ...                    "measured": [1.1, 1.0, 0.9]})
    >>> model = fit_errors(kernels, level=None)
    >>> model.n_runs, 0.05 < model.error("gemm").spread < 0.3
    (3, True)
    """
    kernels = kernels_in_memory(kernels)
    _check(kernels, kind, by_size, level)
    positive = kernels.measured[np.isfinite(kernels.measured) & (kernels.measured > 0)]
    floor = float(np.quantile(positive, _FLOOR_QUANTILE)) if len(positive) else 0.0
    errors, word = residuals(kernels, kind, floor)
    fit = _fit(errors, kind, by_size)

    def refitted(part: Residuals) -> tuple[Floats, Floats, Floats]:
        refit = _fit(part, kind, by_size)
        return refit.residual, refit.weight, refit.of_row

    components = estimate_components(errors, refitted, cluster=word, level=level)
    classes = {
        str(name): _class_error(
            kind,
            float(fit.location.of_class[i]),
            float(fit.spread[i]) * components.scale,
            n=int(np.sum(errors.label == i)),
            n_clusters=int(fit.location.n_clusters[i]),
            size=float(fit.size[i]),
        )
        for i, name in enumerate(errors.labels)
    }
    modelled = np.where(errors.labels[errors.label] == NOT_MODELLED, 0.0, errors.weight)
    pooled = float(np.sqrt((modelled * fit.residual**2).sum() / modelled.sum()))
    return ErrorModel(
        classes=classes,
        kind=kind,
        other=_class_error(kind, fit.location.overall, pooled * components.scale),
        floor=0.0 if kind == "absolute" else floor,
        size_exponent=fit.exponent,
        components=components,
        tails=_tails(errors, fit, components, kind),
        n_runs=len(np.unique(errors.run)),
        devices=tuple(map(str, np.unique(kernels.device[np.isfinite(kernels.measured)]))),
        unit=kernels.unit,
    )


def _check(kernels: Kernels, kind: Kind, by_size: bool, level: float | None) -> None:
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if by_size and kind == "absolute":
        raise InputError(
            "by_size is for errors relative to the time, not for absolute errors. Use "
            'kind="log-ratio" or kind="relative".'
        )
    if level is not None and not (is_number(level) and 0 < level < 1):
        raise InputError(f"level must be between 0 and 1, or None, got {level!r}")


def _fit(errors: Residuals, kind: Kind, by_size: bool) -> _Fit:
    where = locate(errors, kind)
    if kind != "absolute" and where.overall <= 0:
        raise InputError(
            "on most devices (or runs) all kernels were measured as 0, so errors relative to "
            "measured times are not defined. Drop those devices, or use absolute errors."
        )
    if kind == "absolute":
        residual, weight = errors.y - where.of_row, errors.weight
    else:
        residual = errors.y / where.of_row - 1
        weight = errors.weight * where.of_class[errors.label]
        weight = weight / np.bincount(errors.run, weight)[errors.run]
    spread, size, exponent = _spreads(errors, residual, by_size)
    of_row = spread[errors.label]
    if by_size:
        of_row = of_row * np.nan_to_num(errors.size / size[errors.label], nan=1.0) ** -exponent
    return _Fit(where, residual, weight, spread, of_row, size, exponent)


def _class_error(kind: Kind, location: float, spread: float, **seen: Any) -> ClassError:
    """Express location and spread of measured / predicted on the scale of the kind."""
    if kind == "log-ratio":
        variance = math.log1p(spread**2)
        # A class that was always measured as 0 has no logarithm; it adds nothing.
        bias = math.log(max(location, 1e-300)) - variance / 2
        return ClassError(bias, math.sqrt(variance), **seen)
    if kind == "relative":
        return ClassError(location - 1, spread * location, **seen)
    return ClassError(location, spread, **seen)


def _tails(errors: Residuals, fit: _Fit, components: Components, kind: Kind) -> Tails:
    """Return the distribution of the totals' errors, relative to their propagated spread.

    The errors are computed as they will be used: on the scale of the bands and around their middle,
    with locations from the other devices.
    """
    runs = int(errors.run.max()) + 1
    error: Floats = np.bincount(errors.run, fit.weight * fit.residual, minlength=runs).astype(float)
    scaled = fit.weight * fit.of_row * components.scale
    variance: Floats = np.zeros(runs)
    for group, share in zip(errors.groups(), components.shares.values(), strict=True):
        run = np.zeros(int(group.max()) + 1, dtype=np.int64)
        run[group] = errors.run  # every group lies within one run
        variance += share * np.bincount(run, np.bincount(group, scaled) ** 2, minlength=runs)
    if not (variance > 0).all():
        return NORMAL_TAILS
    if kind == "log-ratio":
        measured = np.bincount(errors.run, errors.weight * errors.y)
        expected = np.bincount(errors.run, errors.weight * fit.location.of_row)
        variance = np.log1p(variance)
        # A run that was measured as 0 has no logarithm.
        error = np.log(np.maximum(measured / expected, _NOTHING)) + variance / 2
    z = error / np.sqrt(variance)
    cluster = np.zeros(runs, dtype=np.int64)
    cluster[errors.run] = errors.cluster
    tail_df = estimate_df(z)
    # Normal scores, so that heavy tails do not count again as an uncertain variance.
    return Tails(
        tail_df,
        variance_df(normal_scores(z, tail_df), cluster),
        # A single device or run has no others to be compared with.
        observe(z, cluster) if len(errors.clusters) > 1 else None,
    )


def _spreads(errors: Residuals, residual: Floats, by_size: bool) -> tuple[Floats, Floats, float]:
    """Return the spread of each class, the size at which it is valid, and its decrease with size.

    The exponent maximises the normal likelihood of the residuals, weighted like them, with the
    spreads of the classes profiled out.
    """
    n = len(errors.labels)
    base = np.bincount(errors.label, errors.weight, minlength=n)

    def within(x: Floats) -> Floats:
        return np.bincount(errors.label, errors.weight * x, minlength=n) / base

    if not by_size:
        return np.sqrt(within(residual**2)), np.full(n, np.nan), 0.0
    log_size = np.nan_to_num(np.log(errors.size))
    centre = within(log_size)
    log_size = log_size - centre[errors.label]

    def variance(exponent: float) -> Floats:
        return within(residual**2 * np.exp(2 * exponent * log_size))

    def cost(exponent: float) -> float:
        return float((base * np.log(np.maximum(variance(exponent), 1e-300))).sum())

    best = optimize.minimize_scalar(cost, bounds=(0.0, 1.0), method="bounded")
    modelled = errors.labels != NOT_MODELLED
    return (
        np.sqrt(variance(float(best.x))),
        np.where(modelled, np.exp(centre), np.nan),
        float(best.x),
    )


# Location and spread of errors per class, each error relative to the other clusters.

_TUNING = 1.345  # 95 % efficiency at the normal
_STEPS = 50
_MANY = 100  # clusters beyond which leaving one out moves a location by less than 1 % of its spread


def huber(x: Floats) -> float:
    """Return Huber's M-estimate of location, scale by the median absolute deviation.

    Outlying devices count, but not in full. If more than half are equal, it is the median.

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter", Annals of Mathematical Statistics
    35(1), doi:10.1214/aoms/1177703732.

    Examples
    --------
    >>> round(huber(np.array([1.0, 1.1, 0.9, 1.05, 5.0])), 3)
    1.05
    """
    if len(x) < 3:
        return float(np.mean(x))
    centre = _median(x)
    scale = 1.4826 * _median(np.abs(x - centre))
    if scale == 0:
        return centre
    for _ in range(_STEPS):
        weight = np.minimum(1.0, _TUNING * scale / np.maximum(np.abs(x - centre), 1e-300))
        moved = float((weight * x).sum() / weight.sum())
        if abs(moved - centre) <= 1e-12 * scale:
            return moved
        centre = moved
    return centre


def _median(x: Floats) -> float:
    """Return the median of some numbers; for few of them faster than NumPy's."""
    ordered, half = np.sort(x), len(x) // 2
    return float(ordered[half] if len(x) % 2 else (ordered[half - 1] + ordered[half]) / 2)


@dataclass(frozen=True, slots=True)
class Location:
    """Location of each class, overall and, for each row, from the other clusters."""

    of_class: Floats
    of_row: Floats
    overall: float
    n_clusters: Integers


def locate(errors: Residuals, kind: Kind) -> Location:
    """Return the location of y per class: the weighted mean of each cluster, then Huber.

    For each row the location is also computed without the row's own cluster, so that residuals are
    errors of predictions on a new cluster. A class in only one cluster then takes the location of
    all classes together.
    """
    n_clusters, n_labels = len(errors.clusters), len(errors.labels)
    ratio = errors.labels[errors.label] != NOT_MODELLED
    top = np.bincount(errors.cluster, errors.weight * errors.y * ratio, minlength=n_clusters)
    base = np.bincount(errors.cluster, errors.weight * ratio, minlength=n_clusters)
    pooled = top / base
    overall = huber(pooled)
    cell = errors.label * n_clusters + errors.cluster
    cells, position = np.unique(cell, return_inverse=True)
    # Weights within a cluster: a class without predicted time still has a plain mean.
    weight = errors.weight + np.finfo(float).tiny
    means = np.bincount(position, weight * errors.y) / np.bincount(position, weight)
    of_class = np.empty(n_labels)
    without = np.empty(len(cells))
    counts = np.bincount(cells // n_clusters, minlength=n_labels)
    ends = np.concatenate([[0], np.cumsum(counts)])
    for label in range(n_labels):
        own = np.arange(ends[label], ends[label + 1])
        of_class[label] = huber(means[own])
        if len(own) > _MANY:
            without[own] = of_class[label]
            continue
        for i in own:
            others = own[own != i]
            if len(others):
                without[i] = huber(means[others])
            elif errors.labels[label] == NOT_MODELLED or n_clusters == 1:
                without[i] = means[i]
            else:
                without[i] = huber(np.delete(pooled, cells[i] % n_clusters))
    if kind != "absolute":
        # Errors cannot be relative to a ratio of 0: a class that was measured as 0 elsewhere.
        without[without == 0] = overall
    return Location(of_class, without[position], overall, counts)
