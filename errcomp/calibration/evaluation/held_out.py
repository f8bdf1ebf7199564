"""Predictions of runs that had no part in the fit, and what was true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import LEVELS, QUANTILES, Design, Floats, Names, Task
from errcomp.calibration.evaluation.splits import Split
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.preparing import runs_at, usable_runs
from errcomp.errors import ErrcompError, InputError, describe_names
from errcomp.system.processes import map_jobs
from errcomp.tables import Kernels

__all__ = ["HeldOut", "Make", "Predict", "Refused", "held_out", "hide_truth", "judged_runs"]

#: Predicts the runs of a table that it has not seen.
Predict = Callable[[Kernels], Predictions]
#: Fits everything to the runs of the fit; returns what predicts, by the name of the estimator.
Make = Callable[[Kernels], Mapping[str, Predict]]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Held-out predictions of one estimator in one split; arrays of shape (n,).

    Attributes
    ----------
    run, group, device, model : ndarray of str
        `group` is what was left out with the run.
    measured, total, predicted : ndarray
        End to end; sum of kernels; median predicted.
    low, high : ndarray, shape (n, len(LEVELS))
        NaN where a band was refused.
    quantiles : ndarray, shape (n, len(QUANTILES))
    calibrated : ndarray of bool
        Whether the band was calibrated.
    """

    run: Names
    group: Names
    device: Names
    model: Names
    measured: Floats
    total: Floats
    predicted: Floats
    low: Floats
    high: Floats
    quantiles: Floats
    calibrated: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.run)

    @property
    def ape(self) -> Floats:
        """Absolute error of each run, as a share of its measurement."""
        found: Floats = np.abs(self.predicted / self.measured - 1)
        return found

    @property
    def width(self) -> Floats:
        """Width of the 90 % band of each run, as a share of its prediction."""
        at = LEVELS.index(0.9)
        found: Floats = (self.high[:, at] - self.low[:, at]) / self.predicted
        return found

    @property
    def cell(self) -> Names:
        """Device and model of each run; its name where neither is known."""
        known = zip(self.run, self.device, self.model, strict=True)
        return np.array([f"{d} / {m}" if d or m else r for r, d, m in known], dtype=object)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one row per run for JSON, without the quantiles; None where a band has no end."""
        plain = ("run", "group", "device", "model", "measured", "total", "predicted", "calibrated")
        columns = {name: getattr(self, name).tolist() for name in plain}
        for i, level in enumerate(LEVELS):
            columns |= {
                f"{end}_{100 * level:g}": [x if np.isfinite(x) else None for x in values[:, i]]
                for end, values in (("low", self.low), ("high", self.high))
            }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def take(self, index: NDArray[Any]) -> Self:
        """Return the runs at these positions, or under this mask."""
        return type(self)(*(getattr(self, one.name)[index] for one in fields(self)))

    def naive(self) -> Self:
        """Return the same runs with the sum of their kernels as the prediction, without bands."""
        without = {
            name: np.full_like(getattr(self, name), np.nan) for name in ("low", "high", "quantiles")
        }
        without["calibrated"] = np.zeros(len(self), dtype=bool)
        kept = {one.name: getattr(self, one.name) for one in fields(self)}
        return type(self)(**{**kept, **without, "predicted": self.total})


@dataclass(frozen=True, slots=True)
class Refused:
    """Runs that an estimator did not answer, and why.

    Attributes
    ----------
    split, estimator, held_out : str
        `estimator` is empty where nothing could be fitted.
    n : int
        Runs held out.
    reason : str
    """

    split: str
    estimator: str
    held_out: str
    n: int
    reason: str


def judged_runs(kernels: Kernels, task: Task) -> tuple[Kernels, Design, tuple[str, ...]]:
    """Return the runs with a sum of kernels and a measurement, as kernels and as a design.

    The design has no features: it says who shares device and model. The third value are the names
    of the other runs.

    Raises
    ------
    InputError
        No run has both.
    """
    used, unused = usable_runs(kernels, task)
    table = used.totals()
    keys = {
        name: np.array([str(v) if v is not None else "" for v in table.keys[name]], dtype=object)
        if name in table.keys
        else np.full(len(table), "", dtype=object)
        for name in ("device", "model", "mode")
    }
    design = Design(
        run=table.run,
        total=table.measured if task == "composition" else table.predicted,
        measured=table.run_measured,
        x=np.empty((len(table), 0)),
        names=(),
        unit=table.unit,
        task=task,
        **keys,
    )
    return used, design, tuple(map(str, unused))


def hide_truth(kernels: Kernels, task: Task) -> Kernels:
    """Return the kernels as they are known before the run: not measured end to end.

    For a prediction the kernels have not been measured either.
    """
    part = kernels.take(np.arange(kernels.n))
    part.run_measured = np.full(part.n, np.nan)
    if task == "prediction":
        part.measured = np.full(part.n, np.nan)
    return part


def held_out(
    make: Make,
    kernels: Kernels,
    design: Design,
    name: str,
    parts: Sequence[Split],
    *,
    estimators: Sequence[str] | None,
    n_jobs: int | None,
    progress: Callable[[], None],
) -> tuple[dict[str, HeldOut], list[Refused]]:
    """Fit without each group and predict it; by estimator, with what was refused."""
    found: dict[str, list[HeldOut]] = {}
    refused: list[Refused] = []
    fold = partial(_fold, make, kernels, design, name, estimators)
    for pieces, missing in map_jobs(fold, parts, n_jobs=n_jobs):
        for estimator, one in pieces.items():
            found.setdefault(estimator, []).append(one)
        refused += missing
        progress()
    return {estimator: _joined(pieces) for estimator, pieces in found.items()}, refused


def _fold(
    make: Make,
    kernels: Kernels,
    design: Design,
    name: str,
    estimators: Sequence[str] | None,
    part: Split,
) -> tuple[dict[str, HeldOut], list[Refused]]:
    """Fit without one group and predict it."""
    found: dict[str, HeldOut] = {}
    refuse = partial(Refused, name, held_out=part.held_out, n=len(part.test))
    try:
        if not len(part.train):
            raise InputError("every other run shares the device or the model")
        predictors = make(runs_at(kernels, part.train))
    except ErrcompError as error:
        return found, [refuse(estimator="", reason=str(error))]
    refused = []
    test = hide_truth(runs_at(kernels, part.test), design.task)
    for estimator in _chosen(predictors, estimators):
        try:
            predictions = predictors[estimator](test)
        except ErrcompError as error:
            refused.append(refuse(estimator=estimator, reason=str(error)))
            continue
        truth = design.take(part.test)
        found[estimator] = _matched(predictions, truth, part.held_out, estimator)
    return found, refused


def _chosen(there: Mapping[str, Predict], wanted: Sequence[str] | None) -> Sequence[str]:
    missing = [name for name in wanted or () if name not in there]
    if missing:
        raise InputError(
            f"no estimator {describe_names(missing)} was fitted; there are "
            f"{describe_names(list(there))}"
        )
    return list(there) if wanted is None else wanted


def _matched(predictions: Predictions, truth: Design, group: str, estimator: str) -> HeldOut:
    """Put predictions and truth side by side, by the names of the runs."""
    position = {run: i for i, run in enumerate(predictions.run.tolist())}
    there = [run for run in truth.run.tolist() if run in position]
    fine = len(there) == len(truth) == len(predictions)
    order = np.array([position[run] for run in there], dtype=np.int64)
    predicted = predictions.predicted[order]
    bad = ~(np.isfinite(predicted) & (predicted > 0))
    if not fine or bad.any():
        raise InputError(
            f"{estimator}, {group} held out: every run needs one prediction above 0, got "
            f"{len(predictions)} predictions for {len(truth)} runs, and unusable ones for "
            f"{describe_names([str(run) for run in np.array(there, dtype=object)[bad]])}"
        )
    shapes = [
        predictions.low.shape[1:],
        predictions.high.shape[1:],
        predictions.quantiles.shape[1:],
    ]
    if shapes != [(len(LEVELS),), (len(LEVELS),), (len(QUANTILES),)]:
        raise InputError(
            f"{estimator}: bands must be at the levels {LEVELS} and quantiles at QUANTILES, got "
            f"shapes {shapes}"
        )
    return HeldOut(
        run=truth.run,
        group=np.full(len(truth), group, dtype=object),
        device=truth.device,
        model=truth.model,
        measured=truth.measured,
        total=truth.total,
        predicted=predicted,
        low=predictions.low[order],
        high=predictions.high[order],
        quantiles=predictions.quantiles[order],
        calibrated=predictions.calibrated[order],
    )


def _joined(pieces: Sequence[HeldOut]) -> HeldOut:
    return HeldOut(
        *(np.concatenate([getattr(p, one.name) for p in pieces]) for one in fields(HeldOut))
    )
