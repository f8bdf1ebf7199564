r"""Conformal bands calibrated by group: factors that make a model's bands hold what they promise.

A model's own bands are as right as its assumptions. Here each of its levels gets one factor, read
off runs that the model had not seen, nor any other run of their group (device or model): a new
device is what bands must hold for, and runs of one device err alike.

The score of a run says by which factor the half of the band on its side must grow to reach the
truth y, from the median m to the end a or b (conformalised quantiles, relative):

.. math:: s = \max\left( \frac{m - y}{m - a}, \frac{y - m}{b - m} \right), \qquad
          \text{band} = \left[ m - f (m - a),\; m + f (b - m) \right]

The factor f of a level is a quantile of the scores, and may be below 1. A side of the band counts
as 5 % of its width at least.

**group**
    Hierarchical conformal. Guarantees the level for a run of a new group, and needs
    level / (1 - level) groups: 1, 4, 9 and 19 for 50, 80, 90 and 95 %. Covers up to about
    level / K too much, with K groups: with the fewest groups it is the largest score of all.
**pooled**
    Between rows and groups, by how alike the scores of a group are. No guarantee; near the level
    on average in simulations (below).
**auto**
    group where that covers 5 points too much at most (from 10, 16, 18 and 19 groups on), pooled
    below.

Coverage of runs of new groups in per cent at the levels 50 / 80 / 90 / 95 %, simulated. Errors,
normal and Student t (4), have a share of their variance between groups; groups have 1 to 20 runs;
mean over 1,200 calibration sets. "rows" is conformal that knows no groups. Refused levels are left
out. The last column is the spread between calibration sets: lower and upper decile of what the
pooled band of 90 % covers. On average is not always.

======  =====  =====================  =====================  =====================  ======
groups  share  rows                   pooled                 group                  spread
======  =====  =====================  =====================  =====================  ======
4       0.0    51.0 81.2 91.2 96.2    50.8 81.0 91.0 95.9    61.9 97.4              85-96
4       0.6    51.5 78.5 88.0 93.7    53.1 81.1 90.5 95.4    61.5 95.5              78-100
4       0.9    52.0 75.6 83.4 88.6    56.5 82.2 90.9 95.4    61.0 90.2              73-100
8       0.0    50.5 80.4 90.6 95.5    50.3 80.2 90.3 95.3    56.3 89.1              86-94
8       0.6    50.5 79.1 88.5 93.7    51.5 80.9 90.4 95.6    55.9 88.0              82-98
8       0.9    50.3 77.5 86.3 90.8    53.3 82.5 91.3 96.4    55.8 86.9              81-99
12      0.0    50.0 80.3 90.3 95.3    49.9 80.2 90.2 95.2    54.0 86.2 96.8         87-93
12      0.6    50.9 79.8 89.3 94.1    51.5 81.1 90.8 95.6    54.5 85.7 95.9         84-97
12      0.9    50.6 78.7 87.9 92.3    52.3 82.2 91.9 96.5    53.9 84.5 94.2         83-99
20      0.0    49.9 80.0 90.1 95.2    49.9 79.9 90.0 95.1    52.2 83.6 94.0 99.5    87-93
20      0.6    50.1 79.8 89.5 94.4    50.4 80.5 90.4 95.4    52.3 83.2 93.5 99.1    85-96
20      0.9    50.5 79.1 88.8 93.4    51.9 81.5 91.4 95.9    52.8 83.0 92.9 97.9    84-97
======  =====  =====================  =====================  =====================  ======
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from errcomp.calibration.bands.checks import as_floats, as_groups, as_levels, as_names
from errcomp.calibration.bands.info import LevelInfo, read_infos, read_texts
from errcomp.calibration.bands.quantiles import (
    POOLED_GROUPS,
    ROUNDING,
    groups_needed,
    hierarchical_quantile,
    pooled_needed,
    pooled_quantile,
)
from errcomp.calibration.bands.residuals import cv_plus, split_conformal
from errcomp.calibration.design import LEVELS, Floats
from errcomp.errors import InputError, describe_names, describe_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["GroupConformal", "LevelInfo", "Method", "cv_plus", "split_conformal"]


# A category with fewer groups says more about them than about itself.
_CATEGORY_GROUPS = 5


class GroupConformal:
    """Factors by which a model's bands grow or shrink to hold what they promise for new groups.

    Valid where new groups are drawn like the old ones (see
    `errcomp.calibration.bands.exchangeability`) and the quantiles were made with the run's whole
    group left out of the fit. It promises an average over groups and over calibration sets: the
    bands of one unlucky group may miss all its runs. It misleads where quantiles of runs that the
    model was fitted on are given: their scores are too small.

    The guarantee of the method "group" is exact for a model that saw none of these groups. With
    each group predicted by a model that saw the others it is approximate, as that of CV+ is in
    practice: fine where leaving a group out changes the model little.

    Parameters
    ----------
    levels : sequence of float
        Of the bands, ascending; the columns of `lower` and `upper`.
    method : {"auto", "group", "pooled"}
        How factors are chosen; see `errcomp.calibration.bands.conformal`.

    Attributes
    ----------
    factors_ : ndarray, shape (levels,)
        Of all runs.
    info_ : tuple of LevelInfo
        What each factor rests on.
    categories_ : dict of str to tuple of LevelInfo
        Of the categories that have factors of their own (Mondrian).
    notes : tuple of str
        What a reader must know: which levels are not guaranteed and what they need.

    References
    ----------
    Romano, Patterson and Candès (2019), "Conformalized Quantile Regression", NeurIPS 32.
    Dunn, Wasserman and Ramdas (2023), "Distribution-Free Prediction Sets for Two-Layer
    Hierarchical Models", JASA 118(544), doi:10.1080/01621459.2022.2060112.
    Lee, Barber and Willett (2023), "Distribution-Free Inference with Hierarchical Data",
    arXiv:2306.06342.
    Vovk, Gammerman and Shafer (2022), "Algorithmic Learning in a Random World" (Mondrian),
    doi:10.1007/978-3-031-06649-8.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat([f"gpu{i}" for i in range(20)], 5)
    >>> y = 0.1 * rng.standard_normal(100)
    >>> median = np.zeros(100)
    >>> lower, upper = np.full((100, 1), -0.1), np.full((100, 1), 0.1)
    >>> bands = GroupConformal(levels=[0.9]).fit(median, lower, upper, y, groups)
    >>> bands.factors_.round(2).tolist(), bands.info_[0].method
    ([1.8], 'group')
    >>> low, high = bands.apply([0.0], [[-0.1]], [[0.1]])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([[-0.18]], [[0.18]])
    """

    def __init__(self, levels: Sequence[float] = LEVELS, method: Method = "auto") -> None:
        self.levels = as_levels(levels)
        if method not in get_args(Method):
            raise InputError(
                f"method must be one of {', '.join(get_args(Method))}, got {method!r}."
            )
        self.method: Method = method
        self.info_: tuple[LevelInfo, ...] = ()
        self.categories_: dict[str, tuple[LevelInfo, ...]] = {}
        self.notes: tuple[str, ...] = ()
        self._by_category = False

    @property
    def by_category(self) -> bool:
        """Whether `apply` needs the category of each run."""
        return self._by_category

    @property
    def factors_(self) -> Floats:
        """Factors of all runs, shape (levels,)."""
        self._check_fitted()
        return _factors(self.info_)

    def fit(
        self,
        median: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike,
        *,
        category: ArrayLike | None = None,
    ) -> Self:
        """Calibrate on runs whose whole group was left out of the model that predicted them.

        Parameters
        ----------
        median : array_like, shape (n,)
        lower, upper : array_like, shape (n, levels)
            Ends of the model's bands.
        y : array_like, shape (n,)
            Truths, in the unit of the bands.
        groups : array_like of names, shape (n,)
            That was left out together: device, or model.
        category : array_like of names, shape (n,), optional
            Known for every run, e.g. mode. Categories get factors of their own where each of them
            has enough groups for a guarantee at every level (``"pooled"``: five); else all take
            those of all runs, and the notes say so. Not some only: the factors of all promise
            an average that the others then lack. With fewer groups, factors of their own were
            wider and scored worse on real runs.

        Returns
        -------
        GroupConformal
            Itself.

        Raises
        ------
        InputError
            Values that cannot be used, or too few groups for a level: it says how many it needs.
        """
        middle, below, above = half_widths(median, lower, upper, len(self.levels))
        truth = as_floats(y, "y", ndim=1)
        if truth.shape != middle.shape:
            raise InputError(
                f"y must have one value per median, got {len(truth)} for {len(middle)}."
            )
        index = as_groups(groups, "groups", len(middle))[1]
        scores = relative_scores(truth, middle, below, above)
        self.info_ = calibrate(scores, index, self.levels, self.method)
        notes = level_notes(self.info_)
        self.categories_ = {}
        self._by_category = category is not None
        if category is not None:
            notes += self._fit_categories(scores, index, as_names(category, "category", len(truth)))
        self.notes = tuple(notes)
        return self

    def _fit_categories(
        self, scores: Floats, index: NDArray[np.int64], category: NDArray[np.str_]
    ) -> list[str]:
        """Give each category factors if all have enough groups and runs; say which have not."""
        top = groups_needed(self.levels[-1])
        needed = top
        if self.method == "pooled":
            needed = max(_CATEGORY_GROUPS, pooled_needed(self.levels[-1]))
        short, own = [], {}
        for name in np.unique(category):
            here = category == name
            inside = np.unique(index[here], return_inverse=True)[1].astype(np.int64)
            groups, n = int(inside.max()) + 1, int(here.sum())
            if groups >= needed and n >= top:
                own[str(name)] = calibrate(scores[here], inside, self.levels, self.method)
            else:
                short.append(f"{name or '(unknown)'} ({n} runs in {groups} groups)")
        if not short:
            self.categories_ = own
            return []
        return [
            f"all categories share these bands: {', '.join(short)} would need {top} runs in "
            f"{needed} groups for their own"
        ]

    def apply(
        self,
        median: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        category: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the calibrated ends of bands; a band holds all bands of lower levels.

        Parameters
        ----------
        median : array_like, shape (n,)
        lower, upper : array_like, shape (n, levels)
        category : array_like of names, shape (n,), optional
            Needed where the fit had it. One that the fit did not know takes the factors of all.

        Returns
        -------
        lower, upper : ndarray, shape (n, levels)

        Raises
        ------
        InputError
            Not fitted, values that cannot be used, or a category missing or not asked for.
        """
        self._check_fitted()
        middle, below, above = half_widths(median, lower, upper, len(self.levels))
        if (category is not None) != self._by_category:
            raise InputError(
                "category must be given to apply if and only if it was given to fit, where it was "
                f"{'given' if self._by_category else 'not given'}."
            )
        factors = np.tile(self.factors_, (len(middle), 1))
        if category is not None:
            names = as_names(category, "category", len(middle))
            for name, info in self.categories_.items():
                factors[names == name] = _factors(info)
        below = np.maximum.accumulate(factors * below, axis=1)
        above = np.maximum.accumulate(factors * above, axis=1)
        return middle[:, None] - below, middle[:, None] + above

    def to_meta(self) -> dict[str, Any]:
        """Return plain values for JSON that make these bands again."""
        self._check_fitted()
        return {
            "levels": list(self.levels),
            "method": self.method,
            "info": [info.to_dict() for info in self.info_],
            "by_category": self._by_category,
            "categories": {
                name: [info.to_dict() for info in infos] for name, infos in self.categories_.items()
            },
            "notes": list(self.notes),
        }

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Self:
        """Make the bands again that `to_meta` described.

        Raises
        ------
        InputError
            Something is missing, is not of its kind, or is not finite and positive.
        """
        keys = {"levels", "method", "info", "by_category", "categories", "notes"}
        if not isinstance(meta, Mapping) or set(meta) != keys:
            got = (
                describe_names(sorted(map(str, meta))) if isinstance(meta, Mapping) else repr(meta)
            )
            raise InputError(
                f"stored conformal bands must have {', '.join(sorted(keys))}, got {got}. "
                "The file was changed, or written by something else: fit the model again."
            )
        levels, stored = meta["levels"], meta["categories"]
        if not isinstance(levels, list | tuple) or not isinstance(stored, Mapping):
            raise InputError(
                "stored conformal bands: levels must be a list and categories a mapping, got "
                f"{levels!r} and {stored!r}. Fit the model again."
            )
        if not isinstance(meta["by_category"], bool):
            raise InputError(
                "stored conformal bands: by_category must be true or false, got "
                f"{meta['by_category']!r}. Fit the model again."
            )
        made = cls(levels, meta["method"])
        made.info_ = read_infos("info", meta["info"], made.levels)
        made.categories_ = {
            str(name): read_infos(f"category {name}", infos, made.levels)
            for name, infos in stored.items()
        }
        made.notes = read_texts("notes", meta["notes"])
        made._by_category = meta["by_category"]
        return made

    def _check_fitted(self) -> None:
        if not self.info_:
            raise InputError("these bands are not calibrated yet. Call fit first.")


def _factors(infos: Sequence[LevelInfo]) -> Floats:
    return np.array([info.factor for info in infos])


# Bands as half-widths around a median, and by which factor they miss the truth.

# A side narrower than this share of its band is taken as that wide: a truth just beyond a side of
# no width would otherwise need an infinite factor. It is a rule of each row alone, so what is
# exchangeable stays so.
_NARROWEST = 0.05
_ROUNDING = 1e-9


def half_widths(
    median: ArrayLike, lower: ArrayLike, upper: ArrayLike, levels: int
) -> tuple[Floats, Floats, Floats]:
    """Return the median, shape (n,), and both half-widths, shape (n, levels), all > 0.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, a median lies outside its band, or a band has no
        width.
    """
    middle = as_floats(median, "median", ndim=1)
    low, high = as_floats(lower, "lower", ndim=2), as_floats(upper, "upper", ndim=2)
    expected = (len(middle), levels)
    for name, found in (("lower", low), ("upper", high)):
        if found.shape != expected:
            raise InputError(
                f"{name} must have one row per median and one column per level, shape {expected}, "
                f"got {found.shape}."
            )
    below, above = middle[:, None] - low, high - middle[:, None]
    slack = _ROUNDING * (1 + np.abs(middle[:, None]))
    outside = ((below < -slack) | (above < -slack)).any(axis=1)
    if outside.any():
        rows = np.flatnonzero(outside).tolist()
        raise InputError(
            f"the median must lie within its bands, it does not in {describe_rows(rows)} (median "
            f"{middle[rows[0]]:.6g}). Sort the quantiles of each row."
        )
    width = np.maximum(below, 0) + np.maximum(above, 0)
    if not (width > 0).all():
        rows = np.flatnonzero((width <= 0).any(axis=1)).tolist()
        raise InputError(
            f"a band must have a width, it has none in {describe_rows(rows)}. No factor widens it: "
            "let the model give quantiles that differ."
        )
    return middle, np.maximum(below, _NARROWEST * width), np.maximum(above, _NARROWEST * width)


def relative_scores(truth: Floats, median: Floats, below: Floats, above: Floats) -> Floats:
    """Return by which factor each band must grow to reach the truth, shape (n, levels), >= 0."""
    gap = (truth - median)[:, None]
    with np.errstate(over="ignore"):
        found = np.maximum(-gap / below, gap / above)
    lost = ~np.isfinite(found).all(axis=1)
    if lost.any():
        raise InputError(
            "bands are too narrow for their distance to the truth in "
            f"{describe_rows(np.flatnonzero(lost).tolist())}. No factor reaches it: check units."
        )
    return np.asarray(found)


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
