r"""Spread of runs around predictions: Student t of residuals of held-out groups.

Residuals of runs in the fit are too small. A new model (or device) will have the residuals of a
held-out one, so all residuals here are from whole held-out groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from errcomp.calibration.bands import intraclass_correlation
from errcomp.calibration.design import Floats, Names
from errcomp.calibration.evaluation.scoring import check_probabilities
from errcomp.errors import InputError
from errcomp.stats.significance import student_logpdf

__all__ = [
    "LeftOut",
    "Spread",
    "Spreads",
    "fit_spread",
    "is_number",
    "left_out",
    "shrunken_effects",
]

Integers = NDArray[np.int64]

#: Degrees of freedom to try. With two or fewer there is no variance: outer quantiles would follow
#: the prior rather than runs.
_DEGREES = (2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0)
#: Their prior median, within a factor of e: a weak prior, with the weight of one residual.
_USUAL_DEGREES = 4.0
#: Least scale of a log-ratio: no run is measured to a millionth.
_SMALLEST_SCALE = 1e-6
#: Largest log-ratio: the exponential of a larger one is not a time.
_LARGEST = 1e6
_MOST_FOLDS = 10
_RANDOM_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Spread:
    """Student t around 0.

    Attributes
    ----------
    scale : float
        > 0, in the unit of the residuals.
    degrees : float
        Degrees of freedom, > 0.
    """

    scale: float
    degrees: float

    def quantiles(self, q: Sequence[float]) -> Floats:
        """Return the quantiles at ascending probabilities, shape (len(q),).

        Examples
        --------
        >>> Spread(1.0, 3.0).quantiles([0.05, 0.5, 0.95]).round(3).tolist()
        [-2.353, 0.0, 2.353]
        """
        p = check_probabilities(q)
        return np.where(p == 0.5, 0.0, self.scale * stdtrit(self.degrees, p))

    def log_density(self, residuals: Floats) -> Floats:
        """Return the log density at each residual.

        Examples
        --------
        >>> Spread(1.0, 3.0).log_density(np.array([0.0, 2.0])).round(2).tolist()
        [-1.0, -2.7]
        """
        density: Floats = student_logpdf(residuals / self.scale, self.degrees) - np.log(self.scale)
        return density


def fit_spread(residuals: Floats, group: Integers) -> Spread:
    r"""Fit a Student t around 0 to held-out residuals, wider if these are few.

    Scale and degrees of freedom by maximum likelihood (degrees on a grid, with a weak prior at
    4). With n' equivalent independent residuals the scale is uncertain, and predictions have

    .. math:: \frac{1}{\nu'} = \frac{1}{\hat\nu} + \frac{1}{n'}, \qquad
              n' = \sum_k \frac{n_k}{1 + (n_k - 1) \hat\rho}

    degrees, but at least 2. This is exact for the predictive distribution of normal residuals
    (large :math:`\hat\nu`), and a rule of thumb otherwise. ρ is the intraclass correlation of the
    groups.

    Parameters
    ----------
    residuals : ndarray, shape (n,)
    group : ndarray of int, shape (n,)
        0, 1, ... in any order.

    References
    ----------
    Lange, Little and Taylor (1989), "Robust Statistical Modeling Using the t Distribution", JASA
    84(408), 881-896, doi:10.1080/01621459.1989.10478852.

    Examples
    --------
    >>> residuals = np.random.default_rng(0).normal(size=200) * 0.05
    >>> spread = fit_spread(residuals, np.arange(200))
    >>> round(spread.scale, 3), round(spread.degrees)
    (0.046, 18)
    """
    floor = max(_SMALLEST_SCALE, 1e-3 * float(np.sqrt(np.mean(residuals**2))))
    scales = _scales(residuals, floor)
    fits = [
        student_logpdf(residuals / scale, degrees).sum()
        - len(residuals) * np.log(scale)
        - np.log(degrees / _USUAL_DEGREES) ** 2 / 2
        for scale, degrees in zip(scales, _DEGREES, strict=True)
    ]
    best = int(np.argmax(fits))
    sizes = np.bincount(group)
    rho = intraclass_correlation(residuals, group) if len(sizes) > 1 else 1.0
    effective = float((sizes / (1 + (sizes - 1) * rho)).sum())
    return Spread(scales[best], max(_DEGREES[0], 1 / (1 / _DEGREES[best] + 1 / effective)))


def _scales(residuals: Floats, floor: float) -> list[float]:
    """Return the most likely scale of a Student t around 0, of each of `_DEGREES`.

    By expectation-maximisation.
    """
    squares, degrees = residuals**2, np.array(_DEGREES)
    variance = np.full(len(degrees), max(float(np.median(squares)) * 2, floor**2))
    moving = np.arange(len(degrees))
    for _ in range(200):
        here, old = degrees[moving, None], variance[moving]
        weights = (here + 1) / (here + squares / old[:, None])
        new = np.maximum((weights * squares).sum(axis=1) / len(squares), floor**2)
        variance[moving] = new
        moving = moving[np.abs(new - old) > 1e-9 * old]
        if not len(moving):
            break
    scales: list[float] = np.sqrt(variance).tolist()
    return scales


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """Which rows are held out together.

    Attributes
    ----------
    group : ndarray of int, shape (n,)
        Rows that may be correlated: of a model, of a device, or each row alone.
    fold : ndarray of int, shape (n,)
        Whole groups: one per fold, or ten folds if there are more groups.
    """

    group: Integers
    fold: Integers

    def __iter__(self) -> Iterator[tuple[Integers, Integers]]:
        """Yield the rows to fit and the held-out rows."""
        for fold in range(int(self.fold.max()) + 1):
            out = self.fold == fold
            yield np.flatnonzero(~out), np.flatnonzero(out)

    def predict(self, fit: Callable[[Integers], Callable[[Integers], Floats]]) -> Floats:
        """Return the predictions of ``fit(rows)`` for the held-out rows, shape (n,).

        Examples
        --------
        >>> out = left_out(np.array(["", "", ""]), np.array(["x", "y", "y"]), seed=0)["known"]
        >>> y = np.array([1.0, 2.0, 4.0])
        >>> out.predict(lambda rows: lambda held: np.full(len(held), y[rows].mean())).tolist()
        [3.0, 1.0, 1.0]
        """
        predicted = np.empty(len(self.fold))
        for rows, out in self:
            predicted[out] = fit(rows)(out)
        return predicted


def left_out(device: Names, model: Names, seed: int) -> dict[str, LeftOut]:
    """Return what to hold out to learn the spread of runs on a known and on a new device.

    ``known``: whole models; random rows (five folds) if fewer than two models are named.
    ``new``: whole devices; the same as ``known`` if fewer than two devices are named.

    Examples
    --------
    >>> splits = left_out(np.array(["A", "A", "B"]), np.array(["x", "y", "y"]), seed=0)
    >>> splits["known"].fold.tolist(), splits["new"].fold.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    known, new = _groups_left_out(model), _groups_left_out(device)
    if known is None:
        n = len(model)
        fold = np.arange(n) % min(_RANDOM_FOLDS, n)
        known = LeftOut(np.arange(n), np.random.default_rng(seed).permutation(fold))
    return {"known": known, "new": known if new is None else new}


def _groups_left_out(names: Names) -> LeftOut | None:
    distinct, group = np.unique(names.astype(str), return_inverse=True)
    return LeftOut(group, group % _MOST_FOLDS) if len(distinct) > 1 else None


def shrunken_effects(residuals: Floats, device: Names, rows: float) -> dict[str, float]:
    r"""Return the median residual of each device, shrunken towards 0.

    .. math:: a_d = \frac{n_d}{n_d + k} \operatorname{median}_{r \in d} \, \varepsilon_r

    Parameters
    ----------
    residuals : ndarray, shape (n,)
    device : ndarray of str, shape (n,)
        ``""`` has no effect.
    rows : float
        k, the weight of the 0 as a number of rows; 0 leaves the medians unchanged.

    Examples
    --------
    >>> shrunken_effects(np.array([0.2, 0.2, -0.1]), np.array(["A", "A", "B"]), rows=2.0)
    {'A': 0.1, 'B': -0.03333333333333333}
    """
    effects = {}
    for name in sorted(set(device.tolist()) - {""}):
        own = residuals[device == name]
        effects[name] = float(np.median(own)) * len(own) / (len(own) + rows)
    return effects


@dataclass(frozen=True, slots=True, eq=False)
class Spreads:
    """Effects of the devices of the fit, and the spread of runs on known and new devices.

    Attributes
    ----------
    effects : mapping of str to float
        Log-ratio of each device of the fit, in addition to features; 0 for other devices.
    known, new : Spread
    """

    effects: dict[str, float]
    known: Spread
    new: Spread

    def around(
        self,
        location: Floats,
        q: Sequence[float],
        device: Names | None,
        scale: Floats | None = None,
    ) -> Floats:
        """Return the quantiles of runs around these locations, shape (n, len(q)).

        Parameters
        ----------
        location : ndarray, shape (n,)
            Location without the effect of the device.
        scale : ndarray, shape (n,), optional
            Scale of each run, > 0; 1 by default.

        Examples
        --------
        >>> spreads = Spreads({"A": 0.5}, known=Spread(0.1, 3.0), new=Spread(0.2, 3.0))
        >>> device = np.array(["A", "B"], dtype=object)
        >>> spreads.around(np.zeros(2), [0.05, 0.5], device=device).round(2).tolist()
        [[0.26, 0.5], [-0.47, 0.0]]
        """
        n = len(location)
        names = np.full(n, "", dtype=object) if device is None else device
        if names.shape != (n,):
            raise InputError(
                f'device must have one name per run, shape ({n},), got {names.shape}. Use "" '
                "where the name is unknown."
            )
        effect = np.array([self.effects.get(name, 0.0) for name in names.tolist()])
        known = np.array([name in self.effects for name in names.tolist()], dtype=bool)
        each = np.where(known[:, None], self.known.quantiles(q), self.new.quantiles(q))
        if scale is not None:
            each = each * scale[:, None]
        quantiles: Floats = (location + effect)[:, None] + each
        return quantiles

    def to_meta(self) -> dict[str, Any]:
        """Return the spreads as metadata for JSON.

        Examples
        --------
        >>> Spreads({"A": 0.5}, known=Spread(0.1, 3.0), new=Spread(0.2, 3.0)).to_meta()["effects"]
        {'A': 0.5}
        """
        spreads = {"known": self.known, "new": self.new}
        return {
            "effects": dict(self.effects),
            **{k: {"scale": s.scale, "degrees": s.degrees} for k, s in spreads.items()},
        }

    @classmethod
    def from_meta(cls, meta: dict[str, Any]) -> Self:
        """Restore the spreads.

        Raises
        ------
        InputError
            A value is missing or impossible.

        Examples
        --------
        >>> spreads = Spreads({"A": 0.5}, known=Spread(0.1, 3.0), new=Spread(0.2, 3.0))
        >>> Spreads.from_meta(spreads.to_meta()).new.scale
        0.2
        """
        effects = meta.get("effects")
        if not isinstance(effects, dict) or not all(
            isinstance(name, str) and is_number(value) for name, value in effects.items()
        ):
            raise InputError(
                f"effects must be one number per device, got {str(effects)[:80]}. Fit the model "
                "again."
            )
        return cls(
            {name: float(value) for name, value in effects.items()},
            _spread("known", meta.get("known")),
            _spread("new", meta.get("new")),
        )


def _spread(name: str, meta: Any) -> Spread:
    values: list[Any] = [meta.get("scale"), meta.get("degrees")] if isinstance(meta, dict) else []
    if not values or not all(is_number(value) and value > 0 for value in values):
        raise InputError(
            f"the spread {name!r} must have scale and degrees above 0, got {str(meta)[:80]}. Fit "
            "the model again."
        )
    return Spread(*map(float, values))


def is_number(value: Any) -> bool:
    """Return whether a value is a number in the range of log-ratios, and not a truth value.

    Examples
    --------
    >>> [is_number(value) for value in (0.1, True, "0.1", 1e9, float("nan"))]
    [True, False, False, False, False]
    """
    return type(value) in (int, float) and abs(value) < _LARGEST
