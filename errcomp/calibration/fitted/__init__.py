"""A fitted model of the composition: predicts with NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from errcomp.calibration.design import (
    QUANTILES,
    Design,
    Floats,
    Names,
    PortableModel,
)
from errcomp.calibration.estimators import STACK, columns_of, estimators, seen_by
from errcomp.calibration.evaluation.scoring import combined
from errcomp.calibration.features import FEATURE_NAMES, FEATURES, PHYSICAL
from errcomp.calibration.fitted.unlike import other_times, unlike_the_fit, warnings_of, with_flags
from errcomp.calibration.plausibility import doubts_of
from errcomp.calibration.predictions import ADAPTED, Predictions, band_ends, between_levels
from errcomp.calibration.preparing import Preparation, Prepared
from errcomp.codec import json_text
from errcomp.errors import InputError, LeftOutWarning, warn_caller
from errcomp.report.shown import Shown
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.calibration.bands.conformal import GroupConformal
    from errcomp.calibration.transfer.adapting import Adapted
    from errcomp.calibration.transfer.held_out import HeldOut
    from errcomp.report.model import Report


_KEYS = ("device", "model", "mode")


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The runs of a fit, without their times.

    Attributes
    ----------
    x : ndarray, shape (n, features)
    device, model, mode : ndarray of str, shape (n,)
    """

    KIND = "training"

    x: Floats
    device: Names
    model: Names
    mode: Names

    @classmethod
    def of(cls, design: Design) -> Self:
        """Keep features and names of a design."""
        return cls(design.x, design.device, design.model, design.mode)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices, sorted."""
        return _different(self.device)

    @property
    def models(self) -> tuple[str, ...]:
        """Models, sorted."""
        return _different(self.model)

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes, sorted."""
        return _different(self.mode)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of each feature, without features that were never known."""
        ends = {}
        for column, feature in enumerate(FEATURES):
            known = self.x[np.isfinite(self.x[:, column]), column]
            if len(known):
                ends[feature.name] = (float(known.min()), float(known.max()))
        return ends

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays, from which `from_arrays` restores it."""
        return {}, {"x": self.x, **{name: getattr(self, name).astype(str) for name in _KEYS}}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the runs.

        Raises
        ------
        InputError
            An array is missing or impossible.
        """
        x = arrays.get("x")
        names = [arrays.get(name) for name in _KEYS]
        fine = (
            x is not None
            and x.dtype == np.float64
            and x.ndim == 2
            and x.shape[1] in (len(FEATURES), len(FEATURES) - len(PHYSICAL))
            and all(n is not None and n.dtype.kind == "U" and n.shape == (len(x),) for n in names)
        )
        if not fine or x is None:
            raise InputError(
                f"the stored runs of the fit must have x with {len(FEATURES)} columns, and a "
                "device, a model and a mode for each row. Fit the model again."
            )
        # A model of an earlier version has no physical columns.
        lacking = np.full((len(x), len(FEATURES) - x.shape[1]), np.nan)
        return cls(np.hstack([x, lacking]), *(arrays[name].astype(object) for name in _KEYS))


def _different(values: Names) -> tuple[str, ...]:
    return tuple(sorted(set(values.tolist())))


#: The new part of a run: its model, on a device of the fit, or the device itself.
REGIMES = {"device": "model", "global": "device"}
Regime = str

#: Spread (ln) of a new model or device if there were too few groups to learn it: the Bayesian
#: model's priors of how models and devices differ.
_USUAL = {"device": 0.05, "global": 0.1}
_MEDIAN = QUANTILES.index(0.5)
#: Standard normal quantiles, for the error that a sum of kernels adds to a quantile.
_NORMAL = ndtri(np.asarray(QUANTILES))


@dataclass(frozen=True, slots=True, eq=False)
class CompositionModel(Shown):
    """A fitted composition: everything that a prediction needs.

    Attributes
    ----------
    preparation : Preparation
    members : mapping of str to PortableModel
    weights : mapping of regime to mapping of member to float
        Of the stack, learnt from held-out runs; empty where it was not fitted.
    bands : mapping of (estimator, regime) to GroupConformal
        Missing where there were too few groups to hold out.
    training : Training
        The runs of the fit, without their times.
    estimators : tuple of str
        The available estimators; the last is the default.
    unit : str
        Unit of the kernels of the fit; predictions have the unit of the kernels they are made of.
    fingerprint : str
        Fingerprint of the table of the fit; see `errcomp.calibration.modelfile.fingerprint`.
    created : str
        Date of the fit, once stored.
    versions : mapping of str to str
        Versions of the libraries of the fit, once stored.
    held_out : HeldOut or None
        Errors on held-out runs, from which `adapt` learns what a few runs of a device tell; None
        if an earlier version of errcomp wrote the model file.
    flagged : Training or None
        The runs that were not learnt from because a rule flags them; None where there are none.
    adapted : mapping of str to Adapted
        By device, the runs that `adapt` was given.
    """

    preparation: Preparation
    members: Mapping[str, PortableModel]
    weights: Mapping[Regime, Mapping[str, float]]
    bands: Mapping[tuple[str, Regime], GroupConformal]
    training: Training
    estimators: tuple[str, ...]
    unit: str
    fingerprint: str
    created: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    held_out: HeldOut | None = None
    flagged: Training | None = None
    adapted: Mapping[str, Adapted] = field(default_factory=dict)

    def view(self) -> Report:
        """Return the report of the model: the runs of the fit, and the bands of each estimator.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs).model_
        >>> model.view().title
        'Fitted model'
        """
        from errcomp.calibration.view.model import model_view

        return model_view(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `errcomp calibrate show --json` prints; rows are the bands.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs).model_
        >>> model.to_dict()["devices"]
        ['A', 'B']
        """
        from errcomp.calibration.view.model import model_document

        return {"schema": "errcomp.model/1", **model_document(self)}

    def to_json(self) -> str:
        """Return `to_dict` as JSON.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs).model_
        >>> "devices" in model.to_json()
        True
        """
        return json_text(self.to_dict())

    def usable(self, kernels: Kernels) -> tuple[Kernels, dict[str, str]]:
        """Return the kernels of the runs that can be predicted, and reasons against the others.

        If no run can be predicted, all kernels are returned: `predict` then says what they lack.

        Returns
        -------
        kernels : Kernels
        unused : dict of str to str
            The reason for every other run.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs).model_
        >>> kernels, unused = model.usable(runs)
        >>> kernels.n_runs, unused
        (8, {})
        """
        return self.preparation.usable(kernels)

    def predict(self, kernels: Kernels | Any, *, estimator: str | None = None) -> Predictions:
        """Predict the end-to-end time of each run.

        Parameters
        ----------
        kernels : Kernels, dataframe or mapping of columns
            With the times of the task; measured end-to-end times are ignored.
        estimator : str, optional
            One of `estimators`; the last by default.

        Raises
        ------
        InputError
            The kernels lack times, or the estimator was not fitted.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs).model_
        >>> model.predict(runs).predicted[:2].round(1).tolist()
        [1.1, 2.2]
        """
        chosen = self.estimators[-1] if estimator is None else estimator
        if chosen not in self.estimators:
            raise InputError(
                f"estimator {chosen!r} is not in this model. Estimators in the model: "
                f"{', '.join(self.estimators)}. Choose one, or fit the model again."
            )
        given = kernels_in_memory(kernels)
        prepared = self.preparation.prepare(given)
        design = prepared.design
        known = np.isin(design.device.astype(str), [d for d in self.training.devices if d])
        fallback = np.where(known, "device", "global").astype(object)
        raw = self._quantiles(prepared, chosen, fallback)
        low, high = self._calibrated(raw, chosen, fallback, design.mode)
        calibrated = np.array([(chosen, regime) in self.bands for regime in fallback])
        for device, adapted in self.adapted.items():
            here = design.device.astype(str) == device
            fallback[here] = ADAPTED
            moved = adapted.move(chosen, design.x[here], self.training)
            raw[here], low[here], high[here] = moved.applied(raw[here], low[here], high[here])
            calibrated[here] &= moved.calibrated
        doubt, flags = doubts_of(given, self.preparation.state, design)
        low, high = low - doubt[:, None], high + doubt[:, None]
        stretched = between_levels(low, high, raw)
        total = design.total[:, None]
        predicted = design.total * np.exp(raw[:, _MEDIAN])
        columns = seen_by(chosen, self.preparation.task)
        return Predictions(
            run=design.run,
            total=design.total,
            predicted=predicted,
            low=total * np.exp(low),
            high=total * np.exp(high),
            quantiles=total * np.exp(stretched),
            parts=self._parts(design, predicted),
            fallback=fallback,
            calibrated=calibrated,
            warnings=with_flags(
                warnings_of(prepared, self.training, known, calibrated, columns, self.adapted),
                flags,
            ),
            estimator=chosen,
            unit=kernels.unit,
            notes=(
                *other_times(design, self.training),
                *unlike_the_fit(design, self.training, known, columns),
            ),
        )

    def adapt(self, kernels: Kernels | Any, *, seed: int = 0) -> CompositionModel:
        """Return this model, adapted to devices with a few measured runs of each.

        Predictions for a device move by the errors of its runs: the further, the more alike the
        errors of runs on one device are, on devices held out from the fit. Bands become as wide as
        they had to be on those. Runs in the neighbourhood of a measured run move most. A run that
        is unlike the others moves little.

        Parameters
        ----------
        kernels : Kernels, dataframe or mapping of columns
            Kernels of runs that were measured end to end, with the key device.
        seed : int
            Of the random choices of runs of held-out devices.

        Returns
        -------
        CompositionModel
            A new model; this one stays as it is. Runs of earlier adaptations are kept.

        Raises
        ------
        InputError
            No run can be used, or the model file is from an earlier version.

        Warns
        -----
        LeftOutWarning
            Some runs could not be used, with the reasons.

        See Also
        --------
        errcomp.calibration.adapt_model : Says what the adaptation changed.

        Examples
        --------
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
        >>> new = model.adapt(runs.take(runs.run == "c"))
        >>> {device: len(measured) for device, measured in new.adapted.items()}
        {'B': 1}
        """
        from errcomp.calibration.transfer.adaptation import adapt_model

        found = adapt_model(self, kernels, seed=seed)
        if found.left_out:
            causes = sorted({run.reason for run in found.left_out})
            warn_caller(f"{found.dropped}: {'; '.join(causes)}", LeftOutWarning)
        new: CompositionModel = found.model
        return new

    def _quantiles(self, prepared: Prepared, estimator: str, fallback: Names) -> Floats:
        design = prepared.design
        usual = [0.0 if (estimator, r) in self.bands else _USUAL[r] for r in fallback]
        excess = np.hypot(self.preparation.excess(prepared), usual)
        if estimator != STACK.name:
            return widened(member_quantiles(self.members, estimator, design), excess)
        each = {
            name: member_quantiles(self.members, name, design)
            for name in next(iter(self.weights.values()))
        }
        mixed = np.empty((len(design), len(QUANTILES)))
        for regime, weights in self.weights.items():
            here = fallback == regime
            mixed[here] = combined({name: q[here] for name, q in each.items()}, weights)
        return widened(mixed, excess)

    def _calibrated(
        self, raw: Floats, estimator: str, fallback: Names, mode: Names
    ) -> tuple[Floats, Floats]:
        """Return calibrated ends; without calibration those of the model's quantiles."""
        low, high = band_ends(raw)
        for regime in REGIMES:
            here = fallback == regime
            bands = self.bands.get((estimator, regime))
            if bands is not None and here.any():
                category = mode[here] if bands.by_category else None
                low[here], high[here] = bands.apply(
                    raw[here, _MEDIAN], low[here], high[here], category=category
                )
        return low, high

    def _parts(self, design: Design, predicted: Floats) -> dict[str, Floats]:
        """Split the difference of prediction and sum of kernels, in the unit of the times."""
        parts: dict[str, Floats] = {}
        at = design.total
        if self.explaining is not None:
            for name, share in self._shares(self.explaining, design).items():
                parts[name] = at * np.expm1(share)
                at = at * np.exp(share)
        parts["other"] = predicted - at
        return parts

    @property
    def explaining(self) -> str | None:
        """The member that splits a prediction by cause; None if none was fitted."""
        return next((name for name in self.members if estimators()[name].explains), None)

    def _shares(self, member: str, design: Design) -> dict[str, Floats]:
        """Return the contributions of the physical model to the log-ratio, by cause."""
        columns = columns_of(member, design.task)
        physical: Any = self.members[member]
        x = design.x[:, columns]
        parts = physical.parts(x, device=design.device)
        shares = {}
        if self.preparation.correction is not None:
            x[:, columns.index(FEATURE_NAMES.index("kernel_correction"))] = 0
            without = physical.parts(x, device=design.device)
            shares["kernels"] = sum(parts.values()) - sum(without.values())
            parts = without
        host = {"host": parts["host"]} if "host" in parts else {}
        return {**shares, "launches": parts["launches"], "slow_kernels": parts["offset"], **host}


def member_quantiles(members: Mapping[str, PortableModel], name: str, design: Design) -> Floats:
    """Return the quantiles of the log-ratio that a fitted model gives, shape (n, quantiles)."""
    x = design.x[:, columns_of(name, design.task)]
    return members[name].predict_quantiles(x, QUANTILES, device=design.device)


def widened(quantiles: Floats, excess: Floats) -> Floats:
    r"""Widen quantiles by the error of the sum of kernels, which the models do not include.

    .. math:: q'_p = m \pm \sqrt{(q_p - m)^2 + (z_p s)^2}

    with median m, standard normal quantile z and the excess s of each run, shape (n,).
    """
    middle = quantiles[:, [_MEDIAN]]
    reach = np.hypot(quantiles - middle, excess[:, None] * _NORMAL)
    wider: Floats = middle + np.sign(_NORMAL) * reach
    return wider
