"""Bands inside three simulators: each adapter says which kernels a prediction is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

import errcomp as ec


def vidur(predictor: Any, model: Any) -> Any:
    """Wrap Vidur's execution-time predictor; the model has errors by operator, in ms."""
    once = {"pipeline_parallel_communication", "schedule", "sampler_e2e", "prepare_inputs_e2e"}
    once |= {"process_model_outputs", "ray_comm"}  # the others run in each layer

    def kernels(time: Any) -> dict[str, list[Any]]:
        rows = [
            (name, 1 if name in once else time.num_layers, value)
            for key, value in vars(time).items()
            if (name := key[1:].removesuffix("_time").removesuffix("_execution")) != key[1:]
        ]
        # After the attention and after the MLP: two in each layer.
        rows += [row for row in rows if row[0] == "tensor_parallel_communication"]
        names = ("kernel", "count", "predicted")
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    return ec.wrap(predictor, model, kernels=kernels, unit="ms")


def llmservingsim(simulate: Any, model: Any) -> Any:
    """Wrap a run of LLMServingSim that returns its table of requests; bands of their latency."""

    def kernels(table: str | Path) -> dict[str, list[Any]]:
        rows = []
        for request in pl.read_csv(table).iter_rows(named=True):
            rows.append((request["request id"], "first token", request["TTFT"] / 1e6))
            steps = json.loads(request["ITL"])
            rows.extend((request["request id"], "step", step / 1e6) for step in steps)
        names = ("run", "kernel", "predicted")
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    return ec.wrap(simulate, model, kernels=kernels, unit="ms")


def astra_sim(simulate: Any, model: Any, collective: str = "all_reduce") -> Any:
    """Wrap a run of ASTRA-sim that returns its log; the band of the slowest rank's collective."""

    def kernels(log: str | Path) -> dict[str, list[Any]]:
        rows = ec.read(log).rows.filter(pl.col("quantity") == "communication")
        return {"kernel": [collective], "predicted": [rows["predicted"].max()]}

    return ec.wrap(simulate, model, kernels=kernels, unit="ns")
