"""Probabilities of comparisons come true, and intervals of shares and regrets cover, by laws."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark that simulates the tables, found as the scripts find it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("decisions_table")


@pytest.mark.parametrize("law", ["normal", "t3", "laplace", "mixture"])
@pytest.mark.parametrize(("devices", "tables"), [(4, 60), (8, 14), (12, 8)])
def test_probabilities_come_true(table: Any, devices: int, tables: int, law: str) -> None:
    """Within 2 points on average, allowing for 3 standard errors of tables as clusters."""
    for noise in ("truth", "prediction"):
        case = table.Case(devices, law, 0.3, noise)
        each = [table.compared(case, 100 + seed) for seed in range(tables)]
        sure, right = (np.concatenate(part) for part in zip(*each, strict=True))
        order = np.argsort(sure, kind="stable")
        gaps = [sure[at].mean() - right[at].mean() for at in np.array_split(order, 5)]
        of_table = np.array([np.mean(s) - np.mean(r) for s, r in each])
        room = 3 * of_table.std() / np.sqrt(tables)
        assert abs(of_table.mean()) <= 0.02 + room
        assert np.mean(np.abs(gaps)) <= 0.02 + room
        called = sure >= 0.95
        assert 1 - right[called].mean() <= 0.05 + room


def test_a_useless_predictor_is_not_sure(table: Any) -> None:
    """Predicted differences of devices are noise five times as large as the true ones."""
    case = table.Case(12, "normal", 0.02, "prediction")
    each = [table.compared(case, seed) for seed in range(6)]
    sure = np.concatenate([s for s, _ in each])
    assert (sure >= 0.95).mean() < 0.05


@pytest.mark.parametrize("law", ["normal", "t3"])
def test_intervals_of_regret_cover(table: Any, law: str) -> None:
    for groups in (5, 20):
        covers = float(table.regrets(law, 4, groups)[2].split()[0])
        assert 92 <= covers <= 100


@pytest.mark.parametrize("law", ["normal", "t3"])
def test_intervals_of_the_share_right_cover(table: Any, law: str) -> None:
    for devices, widest in ((5, 50), (12, 25)):
        row = table.shares(law, devices)
        assert float(row[1].split()[0]) >= 93
        assert float(row[2].split()[0]) <= widest


def test_bands_of_neusight_hold_models_that_were_not_seen() -> None:
    """The figure in docs/decisions.md: each model is held out in turn."""
    import errcomp as ec
    from errcomp import Pairs
    from errcomp.decisions.comparing import Comparison

    pairs = ec.load("neusight").of_tool()
    inside, ratios = 0, []
    for model in sorted(set(pairs.column("model").tolist())):
        here = pairs.column("model") == model
        part = pairs.take(here)
        columns = {key: part.column(key).tolist() for key in part.keys if key != "tool"}
        columns |= {"predicted": part.predicted.tolist(), "measured": [float("nan")] * part.n}
        new = Pairs(columns, missing="keep", unit=part.unit)
        found = ec.compare(new, "device", errors=pairs.take(~here))
        assert isinstance(found, Comparison)
        names = ("device", *found.within)
        codes = zip(*(map(str, part.column(name).tolist()) for name in names), strict=True)
        truth = dict(zip(codes, part.measured.tolist(), strict=True))
        for row in found.alternatives:
            where = (row.name, *(str(row.condition[key]) for key in found.within))
            inside += row.low <= truth[where] <= row.high
            ratios.append(row.high / row.low)
    assert (inside, len(ratios)) == (136, 141)
    assert np.median(ratios) == pytest.approx(1.24 / 0.81, abs=0.02)


@pytest.mark.parametrize("law", ["normal", "t3", "laplace"])
@pytest.mark.parametrize(("groups", "conditions"), [(3, 4), (6, 6), (12, 5)])
def test_the_shared_error_of_a_condition_is_covered(law: str, groups: int, conditions: int) -> None:
    from errcomp.decisions.conditions import shared_errors
    from tests.decisions.laws import deviates

    rng, inside, widths = np.random.default_rng(groups), [], []
    for seed in range(200):
        of_group = 0.1 * deviates(rng, law, groups + 1)
        code = np.repeat(np.arange(groups), conditions)
        r = 0.05 + of_group[code] + 0.1 * deviates(rng, law, len(code))
        wanted = np.array([0, groups])
        drawn = shared_errors(np.tile(r, (400, 1)), code, wanted, seed)
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        truth = 0.05 + of_group[wanted] + 0.1 * deviates(rng, law, 2)
        inside.append((low <= truth) & (truth <= high))
        widths.append(high - low)
    # 90 % with three binomial standard errors of 200, and one point for the quantiles of 400 draws.
    assert np.all(np.abs(np.mean(inside, axis=0) - 0.9) <= 0.075)
    ideal = 2 * 1.645 * np.array([0.1, np.hypot(0.1, 0.1)])
    assert np.all(np.median(widths, axis=0) <= 1.5 * ideal)


@pytest.mark.parametrize("law", ["normal", "t3", "mixture"])
def test_the_best_of_all_is_as_sure_as_stated(law: str) -> None:
    """P(best) and the expected regret of choices that nobody measured."""
    import polars as pl

    import errcomp as ec
    from errcomp.decisions.comparing import Comparison
    from tests.decisions.laws import choices

    stated, right, expected, lost = [], [], [], []
    for seed in range(40):
        frame = choices([seed, 7], devices=6, present=1.0, law=law, true=0.15)
        hidden = pl.col("batch") >= 15
        table = frame.with_columns(
            measured=pl.when(hidden).then(None).otherwise(pl.col("measured"))
        )
        found = ec.compare(table, "device", seed=seed)
        assert isinstance(found, Comparison)
        for choice in found.choices:
            same = frame.filter(pl.col("batch") == choice.condition["batch"])
            times = dict(same.select("device", "measured").rows())
            stated.append(choice.p_best)
            right.append(times[choice.chosen] == min(times.values()))
            expected.append(choice.expected_regret)
            lost.append(times[choice.chosen] / min(times.values()) - 1)
    assert len(stated) == 200
    # Choices of one table share their devices: about 40 independent ones.
    assert np.mean(stated) == pytest.approx(np.mean(right), abs=3 * np.std(right) / 40**0.5)
    assert np.mean(expected) == pytest.approx(np.mean(lost), abs=3 * np.std(lost) / 40**0.5)


def test_neusight_is_called_as_often_as_its_order_allows() -> None:
    """At the share wrong of the calls that are 95 % sure.

    The size of the predicted difference is as good an order there, but how large it must be is
    known from the measurements only.
    """
    import errcomp as ec
    from errcomp.decisions import probabilities
    from errcomp.decisions.evaluating import Compared
    from errcomp.tables.choices import choices_of

    found = choices_of(ec.load("neusight").of_tool(), between="device")
    pairs = Compared.of(found)
    pairs = pairs.take(pairs.truly != 0)
    chance, _ = probabilities.left_out(found, pairs.first, pairs.second, 0)
    sure = np.maximum(chance, 1 - chance)
    correct = (chance > 0.5) == (pairs.truly > 0)
    wrong = 1 - correct[sure >= 0.95].mean()

    def called(order: Any, right: Any) -> int:
        share = np.cumsum(1.0 - right[np.argsort(-order, kind="stable")])
        return int(np.flatnonzero(share <= wrong * np.arange(1, len(share) + 1) + 1e-9).max()) + 1

    by_chance = called(sure, correct)
    by_size = called(np.abs(pairs.ahead), pairs.right)
    assert by_chance >= 0.9 * len(sure)
    assert by_chance == pytest.approx(by_size, abs=0.03 * len(sure))
