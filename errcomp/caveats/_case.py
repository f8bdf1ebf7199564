"""What every check looks at: one set of pairs, its errors, keys, and null samples of its size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from errcomp.caveats._sums import (
    ROUNDING,
    Moments,
    Ratio,
    Totals,
    added,
    factor_errors,
    grouped_means,
    log_ratio,
    out_of_sample_factor,
)
from errcomp.caveats._usual import STUDENT
from errcomp.errors import InputError
from errcomp.metrics import ape, figure, gmape, mape, median_ape, total_error, wape
from errcomp.results import Caveat, format_fraction
from errcomp.tables import RESERVED_KEYS, Pairs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = [
    "AVERAGES",
    "FAR",
    "GAUSS_CV",
    "MATERIAL",
    "NOTHING",
    "RESAMPLES",
    "RUN_KEYS",
    "SIMULATED",
    "UNSAID",
    "VARIANT_KEYS",
    "Case",
    "Finding",
    "cannot_match",
    "configuration",
    "orders",
    "percent",
    "plural",
]


#: Words by which a source says nothing.
UNSAID = ("", "none", "not stated", "unknown", "n/a")
#: A figure that moves by less than a quarter (8 % or 10 %) is not worth a caveat: it is what the
#: 95 % interval of 36 pairs with Gaussian errors spans on either side, and few tables are larger.
MATERIAL = 1.25
#: Predictions without a mistake of units are hardly ever off by a larger factor in the middle.
FAR = 5.0
#: Coefficient of variation of the absolute value of a Gaussian error: sqrt(pi / 2 - 1).
GAUSS_CV = float(np.sqrt(np.pi / 2 - 1))
#: Null samples and permutations: the smallest p-value, 1/2000, survives a correction for 100.
RESAMPLES = 1999
#: Up to this many pairs null distributions are simulated; above, their limits hold.
SIMULATED = 500

#: Keys whose values are ways of running one workload rather than other workloads.
VARIANT_KEYS = ("devices", "variant", "mode", "precision", "dtype", "compiler", "backend", "phase")

#: Keys that say what was run and on what: rows that differ in one of these are never the same
#: configuration, even where a tool has one value only.
RUN_KEYS = ("device", "model", "mode", "batch", "seq_len", "kernel_class", *VARIANT_KEYS)

#: The four averages of the absolute percentage errors, in the words a reader knows.
AVERAGES = {
    "mean": mape,
    "median": median_ape,
    "geometric mean": gmape,
    "weighted mean": wape,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check returns once it could be applied.

    Attributes
    ----------
    caveat : Caveat or None
        None when what was looked for is too small to mention.
    p : float or None
        p-value where a test was made (corrected over the keys tried); None for plain facts.
    """

    caveat: Caveat | None
    p: float | None = None


#: A test was made or could have been, and there is nothing to mention: it counts among the tests.
NOTHING = Finding(None, 1.0)


class Case:
    """One set of pairs of one tool, with what several checks need, each computed once.

    Parameters
    ----------
    pairs : Pairs
        Of one tool.
    claim : object or None
        What is claimed of these pairs; see `errcomp.caveats.check`.
    by : sequence of str
        Keys that the reader groups by.
    level : float
        One minus the rate of false alarms.
    seed : int
        Of the null samples and permutations.
    """

    def __init__(
        self,
        pairs: Pairs,
        claim: Any = None,
        by: Sequence[str] = (),
        level: float = 0.95,
        seed: int = 0,
    ) -> None:
        if not 0.5 < level < 1:
            raise InputError(f"level must lie between 0.5 and 1, got {level!r}. 0.95 is usual.")
        self.pairs, self.claim, self.by = pairs, claim, tuple(by)
        self.level, self.seed = level, seed
        self.n = pairs.n
        self._codes: dict[str, tuple[Ints, list[Any]]] = {}

    def said(self, name: str) -> str:
        """Return what the claim says of this; empty where it says nothing."""
        text = str(getattr(self.claim, name, None) or "").strip()
        return "" if text.lower() in UNSAID else text

    @property
    def claimed(self) -> str:
        """The claimed figure as messages write it."""
        return self.said("shown") or self.said("printed")

    @property
    def predicted(self) -> Floats:
        """Predictions, shape (n,)."""
        return self.pairs.predicted

    @property
    def measured(self) -> Floats:
        """Measurements, shape (n,)."""
        return self.pairs.measured

    @property
    def simulates(self) -> bool:
        """Whether null distributions are simulated: for more pairs, their limits hold."""
        return self.n <= SIMULATED

    @cached_property
    def ape(self) -> Floats:
        """Absolute percentage errors, shape (n,)."""
        return ape(predicted=self.predicted, measured=self.measured)

    @cached_property
    def scaled(self) -> Floats:
        """Errors as shares of the largest, for tests: squares of these cannot overflow."""
        largest = self.ape.max()
        return self.ape / largest if largest > 0 else self.ape

    @cached_property
    def averages(self) -> dict[str, float]:
        """The four averages of the absolute percentage errors."""
        return {
            name: average(predicted=self.predicted, measured=self.measured)
            for name, average in AVERAGES.items()
        }

    @property
    def mape(self) -> float:
        """Mean absolute percentage error."""
        return self.averages["mean"]

    def codes(self, key: str) -> tuple[Ints, list[Any]]:
        """Return the values of a key as numbers from 0, shape (n,), and what each stands for."""
        if key not in self._codes:
            self._codes[key] = _encode(self.pairs.column(key))
        return self._codes[key]

    def varying(self, names: Sequence[str]) -> list[str]:
        """Return the keys among these that the table has with at least two values."""
        present = [name for name in names if name in self.pairs.keys]
        return [name for name in present if len(self.codes(name)[1]) > 1]

    @cached_property
    def configuration_keys(self) -> tuple[str, ...]:
        """Keys that tell configurations apart; see `configuration`."""
        return configuration(self)

    def cells(self, keys: Sequence[str]) -> Ints:
        """Return numbers from 0 for the combinations of these keys that occur, shape (n,)."""
        cell = np.zeros(len(self.pairs), dtype=np.int64)
        for key in keys:
            cell = refine(cell, self.codes(key)[0])
        return cell

    def shuffled_means(self, codes: Ints) -> Floats:
        """Return the mean error of each group, as a share of the largest, under random labels.

        Shape (RESAMPLES, groups); only up to SIMULATED pairs.
        """
        return grouped_means(self.scaled[self.permutations], codes, int(codes.max()) + 1)[0]

    def sizes(self, codes: Ints) -> Ints:
        """Count the pairs of each group."""
        return np.bincount(codes)

    def moments(self, codes: Ints) -> Moments:
        """Return means and squares of the errors of each group."""
        sizes = np.bincount(codes)
        means = added(codes, self.scaled) / np.maximum(sizes, 1)
        off = (self.scaled - means[codes]) ** 2
        off[off < (ROUNDING * means[codes]) ** 2] = 0.0
        return Moments(means, added(codes, off), sizes)

    def log_moments(self, codes: Ints) -> Moments:
        """Return means and squares of the logarithms of the errors; exact predictions have none."""
        some = self.ape > 0
        groups, codes = np.unique(codes[some], return_inverse=True)
        sizes, logs = np.bincount(codes, minlength=len(groups)), np.log(self.ape[some])
        means = added(codes, logs) / sizes
        return Moments(means, added(codes, (logs - means[codes]) ** 2), sizes)

    def totals(self, codes: Ints) -> Totals:
        """Return the error of the sum of each group, and how its errors scatter around it."""
        measured = self.measured / self.measured.max()
        # In shares of the largest error, whose square cannot overflow.
        error = self.predicted / self.measured.max() - measured
        unit = float(np.abs(error).max()) or 1.0
        error /= unit
        of_group = added(codes, measured)
        slope = added(codes, error) / of_group
        squares = added(codes, (error - slope[codes] * measured) ** 2)
        return Totals(of_group, unit * slope, unit * np.sqrt(squares))

    @cached_property
    def largest(self) -> float:
        """Largest absolute percentage error."""
        return float(self.ape.max())

    @cached_property
    def total_error(self) -> float:
        """Error of the sum of all predictions."""
        return total_error(predicted=self.predicted, measured=self.measured)

    def value(self, name: str) -> float:
        """Return a figure of these pairs; NaN where it is not defined."""
        try:
            return figure(name).function(predicted=self.predicted, measured=self.measured)
        except InputError:  # a correlation of constants, a log ratio of zero
            return float("nan")

    def share_of_worst(self, worst: int) -> float:
        """Return the share of so many largest errors in the sum of all."""
        errors = self.scaled
        return float(np.partition(errors, self.n - worst)[self.n - worst :].sum() / errors.sum())

    @property
    def sides(self) -> tuple[int, int]:
        """Predictions that are too high, and that are too low."""
        high = int(np.count_nonzero(self.predicted > self.measured))
        return high, int(np.count_nonzero(self.predicted < self.measured))

    def out_of_sample_factor(self) -> tuple[float, float] | tuple[None, None] | None:
        """Return what one factor would do to pairs it was not fitted to; None if unknown."""
        return out_of_sample_factor(self.predicted, self.measured)

    @cached_property
    def ratio(self) -> Ratio:
        """Middle of the logarithm of prediction over measurement, and how far most are from it."""
        return log_ratio(self.predicted, self.measured)

    @cached_property
    def line(self) -> Line | None:
        """What relates predictions that are far off to measurements, if no single factor does."""
        factors = factor_errors(self.predicted, self.measured)
        if np.median(factors) < FAR - 1:
            return None
        after = (self.out_of_sample_factor() or (None, None))[1]
        return None if after is None else line_between(self.predicted, self.measured, after)

    @property
    def weights(self) -> Floats | None:
        """Share of each measurement in all, shape (n,); None where only sums are known."""
        relative = self.measured / self.measured.max()
        shares: Floats = relative / relative.sum()
        return shares

    @property
    def weights_spread(self) -> float:
        """Sum of squares of the measurements' shares of all, less 1/n each."""
        assert self.weights is not None
        return float(((self.weights - 1 / self.n) ** 2).sum())

    @cached_property
    def not_positive(self) -> int:
        """Predictions that no factor could make right."""
        return int(np.count_nonzero(np.isinf(factor_errors(self.predicted, self.measured))))

    @cached_property
    def symmetric(self) -> float:
        """Mean error counted as factors either way; see `factor_errors`."""
        # Shares of the largest: the sum of factors near the largest float would overflow.
        factors = factor_errors(self.predicted, self.measured)
        largest = float(factors.max())
        return largest * float((factors / largest).mean()) if largest > 0 else 0.0

    @cached_property
    def permutations(self) -> NDArray[np.int16]:
        """Random orders of the pairs, shape (RESAMPLES, n); only up to SIMULATED pairs."""
        return orders(self.n, self.seed)

    @cached_property
    def laplace_errors(self) -> Floats:
        """Absolute Laplace errors of one scale, shape (RESAMPLES, n); only up to SIMULATED."""
        return np.random.default_rng([self.seed, 2]).exponential(size=(RESAMPLES, self.n))

    @cached_property
    def student_errors(self) -> Floats:
        """Absolute errors of Student's t of one scale, as `laplace_errors`."""
        rng = np.random.default_rng([self.seed, 3])
        return np.abs(rng.standard_t(STUDENT, size=(RESAMPLES, self.n)))


def cannot_match(name: str, values_of_tools: Sequence[Iterable[Any]]) -> bool:
    """Say whether a column names the tool rather than a configuration: a trace, a file, a version.

    That is one with a single value within each tool, not the same for all. It can match no rows of
    two tools, and what was run is not told by it. Keys in `RUN_KEYS` do tell: tools with one
    device each have no configuration in common.

    Examples
    --------
    >>> cannot_match("trace", [["sim.csv"] * 3, ["hw.csv"] * 3])
    True
    >>> cannot_match("device", [["H100"] * 3, ["L4"] * 3]), cannot_match("batch_id", [[1, 2], [3]])
    (False, False)
    """
    every = [set(values) for values in values_of_tools]
    return name not in RUN_KEYS and len(set.union(*every)) > 1 and all(len(v) == 1 for v in every)


def configuration(case: Case, without: Collection[str] = ()) -> tuple[str, ...]:
    """Find the keys that tell configurations apart, among all but some columns.

    Those are the reserved keys and the variant keys; and every other column that tells rows apart
    which agree in all of these (a column that does not, such as a count of operators, follows from
    the configuration and is no part of it), unless it is a measurement itself. The tool, the
    repetition and the date are none: the same configuration can be run again.
    """
    not_part = ("tool", "repeat", "date", "in_training", "level", "reference", *without)
    known = dict.fromkeys((*RESERVED_KEYS, *VARIANT_KEYS))
    keys = [k for k in known if k in case.pairs.keys and k not in not_part]
    cell = case.cells(keys)
    for name in case.pairs.keys:
        if name in keys or name in not_part or _is_measurement(case.pairs.column(name)):
            continue
        finer = refine(cell, case.codes(name)[0])
        if finer.max() > cell.max():
            keys.append(name)
            cell = finer
    return tuple(keys)


def orders(n: int, seed: int) -> NDArray[np.int16]:
    """Return random orders of so many pairs, shape (RESAMPLES, n)."""
    rows = np.tile(np.arange(n, dtype=np.int16), (RESAMPLES, 1))
    return np.random.default_rng([seed, 1]).permuted(rows, axis=1)


def refine(cell: Ints, code: Ints) -> Ints:
    """Split cells by a further code; number the cells from 0."""
    both = cell * (int(code.max()) + 1) + code
    inverse: Ints = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return inverse


def _is_measurement(values: NDArray[Any]) -> bool:
    """Say whether a column holds fractions that hardly ever repeat; a parameter sweep repeats."""
    if values.dtype.kind != "f":
        return False
    finite = values[np.isfinite(values)]
    fractional = bool((finite != np.round(finite)).any())
    return fractional and len(np.unique(finite)) > len(values) / 2


def _encode(values: NDArray[Any]) -> tuple[Ints, list[Any]]:
    # Values of one column may be of several types (None among words), which cannot be sorted.
    seen: dict[Any, int] = {}
    plain = [None if v != v else v for v in values.tolist()]
    codes = [seen.setdefault(v, len(seen)) for v in plain]
    return np.asarray(codes, dtype=np.int64), list(seen)


def percent(value: float) -> str:
    """Write a fraction as percent, as all messages do.

    Examples
    --------
    >>> percent(0.0587)
    '5.87 %'
    """
    return format_fraction(value)


def plural(count: int, word: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> plural(1, "pair"), plural(12, "pair")
    ('1 pair', '12 pairs')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


# Lines between prediction and measurement, fitted to relative errors and judged on other pairs.

#: Fewer pairs than this leave too little to judge a line of two numbers by.
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

    Far better: half the error or less, on pairs left out of the fit, of what one factor leaves
    (``after_factor``) and of what one constant does, and at most 50 %. A line is preferred to a
    power that is not 1.25 times as good.
    """
    n = len(measured)
    if n < LEAST or np.ptp(predicted) == 0 or not np.isfinite(after_factor):
        return None
    fold = np.random.default_rng(0).permutation(n) % min(n, FOLDS)
    # In units of the middle pair, whose squares cannot overflow.
    units = float(np.median(np.abs(predicted))) or 1.0, float(np.median(measured))
    p, m = predicted / units[0], measured / units[1]
    if not (
        np.isfinite(p).all() and np.isfinite(m).all() and max(np.abs(p).max(), m.max()) < 1e100
    ):
        return None
    constant = _off(np.full(n, _weighted_median(m, 1 / m)), m)
    limit = min(after_factor / 2, constant / 2, 0.5)
    straight = float(np.abs(_left_out(1 / m, p / m, np.ones(n), fold)).mean())
    power = np.inf
    if (p > 0).all() and m.min() > 0:
        with np.errstate(over="ignore"):
            power = float(
                np.abs(np.expm1(_left_out(np.ones(n), np.log(p), np.log(m), fold))).mean()
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


def _off(estimate: Floats, measured: Floats) -> float:
    return float(np.abs(estimate / measured - 1).mean())


def _left_out(one: Floats, x: Floats, y: Floats, fold: NDArray[np.int64]) -> Floats:
    """Return a + b x - y of each pair, fitted to the other folds."""
    residual = np.empty_like(y)
    for k in range(int(fold.max()) + 1):
        out = fold == k
        a, b = _fit(one[~out], x[~out], y[~out])
        residual[out] = a * one[out] + b * x[out] - y[out]
    return residual


def _fit(one: Floats, x: Floats, y: Floats) -> tuple[float, float]:
    """Return a and b for which the absolute values of a·one + b·x - y have the least sum.

    Iteratively reweighted least squares (Schlossmacher 1973): a few pairs far off do not move it.
    """
    weight = np.ones_like(y)
    a = b = 0.0
    for _ in range(_STEPS):
        w1, wx = weight * one, weight * x
        s11, s1x, sxx = float(w1 @ one), float(w1 @ x), float(wx @ x)
        determinant = s11 * sxx - s1x**2
        if determinant <= 1e-14 * s11 * sxx:
            return a, b
        y1, yx = float(w1 @ y), float(wx @ y)
        a, b = (sxx * y1 - s1x * yx) / determinant, (s11 * yx - s1x * y1) / determinant
        residual = np.abs(a * one + b * x - y)
        scale = float(np.median(residual))
        if scale == 0:
            return a, b
        weight = 1 / np.maximum(residual, 1e-3 * scale)
    return a, b


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
