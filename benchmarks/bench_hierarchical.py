"""How long hierarchical fits take: of kernels (restricted likelihood) and of runs (Bayesian).

Run: python benchmarks/bench_hierarchical.py [--quick] [-o FOLDER]

Kernels: the built-in table, effects of classes on devices. The peer, statsmodels, has neither
spreads by class nor robust errors nor effects of runs. Runs: 4 chains with 1,000 draws of tuning,
two at a time, on the same made-up runs; the peer, Bambi, compiles its model at each fit, errcomp at
the first fit of a process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import asking
import environments
import numpy as np

import errcomp as ec
from errcomp.calibration.estimators.bayesian.residual import BayesianResidual
from errcomp.calibration.kernels import KernelCorrection
from errcomp.tables import Kernels

RUNS = 87


def kernels() -> tuple[Kernels, dict[str, Any]]:
    """Return the built-in table, and its log-ratios for the peer."""
    table = ec.datasets.load("neusight-kernels")
    p, m = table.predicted, table.measured
    known = np.isfinite(p) & np.isfinite(m) & (p > 1e-6) & (m > 0)
    given = {"y": np.log(m / np.where(known, p, 1))[known], "size": np.log(p[known])}
    given |= {"kind": table.codes("kernel_class")[known], "device": table.codes("device")[known]}
    return table, {name: values.tolist() for name, values in given.items()}


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


def bayesian(data: dict[str, Any], draws: int) -> Callable[[], None]:
    def work() -> None:
        # Few draws mix too little to pass all diagnostics, which are not what is timed.
        model = BayesianResidual(draws=draws, tune=1000, chains=4, n_jobs=2, check="ignore")
        model.fit(data["x"], data["y"], device=data["device"], model=data["model"])

    return work


def measure(question: asking.Question) -> None:
    question.uses("numpy", "pymc", "nutpie")
    table, given = kernels()
    question.against(
        "effects of kernel classes and devices",
        len(given["y"]),
        "kernels",
        lambda: KernelCorrection().fit(table) and None,
        **{"statsmodels, mixed model": environments.Peer("mixed", "mixed", **given)},
    )
    data, draws = runs(), 200 if question.quick else 1_000
    work = bayesian(data, draws)
    begun = time.perf_counter()
    work()
    question.note("first Bayesian fit of a process", time.perf_counter() - begun, "s")
    samplers = ("nutpie",) if question.quick else ("pymc", "nutpie")
    question.against(
        f"Bayesian fit, {draws:,} draws per chain",
        RUNS,
        "runs",
        work,
        same=False,
        **{
            f"Bambi, sampled by {sampler}": environments.Peer(
                "bambi", "hierarchical", **data, draws=draws, sampler=sampler
            )
            for sampler in samplers
        },
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
