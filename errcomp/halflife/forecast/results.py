"""What a forecast says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.panel import Clock

__all__ = ["Drop", "Forecast"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Probability that a model is within its promised error, ahead of today.

    Attributes
    ----------
    method : {"survival", "drift", "steps"}
    unit : {"releases", "months"}
    ahead : ndarray, shape (h,)
        Time from today on.
    probability : ndarray, shape (h,)
        NaN where it is not known: beyond what was observed.
    low, high : ndarray, shape (h,)
        Bounds; NaN where there is nothing to tell them by.
    level : float
        Nominal coverage of the bounds, at each time by itself.
    assumptions : tuple of str
        What must hold, each a sentence.
    """

    method: Literal["survival", "drift", "steps"]
    unit: Clock
    ahead: Floats
    probability: Floats
    low: Floats
    high: Floats
    level: float
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""

        def plain(values: Floats) -> list[float | None]:
            return [float(value) if np.isfinite(value) else None for value in values]

        return {
            "method": self.method,
            "unit": self.unit,
            "ahead": self.ahead.tolist(),
            "probability": plain(self.probability),
            "low": plain(self.low),
            "high": plain(self.high),
            "level": self.level,
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True, slots=True)
class Drop:
    """When a forecast drops below a probability.

    Attributes
    ----------
    below : float
        The probability.
    time : float or None
        From today on; None where it is not reached in the times of the forecast.
    low, high : float or None
        Its interval; inf is "longer than what was looked at". None without bounds.
    unit : {"releases", "months"}
    refused : str
        Why there is no time; empty otherwise.
    """

    below: float
    time: float | None
    low: float | None
    high: float | None
    unit: Clock
    refused: str = ""
