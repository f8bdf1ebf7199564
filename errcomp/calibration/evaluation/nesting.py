"""Fits to parts of one table, each made once: nested cross-validation asks for many of them twice.

Leaving out model A and, inside that, device d leaves the same runs as leaving out d and then A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Design, Names, PortableModel, Task
from errcomp.calibration.estimators.members import MEMBERS, fit_member
from errcomp.calibration.features import disturbed, fit_features
from errcomp.calibration.kernels import KernelCorrection
from errcomp.calibration.preparing import Preparation, Prepared, joined, runs_at
from errcomp.errors import ErrcompError
from errcomp.system.processes import map_jobs
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
            return _portable((name, design), seed=self.seed, cores=self.cores)

        return self._once(name, runs, fit)  # type: ignore[no-any-return]

    def labels(self, key: str, runs: Mask) -> Names:
        """Return the model or the device of some runs."""
        return self._keys[key][runs]

    def ahead(
        self, names: Sequence[str], parts: Sequence[Mask], n_jobs: int
    ) -> Iterator[tuple[int, int]]:
        """Fit these models to these parts in several processes, for `portable` to find.

        Yields how many fits are done and how many there are. What cannot be fitted is left to
        whoever asks for it, and is told why.
        """
        different = _different(parts)
        corrected = _different(
            [
                one
                for runs in different
                if (apart := self._apart(runs))
                for one in (runs, *(runs & ~part for part in apart))
            ]
        )
        total = len(corrected) + len(different) * len(names)
        correct = partial(_if_possible, partial(_correction, self.kernels))
        found = map_jobs(correct, (runs & self._correctable for runs in corrected), n_jobs=n_jobs)
        for done, (runs, correction) in enumerate(zip(corrected, found, strict=True), 1):
            self._keep("kernels", runs, correction)
            yield done, total
        designs = [
            (runs, prepared[1].design)
            for runs in different
            if (prepared := _if_possible(self.prepared, runs)) is not None
        ]
        # Models first: joblib replaces a process that grows after its first work, and what PyMC
        # has compiled in it is lost.
        ordered = sorted(names, key=lambda name: name not in MEMBERS)
        wanted = [(name, *one) for name in ordered for one in designs]
        # Each process has its core: what is drawn does not depend on their number.
        fit = partial(_if_possible, partial(_portable, seed=self.seed, cores=1))
        found = map_jobs(fit, ((name, design) for name, _, design in wanted), n_jobs=n_jobs)
        first = total - len(wanted) + 1
        for done, ((name, runs, _), fitted) in enumerate(zip(wanted, found, strict=True), first):
            self._keep(name, runs, fitted)
            yield done, total

    def _keep(self, what: str, runs: Mask, found: Any) -> None:
        if found is not None:
            self._once(what, runs, lambda: found)

    def _once(self, what: str, runs: Mask, make: Callable[[], Any]) -> Any:
        key = (what, _name(runs))
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _prepared(self, runs: Mask) -> tuple[Preparation, Prepared]:
        inside = self.at(runs)
        state = fit_features(inside, task=self.task)
        plain = Preparation(state)
        parts = self._apart(runs)
        if not parts:
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
        return self._once(  # type: ignore[no-any-return]
            "kernels", runs, lambda: _correction(self.kernels, runs & self._correctable)
        )

    def _apart(self, runs: Mask) -> list[Mask]:
        """Divide runs into those corrected without each other; none where nothing is."""
        if self.task == "composition":
            return []
        groups = self._groups(runs)
        parts = [runs & (groups == group) for group in np.unique(groups[runs])]
        correctable = all((runs & ~part & self._correctable).any() for part in parts)
        return parts if correctable else []

    def _groups(self, runs: Mask) -> Names:
        for names in self._keys.values():
            if len(np.unique(names[runs])) >= _FEWEST_GROUPS:
                return names
        found: Names = (np.arange(len(runs)) % _PARTS).astype(str)
        return found


def _name(runs: Mask) -> bytes:
    return np.packbits(runs).tobytes()


def _portable(what: tuple[str, Design], *, seed: int, cores: int) -> PortableModel:
    name, design = what
    return fit_member(name, design, seed=seed, cores=cores, quick=True).portable_


def _correction(kernels: Kernels, runs: Mask) -> KernelCorrection:
    """Learn corrections from runs that nothing disturbed, where there are such."""
    inside = kernels if runs.all() else runs_at(kernels, runs)
    fine = ~disturbed(inside, fit_features(inside, task="prediction"))
    return KernelCorrection().fit(runs_at(inside, fine) if fine.any() else inside)


def _different(parts: Sequence[Mask]) -> list[Mask]:
    return list({_name(runs): runs for runs in parts}.values())


def _if_possible(fit: Callable[[Any], Any], what: Any) -> Any:
    try:
        return fit(what)
    except ErrcompError:
        return None


def _per_run(kernels: Kernels, name: str) -> Names:
    if name not in kernels.keys:
        return np.full(kernels.n_runs, "", dtype="<U1")
    values = kernels.per_run(name)
    return np.array(["" if v is None else str(v) for v in values])
