r"""How many matches an unrelated figure would have.

The null hypothesis: the published figure :math:`T` has nothing to do with the data. It is drawn at
random near the one that was published, log-uniform between half and double of it (a figure between
50 % and 100 % is read as a distance from 100 %, which is drawn so), and printed with the same
digits; several figures are drawn independently of each other. A subset and rule with the value
:math:`v` then matches with probability :math:`p(v)`, the probability that :math:`T` falls into the
rounding interval of :math:`v`, so that

.. math:: \mathrm{E}[\text{matches of complexity} \le c]
          = \sum_{\text{subset, rule: complexity} \le c} \; \prod_{\text{tools } t} p_t(v_t)

needs no drawing of figures at all. Levels of complexity with many subsets are sampled (each subset
with the same probability, Horvitz-Thompson weights); the others are summed in full. By Markov's
inequality, the probability that an unrelated figure has any match of complexity up to :math:`c` is
at most that sum, however much subsets overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import Printed
from errcomp.claims.search.edges import tolerance
from errcomp.claims.search.keys import BITS
from errcomp.claims.search.lattice import NEVER, Block
from errcomp.claims.search.subsets import Subsets, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Chance", "expected_matches", "probability"]

#: Figures are drawn up to this factor below and above the one that was published.
FACTOR = 2.0
_SAMPLE = 2_000  # subsets, on average, from each step of complexity (one bit) with many
_FULL = 5  # times the sample: steps with fewer subsets are summed in full
_EFFORT = 500_000  # rows to go through for such a sample
_ROWS = 2_000_000  # elements of a cost matrix at a time


@dataclass(frozen=True, slots=True)
class Chance:
    """Expected number of matches of an unrelated figure, cumulative over complexity.

    Attributes
    ----------
    subsets : ndarray of int, shape (levels,)
        Number of subsets of exactly this complexity, rules not counted.
    expected, standard_error : ndarray, shape (levels,)
        For complexities up to the index; the standard error is that of the sampling of subsets, 0
        where none was needed.
    """

    subsets: NDArray[np.int64]
    expected: Floats
    standard_error: Floats

    def up_to(self, complexity: int) -> tuple[float, float]:
        """Return the expected number and its standard error up to this complexity."""
        at = min(complexity, len(self.expected) - 1)
        return float(self.expected[at]), float(self.standard_error[at])


def probability(figure: Printed, values: Floats) -> Floats:
    """Probability that a random figure of this size and precision is printed for each value.

    Parameters
    ----------
    figure : Printed
        The published figure.
    values : ndarray, shape (m,)
        Values that could be behind a figure, as fractions.

    Returns
    -------
    ndarray, shape (m,)
        Between 0 and 1.

    Examples
    --------
    >>> from errcomp.claims.printed import parse_printed
    >>> probability(parse_printed("2.3%"), np.array([0.023, 0.1])).round(4)
    array([0.0314, 0.    ])
    """
    low, high = figure.low, figure.high
    ends = [end for end in (low, high) if 0 < end < math.inf]
    as_distance = bool(ends) and all(0.5 < end < 1 for end in ends)
    if figure.kind == "value" and low > 0:
        width, centre = high - low, (low + high) / 2
        # The probability is that of the whole rounding interval in which the value lies.
        start = low + np.floor((values - low + tolerance(figure)) / width) * width
        if as_distance:
            start, centre = 1 - (start + width), 1 - centre
        found = np.zeros(len(values))
        near = (start + width > centre / FACTOR) & (start < centre * FACTOR)
        start = start[near]
        found[near] = _below((start + width) / centre) - _below(start / centre)
        return found
    if as_distance:
        values, low, high = 1 - values, 1 - high, 1 - low
    # The ends of a range are multiplied by the same random factor.
    # An end next to zero ("> 0 %") is infinitely far below any value.
    with np.errstate(over="ignore"):
        above_low = _below(values / low) if low > 0 else np.ones(len(values))
        return above_low - _below(values / high) if high < math.inf else above_low


def _below(factor: Floats) -> Floats:
    """Probability that the random factor is below this."""
    inside = np.clip(factor, 1 / FACTOR, FACTOR)
    below: Floats = 0.5 + np.log(inside) / (2 * math.log(FACTOR))
    return below


def expected_matches(table: Table, figures: Sequence[Printed], rng: np.random.Generator) -> Chance:
    """Compute the number of matches to expect of unrelated figures, for every complexity.

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
    by_rule_cost = _probabilities(table, figures, subsets)
    levels = len(counts) + highest
    expected, variance = np.zeros(levels), np.zeros(levels)
    so_far, previous = np.zeros(len(costs)), np.zeros(len(costs))
    for extra, matches in by_rule_cost.items():
        so_far += matches
        expected += np.bincount(costs + extra, weights=matches * weights, minlength=levels)
        squares = weights * (weights - 1) * so_far**2
        variance += np.bincount(costs + extra, weights=squares - previous, minlength=levels)
        previous = squares
    return Chance(counts, np.cumsum(expected), np.sqrt(np.maximum(0, np.cumsum(variance))))


def _costs(table: Table) -> Iterator[tuple[Block, int, NDArray[np.int64], NDArray[np.int64]]]:
    """Go through the lattice: block, first row, positions from there, and costs of the subsets."""
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
    restrictions, values, kept = [], [], []
    for block, start, at, costs in _costs(table):
        chosen = rng.random(len(costs)) < rates[costs]
        rows, cols = np.divmod(at[chosen], len(block.values))
        restrictions.append(block.rows[start + rows])
        values.append(block.values[cols])
        kept.append(costs[chosen])
    return Subsets(np.concatenate(restrictions), np.concatenate(values)), np.concatenate(kept)


def _probabilities(table: Table, figures: Sequence[Printed], subsets: Subsets) -> dict[int, Floats]:
    """Sum the probabilities of all rules for each subset, by the cost of the rule, ascending."""
    values = [table.evaluate(tool, subsets) for tool in range(len(figures))]
    found = {cost: np.zeros(len(subsets)) for cost in sorted({r.cost for r in table.rules})}
    for rule in table.rules:
        at, joint = np.arange(len(subsets)), np.ones(len(subsets))
        for figure, own in zip(figures, values, strict=True):
            joint[at] *= probability(figure, rule.read(own[rule.family][at]))
            at = np.flatnonzero(joint)
        found[rule.cost] += joint
    return found
