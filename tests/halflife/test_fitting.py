"""All estimators of half-life on the groups of a history."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.halflife.fitting import half_life
from errcomp.halflife.results import HalfLives
from errcomp.report.writing import plain
from errcomp.results import format_fraction
from errcomp.tables import History

VERSIONS = [f"1.{i}" for i in range(16)]
DAYS = [f"20{20 + i // 4}-{1 + 3 * (i % 4):02}-01" for i in range(16)]


def table(seed: int = 0, noise: float = 0.01, **more: Any) -> dict[str, list[Any]]:
    """Ten operators of each of two classes; the Gelus are half as fast from 1.8 on."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("version", "released", "kernel_class", "shape", "repeat", "measured")
    }
    for kind in ("Conv", "Gelu"):
        for shape in range(10):
            for i, (version, day) in enumerate(zip(VERSIONS, DAYS, strict=True)):
                for repeat in range(2):
                    slow = 2.0 if kind == "Gelu" and i >= 8 else 1.0
                    time = (shape + 1) * slow * math.exp(rng.normal(0, noise))
                    values = (version, day, kind, shape, repeat, time)
                    for name, value in zip(rows, values, strict=True):
                        rows[name].append(value)
    return rows | more


@pytest.fixture(scope="module")
def half_lives() -> HalfLives:
    return half_life(History(table()), by="kernel_class", error=0.1)


def test_what_moved_expires_and_what_stayed_does_not(half_lives: HalfLives) -> None:
    conv, gelu = half_lives.groups
    assert (conv.key, gelu.key) == ({"kernel_class": "Conv"}, {"kernel_class": "Gelu"})
    for method in ("turnbull", "trajectory"):
        moved, stayed = gelu.estimate(method, "releases"), conv.estimate(method, "releases")
        assert moved is not None
        assert stayed is not None
        assert (moved.half_life, moved.low, moved.high) == (8.0, 8.0, 8.0)
        assert stayed.half_life == math.inf
        assert stayed.low is not None
        assert stayed.low >= 15
    months = gelu.estimate("turnbull", "months")
    assert months is not None
    assert months.low is not None
    assert months.high is not None
    # 1.8 came 24 months after 1.0, and 1.7 was still right.
    assert 20 < months.low < months.high == pytest.approx(24, abs=0.1)


def test_steps_name_the_release_and_how_many_it_hit(half_lives: HalfLives) -> None:
    conv, gelu = half_lives.groups
    (step,) = [release_step for release_step in gelu.steps if release_step.n_series > 2]
    assert (step.version, step.n_series, step.n_looked_at) == ("1.8", 10, 10)
    # Predicted over measured halves.
    assert step.change == pytest.approx(-0.5, abs=0.02)
    assert step.false_alarms == 0.5
    assert all(release_step.n_series <= 2 for release_step in conv.steps)


def test_rows_are_what_the_command_prints(half_lives: HalfLives) -> None:
    rows = half_lives.rows()
    assert len(rows) == sum(len(group.estimates) for group in half_lives.groups)
    needed = {"half_life", "low", "high", "unit", "censored_share", "n_units", "method", "steps"}
    assert all(needed < set(row) for row in rows)
    assert {row["unit"] for row in rows} == {"releases", "months"}
    document = json.loads(json.dumps(plain(half_lives.to_dict()), allow_nan=False))
    turnbull = [row for row in document["rows"] if row["method"] == "turnbull"]
    # JSON has no infinity: beyond_observed says that there is no end in sight.
    assert [(row["half_life"], row["beyond_observed"]) for row in turnbull[:1]] == [(None, True)]
    assert document["noise"]["source"] == "repeats"


def test_without_repeats_software_and_machine_cannot_be_told_apart() -> None:
    rows = table()
    once = [i for i, repeat in enumerate(rows["repeat"]) if repeat == 0]
    alone = {name: [values[i] for i in once] for name, values in rows.items() if name != "repeat"}
    half_lives = half_life(alone, error=0.1)
    assert any(
        "cannot be distinguished" in note for note in (*half_lives.notes, *half_lives.noise.notes)
    )
    assert half_lives.groups[0].panel.n_series == 20


def test_no_predictions_and_no_promise_assume_five_percent() -> None:
    half_lives = half_life(table())
    (group,) = half_lives.groups
    assert group.threshold.source == "assumed"
    assert any("5" in note for note in group.notes)


def test_an_error_that_is_noise_is_no_half_life() -> None:
    rows = table()
    rows["predicted"] = [float(shape + 1) for shape in rows["shape"]]
    (group,) = half_life(rows).groups
    assert group.threshold.value is None
    assert all(estimate.half_life is None and estimate.refused for estimate in group.estimates)
    assert [estimate.unit for estimate in group.estimates] == ["releases", "months"]
    # The steps are there all the same.
    assert [step.version for step in group.steps if step.n_series > 2] == ["1.8"]


def test_a_series_by_itself() -> None:
    rows = table()
    chosen = [i for i, s in enumerate(zip(rows["kernel_class"], rows["shape"], strict=True))
              if s == ("Gelu", 3)]  # fmt: skip
    columns = {name: [values[i] for i in chosen] for name, values in rows.items()}
    (group,) = half_life(columns, error=0.1).groups
    bracket = group.estimate("expiry", "releases")
    assert bracket is not None
    assert (bracket.half_life, bracket.low, bracket.high) == (8.0, 8.0, 8.0)
    assert group.estimate("turnbull", "releases") is None
    decay = group.estimate("decay", "releases")
    assert decay is not None
    assert decay.refused


def test_a_silent_change_of_the_machine_is_said() -> None:
    versions = ["1.0", "1.0", "1.1", "1.1", "1.1", "1.1", "1.2", "1.2"] * 4
    dates = [f"2020-03-{day:02}" for day in range(1, 9)] * 4
    rng = np.random.default_rng(1)
    times = np.where(np.arange(32) % 8 < 4, 0.2, 0.4) * np.exp(rng.normal(0, 0.01, 32))
    half_lives = half_life(
        {
            "version": versions,
            "date": dates,
            "series": np.repeat(["a", "b", "c", "d"], 8).tolist(),
            "measured": times.tolist(),
        }
    )
    large = [
        attribution for attribution in half_lives.environment if abs(attribution.step.size) > 0.5
    ]
    assert [attribution.verdict for attribution in large] == ["environment"] * 4
    (note,) = (note for note in half_lives.notes if "changes of the environment" in note)
    largest = max(large, key=lambda attribution: abs(attribution.step.size))
    change = format_fraction(abs(largest.step.change[0]))
    assert f"(largest: {largest.series}, {change} between {largest.since}" in note


def test_progress_is_reported() -> None:
    seen: list[tuple[float, float]] = []
    half_life(table(), by="kernel_class", error=0.1, progress=lambda *now: seen.append(now))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "measured_by"}, "no column 'measured_by'"),
        ({"by": "version"}, "varies within series, e.g. within"),
        ({"by": "method"}, "cannot group by 'method'"),
        ({"error": -0.1}, "error"),
        ({"level": 1.0}, "level"),
        ({"cluster": "nothing"}, "nothing"),
    ],
)
def test_what_cannot_be_done_is_refused(options: dict[str, Any], message: str) -> None:
    rows = table()
    if options.get("by") == "method":
        rows["method"] = rows["kernel_class"]
    with pytest.raises(InputError, match=message):
        half_life(rows, **options)


def test_one_version_is_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="Add validations of another version"):
        ec.half_life({"version": ["1.0"], "measured": [1.0]})


def test_releases_of_another_product_do_not_count() -> None:
    rows: dict[str, list[Any]] = {name: [] for name in ("product", "op", "version", "measured")}
    for product, versions in (("a", ["1", "2", "3", "4"]), ("b", ["1.5", "2.5", "3.5", "4.5"])):
        for op in range(8):
            for i, version in enumerate(versions):
                values = (product, op, version, 2.0 if i >= 2 else 1.0)
                for name, value in zip(rows, values, strict=True):
                    rows[name].append(value)
    for group in half_life(rows, by="product", error=0.1).groups:
        assert len(group.panel.versions) == 4
        trajectory = group.estimate("trajectory", "releases")
        assert trajectory is not None
        assert trajectory.half_life == 2.0
    together = half_life(rows, error=0.1)
    assert len(together.groups[0].panel.versions) == 8
    assert any("group by product" in note for note in together.notes)


def test_what_was_left_out_is_counted_once() -> None:
    rows = table()
    rows["measured"][3] = None
    half_lives = half_life(History(rows), by="kernel_class", error=0.1)
    assert [(d.n, d.reason) for d in half_lives.dropped] == [(1, "no measurement")]


def test_series_that_are_not_counted_are_told_with_how_many_there_are() -> None:
    rows = [(f"1.{i}", op) for op in ("Gelu", "Conv", "Add") for i in range(4)]
    half_lives = half_life(
        {
            "version": [version for version, _ in rows],
            "op": [op for _, op in rows],
            "predicted": [1.5 if op == "Add" else 1.0 for _, op in rows],
            "measured": [1.0 for _ in rows],
        },
        error=0.1,
    )
    left_out = (
        "1 of 3 series is not counted for the median survival, because it is clearly beyond the "
        "threshold"
    )
    assert any(note.startswith(left_out) for note in half_lives.groups[0].notes)


@pytest.mark.slow
@pytest.mark.extras
def test_processes_change_nothing() -> None:
    pytest.importorskip("joblib")
    seen: list[tuple[float, float]] = []
    half_lives = half_life(table(), by="kernel_class")
    two = half_life(table(), by="kernel_class", n_jobs=2, progress=lambda *done: seen.append(done))
    assert json.dumps(half_lives.to_dict()) == json.dumps(two.to_dict())
    for group, other in zip(half_lives.groups, two.groups, strict=True):
        assert group.panel.error.tobytes() == other.panel.error.tobytes()
    assert seen == [(1, 2), (2, 2)]


def test_versions_that_share_a_date_have_no_half_lives_in_months() -> None:
    days = ["2024-01-01", "2024-02-01", "2024-02-01", "2024-03-01"]
    rows = {"version": ["1.0", "1.1", "1.2", "1.3"], "measured": [1.0, 1.01, 2.0, 2.02]}
    together = half_life({**rows, "released": days})
    assert together.clocks == ("releases",)
    assert {row["unit"] for row in together.rows()} == {"releases"}
    note = (
        "half-lives are given only in releases, because versions share dates or their dates "
        "contradict their order"
    )
    assert together.notes.count(note) == 1
    apart = half_life({**rows, "released": [*days[:2], "2024-02-02", days[3]]})
    assert apart.clocks == ("releases", "months")
    undated = half_life(rows)
    assert undated.clocks == ("releases",)
    assert note not in (*apart.notes, *undated.notes)


def test_versions_validated_on_one_date_each_say_nothing_of_the_machine() -> None:
    versions = [f"1.{i}" for i in range(10)]
    times = [1.0, 1.01, 1.02, 1.0, 1.01, 2.0, 2.02, 2.03, 2.0, 2.01]
    days = [f"2024-01-{i + 1:02}" for i in range(10)]
    rows = {"version": versions, "measured": times, "date": days}
    once = half_life(rows)
    assert [step.version for step in once.groups[0].steps] == ["1.5"]
    assert once.environment == ()
    again = {"version": ["1.0"], "measured": [2.0], "date": ["2024-01-11"]}
    twice = half_life({name: [*rows[name], *again[name]] for name in rows})
    assert len(twice.environment) == 1
    assert half_life({**rows, "date": [None, *days[1:]]}).environment == ()
