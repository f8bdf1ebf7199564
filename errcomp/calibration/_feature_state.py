"""What the features of new runs need of the runs of the fit, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from errcomp.calibration._parts import FLOOR_AT_MOST
from errcomp.calibration.design import TASKS, Task
from errcomp.errors import InputError

__all__ = ["FeatureState"]

_PLAIN = ("task", "floor", "start", "slow_center", "slow_scale")


@dataclass(frozen=True, slots=True)
class FeatureState:
    """What features take from the runs of the fit.

    Attributes
    ----------
    task : {"composition", "prediction"}
    floor : float
        Typical launch floor, seconds: used where kernels were not measured.
    start : float
        What starting and ending a run takes, in launch floors; 0 for a prediction, and where
        fewer than 8 runs were measured.
    floors : mapping of str to float
        Lowest tenth of the launch floors of the runs of each device, seconds.
    slow_center, slow_scale : float or None
        Median, and median absolute deviation × 1.4826, over the runs of the fit, of the log-ratio
        of measured to predicted time in matrix products; None where fewer than 8 runs have both.
    """

    task: Task
    floor: float
    slow_center: float | None
    slow_scale: float | None
    start: float = 0.0
    floors: Mapping[str, float] = field(default_factory=dict)

    def to_meta(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "floors": dict(self.floors),
            **{name: getattr(self, name) for name in _PLAIN},
        }

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Self:
        """Make the state again.

        Raises
        ------
        InputError
            A value is missing or cannot be.
        """
        center, scale = meta.get("slow_center"), meta.get("slow_scale")
        numbers = [
            meta.get("floor"),
            meta.get("start"),
            *(v for v in (center, scale) if v is not None),
        ]
        fine = all(type(v) in (int, float) and np.isfinite(v) for v in numbers)
        fine = fine and meta.get("task") in TASKS
        floors = meta.get("floors")
        fine = fine and isinstance(floors, Mapping)
        fine = fine and all(
            type(v) in (int, float) and 0 < v <= FLOOR_AT_MOST
            for v in (meta["floor"], *floors.values())  # type: ignore[union-attr]
        )
        fine = fine and meta["start"] >= 0
        if not fine or (center is None) != (scale is None) or (scale is not None and scale <= 0):
            raise InputError(
                f"the state of the features {dict(meta)!r} cannot be: task must be one of "
                f"{', '.join(TASKS)}, floor and floors seconds above 0 and at most 2e-5, "
                "start not negative, slow_center and slow_scale numbers (the scale above 0) or "
                "both null. Fit the model again."
            )
        return cls(
            meta["task"],
            float(meta["floor"]),
            center,
            scale,
            float(meta["start"]),
            dict(meta["floors"]),
        )
