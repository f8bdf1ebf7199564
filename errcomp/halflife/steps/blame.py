r"""Which parts made a whole slower or faster, and at which version.

The time of a network changes at a release because some of its operators change; the change that
they leave is the rest. With means over the versions before and after the release,

.. math:: \frac{T_1 - T_0}{T_0} = \sum_i \frac{t_{i1} - t_{i0}}{T_0} + \text{rest},

so that each part has a number of points: per cent of the time of the whole before. An operator that
takes 20 % longer and was 4 % of the network adds 0.8 points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.codec import Count, Derived, Document, Share, Undefined
from errcomp.errors import InputError, describe_names
from errcomp.halflife.stack import Stack
from errcomp.halflife.steps.contributions import (
    Listed,
    Noise,
    Rows,
    cuts_of,
    errors_of,
    moderated,
    rows_of,
    run_of,
    scatter_of,
    steps_of_runs,
    windows_of,
)
from errcomp.halflife.steps.parts import labels_of, levels_in, times_of, wholes_of
from errcomp.report.shown import Shown
from errcomp.stats.significance import holm_adjusted
from errcomp.tables import History, check_keys

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["Blame", "Event", "Part", "blame"]

Floats = NDArray[np.float64]
_LEVEL = 0.95
_MAYBE = Annotated[float, Undefined]


@dataclass(frozen=True, slots=True)
class Part(Document):
    """What a group of parts contributes to the change of their whole.

    Attributes
    ----------
    name : str
    listed : {"both", "before", "after"}
        Windows in which the parts are listed at all.
    n : int
        Parts in the group.
    before, after : float
        Their mean time in both windows, in the unit of the history; 0 where none is listed.
    points, low, high : float
        Change as a fraction of the time of the whole before, and its 95 % interval; NaN where the
        noise is unknown.
    p : float
        That noise alone makes such a change, corrected for the number of groups; NaN if unknown.
    """

    KEYS: ClassVar = (
        *("name", "listed", "n", "before", "after", "points", "low", "high", "p"),
        Derived("change", _MAYBE, lambda part: part.change),
    )

    name: str
    listed: Listed
    n: Count
    before: float
    after: float
    points: float
    low: _MAYBE
    high: _MAYBE
    p: Annotated[Share, Undefined]

    @property
    def change(self) -> float:
        """Change relative to its own time before; NaN if it is not listed in both windows."""
        return self.after / self.before - 1 if self.n and self.listed == "both" else np.nan


@dataclass(frozen=True, slots=True)
class Event(Document):
    """A version at which a whole or its parts changed.

    Attributes
    ----------
    whole : str
    version, last_version : str
        First version after the change, and the last one before with times of both.
    n_before, n_after : int
        Versions in both windows.
    before, after : float
        Mean time of the whole in both windows.
    change, low, high : float
        Relative change and its 95 % interval; NaN where the noise is unknown.
    p : float
        That noise alone makes such a change; NaN if unknown.
    stack : tuple of str or None
        Components of the stack that changed between the two versions, too, with theirs; None where
        the history has no columns ``stack_…``.
    listed : float
        Share of the time before that the parts add up to.
    parts : tuple of Part
        Groups of parts, the largest contribution first.
    rest : Part
        The change that the parts leave; ``n`` is 0.
    """

    KEYS: ClassVar = (
        *("whole", "version", "last_version", "n_before", "n_after", "before", "after", "change"),
        *("low", "high", "p", "stack", "listed", "parts", "rest"),
        Derived("explained", _MAYBE, lambda event: event.explained),
    )

    whole: str
    version: str
    last_version: str
    n_before: Count
    n_after: Count
    before: float
    after: float
    change: float
    low: _MAYBE
    high: _MAYBE
    p: Annotated[Share, Undefined]
    stack: tuple[str, ...] | None
    listed: float
    parts: tuple[Part, ...]
    rest: Part

    @property
    def explained(self) -> float:
        """Share of the change that the parts add up to; NaN if the whole has hardly changed."""
        if not self.p <= 1 - _LEVEL or not self.change:
            return np.nan
        return sum(part.points for part in self.parts) / self.change


@dataclass(frozen=True, slots=True, eq=False)
class Blame(Shown, Document):
    """Which parts made wholes slower or faster, and at which versions.

    Attributes
    ----------
    versions : tuple of str
        In order.
    unit : str or None
    whole, part : str
        Levels of the history.
    by : tuple of str
        Keys that group parts; empty for the usual one.
    n_wholes : int
    alpha : float
        False-alarm rate of the search for steps in each series.
    events : tuple of Event
        The largest change first.
    notes : tuple of str
    """

    SCHEMA: ClassVar = "errcomp.half-life-blame/1"
    COMMAND: ClassVar = "halflife blame"
    KEYS: ClassVar = (
        *("versions", "unit", "whole", "part", "by", "n_wholes", "alpha", "events", "notes"),
    )

    versions: tuple[str, ...]
    unit: str | None
    whole: str
    part: str
    by: tuple[str, ...]
    n_wholes: Count
    alpha: Share
    events: tuple[Event, ...]
    notes: tuple[str, ...]

    def view(self) -> Report:
        """Return the report: a sentence for each of the largest events, and their parts.

        Examples
        --------
        >>> times = {"version": ["1", "2"] * 2, "level": ["run"] * 2 + ["kernel"] * 2,
        ...          "op": [None] * 2 + ["Conv"] * 2, "measured": [9.0, 9.1, 4.0, 4.1]}
        >>> blame(History(times), version="2").view().title
        'What changed, and why?'
        """
        from errcomp.halflife.view.blame import blame_view

        return blame_view(self)


def blame(
    history: History | Any,
    *,
    whole: str | None = None,
    part: str | None = None,
    by: str | Sequence[str] = (),
    version: str | None = None,
    alpha: float = 0.05,
) -> Blame:
    """Say which parts made wholes slower or faster, and at which versions.

    The events of a whole are its own steps and those steps of its parts that are at least 1 % of
    its time (`errcomp.halflife.steps.find_steps_of`); or, with ``version``, that version alone. The
    versions between two events are one window, and the times before and after an event are means
    over its windows. A part that is not listed in a window counts with a time of 0.

    The intervals are those of Student t, with the scatter of each series about its means, moderated
    over all series of its kind (`errcomp.halflife.noise.moderated_variances`), or with the noise of
    repeats where that is larger; both allow for the correlation of neighbours. Simulated, they
    cover 92 to 98 % (normal noise, and Student t with 4 degrees of freedom).

    Misleads where parts overlap in time (streams, other cores): a faster part then need not make
    its whole faster. ``rest`` shows it.

    Parameters
    ----------
    history : History or dataframe
        With a column ``level``. A column ``count`` of parts multiplies their times. Predictions
        have no role.
    whole, part : str, optional
        Levels of the wholes and of their parts, e.g. ``"run"`` and ``"kernel"``.
    by : str or sequence of str
        Keys to group the parts of a whole by. By default the first of kernel_class, op_type,
        operator, op, kernel, layer and node that all parts have, or else each part by its name.
    version : str, optional
        Explain this version alone, against all before since the last event.
    alpha : float
        False-alarm rate of the search, per series.

    Returns
    -------
    Blame

    Raises
    ------
    InputError
        The history has no level, no whole with parts, one version only, or an unknown version;
        ``count`` changes between versions; or the unit is that of a rate.

    Examples
    --------
    >>> versions = [f"1.{k}" for k in range(12)]
    >>> wobble = np.tile([0.0, 0.02, 0.01], 4)
    >>> slower = np.arange(12) >= 6
    >>> times = {"run": 10 + wobble - 0.3 * slower, "Conv": 6 + wobble - 0.5 * slower,
    ...          "Gelu": 1 + wobble / 9 + 0.2 * slower}
    >>> history = History({
    ...     "version": versions * 3, "level": ["run"] * 12 + ["kernel"] * 24,
    ...     "op": [None] * 12 + ["Conv"] * 12 + ["Gelu"] * 12,
    ...     "measured": np.concatenate(list(times.values()))}, unit="ms")
    >>> (event,) = blame(history).events
    >>> event.version, round(event.change, 3)
    ('1.6', -0.03)
    >>> [(part.name, round(part.change, 2), round(part.points, 2)) for part in event.parts]
    [('Conv', -0.08, -0.05), ('Gelu', 0.2, 0.02)]
    """
    table = history if isinstance(history, History) else History(history)
    keys = check_keys(by, ())
    for key in keys:
        table.per_series(key)
    if version is not None and version not in table.versions[1:]:
        first = version in table.versions
        why = (
            "is the first, with no earlier one to compare with"
            if first
            else "is not in the history"
        )
        raise InputError(
            f"version {version!r} {why}. Versions: "
            f"{describe_names(table.versions, wanted=version)}."
        )
    if len(np.unique(table.version)) == 1:
        raise InputError(
            "all validations were made under one version. Add validations of another version."
        )
    levels = levels_in(table, whole, part)
    wholes, without = wholes_of(table, *levels, keys)
    times = times_of(table, levels[1])
    named = zip(wholes, labels_of(table, wholes, keys), strict=True)
    runs = [run for one, labels in named if (run := run_of(one, times, labels))]
    if not runs:
        raise InputError(
            f"no {levels[0]} has two versions under which both it and its parts (level "
            f"{levels[1]!r}) were timed. Add validations of the {levels[0]} and its parts under "
            "another version."
        )
    searched = steps_of_runs(runs, table.versions, alpha)
    at = None if version is None else table.versions.index(version)
    rows, scatters = [], []
    for run, steps in zip(runs, searched, strict=True):
        windows = windows_of(run, cuts_of(run, steps, at))
        known = [one.autocorrelation or 0.0 for one in steps]
        for before, after in pairwise(windows):
            event = rows_of(run, before, after)
            # Groups have no autocorrelation of their own: they share that of the whole.
            scatters.append(scatter_of(event, windows, np.full(len(event.value), known[0])))
            rows.append(event)
    stack = Stack(table)
    found = [
        _event(one, noise, table.versions, stack)
        for one, noise in zip(rows, moderated(scatters), strict=True)
    ]
    events = [event for event in found if version in (None, event.version)]
    notes = (*table.notes,)
    if without:
        notes += (f"{without} series of level {levels[1]} belong to no {levels[0]}: left out",)
    return Blame(
        versions=tuple(table.versions),
        unit=table.unit,
        whole=levels[0],
        part=levels[1],
        by=keys,
        n_wholes=len(wholes),
        alpha=float(alpha),
        events=tuple(sorted(events, key=lambda event: -_size(event))),
        notes=notes,
    )


def _size(event: Event) -> float:
    """Return the largest change in an event, relative to the time before."""
    stayed = [part for part in event.parts if part.listed == "both"]
    return max([abs(event.change), *(abs(part.points) for part in stayed)])


def _event(rows: Rows, noise: Noise, versions: Sequence[str], stack: Stack) -> Event:
    before, after = rows.windows
    between = versions[rows.run.version[before.stop - 1]], versions[rows.run.version[after.start]]
    whole = rows.level[0, 0]
    change = (rows.level[:, 1] - rows.level[:, 0]) / whole
    error, df = errors_of(rows, noise)
    error = error / whole
    known = np.isfinite(error) & (df > 0)
    df = np.where(known, df, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(change == 0, 0.0, np.abs(change) / error)
    p = np.where(known, 2 * special.stdtr(df, -np.where(known, t, 0)), np.nan)
    half = np.where(known, special.stdtrit(df, (1 + _LEVEL) / 2) * error, np.nan)
    parts = [
        Part(name, listed, n, *map(float, (b, a, c, c - h, c + h, q)))
        for name, listed, n, b, a, c, h, q in zip(
            [*rows.names, "rest"],
            [*rows.listed, "both"],
            [*rows.n, 0],
            *rows.level[1:].T,
            change[1:],
            half[1:],
            [*holm_adjusted(p[1:-1]), p[-1]],
            strict=True,
        )
    ]
    return Event(
        whole=rows.run.name,
        version=between[1],
        last_version=between[0],
        n_before=before.stop - before.start,
        n_after=after.stop - after.start,
        before=float(whole),
        after=float(rows.level[0, 1]),
        change=float(change[0]),
        low=float(change[0] - half[0]),
        high=float(change[0] + half[0]),
        p=float(p[0]),
        stack=stack.changed(*between),
        listed=float(1 - rows.level[-1, 0] / whole),
        parts=tuple(sorted(parts[:-1], key=lambda part: -abs(part.points))),
        rest=parts[-1],
    )
