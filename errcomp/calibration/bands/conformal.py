r"""Conformal bands calibrated by group: factors that give a model's bands their coverage.

A model's own bands are as good as its assumptions. Here each level gets one factor, computed from
runs whose whole group (device or model) was held out. Whole groups, because bands must hold for a
new device, and runs of one device have similar errors.

The score of a run is the factor by which the band's half on its side must grow to reach the truth
y, from the median m to the end a or b (conformalised quantiles, relative):

.. math:: s = \max\left( \frac{m - y}{m - a}, \frac{y - m}{b - m} \right), \qquad
          \text{band} = \left[ m - f (m - a),\; m + f (b - m) \right]

The factor f of a level is a quantile of the scores, and may be below 1. Each side of the band
counts as at least 5 % of its width.

**group**
    Hierarchical conformal. Guarantees the level for a run of a new group. Needs level / (1 - level)
    groups: 1, 4, 9 and 19 for 50, 80, 90 and 95 %. With K groups the bands cover up to about
    level / K too much; with the fewest groups, f is the largest score of all.
**pooled**
    Between rows and groups, by how alike the scores of a group are. No guarantee; near the level on
    average in simulations (below).
**auto**
    The method group where it covers at most 5 points too much (10, 16, 18 and 19 groups or more),
    pooled otherwise.

The table shows the simulated coverage of runs of new groups in per cent, at the levels 50 / 80 /
90 / 95 %. Errors are normal or Student t (4); "share" of their variance is between groups. Groups
have 1 to 20 runs. Means over 1,200 calibration sets. "rows" is conformal without groups. Refused
levels are left out. The last column is the spread between calibration sets: lower and upper decile
of the coverage of the pooled 90 % band. A single calibration set may be far from the average.

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

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from errcomp.calibration.bands import (
    LARGE,
    ROUNDING,
    LevelInfo,
    Method,
    calibrate,
    groups_needed,
    level_notes,
    pooled_needed,
    read_infos,
    read_texts,
)
from errcomp.calibration.design import LEVELS, Floats, as_floats, as_groups, as_levels, known_names
from errcomp.errors import InputError, describe_names, describe_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GroupConformal", "LevelInfo", "Method", "cv_plus", "split_conformal"]

# With fewer groups a category's factor depends more on the groups than on the category.
_CATEGORY_GROUPS = 5


class GroupConformal:
    """Factors that scale a model's bands to their nominal coverage for new groups.

    Valid where new groups are drawn like the old ones (see
    `errcomp.calibration.bands.exchangeability`) and each run was predicted with its whole group
    held out. The coverage is an average over groups and over calibration sets: the bands of one
    unlucky group may miss all its runs. Misleads when given quantiles of runs that the model was
    fitted to: their scores are too small.

    The guarantee of the method "group" is exact for a model that saw none of these groups. It is
    approximate, like that of CV+, where each group was predicted by a model fitted to the others:
    good where leaving a group out changes the model little.

    Parameters
    ----------
    levels : sequence of float
        Levels of the bands, ascending: the columns of `lower` and `upper`.
    method : {"auto", "group", "pooled"}
        How factors are chosen; see `errcomp.calibration.bands.conformal`.

    Attributes
    ----------
    factors_ : ndarray, shape (levels,)
        For all runs.
    info_ : tuple of LevelInfo
        The basis of each factor.
    categories_ : dict of str to tuple of LevelInfo
        For the categories that have their own factors (Mondrian).
    notes : tuple of str
        Which levels are not guaranteed, and what they need.

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
        """Calibrate on runs that were predicted with their whole group held out.

        Parameters
        ----------
        median : array_like, shape (n,)
        lower, upper : array_like, shape (n, levels)
            Ends of the model's bands.
        y : array_like, shape (n,)
            Truths, in the unit of the bands.
        groups : array_like of names, shape (n,)
            The group that was held out together: device, or model.
        category : array_like of names, shape (n,), optional
            Known for every run, e.g. mode. Categories get their own factors where each of them has
            enough groups for a guarantee at every level (``"pooled"``: five). Otherwise all use
            the factors of all runs, and the notes say so. It is all or none, because the coverage
            of the shared factors is an average over all categories. With fewer groups, separate
            factors were wider and scored worse on real runs.

        Returns
        -------
        GroupConformal
            Itself.

        Raises
        ------
        InputError
            Values that cannot be used, or too few groups for a level.

        Examples
        --------
        >>> median, low, high = [0.0] * 4, [[-1.0]] * 4, [[1.0]] * 4
        >>> bands = GroupConformal([0.5]).fit(median, low, high, [0.5, 1.0, 2.0, 3.0], list("ABCD"))
        >>> bands.factors_.tolist()
        [1.5]
        """
        middle, below, above = half_widths(median, lower, upper, len(self.levels))
        truth = as_floats(y, "y", ndim=1)
        if truth.shape != middle.shape:
            raise InputError(
                f"y must have one value per median, got {len(truth)} for {len(middle)}."
            )
        index = as_groups(groups, "groups", len(middle))[1]
        scores = relative_scores(truth, middle, below, above)
        errors = np.abs(truth - middle)
        self.info_ = calibrate(scores, index, self.levels, self.method, errors)
        notes = level_notes(self.info_)
        self.categories_ = {}
        self._by_category = category is not None
        if category is not None:
            notes += self._fit_categories(
                scores, errors, index, known_names(category, "category", len(truth))
            )
        self.notes = tuple(notes)
        return self

    def _fit_categories(
        self,
        scores: Floats,
        errors: Floats,
        index: NDArray[np.int64],
        category: NDArray[np.str_],
    ) -> list[str]:
        """Give categories their own factors if all have enough runs; else name those that lack."""
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
                own[str(name)] = calibrate(
                    scores[here], inside, self.levels, self.method, errors[here]
                )
            else:
                short.append(f"{name or '(unknown)'} ({n} runs in {groups} groups)")
        if not short:
            self.categories_ = own
            return []
        return [
            f"all categories share the same bands: separate bands need at least {top} runs and at "
            f"least {needed} groups in each category, got {', '.join(short)}"
        ]

    def apply(
        self,
        median: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        category: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the calibrated ends of bands; a band contains all bands of lower levels.

        Parameters
        ----------
        median : array_like, shape (n,)
        lower, upper : array_like, shape (n, levels)
        category : array_like of names, shape (n,), optional
            Required if and only if the fit had it. A new category takes the factors of all runs.

        Returns
        -------
        lower, upper : ndarray, shape (n, levels)

        Raises
        ------
        InputError
            Not fitted, values that cannot be used, or a category missing or unexpected.

        Examples
        --------
        >>> median, low, high = [0.0] * 4, [[-1.0]] * 4, [[1.0]] * 4
        >>> bands = GroupConformal([0.5]).fit(median, low, high, [0.5, 1.0, 2.0, 3.0], list("ABCD"))
        >>> low, high = bands.apply([10.0], [[9.0]], [[11.0]])
        >>> low.tolist(), high.tolist()
        ([[8.5]], [[11.5]])
        """
        self._check_fitted()
        middle, below, above = half_widths(median, lower, upper, len(self.levels))
        if (category is not None) != self._by_category:
            how = "with" if self._by_category else "without"
            raise InputError(f"fit was called {how} category. Call apply {how} category, too.")
        factors = np.tile(self.factors_, (len(middle), 1))
        most = np.tile(_most(self.info_), (len(middle), 1))
        if category is not None:
            names = known_names(category, "category", len(middle))
            for name, info in self.categories_.items():
                factors[names == name], most[names == name] = _factors(info), _most(info)
        below, above = (
            np.maximum.accumulate(np.minimum(factors * own, np.maximum(LARGE * own, most)), axis=1)
            for own in (below, above)
        )
        return middle[:, None] - below, middle[:, None] + above

    def to_meta(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_meta` restores the bands from them.

        Examples
        --------
        >>> median, low, high = [0.0] * 4, [[-1.0]] * 4, [[1.0]] * 4
        >>> bands = GroupConformal([0.5]).fit(median, low, high, [0.5, 1.0, 2.0, 3.0], list("ABCD"))
        >>> bands.to_meta()["levels"]
        [0.5]
        """
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
        """Restore the bands that `to_meta` described.

        Raises
        ------
        InputError
            A key is missing, has the wrong type, or is not finite and positive.

        Examples
        --------
        >>> median, low, high = [0.0] * 4, [[-1.0]] * 4, [[1.0]] * 4
        >>> bands = GroupConformal([0.5]).fit(median, low, high, [0.5, 1.0, 2.0, 3.0], list("ABCD"))
        >>> GroupConformal.from_meta(bands.to_meta()).factors_.tolist()
        [1.5]
        """
        keys = {"levels", "method", "info", "by_category", "categories", "notes"}
        if not isinstance(meta, Mapping) or set(meta) != keys:
            given = {str(key) for key in meta} if isinstance(meta, Mapping) else set()
            faults = {"missing": keys - given, "not expected": given - keys}
            found = "; ".join(
                f"{fault}: {describe_names(sorted(names))}"
                for fault, names in faults.items()
                if names
            )
            raise InputError(
                f"stored conformal bands must have exactly the keys {', '.join(sorted(keys))}; "
                f"{found}. The file was edited, or another program wrote it. Fit the model again."
            )
        levels, stored = meta["levels"], meta["categories"]
        if not isinstance(levels, list | tuple) or not isinstance(stored, Mapping):
            raise InputError(
                "stored conformal bands: levels must be a list and categories a mapping, got "
                f"levels={levels!r} and categories={stored!r}. Fit the model again."
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


def _most(infos: Sequence[LevelInfo]) -> Floats:
    return np.array([np.inf if info.most is None else info.most for info in infos])


# Bands as half-widths around a median, and the factor by which they miss the truth.

# A side counts as at least this share of its band: a truth just beyond a side of zero width would
# otherwise need an infinite factor. The rule looks at one row only, so rows stay exchangeable.
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
    for name, values in (("lower", low), ("upper", high)):
        if values.shape != expected:
            raise InputError(
                f"{name} must have one row per median and one column per level, shape {expected}, "
                f"got {values.shape}."
            )
    below, above = middle[:, None] - low, high - middle[:, None]
    slack = _ROUNDING * (1 + np.abs(middle[:, None]))
    outside = ((below < -slack) | (above < -slack)).any(axis=1)
    if outside.any():
        rows = np.flatnonzero(outside).tolist()
        raise InputError(
            f"each median must lie within its bands, but it does not in {describe_rows(rows)} "
            f"(first such median: {middle[rows[0]]:.6g}). Sort the quantiles of each row."
        )
    width = np.maximum(below, 0) + np.maximum(above, 0)
    if not (width > 0).all():
        rows = np.flatnonzero((width <= 0).any(axis=1)).tolist()
        raise InputError(
            f"bands must be wider than zero, got zero width in {describe_rows(rows)}. No factor "
            "can widen them. Give quantiles that differ."
        )
    return middle, np.maximum(below, _NARROWEST * width), np.maximum(above, _NARROWEST * width)


def relative_scores(truth: Floats, median: Floats, below: Floats, above: Floats) -> Floats:
    """Return the factor that makes each band reach the truth, shape (n, levels), >= 0."""
    gap = (truth - median)[:, None]
    with np.errstate(over="ignore"):
        scores = np.maximum(-gap / below, gap / above)
    lost = ~np.isfinite(scores).all(axis=1)
    if lost.any():
        raise InputError(
            "bands are so narrow that no factor can make them contain the measured value in "
            f"{describe_rows(np.flatnonzero(lost).tolist())}. Check the units."
        )
    return np.asarray(scores)


# Bands from absolute residuals: split conformal, jackknife+ and CV+, by rows or groups.


def _masses(n: int, groups: ArrayLike | None, level: float) -> Floats | float:
    """Return the mass of each row, 1 / (units + 1) per unit, once if equal; refuse few units."""
    as_levels([level])
    index = None if groups is None else as_groups(groups, "groups", n)[1]
    sizes = None if index is None else np.bincount(index)
    units = n if sizes is None else len(sizes)
    needed, word = groups_needed(level), "residuals" if groups is None else "groups"
    if units < needed:
        raise InputError(
            f"a {100 * level:g} % band needs at least {needed} {word}, got {units}. Add "
            f"{word}, or ask for a band of at most {100 * units / (units + 1):.3g} %."
        )
    if sizes is None or (sizes == sizes[0]).all():
        return float(units / n / (units + 1))
    return np.asarray(1 / (sizes[index] * (units + 1.0)))


def _upper(values: Floats, masses: Floats | float, level: float) -> Floats:
    """Return, for each row, the smallest value whose mass reaches the level."""
    if isinstance(masses, float):  # a partition takes a tenth of the time of a sort
        place = int(np.ceil((level - ROUNDING) / masses)) - 1
        return np.asarray(np.partition(values, place, axis=1)[:, place])
    order = np.argsort(values, axis=1, kind="stable")
    place = (np.cumsum(masses[order], axis=1) < level - ROUNDING).sum(axis=1)
    rows = np.arange(len(values))
    return np.asarray(values[rows, order[rows, place]])


def split_conformal(
    residuals: ArrayLike, level: float, *, groups: ArrayLike | None = None
) -> float:
    r"""Return the half-width of a band from the residuals of held-out runs.

    .. math:: q = \inf \Big\{ r : \sum_i m_i 1\{|r_i| \le r\} \ge \text{level} \Big\}, \qquad
              m_i = \frac{1}{n + 1} \text{ or, with groups, } \frac{1}{(K + 1)\, n_{k(i)}}

    The band prediction ± q contains a new run with probability ≥ level, on average over calibration
    sets. Valid where the run is exchangeable with the rows; with `groups`, where its group is new
    and exchangeable with these (a run drawn from it at random). Misleads without groups where runs
    of one group have similar errors. All runs get the same width, easy and hard.

    Parameters
    ----------
    residuals : array_like, shape (n,)
        Truth minus prediction, signed.
    level : float
    groups : array_like of names, shape (n,), optional

    Returns
    -------
    float
        In the unit of the residuals.

    Raises
    ------
    InputError
        Fewer than level / (1 - level) residuals or groups; values that are not finite.

    References
    ----------
    Lei et al. (2018), "Distribution-Free Predictive Inference for Regression", JASA 113(523),
    doi:10.1080/01621459.2017.1307116. Groups: Dunn, Wasserman and Ramdas (2023),
    "Distribution-Free Prediction Sets for Two-Layer Hierarchical Models", JASA 118(544),
    doi:10.1080/01621459.2022.2060112.

    Examples
    --------
    >>> split_conformal([0.1, -0.4, 0.2, 0.3], 0.8)
    0.4
    """
    sizes = np.abs(as_floats(residuals, "residuals", ndim=1))
    return float(_upper(sizes[None], _masses(len(sizes), groups, level), level)[0])


def cv_plus(
    predictions: ArrayLike, residuals: ArrayLike, level: float, *, groups: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    r"""Return jackknife+ or CV+ bands, from held-out residuals and the models without each row.

    With :math:`\hat\mu_{-i}` fitted without row i (jackknife+), its fold (CV+) or its group, and
    :math:`R_i = |y_i - \hat\mu_{-i}(x_i)|`:

    .. math:: \left[ -q\{-(\hat\mu_{-i}(x) - R_i)\},\; q\{\hat\mu_{-i}(x) + R_i\} \right]

    q as in `split_conformal`. Covers with probability ≥ 2 level - 1 for any model, and about the
    level for a stable one. Misleads where `split_conformal` does.

    Parameters
    ----------
    predictions : array_like, shape (m, n)
        Predictions of m new runs by n models, each fitted without training run i (its fold, group).
    residuals : array_like, shape (n,)
        Residual of training run i under the model without it.
    level : float
    groups : array_like of names, shape (n,), optional
        Groups held out together; the band is then for runs of new groups (hierarchical jackknife+).

    Returns
    -------
    lower, upper : ndarray, shape (m,)

    Raises
    ------
    InputError
        Shapes differ, values are not finite, or too few residuals or groups for the level.

    References
    ----------
    Barber et al. (2021), "Predictive Inference with the Jackknife+", Annals of Statistics 49(1),
    doi:10.1214/20-AOS1965. Groups: Lee, Barber and Willett (2023), "Distribution-Free Inference
    with Hierarchical Data", arXiv:2306.06342.

    Examples
    --------
    >>> lower, upper = cv_plus([[1.0, 1.1, 0.9, 1.0]], [0.1, -0.1, 0.2, 0.1], 0.8)
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([0.7], [1.2])
    """
    sizes = np.abs(as_floats(residuals, "residuals", ndim=1))
    centre = as_floats(predictions, "predictions", ndim=2)
    if centre.shape[1] != len(sizes):
        raise InputError(
            f"predictions must have one column per residual, got {centre.shape[1]} columns and "
            f"{len(sizes)} residuals."
        )
    masses = _masses(len(sizes), groups, level)
    return -_upper(sizes - centre, masses, level), _upper(centre + sizes, masses, level)
