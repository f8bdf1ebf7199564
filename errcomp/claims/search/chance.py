r"""How many matches an unrelated figure would have.

The null hypothesis: the published figure :math:`T` has nothing to do with the data, but is as near
to what the whole table gives as it is (see ``errcomp.claims.search.null`` for the laws it may be
drawn from), and is printed with the same digits. For figures drawn independently of each other, a
subset and rule with the value :math:`v` then matches with the product of the probabilities
:math:`p(v)` that :math:`T` falls into the rounding interval of :math:`v`, so that

.. math:: \mathrm{E}[\text{matches of complexity} \le c]
          = \max_{\text{laws}} \sum_{\text{subset, rule: complexity} \le c} \;
            \prod_{\text{tools } t} p_t(v_t)

needs no drawing of figures at all. Levels of complexity with many subsets are sampled (each subset
with the same probability, Horvitz-Thompson weights); the others are summed in full. By Markov's
inequality, the probability that an unrelated figure has any match of complexity up to :math:`c` is
at most that sum, however much subsets overlap and however much the values of the tools move
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import Printed
from errcomp.claims.search.keys import BITS
from errcomp.claims.search.lattice import NEVER, Block
from errcomp.claims.search.null import Null, nulls, places
from errcomp.claims.search.subsets import Subsets, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    _Met = tuple[NDArray[np.int64], Floats]  # subsets, and from where to where for each tool

__all__ = ["Chance", "expected_matches"]

_SAMPLE = 2_000  # subsets, on average, from each step of complexity (one bit) with many
_FULL = 5  # times the sample: steps with fewer subsets are summed in full
_EFFORT = 500_000  # rows to go through for such a sample
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
    laws = nulls(table, figures)
    levels = len(counts) + highest
    expected, variance = np.zeros((len(laws), levels)), np.zeros((len(laws), levels))
    for start in range(0, len(costs), _CHUNK):
        part = slice(start, start + _CHUNK)
        met = _met(table, figures, laws, subsets.part(part))
        for at, law in enumerate(laws):
            _add(met, law, costs[part], weights[part], expected[at], variance[at])
    np.cumsum(expected, axis=1, out=expected)
    worst, level = expected.argmax(axis=0), np.arange(levels)
    error = np.sqrt(np.maximum(0, np.cumsum(variance, axis=1)[worst, level]))
    return Chance(counts, expected[worst, level], error)


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


def _met(
    table: Table, figures: Sequence[Printed], laws: Sequence[Null], subsets: Subsets
) -> dict[int, _Met]:
    """Find where figures would have to be to be met by each subset, by the cost of the rule.

    What no law draws figures from is left out.
    """
    values = [table.evaluate(tool, subsets) for tool in range(len(figures))]
    found: dict[int, list[_Met]] = {cost: [] for cost in sorted({r.cost for r in table.rules})}
    for rule in table.rules:
        at, spans = np.arange(len(subsets)), np.empty((0, 2, len(subsets)))
        for tool, (figure, own) in enumerate(zip(figures, values, strict=True)):
            span = np.stack(places(figure, rule.read(own[rule.family][at])))
            own_laws = [law.windows[tool] for law in laws]
            reached = np.flatnonzero(
                (span[1] > min(w.low for w in own_laws)) & (span[0] < max(w.high for w in own_laws))
            )
            at = at[reached]
            spans = np.concatenate([spans[:, :, reached], span[None, :, reached]])
        found[rule.cost].append((at, spans))
    return {
        cost: (
            np.concatenate([at for at, _ in parts]),
            np.concatenate([spans for _, spans in parts], axis=2),
        )
        for cost, parts in found.items()
    }


def _add(
    met: dict[int, _Met],
    law: Null,
    costs: NDArray[np.int64],
    weights: Floats,
    expected: Floats,
    variance: Floats,
) -> None:
    """Add the matches to expect under a law, and the variance from sampling, by complexity."""
    so_far, previous = np.zeros(len(costs)), np.zeros(len(costs))
    for extra, (at, spans) in met.items():
        matches = np.bincount(at, weights=law.probability(spans), minlength=len(costs))
        so_far += matches
        expected += np.bincount(costs + extra, weights=matches * weights, minlength=len(expected))
        squares = weights * (weights - 1) * so_far**2
        variance += np.bincount(costs + extra, weights=squares - previous, minlength=len(variance))
        previous = squares
