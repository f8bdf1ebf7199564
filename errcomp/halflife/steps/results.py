"""What is said of the steps of a series."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["Step", "Steps"]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the mean between two versions.

    Attributes
    ----------
    at : int
        Position of the first value after the step.
    at_low, at_high : int
        Ends of the 95 % set of places for ``at``.
    versions : tuple of str
        The last version before and the first one after it.
    earliest, latest : str
        The versions at ``at_low`` and ``at_high``.
    size, size_low, size_high : float
        Level after minus level before, on the scale of the values (log), and its 95 % interval.
    before, after : float
        Levels on both sides.
    p : float
        Probability of as much evidence in a series without a step; of a step found in a part of the
        series, times the length of the series over that of the part.
    """

    at: int
    at_low: int
    at_high: int
    versions: tuple[str, str]
    earliest: str
    latest: str
    size: float
    size_low: float
    size_high: float
    before: float
    after: float
    p: float

    @property
    def change(self) -> tuple[float, float, float]:
        """Relative change and its interval: of values on a log scale, fractions (0.1 is 10 %)."""
        low, value, high = np.expm1([self.size_low, self.size, self.size_high])
        return float(value), float(low), float(high)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        change, low, high = self.change
        more = {"change": change, "change_low": low, "change_high": high}
        return {**asdict(self), "versions": list(self.versions), **more}


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one series, or that there are none that it can show.

    Attributes
    ----------
    n : int
        Values.
    steps : tuple of Step
        In order.
    p : float or None
        Probability of as much evidence for any step where there is none; None where refused.
    alpha : float
        Rate of false alarms per series without a step.
    sd : float or None
        Standard deviation of a value about its level, from the series and from what was given.
    df : float
        Its degrees of freedom.
    noise_ratio : float or None
        Standard deviation of the series about its levels over that of repeats; None without these.
    smallest_middle, smallest_end : float or None
        Size of a step that would be found in 4 of 5 such series (about): in the middle, and with
        ``min_segment`` versions after it.
    unseen : int
        The last versions, in which no step can be seen yet.
    refused : str
        Why no step can be looked for; empty otherwise.
    notes : tuple of str
        What a reader must know, each a sentence.
    """

    n: int
    steps: tuple[Step, ...]
    p: float | None
    alpha: float
    sd: float | None
    df: float
    noise_ratio: float | None
    smallest_middle: float | None
    smallest_end: float | None
    unseen: int
    refused: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; endless degrees of freedom become None."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["steps"] = [step.to_dict() for step in self.steps]
        plain["df"] = None if math.isinf(self.df) else self.df
        return {**plain, "notes": list(self.notes)}
