"""Fits to parts of one table, each made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Design, Names, PortableModel, Task
from errcomp.calibration.estimators import estimators as all_estimators
from errcomp.calibration.estimators import fit_member
from errcomp.calibration.features import disturbed, fit_features, names_per_run
from errcomp.calibration.fitted import REGIMES
from errcomp.calibration.kernels import KernelCorrection
from errcomp.calibration.plausibility import flagged_of
from errcomp.calibration.preparing import Preparation, Prepared, joined, runs_at
from errcomp.errors import ErrcompError
from errcomp.system.processes import map_jobs
from errcomp.tables import Kernels

#: Which runs of the table, shape (runs of the table,).
Mask = NDArray[np.bool_]

#: With fewer groups none is held out; kernel corrections are then evaluated on parts of the runs.
_FEWEST_GROUPS = 3
_PARTS = 5


class Fits:
    """Fits to parts of one table.

    Parameters
    ----------
    kernels : Kernels
        Kernels of runs that were measured end to end.
    task : {"composition", "prediction"}
    seed : int
    n_jobs : int or None
    keep_flagged : bool
    """

    def __init__(
        self,
        kernels: Kernels,
        task: Task,
        *,
        seed: int,
        n_jobs: int | None,
        keep_flagged: bool = False,
    ) -> None:
        self.kernels = kernels
        self.task: Task = task
        self.seed, self.n_jobs, self.keep_flagged = seed, n_jobs, keep_flagged
        self._names = np.asarray(kernels.runs, dtype=object).astype(str)
        self._keys = {
            name: names_per_run(kernels, name).astype(str) for name in ("model", "device", "mode")
        }
        self.measured = kernels.totals().run_measured
        usable = ~(np.isnan(kernels.predicted) | np.isnan(kernels.measured))
        self._correctable = np.bincount(kernels.codes("run"), usable, kernels.n_runs) > 0
        self._cache: dict[tuple[str, bytes], Any] = {}

    def which(self, kernels: Kernels) -> Mask:
        """Return the runs of the table to which these kernels belong."""
        return np.isin(self._names, np.asarray(kernels.runs, dtype=object).astype(str))

    def at(self, runs: Mask) -> Kernels:
        """Return the kernels of some runs."""
        return self.kernels if runs.all() else runs_at(self.kernels, runs)

    def prepared(self, runs: Mask) -> tuple[Preparation, Prepared]:
        """Learn the preparation from some runs; return it with their own design.

        In that design the kernels of each run are corrected like those of a new run: without its
        model (or device, or part of the runs, where there are too few models).
        """
        return self._cached("prepared", runs, lambda: self._prepared(runs))  # type: ignore[no-any-return]

    def portable(self, name: str, runs: Mask) -> PortableModel:
        """Fit a model to some runs, with few draws, and return its portable form."""

        def fit() -> PortableModel:
            design = self.prepared(runs)[1].design
            return _portable((name, design), seed=self.seed, n_jobs=self.n_jobs)

        return self._cached(name, runs, fit)  # type: ignore[no-any-return]

    def labels(self, key: str, runs: Mask) -> Names:
        """Return the model, device or mode of some runs."""
        return self._keys[key][runs]

    def flagged(self, runs: Mask) -> dict[str, str]:
        """Return those of some runs that have firm evidence against them, with the reasons."""
        if self.keep_flagged:
            return {}
        return self._cached("flagged", runs, lambda: flagged_of(self.at(runs), self.task)[0])  # type: ignore[no-any-return]

    def sound(self, runs: Mask, fewest: int) -> Mask:
        """Return some runs without those that are flagged, if at least this many are left."""
        sound = runs & ~np.isin(self._names, [*self.flagged(runs)])
        return sound if sound.sum() >= fewest else runs

    def ahead(
        self, names: Sequence[str], parts: Sequence[Mask], n_jobs: int
    ) -> Iterator[tuple[int, int]]:
        """Fit these models to these parts in several processes, for `portable` to find.

        Yields the number of finished fits and of all fits. A fit that fails is left out; it fails
        again, with its error, when `portable` asks for it.
        """
        different = _different(parts)
        corrected = _different(
            [
                mask
                for runs in different
                if (apart := self._correction_folds(runs))
                for mask in (runs, *(runs & ~part for part in apart))
            ]
        )
        total = len(corrected) + len(different) * len(names)
        correct = partial(_if_possible, partial(_correction, self.kernels))
        learnt = map_jobs(correct, (runs & self._correctable for runs in corrected), n_jobs=n_jobs)
        for done, (runs, correction) in enumerate(zip(corrected, learnt, strict=True), 1):
            self._store("kernels", runs, correction)
            yield done, total
        designs = [
            (runs, prepared[1].design)
            for runs in different
            if (prepared := _if_possible(self.prepared, runs)) is not None
        ]
        # Models first: joblib replaces a process that grows after its first work, which loses the
        # models that PyMC compiled in it.
        ordered = sorted(names, key=lambda name: all_estimators()[name].role != "model")
        wanted = [(name, *pair) for name in ordered for pair in designs]
        # Each process has one core; the draws do not depend on their number.
        fit = partial(_if_possible, partial(_portable, seed=self.seed, n_jobs=1))
        fits = map_jobs(fit, ((name, design) for name, _, design in wanted), n_jobs=n_jobs)
        first = total - len(wanted) + 1
        for done, ((name, runs, _), fitted) in enumerate(zip(wanted, fits, strict=True), first):
            self._store(name, runs, fitted)
            yield done, total

    def _store(self, kind: str, runs: Mask, result: Any) -> None:
        if result is not None:
            self._cached(kind, runs, lambda: result)

    def _cached(self, kind: str, runs: Mask, make: Callable[[], Any]) -> Any:
        key = (kind, _name(runs))
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def _prepared(self, runs: Mask) -> tuple[Preparation, Prepared]:
        inside = self.at(runs)
        state = fit_features(inside, task=self.task)
        plain = Preparation(state)
        parts = self._correction_folds(runs)
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
        return self._cached(  # type: ignore[no-any-return]
            "kernels", runs, lambda: _correction(self.kernels, runs & self._correctable)
        )

    def _correction_folds(self, runs: Mask) -> list[Mask]:
        """Divide runs into folds for kernel corrections; none where nothing is corrected."""
        if self.task == "composition":
            return []
        groups = self._groups(runs)
        parts = [runs & (groups == group) for group in np.unique(groups[runs])]
        correctable = all((runs & ~part & self._correctable).any() for part in parts)
        return parts if correctable else []

    def _groups(self, runs: Mask) -> Names:
        for key in REGIMES.values():
            names = self._keys[key]
            if len(np.unique(names[runs])) >= _FEWEST_GROUPS:
                return names
        return (np.arange(len(runs)) % _PARTS).astype(str)


def _name(runs: Mask) -> bytes:
    return np.packbits(runs).tobytes()


def _portable(job: tuple[str, Design], *, seed: int, n_jobs: int | None) -> PortableModel:
    name, design = job
    return fit_member(name, design, seed=seed, n_jobs=n_jobs, quick=True).portable_


def _correction(kernels: Kernels, runs: Mask) -> KernelCorrection:
    """Learn corrections from undisturbed runs, where there are any."""
    inside = kernels if runs.all() else runs_at(kernels, runs)
    fine = ~disturbed(inside, fit_features(inside, task="prediction"))
    return KernelCorrection().fit(runs_at(inside, fine) if fine.any() else inside)


def _different(parts: Sequence[Mask]) -> list[Mask]:
    return list({_name(runs): runs for runs in parts}.values())


def _if_possible(fit: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return fit(argument)
    except ErrcompError:
        return None


def within_runs(runs: Mask, held: Mask) -> Mask:
    """Return a part of some runs as a part of all runs."""
    out = runs.copy()
    out[runs] = held
    return out


def held_apart(groups: Names) -> list[Mask]:
    """Return one mask per group; none where there are too few groups to hold one out."""
    names = sorted(set(groups.tolist()))
    if len(names) < _FEWEST_GROUPS:
        return []
    return [groups == name for name in names]
