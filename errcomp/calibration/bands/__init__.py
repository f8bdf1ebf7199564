r"""Bands that hold on groups left out of the fit, and whether new runs are like those of the fit.

Here is the factor of each level, from scores that come in groups. How large will the score of a
run of a new group be? With K groups of :math:`n_k` rows, scores :math:`s_{ki}` and row weights
:math:`w_k`, the calibrated score of a level p is read off the weighted distribution with one more
unit of mass at infinity, which stands for the new run:

.. math:: F(s) = \frac{1}{W + 1} \sum_k w_k \sum_i 1\{s_{ki} \le s\}, \qquad W = \sum_k w_k n_k

* :math:`w_k = 1`: split conformal over rows (W = n). Right where the rows of a group are no more
  alike than others.
* :math:`w_k = 1 / n_k`: hierarchical conformal over groups (W = K). Right whatever the likeness.
* :math:`w_k = 1 / (1 + (n_k - 1) \hat\rho)`: between the two, by the intraclass correlation of the
  scores. W is the effective number of independent scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from errcomp.calibration.design import Floats
from errcomp.errors import InputError

Integers = NDArray[np.int64]

#: Below this number of groups their likeness cannot be told from chance.
POOLED_GROUPS = 3
# Beyond the largest score quantiles follow a Student t of these degrees: heavier than normal, as
# errors of runs are. Simulated coverage at few groups decided between 3, 5 and 10.
_TAIL = 3
# ... and no further than to a fifth of the tail that the scores themselves reach.
_REACH = 5
#: Of masses that are sums of fractions.
ROUNDING = 1e-9


def groups_needed(level: float) -> int:
    """Return the smallest number of groups for a guarantee: K / (K + 1) must reach the level.

    Examples
    --------
    >>> [groups_needed(level) for level in (0.5, 0.8, 0.9, 0.95)]
    [1, 4, 9, 19]
    """
    return max(1, math.ceil(level / (1 - level) - ROUNDING))


def pooled_needed(level: float) -> int:
    """Return the smallest effective number of scores from which the pooled quantile is drawn.

    Examples
    --------
    >>> [pooled_needed(level) for level in (0.5, 0.95, 0.99)]
    [3, 3, 19]
    """
    return max(POOLED_GROUPS, math.ceil(1 / (_REACH * (1 - level)) - 1 - ROUNDING))


def _ranked(scores: Floats, weights: Floats) -> tuple[Floats, Floats, float]:
    """Return the sorted scores, the mass up to each, and the whole mass without the new run's."""
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(weights[order])
    return scores[order], mass / (mass[-1] + 1), float(mass[-1])


def hierarchical_quantile(scores: Floats, group: Integers, level: float) -> float:
    """Return the smallest score whose mass reaches the level; infinite with too few groups.

    Examples
    --------
    >>> scores, group = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 2, 2])
    >>> [hierarchical_quantile(scores, group, level) for level in (0.5, 0.75, 0.8)]
    [2.0, 4.0, inf]
    """
    ranked, mass, _ = _ranked(scores, 1 / np.bincount(group)[group])
    place = int(np.searchsorted(mass, level - ROUNDING))
    return float(ranked[place]) if place < len(ranked) else math.inf


def intraclass_correlation(scores: Floats, group: Integers) -> float:
    r"""Return how alike the scores of one group are, in [0, 1]: 0 no more than others, 1 equal.

    One-way analysis of variance of the normal scores of ranks, which no wild score can upset:

    .. math:: \hat\rho = \frac{MS_b - MS_w}{MS_b + (n_0 - 1) MS_w}, \qquad
              n_0 = \frac{n - \sum n_k^2 / n}{K - 1}

    Where nothing can be seen (one row per group, or all scores equal) it is 1, the careful value.

    References
    ----------
    Donner (1986), "A Review of Inference Procedures for the Intraclass Correlation Coefficient in
    the One-Way Random Effects Model", International Statistical Review 54(1), 67-82.

    Examples
    --------
    >>> group = np.repeat([0, 1, 2], 2)
    >>> round(intraclass_correlation(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), group), 2)
    0.83
    """
    n, sizes = len(scores), np.bincount(group)
    if n == len(sizes):
        return 1.0
    normal = stats.norm.ppf((stats.rankdata(scores) - 0.5) / n)
    means = np.bincount(group, normal) / sizes
    between = float((sizes * (means - normal.mean()) ** 2).sum()) / (len(sizes) - 1)
    within = float(((normal - means[group]) ** 2).sum()) / (n - len(sizes))
    size = (n - float((sizes**2).sum()) / n) / (len(sizes) - 1)
    whole = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else 1.0


@dataclass(frozen=True, slots=True)
class PooledQuantile:
    """A quantile of pooled scores and what it rests on.

    Attributes
    ----------
    value : float
    correlation : float
        Intraclass correlation of the scores.
    effective : float
        Effective number of independent scores, between the numbers of groups and of rows.
    beyond : bool
        Whether it lies beyond the largest score and follows a tail that was assumed.
    """

    value: float
    correlation: float
    effective: float
    beyond: bool


def pooled_quantile(scores: Floats, group: Integers, level: float) -> PooledQuantile:
    """Return the quantile between that of rows and that of groups, by the likeness of the scores.

    The scores are interpolated at their mass. Beyond the largest one the quantile grows like that
    of the size of a Student t with three degrees of freedom. Groups must be two at least.

    Examples
    --------
    >>> scores, group = np.arange(1.0, 10.0), np.arange(9)
    >>> [round(pooled_quantile(scores, group, level).value, 2) for level in (0.5, 0.9, 0.95)]
    [5.0, 9.0, 12.17]
    """
    correlation = intraclass_correlation(scores, group)
    ranked, mass, effective = _ranked(
        scores, 1 / (1 + (np.bincount(group)[group] - 1) * correlation)
    )
    reached = float(mass[-1])
    beyond = level > reached + ROUNDING
    value = float(np.interp(level, mass, ranked))
    if beyond:
        value *= float(stats.t.ppf((1 + level) / 2, _TAIL) / stats.t.ppf((1 + reached) / 2, _TAIL))
    return PooledQuantile(value, correlation, effective, beyond)


@dataclass(frozen=True, slots=True)
class LevelInfo:
    """The factor of one level and what it rests on.

    Attributes
    ----------
    level : float
        Of the band.
    factor : float
        By which both half-widths of the model's band are multiplied, > 0.
    method : str
        ``"group"`` or ``"pooled"``.
    n, groups : int
        Runs and groups that it was calibrated on.
    groups_needed : int
        The smallest number of groups for which the method ``"group"`` guarantees this level.
    correlation : float or None
        Intraclass correlation of the scores; None where it was not used.
    effective : float or None
        Effective number of independent scores, between groups and n; None where it was not used.
    beyond : bool
        Whether the factor lies beyond the largest score and follows an assumed tail.
    guarantee : str
        What is promised, and on which condition.
    """

    level: float
    factor: float
    method: str
    n: int
    groups: int
    groups_needed: int
    correlation: float | None
    effective: float | None
    beyond: bool
    guarantee: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def _wrong(what: str, value: object, expected: str) -> InputError:
    return InputError(
        f"stored conformal bands: {what} must be {expected}, got {value!r}. "
        "The file was changed, or written by something else: fit the model again."
    )


def _number(what: str, value: object, low: float, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _wrong(what, value, f"a number from {low:g} to {high:g}")
    if not math.isfinite(value):
        raise _wrong(what, value, "finite")
    return float(value)


def _count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(what, value, "a whole number from 1 on")
    return value


def read_texts(what: str, value: object) -> tuple[str, ...]:
    """Return a list of texts as a tuple."""
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise _wrong(what, value, "a list of texts")
    return tuple(value)


def read_infos(what: str, value: object, levels: tuple[float, ...]) -> tuple[LevelInfo, ...]:
    """Return the stored records of the levels, checked."""
    if not isinstance(value, list | tuple) or len(value) != len(levels):
        raise _wrong(what, value, f"a list of {len(levels)} records, one a level")
    infos = tuple(
        _read_info(f"{what}, {level:g}", raw) for raw, level in zip(value, levels, strict=True)
    )
    got = tuple(info.level for info in infos)
    if got != levels:
        raise _wrong(what, got, f"of the levels {levels}")
    return infos


def _read_info(what: str, value: object) -> LevelInfo:
    names = {field.name for field in fields(LevelInfo)}
    if not isinstance(value, Mapping) or set(value) != names:
        raise _wrong(what, value, f"a record of {', '.join(sorted(names))}")
    optional = {
        name: None if value[name] is None else _number(f"{what}, {name}", value[name], 0)
        for name in ("correlation", "effective")
    }
    if value["method"] not in ("group", "pooled"):
        raise _wrong(f"{what}, method", value["method"], "group or pooled")
    if not isinstance(value["beyond"], bool):
        raise _wrong(f"{what}, beyond", value["beyond"], "true or false")
    factor = _number(f"{what}, factor", value["factor"], 0)
    if factor == 0:
        raise _wrong(f"{what}, factor", factor, "> 0")
    return LevelInfo(
        level=_number(f"{what}, level", value["level"], 0, 1),
        factor=factor,
        method=value["method"],
        n=_count(f"{what}, n", value["n"]),
        groups=_count(f"{what}, groups", value["groups"]),
        groups_needed=_count(f"{what}, groups_needed", value["groups_needed"]),
        beyond=value["beyond"],
        guarantee=read_texts(f"{what}, guarantee", [value["guarantee"]])[0],
        **optional,
    )


# The factor of each level from scores in groups: by a guarantee, or pooled.

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
    infos = []
    for level, column in zip(levels, scores.T, strict=True):
        exact = method == "group" or (method == "auto" and groups >= _sharp_from(level))
        infos.append((_by_group if exact else _by_pooling)(column, group, level))
    return tuple(infos)


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
    quantile = pooled_quantile(scores, group, level)
    needed = pooled_needed(level)
    if quantile.effective < needed - ROUNDING:
        raise InputError(
            f"a band of {_percent(level)} needs {needed} groups at least, or more runs that are "
            f"not alike: {len(scores)} runs in {groups} groups say as much as "
            f"{quantile.effective:.1f} runs. Leave this level out, or give more groups."
        )
    return LevelInfo(
        level=level,
        factor=max(_SMALLEST_FACTOR, quantile.value),
        method="pooled",
        n=len(scores),
        groups=groups,
        groups_needed=groups_needed(level),
        correlation=quantile.correlation,
        effective=quantile.effective,
        beyond=quantile.beyond,
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
