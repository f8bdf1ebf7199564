"""Bands from absolute residuals alone: split conformal, jackknife+ and CV+, by rows or groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from errcomp.calibration.bands.checks import as_floats, as_groups, as_levels
from errcomp.calibration.bands.quantiles import ROUNDING, groups_needed
from errcomp.calibration.design import Floats
from errcomp.errors import InputError

__all__ = ["cv_plus", "split_conformal"]


def _masses(n: int, groups: ArrayLike | None, level: float) -> Floats:
    """Return the mass of each row, 1 / (units + 1) per unit; refuse too few units."""
    as_levels([level])
    index = np.arange(n) if groups is None else as_groups(groups, "groups", n)[1]
    sizes = np.bincount(index)
    needed, word = groups_needed(level), "residuals" if groups is None else "groups"
    if len(sizes) < needed:
        raise InputError(
            f"a band of {100 * level:g} % needs {needed} {word} at least, got {len(sizes)}. "
            f"Give more, or ask for {100 * len(sizes) / (len(sizes) + 1):.3g} % at most."
        )
    return np.asarray(1 / (sizes[index] * (len(sizes) + 1.0)))


def _upper(values: Floats, masses: Floats, level: float) -> Floats:
    """Return, of each row of values, the smallest whose mass reaches the level."""
    if (masses == masses[0]).all():  # no order is needed, and partitions take a tenth of the time
        place = int(np.ceil((level - ROUNDING) / masses[0])) - 1
        return np.asarray(np.partition(values, place, axis=1)[:, place])
    order = np.argsort(values, axis=1, kind="stable")
    place = (np.cumsum(masses[order], axis=1) < level - ROUNDING).sum(axis=1)
    rows = np.arange(len(values))
    return np.asarray(values[rows, order[rows, place]])


def split_conformal(
    residuals: ArrayLike, level: float, *, groups: ArrayLike | None = None
) -> float:
    r"""Return the half-width of a band from the residuals of runs that the model has not seen.

    .. math:: q = \inf \Big\{ r : \sum_i m_i 1\{|r_i| \le r\} \ge \text{level} \Big\}, \qquad
              m_i = \frac{1}{n + 1} \text{ or, with groups, } \frac{1}{(K + 1)\, n_{k(i)}}

    Valid: the band prediction ± q holds a new run with probability ≥ level, on average over
    calibration sets, where it is exchangeable with the rows; with `groups`, where its group is new
    and exchangeable with these (a run of it, drawn at random). Misleads without groups where runs
    of one group err alike, and gives one width to all runs, easy ones and hard ones.

    Parameters
    ----------
    residuals : array_like, shape (n,)
        Truth minus prediction, both signs.
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
    predictions: ArrayLike,
    residuals: ArrayLike,
    level: float,
    *,
    groups: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    r"""Return jackknife+ or CV+ bands: as wide as held-out residuals and unstable models make them.

    With :math:`\hat\mu_{-i}` fitted without row i (jackknife+), its fold (CV+) or its group, and
    :math:`R_i = |y_i - \hat\mu_{-i}(x_i)|`:

    .. math:: \left[ -q\{-(\hat\mu_{-i}(x) - R_i)\},\; q\{\hat\mu_{-i}(x) + R_i\} \right]

    q as in `split_conformal`. Valid: covers with probability ≥ 2 level - 1 whatever the model, and
    about the level where the model is stable. Misleads as `split_conformal` does.

    Parameters
    ----------
    predictions : array_like, shape (m, n)
        Of m new runs by the n models, each fitted without training run i (or its fold, or group).
    residuals : array_like, shape (n,)
        Of training run i by the model without it.
    level : float
    groups : array_like of names, shape (n,), optional
        Left out together; the band is then for runs of new groups (hierarchical jackknife+).

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
            f"predictions must have one column per residual, got {centre.shape[1]} and "
            f"{len(sizes)}."
        )
    masses = _masses(len(sizes), groups, level)
    return -_upper(sizes - centre, masses, level), _upper(centre + sizes, masses, level)
