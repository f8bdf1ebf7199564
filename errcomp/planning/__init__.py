"""How much to measure: `plan_claim` says how many pairs support a figure about a tool's error.

Which runs narrow the bands of a calibrated model is `errcomp.calibration.plan_runs`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from errcomp.planning.claim import ClaimPlan as ClaimPlan
    from errcomp.planning.claim import plan_claim as plan_claim

_HOMES = {"ClaimPlan": "claim", "plan_claim": "claim"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"errcomp.planning.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'errcomp.planning' has no attribute {name!r}")
