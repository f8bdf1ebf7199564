"""The input of every check: one set of pairs, its errors, keys, and null samples of its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from errcomp.caveats._statistics import (
    ROUNDING,
    Line,
    Moments,
    Ratio,
    Totals,
    added,
    factor_errors,
    grouped_means,
    line_between,
    log_ratio,
    out_of_sample_factor,
)
from errcomp.errors import InputError
from errcomp.metrics import ape, figure, gmape, mape, median_ape, total_error, wape
from errcomp.metrics._registry import FIGURES
from errcomp.metrics.sums import ROUNDING as ROUNDING_OF_SUMS
from errcomp.metrics.sums import TERMS, quantiles, values
from errcomp.results import Caveat, format_fraction
from errcomp.tables import RESERVED_KEYS, Pairs
from errcomp.tables.columns import with_roles
from errcomp.tables.configurations import VARIANT_KEYS
from errcomp.tables.frames import refined
from errcomp.tables.sums import Sum

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    from errcomp.tables.engine.pairs import PairTotals

#: Words with which a source leaves something open.
UNSAID = ("", "none", "not stated", "unknown", "n/a")
#: A change of less than a quarter (8 % or 10 %) does not need a caveat. The 95 % interval of 36
#: pairs with Gaussian errors is as wide on either side, and few tables are larger.
MATERIAL = 1.25
#: The median ratio of predictions to measurements is hardly ever larger without a wrong unit.
FAR = 5.0
#: Coefficient of variation of the absolute value of a Gaussian error: sqrt(pi / 2 - 1).
GAUSS_CV = float(np.sqrt(np.pi / 2 - 1))
#: Null samples and permutations: the smallest p-value, 1/2000, survives a correction for 100 tests.
RESAMPLES = 1999
#: Up to this many pairs, null distributions are simulated; above, their limits apply.
SIMULATED = 500

#: Degrees of freedom of the heaviest usual shape of errors.
STUDENT = 5

#: The four averages of the absolute percentage errors, by their usual names.
AVERAGES = {
    "mean": mape,
    "median": median_ape,
    "geometric mean": gmape,
    "weighted mean": wape,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check that could be applied.

    Attributes
    ----------
    caveat : Caveat or None
        None if the effect is too small to mention.
    p : float or None
        p-value of a test (corrected over the tested keys); None for plain facts.
    """

    caveat: Caveat | None
    p: float | None = None


#: A test without an effect worth mentioning: it counts among the tests.
NOTHING = Finding(None, 1.0)


class Case:
    """One set of pairs of one tool, with the quantities that several checks need.

    Parameters
    ----------
    pairs : Pairs
        Of one tool.
    claim : object or None
        The claim about these pairs; see `errcomp.caveats.check`.
    by : sequence of str
        The grouping keys.
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
            raise InputError(f"level must be between 0.5 and 1, got {level!r}. 0.95 is usual.")
        self.pairs, self.claim, self.by = pairs, claim, tuple(by)
        self.level, self.seed = level, seed
        self.n = pairs.n
        self._codes: dict[str, tuple[Ints, list[Any]]] = {}

    def said(self, name: str) -> str:
        """Return an attribute of the claim; empty where the claim does not say."""
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
        """Whether null distributions are simulated; for more pairs, their limits apply."""
        return self.n <= SIMULATED

    @cached_property
    def ape(self) -> Floats:
        """Absolute percentage errors, shape (n,)."""
        return ape(predicted=self.predicted, measured=self.measured)

    @cached_property
    def scaled(self) -> Floats:
        """Errors as shares of the largest, for tests: their squares cannot overflow."""
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
        """Return the values of a key as numbers from 0, shape (n,), and the values in order."""
        if key not in self._codes:
            self._codes[key] = _encode(self.pairs.column(key))
        return self._codes[key]

    def varying(self, names: Sequence[str]) -> list[str]:
        """Return the keys with these roles that have at least two values in the table."""
        present = with_roles(names, self.pairs.keys)
        return [name for name in present if len(self.codes(name)[1]) > 1]

    @cached_property
    def configuration_keys(self) -> tuple[str, ...]:
        """Keys that distinguish configurations; see `configuration`."""
        return configuration(self)

    def cells(self, keys: Sequence[str]) -> Ints:
        """Return numbers from 0 for the combinations of these keys that occur, shape (n,)."""
        cell = np.zeros(len(self.pairs), dtype=np.int64)
        for key in keys:
            cell = refined(cell, self.codes(key)[0])
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
        """Return the error of the sum of each group, and the scatter of its errors around it."""
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
        except InputError:  # a correlation of constants, a log-ratio of zero
            return float("nan")

    def share_of_worst(self, worst: int) -> float:
        """Return the share of the largest errors, this many, in the sum of all."""
        errors = self.scaled
        return float(np.partition(errors, self.n - worst)[self.n - worst :].sum() / errors.sum())

    @property
    def sides(self) -> tuple[int, int]:
        """Numbers of predictions that are too high and too low."""
        high = int(np.count_nonzero(self.predicted > self.measured))
        return high, int(np.count_nonzero(self.predicted < self.measured))

    def out_of_sample_factor(self) -> tuple[float, float] | tuple[None, None] | None:
        """Return the effect of one factor on pairs that it was not fitted to; None if unknown."""
        return out_of_sample_factor(self.predicted, self.measured)

    @cached_property
    def ratio(self) -> Ratio:
        """Median of ln(predicted / measured), and the distance of most pairs from it."""
        return log_ratio(self.predicted, self.measured)

    @cached_property
    def line(self) -> Line | None:
        """The line from predictions that are far off to measurements, if a factor is not enough."""
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
        """Number of predictions that no factor can correct: those of 0 or less."""
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

    @property
    def laplace_errors(self) -> Floats:
        """Absolute Laplace errors of one scale, shape (RESAMPLES, n); only up to SIMULATED."""
        return laplace_errors(self.n, self.seed)


def configuration(case: Case, without: Collection[str] = ()) -> tuple[str, ...]:
    """Find the keys that distinguish configurations, among all but some columns.

    Those are the reserved keys and the variant keys. They also include every other column that
    distinguishes rows which agree in all of these, unless the column is a measurement. Columns that
    do not distinguish any, such as a count of operators, follow from the configuration. The tool,
    the repetition and the date never count: the same configuration can be run again.
    """
    not_part = ("tool", "repeat", "date", "in_training", "level", "reference", *without)
    known = dict.fromkeys((*RESERVED_KEYS, *VARIANT_KEYS))
    keys = [k for k in known if k in case.pairs.keys and k not in not_part]
    cell = case.cells(keys)
    for name in case.pairs.keys:
        if name in keys or name in not_part or _is_measurement(case.pairs.column(name)):
            continue
        finer = refined(cell, case.codes(name)[0])
        if finer.max() > cell.max():
            keys.append(name)
            cell = finer
    return tuple(keys)


# Groups of one size have the same samples.
@lru_cache(maxsize=4)
def orders(n: int, seed: int) -> NDArray[np.int16]:
    """Return random orders of n pairs, shape (RESAMPLES, n)."""
    rows = np.tile(np.arange(n, dtype=np.int16), (RESAMPLES, 1))
    return _fixed(np.random.default_rng([seed, 1]).permuted(rows, axis=1))


@lru_cache(maxsize=4)
def laplace_errors(n: int, seed: int) -> Floats:
    """Return absolute Laplace errors of one scale, shape (RESAMPLES, n)."""
    return _fixed(np.random.default_rng([seed, 2]).exponential(size=(RESAMPLES, n)))


@lru_cache(maxsize=64)
def largest_of_usual(n: int, seed: int) -> tuple[Floats, Floats]:
    """Return largest over mean error, (RESAMPLES,) each, of Laplace and of Student t errors."""
    student = np.random.default_rng([seed, 3]).standard_t(STUDENT, size=(RESAMPLES, n))
    laplace, student = (
        _fixed(errors.max(axis=1) / errors.mean(axis=1))
        for errors in (laplace_errors(n, seed), np.abs(student))
    )
    return laplace, student


def _fixed(values: NDArray[Any]) -> NDArray[Any]:
    """Return values that are kept for other groups, so that nothing can change them."""
    values.flags.writeable = False
    return values


def _is_measurement(values: NDArray[Any]) -> bool:
    """Say whether a column holds fractions that rarely repeat; those of a sweep do."""
    if values.dtype.kind != "f":
        return False
    finite = values[np.isfinite(values)]
    fractional = bool((finite != np.round(finite)).any())
    return fractional and len(np.unique(finite)) > len(values) / 2


def _encode(values: NDArray[Any]) -> tuple[Ints, list[Any]]:
    # Values of one column may be of several types (None among words), which cannot be sorted.
    plain = values.tolist()
    different = dict.fromkeys(plain)
    if any(v != v for v in different):
        plain = [None if v != v else v for v in plain]
        different = dict.fromkeys(plain)
    number = {v: i for i, v in enumerate(different)}
    return np.fromiter(map(number.__getitem__, plain), np.int64, len(plain)), list(different)


def percent(value: float) -> str:
    """Write a fraction in per cent, as all messages do.

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


def signed(value: float) -> str:
    """Write a fraction in per cent with its sign.

    Examples
    --------
    >>> signed(0.0514), signed(-0.09)
    ('+5.14 %', '-9.00 %')
    """
    return f"{'+' if value > 0 else ''}{percent(value)}"


# Pairs that stay in an engine: checks that need only sums -----------------------------------------

_APE, _SQUARES, _LARGEST = Sum(("ape",)), Sum(("ape", "ape")), Sum(("ape",), "max")
_ERROR, _MEASURED, _WEIGHTS = Sum(("signed",)), Sum(("m",)), Sum(("m", "m"))
_ERRORS, _PRODUCTS = Sum(("signed", "signed")), Sum(("signed", "m"))
_HIGH, _LOW, _FACTORS = Sum(("high",)), Sum(("low",)), Sum(("factor",))
_POSITIVE = Sum(("factor",), "count")
_LOGS, _LOG_SQUARES = Sum(("log_ape",)), Sum(("log_ape", "log_ape"))
_LOGS_COUNT = Sum(("log_ape",), "count")
_RATIOS, _RATIO_SQUARES = Sum(("log_ratio",)), Sum(("log_ratio", "log_ratio"))
_RATIOS_COUNT = Sum(("log_ratio",), "count")
#: 90 % of normal values are within this many standard deviations.
_NINETY = 1.645
#: Sums that the checks need, in addition to those of an audit's metrics and their intervals.
SUMS = (
    *(_APE, _SQUARES, _LARGEST, _ERROR, _MEASURED, _WEIGHTS, _ERRORS, _PRODUCTS),
    *(_HIGH, _LOW, _FACTORS, _POSITIVE, _LOGS, _LOG_SQUARES, _LOGS_COUNT),
    *(_RATIOS, _RATIO_SQUARES, _RATIOS_COUNT),
)


class TotalsCase(Case):
    """A `Case` of pairs with known sums only."""

    def __init__(
        self, pairs: PairTotals, claim: Any, by: Sequence[str], level: float, seed: int
    ) -> None:
        super().__init__(cast(Any, pairs), claim, by, level, seed)
        self._totals = pairs
        self._whole = pairs.totals(())
        if any(term not in self._whole.sums for term in SUMS):
            raise InputError(
                f"{pairs.prefix}only sums over these pairs are stored, which are not enough for "
                "the checks. Pass a dataframe, the path of the table, or errcomp.scan(path)."
            )
        if not math.isfinite(self._sum(_APE)):
            raise InputError(
                f"{pairs.prefix}(predicted - measured) / measured is beyond the largest number a "
                "float64 can hold (1.8e308). Check that predicted and measured have the same unit."
            )
        self._errors = pairs.histogram()

    def _sum(self, term: Sum) -> float:
        return float(self._whole.sums[term][0])

    @cached_property
    def averages(self) -> dict[str, float]:
        """The four averages of the absolute percentage errors; the median is approximate."""
        return {
            "mean": self.value("mape"),
            "median": float(quantiles(self._errors, 0.5)[0]),
            "geometric mean": self.value("gmape"),
            "weighted mean": self.value("wape"),
        }

    def value(self, name: str) -> float:
        """Return a metric; NaN where these sums do not give it."""
        able = name in TERMS or FIGURES[name].kind in ("share", "maximum")
        try:
            return float(values(name, self._whole)[0]) if able else float("nan")
        except KeyError:  # its sums were not requested
            return float("nan")

    def sizes(self, codes: Ints) -> Ints:
        return added(codes, self._totals.counts.astype(np.float64)).astype(np.int64)

    def moments(self, codes: Ints) -> Moments:
        largest, sizes = self.largest or 1.0, self.sizes(codes)
        sums, squares = (added(codes, self._totals.sums(term)) for term in (_APE, _SQUARES))
        means = sums / np.maximum(sizes, 1)
        off = squares - means * sums
        # A difference of sums that is zero up to rounding.
        off[off < ROUNDING_OF_SUMS * squares] = 0.0
        return Moments(means / largest, off / largest**2, sizes)

    def shuffled_means(self, codes: Ints) -> Floats:
        # Errors from the histogram, within 0.5 % of those of the pairs.
        errors = self._errors.values() / (self.largest or 1.0)
        of_pair = np.repeat(np.arange(codes.max() + 1), self.sizes(codes))
        return grouped_means(errors[self.permutations], of_pair, int(codes.max()) + 1)[0]

    def log_moments(self, codes: Ints) -> Moments:
        sizes = added(codes, self._totals.sums(_LOGS_COUNT))
        sums, squares = (added(codes, self._totals.sums(term)) for term in (_LOGS, _LOG_SQUARES))
        some = sizes > 0
        sizes, sums, squares = sizes[some], sums[some], squares[some]
        return Moments(
            sums / sizes, np.maximum(squares - sums**2 / sizes, 0.0), sizes.astype(np.int64)
        )

    def totals(self, codes: Ints) -> Totals:
        error, measured, errors, products, weights = (
            added(codes, self._totals.sums(term))
            for term in (_ERROR, _MEASURED, _ERRORS, _PRODUCTS, _WEIGHTS)
        )
        off = error / measured
        squares = errors - 2 * off * products + off**2 * weights
        squares[squares < ROUNDING_OF_SUMS * errors] = 0.0
        return Totals(measured, off, np.sqrt(squares))

    @cached_property
    def largest(self) -> float:
        return self._sum(_LARGEST)

    @cached_property
    def total_error(self) -> float:
        return self._sum(_ERROR) / self._sum(_MEASURED)

    def share_of_worst(self, worst: int) -> float:
        return self._errors.share_of_largest(worst)

    @property
    def sides(self) -> tuple[int, int]:
        return int(self._sum(_HIGH)), int(self._sum(_LOW))

    def out_of_sample_factor(self) -> None:
        return None

    @cached_property
    def ratio(self) -> Ratio:
        n = self._sum(_RATIOS_COUNT)
        if n < 0.9 * self.n:
            return Ratio(0.0, math.inf)
        middle = self._sum(_RATIOS) / n
        # Assumes normal logarithms: sums cannot give the range of 90 % of the pairs.
        variance = max(self._sum(_RATIO_SQUARES) / n - middle**2, 0.0)
        return Ratio(middle, _NINETY * math.sqrt(variance))

    @property
    def line(self) -> None:
        return None

    @property
    def weights(self) -> None:
        return None

    @property
    def weights_spread(self) -> float:
        return max(
            self._sum(_WEIGHTS) / self._sum(_MEASURED) / self._sum(_MEASURED) - 1 / self.n, 0.0
        )

    @cached_property
    def not_positive(self) -> int:
        return self.n - int(self._sum(_POSITIVE))

    @cached_property
    def symmetric(self) -> float:
        return self._sum(_FACTORS) / self.n
