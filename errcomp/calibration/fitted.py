"""A fitted model of the composition: predicts with NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from errcomp.calibration.bands.unlike import other_times, unlike_the_fit, warnings_of
from errcomp.calibration.design import LEVELS, QUANTILES, Design, Floats, Names, PortableModel
from errcomp.calibration.estimators.members import FEATURE_NAMES, columns_of, seen_by
from errcomp.calibration.estimators.stacking import combined
from errcomp.calibration.predictions import Predictions, between_levels
from errcomp.calibration.preparing import Preparation, Prepared
from errcomp.calibration.training import Training
from errcomp.errors import InputError
from errcomp.tables import Kernels

if TYPE_CHECKING:
    from errcomp.calibration.bands.conformal import GroupConformal

__all__ = ["REGIMES", "CompositionModel", "band_ends", "member_quantiles"]

#: What is new in a run: a model on a device that was in the fit, or the device itself.
REGIMES = {"device": "model", "global": "device"}
Regime = str

#: What is new adds as much (ln) where too few groups were there to learn it: the priors of the
#: Bayesian model for what models and devices differ by.
_USUAL = {"device": 0.05, "global": 0.1}
_MEDIAN = QUANTILES.index(0.5)
#: Standard normal quantiles: what an error of a sum of kernels adds to a quantile.
_NORMAL = ndtri(np.asarray(QUANTILES))


@dataclass(frozen=True, slots=True, eq=False)
class CompositionModel:
    """Everything that a prediction needs.

    Attributes
    ----------
    preparation : Preparation
    members : mapping of str to PortableModel
    weights : mapping of regime to mapping of member to float
        Of the stack, learnt from runs left out; empty where it was not fitted.
    bands : mapping of (estimator, regime) to GroupConformal
        Missing where too few groups could be left out.
    training : Training
        The runs of the fit, without their times.
    estimators : tuple of str
        That can be asked for; the last one is the default.
    unit : str
        Of the kernels of the fit; predictions come in the unit of the kernels they are made of.
    fingerprint : str
        Of the table of the fit; see `errcomp.calibration.modelfile.fingerprint`.
    created : str
        Date of the fit, once it is stored.
    versions : mapping of str to str
        Of the libraries that fitted it, once it is stored.
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

    def usable(self, kernels: Kernels) -> tuple[Kernels, dict[str, str]]:
        """Return the kernels of the runs that can be predicted, and why not the others.

        All of them where none can be: `predict` then says what they lack.

        Returns
        -------
        kernels : Kernels
        unused : dict of str to str
            Of every other run, the reason.
        """
        return self.preparation.usable(kernels)

    def predict(self, kernels: Kernels, *, estimator: str | None = None) -> Predictions:
        """Predict the end-to-end time of each run.

        Parameters
        ----------
        kernels : Kernels
            With the times the task needs; what was measured end to end is not looked at.
        estimator : str, optional
            One of `estimators`; the last one of them by default.

        Raises
        ------
        InputError
            The kernels lack times, or the estimator was not fitted.
        """
        chosen = self.estimators[-1] if estimator is None else estimator
        if chosen not in self.estimators:
            raise InputError(
                f"estimator {chosen!r} is not in this model. It has: "
                f"{', '.join(self.estimators)}. Choose one, or fit the model again."
            )
        prepared = self.preparation.prepare(kernels)
        found = prepared.design
        known = np.isin(found.device.astype(str), [d for d in self.training.devices if d])
        fallback = np.where(known, "device", "global").astype(object)
        raw = self._quantiles(prepared, chosen, fallback)
        low, high = self._calibrated(raw, chosen, fallback, found.mode)
        stretched = between_levels(low, high, raw)
        total = found.total[:, None]
        predicted = found.total * np.exp(raw[:, _MEDIAN])
        columns = seen_by(chosen, self.preparation.task)
        calibrated = np.array([(chosen, regime) in self.bands for regime in fallback])
        return Predictions(
            run=found.run,
            total=found.total,
            predicted=predicted,
            low=total * np.exp(low),
            high=total * np.exp(high),
            quantiles=total * np.exp(stretched),
            parts=self._parts(found, predicted),
            fallback=fallback,
            calibrated=calibrated,
            warnings=warnings_of(prepared, self.training, known, calibrated, columns),
            estimator=chosen,
            unit=kernels.unit,
            notes=(
                *other_times(found, self.training),
                *unlike_the_fit(found, self.training, known, columns),
            ),
        )

    def _quantiles(self, prepared: Prepared, estimator: str, fallback: Names) -> Floats:
        design = prepared.design
        usual = [0.0 if (estimator, r) in self.bands else _USUAL[r] for r in fallback]
        excess = np.hypot(self.preparation.excess(prepared), usual)
        if estimator != "stack":
            return widened(member_quantiles(self.members, estimator, design), excess)
        each = {name: member_quantiles(self.members, name, design) for name in self._stacked()}
        found = np.empty((len(design), len(QUANTILES)))
        for regime, weights in self.weights.items():
            here = fallback == regime
            found[here] = combined({name: q[here] for name, q in each.items()}, weights)
        return widened(found, excess)

    def _stacked(self) -> tuple[str, ...]:
        return tuple(next(iter(self.weights.values())))

    def _calibrated(
        self, raw: Floats, estimator: str, fallback: Names, mode: Names
    ) -> tuple[Floats, Floats]:
        """Return calibrated ends; those of the quantiles where calibration was impossible."""
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
        """Split the way from the sum of kernels to the prediction, in the unit of the times."""
        found: dict[str, Floats] = {}
        at = design.total
        physical: Any = self.members.get("bayesian")
        if physical is not None:
            for name, share in self._shares(physical, design).items():
                found[name] = at * np.expm1(share)
                at = at * np.exp(share)
        found["other"] = predicted - at
        return found

    def _shares(self, physical: Any, design: Design) -> dict[str, Floats]:
        """Return what the physical model adds to the log-ratio, by cause."""
        columns = columns_of("bayesian", design.task)
        x = design.x[:, columns]
        parts = physical.parts(x, device=design.device)
        found = {}
        if self.preparation.correction is not None:
            x[:, columns.index(FEATURE_NAMES.index("kernel_correction"))] = 0
            without = physical.parts(x, device=design.device)
            found["kernels"] = parts["linear"] - without["linear"]
        return {**found, "launches": parts["launches"], "slow_kernels": parts["offset"]}


def member_quantiles(members: Mapping[str, PortableModel], name: str, design: Design) -> Floats:
    """Return the quantiles of the log-ratio that a fitted model gives, shape (n, quantiles)."""
    x = design.x[:, columns_of(name, design.task)]
    return members[name].predict_quantiles(x, QUANTILES, device=design.device)


def band_ends(quantiles: Floats, levels: Sequence[float] = LEVELS) -> tuple[Floats, Floats]:
    """Return the quantiles at the ends of equal-tailed bands, each of shape (n, levels)."""
    low = [QUANTILES.index(round((1 - level) / 2, 3)) for level in levels]
    high = [QUANTILES.index(round((1 + level) / 2, 3)) for level in levels]
    return quantiles[:, low].copy(), quantiles[:, high].copy()


def widened(quantiles: Floats, excess: Floats) -> Floats:
    r"""Widen quantiles by an error of the sum of kernels that the models do not know of.

    .. math:: q'_p = m \pm \sqrt{(q_p - m)^2 + (z_p s)^2}

    with median m, standard normal quantile z and the excess s of each run, shape (n,).
    """
    middle = quantiles[:, [_MEDIAN]]
    reach = np.hypot(quantiles - middle, excess[:, None] * _NORMAL)
    found: Floats = middle + np.sign(_NORMAL) * reach
    return found
