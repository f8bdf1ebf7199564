r"""How many repeats a look at the gate needs to find the change that matters.

Repeats of one look average out the noise within a look, and not what differs between looks (the
state of the machine, the build):

.. math:: \sigma_r^2 = \sigma_{between}^2 + \sigma_{within}^2 / r

The chance to find a change is simulated with the gate itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from errcomp.codec import Count, Document, Log, Share
from errcomp.errors import InputError
from errcomp.halflife.gate import monitor_of, spent
from errcomp.halflife.gate.checking import validations_behind
from errcomp.halflife.gate.monitor import FEWEST_DF
from errcomp.halflife.panel import Panel, panel_of
from errcomp.report.shown import Shown
from errcomp.tables import History

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["GatePlan", "RepeatsNeed", "plan_gate"]

Floats = NDArray[np.float64]

#: Numbers of repeats that are tried.
_REPEATS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
#: Changes that are simulated for each, and how many series of a gate change at most.
_CHANGES, _TOGETHER = 160, 4


@dataclass(frozen=True, slots=True)
class RepeatsNeed(Document):
    """What a number of repeats reaches.

    Attributes
    ----------
    repeats : int
        Validations of each series at each look.
    noise : float
        Standard deviation of their mean from look to look, on the log scale.
    at_once, within : float
        Chance that the gate reports the change at the first look after it, and within the looks
        that were asked for.
    """

    repeats: Count
    noise: Log
    at_once: Share
    within: Share


@dataclass(frozen=True, slots=True)
class GatePlan(Shown, Document):
    """How many repeats a look at the gate needs.

    Attributes
    ----------
    change : float
        The change that matters, on the log scale.
    noise, between : float
        Standard deviation of one run within a look, and from look to look, on the log scale.
    series, looks : int
        Series of the gate, and looks before the change.
    within : int
        Looks after the change by which it should be found.
    power, alpha : float
        Chance with which it should be found; probability of any false alarm over 1,000 looks.
    repeats : int or None
        The fewest that reach it; None if 20 do not.
    rows : tuple of RepeatsNeed
        By number of repeats.
    seed : int
    notes : tuple of str
        Where the noise comes from.
    """

    SCHEMA: ClassVar = "errcomp.plan-gate/1"
    COMMAND: ClassVar = "plan gate"
    KEYS: ClassVar = (
        *("change", "noise", "between", "series", "looks", "within", "power", "alpha"),
        *("repeats", "seed", "rows", "notes"),
    )

    change: Log
    noise: Log
    between: Log
    series: Count
    looks: Count
    within: Count
    power: Share
    alpha: Share
    repeats: Count | None
    rows: tuple[RepeatsNeed, ...]
    seed: int
    notes: tuple[str, ...]

    def view(self) -> Report:
        """Return the report: a row for each number of repeats.

        Examples
        --------
        >>> plan_gate(0.2, noise=0.02, within=1).view().title
        'Repeats that find a change of 20 %'
        """
        from errcomp.halflife.view.gate_plan import plan_view

        return plan_view(self)


def plan_gate(
    change: float,
    *,
    noise: float | None = None,
    between: float | None = None,
    history: History | Any = None,
    series: int | None = None,
    looks: int | None = None,
    within: int = 3,
    power: float = 0.9,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> GatePlan:
    """Return how many repeats of each validation find a change of this size.

    Normal noise and one change at a time are assumed. Heavier tails and single bad runs make the
    gate slower: see ``docs/gate.md``, and `errcomp.halflife.gate.dry_run.dry_run` for one's own
    history.

    Parameters
    ----------
    change : float
        Fraction by which a time changes, e.g. 0.05; > -1.
    noise, between : float, optional
        Standard deviation of one run as a fraction: within a look, and from look to look (what
        repeats of one look share; 0 by default). Learned from the history if there is one.
    history : History or dataframe, optional
        Validations whose noise, series and looks are used, where they are not given.
    series, looks : int, optional
        Series of the gate (1 by default), and looks before the change (30 by default).
    within : int
        Looks after the change by which it should be found, 1 to 20.
    power : float
        Chance with which it should be.
    alpha : float
        Probability of any false alarm over 1,000 looks.
    seed : int
    progress : callable, optional
        Called with the numbers of repeats that were tried, and an upper bound of how many will be.

    Returns
    -------
    GatePlan

    Raises
    ------
    InputError
        A value is out of range, or the noise is neither given nor shown by the history.

    Examples
    --------
    >>> plan = plan_gate(0.2, noise=0.02, within=1)
    >>> plan.repeats
    2
    """
    notes: tuple[str, ...] = ()
    if history is not None:
        learned = _noise_of(history)
        noise = learned.noise if noise is None else noise
        between = learned.between if between is None else between
        series = learned.series if series is None else series
        looks = learned.looks if looks is None else looks
        notes = learned.notes
    if noise is None:
        short = "" if history is None else ": the history has too few validations to show it"
        raise InputError(
            f"the noise is unknown{short}. Give noise= (--noise), the standard deviation of one "
            "run, e.g. 2 %, or a history with repeats or more versions."
        )
    between = 0.0 if between is None else between
    series, looks = 1 if series is None else series, 30 if looks is None else looks
    _check(change, noise, between, series, looks, within, power)
    rows: dict[int, RepeatsNeed] = {}
    low, high = 0, len(_REPEATS)
    # The smallest number that reaches the power lies in _REPEATS[low:high].
    while low < high:
        middle = (low + high) // 2
        repeats = _REPEATS[middle]
        rows[repeats] = _need(
            repeats, log1p(change), noise, between, series, looks, within, alpha, seed
        )
        if progress is not None:
            progress(len(rows), math.ceil(math.log2(len(_REPEATS))) + 1)
        if rows[repeats].within >= power:
            high = middle
        else:
            low = middle + 1
    return GatePlan(
        change=log1p(change),
        noise=float(noise),
        between=float(between),
        series=series,
        looks=looks,
        within=within,
        power=float(power),
        alpha=float(alpha),
        repeats=_REPEATS[low] if low < len(_REPEATS) else None,
        rows=tuple(rows[repeats] for repeats in sorted(rows)),
        seed=seed,
        notes=notes,
    )


def _check(
    change: float, noise: float, between: float, series: int, looks: int, within: int, power: float
) -> None:
    if not (change > -1 and math.isfinite(change) and change != 0):
        raise InputError(f"change must be a fraction above -1 and not 0, e.g. 0.05, got {change}.")
    if not (0 < noise < 1 and 0 <= between < 1):
        raise InputError(
            "noise must be above 0 and below 1, and between= must be at least 0 and below 1, e.g. "
            f"0.02, got noise={noise} and between={between}."
        )
    for name, value, least, most in (
        ("series", series, 1, 10_000),
        ("looks", looks, 8, 1000),
        ("within", within, 1, 20),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InputError(f"{name} must be a whole number from {least} to {most}, got {value}.")
    if not 0 < power < 1:
        raise InputError(f"power must be between 0 and 1, e.g. 0.9, got {power}.")


@dataclass(frozen=True, slots=True)
class _Noise:
    """The noise of a history: within and between looks, its series and looks."""

    noise: float | None
    between: float | None
    series: int
    looks: int
    notes: tuple[str, ...]


def _noise_of(history: History | Any) -> _Noise:
    """Return the noise of the median series of a history, within looks and between them."""
    found = panel_of(history if isinstance(history, History) else History(history))
    panel, behind = found.panel, validations_behind(found)
    # As many looks as the gate has values for at most; fewer than 8 know no noise.
    looks = max(len(panel.versions), 8)
    monitor = monitor_of(panel, None, behind, 0.0)
    scale = monitor.settled()
    scale = np.where(monitor.df >= FEWEST_DF, scale, np.nan)
    total = float(np.nanmedian(scale)) if np.isfinite(scale).any() else math.nan
    if not math.isfinite(total):
        return _Noise(None, None, panel.n_series, looks, found.notes)
    sd, repeats = found.noise.sd, float(np.median(found.n_repeats))
    if not (np.isfinite(sd) and sd > 0):
        note = (
            f"the noise of one run, {100 * total:.2g} %, is the scatter between looks of the "
            "median series. Without repeats it is unknown how much of it repeats average out: all "
            "of it is assumed"
        )
        return _Noise(total, 0.0, panel.n_series, looks, (note,))
    between = math.sqrt(max(total**2 - sd**2 / repeats, 0.0))
    note = (
        f"noise of the median series: {100 * sd:.2g} % within a look (from "
        f"{found.noise.source.replace('_', ' ')}), {100 * between:.2g} % between looks"
    )
    return _Noise(sd, between, panel.n_series, looks, (note,))


def _need(
    repeats: int,
    change: float,
    noise: float,
    between: float,
    series: int,
    looks: int,
    within: int,
    alpha: float,
    seed: int,
) -> RepeatsNeed:
    """Simulate gates in which some series change after ``looks`` looks."""
    within_look = noise / math.sqrt(repeats)
    sd = math.hypot(between, within_look)
    # A fifth of the series at most, so that noise is learned from the others.
    changed = max(min(_TOGETHER, series // 5), 1)
    n = looks + within
    found = np.zeros(within)
    gates = math.ceil(_CHANGES / changed)
    for gate in range(gates):
        rng = np.random.default_rng([seed, gate])
        error = sd * rng.standard_normal((series, n))
        error[:changed, looks:] += change
        df = (repeats - 1) * n
        given = within_look * (math.sqrt(rng.chisquare(df) / df) if df else 0.0)
        panel = Panel(
            versions=tuple(map(str, range(n))),
            months=np.full(n, np.nan),
            names=tuple(map(str, range(series))),
            clusters=np.arange(series),
            starts=np.arange(series + 1) * n,
            version=np.tile(np.arange(n), series),
            error=error.ravel(),
            sd=np.full(series * n, given if df else np.nan),
            noise_df=np.full(series, float(df)),
            frozen_at_first=False,
        )
        monitor = monitor_of(panel, None, np.full(series * n, float(repeats)), 0.0)
        for version in range(looks):
            monitor.skip(version)
        seen = np.zeros(changed, dtype=bool)
        for k in range(within):
            level = spent(looks + k, alpha)
            # Each as if it were the only one that changed.
            seen |= monitor.look(looks + k, level).p[:changed] <= level / series
            found[k] += seen.sum()
    chance = found / (gates * changed)
    return RepeatsNeed(repeats, sd, float(chance[0]), float(chance[-1]))
