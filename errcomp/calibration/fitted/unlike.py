"""Warnings about runs unlike those of a fit: for each run, and for all runs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.bands.exchangeability import features_exchangeable
from errcomp.calibration.design import Design, Names
from errcomp.calibration.features import FEATURE_NAMES, FEATURES
from errcomp.calibration.kernels import KERNEL_LEVELS
from errcomp.calibration.preparing import Prepared

if TYPE_CHECKING:
    from errcomp.calibration.fitted import Training


#: A feature is outside the fit if it is this share of its range beyond it.
_SLACK = 0.05
#: Least share of the kernels' time, corrected from other devices, that raises a warning.
_BORROWED_FROM = 0.1
_FEWEST_GROUPS = 3
#: Least distance in powers of ten between the times of all runs and those of the fit that raises a
#: warning about the unit.
_OTHER_TIMES = 1.0
#: Levels of correction without kernels of the class on the device, in words.
_BORROWED = {
    "device": "corrected from other classes on the device",
    "global": "corrected from other devices",
    "none": "not corrected",
}


def warnings_of(
    prepared: Prepared,
    training: Training,
    known: NDArray[np.bool_],
    calibrated: NDArray[np.bool_],
    columns: Sequence[int],
    adapted: Mapping[str, Sized] = MappingProxyType({}),
) -> tuple[tuple[str, ...], ...]:
    """Return for each run what the fit has not seen.

    Parameters
    ----------
    prepared : Prepared
    training : Training
    known : ndarray of bool
        Runs on a device of the fit.
    calibrated : ndarray of bool
        Runs whose band is calibrated.
    columns : sequence of int
        Features that the estimator uses.
    adapted : mapping of str to sized, optional
        The measured runs of each device that the model was adapted to.
    """
    design = prepared.design
    warnings: list[list[str]] = [[] for _ in range(len(design))]
    for i, (device, mode) in enumerate(zip(design.device, design.mode, strict=True)):
        if not known[i]:
            cause = f"device {device!r} was not in the fit" if device else "no device is given"
            runs = len(adapted[device]) if device in adapted else 0
            own = f" and {runs} run{'s' if runs > 1 else ''} of its own" if runs else ""
            warnings[i].append(f"{cause}: predicted from all devices{own}")
        if not calibrated[i]:
            groups = "models" if known[i] else "devices"
            warnings[i].append(
                f"too few {groups} in the fit to calibrate this band: it is the estimator's own "
                f"band, widened by the usual difference between {groups}"
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
                f"feature {feature.name} = {feature.said(values[at])} is outside the fit's range, "
                f"{feature.said(low)} to {feature.said(high)}"
            )
    return tuple(map(tuple, warnings))


def with_flags(warnings: Sequence[tuple[str, ...]], flags: Names) -> tuple[tuple[str, ...], ...]:
    """Add why the band of a flagged run is wider to its warnings."""
    return tuple(
        (*old, f"{why}. The band is wider by that") if why else old
        for old, why in zip(warnings, flags, strict=True)
    )


def _of_kernels(prepared: Prepared, run: int) -> list[str]:
    """Return the share of a run's kernels with corrections not measured on its device."""
    shares = {name: float(prepared.levels[run, KERNEL_LEVELS.index(name)]) for name in _BORROWED}
    warnings = []
    if sum(shares.values()) >= _BORROWED_FROM:
        text = ", ".join(
            f"{100 * share:.0f} % {_BORROWED[name]}" for name, share in shares.items() if share
        )
        warnings.append(
            f"some kernel classes were not measured on the device (of the kernel time: {text})"
        )
    if n := prepared.uncorrected[run]:
        warnings.append(
            f"{n:,} kernel{'s are' if n > 1 else ' is'} not corrected: no similar kernel was "
            "measured"
        )
    return warnings


def other_times(design: Design, training: Training) -> tuple[str, ...]:
    """Warn if all runs are much longer, or shorter, than those of the fit: wrong unit?"""
    low, high = training.ranges["total_ms"]
    at = design.x[:, FEATURE_NAMES.index("total_ms")]
    apart = max(float(at.min()) - high, low - float(at.max()))
    if apart < _OTHER_TIMES:
        return ()
    return (
        f"the kernels of every run take at least {10**apart:,.0f} times "
        f"{'longer' if at.min() > high else 'shorter'} than in any run of the fit: check the unit",
    )


def unlike_the_fit(
    design: Design, training: Training, known: NDArray[np.bool_], columns: Sequence[int]
) -> tuple[str, ...]:
    """Return notes on new models and devices whose runs are unlike those of the fit.

    Tests whole new groups by the estimator's features, with
    `errcomp.calibration.bands.exchangeability.features_exchangeable`. No note without an alarm, or
    with too few groups.
    """
    notes: list[str] = []
    for kind, key, here in (("models", "model", known), ("devices", "device", ~known)):
        old, new = getattr(training, key), getattr(design, key)
        # Runs of a group of the fit are not new.
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
            verdict = result.verdict.replace("old groups", f"{kind} of the fit")
            verdict = verdict.replace("old runs", "runs of the fit").replace("group", kind[:-1])
            notes.append(f"new {kind}: {verdict}")
    return tuple(notes)
