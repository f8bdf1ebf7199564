"""Location and spread of errors per class, each error judged by the other clusters only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from errcomp.propagation._residuals import NOT_MODELLED, Residuals
from errcomp.propagation.terms import Floats, Integers, Kind

__all__ = ["Location", "huber", "locate"]

_TUNING = 1.345  # 95 % efficiency at the normal
_STEPS = 50
_MANY = 100  # clusters beyond which leaving one out moves a location by less than 1 % of its spread


def huber(x: Floats) -> float:
    """Return Huber's M-estimate of location, scale by the median absolute deviation.

    Outlying devices count, but not in full. The median where more than half are equal.

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter", Annals of Mathematical Statistics
    35(1), doi:10.1214/aoms/1177703732.

    Examples
    --------
    >>> round(huber(np.array([1.0, 1.1, 0.9, 1.05, 5.0])), 3)
    1.05
    """
    centre = float(np.median(x))
    scale = 1.4826 * float(np.median(np.abs(x - centre)))
    if len(x) < 3:
        return float(np.mean(x))
    if scale == 0:
        return centre
    for _ in range(_STEPS):
        weight = np.minimum(1.0, _TUNING * scale / np.maximum(np.abs(x - centre), 1e-300))
        moved = float((weight * x).sum() / weight.sum())
        if abs(moved - centre) <= 1e-12 * scale:
            return moved
        centre = moved
    return centre


@dataclass(frozen=True, slots=True)
class Location:
    """Location of each class, overall and for each row as the other clusters have it."""

    of_class: Floats
    of_row: Floats
    overall: float
    n_clusters: Integers


def locate(found: Residuals, kind: Kind) -> Location:
    """Return the location of y per class: the weighted mean of each cluster, then Huber.

    For each row the location is also computed without the row's own cluster, so that residuals
    are errors of prediction on something new. A class that only one cluster has is then judged by
    the location of all classes together.
    """
    n_clusters, n_labels = len(found.clusters), len(found.labels)
    ratio = found.labels[found.label] != NOT_MODELLED
    top = np.bincount(found.cluster, found.weight * found.y * ratio, minlength=n_clusters)
    base = np.bincount(found.cluster, found.weight * ratio, minlength=n_clusters)
    pooled = top / base
    overall = huber(pooled)
    cell = found.label * n_clusters + found.cluster
    cells, position = np.unique(cell, return_inverse=True)
    # Weights within a cluster: a class of no predicted time still has a plain mean.
    weight = found.weight + np.finfo(float).tiny
    means = np.bincount(position, weight * found.y) / np.bincount(position, weight)
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
            elif found.labels[label] == NOT_MODELLED or n_clusters == 1:
                without[i] = means[i]
            else:
                without[i] = huber(np.delete(pooled, cells[i] % n_clusters))
    if kind != "absolute":
        # Nothing can be relative to a ratio of 0: a class that was measured as 0 elsewhere.
        without[without == 0] = overall
    return Location(of_class, without[position], overall, counts)
