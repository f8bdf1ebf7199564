"""Which part of a MAPE is whose."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp.documents import load
from errcomp.errors import InputError
from errcomp.measurements import attribution, budget
from errcomp.measurements.shares import NOISE, shapley
from tests.measurements.laws import single_cause

pytestmark = pytest.mark.core

Run = Callable[..., Any]
SINGLE = ("noise", "hidden", "load", "kernels", "composition", "factor", "rest")


@pytest.mark.parametrize("cause", SINGLE)
def test_a_single_cause_is_named_with_its_share(cause: str) -> None:
    table, share = single_cause(cause, "normal", np.random.default_rng(5))
    found = budget(table)
    assert (found.largest, found.parts[0].cause) == (cause, cause)
    assert found.parts[0].low <= share <= found.parts[0].high
    assert found.parts[0].added == pytest.approx(share, rel=0.25)
    assert sum(part.added for part in found.parts) == pytest.approx(found.mape, rel=1e-9)
    assert [part.added for part in found.parts] == sorted(
        (part.added for part in found.parts), reverse=True
    )
    causes = {part.cause for part in found.parts}
    assert ("kernels" in causes) == (cause in ("kernels", "composition"))


def test_shares_are_means_over_all_orders() -> None:
    rng = np.random.default_rng(0)
    parts = {name: 0.1 * rng.normal(size=50) for name in "abc"}
    added = dict.fromkeys(parts, 0.0)
    for order in permutations(parts):
        total, before = np.zeros(50), 0.0
        for name in order:
            total = total + parts[name]
            now = float(np.abs(np.expm1(total)).mean())
            added[name] += (now - before) / 6
            before = now
    assert shapley(parts, "c", 0.0) == pytest.approx(added)


def test_noise_alone_is_averaged_over() -> None:
    rng = np.random.default_rng(0)
    logs = 0.05 * rng.normal(size=4_000)
    noise = 0.1 * rng.normal(size=4_000)
    shares = shapley({"a": logs, "b": noise}, "b", 0.1, float(noise.var()))
    # All of b is noise: it has nothing of its own.
    assert shares["b"] == pytest.approx(0.0, abs=1e-3)
    known = shapley({"a": logs, "noise of b": noise}, "a", 0.0)
    assert shares[NOISE] == pytest.approx(known["noise of b"], rel=0.03)
    assert sum(shares.values()) == pytest.approx(float(np.abs(np.expm1(logs + noise)).mean()))


def test_parts_that_offset_each_other_may_be_negative() -> None:
    rng = np.random.default_rng(0)
    table = {
        "case": range(40),
        "measured": np.full(40, 10.0),
        "measured_kernel_sum": np.full(40, 9.0),
        "predicted_kernel_sum": 9.0 * np.exp(0.3 + 0.01 * rng.normal(size=40)),
        "predicted": 10.0 * np.exp(0.1 + 0.01 * rng.normal(size=40)),
    }
    found = budget(table)
    assert [part.cause for part in found.parts] == ["kernels", "composition"]
    assert found.parts[1].added < -0.02
    assert found.parts[1].high < 0


def test_two_equal_causes_cannot_be_ranked() -> None:
    rng = np.random.default_rng(1)
    table = {
        "case": range(30),
        "measured": np.full(30, 10.0),
        "measured_kernel_sum": np.full(30, 9.0),
        "predicted_kernel_sum": 9.0 * np.exp(0.1 * rng.normal(size=30)),
    }
    table["predicted"] = table["predicted_kernel_sum"] * np.exp(0.1 * rng.normal(size=30)) / 0.9
    found = budget(table)
    assert found.largest is None
    assert found.sure < 0.9
    assert "cannot be determined" in str(found.view().verdicts[0].head)
    one, two = found.parts
    more = replace(found, parts=(one, two, replace(two, cause="noise", added=0.001)))
    (note,) = (note for note in more.view().tables[0].notes if "Whether" in str(note))
    assert f"Whether '{one.cause}' or '{two.cause}' adds more" in str(note)


def test_rows_that_differ_without_a_reason_are_a_part() -> None:
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(60), 4)
    slow = np.where((group % 10 == 0) & (np.arange(240) % 4 == 3), 3.0, 1.0)
    true = np.exp(rng.normal(size=60))[group]
    measured = true * slow * np.exp(0.01 * rng.normal(size=240))
    found = budget({"case": group, "measured": measured, "predicted": true})
    parts = {part.cause: part.added for part in found.parts}
    # A fortieth of the rows is three times as slow: their predictions are two thirds too low.
    assert parts["hidden"] == pytest.approx(2 / 3 / 40, rel=0.15)
    assert parts["noise"] == pytest.approx(0.008, rel=0.25)
    assert found.largest == "hidden"


def test_other_averages_are_of_the_same_errors() -> None:
    table = {"case": range(12), "measured": np.arange(1, 13.0), "predicted": np.arange(2, 14.0)}
    found = budget(table)
    ape = 1 / np.arange(1, 13.0)
    assert found.averages == pytest.approx(
        {"mean": ape.mean(), "median": np.median(ape), "weighted mean": 12 / 78}
    )


def test_copies_add_what_goes_without_them() -> None:
    rng = np.random.default_rng(2)
    measured = np.exp(rng.normal(size=60))
    error = 0.02 * rng.normal(size=60)
    error[:5] = 0.8
    rows = [*range(60), *([0, 1, 2, 3, 4] * 4)]
    table = {
        "case": rows,
        "measured": measured[rows],
        "predicted": (measured * np.exp(error))[rows],
    }
    found = budget(table)
    parts = {part.cause: part.added for part in found.parts}
    ape = np.abs(np.expm1(error))
    assert found.mape == pytest.approx(ape[rows].mean())
    assert parts["copies"] == pytest.approx(ape[rows].mean() - ape.mean())
    assert sum(parts.values()) == pytest.approx(found.mape)


@pytest.mark.slow
def test_a_load_that_changes_nothing_has_no_part() -> None:
    flagged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(40), 3)
        table = {
            "model": group % 8,
            "case": group,
            "concurrency": rng.choice([1, 8, 64], 40)[group],
            "measured": np.exp(0.02 * rng.normal(size=120)),
            # Models have errors of their own.
            "predicted": np.exp(0.1 * rng.normal(size=8)[group % 8]),
        }
        flagged += any(part.cause == "load" for part in budget(table).parts)
    assert flagged <= 3  # 1 % of 40 tables: more than 3 in 1 of 10,000 cases


def test_a_load_of_many_values_is_put_into_classes() -> None:
    rng = np.random.default_rng(3)
    rate = rng.uniform(1, 100, 200)
    predicted = np.exp(rng.normal(size=200))
    measured = predicted * np.exp(0.5 * (rate > 80) + 0.02 * rng.normal(size=200))
    found = budget({"case": range(200), "request_rate": rate, "measured": measured,
                    "predicted": predicted})  # fmt: skip
    assert found.largest == "load"
    assert found.parts[0].added > 0.6 * found.mape


def test_a_load_that_varies_within_configurations_is_compared_there() -> None:
    rng = np.random.default_rng(3)
    case, load = np.repeat(np.arange(30), 4), np.tile([1, 8, 16, 64], 30)
    predicted = np.exp(0.1 * case)
    measured = predicted * np.exp(0.3 * (load >= 16) + 0.02 * rng.normal(size=120))
    found = budget(
        {"case": case, "concurrency": load, "measured": measured, "predicted": predicted}
    )
    added = {part.cause: part.added for part in found.parts}
    assert set(added) == {"load", "rest"}
    # Half of the rows take exp(0.3) times as long.
    assert added["load"] == pytest.approx((1 - math.exp(-0.3)) / 2, abs=0.005)


def test_sums_of_kernels_that_few_rows_have_are_passed_over() -> None:
    rng = np.random.default_rng(3)
    measured = np.exp(rng.normal(size=60))
    table = {"case": range(60), "measured": measured, "measured_kernel_sum": 0.5 * measured,
             "predicted": measured * np.exp(0.1 * rng.normal(size=60))}  # fmt: skip

    def summed(n: int) -> Any:
        return budget({**table, "predicted_kernel_sum": [1.0] * n + [0.0] * (60 - n)})

    few, half = summed(29), summed(30)
    assert ([part.cause for part in few.parts], few.n, few.left_out) == (["rest"], 60, 0)
    assert "kernels" in {one.cause for one in few.not_looked_for}
    assert {part.cause for part in half.parts} == {"kernels", "composition"}
    assert (half.n, half.left_out) == (30, 30)


@pytest.mark.parametrize("settings", [12, 13])
def test_twelve_settings_get_an_effect_each(settings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "_DRAWS", 4)
    rng = np.random.default_rng(3)
    batch, setting = np.repeat(np.arange(40), 4), rng.integers(0, settings, 160)
    predicted = np.exp(0.1 * batch)
    effect = np.linspace(0, 1, settings)[setting]
    table = {
        "batch": batch,
        "log": [f"threads={i}" for i in setting],
        "measured": predicted * np.exp(effect + 0.01 * rng.normal(size=160)),
        "predicted": predicted,
    }
    added = {part.cause: part.added for part in budget(table).parts}
    # With an effect each, noise alone is left; else what rows differ by from their median.
    assert (added["rest"] < 0.002) == (settings == 12)
    assert added["hidden"] > 0.05


def test_drawn_tables_have_no_more_rows_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "_DRAWS", 20)
    monkeypatch.setattr(attribution, "_MOST", 59)
    seen: list[list[float]] = []

    def recorded(parts: dict[str, Any], *rest: Any) -> dict[str, float]:
        seen.append(parts["rest"].tolist())
        return shapley(parts, *rest)

    monkeypatch.setattr("errcomp.measurements.shares.shapley", recorded)
    rng = np.random.default_rng(0)
    budget({"model": np.arange(60) // 6, "case": range(60), "measured": np.exp(rng.normal(size=60)),
            "predicted": [1.0] * 60})  # fmt: skip
    table, *drawn = seen
    assert (len(table), len(drawn)) == (60, 20)
    place = {value: i for i, value in enumerate(table)}
    for rows in drawn:
        # Ten models are drawn whole, with replacement; one of their rows is left out.
        times = np.bincount([place[value] for value in rows], minlength=60).reshape(10, 6)
        assert len(rows) == 59
        assert (times.max(axis=1, keepdims=True) - times).sum() == 1


def test_a_document_whose_largest_cause_is_not_the_first_is_refused() -> None:
    document = json.loads(budget(single_cause("load", "normal", np.random.default_rng(0))[0])
                          .to_json())  # fmt: skip
    assert load(document).largest == "load"
    assert load({**document, "largest": None}).largest is None
    with pytest.raises(
        InputError, match="largest must be load, the first of the parts, or null, got 'rest'"
    ):
        load({**document, "largest": "rest"})


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"load": "nothing"}, "nothing"),
        (
            {"note": list("ab" * 10)},
            {"load": "note"},
            "column 'note' must have a number in each row",
        ),
        ({}, {"kernels": ("predicted", "measured")}, "predicted"),
        (
            {"a": [0.0] * 20, "b": [1.0] * 20},
            {"kernels": ("a", "b")},
            "only 0 of 20 rows have numbers above 0",
        ),
        ({"tool": list("xy" * 10)}, {}, r"several tools: x, y\. Name one: --tool x"),
        (
            {"predicted": [1e308] * 20, "measured": [1e-308] * 20},
            {},
            r"row 1, the prediction is 10\^616",
        ),
        ({"predicted": [0.0] * 15 + [1.0] * 5}, {}, "at least 10 predictions above 0, got 5"),
    ],
)
def test_what_cannot_be_attributed_is_refused(
    change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    table = {"case": range(20), "measured": np.arange(1, 21.0), "predicted": np.arange(2, 22.0)}
    with pytest.raises(InputError, match=message):
        budget({**table, **change}, **options)


def test_pairs_in_an_engine_are_refused() -> None:
    frame = pl.LazyFrame({"measured": [1.0] * 20, "predicted": [1.1] * 20})
    with pytest.raises(InputError, match="needs all pairs in memory"):
        budget(frame)


def test_the_built_in_table(run: Run) -> None:
    found = json.loads(run("measurements", "budget", "neusight", "--json").out)
    assert (found["n"], found["left_out"], found["largest"]) == (87, 59, None)
    assert {part["cause"] for part in found["parts"]} == {"kernels", "composition"}
    assert found["averages"]["mean"] == pytest.approx(found["mape"])
    pairs = ec.datasets.load("neusight").of_tool("neusight")
    sums = pairs.column("measured_operator_sum").astype(float)
    assert int((sums > 0).sum()) == 87
    out = run("measurements", "budget", "neusight", "--tool", "roofline").out
    assert "kernels" in out.splitlines()[6]
    assert "Not attributed: noise (no configuration was measured twice)." in out


def test_the_command_names_columns(run: Run, tmp_path: Path) -> None:
    table, _ = single_cause("load", "normal", np.random.default_rng(0))
    path = tmp_path / "t.csv"
    pl.DataFrame(table).rename({"concurrency": "users"}).write_csv(path)
    found = json.loads(run("measurements", "budget", path, "--load", "users", "--json").out)
    assert found["largest"] == "load"
    ran = run("measurements", "budget", path, "--kernels", "a")
    assert (ran.code, "--kernels takes two columns, got 1" in ran.err) == (2, True)


@pytest.mark.extras
def test_it_draws_its_parts() -> None:
    pytest.importorskip("matplotlib")
    ax = budget("neusight").plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["composition", "kernels"]
    assert math.isclose(ax.patches[1].get_width(), 4.88, rel_tol=1e-2)


def test_kernels_are_added_up() -> None:
    """The table of NeuSight's kernels has the runs of its table of pairs."""
    runs, pairs = budget(ec.datasets.load("neusight-kernels")), budget("neusight")
    assert (runs.n, runs.mape) == (pairs.n, pytest.approx(pairs.mape))
    parts = {part.cause: part.added for part in pairs.parts}
    assert {part.cause: part.added for part in runs.parts} == pytest.approx(parts)


def kernels_of(n: int, **missing: Any) -> ec.Kernels:
    """Runs of two kernels of 2 and 1 ms, which take 4 ms together with what lies between them."""
    table = {
        "run": np.repeat([f"r{i}" for i in range(n)], 2),
        "model": np.repeat([f"m{i}" for i in range(n)], 2),
        "kernel": ["a", "b"] * n,
        "count": [1, 2] * n,
        "measured": [2.0, 0.5] * n,
        "predicted": [2.2, 0.55] * n,
        "run_measured": [4.0] * (2 * n),
    }
    return ec.Kernels(table | missing)


def test_runs_are_sums_of_kernels() -> None:
    found = budget(kernels_of(10))
    assert found.mape == pytest.approx(1 - 3.3 / 4)
    parts = {part.cause: part.added for part in found.parts}
    # v(kernels) = 0.1, v(composition) = 0.25: the mean over both orders.
    assert parts["kernels"] == pytest.approx((0.1 + 0.175 - 0.25) / 2)
    assert parts["composition"] == pytest.approx((0.25 + 0.175 - 0.1) / 2)


@pytest.mark.parametrize(
    "missing",
    [
        {"run_measured": [math.nan] * 20},
        {"measured": [math.nan, 1.0] * 10},
        {"predicted": [0.0] * 20},
        {"status": ["ok", "failed"] * 10},
    ],
    ids=["run", "kernel", "zero", "failed"],
)
def test_runs_without_both_sums_and_a_total_are_refused(missing: dict[str, Any]) -> None:
    with pytest.raises(
        InputError,
        match=r"at least 10 runs .* 0 of 10 runs have them\. Add runs, or the missing times",
    ):
        budget(kernels_of(10, **missing))


def test_nine_runs_are_too_few() -> None:
    with pytest.raises(InputError, match="; 9 of 9 runs have them"):
        budget(kernels_of(9))


def test_per_run_of_the_command(run: Callable[..., Any]) -> None:
    result = run("measurements", "budget", "neusight-kernels", "--per-run", "--json")
    assert json.loads(result.out)["n"] == 87
    refused = run("measurements", "budget", "neusight-kernels", "--per-run", "--zeros", "exclude")
    assert refused.code == 2
    assert (
        "leave out --zeros: --per-run reads a table of kernels, and only tables of pairs have "
        "these options"
    ) in refused.err
