"""How long mean and spread of a sum take, beside NumPy and other libraries.

Run: python benchmarks/bench_propagation_sum.py [--quick] [-o FOLDER]

Terms with a covariance matrix, terms that are alike within classes, a million rows, and a Monte
Carlo of a sum with one common factor beside the same in plain NumPy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import asking
import environments
import numpy as np

from errcomp.propagation.graph.canonical import Canonical, MomentsAlgebra, graph_moments
from errcomp.propagation.montecarlo import simulate
from errcomp.propagation.sums import error_budget, total_from_covariance, total_moments
from errcomp.propagation.terms import Level, Terms

MATRIX, BLOCKS, DRAWS = 1_000, 10_000, 10_000


def covariance(n: int) -> tuple[np.ndarray, np.ndarray]:
    a = np.random.default_rng(1).normal(size=(n, n))
    s = a @ a.T / n
    return np.random.default_rng(2).uniform(1, 2, n), (s + s.T) / 2


def block_terms(n: int) -> Terms:
    """Return terms of 20 classes; half of the variance of a term is its class's."""
    rng = np.random.default_rng(3)
    value, code = rng.uniform(1, 2, n), rng.integers(0, 20, n)
    names = np.array([f"t{i}" for i in range(n)])
    return Terms(
        ids=names,
        classes=names,
        value=value,
        count=np.ones(n, np.int64),
        bias=np.zeros(n),
        spread=np.full(n, 0.2),
        levels=(Level("class", code, 0.5),),
        kind="relative",
    )


def nested_terms(n: int, spreads: str = "per class") -> Terms:
    """Return log-normal kernels in classes on devices; the spread is the class's or the row's."""
    rng = np.random.default_rng(3)
    device = rng.integers(0, 8, n)
    label = 20 * device + rng.integers(0, 20, n)
    kernel = 50 * label + rng.integers(0, 50, n)
    table = rng.uniform(0.05, 0.4, 160)
    shares = {"device": (device, 0.3), "class": (label, 0.2), "kernel": (kernel, 0.2)}
    return Terms(
        ids=np.arange(n).astype(str),
        classes=(label % 16).astype("U2"),
        value=rng.lognormal(size=n),
        count=rng.integers(1, 9, n),
        bias=rng.normal(0, 0.1, n),
        spread=table[label] if spreads == "per class" else rng.uniform(0.05, 0.4, n),
        levels=tuple(
            Level(name, np.unique(codes, return_inverse=True)[1], share)
            for name, (codes, share) in shares.items()
        ),
    )


def one_factor(n: int) -> Terms:
    """Return n kernels whose log errors have a common factor: half of their variance."""
    rng = np.random.default_rng(5)
    names = np.array([f"k{i}" for i in range(n)])
    return Terms(
        ids=names,
        classes=names,
        value=rng.lognormal(size=n),
        count=np.ones(n, np.int64),
        bias=np.zeros(n),
        spread=np.full(n, 0.3),
        levels=(Level("all", np.zeros(n, np.int64), 0.5),),
    )


def ours_one_factor(n: int, draws: int, method: str) -> Callable[[], list[float]]:
    terms = one_factor(n)

    def work() -> list[float]:
        found = simulate(terms, draws=draws, method=method)
        return [found.mean, found.sd]

    return work


def numpy_one_factor(n: int, draws: int) -> Callable[[], list[float]]:
    """Draw the same in plain NumPy, a block of draws at a time."""
    value = one_factor(n).value

    def work() -> list[float]:
        rng, totals = np.random.default_rng(0), np.empty(draws)
        half = 0.3 * 0.5**0.5
        for start in range(0, draws, 500):
            stop = min(start + 500, draws)
            common = rng.standard_normal((stop - start, 1))
            log = half * (common + rng.standard_normal((stop - start, n)))
            totals[start:stop] = np.exp(log) @ value
        return [totals.mean(), totals.std(ddof=1)]

    return work


def moments(terms: Terms) -> Callable[[], list[float]]:
    def work() -> list[float]:
        found = total_moments(terms)
        return [found.mean, found.sd]

    return work


def budget(n: int) -> Callable[[], object]:
    terms = nested_terms(n)
    return lambda: error_budget(terms)


def with_matrix() -> Terms:
    """Return 1,000 log-normal terms with a correlation matrix."""
    x, s = covariance(MATRIX)
    names, sd = np.array([f"t{i}" for i in range(MATRIX)]), np.sqrt(s.diagonal())
    return Terms(
        ids=names,
        classes=names,
        value=x,
        count=np.ones(MATRIX, np.int64),
        bias=np.zeros(MATRIX),
        spread=np.full(MATRIX, 0.2),
        matrix=s / np.outer(sd, sd),
    )


def layered() -> Callable[[], object]:
    """Return the moments of a graph: each node waits for three of the 13 in the layer before."""
    rng, width, layers = np.random.default_rng(4), 13, 77
    before = [
        rng.choice(width, 3, replace=False) + width * (layer - 1) if layer else []
        for layer in range(layers)
        for _ in range(width)
    ]
    terms = nested_terms(len(before))

    def evaluate(on: MomentsAlgebra) -> Canonical:
        ends: list[Canonical] = []
        for i, waits in enumerate(before):
            own, ready = on.leaf(str(i)), [ends[j] for j in waits]
            ends.append(on.total([on.maximum(ready), own]) if ready else own)
        return on.maximum(ends[-width:])

    return lambda: graph_moments(terms, evaluate)


def measure(question: asking.Question) -> None:
    question.uses("numpy", "scipy")
    x, s = covariance(MATRIX)
    ones = np.ones(MATRIX)

    def ours() -> list[float]:
        found = total_from_covariance(x, s)
        return [found.mean, found.sd]

    def peer(task: str, n: int) -> environments.Peer:
        return environments.Peer("sums", task, n=n)

    found = question.against(
        "sum with a covariance matrix",
        MATRIX,
        "terms",
        ours,
        why="Both return mean and standard deviation from the same vector and matrix; the other "
        "libraries convert these to their own types before the clock starts.",
        NumPy_by_hand=lambda: [float(x.sum()), float(np.sqrt(ones @ s @ ones))],
        uncertainties=peer("uncertainties_covariance", MATRIX),
        OpenTURNS=peer("openturns_covariance", MATRIX),
        punpy=peer("punpy_covariance", MATRIX),
        GTC=peer("gtc_covariance", MATRIX),
    )
    row = found["NumPy by hand"]
    question.target("sum with covariance of 1,000 terms", row["ours_slowest"], 0.01, "s")
    question.target("the same, against NumPy", row["ratio_worst"], 1.3, "times")
    question.against(
        "sum of terms with errors fully correlated within 20 classes",
        BLOCKS,
        "terms",
        # The others make their terms as they add them up: so does this.
        lambda: moments(block_terms(BLOCKS))(),
        why="Each makes its terms from the same numbers and adds them up.",
        uncertainties=peer("uncertainties_blocks", BLOCKS),
        GTC=peer("gtc_blocks", BLOCKS),
    )
    for method in ("sobol", "random"):
        found = question.against(
            f"Monte Carlo of a sum with one factor, 10,000 draws ({method})",
            1_000,
            "terms",
            ours_one_factor(1_000, DRAWS, method),
            why="The same distribution and number of draws; results differ by random noise.",
            NumPy_by_hand=numpy_one_factor(1_000, DRAWS),
        )
        ratio = found["NumPy by hand"]["ratio_worst"]
        question.target(f"one-factor Monte Carlo ({method}) against NumPy", ratio, 1.0, "times")
    few = nested_terms(500)
    few = dataclasses.replace(few, count=np.full(500, 2_000))
    for what, work in (
        ("1,000 log-normal terms with a correlation matrix", moments(with_matrix())),
        ("a million instances of 500 terms", moments(few)),
        ("moments of a graph of 1,001 nodes", layered()),
    ):
        question.note(what, 1000 * question.alone(work), "ms")
    sizes = [10**k for k in range(3, 6 if question.quick else 7)]
    for spreads in ("per class", "per row"):
        seconds = question.grows(
            f"mean and sd, errors shared at three levels, one spread {spreads}",
            "rows",
            lambda n, spreads=spreads: moments(nested_terms(n, spreads)),
            sizes,
        )
        if 10**6 in seconds and spreads == "per class":
            question.target("moments of a million rows", seconds[10**6], 0.05, "s")
    question.grows(
        "error budget by class",
        "rows",
        budget,
        sizes,
    )


if __name__ == "__main__":
    asking.ask(
        "sums",
        "Sum with covariance",
        "Mean and standard deviation of a sum of uncertain times that are correlated.",
        measure,
    )
