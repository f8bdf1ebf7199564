r"""Fits the composition of runs: models, their stack, and bands calibrated on runs left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from errcomp.calibration.design import LEVELS, QUANTILES, Design, Floats, Names, Task
from errcomp.calibration.features import FEATURES
from errcomp.calibration.fitted import (
    REGIMES,
    CompositionModel,
    Regime,
    band_ends,
    combined,
    member_quantiles,
)
from errcomp.calibration.members import BASELINES, MEMBERS, check_estimators, fit_member
from errcomp.calibration.modelfile import fingerprint
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.preparing import measured_runs, prepare, runs_at
from errcomp.errors import InputError
from errcomp.tables import Kernels

__all__ = ["Composition"]

_MEDIAN = QUANTILES.index(0.5)
#: Below this many runs no model is fitted, and below this many groups none is left out.
_FEWEST_RUNS = 8
_FEWEST_GROUPS = 3

Progress = Callable[[float, float], None]


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
            With ``run_measured``; runs without are not used.
        progress : callable, optional
            Called with what is done and how much there is.

        Raises
        ------
        InputError
            Fewer than 8 runs were measured, or kernels lack the time that the task needs.
        """
        names = check_estimators([*BASELINES, *self.estimators])
        fitted = [n for n in names if n != "stack"]
        if "stack" in names:
            fitted = [*dict.fromkeys([*fitted, *MEMBERS])]
        used, _ = measured_runs(kernels)
        if used.n_runs < _FEWEST_RUNS:
            raise InputError(
                f"{used.n_runs} runs are too few to fit a composition: at least {_FEWEST_RUNS} "
                "measured runs are needed, better of three models on three devices."
            )
        preparation = prepare(used, task=self.task)
        design = preparation.design(used)
        folds = {regime: _folds(getattr(design, key)) for regime, key in REGIMES.items()}
        steps = _Steps(progress, len(fitted) * (1 + sum(map(len, folds.values()))))
        self.members_: dict[str, Any] = {}
        for name in fitted:
            self.members_[name] = fit_member(name, design, seed=self.seed, cores=self.cores)
            steps.step()
        self.left_out_ = {
            regime: self._left_out(used, fitted, parts, steps) for regime, parts in folds.items()
        }
        weights = self._weights(design) if "stack" in names else {}
        self.model_ = CompositionModel(
            preparation=preparation,
            members={name: member.portable_ for name, member in self.members_.items()},
            weights=weights,
            bands=self._bands(design, names, weights),
            ranges=_ranges(design),
            devices=_seen(design.device),
            models=_seen(design.model),
            modes=_seen(design.mode),
            estimators=names,
            unit=str(kernels.unit),
            runs=len(design),
            fingerprint=fingerprint(used),
        )
        return self

    def predict(self, kernels: Kernels, *, estimator: str | None = None) -> Predictions:
        """Predict runs; see `CompositionModel.predict`."""
        return self.model_.predict(kernels, estimator=estimator)

    def _left_out(
        self,
        kernels: Kernels,
        names: Sequence[str],
        folds: Sequence[np.ndarray[Any, Any]],
        steps: _Steps,
    ) -> dict[str, Floats]:
        """Return quantiles of the log of the time of each run, its group left out of the fit."""
        found = {name: np.full((kernels.n_runs, len(QUANTILES)), np.nan) for name in names}
        for held in folds:
            train = runs_at(kernels, ~held)
            preparation = prepare(train, task=self.task)
            inside = preparation.design(train)
            outside = preparation.design(runs_at(kernels, held))
            for name in names:
                member = fit_member(name, inside, seed=self.seed, cores=self.cores, quick=True)
                quantiles = member_quantiles({name: member.portable_}, name, outside)
                found[name][held] = np.log(outside.total)[:, None] + quantiles
                steps.step()
        return found

    def _weights(self, design: Design) -> dict[Regime, dict[str, float]]:
        """Weigh the models of the stack by how they did on runs left out."""
        from errcomp.calibration.stacking import stack_weights

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
        from errcomp.calibration.conformal import GroupConformal

        found = {}
        truth = np.log(design.measured)
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
                groups = getattr(design, key)[there]
                found[name, regime] = GroupConformal(levels=LEVELS).fit(
                    quantiles[there, _MEDIAN], low, high, truth[there], groups
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


def _folds(groups: Names) -> list[np.ndarray[Any, Any]]:
    """Return a mask per group; none where there are too few groups to leave one out."""
    names = sorted(set(groups.tolist()))
    if len(names) < _FEWEST_GROUPS:
        return []
    return [groups == name for name in names]


def _seen(values: Names) -> tuple[str, ...]:
    return tuple(sorted(set(values.tolist())))


def _ranges(design: Design) -> dict[str, tuple[float, float]]:
    found = {}
    for column, feature in enumerate(FEATURES):
        values = design.x[:, column]
        known = values[np.isfinite(values)]
        if len(known):
            found[feature.name] = (float(known.min()), float(known.max()))
    return found
