"""Adapts a fitted model to devices by a few measured runs, and says what that changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import LEVELS, Design, Floats
from errcomp.calibration.modelfile import check_unit
from errcomp.calibration.plausibility import FlaggedRun, flagged_of
from errcomp.calibration.preparing import runs_at, usable_runs
from errcomp.calibration.transfer.adapting import Adapted, adapt, errors_of
from errcomp.codec import Count, Document
from errcomp.errors import InputError, describe_names
from errcomp.report.shown import Shown
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.calibration.fitted import CompositionModel, Training
    from errcomp.report.model import Report

__all__ = ["Adaptation", "AdaptedDevice", "LeftOutRun", "adapt_model"]

_SHOWN = LEVELS.index(0.9)


@dataclass(frozen=True, slots=True)
class AdaptedDevice(Document):
    """What a few runs of one device changed.

    Attributes
    ----------
    device : str
    in_fit : bool
        Whether the model was fitted to runs of the device.
    runs : int
        Measured runs of the device, those of earlier adaptations included.
    error_before : float
        Mean absolute relative error of the model on these runs before the adaptation, relative to
        the measured time.
    shift : float
        Mean change of the predictions of runs like those of the fit: 0.1 is 10 % longer.
    width : float
        Mean width of their 90 % bands over that before.
    groups : int
        Held-out devices (models, for a device of the fit) from which the adaptation was learnt; 0
        where the fit had too few: then devices are taken to differ by 10 %, and the band is not
        calibrated.
    """

    device: str
    in_fit: bool
    runs: Count
    error_before: float
    shift: float
    width: float
    groups: Count


@dataclass(frozen=True, slots=True)
class LeftOutRun(Document):
    """A measured run that the adaptation did not use, and the reason."""

    run: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Adaptation(Shown, Document):
    """A model that was adapted to devices.

    Attributes
    ----------
    rows : tuple of AdaptedDevice
    estimator : str
        The one that the rows are about: the model's default.
    left_out : tuple of LeftOutRun
    flagged : tuple of FlaggedRun
        Runs that were used though a rule flags them; see `errcomp.calibration.check_runs`.
    model : CompositionModel or None
        The adapted model; None where the result was read from a file.

    Examples
    --------
    >>> from errcomp.calibration import Composition, adapt_model
    >>> from errcomp.datasets import example_runs
    >>> runs = example_runs()
    >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
    >>> adapt_model(model, runs.take(runs.run == "c"))
    Adaptation(B: 1 run)
    """

    SCHEMA: ClassVar = "errcomp.adaptation/1"
    COMMAND: ClassVar = "calibrate adapt"
    KEYS: ClassVar = ("estimator", "rows", "left_out", "flagged")

    rows: tuple[AdaptedDevice, ...]
    estimator: str
    left_out: tuple[LeftOutRun, ...]
    flagged: tuple[FlaggedRun, ...] = ()
    model: Any = None

    @property
    def dropped(self) -> str:
        """Name the runs that were left out."""
        names = [run.run for run in self.left_out]
        return f"run{'s' if len(names) > 1 else ''} {describe_names(names)} left out"

    def view(self) -> Report:
        """Return the report: a row for each device.

        Examples
        --------
        >>> from errcomp.calibration import Composition, adapt_model
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
        >>> adapt_model(model, runs.take(runs.run == "c")).view().title
        'Adapted model'
        """
        from errcomp.calibration.view.adaptation import adaptation_view

        return adaptation_view(self)


def adapt_model(model: CompositionModel, kernels: Kernels | Any, *, seed: int = 0) -> Adaptation:
    """Adapt a model to devices by a few measured runs of each.

    Parameters
    ----------
    model : CompositionModel
    kernels : Kernels, dataframe or mapping of columns
        See `CompositionModel.adapt`.
    seed : int

    Returns
    -------
    Adaptation
        With the adapted model as ``model``.

    Raises
    ------
    InputError
        No run can be used, the unit is missing, or the model file is from an earlier version.

    Examples
    --------
    >>> from errcomp.calibration import Composition
    >>> from errcomp.datasets import example_runs
    >>> runs = example_runs()
    >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
    >>> found = adapt_model(model, runs.take(runs.run == "c"))
    >>> found.rows[0].device, found.rows[0].groups
    ('B', 0)
    """
    errors_of(model)
    kernels = kernels_in_memory(kernels)
    check_unit(model.unit, kernels.unit)
    used, unused = usable_runs(kernels, model.preparation.task)
    design = model.preparation.prepare(used).design
    flagged, named = flagged_of(used, model.preparation.task, model.preparation.state)
    reasons = _reasons(model, design, flagged)
    unused |= {run: why for run, why in zip(design.run.tolist(), reasons, strict=True) if why}
    fine = np.asarray([not why for why in reasons])
    if not fine.any():
        counts = Counter(unused.values()).items()
        causes = "; ".join(f"{why} ({n} run{'s' if n > 1 else ''})" for why, n in counts)
        raise InputError(
            f"{kernels.prefix}no run can be used to adapt the model: {causes}. Give "
            "measured runs that the model was not fitted or adapted to, with a column 'device'."
        )
    used, design = runs_at(used, fine), design.take(fine)
    plain = replace(model, adapted={})
    predicted = {name: plain.predict(used, estimator=name).predicted for name in model.estimators}
    errors = {name: np.log(design.measured / times) for name, times in predicted.items()}
    devices = sorted(set(design.device.tolist()))
    adapted = {
        device: _adapted(model, device, design, errors, design.device == device, seed)
        for device in devices
    }
    new = replace(model, adapted={**model.adapted, **adapted})
    return Adaptation(
        rows=tuple(_row(new, adapted[device]) for device in devices),
        estimator=model.estimators[-1],
        left_out=tuple(LeftOutRun(str(run), why) for run, why in unused.items()),
        flagged=tuple(one for one in named if one.run in set(design.run.tolist())),
        model=new,
    )


def _adapted(
    model: CompositionModel,
    device: str,
    design: Design,
    errors: dict[str, Floats],
    here: NDArray[np.bool_],
    seed: int,
) -> Adapted:
    earlier = model.adapted.get(device)
    run, x = design.run[here], design.x[here]
    own = {name: values[here] for name, values in errors.items()}
    if earlier is not None:
        run, x = np.append(earlier.run, run), np.vstack([earlier.x, x])
        own = {name: np.append(earlier.errors[name], values) for name, values in own.items()}
    return adapt(model, device, run, x, own, seed)


def _reasons(model: CompositionModel, design: Design, flagged: dict[str, str]) -> list[str]:
    """Return for each run why it cannot be used, "" where it can."""
    reasons = []
    for i, (run, device) in enumerate(
        zip(design.run.tolist(), design.device.tolist(), strict=True)
    ):
        earlier = model.adapted.get(device)
        if not device:
            reasons.append("no device is given")
        elif _seen(model.training, design, i):
            reasons.append("the model was fitted to this run")
        elif model.flagged is not None and _seen(model.flagged, design, i):
            reasons.append("the fit left out this run, because a rule flags it")
        elif earlier is not None and (_same(earlier.x, design.x[i]).any() or run in earlier.run):
            reasons.append("the model was already adapted with this run")
        else:
            reasons.append(flagged.get(run, ""))
    return reasons


def _seen(training: Training, design: Design, i: int) -> bool:
    keys = ("device", "model", "mode")
    alike = [getattr(training, key) == getattr(design, key)[i] for key in keys]
    return bool((np.logical_and.reduce(alike) & _same(training.x, design.x[i])).any())


def _same(known: Floats, x: Floats) -> NDArray[np.bool_]:
    """Return the known runs with these features; rounding may differ between units."""
    same: NDArray[np.bool_] = np.isclose(known, x, rtol=1e-9, atol=1e-12, equal_nan=True)
    return np.asarray(same.all(axis=1))


def _row(model: CompositionModel, adapted: Adapted) -> AdaptedDevice:
    estimator = model.estimators[-1]
    typical = adapted.move(estimator, model.training.x, model.training)
    learnt = adapted.learnt[estimator]
    return AdaptedDevice(
        device=adapted.device,
        in_fit=adapted.regime == "device",
        runs=len(adapted),
        error_before=float(np.abs(np.expm1(-adapted.errors[estimator])).mean()),
        shift=float(np.exp(typical.shift.mean()) - 1),
        width=float(typical.narrower.mean() * learnt.factors[_SHOWN]),
        groups=learnt.groups,
    )
