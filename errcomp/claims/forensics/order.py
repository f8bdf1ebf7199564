"""What some figures of a set of errors say about each of its values in order, and about its sum.

A maximum, a quantile and a share within a limit all bound single values of the ordered set: "share
within 10 %: 9 of 12" says that the nine smallest are at most 10 % and the three largest at least
10 %. All such bounds together are a lowest and a highest set; a set of errors with these figures
exists if the lowest lies below the highest, and its sum is any number between their sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Block", "Bound", "clash", "highest", "lowest"]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure says about one value of the ordered set.

    Attributes
    ----------
    upper : bool
        Whether the value is at most `value`, and so are all smaller ones; else it is at least
        `value`, and so are all larger ones.
    position : float
        How many values lie at or below this one: its rank, or a share of all where the number of
        values is unknown. A lower bound holds for what lies above this position.
    value : float
    figure : int
        Index of the figure.
    """

    upper: bool
    position: float
    value: float
    figure: int


@dataclass(frozen=True, slots=True)
class Block:
    """A number of equal values in the lowest or highest set, and the figure that bounds them."""

    size: float
    value: float
    figure: int | None


def clash(bounds: Sequence[Bound]) -> tuple[Bound, Bound] | None:
    """Return an upper and a lower bound that exclude each other; None if the set exists.

    Examples
    --------
    >>> most, least = Bound(True, 9, 0.10, 0), Bound(False, 6, 0.20, 1)
    >>> clash([most, least]) == (most, least), clash([most, Bound(False, 9, 0.20, 1)])
    (True, None)
    """
    for most in (bound for bound in bounds if bound.upper):
        limit = most.value + _slack(most.value)
        for least in (bound for bound in bounds if not bound.upper):
            # The value between the positions would be both.
            if least.position < most.position and least.value > limit:
                return most, least
    return None


def lowest(bounds: Sequence[Bound], size: float) -> list[Block]:
    """Return the lowest set, smallest values first; values without a bound are 0.

    Examples
    --------
    >>> lowest([Bound(False, 9, 0.10, 0), Bound(False, 11, 0.50, 1)], 12)
    [Block(size=9, value=0.0, figure=None), Block(size=2, value=0.1, figure=0), \
Block(size=1, value=0.5, figure=1)]
    """
    lower = sorted((b for b in bounds if not b.upper), key=lambda b: b.position)
    return list(_blocks(lower, size))


def _blocks(lower: Sequence[Bound], size: float) -> Iterator[Block]:
    at, value, figure = 0.0, 0.0, None
    for bound in lower:
        if bound.value > value:
            if bound.position > at:
                yield Block(_whole(bound.position - at), value, figure)
                at = bound.position
            value, figure = bound.value, bound.figure
    if size > at:
        yield Block(_whole(size - at), value, figure)


def highest(bounds: Sequence[Bound], size: float) -> list[Block]:
    """Return the highest set, smallest values first; values without a bound are infinite.

    Examples
    --------
    >>> highest([Bound(True, 9, 0.10, 0), Bound(True, 12, 0.50, 1)], 12)
    [Block(size=9, value=0.1, figure=0), Block(size=3, value=0.5, figure=1)]
    """
    upper = sorted((b for b in bounds if b.upper), key=lambda b: -b.position)
    blocks: list[Block] = []
    at, value, figure = size, math.inf, None
    for bound in upper:
        if bound.value < value:
            if bound.position < at:
                blocks.append(Block(_whole(at - bound.position), value, figure))
                at = bound.position
            value, figure = bound.value, bound.figure
    if at > 0:
        blocks.append(Block(_whole(at), value, figure))
    return blocks[::-1]


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _slack(value: float) -> float:
    return 1e-9 * max(abs(value), 1e-3)
