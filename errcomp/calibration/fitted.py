"""A fitted model of the composition: predicts with NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.calibration.design import LEVELS, QUANTILES, Design, Floats, Names, PortableModel
from errcomp.calibration.features import FEATURES
from errcomp.calibration.members import columns_of
from errcomp.calibration.predictions import Predictions, between_levels
from errcomp.calibration.preparing import Preparation
from errcomp.errors import InputError
from errcomp.tables import Kernels

if TYPE_CHECKING:
    from errcomp.calibration.conformal import GroupConformal

__all__ = ["REGIMES", "CompositionModel", "Regime", "band_ends", "combined"]

#: What is new in a run: a model on a device that was in the fit, or the device itself.
REGIMES = {"device": "model", "global": "device"}
Regime = str

#: A feature this share of its range beyond what the fit saw is outside of it.
_SLACK = 0.05
_MEDIAN = QUANTILES.index(0.5)


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
    ranges : mapping of str to (float, float)
        Of each feature over the runs of the fit, where it is known.
    devices, models, modes : tuple of str
        Of the runs of the fit.
    estimators : tuple of str
        That can be asked for; the last one is the default.
    unit : str
        Of the kernels of the fit; predictions come in the unit of the kernels they are made of.
    runs : int
        How many there were in the fit.
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
    ranges: Mapping[str, tuple[float, float]]
    devices: tuple[str, ...]
    models: tuple[str, ...]
    modes: tuple[str, ...]
    estimators: tuple[str, ...]
    unit: str
    runs: int
    fingerprint: str
    created: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

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
        found = self.preparation.design(kernels)
        known = np.isin(found.device.astype(str), [d for d in self.devices if d])
        fallback = np.where(known, "device", "global").astype(object)
        raw = self._quantiles(found, chosen, fallback)
        low, high = self._calibrated(raw, chosen, fallback)
        stretched = between_levels(low, high, raw)
        total = found.total[:, None]
        predicted = found.total * np.exp(raw[:, _MEDIAN])
        return Predictions(
            run=found.run,
            total=found.total,
            predicted=predicted,
            low=total * np.exp(low),
            high=total * np.exp(high),
            quantiles=total * np.exp(stretched),
            parts=self._parts(found, predicted),
            fallback=fallback,
            warnings=self._warnings(found, fallback, chosen),
            estimator=chosen,
            unit=kernels.unit,
        )

    def _quantiles(self, design: Design, estimator: str, fallback: Names) -> Floats:
        if estimator != "stack":
            return member_quantiles(self.members, estimator, design)
        each = {name: member_quantiles(self.members, name, design) for name in self._stacked()}
        found = np.empty((len(design), len(QUANTILES)))
        for regime, weights in self.weights.items():
            here = fallback == regime
            found[here] = combined({name: q[here] for name, q in each.items()}, weights)
        return found

    def _stacked(self) -> tuple[str, ...]:
        return tuple(next(iter(self.weights.values())))

    def _calibrated(self, raw: Floats, estimator: str, fallback: Names) -> tuple[Floats, Floats]:
        """Return calibrated ends; those of the model itself where no calibration was possible."""
        low, high = band_ends(raw)
        for regime in REGIMES:
            here = fallback == regime
            bands = self.bands.get((estimator, regime))
            if bands is not None and here.any():
                low[here], high[here] = bands.apply(raw[here, _MEDIAN], low[here], high[here])
        return low, high

    def _parts(self, design: Design, predicted: Floats) -> dict[str, Floats]:
        """Split the way from the sum of kernels to the prediction, in the unit of the times."""
        found: dict[str, Floats] = {}
        at = design.total
        physical: Any = self.members.get("bayesian")
        if physical is not None:
            x = design.x[:, columns_of("bayesian")]
            for name, share in physical.parts(x, device=design.device).items():
                found[name] = at * np.expm1(share)
                at = at * np.exp(share)
        found["other"] = predicted - at
        return found

    def _warnings(
        self, design: Design, fallback: Names, estimator: str
    ) -> tuple[tuple[str, ...], ...]:
        """Say of each run what the fit has not seen."""
        seen = set(columns_of("boosted" if estimator == "stack" else estimator))
        found: list[list[str]] = [[] for _ in range(len(design))]
        for i, (device, mode) in enumerate(zip(design.device, design.mode, strict=True)):
            if fallback[i] == "global":
                what = f"device {device!r} was not in the fit" if device else "no device is given"
                found[i].append(f"{what}: answered at the level of all devices")
            if (estimator, fallback[i]) not in self.bands:
                found[i].append("too few groups to calibrate this band: it is the model's own")
            if mode not in self.modes:
                found[i].append(f"mode {mode!r} was not in the fit")
        for column, feature in enumerate(FEATURES):
            if column not in seen or feature.name not in self.ranges:
                continue
            low, high = self.ranges[feature.name]
            slack = _SLACK * (high - low)
            values = design.x[:, column]
            for at in np.flatnonzero((values < low - slack) | (values > high + slack)):
                found[at].append(
                    f"{feature.name} {values[at]:.3g} {feature.unit} is outside the fit's "
                    f"{low:.3g} to {high:.3g}"
                )
        return tuple(map(tuple, found))


def member_quantiles(members: Mapping[str, PortableModel], name: str, design: Design) -> Floats:
    """Return the quantiles of the log-ratio that a fitted model gives, shape (n, quantiles)."""
    x = design.x[:, columns_of(name)]
    return members[name].predict_quantiles(x, QUANTILES, device=design.device)


def combined(each: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Average quantiles with weights (Vincentisation)."""
    parts = [weights[name] * quantiles for name, quantiles in each.items()]
    found: Floats = np.sum(parts, axis=0)
    return found


def band_ends(quantiles: Floats, levels: Sequence[float] = LEVELS) -> tuple[Floats, Floats]:
    """Return the quantiles at the ends of equal-tailed bands, each of shape (n, levels)."""
    low = [QUANTILES.index(round((1 - level) / 2, 3)) for level in levels]
    high = [QUANTILES.index(round((1 + level) / 2, 3)) for level in levels]
    return quantiles[:, low].copy(), quantiles[:, high].copy()
