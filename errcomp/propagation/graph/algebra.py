"""What a node of an execution graph may do with times, whichever engine computes.

A node is written once, in terms of these operations. Each engine brings its own kind of quantity:
arrays of draws (Monte Carlo), linear forms with mean and variance (moments), intervals (bounds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from errcomp.propagation.terms import Floats

__all__ = ["Algebra"]

T = TypeVar("T")


class Algebra(Protocol[T]):
    """Operations on uncertain times."""

    def leaf(self, name: str) -> T:
        """Return the quantity of this name; it has one value in the whole graph.

        A graph asks once and may use what it got several times, as in α + 3 α: all of its error,
        also what is its own, is then the same. Instances of kernels come from ``repeated``.
        """
        ...

    def repeated(self, name: str, count: int) -> T:
        """Return the sum of ``count`` instances of one term: what is its own is drawn anew."""
        ...

    def constant(self, value: float) -> T:
        """Return a time that is certain."""
        ...

    def total(self, parts: Sequence[T]) -> T:
        """Return the sum."""
        ...

    def scaled(self, x: T, factor: float) -> T:
        """Return x times a certain number."""
        ...

    def maximum(self, parts: Sequence[T]) -> T:
        """Return the larger; parts may share causes."""
        ...

    def product(self, x: T, y: T) -> T:
        """Return x times y, both uncertain."""
        ...

    def apply(self, x: T, function: Callable[[Floats], Floats]) -> T:
        """Return an increasing function of x; it works on arrays and may return infinity."""
        ...
