r"""Fits the composition of runs: models, their stack, and bands calibrated on runs left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from errcomp.calibration.design import LEVELS, QUANTILES, Design, Floats, Names, Task
from errcomp.calibration.estimators.members import BASELINES, MEMBERS, check_estimators, fit_member
from errcomp.calibration.estimators.stacking import combined, stack_weights
from errcomp.calibration.evaluation import Evaluation, Predict, evaluate, training_parts
from errcomp.calibration.evaluation.nesting import Fits, Mask
from errcomp.calibration.fitted import (
    REGIMES,
    CompositionModel,
    Regime,
    band_ends,
    member_quantiles,
    widened,
)
from errcomp.calibration.modelfile import fingerprint
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.preparing import usable_runs
from errcomp.calibration.training import Training
from errcomp.errors import InputError
from errcomp.system.processes import Progress, count_jobs
from errcomp.tables import Kernels
from errcomp.tables.units import seconds_in

__all__ = ["Composition", "evaluate_composition"]

_MEDIAN = QUANTILES.index(0.5)
#: Below this many runs no model is fitted, and below this many groups none is left out.
_FEWEST_RUNS = 8
_FEWEST_GROUPS = 3


class Composition:
    r"""Model of what runs take, from the sum of their kernels.

    .. math:: \ln e_r = \ln S_r + g(x_r, \text{device}) + \varepsilon_r

    with the sum S of measured (composition) or predicted (prediction) kernels, features x of the
    run, and the models g named by `estimators`. Bands are calibrated on runs whose whole model,
    or whole device, was left out.

    Parameters
    ----------
    task : {"composition", "prediction"}
    estimators : sequence of str
        What to fit beside the baselines ``sum``, ``global``, ``device`` and ``linear``:
        ``bayesian``, ``boosted``, ``stack`` (both weighted by held-out score). Fitting them needs
        the extra ``calibration``; predicting does not.
    seed : int
    cores : int
        For sampling.

    Attributes
    ----------
    model_ : CompositionModel
        Predicts, and can be stored.
    members_ : dict of str to ResidualModel
        The fitted models with posterior, diagnostics or attributions.
    unused_ : dict of str to str
        Runs that could not be used, and why.
    design_ : Design
        What they were fitted to.
    left_out_ : dict
        Of each regime the quantiles of runs left out, by estimator.
    """

    def __init__(
        self,
        *,
        task: Task = "composition",
        estimators: Sequence[str] = (*MEMBERS, "stack"),
        seed: int = 0,
        cores: int = 2,
    ) -> None:
        self.task = task
        self.estimators = estimators
        self.seed = seed
        self.cores = cores

    def fit(self, kernels: Kernels, *, progress: Progress | None = None) -> Self:
        """Fit to the runs that were measured end to end.

        Parameters
        ----------
        kernels : Kernels
            With ``run_measured``; runs without it, or without the time of all their kernels, are
            not used.
        progress : callable, optional
            Called with what is done and how much there is.

        Raises
        ------
        InputError
            Fewer than 8 runs can be used.
        """
        used, self.unused_ = usable_runs(kernels, self.task)
        fits = Fits(used, self.task, seed=self.seed, cores=self.cores)
        self._fit(fits, np.ones(used.n_runs, dtype=bool), progress, quick=False)
        return self

    def _fit(self, fits: Fits, runs: Mask, progress: Progress | None, *, quick: bool) -> None:
        """Fit to some of the runs; `quick`: inside a cross-validation, with few draws."""
        names, fitted = self._names()
        if runs.sum() < _FEWEST_RUNS:
            raise InputError(
                f"{runs.sum()} runs are too few to fit a composition: at least {_FEWEST_RUNS} "
                "measured runs are needed, better of three models on three devices."
            )
        preparation, prepared = fits.prepared(runs)
        self.design_ = design = prepared.design
        folds = {regime: _folds(getattr(design, key)) for regime, key in REGIMES.items()}
        steps = _Steps(progress, len(fitted) * (1 + sum(map(len, folds.values()))))
        members = {}
        self.members_: dict[str, Any] = {}
        for name in fitted:
            if quick:
                members[name] = fits.portable(name, runs)
            else:
                self.members_[name] = fit_member(name, design, seed=self.seed, cores=self.cores)
                members[name] = self.members_[name].portable_
            steps.step()
        self.left_out_ = {
            regime: _left_out(fits, runs, fitted, parts, steps) for regime, parts in folds.items()
        }
        weights = self._weights(design) if "stack" in names else {}
        self.model_ = CompositionModel(
            preparation=preparation,
            members=members,
            weights=weights,
            bands=self._bands(design, names, weights),
            training=Training.of(design),
            estimators=names,
            unit=str(design.unit),
            fingerprint="" if quick else fingerprint(fits.at(runs)),
        )

    def _names(self) -> tuple[tuple[str, ...], list[str]]:
        """Return the estimators that can be asked for, and those that are fitted."""
        names = check_estimators([*BASELINES, *self.estimators])
        fitted = [n for n in names if n != "stack"]
        if "stack" in names:
            fitted = [*dict.fromkeys([*fitted, *MEMBERS])]
        return names, fitted

    def predict(self, kernels: Kernels, *, estimator: str | None = None) -> Predictions:
        """Predict runs; see `CompositionModel.predict`."""
        return self.model_.predict(kernels, estimator=estimator)

    def _weights(self, design: Design) -> dict[Regime, dict[str, float]]:
        """Weigh the models of the stack by how they did on runs left out."""
        found = {}
        truth = np.log(design.measured)
        for regime, key in REGIMES.items():
            each = np.stack([self.left_out_[regime][name] for name in MEMBERS])
            there = np.isfinite(each).all(axis=(0, 2))
            weights = np.full(len(MEMBERS), 1 / len(MEMBERS))
            if there.any():
                groups = getattr(design, key)[there]
                weights = stack_weights(each[:, there], truth[there], groups, QUANTILES)
            found[regime] = dict(zip(MEMBERS, weights.tolist(), strict=True))
        return found

    def _bands(
        self,
        design: Design,
        names: Sequence[str],
        weights: Mapping[Regime, Mapping[str, float]],
    ) -> dict[tuple[str, Regime], Any]:
        """Calibrate the bands of each estimator on the runs left out, for each regime."""
        from errcomp.calibration.bands.conformal import GroupConformal

        found = {}
        truth = np.log(design.measured)
        modes = len(set(design.mode.tolist())) > 1
        for regime, key in REGIMES.items():
            each = self.left_out_[regime]
            if "stack" in names:
                stacked = {name: each[name] for name in MEMBERS}
                each = {**each, "stack": combined(stacked, weights[regime])}
            for name in names:
                quantiles = each[name]
                there = np.isfinite(quantiles).all(axis=1)
                if not there.any():
                    continue
                low, high = band_ends(quantiles[there])
                found[name, regime] = GroupConformal(levels=LEVELS).fit(
                    quantiles[there, _MEDIAN],
                    low,
                    high,
                    truth[there],
                    getattr(design, key)[there],
                    category=design.mode[there] if modes else None,
                )
        return found


class _Steps:
    """Counts fits for a progress bar."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def step(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _left_out(
    fits: Fits, runs: Mask, names: Sequence[str], folds: Sequence[Mask], steps: _Steps
) -> dict[str, Floats]:
    """Return quantiles of the log of the time of each run, its group left out of the fit."""
    found = {name: np.full((int(runs.sum()), len(QUANTILES)), np.nan) for name in names}
    for held in folds:
        out = _within(runs, held)
        train = runs & ~out
        preparation, _ = fits.prepared(train)
        outside = preparation.prepare(fits.at(out))
        total, excess = np.log(outside.design.total)[:, None], preparation.excess(outside)
        for name in names:
            member = {name: fits.portable(name, train)}
            quantiles = member_quantiles(member, name, outside.design)
            found[name][held] = total + widened(quantiles, excess)
            steps.step()
    return found


def evaluate_composition(
    kernels: Kernels,
    *,
    task: Task = "composition",
    estimators: Sequence[str] = (*MEMBERS, "stack"),
    splits: Sequence[str] = ("leave-model-out", "leave-device-out"),
    seed: int = 0,
    cores: int = 2,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Judge `Composition` on what it has not seen; everything is fitted anew without it.

    As `errcomp.calibration.evaluation.evaluate`, which see, with fits shared between the folds.
    The Bayesian model is sampled with fewer draws than by `Composition.fit` (600 in two chains),
    and its diagnostics are not insisted on.

    Parameters
    ----------
    kernels : Kernels
    task, estimators, seed, cores
        As in `Composition`.
    splits : sequence of str
    n_jobs : int, optional
        How many processes fit, with one core each; see `errcomp.summarize`.
    progress : callable, optional

    Raises
    ------
    InputError
        As `Composition.fit` and `evaluate`.
    """
    check_estimators([*BASELINES, *estimators])
    seconds_in(kernels.unit, source=kernels.source)
    fits = Fits(usable_runs(kernels, task)[0], task, seed=seed, cores=cores)
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
    progress: Callable[[int, int], None] | None,
) -> Callable[[int, int], None] | None:
    """Make the fits of an evaluation in several processes; return what counts the rest.

    Folds share most of their fits: with each process a fold they would be made twice.
    """
    _, fitted = Composition(estimators=estimators)._names()
    trains = training_parts(kernels, task=fits.task, splits=splits, seed=fits.seed)
    parts = []
    for runs in map(fits.which, trains):
        if runs.sum() >= _FEWEST_RUNS:
            held = [h for key in REGIMES.values() for h in _folds(fits.labels(key, runs))]
            parts += [runs, *(runs & ~_within(runs, h) for h in held)]
    total = 0
    for done, total in fits.ahead(fitted, parts, n_jobs):
        if progress is not None:
            progress(done, total + len(trains))
    return progress and (lambda done, folds: progress(total + done, total + folds))


def _within(runs: Mask, held: Mask) -> Mask:
    """Return a part of some runs as a part of all runs."""
    out = runs.copy()
    out[runs] = held
    return out


def _predictors(
    fits: Fits, task: Task, estimators: Sequence[str], kernels: Kernels
) -> dict[str, Predict]:
    """Fit to some of the runs; return what predicts, by estimator."""
    fitted = Composition(task=task, estimators=estimators, seed=fits.seed, cores=fits.cores)
    fitted._fit(fits, fits.which(kernels), None, quick=True)
    model = fitted.model_
    return {name: partial(model.predict, estimator=name) for name in model.estimators}


def _folds(groups: Names) -> list[Mask]:
    """Return a mask per group; none where there are too few groups to leave one out."""
    names = sorted(set(groups.tolist()))
    if len(names) < _FEWEST_GROUPS:
        return []
    return [groups == name for name in names]
