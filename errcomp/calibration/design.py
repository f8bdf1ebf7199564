r"""What the models of a run see: its summed kernels, its features, and what was measured.

Every model of the composition works on the log-ratio of the measured run to the sum of its
kernels:

.. math:: y_r = \ln \frac{e_r}{S_r}, \qquad S_r = \sum_{k \in r} c_k \, t_k

with end-to-end time e, count c and time of one instance t. It has no unit, so neither have the
models; 0 says that the run takes as long as its kernels together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "LEVELS",
    "QUANTILES",
    "TASKS",
    "Design",
    "Floats",
    "Names",
    "PortableModel",
    "ResidualModel",
    "Task",
]

#: Array of float64.
Floats = NDArray[np.float64]
#: Names as objects, e.g. of devices; "" where unknown.
Names = NDArray[Any]

#: composition: from measured kernels to the run; prediction: from predicted kernels to the run.
Task = Literal["composition", "prediction"]
#: All tasks.
TASKS: tuple[Task, ...] = ("composition", "prediction")

#: Levels of the bands that are calibrated and stored.
LEVELS = (0.5, 0.8, 0.9, 0.95)

#: Probabilities at which every model gives its quantiles: bands of `LEVELS` and a grid for scores.
QUANTILES = tuple(
    sorted({0.5, *(round(0.05 * i, 3) for i in range(1, 20)), 0.01, 0.025, 0.975, 0.99})
)


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Runs as arrays: one row per run, one column of `x` per feature.

    Attributes
    ----------
    run : ndarray of str, shape (n,)
    total : ndarray, shape (n,)
        Time of all kernels together, > 0, in `unit`.
    measured : ndarray, shape (n,)
        End to end, in `unit`; NaN where it was not measured.
    x : ndarray, shape (n, p)
        Features without a unit or in units of their own, never in `unit`; NaN where unknown.
    names : tuple of str, length p
        Of the columns of `x`; see `errcomp.calibration.features.FEATURES`.
    device, model, mode : ndarray of str, shape (n,)
        ``""`` where unknown.
    unit : str or None
    task : {"composition", "prediction"}
    """

    run: Names
    total: Floats
    measured: Floats
    x: Floats
    names: tuple[str, ...]
    device: Names
    model: Names
    mode: Names
    unit: str | None
    task: Task

    def __len__(self) -> int:
        return len(self.run)

    @property
    def log_ratio(self) -> Floats:
        """Log of the measured run to the sum of its kernels, shape (n,); NaN where unmeasured."""
        return np.log(self.measured / self.total)

    def take(self, index: NDArray[Any]) -> Self:
        """Return the runs at these positions, or under this mask."""
        arrays = ("run", "total", "measured", "x", "device", "model", "mode")
        parts = {name: getattr(self, name)[index] for name in arrays}
        return type(self)(**parts, names=self.names, unit=self.unit, task=self.task)


class PortableModel(Protocol):
    """A fitted model that needs NumPy and SciPy only, and can be written to a file.

    ``KIND`` names it in a model file; it is made again by ``from_arrays(meta, arrays)``.
    """

    KIND: str

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at probabilities q, shape (n, len(q))."""

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON can hold, and the arrays (no objects), that make the model again."""

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the model again; InputError names what is missing or cannot be."""


class ResidualModel(Protocol):
    """A model of the log-ratio: scikit-learn's conventions, plus the device as a group.

    ``fit`` checks its input with scikit-learn's validation where that is installed. Features may
    be NaN only where the model says so. A device that was not in the fit is answered at the level
    of all devices, with the wider band that belongs to it.
    """

    #: After the fit: what predicts, and what a model file holds.
    portable_: PortableModel

    def fit(
        self,
        X: ArrayLike,  # noqa: N803 (scikit-learn's name)
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Fit the log-ratios y, shape (n,), on the features X, shape (n, p)."""

    def predict(self, X: ArrayLike, *, device: ArrayLike | None = None) -> Floats:  # noqa: N803
        """Return the median of the log-ratio, shape (n,)."""

    def predict_quantiles(
        self,
        X: ArrayLike,  # noqa: N803
        q: Sequence[float] = QUANTILES,
        *,
        device: ArrayLike | None = None,
    ) -> Floats:
        """Return quantiles, shape (n, len(q)), ascending in every row."""

    def predict_interval(
        self,
        X: ArrayLike,  # noqa: N803
        level: float | Sequence[float] = 0.9,
        *,
        device: ArrayLike | None = None,
    ) -> Floats:
        """Return equal-tailed bands: shape (n, 2) for one level, (n, 2, levels) for several."""
