"""What the figures of pairs that stay in an engine hide, as far as sums over them tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from errcomp.caveats import CHECKS, check_case
from errcomp.caveats._case import Case
from errcomp.caveats._sums import Moments, Ratio, Totals, added, grouped_means
from errcomp.metrics._registry import FIGURES
from errcomp.scale._forms import FORMS
from errcomp.scale._quantiles import quantiles
from errcomp.scale._values import ROUNDING, values
from errcomp.tables.frames import Sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.results import Caveat
    from errcomp.scale.pair_totals import PairTotals

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["SUMS", "check_totals", "not_looked_for"]

_APE, _SQUARES, _LARGEST = Sum(("ape",)), Sum(("ape", "ape")), Sum(("ape",), "max")
_ERROR, _MEASURED, _WEIGHTS = Sum(("signed",)), Sum(("m",)), Sum(("m", "m"))
_ERRORS, _PRODUCTS = Sum(("signed", "signed")), Sum(("signed", "m"))
_HIGH, _LOW, _FACTORS = Sum(("high",)), Sum(("low",)), Sum(("factor",))
_POSITIVE = Sum(("factor",), "count")
_LOGS, _LOG_SQUARES = Sum(("log_ape",)), Sum(("log_ape", "log_ape"))
_LOGS_COUNT = Sum(("log_ape",), "count")
_RATIOS, _RATIO_SQUARES = Sum(("log_ratio",)), Sum(("log_ratio", "log_ratio"))
_RATIOS_COUNT = Sum(("log_ratio",), "count")
#: Nine of ten normal values are within so many standard deviations.
_NINETY = 1.645
#: What the checks need besides the sums of an audit's figures and their intervals.
SUMS = (
    *(_APE, _SQUARES, _LARGEST, _ERROR, _MEASURED, _WEIGHTS, _ERRORS, _PRODUCTS),
    *(_HIGH, _LOW, _FACTORS, _POSITIVE, _LOGS, _LOG_SQUARES, _LOGS_COUNT),
    *(_RATIOS, _RATIO_SQUARES, _RATIOS_COUNT),
)


def check_totals(
    pairs: PairTotals,
    *,
    claim: Any = None,
    by: Sequence[str] = (),
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Caveat, ...]:
    """Make the checks of `errcomp.caveats.check` that do not look at single pairs."""
    scopes = ("pairs",) if claim is None else ("pairs", "claim")
    checks = [one for one in CHECKS if one.scope in scopes and not one.needs_pairs]
    return check_case(_TotalsCase(pairs, claim, by, level, seed), checks)


def not_looked_for(*, several_tools: bool) -> tuple[str, ...]:
    """Name the caveats that are not looked for in pairs that stay in an engine."""
    scopes = ("pairs", "claim", "tools") if several_tools else ("pairs", "claim")
    return tuple(
        dict.fromkeys(one.code for one in CHECKS if one.scope in scopes and one.needs_pairs)
    )


class _TotalsCase(Case):
    """A `Case` of pairs of which only sums are known."""

    def __init__(
        self, pairs: PairTotals, claim: Any, by: Sequence[str], level: float, seed: int
    ) -> None:
        super().__init__(cast(Any, pairs), claim, by, level, seed)
        self._totals = pairs
        self._whole = pairs.totals(())
        self._errors = pairs.histogram()

    def _sum(self, one: Sum) -> float:
        return float(self._whole.sums[one][0])

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
        """Return a figure; NaN where it cannot be made from these sums."""
        able = name in FORMS or FIGURES[name].kind in ("share", "maximum")
        try:
            return float(values(name, self._whole)[0]) if able else float("nan")
        except KeyError:  # its sums were not asked for
            return float("nan")

    def sizes(self, codes: Ints) -> Ints:
        return added(codes, self._totals.counts.astype(np.float64)).astype(np.int64)

    def moments(self, codes: Ints) -> Moments:
        largest, sizes = self.largest or 1.0, self.sizes(codes)
        sums, squares = (added(codes, self._totals.sums(one)) for one in (_APE, _SQUARES))
        means = sums / np.maximum(sizes, 1)
        off = squares - means * sums
        # What rounding leaves of zero in a difference of sums.
        off[off < ROUNDING * squares] = 0.0
        return Moments(means / largest, off / largest**2, sizes)

    def shuffled_means(self, codes: Ints) -> Floats:
        # The errors of the histogram, which are within half a per cent of those of the pairs.
        errors = self._errors.errors() / (self.largest or 1.0)
        of_pair = np.repeat(np.arange(codes.max() + 1), self.sizes(codes))
        return grouped_means(errors[self.permutations], of_pair, int(codes.max()) + 1)[0]

    def log_moments(self, codes: Ints) -> Moments:
        sizes = added(codes, self._totals.sums(_LOGS_COUNT))
        sums, squares = (added(codes, self._totals.sums(one)) for one in (_LOGS, _LOG_SQUARES))
        some = sizes > 0
        sizes, sums, squares = sizes[some], sums[some], squares[some]
        return Moments(
            sums / sizes, np.maximum(squares - sums**2 / sizes, 0.0), sizes.astype(np.int64)
        )

    def totals(self, codes: Ints) -> Totals:
        error, measured, errors, products, weights = (
            added(codes, self._totals.sums(one))
            for one in (_ERROR, _MEASURED, _ERRORS, _PRODUCTS, _WEIGHTS)
        )
        off = error / measured
        squares = errors - 2 * off * products + off**2 * weights
        squares[squares < ROUNDING * errors] = 0.0
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
        # As for normal logarithms: what nine of ten are within cannot be had from sums.
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
        return max(self._sum(_WEIGHTS) / self._sum(_MEASURED) ** 2 - 1 / self.n, 0.0)

    @cached_property
    def not_positive(self) -> int:
        return self.n - int(self._sum(_POSITIVE))

    @cached_property
    def symmetric(self) -> float:
        return self._sum(_FACTORS) / self.n
