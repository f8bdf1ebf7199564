"""Planned numbers of pairs: as many as the interval needs, by laws of their own; bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri

import errcomp as ec
from errcomp import planning
from errcomp.documents import load
from errcomp.errors import InputError
from errcomp.planning import claim, plan_claim
from errcomp.planning.claim import _gamma, _resampled, power_of

Errors = Callable[[np.random.Generator, int], np.ndarray]


def supports(errors: np.ndarray, limit: float, clusters: Any = None) -> bool:
    """Whether the interval of errcomp's own MAPE lies below the limit."""
    found = ec.metrics.intervals.estimate(
        "mape", predicted=1 + errors, measured=np.ones_like(errors), clusters=clusters
    )
    return found.high is not None and found.high < limit


def needed(draw: Callable[[np.random.Generator, int], bool], start: int) -> float:
    """Return the number at which 80 % of the draws support the figure, from three numbers."""
    rng, numbers, scores = np.random.default_rng(1), [], []
    for n in (round(0.75 * start), start, round(1.33 * start)):
        share = np.mean([draw(rng, n) for _ in range(1500)])
        numbers.append(np.log(n))
        scores.append(ndtri(np.clip(share, 0.01, 0.99)))
    slope, at = np.polyfit(numbers, scores, 1)
    return float(np.exp((ndtri(0.8) - at) / slope))


@pytest.mark.slow
@pytest.mark.parametrize(("true", "spread"), [(0.03, 1.0), (0.04, 0.75), (0.025, 1.5)])
def test_planned_and_needed_agree_by_assumption(true: float, spread: float) -> None:
    """Within 15 %, by the audit's own interval on errors that were drawn elsewhere."""
    shape = 1 / spread**2
    plan = plan_claim(0.05, expected=[true], spread=spread)
    found = needed(
        lambda rng, n: supports(rng.gamma(shape, true / shape, n), 0.05), plan.rows[0].pairs or 0
    )
    assert plan.rows[0].pairs == pytest.approx(found, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "true"),
    [
        (lambda rng, n: np.abs(rng.normal(0, 0.04, n)), 0.04 * np.sqrt(2 / np.pi)),
        (lambda rng, n: np.where(rng.random(n) < 0.1, 0.15, 0.02), 0.033),
    ],
    ids=["normal", "mixture"],
)
def test_planned_and_needed_agree_by_a_pilot(law: Errors, true: float) -> None:
    """The pilot is large, so that it shows the law; a small one adds its own chance."""
    errors = law(np.random.default_rng(0), 3000)
    pilot = pl.DataFrame({"predicted": 1 + errors, "measured": np.ones(3000)})
    plan = plan_claim(0.05, pilot=pilot, expected=[true])
    found = needed(lambda rng, n: supports(law(rng, n), 0.05), plan.rows[0].pairs or 0)
    assert plan.rows[0].pairs == pytest.approx(found, rel=0.15)


@pytest.mark.slow
def test_planned_and_needed_agree_with_clusters() -> None:
    """Models differ in size and share a part of their error."""

    def draw(rng: np.random.Generator, models: int) -> tuple[np.ndarray, np.ndarray]:
        sizes = rng.integers(2, 7, models)
        model = np.repeat(np.arange(models), sizes)
        return 0.03 * rng.gamma(4, 0.25, models)[model] * rng.gamma(2, 0.5, len(model)), model

    errors, model = draw(np.random.default_rng(0), 800)
    pilot = pl.DataFrame(
        {"model": model, "predicted": 1 + errors, "measured": np.ones_like(errors)}
    )
    plan = plan_claim(0.05, pilot=pilot, expected=[0.03])
    assert plan.cluster == "model"

    def one(rng: np.random.Generator, models: int) -> bool:
        errors, model = draw(rng, models)
        return supports(errors, 0.05, clusters=model)

    assert plan.rows[0].clusters == pytest.approx(needed(one, plan.rows[0].clusters or 0), rel=0.15)


def test_the_power_is_that_of_the_interval() -> None:
    """The vectorised interval is errcomp's own, with and without clusters."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 6, 40)
    model = np.repeat(np.arange(40), sizes)
    errors = 0.03 * rng.gamma(2, 0.5, 40)[model] * rng.gamma(2, 0.5, len(model))
    groups = [errors[model == one] for one in range(40)]
    at = np.random.default_rng([0, 12]).integers(0, 40, size=(2000, 12))
    draw = _resampled(groups, True)
    mean, deviation = draw(12, np.random.default_rng([0, 12]), 0.95)
    for row in range(5):
        drawn = np.concatenate([groups[one] for one in at[row]])
        names = np.repeat(np.arange(12), [len(groups[one]) for one in at[row]])
        found = ec.metrics.intervals.estimate(
            "mape", predicted=1 + drawn, measured=np.ones_like(drawn), clusters=names
        )
        assert mean[row] * errors.mean() == pytest.approx(found.value)
        assert mean[row] * np.exp(deviation[row]) * errors.mean() == pytest.approx(found.high)


def test_power_grows_with_pairs_and_distance() -> None:
    draw = _gamma(1.0)
    assert power_of(draw, 2.0, 10, 0.95, 0) < power_of(draw, 2.0, 40, 0.95, 0)
    assert power_of(draw, 1.2, 40, 0.95, 0) < power_of(draw, 2.0, 40, 0.95, 0)
    assert power_of(draw, 2.0, 40, 0.99, 0) < power_of(draw, 2.0, 40, 0.9, 0)


def test_the_table_of_true_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_claim(0.05)
    assert [row.error for row in plan.rows] == pytest.approx([0.02, 0.03, 0.04, 0.045])
    pairs = [row.pairs or 0 for row in plan.rows]
    assert pairs == sorted(pairs)
    assert all(row.power == pytest.approx(0.8, abs=0.04) for row in plan.rows)
    assert load(plan.to_dict()) == plan
    monkeypatch.setattr(claim, "_DRAWS", 200)
    assert plan_claim(0.05).to_json() == plan_claim(0.05).to_json()


def test_what_no_number_of_pairs_supports() -> None:
    (at, above) = plan_claim(0.05, expected=[0.05, 0.06]).rows
    assert (at.pairs, at.power, above.pairs) == (None, None, None)
    assert plan_claim(0.05, expected=[0.0499]).rows[0].pairs is None
    assert plan_claim(0.05, expected=[0.0001]).rows[0].pairs == 5


def test_a_pilot_adds_its_own_error_and_counts_its_clusters() -> None:
    plan = plan_claim(0.2, pilot="neusight")
    assert (plan.pilot_pairs, plan.cluster) == (146, "model")
    mape = float(ec.metrics.mape(**vars_of(ec.datasets.load("neusight").of_tool())))
    assert any(row.error == pytest.approx(mape) for row in plan.rows)
    alone = plan_claim(0.2, pilot="neusight", cluster="none")
    assert (alone.cluster, alone.pilot_clusters, alone.rows[0].clusters) == ("", None, None)
    assert (alone.rows[1].pairs or 0) < (plan.rows[1].pairs or 0)


def vars_of(pairs: Any) -> dict[str, np.ndarray]:
    return {"predicted": pairs.predicted, "measured": pairs.measured}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": 0}, "limit must be above 0"),
        ({"limit": 0.05, "power": 0.5}, "power must be between 0.5 and 1"),
        ({"limit": 0.05, "power": 1.0}, "power must be between 0.5 and 1"),
        ({"limit": 0.05, "spread": 0}, "spread must be above 0"),
        ({"limit": 0.05, "level": 1.5}, "level"),
        ({"limit": 0.05, "expected": [0.0]}, "expected errors must be above 0"),
    ],
)
def test_bad_numbers(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_claim(**given)


def test_bad_pilots() -> None:
    few = pl.DataFrame({"predicted": [1.1, 2.0, 3.0], "measured": [1.0, 2.1, 3.3]})
    with pytest.raises(InputError, match="at least 5 pairs, got 3"):
        plan_claim(0.05, pilot=few)
    exact = pl.DataFrame({"predicted": [1.0] * 6, "measured": [1.0] * 6})
    with pytest.raises(InputError, match="every prediction of the pilot is exact"):
        plan_claim(0.05, pilot=exact)
    two = pl.DataFrame(
        {"model": list("aaabbb"), "predicted": [1.1, 1.2, 1.3] * 2, "measured": [1.0] * 6}
    )
    with pytest.raises(InputError, match="at least 5 clusters .* column 'model' has only 2 values"):
        plan_claim(0.05, pilot=two)
    assert plan_claim(0.5, pilot=two, cluster="none").pilot_pairs == 6


def test_public_names_are_those_of_the_module() -> None:
    assert planning.__all__ == ["ClaimPlan", "plan_claim"]
    assert planning.ClaimPlan is claim.ClaimPlan
    assert planning.plan_claim is claim.plan_claim
    with pytest.raises(AttributeError, match=r"^module 'errcomp.planning' has no attribute 'pl'$"):
        _ = planning.pl
