"""What each part of the half-lives makes of the same histories, whole, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp import datasets
from errcomp.errors import InputError
from errcomp.halflife.carried_over import carried_over
from errcomp.halflife.drift import age, fit_variogram, trajectory, variogram
from errcomp.halflife.estimators import decay, expiry, parametric, pooled, survival, turnbull
from errcomp.halflife.fitting import release_study
from errcomp.halflife.forecast import forecast_half_life, probabilities
from errcomp.halflife.gate import check, since_last_step
from errcomp.halflife.gate.checking import check_validation, recalibrate
from errcomp.halflife.gate.planning import plan_gate
from errcomp.halflife.noise import moderated_variances, noise_floor
from errcomp.halflife.panel import Panel, moved, panel_of
from errcomp.halflife.steps import find_steps, find_steps_of
from errcomp.halflife.steps.blame import blame
from errcomp.halflife.steps.environment import attribute_steps_of
from errcomp.halflife.threshold import doubling_threshold
from errcomp.halflife.view.figures import FIGURES, draw
from errcomp.halflife.view.gate import report_halflife
from errcomp.halflife.view.study import study_tables
from errcomp.tables import History

Stored = Callable[..., None]
Seen = Callable[[Any], dict[str, Any]]
Drawn = Callable[[Callable[[], Any]], Any]


pytestmark = pytest.mark.extras


def validations(
    seed: int = 0,
    *,
    versions: int = 14,
    shapes: int = 5,
    repeats: int = 1,
    predicted: bool = True,
    dates: bool = False,
    noise: float = 0.01,
) -> dict[str, list[Any]]:
    """Validations of three operators: one that stays, one that drifts, one with steps.

    Not every series is in every version, and a few have no measurement.
    """
    rng = np.random.default_rng(seed)
    columns = ("version", "op", "shape", "repeat", "date", "predicted", "measured")
    data: dict[str, list[Any]] = {name: [] for name in columns}
    for op in ("stay", "drift", "step"):
        for shape in range(shapes):
            size, first = np.exp(rng.normal()), int(rng.integers(0, 3))
            walk = np.cumsum(rng.normal(0, 0.04, versions))
            steps = np.cumsum(rng.choice([0.0, 0.3, -0.2], versions, p=[0.8, 0.1, 0.1]))
            off = {"stay": 0 * walk, "drift": walk, "step": steps}[op]
            for version in range(first, versions):
                for repeat in range(repeats):
                    if rng.random() < 0.04:
                        continue
                    day = 1 + 9 * repeat + shape
                    values = (
                        f"1.{version}",
                        op,
                        str(shape),
                        repeat,
                        f"{2020 + version // 6}-{1 + 2 * (version % 6):02d}-{day:02d}",
                        size,
                        size * np.exp(0.05 + off[version] + noise * rng.normal()),
                    )
                    for name, value in zip(columns, values, strict=True):
                        data[name].append(value)
    left_out = [
        name
        for name, there in (("repeat", repeats > 1), ("date", dates), ("predicted", predicted))
        if not there
    ]
    return {name: column for name, column in data.items() if name not in left_out}


TABLES: Mapping[str, Callable[[], dict[str, list[Any]]]] = {
    "predicted": validations,
    "measured alone": partial(validations, 1, shapes=3, predicted=False),
    "repeats": partial(validations, 2, shapes=3, repeats=3),
    "dates": partial(validations, 3, shapes=3, repeats=2, dates=True),
    "noisy": partial(validations, 4, shapes=4, noise=0.2, repeats=2),
    "few": partial(validations, 5, versions=4, shapes=2),
}


@cache
def history(name: str) -> History:
    if name == "releases":
        known = datasets.load("ort-releases")
        return known.where({"level": "model", "version": known.versions[:10]})
    return History(TABLES[name](), unit="ms")


@cache
def panel(name: str) -> Panel:
    return panel_of(history(name)).panel


HISTORIES = [*TABLES, "releases"]


def clocks(name: str) -> list[str]:
    return ["releases"] if np.isnan(panel(name).months).any() else ["releases", "months"]


def found(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what is found, or why nothing is."""
    try:
        return call(*args, **options)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("name", HISTORIES)
def test_panels_and_noise(name: str, stored: Stored) -> None:
    known = panel_of(history(name))
    stored(
        f"halflife/panel/{name}",
        {
            "panel": known,
            "moved": moved(known),
            "noise": noise_floor(history(name)),
            "carried over": carried_over(history(name)),
            "threshold": [found(doubling_threshold, known.panel, level=p) for p in (0.8, 0.95)],
            "steps": find_steps_of(known.panel),
            "steps at 20 %": find_steps_of(known.panel, alpha=0.2, min_segment=3),
        },
    )


@pytest.mark.parametrize("name", HISTORIES)
def test_drift(name: str, stored: Stored) -> None:
    one = panel(name)
    laws = {clock: found(fit_variogram, one, clock) for clock in clocks(name)}
    made: dict[str, Any] = {"fit": laws, "age": found(age.drift_by_age, one)}
    for clock in clocks(name):
        made[clock] = [
            found(trajectory.error_trajectory, one, clock=clock),
            found(trajectory.trajectory_half_life, one, threshold=0.2, clock=clock),
            found(trajectory.trajectory_half_life, one, threshold=0.05, clock=clock, level=0.8),
            found(variogram.drift_variogram, one, clock=clock),
            found(variogram.variogram_half_life, one, error=0.1, clock=clock),
            found(variogram.variogram_half_life, one, error=0.4, clock=clock, level=0.8),
        ]
    stored(f"halflife/drift/{name}", made)


@pytest.mark.parametrize("name", ["predicted", "dates", "noisy", "few"])
def test_times_to_doubling(name: str, stored: Stored) -> None:
    one, made = panel(name), {}
    for clock in clocks(name):
        times = found(expiry.expiry_of, one, 0.15, clock)
        made[clock] = [
            times,
            found(expiry.series_half_lives, one, 0.15, clock),
            found(survival.survival_half_lives, one, 0.15, clock),
            found(survival.half_lives_of, times, level=0.8, seed=3),
            found(decay.decay_half_lives, one, threshold=0.15, clock=clock),
            found(decay.group_decay_half_life, one, threshold=0.3, clock=clock),
        ]
        if not isinstance(times, str):
            groups = [one.names[i].partition("/")[0] for i in times.series]
            made[f"{clock}, groups"] = [
                found(pooled.pooled_half_lives, times, groups),
                found(survival.half_lives_by, times, groups),
            ]
    stored(f"halflife/times/{name}", made)


def intervals(seed: int, n: int = 40) -> tuple[Any, Any, Any]:
    """Times that are known to lie between two looks; some are not over at the last."""
    rng = np.random.default_rng(seed)
    time = rng.weibull(1.5, n) * 8
    left = np.floor(time)
    right = np.where(time > 12, np.inf, left + rng.integers(1, 3, n))
    return np.minimum(left, 12), right, np.arange(n) // 4


@pytest.mark.parametrize("seed", range(3))
def test_survival(seed: int, stored: Stored) -> None:
    left, right, clusters = intervals(seed)
    made: dict[str, Any] = {"scores": parametric.held_out_scores(left, right, seed=seed)}
    for law in ("exponential", "weibull", "lognormal"):
        made[law] = [
            found(parametric.fit_law, left, right, law),
            found(parametric.fit_law, left, right, law, clusters=clusters, level=0.8),
        ]
    for name, by in (("units", None), ("clusters", clusters)):
        curve = turnbull.turnbull(left, right, clusters=by)
        made[f"turnbull, {name}"] = [
            curve,
            found(probabilities.forecast_survival, [0, 4, 8], [1, 0.8, 0.3],
                  low=[0.9, 0.6, 0.1], high=[1, 0.9, 0.6], ahead=np.arange(9), age=seed),
        ]  # fmt: skip
    stored(f"halflife/survival/{seed}", made, least=1e-8)


def test_forecasts_of_parameters(stored: Stored) -> None:
    ahead, today = np.arange(0, 13, 3.0), {}
    for error in (0.0, 0.05, -0.2):
        drift = probabilities.forecast_drift(
            ahead, c=0.002, beta=0.8, threshold=0.15, error=error, spread=0.02,
            draws=np.random.default_rng(0).lognormal(np.log([0.002, 0.8]), 0.2, (200, 2)),
        )  # fmt: skip
        steps = probabilities.forecast_steps(
            ahead, sizes=[0.1, -0.3, 0.05], exposure=40.0, threshold=0.15, error=error, spread=0.02
        )
        drops = [probabilities.drops_below(one, 0.9) for one in (drift, steps)]
        today[str(error)] = [drift, steps, drops]
    stored("halflife/forecasts", today)


def test_variances_share_what_they_know(stored: Stored) -> None:
    rng = np.random.default_rng(0)
    made = [
        moderated_variances(rng.chisquare(df) / df * scale, df)
        for df, scale in (
            (np.full(30, 4.0), np.full(30, 1.0)),
            (np.arange(1.0, 31), rng.lognormal(0, 1, 30)),
            (np.array([3.0, 5]), np.array([2, 0.1])),
        )
    ]
    unknown = moderated_variances([np.nan, 0.5, 1.5], [0, 3, 4])
    stored("halflife/variances", [*made, unknown])


@pytest.mark.parametrize("known", [False, True])
def test_steps(known: bool, stored: Stored) -> None:
    rng, made = np.random.default_rng(0), []
    for n in (3, 4, 6, 9, 15, 40):
        for size in (0.0, 0.05, 0.5):
            x = (
                rng.normal(0, 0.05, n)
                + size * (np.arange(n) >= n // 2)
                - size * (np.arange(n) > 30)
            )
            sd = {"sd": np.full(n, 0.05), "df": 12.0} if known else {}
            made += [
                found(find_steps, x, **sd),
                found(find_steps, x, **sd, alpha=0.3, min_segment=4),
            ]
    stored(f"halflife/steps/{known}", made)


FITS: Mapping[str, Mapping[str, Any]] = {
    "all": {"error": 0.1},
    "by operator": {"by": "op", "error": 0.1},
    "clusters": {"by": "op", "error": 0.1, "cluster": "shape"},
    "error of the history": {"by": "op"},
    "another level": {"error": 0.05, "level": 0.8, "alpha": 0.2, "seed": 3},
}


# With dates and with few versions, these differ from the others as they do without.
SAME = [(name, options) for name in ("dates", "few") for options in ("clusters", "another level")]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(name, options, marks=pytest.mark.slow if (name, options) in SAME else ())
        for name in ("predicted", "dates", "few")
        for options in FITS
    ],
)
def test_fits(name: str, options: str, seen: Seen, drawn: Drawn, stored: Stored) -> None:
    pytest.importorskip("matplotlib")
    result = found(ec.half_life, history(name), **FITS[options])
    made: Any = result
    if not isinstance(result, str):
        made = {"document": json.loads(result.to_json()), **seen(result)}
        if options in ("all", "by operator"):
            others = [one for one in FIGURES if one not in made["figures"]]
            made["other figures"] = {one: drawn(partial(draw, result, one)) for one in others}
    stored(f"halflife/fit/{name}, {options}", made)


@pytest.mark.parametrize("name", ["predicted", "dates", "noisy", "releases"])
def test_forecasts(name: str, seen: Seen, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("errcomp.halflife.forecast.compound_poisson._DRAWS", 50)
    made = []
    by = "family" if name == "releases" else "op"
    for options in ({}, {"by": by}, {"error": 0.1, "age": 3, "below": 0.6, "level": 0.8}):
        result = found(forecast_half_life, history(name), **{"error": 0.2, **options})
        made.append(result if isinstance(result, str) else seen(result))
    stored(f"halflife/forecast/{name}", made)


@pytest.mark.parametrize("name", HISTORIES)
def test_gates(name: str, stored: Stored) -> None:
    one, made = panel(name), []
    for options in (
        {},
        {"margin": 0.1, "alpha": 0.3, "look": 4},
        {
            "version": one.versions[-2],
            "groups": [text[:3] for text in one.names],
            "promised": 0.2,
        },
    ):
        result = found(check, one, **options)
        made.append(result)
        if not isinstance(result, str):
            report = report_halflife(result)
            made.append([report.junit(timestamp=None).decode(), report.markdown])
    made += [found(since_last_step, one), found(since_last_step, one, margin=0.2, alpha=0.3)]
    made += [found(recalibrate, one), found(recalibrate, one, level=0.8)]
    made.append(found(attribute_steps_of, history(name)))
    stored(f"halflife/gate/{name}", made)


@pytest.mark.parametrize("name", ["predicted", "repeats", "dates"])
def test_new_validations(name: str, seen: Seen, stored: Stored) -> None:
    pytest.importorskip("matplotlib")
    data, made = TABLES[name](), []
    last = data["version"][-1]
    old, new = (
        {
            column: [v for v, version in zip(values, data["version"], strict=True) if keep(version)]
            for column, values in data.items()
        }
        for keep in (lambda version: version != last, lambda version: version == last)
    )
    new["measured"] = [value * (1.5 if op == "stay" else 1) for value, op in
                       zip(new["measured"], new["op"], strict=True)]  # fmt: skip
    every = ({}, {"by": "op"}, {"by": "op", "error": 0.2, "margin": 0.1, "alpha": 0.2},
             {"recalibrated": True})  # fmt: skip
    # What the options do is the same with repeats and dates.
    for options in every if name == "predicted" else every[1::2]:
        result = found(check_validation, History(old), History(new), **options)
        made.append(result if isinstance(result, str) else seen(result))
    stored(f"halflife/check/{name}", made)


def levels(seed: int) -> History:
    """Three networks of four operators, of which one comes late; named by keys alone."""
    rng = np.random.default_rng(seed)
    names = ("version", "level", "network", "aop", "family", "stack_cuda", "measured")
    data: dict[str, list[Any]] = {name: [] for name in names}
    for network in ("b", "a", "c"):
        base = rng.uniform(1, 6, 4)
        for k in range(16):
            cuda = "12.4" if k >= 9 else "12.1"
            times = base * np.exp(0.01 * rng.standard_normal(4))
            times[0] *= 1.2 if k >= 9 and network != "c" else 1.0
            times[1] *= 0.7 if k >= 5 and network == "a" else 1.0
            whole = times.sum() + 2 * np.exp(0.02 * rng.standard_normal())
            rows: list[tuple[str, str | None, float]] = [("network", None, whole)]
            rows += [
                ("operator", f"op{i}", time)
                for i, time in enumerate(times)
                if not (i == 3 and k < 5) and rng.random() > 0.05
            ]
            for level, op, time in rows:
                family = None if op is None else "x" if op in ("op0", "op2") else "y"
                for name, value in zip(
                    names, (f"1.{k}", level, network, op, family, cuda, time), strict=True
                ):
                    data[name].append(value)
    return History(data, unit="ms")


@pytest.mark.parametrize(
    ("name", "options"),
    [("all", {}), ("by family", {"by": "family"}), ("at 1.7", {"version": "1.7"})],
)
def test_blame(name: str, options: dict[str, Any], seen: Seen, stored: Stored) -> None:
    stored(f"halflife/blame/{name}", seen(blame(levels(1), **options)))


def test_a_plan_of_the_gate(seen: Seen, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errcomp.halflife.gate.planning._CHANGES", 12)
    plan = plan_gate(0.2, noise=0.02, between=0.01, within=1, looks=8, power=0.7)
    stored("halflife/plan", {"document": json.loads(plan.to_json()), **seen(plan)})


def test_the_study_of_releases(stored: Stored) -> None:
    known = datasets.load("ort-releases")
    networks = ["conv", "encoder", "gather", "gelu", "lstm", "softmax"]
    study = release_study(known.where({"version": known.versions[:4], "model": networks}))
    tables = [[one.title, [[column.cell(row).text for column in one.columns] for row in one.rows]]
              for one in study_tables(study)]  # fmt: skip
    stored("halflife/study", tables)
