"""Files of Accel-Sim and AccelWattch."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Dropped, Output
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import DAMAGED
from errcomp.readers.simulators import accel_sim, gpgpu_sim

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=accel_sim.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_log_is_not_one_of_gpgpu_sim() -> None:
    path = DATA / "accel-sim-log" / "good" / "gemm.o12"
    assert [one.name for one in recognise(Source(path), gpgpu_sim.FORMATS)] == []
    found = fixture("accel-sim-log")
    assert found.rows["tool"].unique().to_list() == ["Accel-Sim"]
    assert found.of(level="kernel").rows["predicted"].to_list() == [1200.0, 1300.0]
    assert found.of(level="model").rows["predicted"].to_list() == [2500.0]


def test_a_log_that_was_killed() -> None:
    rows = fixture("accel-sim-log", "killed").rows
    assert rows.select("level", "predicted").rows() == [
        ("kernel", 1200.0),
        ("kernel", None),
        ("model", None),
    ]


def test_statistics_of_each_kernel() -> None:
    found = fixture("accel-sim-stats")
    times = found.of(quantity="time").rows
    assert times.select("config", "kernel", "launch", "predicted", "status").rows() == [
        ("QV100-SASS", "_Z4gemmPf", None, 350.0, None),
        ("RTX2060-SASS", "_Z4gemmPf", None, 450.0, None),
        ("QV100-SASS", "_Z4reluPf", "0", 10.0, None),
        ("RTX2060-SASS", "_Z4reluPf", "0", None, "no value"),
    ]
    assert times["run"].to_list()[0] == "app/4096 on QV100-SASS"
    assert times["build"].unique().to_list() == ["accelsim-commit-1"]
    assert times["instructions"].to_list() == [700.0, 700.0, 20.0, None]
    assert found.notes[0].startswith("Without -K, get_stats.py sums all launches")
    assert found.notes[1] == "Statistics other than times, energies and powers are left out: 1."


def test_statistics_of_whole_runs_with_configurations_as_rows() -> None:
    rows = fixture("accel-sim-stats", "final_kernel_by_config").rows
    assert rows.select("level", "run", "predicted", "measured").rows() == [
        ("model", "app/1", 100.0, None),
        ("system", "app/1", None, 3.0),
        ("model", "app/2", 200.0, None),
        ("system", "app/2", None, 4.0),
    ]


RULE = "-" * 100 + ",\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "gpu_tot_sim_cycle,\nAPPS,A,B\na--k,1\n",
            r"line 4: 1 values, but the header has 2 columns\.",
        ),
        ("gpu_tot_sim_cycle,\nAPPS,A\na--k,x\n", r"line 4: the value of a--k must be a number"),
        ("gpu_ipc,\nAPPS,A\na--k,x\n", r"line 4: the value of a--k must be a number"),
        ("L2_BW,\nAPPS,A\na--k,1\n", r"no predicted or measured value"),
        ('gpu_tot_sim_cycle,\nAPPS,A\n"a--k,1\n', r"line 4: not CSV"),
    ],
)
def test_statistics_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        accel_sim.read(text_of(tmp_path, RULE + text))


def test_a_table_of_a_correlation_holds_pairs() -> None:
    found = fixture("accel-sim-correlation")
    pairs = found.of(level="kernel").pairs
    assert pairs.predicted.tolist() == [110.0, 190.0]
    assert pairs.measured.tolist() == [100.0, 200.0]
    assert found.rows["config"].to_list() == ["QV100-SASS", "QV100-SASS", "RTX2060"]
    assert found.dropped[0].n == 1


def test_a_correlation_with_text_in_place_of_a_number(tmp_path: Path) -> None:
    text = "t\nName,Hardware,Simulator,Sim/HW\nk,1,x,1\n"
    with pytest.raises(InputError, match=r"line 3: a value must be a number, got 'x'"):
        accel_sim.read(text_of(tmp_path, text))


def test_power_of_each_sheet_and_table() -> None:
    found = fixture("accel-sim-power-pairs")
    assert found.rows.select("tool", "device", "predicted", "measured").rows() == [
        ("AccelWattch SASS SIM", "Volta", 168.5, 172.25),
        ("AccelWattch SASS SIM, tech scaled", "Pascal", 100.5, 110.0),
        ("AccelWattch SASS SIM, before scaling", "Pascal", 200.5, 110.0),
    ]
    assert found.rows["runtime_covered_fraction"].to_list() == [0.75, 1.0, 1.0]
    assert found.notes == ()


def test_a_sheet_without_a_model_or_tables(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    path.write_text(
        "sheet_variant,kernel,sim_total_watts,hw_total_watts\nVolta,a,11,10\nVolta_HW,a,12,10\n",
        encoding="utf-8",
    )
    rows = accel_sim.read(path).rows
    assert rows.select("tool", "device").rows() == [
        ("AccelWattch", "Volta"),
        ("AccelWattch HW", "Volta"),
    ]


def test_powers_that_accelwattch_reports() -> None:
    assert fixture("accel-sim-power-table").rows.select("kernel", "predicted").rows() == [
        ("gemm_k1", 168.5),
        ("gemm_k2", 150.5),
    ]
    rows = fixture("accel-sim-power-log").rows
    assert rows.select("quantity", "kernel", "launch", "predicted").rows() == [
        ("power", "_Z4gemmPf", "1", 148.5),
        ("maximum power", "_Z4gemmPf", "1", 160.5),
        ("minimum power", "_Z4gemmPf", "1", 120.5),
    ]


def test_a_power_that_is_no_number(tmp_path: Path) -> None:
    path = text_of(tmp_path, "kernel_name = a\nkernel_avg_power = x\n")
    with pytest.raises(InputError, match=r"line 2: kernel_avg_power must be a number"):
        accel_sim.read(path)


def test_measured_power_with_its_spread() -> None:
    rows = fixture("accel-sim-hw-power").rows
    assert rows.select("kernel", "measured", "measured_spread", "n_repeats", "status").rows() == [
        ("gemm_k1", 200.0, 0.01, 5, None),
        ("gemm_k2", 100.0, 0.005, 5, None),
        ("lost_k1", None, None, None, "no value"),
    ]


def test_measured_cycles_and_benchmarks() -> None:
    assert fixture("accel-sim-hw-counters").rows["measured"].to_list() == [66542.5, 100.0]
    rows = fixture("accel-sim-microbenchmarks").rows
    assert rows.select("kernel", "quantity", "unit", "measured").rows() == [
        ("MaxFlops_float", "throughput", "flop/clk/SM", 126.861778),
        ("MaxFlops_float", "time", "cycles", 66124.0),
        ("atomic_add_bw", "bandwidth", "byte/clk", None),
        ("atomic_add_bw", "time", "cycles", None),
        ("kernel_lat", "latency", "cycles", 7257.5),
        ("l1_bw_128", "bandwidth", "byte/clk/SM", 116.5),
        ("lat_int32", "latency", "cycles", 4.25),
    ]
    assert rows["device"].unique().to_list() == ["MADE UP 1"]
    assert rows["status"][2] == "implausible: a clock counter overflowed"


def test_a_summary() -> None:
    rows = fixture("accel-sim-summary").rows
    assert rows.select("level", "quantity", "unit", "predicted", "measured").rows() == [
        ("model", "time", "cycles", 645976.0, None),
        ("model", "power", "W", 81.5, None),
        ("model", "maximum power", "W", 160.5, None),
        ("system", "host time", "s", None, 1067.0),
    ]


def test_regular_expressions_are_refused() -> None:
    with pytest.raises(InputError, match="regular expressions that find statistics"):
        fixture("accel-sim-regexes")


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "accel-sim", among=accel_sim.FORMATS)
    assert sorted(one.name for one in found.skipped) == [
        "SOURCE.md",
        "get_stats_regexes_example_stats.yml",
    ]
    power = found.of(file="accelwattch_power_sim_vs_hw.csv").rows
    assert len(power) == 228
    tables = power.group_by("device", "tool").len().sort("device", "tool").rows()
    assert tables == [
        ("Pascal", "AccelWattch PTX SIM, before scaling", 20),
        ("Pascal", "AccelWattch PTX SIM, tech scaled", 20),
        ("Pascal", "AccelWattch SASS SIM, before scaling", 22),
        ("Pascal", "AccelWattch SASS SIM, tech scaled", 22),
        ("Turing", "AccelWattch PTX SIM", 21),
        ("Turing", "AccelWattch SASS SIM", 26),
        ("Volta", "AccelWattch HW", 25),
        ("Volta", "AccelWattch Hybrid", 25),
        ("Volta", "AccelWattch PTX SIM", 21),
        ("Volta", "AccelWattch SASS SIM", 26),
    ]
    volta = power.filter(device="Volta", tool="AccelWattch SASS SIM")
    error = ((volta["predicted"] - volta["measured"]).abs() / volta["measured"]).mean()
    assert error == pytest.approx(0.0919, abs=5e-4)
    measured = found.of(file="hw_power_validation_volta.csv").rows
    assert len(measured) == 26
    assert measured["n_repeats"].unique().to_list() == [5]
    # The measured powers of the pairs are those of the native file.
    assert set(volta["measured"].round(4)) <= set(measured["measured"].round(4))
    assert len(found.of(file="accelwattch_hw_perf.csv").rows) == 25
    stats = found.of(file="get_stats_per_kernel.excerpt.csv", quantity="time").rows
    assert stats["predicted"].to_list()[:2] == [7722.0, 7009.0]
    bench = found.of(file="gpu_microbenchmark_output.txt").rows
    assert bench["device"].unique().to_list() == ["TITAN V"]
    assert bench.filter(bench["status"].is_not_null())["kernel"].unique().to_list() == [
        "atomic_add_bw"
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("number = 66124", "number = 6o124"),
        ("number = 66124", "number = 6612l"),
        ("SM = 126.861778", "SM = ?26.861778"),
        ("bandwidth = 0.000026", "bandwidth = 0.0000.26"),
    ],
)
def test_a_damaged_number_of_a_benchmark_is_counted(tmp_path: Path, old: str, new: str) -> None:
    good = (DATA / "accel-sim-microbenchmarks" / "good" / "output.file").read_text()
    assert good.count(old) == 1
    path = tmp_path / "output.file"
    path.write_text(good)
    whole = accel_sim.read(path)
    path.write_text(good.replace(old, new))
    found = accel_sim.read(path)
    assert found.dropped == (Dropped(DAMAGED, 1),)
    assert whole.dropped == ()
    left = whole.rows["measured"].to_list()
    for value in found.rows["measured"].to_list():
        left.remove(value)
    assert len(left) == 1
