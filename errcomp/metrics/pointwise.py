"""One error per pair: absolute, percentage (with and without sign) and logarithmic.

The second part is shared by all metrics: checked input, and sums that do not overflow. They sum
values scaled by a power of two, which is exact, so 1e308 + 1e308 and squares of 1e200 or 1e-200 are
possible. NumPy adds pairwise, so its rounding stays near 1e-15.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.errors import InputError, describe_rows
from errcomp.tables import Zeros, as_pairs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def ape(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Absolute percentage error of each pair: the error as a fraction of the measurement.

    .. math:: \mathrm{APE}_i = |p_i - m_i| \,/\, m_i

    Definition: the denominator is the measurement of the same pair.
    Misleads because it treats the two directions unequally: the error of a positive prediction is
    below 100 % if it is too low, but has no limit if it is too high. ``log_accuracy_ratio`` treats
    them equally.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    ndarray, shape (n,)
        Fractions: 0.1 is 10 %. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, a measurement is not positive, or an error is beyond
        the largest float64 (names the first three rows).

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001.

    Examples
    --------
    >>> ape(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    array([0.1, 0.1])
    """
    return np.abs(relative_error(checked(predicted, measured, None, zeros)))


def signed_percentage_error(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Percentage error of each pair with its sign: positive where the prediction is too high.

    .. math:: e_i = (p_i - m_i) \,/\, m_i

    Definition: the denominator is the measurement of the same pair; predicted minus measured.
    Misleads where it is averaged: errors of opposite sign cancel (see ``bias``).

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    ndarray, shape (n,)
        Fractions: -0.1 is 10 % too low. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        As for ``ape``.

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001. They define the
    percentage error as measured minus predicted; here positive means predicted too high.

    Examples
    --------
    >>> signed_percentage_error(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    array([ 0.1, -0.1])
    """
    return relative_error(checked(predicted, measured, None, zeros))


def log_accuracy_ratio(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Natural logarithm of predicted / measured: equal factors up and down count the same.

    .. math:: q_i = \ln (p_i \,/\, m_i)

    Definition: for small errors q is the signed percentage error (0.01 is about 1 %); a factor of
    two is +0.693 or -0.693. Swapping predicted and measured changes the sign and nothing else.
    Misleads if taken as a percentage: 0.5 is +65 %, -0.5 is -39 %.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, both > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive. Predictions that are not always raise.

    Returns
    -------
    ndarray, shape (n,)
        Natural logarithms. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, or a measurement or a prediction is not positive
        (names the first three rows).

    References
    ----------
    Tofallis (2015), "A better measure of relative prediction accuracy for model selection and model
    estimation", Journal of the Operational Research Society 66(8), 1352-1362,
    doi:10.1057/jors.2014.103.

    Examples
    --------
    >>> log_accuracy_ratio(predicted=[20.0, 50.0], measured=[10.0, 100.0])
    array([ 0.69314718, -0.69314718])
    """
    return log_ratio(checked(predicted, measured, None, zeros))


def absolute_error(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Absolute error of each pair, in the unit of the data.

    .. math:: a_i = |p_i - m_i|

    Definition: no denominator. The unit is that of the data.
    Misleads where quantities of different size are pooled: the largest dominate.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    ndarray, shape (n,)
        Unit of the data. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        As for ``ape``.

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001.

    Examples
    --------
    >>> absolute_error(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    array([ 1., 10.])
    """
    return np.abs(difference(checked(predicted, measured, None, zeros)))


# Shared by all metrics ----------------------------------------------------------------------------

_BEYOND = "is beyond the largest number a float64 can hold (1.8e308)"
_UNITS = "Check that predicted and measured have the same unit."


class Checked(NamedTuple):
    """Pairs that passed the checks, with the row (from 1) that each came from."""

    predicted: Floats
    measured: Floats
    weights: Floats | None
    rows: NDArray[np.int64]


def checked(
    predicted: ArrayLike, measured: ArrayLike, weights: ArrayLike | None, zeros: Zeros
) -> Checked:
    """Check pairs and weights; leave out excluded rows and rows of weight zero."""
    p, m = as_pairs(predicted=predicted, measured=measured, zeros=zeros)
    used = np.asarray(measured, dtype=np.float64) > 0
    rows = np.flatnonzero(used) + 1
    if weights is None:
        return Checked(p, m, None, rows)
    w = _as_weights(weights, len(used))[used]
    counts = w > 0
    if not counts.any():
        raise InputError("weights must not all be zero: at least one pair must count")
    w = w[counts]
    w = np.ldexp(w, -math.frexp(float(w.max()))[1])
    return Checked(p[counts], m[counts], w, rows[counts])


def _as_weights(weights: ArrayLike, n: int) -> Floats:
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights must be numbers: {error}") from error
    if w.shape != (n,):
        raise InputError(
            f"weights must have one value per pair, shape ({n},), got shape {w.shape}. "
            "Give weights for all rows, including excluded rows."
        )
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        raise InputError(
            f"weights must be finite and not negative, got {w[bad][0]} in "
            f"{describe_rows((np.flatnonzero(bad) + 1).tolist())}. "
            "Give a pair the weight 0 to leave it out."
        )
    return w


def finite(value: float, label: str) -> float:
    """Return the value, or raise if it has overflowed."""
    if not math.isfinite(value):
        raise InputError(f"{label} {_BEYOND}. {_UNITS}")
    return value


def _all_finite(values: Floats, data: Checked, label: str) -> Floats:
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(
            f"{label} {_BEYOND} in {describe_rows(data.rows[bad].tolist())}, got "
            f"predicted={data.predicted[first]}, measured={data.measured[first]}. {_UNITS}"
        )
    return values


def difference(data: Checked) -> Floats:
    """Return predicted - measured."""
    with np.errstate(over="ignore"):
        return _all_finite(data.predicted - data.measured, data, "predicted - measured")


def relative_error(data: Checked) -> Floats:
    """Return (predicted - measured) / measured; the difference of near values is exact."""
    with np.errstate(over="ignore"):
        error = difference(data) / data.measured
    return _all_finite(error, data, "(predicted - measured) / measured")


def require_positive_predictions(data: Checked) -> None:
    """Raise if a prediction has no logarithm."""
    bad = data.predicted <= 0
    if bad.any():
        raise InputError(
            f"predicted must be positive for a logarithm, got {data.predicted[bad][0]} in "
            f"{describe_rows(data.rows[bad].tolist())}. If these predictions failed, remove the "
            "rows (in a table: give them a status); otherwise use a metric without a logarithm, "
            "such as mape or wape."
        )


def log_ratio(data: Checked) -> Floats:
    """Return ln(predicted / measured), accurate near 1 and where the ratio would overflow."""
    require_positive_predictions(data)
    mantissa, exponent = _log_parts(data.predicted, data.measured)
    result = mantissa + exponent * math.log(2)
    near = np.abs(data.predicted - data.measured) <= 0.5 * data.measured
    p, m = data.predicted[near], data.measured[near]
    result[near] = np.log1p((p - m) / m)
    return result


def _log_parts(numerator: Floats, denominator: Floats) -> tuple[Floats, Floats]:
    """Split ln(numerator / denominator) into ln of the mantissas' ratio and a power of two."""
    top, top_exponent = np.frexp(numerator)
    bottom, bottom_exponent = np.frexp(denominator)
    exponent = (top_exponent - bottom_exponent).astype(np.float64)
    return np.log(top / bottom), exponent


def geometric_mean_ratio(
    numerator: Floats, denominator: Floats, weights: Floats | None, label: str
) -> float:
    """Return the geometric mean of numerator / denominator, both positive.

    Powers of two are averaged separately from the mantissas: in exp(mean(log)), a ratio of 1e300
    would lose three digits.
    """
    mantissa, exponent = (mean(x, weights) for x in _log_parts(numerator, denominator))
    whole = math.floor(exponent)
    return _unscale(math.exp(mantissa + (exponent - whole) * math.log(2)), whole, label)


def mean(values: Floats, weights: Floats | None) -> float:
    """Return the (weighted) mean."""
    scaled, exponent = scale(values)
    return _unscale(_plain_mean(scaled, weights), exponent, "the mean")


def root_mean_square(values: Floats, weights: Floats | None) -> float:
    """Return the square root of the (weighted) mean of the squares."""
    scaled, exponent = scale(values)
    with np.errstate(under="ignore"):
        squares = scaled * scaled
    return _unscale(math.sqrt(_plain_mean(squares, weights)), exponent, "the root mean square")


def _plain_mean(values: Floats, weights: Floats | None) -> float:
    if weights is None:
        return float(values.sum()) / len(values)
    with np.errstate(under="ignore"):
        return float((weights * values).sum()) / float(weights.sum())


def scale(values: Floats) -> tuple[Floats, int]:
    """Divide by a power of two, returned as its exponent, so that no value exceeds 1."""
    exponent = math.frexp(float(np.abs(values).max()))[1]
    with np.errstate(under="ignore"):
        return np.ldexp(values, -exponent), exponent


def _unscale(value: float, exponent: int, label: str) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        raise InputError(f"{label} {_BEYOND}. {_UNITS}") from None
