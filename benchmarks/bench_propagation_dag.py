"""How long a simulated execution graph takes, and how much memory: 1,002 and 100,000 nodes.

Run: python benchmarks/bench_propagation_dag.py [RUNS]. Prints JSON. Targets: 1,002 nodes x 10^4
draws in at most 0.1 s (sampling and evaluation, one thread, minimum over RUNS), 10^5 nodes x 10^4
draws in at most 2 GiB. Seconds of CPU are given beside those by the clock. Every case is a process
of its own, so that its peak memory (resident, with Python and the libraries) is its own; the graph
is built before the clock starts.

random: layers of nodes, each of which waits for one to three nodes of the layer before.
chain: layers in which every node waits for the same and the next place of the layer before.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

# Before NumPy is loaded: one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from errcomp.propagation.graph.dag import Dag
from errcomp.propagation.montecarlo import simulate
from errcomp.propagation.terms import Level, Terms

DRAWS = 10_000
CASES = [
    (shape, errors, nodes)
    for nodes in (1_002, 100_000)
    for shape in ("random", "chain")
    for errors in ("independent", "classes")
]


def terms(n: int, errors: str, rng: np.random.Generator) -> Terms:
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


def graph(shape: str, n: int, rng: np.random.Generator) -> Dag:
    width = 32 if n < 10_000 else 512
    layer = np.arange(n) // width
    edges = set()
    for i in range(width, n):
        first = (layer[i] - 1) * width
        if shape == "chain":
            place = i - layer[i] * width
            before = [first + place, first + (place + 1) % width]
        else:
            before = (first + rng.choice(width, rng.integers(1, 4), replace=False)).tolist()
        edges.update((f"n{j}", f"n{i}") for j in before)
    return Dag({f"n{i}": f"k{i}" for i in range(n)}, sorted(edges))


def case(shape: str, errors: str, nodes: int, runs: int) -> dict[str, object]:
    rng = np.random.default_rng(1)
    dag, kernels = graph(shape, nodes, rng), terms(nodes, errors, rng)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    simulate(kernels, dag.evaluate, draws=512)
    seconds, cpu = [], []
    for run in range(runs):
        begun, busy = time.perf_counter(), time.process_time()
        result = simulate(kernels, dag.evaluate, draws=DRAWS, seed=run)
        seconds.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - busy)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "graph": shape,
        "errors": errors,
        "nodes": nodes,
        "edges": len(dag.edges),
        "draws": len(result),
        "seconds": round(min(seconds), 4),
        "cpu_seconds": round(min(cpu), 4),
        "median_seconds": round(sorted(seconds)[runs // 2], 4),
        "peak_mib": peak // 1024,
        "mib_before": before // 1024,
        "mean": result.mean,
        "sd": result.sd,
        "precision": result.precision,
    }


def main(runs: int) -> None:
    rows = []
    for shape, errors, nodes in CASES:
        often = runs if nodes < 10_000 else 1
        command = [sys.executable, __file__, shape, errors, str(nodes), str(often)]
        rows.append(json.loads(subprocess.check_output(command)))
    document = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "rows": rows}
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(case(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
