"""How long the moments of a sum take, beside NumPy and other libraries.

Run: python benchmarks/bench_propagation_sum.py [--runs N] [--peers PYTHON]. Prints JSON. Targets: a
sum of 1,000 terms with their full covariance in at most 10 ms and twice NumPy's sqrt(1' S 1), both
timed in turn in one run; 10^6 rows with block correlation in at most 50 ms. Seconds are the least
over the runs, by the clock and of CPU, one thread. PYTHON is an interpreter in which uncertainties,
GTC, punpy and OpenTURNS are installed, or some of them: each does the same tasks in a process of
its own, and one that is missing or fails is said to be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Callable

# Before NumPy is loaded: one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from errcomp.propagation.canonical import Canonical, MomentsAlgebra, graph_moments
from errcomp.propagation.maxima import maximum_of_two
from errcomp.propagation.sums import error_budget, total_from_covariance, total_moments
from errcomp.propagation.terms import Level, Terms

MATRIX, BLOCKS, ROWS, NODES = 1_000, 10_000, 10**6, 1_002

#: What every peer begins with: the same covariance as here, and a clock.
_PEER_START = f"""
import json, time, warnings
warnings.simplefilter("ignore")
import numpy as np
a = np.random.default_rng(1).normal(size=({MATRIX}, {MATRIX}))
S, x = a @ a.T / {MATRIX}, np.random.default_rng(2).uniform(1, 2, {MATRIX})
rows = []
def task(name, work):
    begun = time.perf_counter()
    mean, sd = work()
    seconds = time.perf_counter() - begun
    rows.append({{"task": name, "seconds": seconds, "mean": float(mean), "sd": float(sd)}})
"""
_PEER_BLOCKS = f"""
def blocks(one):
    rng = np.random.default_rng(3)
    value, code = rng.uniform(1, 2, {BLOCKS}), rng.integers(0, 20, {BLOCKS})
    shared = [one(0.0, 1.0) for _ in range(20)]
    out = 0.0
    for v, c in zip(value.tolist(), code.tolist()):
        out = out + v * (1 + 0.2 * (0.5**0.5 * shared[c] + 0.5**0.5 * one(0.0, 1.0)))
    return out
"""
PEERS = {
    "uncertainties": """
from uncertainties import __version__ as version, correlated_values, ufloat
def both(y):
    return y.nominal_value, y.std_dev
task("covariance", lambda: both(sum(correlated_values(x, S))))
task("blocks", lambda: both(blocks(ufloat)))
task("maximum", lambda: both(max(ufloat(10, 1), ufloat(10, 1))))
""",
    "GTC": """
from GTC import set_correlation, uncertainty, ureal, value, version
sd = np.sqrt(S.diagonal())
def covariance():
    q = [ureal(m, s, independent=False) for m, s in zip(x.tolist(), sd.tolist())]
    for i in range(len(q)):
        for j in range(i):
            set_correlation(S[i, j] / sd[i] / sd[j], q[i], q[j])
    y = sum(q)
    return value(y), uncertainty(y)
def maximum():
    y = max(ureal(10, 1), ureal(10, 1), key=value)
    return value(y), uncertainty(y)
def chain():
    y = blocks(ureal)
    return value(y), uncertainty(y)
task("maximum", maximum)
task("blocks", chain)
task("covariance", covariance)
""",
    "punpy": """
import punpy
version = getattr(punpy, "__version__", "unknown")
def first_order():
    prop = punpy.LPUPropagation()
    total = lambda v: np.array([v.sum()])
    return x.sum(), np.ravel(prop.propagate_cov(total, [x], [S], return_corr=False))[0]
def simulated():
    prop = punpy.MCPropagation(10_000)
    largest = lambda a, b: np.maximum(a, b)
    ten, one = np.array([10.0]), np.array([1.0])
    u = prop.propagate_random(largest, [ten, ten], [one, one])
    return 10.0, np.ravel(u)[0]
task("covariance", first_order)
task("maximum", simulated)
""",
    "OpenTURNS": """
import openturns as ot
version = ot.__version__
def moments(function, distribution):
    y = ot.CompositeRandomVector(function, ot.RandomVector(distribution))
    taylor = ot.TaylorExpansionMoments(y)
    return taylor.getMeanFirstOrder()[0], taylor.getCovariance()[0, 0] ** 0.5
def covariance():
    n = len(x)
    total = ot.LinearFunction([0.0] * n, [0.0], ot.Matrix(np.ones((1, n)).tolist()))
    return moments(total, ot.Normal(ot.Point(x), ot.CovarianceMatrix(S.tolist())))
def maximum():
    largest = ot.SymbolicFunction(["a", "b"], ["max(a, b)"])
    return moments(largest, ot.Normal([10.0, 10.0], [1.0, 1.0], ot.CorrelationMatrix(2)))
task("maximum", maximum)
task("covariance", covariance)
""",
}


def fastest(runs: int, *works: Callable[[], object]) -> list[dict[str, float]]:
    """Least seconds of each by the clock and of CPU, taken in turn."""
    clocks: list[list[float]] = [[] for _ in works]
    cpus: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, clock, cpu in zip(works, clocks, cpus, strict=True):
            begun, busy = time.perf_counter(), time.process_time()
            work()
            clock.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - busy)
    return [
        {"seconds": min(clock), "cpu_seconds": min(cpu)}
        for clock, cpu in zip(clocks, cpus, strict=True)
    ]


def covariance_rows(runs: int) -> list[dict[str, object]]:
    a = np.random.default_rng(1).normal(size=(MATRIX, MATRIX))
    s, x = a @ a.T / MATRIX, np.random.default_rng(2).uniform(1, 2, MATRIX)
    s, ones = (s + s.T) / 2, np.ones(MATRIX)
    total = total_from_covariance(x, s)
    ours, numpys = fastest(
        20 * runs, lambda: total_from_covariance(x, s), lambda: np.sqrt(ones @ s @ ones)
    )
    sd = np.sqrt(s.diagonal())
    names = np.array([f"t{i}" for i in range(MATRIX)])
    terms = Terms(
        ids=names,
        classes=names,
        value=x,
        count=np.ones(MATRIX, np.int64),
        bias=np.zeros(MATRIX),
        spread=0.2 * ones,
        matrix=s / np.outer(sd, sd),
    )
    (log_normal,) = fastest(runs, lambda: total_moments(terms))
    return [
        {
            "task": "covariance",
            "terms": MATRIX,
            **ours,
            "numpy_seconds": numpys["seconds"],
            "ratio": ours["seconds"] / numpys["seconds"],
            "mean": total.mean,
            "sd": total.sd,
        },
        {"task": "log-normal terms with a correlation matrix", **log_normal},
    ]


def block_terms(n: int, groups: tuple[int, ...], spreads: str, **more: object) -> Terms:
    """Rows in nested groups; the spread depends on the class, on few values, or on the row."""
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, groups[0], n)]
    for fan in groups[1:]:
        codes.append(np.unique(codes[-1] * fan + rng.integers(0, fan, n), return_inverse=True)[1])
    table = rng.uniform(0.05, 0.4, 64)
    spread = {
        "of the class": table[codes[min(1, len(codes) - 1)] % 64],
        "one of 8": rng.choice(table[:8], n),
        "of the row": rng.uniform(0.05, 0.4, n),
    }[spreads]
    names = np.arange(n).astype(str)
    return Terms(
        ids=names,
        classes=(codes[min(1, len(codes) - 1)] % 16).astype("U2"),
        value=rng.lognormal(size=n),
        count=rng.integers(1, 9, n),
        bias=rng.normal(0, 0.1, n),
        spread=spread,
        levels=tuple(
            Level(f"l{i}", c.astype(np.int64), share)
            for i, (c, share) in enumerate(zip(codes, (0.3, 0.2, 0.2), strict=False))
        ),
        **more,
    )


def estimated(runs: int) -> dict[str, object]:
    """Time one run of a million kernel instances under the five levels that are estimated."""
    rng = np.random.default_rng(4)
    label = rng.integers(0, 20, ROWS)
    kernel = 80 * label + rng.integers(0, 80, ROWS)
    device, row = np.zeros(ROWS, dtype=np.int64), np.arange(ROWS)
    shares = {"device": (device, 0.05), "class": (label, 0.2), "run": (label, 0.3)}
    shares |= {"kernel": (kernel, 0.3), "row": (row, 0.15)}
    terms = Terms(
        ids=row.astype(str),
        classes=label.astype("U2"),
        value=rng.lognormal(size=ROWS),
        count=np.ones(ROWS, dtype=np.int64),
        bias=np.zeros(ROWS),
        spread=rng.uniform(0.05, 0.4, 20)[label],
        levels=tuple(Level(name, codes, share) for name, (codes, share) in shares.items()),
    )
    (seconds,) = fastest(runs, lambda: total_moments(terms))
    return seconds


def million_rows(runs: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for levels, groups in (
        ("device > class > kernel", (8, 20, 1000)),
        ("device > class", (8, 20)),
        ("device", (8,)),
    ):
        for spreads in ("of the class", "one of 8", "of the row"):
            terms = block_terms(ROWS, groups, spreads)
            (seconds,) = fastest(runs, lambda terms=terms: total_moments(terms))
            rows.append(
                {
                    "task": "million rows",
                    "levels": levels,
                    "groups": [int(level.codes.max()) + 1 for level in terms.levels],
                    "spreads": spreads,
                    **seconds,
                }
            )
    rows.append({"task": "million rows as estimated", **estimated(runs)})
    terms = block_terms(ROWS, (8, 20, 1000), "of the class")
    (budget,) = fastest(2, lambda: error_budget(terms))
    rows.append({"task": "budget by class of a million rows", **budget})
    few = block_terms(500, (8, 20), "of the class")
    few = Terms(
        few.ids, few.classes, few.value, few.count * 0 + 2000, few.bias, few.spread, few.levels
    )
    (seconds,) = fastest(20 * runs, lambda: total_moments(few))
    rows.append({"task": "million instances of 500 terms", **seconds})
    return rows


def same_as_peers(runs: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(3)
    value, code = rng.uniform(1, 2, BLOCKS), rng.integers(0, 20, BLOCKS)
    names = np.array([f"t{i}" for i in range(BLOCKS)])
    terms = Terms(
        ids=names,
        classes=names,
        value=value,
        count=np.ones(BLOCKS, np.int64),
        bias=np.zeros(BLOCKS),
        spread=np.full(BLOCKS, 0.2),
        levels=(Level("class", code, 0.5),),
        kind="relative",
    )
    blocks, larger = fastest(
        5 * runs, lambda: total_moments(terms), lambda: maximum_of_two(10, 1, 10, 1)
    )
    total, most = total_moments(terms), maximum_of_two(10, 1, 10, 1)
    return [
        {"task": "blocks", **blocks, "mean": total.mean, "sd": total.sd},
        {"task": "maximum", **larger, "mean": most.mean, "sd": most.sd},
    ]


def graph_row(runs: int) -> dict[str, object]:
    """Time a layered graph in which each node waits for three of the layer before."""
    rng = np.random.default_rng(4)
    width = 13
    layers = NODES // width
    before = [
        rng.choice(width, 3, replace=False) + width * (layer - 1) if layer else []
        for layer in range(layers)
        for _ in range(width)
    ]
    terms = block_terms(len(before) + 1, (1, 10), "of the class")

    def evaluate(on: MomentsAlgebra) -> Canonical:
        ends: list[Canonical] = []
        for i, waits in enumerate(before):
            time = on.leaf(str(i))
            ready = [ends[j] for j in waits]
            ends.append(on.total([on.maximum(ready), time]) if ready else time)
        return on.total([on.maximum(ends[-width:]), on.leaf(str(len(before)))])

    (seconds,) = fastest(runs, lambda: graph_moments(terms, evaluate))
    return {"task": "graph", "nodes": len(before) + 1, "edges": 3 * len(before), **seconds}


def peer(python: str, name: str) -> dict[str, object]:
    script = _PEER_START + _PEER_BLOCKS + PEERS[name]
    script += 'print(json.dumps({"version": str(version), "rows": rows}))'
    try:
        done = subprocess.run(
            [python, "-c", script], capture_output=True, text=True, timeout=600, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"peer": name, "missing": str(error)}
    if done.returncode:
        return {"peer": name, "missing": done.stderr.strip().splitlines()[-1:]}
    return {"peer": name, **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peers")
    options = parser.parse_args()
    document = {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "numpy": np.__version__,
        "rows": [
            *covariance_rows(options.runs),
            *million_rows(options.runs),
            *same_as_peers(options.runs),
            graph_row(options.runs),
        ],
        "peers": [peer(options.peers, name) for name in PEERS]
        if options.peers
        else "not asked for",
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
