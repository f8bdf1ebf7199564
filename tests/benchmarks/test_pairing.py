"""What the comparison of releases makes of what it measured; measuring itself is not tested."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def pairing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, found as the scripts find it: beside each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("collecting", "pairing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import pairing  # type: ignore[import-not-found]

    return pairing


def kernel(kind: str, time: float, count: int = 1) -> dict[str, Any]:
    return {"key": [kind, "2x2", "2x2"], "count": count, "time": time}


def side(slices: list[float | None], *kernels: dict[str, Any]) -> dict[str, Any]:
    return {
        "slices": slices,
        "profiled_run": 15.0,
        "profiled_model_run": 14.0,
        "kernels": [*kernels],
    }


def test_every_release_is_compared_in_every_round_and_the_anchor_with_itself(pairing: Any) -> None:
    plan = [*pairing.pieces(pairing.Protocol(rounds=3), ["a", "b", "c", "d"])]
    assert len({name for name, _ in plan}) == len(plan) == 3 * 3 + 9
    assert [version for _, version in plan[:3]] == ["a"] * 3
    assert [name for name, _ in plan[-3:]] == ["end-a-1", "end-a-2", "end-a-3"]
    middle = [name for name, _ in plan].index("middle-a-1")
    assert 3 < middle < len(plan) - 6
    rounds = [name.split("-") for name, version in plan if version != "a"]
    assert [number for number, _ in rounds] == ["1"] * 3 + ["2"] * 3 + ["3"] * 3
    assert all(sorted(v for n, v in rounds if n == r) == ["b", "c", "d"] for r in "123")
    # The order is drawn, and drawn alike again.
    assert plan == [*pairing.pieces(pairing.Protocol(rounds=3), ["a", "b", "c", "d"])]


def test_the_change_is_that_of_slices_side_by_side(pairing: Any) -> None:
    # The machine slows down half way: medians of each side alone would say so of b.
    a = side([10.0, 10.0, None, 30.0, 30.0])
    b = side([11.0, None, 33.0, 33.0, 33.0])
    found = pairing.compared(a, b)
    assert found["slices"] == 3
    assert found["log_ratio"] == pytest.approx(math.log(1.1), abs=1e-6)
    assert found["slice_spread"] == pytest.approx(0.0, abs=1e-6)
    assert (found["a"]["run"], found["b"]["run"]) == (30.0, 33.0)
    assert pairing.compared(side([None]), side([1.0])) == {"slices": 0}


def piece_of(pairing: Any) -> dict[str, Any]:
    a = side([10.0, 10.0], kernel("Gemm", 4.0), kernel("Add", 1.0, 2), kernel("Erf", 3.0))
    b = side([20.0, 20.0], kernel("Gemm", 8.0), kernel("Add", 1.0, 3), kernel("Gelu", 2.0))
    networks = {"mlp_int8_b1": pairing.compared(a, b)}
    return {"piece": "1-2.0", "version": "2.0", "networks": networks}


def test_operators_are_joined_by_type_and_shapes(pairing: Any) -> None:
    (run,), kernels = pairing.rows_of(piece_of(pairing))
    assert (run["model"], run["input"], run["version"]) == ("mlp_int8", "b1", "2.0")
    assert (run["anchor_run"], run["run"]) == (0.01, 0.02)
    by_class = {row["kernel_class"]: row for row in kernels}
    assert by_class["Gemm"]["kernel"] == "Gemm 2x2->2x2"
    assert by_class["Gemm"]["log_ratio"] == pytest.approx(math.log(2), abs=1e-6)
    # Another count is another fusion, and what one side lacks has no change.
    assert [by_class[k]["log_ratio"] for k in ("Add", "Erf", "Gelu")] == [None] * 3
    assert (by_class["Erf"]["count"], by_class["Gelu"]["anchor_count"]) == (None, None)


def test_what_is_stored_is_not_measured_again(pairing: Any, tmp_path: Path) -> None:
    protocol = pairing.Protocol(rounds=1)
    study = pairing.Study(tmp_path, protocol, ["1.0", "2.0"], Path, "none.py")
    assert [name for name, _ in study.missing] == ["middle-1.0-1", "1-2.0", "end-1.0-1"]
    for name, version in study.plan:
        whole = {**piece_of(pairing), "piece": name, "version": version}
        study.write(f"pieces/{name}.json", json.dumps(whole))
    assert not study.missing
    study.tabulate({"unit": "ms"})
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1 + len(study.plan)
    protocol_json = json.loads((tmp_path / "protocol.json").read_text())
    assert protocol_json["anchor"] == "1.0"
    assert [piece["piece"] for piece in protocol_json["pieces"]] == [n for n, _ in study.plan]
    assert not [*tmp_path.glob("*.tmp")]
