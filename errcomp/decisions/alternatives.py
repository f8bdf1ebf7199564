"""The alternatives of a choice that nobody has measured, and which of them is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.codec import Count, Document, GroupKeys, Share, Size, Undefined
from errcomp.decisions.weighing import Weighed, weigh
from errcomp.tables.choices import Rows
from errcomp.tables.units import kind_of

__all__ = ["Alternative", "Choice"]

#: Words for a comparison that is not called, and for the chosen alternative.
CLOSE, CHOSEN = "too close to call", "chosen"
#: What the first alternative of a comparison is, and what the others then are.
WORDS = {"faster": "slower", "cheaper": "dearer", "better": "worse"}


@dataclass(frozen=True, slots=True)
class Choice(Document):
    """The choice of one alternative under one condition, by predictions.

    Attributes
    ----------
    condition : mapping
    n : int
        Alternatives.
    chosen : str
        The one with the least expected time or cost of those that keep the limit with the wanted
        probability; empty if there are none.
    p_best : float
        Probability that no other of them is better.
    expected_regret : float
        Expected time or cost that is lost by the choice: that of the chosen alternative over that
        of the best, minus 1. NaN without a chosen one.
    measure : str
        The alternative whose measurement is expected to save most; empty if none would change the
        choice with a probability of at least 1 %.
    saves : float
        Expected time or cost that this measurement saves, as a share.
    changes : float
        Probability that it changes the choice.
    """

    KEYS: ClassVar = (
        GroupKeys("condition", "within"),
        *("n", "chosen", "p_best", "expected_regret", "measure", "saves", "changes"),
    )

    condition: Mapping[str, Any]
    n: Count
    chosen: str
    p_best: Share
    expected_regret: Annotated[float, Undefined]
    measure: str
    saves: Size
    changes: Share


@dataclass(frozen=True, slots=True)
class Alternative(Document):
    """One alternative of a choice, by its prediction.

    Attributes
    ----------
    condition : mapping
    name : str
    predicted, measured : float
        In the unit of the table; NaN where nothing was measured.
    low, median, high : float
        What it will take: a band at the level of the comparison. NaN where too few conditions were
        measured to know more than differences.
    cost : float
        Median cost: price times time, or price over a throughput. NaN without prices or median.
    p_best : float
        Probability that no other is better, of those that keep the limit.
    p_within, p_front : float
        Probability that it keeps the limit, and that no other has as good a time at as low a cost.
        NaN without a limit, or without prices.
    word : str
        ``chosen``, ``too close to call``, ``slower`` (``dearer``, ``worse``), or ``may miss the
        limit``, ``misses the limit``.
    """

    KEYS: ClassVar = (
        GroupKeys("condition", "within"),
        *("name", "predicted", "measured", "low", "median", "high", "cost"),
        *("p_best", "p_within", "p_front", "word"),
    )

    condition: Mapping[str, Any]
    name: str
    predicted: Size
    measured: Annotated[float, Undefined]
    low: Annotated[float, Undefined]
    median: Annotated[float, Undefined]
    high: Annotated[float, Undefined]
    cost: Annotated[float, Undefined]
    p_best: Share
    p_within: Annotated[float, Undefined]
    p_front: Annotated[float, Undefined]
    word: str


def word_of(price: str, higher: bool, unit: str | None) -> str:
    """Return what the first of two alternatives is."""
    if price:
        return "cheaper"
    times = unit is None or unit == "cycles" or kind_of(unit) == "time"
    return "faster" if times and not higher else "better"


class Asked(NamedTuple):
    """What a choice is about.

    Attributes
    ----------
    level : float
    unit : str or None
    price : str
        Name of the prices; empty: none.
    higher : bool
    limit : float or None
    """

    level: float
    unit: str | None = None
    price: str = ""
    higher: bool = False
    limit: float | None = None

    @property
    def word(self) -> str:
        """What the first of two alternatives is."""
        return word_of(self.price, self.higher, self.unit)


def choose(
    condition: Mapping[str, Any],
    names: Sequence[str],
    rows: Rows,
    draws: NDArray[np.floating],
    asked: Asked,
    *,
    absolute: bool,
) -> tuple[Choice, list[Alternative]]:
    """Return the choice, and each alternative in the order of the rows.

    Parameters
    ----------
    condition : mapping
    names : sequence of str, length k
    rows : Rows
        Of these alternatives; prices count, if there are any.
    draws : ndarray, shape (draws, k)
        Logarithms of times, or negative ones if more is better.
    asked : Asked
    absolute : bool
        Whether the draws are times, and not only differences.
    """
    sign = -1 if asked.higher else 1
    found = weigh(
        draws,
        rows.price if asked.price else None,
        limit=None if asked.limit is None else sign * float(np.log(asked.limit)),
        known=np.isfinite(rows.y),
        level=asked.level,
    )
    nothing = np.full(len(names), np.nan)
    low, median, high = (np.exp(sign * end) for end in (found.low, found.median, found.high))
    if asked.higher:
        low, high = high, low
    cost = np.exp(found.median + rows.price) if asked.price else nothing
    if not absolute:
        low = median = high = cost = nothing
    predicted, measured = np.exp(sign * rows.x), np.exp(sign * rows.y)
    columns = (predicted, measured, low, median, high, cost)
    shares = (found.p_best, found.p_within, found.p_front)
    words = _words(found, WORDS[asked.word], asked.level)
    each = [
        Alternative(condition, *values)
        for values in zip(
            names, *(column.tolist() for column in (*columns, *shares)), words, strict=True
        )
    ]
    return _choice(condition, names, found), each


def _choice(condition: Mapping[str, Any], names: Sequence[str], found: Weighed) -> Choice:
    chosen = found.chosen >= 0
    return Choice(
        condition,
        len(names),
        names[found.chosen] if chosen else "",
        float(found.p_best[found.chosen]) if chosen else 0.0,
        found.regret,
        names[found.measure] if found.measure >= 0 else "",
        float(-np.expm1(-found.saves)),
        found.changes,
    )


def _words(found: Weighed, behind: str, level: float) -> list[str]:
    """Say how each alternative stands to the chosen one, and to the limit."""
    words = np.where(found.p_chosen >= level, behind, CLOSE)
    words = np.where(found.p_within < level, "may miss the limit", words)
    words = np.where(found.p_within <= 1 - level, "misses the limit", words)
    words = words.astype(object)
    if found.chosen >= 0:
        words[found.chosen] = CHOSEN
    return [str(word) for word in words]
