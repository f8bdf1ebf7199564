"""What each part contributes to the change of its whole, between two windows of versions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.noise import moderated_variances
from errcomp.halflife.panel import Panel
from errcomp.halflife.steps import Steps, find_steps_of
from errcomp.halflife.steps.fit import variance_of_mean
from errcomp.halflife.steps.parts import Times, Whole

__all__ = [
    "Listed",
    "Noise",
    "Rows",
    "Run",
    "cuts_of",
    "errors_of",
    "moderated",
    "rows_of",
    "run_of",
    "scatter_of",
    "steps_of_runs",
    "windows_of",
]

Floats = NDArray[np.float64]
#: Windows in which parts are listed at all.
Listed = Literal["both", "before", "after"]
#: Steps of parts that are smaller than this share of the whole do not begin an event.
_LEAST = 0.01


class Run(NamedTuple):
    """A whole and its parts, at the versions with times of the whole and of any part.

    ``times`` and ``variance`` (of repeats, absolute) have the shape (parts + 1, versions); the
    first row is the whole. NaN: not listed at this version.
    """

    name: str
    version: NDArray[np.int64]
    labels: tuple[str, ...]
    times: Floats
    variance: Floats
    df: Floats


def run_of(whole: Whole, times: Times, labels: tuple[str, ...]) -> Run | None:
    """Collect the times of a whole and its parts; None without two versions."""
    rows = np.append(whole.series, whole.parts)
    value = times.value[rows]
    version = np.flatnonzero(~np.isnan(value[0]) & ~np.isnan(value[1:]).all(axis=0))
    if len(version) < 2:
        return None
    value = value[:, version]
    variance = times.variance[rows][:, version] * value**2
    return Run(whole.name, version, labels, value, variance, times.df[rows])


def steps_of_runs(runs: Sequence[Run], versions: Sequence[str], alpha: float) -> list[list[Steps]]:
    """Search wholes and parts for steps, each at the versions at which it is listed."""
    listed = [~np.isnan(row) for run in runs for row in run.times]
    rows = [row for run in runs for row in run.times]
    version = [run.version for run in runs for _ in run.times]
    sizes = np.array([int(which.sum()) for which in listed])
    panel = Panel(
        versions=tuple(versions),
        months=np.full(len(versions), np.nan),
        names=tuple(str(i) for i in range(len(rows))),
        clusters=np.repeat(np.arange(len(runs)), [len(run.times) for run in runs]),
        starts=np.append(0, np.cumsum(sizes)),
        version=np.concatenate([v[which] for v, which in zip(version, listed, strict=True)]),
        error=np.log(np.concatenate([x[which] for x, which in zip(rows, listed, strict=True)])),
        sd=np.full(int(sizes.sum()), np.nan),
        noise_df=np.zeros(len(rows)),
        frozen_at_first=False,
    )
    found = iter(find_steps_of(panel, alpha=alpha))
    return [[next(found) for _ in run.times] for run in runs]


def cuts_of(run: Run, steps: Sequence[Steps], at: int | None) -> list[int]:
    """Return where events begin among the versions of a run, in order."""
    cuts: list[int] = []
    usual = np.median(run.times[0])
    for row, of_row in zip(run.times, steps, strict=True):
        listed = np.flatnonzero(~np.isnan(row))
        for step in of_row.steps:
            if abs(np.exp(step.after) - np.exp(step.before)) < _LEAST * usual:
                continue
            low, high = int(listed[step.at_low]), int(listed[step.at_high])
            # A step whose set of versions holds an event is that event.
            if not any(low <= cut <= high for cut in cuts):
                cuts.append(int(listed[step.at]))
    if at is not None:
        begin = int(np.searchsorted(run.version, at))
        if 0 < begin < len(run.version):
            cuts.append(begin)
    return sorted(set(cuts))


class Rows(NamedTuple):
    """An event: the whole, groups of parts, and the rest, at all versions of the run.

    ``value`` and ``variance`` have the shape (rows, versions), NaN where a row is not listed;
    ``level`` is the mean in both windows, shape (rows, 2).
    """

    names: list[str]
    listed: list[Listed]
    n: list[int]
    value: Floats
    variance: Floats
    df: Floats
    level: Floats
    windows: tuple[slice, slice]
    run: Run


def rows_of(run: Run, before: slice, after: slice) -> Rows:
    """Group the parts that are listed in both windows, and those of one window, by label."""
    listed_at = ~np.isnan(run.times[1:])
    old, new = (np.any(listed_at[:, window], axis=1) for window in (before, after))
    groups: dict[tuple[str, Listed], list[int]] = {}
    for i, label in enumerate(run.labels):
        if old[i] or new[i]:
            listed: Listed = "before" if not new[i] else "both" if old[i] else "after"
            groups.setdefault((label, listed), []).append(i + 1)
    members = [[0], *groups.values()]
    value = [run.times[rows].sum(axis=0) for rows in members]
    variance = [run.variance[rows].sum(axis=0) for rows in members]
    df = [run.df[rows].min() for rows in members]
    # A row of several parts may be incomplete at some versions; the mean of each part is not.
    level = [[_mean(run.times[rows, w]) for w in (before, after)] for rows in members]
    value.append(run.times[0] - np.nansum(run.times[1:], axis=0))
    variance.append(run.variance[0] + np.nansum(run.variance[1:], axis=0))
    level.append([level[0][k] - sum(row[k] for row in level[1:]) for k in (0, 1)])
    return Rows(
        [name for name, _ in groups],
        [listed for _, listed in groups],
        [len(rows) for rows in groups.values()],
        np.array(value),
        np.array(variance),
        np.array([*df, min(df)]),
        np.array(level),
        (before, after),
        run,
    )


def _mean(times: Floats) -> float:
    """Return the sum over parts of the mean of each over the versions that list it."""
    listed = ~np.isnan(times)
    n = listed.sum(axis=1)
    total = np.where(listed, times, 0.0).sum(axis=1)
    return float(np.divide(total, n, out=np.zeros(len(n)), where=n > 0).sum())


class Noise(NamedTuple):
    """Relative variance of the rows of an event, degrees of freedom, and correlation."""

    variance: Floats
    df: Floats
    rho: Floats


def windows_of(run: Run, cuts: Sequence[int]) -> list[slice]:
    """Return the versions between one event and the next, before the first, and after the last."""
    edges = [0, *cuts, len(run.version)]
    return [slice(a, b) for a, b in pairwise(edges)]


def scatter_of(rows: Rows, windows: Sequence[slice], rho: Floats) -> Noise:
    """Return the scatter of the rows of an event about their means in all windows of the run.

    It is relative to that mean; that of the rest, to the mean of the whole.
    """
    squares, expected, df = np.zeros((3, len(rows.value)))
    for window in windows:
        x = rows.value[:, window]
        listed = ~np.isnan(x)
        n = listed.sum(axis=1)
        total = np.where(listed, x, 0.0).sum(axis=1)
        mean = np.divide(total, n, out=np.zeros(len(n)), where=n > 0)
        scale = np.append(mean[:-1], mean[0])
        left = np.where(listed, x - mean[:, None], 0.0)
        square = np.divide((left**2).sum(axis=1), scale**2, out=np.zeros(len(n)), where=scale > 0)
        used = (n > 1) & (scale > 0)
        squares += np.where(used, square, 0.0)
        of_mean = variance_of_mean(np.maximum(n, 1), rho)
        expected += np.where(used, n * (1 - of_mean), 0.0)
        df += np.where(used, n - 1, 0)
    variance = np.divide(squares, expected, out=np.full(len(df), np.nan), where=df > 0)
    return Noise(variance, df, rho)


def moderated(noises: Sequence[Noise]) -> list[Noise]:
    """Let wholes, groups and rests learn from the others of their kind."""
    if not noises:
        return []
    kind = np.concatenate([np.array([0, *[1] * (len(one.df) - 2), 2]) for one in noises])
    variance, df = (np.concatenate([one[i] for one in noises]) for i in range(2))
    for which in (kind == 0, kind == 1, kind == 2):
        if (df[which] > 0).any():
            usual = moderated_variances(variance[which], df[which])
            variance[which], df[which] = usual.variance, usual.df
    ends = np.cumsum([len(one.df) for one in noises])[:-1]
    parts = zip(np.split(variance, ends), np.split(df, ends), noises, strict=True)
    return [one._replace(variance=v, df=d) for v, d, one in parts]


def errors_of(rows: Rows, noise: Noise) -> tuple[Floats, Floats]:
    """Return the standard errors of the changes between the windows, and degrees of freedom."""
    scatter, repeats = np.zeros((2, len(rows.value)))
    for k, window in enumerate(rows.windows):
        listed = ~np.isnan(rows.value[:, window])
        n = np.maximum(listed.sum(axis=1), 1)
        scale = np.append(rows.level[:-1, k], rows.level[0, k])
        scatter += noise.variance * scale**2 * variance_of_mean(n, noise.rho)
        # A row that is not listed in a window has no noise there; unknown noise stays unknown.
        square = np.where(listed, rows.variance[:, window], 0.0).sum(axis=1)
        repeats += square / n**2
    by_repeats = np.isnan(scatter) | (repeats > scatter)
    by_repeats &= ~np.isnan(repeats)
    square = np.where(by_repeats, repeats, scatter)
    return np.sqrt(square), np.where(by_repeats, np.maximum(rows.df, 1), noise.df)
