r"""Bands calibrated on held-out groups, and tests of whether new runs are like those of the fit.

This module computes the factor of each level from grouped scores: how large will the score of a
run of a new group be? There are K groups of :math:`n_k` rows, with scores :math:`s_{ki}` and row
weights :math:`w_k`. The calibrated score of a level p is the quantile p of the weighted
distribution, with one more unit of mass at infinity for the new run:

.. math:: F(s) = \frac{1}{W + 1} \sum_k w_k \sum_i 1\{s_{ki} \le s\}, \qquad W = \sum_k w_k n_k

* :math:`w_k = 1`: split conformal over rows (W = n). Valid where rows of a group are no more alike
  than rows of different groups.
* :math:`w_k = 1 / n_k`: hierarchical conformal over groups (W = K). Always valid.
* :math:`w_k = 1 / (1 + (n_k - 1) \hat\rho)`: between the two, by the intraclass correlation of the
  scores. W is the equivalent number of independent scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from errcomp.calibration.design import Floats
from errcomp.errors import InputError
from errcomp.stats.significance import ranks, student_ppf

Integers = NDArray[np.int64]

#: With fewer groups their likeness cannot be distinguished from chance.
POOLED_GROUPS = 3
# Degrees of freedom of the Student t that quantiles follow beyond the largest score: like errors of
# runs it has heavier tails than a normal. Chosen from 3, 5 and 10 by simulated coverage.
_TAIL = 3
# Quantiles go no further than a fifth of the tail that the scores themselves reach.
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
    """Return the sorted scores, the mass up to each, and the total mass without the new run's."""
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
    r"""Return how alike scores within a group are, in [0, 1]: 0 as across groups, 1 equal.

    One-way analysis of variance of the normal scores of ranks, so that outliers do not matter:

    .. math:: \hat\rho = \frac{MS_b - MS_w}{MS_b + (n_0 - 1) MS_w}, \qquad
              n_0 = \frac{n - \sum n_k^2 / n}{K - 1}

    Where it cannot be estimated (one row per group, or all scores equal) it is 1, the careful
    value.

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
    normal = ndtri((ranks(scores) - 0.5) / n)
    means = np.bincount(group, normal) / sizes
    between = float((sizes * (means - normal.mean()) ** 2).sum()) / (len(sizes) - 1)
    within = float(((normal - means[group]) ** 2).sum()) / (n - len(sizes))
    size = (n - float((sizes**2).sum()) / n) / (len(sizes) - 1)
    whole = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else 1.0


@dataclass(frozen=True, slots=True)
class PooledQuantile:
    """A quantile of pooled scores and its basis.

    Attributes
    ----------
    value : float
    correlation : float
        Intraclass correlation of the scores.
    effective : float
        Equivalent number of independent scores, between the numbers of groups and of rows.
    beyond : bool
        Whether it lies beyond the largest score and follows an assumed tail.
    """

    value: float
    correlation: float
    effective: float
    beyond: bool


def pooled_quantile(scores: Floats, group: Integers, level: float) -> PooledQuantile:
    """Return a quantile between that of rows and that of groups, by how alike the scores are.

    Scores are interpolated at their mass. Beyond the largest score the quantile grows like that of
    the absolute value of a Student t with three degrees of freedom. Needs at least two groups.

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
        value *= student_ppf((1 + level) / 2, _TAIL) / student_ppf((1 + reached) / 2, _TAIL)
    return PooledQuantile(value, correlation, effective, beyond)


@dataclass(frozen=True, slots=True)
class LevelInfo:
    """The factor of one level and its basis.

    Attributes
    ----------
    level : float
        Of the band.
    factor : float
        Multiplies both half-widths of the model's band, > 0.
    method : str
        ``"group"`` or ``"pooled"``.
    n, groups : int
        Runs and groups used to calibrate it.
    groups_needed : int
        The smallest number of groups with which the method ``"group"`` guarantees this level.
    correlation : float or None
        Intraclass correlation of the scores; None where it was not used.
    effective : float or None
        Equivalent number of independent scores, between groups and n; None where not used.
    beyond : bool
        Whether the factor lies beyond the largest score and follows an assumed tail.
    guarantee : str
        What is guaranteed, and on which condition.
    most : float or None
        Largest half-width that a factor above `LARGE` makes, in the unit of the bands; None where
        the method guarantees the level, and in files of earlier versions.
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
    most: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> LevelInfo(0.9, 1.2, "pooled", 87, 8, 9, 0.3, 20.0, False, "none").to_dict()["factor"]
        1.2
        """
        return asdict(self)


def _wrong(what: str, value: object, expected: str) -> InputError:
    return InputError(
        f"stored conformal bands: {what} must be {expected}, got {value!r}. "
        "The file was edited, or another program wrote it. Fit the model again."
    )


def _number(what: str, value: object, low: float, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _wrong(what, value, f"a number from {low:g} to {high:g}")
    if not math.isfinite(value):
        raise _wrong(what, value, "finite")
    return float(value)


def _count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(what, value, "a whole number of at least 1")
    return value


def read_texts(what: str, value: object) -> tuple[str, ...]:
    """Return a list of texts as a tuple."""
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise _wrong(what, value, "a list of texts")
    return tuple(value)


def read_infos(what: str, value: object, levels: tuple[float, ...]) -> tuple[LevelInfo, ...]:
    """Return the stored records of the levels, checked."""
    if not isinstance(value, list | tuple) or len(value) != len(levels):
        raise _wrong(what, value, f"a list of {len(levels)} records, one per level")
    infos = tuple(
        _read_info(f"{what} of level {level:g}", raw)
        for raw, level in zip(value, levels, strict=True)
    )
    got = tuple(info.level for info in infos)
    if got != levels:
        raise _wrong(what, got, f"of the levels {levels}")
    return infos


def _read_info(what: str, value: object) -> LevelInfo:
    names = {field.name for field in fields(LevelInfo)}
    if not isinstance(value, Mapping) or {*value, "most"} != names:
        raise _wrong(what, value, f"a record with the keys {', '.join(sorted(names))}")
    optional = {
        name: None if value[name] is None else _number(f"{what}, {name}", value[name], 0)
        for name in ("correlation", "effective")
    }
    most = value.get("most")
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
        most=None if most is None else _number(f"{what}, most", most, 0),
        **optional,
    )


# The factor of each level from grouped scores: guaranteed, or pooled.

#: Guaranteed for new groups, pooled from all runs, or the better of the two for this many groups.
Method = Literal["auto", "group", "pooled"]

# "auto" takes the guarantee where that covers at most this much too much.
_EXCESS = 0.05
#: A larger factor counts as this one where the half-width would exceed `_MOST` times the quantile
#: of the errors.
LARGE, _MOST = 5.0, 3.0
# A perfect model would have a factor of 0, and bands of zero width.
_SMALLEST_FACTOR = 0.01


def calibrate(
    scores: Floats,
    group: NDArray[np.int64],
    levels: Sequence[float],
    method: Method,
    errors: Floats | None = None,
) -> tuple[LevelInfo, ...]:
    """Return the factor of each level, from its column of scores.

    Scores are errors over the half-width that a fit without the group gave. Where that was far too
    narrow, the factor is large, and it would widen the band of a fit that knows better. So with the
    absolute `errors`, a large pooled factor widens no band beyond a few times their quantile.

    Raises
    ------
    InputError
        A level needs more groups; the message says how many.
    """
    groups = int(group.max()) + 1
    _check_groups(groups, levels, method)
    infos = []
    for level, column in zip(levels, scores.T, strict=True):
        exact = method == "group" or (method == "auto" and groups >= _sharp_from(level))
        info = (_by_group if exact else _by_pooling)(column, group, level)
        if errors is not None and not exact:
            info = replace(info, most=_MOST * pooled_quantile(errors, group, level).value)
        infos.append(info)
    return tuple(infos)


def _check_groups(groups: int, levels: Sequence[float], method: Method) -> None:
    if method == "group":
        short = [level for level in levels if groups_needed(level) > groups]
        if short:
            needed = ", ".join(
                f"{groups_needed(level)} for the {_percent(level)} band" for level in short
            )
            raise InputError(
                f"{groups} groups are too few for a guarantee for new groups. Groups needed: "
                f'{needed}. Drop these levels, add groups, or use method="pooled", which has no '
                "guarantee."
            )
    elif groups < POOLED_GROUPS:
        raise InputError(
            f"calibrating bands for new groups needs at least {POOLED_GROUPS} groups, got "
            f"{groups}. Add runs of more groups. Until then, only the estimator's own uncalibrated "
            "band is available."
        )


def _percent(level: float) -> str:
    return f"{100 * level:g} %"


def _sharp_from(level: float) -> int:
    """Return the number of groups from which the guarantee covers only a little too much."""
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
            f"the band contains at least {_percent(level)} of the runs of new groups drawn like "
            f"these {groups} groups if the fit used none of these groups, and about "
            f"{_percent(level)} if each group was held out in turn"
        ),
    )


def _by_pooling(scores: Floats, group: NDArray[np.int64], level: float) -> LevelInfo:
    groups = int(group.max()) + 1
    quantile = pooled_quantile(scores, group, level)
    needed = pooled_needed(level)
    if quantile.effective < needed - ROUNDING:
        raise InputError(
            f"a {_percent(level)} band needs the equivalent of {needed} independent runs: "
            f"{len(scores)} runs from {groups} groups are equivalent to "
            f"only {quantile.effective:.1f} independent runs. Drop this level, or add groups."
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
            f"none; in simulations the band contains, on average, about {_percent(level)} of the "
            f"runs of new groups like these {groups} groups"
        ),
    )


def level_notes(infos: Sequence[LevelInfo]) -> list[str]:
    """Name levels that are approximate or lie beyond all scores, and what they would need."""
    notes = []
    pooled = [info for info in infos if info.method == "pooled"]
    if pooled:
        names = ", ".join(_percent(info.level) for info in pooled)
        needs = ", ".join(f"{info.groups_needed} for {_percent(info.level)}" for info in pooled)
        sharp = ", ".join(
            f"{_sharp_from(info.level)} for {_percent(info.level)}" for info in pooled
        )
        notes.append(
            f"bands of {names} are approximate for new groups: they are calibrated on the runs of "
            f"{pooled[0].groups} groups taken together. Guaranteed bands need at least this many "
            f"groups: {needs}. With few groups, guaranteed bands are too wide. To cover at most "
            "5 percentage points more than their level, they need this many groups: "
            f"{sharp}"
        )
    beyond = [info for info in infos if info.beyond]
    if beyond:
        names = ", ".join(_percent(info.level) for info in beyond)
        notes.append(
            f"bands of {names} reach beyond all errors of the held-out runs: the width of these "
            f"bands comes from an assumed tail of the errors, because {beyond[0].n} runs from "
            f"{beyond[0].groups} groups carry only as much information as "
            f"{beyond[0].effective:.1f} independent runs"
        )
    return notes
