"""The rule on measured phases: what it finds, how often it is wrong, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import check_runs
from errcomp.calibration.features import Parts
from errcomp.calibration.plausibility.phases import phases_of
from errcomp.datasets import load
from errcomp.errors import InputError
from errcomp.tables import Kernels

Law = Callable[[np.random.Generator], float]
NAMES = ("forward", "backward", "optimizer")


def table(
    runs: int, *, seed: int = 0, phases: int = 2, law: Law = lambda rng: rng.normal(0, 0.05)
) -> dict[str, list[Any]]:
    """Training steps whose phases take as long as their kernels, up to errors of a law."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("run", "kernel", "mode", "phase", "count", "measured",
                              "phase_measured", "run_measured")
    }  # fmt: skip
    for i in range(runs):
        kernels = [2.0 * (j + 1) * (1 + i % 5) for j in range(phases)]
        took = [time * np.exp(law(rng)) for time in kernels]
        # Runs differ as a whole, which is nothing that the rule may see.
        whole = np.exp(rng.normal(0, 0.5))
        for j in range(phases):
            row = (f"r{i}", f"k{j}", "training", NAMES[j], 2, kernels[j] / 2,
                   whole * took[j], whole * sum(took))  # fmt: skip
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


def slower(columns: dict[str, list[Any]], run: str, phase: str, factor: float) -> None:
    for i, (name, part) in enumerate(zip(columns["run"], columns["phase"], strict=True)):
        if (name, part) == (run, phase):
            columns["phase_measured"][i] *= factor


def flagged(columns: Any) -> list[tuple[str, str]]:
    found = check_runs(Kernels(columns, unit="ms"))
    return [(r.run, r.evidence.split()[1]) for r in found.rows if r.rule == "phases"]


def reason(columns: Any) -> str:
    found = check_runs(Kernels(columns, unit="ms"))
    return {one.rule: one.reason for one in found.not_checked}.get("phases", "")


@pytest.mark.parametrize("phase", NAMES)
def test_a_slow_phase_is_found_and_said(phase: str) -> None:
    columns = table(20, phases=3)
    slower(columns, "r4", phase, 2.0)
    assert flagged(columns) == [("r4", phase)]
    (row,) = check_runs(Kernels(columns, unit="ms")).rows
    assert row.evidence.startswith(f"its {phase} phase took ")
    assert float(row.evidence.split()[4]) == pytest.approx(2.0, rel=0.25)
    assert "(limit: 1." in row.evidence


def test_a_fast_phase_is_no_evidence_where_there_are_three() -> None:
    columns = table(20, phases=3)
    slower(columns, "r4", "optimizer", 0.4)
    assert ("r4", "optimizer") not in flagged(columns)


def test_a_run_that_is_slow_as_a_whole_has_no_slow_phase() -> None:
    columns = table(20)
    for phase in NAMES:
        slower(columns, "r4", phase, 5.0)
    assert flagged(columns) == []


def test_the_excess_of_a_phase_is_against_the_rest_of_its_run() -> None:
    columns = table(1, phases=3, law=lambda rng: 0.0)
    columns["phase_measured"] = [4.0, 4.0, 6.0]
    kernels = Kernels(columns, unit="ms")
    phases = phases_of(kernels, Parts.of(kernels, "composition"))
    assert phases is not None
    assert (phases.names, phases.kernels.tolist()) == (NAMES, [[2.0, 4.0, 6.0]])
    assert np.exp(phases.excess()).tolist() == [pytest.approx([2.0, 0.8, 0.75])]


def test_a_run_with_one_measured_phase_is_not_compared() -> None:
    columns = table(12)
    columns["phase_measured"][1] = None
    kernels = Kernels(columns, unit="ms")
    phases = phases_of(kernels, Parts.of(kernels, "composition"))
    assert phases is not None
    assert np.isnan(phases.excess()[0]).all()
    assert np.isfinite(phases.excess()[1:]).all()


def test_times_may_be_missing_in_a_column_of_texts() -> None:
    columns = table(4)
    columns["phase_measured"] = [str(time) for time in columns["phase_measured"]]
    columns["phase_measured"][1] = ""
    columns["phase_measured"][2] = None
    given = Kernels(
        {**columns, "phase_measured": np.array(columns["phase_measured"], dtype=object)}, unit="ms"
    )
    assert given.column("phase_measured").dtype == object
    phases = phases_of(given, Parts.of(given, "composition"))
    assert phases is not None
    expected = [None if not time else float(time) for time in columns["phase_measured"]]
    assert phases.measured.ravel() == pytest.approx(
        np.array(expected, dtype=float), nan_ok=True, rel=1e-15
    )


def test_tables_that_cannot_be_checked_say_why() -> None:
    assert reason(table(7)) == "fewer than 8 runs have two measured phases"
    assert reason(table(8)) == ""
    equal = table(9, law=lambda rng: 0.0)
    assert reason(equal) == "fewer than 8 runs have two measured phases"
    for name in ("phase", "phase_measured"):
        columns = table(9)
        del columns[name]
        assert reason(columns) == "the table has no columns phase and phase_measured"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("fast", "must be a number above 0, or missing, got 'fast' in run 'r1'"),
        (0.0, "must be a number above 0, or missing, got 0.0 in run 'r1'"),
        (-2.0, "must be a number above 0"),
        (float("inf"), "must be a number above 0"),
    ],
)
def test_times_that_are_none_are_refused(value: Any, message: str) -> None:
    columns = table(9)
    columns["phase_measured"][2] = value
    columns["phase_measured"] = np.array(columns["phase_measured"], dtype=object)
    with pytest.raises(InputError, match=message):
        check_runs(Kernels(columns, unit="ms"))


def test_two_times_of_one_phase_are_refused() -> None:
    columns = {name: [*values, *values[:2]] for name, values in table(9).items()}
    slower(columns, "r0", "forward", 1.0)
    assert check_runs(Kernels(columns, unit="ms")).flagged == 0
    columns["phase_measured"][-1] *= 1.001
    with pytest.raises(InputError, match="the same in all rows of a phase.*differs in run r0"):
        check_runs(Kernels(columns, unit="ms"))


@pytest.mark.parametrize(("name", "runs"), [("torch-cpu", 48), ("torch-cuda", 72)])
def test_no_phase_is_flagged_in_own_measurements(name: Any, runs: int) -> None:
    """Two GPUs and a CPU measured under control: every flag would be false."""
    kernels = load(name)
    found = check_runs(kernels)
    assert [row for row in found.rows if row.rule == "phases"] == []
    assert "phases" not in {one.rule for one in found.not_checked}
    phases = phases_of(kernels, Parts.of(kernels, "composition"))
    assert phases is not None
    assert (np.isfinite(phases.excess()).sum(axis=1) > 1).sum() == runs


def test_what_the_artifact_of_neusight_shows() -> None:
    """The runs in which forward passes take 1.4 to 2.7 times their kernels, and no others."""
    kernels = load("neusight-kernels")
    rows = [row for row in check_runs(kernels).rows if row.rule == "phases"]
    assert [row.run.split("/")[0] for row in rows] == ["MI210"] * 2 + ["A100-80G"] * 5
    assert all(row.evidence.startswith("its forward phase") for row in rows)
    phases = phases_of(kernels, Parts.of(kernels, "composition"))
    assert phases is not None
    times = (phases.measured / phases.kernels)[np.isin(kernels.runs, [row.run for row in rows])]
    forward, backward = times.T
    assert (round(forward.min(), 1), round(forward.max(), 1)) == (1.4, 2.7)
    assert np.abs(backward - 1).max() < 0.14


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "most"),
    [
        (lambda rng: rng.normal(0, 0.1), 0.02),
        (lambda rng: 0.05 * rng.standard_t(3), 0.06),
        (lambda rng: 0.1 * (rng.exponential() - 1), 0.09),
        (lambda rng: rng.laplace(0, 0.1), 0.05),
        (lambda rng: rng.normal(0, 0.03 if rng.random() < 0.9 else 0.15), 0.09),
    ],
    ids=["normal", "t3", "skewed", "laplace", "mixture"],
)
def test_false_flags_and_power(law: Law, most: float) -> None:
    """Share of honest runs that are flagged, and of phases three times as slow that are found."""
    false, hits, times = 0, 0, 150
    for seed in range(times):
        columns = table(30, seed=seed, law=law)
        false += len({run for run, _ in flagged(columns)})
        slower(columns, "r7", "forward", 3.0)
        hits += ("r7", "forward") in flagged(columns)
    assert false / (30 * times) < most
    assert hits / times > 0.95


@pytest.mark.parametrize(("factor", "found"), [(1.07, []), (1.2, [("r4", "forward")])])
def test_less_than_a_tenth_is_never_flagged(factor: float, found: list[tuple[str, str]]) -> None:
    columns = table(20, law=lambda rng: rng.normal(0, 0.003))
    slower(columns, "r4", "forward", factor)
    assert flagged(columns) == found
