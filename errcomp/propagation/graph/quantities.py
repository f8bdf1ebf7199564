"""What a graph needs to be evaluated: its own uncertain quantities, added to the terms."""

from __future__ import annotations

import dataclasses

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.propagation.graph._fields import listed
from errcomp.propagation.graph._node import Node, walk
from errcomp.propagation.graph.nodes import Quantity
from errcomp.propagation.terms import EVERYTHING, Level, Terms

__all__ = ["attach", "quantities"]

#: Class of the quantities in the error budget.
QUANTITY_CLASS = "graph"


def quantities(graph: Node) -> tuple[Quantity, ...]:
    """Return the uncertain parameters of a graph, in order of first use.

    Those that nodes make for themselves are among them: inverse bandwidths, the jitter of ranks.

    Raises
    ------
    InputError
        Two different quantities have one name.

    Examples
    --------
    >>> from errcomp.propagation.graph import Collective
    >>> link = Quantity("link", 300e9, spread=0.1)
    >>> node = Collective("all-reduce", 8, 1e9, latency=Quantity("alpha", 5e-6), bandwidth=link)
    >>> [q.name for q in quantities(node)]
    ['alpha', 'link']
    """
    found: dict[str, Quantity] = {}
    for node in walk(graph):
        if isinstance(node, Quantity):
            first = found.setdefault(node.name, node)
            if first != node:
                raise InputError(
                    f"graph: two quantities are called {node.name!r}: {_brief(first)} and "
                    f"{_brief(node)}. Give one of them another name. (A bandwidth stands for its "
                    "inverse.)"
                )
    return tuple(found.values())


def _brief(quantity: Quantity) -> str:
    return (
        f"value {quantity.value:g}, spread {quantity.spread:g}, bias {quantity.bias:g}, "
        f"{quantity.kind}"
    )


def attach(terms: Terms, graph: Node) -> Terms:
    """Return the terms with the quantities of the graph added.

    They are independent of all others, except where everything is taken to err alike (a level
    called ``"all"``, as under "comonotonic").

    What `Node.evaluate` needs: every name in the graph is then a term. Terms that the graph does
    not use stay. With Student t errors (``df``) the quantities have their tails too: they are
    uncorrelated with the terms, but are large when those are.

    Parameters
    ----------
    terms : Terms
        The kernels.
    graph : Node
        Its kernels must be among them.

    Returns
    -------
    Terms
        The terms given first, then one for each quantity, with the class ``"graph"`` and a group
        of its own at each level but ``"all"``.

    Raises
    ------
    InputError
        A kernel of the graph is not among the terms, a quantity has the name of a term, or a
        quantity has an error that is of another kind than that of the terms and cannot be expressed
        as such.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(1)
    >>> name, count = np.array(["gemm"]), np.ones(1, dtype=int)
    >>> terms = Terms(name, name, one, count, bias=0 * one, spread=0.1 * one)
    >>> from errcomp.propagation.graph import Kernel, Overlap
    >>> wire, slowdown = Quantity("wire", 0.5, 0.2), Quantity("contention", 0.3, 0.1)
    >>> graph = Overlap(Kernel("gemm"), wire, slowdown)
    >>> attach(terms, graph).ids.tolist()
    ['gemm', 'wire', 'contention']
    """
    added = [quantity.expressed(terms.kind) for quantity in quantities(graph)]
    names = [quantity.name for quantity in added]
    ids = [str(i) for i in terms.ids]
    known = set(ids)
    if taken := [name for name in names if name in known]:
        raise InputError(
            f"graph: {listed(taken)} is the name of a quantity and of a kernel. Rename the "
            "quantity."
        )
    unknown = [leaf for leaf in graph.leaves() if leaf not in known and leaf not in set(names)]
    if unknown:
        raise InputError(
            f"graph: no kernel or quantity is called {listed(unknown)}. Kernels: "
            f"{describe_names(ids, wanted=unknown[0])}."
        )
    if not added:
        return terms
    k, matrix = len(added), terms.matrix
    if matrix is not None:
        matrix = np.pad(matrix, (0, k))
        np.fill_diagonal(matrix, 1.0)
    return dataclasses.replace(
        terms,
        ids=np.concatenate([terms.ids, np.array(names)]),
        classes=np.concatenate([terms.classes, np.full(k, QUANTITY_CLASS)]),
        value=np.append(terms.value, [q.value for q in added]),
        count=np.append(terms.count, np.ones(k, dtype=np.int64)),
        bias=np.append(terms.bias, [q.bias for q in added]),
        spread=np.append(terms.spread, [q.spread for q in added]),
        levels=tuple(_extended(level, k) for level in terms.levels),
        matrix=matrix,
    )


def _extended(level: Level, k: int) -> Level:
    """Put each of k quantities into a group of its own, or into the one of all."""
    first = int(level.codes.max(initial=-1)) + 1
    added = np.arange(first, first + k) if level.name != EVERYTHING else np.zeros(k, np.int64)
    return Level(level.name, np.append(level.codes, added), level.share)
