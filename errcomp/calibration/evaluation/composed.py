"""Evaluation of the composition; fits that several folds need are made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from errcomp.calibration.composition import Composition, fewest_runs
from errcomp.calibration.composition.fits import Fits, held_apart, within_runs
from errcomp.calibration.design import Task
from errcomp.calibration.estimators import BASELINES, check_estimators, default_estimators
from errcomp.calibration.evaluation import Evaluation, Predict, evaluate, training_parts
from errcomp.calibration.fitted import REGIMES
from errcomp.calibration.preparing import usable_runs
from errcomp.errors import renamed
from errcomp.system.processes import Progress, count_jobs
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory
from errcomp.tables.units import seconds_in


@renamed(cores="n_jobs")
def evaluate_composition(
    kernels: Kernels | Any,
    *,
    task: Task = "composition",
    estimators: Sequence[str] = default_estimators(),
    splits: Sequence[str] = ("leave-model-out", "leave-device-out"),
    seed: int = 0,
    n_jobs: int | None = None,
    keep_flagged: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate `Composition` on held-out runs; each fold fits everything again without them.

    See `errcomp.calibration.evaluation.evaluate`; here fits are shared between the folds. The
    Bayesian model is sampled with fewer draws than in `Composition.fit` (600 in two chains), and
    poor diagnostics do not stop it.

    Parameters
    ----------
    kernels : Kernels, dataframe or mapping of columns
    task, estimators, seed
        As in `Composition`.
    splits : str or sequence of str
    n_jobs : int, optional
        Number of processes that fit, with one core each; see `errcomp.summarize`. None fits in
        this process and samples on two cores.
    keep_flagged : bool
        As in `Composition`. Flagged runs are predicted like all others.
    progress : callable, optional

    Raises
    ------
    InputError
        As `Composition.fit` and `evaluate`.

    Examples
    --------
    >>> from errcomp.tables import Kernels
    >>> times = [1.0 + i for i in range(12)]
    >>> runs = Kernels({"run": list("abcdefghijkl"), "kernel": ["gemm"] * 12,
    ...                 "device": list("ABC") * 4, "measured": times,
    ...                 "run_measured": [1.1 * time for time in times]}, unit="ms")
    >>> found = evaluate_composition(runs, estimators=(), splits=["leave-device-out"])
    >>> found.row("leave-device-out", "sum").n
    12
    """
    check_estimators([*BASELINES, *estimators])
    kernels = kernels_in_memory(kernels)
    seconds_in(kernels.unit, source=kernels.source)
    cores = 2 if n_jobs is None else n_jobs
    used, _ = usable_runs(kernels, task)
    fits = Fits(used, task, seed=seed, n_jobs=cores, keep_flagged=keep_flagged)
    make = partial(_predictors, fits, task, estimators)
    if (jobs := count_jobs(n_jobs)) > 1:
        progress = _fitted_ahead(fits, kernels, estimators, splits, jobs, progress)
    return evaluate(make, kernels, task=task, splits=splits, seed=seed, n_jobs=1, progress=progress)


def _fitted_ahead(
    fits: Fits,
    kernels: Kernels,
    estimators: Sequence[str],
    splits: Sequence[str],
    n_jobs: int,
    progress: Progress | None,
) -> Progress | None:
    """Make the fits of an evaluation in several processes; return the progress of the rest.

    Folds share most of their fits. With one process per fold these would be made twice.
    """
    _, fitted = Composition(estimators=estimators)._names()
    trains = training_parts(kernels, task=fits.task, splits=splits, seed=fits.seed)
    parts = []
    for runs in map(fits.which, trains):
        if runs.sum() >= fewest_runs(fitted):
            held = [h for key in REGIMES.values() for h in held_apart(fits.labels(key, runs))]
            sound = fits.sound(runs, fewest_runs(fitted))
            parts += [sound, *(sound & ~within_runs(runs, h) for h in held)]
    total = 0
    for done, total in fits.ahead(fitted, parts, n_jobs):
        if progress is not None:
            progress(done, total + len(trains))
    return progress and (lambda done, folds: progress(total + done, total + folds))


def _predictors(
    fits: Fits, task: Task, estimators: Sequence[str], kernels: Kernels
) -> dict[str, Predict]:
    """Fit to some of the runs; return the predictors by estimator."""
    fitted = Composition(task=task, estimators=estimators, seed=fits.seed, n_jobs=fits.n_jobs)
    fitted._fit(fits, fits.which(kernels), None, quick=True)
    model = fitted.model_
    return {name: partial(model.predict, estimator=name) for name in model.estimators}
