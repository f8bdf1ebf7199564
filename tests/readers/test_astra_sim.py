"""Logs of ASTRA-sim: both dialects, several runs, runs that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.collectives.astra_sim import FORMATS, read
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.learned import survey

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
LOGS = FIXTURES / "astra-sim-log"
SURVEY = FIXTURES / "astra-sim-survey" / "good" / "results.json"


def test_the_plain_dialect() -> None:
    rows = read(LOGS / "good").rows
    assert rows.select("rank", "ranks", "quantity", "predicted", "unit").rows() == [
        (0, 2, "time", 1200.0, "cycles"),
        (0, 2, "exposed communication", 300.0, "cycles"),
        (0, 2, "communication", 300.0, "cycles"),
        (1, 2, "time", 1201.0, "cycles"),
        (1, 2, "exposed communication", 300.0, "cycles"),
        (1, 2, "communication", 300.0, "cycles"),
    ]


def test_the_new_dialect_with_its_configuration() -> None:
    found = ingest(LOGS / "spdlog")
    times = dict(found.rows.filter(rank=1).select("quantity", "predicted").rows())
    assert times == {
        **{"time": 1201.0, "exposed communication": 300.0},
        **{"communication": 300.0, "compute": 900.0},
    }
    assert [one.name for one in found.skipped] == ["network.yml", "system.json"]
    assert all("holds no times" in one.reason for one in found.skipped)


def test_several_runs_in_one_log() -> None:
    rows = read(LOGS / "several_runs").rows.filter(quantity="time")
    assert rows.select("run", "ranks", "predicted").rows() == [
        *[("run 1", 2, 1200.0), ("run 1", 2, 1201.0)],
        *[("run 2", 4, 2000.0), ("run 2", 4, 2001.0), ("run 2", 4, 2002.0), ("run 2", 4, 2003.0)],
    ]


@pytest.mark.parametrize(
    ("scenario", "status"),
    [
        ("killed", "did not finish: no line says that a system finished"),
        ("failed_run", "Node 3 did not finish, start_time=5"),
    ],
)
def test_a_run_that_did_not_finish_is_a_status(scenario: str, status: str) -> None:
    rows = read(LOGS / scenario).rows
    assert rows.select("quantity", "predicted", "status").rows() == [("time", None, status)]


def test_iterations_collectives_and_other_times() -> None:
    rows = read(LOGS / "collectives").rows
    times = rows.filter(quantity="time", level="system")
    assert times.select("iteration", "predicted").rows() == [(0, 1000.0), (1, 2000.0)]
    # A wall time that is no time of the system is kept, under its own name.
    assert rows.filter(quantity="wall time")["predicted"].to_list() == [2500.0]
    assert rows.filter(quantity="remote memory")["predicted"].to_list() == [70.0]
    collective = rows.filter(level="collective")
    columns = ("rank", "node", "size_bytes", "quantity", "predicted", "unit")
    assert collective.select(columns).rows() == [
        (0, 4, 1048576, "time", 5000.0, "ns"),
        (0, 4, 1048576, "bandwidth", 209.715, "GB/s"),
    ]


def test_bandwidth_that_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "sys[0] finished, 5 cycles, exposed communication 5 cycles.\n"
        "Node 4: Size: 8 bytes, Duration: 5 ns, Bandwidth: 1.2.3 GB/s\n"
    )
    assert read(path).rows.filter(quantity="bandwidth")["status"].to_list() == ["no value"]


def test_the_logs_of_the_survey() -> None:
    rows = read(SURVEY).rows.filter(quantity="time")
    assert rows.select("run", "predicted", "status").rows() == [
        ("all_reduce_4npus", None, "no output: the run failed or was killed"),
        ("all_reduce_2npus", 1200.0, None),
        ("all_reduce_2npus", 1201.0, None),
        ("full#1", 1200.0, None),
        ("full#1", 1201.0, None),
        ("full#2", 2000.0, None),
        ("full#2", 2001.0, None),
        ("cut", None, "did not finish: no line says that a system finished"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        {"log_files": {"raw_lines": 3}},
        {"log_files": [3], "raw_lines": 1},
        {"log_files": [{"file": 3, "raw_lines": []}]},
        {"log_files": [{"file": "a", "raw_lines": 3}]},
    ],
)
def test_other_json_is_refused(tmp_path: Path, content: object) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="Copy the file again"):
        read(path)


def test_lines_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"log_files": [{"file": "a.log", "raw_lines": [3, None]}]}))
    assert read(path).rows["status"].to_list() == [
        "did not finish: no line says that a system finished"
    ]


def test_other_files_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in ("topology: x\n", '{"log_files": []}', "finished, 5 cycles\n"):
        path.write_text(content)
        assert recognise(Source(path), FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "astra-sim"
    found = ingest(folder)
    refused = {one.name for one in found.skipped}
    names = {"HGX-H100-validated.network.yml", "HGX-H100-validated.system.json"}
    assert refused == {*names, "SOURCE.md"}
    plain = found.rows.filter(file="stdout_regression_ref.txt", quantity="time")
    assert plain["predicted"].to_list() == [117780.0] * 8
    rows = found.rows.filter(file="survey_astra_sim_results.json")
    assert rows.filter(rows["status"].is_not_null()).height == 4
    everything = json.loads((folder / "survey_astra_sim_results.json").read_text())
    finished = sum(len(log["npu_results"]) for log in everything["log_files"])
    assert rows.filter(quantity="time")["predicted"].count() == finished
    # One log has the NPUs of several runs below each other.
    full = rows.filter(rows["run"].str.starts_with("resnet50_full#"), quantity="time")
    assert full.height == 60


@pytest.mark.shared
def test_the_survey_gets_the_same_numbers(shared_data: Path) -> None:
    path = shared_data / "tools" / "astra-sim" / "survey_astra_sim_results.json"
    rows = read(path).rows
    names = {"wall time": "time", "compute time": "compute"}
    checked = 0
    for _, run, quantity, statistic, value, _ in survey._astrasim(path):
        if statistic != "mean":
            continue
        of_run = rows.filter(run=run, quantity=names.get(quantity, quantity))
        assert of_run["predicted"].mean() == pytest.approx(float(value), rel=1e-11)
        checked += 1
    assert checked > 10


END_TO_END = FIXTURES / "astra-sim-end-to-end" / "good"


def test_the_table_of_version_1() -> None:
    found = ingest(END_TO_END)
    assert found.along == ("detailed.csv",)
    system = found.rows.filter(level="system").select("run", "quantity", "unit", "predicted")
    assert system.rows() == [
        ("small", "time", "us", 12.5),
        ("small", "compute", "us", 7.0),
        ("small", "exposed communication", "us", 0.75),
        ("large", "time", "us", 25.0),
        ("large", "compute", "us", 14.0),
        ("large", "exposed communication", "us", 1.5),
    ]
    kernels = found.rows.filter(level="kernel", run="large", phase="wg")
    assert kernels.select("kernel", "layer", "quantity", "predicted").rows() == [
        ("fc1", 0, "time", 5.0),
        ("fc1", 0, "exposed communication", 0.0),
        ("fc2", 1, "time", 2.0),
        ("fc2", 1, "exposed communication", 1.0),
    ]
    # The layers add up to what the table says of the run.
    layers = found.rows.filter(level="kernel", run="small")
    assert layers.filter(quantity="time")["predicted"].sum() == 7.0
    assert layers.filter(quantity="exposed communication")["predicted"].sum() == 0.75
    collectives = found.rows.filter(level="collective", run="small")
    assert collectives.select("kernel", "phase", "quantity", "predicted").rows() == [
        ("fc1", "fwd", "communication", 3.0),
        ("fc2", "wg", "communication", 4.0),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            ",12.500000,,,,,\n,large",
            "\n,large",
            "line 4: this row has no run, or fewer fields",
        ),
        ("fc2,small", "fc2,", "line 4: this row has no run, or fewer fields than the header"),
        ("fc2,small,1.000000", "fc2,small,x", "line 4: fwd compute must be a number, got 'x'"),
    ],
)
def test_a_table_of_version_1_that_cannot_be_used(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    text = (END_TO_END / "EndToEnd.csv").read_text()
    path = tmp_path / "EndToEnd.csv"
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        read(path)


def test_tables_of_version_1_that_hold_no_times(tmp_path: Path) -> None:
    path = tmp_path / "test_dimension_utilization_0.csv"
    path.write_text(" time (us) ,dim1 util,dim2 util,\n10.000000,0.000000,62.500000,\n")
    with pytest.raises(InputError, match="no durations. Durations are in EndToEnd.csv"):
        read(path)
    with pytest.raises(InputError, match=r"read together with EndToEnd\.csv of version 1"):
        read(END_TO_END / "detailed.csv")


def test_the_log_of_version_1(tmp_path: Path) -> None:
    run = (
        "ring of node 0, id: 0 dimension: local total nodes in ring: 4\n"
        "id: fc1 ,Total cycles spent on fwd pass compute: 1500\n"
        "id: fc1 ,Total cycles spent idle waiting for weight grad finish: 250\n"
        "id: fc1 ,Total cycles spent on input grad comm: 0\n"
        "id: fc1 ,Total cycles spent on weight grad comm: 3000\n"
        "all passes finished at time: 12500, id of first layer: fc1\n"
    )
    path = tmp_path / "log"
    path.write_text(run)
    columns = ("level", "kernel", "phase", "quantity", "predicted", "unit")
    assert read(path).rows.select(columns).rows() == [
        ("kernel", "fc1", "fwd", "time", 1500.0, "cycles"),
        ("kernel", "fc1", "wg", "exposed communication", 250.0, "cycles"),
        ("collective", "fc1", "wg", "communication", 3000.0, "cycles"),
        ("system", None, None, "time", 12500.0, "cycles"),
    ]
    path.write_text(run + run.replace("12500", "12600") + run.partition("all passes")[0])
    rows = read(path).rows.filter(level="system").select("run", "predicted", "status")
    assert rows.rows() == [
        ("run 1", 12500.0, None),
        ("run 2", 12600.0, None),
        (None, None, "did not finish: no line says that a system finished"),
    ]
