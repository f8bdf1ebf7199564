"""Metrics as scorers of scikit-learn."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError, MissingExtraError
from errcomp.metrics._registry import figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

__all__ = ["NEUTRAL", "scorer"]

#: Metrics with a sign, and their value where predictions are neither too high nor too low.
NEUTRAL = {"bias": 0.0, "total_error": 0.0, "gm_ratio": 1.0}


def scorer(name: str) -> Callable[..., float]:
    r"""Return a metric as a scorer of scikit-learn, for ``scoring=`` of its functions.

    Scikit-learn maximises a score. So correlations, R² and shares are returned as they are, and
    errors with a minus sign. Metrics with a sign (``bias``, ``total_error``, ``gm_ratio``) become
    minus their distance from the value without bias, for ``gm_ratio`` that of the logarithms:

    .. math:: -|\mathrm{bias}|, \qquad -|\ln \mathrm{gm\_ratio}|

    Misleads where folds are small: the score of a fold is that of a few pairs, and has no interval.

    Parameters
    ----------
    name : str
        A key of ``FIGURES``.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)`` gives a float; ``sample_weight`` where the metric has weights.

    Raises
    ------
    InputError
        There is no such metric. When it scores: measurements that are not positive, predictions
        without a logarithm where the metric needs one, or weights for a metric without weights.
        `sklearn.model_selection.cross_val_score` turns errors into NaN with a warning, unless it
        is given ``error_score="raise"``.
    MissingExtraError
        scikit-learn is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> x, measured = np.zeros((4, 1)), np.array([8.0, 10.0, 10.0, 12.0])
    >>> model = DummyRegressor().fit(x, measured)
    >>> round(scorer("mape")(model, x, measured), 4), scorer("within_20")(model, x, measured)
    (-0.1042, 0.75)
    """
    spec = figure(name)
    try:
        from sklearn.metrics import make_scorer  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "boost", "a scorer") from error
    better = spec.unit == "correlation" or spec.kind == "share"
    made: Callable[..., float] = make_scorer(_score, greater_is_better=better, name=name)
    return made


def _score(
    measured: ArrayLike, predicted: ArrayLike, *, name: str, sample_weight: Any = None
) -> float:
    """Compute a metric with the arguments in scikit-learn's order; one with a sign as a size."""
    function = figure(name).function
    weights = {} if sample_weight is None else {"weights": sample_weight}
    if weights and "weights" not in inspect.signature(function).parameters:
        raise InputError(
            f"{name} takes no weights. Leave sample_weight out, or use another metric."
        )
    value = function(predicted=predicted, measured=measured, **weights)
    if name == "gm_ratio":
        return abs(math.log(value))
    return abs(value - NEUTRAL[name]) if name in NEUTRAL else value
