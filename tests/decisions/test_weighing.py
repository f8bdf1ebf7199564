"""Alternatives by draws: against closed forms and plain counting."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from errcomp.decisions.weighing import Weighed, weigh


def weighed(times: np.ndarray, prices: np.ndarray | None = None, **how: object) -> Weighed:
    known = np.zeros(times.shape[1], dtype=bool)
    return weigh(times, prices, **{"limit": None, "known": known, "level": 0.9, **how})  # type: ignore[arg-type]


def drawn(means: list[float], spread: float, draws: int = 40_000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array(means) + spread * rng.standard_normal((draws, len(means)))


def test_two_normals_have_the_closed_form() -> None:
    found = weighed(drawn([0.0, 0.1], 0.1))
    ahead = 0.1 / np.hypot(0.1, 0.1)
    assert found.chosen == 0
    assert found.p_best[0] == pytest.approx(stats.norm.cdf(ahead), abs=0.01)
    assert found.p_chosen[1] == pytest.approx(found.p_best[0])
    # E[exp(max(d, 0)) - 1] with d ~ N(-0.1, 0.02)
    mean, sd = -0.1, np.sqrt(0.02)
    upper = np.exp(mean + sd**2 / 2) * stats.norm.cdf((mean + sd**2) / sd)
    assert found.regret == pytest.approx(upper - stats.norm.cdf(mean / sd), rel=0.05)


def test_what_alternatives_share_cancels() -> None:
    shared = np.random.default_rng(1).normal(0, 1, (4_000, 1))
    found = weighed(shared + drawn([0.0, 0.1], 0.001, 4_000))
    assert found.p_best.tolist() == [1, 0]
    assert found.regret == 0
    assert found.high[0] - found.low[0] == pytest.approx(2 * 1.645, rel=0.1)


def test_the_chosen_one_keeps_the_limit() -> None:
    times = drawn([0.0, 0.1, 0.5], 0.1)
    prices = np.log([4.0, 2.0, 1.0])
    cheapest = weighed(times, prices)
    assert cheapest.chosen == 2
    found = weighed(times, prices, limit=0.3)
    assert found.chosen == 1
    assert found.p_within == pytest.approx(stats.norm.cdf([3.0, 2.0, -2.0]), abs=0.01)
    assert found.p_best[2] == 0
    assert found.p_best.sum() == pytest.approx(1)
    none = weighed(times, prices, limit=-1.0)
    assert none.chosen == -1
    assert np.isnan(none.regret)
    assert none.p_best.tolist() == [0, 0, 0]


def test_a_front_is_counted_as_by_hand() -> None:
    rng = np.random.default_rng(2)
    times, prices = rng.normal(0, 0.3, (500, 6)), rng.normal(0, 0.3, 6)
    found = weighed(times, prices)
    on = np.zeros(6)
    for row in times:
        cost = row + prices
        for i in range(6):
            on[i] += not any(row[j] <= row[i] and cost[j] <= cost[i] for j in range(6) if j != i)
    assert found.p_front == pytest.approx(on / 500)
    assert np.isnan(weighed(times).p_front).all()


def test_the_measurement_that_matters_is_named() -> None:
    rng = np.random.default_rng(3)
    times = np.column_stack(
        [
            0.02 * rng.standard_normal(20_000),
            0.05 + 0.3 * rng.standard_normal(20_000),  # may be much faster
            1.0 + 0.3 * rng.standard_normal(20_000),  # cannot
        ]
    )
    found = weighed(times)
    assert (found.chosen, found.measure) == (0, 1)
    # E[max(x, 0)] of the gain x ~ N(-0.05, 0.3)
    z = -0.05 / 0.3
    assert found.saves == pytest.approx(0.3 * (stats.norm.pdf(z) + z * stats.norm.cdf(z)), rel=0.05)
    assert found.changes == pytest.approx(stats.norm.cdf(z), abs=0.02)
    known = weighed(times, known=np.array([False, True, False]))
    assert known.measure != 1
    sure = weighed(drawn([0.0, 1.0], 0.1))
    assert (sure.measure, sure.saves, sure.changes) == (-1, 0, 0)


def test_quantiles_are_order_statistics() -> None:
    found = weighed(np.arange(101.0)[:, None] + np.array([[0.0, 1000.0]]))
    assert found.median.tolist() == [50, 1050]
    assert found.low.tolist() == [5, 1005]
    assert found.high.tolist() == [95, 1095]


def test_quantiles_of_many_values_come_from_some_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tenth draw is a multiple of ten."""
    times = np.arange(1.0, 1011)[:, None] + np.array([[0.0, 1000.0]])
    times[::10] = 10 * np.arange(101)[:, None]
    monkeypatch.setattr("errcomp.decisions.weighing._QUANTILES", 101)
    monkeypatch.setattr("errcomp.decisions.weighing._MANY", times.size)
    assert weighed(times).median[1] > 1000
    monkeypatch.setattr("errcomp.decisions.weighing._MANY", times.size - 1)
    found = weighed(times)
    assert found.median.tolist() == [500, 500]
    assert (found.low.tolist(), found.high.tolist()) == ([50, 50], [950, 950])


def test_what_does_not_vary_needs_no_measurement() -> None:
    """A time that is the same in all draws comes first, and one that may be less after it."""
    other = 0.05 + 0.3 * np.random.default_rng(3).standard_normal(20_000)
    found = weighed(np.column_stack([np.zeros(20_000), other]))
    assert (found.chosen, found.measure) == (0, 1)
    assert found.saves == pytest.approx(np.maximum(0, -other).mean())
    assert found.changes == pytest.approx((other < 0).mean())


def test_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    times, prices = drawn([0.0, 0.05, 0.1], 0.1, 999), np.log([1.0, 1.1, 0.9])
    whole = weighed(times, prices, limit=0.2)
    monkeypatch.setattr("errcomp.decisions.weighing._BLOCK", 50)
    parts = weighed(times, prices, limit=0.2)
    for name in Weighed.__slots__:
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12), name


@pytest.mark.slow
def test_ten_thousand_alternatives_take_seconds() -> None:
    rng = np.random.default_rng(0)
    times = rng.standard_normal((10_000, 10_000), dtype=np.float32)
    times *= 0.1
    times += rng.normal(0, 0.3, 10_000).astype(np.float32)
    begun = time.process_time()
    found = weighed(times)
    assert time.process_time() - begun < 10  # measured: 1.2 s
    assert found.p_best.sum() == pytest.approx(1)
