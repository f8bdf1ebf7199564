"""The measured side of an audit: what remains of an error without noise, tools too close."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.measurements import audited, floor, without_noise
from errcomp.measurements.audited import measured_side
from errcomp.measurements.floor import (
    NORMAL,
    FloorFigure,
    NoiseLaw,
    absolute_to_mape,
    floor_of_repeats,
    law_of_noise,
    sd_of_floor,
)
from errcomp.measurements.noise import repeats_of
from errcomp.measurements.without_noise import remaining
from errcomp.stats.permutation import variance_within

pytestmark = pytest.mark.core

Run = Callable[..., Any]


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an interval of what remains come from two draws, for tests that do not look at it."""
    monkeypatch.setattr("errcomp.measurements.without_noise._DRAWS", 2)


@pytest.fixture
def few_steps(few_draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what remains be a rough guess, for tests that only ask of which tools it is."""
    monkeypatch.setattr("errcomp.measurements.without_noise._STEPS", 20)


def repeated(sd: float = 0.05, factor: float = 1.02, seed: int = 0, n: int = 100) -> dict[str, Any]:
    """Three measurements of each configuration, with one prediction."""
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(1, n + 1), 3)
    measured = batch * np.exp(sd * rng.normal(size=3 * n))
    return {"batch": batch, "measured": measured, "predicted": factor * batch}


def several(*factors: float, other: float = 0.0) -> dict[str, Any]:
    """Tools that predict the same measurements, with errors of their own."""
    one = repeated()
    rng = np.random.default_rng(1)
    tools: dict[str, list[Any]] = {"tool": [], "batch": [], "measured": [], "predicted": []}
    for i, factor in enumerate(factors):
        own = np.repeat(np.exp(other * rng.normal(size=100)), 3)
        tools["tool"] += ["ABCDEFGHIJKLMN"[i]] * 300
        tools["batch"] += one["batch"].tolist()
        tools["measured"] += one["measured"].tolist()
        tools["predicted"] += (factor * one["batch"] * own).tolist()
    return tools


def test_repeats_show_the_noise_and_what_remains_without_it() -> None:
    side = measured_side(ec.Pairs(repeated(factor=1.1)))
    assert side is not None
    assert (side.n, side.configurations, side.repeated, side.copies, side.differ) == (
        *(300, 100, 300),
        *(0, 0),
    )
    assert side.floor.low < 0.0399 < side.floor.high
    (tool,) = side.tools
    assert (tool.tool, side.too_close) == ("", ())
    assert tool.low < 0.1 < tool.high
    assert tool.remaining < tool.mape
    assert tool.high - tool.low < 0.02


def test_a_perfect_predictor_may_have_no_error_of_its_own() -> None:
    side = measured_side(ec.Pairs(repeated(factor=1.0)))
    assert side is not None
    assert side.tools[0].low == 0.0
    assert side.tools[0].remaining < 0.5 * side.tools[0].mape


def test_rows_of_other_predictions_are_no_repeats() -> None:
    # Each row of a batch is another workload, which no column names; the tool knows it.
    table = repeated()
    table["predicted"] = table["predicted"] * np.exp(np.random.default_rng(2).normal(size=300))
    side = measured_side(ec.Pairs(table))
    assert side is not None
    assert (side.configurations, side.repeated, side.floor.method) == (300, 0, "none")
    assert (side.n, side.copies, side.differ, side.explained_by) == (300, 0, 0, ())
    assert math.isnan(side.floor.mape)
    assert side.tools == ()


@pytest.mark.usefixtures("few_steps")
def test_a_repetition_or_a_date_is_no_key() -> None:
    table = {**repeated(), "repeat": np.tile([1, 2, 3], 100)}
    side = measured_side(ec.Pairs(table))
    assert side is not None
    assert side.repeated == 300


@pytest.mark.usefixtures("few_steps")
def test_a_tool_of_few_predictions_is_left_out() -> None:
    table = several(1.0, 1.2)
    few = {"tool": "0", "batch": 1, "measured": table["measured"][0], "predicted": 1.0}
    side = measured_side(ec.Pairs({name: [few[name], *values] for name, values in table.items()}))
    assert side is not None
    assert [tool.tool for tool in side.tools] == ["A", "B"]


@pytest.mark.usefixtures("few_steps")
def test_tools_of_other_measurements_are_not_compared() -> None:
    # B and D predict repeats of the same cases; C shares none of them, and A is in other units.
    table = several(1.0, 0.998, 1.0, 1.001)
    tool = np.array(table["tool"])
    table["batch"] = np.where(tool == "C", np.array(table["batch"]) + 500, table["batch"])
    table["measured"] = np.array(table["measured"]) * 1e-3
    table["predicted"] = np.where(tool == "A", 1e305, np.array(table["predicted"]) * 1e-3)
    side = measured_side(ec.Pairs(table))
    assert side is not None
    assert [tool.tool for tool in side.tools] == ["B", "C", "D"]
    assert [(close.first, close.second) for close in side.too_close] == [("B", "D")]


@pytest.mark.slow
def test_tools_that_noise_could_rank_are_named() -> None:
    side = measured_side(ec.Pairs(several(0.998, 1.001, 1.5)))
    assert side is not None
    assert side.n == 300
    assert [tool.tool for tool in side.tools][-1] == "C"
    assert [tool.mape for tool in side.tools] == sorted(tool.mape for tool in side.tools)
    (close,) = side.too_close
    assert {close.first, close.second} == {"A", "B"}
    assert 0 <= close.difference < close.smallest < 0.02
    assert close.n == 300
    by_tool = {tool.tool: tool.mape for tool in side.tools}
    assert by_tool[close.second] - by_tool[close.first] == pytest.approx(close.difference)


def test_noise_explains_a_difference_as_often_as_stated() -> None:
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        own = 0.02 * rng.normal(size=(2, 100, 1))
        first, second = np.abs(own[:, None] - 0.05 * rng.normal(size=(50, 100, 3))).mean(
            axis=(2, 3)
        )
        noise = 0.05 * rng.normal(size=(100, 3))
        differences = np.abs(own[0] - noise) - np.abs(own[1] - noise)
        variance, freedom = variance_within(differences.ravel(), np.repeat(np.arange(100), 3))
        assert freedom == 200
        off = differences.mean() - (first - second).mean()
        hits += bool(abs(off) < 1.96 * math.sqrt(variance / 300))
    assert 182 <= hits <= 198  # 95 %, within 2.6 binomial standard errors


@pytest.mark.usefixtures("few_steps")
def test_of_many_tools_only_neighbours_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited, "_EACH", 2)
    side = measured_side(ec.Pairs(several(0.997, 0.998, 1.001, 1.002)))
    assert side is not None
    order = [tool.tool for tool in side.tools]
    assert {(c.first, c.second) for c in side.too_close} <= {*pairwise(order)}


@pytest.mark.usefixtures("few_steps")
def test_a_page_sorts_what_remains_by_value() -> None:
    view = ec.audit(several(1.0, 1.5)).view()
    table = next(one for one in view.tables if one.title.startswith("Error without"))
    cells = [table.columns[-1].form.write(table.columns[-1].value(row)) for row in table.rows]
    assert [cell.value for cell in cells] == pytest.approx([t.remaining for t in table.rows])


def test_repeats_that_are_copies_show_no_noise(run: Run, tmp_path: Any) -> None:
    import polars as pl

    rng = np.random.default_rng(0)
    rows = [*range(60), 0, 1]
    times = np.round(np.exp(rng.normal(3, 1, 60)), 5)[rows]
    table = {"case": rows, "measured": times, "predicted": np.arange(1, 61.0)[rows]}
    side = measured_side(ec.Pairs(table))
    assert side is not None
    assert (side.copies, side.floor.method) == (4, "none")
    pl.DataFrame(table).write_csv(tmp_path / "t.csv")
    text = " ".join(run("audit", tmp_path / "t.csv", "--explain").out.split())
    assert (
        "Repeats are equal, or differ by more than noise can explain, so the noise is unknown"
        in text
    )


def test_large_tables_are_left_to_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited, "MOST", 299)
    assert measured_side(ec.Pairs(repeated())) is None
    audit = ec.audit(repeated())
    assert audit.measurements is None
    assert "measurements" not in audit.to_dict()


@pytest.mark.usefixtures("few_draws")
def test_predictions_of_zero_are_left_out() -> None:
    table = repeated()
    table["predicted"] = np.where(table["batch"] > 50, 0.0, table["predicted"])
    side = measured_side(ec.Pairs(table))
    assert side is not None
    assert side.tools[0].mape < 0.1


@pytest.mark.usefixtures("few_draws")
def test_repeats_of_a_negative_prediction_are_repeats() -> None:
    table = repeated()
    table["predicted"] = np.where(table["batch"] > 90, -1.0 * table["batch"], table["predicted"])
    table["predicted"][table["batch"] == 1] = 0.0
    side = measured_side(ec.Pairs(table))
    assert side is not None
    assert (side.configurations, side.repeated) == (100, 300)
    assert side.tools[0].mape < 0.1


def test_errors_beyond_any_unit_are_left_to_the_caveats() -> None:
    table = repeated()
    table["predicted"] = np.full(300, 1e308)
    table["measured"] = table["measured"] * 1e-300
    side = measured_side(ec.Pairs(table))
    assert side is not None
    assert side.tools == ()


@pytest.mark.usefixtures("few_draws")
def test_the_audit_says_it(run: Run, tmp_path: Any) -> None:
    import polars as pl

    pl.DataFrame(repeated(factor=1.1)).write_csv(tmp_path / "t.csv")
    ran = run("audit", tmp_path / "t.csv", "--explain")
    text = " ".join(ran.out.split())
    assert "A perfect predictor would show a MAPE of 4.07 % [3.7, 4.5] here" in text
    assert "Without this noise, the MAPE would be about 9." in text
    assert "instead of 10.46 %." in text
    pl.DataFrame(repeated(n=3)).unique("batch").write_csv(tmp_path / "t.csv")
    ran = run("audit", tmp_path / "t.csv", "--explain")
    text = " ".join(ran.out.split())
    assert "No measurement was repeated, so the noise is unknown" in text


@pytest.mark.usefixtures("few_steps")
def test_copies_and_hidden_keys_are_counted(run: Run, tmp_path: Any) -> None:
    import polars as pl

    table = pl.DataFrame(repeated()).with_columns(
        note=pl.Series(["mode=a", "mode=b", "mode=a"] * 100)
    )
    slow = pl.when(pl.col("note") == "mode=b").then(2.0).otherwise(1.0)
    table = table.with_columns(measured=pl.col("measured") * slow)
    table = pl.concat([table, table.head(6)])
    side = ec.audit(table).measurements
    assert side is not None
    assert side.copies == 12
    assert side.explained_by == ("note:mode",)
    assert side.explained > 0.9
    table.write_csv(tmp_path / "t.csv")
    text = " ".join(run("audit", tmp_path / "t.csv", "--explain").out.split())
    assert "12 of 306 measurements are copies of others." in text
    assert "Measurements with equal keys differ with note:mode, which explains 9" in text


@pytest.mark.parametrize("mape", [0.001, 0.04, 0.5, 3.0])
def test_the_noise_of_a_floor(mape: float) -> None:
    assert absolute_to_mape(sd_of_floor(mape) * math.sqrt(2 / math.pi)) == pytest.approx(mape)


def test_without_noise_every_error_remains() -> None:
    logs = np.array([-0.1, 0.2, 0.3, 0.05, 0.0])
    found = remaining(logs, FloorFigure(0.0, 0.0, 0.0))
    expected = float(np.abs(np.expm1(logs)).mean())
    assert (found.mape, found.low, found.high) == pytest.approx((expected,) * 3)


def test_many_errors_are_seen_as_the_means_of_200_parts() -> None:
    logs = np.random.default_rng(0).normal(size=450)
    seen, weight = without_noise._law(logs, 0.0, NORMAL)
    parts = np.array_split(np.sort(logs), 200)
    assert seen == pytest.approx([part.mean() for part in parts])
    assert weight == pytest.approx([len(part) / 450 for part in parts])


def kurtosis(law: str, size: int) -> float:
    """Mean square over the squared mean absolute value, 1 for normal noise."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(300), size)
    draws = {
        "normal": rng.normal(size=len(group)),
        "t3": rng.standard_t(3, len(group)),
        "scales": rng.choice([1.0, 4.0], 300)[group] * rng.normal(size=len(group)),
    }
    shape = law_of_noise(repeats_of(group, draws[law], group >= 0))
    assert float(shape.share.sum()) == pytest.approx(1)
    assert float((shape.share * shape.scale).sum()) == pytest.approx(1)
    return float((shape.share * shape.scale**2).sum())


@pytest.mark.parametrize(("law", "true"), [("normal", 1.0), ("t3", math.pi / 2), ("scales", 1.36)])
@pytest.mark.parametrize("size", [2, 4])
def test_the_shape_of_noise_is_learned(law: str, true: float, size: int) -> None:
    """Of t3, and of groups with normal noise of scales 1 and 4: 8.5 / 2.5 squared."""
    assert kurtosis(law, size) == pytest.approx(true, rel=0.15)


def skewed(size: int, seed: int, n: int = 2_000) -> NoiseLaw:
    """The shape of gamma noise, which has more slow than fast outliers."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n), size)
    return law_of_noise(repeats_of(group, rng.gamma(3, size=len(group)), group >= 0))


def test_skew_is_learned_from_three_repeats() -> None:
    """Of gamma noise of variance 3 around its median, E(e|e|) is 1.75: 0.29 times twice that."""
    law = skewed(3, 0)
    assert law.skew == pytest.approx(0.29, abs=0.05)
    assert 0.01 < law.doubt < 0.03
    few = [skewed(3, seed, 100) for seed in range(30)]
    assert np.std([law.skew for law in few]) == pytest.approx(
        np.mean([law.doubt for law in few]), rel=0.3
    )


def test_one_value_far_off_is_no_skew() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(100), 3)
    x = 0.02 * rng.normal(size=300)
    x[10] += 3.0
    assert abs(law_of_noise(repeats_of(group, x, group >= 0)).skew) < 0.4


def test_two_repeats_leave_the_skew_in_doubt() -> None:
    law = skewed(2, 0)
    assert (law.skew, law.doubt) == (0.0, 0.15)


def test_a_law_is_drawn_as_its_density_says() -> None:
    law = NoiseLaw(np.array([0.5, 2.0]), np.array([2 / 3, 1 / 3]), 0.4, 0.0)
    e = np.linspace(-20, 20, 40_001)
    density = law.density(e) * (e[1] - e[0])
    drawn = law.draw(200_000, np.random.default_rng(0))
    assert density.sum() == pytest.approx(1, abs=1e-3)
    assert float((e > 0) @ density) == pytest.approx(0.5, abs=1e-3)
    for power in (1, 2):
        assert (drawn**power).mean() == pytest.approx(e**power @ density, abs=0.03)
    assert law.skewed(9.0).skew == 0.8
    assert law.skewed(-9.0).skew == -0.8


def test_the_floor_of_skewed_noise_is_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    """A predictor of the median, against noise of 20 %: below what the mean difference says."""
    monkeypatch.setattr(floor, "_BLOCKS", 2)  # of the interval
    rng = np.random.default_rng(0)
    x = 0.2 * (rng.gamma(3, size=30_000) - 2.674) / math.sqrt(3)
    true = np.abs(np.expm1(-x)).mean()
    group = np.repeat(np.arange(10_000), 3)
    assert floor_of_repeats(repeats_of(group, x, group >= 0)).mape == pytest.approx(true, rel=0.02)
    assert floor_of_repeats(repeats_of(group, -x, group >= 0)).mape == pytest.approx(
        np.abs(np.expm1(x)).mean(), rel=0.03
    )
    two = np.repeat(np.arange(10_000), 2)
    assert floor_of_repeats(repeats_of(two, x[:20_000], two >= 0)).mape > 1.04 * true


def test_repeats_that_agree_have_the_shape_of_normal_noise() -> None:
    group = np.repeat(np.arange(50), 2)
    assert law_of_noise(repeats_of(group, np.zeros(100), group >= 0)) is NORMAL


@pytest.mark.slow
def test_heavy_tails_are_not_errors_of_a_tool() -> None:
    """A tool that is 10 % off everywhere, with t3 noise: as normal noise it seems to be worse."""
    misses = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(150), 3)
        x = 0.05 * rng.standard_t(3, 450)
        known = repeats_of(group, x, group >= 0)
        floor = FloorFigure(absolute_to_mape(0.05 * 1.103), 0.05, 0.06)
        logs = math.log(1.1) - x
        misses.append([remaining(logs, floor, s).mape - 0.1 for s in (NORMAL, law_of_noise(known))])
    as_normal, as_learned = np.mean(misses, axis=0)
    assert abs(as_learned) < 0.6 * abs(as_normal)
