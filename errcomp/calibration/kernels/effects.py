r"""What pooling found of kernels, and what it says of new ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from errcomp.calibration.design import Floats
from errcomp.errors import InputError

__all__ = ["CONSISTENCY", "NORMAL_90", "Codes", "Pooled", "Scatter"]

Codes = NDArray[np.int64]

#: Scale of a t with 4 degrees of freedom fitted to normal data, times this, is their standard
#: deviation.
CONSISTENCY = 1.2034
NORMAL_90 = float(stats.norm.ppf(0.95))

#: Shapes of the arrays in a file: C classes, D devices, F families.
_SHAPES = {
    "mean": "4", "ratios": "4", "typical": "2", "kind": "C", "kind_var": "C", "scale": "C",
    "own": "C", "freedom": "C", "slope": "C", "slope_var": "C", "centre": "C", "low": "C",
    "high": "C", "device": "D", "device_var": "D", "family": "F", "family_var": "F",
    "relative": "CF", "relative_var": "CF", "cell": "CD", "cell_var": "CD", "device_family": "D",
}  # fmt: skip
_MAY_BE_NAN = ("relative", "relative_var", "cell", "cell_var")
#: Must be positive or at least 0.
_NOT_NEGATIVE = ("ratios", "typical", "scale", "own", "freedom")


class Scatter(NamedTuple):
    """Predicted logarithm of new kernels: arrays of shape (n,).

    ``base`` is the variance of the mean, ``shared`` that of the run's kernels of the class
    together, ``own`` that of each kernel; ``here`` says whether the class was measured on the
    device.
    """

    mean: Floats
    base: Floats
    shared: Floats
    own: Floats
    here: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Effects with their variances for C classes, D devices, F families; NaN: not measured.

    Attributes
    ----------
    mean, ratios : ndarray, shape (4,)
        Of all classes and its variance, variances between classes and between devices; and
        variance between families, then ρ², τ², τ_f² in units of h².
    typical : ndarray, shape (2,)
        h² of a class not seen and its degrees of freedom.
    kind, kind_var, scale, own, freedom, slope, slope_var, centre, low, high : ndarray, shape (C,)
        Effect, h², variance of a kernel's own error, degrees of freedom of both, slope; mean and
        range of the log sizes.
    device, device_var : ndarray, shape (D,)
    family, family_var : ndarray, shape (F,)
    relative, relative_var : ndarray, shape (C, F)
        Class in the family, relative to class and device.
    cell, cell_var : ndarray, shape (C, D)
        Class on the device, everything included.
    device_family : ndarray of int, shape (D,)
    """

    mean: Floats
    ratios: Floats
    typical: Floats
    kind: Floats
    kind_var: Floats
    scale: Floats
    own: Floats
    freedom: Floats
    slope: Floats
    slope_var: Floats
    centre: Floats
    low: Floats
    high: Floats
    device: Floats
    device_var: Floats
    family: Floats
    family_var: Floats
    relative: Floats
    relative_var: Floats
    cell: Floats
    cell_var: Floats
    device_family: Codes

    def predict(self, kind: Codes, device: Codes, family: Codes, size: Floats) -> Scatter:
        """Predict kernels of these groups; -1 is a group that was not measured."""
        known, there = kind >= 0, device >= 0
        family = np.where(there, self.device_family[device], family)
        scale = np.where(known, self.scale[kind], self.typical[0])
        freedom = np.where(known, self.freedom[kind], self.typical[1])
        # The normal of the same central 90 % stands for the t of few measurements.
        few = (stats.t.ppf(0.95, freedom) / NORMAL_90) ** 2
        own = np.where(known, self.own[kind], self.typical[0] * CONSISTENCY**2) * few
        scale = scale * few
        mu, mu_var, kinds, devices = self.mean
        families, run, cell, relative = self.ratios
        mean = np.where(known, self.kind[kind], mu)
        base = np.where(known, self.kind_var[kind], mu_var + kinds)
        named = family >= 0
        mean = mean + np.where(there, self.device[device], named * self.family[family])
        other = devices + np.where(named, self.family_var[family], families)
        base = base + np.where(there, self.device_var[device], other)
        both = known & named & np.isfinite(self.relative[kind, family])
        mean = mean + np.where(both, self.relative[kind, family], 0)
        base = base + np.where(both, self.relative_var[kind, family], scale * relative)
        base = base + scale * cell
        here = known & there & np.isfinite(self.cell[kind, device])
        mean = np.where(here, self.cell[kind, device], mean)
        base = np.where(here, self.cell_var[kind, device], base)
        # Beyond the sizes measured a line is a guess.
        size = np.clip(size, self.low[kind], self.high[kind]) - self.centre[kind]
        mean = mean + np.where(known, self.slope[kind] * size, 0)
        base = base + np.where(known, self.slope_var[kind] * size**2, 0)
        return Scatter(mean, base, scale * run, own, here)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Pooled:
        """Make it again from arrays of C classes, D devices and F families.

        Raises
        ------
        InputError
            An array is missing, has another shape or type, or holds what cannot be.
        """
        found: dict[str, Any] = {}
        for name, letters in _SHAPES.items():
            shape = tuple(sizes[x] if x in sizes else int(x) for x in letters)
            value = arrays.get(name)
            kinds = "iu" if name == "device_family" else "f"
            if value is None or value.dtype.kind not in kinds or value.shape != shape:
                got = "none" if value is None else f"{value.dtype} of shape {value.shape}"
                raise InputError(
                    f"array {name!r} of the kernel corrections must be "
                    f"{'integers' if kinds == 'iu' else 'floats'} of shape {shape}, got {got}. "
                    "Fit and write the corrections again."
                )
            bad = np.isinf(value) if name in _MAY_BE_NAN else ~np.isfinite(value)
            if name.endswith("_var") or name in _NOT_NEGATIVE:
                bad |= value < 0
            if name == "device_family":
                bad |= (value < 0) | (value >= sizes["F"])
            if bad.any():
                raise InputError(
                    f"array {name!r} of the kernel corrections holds {value[bad][0]}, which "
                    "cannot be. Fit and write the corrections again."
                )
            found[name] = value.astype(np.int64 if kinds == "iu" else np.float64)
        return cls(**found)
