"""Log-ratios that are linear in features, with an effect per device: predicts with NumPy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats, Names
from errcomp.calibration.estimators.base import as_features
from errcomp.calibration.estimators.spread import Spreads, is_number
from errcomp.errors import InputError, describe_rows

__all__ = ["Line", "LinearModel"]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Intercept, and a coefficient per feature.

    Attributes
    ----------
    intercept : float
    coefficients : ndarray, shape (p,)
        0 for a feature that is not looked at, which may be NaN.
    """

    intercept: float
    coefficients: Floats

    def at(self, x: Floats) -> Floats:
        """Return the log-ratio of each row, shape (n,)."""
        used = self.coefficients != 0
        found: Floats = self.intercept + x[:, used] @ self.coefficients[used]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    r"""Log-ratio of a run, linear in its features.

    .. math:: y_r = b_0 + x_r^\top b + a_{d(r)} + \varepsilon_r

    with the effect a of the device (0 where it was not in the fit) and ε of a Student t, whose
    scale and degrees are those of known or of new devices.

    Attributes
    ----------
    line : Line
    spreads : Spreads
        Effects and spread.

    Examples
    --------
    >>> from errcomp.calibration.estimators.baselines import GlobalFactor
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
            There are not as many features as in the fit, one that is needed is not finite, or q
            are no ascending probabilities.
        """
        rows = as_features(x, len(self.line.coefficients))
        location = self.line.at(rows)
        unknown = np.flatnonzero(np.isnan(location))
        if len(unknown):
            used = np.flatnonzero(self.line.coefficients)
            first = used[np.isnan(rows[unknown[0], used])][0]
            raise InputError(
                f"features must be known, got NaN in {describe_rows(unknown.tolist())} (column "
                f"{first}). Leave the runs out, or use a model that allows unknown features."
            )
        return self.spreads.around(location, q, device)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON can hold, and the arrays, that make the model again."""
        meta = {"intercept": self.line.intercept, "spreads": self.spreads.to_meta()}
        return meta, {"coefficients": self.line.coefficients}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the model again.

        Raises
        ------
        InputError
            Something is missing or cannot be.
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
