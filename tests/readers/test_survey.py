"""The transcribed tables as cells, the runs as figures, and bad input refused."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil

import polars as pl
import pytest

from errcomp import datasets
from errcomp.errors import InputError
from errcomp.readers.core.output import Output
from errcomp.readers.learned import survey
from errcomp.readers.learned.survey import CELL_COLUMNS, LAYOUTS, QUANTILE_RULES, build, read_runs
from errcomp.readers.learned.survey_text import STATEMENTS, TAXONOMY

REQUEST_COLUMNS = (
    "Request Id",
    "request_e2e_time",
    "prefill_e2e_time",
    "decode_time_execution_plus_preemption_normalized",
    "request_num_prefill_tokens",
    "request_num_decode_tokens",
    "request_preemption_time",
    "request_num_restarts",
)
STATS = """\
    Instances             : 4 (2*2)
Utilization: 75.00%
Cycles: 100
Energy: 1.5 uJ
Computes = 300
fJ/Compute
    mac        = 1.0
    Total      = 5.0
"""


def _log(cycles, npus=2, compute=None):
    lines = []
    for npu in range(npus):
        lines.append(
            f"[x] sys[{npu}] finished, {cycles} cycles, exposed communication {cycles} cycles."
        )
        if compute:
            lines.append(f"[x] [info] sys[{npu}], GPU time: {compute}")
    return lines


@pytest.fixture
def tools(tmp_path):
    folder = tmp_path / "tools"
    for name, times in (("vllm", (1.0, 2.0, 6.0)), ("sarathi", (0.5, 1.5))):
        rows = [(i, t, t / 2, t / 4, 8 + i, 2, float(t > 1.9), 0) for i, t in enumerate(times)]
        target = folder / "vidur" / name / "request_metrics.csv"
        target.parent.mkdir(parents=True)
        with target.open("w", newline="") as file:
            csv.writer(file).writerows([REQUEST_COLUMNS, *rows])
    logs = {
        "one.log": _log(10),
        "resnet.log": _log(7, compute=90),
        "empty.log": [],
        "twice.log": _log(10) + _log(12),
    }
    document = {"log_files": [{"file": k, "raw_lines": v} for k, v in logs.items()]}
    (folder / "astra-sim").mkdir()
    (folder / "astra-sim" / "survey_astra_sim_results.json").write_text(json.dumps(document))
    stats = folder / "timeloop" / "eyeriss_like" / "timeloop-mapper.stats.txt"
    stats.parent.mkdir(parents=True)
    stats.write_text(STATS)
    return folder


def _figures(tools):
    return {line[:4]: (float(line[4]), line[5]) for line in read_runs(tools)}


def test_requests_become_figures(tools):
    found = _figures(tools)
    assert found["VIDUR", "vllm", "E2E latency", "mean"] == (3.0, "s")
    assert found["VIDUR", "vllm", "TTFT", "mean"] == (1.5, "s")
    assert found["VIDUR", "vllm", "requests with preemption time above 0", "count"][0] == 2
    assert found["VIDUR", "vllm", "requests restarted", "count"][0] == 0
    assert found["VIDUR", "vllm", "P99 E2E latency", "lower"][0] == 2.0
    assert found["VIDUR", "vllm", "P99 E2E latency", "higher"][0] == 6.0
    assert found["VIDUR", "vllm", "P99 E2E latency", "linear"][0] == pytest.approx(5.92)
    rules = {statistic for _, run, what, statistic in found if run == "vllm" and "P99" in what}
    assert rules == set(QUANTILE_RULES)


def test_the_load_that_both_served_is_compared(tools):
    found = _figures(tools)
    below = [
        found["VIDUR", "sarathi below vllm", "E2E latency", f"share of {name}"][0]
        for name in ("vllm", "sarathi")
    ]
    assert below == pytest.approx([2 / 3, 2.0])
    run = "vllm, its first 2 requests"
    assert found["VIDUR", run, "E2E latency", "mean"][0] == 1.5
    assert found["VIDUR", run, "requests as long as those of sarathi", "count"][0] == 2


def test_logs_become_figures_and_failed_runs_are_counted(tools):
    found = _figures(tools)
    assert found["ASTRA-sim", "resnet", "compute time", "mean"] == (90, "cycles")
    assert found["ASTRA-sim", "one", "wall time", "standard deviation"][0] == 0
    assert found["ASTRA-sim", "empty", "NPUs finished", "count"][0] == 0
    assert found["ASTRA-sim", "twice", "NPUs finished", "count"][0] == 4
    assert ("ASTRA-sim", "twice", "wall time", "mean") not in found


def test_timeloop_summary(tools):
    run = "eyeriss_like, reference output of the example"
    found = _figures(tools)
    assert found["Timeloop", run, "energy", "total"] == (1.5, "uJ")
    assert found["Timeloop", run, "energy per MAC", "mac"] == (1.0, "fJ")
    assert found["Timeloop", run, "processing elements", "total"][0] == 4


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (
            "vidur/vllm/request_metrics.csv",
            "a,b\n1,2\n",
            r"not recognised as request_metrics\.csv; it begins with 'a,b'",
        ),
        ("vidur/vllm/request_metrics.csv", "", "the file is empty"),
        (
            "vidur/sarathi/request_metrics.csv",
            ",".join(REQUEST_COLUMNS) + "\n0,1,2,3,4,5,6,x\n",
            "restarts must be a number for every request",
        ),
        (
            "vidur/sarathi/request_metrics.csv",
            ",".join(REQUEST_COLUMNS) + "\n1,2\n",
            "line 2: 2 fields, but the header has 8",
        ),
        *(
            (
                "vidur/vllm/request_metrics.csv",
                ",".join(REQUEST_COLUMNS) + f"\n7,1,2,3,4,5,{bad},0\n",
                message,
            )
            for bad, message in (
                ("nan", "preemption time of request 7: no value"),
                ("inf", "preemption time of request 7: not finite"),
                ("-1", "preemption time of request 7: negative"),
                ("1_0", "request_preemption_time must be a number, got '1_0' in line 2"),
                ("٣", "request_preemption_time must be a number, got '٣' in line 2"),
            )
        ),
        (
            "vidur/vllm/request_metrics.csv",
            ",".join(REQUEST_COLUMNS) + "\n",
            "a header without rows",
        ),
        (
            "vidur/vllm/request_metrics.csv",
            ",".join(REQUEST_COLUMNS) + "\n0,1,2,3,4,5,6," + 200_000 * "7",
            "restarts must be a number for every request",
        ),
        ("astra-sim/survey_astra_sim_results.json", "{", "not the survey's collection"),
        *(
            ("astra-sim/survey_astra_sim_results.json", text, "not the survey's collection")
            for text in (
                "[]",
                '{"log_files": []}',
                '{"log_files": [{"file": 5, "raw_lines": []}]}',
                '{"log_files": [], "log_files": []}',
                100_000 * "[",
                "[" + 5000 * "1" + "]",
            )
        ),
        (
            "timeloop/eyeriss_like/timeloop-mapper.stats.txt",
            STATS.split("    mac")[0],
            "nothing below fJ/Compute",
        ),
        (
            "timeloop/eyeriss_like/timeloop-mapper.stats.txt",
            STATS.replace("1.5 uJ", "x uJ"),
            "energy must be a finite number ≥ 0, got 'x'",
        ),
        ("timeloop/eyeriss_like/timeloop-mapper.stats.txt", "x", "not a Timeloop stats file"),
    ],
)
def test_outputs_that_are_something_else_are_refused(tools, path, text, message):
    (tools / path).write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_runs(tools)
    assert path in str(error.value)


@pytest.mark.parametrize("latency", ["0", "1e308"])
def test_latencies_that_have_no_ratio_are_refused(tools, latency):
    row = ",".join(["0", latency, *"234560"])
    text = "\n".join([",".join(REQUEST_COLUMNS), row, row])
    (tools / "vidur" / "vllm" / "request_metrics.csv").write_text(text)
    with pytest.raises(InputError, match="vidur: the latencies are all 0, or too large"):
        read_runs(tools)


def test_a_missing_output_is_named(tools):
    (tools / "vidur" / "vllm" / "request_metrics.csv").unlink()
    with pytest.raises(InputError, match=r"request_metrics\.csv: cannot be read .*survey/ and"):
        read_runs(tools)


@pytest.mark.shared
def test_the_same_source_gives_the_same_bytes(shared_data):
    contents = build(shared_data)
    folder = datasets.folder("survey")
    assert set(contents) == {path.name for path in folder.glob("*.csv")}
    for name, content in contents.items():
        assert content == (folder / name).read_bytes(), name


@pytest.mark.shared
def test_every_figure_transcribed_is_a_cell(shared_data):
    for name, content in build(shared_data).items():
        if name in ("runs.csv", "platforms.csv"):
            continue
        rows = list(csv.DictReader(io.StringIO(content.decode())))
        assert tuple(rows[0]) == CELL_COLUMNS
        assert len({(row["row"], row["column"]) for row in rows}) == len(rows)
        assert all(row["printed"] and row["where"] for row in rows)
        assert all(bool(row["unit"]) == bool(row["value"]) for row in rows)
        if name.removesuffix(".csv") not in LAYOUTS:
            continue
        with (shared_data / "survey" / name).open(encoding="utf-8") as file:
            source = list(csv.DictReader(file))
        columns = LAYOUTS[name.removesuffix(".csv")].values
        filled = sum(bool(line[column]) for line in source for column in columns)
        assert len(rows) == filled


EDITIONS = {"second": "000_", "first": "001_"}


@pytest.mark.shared
@pytest.mark.parametrize("edition", EDITIONS)
def test_the_figures_of_the_text_stand_in_their_edition(shared_data, edition):
    (path,) = (shared_data.parent / "background").glob(f"{EDITIONS[edition]}*.txt")
    numbers = set(re.findall(r"\d+(?:\.\d+)?", path.read_text(encoding="utf-8")))
    of_edition = [said for said in STATEMENTS if said[0] == edition]
    assert len(of_edition) > 5
    words = {"tools with identical output in three runs", "attempts to deploy nn-Meter"}
    words |= {"years until nn-Meter was unusable", "research gaps", "types of models"}
    words |= {"types of models for GPUs", "tools with full experiments", "AMD GPUs of NeuSight"}
    for _, _, row, printed, _ in of_edition:
        if row not in words:  # written in letters
            assert set(re.findall(r"\d+(?:\.\d+)?", printed)) <= numbers, row


@pytest.mark.shared
def test_table_1_is_printed_so(shared_data):
    (path,) = (shared_data.parent / "background").glob("000_*.txt")
    rows = dict(re.findall(r"^\| ([A-Za-z-]+) +((?:\| \d +){5})", path.read_text("utf-8"), re.M))
    assert {
        name.lower(): tuple(map(int, re.findall(r"\d", cells))) for name, cells in rows.items()
    } == {name.lower(): counts for name, counts in TAXONOMY.items()}


@pytest.mark.shared
def test_an_unknown_platform_is_refused(copy):
    path = copy / "survey" / "tools.csv"
    path.write_text(path.read_text().replace("GPU cluster", "abacus"))
    with pytest.raises(InputError, match=r"tools.csv: line 18: platform 'abacus' is not one of"):
        build(copy)


@pytest.fixture
def copy(shared_data, tmp_path):
    for part in ("survey", "tools/vidur", "tools/astra-sim", "tools/timeloop"):
        shutil.copytree(shared_data / part, tmp_path / part, copy_function=shutil.copyfile)
        (tmp_path / part).chmod(0o755)
    return tmp_path


@pytest.mark.shared
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "survey_pct",
            "ours",
            "table6_neusight.csv: line 1: missing column survey_pct. Columns found: dev",
        ),
        ("5.87", "five", r"table6_neusight.csv: line 2: survey_pct must be a number, got 'five'"),
        ("5.87", "nan", "line 2: survey_pct must be a number, got 'nan'"),
        ("5.87", "5.87,1", "line 2: 6 fields, expected 5"),
        ("claimed_pct", "mode", "missing column claimed_pct"),
        ("survey_verdict", "survey_verdict,mode", "names 'mode' more than once"),
        ("V100", 200_000 * "V", "not valid CSV"),
    ],
)
def test_bad_tables_are_refused(copy, old, new, message):
    path = copy / "survey" / "table6_neusight.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        build(copy)


@pytest.mark.shared
def test_a_table_without_rows_is_refused(copy):
    path = copy / "survey" / "table6_neusight.csv"
    path.write_text(path.read_text().split("\n")[0] + "\n")
    with pytest.raises(InputError, match=r"table6_neusight.csv: a header without rows"):
        build(copy)


def test_a_folder_without_the_tables_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"tools\.csv: cannot be read"):
        build(tmp_path)


def test_what_is_stored_describes_itself():
    info = datasets.info("survey")
    assert info.rows == 507
    names = (*LAYOUTS, "table1_taxonomy", "statements", "platforms", "runs")
    assert {table.file for table in info.tables} == {f"{name}.csv" for name in names}
    with pytest.raises(InputError, match="holds several tables"):
        datasets.load("survey")


def test_logs_without_names_are_refused(tools, monkeypatch):
    rows = pl.DataFrame({"quantity": ["time"], "predicted": [1.0]})
    nameless = Output(rows, ("astra-sim-log",), ("x",))
    read_source = survey.read_source
    monkeypatch.setattr(
        survey,
        "read_source",
        lambda source, among: nameless if among is survey.astra_sim.FORMATS
        else read_source(source, among),
    )  # fmt: skip
    with pytest.raises(InputError, match=r"ASTRA-sim logs \(.*: no run in the log has a name\.\)"):
        read_runs(tools)
