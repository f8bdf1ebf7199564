"""Fits of an evaluation that are made ahead of it, as in other processes but in this one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.composition import fits as parts
from errcomp.calibration.estimators import BASELINES
from errcomp.calibration.evaluation import composed
from errcomp.calibration.evaluation.composed import evaluate_composition
from errcomp.datasets import example_runs
from errcomp.tables import Kernels

SPLIT = "leave-device-out"
DEVICES, MODELS = [*"AABBCCDD"], [*"xyxyxyzz"]


def runs() -> Kernels:
    at = np.arange(8)
    measured = 1.0 + at
    return Kernels(
        {
            "run": [f"r{i}" for i in at],
            "device": DEVICES,
            "model": MODELS,
            "kernel": ["gemm"] * 8,
            "measured": measured.tolist(),
            "run_measured": (measured * (1.1 + 0.01 * (at % 3))).tolist(),
        },
        unit="ms",
    )


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """Fit nothing, in this process, and return of what: the estimator and the runs."""
    asked: list[tuple[str, tuple[int, ...]]] = []

    def note(name: str, design: Any, **options: Any) -> Any:
        assert options == {"seed": 3, "n_jobs": 1, "quick": True}
        asked.append((name, tuple(int(run[1:]) for run in design.run)))
        return SimpleNamespace(portable_=asked[-1])

    def one_by_one(function: Any, items: Any, *, n_jobs: int) -> Any:
        assert n_jobs == 2
        return map(function, items)

    monkeypatch.setattr(parts, "fit_member", note)
    monkeypatch.setattr(parts, "map_jobs", one_by_one)
    monkeypatch.setattr(composed, "count_jobs", lambda n_jobs: n_jobs or 1)
    monkeypatch.setattr(composed, "evaluate", lambda make, _, **how: (make, how["progress"]))
    return asked


def ahead(table: Kernels, progress: Any = None) -> Any:
    return evaluate_composition(
        table, estimators=(), splits=[SPLIT], n_jobs=2, seed=3, progress=progress
    )


def test_fits_that_are_made_ahead_are_those_of_each_fold(
    fitted: list[tuple[str, tuple[int, ...]]],
) -> None:
    said: list[tuple[float, float]] = []
    make, progress = ahead(runs(), lambda *at: said.append(at))
    expected = set()
    for device in "ABCD":
        train = [i for i in range(8) if DEVICES[i] != device]
        expected.add(tuple(train))
        for names in (MODELS, DEVICES):
            kinds = {names[i] for i in train}
            if len(kinds) >= 3:
                expected |= {tuple(i for i in train if names[i] != one) for one in kinds}
    n = len(BASELINES) * len(expected)
    assert sorted(fitted) == sorted((name, part) for name in BASELINES for part in expected)
    # Every fold counts as one more step, after the fits.
    assert said == [(i, n + 4) for i in range(1, n + 1)]
    progress(1, 4)
    assert said[-1] == (n + 1, n + 4)
    fits = make.args[0]
    assert fits.portable("sum", np.ones(8, dtype=bool) & (np.array(DEVICES) != "D")) == (
        "sum",
        (0, 1, 2, 3, 4, 5),
    )
    assert len(fitted) == n
    assert ahead(runs())[1] is None


def test_the_former_name_of_the_number_of_processes_is_taken_with_a_warning(
    fitted: list[tuple[str, tuple[int, ...]]],
) -> None:
    how: dict[str, Any] = {"estimators": (), "splits": [SPLIT], "seed": 3}
    told = "^evaluate_composition: the parameter cores is now n_jobs$"
    with pytest.warns(DeprecationWarning, match=told):
        evaluate_composition(runs(), **how, cores=2)
    once = fitted.copy()
    assert once
    fitted.clear()
    evaluate_composition(runs(), **how, n_jobs=2)
    assert fitted == once
    with pytest.raises(TypeError, match="cores is the old name of n_jobs; give only one"):
        evaluate_composition(runs(), **how, cores=2, n_jobs=2)


def test_folds_with_too_few_runs_are_not_fitted_ahead(
    fitted: list[tuple[str, tuple[int, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Baselines need three runs: without one device three are left, without the other one."""
    table = example_runs()
    said: list[tuple[float, float]] = []
    monkeypatch.setattr(
        parts,
        "fit_member",
        lambda name, design, **_: SimpleNamespace(portable_=fitted.append(name)),
    )
    _, progress = ahead(table.where({"run": [*"abce"]}), lambda *at: said.append(at))
    assert sorted(fitted) == sorted(BASELINES)
    assert said == [(i, 6) for i in range(1, 5)]
    progress(2, 2)
    assert said[-1] == (6, 6)
    fitted.clear()
    ahead(table.where({"run": [*"ac"]}))
    assert fitted == []


def test_fits_are_not_made_ahead_in_one_process(
    fitted: list[tuple[str, tuple[int, ...]]],
) -> None:
    said: list[tuple[float, float]] = []

    def progress(*at: float) -> None:
        said.append(at)  # type: ignore[arg-type]

    found: Any = evaluate_composition(runs(), estimators=(), splits=[SPLIT], progress=progress)
    make, same = found
    assert same is progress
    assert (fitted, said, make.args[0].n_jobs) == ([], [], 2)
