"""Columns are guessed by their names where nobody named them, and never where two fit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.claims.auditing import audit
from errcomp.errors import GuessedWarning, InputError
from errcomp.summary import summarize
from errcomp.tables import Pairs
from errcomp.tables.columns import ROLES, role_of
from errcomp.tables.engine.pairs import PairRows
from errcomp.tables.guessing import SIDES, WHOLE, AmbiguousColumnsError, guess, with_guess

RESULTS = {
    "app": ["bert", "gpt2", "vgg"] * 3,
    "gpu": ["A", "A", "A", "B", "B", "B", "C", "C", "C"],
    "sim_cycles": [110.0, 120.0, 90.0, 130.0, 95.0, 99.0, 105.0, 101.0, 98.0],
    "hw_cycles": [100.0] * 9,
}


@pytest.mark.parametrize(
    ("numbers", "predicted", "measured"),
    [
        ("sim_cycles hw_cycles", "sim_cycles", "hw_cycles"),
        ("pred actual", "pred", "actual"),
        ("predicted real", "predicted", "real"),
        ("estimate measured", "estimate", "measured"),
        ("y_pred y_true", "y_pred", "y_true"),
        ("simCycles HWCycles", "simCycles", "HWCycles"),
        ("model_time wall_time", "model_time", "wall_time"),
        ("model_time time", "model_time", "time"),
        ("ms model_ms mb", "model_ms", "ms"),
        ("latency_pred latency", "latency_pred", "latency"),
        ("cycles hw_cycles", "cycles", "hw_cycles"),
        ("est hw est_error hw_std max_hw", "est", "hw"),
        ("sim_ipc sim_cycles hw_cycles", "sim_cycles", "hw_cycles"),
        ("pred pred_energy hw hw_energy", "pred", "hw"),
        ("simulation_vs_hw sim hw", "sim", "hw"),
    ],
)
def test_names_that_say_it(numbers: str, predicted: str, measured: str) -> None:
    for names in (numbers.split(), numbers.split()[::-1]):
        found = guess(dict.fromkeys(names, True))
        assert found.columns == {"predicted": predicted, "measured": measured}


@pytest.mark.parametrize(
    "numbers", ["a b", "latency cycles", "sim_cycles", "model time", "error", "model_ms time"]
)
def test_names_that_say_nothing(numbers: str) -> None:
    assert set(guess(dict.fromkeys(numbers.split(), True)).columns) < {"predicted", "measured"}
    with pytest.raises(InputError, match="missing column"), warnings.catch_warnings(action="error"):
        Pairs({name: [1.0] for name in numbers.split()})


@pytest.mark.parametrize(
    ("numbers", "columns"),
    [
        (
            "measured_ms predicted_ms measured_operator_sum_ms predicted_operator_sum_ms",
            ("predicted_ms", "measured_ms"),
        ),
        ("simTime_us sim_us realKernels_us real_us", ("sim_us", "real_us")),
        ("pred_mJ hw_mJ hw_power_w", ("pred_mJ", "hw_mJ")),
    ],
)
def test_a_side_and_a_unit_say_more_than_a_side_and_other_words(
    numbers: str, columns: tuple[str, str]
) -> None:
    found = guess(dict.fromkeys(numbers.split(), True)).columns
    assert (found["predicted"], found["measured"]) == columns


def test_texts_are_neither_side() -> None:
    found = guess({"sim": True, "hw": False, "real": True})
    assert found.columns == {"predicted": "sim", "measured": "real"}
    assert found.roles == {"device": "hw"}
    with pytest.warns(GuessedWarning, match="predicted: sim, measured: real, device: hw"):
        pairs = Pairs({"sim": ["1", "x", "3"], "hw": ["A", "B", "C"], "real": [1.0, 2.0, 3.0],
                       "status": ["ok", "failed", "ok"]})  # fmt: skip
    assert pairs.predicted.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("numbers", "choices"),
    [
        ("sim_us sim_mj hw_us hw_mj", [("sim_us", "hw_us"), ("sim_mj", "hw_mj")]),
        ("pred_a pred_b real", [("pred_a", "real"), ("pred_b", "real")]),
        ("sim_cycles sim_ms hw_cycles hw_ms", [("sim_cycles", "hw_cycles"), ("sim_ms", "hw_ms")]),
        ("pred meas actual", [("pred", "meas"), ("pred", "actual")]),
    ],
)
def test_two_that_fit_are_refused(numbers: str, choices: list[tuple[str, str]]) -> None:
    with pytest.raises(AmbiguousColumnsError) as refused:
        guess(dict.fromkeys(numbers.split(), True))
    assert list(refused.value.choices) == choices
    with pytest.raises(AmbiguousColumnsError, match=r"^t\.csv: several columns may hold .*: pred"):
        Pairs({name: [1.0] for name in numbers.split()}, source="t.csv")
    with pytest.raises(AmbiguousColumnsError):
        PairRows(pl.LazyFrame({name: [1.0] for name in numbers.split()}))


def test_many_choices_are_counted() -> None:
    names = [f"pred_{i}" for i in range(6)]
    with pytest.raises(
        AmbiguousColumnsError, match=r"'pred_2', measured='hw'; … \(3 more\)\. Name"
    ):
        with_guess({}, dict.fromkeys([*names, "hw"], True), "")


def test_what_is_named_is_not_guessed() -> None:
    names = dict.fromkeys(["sim_us", "sim_mj", "hw_us", "hw_mj"], True)
    named = {"predicted": "sim_us", "measured": "hw_mj"}
    pairs = Pairs({"sim_us": [1.0], "sim_mj": [2.0], "hw_us": [3.0], "hw_mj": [4.0]}, columns=named)
    assert (pairs.predicted.item(), pairs.measured.item()) == (1.0, 4.0)
    with pytest.warns(
        GuessedWarning, match=r"^t: read as predicted: sim_mj, measured: hw_mj\. Guessed"
    ):
        one = with_guess({"predicted": "sim_mj", "device": "x"}, names, "t")
    assert one == {"predicted": "sim_mj", "measured": "hw_mj", "device": "x"}
    with pytest.warns(GuessedWarning, match="read as predicted: sim, measured: measured"):
        assert with_guess({}, {"sim": True, "measured": True}, "") == {"predicted": "sim"}


@pytest.mark.parametrize(
    ("role", "keys", "key"),
    [
        ("device", ["gpu", "machine"], "gpu"),
        ("device", ["machine", "GPU Name", "device"], "device"),
        ("device", ["GPU Name"], "GPU Name"),
        ("device", ["gpus"], None),
        ("model", ["workload", "app"], "workload"),
        ("batch", ["batch"], "batch"),
        ("my key", ["my key", "other"], "my key"),
        ("my key", ["My Key"], None),
    ],
)
def test_roles(role: str, keys: list[str], key: str | None) -> None:
    assert role_of(role, keys) == key


def test_the_documentation_lists_all_names() -> None:
    page = Path(__file__).parents[2] / "docs" / "quickstart.md"
    cells = dict(re.findall(r"^\| (\w+)[^|]* \| `(.+)` \|$", page.read_text("utf-8"), re.M))
    for side, cell in (("predicted", "predictions"), ("measured", "measurements")):
        assert cells[cell] == f"{', '.join(SIDES[side])}; {', '.join(WHOLE[side])}"
    for role in ("device", "model"):
        assert cells[role] == ", ".join(ROLES[role])


@pytest.mark.parametrize("make", [dict, pl.DataFrame, pl.LazyFrame])
def test_a_table_of_ones_own_is_read_as_it_is(make: Callable[..., Any]) -> None:
    with pytest.warns(
        GuessedWarning, match="sim_cycles, measured: hw_cycles, device: gpu, model: a"
    ):
        found = summarize(make(RESULTS), by="gpu", figures="mape")
    assert [row.key for row in found.rows] == [{"gpu": name} for name in "ABC"]
    renamed = {"device": RESULTS["gpu"], "model": RESULTS["app"],
               "predicted": RESULTS["sim_cycles"], "measured": RESULTS["hw_cycles"]}  # fmt: skip
    expected = summarize(make(renamed), by="device", figures="mape")
    own, usual = found.pooled.figures["mape"], expected.pooled.figures["mape"]
    assert (own.value, own.low, own.high) == (usual.value, usual.low, usual.high)
    assert own.method == usual.method.replace("models", "apps").replace("devices", "gpus")


def test_an_audit_knows_devices_and_models_by_other_names() -> None:
    with pytest.warns(GuessedWarning):
        found = audit(RESULTS, claims=[])
    assert found.by == ("gpu",)
    assert found.cluster_keys == ("app", "gpu")
