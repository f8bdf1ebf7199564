"""The errors of a fit on runs whose model, or device, it did not see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.bands.conformal import GroupConformal
from errcomp.calibration.design import LEVELS, QUANTILES, Floats, Names
from errcomp.calibration.predictions import band_ends
from errcomp.errors import InputError

__all__ = ["HeldOut", "Left", "calibrated"]


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """One estimator's errors on held-out runs, and its bands there; NaN where none was held out.

    Attributes
    ----------
    error : ndarray, shape (n,)
        Log of measured over predicted time, less the doubt about the kernels.
    below, above : ndarray, shape (n, levels)
        Distance (log) of the ends of the calibrated bands from the prediction.
    """

    error: Floats
    below: Floats
    above: Floats

    def at(self, runs: NDArray[np.int64]) -> Self:
        """Return the errors of some of the runs, in this order."""
        return type(self)(*(getattr(self, name)[runs] for name in _ARRAYS))


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The held-out errors of all estimators, by estimator and regime.

    First those of the runs of the fit, in their order; then those of the flagged ones, which were
    predicted as well but not learnt from.

    Attributes
    ----------
    by_kind : mapping of (str, str) to Left

    Examples
    --------
    >>> left = Left(np.array([0.1]), np.full((1, 4), 0.2), np.full((1, 4), 0.2))
    >>> found = HeldOut.from_arrays(*HeldOut({("sum", "global"): left}).to_arrays())
    >>> found.of("sum", "global").error.tolist()
    [0.1]
    """

    by_kind: Mapping[tuple[str, str], Left]

    KIND = "held-out"

    @property
    def runs(self) -> int:
        """Number of runs of the fit, with the flagged ones."""
        return len(next(iter(self.by_kind.values())).error)

    def of(self, estimator: str, regime: str) -> Left:
        """Return the errors of an estimator on new models (device) or new devices (global)."""
        return self.by_kind[estimator, regime]

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays, from which `from_arrays` restores it."""
        each = self.by_kind.values()
        arrays = {name: np.stack([getattr(left, name) for left in each]) for name in _ARRAYS}
        return {"kinds": [list(kind) for kind in self.by_kind]}, arrays

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the errors.

        Raises
        ------
        InputError
            A value is missing or impossible.
        """
        kinds = meta.get("kinds")
        if not isinstance(kinds, list) or not all(
            isinstance(kind, list) and len(kind) == 2 and all(isinstance(t, str) for t in kind)
            for kind in kinds
        ):
            raise InputError(
                f"kinds must be pairs of estimator and regime, got {str(kinds)[:80]}. Fit again."
            )
        runs = arrays["error"].shape[-1] if isinstance(arrays.get("error"), np.ndarray) else 0
        each = []
        for name, shape in _ARRAYS.items():
            values = arrays.get(name)
            wanted = (len(kinds), runs, *shape)
            if values is None or values.dtype != np.float64 or values.shape != wanted:
                raise InputError(f"{name} must be float64 of shape {wanted}. Fit the model again.")
            if np.isinf(values).any() or (name != "error" and (values < 0).any()):
                raise InputError(f"{name} must be finite and not negative. Fit the model again.")
            each.append(values)
        return cls(
            {
                (k[0], k[1]): Left(*row)
                for k, row in zip(kinds, zip(*each, strict=True), strict=True)
            }
        )


def calibrated(
    quantiles: Floats, truth: Floats, doubt: Floats, groups: Names, category: Names | None
) -> tuple[GroupConformal | None, Left]:
    """Calibrate the bands of one estimator on held-out runs, and return its errors there.

    Parameters
    ----------
    quantiles : ndarray, shape (n, len(QUANTILES))
        Of the log of the time; NaN where a run was not held out.
    truth : ndarray, shape (n,)
    doubt : ndarray, shape (n,)
        By how much (ln) each end of the band of such a run is moved outwards once it is calibrated.
    groups : ndarray of str, shape (n,)
        What was held out together.
    category : ndarray of str, shape (n,), optional
        See `GroupConformal.fit`.

    Returns
    -------
    bands : GroupConformal or None
        None where no run was held out.
    left : Left
    """
    finite = np.isfinite(quantiles).all(axis=1)
    left = Left(*(np.full((len(truth), *shape), np.nan) for shape in _ARRAYS.values()))
    if not finite.any():
        return None, left
    middle, kinds = quantiles[finite, _MEDIAN], None if category is None else category[finite]
    low, high = band_ends(quantiles[finite])
    apart = truth[finite] - middle
    beyond = np.sign(apart) * np.maximum(np.abs(apart) - doubt[finite], 0.0)
    bands = GroupConformal(levels=LEVELS)
    bands.fit(middle, low, high, middle + beyond, groups[finite], category=kinds)
    low, high = bands.apply(middle, low, high, category=kinds)
    left.error[finite] = beyond
    left.below[finite], left.above[finite] = middle[:, None] - low, high - middle[:, None]
    return bands, left


_MEDIAN = QUANTILES.index(0.5)
_ARRAYS: dict[str, tuple[int, ...]] = {
    "error": (),
    "below": (len(LEVELS),),
    "above": (len(LEVELS),),
}
