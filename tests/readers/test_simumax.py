"""SimuMax' summary of a release: times and memory, and memory that several runs share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from errcomp.claims import audit
from errcomp.errors import InputError
from errcomp.readers.simulators import simumax

GOOD = Path(__file__).parents[1] / "data/readers/simumax-summary/good/b200_release_v0_summary.json"


def changed(folder: Path, place: int, **values: Any) -> Path:
    document = json.loads(GOOD.read_text(encoding="utf-8"))
    document["rows"][place].update(values)
    path = folder / GOOD.name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_runs_that_share_a_measurement_of_memory_have_one_row_of_it() -> None:
    found = simumax.read(GOOD)
    keys = ("run", "quantity", "unit", "predicted", "measured", "status", "microbatches")
    assert found.rows.select(keys).rows() == [
        ("small_mbc4", "time", "ms", 90.0, 100.0, None, 4),
        ("small_mbc4", "memory", "GiB", 60.0, 64.0, None, 4),
        ("small_mbc8", "time", "ms", 180.0, 190.0, None, 8),
        ("large_mbc8", "time", "ms", 400.0, None, "oom", 8),
        ("large_mbc8", "memory", "GiB", 170.0, None, "oom", 8),
    ]
    assert [(one.reason, one.n) for one in found.dropped] == [
        ("memory of another run's measurement", 1)
    ]
    assert set(found.rows["device"]) == {"B200"}
    assert found.rows["model"].to_list() == ["small"] * 3 + ["large"] * 2


def test_the_notes_say_what_does_not_follow_and_what_was_left_out() -> None:
    assert simumax.read(GOOD).notes == (
        "1 of 5 errors printed in the file do not follow from its values.",
        "The authors of the file list 1 run that they left out (1 vpp).",
    )


def test_memory_that_differs_within_a_group_is_kept(tmp_path: Path) -> None:
    found = simumax.read(changed(tmp_path, 1, real_alloc_gib=65.0))
    assert found.rows["quantity"].to_list().count("memory") == 3
    assert found.dropped == ()


def test_what_is_no_number_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, 1, perf_ms="fast")
    with pytest.raises(InputError, match=r"rows\[1\]\.perf_ms must be a number, got 'fast'"):
        simumax.read(path)
    with pytest.raises(InputError, match=r"rows\[0\] has no case"):
        simumax.read(changed(tmp_path, 0, case=None))
    for rows in ("[]", "[1]", '[{"case": "a"}, null]', "{}"):
        path.write_text(f'{{"system_rel": "x", "rows": {rows}}}', encoding="utf-8")
        with pytest.raises(InputError, match="rows must be a list of runs with perf_ms"):
            simumax.read(path)


RANKS = {str(i): {"max_allocated_mb": 1024.0 * peak} for i, peak in enumerate([60, 61, 63, 62])}
STAGES = {"first_stage": 58.0, "last_stage": 64.0}


def test_stages_have_the_largest_peak_of_their_ranks(tmp_path: Path) -> None:
    path = changed(tmp_path, 0, parallel="tp1pp2", peak_alloc_by_stage_gib=STAGES,
                   peak_memory_by_rank_mb=RANKS)  # fmt: skip
    rows = simumax.read(path).of(quantity="memory of a stage").rows
    assert rows.select("run", "stage", "unit", "predicted", "measured").rows() == [
        ("small_mbc4", "first", "GiB", 58.0, 61.0),
        ("small_mbc4", "last", "GiB", 64.0, 63.0),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"parallel": "tp2pp1"},
        {"parallel": None},
        {"parallel": "tp1pp3"},
        {"peak_alloc_by_stage_gib": None},
        {"peak_memory_by_rank_mb": {**RANKS, "4": {"max_allocated_mb": None}}},
        {"peak_memory_by_rank_mb": [1.0]},
    ],
)
def test_stages_that_cannot_be_told_apart_are_left_out(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    whole = {"parallel": "tp1pp2", "peak_alloc_by_stage_gib": STAGES,
             "peak_memory_by_rank_mb": RANKS}  # fmt: skip
    path = changed(tmp_path, 0, **{**whole, **change})
    assert "memory of a stage" not in simumax.read(path).rows["quantity"].to_list()


@pytest.mark.shared
def test_the_memory_of_a_run_is_that_of_its_largest_stage(shared_data: Path) -> None:
    found = simumax.read(shared_data / "tools" / "simumax").rows
    whole = dict(found.filter(quantity="memory").select("run", "measured").rows())
    stages = found.filter(quantity="memory of a stage").group_by("run").max()
    assert stages.height == 4
    for run, measured in stages.select("run", "measured").rows():
        assert measured == pytest.approx(whole[run], abs=0.006)  # printed with two decimals


def test_a_group_that_is_no_name_is_none(tmp_path: Path) -> None:
    found = simumax.read(changed(tmp_path, 0, memory_group_name=["small"]))
    assert found.rows["quantity"].to_list().count("memory") == 3


@pytest.mark.shared
def test_the_sample_is_audited_by_quantity(shared_data: Path) -> None:
    found = simumax.read(shared_data / "tools" / "simumax")
    assert {one: found.of(quantity=one).pairs.n for one in ("time", "memory")} == {
        "time": 43,
        "memory": 19,
    }
    assert not [note for note in found.notes if "do not follow" in note]
    with pytest.raises(InputError, match="has several quantities: memory, memory of a stage, time"):
        _ = found.pairs
    row = audit(found.of(quantity="time").pairs, by=()).overall
    assert round(row.figures["mape"].value, 4) == 0.0562


def test_quantities_without_values_and_files_without_a_system(tmp_path: Path) -> None:
    path = changed(tmp_path, 0, perf_ms=None, real_ms=None)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["system_rel"] = None
    path.write_text(json.dumps(document), encoding="utf-8")
    found = simumax.read(path)
    assert "device" not in found.rows.columns
    assert found.rows.filter(run="small_mbc4")["quantity"].to_list() == ["memory"]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (1, "memory of another run's measurement")
    ]
