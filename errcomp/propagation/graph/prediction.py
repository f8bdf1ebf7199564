"""A prediction with its error, as one layer hands it to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from errcomp.propagation.graph._node import Node
from errcomp.propagation.graph.nodes import Quantity
from errcomp.propagation.terms import Terms

__all__ = ["LAYERS", "Input", "Layer", "Prediction", "Provenance"]

#: Where in the stack a prediction stands, lowest first.
Layer = Literal["hardware", "kernel", "model", "system", "service"]
#: All layers, lowest first.
LAYERS: tuple[Layer, ...] = get_args(Layer)


@dataclass(frozen=True, slots=True)
class Input:
    """A file that a prediction was made from.

    Attributes
    ----------
    name : str
        How it is called, e.g. ``"trace.0.et"``.
    sha256 : str
        Digest of its bytes, 64 hexadecimal digits in lower case.
    """

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who predicted, when, and from what.

    Attributes
    ----------
    tool, tool_version : str
        Predictor or program, e.g. ``"neusight"``, ``"1.0"``.
    created : str
        ISO 8601 date, or date and time.
    inputs : tuple of Input
        Files with their digests; Chakra node ids refer to the traces among them.
    note : str
        What a reader should know.
    """

    tool: str
    tool_version: str
    created: str
    inputs: tuple[Input, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A predicted time with its error, as it is handed on.

    Attributes
    ----------
    name : str
        What is predicted; the id of its term where it becomes a leaf of the next layer.
    unit : str
        Unit of the terms and of the graph.
    level : {"hardware", "kernel", "model", "system", "service"}
        Layer whose figures these are.
    terms : Terms
        The figures with their errors, without the graph's own quantities (`attach` adds them).
    provenance : Provenance
        Where they come from.
    graph : Node or None
        How they make up the whole; None: they are figures to build on.
    """

    name: str
    unit: str
    level: Layer
    terms: Terms
    provenance: Provenance
    graph: Node | None = None

    @classmethod
    def single(
        cls,
        quantity: Quantity,
        *,
        unit: str,
        level: Layer,
        provenance: Provenance,
        df: float = float("inf"),
    ) -> Prediction:
        """Make the prediction of one figure: the result of one layer as a leaf of the next.

        Examples
        --------
        >>> iteration = Quantity("iteration", 412.0, spread=0.06)
        >>> made = Provenance("errcomp", "0.1.0", "2025-01-31")
        >>> p = Prediction.single(iteration, unit="ms", level="model", provenance=made)
        >>> p.name, p.terms.spread
        ('iteration', array([0.06]))
        """
        terms = Terms(
            ids=np.array([quantity.name]),
            classes=np.array([level]),
            value=np.array([quantity.value]),
            count=np.ones(1, dtype=np.int64),
            bias=np.array([quantity.bias]),
            spread=np.array([quantity.spread]),
            kind=quantity.kind,
            df=df,
            unit=unit,
        )
        return cls(quantity.name, unit, level, terms, provenance)
