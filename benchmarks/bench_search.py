"""How long does the claim search take on the artifact's full lattice?

Run with ``python benchmarks/bench_search.py``; prints JSON. The machine should be idle: two threads
share the work, and seconds of CPU are given beside seconds by the clock.
"""

from __future__ import annotations

import json
import os
import resource
import time

import errcomp.datasets
from errcomp.claims.search import search_claim

QUESTIONS = {
    "one figure": {"neusight": "2.3%"},
    "one figure amid the data": {"neusight": "8.9%"},
    "three figures": {"neusight": "2.3%", "habitat": "121.4%", "micro": "30.8%"},
}
REPEATS = 3


def main() -> None:
    pairs = errcomp.datasets.load("neusight")
    rows = []
    for name, figures in QUESTIONS.items():
        clocks, cpus = [], []
        for _ in range(REPEATS):
            clock, cpu = time.perf_counter(), time.process_time()
            result = search_claim(pairs, figures)
            clocks.append(time.perf_counter() - clock)
            cpus.append(time.process_time() - cpu)
        rows.append(
            {
                "question": name,
                "figures": figures,
                "subsets": result.searched["subsets"],
                "combinations": result.searched["combinations"],
                "complete": result.searched["complete"],
                "seconds": round(min(clocks), 2),
                "cpu_seconds": round(min(cpus), 2),
                "simplest": str(result.matches[0]),
                "expected_by_chance": result.matches[0].expected_by_chance,
            }
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    document = {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "memory_mib": memory,
        "rows": rows,
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
