"""``errcomp calibrate`` and ``predict`` of tables without kernels: each row is a predicted run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.calibration.kernels import pooling
from errcomp.calibration.transfer import process

Run = Callable[..., Any]
TASK = ("--task", "prediction")
FAST = ("--estimator", "device")
MODELS, DEVICES = ("bert", "gpt2", "opt", "xlnet"), ("H100", "V100", "MI100", "MI210")


def text(*columns: str, devices: tuple[str, ...] = DEVICES) -> str:
    """Sixteen runs, or fewer; a device takes a tenth longer than the one before it."""
    lines = [",".join(columns)]
    for i, device in enumerate(devices):
        for j, model in enumerate(MODELS):
            predicted = (1.0 + i) * (1.0 + j)
            measured = predicted * (1.1**i) * (1 + 0.01 * ((i + j) % 3))
            row = {"run": f"{device}-{model}", "device": device, "model": model, "unit": "ms"}
            row |= {"predicted": str(predicted), "measured": str(measured), "kernel": "gemm"}
            lines.append(",".join(row[name] for name in columns))
    return "\n".join(lines) + "\n"


PAIRS = ("run", "device", "model", "unit", "predicted", "measured")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(text(*PAIRS), encoding="utf-8")
    return path


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Correct kernels by an eighth of the rounds: how well is not looked at."""
    monkeypatch.setattr(pooling, "_ROUNDS", 1)


def test_predictions_of_whole_runs_are_corrected(run: Run, pairs: Path, tmp_path: Path) -> None:
    model, new = tmp_path / "pairs.errcomp", tmp_path / "new.csv"
    fit = run("calibrate", "fit", pairs, *TASK, *FAST, "-o", model)
    assert (fit.code, "runs        16" in fit.out) == (0, True)
    new.write_text(text("run", "device", "model", "unit", "predicted"), encoding="utf-8")
    done = run("predict", new, "--model", model, *FAST, "--json")
    rows = {row["run"]: row for row in json.loads(done.out)["rows"]}
    assert rows["MI210-bert"]["predicted"] == pytest.approx(4 * 1.1**3 * 1.01, rel=0.02)
    assert rows["MI210-bert"]["low_90"] < 4 * 1.1**3 < rows["MI210-bert"]["high_90"]


@pytest.mark.slow
def test_an_evaluation_compares_with_the_predictions_themselves(run: Run, pairs: Path) -> None:
    done = run("calibrate", "evaluate", pairs, *TASK, *FAST, "--json")
    errors = {
        row["estimator"]: row["mean_ape"]
        for row in json.loads(done.out)["rows"]
        if (row["split"], row["runs_judged"]) == ("leave-model-out", "all")
    }
    assert errors["sum"] == pytest.approx(0.134, abs=0.01)
    assert errors["device"] < 0.02
    words = " ".join(run("calibrate", "evaluate", pairs, *TASK, *FAST).out.split())
    assert "not significantly better than the uncorrected predictions." in words


def test_a_table_without_kernels_names_the_way(run: Run, pairs: Path) -> None:
    done = run("calibrate", "evaluate", pairs, *FAST)
    assert (done.code, done.out) == (2, "")
    assert "missing column kernel or kernel_class" in done.err
    assert "`errcomp calibrate` corrects it with --task prediction" in done.err


def test_a_table_with_kernels_is_read_as_before(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(text(*PAIRS, "kernel"), encoding="utf-8")
    done = run("calibrate", "evaluate", path, *TASK, *FAST)
    assert done.code == 2
    assert "run_measured" in done.err


def test_a_model_of_predictions_is_adapted_and_planned_for(
    run: Run, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An eighth of the settings that an adaptation tries: which wins is not looked at.
    monkeypatch.setattr(process, "CHOICES", process.CHOICES[::8])
    model, new, adapted = (tmp_path / name for name in ("m.errcomp", "new.csv", "n.errcomp"))
    keep = "device=H100,V100,MI100"
    assert run("calibrate", "fit", pairs, *TASK, *FAST, "--where", keep, "-o", model).code == 0
    new.write_text(text(*PAIRS, devices=("MI300",)), encoding="utf-8")
    plan = run("plan", "runs", "--model", model, "--candidates", new, "-k", 1, "--json")
    assert json.loads(plan.out)["rows"][0]["device"] == "MI300"
    done = run("calibrate", "adapt", model, new, "-o", adapted, "--json")
    assert [row["device"] for row in json.loads(done.out)["rows"]] == ["MI300"]


def test_checks_need_no_kernels(run: Run, pairs: Path) -> None:
    done = run("calibrate", "check", pairs, *TASK)
    assert done.code == 0
    assert "0 of 16 runs flagged. The rules look at kernels and at phases" in done.out


def test_output_of_a_tool_needs_no_table(run: Run, tmp_path: Path) -> None:
    lines = ["hardware,model,request_id,sim_ttft_ms,vllm_ttft_ms,sim_latency_ms,vllm_latency_ms"]
    for i in range(8):
        model, time = MODELS[i % 4], 100.0 + i
        lines.append(f"RTX4090,{model},{i},{time},{1.1 * time},{9 * time},{9.5 * time}")
    path = tmp_path / "requests.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    split = ("--split", "leave-model-out")
    argv = ("calibrate", "evaluate", path, *TASK, *FAST, *split)
    rows = json.loads(run(*argv, "--where", "quantity=ttft", "--json").out)["rows"]
    assert rows[0]["mean_ape"] == pytest.approx(1 - 1 / 1.1, rel=1e-6)
    both = run(*argv)
    assert (both.code, "has several quantities" in both.err) == (2, True)
    model = tmp_path / "requests.errcomp"
    one = ("--where", "quantity=ttft")
    assert run("calibrate", "fit", path, *TASK, *FAST, *one, "-o", model).code == 0
    every = json.loads(run("predict", path, "--model", model, *one, "--json").out)["rows"]
    # A run is asked for by the name that the table shows.
    asked = run("predict", path, "--model", model, *one, "--where", "run=gpt2/1", "--json")
    (row,) = json.loads(asked.out)["rows"]
    assert row == next(other for other in every if other["run"] == "gpt2/1")
    named = run("predict", path, "--model", model, *one, "--tool", "LLMServingSim", "--json")
    assert json.loads(named.out)["rows"] == every
    other = run("predict", path, "--model", model, *one, "--tool", "Vidur")
    assert (other.code, "LLMServingSim" in other.err) == (2, True)
    unit = run("predict", path, "--model", model, *one, "--unit", "ms")
    assert (unit.code, "its unit is known. Leave out --unit." in unit.err) == (2, True)


def test_output_with_kernels_is_read_as_kernels(run: Run, tmp_path: Path, few_rounds: None) -> None:
    """Also where the task is to correct predictions."""
    rows = ["tool,level,quantity,unit,predicted,measured,status,reference,run,kernel,device,model"]
    for i, device in enumerate(DEVICES[:2]):
        for j, model in enumerate(MODELS[:3]):
            time, run_time = (1 + i) * (1.0 + j), 2.5 * (1 + i) * (1.0 + j)
            name = f"{device}-{model}"
            for kernel in ("gemm", "soft"):
                times = f"{time},{1.1 * time}"
                rows.append(f"MySim,kernel,time,ms,{times},,x,{name},{kernel},{device},{model}")
            rows.append(f"MySim,model,time,ms,,{run_time},,x,{name},,{device},{model}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    split = ("--split", "leave-model-out")
    done = run("calibrate", "evaluate", path, *TASK, *FAST, *split, "--json")
    (found,) = [
        row
        for row in json.loads(done.out)["rows"]
        if (row["split"], row["estimator"], row["runs_judged"]) == ("leave-model-out", "sum", "all")
    ]
    assert (found["n"], found["mean_ape"]) == (6, pytest.approx(0.2))


def test_columns_are_named_as_elsewhere(run: Run, tmp_path: Path, few_rounds: None) -> None:
    """Rows that are runs, and rows that are kernels."""
    path = tmp_path / "named.csv"
    columns, two = ("run", "device", "model", "unit", "predicted", "measured"), DEVICES[:2]
    plain = text(*columns, devices=two).replace("predicted,measured", "tool,board")
    path.write_text(plain, encoding="utf-8")
    argv = ("calibrate", "evaluate", path, *TASK, *FAST, "--split", "leave-device-out", "--json")
    done = run(*argv, "--predicted", "tool", "--measured", "board")
    assert json.loads(done.out)["rows"][0]["n"] == 8
    columns = ("run", "device", "model", "unit", "kernel", "measured", "predicted")
    kernels = text(*columns, devices=two)
    kernels = kernels.replace("measured,predicted", "run_measured,tool")
    path.write_text(kernels, encoding="utf-8")
    done = run(*argv, "--predicted", "tool")
    assert json.loads(done.out)["rows"][0]["n"] == 8
