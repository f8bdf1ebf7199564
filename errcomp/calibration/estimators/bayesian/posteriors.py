"""Posteriors as objects of ArviZ: of versions below 1, which PyMC 5 needs, and of 1 (PyMC 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errcomp.calibration.estimators.bayesian.diagnostics import import_arviz, quiet


def posterior_of(groups: Mapping[str, Mapping[str, Any]], **options: Any) -> Any:
    """Return the groups as an `InferenceData`, or as the `DataTree` that ArviZ has instead."""
    az = import_arviz()
    return az.from_dict(**groups, **options) if _before_1(az) else az.from_dict(groups, **options)


def compared(posteriors: Mapping[str, Any]) -> Any:
    """Return the table that compares models by leave-one-out scores, unrounded."""
    az = import_arviz()
    given = dict(posteriors)
    with quiet():
        # ArviZ 1 knows no other score, and rounds.
        return az.compare(given, ic="loo") if _before_1(az) else az.compare(given, round_to="none")


def _before_1(az: Any) -> bool:
    return int(az.__version__.partition(".")[0]) < 1
