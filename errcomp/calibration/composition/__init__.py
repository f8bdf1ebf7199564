r"""Fits the composition of runs: models, their stack, and bands calibrated on held-out runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from errcomp.calibration.composition.fits import Fits, Mask, held_apart, within_runs
from errcomp.calibration.design import (
    QUANTILES,
    Floats,
    Parameters,
    Task,
)
from errcomp.calibration.estimators import (
    BASELINES,
    STACK,
    check_estimators,
    default_estimators,
    fit_member,
    fitted_for,
    stacked,
)
from errcomp.calibration.evaluation.scoring import combined, stack_weights
from errcomp.calibration.fitted import (
    REGIMES,
    CompositionModel,
    Regime,
    Training,
    member_quantiles,
    widened,
)
from errcomp.calibration.modelfile import fingerprint
from errcomp.calibration.plausibility import doubts_of
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.preparing import Preparation, usable_runs
from errcomp.calibration.transfer.held_out import HeldOut, Left, calibrated
from errcomp.errors import InputError, renamed
from errcomp.metrics import mape
from errcomp.system.processes import Progress, Steps
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

#: Fewest runs to which a model is fitted, and those that are enough for baselines alone, whose
#: bands hold from three runs on in simulations, and are wide there.
_FEWEST_RUNS, _FEWEST_FOR_BASELINES = 8, 3


class Composition(Parameters):
    r"""Model of the time of runs, from the sum of their kernels.

    .. math:: \ln e_r = \ln S_r + g(x_r, \text{device}) + \varepsilon_r

    with the sum S of measured (composition) or predicted (prediction) kernels, features x of the
    run, and the models g named by `estimators`. Runs with firm evidence against their measurement
    (`errcomp.calibration.check_runs`) are left out. Bands are calibrated on runs whose whole model,
    or whole device, was held out, flagged or not: so they also hold where nothing flags a run.

    Parameters
    ----------
    task : {"composition", "prediction"}
    estimators : sequence of str
        What to fit in addition to the baselines ``sum``, ``global``, ``device`` and ``linear``:
        ``bayesian``, ``boosted``, ``physics``, ``stack`` (the three weighted by held-out score).
        Fitting needs the extra ``calibration``, except for ``physics``; predicting does not.
    seed : int
    n_jobs : int or None
        Number of processes that sample; -1 for one per core, None for one. Does not change results.
    keep_flagged : bool
        Also fit to flagged runs.

    Attributes
    ----------
    model_ : CompositionModel
        Predicts, and can be stored.
    members_ : dict of str to ResidualModel
        The fitted models with posterior, diagnostics or attributions.
    unused_ : dict of str to str
        Runs that the models were not fitted to, and why.
    design_ : Design
        The data that the models were fitted to.
    left_out_ : dict
        For each regime, the quantiles of held-out runs by estimator.
    """

    @renamed(cores="n_jobs")
    def __init__(
        self,
        *,
        task: Task = "composition",
        estimators: Sequence[str] = default_estimators(),
        seed: int = 0,
        n_jobs: int | None = 2,
        keep_flagged: bool = False,
    ) -> None:
        self.task = task
        self.estimators = estimators
        self.seed = seed
        self.n_jobs = n_jobs
        self.keep_flagged = keep_flagged

    def fit(self, kernels: Kernels | Any, *, progress: Progress | None = None) -> Self:
        """Fit to the runs that were measured end to end.

        Parameters
        ----------
        kernels : Kernels, dataframe or mapping of columns
            With ``run_measured``. Runs without it, or without the time of all their kernels, are
            not used.
        progress : callable, optional
            Called with the finished and the total number of steps.

        Raises
        ------
        InputError
            Fewer than 8 usable runs, or than 3 with baselines alone.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs)
        >>> model.predict(runs).predicted[:2].round(1).tolist()
        [1.1, 2.2]
        """
        used, self.unused_ = usable_runs(kernels_in_memory(kernels), self.task)
        fits = Fits(
            used, self.task, seed=self.seed, n_jobs=self.n_jobs, keep_flagged=self.keep_flagged
        )
        runs = np.ones(used.n_runs, dtype=bool)
        self._fit(fits, runs, progress, quick=False)
        if len(self.design_) < used.n_runs:
            self.unused_ |= {
                run: f"{why.partition(':')[0]}, and used for the bands alone (see: errcomp "
                "calibrate check)"
                for run, why in fits.flagged(runs).items()
            }
        return self

    def _fit(self, fits: Fits, runs: Mask, progress: Progress | None, *, quick: bool) -> None:
        """Fit to some of the runs; `quick`: inside a cross-validation, with few draws."""
        names, fitted = self._names()
        if (got := int(runs.sum())) < (fewest := fewest_runs(fitted)):
            until = (
                f" Until then, {_FEWEST_FOR_BASELINES} runs are enough for the estimators "
                f"{', '.join(BASELINES)}: add --estimator device."
                if fewest > _FEWEST_FOR_BASELINES <= got
                else ""
            )
            raise InputError(
                f"a fit of {', '.join(names)} needs at least {fewest} measured runs, got {got}. "
                f"Measure {fewest - got} more, ideally of three models on three "
                f"devices.{until}"
            )
        sound = fits.sound(runs, fewest)
        preparation, prepared = fits.prepared(sound)
        self.design_ = design = prepared.design
        folds = {regime: held_apart(fits.labels(key, runs)) for regime, key in REGIMES.items()}
        steps = Steps(progress, len(fitted) * (1 + sum(map(len, folds.values()))))
        members = {}
        self.members_: dict[str, Any] = {}
        for name in fitted:
            steps.begin(f"{name}, all runs")
            if quick:
                members[name] = fits.portable(name, sound)
            else:
                self.members_[name] = fit_member(name, design, seed=self.seed, n_jobs=self.n_jobs)
                members[name] = self.members_[name].portable_
            steps.step()
        self.left_out_, doubts = {}, {}
        for regime, parts in folds.items():
            found = _left_out(fits, runs, sound, fitted, parts, steps)
            self.left_out_[regime], doubts[regime] = found
        weights = self._weights(fits, runs, sound) if STACK.name in names else {}
        bands, held_out = self._bands(fits, runs, sound, names, weights, doubts)
        self.model_ = CompositionModel(
            preparation=preparation,
            members=members,
            weights=weights,
            bands=bands,
            held_out=held_out,
            flagged=_flagged(fits, runs & ~sound, preparation),
            training=Training.of(design),
            estimators=names,
            unit=str(design.unit),
            fingerprint="" if quick else fingerprint(fits.at(runs)),
        )

    def _names(self) -> tuple[tuple[str, ...], list[str]]:
        """Return the estimators that users may ask for, and those that are fitted."""
        names = check_estimators([*BASELINES, *self.estimators])
        return names, fitted_for(names)

    def predict(self, kernels: Kernels | Any, *, estimator: str | None = None) -> Predictions:
        """Predict runs; see `CompositionModel.predict`.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs)
        >>> model.predict(runs, estimator="global").predicted[:2].round(1).tolist()
        [1.1, 2.2]
        """
        return self.model_.predict(kernels, estimator=estimator)

    def adapt(self, kernels: Kernels | Any) -> Self:
        """Adapt `model_` to devices by a few measured runs; see `CompositionModel.adapt`.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A"))
        >>> [*model.adapt(runs.take(runs.run == "c")).model_.adapted]
        ['B']
        """
        self.model_ = self.model_.adapt(kernels, seed=self.seed)
        return self

    def partial_fit(self, kernels: Kernels | Any) -> Self:
        """Fit to the first runs, and adapt to later ones; see `CompositionModel.adapt`.

        A later `fit` starts from scratch. With many later runs, fit to all runs together.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=())
        >>> for device in ("A", "B"):
        ...     model = model.partial_fit(runs.take(runs.column("device") == device))
        >>> [*model.model_.adapted]
        ['B']
        """
        return self.adapt(kernels) if hasattr(self, "model_") else self.fit(kernels)

    def score(self, kernels: Kernels | Any, *, estimator: str | None = None) -> float:
        """Return minus the MAPE of the predictions: 0 is perfect, higher is better.

        Parameters
        ----------
        kernels : Kernels, dataframe or mapping of columns
            Runs that were measured end to end and were not in the fit.
        estimator : str, optional
            See `predict`.

        Returns
        -------
        float
            Mean over the runs, each weighing the same.

        Raises
        ------
        InputError
            As `predict`, or no run was measured.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs)
        >>> round(model.score(runs, estimator="sum"), 3)  # runs take 10 % longer than their kernels
        -0.091
        """
        used, _ = usable_runs(kernels_in_memory(kernels), self.task)
        predictions = self.predict(used, estimator=estimator)
        measured = used.totals().run_measured
        return -mape(predicted=predictions.predicted, measured=measured)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted model's document; see `CompositionModel.to_dict`.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs)
        >>> model.to_dict()["runs"]
        8
        """
        return self.model_.to_dict()

    def to_json(self) -> str:
        """Return `to_dict` as JSON.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs)
        >>> "estimators" in model.to_json()
        True
        """
        return self.model_.to_json()

    def to_frame(self) -> Any:
        """Return the bands of the fitted model, one row per estimator and regime.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs)
        >>> model.to_frame()["estimator"].unique(maintain_order=True).to_list()
        ['sum', 'global', 'device', 'linear']
        """
        return self.model_.to_frame()

    def _weights(self, fits: Fits, runs: Mask, sound: Mask) -> dict[Regime, dict[str, float]]:
        """Weigh the models of the stack by their scores on held-out runs that are not flagged."""
        members = stacked()
        by_regime = {}
        truth = np.log(fits.measured[sound])
        for regime, key in REGIMES.items():
            each = np.stack([self.left_out_[regime][name][sound[runs]] for name in members])
            finite = np.isfinite(each).all(axis=(0, 2))
            weights = np.full(len(members), 1 / len(members))
            if finite.any():
                groups = fits.labels(key, sound)[finite]
                weights = stack_weights(each[:, finite], truth[finite], groups, QUANTILES)
            by_regime[regime] = dict(zip(members, weights.tolist(), strict=True))
        return by_regime

    def _bands(
        self,
        fits: Fits,
        runs: Mask,
        sound: Mask,
        names: Sequence[str],
        weights: Mapping[Regime, Mapping[str, float]],
        doubts: Mapping[Regime, Floats],
    ) -> tuple[dict[tuple[str, Regime], Any], HeldOut]:
        """Calibrate the bands of each estimator on the held-out runs, for each regime.

        Also returns the errors there, of the flagged runs at the end.
        """
        bands = {}
        errors: dict[tuple[str, Regime], Left] = {}
        truth, mode = np.log(fits.measured[runs]), fits.labels("mode", runs)
        category = mode if len(set(mode.tolist())) > 1 else None
        for regime, key in REGIMES.items():
            each = self.left_out_[regime]
            if STACK.name in names:
                members = {name: each[name] for name in weights[regime]}
                each = {**each, STACK.name: combined(members, weights[regime])}
            for name in names:
                groups = fits.labels(key, runs)
                band, left = calibrated(each[name], truth, doubts[regime], groups, category)
                errors[name, regime] = left.at(np.argsort(~sound[runs], kind="stable"))
                if band is not None:
                    bands[name, regime] = band
        return bands, HeldOut(errors)


def _flagged(fits: Fits, runs: Mask, preparation: Preparation) -> Training | None:
    """Return the runs that a fit did not learn from."""
    return Training.of(preparation.prepare(fits.at(runs)).design) if runs.any() else None


def _left_out(
    fits: Fits,
    runs: Mask,
    sound: Mask,
    names: Sequence[str],
    folds: Sequence[Mask],
    steps: Steps,
) -> tuple[dict[str, Floats], Floats]:
    """Return quantiles of the log of the time of each run, with its group held out.

    The models are fitted to the `sound` ones of the other runs. Also returns the doubt about the
    kernels of the flagged ones, which widens their bands.
    """
    doubt = np.zeros(int(runs.sum()))
    left_out = {name: np.full((int(runs.sum()), len(QUANTILES)), np.nan) for name in names}
    for held in folds:
        out = within_runs(runs, held)
        train = sound & ~out
        preparation, _ = fits.prepared(train)
        outside = preparation.prepare(fits.at(out))
        total, excess = np.log(outside.design.total)[:, None], preparation.excess(outside)
        for name in names:
            steps.begin(f"{name}, without {out.sum()} held-out runs")
            member = {name: fits.portable(name, train)}
            quantiles = member_quantiles(member, name, outside.design)
            left_out[name][held] = total + widened(quantiles, excess)
            steps.step()
        if (out & ~sound).any():
            found, _ = doubts_of(fits.at(out), preparation.state, outside.design)
            doubt[held] = np.where(sound[out], 0.0, found)
    return left_out, doubt


def fewest_runs(fitted: Iterable[str]) -> int:
    """Return the fewest runs to which these estimators are fitted."""
    return _FEWEST_FOR_BASELINES if set(fitted) <= set(BASELINES) else _FEWEST_RUNS
