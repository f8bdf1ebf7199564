"""Several serving simulators on the same experiments: rows, printed errors, and what is uneven."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.claims import audit
from errcomp.errors import InputError
from errcomp.readers.serving import sim_to_real

GOOD = Path(__file__).parents[1] / "data/readers/sim-to-real-errors/good/error_records.csv"


def test_a_metric_is_a_quantity_and_a_statistic() -> None:
    rows = sim_to_real.read(GOOD).rows
    keys = ("tool", "experiment", "quantity", "statistic", "stage", "unit", "predicted", "measured")
    assert rows.select(keys).rows() == [
        ("roofline", 1, "time", "mean", "whole run", "ms", 90.0, 100.0),
        ("roofline", 1, "ttft", "p90", "whole run", "ms", 33.0, 30.0),
        ("roofline", 1, "itl", "mean", "0", "ms", 8.0, 10.0),
        ("roofline", 2, "time", "mean", "whole run", "ms", 150.0, 200.0),
        ("roofline", 2, "time", "mean", "whole run", "ms", 160.0, 200.0),
        ("vidur", 1, "time", "mean", "whole run", "ms", 105.0, 100.0),
        ("vidur", 1, "itl", "p99", "1", "ms", 12.0, 10.0),
    ]
    assert set(rows["level"]) == {"request"}
    assert set(rows["reference"]) == {"hardware"}
    assert rows["device"].to_list() == ["H100"] * 7
    assert rows["tensor_parallel"].to_list() == [1, 1, 1, 2, 2, 1, 1]


def test_the_notes_say_what_is_uneven_and_what_does_not_follow() -> None:
    assert sim_to_real.read(GOOD).notes == (
        "1 of 7 errors printed in the file do not follow from its predictions and measurements, "
        "which are used.",
        "How many of the 2 experiments each simulator ran: roofline 2, vidur 1.",
        "Experiment 2 is listed under 2 workloads with the same measurements, so these count 2 "
        "times.",
    )


def test_errors_that_follow_are_said_to(tmp_path: Path) -> None:
    path = tmp_path / "error_records.csv"
    header = "simulator,stage_index,metric_name,predicted,actual,mape"
    path.write_text(f"{header}\na,-1,e2e_mean,1,3,66.67\na,-1,e2e_p99,2,2,0\n", encoding="utf-8")
    assert sim_to_real.read(path).notes == (
        "All 2 errors printed in the file follow from its predictions and measurements.",
    )


def test_a_single_error_that_follows_is_said_to(tmp_path: Path) -> None:
    path = tmp_path / "error_records.csv"
    header = "simulator,stage_index,metric_name,predicted,actual,mape"
    path.write_text(f"{header}\na,-1,e2e_mean,1,3,66.67\n", encoding="utf-8")
    (note,) = sim_to_real.read(path).notes
    assert note.startswith("The only error printed in the file follows from its predictions")


def test_an_error_of_nothing_does_not_follow(tmp_path: Path) -> None:
    path = tmp_path / "error_records.csv"
    header = "simulator,stage_index,metric_name,predicted,actual,mape"
    rows = ["a,-1,e2e_mean,1,0,5", "a,-1,e2e_p99,2,2,0", "a,-1,ttft_p99,,2,", "a,-1,itl_p99,2,2,0"]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    (note,) = sim_to_real.read(path).notes
    assert note.startswith("1 of 3 errors printed in the file do not follow")


@pytest.mark.parametrize("values", [",2,5", "2,,5", "2,2,"])
def test_an_error_counts_if_all_of_its_numbers_are_there(tmp_path: Path, values: str) -> None:
    path = tmp_path / "error_records.csv"
    header = "simulator,stage_index,metric_name,predicted,actual,mape"
    rows = [f"a,-1,e2e_mean,{values}", "a,-1,e2e_p99,2,2,0", "a,-1,ttft_p99,3,2,50"]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    (note,) = sim_to_real.read(path).notes
    assert note.startswith("All 2 errors printed in the file follow")


@pytest.mark.parametrize("name", ["e2e", "tpot_mean", "ttft_max", ""])
def test_an_unknown_metric_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "error_records.csv"
    path.write_text(GOOD.read_text(encoding="utf-8").replace("ttft_p90", name), encoding="utf-8")
    with pytest.raises(InputError, match=f"metric_name '{name}' is unknown: expected e2e, ttft"):
        sim_to_real.read(path)


@pytest.mark.shared
def test_the_sample_is_audited_on_common_experiments(shared_data: Path) -> None:
    found = sim_to_real.read(shared_data / "tools" / "sim-to-real" / "error_records.csv")
    assert len(found.rows) == 799
    assert found.notes[0].startswith("All 799 errors printed in the file follow")
    assert "Experiment 20260217 is listed under 3 workloads" in found.notes[2]
    some = found.of(quantity="itl", statistic="mean", stage="whole run")
    result = audit(some.pairs, by=(), keys=("experiment", "workload"))
    n = {row.tool: row.n for row in result.by_tool}
    assert n["vidur"] < n["blis-roofline"] == n["blis-evolved"]
    assert any(caveat.code == "coverage-differs" for caveat in result.caveats)
