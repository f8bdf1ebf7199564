"""Longest paths of drawn graphs: NetworkX, a draw at a time."""

import networkx as nx
import numpy as np

PACKAGES = ("networkx", "numpy")


def of_networkx(nodes, edges, value, spread, draws):
    graph = nx.DiGraph()
    graph.add_edges_from(map(tuple, edges))
    graph.add_edges_from([(nodes, n) for n in range(nodes) if not graph.pred.get(n)])
    value, spread = np.array(value), np.array(spread)

    def work():
        rng, totals = np.random.default_rng(0), []
        for _ in range(draws):
            times = (value * np.exp(spread * rng.standard_normal(nodes))).tolist()
            # The length of a path is that of its edges: the time of a node is on those that enter
            # it, and one edge enters each node without any.
            for _, after, data in graph.edges(data=True):
                data["weight"] = times[after]
            totals.append(nx.dag_longest_path_length(graph))
        return [float(np.mean(totals)), float(np.std(totals, ddof=1))]

    return work
