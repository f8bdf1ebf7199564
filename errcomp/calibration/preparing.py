"""From kernels to the design of a task: corrections of kernels, floors, features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Design, Floats, Names, Task
from errcomp.calibration.features import design
from errcomp.calibration.features.state import FeatureState
from errcomp.calibration.kernels import KERNEL_LEVELS, CorrectedKernels, KernelCorrection
from errcomp.calibration.modelfile import check_unit
from errcomp.errors import InputError, describe_names
from errcomp.tables import Kernels, RunTotals

#: Runs shorter than their kernels by this factor are in another unit (units of time differ by 60 or
#: 1,000). In runs longer by this factor kernels explain almost nothing.
_MOST_APART = 50.0
#: Runs may be at most this number of times longer than their median.
_MOST_TIMES = 1e9
#: Longest name in a model file.
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Kernels of runs, prepared for the models.

    Attributes
    ----------
    design : Design
    spread : ndarray, shape (n,)
        Standard deviation of the log error of the corrected sum of kernels; 0 without corrections.
    levels : ndarray, shape (n, 5)
        Share of the time by level of the correction, in the order of `KERNEL_LEVELS`.
    uncorrected : ndarray of int, shape (n,)
        Instances without a correction.
    """

    design: Design
    spread: Floats
    levels: Floats
    uncorrected: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """State learnt from the kernels of a fit, which turns kernels into a design.

    Attributes
    ----------
    state : FeatureState
    correction : KernelCorrection or None
        Correction of predicted kernels; None for measured kernels, or if no kernel of the fit was
        measured.
    typical_spread : float
        Spread of the corrected totals in the fit, each corrected without its group. The models
        already include it.
    """

    state: FeatureState
    correction: KernelCorrection | None = None
    typical_spread: float = 0.0

    @property
    def task(self) -> Task:
        """Whether measured or predicted kernels are added up."""
        return self.state.task

    def prepare(self, kernels: Kernels) -> Prepared:
        """Correct kernels and compute the design of their runs.

        Raises
        ------
        InputError
            Kernels lack the time of the task, or no similar kernel was measured.
        """
        if self.correction is None:
            return _as_given(kernels, self.state)
        own_unit = _converted(kernels, self.correction.unit_)
        return _corrected(kernels, self.correction.apply(own_unit), self.state)

    def usable(self, kernels: Kernels) -> tuple[Kernels, dict[str, str]]:
        """Return the kernels of the runs with a known sum, and reasons against the others.

        If no sum is known, all kernels are returned: `prepare` then says what they lack.
        """
        table = kernels.totals()
        reasons = _lacking(table, self.task)
        if self.correction is not None:
            # Corrections replace predictions of 0.
            reasons[table.predicted == 0] = ""
        return _runs_without(kernels, table, reasons) if (reasons == "").any() else (kernels, {})

    def excess(self, prepared: Prepared) -> Floats:
        """Return the standard deviation (log) of the totals beyond that in the models."""
        more = prepared.spread**2 - self.typical_spread**2
        return np.sqrt(np.maximum(more, 0.0))


def _as_given(kernels: Kernels, state: FeatureState) -> Prepared:
    runs_design = design(kernels, task=state.task, state=state)
    n = len(runs_design)
    levels = np.zeros((n, len(KERNEL_LEVELS)))
    return Prepared(runs_design, np.zeros(n), levels, np.zeros(n, dtype=np.int64))


def _converted(kernels: Kernels, unit: str | None) -> Kernels:
    """Return predicted kernels in this unit."""
    if unit is None or kernels.unit == unit:
        return kernels
    converted = kernels.take(np.arange(kernels.n))
    converted.predicted = kernels.predicted * check_unit(unit, kernels.unit)
    converted.unit = unit
    return converted


def _corrected(kernels: Kernels, corrected: CorrectedKernels, state: FeatureState) -> Prepared:
    """Return the design of kernels as corrected."""
    if not np.isfinite(corrected.total_spread).all():
        runs = corrected.run[~np.isfinite(corrected.total_spread)].tolist()
        raise InputError(
            f"the kernels of {'run' if len(runs) == 1 else 'runs'} {describe_names(runs)} cannot "
            "be corrected: no similar kernel was measured, or the prediction of a kernel failed. "
            "Drop these runs, or fit to a table with similar kernels."
        )
    runs_design = design(kernels, task=state.task, state=state)
    runs_design.x[:, runs_design.names.index("kernel_correction")] = np.log(
        corrected.total / _converted(kernels, corrected.unit).totals().predicted
    )
    return Prepared(
        design=runs_design,
        spread=corrected.total_spread,
        levels=corrected.share,
        uncorrected=corrected.uncorrected,
    )


def joined(parts: Sequence[Prepared], order: NDArray[np.int64]) -> Prepared:
    """Join runs that were prepared separately, in this order."""
    first = parts[0].design
    arrays = ("run", "total", "measured", "x", "device", "model", "mode")
    together: dict[str, Any] = {
        name: np.concatenate([getattr(part.design, name) for part in parts])[order]
        for name in arrays
    }
    whole = Design(**together, names=first.names, unit=first.unit, task=first.task)
    rest = (
        np.concatenate([getattr(part, name) for part in parts])[order]
        for name in Prepared.__slots__[1:]
    )
    return Prepared(whole, *rest)


def runs_at(kernels: Kernels, runs: NDArray[Any]) -> Kernels:
    """Return the kernels of the runs at these positions of ``kernels.runs`` (or under a mask)."""
    names = np.asarray(kernels.runs, dtype=object)[runs]
    return kernels.take(np.isin(kernels.run.astype(str), names.astype(str)))


def _insist_plausible(kernels: Kernels, run: Names, total: Floats, measured: Floats) -> None:
    """Refuse input of models that only look fine: mixed units, absurd times, endless names."""
    prefix = kernels.prefix
    ratio = float(np.median(measured / total))
    if ratio >= _MOST_APART:
        raise InputError(
            f"{prefix}the kernels explain only {100 / ratio:.2g} % of the time of their runs "
            "(median). The rest is host or waiting time, which a model of kernels cannot predict. "
            "Profile steps that keep the device busy (larger batches, no start-up or compilation). "
            "If the device was busy, kernels and runs have different units, or the kernels belong "
            "to other runs."
        )
    if ratio <= 1 / _MOST_APART:
        raise InputError(
            f"{prefix}runs take {ratio:.2g} times as long as their kernels (median), so runs and "
            "kernels have different units, or do not belong together. Convert one of the two, or "
            "add a unit column to both."
        )
    longest = np.maximum(total, measured)
    absurd = longest > _MOST_TIMES * np.median(longest)
    if absurd.any():
        unit = f" {kernels.unit}" if kernels.unit else ""
        raise InputError(
            f"{prefix}run{'s' if absurd.sum() > 1 else ''} {describe_names(run[absurd].tolist())} "
            f"took up to {longest.max():.3g}{unit}, more than {_MOST_TIMES:,.0f} times as long as "
            "the median run. Correct or drop these runs."
        )
    for name in ("device", "model", "mode"):
        values: Any = kernels.column(name) if name in kernels.keys else ()
        long = sorted({str(v) for v in values if len(str(v)) > _LONGEST_NAME})
        if long:
            raise InputError(
                f"{prefix}the name of {name} {long[0][:40]}… has {len(long[0])} characters, but a "
                f"model file allows only {_LONGEST_NAME}. Shorten the name."
            )


def usable_runs(kernels: Kernels, task: Task) -> tuple[Kernels, dict[str, str]]:
    """Return the kernels of runs for a fit or an evaluation, and reasons against the others.

    Returns
    -------
    kernels : Kernels
        Kernels of runs that were measured end to end and whose kernels all have the time of the
        task.
    unused : dict of str to str
        The reason for every other run.

    Raises
    ------
    InputError
        No usable run, different units of runs and kernels, or an impossible time or name.
    """
    table = kernels.totals()
    word, total = _of_task(table, task)
    reasons = _lacking(table, task)
    reasons[np.isnan(table.run_measured)] = "not measured end to end (run_measured)"
    fine = reasons == ""
    if not fine.any():
        causes = "; ".join(sorted(set(reasons.tolist())))
        raise InputError(
            f"{kernels.prefix}no run has both an end-to-end time (column 'run_measured') and a "
            f"{word} time of each of its kernels. Runs in the table: {len(table)}. Problems: "
            f"{causes}. Add the missing column or a table of runs, or choose the other task: "
            "composition adds up measured kernel times, prediction adds up predicted kernel times."
        )
    _insist_plausible(kernels, table.run[fine], total[fine], table.run_measured[fine])
    return _runs_without(kernels, table, reasons)


def timed_runs(kernels: Kernels, task: Task) -> Kernels:
    """Return the kernels of the runs whose kernels all have the time of the task.

    Raises
    ------
    InputError
        There is no such run.
    """
    table = kernels.totals()
    reasons = _lacking(table, task)
    if not (reasons == "").any():
        causes = "; ".join(sorted(set(reasons.tolist())))
        raise InputError(
            f"{kernels.prefix}no run has the times of all its kernels: {causes}. Add these times, "
            "or choose the other task: composition adds up measured kernel times, prediction adds "
            "up predicted kernel times."
        )
    return _runs_without(kernels, table, reasons)[0]


def _of_task(table: RunTotals, task: Task) -> tuple[str, Floats]:
    """Return whether the task's kernels are measured or predicted, and their sums."""
    composed = task == "composition"
    return ("measured", table.measured) if composed else ("predicted", table.predicted)


def _lacking(table: RunTotals, task: Task) -> Names:
    """Return, for each run, why the sum of its kernels is unknown; "" if it is known."""
    word, total = _of_task(table, task)
    reasons = np.full(len(table), "", dtype=object)
    reasons[total == 0] = f"all kernels were {word} as 0"
    reasons[np.isnan(total)] = f"some kernels were not {word}"
    reasons[~table.complete] = "the prediction of a kernel failed"
    return reasons


def _runs_without(
    kernels: Kernels, table: RunTotals, reasons: Names
) -> tuple[Kernels, dict[str, str]]:
    """Return the kernels of the runs without a reason, and the reasons of the others."""
    fine = reasons == ""
    unused = dict(zip(table.run[~fine].tolist(), reasons[~fine].tolist(), strict=True))
    return (kernels if fine.all() else runs_at(kernels, fine)), unused
