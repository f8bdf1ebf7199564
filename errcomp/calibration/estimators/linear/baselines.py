r"""Baselines of the composition: the sum of kernels, factors, a straight line.

All have scikit-learn's interface and need only the core dependencies. Their bands are those of a
Student t around the prediction. Its width comes from residuals of held-out runs: held-out models
for known devices, held-out devices for new ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.calibration.design import (
    Floats,
    Names,
    Parameters,
    Predicting,
    as_features,
    as_names,
    as_targets,
    check_known,
)
from errcomp.calibration.estimators.shared.spread import (
    Integers,
    Spreads,
    fit_spread,
    is_number,
    left_out,
    shrunken_effects,
)
from errcomp.errors import InputError, describe_rows

__all__ = ["DeviceFactor", "GlobalFactor", "Line", "LinearModel", "RobustLinear", "SumOfKernels"]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Intercept, and a coefficient per feature.

    Attributes
    ----------
    intercept : float
    coefficients : ndarray, shape (p,)
        0 for an unused feature, which may be NaN.
    """

    intercept: float
    coefficients: Floats

    def at(self, x: Floats) -> Floats:
        """Return the log-ratio of each row, shape (n,).

        Examples
        --------
        >>> Line(0.1, np.array([2.0])).at(np.array([[0.0], [1.0]])).tolist()
        [0.1, 2.1]
        """
        used = self.coefficients != 0
        location: Floats = self.intercept + x[:, used] @ self.coefficients[used]
        return location


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    r"""Log-ratio of a run, linear in its features.

    .. math:: y_r = b_0 + x_r^\top b + a_{d(r)} + \varepsilon_r

    with the effect a of the device (0 if it was not in the fit) and ε of a Student t, one for known
    devices and one for new ones.

    Attributes
    ----------
    line : Line
    spreads : Spreads
        Effects and spread.

    Examples
    --------
    >>> from errcomp.calibration.estimators.linear.baselines import GlobalFactor
    >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
    >>> meta, arrays = model.to_arrays()
    >>> LinearModel.from_arrays(meta, arrays).predict_quantiles([[5.0]], [0.5]).tolist()
    [[0.2]]
    """

    line: Line
    spreads: Spreads

    KIND = "linear"

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at ascending probabilities q, shape (n, len(q)).

        Raises
        ------
        InputError
            The number of features differs from the fit, a needed feature is not finite, or q are
            not ascending probabilities.

        Examples
        --------
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> model.predict_quantiles([[5.0]], [0.5]).tolist()
        [[0.2]]
        """
        rows = as_features(x, len(self.line.coefficients))
        used = np.flatnonzero(self.line.coefficients).tolist()
        check_known(rows, used, range(rows.shape[1]), "")
        return self.spreads.around(self.line.at(rows), q, device)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays, from which `from_arrays` restores the model.

        Examples
        --------
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> meta, arrays = model.to_arrays()
        >>> meta["intercept"], arrays["coefficients"].tolist()
        (0.2, [0.0])
        """
        meta = {"intercept": self.line.intercept, "spreads": self.spreads.to_meta()}
        return meta, {"coefficients": self.line.coefficients}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the model.

        Raises
        ------
        InputError
            A value is missing or impossible.

        Examples
        --------
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> LinearModel.from_arrays(*model.to_arrays()).line.intercept
        0.2
        """
        intercept: Any = meta.get("intercept")
        spreads = meta.get("spreads")
        coefficients = arrays.get("coefficients")
        if not is_number(intercept):
            raise InputError(f"intercept must be a number, got {str(intercept)[:80]}. Fit again.")
        if not isinstance(spreads, dict):
            raise InputError(f"spreads must be a mapping, got {str(spreads)[:80]}. Fit again.")
        if (
            not isinstance(coefficients, np.ndarray)
            or coefficients.dtype != np.float64
            or coefficients.ndim != 1
            or not np.isfinite(coefficients).all()
        ):
            raise InputError(
                "coefficients must be one finite float64 per feature, got "
                f"{str(coefficients)[:80]}. Fit the model again."
            )
        return cls(Line(float(intercept), coefficients), Spreads.from_meta(spreads))


_MOST_STEPS = 500


class _Baseline(Parameters, Predicting, ABC):
    """Fits a line and device effects to all rows; learns the spread from held-out rows."""

    portable_: LinearModel
    #: Whether features may be NaN: those that ignore features allow it.
    _allows_unknown = True

    def __sklearn_tags__(self) -> Any:
        # Called by scikit-learn only, so it is installed.
        from sklearn.utils import (  # type: ignore[import-untyped]
            InputTags,
            RegressorTags,
            Tags,
            TargetTags,
        )

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            # Sum and factors ignore features.
            regressor_tags=RegressorTags(poor_score=self._allows_unknown),
            input_tags=InputTags(allow_nan=self._allows_unknown),
        )

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Fit the log-ratios.

        Parameters
        ----------
        X : array_like, shape (n, p)
        y : array_like, shape (n,)
            Log of the measured run to the sum of its kernels.
        device, model : array_like of str, shape (n,), optional
            Groups held out to learn the width of bands. Without them random runs are held out,
            which makes bands too narrow for new models and devices.

        Returns
        -------
        self

        Raises
        ------
        InputError
            Values are not finite numbers, shapes differ, or there are fewer than two runs.

        Examples
        --------
        >>> model = GlobalFactor().fit([[0.0]] * 3, [0.1, 0.2, 5.0])
        >>> model.predict([[0.0]]).tolist()
        [0.2]
        """
        x = as_features(X)
        self._check(x)
        targets = as_targets(y, len(x))
        devices, models = as_names(device, len(x), "device"), as_names(model, len(x), "model")
        held = left_out(devices, models, seed=0)
        # With one device both are the same rows, which are fitted once.
        of = {
            out: targets - out.predict(self._predictor(x, targets, devices))
            for out in dict.fromkeys(held.values())
        }
        spreads = {name: fit_spread(of[out], out.group) for name, out in held.items()}
        line, effects = self._fitted(x, targets, devices)
        # Devices of the fit without an own effect also get the band of known devices.
        effects = dict.fromkeys(sorted(set(devices.tolist()) - {""}), 0.0) | effects
        self.portable_ = LinearModel(line, Spreads(effects, **spreads))
        self.n_features_in_ = x.shape[1]
        return self

    def _predictor(
        self, x: Floats, y: Floats, device: Names
    ) -> Callable[[Integers], Callable[[Integers], Floats]]:
        def fit(rows: Integers) -> Callable[[Integers], Floats]:
            line, effects = self._fitted(x[rows], y[rows], device[rows])

            def predict(out: Integers) -> Floats:
                own = [effects.get(name, 0.0) for name in device[out].tolist()]
                location: Floats = line.at(x[out]) + np.array(own)
                return location

            return predict

        return fit

    def _check(self, x: Floats) -> None:
        """Raise InputError for an impossible parameter or feature."""

    @abstractmethod
    def _fitted(self, x: Floats, y: Floats, device: Names) -> tuple[Line, dict[str, float]]:
        """Return the line, and the effects of devices."""


class SumOfKernels(_Baseline):
    r"""The plain sum of kernels: a log-ratio of 0.

    .. math:: \hat y_r = 0

    Valid where launches neither hide nor add time. The band is symmetric around the sum.

    Examples
    --------
    >>> model = SumOfKernels().fit([[0.0]] * 4, [0.1, 0.02, -0.05, 0.04])
    >>> model.predict([[0.0]]).tolist()
    [0.0]
    >>> model.predict_interval([[0.0]], 0.8).round(2).tolist()
    [[-0.1, 0.1]]
    """

    def _fitted(self, x: Floats, y: Floats, device: Names) -> tuple[Line, dict[str, float]]:
        return Line(0.0, np.zeros(x.shape[1])), {}


class GlobalFactor(_Baseline):
    r"""One factor for all runs: the median of the log-ratios.

    .. math:: \hat y_r = \operatorname{median}_s \, y_s

    The median, so that one outlier does not change all predictions.

    Examples
    --------
    >>> GlobalFactor().fit([[0.0]] * 3, [0.1, 0.2, 5.0]).predict([[0.0]]).tolist()
    [0.2]
    """

    def _fitted(self, x: Floats, y: Floats, device: Names) -> tuple[Line, dict[str, float]]:
        return Line(float(np.median(y)), np.zeros(x.shape[1])), {}


class DeviceFactor(_Baseline):
    r"""One factor per device: the median of its log-ratios; for a new device that of all runs.

    .. math:: \hat y_r = \operatorname{median}_{s:\, d(s) = d(r)} \, y_s

    There is no shrinkage: a device with one run gets the factor of that run.

    Examples
    --------
    >>> device = ["A", "A", "B", "B"]
    >>> model = DeviceFactor().fit([[0.0]] * 4, [0.25, 0.25, -0.25, -0.25], device=device)
    >>> model.predict([[0.0]] * 3, device=["A", "B", "C"]).tolist()
    [0.25, -0.25, 0.0]
    """

    def _fitted(self, x: Floats, y: Floats, device: Names) -> tuple[Line, dict[str, float]]:
        middle = float(np.median(y))
        return Line(middle, np.zeros(x.shape[1])), shrunken_effects(y - middle, device, rows=0.0)


class RobustLinear(_Baseline):
    r"""A straight line in the features, fitted with Student t errors and shrunken towards flat.

    .. math:: \hat y_r = b_0 + z_r^\top b, \qquad
              (b_0, b, s) = \arg\max \sum_r \ln t_\nu\!\left(\frac{y_r - b_0 - z_r^\top b}{s}\right)
              - n \ln s - \frac{\lambda \, \lVert b \rVert^2}{2 s^2}

    with standardised features z, by iteratively reweighted least squares. Valid within the range of
    the features of the fit; a line extrapolates without limit.

    Parameters
    ----------
    ridge : float
        λ ≥ 0: the weight of the flat line, as a number of runs.
    degrees : float
        ν > 0 of the Student t; with fewer degrees outliers count less.

    References
    ----------
    Lange, Little and Taylor (1989), "Robust Statistical Modeling Using the t Distribution", JASA
    84(408), 881-896, doi:10.1080/01621459.1989.10478852.

    Examples
    --------
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> y = 0.5 * x[:, 0]
    >>> y[3] = 9.0  # an outlier
    >>> RobustLinear(ridge=0.0).fit(x, y).predict([[0.5]]).round(3).tolist()
    [0.25]
    """

    _allows_unknown = False

    def __init__(self, *, ridge: float = 10.0, degrees: float = 4.0) -> None:
        self.ridge = ridge
        self.degrees = degrees

    def _check(self, x: Floats) -> None:
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise InputError(
                "ridge (the penalty: as strong as this many runs without any effect) must be 0 or "
                f"more, got {self.ridge!r}."
            )
        if not (np.isfinite(self.degrees) and self.degrees > 0):
            raise InputError(
                f"degrees (of freedom) must be above 0, got {self.degrees!r}. 4 is usual."
            )
        unknown = np.flatnonzero(np.isnan(x).any(axis=1))
        if len(unknown):
            raise InputError(
                f"a linear model needs known features, got NaN in "
                f"{describe_rows(unknown.tolist())}. Drop these columns or runs."
            )

    def _fitted(self, x: Floats, y: Floats, device: Names) -> tuple[Line, dict[str, float]]:
        center, scale = x.mean(axis=0), x.std(axis=0)
        # Rounding errors make a constant column vary a little.
        scale[scale <= 1e-12 * np.abs(center)] = np.inf
        slopes, intercept = _line(
            np.column_stack([np.ones(len(x)), (x - center) / scale]), y, self.ridge, self.degrees
        )
        slopes = slopes / scale
        return Line(float(intercept - center @ slopes), slopes), {}


def _line(z: Floats, y: Floats, ridge: float, degrees: float) -> tuple[Floats, float]:
    """Return slopes and intercept (first column of z) of the most likely line."""
    flat = np.sqrt(ridge) * np.eye(z.shape[1])[1:]
    beta = np.zeros(z.shape[1])
    beta[0] = np.median(y)
    spread = float(np.median(np.abs(y - beta[0]))) or float(np.std(y))
    floor = 1e-9 * max(float(np.abs(y).max()), 1e-6)
    variance = max(spread, floor) ** 2
    # The ridge as rows below those of the runs, whose weights change from step to step.
    left, right = np.vstack([z, flat]), np.concatenate([y, np.zeros(len(flat))])
    residuals = y - z @ beta
    for _ in range(_MOST_STEPS):
        weights = (degrees + 1) / (degrees + residuals**2 / variance)
        root = np.sqrt(weights)
        left[: len(y)], right[: len(y)] = root[:, None] * z, root * y
        new = np.linalg.lstsq(left, right, rcond=None)[0]
        residuals = y - z @ new
        left_over = weights @ residuals**2 + ridge * new[1:] @ new[1:]
        variance = max(float(left_over) / len(y), floor**2)
        step, beta = float(np.abs(new - beta).max()), new
        if step <= 1e-9 * (1e-3 + float(np.abs(beta).max())):
            break
    return beta[1:], float(beta[0])
