"""A fitted model of the composition: predicts with NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from errcomp.calibration.bands.exchangeability import features_exchangeable
from errcomp.calibration.design import LEVELS, QUANTILES, Design, Floats, Names, PortableModel
from errcomp.calibration.estimators import STACK, columns_of, estimators, seen_by
from errcomp.calibration.evaluation.scoring import combined
from errcomp.calibration.features import FEATURE_NAMES, FEATURES
from errcomp.calibration.kernels import KERNEL_LEVELS
from errcomp.calibration.predictions import Predictions, between_levels
from errcomp.calibration.preparing import Preparation, Prepared
from errcomp.errors import InputError
from errcomp.tables import Kernels

if TYPE_CHECKING:
    from errcomp.calibration.bands.conformal import GroupConformal


_KEYS = ("device", "model", "mode")


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What the runs of a fit were.

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
        """Keep what is needed of a design."""
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
        """Smallest and largest value of each feature that was ever known."""
        ends = {}
        for column, feature in enumerate(FEATURES):
            known = self.x[np.isfinite(self.x[:, column]), column]
            if len(known):
                ends[feature.name] = (float(known.min()), float(known.max()))
        return ends

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON can hold, and the arrays, that make it again."""
        return {}, {"x": self.x, **{name: getattr(self, name).astype(str) for name in _KEYS}}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make it again.

        Raises
        ------
        InputError
            An array is missing or cannot be.
        """
        x = arrays.get("x")
        names = [arrays.get(name) for name in _KEYS]
        fine = (
            x is not None
            and x.dtype == np.float64
            and x.ndim == 2
            and x.shape[1] == len(FEATURES)
            and all(n is not None and n.dtype.kind == "U" and n.shape == (len(x),) for n in names)
        )
        if not fine or x is None:
            raise InputError(
                f"the runs of the fit must be x with {len(FEATURES)} columns, and device, model "
                "and mode of each row. Fit the model again."
            )
        return cls(x, *(arrays[name].astype(object) for name in _KEYS))


def _different(values: Names) -> tuple[str, ...]:
    return tuple(sorted(set(values.tolist())))


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
        design = prepared.design
        known = np.isin(design.device.astype(str), [d for d in self.training.devices if d])
        fallback = np.where(known, "device", "global").astype(object)
        raw = self._quantiles(prepared, chosen, fallback)
        low, high = self._calibrated(raw, chosen, fallback, design.mode)
        stretched = between_levels(low, high, raw)
        total = design.total[:, None]
        predicted = design.total * np.exp(raw[:, _MEDIAN])
        columns = seen_by(chosen, self.preparation.task)
        calibrated = np.array([(chosen, regime) in self.bands for regime in fallback])
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
            warnings=warnings_of(prepared, self.training, known, calibrated, columns),
            estimator=chosen,
            unit=kernels.unit,
            notes=(
                *other_times(design, self.training),
                *unlike_the_fit(design, self.training, known, columns),
            ),
        )

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
        """The member that tells a prediction apart by cause; None where none was fitted."""
        return next((name for name in self.members if estimators()[name].explains), None)

    def _shares(self, member: str, design: Design) -> dict[str, Floats]:
        """Return what the model of physics adds to the log-ratio, by cause."""
        columns = columns_of(member, design.task)
        physical: Any = self.members[member]
        x = design.x[:, columns]
        parts = physical.parts(x, device=design.device)
        shares = {}
        if self.preparation.correction is not None:
            x[:, columns.index(FEATURE_NAMES.index("kernel_correction"))] = 0
            without = physical.parts(x, device=design.device)
            shares["kernels"] = parts["linear"] - without["linear"]
        return {**shares, "launches": parts["launches"], "slow_kernels": parts["offset"]}


def member_quantiles(members: Mapping[str, PortableModel], name: str, design: Design) -> Floats:
    """Return the quantiles of the log-ratio that a fitted model gives, shape (n, quantiles)."""
    x = design.x[:, columns_of(name, design.task)]
    return members[name].predict_quantiles(x, QUANTILES, device=design.device)


def band_ends(quantiles: Floats) -> tuple[Floats, Floats]:
    """Return the quantiles at the ends of the bands of `LEVELS`, each of shape (n, levels)."""
    low = [QUANTILES.index(round((1 - level) / 2, 3)) for level in LEVELS]
    high = [QUANTILES.index(round((1 + level) / 2, 3)) for level in LEVELS]
    return quantiles[:, low].copy(), quantiles[:, high].copy()


def widened(quantiles: Floats, excess: Floats) -> Floats:
    r"""Widen quantiles by an error of the sum of kernels that the models do not know of.

    .. math:: q'_p = m \pm \sqrt{(q_p - m)^2 + (z_p s)^2}

    with median m, standard normal quantile z and the excess s of each run, shape (n,).
    """
    middle = quantiles[:, [_MEDIAN]]
    reach = np.hypot(quantiles - middle, excess[:, None] * _NORMAL)
    wider: Floats = middle + np.sign(_NORMAL) * reach
    return wider


# What makes runs unlike those of a fit, in words: for each run, and for all of them together.

#: A feature this share of its range beyond what the fit saw is outside of it.
_SLACK = 0.05
#: A share of the kernels' time that is corrected from other devices is worth a word from here on.
_BORROWED_FROM = 0.1
_FEWEST_GROUPS = 3
#: Factors of ten between the times of all runs and those of the fit from which a unit is asked for.
_OTHER_TIMES = 1.0
_BORROWED = ("device", "global", "none")


def warnings_of(
    prepared: Prepared,
    training: Training,
    known: NDArray[np.bool_],
    calibrated: NDArray[np.bool_],
    columns: Sequence[int],
) -> tuple[tuple[str, ...], ...]:
    """Say of each run what the fit has not seen.

    Parameters
    ----------
    prepared : Prepared
    training : Training
    known : ndarray of bool
        Runs on a device of the fit.
    calibrated : ndarray of bool
        Runs whose band is calibrated.
    columns : sequence of int
        Features that the estimator sees.
    """
    design = prepared.design
    warnings: list[list[str]] = [[] for _ in range(len(design))]
    for i, (device, mode) in enumerate(zip(design.device, design.mode, strict=True)):
        if not known[i]:
            cause = f"device {device!r} was not in the fit" if device else "no device is given"
            warnings[i].append(f"{cause}: answered at the level of all devices")
        if not calibrated[i]:
            warnings[i].append(
                "too few groups to calibrate this band: it is the model's own, widened by what "
                f"{'models' if known[i] else 'devices'} usually differ by"
            )
        if mode not in training.modes:
            warnings[i].append(f"mode {mode!r} was not in the fit")
        warnings[i] += _of_kernels(prepared, i)
    ranges = training.ranges
    for column in columns:
        feature = FEATURES[column]
        if feature.name not in ranges:
            continue
        low, high = ranges[feature.name]
        slack = _SLACK * (high - low)
        values = design.x[:, column]
        for at in np.flatnonzero((values < low - slack) | (values > high + slack)):
            warnings[at].append(
                f"{feature.name} {feature.said(values[at])} is outside the fit's "
                f"{feature.said(low)} to {feature.said(high)}"
            )
    return tuple(map(tuple, warnings))


def _of_kernels(prepared: Prepared, run: int) -> list[str]:
    """Say which share of a run's kernels is corrected by what was not measured on its device."""
    shares = {name: float(prepared.levels[run, KERNEL_LEVELS.index(name)]) for name in _BORROWED}
    warnings = []
    if sum(shares.values()) >= _BORROWED_FROM:
        text = ", ".join(f"{100 * share:.0f} % {name}" for name, share in shares.items() if share)
        warnings.append(f"kernels of classes not measured on the device (time by level: {text})")
    if prepared.uncorrected[run]:
        warnings.append(
            f"{prepared.uncorrected[run]:,} kernels are not corrected: none like them was measured"
        )
    return warnings


def other_times(design: Design, training: Training) -> tuple[str, ...]:
    """Say that all runs are of another length than any of the fit: a unit may be wrong."""
    low, high = training.ranges["total_ms"]
    at = design.x[:, FEATURE_NAMES.index("total_ms")]
    apart = max(float(at.min()) - high, low - float(at.max()))
    if apart < _OTHER_TIMES:
        return ()
    return (
        f"kernels of every run take {'more' if at.min() > high else 'less'} than in any run of the "
        f"fit, {10**apart:.3g} times at least: is the unit right?",
    )


def unlike_the_fit(
    design: Design, training: Training, known: NDArray[np.bool_], columns: Sequence[int]
) -> tuple[str, ...]:
    """Say of new models, and of new devices, whether their runs are unlike those of the fit.

    By `errcomp.calibration.bands.exchangeability.features_exchangeable`, of the features that the
    estimator sees and whole new groups; silent where there is no alarm or too little to tell.
    """
    notes: list[str] = []
    for kind, key, here in (("models", "model", known), ("devices", "device", ~known)):
        old, new = getattr(training, key), getattr(design, key)
        # Runs of a group that the fit has seen are no new group.
        unseen = here & ~np.isin(new.astype(str), sorted(set(old.tolist()) | {""}))
        if not unseen.any() or len(set(old.tolist())) < _FEWEST_GROUPS or not len(columns):
            continue
        names = [FEATURES[column].name for column in columns]
        ranges = training.ranges
        if all(ranges[name][0] == ranges[name][1] for name in names if name in ranges):
            continue
        x_old, x_new = training.x[:, list(columns)], design.x[unseen][:, list(columns)]
        result = features_exchangeable(x_old, old, x_new, groups_new=new[unseen], names=names)
        if result.alarm:
            notes.append(f"new {kind}: {result.verdict}")
    return tuple(notes)
