"""How often series step, and by how much: the steps of a group, pooled over its series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.drift import Fit, has_rare_steps
from errcomp.halflife.panel import Clock, Panel
from errcomp.halflife.steps import Steps
from errcomp.results import format_fraction

__all__ = ["Rates", "detects", "why_no_rates"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def detects(steps: Steps, limit: float) -> bool:
    """Say whether a step as large as the limit would be detected in a series."""
    smallest = steps.smallest_middle
    return not steps.refused and smallest is not None and smallest <= limit


def why_no_rates(
    steps: Sequence[Steps], limit: float, fit: Fit, name: str, remedy: str = ""
) -> str:
    """Say why the steps of a group cannot explain its drift; empty if they can.

    ``name`` is what the limit is called, and ``remedy`` follows where drift is many small changes.
    """
    searched = [series for series in steps if not series.refused]
    if not searched:
        return f"no series could be searched for steps: {steps[0].refused}."
    if not any(detects(series, limit) for series in steps):
        smallest = [
            series.smallest_middle for series in searched if series.smallest_middle is not None
        ]
        if not smallest:
            return f"noise hides steps as large as the {name}."
        least = format_fraction(float(np.expm1(min(smallest))))
        return f"noise hides steps as large as the {name} (the smallest detectable is {least})."
    if fit.law is not None and not has_rare_steps(fit):
        return (
            "drift consists of many small changes, not a few steps, so the detected steps are not "
            f"real.{remedy}"
        )
    return ""


def _within(steps: Steps, limit: float, error: Floats) -> NDArray[np.bool_]:
    """Say at which versions the level of a series is within the limit."""
    if not steps.steps:
        return np.full(len(error), abs(error.mean()) < limit)
    level = np.full(len(error), steps.steps[0].before)
    for step in steps.steps:
        level[step.at :] = step.after
    return np.asarray(np.abs(level) < limit)


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Steps of the series with enough power to detect a relevant step.

    Attributes
    ----------
    series : ndarray of int, shape (s,)
        Positions of these series in the panel.
    sizes : ndarray, shape (n,)
    at, cluster, series_of : ndarray of int, shape (n,)
        Version, cluster and series of each step; series are numbered as in ``series``.
    spans : ndarray, shape (s,)
        Time over which steps of each series would be detected.
    cluster_of : ndarray of int, shape (s,)
        Numbered from 0.
    exposure : ndarray, shape (clusters, versions)
        The same time, by cluster and by the version at which it ends.
    """

    series: Ints
    sizes: Floats
    at: Ints
    cluster: Ints
    series_of: Ints
    spans: Floats
    cluster_of: Ints
    exposure: Floats

    @classmethod
    def of(
        cls,
        panel: Panel,
        clock: Clock,
        steps: Sequence[Steps],
        limit: float,
        *,
        inside: bool = False,
    ) -> Rates:
        """Pool the steps of the series in which steps as large as the limit are detected.

        With ``inside``, only steps from a level within the limit count, and the time at such a
        level: a step that is undone says little of how often the next one comes.
        """
        which = np.flatnonzero([detects(series, limit) for series in steps])
        panel = panel.take(which)
        time = panel.times(clock)
        cluster_of = np.unique(panel.clusters, return_inverse=True)[1]
        exposure = np.zeros((int(cluster_of.max(initial=-1)) + 1, len(panel.versions)))
        sizes, at, cluster, series_of = [], [], [], []
        spans = np.zeros(len(which))
        for i, series in enumerate(steps[j] for j in which.tolist()):
            first, end = int(panel.starts[i]), int(panel.starts[i + 1])
            # Dead time, as of a counter: a step next to an end of the series looks like a bad run,
            # and two neighbouring steps look like one; on the way out, it is as large as both.
            dead = 0.0 if inside else series.unseen * len(series.steps) / (series.n - 1)
            spans[i] = time[end - 1 - series.unseen] - time[first + series.unseen]
            spans[i] -= dead * (time[end - 1] - time[first])
            passed = spans[i] / (time[end - 1] - time[first]) * np.diff(time[first:end])
            if inside:
                passed[~_within(series, limit, panel.error[first:end])[:-1]] = 0.0
                spans[i] = passed.sum()
            np.add.at(exposure[cluster_of[i]], panel.version[first + 1 : end], passed)
            for step in series.steps:
                if inside and abs(step.before) >= limit:
                    continue
                sizes.append(step.size)
                at.append(int(panel.version[first + step.at]))
                cluster.append(int(cluster_of[i]))
                series_of.append(i)
        return cls(
            which,
            np.asarray(sizes, dtype=float),
            np.asarray(at, dtype=np.int64),
            np.asarray(cluster, dtype=np.int64),
            np.asarray(series_of, dtype=np.int64),
            spans,
            cluster_of,
            exposure,
        )

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.exposure)

    @property
    def shared(self) -> bool:
        """Whether series may step together."""
        return self.n_clusters < len(self.spans)
