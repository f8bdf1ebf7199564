r"""Drift per release by age of the workload: new workloads drift more than mature ones.

The age of a step is the number of releases from the first one with the workload to the start of the
step. A step of a series is the difference of its errors at two neighbouring releases. Differences
over several releases are left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_rows
from errcomp.halflife.drift import group_sums
from errcomp.halflife.panel import Panel, check_steps, tails
from errcomp.stats.significance import student_ppf

Floats = NDArray[np.float64]

__all__ = ["AgeDrift", "drift_by_age"]

#: With fewer effective clusters, the interval of a median was too short in simulations.
_FEWEST_CLUSTERS = 5


@dataclass(frozen=True, slots=True)
class AgeDrift:
    r"""Drift per release of the workloads of one age.

    Attributes
    ----------
    age : int
        Releases since the workload first appeared; 0 is the step after its first release.
    median : float
        Median \|Δ log error\| from a release to the next.
    low, high : float or None
        Its interval; None with fewer than five effective clusters, or too few for the level.
    n : int
        Number of steps.
    n_clusters : int
        Number of clusters with such steps.
    n_longer : int
        Number of differences over several releases that start at that age, left out.
    level : float
        Nominal coverage.
    """

    age: int
    median: float
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    n_longer: int
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> AgeDrift(
        ...     age=0, median=0.1, low=None, high=None, n=1, n_clusters=1, n_longer=0, level=0.95
        ... ).to_dict()["median"]
        0.1
        """
        return {name: getattr(self, name) for name in self.__slots__}


def drift_by_age(
    panel: Panel,
    *,
    workloads: ArrayLike | None = None,
    first: ArrayLike | None = None,
    level: float = 0.95,
) -> tuple[AgeDrift, ...]:
    r"""Median \|Δ log error\| per release by age of the workload.

    .. math:: d_a = \operatorname{median} \{ |e_{i,k+1} - e_{ik}| :
              v_{ik} - f_i = a,\ v_{i,k+1} = v_{ik} + 1 \}

    with v the position of a version, k the rows of series i and f the position of the version in
    which its workload first appeared. All steps have the same weight. Noise is not subtracted: a
    median below about 1.35 times the noise's standard deviation shows the noise alone.

    The interval inverts the share of steps below a value. The variance of this share is that of the
    totals of clusters (Woodruff's interval, with Student's t). It covers if clusters change
    independently of each other. It is conditional on the observed releases, and misleads if one
    release changed all workloads of an age at once.

    Parameters
    ----------
    panel : Panel
    workloads : array_like of names, shape (n_series,), optional
        Workload of each series; by default each cluster is a workload.
    first : array_like of int, shape (n_series,), optional
        Position in ``panel.versions`` of the version in which the workload of each series first
        appeared; negative before the first known version. By default the earliest version with a
        row of the workload, which is too late if the workload is older than the panel.
    level : float
        Of the interval.

    Returns
    -------
    tuple of AgeDrift
        By age; ages without a step are left out.

    Raises
    ------
    InputError
        The number of workloads or first versions differs from that of the series, a first version
        is after a row of the series, no series has two neighbouring releases, or ``level`` is not
        between 0 and 1.

    References
    ----------
    Woodruff (1952), "Confidence Intervals for Medians and Other Position Measures",
    doi:10.1080/01621459.1952.10483443.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> panel = Panel(
    ...     versions=("1", "2", "3"),
    ...     months=np.full(3, np.nan),
    ...     names=("new", "old"),
    ...     clusters=np.array([0, 1]),
    ...     starts=np.array([0, 3, 6]),
    ...     version=np.array([0, 1, 2, 0, 1, 2]),
    ...     error=np.array([0, 0.1, 0.12, 0, 0.01, 0.0]),
    ...     sd=np.full(6, np.nan),
    ...     noise_df=np.zeros(2),
    ...     frozen_at_first=True,
    ... )
    >>> [(d.age, round(d.median, 3), d.n) for d in drift_by_age(panel, first=[0, -4])]
    [(0, 0.1, 1), (1, 0.02, 1), (4, 0.01, 1), (5, 0.01, 1)]
    """
    tail = tails(level)
    check_steps(panel)
    born = _first_versions(panel, workloads, first)
    series = panel.series
    step = np.flatnonzero(series[1:] == series[:-1])
    single = panel.version[step + 1] == panel.version[step] + 1
    if not single.any():
        raise InputError(
            f"drift per release is unknown: all {len(step):,} differences between validations span "
            "several releases. Validate the same series under successive releases."
        )
    longer = panel.version[step] - born[series[step]]
    longer, step = longer[~single], step[single]
    size = np.abs(panel.error[step + 1] - panel.error[step])
    age = panel.version[step] - born[series[step]]
    cluster = np.unique(panel.clusters[series[step]], return_inverse=True)[1]
    order = np.lexsort((size, age))
    size, age, cluster = size[order], age[order], cluster[order]
    drifts = []
    bounds = [*np.flatnonzero(np.diff(age, prepend=age[0] - 1)), len(age)]
    for start, stop in pairwise(bounds):
        sizes = size[start:stop]
        low, high, k = _median_bounds(sizes, cluster[start:stop], tail)
        drifts.append(
            AgeDrift(
                age=int(age[start]),
                median=float(np.median(sizes)),
                low=low,
                high=high,
                n=len(sizes),
                n_clusters=k,
                n_longer=int((longer == age[start]).sum()),
                level=float(level),
            )
        )
    return tuple(drifts)


def _first_versions(
    panel: Panel, workloads: ArrayLike | None, first: ArrayLike | None
) -> NDArray[np.int64]:
    s = panel.n_series
    earliest = panel.version[panel.starts[:-1]]
    if first is None:
        labels = panel.clusters if workloads is None else np.asarray(workloads)
        if labels.shape != (s,):
            raise InputError(
                f"workloads must be {s:,} names, one per series, got shape {labels.shape}."
            )
        kind = labels.astype(str) if labels.dtype.kind == "O" else labels
        code = np.unique(kind, return_inverse=True)[1]
        born = np.full(code.max(initial=-1) + 1, np.iinfo(np.int64).max)
        np.minimum.at(born, code, earliest)
        return born[code]
    if workloads is not None:
        raise InputError("pass either workloads= or first=, not both: each determines the age.")
    given = np.asarray(first)
    if given.shape != (s,) or given.dtype.kind not in "iu":
        raise InputError(
            f"first must hold {s:,} positions of versions (whole numbers), one for each series, "
            f"got {given.dtype} of shape {given.shape}."
        )
    late = np.flatnonzero(given > earliest)
    if len(late):
        i = int(late[0])
        raise InputError(
            f"first must not be after the first row of a series, got {given[i]} for "
            f"{panel.names[i]!r}, whose first row is at {earliest[i]} "
            f"({describe_rows(late.tolist(), word='position')})."
        )
    return given.astype(np.int64)


def _median_bounds(
    ordered: Floats, cluster: NDArray[np.int64], tail: float
) -> tuple[float | None, float | None, int]:
    from scipy.special import ndtri

    code = np.unique(cluster, return_inverse=True)[1]
    size = np.bincount(code).astype(float)
    k, n = len(size), len(ordered)
    effective = size.sum() ** 2 / (size**2).sum()
    if effective < _FEWEST_CLUSTERS:
        return None, None, k
    below = np.arange(n) < n / 2
    residual = group_sums(below - below.mean(), code, k)
    between = np.sqrt((residual**2).sum() * effective / (effective - 1))
    # Clusters may balance by chance: never shorter than for independent steps.
    alone = np.sqrt(n) / 2
    margin = max(student_ppf(1 - tail, effective - 1) * between, float(ndtri(1 - tail)) * alone) / n
    low, high = (0.5 - margin) * n, (0.5 + margin) * n
    if low < 0:
        return None, None, k
    return float(ordered[int(low)]), float(ordered[min(int(np.ceil(high)), n - 1)]), k
