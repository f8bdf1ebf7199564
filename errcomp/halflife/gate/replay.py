"""What a gate would have reported, look by look, over a history that exists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError
from errcomp.halflife.gate import REPEAT, as_promise, has_grown, looks, monitor_of
from errcomp.halflife.panel import Panel
from errcomp.stats.significance import holm_adjusted

__all__ = ["Replayed", "replayed"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """Alarms of a gate over a history, in order; arrays have one value for each alarm.

    Attributes
    ----------
    looks : int
        Versions at which the gate could test something.
    repeats : int
        Looks without an alarm that asked for a repeat.
    version, series : ndarray of int
        Where each alarm was raised: positions of the version and the series in the panel.
    begin : ndarray of int
        Position of the first version that shifted; the delay is ``version - begin``.
    shift, p : ndarray
        Shift of the error on the log scale, and its p-value corrected for the number of series.
    grew : ndarray of bool
        Whether the error grew, beyond what was promised: then the alarm is a regression.
    """

    looks: int
    repeats: int
    version: Codes
    series: Codes
    begin: Codes
    shift: Floats
    p: Floats
    grew: NDArray[np.bool_]

    def regressions(self) -> Replayed:
        """Return the alarms that are regressions.

        Examples
        --------
        >>> panel = Panel(
        ...     versions=("1.0", "1.1", "1.2"), months=np.arange(3.0), names=("Gelu",),
        ...     clusters=np.arange(1), starts=np.array([0, 3]), version=np.arange(3),
        ...     error=np.array([0.7, 0.0, 0.01]), sd=np.full(3, 0.01),
        ...     noise_df=np.full(1, 20.0), frozen_at_first=False)
        >>> found = replayed(panel)
        >>> len(found.version), len(found.regressions().version)
        (1, 0)
        """
        names = ("version", "series", "begin", "shift", "p", "grew")
        return replace(self, **{name: getattr(self, name)[self.grew] for name in names})


def replayed(
    panel: Panel,
    *,
    repeats: ArrayLike | None = None,
    margin: float = 0.0,
    alpha: float = 0.05,
    promised: float | None = None,
) -> Replayed:
    """Go through a history as the gate would have; every shift that it reports is accepted.

    Parameters
    ----------
    panel : Panel
    repeats, margin, alpha, promised
        As for `errcomp.halflife.gate.check`.

    Returns
    -------
    Replayed

    Raises
    ------
    InputError
        The panel has a single version, or the margin or alpha is out of range.

    Examples
    --------
    >>> panel = Panel(
    ...     versions=("1.0", "1.1", "1.2", "1.3"), months=np.arange(4.0), names=("Gelu",),
    ...     clusters=np.arange(1), starts=np.array([0, 4]), version=np.arange(4),
    ...     error=np.array([0.0, 0.7, 0.71, 0.705]), sd=np.full(4, 0.01),
    ...     noise_df=np.full(1, 20.0), frozen_at_first=True)
    >>> found = replayed(panel)
    >>> found.looks, [panel.versions[i] for i in found.version], found.shift.round(2).tolist()
    (3, ['1.1'], [0.7])
    """
    if len(panel.versions) < 2:
        raise InputError("the history has one version only: there is nothing to compare.")
    monitor = monitor_of(panel, None, repeats, margin)
    promise = as_promise(promised, panel.n_series)
    n, asked, found = 0, 0, []
    for at, level, look in looks(panel, monitor, alpha, until=len(panel.versions)):
        n += bool(np.isfinite(look.p).any())
        moved = look.p_adjusted <= level
        if moved.any():
            shifts = monitor.described(look, look.window)
            grew = has_grown(shifts, promise)
            found += [
                (at, i, shifts.begin[i], shifts.shift[i], look.p_adjusted[i], grew[i])
                for i in np.flatnonzero(moved).tolist()
            ]
        else:
            asked += bool(np.nanmin([1.0, *holm_adjusted(look.p_single)]) <= REPEAT)
    columns: list[Any] = [list(column) for column in zip(*found, strict=True)] or [[]] * 6
    return Replayed(
        looks=n,
        repeats=asked,
        version=np.array(columns[0], dtype=np.int64),
        series=np.array(columns[1], dtype=np.int64),
        begin=np.array(columns[2], dtype=np.int64),
        shift=np.array(columns[3], dtype=np.float64),
        p=np.array(columns[4], dtype=np.float64),
        grew=np.array(columns[5], dtype=np.bool_),
    )
