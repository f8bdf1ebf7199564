r"""Fits the composition of runs: models, their stack, and bands calibrated on held-out runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import (
    QUANTILES,
    Design,
    Floats,
    Names,
    Parameters,
    PortableModel,
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
from errcomp.calibration.estimators import estimators as all_estimators
from errcomp.calibration.evaluation.scoring import combined, stack_weights
from errcomp.calibration.features import disturbed, fit_features, names_per_run
from errcomp.calibration.fitted import (
    REGIMES,
    CompositionModel,
    Regime,
    Training,
    member_quantiles,
    widened,
)
from errcomp.calibration.kernels import KernelCorrection
from errcomp.calibration.modelfile import fingerprint
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.preparing import Preparation, Prepared, joined, runs_at, usable_runs
from errcomp.calibration.transfer.held_out import HeldOut, Left, calibrated
from errcomp.errors import ErrcompError, InputError, renamed
from errcomp.metrics import mape
from errcomp.system.processes import Progress, Steps, map_jobs
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

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
    """

    def __init__(self, kernels: Kernels, task: Task, *, seed: int, n_jobs: int | None) -> None:
        self.kernels = kernels
        self.task: Task = task
        self.seed, self.n_jobs = seed, n_jobs
        self._names = np.asarray(kernels.runs, dtype=object).astype(str)
        self._keys = {
            name: names_per_run(kernels, name).astype(str) for name in ("model", "device")
        }
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
        """Return the model or the device of some runs."""
        return self._keys[key][runs]

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
        for names in self._keys.values():
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


_MEDIAN = QUANTILES.index(0.5)
#: Fewest runs to which a model is fitted, and those that are enough for baselines alone, whose
#: bands hold from three runs on in simulations, and are wide there.
_FEWEST_RUNS, _FEWEST_FOR_BASELINES = 8, 3


class Composition(Parameters):
    r"""Model of the time of runs, from the sum of their kernels.

    .. math:: \ln e_r = \ln S_r + g(x_r, \text{device}) + \varepsilon_r

    with the sum S of measured (composition) or predicted (prediction) kernels, features x of the
    run, and the models g named by `estimators`. Bands are calibrated on runs whose whole model, or
    whole device, was held out.

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

    Attributes
    ----------
    model_ : CompositionModel
        Predicts, and can be stored.
    members_ : dict of str to ResidualModel
        The fitted models with posterior, diagnostics or attributions.
    unused_ : dict of str to str
        Runs that could not be used, and why.
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
    ) -> None:
        self.task = task
        self.estimators = estimators
        self.seed = seed
        self.n_jobs = n_jobs

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
        fits = Fits(used, self.task, seed=self.seed, n_jobs=self.n_jobs)
        self._fit(fits, np.ones(used.n_runs, dtype=bool), progress, quick=False)
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
        preparation, prepared = fits.prepared(runs)
        self.design_ = design = prepared.design
        folds = {regime: held_apart(getattr(design, key)) for regime, key in REGIMES.items()}
        steps = Steps(progress, len(fitted) * (1 + sum(map(len, folds.values()))))
        members = {}
        self.members_: dict[str, Any] = {}
        for name in fitted:
            steps.begin(f"{name}, all runs")
            if quick:
                members[name] = fits.portable(name, runs)
            else:
                self.members_[name] = fit_member(name, design, seed=self.seed, n_jobs=self.n_jobs)
                members[name] = self.members_[name].portable_
            steps.step()
        self.left_out_ = {
            regime: _left_out(fits, runs, fitted, parts, steps) for regime, parts in folds.items()
        }
        weights = self._weights(design) if STACK.name in names else {}
        bands, held_out = self._bands(design, names, weights)
        self.model_ = CompositionModel(
            preparation=preparation,
            members=members,
            weights=weights,
            bands=bands,
            held_out=held_out,
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

    def _weights(self, design: Design) -> dict[Regime, dict[str, float]]:
        """Weigh the models of the stack by their scores on held-out runs."""
        members = stacked()
        by_regime = {}
        truth = np.log(design.measured)
        for regime, key in REGIMES.items():
            each = np.stack([self.left_out_[regime][name] for name in members])
            finite = np.isfinite(each).all(axis=(0, 2))
            weights = np.full(len(members), 1 / len(members))
            if finite.any():
                groups = getattr(design, key)[finite]
                weights = stack_weights(each[:, finite], truth[finite], groups, QUANTILES)
            by_regime[regime] = dict(zip(members, weights.tolist(), strict=True))
        return by_regime

    def _bands(
        self, design: Design, names: Sequence[str], weights: Mapping[Regime, Mapping[str, float]]
    ) -> tuple[dict[tuple[str, Regime], Any], HeldOut]:
        """Calibrate the bands of each estimator on the held-out runs, for each regime.

        Also returns the errors on these runs.
        """
        bands = {}
        errors: dict[tuple[str, Regime], Left] = {}
        truth = np.log(design.measured)
        modes = len(set(design.mode.tolist())) > 1
        for regime, key in REGIMES.items():
            each = self.left_out_[regime]
            if STACK.name in names:
                members = {name: each[name] for name in weights[regime]}
                each = {**each, STACK.name: combined(members, weights[regime])}
            for name in names:
                quantiles = each[name]
                band, errors[name, regime] = calibrated(
                    quantiles, truth, getattr(design, key), design.mode if modes else None
                )
                if band is not None:
                    bands[name, regime] = band
        return bands, HeldOut(errors)


def _left_out(
    fits: Fits, runs: Mask, names: Sequence[str], folds: Sequence[Mask], steps: Steps
) -> dict[str, Floats]:
    """Return quantiles of the log of the time of each run, with its group held out."""
    left_out = {name: np.full((int(runs.sum()), len(QUANTILES)), np.nan) for name in names}
    for held in folds:
        out = within_runs(runs, held)
        train = runs & ~out
        preparation, _ = fits.prepared(train)
        outside = preparation.prepare(fits.at(out))
        total, excess = np.log(outside.design.total)[:, None], preparation.excess(outside)
        for name in names:
            steps.begin(f"{name}, without {out.sum()} held-out runs")
            member = {name: fits.portable(name, train)}
            quantiles = member_quantiles(member, name, outside.design)
            left_out[name][held] = total + widened(quantiles, excess)
            steps.step()
    return left_out


def fewest_runs(fitted: Iterable[str]) -> int:
    """Return the fewest runs to which these estimators are fitted."""
    return _FEWEST_FOR_BASELINES if set(fitted) <= set(BASELINES) else _FEWEST_RUNS


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
