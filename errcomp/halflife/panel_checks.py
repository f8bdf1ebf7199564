"""What the estimators ask of a panel and of their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, describe_names

if TYPE_CHECKING:
    from errcomp.halflife.panel import Clock, Panel

__all__ = ["check_clock", "check_positive", "check_steps", "tails"]


def tails(level: float) -> float:
    """Check a level and return the probability left out on each side."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, e.g. 0.95, got {level!r}.")
    return (1 - level) / 2


def check_positive(value: float, name: str) -> None:
    """Refuse what is no positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
        raise InputError(f"{name} must be positive and finite, e.g. 0.05 for 5 %, got {value!r}.")


def check_clock(panel: Panel, clock: Clock) -> None:
    """Refuse a clock that there is not, and months where versions have no dates."""
    if clock not in ("releases", "months"):
        raise InputError(f'clock must be "releases" or "months", got {clock!r}.')
    if clock == "months" and np.isnan(panel.months).any():
        without = [v for v, m in zip(panel.versions, panel.months, strict=True) if np.isnan(m)]
        raise InputError(
            f"versions without a date: {describe_names(without)}. Give their dates of release, or "
            f'use clock="releases".'
        )


def check_steps(panel: Panel) -> None:
    """Refuse a panel in which no series has a second version."""
    if not (np.diff(panel.starts) > 1).any():
        raise InputError(
            "no series has two versions: nothing can have changed. Validate the same units under "
            "another version."
        )
