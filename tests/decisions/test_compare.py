"""`errcomp.compare`: evaluations against a brute force, predictions against what is known."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp.decisions import probabilities
from errcomp.decisions.alternatives import CLOSE
from errcomp.decisions.comparing import Comparison
from errcomp.decisions.errors import Posterior, Sampler
from errcomp.decisions.probabilities import Learned
from errcomp.decisions.results import Decisions
from errcomp.errors import InputError
from tests.decisions.laws import choices


def brute(frame: pl.DataFrame) -> dict[str, Any]:
    """Count right comparisons and regrets, one by one."""
    right, regrets, best = [], [], []
    for _, rows in frame.group_by("model", "batch", maintain_order=True):
        p, m = rows["predicted"].to_list(), rows["measured"].to_list()
        if len(p) < 2:
            continue
        for i, j in combinations(range(len(p)), 2):
            right.append((p[i] < p[j]) == (m[i] < m[j]))
        chosen = int(np.argmin(p))
        regrets.append(m[chosen] / min(m) - 1)
        best.append(m[chosen] == min(m))
    return {
        "n": len(right),
        "right": np.mean(right),
        "regret": np.mean(regrets),
        "most": max(regrets),
        "best": np.mean(best),
    }


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    return ec.compare("neusight", "device")  # type: ignore[return-value]


@pytest.mark.slow
def test_an_evaluation_counts_what_a_loop_counts() -> None:
    frame = choices(1)
    found, expected = ec.compare(frame, "device"), brute(frame)
    assert isinstance(found, Decisions)
    assert found.n == expected["n"]
    assert found.right.value == pytest.approx(expected["right"])
    assert found.regret.value == pytest.approx(expected["regret"])
    assert found.regret_max == pytest.approx(expected["most"])
    assert found.best.value == pytest.approx(expected["best"])
    assert sum(row.n for row in found.calibration) == found.n
    assert sum(row.n for row in found.by_ratio) == found.n
    assert sum(duel.n for duel in found.duels) == found.n
    assert sum(duel.right for duel in found.duels) == round(found.n * found.right.value)
    assert found.top[0].regret_mean == pytest.approx(found.regret.value)
    assert found.top[1].regret_mean <= found.top[0].regret_mean


@pytest.mark.slow
def test_neusight_is_calibrated_with_both_devices_left_out(decisions: Decisions) -> None:
    assert (decisions.n, decisions.choices, decisions.left_out) == (382, 29, "alternatives")
    gaps = [abs(row.stated - row.found.value) for row in decisions.calibration]
    assert np.mean(gaps) <= 0.03
    for row in decisions.calibration:
        assert row.found.low <= row.stated <= row.found.high
    assert decisions.wrong_when_sure <= 0.05
    assert 0.1 < decisions.needed < 0.35
    learned, independent, _ = decisions.assumptions
    assert learned.called >= independent.called


@pytest.mark.slow
def test_other_ways_to_choose_are_on_the_same_comparisons(decisions: Decisions) -> None:
    ways = {way.way: way for way in decisions.ways}
    habitat = ways["habitat"]
    pairs = ec.load("neusight")
    both = pairs.of_tool("habitat")
    frame = pl.DataFrame(
        {
            "model": both.column("model").tolist(),
            "batch": [
                f"{a}/{b}/{c}"
                for a, b, c in zip(
                    both.column("mode"), both.column("batch"), both.column("seq_len"), strict=True
                )
            ],
            "predicted": both.predicted,
            "measured": both.measured,
        }
    )
    expected = brute(frame)
    assert habitat.n == expected["n"]
    assert habitat.right == pytest.approx(expected["right"])
    assert habitat.regret_mean == pytest.approx(expected["regret"])
    assert ways["at random"].right == 0.5
    assert ways["data sheet: peak FLOP/s"].n > 300
    assert all(way.n <= decisions.n for way in decisions.ways)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_the_document_comes_back(
    decisions: Decisions, tmp_path: Path
) -> None:
    again = ec.compare("neusight", "device")
    assert again.to_json() == decisions.to_json()
    decisions.save(tmp_path / "d.json")
    assert ec.read_result(tmp_path / "d.json").to_json() == decisions.to_json()


@pytest.mark.usefixtures("few_draws")
def test_what_the_contract_names_is_there() -> None:
    found = ec.compare(choices(1, devices=4, conditions=6), "device")
    document = json.loads(found.to_json())
    names = {"calibration", "wrong_when_sure", "share_called", "regret_mean", "regret_max", "rows"}
    assert names <= set(document)
    assert {"stated", "found", "n"} <= set(document["calibration"][0])
    assert {"model", "chosen", "best", "regret"} <= set(document["rows"][0])


@pytest.mark.parametrize(
    ("devices", "steps"),
    [
        # Six folds of two of four devices, and the model of all rows; of two devices three folds of
        # a condition. Each sampler forgets its start in 150 steps.
        (4, {6: 150 + 400, 1: 150 + 2_000}),
        (2, {1: 3 * (150 + 600) + 150 + 2_000}),
    ],
)
def test_probabilities_come_from_this_many_draws(
    devices: int, steps: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which other tests use fewer."""
    made: Counter[int] = Counter()
    monkeypatch.setattr(Sampler, "step", lambda self: made.update([self.folds]))
    table = choices(1, devices=devices, conditions=3, models=20, present=1.0)
    ec.compare(table, "device", evaluate=True)
    assert made == steps


def without(frame: pl.DataFrame, devices: list[str]) -> pl.DataFrame:
    """Return the table without the measurements of these devices."""
    hidden = pl.col("device").is_in(devices)
    return frame.with_columns(measured=pl.when(hidden).then(None).otherwise(pl.col("measured")))


@pytest.mark.slow
def test_rows_without_a_measurement_are_compared() -> None:
    frame = choices(2, present=1.0)
    found = ec.compare(without(frame, ["D00", "D01"]), "device")
    assert isinstance(found, Comparison)
    # Every comparison of the two devices, with each other and with the other four.
    assert len(found) == 20 * (1 + 2 * 4)
    assert np.isnan(found.measured_ratio).all()
    assert (found.p_faster >= 0.5).all()
    assert found.words == ["faster" if p >= 0.9 else CLOSE for p in found.p_faster]
    assert len(found.choices) == 20
    truth = {(row["device"], row["batch"]): row["measured"] for row in frame.iter_rows(named=True)}
    right = [
        truth[a, found.conditions[c]["batch"]] < truth[b, found.conditions[c]["batch"]]
        for a, b, c in zip(found.first, found.second, found.condition, strict=True)
    ]
    sure = found.p_faster >= 0.95
    assert np.mean(np.array(right)[sure]) > 0.9


@pytest.mark.slow
def test_a_measured_rival_says_how_long_a_condition_takes() -> None:
    """All predictions of a condition are ten times too low: that is not one device's error."""
    frame = choices(3, present=1.0)
    times = pl.when(pl.col("batch") == 5).then(10).otherwise(1)
    shifted = frame.with_columns(measured=pl.col("measured") * times)
    hidden = pl.col("device").is_in(["D00", "D01", "D02", "D03", "D04"]) & (pl.col("batch") == 5)
    part = shifted.with_columns(measured=pl.when(hidden).then(None).otherwise(pl.col("measured")))
    found = ec.compare(part, "device")
    far = np.abs(np.log(found.predicted_ratio)) > 0.35
    assert far.sum() >= 3
    assert (found.predicted_ratio[far] > 1).all()
    assert (found.p_faster[far] > 0.95).all()


@pytest.mark.usefixtures("few_draws")
def test_a_measured_table_can_be_compared_without_evaluation() -> None:
    frame = choices(4)
    found = ec.compare(frame, "device", evaluate=False)
    assert isinstance(found, Comparison)
    assert found.left_out == "alternatives"
    assert np.isfinite(found.measured_ratio).all()
    assert found.choices == ()
    document = json.loads(found.to_json())
    assert {"first", "second", "p_faster", "word"} <= set(document["rows"][0])


@pytest.mark.usefixtures("few_draws")
def test_more_pairs_teach_the_errors() -> None:
    frame = choices(5, present=1.0)
    asked = frame.filter(pl.col("batch") < 3).drop("measured")
    with pytest.raises(InputError, match=r"no error model: 0 comparisons .* --errors FILE"):
        ec.compare(asked, "device")
    found = ec.compare(asked, "device", errors=frame.filter(pl.col("batch") >= 3))
    assert isinstance(found, Comparison)
    assert {condition["batch"] for condition in (found.conditions[i] for i in found.condition)} == {
        0,
        1,
        2,
    }
    assert found.taught == 6 * 17


@pytest.mark.slow
def test_few_alternatives_are_evaluated_by_conditions() -> None:
    frame = choices(6, devices=2, present=1.0)
    found = ec.compare(frame, "device")
    assert isinstance(found, Decisions)
    assert found.left_out == "conditions"
    assert sum(row.n for row in found.calibration) == found.n == 20


@pytest.mark.slow
def test_a_large_difference_is_sure_and_none_is_close() -> None:
    frame = choices(7, present=1.0)
    more = frame.filter(pl.col("device") == "D00")
    twin = more.with_columns(device=pl.lit("twin"), measured=pl.lit(None, dtype=pl.Float64))
    slow = twin.with_columns(device=pl.lit("slow"), predicted=pl.col("predicted") * 50)
    found = ec.compare(pl.concat([frame, twin, slow]), "device")
    pairs = {
        tuple(sorted((a, b))): p
        for a, b, p in zip(found.first, found.second, found.p_faster, strict=True)
    }
    assert pairs["D00", "slow"] > 0.99
    assert pairs["D00", "twin"] < 0.9


@pytest.mark.slow
def test_the_next_measurement_is_of_a_rival_and_saves_time() -> None:
    frame = choices(8, devices=8, present=1.0)
    found = ec.compare(without(frame, ["D00", "D01", "D02"]), "device")
    for choice in found.choices:
        assert 0 <= choice.saves < 1
        assert 0 <= choice.changes <= 1
        assert (choice.measure == "") == (choice.saves == 0)
        assert choice.measure in ("", "D00", "D01", "D02")
        assert choice.expected_regret >= 0
    assert any(choice.measure for choice in found.choices)


@pytest.mark.parametrize(
    ("changes", "how", "message"),
    [
        ({}, {"level": 0.4}, "level must be between 0.5 and 1"),
        ({"unit": "ms"}, {"errors": {"unit": "us"}}, "mixed units: the table is in 'ms'"),
        ({"measured": None}, {}, "no error model: 0 comparisons"),
        ({"tool": "two"}, {}, "the table has several tools: one, two. Name one"),
    ],
)
def test_bad_input_is_explained(changes: dict[str, Any], how: dict[str, Any], message: str) -> None:
    frame = choices(9)
    if "tool" in changes:
        both = [frame.with_columns(tool=pl.lit(name)) for name in ("one", "two")]
        frame = pl.concat(both)
    elif "measured" in changes:
        frame = frame.with_columns(measured=pl.lit(None, dtype=pl.Float64))
    elif "unit" in changes:
        frame = frame.with_columns(unit=pl.lit("ms"))
        how = {"errors": choices(10).with_columns(unit=pl.lit("us"))}
    with pytest.raises(InputError, match=message):
        ec.compare(frame, "device", **how)


def test_too_few_comparisons_cannot_be_evaluated() -> None:
    table = {"device": [*"AB"], "predicted": [1.0, 2.0], "measured": [1.0, 2.0]}
    with pytest.raises(InputError, match="1 comparisons of two measured alternatives"):
        ec.compare(table, "device", evaluate=True)
    with pytest.raises(InputError, match="no error model: 1 comparisons"):
        ec.compare(table, "device", evaluate=False)


@pytest.mark.slow
def test_ties_are_counted_and_predicted_ties_are_right_half_of_the_time() -> None:
    table = {
        "device": [*"ABCD"] * 2,
        "model": [*"xxxxyyyy"],
        "predicted": [1.0, 1.0, 2.0, 3.0] * 2,
        "measured": [1.0, 1.1, 2.0, 2.0, 1.2, 1.0, 2.0, 3.0],
    }
    found = ec.compare(table, "device")
    assert isinstance(found, Decisions)
    assert (found.n, found.ties) == (11, 1)
    assert found.right.value == pytest.approx(10 / 11)
    assert found.rows[0].regret == pytest.approx(0.05)  # the mean of both that are predicted best


def each_repeated(model: Learned, choices: Any, seed: int, times: int) -> Learned:
    """Return the model with each of its draws several times: their noise is drawn anew."""
    known = model.posterior
    parts = (known.slope, known.variance, known.df, known.place)
    posterior = Posterior(*(np.repeat(part, times, axis=0) for part in parts))
    absolute = model.absolute
    return Learned(posterior, model.spread, model.known, absolute, choices.rows, seed + 1)


@pytest.mark.usefixtures("few_draws")
def test_many_alternatives_are_counted_and_too_many_are_not_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same probabilities within the error of 2,000 draws, and only the chosen one's rows."""
    frame = without(choices(11, devices=10, conditions=8, present=1.0), ["D00", "D01", "D02"])
    learned = probabilities.learned
    monkeypatch.setattr(
        probabilities,
        "learned",
        lambda found, known, seed: each_repeated(learned(found, known, seed), found, seed, 20),
    )
    few = ec.compare(frame, "device")
    monkeypatch.setattr("errcomp.decisions.comparing._MANY", 10)
    many = ec.compare(frame, "device")

    def by_name(found: Any) -> dict[Any, float]:
        rows = zip(found.condition, found.first, found.second, found.p_faster, strict=True)
        return {(c, *sorted((a, b))): p if a < b else 1 - p for c, a, b, p in rows}

    one, two = by_name(few), by_name(many)
    assert one.keys() == two.keys()
    assert max(abs(one[key] - two[key]) for key in one) < 0.05
    assert few.every
    assert many.every
    monkeypatch.setattr("errcomp.decisions.comparing._LISTED", 100)
    listed = ec.compare(frame, "device")
    assert not listed.every
    chosen = {choice.condition["batch"]: choice.chosen for choice in listed.choices}
    rows = zip(listed.condition, listed.first, listed.second, strict=True)
    assert all(chosen[listed.conditions[c]["batch"]] in (a, b) for c, a, b in rows)
    told = " ".join(str(listed).split())
    assert (
        f"The least sure are listed first; --json lists {len(listed)} comparisons with a chosen "
        "alternative; there are too many to list the others." in told
    )


@pytest.mark.slow
def test_all_pairs_of_a_thousand_alternatives_take_five_seconds() -> None:
    rng = np.random.default_rng(0)
    predicted = np.exp(rng.normal(0, 0.5, 1000))
    measured = [p * np.exp(rng.normal(0, 0.1)) if i < 20 else None for i, p in enumerate(predicted)]
    table = {"config": list(range(1000)), "predicted": predicted.tolist(), "measured": measured}
    start = time.perf_counter()
    found = ec.compare(table, "config")
    assert time.perf_counter() - start < 15  # 3 s on an idle machine
    assert len(found) == 1000 * 999 // 2 - 20 * 19 // 2
