"""PyTorchSim: measured references and the log of its simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.pytorchsim import FORMATS, read

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


def test_references_in_both_units() -> None:
    rows = read(FIXTURES / "pytorchsim-reference" / "good").rows
    columns = ("kernel", "kernel_class", "shape", "quantity", "measured", "unit", "source")
    assert rows.select(columns).rows() == [
        ("gemm_1x64x64", "gemm", "1x64x64", "time", 200.0, "ns", "net/out"),
        ("gemm_1x64x64", "gemm", "1x64x64", "cycles", 700.0, "cycles", "net/out"),
        ("attn_enc_12x32x32", "attn_enc", "12x32x32", "time", 2000.0, "ns", "net/a,net/b"),
        ("attn_enc_12x32x32", "attn_enc", "12x32x32", "cycles", 7000.0, "cycles", "net/a,net/b"),
    ]


def test_device_and_host_are_two_quantities() -> None:
    rows = read(FIXTURES / "pytorchsim-measure" / "good").rows
    assert rows.select("mode", "shape", "quantity", "measured", "unit").rows()[:3] == [
        ("prefill", "B1 Hq4 Hkv4 S128 D64", "time", 2.0, "us"),
        ("prefill", "B1 Hq4 Hkv4 S128 D64", "host time", 46.5, "us"),
        ("prefill", "B1 Hq4 Hkv4 S128 D64", "cycles", 7000.0, "cycles"),
    ]
    assert rows.select("batch", "seq_len", "query_heads").row(3) == (8, 128, 4)


def test_a_failed_measurement_keeps_its_reason() -> None:
    rows = read(FIXTURES / "pytorchsim-measure" / "failed_run").rows
    assert rows["status"].to_list() == [None] * 3 + ["out of memory"] * 3
    assert rows["measured"][3] is None


def test_a_log() -> None:
    rows = read(FIXTURES / "pytorchsim-log" / "good").rows
    columns = ("level", "quantity", "predicted", "unit", "clock_hz")
    assert rows.select(columns).rows() == [("model", "time", 12345.0, "cycles", 940e6)]


@pytest.mark.parametrize(
    ("scenario", "status"),
    [
        ("failed_run", "[Simulator] simulation wedged at cycle 500: work remains"),
        ("killed", "did not finish: no total of execution cycles"),
    ],
)
def test_a_run_that_did_not_finish_is_a_status(scenario: str, status: str) -> None:
    rows = read(FIXTURES / "pytorchsim-log" / scenario).rows
    assert rows.select("predicted", "status").rows() == [(None, status)]


def test_several_runs_in_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text((FIXTURES / "pytorchsim-log" / "good" / "togsim.log").read_text() * 2)
    assert read(path).rows["run"].to_list() == ["run 1", "run 2"]


def test_an_odd_clock_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("[TOGSim] x\n[info] core_freq_mhz: 1.2.3\n[info] Total execution cycle: 7\n")
    rows = read(path).rows
    assert rows["predicted"].to_list() == [7.0]
    assert "clock_hz" not in rows.columns


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ref.csv"
    path.write_text("workload,cycles,latency_ns\ngemm_1x2,7\n")
    with pytest.raises(InputError, match="line 2: 2 fields, but the header has 3"):
        read(path)
    path.write_text("workload,cycles,latency_ns\ngemm,seven,2\n")
    with pytest.raises(InputError, match="cycles must be a number, got 'seven'"):
        read(path)


def test_other_tables_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for content in ("workload,cycles\na,1\n", "device_us,avg_us\n1,2\n", "[Config/Core] x\n"):
        path.write_text(content)
        assert recognise(Source(path), FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "pytorchsim")
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    reference = found.rows.filter(file="ref_v6e.first45.csv")
    assert reference.height == 2 * 45
    cycles = reference.filter(quantity="cycles")["measured"]
    times = reference.filter(quantity="time")["measured"]
    assert (cycles / times - 3.5).abs().max() < 0.003
    measure = found.rows.filter(file="v6e_tpu_measure.first10.csv")
    assert measure.height == 3 * 10
    ratio = (
        measure.filter(quantity="host time")["measured"]
        / measure.filter(quantity="time")["measured"]
    )
    assert 26 < ratio.max() < 27
