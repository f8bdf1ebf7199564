"""The numerics of the checks: moments and sums of groups, small tests, lines, order of devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.errors import InputError
from errcomp.stats.significance import benjamini_hochberg, student_sf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.caveats._case import Case

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: Errors that differ by less than this, relative to their mean, are equal.
ROUNDING = 1e-12


class Moments(NamedTuple):
    """Absolute percentage errors of groups, as shares of the largest.

    Attributes
    ----------
    means, squares : ndarray, shape (groups,)
        Mean of each group, and the sum of squares around it.
    sizes : ndarray of int, shape (groups,)
    """

    means: Floats
    squares: Floats
    sizes: Ints

    @property
    def mean(self) -> float:
        """Mean over all pairs."""
        return float((self.means * self.sizes).sum() / self.sizes.sum())

    @property
    def between(self) -> float:
        """Sum of squares of the groups' means around that of all."""
        return float((self.sizes * (self.means - self.mean) ** 2).sum())

    @property
    def within(self) -> float:
        """Sum of squares within the groups."""
        return float(self.squares.sum())

    @property
    def differ(self) -> bool:
        """Whether the errors differ by more than rounding."""
        least = float(self.sizes.sum()) * (ROUNDING * self.mean) ** 2
        return self.within + self.between > least


class Totals(NamedTuple):
    """Sums of groups.

    Attributes
    ----------
    measured : ndarray, shape (groups,)
        In a unit that all groups share.
    off : ndarray, shape (groups,)
        Error of the sum of predictions, relative to that of measurements.
    scatter : ndarray, shape (groups,)
        Root of the sum of squares of each error less ``off`` times its measurement.
    """

    measured: Floats
    off: Floats
    scatter: Floats


class Ratio(NamedTuple):
    """Logarithm of prediction over measurement.

    Attributes
    ----------
    middle : float
        Its median (its mean, where only sums are known).
    reach : float
        90 % of the pairs are within this distance of it; infinite where more than 10 % of the
        predictions are 0 or less.
    """

    middle: float
    reach: float


def log_ratio(predicted: Floats, measured: Floats) -> Ratio:
    """Return the middle and the reach of ln(p / m).

    Examples
    --------
    >>> found = log_ratio(np.array([20.0, 20.0, 40.0]), np.ones(3))
    >>> round(np.exp(found.middle)), round(np.exp(found.reach))
    (20, 2)
    """
    some = predicted > 0
    if not some.any():
        return Ratio(0.0, math.inf)
    logs = np.log(predicted[some]) - np.log(measured[some])
    middle = float(np.median(logs))
    off = np.full(len(predicted), math.inf)
    off[some] = np.abs(logs - middle)
    return Ratio(middle, float(np.quantile(off, 0.9, method="inverted_cdf")))


def added(codes: Ints, values: Floats) -> Floats:
    """Sum the values of each group."""
    return np.bincount(codes, weights=values).astype(np.float64, copy=False)


def grouped_means(values: Floats, codes: Ints, groups: int) -> tuple[Floats, Ints]:
    """Return the mean and the size of each group; each row of a matrix of values on its own."""
    sizes = np.bincount(codes, minlength=groups)
    if values.ndim == 1:
        return np.bincount(codes, weights=values, minlength=groups) / sizes, sizes
    member = np.zeros((len(codes), groups))
    member[np.arange(len(codes)), codes] = 1.0
    return (values @ member) / sizes, sizes


def factor_errors(predicted: Floats, measured: Floats) -> Floats:
    """Return exp(abs(ln(p / m))) - 1: twice too high and twice too low are both 1.

    Infinite where a prediction is not positive, or so small that no float is its factor.
    """
    with np.errstate(over="ignore", divide="ignore"):
        factors = np.maximum(predicted / measured, measured / predicted) - 1
    result: Floats = np.where(predicted > 0, factors, np.inf)
    return result


def out_of_sample_factor(
    predicted: Floats, measured: Floats
) -> tuple[float, float] | tuple[None, None]:
    """Fit one factor to all pairs but one and apply it to that one, for each pair in turn.

    The factor is one over the median of predicted / measured. Returns the factor of all pairs and
    the MAPE of the pairs left out; None where there is only one pair or a median is not positive.
    """
    # The factor of an extremely small or large prediction may exceed any float.
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = predicted / measured
        middle = float(np.median(ratio))
        if len(ratio) < 2 or not 0 < middle < math.inf:
            return None, None
        medians = _medians_without_each(ratio)
        if (medians <= 0).any():
            return None, None
        after = float(np.abs(ratio / medians - 1).mean())
        return (1 / middle, after) if math.isfinite(after + 1 / middle) else (None, None)


def _medians_without_each(ratio: Floats) -> Floats:
    n = len(ratio)
    order = np.argsort(ratio, kind="stable")
    ranks = np.empty(n, dtype=np.int64)
    ranks[order] = np.arange(n)
    ascending = ratio[order]

    def without(position: int) -> Floats:
        """Value at a position of the sorted ratios, with each pair left out in turn."""
        above = ascending[min(position + 1, n - 1)]
        result: Floats = np.where(position < ranks, ascending[position], above)
        return result

    return (without((n - 2) // 2) + without((n - 1) // 2)) / 2


def discoveries(p_values: Sequence[float], rate: float) -> list[bool]:
    """Say which p-values to report so that at most this share of the reported ones is false.

    Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300. If all
    are false, any is reported at most at this rate.

    Examples
    --------
    >>> discoveries([0.03, 0.001, 0.6, 0.02], 0.05)
    [True, True, False, True]
    """
    return [p <= rate for p in benjamini_hochberg(p_values)]


def paired_p(first: Floats, second: Floats) -> float:
    """P-value of Student's paired t-test; 0 if all differences are equal, 1 if all are zero.

    Examples
    --------
    >>> paired_p(np.array([0.2, 0.3]), np.array([0.1, 0.2]))
    0.0
    """
    difference = first - second
    # Differences that are equal up to rounding have no spread to compare their mean with.
    if np.ptp(difference) <= 1e-12 * max(np.abs(first).max(), np.abs(second).max()):
        return 1.0 if np.abs(difference).max() <= 1e-12 * np.abs(first).max() else 0.0
    n = len(difference)
    t = float(difference.mean()) / (float(difference.std(ddof=1)) / math.sqrt(n))
    return 2 * float(student_sf(abs(t), n - 1))


def simulated_p(observed: float, null: Floats) -> float:
    """Share of the null sample, including the observed value, that is at least as large as it."""
    # Equal values may differ in their last digits if they were summed in another order.
    reached = null >= observed - 1e-9 * abs(observed)
    return float((1 + np.count_nonzero(reached)) / (1 + len(null)))


# Lines between prediction and measurement, fitted to relative errors and tested on other pairs.

#: Fewest pairs to test a line with two parameters.
LEAST = 8
FOLDS = 10
_STEPS = 30


class Line(NamedTuple):
    """Measurements as a function of predictions.

    Attributes
    ----------
    form : {"line", "power"}
        a + b p, or a p^b.
    intercept, slope : float
        a and b.
    correlation : float
        Pearson's, of the numbers, or of their logarithms for a power.
    after : float
        Mean absolute percentage error of pairs left out of the fit.
    after_factor : float
        The same after one factor.
    """

    form: str
    intercept: float
    slope: float
    correlation: float
    after: float
    after_factor: float


def line_between(predicted: Floats, measured: Floats, after_factor: float) -> Line | None:
    """Return the line or power that explains measurements far better than one factor does.

    Far better: on pairs left out of the fit, at most half the error of one factor
    (``after_factor``), at most half the error of one constant, and at most 50 %. A line is
    preferred to a power that is not 1.25 times as good.
    """
    n = len(measured)
    constant_side = np.all(predicted == predicted[0]) or np.all(measured == measured[0])
    if n < LEAST or constant_side or not np.isfinite(after_factor):
        return None
    fold = np.random.default_rng(0).permutation(n) % min(n, FOLDS)
    # In units of the middle pair, whose squares cannot overflow.
    with np.errstate(over="ignore"):  # of two numbers near the largest
        units = float(np.median(np.abs(predicted))) or 1.0, float(np.median(measured))
    if not np.isfinite(units).all():
        return None
    p, m = predicted / units[0], measured / units[1]
    if not (
        np.isfinite(p).all() and np.isfinite(m).all() and max(np.abs(p).max(), m.max()) < 1e100
    ):
        return None
    constant = _mean_off(np.full(n, _weighted_median(m, 1 / m)), m)
    limit = min(after_factor / 2, constant / 2, 0.5)
    straight = float(np.abs(_held_out(1 / m, p / m, np.ones(n), fold)).mean())
    power = np.inf
    if (p > 0).all() and m.min() > 0:
        with np.errstate(over="ignore"):
            power = float(
                np.abs(np.expm1(_held_out(np.ones(n), np.log(p), np.log(m), fold))).mean()
            )
    if min(straight, power) > limit:
        return None
    if straight <= 1.25 * power:
        a, b = _fit(1 / m, p / m, np.ones(n))
        r = float(np.corrcoef(p, m)[0, 1])
        return Line("line", a * units[1], b * units[1] / units[0], r, straight, after_factor)
    a, b = _fit(np.ones(n), np.log(p), np.log(m))
    r = float(np.corrcoef(np.log(p), np.log(m))[0, 1])
    scale = float(np.exp(a + np.log(units[1]) - b * np.log(units[0])))
    return Line("power", scale, b, r, power, after_factor)


def _mean_off(estimate: Floats, measured: Floats) -> float:
    return float(np.abs(estimate / measured - 1).mean())


def _held_out(constant: Floats, x: Floats, y: Floats, fold: NDArray[np.int64]) -> Floats:
    """Return a + b x - y of each pair, fitted to the other folds."""
    residual = np.empty_like(y)
    for k in range(int(fold.max()) + 1):
        out = fold == k
        a, b = _fit(constant[~out], x[~out], y[~out])
        residual[out] = a * constant[out] + b * x[out] - y[out]
    return residual


def _fit(constant: Floats, x: Floats, y: Floats) -> tuple[float, float]:
    """Return a and b for which the absolute values of a·constant + b·x - y have the least sum.

    Iteratively reweighted least squares (Schlossmacher 1973): a few outliers do not change it.
    """
    weight = np.ones_like(y)
    a = b = 0.0
    for _ in range(_STEPS):
        w1, wx = weight * constant, weight * x
        s11, s1x, sxx = float(w1 @ constant), float(w1 @ x), float(wx @ x)
        determinant = s11 * sxx - s1x**2
        if determinant <= 1e-14 * s11 * sxx:
            return a, b
        y1, yx = float(w1 @ y), float(wx @ y)
        a, b = (sxx * y1 - s1x * yx) / determinant, (s11 * yx - s1x * y1) / determinant
        residual = np.abs(a * constant + b * x - y)
        scale = float(np.median(residual))
        if scale == 0:
            return a, b
        weight = 1 / np.maximum(residual, 1e-3 * scale)
    return a, b


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


class Right:
    """Comparisons of devices: how many are right."""

    def __init__(self, ahead: Floats, truly: Floats, one: Ints, two: Ints) -> None:
        from errcomp.stats.comparisons import share_of_comparisons

        right = np.where(ahead == 0, 0.5, (ahead > 0) == (truly > 0))
        self.n, self.share = len(right), float(right.mean())
        self.devices = len(set(one.tolist()) | set(two.tolist()))
        tied = np.flatnonzero(right == 0.5)
        right[tied[::2]], right[tied[1::2]] = 1, 0
        self.found = share_of_comparisons(right > 0, one, two)

    @property
    def words(self) -> str:
        """The share with its interval, and the number of comparisons."""
        ends = ""
        if self.found is not None:
            ends = f" [{100 * self.found.low:.0f}, {100 * self.found.high:.0f}]"
        return f"{100 * self.share:.0f} %{ends} of {self.n:,} comparisons"

    def evidence(self, case: Case) -> dict[str, object]:
        """Return the numbers behind a caveat."""
        found = self.found
        return {
            "mape": case.mape,
            "share_right": self.share,
            "low": None if found is None else found.low,
            "high": None if found is None else found.high,
            "comparisons": self.n,
            "devices": self.devices,
        }


def order_of_devices(case: Case, key: str, fewest: int) -> Right | None:
    """Compare the devices of these pairs; None where fewer than `fewest` comparisons are possible.

    Parameters
    ----------
    case : Case
    key : str
        Column of the device.
    fewest : int
    """
    # Imported here: few tables have enough devices to be compared.
    from errcomp.tables.choices import choices_of

    try:
        choices = choices_of(case.pairs, between=key)
    except InputError:
        return None  # one device, or no two that ran the same configuration
    rows = choices.rows
    first, second = choices.pairs(np.ones(len(rows), dtype=bool))
    truly = rows.y[second] - rows.y[first]
    used = truly != 0
    if used.sum() < fewest:
        return None
    ahead = (rows.x[second] - rows.x[first])[used]
    owner = rows.alternative
    return Right(ahead, truly[used], owner[first][used], owner[second][used])
