"""How long a calibrated model stays valid: every estimator on the groups of a history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.halflife.drift import Fit, fit_variogram
from errcomp.halflife.drift.trajectory import error_trajectory, trajectory_half_life
from errcomp.halflife.drift.variogram import drift_variogram, variogram_half_life
from errcomp.halflife.estimators.by_steps import steps_half_life
from errcomp.halflife.estimators.decay import decay_half_lives
from errcomp.halflife.estimators.expiry import Expiry, expiry_of, series_half_lives
from errcomp.halflife.estimators.survival import half_lives_of
from errcomp.halflife.panel import (
    Clock,
    HalfLife,
    Moved,
    Panel,
    PanelOf,
    check_level,
    moved,
    panel_of,
    products,
)
from errcomp.halflife.results import RESERVED, GroupHalfLife, HalfLives, ReleaseStep
from errcomp.halflife.stack import Stack
from errcomp.halflife.steps import Steps, find_steps_of
from errcomp.halflife.steps.environment import Attribution, attribute_steps_of
from errcomp.halflife.threshold import Threshold, doubling_threshold
from errcomp.results import Estimate, format_fraction
from errcomp.stats.significance import student_ppf
from errcomp.system.processes import Progress, map_jobs
from errcomp.tables import History, check_keys
from errcomp.tables.backends import history_of
from errcomp.tables.engine.history import HistoryRows

__all__ = ["PROMISED", "ReleaseStudy", "half_life", "release_study"]


def half_life(
    history: History | HistoryRows | Any,
    *,
    by: str | Sequence[str] = (),
    error: float | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    alpha: float = 0.05,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> HalfLives:
    r"""Estimate how long a calibrated model stays valid while the software changes.

    Definition: the half-life of a model is the time after which its calibrated error has doubled.
    Several methods estimate it for each group of series, each with an interval and its assumptions.
    Times are counted in releases and, if versions have dates, in months:

    ==============  =============================================================================
    turnbull        time until half of the series exceed twice the calibrated error; without an
                    assumed distribution (nonparametric, interval- and right-censored)
    exponential,    the same, with an assumed distribution of the times; held-out scores are in
    weibull,        ``details``
    log-normal
    steps           the same, from the rate and the sizes of all steps of the series: narrower,
                    where drift is a few steps
    trajectory      time until the RMS error of the series has doubled, given these releases
    variogram       the same for a model calibrated at any release, if drift continues
    decay           for a single series: by a smooth curve, if the data support one
    expiry          for a single series: last clearly valid and first clearly expired version
    ==============  =============================================================================

    Parameters
    ----------
    history : History, HistoryRows or dataframe
        See `errcomp.tables.History`. Rows in an engine (a lazy frame, a DuckDB relation, Dask,
        Spark) stay there: see `errcomp.tables.engine.history.HistoryRows`.
    by : str or sequence of str
        Keys to group series by; each must have one value per series.
    error : float, optional
        The calibrated error that was promised, as a fraction. By default the RMS error at the first
        version of each series, minus noise, or 5 % without predictions.
    cluster : str, optional
        Key of series that change together: series with the same value are one cluster.
    level : float
        Coverage of the intervals.
    alpha : float
        False-alarm rate of the search for steps, per series.
    seed : int
    n_jobs : int, optional
        How many processes estimate the groups; see `errcomp.summarize`.
    progress : callable, optional
        Called with what is done and how much there is.

    Returns
    -------
    HalfLives

    Raises
    ------
    InputError
        The history has a single version, a key does not exist or varies within a series, or an
        option is out of range.

    Examples
    --------
    >>> import errcomp as ec
    >>> versions = [f"1.{i}" for i in range(12)]
    >>> half_lives = ec.half_life(
    ...     {
    ...         "version": versions * 2,
    ...         "op": ["Gelu"] * 12 + ["Conv"] * 12,
    ...         "measured": [4.0, 4.1] * 4 + [2.0, 2.1] * 2 + [8.0, 8.1] * 6,
    ...     },
    ...     by="op",
    ... )
    >>> [(row["op"], row["half_life"]) for row in half_lives.rows() if row["method"] == "expiry"]
    [('Conv', inf), ('Gelu', 8.0)]
    >>> [(step.version, round(step.change, 2)) for step in half_lives.groups[1].steps]
    [('1.8', 0.98)]
    """
    check_level(level)
    found = searched(history, by=by, cluster=cluster, alpha=alpha)
    results = []
    estimate = partial(
        _group_half_life, clocks=found.clocks, error=error, level=level, alpha=alpha, seed=seed
    )
    for group in map_jobs(estimate, found.groups(), n_jobs=n_jobs):
        results.append(group)
        if progress is not None:
            progress(len(results), len(found.members))
    return HalfLives(
        source=found.table.source,
        groups=tuple(results),
        by=found.by,
        clocks=found.clocks,
        versions=found.table.versions,
        order_by=found.table.order_by,
        noise=found.panel_data.noise,
        environment=found.environment,
        dropped=found.panel_data.dropped,
        notes=found.notes,
        level=level,
        alpha=alpha,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class Group:
    """A group of series, with the noise and notes of the whole history."""

    key: dict[str, Any]
    panel: Panel
    steps: tuple[Steps, ...]
    changes: Moved
    stack: Stack


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A history with the steps of its series, before anything else is estimated.

    Attributes
    ----------
    table : History
    panel_data : PanelOf
    by : tuple of str
    members : list
        Of each group, its keys and the positions of its series.
    clocks : tuple of {"releases", "months"}
    steps : list of Steps
        By series.
    environment : tuple of Attribution
        Steps by date of validation.
    notes : tuple of str
    """

    table: History
    panel_data: PanelOf
    by: tuple[str, ...]
    members: list[tuple[dict[str, Any], NDArray[np.int64]]]
    clocks: tuple[Clock, ...]
    steps: list[Steps]
    environment: tuple[Attribution, ...]
    notes: tuple[str, ...]

    def groups(self) -> Iterator[Group]:
        """Return the groups, one after the other: together they take as much as the history."""
        panel = self.panel_data.panel
        changes, product, stack = moved(self.panel_data), products(panel), Stack(self.table)
        for key, which in self.members:
            yield Group(
                key=key,
                panel=_with_own_releases(panel.take(which), product),
                steps=tuple(self.steps[i] for i in which.tolist()),
                changes=changes.take(panel.rows_of(which)),
                stack=stack,
            )


def searched(
    history: History | HistoryRows | Any,
    *,
    by: str | Sequence[str],
    cluster: str | None,
    alpha: float = 0.05,
) -> Searched:
    """Group the series of a history and find their steps: the options are those of `half_life`."""
    keys = check_keys(by, RESERVED)
    table = history_of(history, keys, cluster)
    panel_data = panel_of(table, cluster=cluster)
    members = _groups(table, panel_data, keys)
    clocks, about_dates = _clocks(panel_data.panel)
    steps, environment = find_steps_of(panel_data.panel, alpha=alpha), _environment(table, alpha)
    notes = (*table.notes, *panel_data.notes, *about_dates, *_about_environment(environment))
    return Searched(
        table=table,
        panel_data=panel_data,
        by=keys,
        members=members,
        clocks=clocks,
        steps=steps,
        environment=environment,
        notes=tuple(dict.fromkeys(notes)),
    )


def _group_half_life(
    group: Group,
    *,
    clocks: Sequence[Clock],
    error: float | None,
    level: float,
    alpha: float,
    seed: int,
) -> GroupHalfLife:
    """Estimate one group by every method."""
    panel = group.panel
    threshold = doubling_threshold(panel, error=error, level=level)
    fits = {clock: fit_variogram(panel, clock) for clock in clocks}
    expiry, estimates = _estimates(panel, threshold, fits, group.steps, level=level, seed=seed)
    left_out = expiry["releases"].dropped if expiry else ()
    return GroupHalfLife(
        key=group.key,
        panel=panel,
        threshold=threshold,
        estimates=estimates,
        steps=_by_release(panel, group.steps, alpha, group.stack),
        series_steps=group.steps,
        expiry=expiry,
        trajectory=error_trajectory(
            panel,
            reference=group.changes.reference,
            predictor=group.changes.predictor,
            level=level,
        ),
        variogram=drift_variogram(panel, level=level, fit=fits["releases"]),
        notes=(
            *threshold.notes,
            *(
                f"{loss.n} of {panel.n_series} series {'is' if loss.n == 1 else 'are'} not counted "
                "for the median survival, because "
                f"{'it is' if loss.n == 1 else 'they are'} {loss.reason}"
                for loss in left_out
            ),
        ),
    )


def _clocks(panel: Panel) -> tuple[tuple[Clock, ...], tuple[str, ...]]:
    """Return the clocks of the versions: months only if all have dates in their order."""
    if np.isnan(panel.months).any():
        return ("releases",), ()
    if (np.diff(panel.months) <= 0).any():
        note = (
            "half-lives are given only in releases, because versions share dates or their dates "
            "contradict their order"
        )
        return ("releases",), (note,)
    return ("releases", "months"), ()


def _groups(
    history: History, panel_data: PanelOf, keys: tuple[str, ...]
) -> list[tuple[dict[str, Any], NDArray[np.int64]]]:
    """Split the series of a panel by keys that each series has one value of."""
    if not keys:
        return [({}, np.arange(panel_data.panel.n_series))]
    columns = []
    for key in keys:
        values = history.per_series(key)[panel_data.series]
        blank = [panel_data.panel.names[i] for i, value in enumerate(values) if value is None]
        if len(blank) == len(values):
            raise InputError(
                f"cannot group by {key!r}: it varies within series, e.g. within {blank[0]!r}. "
                "Group by a key that has one value per series."
            )
        columns.append(["" if value is None else value for value in values])
    members: dict[tuple[Any, ...], list[int]] = {}
    for i, key_of in enumerate(zip(*columns, strict=True)):
        members.setdefault(key_of, []).append(i)
    names = sorted(members, key=lambda name: tuple(map(str, name)))
    return [(dict(zip(keys, name, strict=True)), np.array(members[name])) for name in names]


def _with_own_releases(panel: Panel, product: NDArray[np.int64]) -> Panel:
    """Leave out the versions of products that are not in a group: they are not its releases."""
    own = np.isin(product, np.unique(product[panel.version]))
    if own.all():
        return panel
    return replace(
        panel,
        versions=tuple(name for name, is_own in zip(panel.versions, own, strict=True) if is_own),
        months=panel.months[own],
        version=(np.cumsum(own) - 1)[panel.version],
    )


def _estimates(
    panel: Panel,
    threshold: Threshold,
    fits: Mapping[Clock, Fit],
    steps: Sequence[Steps],
    *,
    level: float,
    seed: int,
) -> tuple[dict[Clock, Expiry], tuple[HalfLife, ...]]:
    """Estimate by every method that applies to the group: a single series, or several."""
    expiry: dict[Clock, Expiry] = {}
    estimates: list[HalfLife] = []
    for clock, fit in fits.items():
        if threshold.value is None:
            estimates.append(_without_threshold(panel, threshold, clock, level))
            continue
        limit = threshold.value
        expiry[clock] = expiry_of(panel, limit, clock, level=level)
        estimates.append(
            variogram_half_life(panel, error=threshold.error, clock=clock, level=level, fit=fit)
        )
        if panel.n_series == 1:
            estimates += series_half_lives(panel, limit, clock, level=level)
            estimates += decay_half_lives(panel, threshold=limit, clock=clock, level=level)
        else:
            estimates += half_lives_of(expiry[clock], level=level, seed=seed)
            estimates.append(
                steps_half_life(panel, limit, clock, steps, fit, level=level, seed=seed)
            )
            estimates.append(
                trajectory_half_life(panel, threshold=limit, clock=clock, level=level, seed=seed)
            )
    return expiry, tuple(estimates)


def _without_threshold(panel: Panel, threshold: Threshold, clock: Clock, level: float) -> HalfLife:
    return HalfLife(
        method="turnbull",
        half_life=None,
        low=None,
        high=None,
        level=level,
        unit=clock,
        n_series=panel.n_series,
        # Without a threshold it is unknown which series have expired.
        censored_share=np.nan,
        refused=threshold.refused,
    )


def _by_release(
    panel: Panel, steps: Sequence[Steps], alpha: float, stack: Stack
) -> tuple[ReleaseStep, ...]:
    """Collect the steps of series by their most likely release."""
    searched = [i for i, series_steps in enumerate(steps) if not series_steps.refused]
    at: dict[str, list[tuple[float, int]]] = {}
    for i in searched:
        for step in steps[i].steps:
            at.setdefault(step.versions[1], []).append((step.size, i))
    present = np.bincount(
        np.concatenate(
            [panel.version[panel.starts[i] : panel.starts[i + 1]] for i in searched]
            or [np.zeros(0, np.int64)]
        ),
        minlength=len(panel.versions),
    )
    release_steps = []
    for position, version in enumerate(panel.versions):
        if version not in at:
            continue
        sizes = at[version]
        largest = max(sizes, key=lambda entry: abs(entry[0]))
        release_steps.append(
            ReleaseStep(
                version=version,
                n_series=len(sizes),
                n_looked_at=int(present[position]),
                change=float(np.expm1(np.median([size for size, _ in sizes]))),
                largest=panel.names[largest[1]],
                largest_change=float(np.expm1(largest[0])),
                false_alarms=alpha * len(searched),
                stack=stack.changed(*_around(panel, position)),
            )
        )
    return tuple(release_steps)


def _around(panel: Panel, position: int) -> tuple[str, str]:
    """Return the last version before one that was validated, and that one."""
    before = np.unique(panel.version[panel.version < position])
    return panel.versions[before[-1]], panel.versions[position]


def _environment(history: History, alpha: float) -> tuple[Attribution, ...]:
    """Search for steps by date if versions were validated again on other dates."""
    date = history.date
    if np.isnat(date).any():
        return ()
    days = date.astype("datetime64[D]").astype(np.int64)
    occasions = np.unique(np.column_stack([history.version, days]), axis=0)
    if len(occasions) == len(np.unique(history.version)):
        return ()
    return tuple(attribute_steps_of(history, alpha=alpha))


def _about_environment(attributions: Sequence[Attribution]) -> tuple[str, ...]:
    machine = [attribution for attribution in attributions if attribution.verdict == "environment"]
    if not machine:
        return ()
    largest = max(machine, key=lambda attribution: abs(attribution.step.size))
    return (
        f"{len(machine)} of {len(attributions)} steps by date of validation "
        f"{'is a change' if len(machine) == 1 else 'are changes'} of the environment, not of the "
        "software, because versions validated both before and after the step changed as well "
        f"(largest: {largest.series}, {format_fraction(abs(largest.step.change[0]))} between "
        f"{largest.since} and {largest.until}). The half-lives of this history include changes of "
        "the machine.",
    )


#: Promised error of operators and runs: a looked-up measurement has no error but its noise.
PROMISED = 0.05
_LOOKED_UP = ("kernel", "operators", "run")
_MODELLED = ("composition", "model")


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseStudy:
    """The half-lives of a model frozen at the first release, at every level.

    Attributes
    ----------
    modelled : HalfLives
        Composition term and whole model: time until their own error has doubled.
    looked_up : HalfLives
        Times of the first release looked up for single operators, for all operators of a network
        and for runs: time until their error is that of a promised 5 % doubled.
    classes : HalfLives
        The same for operators, by class.
    networks : HalfLives
        The whole model by network; the limit is twice its error over all networks at first.
    alike : tuple of Estimate
        By level, the mean change between two processes of the first release: 0 except for noise.
    """

    modelled: HalfLives
    looked_up: HalfLives
    classes: HalfLives
    networks: HalfLives
    alike: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> half_lives = half_life({"version": ["1", "2"], "measured": [4.0, 5.0]})
        >>> study = ReleaseStudy(half_lives, half_lives, half_lives, half_lives, alike=())
        >>> list(study.to_dict())
        ['modelled', 'looked_up', 'classes', 'networks', 'alike']
        """
        parts = ("modelled", "looked_up", "classes", "networks")
        return {
            **{name: getattr(self, name).keys() for name in parts},
            "alike": [estimate.to_dict() for estimate in self.alike],
        }


def release_study(
    history: History, *, seed: int = 0, progress: Progress | None = None
) -> ReleaseStudy:
    """Estimate the half-lives of every level of a frozen model.

    Parameters
    ----------
    history : History
        With levels kernel, operators, run, composition and model, keys ``model`` (the network) and
        ``kernel_class``, as in the dataset ``ort-releases``. Networks are the clusters.
    seed : int
    progress : callable, optional

    Returns
    -------
    ReleaseStudy

    Raises
    ------
    InputError
        A level or a key is missing.

    Examples
    --------
    >>> rows = [
    ...     (level, network, "Gelu" if level == "kernel" else "", version, 1.1, 1.0 + 0.2 * i)
    ...     for level in ("kernel", "operators", "run", "composition", "model")
    ...     for network in ("bert", "gpt2")
    ...     for i, version in enumerate(["1.0", "1.1"])
    ... ]
    >>> names = ("level", "model", "kernel_class", "version", "predicted", "measured")
    >>> study = release_study(History(dict(zip(names, zip(*rows)))))
    >>> [group.key["model"] for group in study.networks.groups]
    ['bert', 'gpt2']
    """
    asked: dict[str, tuple[tuple[str, ...], str, float | None]] = {
        "modelled": (_MODELLED, "level", None),
        "looked_up": (_LOOKED_UP, "level", PROMISED),
        "classes": (("kernel",), "kernel_class", PROMISED),
        "networks": (("model",), "model", None),
    }
    parts: dict[str, HalfLives] = {}
    for i, (name, (levels, by, error)) in enumerate(asked.items()):
        table = history.where({"level": list(levels)})
        cluster = None if by == "model" else "model"
        if name == "networks":
            whole = next(g for g in parts["modelled"].groups if g.key["level"] == "model")
            error = float(np.expm1(whole.threshold.error))
        parts[name] = half_life(table, by=by, error=error, cluster=cluster, seed=seed)
        if progress is not None:
            progress(i + 1, len(asked))
    alike = tuple(_alike(history.where({"level": level}), level) for level in _LOOKED_UP)
    return ReleaseStudy(**parts, alike=alike)


def _alike(history: History, level: str) -> Estimate:
    """Return the mean log change at the first release, with an interval over networks."""
    first = history.version == history.version.min()
    changes, networks = -history.error()[first], history.codes("model")[first]
    means = np.bincount(networks, changes) / np.bincount(networks)
    n = len(means)
    half = student_ppf(0.975, n - 1) * float(np.std(means, ddof=1)) / n**0.5
    value = float(means.mean())
    return Estimate(
        f"change of {level} between processes of one release",
        value,
        low=value - half,
        high=value + half,
        level=0.95,
        method="Student t over networks",
        n=int(first.sum()),
        unit="log",
        definition="mean over networks of the mean of log(time measured in one process / time "
        "measured in the other)",
    )
