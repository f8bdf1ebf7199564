"""Statistics of gem5."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.simulators import gem5

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=gem5.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_dump_has_time_cycles_and_host_time() -> None:
    found = fixture("gem5-stats")
    assert found.rows.select("level", "quantity", "unit", "predicted", "measured").rows() == [
        ("model", "time", "ps", 2500000.0, None),
        ("model", "time in seconds", "s", 3e-6, None),
        ("system", "cycles", "cycles", 5000.0, None),
        ("system", "cycles", "cycles", 4000.0, None),
        ("system", "host time", "s", None, 0.25),
    ]
    cycles = found.of(quantity="cycles").rows
    assert cycles["component"].to_list() == ["system.cpu0", "system.cpu1"]
    # The clock of the processors (500 ticks), not that of the system or of the interrupts.
    assert cycles["clock_hz"].to_list() == [2e9, 2e9]
    assert found.runs.predicted is not None
    assert found.notes == ()


def test_several_dumps_are_several_runs() -> None:
    found = fixture("gem5-stats", "several_dumps")
    times = found.of(quantity="time").rows
    assert times.select("run", "predicted").rows() == [("1", 1e6), ("2", 3e6), ("4", 5e5)]
    assert found.of(quantity="cycles").rows["status"].to_list() == [None, "no value"]
    assert [(one.reason, one.n) for one in found.dropped] == [("dump without time and cycles", 1)]
    assert [note.partition(":")[0] for note in found.notes] == [
        "Dump 2 includes dump 1",
        "The last line of dump 4 is missing",
    ]


def test_other_frequencies_of_ticks() -> None:
    rows = fixture("gem5-stats", "other_ticks").rows
    assert rows.filter(rows["quantity"] == "time").select("unit", "predicted").rows() == [
        ("us", 500000.0)
    ]
    assert rows.filter(rows["quantity"] == "ticks")["predicted"].to_list() == [7.0]
    assert rows.filter(rows["quantity"] == "cycles")["status"].to_list() == ["not finite"]


BEGIN = "---------- Begin Simulation Statistics ----------\n"


def test_only_seconds_are_a_time(tmp_path: Path) -> None:
    found = gem5.read(text_of(tmp_path, BEGIN + "sim_seconds 0.5\n"))
    assert found.rows.select("quantity", "unit", "predicted").rows() == [("time", "s", 0.5)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("sim_ticks abc\n", r"line 2: sim_ticks must be a number, got 'abc'"),
        ("\nsystem.cpu.numCycles 1_0\n", r"line 3: system.cpu.numCycles must be a number"),
        ("system.cpu.ipc 1\n", r"no predicted or measured value .*1 dump without time"),
        ("", r"no predicted or measured value"),
    ],
)
def test_what_cannot_be_used(lines: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        gem5.read(text_of(tmp_path, BEGIN + lines))


@pytest.mark.shared
def test_the_sample(shared_data: Path) -> None:
    found = gem5.read(shared_data / "tools" / "gem5" / "stats.txt")
    time, seconds, cycles, host = found.rows.rows(named=True)
    assert (time["predicted"], time["unit"]) == (56435000.0, "ps")
    assert (seconds["predicted"], seconds["unit"]) == (0.000056, "s")
    assert (cycles["predicted"], cycles["clock_hz"]) == (56435.0, 1e9)
    assert host["measured"] == 0.18
    # 56,435 cycles of 1,000 ps are the ticks.
    assert cycles["predicted"] / cycles["clock_hz"] == pytest.approx(time["predicted"] * 1e-12)
