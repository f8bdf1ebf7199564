"""Propagated errors, validations, bounds and graphs, whole, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.propagation import (
    Chain,
    Step,
    correlation,
    draw_runs,
    fit_errors,
    given_errors,
    propagate,
    simulate,
    total_moments,
    validate,
)
from errcomp.propagation.bounds import (
    comonotonic_quantile,
    frechet_max,
    quantile_bounds,
    variance_bounds,
    worst_case,
)
from errcomp.propagation.graph import (
    Collective,
    Dag,
    Kernel,
    Overlap,
    Parallel,
    Pipeline,
    Quantity,
    Queue,
    Repeat,
    Replicas,
    Scaled,
    Serial,
    attach,
)
from errcomp.propagation.sums import effective_number, error_budget, growth_factor, icc
from errcomp.propagation.view import figures
from errcomp.propagation.view.check import report_validation
from errcomp.propagation.wrapping import wrap
from errcomp.tables import Kernels

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras

Stored = Callable[..., None]
Seen = Callable[[Any], dict[str, Any]]
Drawn = Callable[[Callable[[], Any]], Any]
CLASSES = ("gemm", "norm", "copy")
ASSUMPTIONS = ["independent", "comonotonic", "classes", "devices", "estimated", "unknown"]


@cache
def kernels(runs: int = 18, devices: int = 6, *, odd: bool = False, unit: str = "ms") -> Kernels:
    """Runs of three classes on six devices; a class errs alike on a device, one is far off."""
    rng = np.random.default_rng(4)
    of_device = 0.1 * rng.normal(size=devices) + 0.8 * (np.arange(devices) == 2) * odd
    of_class = rng.normal([0.0, 0.1, -0.2], 0.08, (devices, 3))
    rows: dict[str, list[Any]] = {
        name: [] for name in ("run", "device", "model", "kernel", "kernel_class", "count",
                              "predicted", "measured", "run_measured")
    }  # fmt: skip
    for run in range(runs):
        device, model = run % devices, run // devices
        of_run = []
        for i in range(9):
            which = i % 3
            predicted = np.exp(rng.normal(-2 + model, 1.0))
            error = of_device[device] + of_class[device, which] + 0.1 * rng.normal()
            of_run.append((i, CLASSES[which], 1 + i % 4, predicted, predicted * np.exp(error)))
        total = 1.05 * sum(count * measured for _, _, count, _, measured in of_run)
        for i, name, count, predicted, measured in of_run:
            values = (f"r{run}", f"D{device}", f"m{model}", f"{name}{i}", name, count, predicted,
                      measured, total)  # fmt: skip
            for column, value in zip(rows.values(), values, strict=True):
                column.append(value)
    return Kernels(rows, unit=unit)


@cache
def one_run(name: str = "r3") -> tuple[Any, Any]:
    table = kernels(odd=True)
    return table.where({"run": name}), fit_errors(table.take(table.run != name))


def graph(run: str = "") -> Any:
    """A step of training: layers in a pipeline, a collective beside them, a slowest of four."""

    def kernel(name: str) -> Kernel:
        return Kernel(f"{run}{name}")

    layer = Serial([kernel("gemm0"), Parallel([kernel("norm1"), kernel("copy2")])])
    link = Quantity("bandwidth", 100e9, spread=0.1)
    sent = Collective("all-reduce", 4, 1e8, latency=5e-6, bandwidth=link)
    stages = Pipeline([layer, Repeat(kernel("gemm3"), 3)], 4)
    inner = Overlap(stages, sent, contention=0.1)
    slowest = Replicas(inner, 4, jitter=Quantity("jitter", 1.0, spread=0.02), correlation=0.3)
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    kinds = {"a": "norm4", "b": "copy5", "c": "gemm6", "d": "norm7"}
    dag = Dag({name: kernel(kind) for name, kind in kinds.items()}, edges)
    return Serial([slowest, Scaled(dag, Quantity("clock", 1.1, spread=0.05)), kernel("copy8")])


PROPAGATED: Mapping[str, Callable[[], Any]] = {
    "a run": lambda: propagate(one_run()[0], errors=one_run()[1], seed=1),
    "all assumptions": lambda: propagate(
        one_run()[0], errors=one_run()[1], correlation=ASSUMPTIONS, levels=(0.9,)
    ),
    "every run": lambda: propagate(kernels(9), correlation=["estimated", "independent"]),
    "shares": lambda: propagate(
        one_run()[0],
        errors=one_run()[1],
        correlation=[correlation("classes", 0.4), correlation("independent", df=4.0)],
    ),
    "given errors": lambda: propagate(
        one_run()[0], errors=given_errors(0.15, 0.03), levels=(0.6, 0.8)
    ),
    "relative errors": lambda: propagate(kernels(12), kind="relative", levels=(0.5, 0.8)),
    "a graph": lambda: propagate(
        one_run()[0], errors=one_run()[1], graph=graph(), draws=2048, correlation="independent"
    ),
    "a queue": lambda: propagate(
        one_run()[0],
        errors=one_run()[1],
        graph=Queue(Kernel("gemm0"), arrival_rate=1.0, servers=2, quantity="quantile"),
        draws=2048,
    ),
}


def whole(found: Any, seen: Seen) -> dict[str, Any]:
    document = json.loads(found.to_json())
    assert json.loads(ec.documents.load(document).to_json()) == document
    return {"document": document, **seen(found)}


@pytest.mark.parametrize("name", PROPAGATED)
def test_propagated(name: str, seen: Seen, stored: Stored) -> None:
    stored(f"propagation/{name}", whole(PROPAGATED[name](), seen))


@pytest.mark.parametrize("odd", [False, True], ids=["alike", "one device off"])
def test_validations(odd: bool, seen: Seen, stored: Stored) -> None:
    table = kernels(24, odd=odd)
    found = validate(table, correlation=["estimated", "independent"], levels=(0.5, 0.9))
    made = report_validation(found)
    checks = [made.junit(timestamp=None).decode(), made.markdown, made.failed]
    assumptions = ["independent", "classes", "unknown"] if odd else None
    by_model = validate(
        table, leave_out="model", kind="relative", levels=(0.8,), correlation=assumptions
    )
    stored(
        f"propagation/validation, {'one device off' if odd else 'alike'}",
        {"checks": checks, **whole(found, seen),
         "by model": whole(by_model, seen)},
    )  # fmt: skip


def test_error_models(stored: Stored) -> None:
    tables = {"alike": kernels(24), "odd": kernels(24, odd=True), "few": kernels(4, 2)}
    made = {
        f"{name}, {kind}, {size}": fit_errors(table, kind=kind, by_size=size)
        for name, table in tables.items()
        for kind in ("log-ratio", "relative")
        for size in (False, True)
    }
    published = fit_errors(ec.datasets.load("neusight-kernels"))
    stored("propagation/error models", {**made, "published": published})


def test_sums_and_bounds(stored: Stored) -> None:
    run, errors = one_run()
    found = {}
    for name in ("independent", "repeats", "classes", "devices", "comonotonic"):
        terms = errors.terms(run, correlation(name))
        quantile = quantile_bounds(terms, 0.95)
        found[name] = {
            "moments": total_moments(terms),
            "effective": effective_number(terms),
            "growth": growth_factor(terms),
            "icc": icc(terms),
            "budgets": [error_budget(terms), error_budget(terms, by="term")],
            "variance": variance_bounds(terms),
            "quantile": quantile,
            "together": comonotonic_quantile(terms, 0.9),
            "largest": frechet_max(terms, 0.9),
            "simulated": simulate(terms, draws=1024, seed=3),
            "graph": simulate(attach(terms, graph("r3/")), draws=512),
        }
    found["worst"] = worst_case([1.0, 2.0, 5.0], [0.1, 0.2, 0.05], count=[3, 1, 2])
    found["drawn"] = draw_runs(kernels(3), errors, draws=512, seed=2)
    stored("propagation/sums", found, rel=1e-5)


def test_chains(drawn: Drawn, stored: Stored) -> None:
    steps = [
        Step("analytical", "simulator", bias=0.05, spread=0.1),
        Step("simulator", "emulator", mape=0.08),
        Step("emulator", "hardware", mape=(0.05, 0.1)),
    ]
    chain = Chain(steps)
    made = {str(share): chain.compose(share) for share in (None, 0.0, 0.5, 1.0)}
    measured = [
        ("kernels", 0.1, 0.08, 0.13),
        ("layers", 0.05, None, None),
        ("run", 0.03, 0.02, 0.04),
    ]
    lines = {
        "estimated": measured,
        "independent": [(name, sd / 2, None, None) for name, sd, *_ in measured],
    }
    pictures = {
        "levels": drawn(lambda: figures.growth(measured)),
        "lines": drawn(lambda: figures.growth(lines)),
    }
    stored("propagation/chains", {**made, **pictures})


def test_wrapped_predictors(stored: Stored) -> None:
    errors = fit_errors(kernels(24))
    wrapped = wrap(lambda x: 2.0 * x, errors, kernel_class="gemm", unit="ms")
    banded = wrapped(3.0)
    stored("propagation/wrapped", {"type": type(banded).__name__, "value": float(banded),
                                   "shown": repr(banded)})  # fmt: skip
