"""Choices as they would have been made by predictions: how often right, and what a miss cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.decisions import probabilities
from errcomp.decisions.errors import needed_difference
from errcomp.decisions.intervals import best_taken, mean_regret, share_right
from errcomp.decisions.results import (
    Assumption,
    ByRatio,
    Calibration,
    Decision,
    Decisions,
    Duel,
    TopK,
    Way,
)
from errcomp.errors import InputError
from errcomp.results import Estimate
from errcomp.tables.choices import Choices, Floats, Ints

#: The probability from which on a comparison counts as sure.
SURE = 0.95
#: Bounds of the predicted ratio (larger over smaller) of the table by ratio.
_RATIOS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, math.inf)
_FIFTHS = 5
#: Largest k of the table of the predicted fastest, and most alternatives whose pairs are listed.
_TOP, _LISTED = 5, 60
#: Share of right comparisons that the headline asks for.
WANTED = 0.9
#: Fewest comparisons of measured rows.
_FEWEST = 3


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Comparisons of measured rows; arrays of shape (n,).

    Attributes
    ----------
    first, second : ndarray of int
        Rows; the first is predicted to be the faster.
    ahead, truly : ndarray
        Logarithm of second over first, predicted and measured.
    """

    first: Ints
    second: Ints
    ahead: Floats
    truly: Floats

    @classmethod
    def of(cls, choices: Choices) -> Compared:
        """Compare every two alternatives that were measured under equal conditions."""
        x, y = choices.rows.x, choices.rows.y
        first, second = choices.pairs(np.isfinite(y))
        swap = x[second] < x[first]
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        return cls(first, second, x[second] - x[first], y[second] - y[first])

    def take(self, index: NDArray[Any]) -> Compared:
        """Return some of the comparisons."""
        return Compared(*(getattr(self, name)[index] for name in self.__slots__))

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the predicted faster one was the faster; of predicted ties, every second."""
        tied = self.ahead == 0
        found: NDArray[np.bool_] = np.where(tied, np.cumsum(tied) % 2 == 1, self.truly > 0)
        return found


def evaluate(
    choices: Choices,
    *,
    source: str,
    tool: str,
    others: Mapping[str, Choices],
    scores: Mapping[str, Callable[[str], float]],
    level: float,
    seed: int,
) -> Decisions:
    """Evaluate the choices that predictions would have made.

    Parameters
    ----------
    choices : Choices
    source, tool : str
    others : mapping of str to Choices
        Choices by other tools, by name.
    scores : mapping of str to callable
        Other ways to choose: from the name of an alternative to a score, the higher the faster.
    level : float
    seed : int

    Raises
    ------
    InputError
        Fewer than three comparisons are of measured alternatives.
    """
    priced = choices.priced()
    compared = Compared.of(priced)
    ties = int((compared.truly == 0).sum())
    compared = compared.take(compared.truly != 0)
    if len(compared.first) < _FEWEST:
        raise InputError(
            f"{source + ': ' if source else ''}only {len(compared.first)} comparisons of two "
            "measured alternatives under equal conditions "
            f"({', '.join(choices.within) or 'none'}); at least {_FEWEST} are needed to evaluate. "
            "Measure more of the predicted rows, or leave out --evaluate to compare the "
            "predictions."
        )
    chance, what = probabilities.left_out(choices, compared.first, compared.second, seed)
    known = np.isfinite(choices.rows.y)
    model = probabilities.learned(choices, known, seed)
    needed = needed_difference(model.posterior, model.spread, WANTED, np.random.default_rng(seed))
    rows, group = _decisions(priced)
    regrets = np.array([row.regret for row in rows])

    def share(right: NDArray[np.bool_], at: Ints) -> Estimate:
        one, two = (
            choices.rows.alternative[compared.first],
            choices.rows.alternative[compared.second],
        )
        where = choices.rows.group[compared.first]
        return share_right(right[at], one[at], two[at], where[at])

    judged = np.isfinite(chance)
    sure = np.maximum(chance, 1 - chance)
    correct = np.where(chance == 0.5, compared.right, (chance > 0.5) == (compared.truly > 0))
    return Decisions(
        source=source,
        tool=tool,
        between=choices.between,
        within=choices.within,
        per=choices.per,
        price=choices.price,
        higher=choices.higher,
        cluster=choices.cluster,
        alternatives=len(choices.alternatives),
        n=len(compared.first),
        choices=len(rows),
        ties=ties,
        right=share(compared.right, np.arange(len(chance))),
        needed=float(np.expm1(needed[0])),
        needed_low=float(np.expm1(needed[1])),
        needed_high=float(np.expm1(needed[2])),
        level=level,
        left_out=what if judged.any() else "",
        share_called=float((sure[judged] >= level).mean()) if judged.any() else np.nan,
        sure=int((sure[judged] >= SURE).sum()),
        wrong_when_sure=_wrong(sure[judged], correct[judged]),
        calibration=tuple(
            Calibration(float(sure[at].mean()), share(correct, at), len(at))
            for at in _fifths(sure, judged)
        ),
        by_ratio=tuple(
            ByRatio(low, high, share(compared.right, at), len(at))
            for low, high, at in _ranges(compared)
        ),
        best=best_taken(regrets == 0, group, choices.cluster),
        regret=mean_regret(regrets, group, choices.cluster),
        regret_max=float(regrets.max()),
        top=tuple(_top(priced)),
        duels=_duels(choices, compared),
        assumptions=_assumptions(choices, compared, sure, correct, judged, level),
        ways=_ways(priced, compared, others, scores),
        repeated=choices.repeated,
        dropped=choices.dropped,
        seed=seed,
        rows=tuple(rows),
    )


def _fifths(sure: Floats, judged: NDArray[np.bool_]) -> list[Ints]:
    order = np.flatnonzero(judged)
    order = order[np.argsort(sure[order], kind="stable")]
    return [at for at in np.array_split(order, _FIFTHS) if len(at)]


def _wrong(sure: Floats, correct: NDArray[np.bool_]) -> float:
    """Return the share wrong among the comparisons that are sure; NaN without such."""
    at = sure >= SURE
    return float(1 - correct[at].mean()) if at.any() else np.nan


def _ranges(compared: Compared) -> Iterator[tuple[float, float, Ints]]:
    for low, high in pairwise(_RATIOS):
        at = np.flatnonzero((compared.ahead >= np.log(low)) & (compared.ahead < np.log(high)))
        if len(at):
            yield low, high, at


def _decisions(choices: Choices) -> tuple[list[Decision], Ints]:
    """Return the choice under each condition with two measured alternatives, and its group."""
    rows, groups = [], []
    for condition, at in zip(choices.conditions, choices.each(), strict=True):
        y = choices.rows.y[at]
        known = np.isfinite(y)
        if known.sum() < 2:
            continue
        x = np.where(known, choices.rows.x[at], np.inf)
        names = choices.rows.alternative[at]
        regret = _regret(x, y)
        chosen, best = int(np.argmin(x)), int(np.nanargmin(y))
        if regret == 0:
            chosen = best
        called = choices.alternatives[names[chosen]], choices.alternatives[names[best]]
        rows.append(Decision(condition, int(known.sum()), *called, regret))
        groups.append(choices.rows.group[at.start])
    return rows, np.array(groups)


def _top(choices: Choices) -> Iterator[TopK]:
    """Yield what choices lose if the k predicted fastest alternatives are measured."""
    for k in range(1, _TOP + 1):
        regrets = []
        for at in choices.each():
            known = np.isfinite(choices.rows.y[at])
            x, y = choices.rows.x[at][known], choices.rows.y[at][known]
            if len(y) > k:
                kept = np.argsort(x, kind="stable")[:k]
                regrets.append(float(np.expm1(y[kept].min() - y.min())))
        if regrets:
            lost = np.array(regrets)
            most = float(lost.max())
            yield TopK(k, len(lost), float(np.mean(lost == 0)), float(lost.mean()), most)


def _duels(choices: Choices, compared: Compared) -> tuple[Duel, ...]:
    """Count comparisons by the two alternatives, the least right first."""
    count = len(choices.alternatives)
    if count > _LISTED:
        return ()
    owner = choices.rows.alternative
    both = np.sort([owner[compared.first], owner[compared.second]], axis=0)
    names, where = np.unique(both[0] * count + both[1], return_inverse=True)
    n, right = np.bincount(where), np.bincount(where, compared.right)
    order = np.argsort(right / n, kind="stable")
    return tuple(
        Duel(
            choices.alternatives[names[i] // count],
            choices.alternatives[names[i] % count],
            int(n[i]),
            int(right[i]),
        )
        for i in order
    )


def _regret(score: Floats, y: Floats) -> float:
    """Return the regret of the least score; the mean over alternatives that share it."""
    taken = y[score == np.min(score)]
    return float(np.expm1(taken - np.nanmin(y)).mean())


def _assumptions(
    choices: Choices,
    compared: Compared,
    sure: Floats,
    correct: NDArray[np.bool_],
    judged: NDArray[np.bool_],
    level: float,
) -> tuple[Assumption, ...]:
    """Return what independent and comonotonic errors make of the same comparisons."""
    from scipy.special import ndtr

    if not judged.any():
        return ()
    spread = _spread_of_others(choices, compared)
    apart = ndtr(compared.ahead / (np.sqrt(2) * spread))
    together = np.where(compared.ahead > 0, 1.0, 0.5)
    rows = []
    for name, stated, right in (
        ("learned", sure, correct),
        ("independent", apart, compared.right),
        ("comonotonic", together, compared.right),
    ):
        fifths = _fifths(stated, judged)
        gap = np.mean([abs(stated[at].mean() - right[at].mean()) for at in fifths])
        called = float((stated[judged] >= level).mean())
        rows.append(Assumption(name, float(gap), called, _wrong(stated[judged], right[judged])))
    return tuple(rows)


def _spread_of_others(choices: Choices, compared: Compared) -> Floats:
    """Return the spread (ln) of errors of the other alternatives, shape (comparisons,)."""
    rows = choices.rows
    known = np.isfinite(rows.y)
    error, owner = (rows.y - rows.x)[known], rows.alternative[known]
    count = len(choices.alternatives)
    sums = [np.bincount(owner, weight, count) for weight in (np.ones_like(error), error, error**2)]
    one, two = rows.alternative[compared.first], rows.alternative[compared.second]
    n, total, squares = (s.sum() - s[one] - s[two] for s in sums)
    everything = max(float(error.std()), 1e-12)
    few = n < 2
    n = np.where(few, 2, n)
    found: Floats = np.sqrt(np.maximum(squares / n - (total / n) ** 2, 1e-24))
    return np.where(few, everything, found)


def _ways(
    choices: Choices,
    compared: Compared,
    others: Mapping[str, Choices],
    scores: Mapping[str, Callable[[str], float]],
) -> tuple[Way, ...]:
    """Return how other ways to choose do on the comparisons that both can make."""
    ways = []
    for name, other in others.items():
        ways.append(_way(name, choices, compared, _matched(choices, other)))
    for name, score in scores.items():
        each = np.array([-score(alternative) for alternative in choices.alternatives])
        ways.append(_way(name, choices, compared, each[choices.rows.alternative]))
    ways = [way for way in ways if way.n]
    at_random = _way("at random", choices, compared, np.zeros(len(choices.rows)))
    return (*ways, at_random)


def _matched(choices: Choices, other: Choices) -> Floats:
    """Return the other's predictions (ln) for the rows of these choices; NaN without one."""

    def names(of: Choices) -> list[tuple[str, tuple[str, ...]]]:
        where = [tuple(map(str, condition.values())) for condition in of.conditions]
        codes = zip(of.rows.alternative.tolist(), of.rows.condition.tolist(), strict=True)
        return [(of.alternatives[a], where[c]) for a, c in codes]

    known = dict(zip(names(other), other.rows.x.tolist(), strict=True))
    return np.array([known.get(name, np.nan) for name in names(choices)])


def _way(name: str, choices: Choices, compared: Compared, score: Floats) -> Way:
    """Compare choosing by the least score with choosing by the predictions."""
    ahead = score[compared.second] - score[compared.first]
    both = np.isfinite(ahead)
    tied = ahead[both] == 0
    right = np.where(tied, 0.5, (ahead[both] > 0) == (compared.truly[both] > 0))
    regrets, own = [], []
    for at in choices.each():
        y = choices.rows.y[at]
        usable = np.isfinite(y) & np.isfinite(score[at])
        if usable.sum() > 1:
            regrets.append(_regret(score[at][usable], y[usable]))
            own.append(_regret(choices.rows.x[at][usable], y[usable]))
    if not both.any():
        return Way(name, 0, 0, *[float("nan")] * 5)
    return Way(
        name,
        int(both.sum()),
        len(regrets),
        float(right.mean()),
        float(np.mean(regrets)),
        float(np.max(regrets)),
        float(compared.right[both].mean()),
        float(np.mean(own)),
    )
