"""Stores fitted compositions in files and loads them; see `errcomp.calibration.modelfile`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from typing import Any

import numpy as np

from errcomp.calibration.bands.conformal import GroupConformal
from errcomp.calibration.design import LEVELS
from errcomp.calibration.estimators import STACK, check_estimators, estimators
from errcomp.calibration.features import FEATURE_NAMES, FEATURES, PHYSICAL
from errcomp.calibration.features.state import FeatureState
from errcomp.calibration.fitted import REGIMES, CompositionModel, Training
from errcomp.calibration.kernels import KernelCorrection
from errcomp.calibration.modelfile import (
    FeatureRange,
    Member,
    ModelContent,
    read_model,
    write_model,
)
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.preparing import Preparation
from errcomp.calibration.transfer.adapting import Adapted
from errcomp.calibration.transfer.held_out import HeldOut
from errcomp.errors import InputError
from errcomp.tables import Kernels

#: Suffixes of the corrections' arrays: a class on a device, a class in a family, sizes.
_NEVER_SEEN = ("_cell", "_cell_var", "_relative", "_relative_var", "_low", "_high")
_LIBRARIES = ("errcomp", "numpy", "scipy")
_REMEDY = "Fit the model again."
#: Rounding may put ends of bands that are equal in the wrong order.
_ROUNDING = 1e-9


class LoadedModel(CompositionModel):
    """A model from a file, where somebody may have written any numbers: it checks what it predicts.

    A fit makes no such numbers, and no limit on each of them would do: their product overflows.
    """

    __slots__ = ()

    def predict(self, kernels: Kernels | Any, *, estimator: str | None = None) -> Predictions:
        """Predict as `CompositionModel.predict`, and check the predictions.

        Raises
        ------
        InputError
            Also where a prediction or an end of its band is not a positive number, or they are in
            the wrong order.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from errcomp.calibration import Composition
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "gpu.errcomp"
        >>> save_model(Composition(estimators=()).fit(runs).model_, path, created="2025-01-31")
        >>> load_model(path).predict(runs).predicted[:2].round(1).tolist()
        [1.1, 2.2]
        """
        with sound_numbers():
            found = super().predict(kernels, estimator=estimator)
            ends = np.column_stack([found.low[:, ::-1], found.predicted, found.high])
            parts = [part for part in found.parts.values() if not np.isfinite(part).all()]
            fine = np.isfinite(ends).all() and (ends > 0).all() and not parts
            if not fine or (np.diff(ends) < -_ROUNDING * ends[:, 1:]).any():
                raise FloatingPointError("its bands are not positive and ascending")
        return found


@contextmanager
def sound_numbers() -> Iterator[None]:
    """Refuse a model whose numbers overflow, or are divided by 0, where it predicts.

    Raises
    ------
    InputError
        They do.
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except FloatingPointError as error:
        raise InputError(
            f"the model holds impossible numbers: predicting with it fails ({error}). Fit the "
            "model again."
        ) from error


def save_model(model: CompositionModel, path: str | PathLike[str], *, created: str) -> None:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : CompositionModel
    path : path
        By convention ``*.errcomp``.
    created : str
        Date of the fit, ``"YYYY-MM-DD"``.

    Raises
    ------
    InputError
        The file cannot be written, or a file other than a model file has the name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from errcomp.calibration import Composition
    >>> from errcomp.datasets import example_runs
    >>> runs = example_runs()
    >>> model = Composition(estimators=()).fit(runs).model_
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "gpu.errcomp"
    >>> save_model(model, path, created="2025-01-31")
    >>> path.exists()
    True
    """
    write_model(path, content_of(model, created=created))


def load_model(path: str | PathLike[str]) -> CompositionModel:
    """Read a model that `save_model` wrote; needs neither PyMC nor xgboost.

    Raises
    ------
    InputError
        The file is not a model, was changed, or was written by a newer errcomp.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from errcomp.calibration import Composition
    >>> from errcomp.datasets import example_runs
    >>> runs = example_runs()
    >>> model = Composition(estimators=()).fit(runs).model_
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "gpu.errcomp"
    >>> save_model(model, path, created="2025-01-31")
    >>> load_model(path).created
    '2025-01-31'
    """
    return model_of(read_model(path), source=str(path))


def content_of(model: CompositionModel, *, created: str) -> ModelContent:
    """Return the content of a fitted model for a file."""
    known = model.training.ranges
    ranges = {name: known.get(name, (None, None)) for name in (f.name for f in FEATURES)}
    lost = [name for name in model.members if estimators()[name].stored is None]
    if lost:
        raise InputError(
            f"a model file cannot hold the estimator{'s' if len(lost) > 1 else ''} "
            f"{', '.join(lost)}. Fit and save only the other estimators."
        )
    parts: dict[str, Any] = {**model.members, "training": model.training}
    if model.preparation.correction is not None:
        parts["kernels"] = model.preparation.correction
    if model.held_out is not None:
        parts["held_out"] = model.held_out
    if model.flagged is not None:
        parts["flagged"] = model.flagged
    parts |= {f"adapted_{i}": one for i, one in enumerate(model.adapted.values())}
    return ModelContent(
        task=model.preparation.state.task,
        unit=model.unit,
        features=tuple(FeatureRange(f.name, f.unit, *ranges[f.name]) for f in FEATURES),
        devices=model.training.devices,
        models=model.training.models,
        modes=model.training.modes,
        levels=LEVELS,
        members=tuple(
            Member.of(name, part, non_finite=_unknown_in(part)) for name, part in parts.items()
        ),
        fingerprint=model.fingerprint,
        versions=library_versions(),
        created=created,
        conformal=tuple(
            {"estimator": estimator, "regime": regime, "bands": bands.to_meta()}
            for (estimator, regime), bands in model.bands.items()
        ),
        extra={
            "state": model.preparation.state.to_meta(),
            "weights": {regime: dict(weights) for regime, weights in model.weights.items()},
            "estimators": list(model.estimators),
            "typical_spread": model.preparation.typical_spread,
        },
    )


def model_of(content: ModelContent, *, source: str = "model file") -> CompositionModel:
    """Restore a fitted model from the content of a file.

    Raises
    ------
    InputError
        A part is missing or does not fit the others.
    """
    try:
        return _model_of(content)
    except (InputError, KeyError, TypeError, ValueError, OverflowError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        problem = problem.removesuffix(_REMEDY).rstrip(". ")
        raise InputError(f"{source}: the model cannot be restored: {problem}. {_REMEDY}") from error


def _model_of(content: ModelContent) -> CompositionModel:
    features = tuple(feature.name for feature in content.features)
    if features not in (FEATURE_NAMES, FEATURE_NAMES[: -len(PHYSICAL)]):
        raise InputError(
            f"its features {features!r} differ from the features of this version of errcomp"
        )
    extra = content.extra
    names = check_estimators(extra["estimators"])
    members = {member.name: member.restore() for member in content.members}
    training, correction = members.pop("training", None), members.pop("kernels", None)
    held_out, flagged = members.pop("held_out", None), members.pop("flagged", None)
    adapted = [members.pop(name) for name in tuple(members) if name.startswith("adapted_")]
    lacking = {name for name in names if name != STACK.name} - set(members)
    if lacking:
        raise InputError(f"it lacks these fitted estimators: {', '.join(sorted(lacking))}")
    if not isinstance(training, Training):
        raise InputError("it lacks the runs of the fit")
    stated = {f.name: (f.low, f.high) for f in content.features if f.low is not None}
    if training.ranges != stated or "total_ms" not in stated:
        raise InputError("the ranges of its features do not match the runs of its fit")
    if correction is not None and not isinstance(correction, KernelCorrection):
        raise InputError("its part 'kernels' does not hold kernel corrections")
    weights = _weights(extra["weights"], members, needed=STACK.name in names)
    if flagged is not None and not isinstance(flagged, Training):
        raise InputError("its part 'flagged' does not hold runs")
    if held_out is not None:
        held_out = _fitting_errors(held_out, names, len(training) + len(flagged or ()))
    spread = float(extra["typical_spread"])
    if not 0 <= spread < math.inf:
        raise InputError(f"typical_spread {spread} is not a standard deviation")
    state = FeatureState.from_meta({**extra["state"], "task": content.task})
    return LoadedModel(
        preparation=Preparation(state, correction, spread),
        members=members,
        weights=weights,
        bands={
            (part["estimator"], part["regime"]): GroupConformal.from_meta(part["bands"])
            for part in content.conformal
        },
        training=training,
        estimators=names,
        unit=str(content.unit),
        fingerprint=content.fingerprint,
        created=content.created,
        versions=content.versions,
        held_out=held_out,
        flagged=flagged,
        adapted=_adaptations(adapted, names),
    )


def _fitting_errors(part: Any, names: Collection[str], runs: int) -> HeldOut:
    """Return the held-out errors of a file, if they are those of its estimators and runs."""
    kinds = {(name, regime) for name in names for regime in REGIMES}
    if not isinstance(part, HeldOut) or set(part.by_kind) != kinds or part.runs != runs:
        raise InputError(
            "its held-out errors do not match its estimators and runs. Fit the model again."
        )
    return part


def _adaptations(parts: Collection[Any], names: Collection[str]) -> dict[str, Adapted]:
    """Return the adaptations of a file by device, if they are those of its estimators."""
    found: dict[str, Adapted] = {}
    for part in parts:
        if not isinstance(part, Adapted) or set(part.learnt) != set(names) or part.device in found:
            raise InputError("an adaptation does not match the estimators, or is there twice")
        found[part.device] = part
    return found


def _weights(
    stored: Mapping[str, Mapping[str, Any]], members: Collection[str], *, needed: bool
) -> dict[str, dict[str, float]]:
    """Return the weights of the stack by regime: for the same members, adding up to 1."""
    if not needed and not stored:
        return {}
    weighed = [name for name in estimators() if name in stored[next(iter(REGIMES))]]
    shares = {regime: {name: float(stored[regime][name]) for name in weighed} for regime in REGIMES}
    for regime, weights in shares.items():
        if min(weights.values(), default=-1) < 0 or abs(sum(weights.values()) - 1) > 1e-9:
            raise InputError(
                f"the weights of the stack ({regime}), {weights!r}, do not add up to 1, or one of "
                "them is negative"
            )
    if lacking := [name for name in weighed if name not in members]:
        raise InputError(f"it lacks these fitted estimators: {', '.join(lacking)}")
    return shares


def _unknown_in(part: Any) -> tuple[str, ...]:
    """Return the arrays in which NaN or infinity stands for something never seen."""
    if isinstance(part, Training | Adapted):
        return ("x",)
    if isinstance(part, HeldOut):
        return ("error", "below", "above")
    if not isinstance(part, KernelCorrection):
        return ()
    return tuple(name for name in part.to_arrays()[1] if name.endswith(_NEVER_SEEN))


def library_versions() -> dict[str, str]:
    """Return the installed versions of errcomp and of the libraries of a fit."""
    fitting = [name for estimator in estimators().values() for name in estimator.recorded]
    versions = {}
    for name in dict.fromkeys([*_LIBRARIES, *fitting]):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
