"""Fits to parts of one table, each made once: nested cross-validation asks for many of them twice.

Leaving out model A and, inside that, device d leaves the same runs as leaving out d and then A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Names, PortableModel, Task
from errcomp.calibration.features import disturbed, fit_features
from errcomp.calibration.kernel_corrections import KernelCorrection
from errcomp.calibration.members import fit_member
from errcomp.calibration.preparing import Preparation, Prepared, joined, runs_at
from errcomp.tables import Kernels

__all__ = ["Fits", "Mask"]

#: Which runs of the table, shape (runs of the table,).
Mask = NDArray[np.bool_]

#: With fewer models (else devices) to leave out, corrections are judged on parts of the runs.
_FEWEST_GROUPS = 3
_PARTS = 5


class Fits:
    """Fits to parts of one table.

    Parameters
    ----------
    kernels : Kernels
        Of runs that were measured end to end.
    task : {"composition", "prediction"}
    seed, cores : int
    """

    def __init__(self, kernels: Kernels, task: Task, *, seed: int, cores: int) -> None:
        self.kernels = kernels
        self.task: Task = task
        self.seed, self.cores = seed, cores
        self._names = np.asarray(kernels.runs, dtype=object).astype(str)
        self._keys = {name: _per_run(kernels, name) for name in ("model", "device")}
        usable = ~(np.isnan(kernels.predicted) | np.isnan(kernels.measured))
        self._correctable = np.bincount(kernels.codes("run"), usable, kernels.n_runs) > 0
        self._kept: dict[tuple[str, bytes], Any] = {}

    def which(self, kernels: Kernels) -> Mask:
        """Return which runs of the table these kernels are of."""
        found: Mask = np.isin(self._names, np.asarray(kernels.runs, dtype=object).astype(str))
        return found

    def at(self, runs: Mask) -> Kernels:
        """Return the kernels of some runs."""
        return self.kernels if runs.all() else runs_at(self.kernels, runs)

    def prepared(self, runs: Mask) -> tuple[Preparation, Prepared]:
        """Learn the preparation from some runs; return it with their own design.

        In that design the kernels of each run are corrected as those of a new run are: without
        its model (or device, or part of the runs, where there are too few).
        """
        return self._once("prepared", runs, lambda: self._prepared(runs))  # type: ignore[no-any-return]

    def portable(self, name: str, runs: Mask) -> PortableModel:
        """Fit a model to some runs, with few draws, and keep what predicts."""

        def fit() -> PortableModel:
            design = self.prepared(runs)[1].design
            fitted = fit_member(name, design, seed=self.seed, cores=self.cores, quick=True)
            return fitted.portable_

        return self._once(name, runs, fit)  # type: ignore[no-any-return]

    def _once(self, what: str, runs: Mask, make: Callable[[], Any]) -> Any:
        key = (what, np.packbits(runs).tobytes())
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _prepared(self, runs: Mask) -> tuple[Preparation, Prepared]:
        inside = self.at(runs)
        state = fit_features(inside, task=self.task)
        plain = Preparation(state)
        groups = self._groups(runs)
        parts = [runs & (groups == group) for group in np.unique(groups[runs])]
        correctable = all((runs & ~part & self._correctable).any() for part in parts)
        if self.task == "composition" or not correctable:
            return plain, plain.prepare(inside)
        pieces = [
            Preparation(state, self._correction(runs & ~part)).prepare(self.at(part))
            for part in parts
        ]
        order = np.argsort(np.concatenate([np.flatnonzero(part) for part in parts]))
        whole = joined(pieces, order)
        typical = float(np.median(whole.spread))
        return Preparation(state, self._correction(runs), typical), whole

    def _correction(self, runs: Mask) -> KernelCorrection:
        """Learn corrections from runs that nothing disturbed, where there are such."""

        def fit() -> KernelCorrection:
            inside = self.at(runs & self._correctable)
            fine = ~disturbed(inside, fit_features(inside, task="prediction"))
            return KernelCorrection().fit(runs_at(inside, fine) if fine.any() else inside)

        return self._once("kernels", runs, fit)  # type: ignore[no-any-return]

    def _groups(self, runs: Mask) -> Names:
        for names in self._keys.values():
            if len(np.unique(names[runs])) >= _FEWEST_GROUPS:
                return names
        found: Names = (np.arange(len(runs)) % _PARTS).astype(str)
        return found


def _per_run(kernels: Kernels, name: str) -> Names:
    if name not in kernels.keys:
        return np.full(kernels.n_runs, "", dtype="<U1")
    values = kernels.per_run(name)
    return np.array(["" if v is None else str(v) for v in values])
