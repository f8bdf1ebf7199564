"""Execution graphs: how the times of kernels become the time of the whole."""

from errcomp.propagation.graph._node import Algebra, Node, read_node, walk
from errcomp.propagation.graph.dag import Dag, Sampling
from errcomp.propagation.graph.document import (
    LAYERS,
    Input,
    Layer,
    Prediction,
    Provenance,
    read_document,
    read_graph,
    schema,
    to_document,
    write_document,
)
from errcomp.propagation.graph.nodes import (
    Constant,
    Kernel,
    Quantity,
    Repeat,
    Scaled,
    Serial,
    attach,
    quantities,
    time_at,
)
from errcomp.propagation.graph.parallelism import Collective, Overlap, Parallel, Pipeline, Replicas
from errcomp.propagation.graph.queueing import Queue

__all__ = [
    "LAYERS",
    "Algebra",
    "Collective",
    "Constant",
    "Dag",
    "Input",
    "Kernel",
    "Layer",
    "Node",
    "Overlap",
    "Parallel",
    "Pipeline",
    "Prediction",
    "Provenance",
    "Quantity",
    "Queue",
    "Repeat",
    "Replicas",
    "Sampling",
    "Scaled",
    "Serial",
    "attach",
    "quantities",
    "read_document",
    "read_graph",
    "read_node",
    "schema",
    "time_at",
    "to_document",
    "walk",
    "write_document",
]
