"""The factor of each level from scores in groups: by a guarantee, or pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration._conformal_info import LevelInfo
from errcomp.calibration._conformal_quantiles import (
    POOLED_GROUPS,
    ROUNDING,
    groups_needed,
    hierarchical_quantile,
    pooled_needed,
    pooled_quantile,
)
from errcomp.calibration.design import Floats
from errcomp.errors import InputError

__all__ = ["Method", "calibrate", "level_notes"]

#: Exact for new groups, from all runs together, or whichever suits the number of groups.
Method = Literal["auto", "group", "pooled"]

# "auto" takes the guarantee where it covers this much too much at most.
_EXCESS = 0.05
# A perfect model would have the factor 0, and its bands no width.
_SMALLEST_FACTOR = 0.01


def calibrate(
    scores: Floats, group: NDArray[np.int64], levels: Sequence[float], method: Method
) -> tuple[LevelInfo, ...]:
    """Return the factor of each level, from the column of scores that belongs to it.

    Raises
    ------
    InputError
        Too few groups for a level; says how many it needs.
    """
    groups = int(group.max()) + 1
    _check_groups(groups, levels, method)
    found = []
    for level, column in zip(levels, scores.T, strict=True):
        exact = method == "group" or (method == "auto" and groups >= _sharp_from(level))
        found.append((_by_group if exact else _by_pooling)(column, group, level))
    return tuple(found)


def _check_groups(groups: int, levels: Sequence[float], method: Method) -> None:
    if method == "group":
        short = [level for level in levels if groups_needed(level) > groups]
        if short:
            needed = ", ".join(f"{groups_needed(level)} for {_percent(level)}" for level in short)
            raise InputError(
                f"a guarantee for new groups needs {needed} groups at least, got {groups}. "
                'Leave these levels out, give more groups, or take method="pooled", which '
                "guarantees nothing."
            )
    elif groups < POOLED_GROUPS:
        raise InputError(
            f"bands for new groups need {POOLED_GROUPS} groups at least to be calibrated, got "
            f"{groups}. Give runs of more groups; until then there is only the model's own "
            "band, and nobody has checked it."
        )


def _percent(level: float) -> str:
    return f"{100 * level:g} %"


def _sharp_from(level: float) -> int:
    """Return from how many groups on the guarantee covers little too much."""
    return max(groups_needed(level), math.ceil(level / _EXCESS - ROUNDING))


def _by_group(scores: Floats, group: NDArray[np.int64], level: float) -> LevelInfo:
    groups = int(group.max()) + 1
    return LevelInfo(
        level=level,
        factor=max(_SMALLEST_FACTOR, hierarchical_quantile(scores, group, level)),
        method="group",
        n=len(scores),
        groups=groups,
        groups_needed=groups_needed(level),
        correlation=None,
        effective=None,
        beyond=False,
        guarantee=(
            f"at least {_percent(level)} of the runs of new groups drawn like these {groups}, if "
            "the model saw none of them; about that if each was predicted without itself"
        ),
    )


def _by_pooling(scores: Floats, group: NDArray[np.int64], level: float) -> LevelInfo:
    groups = int(group.max()) + 1
    found = pooled_quantile(scores, group, level)
    needed = pooled_needed(level)
    if found.effective < needed - ROUNDING:
        raise InputError(
            f"a band of {_percent(level)} needs {needed} groups at least, or more runs that are "
            f"not alike: {len(scores)} runs in {groups} groups say as much as "
            f"{found.effective:.1f} runs. Leave this level out, or give more groups."
        )
    return LevelInfo(
        level=level,
        factor=max(_SMALLEST_FACTOR, found.value),
        method="pooled",
        n=len(scores),
        groups=groups,
        groups_needed=groups_needed(level),
        correlation=found.correlation,
        effective=found.effective,
        beyond=found.beyond,
        guarantee=(
            f"none; near {_percent(level)} of the runs of new groups drawn like these {groups}, on "
            "average in simulations"
        ),
    )


def level_notes(infos: Sequence[LevelInfo]) -> list[str]:
    """Say which levels are approximate, which lie beyond all scores, and what they would need."""
    notes = []
    pooled = [info for info in infos if info.method == "pooled"]
    if pooled:
        names = ", ".join(_percent(info.level) for info in pooled)
        needs = ", ".join(str(info.groups_needed) for info in pooled)
        sharp = ", ".join(str(_sharp_from(info.level)) for info in pooled)
        notes.append(
            f"bands of {names} are calibrated on the pooled scores of {pooled[0].groups} groups: "
            f"approximate for new groups. A guarantee needs {needs} groups at "
            f"least; it covers 5 points too much at most from {sharp} on"
        )
    beyond = [info for info in infos if info.beyond]
    if beyond:
        names = ", ".join(_percent(info.level) for info in beyond)
        notes.append(
            f"bands of {names} lie beyond every score seen: {beyond[0].n} runs in "
            f"{beyond[0].groups} groups say as much as {beyond[0].effective:.1f} runs, and the "
            "rest follows an assumed tail"
        )
    return notes
