"""State of the features, learnt from the runs of a fit, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from errcomp.calibration.design import TASKS, Task
from errcomp.errors import InputError

#: Longest launch, seconds: a run without small kernels shows no floor.
FLOOR_AT_MOST = 20e-6
_PLAIN = ("task", "floor", "start", "slow_center", "slow_scale")


@dataclass(frozen=True, slots=True)
class FeatureState:
    """State of the features, learnt from the runs of the fit.

    Attributes
    ----------
    task : {"composition", "prediction"}
    floor : float
        Typical launch floor, seconds: used where kernels were not measured.
    start : float
        Cost of starting and ending a run, in launch floors; 0 for a prediction, and if fewer
        than 8 runs were measured.
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
        """Return the state as metadata for JSON."""
        return {"floors": dict(self.floors), **{name: getattr(self, name) for name in _PLAIN}}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Self:
        """Restore the state.

        Raises
        ------
        InputError
            A value is missing or impossible.
        """
        center, scale = meta.get("slow_center"), meta.get("slow_scale")
        floor: Any = meta.get("floor")
        start: Any = meta.get("start")
        floors = meta.get("floors")
        numbers = [floor, start, *(v for v in (center, scale) if v is not None)]
        fine = (
            meta.get("task") in TASKS
            and isinstance(floors, Mapping)
            and all(
                type(v) in (int, float) and np.isfinite(v) for v in (*numbers, *floors.values())
            )
            and all(0 < v <= FLOOR_AT_MOST for v in (floor, *floors.values()))
            and start >= 0
        )
        if not fine or (center is None) != (scale is None) or (scale is not None and scale <= 0):
            raise InputError(
                "the settings of the features in this model are invalid: fit the model again. "
                f"Found: {dict(meta)!r}. Expected: task is one of {', '.join(TASKS)}; floor and "
                "each of floors are times in seconds, above 0 and at most 2e-5; start is 0 or "
                "more; slow_center and slow_scale are numbers (slow_scale above 0) or both null."
            )
        return cls(
            meta["task"],
            float(meta["floor"]),
            center,
            scale,
            float(meta["start"]),
            dict(meta["floors"]),
        )
