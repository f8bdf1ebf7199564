"""Which runs to measure next, so that bands of other runs become narrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.bands import groups_needed
from errcomp.calibration.design import LEVELS, Design, Floats
from errcomp.calibration.transfer.adapting import Learnt, learnt_for, standardised
from errcomp.calibration.transfer.process import moved
from errcomp.codec import Count, Document
from errcomp.errors import InputError
from errcomp.report.shown import Shown
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.calibration.fitted import CompositionModel
    from errcomp.report.model import Report

__all__ = ["NextRun", "RunPlan", "plan_runs"]

LEVEL = 0.9
_AT = LEVELS.index(LEVEL)
#: Random choices of as many runs, with which the plan is compared.
_RANDOM = 50


@dataclass(frozen=True, slots=True)
class NextRun(Document):
    """A run to measure, in order.

    Attributes
    ----------
    run, device : str
    in_fit : bool
        Whether the model was fitted to runs of the device.
    width : float
        Expected mean width of the targets' 90 % bands over the prediction, once this run and those
        before it are measured.
    width_random : float
        The same for as many runs chosen at random.
    """

    run: str
    device: str
    in_fit: bool
    width: float
    width_random: float


@dataclass(frozen=True, slots=True)
class RunPlan(Shown, Document):
    """Runs to measure next.

    Attributes
    ----------
    rows : tuple of NextRun
    width : float
        Mean width of the targets' 90 % bands over the prediction today.
    candidates, targets : int
        Runs that could be measured, and runs whose bands should become narrow.
    estimator : str
        The model's default.
    devices, devices_needed : int
        Devices of the fit, and those from which on a 90 % band of a new device is guaranteed.
    left_out : tuple of str
        Candidates and targets without a device.

    Examples
    --------
    >>> from errcomp.calibration import Composition, plan_runs
    >>> from errcomp.datasets import example_runs
    >>> runs = example_runs()
    >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
    >>> plan_runs(model, runs.take(runs.column("device") == "B"), k=1)
    RunPlan(1 run, 90 % bands 33 → 20 % wide, 4 targets)
    """

    SCHEMA: ClassVar = "errcomp.plan-runs/1"
    COMMAND: ClassVar = "plan runs"
    KEYS: ClassVar = (
        "estimator",
        "width",
        "candidates",
        "targets",
        "devices",
        "devices_needed",
        "rows",
        "left_out",
    )

    rows: tuple[NextRun, ...]
    width: float
    candidates: Count
    targets: Count
    estimator: str
    devices: Count
    devices_needed: Count
    left_out: tuple[str, ...] = ()

    def view(self) -> Report:
        """Return the report: the runs in order.

        Examples
        --------
        >>> from errcomp.calibration import Composition, plan_runs
        >>> from errcomp.datasets import example_runs
        >>> runs = example_runs()
        >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
        >>> plan_runs(model, runs.take(runs.column("device") == "B"), k=1).view().title
        'Runs to measure next'
        """
        from errcomp.calibration.view.adaptation import plan_view

        return plan_view(self)


def plan_runs(
    model: CompositionModel,
    candidates: Kernels | Any,
    *,
    k: int = 3,
    targets: Kernels | Any | None = None,
    seed: int = 0,
) -> RunPlan:
    """Choose the runs whose measurement narrows the bands of other runs most.

    One run after the other is chosen, each time the one after which the mean width of the targets'
    90 % bands is expected to be smallest, once the model is adapted to the chosen runs. What a run
    tells about others is learnt from devices that the fit did not see.

    Parameters
    ----------
    model : CompositionModel
    candidates : Kernels, dataframe or mapping of columns
        Kernels of runs that can be measured, with the key device.
    k : int
        Number of runs to choose, at least 1.
    targets : Kernels, dataframe or mapping of columns, optional
        Kernels of the runs whose bands should become narrow; by default the candidates.
    seed : int
        Of the random choices.

    Returns
    -------
    RunPlan

    Raises
    ------
    InputError
        k is below 1, no candidate names a device of a target, or the model file is from an earlier
        version.

    Examples
    --------
    >>> from errcomp.calibration import Composition
    >>> from errcomp.datasets import example_runs
    >>> runs = example_runs()
    >>> model = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
    >>> plan = plan_runs(model, runs.take(runs.column("device") == "B"), k=2)
    >>> [row.run for row in plan.rows], plan.rows[1].width < plan.rows[0].width < plan.width
    (['c', 'd'], True)
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    rows, found = _designed(model, candidates)
    wanted = rows
    if targets is not None:
        wanted, found = _designed(model, targets)
    able = np.array([d != "" and d in set(wanted.device.tolist()) for d in rows.device.tolist()])
    if not able.any():
        raise InputError(
            "no candidate run is on the device of a target run. A measured run tells only about "
            "runs on the same device: choose candidates on the devices of the targets, and give "
            "both tables a column 'device'."
        )
    before = found.relative_width
    learnt = cache(lambda device, n: learnt_for(model, device, model.estimators[-1], n, seed))
    state = _State(model, rows, wanted, before, learnt)
    indices = np.flatnonzero(able)
    chosen: list[int] = []
    steps = []
    rng = np.random.default_rng(seed)
    for _ in range(min(k, len(indices))):
        left = [int(i) for i in indices if i not in chosen]
        widths = [state.width([*chosen, i]) for i in left]
        chosen.append(left[int(np.argmin(widths))])
        random = [
            state.width(rng.permutation(indices)[: len(chosen)].tolist()) for _ in range(_RANDOM)
        ]
        steps.append((chosen[-1], min(widths), float(np.mean(random))))
    devices = model.training.devices
    nameless = [
        str(run)
        for part in (rows, wanted)
        for run, device in zip(part.run.tolist(), part.device.tolist(), strict=True)
        if not device
    ]
    return RunPlan(
        rows=tuple(
            NextRun(str(rows.run[i]), str(rows.device[i]), rows.device[i] in devices, width, random)
            for i, width, random in steps
        ),
        width=float(before.mean()),
        candidates=int(able.sum()),
        targets=len(wanted),
        estimator=model.estimators[-1],
        devices=len([device for device in devices if device]),
        devices_needed=groups_needed(LEVEL),
        left_out=tuple(dict.fromkeys(nameless)),
    )


def _designed(model: CompositionModel, kernels: Kernels | Any) -> tuple[Design, Any]:
    usable, _ = model.usable(kernels_in_memory(kernels))
    return model.preparation.prepare(usable).design, model.predict(usable)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Candidates and targets, and what measured runs make of the targets' bands."""

    model: CompositionModel
    candidates: Design
    targets: Design
    before: Floats
    learnt: Callable[[str, int], Learnt]

    def width(self, chosen: list[int]) -> float:
        """Return the expected mean width of the targets' bands once these runs are measured."""
        widths = self.before.copy()
        devices = self.candidates.device[chosen]
        for device in sorted(set(devices.tolist())):
            new = np.asarray(chosen)[devices == device]
            here = self.targets.device == device
            widths[here] *= self._narrower(device, new, here)
        return float(widths.mean())

    def _narrower(self, device: str, new: NDArray[Any], here: NDArray[np.bool_]) -> Floats:
        earlier = self.model.adapted.get(device)
        x = self.candidates.x[new]
        first = self._after(device, None if earlier is None else earlier.x, here)
        if earlier is not None:
            x = np.vstack([earlier.x, x])
        return self._after(device, x, here) / first

    def _after(self, device: str, x: Floats | None, here: NDArray[np.bool_]) -> Floats:
        """Return the widths after these runs over those of the unadapted model."""
        if x is None:
            return np.ones(int(here.sum()))
        training = self.model.training
        one = self.learnt(device, len(x))
        z, new = (standardised(part, training) for part in (x, self.targets.x[here]))
        nothing, plain = np.zeros(len(x)), np.ones(len(x))
        return moved(z, nothing, plain, new, one.settings)[1] * one.factors[_AT]
