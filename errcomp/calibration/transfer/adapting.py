"""Moves the predictions of a fitted model by a few measured runs of a device.

What k runs can tell is learnt from devices that the fit did not see, by ``process``. For a device
of the fit it is learnt from models that the fit did not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.bands import POOLED_GROUPS, calibrate
from errcomp.calibration.design import LEVELS, QUANTILES, Floats, Names
from errcomp.calibration.features import FEATURE_NAMES
from errcomp.calibration.transfer.process import (
    USUAL,
    Settings,
    Trial,
    learnt,
    moved,
    trials,
    tried,
    weights_of,
)
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.calibration.fitted import CompositionModel, Training
    from errcomp.calibration.transfer.held_out import HeldOut, Left

__all__ = [
    "Adapted",
    "Learnt",
    "Moved",
    "adapt",
    "errors_of",
    "learn",
    "learnt_for",
    "standardised",
]

#: Features in which runs of a device have similar errors.
_ALIKE = ("training", "total_ms", "mean_kernel_us", "slow_kernels")
_MEDIAN = QUANTILES.index(0.5)
_COLUMNS = [FEATURE_NAMES.index(name) for name in _ALIKE]


@dataclass(frozen=True, slots=True)
class Learnt:
    """How an estimator's errors move on one device, and the factors of its bands after that.

    Attributes
    ----------
    settings : Settings
    factors : tuple of float
        Of the half-widths, by level.
    groups : int
        Held-out devices (or models) that it was learnt from; 0 where there were too few.
    """

    settings: Settings
    factors: tuple[float, ...]
    groups: int

    @property
    def calibrated(self) -> bool:
        """Whether held-out groups were enough to calibrate the band."""
        return self.groups > 0


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """What an adaptation does to predictions of runs: arrays of shape (n,), in logs."""

    shift: Floats
    narrower: Floats
    factors: tuple[float, ...]
    calibrated: bool

    def applied(self, quantiles: Floats, low: Floats, high: Floats) -> tuple[Floats, ...]:
        """Return the quantiles of runs, and the ends of their calibrated bands, after it.

        Parameters
        ----------
        quantiles : ndarray, shape (n, len(QUANTILES))
        low, high : ndarray, shape (n, levels)
        """
        middle = quantiles[:, [_MEDIAN]]
        moved = middle + self.shift[:, None]
        scale = self.narrower[:, None] * np.asarray(self.factors)
        below, above = (
            np.maximum.accumulate(scale * reach, axis=1) for reach in (middle - low, high - middle)
        )
        return moved + self.narrower[:, None] * (quantiles - middle), moved - below, moved + above


@dataclass(frozen=True, slots=True, eq=False)
class Adapted:
    """The measured runs of one device, and what each estimator makes of them.

    Attributes
    ----------
    device : str
    regime : str
        ``device`` if the device was in the fit, else ``global``.
    run : ndarray of str, shape (k,)
    x : ndarray, shape (k, features)
    errors : mapping of str to ndarray, shape (k,)
        By estimator: log of measured over predicted time, before the adaptation.
    learnt : mapping of str to Learnt
    """

    device: str
    regime: str
    run: Names
    x: Floats
    errors: Mapping[str, Floats]
    learnt: Mapping[str, Learnt]

    KIND = "adapted"

    def __len__(self) -> int:
        return len(self.run)

    def move(self, estimator: str, x: Floats, training: Training) -> Moved:
        """Return how other runs of the device are predicted now.

        Parameters
        ----------
        estimator : str
        x : ndarray, shape (n, features)
        training : Training
            Runs of the fit, by which features are standardised.
        """
        one, errors = self.learnt[estimator], self.errors[estimator]
        z = standardised(self.x, training)
        weights = weights_of(z, errors, one.settings)
        shift, narrower = moved(z, errors, weights, standardised(x, training), one.settings)
        return Moved(shift, narrower, one.factors, one.calibrated)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays, from which `from_arrays` restores it."""
        meta = {
            "device": self.device,
            "regime": self.regime,
            "estimators": list(self.learnt),
            "learnt": {
                name: {
                    "settings": list(one.settings),
                    "factors": list(one.factors),
                    "groups": one.groups,
                }
                for name, one in self.learnt.items()
            },
        }
        errors = np.stack([self.errors[name] for name in self.learnt])
        return meta, {"run": self.run.astype(str), "x": self.x, "errors": errors}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the adaptation.

        Raises
        ------
        InputError
            A value is missing or impossible.
        """
        stored, names = meta.get("learnt"), meta.get("estimators")
        if (
            not isinstance(stored, dict)
            or not isinstance(names, list)
            or sorted(map(str, names)) != sorted(stored)
            or meta.get("regime") not in _SIMILAR
            or not isinstance(meta.get("device"), str)
        ):
            raise InputError(
                "an adaptation needs a device, what was learned for each estimator, and a regime, "
                f"got {str(meta)[:80]}. Fit the model again."
            )
        run, x, errors = (arrays.get(name) for name in ("run", "x", "errors"))
        fine = (
            run is not None
            and x is not None
            and errors is not None
            and run.dtype.kind == "U"
            and run.ndim == 1
            and len(run) > 0
            and x.dtype == errors.dtype == np.float64
            and x.shape == (len(run), len(FEATURE_NAMES))
            and errors.shape == (len(names), len(run))
            and bool((np.abs(errors) < _LARGEST).all())
        )
        if not fine or run is None or x is None or errors is None:
            raise InputError(
                "an adaptation needs the arrays run, x and errors, with one entry per run. Fit the "
                "model again."
            )
        return cls(
            meta["device"],
            meta["regime"],
            run.astype(object),
            x,
            dict(zip(names, errors, strict=True)),
            {name: _learnt_from(name, stored[name]) for name in names},
        )


_LARGEST = 50.0
#: What was held out to learn about a device, by regime.
_SIMILAR = {"device": "model", "global": "device"}


def _learnt_from(name: str, stored: Any) -> Learnt:
    try:
        settings = Settings(*map(float, stored["settings"]))
        factors = tuple(map(float, stored["factors"]))
        groups = int(stored["groups"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the adaptation of {name} is incomplete. Fit the model again.") from error
    numbers = (*settings, *factors, groups)
    if not (
        all(0 <= number < _LARGEST for number in numbers[:-1])
        and groups >= 0
        and settings.length > 0
        and settings.noise > 0
        and len(factors) == len(LEVELS)
        and min(factors) > 0
    ):
        raise InputError(f"the adaptation of {name} has impossible numbers. Fit the model again.")
    return Learnt(settings, factors, groups)


def standardised(x: Floats, training: Training) -> Floats:
    """Return the features by which runs are alike, in standard deviations of the fit's runs."""
    basis = training.x[:, _COLUMNS]
    known = np.isfinite(basis)
    n = np.maximum(known.sum(axis=0), 1)
    center = np.where(known, basis, 0.0).sum(axis=0) / n
    scale = np.sqrt((np.where(known, basis - center, 0.0) ** 2).sum(axis=0) / n)
    found = (x[:, _COLUMNS] - center) / np.where(scale > 0, scale, 1.0)
    return np.where(np.isfinite(found), found, 0.0)


def adapt(
    model: CompositionModel,
    device: str,
    run: Names,
    x: Floats,
    errors: Mapping[str, Floats],
    seed: int,
) -> Adapted:
    """Learn from some runs of one device.

    Parameters
    ----------
    model : CompositionModel
    device : str
    run : ndarray of str, shape (k,)
    x : ndarray, shape (k, features)
    errors : mapping of str to ndarray, shape (k,)
        By estimator: log of measured over predicted time.
    seed : int
        Of the random choices of k runs of held-out devices.
    """
    regime = "device" if device in model.training.devices else "global"
    found = {name: learnt_for(model, device, name, len(run), seed) for name in errors}
    return Adapted(device, regime, run, x, dict(errors), found)


def learnt_for(model: CompositionModel, device: str, estimator: str, k: int, seed: int) -> Learnt:
    """Return what k runs of a device tell, by one estimator of a model.

    Raises
    ------
    InputError
        The model file is from an earlier version.
    """
    training, held_out = model.training, errors_of(model)
    regime = "device" if device in training.devices else "global"
    parts = [part for part in (training, model.flagged) if part is not None]
    z = np.concatenate([standardised(part.x, training) for part in parts])
    groups = np.concatenate([getattr(part, _SIMILAR[regime]) for part in parts])
    sound = np.arange(len(z)) < len(training)
    return learn(z, groups, held_out.of(estimator, regime), k, seed, sound=sound)


def errors_of(model: CompositionModel) -> HeldOut:
    """Return the errors on held-out runs.

    Raises
    ------
    InputError
        The model file is from an earlier version.
    """
    if model.held_out is None:
        raise InputError(
            "this model was written by an earlier version of errcomp. It lacks the errors of "
            "held-out runs that an adaptation learns from. Fit the model again."
        )
    return model.held_out


def learn(
    z: Floats,
    groups: Names,
    left: Left,
    k: int,
    seed: int,
    *,
    sound: NDArray[np.bool_] | None = None,
) -> Learnt:
    """Learn from held-out groups what k runs of a new one tell.

    Parameters
    ----------
    z : ndarray, shape (n, p)
        Standardised features of the runs of the fit.
    groups : ndarray of str, shape (n,)
        The device, or model, of each.
    left : Left
        The errors of an estimator on these groups.
    k : int
    seed : int
        Of the random choices of k runs.
    sound : ndarray of bool, shape (n,), optional
        The runs that no rule flags, by default all: the others only widen the band.
    """
    known = np.isfinite(left.error) & (groups != "")
    sound = np.ones(known.sum(), dtype=bool) if sound is None else sound[known]
    z, error, groups = z[known], left.error[known], groups[known]
    usable = np.where(sound, groups, "")
    sizes = np.unique(usable[sound].astype(str), return_counts=True)[1]
    if (sizes > 1).sum() < POOLED_GROUPS:
        return Learnt(USUAL, (1.0,) * len(LEVELS), 0)
    tests = trials(usable, k, seed)
    settings = learnt(z, error, tests)
    factors = []
    for rows, after, narrower in tried(z, error, _all_of(tests, groups, ~sound), settings):
        reach = np.where((after >= 0)[:, None], left.above[known][rows], left.below[known][rows])
        scores = np.abs(after)[:, None] / np.maximum(reach * narrower[:, None], _SMALLEST)
        group = np.unique(groups[rows].astype(str), return_inverse=True)[1].astype(np.int64)
        factors.append([info.factor for info in calibrate(scores, group, LEVELS, "auto")])
    typical = np.mean(factors, axis=0)
    return Learnt(settings, tuple(typical.tolist()), int((sizes > 1).sum()))


def _all_of(tests: Sequence[Trial], groups: Names, flagged: NDArray[np.bool_]) -> Sequence[Trial]:
    """Add the flagged runs of each device to those that are to be predicted."""
    if not flagged.any():
        return tests
    return [
        Trial(
            test.taken,
            [
                np.concatenate([left, np.flatnonzero(flagged & (groups == groups[left[0]]))])
                for left in test.left
            ],
        )
        for test in tests
    ]


_SMALLEST = 1e-9
