"""Adapters to other tools, on output that these tools wrote: values pass, and bands cover."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.propagation import ClassError, ErrorModel, fit_errors, given_errors
from inside_other_tools import adapters

#: Vidur's names of operators, and where its execution time has them.
OPERATORS = {
    "attn_pre_proj": "attention_layer_pre_proj",
    "attn_post_proj": "attention_layer_post_proj",
    "attn_rope": "attention_rope",
    "mlp_up_proj": "mlp_layer_up_proj",
    "mlp_down_proj": "mlp_layer_down_proj",
    "mlp_act": "mlp_layer_act",
}
NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "mlp_norm", "add": "add"}
LAYERS = 32


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


class Interpolation:
    """Predicts operators between profiled numbers of tokens, as Vidur does."""

    def __init__(self, profile: pl.DataFrame) -> None:
        self.profile = profile

    def of(self, operator: str, tokens: int) -> float:
        times = self.profile[f"time_stats.{operator}.median"]
        return float(np.interp(tokens, self.profile["num_tokens"], times))

    def get_execution_time(self, tokens: int) -> SimpleNamespace:
        """Return an object with the attributes of Vidur's ExecutionTime."""
        times = {f"_{n}_execution_time": self.of(o, tokens) for o, n in OPERATORS.items()}
        times |= {f"_{name}_time": self.of(o, tokens) for o, name in NORMS.items()}
        return SimpleNamespace(
            _id=1,
            _num_layers_per_pipeline_stage=LAYERS,
            num_layers=LAYERS,
            _tensor_parallel_communication_time=0.0,
            **times,
        )


@pytest.fixture(scope="module")
def profile(shared_data: Path) -> pl.DataFrame:
    path = "tools/vidur/profiling/compute_a100_meta-llama_Llama-2-7b-hf_mlp.first300.csv"
    return pl.read_csv(shared_data / path).unique("num_tokens").sort("num_tokens")


@pytest.mark.slow
def test_vidur(profile: pl.DataFrame) -> None:
    predictor = Interpolation(profile[::4])
    others = profile.with_row_index().filter(pl.col("index") % 4 != 0)
    learn, test = others[::2], others[1::2]
    every = OPERATORS | NORMS
    model = fit_errors(
        columns(
            [
                {
                    "run": str(row["num_tokens"]),
                    "kernel": name,
                    "count": LAYERS,
                    "predicted": predictor.of(operator, row["num_tokens"]),
                    "measured": row[f"time_stats.{operator}.mean"],
                }
                for row in learn.iter_rows(named=True)
                for operator, name in every.items()
            ]
        )
    )
    wrapped = adapters.vidur(predictor, model)
    inside, widths = [], []
    for row in test.iter_rows(named=True):
        time = wrapped.get_execution_time(row["num_tokens"])
        assert time == predictor.get_execution_time(row["num_tokens"])
        low, high = wrapped.band(time)
        measured = LAYERS * sum(row[f"time_stats.{o}.mean"] for o in every)
        inside.append(low <= measured <= high)
        widths.append((high - low) / measured)
    # 87 ± 3 would be 90 %.
    assert (sum(inside), len(inside)) == (84, 97)
    assert np.median(widths) == pytest.approx(0.083, abs=0.001)


def test_vidur_counts_layers_and_communication() -> None:
    time = SimpleNamespace(
        _id=1,
        num_layers=10,
        _mlp_layer_act_execution_time=1.0,
        _tensor_parallel_communication_time=0.5,
        _schedule_time=2.0,
    )
    known = {"mlp_layer_act": 0.0, "tensor_parallel_communication": 0.0, "schedule": 0.0}
    exact = ErrorModel({name: ClassError(0.0, spread) for name, spread in known.items()})
    low, high = adapters.vidur(object(), exact).band(time)
    assert low == high == pytest.approx(10 * (1.0 + 2 * 0.5) + 2.0)


def test_llmservingsim(shared_data: Path) -> None:
    folder = shared_data / "tools" / "llmservingsim"
    pairs = pl.read_csv(folder / "per_request_sim_vs_vllm.csv")
    known = [
        {
            "run": f"{row['hardware']}/{row['model']}/{row['request_id']}",
            "device": f"{row['hardware']}/{row['model']}",
            "kernel": kernel,
            "count": count,
            "predicted": row[f"sim_{quantity}_ms"],
            "measured": row[f"vllm_{quantity}_ms"],
        }
        for row in pairs.filter(pl.col("hardware") != "RTX4090").iter_rows(named=True)
        for kernel, quantity, count in (
            ("first token", "ttft", 1),
            ("step", "tpot", max(row["sim_output_toks"] - 1, 1)),
        )
    ]
    model = fit_errors(columns(known), level=None)
    table = folder / "RTX4090_Llama-3.1-8B.sim.first20.csv"
    wrapped = adapters.llmservingsim(lambda: table, model)
    assert wrapped() is table
    low, high = wrapped.band(wrapped())
    latency = pairs.filter(pl.col("hardware") == "RTX4090").select("request_id", "vllm_latency_ms")
    requests = pl.read_csv(table).join(
        latency, left_on="request id", right_on="request_id", maintain_order="left"
    )
    measured = requests["vllm_latency_ms"].to_numpy()
    predicted = requests["latency"].to_numpy() / 1e6
    assert len(measured) == 20
    assert np.sum((low <= measured) & (measured <= high)) == 18
    assert np.all((low < predicted) & (predicted < high))
    assert np.median((high - low) / predicted) == pytest.approx(0.064, abs=0.001)


def test_astra_sim(shared_data: Path) -> None:
    log = shared_data / "tools" / "astra-sim" / "stdout_regression_ref.txt"
    wrapped = adapters.astra_sim(lambda: log, given_errors(0.2))
    low, high = wrapped.band(wrapped())
    assert low < 117_780 < high
    assert high / low == pytest.approx(np.exp(2 * 0.2 * 1.6449), rel=1e-3)


@pytest.mark.parametrize("name", ["vidur", "llmservingsim", "astra_sim"])
def test_an_adapter_is_short(name: str) -> None:
    assert len(inspect.getsource(getattr(adapters, name)).splitlines()) <= 20
