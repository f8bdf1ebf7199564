"""Forecasts of a model: probabilities against what is known of simple histories, refusals, dates.

Whether its probabilities are calibrated is simulated in tests/statistical.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.forecast import (
    AHEAD,
    Answer,
    GroupForecast,
    HalfLifeForecast,
    forecast_half_life,
)
from errcomp.report.writing import plain
from errcomp.tables import History

LIMIT = np.log(1.1)
RELEASES = list(AHEAD["releases"])


def table(moves: np.ndarray, noise: float = 0.01, **more: Any) -> dict[str, list[Any]]:
    """Series with these moves of the log error at each version, each validated twice."""
    s, m = moves.shape
    rng = np.random.default_rng(1)
    error = moves.cumsum(axis=1)[:, :, None] + rng.normal(0, noise, (s, m, 2))
    return {
        "version": [f"1.{i}" for i in range(m) for _ in range(2)] * s,
        "released": [f"20{10 + i // 4}-{1 + 3 * (i % 4):02}-01" for i in range(m) for _ in (0, 1)]
        * s,
        "series": [f"op{i}" for i in range(s) for _ in range(2 * m)],
        "net": [f"net{i // 4}" for i in range(s) for _ in range(2 * m)],
        "repeat": [0, 1] * (s * m),
        "measured": np.exp(-error).ravel().tolist(),
        **more,
    }


def rare(s: int = 40, m: int = 24, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice([-0.25, 0.25], (s, m)) * (rng.random((s, m)) < 0.05)


def smooth(s: int = 40, m: int = 24, sd: float = 0.03) -> np.ndarray:
    return np.random.default_rng(2).normal(0, sd, (s, m))


def undated(moves: np.ndarray, noise: float = 0.01) -> dict[str, list[Any]]:
    """The same without dates: forecasts in releases alone."""
    return {name: values for name, values in table(moves, noise).items() if name != "released"}


def answer_of(
    forecast: HalfLifeForecast | GroupForecast, method: str, unit: str = "releases"
) -> Answer:
    group = forecast.groups[0] if isinstance(forecast, HalfLifeForecast) else forecast
    (answer,) = [
        answer for answer in group.answers if (answer.method, answer.unit) == (method, unit)
    ]
    return answer


def probabilities(answer: Answer) -> np.ndarray:
    assert answer.forecast is not None, answer.refused
    return answer.forecast.probability


@pytest.fixture(scope="module")
def steps() -> HalfLifeForecast:
    return forecast_half_life(table(rare()), error=0.1)


@pytest.fixture(scope="module")
def drift() -> HalfLifeForecast:
    return forecast_half_life(table(smooth()), error=0.1)


def test_steps_are_forecast_by_their_rate(steps: HalfLifeForecast) -> None:
    by_steps = answer_of(steps, "steps")
    assert by_steps.forecast is not None
    assert by_steps.forecast.ahead.tolist() == RELEASES
    # Any step is fatal; two that cancel bring a few back.
    rate = (rare()[:, 1:] != 0).mean()
    assert probabilities(by_steps)[:3] == pytest.approx(np.exp(-rate * np.arange(3)), abs=0.01)
    assert (by_steps.forecast.low <= probabilities(by_steps)).all()
    assert (by_steps.forecast.high >= probabilities(by_steps)).all()
    assert answer_of(steps, "drift").refused.startswith("drift is dominated by a few large steps")
    assert answer_of(steps, "drift").forecast is None


def test_smooth_drift_is_forecast_by_its_variance(drift: HalfLifeForecast) -> None:
    by_drift = answer_of(drift, "drift")
    wanted = 1 - 2 * stats.norm.sf(LIMIT / (0.03 * np.sqrt([1, 2, 5, 10])))
    assert by_drift.forecast is not None
    assert probabilities(by_drift)[1:] == pytest.approx(wanted, abs=0.05)
    assert (by_drift.forecast.low[1:] < wanted).all()
    assert (by_drift.forecast.high[1:] > wanted).all()
    assert answer_of(drift, "steps").refused.startswith("drift consists of many small changes")


def test_survival_is_the_share_that_stayed(steps: HalfLifeForecast) -> None:
    by_survival = answer_of(steps, "survival")
    moved = np.abs((rare() * (np.arange(24) > 0)).cumsum(axis=1)) > LIMIT
    stayed = 1 - np.maximum.accumulate(moved, axis=1).mean(axis=0)
    assert probabilities(by_survival) == pytest.approx(stayed[[0, 1, 2, 5, 10]], abs=0.001)
    assert "within its promise when calibrated" in by_survival.forecast.assumptions[0]  # type: ignore[union-attr]


def test_drops_are_whole_releases_and_dates(steps: HalfLifeForecast) -> None:
    by_steps = answer_of(steps, "steps")
    curve = dict(zip(RELEASES, probabilities(by_steps).tolist(), strict=True))
    assert by_steps.drop is not None
    before, after = next((a, b) for a, b in ((0, 1), (1, 2), (2, 5)) if curve[b] < 0.9)
    assert before < by_steps.drop.time <= after
    assert by_steps.drop.low is not None
    assert by_steps.drop.high is not None
    assert by_steps.drop.low <= by_steps.drop.time <= by_steps.drop.high
    assert by_steps.dates == (None, None, None)
    months = answer_of(steps, "steps", "months")
    assert months.forecast is not None
    assert months.forecast.ahead.tolist() == list(AHEAD["months"])
    # Releases come every three months.
    assert probabilities(months)[:3] == pytest.approx(probabilities(by_steps)[:3], abs=0.005)
    assert steps.groups[0].date == date(2015, 10, 1)
    when, first, last = months.dates
    assert when is not None
    assert first is not None
    assert last is not None
    assert date(2015, 10, 1) < first <= when <= last < date(2018, 1, 1)


@pytest.mark.slow
def test_an_older_model_is_as_far_on(steps: HalfLifeForecast) -> None:
    aged = forecast_half_life(table(rare()), error=0.1, age=2)
    assert (aged.groups[0].calibrated, aged.groups[0].today) == ("1.21", "1.23")
    assert probabilities(answer_of(aged, "steps"))[0] == probabilities(answer_of(steps, "steps"))[2]
    assert probabilities(answer_of(aged, "survival"))[0] == pytest.approx(
        probabilities(answer_of(steps, "survival"))[2]
    )
    in_months = answer_of(aged, "steps", "months")
    assert probabilities(in_months)[0] == pytest.approx(
        probabilities(answer_of(steps, "steps", "months"))[2], abs=0.005
    )
    already = answer_of(forecast_half_life(table(rare()), error=0.1, age=10), "steps")
    assert already.drop is not None
    assert already.drop.time == 0


def test_errors_at_calibration_count(drift: HalfLifeForecast) -> None:
    moves = smooth()
    moves[:, 0] = np.random.default_rng(5).normal(0, 0.07, 40)
    forecast = forecast_half_life(table(moves, predicted=[1.0] * (40 * 24 * 2)), error=0.1)
    spread = float(np.sqrt(np.mean(moves[:, 0] ** 2)))
    assert forecast.groups[0].calibrated_error == pytest.approx(spread, rel=0.05)
    now = probabilities(answer_of(forecast, "drift"))[0]
    assert now == pytest.approx(1 - 2 * stats.norm.sf(LIMIT / spread), abs=0.01)
    by_survival = answer_of(forecast, "survival")
    assert by_survival.forecast is not None
    assert any(
        "are left out, because they were beyond the promise" in text
        for text in by_survival.forecast.assumptions
    )
    assert drift.groups[0].calibrated_error == 0
    assert any("assumed to be exact when calibrated" in text for text in drift.groups[0].notes)


def test_without_a_promise_it_is_that_the_error_has_not_doubled() -> None:
    forecast = forecast_half_life(undated(rare(12)))
    group = forecast.groups[0]
    assert group.promise == pytest.approx(np.sqrt(3) * np.log1p(0.05))
    assert any("assumed to be 5.00 %" in text for text in group.notes)
    assert forecast.error is None
    assert answer_of(group, "survival").forecast is not None


def test_without_any_promise_every_method_refuses() -> None:
    exact = {
        "version": [f"1.{i}" for i in range(6)] * 2,
        "series": ["a"] * 6 + ["b"] * 6,
        "measured": [1.0] * 12,
        "predicted": [1.0] * 12,
    }
    group = forecast_half_life(exact).groups[0]
    assert group.promise is None
    assert {answer.refused for answer in group.answers} == {
        "all errors at calibration are 0. Give the promised error (error=, --error)."
    }


@pytest.mark.parametrize(
    ("moves", "noise", "method", "reason"),
    [
        (rare(1), 0.01, "survival", "a survival curve needs several series"),
        (rare(8, 4), 0.01, "drift", "the history has 3 pairs of successive versions; at least 5"),
        (
            rare(8, 3),
            0.01,
            "steps",
            "no series could be searched for steps: at least 4 values are needed (2 before and 2 "
            "after a step), the series has 3.",
        ),
        (rare(8, 2), 0.01, "drift", "the history has 1 pair of successive versions; at least 5"),
        (np.zeros((40, 12)), 0.01, "drift", "drift is not above the noise in 11 releases"),
        (np.zeros((20, 8)), 0.2, "steps", "noise hides steps as large as the promise"),
        (np.zeros((20, 8)), 0.2, "survival", "no series was clearly within its promise"),
    ],
)
def test_methods_say_why_they_refuse(
    moves: np.ndarray, noise: float, method: str, reason: str
) -> None:
    forecast = forecast_half_life(table(moves, noise), error=0.1)
    assert answer_of(forecast, method).refused.startswith(reason)


def test_one_cluster_tells_no_survival() -> None:
    forecast = forecast_half_life(table(rare(4)), error=0.1, cluster="net")
    assert "one cluster" in answer_of(forecast, "survival").refused


def test_series_that_step_together_widen_the_interval() -> None:
    moves = np.repeat(rare(12), 4, axis=0)
    alone, together = (
        forecast_half_life(undated(moves), error=0.1, cluster=key) for key in (None, "net")
    )
    narrow, wide = (answer_of(forecast, "steps").forecast for forecast in (alone, together))
    assert narrow is not None
    assert wide is not None
    assert wide.probability == pytest.approx(narrow.probability)
    assert (wide.high - wide.low)[3] > 1.5 * (narrow.high - narrow.low)[3]


def test_few_clusters_with_steps_leave_much_open() -> None:
    moves = np.zeros((24, 20))
    moves[:4, 8] = 0.3
    forecast = answer_of(
        forecast_half_life(table(moves), error=0.1, cluster="net"), "steps"
    ).forecast
    assert forecast is not None
    # One event among 6 networks in 17 releases: at most 5.57 are possible.
    assert forecast.low[1] == pytest.approx(np.exp(-5.57 / (6 * 17)), abs=0.01)
    assert forecast.high[1] == 1
    still = forecast_half_life(table(np.zeros((24, 20))), error=0.1, cluster="net")
    nothing = answer_of(still, "steps")
    assert probabilities(nothing).tolist() == [1.0] * 5
    assert nothing.drop is not None
    assert nothing.drop.time is None


def test_drift_is_not_read_off_beyond_twice_the_lags_seen() -> None:
    validations = table(smooth(12, 6))
    forecast = answer_of(forecast_half_life(validations, error=0.1), "drift", "months").forecast
    assert forecast is not None
    # 15 months were seen.
    assert np.isfinite(forecast.probability).tolist() == [True, True, True, True, True]
    aged = answer_of(forecast_half_life(validations, error=0.1, age=5), "drift", "months").forecast
    assert aged is not None
    assert np.isnan(aged.probability[-1])
    assert aged.low[-1] == 0
    assert aged.high[-1] >= aged.low[-2]


def test_a_curve_that_is_no_power_law_is_read_off_itself() -> None:
    # Drift that comes back: V stays where it was from lag 2 on.
    rng = np.random.default_rng(3)
    level = rng.normal(0, 0.05, (300, 20))
    moves = np.diff(level, axis=1, prepend=0)
    forecast = answer_of(forecast_half_life(undated(moves, 0.002), error=0.1), "drift").forecast
    assert forecast is not None
    wanted = 1 - 2 * stats.norm.sf(LIMIT / (0.05 * np.sqrt(2)))
    assert forecast.probability[1:] == pytest.approx(np.full(4, wanted), abs=0.03)


def test_noise_that_is_not_known_bounds_on_one_side() -> None:
    once = {name: values[::2] for name, values in table(smooth()).items()}
    forecast = answer_of(forecast_half_life(once, error=0.1), "drift").forecast
    assert forecast is not None
    assert forecast.high.tolist() == [1.0] * 5
    assert forecast.assumptions[-1] == "Without repeats, noise counts as drift."


def test_groups_and_the_document(steps: HalfLifeForecast) -> None:
    forecast = forecast_half_life(table(rare(8, 6)), by="net", error=0.1, below=0.5)
    assert [group.key for group in forecast.groups] == [{"net": "net0"}, {"net": "net1"}]
    rows = forecast.rows()
    assert len(rows) == 2 * 2 * 3
    assert all(row["below"] == 0.5 for row in [forecast.to_dict()])
    document = json.loads(json.dumps(plain(steps.to_dict()), allow_nan=False))
    assert document["error"] == 0.1
    by_steps = next(r for r in document["rows"] if (r["method"], r["unit"]) == ("steps", "months"))
    assert [at["ahead"] for at in by_steps["within"]] == list(AHEAD["months"])
    assert by_steps["drop"]["date"].startswith("2016")
    assert by_steps["refused"] is None
    refused = next(row for row in document["rows"] if row["method"] == "drift")
    assert (refused["within"], refused["drop"]) == ([], None)
    assert refused["refused"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same() -> None:
    history = History(table(rare(8)))
    first, second = (forecast_half_life(history, error=0.1, seed=3).rows() for _ in range(2))
    assert first == second


def test_progress_is_told() -> None:
    calls: list[tuple[float, float]] = []
    short = undated(rare(8, 6))
    forecast_half_life(short, by="net", error=0.1, progress=lambda *at: calls.append(at))
    assert calls == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"below": 1.0}, "below must be a probability between 0 and 1"),
        ({"error": 0.0}, "the promised error must be positive and finite, got 0.0"),
        ({"error": float("nan")}, "the promised error must be positive and finite, got nan"),
        (
            {"age": 24},
            r"age must be between 0 and 23 releases, got 24: the history has 24 versions",
        ),
        ({"age": -1}, "age must be between 0 and 23 releases, got -1"),
        ({"age": 24, "by": "net"}, "got 24: net0 has 24 versions, 1.0 to 1.23"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        forecast_half_life(table(rare(8)), **options)
