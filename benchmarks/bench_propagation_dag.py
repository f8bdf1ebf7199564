"""How long a simulated execution graph takes, and how much memory: 1,002 and 100,000 nodes.

Run: python benchmarks/bench_propagation_dag.py [--quick] [-o FOLDER]

Layers of nodes, each of which waits for one to three nodes of the layer before, with errors that
are independent or alike within classes. The graph is built before the clock starts. Every graph of
100,000 nodes is a process of its own, so that its peak memory (resident, with Python and the
libraries) is its own. Peers: NumPy, a node at a time with all draws of it; NetworkX, a draw at a
time, so few draws on both sides.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import asking
import environments
import joblib
import numpy as np
from memory import peak_gib

from errcomp.propagation.graph.dag import Dag
from errcomp.propagation.montecarlo import simulate
from errcomp.propagation.terms import Level, Terms

DRAWS, FEW = 10_000, 512
SMALL, LARGE = 1_002, 100_000


def terms(n: int, errors: str) -> Terms:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 10, n)
    levels = () if errors == "independent" else (Level("class", codes, 0.5),)
    return Terms(
        ids=np.array([f"k{i}" for i in range(n)]),
        classes=codes.astype(str),
        value=rng.lognormal(size=n),
        count=np.ones(n, np.int64),
        bias=np.zeros(n),
        spread=rng.uniform(0.1, 0.3, n),
        levels=levels,
    )


def waits(n: int, shape: str = "random") -> list[list[int]]:
    """Return for each node those of the layer before that it waits for.

    In a chain: the one in its own place and the one in the next.
    """
    rng, width = np.random.default_rng(2), 32 if n < 10_000 else 512
    found: list[list[int]] = [[] for _ in range(min(n, width))]
    for i in range(width, n):
        first = (i // width - 1) * width
        if shape == "chain":
            place = i % width
            found.append([first + place, first + (place + 1) % width])
            continue
        found.append(sorted((first + rng.choice(width, rng.integers(1, 4), False)).tolist()))
    return found


def graph(before: list[list[int]]) -> Dag:
    edges = [(f"n{j}", f"n{i}") for i, nodes in enumerate(before) for j in nodes]
    return Dag({f"n{i}": f"k{i}" for i in range(len(before))}, edges)


def ours(n: int, errors: str, draws: int = DRAWS) -> Callable[[], list[float]]:
    dag, kernels = graph(waits(n)), terms(n, errors)
    simulate(kernels, dag.evaluate, draws=512)

    def work() -> list[float]:
        found = simulate(kernels, dag.evaluate, draws=draws)
        return [found.mean, found.sd]

    return work


def by_hand(n: int, errors: str, draws: int = DRAWS) -> Callable[[], list[float]]:
    """All draws of one node after the other, in blocks of draws."""
    before, kernels = waits(n), terms(n, errors)
    own = 1.0 if errors == "independent" else 0.5**0.5
    value, spread, code = kernels.value, kernels.spread, kernels.classes.astype(int)

    def block(rng: np.random.Generator, size: int) -> np.ndarray:
        common = (1 - own**2) ** 0.5 * rng.standard_normal((10, size))
        ends: list[np.ndarray] = []
        for i, nodes in enumerate(before):
            log = spread[i] * (own * rng.standard_normal(size) + common[code[i]])
            end = value[i] * np.exp(log)
            if nodes:
                end += functools.reduce(np.maximum, (ends[j] for j in nodes))
            ends.append(end)
        return np.maximum.reduce(ends)

    def work() -> list[float]:
        rng = np.random.default_rng(0)
        totals = np.concatenate([block(rng, min(500, draws - s)) for s in range(0, draws, 500)])
        return [float(totals.mean()), float(totals.std(ddof=1))]

    return work


def large(nodes: int, errors: str, threads: int, runs: int) -> dict[str, Any]:
    """Run one large graph in a process of its own: seconds of each run, and peak GiB."""
    command = [sys.executable, __file__, "case", str(nodes), errors, str(threads), str(runs)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command))
    return found


def case(nodes: int, errors: str, threads: int, runs: int) -> dict[str, Any]:
    work, seconds = ours(nodes, errors), []
    with joblib.parallel_config("threading", n_jobs=threads):
        for _ in range(runs):
            begun = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - begun)
    return {"seconds": seconds, "peak_gib": peak_gib()}


def measure(question: asking.Question) -> None:
    question.uses("numpy", "scipy")
    for errors in ("independent", "classes"):
        alike = "independent" if errors == "independent" else "fully correlated within classes"
        found = question.against(
            f"10,000 draws, errors {alike}",
            SMALL,
            "nodes",
            ours(SMALL, errors),
            why="The same graph, law and number of draws; results differ by random noise.",
            NumPy_by_hand=by_hand(SMALL, errors),
        )
        seconds = found["NumPy by hand"]["ours_slowest"]
        question.target(f"{SMALL:,} nodes, 10,000 draws, {alike}", seconds, 0.1, "s")
    chain, kernels = graph(waits(SMALL, "chain")), terms(SMALL, "classes")
    seconds = question.alone(lambda: simulate(kernels, chain.evaluate, draws=DRAWS).mean)
    question.note("a chain of layers, errors fully correlated within classes", 1000 * seconds, "ms")
    before, kernels = waits(SMALL), terms(SMALL, "independent")
    edges = [(j, i) for i, nodes in enumerate(before) for j in nodes]
    networkx = environments.Peer(
        "dags",
        "of_networkx",
        nodes=SMALL,
        edges=edges,
        value=kernels.value.tolist(),
        spread=kernels.spread.tolist(),
        draws=FEW,
    )
    question.against(
        f"{FEW} draws, errors independent",
        SMALL,
        "nodes",
        ours(SMALL, "independent", FEW),
        why="The same graph, law and number of draws; NetworkX takes one draw at a time.",
        NetworkX=networkx,
    )
    sizes = [100, 1_000] if question.quick else [100, 1_000, 10_000]
    seconds = {n: question.alone(ours(n, "classes")) for n in sizes}
    largest = 10_000 if question.quick else LARGE
    runs = 1 if question.quick else 5
    for errors in ("independent", "classes"):
        found = large(largest, errors, 1, runs)
        question.target(
            f"memory of {largest:,} nodes, 10,000 draws, {errors}", found["peak_gib"], 2, "GiB"
        )
        if errors == "classes":
            question.note(f"{largest:,} nodes, one thread, slowest", max(found["seconds"]), "s")
            seconds[largest] = float(np.median(found["seconds"]))
    both = large(largest, "classes", 2, runs)["seconds"]
    question.target(f"{largest:,} nodes, 10,000 draws, classes, two threads", max(both), 6, "s")
    question.keep_growth("10,000 draws, errors fully correlated within classes", "nodes", seconds)
    question.target("slope by number of nodes", question.growth[-1]["fit"]["slope"], 1.05, "")


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        nodes, errors, threads, runs = sys.argv[2:]
        print(json.dumps(case(int(nodes), errors, int(threads), int(runs))))
    else:
        asking.ask(
            "dag",
            "Execution graph",
            "The time of an execution graph whose nodes have uncertain times, by simulation.",
            measure,
        )
