"""How long hierarchical fits take: of kernels (restricted likelihood) and of runs (Bayesian).

Run: python benchmarks/bench_hierarchical.py [--quick] [-o FOLDER]

Kernels: the built-in table, effects of classes on devices; no peer fits this model. Runs: 4 chains
with 1,000 draws of tuning, two at a time, on the same made-up runs, in a process that has just
begun (its imports are not timed) and in one that has fitted before; the peer is Bambi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asking
import environments
import numpy as np

import errcomp as ec
from errcomp.calibration.kernels import KernelCorrection
from errcomp.tables import Kernels

RUNS = 87


def made(classes: int) -> Kernels:
    """Return 20 kernels of each class on each of 6 devices."""
    rng = np.random.default_rng(1)
    kind, device, copy = (a.ravel() for a in np.indices((classes, 6, 20)))
    effect = 0.2 * rng.standard_normal(classes)[kind] + 0.1 * rng.standard_normal(6)[device]
    predicted = rng.lognormal(size=len(kind))
    return Kernels(
        {
            "run": [f"r{i % 4}" for i in copy],
            "kernel": [f"k{i}" for i in copy],
            "kernel_class": [f"c{i}" for i in kind],
            "device": [f"d{i}" for i in device],
            "predicted": predicted,
            "measured": predicted * np.exp(effect + 0.05 * rng.standard_normal(len(kind))),
        },
        unit="ms",
    )


def runs() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    device, model = rng.integers(0, 8, RUNS), rng.integers(0, 6, RUNS)
    x = rng.standard_normal((RUNS, 2))
    shift = 0.1 * rng.standard_normal(8)[device] + 0.05 * rng.standard_normal(6)[model]
    y = 0.05 + 0.03 * x[:, 0] + shift + 0.03 * rng.standard_t(4, RUNS)
    names = {"device": [f"d{i}" for i in device], "model": [f"m{i}" for i in model]}
    return {"x": x.tolist(), "y": y.tolist(), **names}


def measure(question: asking.Question) -> None:
    question.uses("numpy", "pymc", "nutpie")
    table = ec.datasets.load("neusight-kernels")
    question.takes(
        "effects of kernel classes and devices",
        len(table),
        "kernels",
        lambda: KernelCorrection().fit(table) and None,
    )
    data, draws = runs(), 200 if question.quick else 1_000
    samplers = ("nutpie",) if question.quick else ("pymc", "nutpie")
    for fresh, which in ((True, "first of a process"), (False, "further")):

        def peer(name: str, fresh: bool = fresh, **more: Any) -> environments.Peer:
            return environments.Peer(name, "hierarchical", fresh=fresh, **data, draws=draws, **more)

        question.against(
            f"Bayesian fit, {which}, {draws:,} draws per chain",
            RUNS,
            "runs",
            peer("bayesian"),
            same=False,
            why="The same runs, effects, law of errors, chains and draws, and both compile in the "
            "first fit of a process; Bambi does so again in each further fit, errcomp does not. "
            "Bambi runs with PyMC 6 on Python 3.13, errcomp with PyMC 5 on Python 3.11.",
            **{f"Bambi, sampled by {one}": peer("bambi", sampler=one) for one in samplers},
        )
    sizes = [5, 10, 20] if question.quick else [5, 10, 20, 40, 80]

    def fit(n: int) -> Callable[[], object]:
        table = made(n // 120)
        return lambda: KernelCorrection().fit(table)

    question.grows("effects of kernel classes", "kernels", fit, [120 * n for n in sizes])


if __name__ == "__main__":
    asking.ask(
        "hierarchical",
        "Hierarchical fit",
        "Errors of kernels and of runs, pooled over classes, devices and models.",
        measure,
    )
