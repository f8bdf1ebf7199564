"""What the collectors of run times make of what they measured; measuring itself is not tested."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The modules, found as the scripts find them: beside each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("slices", "collecting"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import collecting  # type: ignore[import-not-found]
    import slices  # type: ignore[import-not-found]

    return slices, collecting


def session(slices: Any, times: list[list[float]], events: list[Any] | None = None) -> Any:
    """A session that has run: slices of times in µs, NaN where disturbed."""

    class Done(slices.Session):  # type: ignore[misc]
        def __init__(self) -> None:
            warm_up = [np.ones(runs) for runs in slices.WARM_UP]
            self.slices = [*warm_up, *(np.array(one) for one in times)]
            self.phase_times = [[{}] * len(one) for one in self.slices]

        def run(self) -> None:
            raise AssertionError

        def profiles(self) -> list[Any]:
            warm = [({("Gemm", "2x2", "2x2"): [9.0]}, 9.0)] * sum(1 + n for n in slices.WARM_UP)
            return [*warm, *(events or [])]

    return Done()


def profiled(gemm: float, add: float) -> Any:
    return {("Gemm", "2x2", "2x2"): [gemm], ("Add", "2", "2"): [add, add + 2]}, gemm + 2 * add


NAN = float("nan")


def test_times_are_medians_of_slices_that_were_left_alone(modules: Any) -> None:
    slices, _ = modules
    plain = session(slices, [[10.0] * 6, [12.0] * 6, [50.0] + [NAN] * 5])
    events = []
    for gemm in (5.0, 7.0, 99.0):
        # The first run of a slice fills the caches and does not count.
        events += [profiled(1000.0, 1000.0), *[profiled(gemm, 1.0)] * 6]
    watched = session(slices, [[14.0] * 6, [16.0] * 6, [20.0] * 6], events)
    assert slices.undisturbed([(plain, 6), (watched, 6)]) == 2
    found = slices.result_of(plain, watched)
    assert (found["slices"], found["passes"]) == (2, 3)
    assert (found["run"], found["profiled_run"]) == (11.0, 15.0)
    assert found["profiled_model_run"] == 8.0
    assert found["kernels"] == [
        {"key": ("Gemm", "2x2", "2x2"), "count": 1, "time": 6.0},
        {"key": ("Add", "2", "2"), "count": 2, "time": 2.0},
    ]


def test_a_phase_takes_its_median_in_the_runs_that_were_left_alone(modules: Any) -> None:
    slices, _ = modules
    plain = session(slices, [[10.0] * 5 + [NAN], [12.0] * 6])
    one = [{"forward": 3.0, "backward": 6.0}] * 5 + [{"forward": 99.0, "backward": 99.0}]
    other = [{"forward": 4.0, "backward": 7.0}] * 6
    plain.phase_times = [*plain.phase_times[: len(slices.WARM_UP)], one, other]
    watched = session(slices, [[14.0] * 6] * 2, [profiled(5.0, 1.0)] * 14)
    assert slices.result_of(plain, watched)["phases"] == {"forward": 3.5, "backward": 6.5}


def test_nothing_is_said_where_every_slice_was_disturbed(modules: Any) -> None:
    slices, _ = modules
    plain = session(slices, [[NAN] * 6])
    watched = session(slices, [[14.0] * 6], [profiled(5.0, 1.0)] * 7)
    assert slices.result_of(plain, watched) == {"slices": 0, "passes": 1}


def test_a_profile_must_have_every_run(modules: Any) -> None:
    slices, _ = modules
    watched = session(slices, [[14.0] * 6], [profiled(5.0, 1.0)] * 6)
    with pytest.raises(RuntimeError, match="21 runs in the profile are not those made"):
        watched.profile()


def test_operators_must_not_change_between_runs(modules: Any) -> None:
    slices, _ = modules
    other = {("Gemm", "2x2", "2x2"): [5.0]}
    with pytest.raises(RuntimeError, match="the operators differ between runs"):
        slices.kernels_of([[profiled(5.0, 1.0)[0], other]])


def result(run: float, gemm: float) -> dict[str, Any]:
    kernels = [{"key": ["Gemm", "2x2", ""], "count": 3, "time": gemm}]
    return {"run": run, "profiled_run": 2 * run, "profiled_model_run": run, "kernels": kernels}


def test_rows_are_means_of_processes_in_ms(modules: Any) -> None:
    _, collecting = modules
    (row,) = collecting.kernel_rows("r", [result(1000.0, 200.0), result(1100.0, 260.0)])
    assert (row["kernel"], row["kernel_class"], row["shape"]) == ("Gemm 2x2", "Gemm", "")
    assert (row["count"], row["measured"], row["run_measured"]) == (3, 0.23, 1.05)
    assert row["profiled_run"] == 2.1
    assert row["run_spread"] == pytest.approx(np.std([1.0, 1.1], ddof=1) / 1.05, abs=1e-4)
    assert "phase" not in row
    changed = result(1000.0, 200.0)
    changed["kernels"][0]["count"] = 4
    with pytest.raises(SystemExit, match="r: its operators differ between processes"):
        [*collecting.kernel_rows("r", [result(1.0, 1.0), changed])]


def test_rows_have_the_phase_of_their_kernel_and_its_time(modules: Any) -> None:
    _, collecting = modules
    found = result(1000.0, 200.0) | {"phases": {"forward": 400.0, "backward": 600.0}}
    found["kernels"] = [
        {"key": ["sgemm", "2x2", "", "aten::mm", phase], "count": 1, "time": 100.0}
        for phase in ("forward", "optimizer")
    ]
    rows = [*collecting.kernel_rows("r", [found], ["forward", "backward", "optimizer"])]
    assert [(row["kernel"], row["kernel_class"]) for row in rows] == [("sgemm 2x2", "aten::mm")] * 2
    assert [row["phase"] for row in rows] == ["forward", "optimizer"]
    # A phase that was not timed has no time.
    assert [row["phase_measured"] for row in rows] == [0.4, None]


def test_quick_changes_how_each_device_is_measured(
    modules: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, collecting = modules
    seen = []

    def describe(_: Path, protocol: Any) -> Any:
        seen.append(protocol)
        raise SystemExit(0)

    protocols = {"cpu": collecting.Protocol(), "cuda": collecting.Protocol(rounds=7, on="cuda")}
    for given in ([], ["--device", "cuda"], ["--device", "cuda", "--quick"]):
        monkeypatch.setattr(sys, "argv", ["collect", str(tmp_path), *given])
        with pytest.raises(SystemExit):
            collecting.main("", "script.py", describe, protocols)
    assert [(one.on, one.rounds, one.smallest_only) for one in seen] == [
        ("cpu", 5, False),
        ("cuda", 7, False),
        ("cuda", 3, True),
    ]


def test_a_folder_holds_one_measurement(modules: Any, tmp_path: Path) -> None:
    _, collecting = modules
    about = {"device": "cpu", "version": "1"}
    quick = replace(collecting.Protocol(), **collecting.QUICK)
    one = collecting.Collection(tmp_path, quick, about, "ort_timing.py")
    assert one.missing == [0, 1, 2]
    one.write("pieces/01.json", "{}")
    again = collecting.Collection(tmp_path, quick, about, "ort_timing.py")
    assert again.missing == [0, 2]
    with pytest.raises(SystemExit, match="holds another measurement: version differ"):
        collecting.Collection(tmp_path, quick, {**about, "version": "2"}, "ort_timing.py")


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.1.0-21-amd64", " 6.1.0"), ("5.15.167.4-some-standard", " 5.15.167.4"), ("odd", "")],
)
def test_a_protocol_names_the_version_of_the_system_alone(
    modules: Any, monkeypatch: pytest.MonkeyPatch, release: str, version: str
) -> None:
    _, collecting = modules
    monkeypatch.setattr(collecting.platform, "release", lambda: release)
    monkeypatch.setattr(collecting.platform, "system", lambda: "Linux")
    assert collecting.machine()["system"] == f"Linux{version}"
