"""Runs that are drawn together: the laws of each stay, and shared causes cancel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.propagation import (
    ClassError,
    ErrorModel,
    correlation,
    draw_runs,
    fit_errors,
    given_errors,
    propagate,
)
from errcomp.propagation.graph import Kernel, Overlap, Quantity, Serial


def table(**columns: list[Any]) -> dict[str, list[Any]]:
    return {
        "run": ["a", "a", "b", "b"],
        "kernel": ["gemm", "wire", "gemm", "wire"],
        "predicted": [4.0, 1.0, 4.0, 2.0],
        "count": [8, 1, 8, 1],
        "device": ["L4"] * 4,
        **columns,
    }


@pytest.mark.parametrize("name", ["independent", "repeats", "comonotonic", "classes"])
def test_each_run_has_the_law_of_its_own_propagation(name: str) -> None:
    known = ErrorModel({"gemm": ClassError(0.1, 0.2), "wire": ClassError(0.0, 0.3)})
    assumed = correlation("classes", 0.5) if name == "classes" else correlation(name)
    drawn = draw_runs(table(), known, correlation=assumed, draws=16_384)
    expected = propagate(table(), errors=known, correlation=assumed)
    for run in ("a", "b"):
        outcome = expected.of(run)
        assert drawn[run].mean() == pytest.approx(outcome.mean, rel=0.01)
        assert drawn[run].std() == pytest.approx(outcome.sd, rel=0.03)


def test_shared_causes_cancel_in_ratios() -> None:
    def ratio(name: str) -> float:
        shared = correlation(name, 0.9) if name == "devices" else correlation(name)
        drawn = draw_runs(table(), given_errors(0.2), correlation=shared)
        return float(np.log(drawn["a"] / drawn["b"]).std())

    assert ratio("comonotonic") == pytest.approx(0, abs=1e-6)
    assert ratio("comonotonic") < ratio("devices") < ratio("independent")
    two = draw_runs(
        table(device=["L4", "L4", "T4", "T4"]),
        given_errors(0.2),
        correlation=correlation("devices", 0.9),
    )
    assert np.log(two["a"] / two["b"]).std() > 2 * ratio("devices")


def test_graphs_and_sums_together() -> None:
    slow = Quantity("contention", 0.3, 0.05)
    graph = Overlap(Kernel("gemm"), Kernel("wire"), slow)
    both = draw_runs(table(), given_errors(0.05), graphs={"b": graph}, correlation="comonotonic")
    alone = propagate(
        {k: v[2:] for k, v in table().items()},
        errors=given_errors(0.05),
        graph=graph,
        correlation="comonotonic",
    ).of()
    assert both["b"].mean() == pytest.approx(alone.mean, rel=0.01)
    assert both["b"].std() == pytest.approx(alone.sd, rel=0.05)
    assert both["a"].mean() == pytest.approx(33.0, rel=0.01)


def test_a_quantity_is_the_same_in_all_graphs() -> None:
    link = Quantity("link", 10.0, 0.3)
    graphs = {"a": Serial((Kernel("wire"), link)), "b": Serial((Kernel("wire"), link))}
    drawn = draw_runs(table(), given_errors(1e-6), graphs=graphs, correlation="independent")
    assert (drawn["b"] - drawn["a"]).std() < 1e-3
    assert drawn["a"].std() == pytest.approx(3.1, rel=0.1)


@pytest.mark.slow
def test_real_runs_are_compared() -> None:
    """NeuSight's kernels: runs of one model on two devices, errors fitted to the other models."""
    kernels = ec.load("neusight-kernels")
    model = "bert_large"
    known = kernels.where({"model": [m for m in set(kernels.column("model")) if m != model]})
    errors = fit_errors(known, level=None)
    new = kernels.where({"model": model, "mode": "inference"})
    drawn = draw_runs(new, errors)
    assert list(drawn) == list(new.runs)
    found = ec.decisions.compare_draws(drawn, unit=new.unit)
    assert len(found) == len(drawn) * (len(drawn) - 1) // 2
    truth = dict(zip(new.totals().run.tolist(), new.totals().measured.tolist(), strict=True))
    right = [truth[a] < truth[b] for a, b in zip(found.first, found.second, strict=True)]
    assert np.mean(np.array(right)[found.called]) > 0.9


@pytest.mark.parametrize(
    ("graphs", "columns", "message"),
    [
        ({"c": Kernel("gemm")}, {}, "a graph is given for 'c', which is not a run. Runs: a, b"),
        (
            {"a": Kernel("gem")},
            {},
            "refers to 'gem', and the run has no such kernel. Kernels: gemm, wire",
        ),
        ({"a": Kernel("gemm")}, {"kernel": ["gemm"] * 4}, "several kernels of the same name"),
    ],
)
def test_bad_graphs(graphs: Any, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_runs(table(**columns), given_errors(0.1), graphs=graphs)
