"""Overlap with the training table, the error by distance, and other splits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.measurements import leakage
from tests.measurements.laws import LAWS, noise

pytestmark = pytest.mark.core

Run = Callable[..., Any]


def evaluated() -> dict[str, Any]:
    """Two devices, batch 1 to 32: the error grows with the batch."""
    batch = np.tile([1, 2, 4, 8, 16, 32], 2)
    device = ["A"] * 6 + ["B"] * 6
    measured = batch * np.where(np.array(device) == "A", 1.0, 2.0)
    return {
        "device": device,
        "batch": batch,
        "measured": measured,
        "predicted": measured * (1 + 0.01 * np.arange(12)),
    }


def test_rows_are_sorted_by_distance() -> None:
    training = {"device": ["A"] * 3, "batch": [1, 2, 15], "measured": [1.0, 2.5, 15.0]}
    found = leakage(evaluated(), training)
    assert found.shared == ("device", "batch")
    assert [(one.name, one.n, one.rows) for one in found.classes] == [
        ("same measurement", 1, (1,)),
        ("same configuration", 1, (2,)),
        ("within 10 %", 1, (5,)),
        ("within a factor of 2", 2, (3, 4)),
        ("further", 1, (6,)),
        ("new values of other keys", 6, (7, 8, 9)),
    ]
    mapes = [one.mape.value for one in found.classes]
    assert mapes == pytest.approx([0.0, 0.01, 0.04, 0.025, 0.05, 0.085])
    assert found.seen == 2
    assert found.new is not None
    assert (found.new.n, found.new.value) == (10, pytest.approx(0.065))
    assert found.mape.value == pytest.approx(0.055)
    assert (found.trained, found.n) == (3, 12)


def test_values_that_training_lacks_are_named() -> None:
    found = leakage(evaluated(), {"device": ["A"] * 3, "batch": [1, 2, 4]})
    device, batch = found.unseen
    assert (device.column, device.values, device.n) == ("device", ("B",), 6)
    assert device.mape.value == pytest.approx(0.085)
    assert device.seen_mape is not None
    assert device.seen_mape.value == pytest.approx(0.025)
    assert (batch.values, batch.n) == (("8", "16", "32"), 6)
    assert found.classes[0].name == "same configuration"  # nothing was measured there
    everything = leakage(evaluated(), {"device": ["C"]})
    assert everything.unseen[0].seen_mape is None


@pytest.mark.parametrize(("factor", "same"), [(1 + 5e-7, True), (1 + 5e-6, False)])
def test_a_measurement_is_the_same_to_six_digits(factor: float, same: bool) -> None:
    training = {"device": ["A"], "batch": [4], "measured": [4.0 * factor]}
    found = leakage(evaluated(), training)
    assert (found.classes[0].name == "same measurement") == same


def test_columns_may_have_other_names() -> None:
    table = {
        "batch": [1, 2, 4],
        "guess": [1.0, 2.0, 5.0],
        "truth": [1.0, 2.5, 4.0],
        "other": [9.0, 9.0, 9.0],
    }
    found = leakage(
        table, {"batch": [1, 2], "truth": [1.0, 3.0]}, predicted="guess", measured="truth"
    )
    assert [(one.name, one.n) for one in found.classes] == [
        ("same measurement", 1),
        ("same configuration", 1),
        ("within a factor of 2", 1),
    ]
    assert found.mape.value == pytest.approx((0 + 0.2 + 0.25) / 3)


def test_a_training_table_without_a_value_is_no_match() -> None:
    training = {"device": ["A", "A"], "batch": [4, 8], "measured": [None, -1.0]}
    found = leakage(evaluated(), training)
    assert (found.classes[0].name, found.classes[0].n) == ("same configuration", 2)


def test_keys_that_say_nothing_about_the_run_are_not_compared() -> None:
    table = {**evaluated(), "in_training": [True] * 6 + [False] * 6}
    training = {"device": ["A"], "batch": [1], "in_training": [True]}
    assert leakage(table, training).shared == ("device", "batch")
    assert leakage(table, training, keys=["batch"]).shared == ("batch",)


def test_a_split_by_device_is_harder_than_one_by_rows() -> None:
    # Each device has a speed of its own, which no column says.
    rng = np.random.default_rng(0)
    batch = np.tile(2 ** np.arange(8), 10)
    device = np.repeat(np.arange(10), 8)
    measured = batch * np.exp(rng.normal(size=10))[device] * np.exp(0.02 * rng.normal(size=80))
    table = {"device": [f"d{i}" for i in device], "batch": batch, "measured": measured,
             "predicted": measured}  # fmt: skip
    found = leakage(table, {"device": ["d0"]}, keys=["device"])
    assert [one.what for one in found.left_out] == ["rows", "device"]
    found = leakage(table, {"device": ["d0"], "batch": [1]})
    left = {one.what: one for one in found.left_out}
    # A configuration is a single row here: its folds are those of rows.
    assert set(left) == {"rows", "device", "batch"}
    assert left["rows"].mape < 0.06
    assert left["batch"].mape < 0.06
    assert left["device"].mape > 0.4
    assert all(one.n == 80 for one in left.values())


@pytest.mark.parametrize(("others", "n"), [("BCD", 13), ("BC", 2)])
def test_a_value_whose_rows_are_nearly_all_is_not_left_out(others: str, n: int) -> None:
    """Without the ten rows of A, a line is fitted to three others, and not to two."""
    size = 10 + len(others)
    batch = list(range(1, size + 1))
    table = {"device": [*["A"] * 10, *others], "batch": batch, "measured": batch,
             "predicted": batch}  # fmt: skip
    found = leakage(table, {"device": ["A"], "batch": [1]})
    assert {one.what: one.n for one in found.left_out} == {"rows": size, "device": n}


@pytest.mark.parametrize("n", [5, 6])
def test_six_rows_can_be_left_out_in_turn(n: int) -> None:
    table = {name: column[:n] for name, column in evaluated().items()}
    found = leakage(table, {"device": ["A"], "batch": [1]}, keys=["batch"])
    assert [one.what for one in found.left_out] == (["rows"] if n == 6 else [])


@pytest.mark.parametrize("law", LAWS)
def test_what_was_copied_into_training_is_found_again(law: str) -> None:
    """Of 400 rows, a fifth was trained on; repeats of others have noise of 2 %."""
    rng = np.random.default_rng(LAWS.index(law))
    case = rng.permutation(400)
    measured = np.exp(rng.normal(size=400)) * np.exp(0.02 * noise(law, 400, rng))
    table = {"model": [f"m{i}" for i in case], "measured": measured, "predicted": measured * 1.1}
    again = measured[80:160] * np.exp(0.02 * noise(law, 80, rng))
    training = {
        "model": table["model"][:160],
        "measured": np.r_[measured[:80].astype(np.float32).astype(float), again],
    }
    found = {one.name: one.n for one in leakage(table, training).classes}
    assert found["same measurement"] >= 80
    assert found["same measurement"] <= 81
    assert found["same measurement"] + found["same configuration"] == 160
    assert found["new values of other keys"] == 240


@pytest.mark.parametrize(
    ("training", "options", "message"),
    [
        ({"gpu": ["A"]}, {}, "no key is in both tables. Keys of the pairs: device, batch"),
        ({"device": ["A"]}, {"keys": ["batch"]}, "training table has no column 'batch'"),
        ({"device": ["A"]}, {"keys": ["nothing"]}, "nothing"),
        ("nowhere.csv", {}, "nowhere.csv: no such file"),
    ],
)
def test_tables_that_cannot_be_compared(
    training: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        leakage(evaluated(), training, **options)


def test_the_command(run: Run, tmp_path: Path) -> None:
    pairs = ec.datasets.load("neusight").of_tool("neusight")
    frame = pairs.to_frame().filter(pl.col("tool") == "neusight")
    trained = frame.filter(pl.col("in_training") & pl.col("in_distribution"))
    trained.write_csv(tmp_path / "trained.csv")
    argv = ("measurements", "leakage", "neusight", "--training", tmp_path / "trained.csv",
            "--keys", "device,model,mode,seq_len,batch")  # fmt: skip
    found = json.loads(run(*argv, "--json").out)
    names = {one["name"]: one["n"] for one in found["classes"]}
    assert names == {"same measurement": 48, "new values of other keys": 98}
    assert found["new"]["value"] < found["mape"]["value"]
    out = " ".join(run(*argv).out.split())
    assert "The pairs seen in training do not make the pooled error look better." in out
    assert "A split by model would report a MAPE of" in out
    ran = run("measurements", "leakage", "neusight")
    assert (ran.code, "--training" in ran.err) == (2, True)


@pytest.mark.extras
def test_it_draws_classes() -> None:
    pytest.importorskip("matplotlib")
    ax = leakage(evaluated(), {"device": ["A"], "batch": [1]}).plot()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[-1] == "same configuration (n=1)"
    assert len(labels) == 4
