"""A graph evaluated at given times: what-if, and a check of a graph on measured kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError, describe_names
from errcomp.propagation.graph._fields import listed
from errcomp.propagation.graph._node import Node
from errcomp.propagation.graph.nodes import Quantity
from errcomp.propagation.graph.quantities import quantities
from errcomp.propagation.terms import Floats

__all__ = ["time_at"]


@dataclass(frozen=True)
class _Fixed:
    """Algebra of times that are known; arrays of one shape, one element per case."""

    times: Mapping[str, Floats]
    shape: tuple[int, ...]

    def leaf(self, name: str) -> Floats:
        return self.times[name]

    def repeated(self, name: str, count: int) -> Floats:
        return self.times[name] * float(count)

    def constant(self, value: float) -> Floats:
        return np.full(self.shape, value)

    def total(self, parts: Sequence[Floats]) -> Floats:
        return np.asarray(np.sum(parts, axis=0))

    def scaled(self, x: Floats, factor: float) -> Floats:
        return x * factor

    def maximum(self, parts: Sequence[Floats]) -> Floats:
        return np.asarray(np.max(parts, axis=0))

    def product(self, x: Floats, y: Floats) -> Floats:
        return x * y

    def apply(self, x: Floats, function: Callable[[Floats], Floats]) -> Floats:
        return function(x)


def time_at(graph: Node, times: Mapping[str, ArrayLike] | None = None) -> Floats:
    r"""Time of the graph when every kernel takes exactly the time given.

    With measured kernel times it shows the error of the graph itself, apart from that of the
    kernels. It is not the mean of the prediction: the mean of a maximum is more than the maximum of
    the means.

    Parameters
    ----------
    graph : Node
        An execution graph.
    times : mapping of str to array_like
        Time of one instance of each kernel; a number, or arrays of one shape for several cases.
        Quantities may be given too; the others have their median :math:`v e^b` (or
        :math:`v (1 + b)`, :math:`v + b`).

    Returns
    -------
    ndarray
        Shape of the times given, () for numbers.

    Raises
    ------
    InputError
        A kernel is missing, or times have different shapes or are not finite.

    Examples
    --------
    >>> from errcomp.propagation.graph import Kernel, Parallel, Serial
    >>> graph = Serial([Kernel("a", 2), Parallel([Kernel("b"), Kernel("c")])])
    >>> time_at(graph, {"a": 1.0, "b": [1.0, 5.0], "c": 3.0})
    array([5., 7.])
    """
    known: dict[str, ArrayLike] = {q.name: _median(q) for q in quantities(graph)}
    known.update(times or {})
    if lost := [leaf for leaf in graph.leaves() if leaf not in known]:
        raise InputError(
            f"times: none for {listed(lost)}. Given: {describe_names(list(known), wanted=lost[0])}."
        )
    names = list(graph.leaves())
    try:
        arrays = [np.asarray(known[leaf], dtype=float) for leaf in names]
        rows = np.broadcast_arrays(np.zeros(()), *arrays)
    except (TypeError, ValueError) as error:
        raise InputError(f"times: must be numbers or arrays of one shape ({error})") from error
    for leaf, row in zip(names, rows[1:], strict=True):
        wrong = row[~np.isfinite(row)].ravel()
        if len(wrong):
            raise InputError(f"times: {leaf!r} must be finite, got {float(wrong[0])}")
    engine = _Fixed(dict(zip(names, rows[1:], strict=True)), rows[0].shape)
    return np.asarray(graph.evaluate(engine))


def _median(quantity: Quantity) -> float:
    value, bias = quantity.value, quantity.bias
    if quantity.kind == "log-ratio":
        return value * math.exp(bias)
    return value * (1 + bias) if quantity.kind == "relative" else value + bias
