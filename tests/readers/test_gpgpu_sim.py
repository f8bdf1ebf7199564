"""Logs of GPGPU-Sim."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.simulators import accel_sim, gpgpu_sim

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=gpgpu_sim.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


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
        ("_Z4reluPf", None, "did not finish before the log ended"),
    ]
    assert found.of(level="model").rows["predicted"].to_list() == [None]
    assert found.dropped[0].n == 1
    assert found.notes[0].startswith("The run ended before all its kernels finished, so")


def test_kernels_at_the_same_time_are_one_row() -> None:
    found = fixture("gpgpu-sim-log", "version_4")
    row = found.of(level="kernel").rows.row(0, named=True)
    assert (row["kernel"], row["launch"], row["predicted"]) == ("a b", "1 2", 300.0)
    assert found.of(level="model").rows["predicted"].to_list() == [300.0]
    assert found.notes == (
        "Kernels that ran at the same time form one row, with their joint cycles.",
    )


def test_version_4_must_say_that_it_ended() -> None:
    found = fixture("gpgpu-sim-log", "version_4_no_exit")
    assert found.of(level="model").rows["status"].to_list() == [
        "no line about the end of the simulation: it may have been stopped"
    ]
    assert found.notes == ("The log does not state a clock (-gpgpu_clock_domains).",)


def test_a_limit_of_cycles_makes_no_time() -> None:
    rows = fixture("gpgpu-sim-log", "limit").rows
    assert rows["predicted"].to_list() == [300.0, None, None]
    assert rows["status"].to_list()[1:] == ["stopped at the limit of cycles or instructions"] * 2


_HEAD = "*** GPGPU-Sim Simulator Version 4.2.0  [build 0] ***\n"
_END = "GPGPU-Sim: *** exit detected ***\n"


def block(names: str, numbers: str, cycles: int, total: int) -> str:
    return (
        f"kernel_name = {names} \nkernel_launch_uid = {numbers} \n"
        f"gpu_sim_cycle = {cycles}\ngpu_tot_sim_cycle = {total}\n"
    )


def test_a_kernel_that_a_limit_stopped_has_its_block_before_the_line_of_the_limit(
    tmp_path: Path,
) -> None:
    limit = "GPGPU-Sim: ** break due to reaching the maximum cycles (or instructions) **\n"
    log = _HEAD + block("a", "1", 300, 300) + block("b", "2", 700, 1000) + limit + _END
    rows = gpgpu_sim.read(text_of(tmp_path, log)).rows
    assert rows["predicted"].to_list() == [300.0, None, None]
    assert rows["status"].to_list()[1:] == ["stopped at the limit of cycles or instructions"] * 2
    assert gpgpu_sim.read(text_of(tmp_path, _HEAD + limit + _HEAD + block("a", "1", 9, 9))).rows[
        "predicted"
    ].to_list() == [None, None]


def test_names_may_have_blanks(tmp_path: Path) -> None:
    one, two = "void f<g<8, 8>, void>(int*, float)", "void f<8>(int*)"
    launched = "".join(
        f"launching kernel name: {name} uid: {i} cuda_stream_id: 0\n"
        for i, name in enumerate((one, two, two), start=1)
    )
    log = _HEAD + launched + block(one, "1", 300, 300) + block(two, "2", 100, 400)
    found = accel_sim.read(text_of(tmp_path, log))
    kernels = found.of(level="kernel").rows
    assert kernels["kernel"].to_list() == [one, two, two]
    assert kernels["predicted"].to_list() == [300.0, 100.0, None]
    assert found.of(level="model").rows["status"].to_list() == [
        "1 kernel did not finish before the log ended"
    ]
    assert not any("at the same time" in note for note in found.notes)
    together = log + block(f"{two} {one}", "3 4", 50, 450) + _END
    found = accel_sim.read(text_of(tmp_path, together))
    assert found.of(level="model").rows["predicted"].to_list() == [450.0]
    assert found.notes[0].startswith("Kernels that ran at the same time form one row")


def test_names_with_blanks_of_kernels_that_were_only_pushed(tmp_path: Path) -> None:
    pushed = "".join(
        f"GPGPU-Sim PTX: pushing kernel '{name}' to stream 0, gridDim= (1,1,1)\n"
        for name in ("void f(int)", "void g(int)", "h")
    )
    blocks = block("void f(int) void g(int)", "", 300, 300)
    found = gpgpu_sim.read(text_of(tmp_path, _HEAD + pushed + blocks))
    assert found.of(level="kernel").rows["status"].to_list() == [
        None,
        "did not finish before the log ended",
    ]
    assert found.of(level="kernel").rows["kernel"].to_list() == ["void f(int) void g(int)", "h"]


def test_kernels_without_numbers_are_counted_by_their_blocks(tmp_path: Path) -> None:
    pushed = "GPGPU-Sim PTX: pushing kernel 'h' to stream 0, gridDim= (1,1,1)\n" * 4
    blocks = block("h", "", 300, 300) + block("h", "", 200, 500)
    found = gpgpu_sim.read(text_of(tmp_path, _HEAD + pushed + blocks))
    assert found.of(level="kernel").rows["predicted"].to_list() == [300.0, 200.0, None, None]


def test_a_kernel_in_two_blocks_is_one_that_finished(tmp_path: Path) -> None:
    pushed = "".join(
        f"GPGPU-Sim PTX: pushing kernel '{name}' to stream 0, gridDim= (1,1,1)\n"
        for name in ("a", "b", "b", "c")
    )
    # Kernel 2 runs on beside the one that follows.
    blocks = block("a b", "1 2", 300, 300) + block("b c", "2 3", 200, 500)
    rows = gpgpu_sim.read(text_of(tmp_path, _HEAD + pushed + blocks)).of(level="kernel").rows
    assert rows.select("kernel", "predicted").rows() == [
        ("a b", 300.0),
        ("b c", 200.0),
        ("b", None),
    ]


def test_the_clock_stands_in_two_lines(tmp_path: Path) -> None:
    line = "GPGPU-Sim uArch: clock freqs: 1500000000.000000:700000000.000000:1.0:2.0\n"
    found = gpgpu_sim.read(text_of(tmp_path, _HEAD + line + block("a", "1", 300, 300) + _END))
    assert found.rows["clock_hz"].to_list() == [1.5e9, 1.5e9]


def test_a_log_without_its_first_lines() -> None:
    found = fixture("gpgpu-sim-log", "no_banner")
    assert found.rows["predicted"].to_list() == [300.0, 300.0, 700.0]
    assert found.notes[0].startswith(
        "The cycles of the kernels sum to 600, but the log's total is 700"
    )


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


@pytest.mark.parametrize("end", ["3x sec)", "", "(3 sec"])
def test_a_damaged_time_of_the_simulator_is_not_that_of_an_earlier_kernel(
    end: str, tmp_path: Path
) -> None:
    text = (DATA / "gpgpu-sim-log" / "good" / "stdout.txt").read_text()
    before, line, after = text.rpartition(
        "gpgpu_simulation_time = 0 days, 0 hrs, 0 min, 3 sec (3 sec)"
    )
    assert line
    path = tmp_path / "stdout.txt"
    path.write_text(f"{before}gpgpu_simulation_time = 0 days, 0 hrs, 0 min, 3 sec {end}{after}")
    found = gpgpu_sim.read(path).of(quantity="host time").rows
    assert found.select("measured", "status").rows() == [(None, "no value")]
