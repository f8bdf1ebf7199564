"""Probability of each comparison, from an error model that did not see what it compares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from errcomp.decisions.conditions import FEWEST as FEWEST_CONDITIONS
from errcomp.decisions.conditions import shared_errors
from errcomp.decisions.errors import Parts, Posterior, Sampler, chance_faster
from errcomp.tables.choices import Choices, Floats, Ints, Rows

#: Fewest alternatives from which two can be left out, and most that are left out one by one: of
#: more, groups of them are.
FEWEST, _SINGLY, _GROUPS = 4, 12, 8
#: In place of a width of 0.
_NO_WIDTH = 1e-200
#: Most rows that the error model is learned from: more conditions hardly change it.
_MOST_ROWS = 2_000
#: Posterior draws of a fold, of a fold of conditions, and of the model of all rows; most values
#: in memory.
_FOLD_DRAWS, _CONDITION_DRAWS, _DRAWS, _VALUES = 400, 600, 2_000, 20_000_000
#: Comparisons from which on fewer draws are used: their probabilities are interpolated anyway.
_MANY, _FEW_DRAWS = 100_000, 100


def taught(choices: Choices, known: NDArray[np.bool_], seed: int) -> Ints:
    """Return the positions of the rows that the error model is learned from."""
    together = np.bincount(choices.rows.condition[known], minlength=len(choices.conditions))
    useful = known & (together[choices.rows.condition] > 1)
    if useful.sum() > _MOST_ROWS:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(choices.conditions))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        rows = np.flatnonzero(useful)
        rows = rows[np.argsort(rank[choices.rows.condition[rows]], kind="stable")]
        return np.sort(rows[:_MOST_ROWS])
    return np.flatnonzero(useful)


def left_out(choices: Choices, first: Ints, second: Ints, seed: int) -> tuple[Floats, str]:
    """Return P(first is faster) of comparisons of measured rows, and what was left out of the fit.

    With four alternatives or more, every row of both alternatives is left out; with fewer, the
    group of the condition is. NaN where neither can be left out.
    """
    known = np.isfinite(choices.rows.y)
    if len(set(choices.rows.alternative[known].tolist())) >= FEWEST:
        return _without_alternatives(choices, known, first, second, seed), "alternatives"
    return _without_conditions(choices, known, first, second, seed), "conditions"


def _without_alternatives(
    choices: Choices, known: NDArray[np.bool_], first: Ints, second: Ints, seed: int
) -> Floats:
    rows, parts = choices.rows, Parts.of(choices.rows)
    rng = np.random.default_rng(seed)
    count = len(choices.alternatives)
    block = rng.permutation(count) if count <= _SINGLY else rng.permutation(count) % _GROUPS
    one, two = np.sort([block[rows.alternative[first]], block[rows.alternative[second]]], axis=0)
    blocks = int(block.max()) + 1
    folds = [
        f for f in combinations_with_replacement(range(blocks), 2) if count > _SINGLY or f[0] < f[1]
    ]
    at = taught(choices, known, seed)
    outside = np.array([np.isin(block[rows.alternative[at]], fold) for fold in folds]).T
    sampler = Sampler(rows.take(at), parts.take(at), outside, seed)
    posterior = sampler.draw(_FOLD_DRAWS if len(first) <= _MANY else _FEW_DRAWS)
    chance = np.full(len(first), np.nan)
    for f, (left, right) in enumerate(folds):
        here = np.flatnonzero((one == left) & (two == right))
        if len(here):
            between = parts.between(first[here], second[here], rows)
            prices = rows.price[second[here]] - rows.price[first[here]]
            chance[here] = chance_faster(posterior, f, between, prices, rng)
    return chance


def _without_conditions(
    choices: Choices, known: NDArray[np.bool_], first: Ints, second: Ints, seed: int
) -> Floats:
    rows = choices.rows
    count = len(set(rows.group.tolist()))
    block = np.random.default_rng(seed).permutation(count) % 10
    chance = np.full(len(first), np.nan)
    for one in range(min(count, 10)):
        inside = block[rows.group] == one
        here = inside[first]
        if here.any() and (known & ~inside).any():
            model = learned(choices, known & ~inside, seed, draws=_CONDITION_DRAWS)
            chance[here] = model.chance(first[here], second[here])
    return chance


class Learned:
    """The error model of all measured rows, with draws of the time of each row.

    Attributes
    ----------
    posterior : Posterior
    spread : ndarray, shape (3,)
        Variances of the parts of the predictions.
    place : ndarray, shape (draws, n)
        Logarithm of the cost of each row (time and price); of a measured row the measured one.
    known, absolute : ndarray of bool, shape (n,)
        Rows that were measured, and rows whose place is a time: of the others only differences
        under one condition are known.
    """

    def __init__(
        self,
        posterior: Posterior,
        spread: Floats,
        known: NDArray[np.bool_],
        absolute: NDArray[np.bool_],
        rows: Rows,
        seed: int,
    ) -> None:
        assert posterior.place is not None
        self.posterior, self.spread = posterior, spread
        self.known, self.absolute = known, absolute
        self.place = np.where(known, rows.y, posterior.place) + rows.price
        self.rng = np.random.default_rng(seed)

    def noise(self, rows: Ints) -> Floats:
        """Draw the variance of each row's own error, shape (draws, rows); 0 of a measured row."""
        df, variance = self.posterior.df[:, 2], self.posterior.variance[:, 2]
        shape = np.broadcast_to(df / 2, (len(df), len(rows)))
        own: Floats = variance * (df / 2) / self.rng.gamma(shape) * ~self.known[rows]
        return own

    def chance(self, first: Ints, second: Ints) -> Floats:
        """Return P(first costs less), shape (pairs,)."""
        found = np.empty(len(first))
        step = max(1, _VALUES // (20 * len(self.place)))
        for start in range(0, len(first), step):
            one, two = first[start : start + step], second[start : start + step]
            # Measured rows have no width: what is ahead is so for sure, and a tie is even.
            width = np.maximum(np.sqrt(self.noise(one) + self.noise(two)), _NO_WIDTH)
            ahead = self.place[:, two] - self.place[:, one]
            found[start : start + step] = ndtr(ahead / width).mean(axis=0)
        return found

    def every_chance(self, rows: slice) -> Iterator[Floats]:
        """Yield for each row of a condition P(it is faster) than each later one, by counting draws.

        Quicker than `chance` for many alternatives, and less precise: a standard error of 0.01.
        """
        drawn = self.times(np.arange(rows.start, rows.stop)).astype(np.float32).T.copy()
        for i in range(len(drawn) - 1):
            yield (drawn[i] < drawn[i + 1 :]).mean(axis=1)

    def times(self, rows: Ints) -> Floats:
        """Draw the logarithm of the cost of each row, shape (draws, rows)."""
        own = np.sqrt(self.noise(rows))
        drawn: Floats = self.place[:, rows] + own * self.rng.standard_normal(own.shape)
        return drawn


def learned(
    choices: Choices, known: NDArray[np.bool_], seed: int, *, draws: int = _DRAWS
) -> Learned:
    """Learn the error model from these rows."""
    rows, parts = choices.rows, Parts.of(choices.rows)
    # Every row of a condition with an unknown one: a measured rival there says how long it takes.
    open_ = np.bincount(rows.condition, ~known, len(choices.conditions)) > 0
    at = np.union1d(taught(choices, known, seed), np.flatnonzero(open_[rows.condition]))
    outside = ~known[at][:, None]
    sampler = Sampler(rows.take(at), parts.take(at), outside, seed)
    draws = int(np.clip(_VALUES // max(len(at), 1), 200, draws))
    drawn = sampler.draw(draws, keep_places=True)
    assert drawn.place is not None
    assert drawn.condition is not None
    place = np.full((draws, len(rows)), np.nan)
    place[:, at] = drawn.place
    shift, absolute = _shared(choices, parts, drawn.condition, known[at], at, seed)
    place += shift[:, rows.condition]
    posterior = Posterior(drawn.slope, drawn.variance, drawn.df, place)
    return Learned(posterior, parts.variance, known, absolute[rows.condition], rows, seed + 1)


def _shared(
    choices: Choices, parts: Parts, drawn: Floats, known: NDArray[np.bool_], at: Ints, seed: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return what the times of each condition lack, and whether the times are then absolute.

    The sampler sets the shared part of a condition without a measurement to 0.

    Returns
    -------
    shift : ndarray, shape (draws, conditions)
    absolute : ndarray of bool, shape (conditions,)
    """
    count = len(choices.conditions)
    seen = np.bincount(choices.rows.condition[at], known, count) > 0
    open_ = np.bincount(choices.rows.condition[at], ~known, count) > 0
    shift = np.zeros((len(drawn), count))
    lacking = np.flatnonzero(open_ & ~seen)
    if not len(lacking) or seen.sum() < FEWEST_CONDITIONS:
        return shift, seen
    group = choices.rows.group[choices.start[:-1]]
    measured = drawn[:, np.flatnonzero(seen)] - parts.condition[seen]
    errors = shared_errors(measured, group[seen], group[lacking], seed)
    shift[:, lacking] = parts.condition[lacking] + errors - drawn[:, lacking]
    return shift, seen | (open_ & ~seen)
