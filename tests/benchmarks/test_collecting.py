"""What the collectors of run times make of what they measured; measuring itself is not tested."""

from __future__ import annotations

import sys
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
    changed = result(1000.0, 200.0)
    changed["kernels"][0]["count"] = 4
    with pytest.raises(SystemExit, match="r: its operators differ between processes"):
        [*collecting.kernel_rows("r", [result(1.0, 1.0), changed])]


def test_a_folder_holds_one_measurement(modules: Any, tmp_path: Path) -> None:
    _, collecting = modules
    about = {"device": "cpu", "version": "1"}
    one = collecting.Collection(tmp_path, collecting.QUICK, about, "ort_timing.py")
    assert one.missing == [0, 1, 2]
    one.write("pieces/01.json", "{}")
    again = collecting.Collection(tmp_path, collecting.QUICK, about, "ort_timing.py")
    assert again.missing == [0, 2]
    with pytest.raises(SystemExit, match="holds another measurement: version differ"):
        collecting.Collection(
            tmp_path, collecting.QUICK, {**about, "version": "2"}, "ort_timing.py"
        )


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
