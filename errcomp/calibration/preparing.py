"""From kernels to the design of a task: corrections of kernels, floors, features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Design, Floats, Task
from errcomp.calibration.features import FeatureState, design, fit_features
from errcomp.errors import InputError, describe_names
from errcomp.tables import Kernels

__all__ = ["Preparation", "measured_runs", "prepare", "runs_at"]


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """What was learnt from the kernels of the fit, and turns kernels into a design.

    Attributes
    ----------
    state : FeatureState
    """

    state: FeatureState

    def design(self, kernels: Kernels) -> Design:
        """Compute the design of kernels as it was in the fit."""
        return design(kernels, task=self.state.task, state=self.state)


def prepare(kernels: Kernels, *, task: Task) -> Preparation:
    """Learn from the kernels of the fit what the design of other kernels needs."""
    return Preparation(fit_features(kernels, task=task))


def runs_at(kernels: Kernels, runs: NDArray[Any]) -> Kernels:
    """Return the kernels of the runs at these positions of ``kernels.runs`` (or under a mask)."""
    names = np.asarray(kernels.runs, dtype=object)[runs]
    return kernels.take(np.isin(kernels.run.astype(str), names.astype(str)))


def measured_runs(kernels: Kernels) -> tuple[Kernels, Floats]:
    """Return the kernels of the runs that were measured end to end, and the times of these runs.

    Raises
    ------
    InputError
        No run was measured end to end.
    """
    first = np.unique(kernels.codes("run"), return_index=True)[1]
    times = kernels.run_measured[first]
    there = ~np.isnan(times)
    if not there.any():
        raise InputError(
            f"{kernels.source + ': ' if kernels.source else ''}no run was measured end to end: "
            f"run_measured is missing in {describe_names(list(kernels.runs))}. Add the column "
            "(the same time in all rows of a run), or a table of runs."
        )
    return (kernels if there.all() else runs_at(kernels, there)), times[there]
