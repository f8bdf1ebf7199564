"""What makes runs unlike those of a fit, in words: for each run, and for all of them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.bands.exchangeability import features_exchangeable
from errcomp.calibration.design import Design
from errcomp.calibration.estimators.members import FEATURE_NAMES
from errcomp.calibration.features import FEATURES
from errcomp.calibration.kernels import KERNEL_LEVELS
from errcomp.calibration.preparing import Prepared
from errcomp.calibration.training import Training

__all__ = ["other_times", "unlike_the_fit", "warnings_of"]

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
    found: list[list[str]] = [[] for _ in range(len(design))]
    for i, (device, mode) in enumerate(zip(design.device, design.mode, strict=True)):
        if not known[i]:
            what = f"device {device!r} was not in the fit" if device else "no device is given"
            found[i].append(f"{what}: answered at the level of all devices")
        if not calibrated[i]:
            found[i].append(
                "too few groups to calibrate this band: it is the model's own, widened by what "
                f"{'models' if known[i] else 'devices'} usually differ by"
            )
        if mode not in training.modes:
            found[i].append(f"mode {mode!r} was not in the fit")
        found[i] += _of_kernels(prepared, i)
    ranges = training.ranges
    for column in columns:
        feature = FEATURES[column]
        if feature.name not in ranges:
            continue
        low, high = ranges[feature.name]
        slack = _SLACK * (high - low)
        values = design.x[:, column]
        for at in np.flatnonzero((values < low - slack) | (values > high + slack)):
            found[at].append(
                f"{feature.name} {feature.said(values[at])} is outside the fit's "
                f"{feature.said(low)} to {feature.said(high)}"
            )
    return tuple(map(tuple, found))


def _of_kernels(prepared: Prepared, run: int) -> list[str]:
    """Say which share of a run's kernels is corrected by what was not measured on its device."""
    shares = {name: float(prepared.levels[run, KERNEL_LEVELS.index(name)]) for name in _BORROWED}
    found = []
    if sum(shares.values()) >= _BORROWED_FROM:
        said = ", ".join(f"{100 * share:.0f} % {name}" for name, share in shares.items() if share)
        found.append(f"kernels of classes not measured on the device (time by level: {said})")
    if prepared.uncorrected[run]:
        found.append(
            f"{prepared.uncorrected[run]:,} kernels are not corrected: none like them was measured"
        )
    return found


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
    found: list[str] = []
    for what, key, here in (("models", "model", known), ("devices", "device", ~known)):
        old, new = getattr(training, key), getattr(design, key)
        # Runs of a group that the fit has seen are no new group.
        there = here & ~np.isin(new.astype(str), sorted(set(old.tolist()) | {""}))
        if not there.any() or len(set(old.tolist())) < _FEWEST_GROUPS or not len(columns):
            continue
        names = [FEATURES[column].name for column in columns]
        ranges = training.ranges
        if all(ranges[name][0] == ranges[name][1] for name in names if name in ranges):
            continue
        x_old, x_new = training.x[:, list(columns)], design.x[there][:, list(columns)]
        said = features_exchangeable(x_old, old, x_new, groups_new=new[there], names=names)
        if said.alarm:
            found.append(f"new {what}: {said.verdict}")
    return tuple(found)
