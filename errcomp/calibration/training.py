"""The runs of a fit as later predictions see them: features and names, no times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Design, Floats, Names
from errcomp.calibration.features import FEATURES
from errcomp.errors import InputError

__all__ = ["Training"]

_KEYS = ("device", "model", "mode")


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What the runs of a fit were.

    Attributes
    ----------
    x : ndarray, shape (n, features)
    device, model, mode : ndarray of str, shape (n,)
    """

    KIND = "training"

    x: Floats
    device: Names
    model: Names
    mode: Names

    @classmethod
    def of(cls, design: Design) -> Self:
        """Keep what is needed of a design."""
        return cls(design.x, design.device, design.model, design.mode)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices, sorted."""
        return _different(self.device)

    @property
    def models(self) -> tuple[str, ...]:
        """Models, sorted."""
        return _different(self.model)

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes, sorted."""
        return _different(self.mode)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of each feature that was ever known."""
        found = {}
        for column, feature in enumerate(FEATURES):
            known = self.x[np.isfinite(self.x[:, column]), column]
            if len(known):
                found[feature.name] = (float(known.min()), float(known.max()))
        return found

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON can hold, and the arrays, that make it again."""
        return {}, {"x": self.x, **{name: getattr(self, name).astype(str) for name in _KEYS}}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make it again.

        Raises
        ------
        InputError
            An array is missing or cannot be.
        """
        x = arrays.get("x")
        names = [arrays.get(name) for name in _KEYS]
        fine = (
            x is not None
            and x.dtype == np.float64
            and x.ndim == 2
            and x.shape[1] == len(FEATURES)
            and all(n is not None and n.dtype.kind == "U" and n.shape == (len(x),) for n in names)
        )
        if not fine or x is None:
            raise InputError(
                f"the runs of the fit must be x with {len(FEATURES)} columns, and device, model "
                "and mode of each row. Fit the model again."
            )
        return cls(x, *(arrays[name].astype(object) for name in _KEYS))


def _different(values: Names) -> tuple[str, ...]:
    return tuple(sorted(set(values.tolist())))
