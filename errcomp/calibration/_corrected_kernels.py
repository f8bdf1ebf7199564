"""Corrected kernels, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from errcomp.calibration.design import Floats, Names
from errcomp.tables import Kernels

__all__ = ["KERNEL_LEVELS", "CorrectedKernels", "summed"]

#: From what is known best to nothing; see `KernelCorrection`.
KERNEL_LEVELS = ("exact", "class", "device", "global", "none")


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedKernels:
    r"""Corrected times of n kernels, and their totals in r runs.

    Attributes
    ----------
    predicted : ndarray, shape (n,)
        Corrected time of one instance (the median of what it may take), in the unit of the table.
    factor : ndarray, shape (n,)
        By which the prediction was multiplied; NaN where a typical time stands in for it.
    added : ndarray of bool, shape (n,)
        A typical time stands in for a prediction of 0, or of far less than a launch takes.
    level : ndarray of str, shape (n,)
        One of `KERNEL_LEVELS`.
    spread : ndarray, shape (n,)
        Standard deviation of the log error of one kernel: of the normal with the same central
        90 %. Infinite at level none.
    shared : ndarray, shape (n,)
        The part of `spread` that kernels of the same group have in common.
    run : ndarray of str, shape (r,)
        In the order of ``kernels.runs``.
    total, total_spread : ndarray, shape (r,)
        Σ count · corrected, and the standard deviation of its log error; NaN for a run with a
        failed kernel.
    share : ndarray, shape (r, 5)
        Of the corrected time, by level in the order of `KERNEL_LEVELS`.
    uncorrected : ndarray of int, shape (r,)
        Instances at level none: those predicted as 0 have no share of the time.
    unit : str or None

    Notes
    -----
    The spread of a total assumes that kernels of one class on one device share their `shared`
    part in a run (a new run of the class errs as a whole), that all kernels at the levels device
    and global share theirs, and that nothing else is common:

    .. math:: s_r^2 = \sum_g \Big( \sum_{i \in g} w_i s_i \Big)^2 + \sum_i w_i^2 o_i^2,
        \qquad w_i = c_i t_i / \sum_j c_j t_j

    with shared s and own o, :math:`s_i^2 + o_i^2` the square of `spread`. It is too small where a
    run errs as a whole, e.g. on a device that lowers its clock.
    """

    predicted: Floats
    factor: Floats
    added: NDArray[np.bool_]
    level: Names
    spread: Floats
    shared: Floats
    run: Names
    total: Floats
    total_spread: Floats
    share: Floats
    uncorrected: NDArray[np.int64]
    unit: str | None

    def band(self, level: float = 0.9) -> Floats:
        r"""Return equal-tailed bands of one instance, shape (n, 2).

        .. math:: t_i \exp(\pm z_{(1 + \text{level}) / 2}\, s_i)

        Infinite, or [0, 0] for a kernel predicted as 0, at level none.
        """
        z = float(stats.norm.ppf((1 + level) / 2))
        some = self.predicted > 0
        step = np.where(some, z * self.spread, 0)
        ends: Floats = self.predicted[:, None] * np.exp(np.stack([-step, step], axis=1))
        return ends


def summed(
    kernels: Kernels,
    predicted: Floats,
    factor: Floats,
    added: NDArray[np.bool_],
    level: Names,
    parts: tuple[Floats, Floats],
    group: Names,
) -> CorrectedKernels:
    """Add corrected kernels up by run; `group` names whose shared errors are the same."""
    shared, own = parts
    run, n = kernels.codes("run"), kernels.n_runs
    time = kernels.count * predicted
    total = np.bincount(run, time, n)
    weight = time / np.where(total > 0, total, 1)[run]
    some = weight > 0
    common = np.where(some, weight * np.where(some, shared, 0), 0)
    _, joint = np.unique(group.astype(str), return_inverse=True)
    pairs, of = np.unique(run * (joint.max() + 1) + joint, return_inverse=True)
    square = np.bincount(of, common) ** 2
    spread = np.bincount(pairs // (joint.max() + 1), square, n)
    spread = np.sqrt(spread + np.bincount(run, (weight * own) ** 2, n))
    by_level = [np.bincount(run, weight * (level == name), n) for name in KERNEL_LEVELS]
    complete = ~np.isin(np.asarray(kernels.runs).astype(str), list(kernels.incomplete))
    return CorrectedKernels(
        predicted=predicted,
        factor=factor,
        added=added,
        level=level,
        spread=np.hypot(shared, own),
        shared=shared,
        run=np.asarray(kernels.runs, dtype=object),
        total=np.where(complete, total, np.nan),
        total_spread=np.where(complete, spread, np.nan),
        share=np.stack(by_level, axis=1).astype(np.float64),
        uncorrected=np.bincount(run, kernels.count * (level == "none"), n).astype(np.int64),
        unit=kernels.unit,
    )
