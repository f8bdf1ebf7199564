r"""Number of matches that an unrelated figure would have.

The null hypothesis: the published figure :math:`T` is unrelated to the data, but as near to the
figures of the whole table as the real one (see below for its laws), and printed with the same
digits. For figures drawn independently of each other, a subset and rule with the value :math:`v`
matches with the product of the probabilities :math:`p(v)` that :math:`T` falls into the rounding
interval of :math:`v`. The expected number of matches,

.. math:: \mathrm{E}[\text{matches of complexity} \le c]
          = \max_{\text{laws}} \sum_{\text{subset, rule: complexity} \le c} \;
            \prod_{\text{tools } t} p_t(v_t)

therefore needs no drawing of figures. Levels of complexity with many subsets are sampled (each
subset with the same probability, Horvitz-Thompson weights); the others are summed in full. By
Markov's inequality, the sum bounds the probability that an unrelated figure has any match of
complexity up to :math:`c`. This holds even if subsets overlap and values of tools are correlated.

**The laws.** The place of a figure is the logarithm of its size; a figure between 50 % and 100 % is
read as a distance from 100 %. An unrelated figure need not be far from the data: authors who ran
other workloads with the same tool are likely to print a figure near that of the whole table, where
most subsets have their values, too. So a law is flat over a window. The window starts at the value
:math:`c` of the whole table under a plain rule (mean, median, correlation, …) and ends beyond the
published figure :math:`T`,

.. math:: [c, c + w] \text{ or } [c - w, c], \qquad w \ge |T - c|,

with widths :math:`w` from a factor of 1.02 to a factor of 2, and on both sides of :math:`c` for a
figure within the smallest width. Any law with its mode at :math:`c` that falls off on both sides,
evenly or not, is a mixture of such windows (Khintchine 1938). The window with the most frequent
matches therefore bounds any such law, whatever its width. If the figure is further from the whole
table than a factor of 2, the window is a factor of 2 around the figure itself.

Figures of several tools are drawn independently of each other. If all of them are within the
smallest width, they are also drawn together, at the same factor from the whole table: hard runs are
hard for all tools, so one figure then determines the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import Printed, tolerance
from errcomp.claims.search.keys import BITS
from errcomp.claims.search.lattice import NEVER, Block
from errcomp.claims.search.rules import Rule, evaluate
from errcomp.claims.search.scan import Subsets, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    _Met = tuple[NDArray[np.int64], Floats]  # subsets, and the interval of each tool

_SAMPLE = 2_000  # subsets, on average, from each step of complexity (one bit) with many
_FULL = 5  # times the sample: steps with fewer subsets are summed in full
_EFFORT = 500_000  # rows to read for such a sample
_ROWS = 2_000_000  # elements of a cost matrix at a time
_CHUNK = 10_000  # subsets of the sample at a time


@dataclass(frozen=True, slots=True)
class Chance:
    """Expected number of matches of an unrelated figure, cumulative over complexity.

    Attributes
    ----------
    subsets : ndarray of int, shape (levels,)
        Number of subsets of exactly this complexity, rules not counted.
    expected, standard_error : ndarray, shape (levels,)
        For complexities up to the index. The standard error is that of the sampling of subsets, 0
        without sampling.
    """

    subsets: NDArray[np.int64]
    expected: Floats
    standard_error: Floats

    def up_to(self, complexity: int) -> tuple[float, float]:
        """Return the expected number and its standard error up to this complexity."""
        at = min(complexity, len(self.expected) - 1)
        return float(self.expected[at]), float(self.standard_error[at])


def expected_matches(table: Table, figures: Sequence[Printed], rng: np.random.Generator) -> Chance:
    """Compute the expected number of matches of unrelated figures, for every complexity.

    Parameters
    ----------
    table : Table
        Sums over the rows, with the lattice of subsets.
    figures : sequence of Printed
        One for each tool of the table.
    rng : numpy.random.Generator
        For the sample of subsets.

    Returns
    -------
    Chance
    """
    counts = _subsets_by_cost(table)
    highest = max(rule.cost for rule in table.rules)
    step = np.arange(len(counts)) // BITS
    in_step = np.bincount(step, weights=counts)[step]
    lattice = table.lattice
    each = max(table.configurations.n, lattice.n_cells * lattice.n_values // 4)
    sample = min(_SAMPLE, max(20, _EFFORT // each))
    rates = np.where(in_step <= _FULL * sample, 1, sample / np.maximum(in_step, 1))
    subsets, costs = _sample(table, rates, rng)
    weights = 1 / rates[costs]
    laws = nulls(table, figures)
    levels = len(counts) + highest
    expected, variance = np.zeros((len(laws), levels)), np.zeros((len(laws), levels))
    for start in range(0, len(costs), _CHUNK):
        part = slice(start, start + _CHUNK)
        met = _spans_met(table, figures, laws, subsets.part(part))
        for at, law in enumerate(laws):
            _add(met, law, costs[part], weights[part], expected[at], variance[at])
    np.cumsum(expected, axis=1, out=expected)
    worst, level = expected.argmax(axis=0), np.arange(levels)
    error = np.sqrt(np.maximum(0, np.cumsum(variance, axis=1)[worst, level]))
    return Chance(counts, expected[worst, level], error)


def _costs(table: Table) -> Iterator[tuple[Block, int, NDArray[np.int64], NDArray[np.int64]]]:
    """Iterate over the lattice: block, first row, positions from there, costs of the subsets."""
    for block in table.lattice.blocks:
        step = max(1, _ROWS // len(block.values))
        for start in range(0, len(block.rows), step):
            costs = block.costs(start, min(start + step, len(block.rows))).reshape(-1)
            at = np.flatnonzero(costs < NEVER)
            yield block, start, at, costs[at].astype(np.int64)


def _subsets_by_cost(table: Table) -> NDArray[np.int64]:
    counts = np.zeros(NEVER, dtype=np.int64)
    for _, _, _, costs in _costs(table):
        own = np.bincount(costs)
        counts[: len(own)] += own
    return np.trim_zeros(counts, "b")


def _sample(
    table: Table, rates: Floats, rng: np.random.Generator
) -> tuple[Subsets, NDArray[np.int64]]:
    restrictions, values, sampled = [], [], []
    for block, start, at, costs in _costs(table):
        chosen = rng.random(len(costs)) < rates[costs]
        rows, cols = np.divmod(at[chosen], len(block.values))
        restrictions.append(block.rows[start + rows])
        values.append(block.values[cols])
        sampled.append(costs[chosen])
    return Subsets(np.concatenate(restrictions), np.concatenate(values)), np.concatenate(sampled)


def _spans_met(
    table: Table, figures: Sequence[Printed], laws: Sequence[Null], subsets: Subsets
) -> dict[int, _Met]:
    """Find where figures must be to match each subset, by the cost of the rule.

    Places from which no law draws are left out.
    """
    values = [table.evaluate(tool, subsets) for tool in range(len(figures))]
    windows = list(zip(*(law.windows for law in laws), strict=True))
    low = [min(window.low for window in own) for own in windows]
    high = [max(window.high for window in own) for own in windows]
    by_cost: dict[int, list[_Met]] = {cost: [] for cost in sorted({r.cost for r in table.rules})}
    for rule in table.rules:
        at, spans = np.arange(len(subsets)), np.empty((0, 2, len(subsets)))
        for tool, (figure, own) in enumerate(zip(figures, values, strict=True)):
            span = np.stack(places(figure, rule.read(own[rule.family][at])))
            reached = np.flatnonzero((span[1] > low[tool]) & (span[0] < high[tool]))
            at = at[reached]
            spans = np.concatenate([spans[:, :, reached], span[None, :, reached]])
        by_cost[rule.cost].append((at, spans))
    return {
        cost: (
            np.concatenate([at for at, _ in parts]),
            np.concatenate([spans for _, spans in parts], axis=2),
        )
        for cost, parts in by_cost.items()
    }


def _add(
    met: dict[int, _Met],
    law: Null,
    costs: NDArray[np.int64],
    weights: Floats,
    expected: Floats,
    variance: Floats,
) -> None:
    """Add the expected matches under a law, and the variance from sampling, by complexity."""
    so_far, previous = np.zeros(len(costs)), np.zeros(len(costs))
    for extra, (at, spans) in met.items():
        matches = np.bincount(at, weights=law.probability(spans), minlength=len(costs))
        so_far += matches
        expected += np.bincount(costs + extra, weights=matches * weights, minlength=len(expected))
        squares = weights * (weights - 1) * so_far**2
        variance += np.bincount(costs + extra, weights=squares - previous, minlength=len(variance))
        previous = squares


# Where an unrelated figure would lie: the laws that figures are drawn from (see above).


#: Figures are drawn up to this factor from the whole table, or from the published figure.
FACTOR = 2.0
#: The narrowest law: a figure drawn nearer to the whole table than this is that of the table.
NEAREST = 1.02
_WIDTHS = np.geomspace(math.log(NEAREST), math.log(FACTOR), 6)


@dataclass(frozen=True, slots=True)
class Window:
    """An interval of places over which figures are drawn evenly."""

    low: float
    high: float

    def share(self, start: Floats, stop: Floats) -> Floats:
        """Return the probability of drawing a place between ``start`` and ``stop``."""
        inside = np.minimum(stop, self.high) - np.maximum(start, self.low)
        shares: Floats = np.maximum(inside, 0) / (self.high - self.low)
        return shares


@dataclass(frozen=True, slots=True)
class Null:
    """A law of unrelated figures: a window for each, and whether they are drawn together."""

    windows: tuple[Window, ...]
    together: bool = False

    def probability(self, spans: Floats) -> Floats:
        """Return the probability of matching values at these places.

        Parameters
        ----------
        spans : ndarray, shape (tools, 2, m)
            For each figure, the interval in which it must be.

        Returns
        -------
        ndarray, shape (m,)
        """
        if self.together:
            centres = np.array([window.low + window.high for window in self.windows]) / 2
            offsets = spans - centres[:, None, None]
            half = (self.windows[0].high - self.windows[0].low) / 2
            return Window(-half, half).share(offsets[:, 0].max(axis=0), offsets[:, 1].min(axis=0))
        product = np.ones(spans.shape[2])
        for window, span in zip(self.windows, spans, strict=True):
            product *= window.share(*span)
        return product


def places(figure: Printed, values: Floats) -> tuple[Floats, Floats]:
    """Find the places at which each value matches a figure of this kind and precision.

    Parameters
    ----------
    figure : Printed
        The published figure.
    values : ndarray, shape (m,)
        Values, as fractions; NaN matches no figure.

    Returns
    -------
    start, stop : ndarray, shape (m,)
        Natural logarithms.

    Examples
    --------
    >>> from errcomp.claims.printed import parse_printed
    >>> start, stop = places(parse_printed("2.3%"), np.array([0.0601]))
    >>> np.exp(start).round(4), np.exp(stop).round(4)
    (array([0.0595]), array([0.0605]))
    """
    if figure.kind == "value" and figure.low > 0:
        width = figure.high - figure.low
        # All values in a rounding interval are printed as the same number.
        steps = np.floor((values - figure.low + tolerance(figure)) / width)
        start = figure.low + steps * width
        stop = start + width
        if _is_distance(figure):
            start, stop = 1 - stop, 1 - start
        return _log(start), _log(stop)
    low, high = _ends(figure)
    at = _log(1 - values if _is_distance(figure) else values)
    # The ends of a range are multiplied by the same random factor.
    if low > 0 and high < math.inf:
        half = math.log(high / low) / 2
        return at - half, at + half
    never = np.where(np.isnan(values), np.nan, math.inf)
    if low > 0:
        return -never, at
    return (at, never) if high < math.inf else (-never, never)


def around(figure: Printed) -> Window:
    """Return the window of a factor of 2 around the figure itself."""
    low, high = _ends(figure)
    if figure.kind == "value" and figure.low > 0:
        centre = math.log((low + high) / 2)
    else:
        start, stop = _extent(figure)
        centre = (start + stop) / 2
    return Window(centre - math.log(FACTOR), centre + math.log(FACTOR))


def nulls(table: Table, figures: Sequence[Printed]) -> list[Null]:
    """List the laws from which unrelated figures may be drawn, the widest first.

    Parameters
    ----------
    table : Table
        The rows, and the rules of the search.
    figures : sequence of Printed
        One for each tool of the table.

    Returns
    -------
    list of Null
    """
    c = table.configurations
    laws = {Null(tuple(around(figure) for figure in figures)): None}
    for rule in table.rules:
        if not _is_plain(rule):
            continue
        centres = [
            _place(figure, evaluate(rule, predicted=c.predicted[t], measured=c.measured[t]))
            for t, figure in enumerate(figures)
        ]
        both = list(zip(figures, centres, strict=True))
        for level in range(len(_WIDTHS)):
            # A figure far from the whole table is far at all widths.
            laws[Null(tuple(_window(figure, centre, level) for figure, centre in both))] = None
        if len(both) > 1 and all(
            _distance(figure, centre) <= _WIDTHS[0] for figure, centre in both
        ):
            narrowest = tuple(_window(figure, centre, 0) for figure, centre in both)
            laws[Null(narrowest, together=True)] = None
    return list(laws)


def _is_plain(rule: Rule) -> bool:
    """Whether authors summarise a table by this rule; means of rounded errors differ little."""
    return rule.denominator in ("measured", "") and not rule.aggregation.startswith("mean of")


def _window(figure: Printed, centre: float, level: int) -> Window:
    """Return the window of this width, or of the first width that reaches the figure."""
    distance = _distance(figure, centre)
    if distance > _WIDTHS[-1]:
        return around(figure)
    width = float(_WIDTHS[max(level, int(np.searchsorted(_WIDTHS, distance)))])
    if distance <= _WIDTHS[0]:
        return Window(centre - width, centre + width)
    above = _extent(figure)[0] > centre
    return Window(centre, centre + width) if above else Window(centre - width, centre)


def _distance(figure: Printed, centre: float) -> float:
    """Return the distance to the nearer end of the figure; infinite without a centre."""
    start, stop = _extent(figure)
    return math.inf if math.isnan(centre) else max(0.0, start - centre, centre - stop)


def _extent(figure: Printed) -> tuple[float, float]:
    """Return the places of the figure itself; a bound has a single place."""
    low, high = _ends(figure)
    if high == math.inf:
        high = low
    elif low <= 0:
        low = high
    return (math.log(low), math.log(high)) if low > 0 else (0.0, 0.0)


def _ends(figure: Printed) -> tuple[float, float]:
    """Return the ends of the figure (of some, as distances from 100 %); 0 or inf if open."""
    low, high = max(figure.low, 0.0), figure.high
    if _is_distance(figure):
        return (1 - high if high < math.inf else 0.0), (1 - low if low > 0 else math.inf)
    return low, high


def _is_distance(figure: Printed) -> bool:
    ends = [end for end in (figure.low, figure.high) if 0 < end < math.inf]
    return bool(ends) and all(0.5 < end < 1 for end in ends)


def _place(figure: Printed, value: float) -> float:
    size = 1 - value if _is_distance(figure) else value
    # Rules that differ only in their last bits make the same law.
    return round(math.log(size), 9) if size > 0 else math.nan


def _log(sizes: Floats) -> Floats:
    """Return the logarithm, minus infinity for values of 0 or less."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.maximum(sizes, 0))
    return logs
