"""Phases of runs (forward, backward, optimizer): their kernels, and their own measured times.

A table of kernels says with ``phase`` in which part of its run a kernel works, and with
``phase_measured`` how long that part took in the run. The two together show a part that was slow
for a reason that its kernels do not share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats
from errcomp.calibration.features import Parts
from errcomp.errors import InputError, describe_names
from errcomp.tables import Kernels

PHASE, MEASURED = "phase", "phase_measured"


@dataclass(frozen=True, slots=True, eq=False)
class Phases:
    """Times of the phases of each run.

    Attributes
    ----------
    names : tuple of str
    kernels : ndarray, shape (runs, phases)
        Sum of the kernels of the phase; 0 where a run has none.
    measured : ndarray, shape (runs, phases)
        Time of the phase in the run; NaN where it was not measured.
    """

    names: tuple[str, ...]
    kernels: Floats
    measured: Floats

    def excess(self) -> Floats:
        r"""Return how slow each phase is beside the rest of its run, shape (runs, phases).

        .. math:: e_p = \ln \frac{m_p}{k_p} - \ln \frac{\sum_{q \ne p} m_q}{\sum_{q \ne p} k_q}

        with measured time m and sum of kernels k of the phases that were measured. NaN where a run
        has fewer than two of them. A run that is slow as a whole has no excess.
        """
        known = (self.kernels > 0) & (self.measured > 0)
        kernels, measured = np.where(known, self.kernels, 0.0), np.where(known, self.measured, 0.0)
        rest_kernels = kernels.sum(axis=1, keepdims=True) - kernels
        rest_measured = measured.sum(axis=1, keepdims=True) - measured
        usable = known & (known.sum(axis=1, keepdims=True) > 1)
        found = np.full(kernels.shape, np.nan)
        found[usable] = np.log(
            measured[usable] / kernels[usable] * rest_kernels[usable] / rest_measured[usable]
        )
        return found


def phases_of(kernels: Kernels, parts: Parts) -> Phases | None:
    """Return the phases of the runs, in the order of ``kernels.runs``; None without such columns.

    Raises
    ------
    InputError
        A time of a phase is not a number above 0, or differs between the rows of the phase.
    """
    if PHASE not in kernels.keys or MEASURED not in kernels.keys:
        return None
    phase = np.array(["" if name is None else str(name) for name in kernels.column(PHASE)])
    names = tuple(dict.fromkeys(name for name in phase.tolist() if name))
    took = _times(kernels)
    shape = (len(parts.first), len(names))
    sums, measured = np.zeros(shape), np.full(shape, np.nan)
    for j, name in enumerate(names):
        rows = np.flatnonzero(phase == name)
        run = parts.run[rows]
        np.add.at(sums[:, j], run, parts.count[rows] * parts.times[rows])
        # Of equal places, the last value stays.
        measured[run, j] = took[rows]
        same = np.isclose(measured[run, j], took[rows], rtol=0, atol=0, equal_nan=True)
        _insist_one(kernels, rows[~same])
    return Phases(names, sums, measured)


def _times(kernels: Kernels) -> Floats:
    """Return the measured time of the phase of each row; NaN where it is missing."""
    given = kernels.column(MEASURED)
    took = np.array([_time(value) for value in given])
    if (took == 0).any():
        row = int(np.flatnonzero(took == 0)[0])
        raise InputError(
            f"{kernels.prefix}{MEASURED} must be a number above 0, or missing, got {given[row]!r} "
            f"in run {kernels.run[row]!r}. Fix the value, or leave the column out."
        )
    return took


def _time(value: Any) -> float:
    """Return a time; NaN if it is missing, 0 if it is not a time above 0."""
    if value is None or value == "":
        return np.nan
    try:
        time = float(value)
    except (TypeError, ValueError):
        return 0.0
    return 0.0 if time <= 0 or np.isinf(time) else time


def _insist_one(kernels: Kernels, others: NDArray[np.int64]) -> None:
    if len(others):
        runs = list(dict.fromkeys(kernels.run[others].tolist()))
        raise InputError(
            f"{kernels.prefix}{MEASURED} must be the same in all rows of a phase of a run. It "
            f"differs in {'run' if len(runs) == 1 else 'runs'} {describe_names(runs)}. Fix the "
            "values, or give repeated runs different names."
        )
