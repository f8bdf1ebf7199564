"""Logs of GPGPU-Sim."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers import gpgpu_sim
from errcomp.readers.ingesting import ingest
from errcomp.readers.output import Output
from errcomp.readers.registry import recognise
from errcomp.readers.source import Source

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"
NAMES = [one.name for one in gpgpu_sim.FORMATS]


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=gpgpu_sim.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", NAMES)
def test_fixtures_are_recognised_by_their_format_alone(name: str) -> None:
    for path in (DATA / name).rglob("*.*"):
        found = [one.name for one in recognise(Source(path), gpgpu_sim.FORMATS)]
        assert found == [name], path


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=st.data())
def test_damaged_files_are_refused_or_read(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = sorted((DATA / name / "good").iterdir())[0]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 40)))
        how = data.draw(st.sampled_from(["flip", "delete", "insert", "double"]))
        if how == "flip":
            content[start:end] = bytes(
                b ^ data.draw(st.integers(1, 255)) for b in content[start:end]
            )
        elif how == "delete":
            del content[start:end]
        elif how == "insert":
            content[start:start] = data.draw(
                st.sampled_from(
                    [b"nan", b"-1", b"{", b"[", b'"', b",", b"\n", b"1e999", b"\0", b"="]
                )
            )
        else:
            content[start:start] = content[start:end]
    damaged = tmp_path_factory.mktemp("damaged") / path.name
    damaged.write_bytes(content)
    recognise(Source(damaged), gpgpu_sim.FORMATS)
    (own,) = (one for one in gpgpu_sim.FORMATS if one.name == name)
    if own.read is not None:
        with contextlib.suppress(InputError):
            own.read(Source(damaged))


@pytest.mark.parametrize(
    "text", ["", "\n", "a,b\n1,2\n", "[]", "{}", "[1, 2]", "\0", '{"a": [', "7"]
)
def test_other_files_are_not_recognised(text: str, tmp_path: Path) -> None:
    source = Source(text_of(tmp_path, text))
    assert recognise(source, gpgpu_sim.FORMATS) == []


def test_kernels_and_their_total() -> None:
    found = fixture("gpgpu-sim-log")
    kernels = found.of(level="kernel").rows
    assert kernels.select("kernel", "launch", "predicted", "clock_hz").rows() == [
        ("_Z4gemmPf", "1", 400.0, 1e9),
        ("_Z4reluPf", "2", 100.0, 1e9),
    ]
    assert found.of(level="model").rows["predicted"].to_list() == [500.0]
    assert found.of(quantity="host time").rows["measured"].to_list() == [3.0]
    assert found.notes == ()
    assert len(found.kernels) == 2


def test_a_run_that_was_killed() -> None:
    found = fixture("gpgpu-sim-log", "killed")
    assert found.of(level="kernel").rows.select("kernel", "predicted", "status").rows() == [
        ("_Z4gemmPf", 400.0, None),
        ("_Z4reluPf", None, "did not finish: the log ends before"),
    ]
    assert found.of(level="model").rows["predicted"].to_list() == [None]
    assert found.dropped[0].n == 1
    assert found.notes[0].startswith("The run ended before all kernels had")


def test_kernels_at_the_same_time_are_one_row() -> None:
    found = fixture("gpgpu-sim-log", "version_4")
    row = found.of(level="kernel").rows.row(0, named=True)
    assert (row["kernel"], row["launch"], row["predicted"]) == ("a b", "1 2", 300.0)
    assert found.of(level="model").rows["predicted"].to_list() == [300.0]
    assert found.notes == (
        "Kernels that ran at the same time are one row: their cycles are of them all.",
    )


def test_version_4_must_say_that_it_ended() -> None:
    found = fixture("gpgpu-sim-log", "version_4_no_exit")
    assert found.of(level="model").rows["status"].to_list() == [
        "no line of the end of the simulation: it may have been stopped"
    ]
    assert found.notes == ("The log does not state a clock (-gpgpu_clock_domains).",)


def test_a_limit_of_cycles_makes_no_time() -> None:
    rows = fixture("gpgpu-sim-log", "limit").rows
    assert rows["predicted"].to_list() == [300.0, None, None]
    assert rows["status"].to_list()[1:] == ["stopped at the limit of cycles or instructions"] * 2


def test_a_log_without_its_first_lines() -> None:
    found = fixture("gpgpu-sim-log", "no_banner")
    assert found.rows["predicted"].to_list() == [300.0, 300.0, 700.0]
    assert found.notes[0].startswith("The kernels take 600 cycles together, the log says 700")


def test_a_log_without_totals(tmp_path: Path) -> None:
    text = (DATA / "gpgpu-sim-log" / "good" / "stdout.txt").read_text()
    kept = [line for line in text.splitlines() if "gpu_tot_sim_cycle" not in line]
    found = gpgpu_sim.read(text_of(tmp_path, "\n".join(kept)))
    assert found.of(level="model").rows["status"].to_list() == ["no total in the log"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gpu_sim_cycle = 400", "gpu_sim_cycle = x", r"gpu_sim_cycle must be a number, got 'x'"),
        ("domains 1000.0", "domains 1.0.0", r"-gpgpu_clock_domains must be a number"),
        ("gpu_sim_cycle", "cycle", r"no predicted or measured value .*2 block"),
    ],
)
def test_what_cannot_be_used(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = (DATA / "gpgpu-sim-log" / "good" / "stdout.txt").read_text()
    text = text.replace("pushing", "pushed")
    with pytest.raises(InputError, match=message):
        gpgpu_sim.read(text_of(tmp_path, text.replace(old, new)))


@pytest.mark.shared
def test_the_sample(shared_data: Path) -> None:
    found = gpgpu_sim.read(shared_data / "tools" / "gpgpu-sim" / "gpgpusim_3.2.2_stdout.txt")
    kernel, whole, host = found.rows.rows(named=True)
    assert (kernel["kernel"], kernel["predicted"]) == ("_Z10testKernelPfS_S_jjjj", 47500.0)
    assert kernel["clock_hz"] == 700e6
    assert kernel["instructions"] / kernel["predicted"] == pytest.approx(kernel["ipc"], rel=1e-6)
    assert whole["predicted"] == 47500.0
    assert host["measured"] == 65.0
    assert found.dropped == ()
