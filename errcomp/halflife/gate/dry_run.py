"""A history gone through as the gate would have: how often it fires, on what, and how soon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log1p
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from errcomp.codec import Count, Derived, Document, Log, Meta, Share, Undefined, if_known
from errcomp.halflife.gate import PROMISED_LOOKS, spent
from errcomp.halflife.gate.checking import groups_of, validations_behind
from errcomp.halflife.gate.replay import Replayed, replayed
from errcomp.halflife.panel import Panel, panel_of
from errcomp.halflife.steps import find_steps_of
from errcomp.halflife.steps.stability import ReportedStep, reported_steps
from errcomp.report.shown import Shown
from errcomp.tables import History, check_keys

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["Alarm", "DryRun", "KnownStep", "Rate", "dry_run"]

Floats = NDArray[np.float64]

#: Looks in random order to go through, if that takes no more than this many orders.
_LOOKS, _MOST_ORDERS = PROMISED_LOOKS, 20
#: Versions by which the begin of an alarm may come before a step.
_NEAR = 1

IN_ORDER, SHUFFLED, WITHOUT_STEPS = "in order", "in random order", "random order, steps taken out"


@dataclass(frozen=True, slots=True)
class Rate(Document):
    """How often a gate fires over a history.

    Attributes
    ----------
    order : str
        ``"in order"``, ``"in random order"`` or ``"random order, steps taken out"``.
    gates : int
        Times that the history was gone through.
    looks, alarms, repeats : int
        Versions at which something was tested, those with a regression, and those without one that
        asked for a repeat; over all gates.
    fired : int
        Gates with at least one regression.
    """

    KEYS: ClassVar = (
        *("order", "gates", "looks", "alarms", "repeats", "fired"),
        Derived("alarms_per_1000", Annotated[float, Undefined], lambda rate: rate.per_1000),
    )

    order: str
    gates: Count
    looks: Count
    alarms: Count
    repeats: Count
    fired: Count

    @property
    def per_1000(self) -> float:
        """Looks with a regression in 1,000; NaN if nothing could be tested."""
        return 1000 * self.alarms / self.looks if self.looks else math.nan


@dataclass(frozen=True, slots=True)
class Alarm(Document):
    """A regression that the gate would have reported.

    Attributes
    ----------
    version, first_version : str
        The look that reports it, and the first version that shifted.
    series, group : str
    shift : float
        Of the error, on the log scale.
    p : float
        Corrected for the number of series.
    step : bool
        Whether the search over the whole history finds a step there, too.
    """

    KEYS: ClassVar = ("version", "first_version", "series", "group", "shift", "p", "step")

    version: str
    first_version: str
    series: str
    group: str
    shift: Log
    p: Share
    step: bool


@dataclass(frozen=True, slots=True)
class KnownStep(Document):
    """A step that the search over the whole history finds.

    Attributes
    ----------
    series, group : str
    version : str
        The first version after the step.
    size : float
        On the log scale.
    found_at : str or None
        The look that reports it; None if none does before the next step of the series.
    delay : int
        Versions of the series until then; 1 is the first one after the step, 0 if never.
    """

    KEYS: ClassVar = ("series", "group", "version", "size", "found_at", "delay")

    series: str
    group: str
    version: str
    size: Log
    found_at: str | None
    delay: Count


@dataclass(frozen=True, slots=True, eq=False)
class DryRun(Shown, Document):
    """What a gate would have done with a history.

    Attributes
    ----------
    versions : tuple of str
        In order.
    n_series : int
    alpha, promised : float
        Probability of any false alarm over the first 1,000 looks, and over as many looks as this
        history has.
    margin : float
        Shift that does not matter, on the log scale.
    rates : tuple of Rate
        In the order of the versions; in random order; and in random order without the steps.
    alarms : tuple of Alarm
        In order of looks.
    steps : tuple of KnownStep
        In order of versions.
    reported : tuple of ReportedStep or None
        Steps that the search over the versions until then would have reported, in order; None in a
        document of an older version.
    notes : tuple of str
        Remarks on the table.
    """

    SCHEMA: ClassVar = "errcomp.half-life-dry-run/1"
    COMMAND: ClassVar = "halflife check --dry-run"
    KEYS: ClassVar = (
        *("versions", "n_series", "alpha", "promised", "margin", "rates", "alarms", "steps"),
        if_known("reported"),
        "notes",
    )

    versions: Annotated[tuple[str, ...], Meta(min_length=2)]
    n_series: Count
    alpha: Share
    promised: Share
    margin: Log
    rates: tuple[Rate, ...]
    alarms: tuple[Alarm, ...]
    steps: tuple[KnownStep, ...]
    notes: tuple[str, ...]
    reported: tuple[ReportedStep, ...] | None = None

    def rate(self, order: str) -> Rate:
        """Return how often the gate fires in one of the orders.

        Examples
        --------
        >>> history = History({"version": list("123"), "measured": [4.0, 4.1, 4.0]})
        >>> dry_run(history).rate("in order").alarms
        0
        """
        return next(rate for rate in self.rates if rate.order == order)

    def view(self) -> Report:
        """Return the report of the dry run.

        Examples
        --------
        >>> history = History({"version": list("123"), "measured": [4.0, 4.1, 4.0]})
        >>> dry_run(history).view().title
        'What would the gate have done?'
        """
        from errcomp.halflife.view.dry_run import dry_run_view

        return dry_run_view(self)


def dry_run(
    history: History | Any,
    *,
    by: str | Sequence[str] = (),
    error: float | None = None,
    margin: float = 0.0,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> DryRun:
    """Go through a history as the gate would have, in its order and in random orders.

    In random order there is nothing to find, so alarms are false; except that what stays of steps
    is noise there, and larger than that of benchmarks. So the versions are also put in random order
    after the steps that the search finds (`errcomp.halflife.steps.find_steps_of`) were taken out. A
    step that it misses stays in. All series have the same random order.

    A step counts as found at the first look after it that reports a regression of the series which
    began at the step, or one version before; ``delay`` counts the validations of the series until
    then. Improvements are not regressions: a step that makes the error smaller does not
    count. ``reported`` has the steps, in both directions, that the search itself would have
    reported before later versions were known: see `errcomp.halflife.steps.stability`.

    Parameters
    ----------
    history : History or dataframe
    by, error, margin, alpha
        As for `errcomp.halflife.gate.checking.check_validation`.
    seed : int
        Of the random orders.
    progress : callable, optional
        Called with the orders that are done, and all.

    Returns
    -------
    DryRun

    Raises
    ------
    InputError
        The history has one version only, or a value is out of range.

    Examples
    --------
    >>> measured = [4.0, 4.1, 4.05, 4.1, 4.0] * 3 + [6.0, 6.1, 6.05, 6.1, 6.0]
    >>> history = History({"version": [f"1.{i}" for i in range(20)], "measured": measured})
    >>> done = dry_run(history)
    >>> [(alarm.version, alarm.first_version) for alarm in done.alarms]
    [('1.17', '1.15')]
    >>> [(step.version, step.delay) for step in done.steps]
    [('1.15', 3)]
    """
    table = history if isinstance(history, History) else History(history)
    found = panel_of(table)
    panel, behind = found.panel, validations_behind(found)
    groups = groups_of(table, found.series, check_keys(by, ()), panel.names)
    promise = None if error is None else log1p(error)
    rng = np.random.default_rng(seed)

    def gone_through(of: Panel, repeats: Floats) -> Replayed:
        return replayed(
            of, repeats=repeats, margin=log1p(margin), alpha=alpha, promised=promise
        ).regressions()

    true = gone_through(panel, behind)
    steps = list(find_steps_of(panel))
    without = replace(panel, error=_without(panel, [one.steps for one in steps]))
    orders = int(np.clip(math.ceil(_LOOKS / max(true.looks, 1)), 1, _MOST_ORDERS))
    shuffled: list[list[Replayed]] = [[], []]
    for k in range(orders):
        order = rng.permutation(len(panel.versions))
        for one, which in zip((panel, without), shuffled, strict=True):
            rows, mixed = one.reordered(order)
            which.append(gone_through(mixed, behind[rows]))
        if progress is not None:
            progress(k + 1, orders)
    known = _known(panel, groups, steps, true)
    return DryRun(
        versions=tuple(panel.versions),
        n_series=panel.n_series,
        alpha=float(alpha),
        promised=float(sum(spent(k, alpha) for k in range(1, len(panel.versions)))),
        margin=log1p(margin),
        rates=(
            _rate(IN_ORDER, [true]),
            _rate(SHUFFLED, shuffled[0]),
            _rate(WITHOUT_STEPS, shuffled[1]),
        ),
        alarms=_alarms(panel, groups, steps, true),
        steps=known,
        notes=(*table.notes, *found.notes),
        reported=tuple(reported_steps(panel)),
    )


def _rate(order: str, gates: Sequence[Replayed]) -> Rate:
    return Rate(
        order,
        gates=len(gates),
        looks=sum(one.looks for one in gates),
        alarms=sum(len(np.unique(one.version)) for one in gates),
        repeats=sum(one.repeats for one in gates),
        fired=sum(len(one.version) > 0 for one in gates),
    )


def _without(panel: Panel, steps: Sequence[Sequence[Any]]) -> Floats:
    """Return the errors with the steps of each series taken out."""
    error = panel.error.copy()
    for start, end, found in zip(panel.starts[:-1], panel.starts[1:], steps, strict=True):
        for step in found:
            error[start + step.at : end] -= step.size
    return error


def _alarms(
    panel: Panel, groups: Sequence[str], steps: Sequence[Any], true: Replayed
) -> tuple[Alarm, ...]:
    alarms = []
    for at, i, begin, shift, p in zip(
        *(true.version, true.series, true.begin, true.shift, true.p), strict=True
    ):
        start = int(panel.starts[i])
        versions = panel.version[start : panel.starts[i + 1]]
        first = int(np.searchsorted(versions, begin))
        alarms.append(
            Alarm(
                panel.versions[at],
                panel.versions[begin],
                panel.names[i],
                groups[i],
                float(shift),
                float(p),
                any(s.at_low - _NEAR <= first <= s.at_high + _NEAR for s in steps[i].steps),
            )
        )
    return tuple(alarms)


def _known(
    panel: Panel, groups: Sequence[str], steps: Sequence[Any], true: Replayed
) -> tuple[KnownStep, ...]:
    """Return the steps that make an error larger, and the look that finds each."""
    known: list[tuple[int, KnownStep]] = []
    for i, one in enumerate(steps):
        versions = panel.version[panel.starts[i] : panel.starts[i + 1]]
        mine = true.series == i
        reported = np.searchsorted(versions, true.version[mine])
        begun = np.searchsorted(versions, true.begin[mine])
        ends = [*(step.at for step in one.steps), len(versions)][1:]
        for step, end in zip(one.steps, ends, strict=True):
            if abs(step.after) <= abs(step.before):
                continue
            hits = reported[
                (reported >= step.at) & (reported < end) & (begun >= step.at_low - _NEAR)
            ]
            at = int(hits[0]) if len(hits) else None
            known.append(
                (
                    int(versions[step.at]),
                    KnownStep(
                        panel.names[i],
                        groups[i],
                        panel.versions[versions[step.at]],
                        step.size,
                        None if at is None else panel.versions[versions[at]],
                        0 if at is None else at - step.at + 1,
                    ),
                )
            )
    return tuple(step for _, step in sorted(known, key=lambda pair: pair[0]))
