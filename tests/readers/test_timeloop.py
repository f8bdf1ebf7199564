"""Stats files of Timeloop: the summary, its components, old versions, damage."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.learned import survey
from errcomp.readers.simulators.timeloop import read

FIXTURES = Path(__file__).parents[1] / "data" / "readers" / "timeloop-stats"
GOOD = FIXTURES / "good" / "timeloop-mapper.stats.txt"


def values(found: Output, quantity: str) -> dict[str | None, float]:
    rows = found.rows.filter(quantity=quantity)
    return dict(rows.select("component", "predicted").rows())


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = GOOD.read_text()
    assert old in text
    path = tmp_path / "stats.txt"
    path.write_text(text.replace(old, new))
    return path


def test_the_summary_is_read() -> None:
    whole = read(GOOD).rows.filter(pl.col("component").is_null())
    assert whole.select("quantity", "predicted", "unit").rows() == [
        ("time", 800.0, "cycles"),
        ("energy", 9.6, "uJ"),
        ("EDP", 7.68e-3, "J*cycle"),
        ("area", 0.02, "mm^2"),
        ("throughput", 11.88, "GFLOP/s at 1 GHz"),
        ("utilization", 75.0, "%"),
    ]
    assert set(whole["level"]) == {"kernel"}
    assert set(whole["computes"]) == {4800}


def test_components_add_up() -> None:
    found = read(GOOD)
    per_compute = values(found, "energy per compute")
    assert per_compute == {"mac": 500.0, "spad": 291.67, "DRAM": 1999208.33, "Total": 2e6}
    # All accesses, leakage, reductions and addresses of both data spaces.
    assert values(found, "component energy") == {"mac": 2400.0, "spad": 1400.0, "DRAM": 9596200.0}
    total = sum(values(found, "component energy").values())
    assert total * 1000 / 4800 == pytest.approx(per_compute["Total"])
    # One buffer is stated, all arithmetic units are.
    assert values(found, "component area") == {"mac": 1600.0, "spad": 400.0, "DRAM": 0.0}
    spad = found.rows.filter(component="spad", quantity="component energy")
    assert spad.select("instances", "utilized_instances").rows() == [(8, 6.0)]


def test_maps_beside_it_are_passed_over() -> None:
    found = ingest(GOOD.parent)
    assert found.formats == ("timeloop-stats",)
    assert found.skipped == ()
    for name in ("timeloop-mapper.map.txt", "timeloop-mapper.map+stats.xml"):
        with pytest.raises(InputError, match=r"read together with .*stats\.txt"):
            read(GOOD.with_name(name))


def test_an_old_map_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "timeloop-mapper.map.txt"
    path.write_text(
        "\nDRAM [ Weights:1152 Inputs:1377 Outputs:2569 ] \n"
        "---------------------------------------------\n| for Q in [0:14)\n|   for N in [0:8)\n\n"
        "spad [ ] \n--------\n|     for K in [0:8)\n"
    )
    with pytest.raises(InputError, match=r"timeloop-mapper.map.txt of Timeloop, .* read together"):
        read(path)


def test_an_old_version_with_maccs_and_a_fraction() -> None:
    found = read(FIXTURES / "old_version")
    whole = found.rows.filter(pl.col("component").is_null())
    assert whole.select("quantity", "predicted", "unit").rows() == [
        ("time", 48.0, "cycles"),
        # 0.00 uJ in the summary: the total per MACC times the MACCs.
        ("energy", pytest.approx(1.12 * 48), "pJ"),
        ("utilization", 1.0, "fraction"),
    ]
    assert "rounds the energy to 0.00" in found.notes[0]
    assert values(found, "energy per compute")["Buffer <==> MACC"] == 0.1
    # Energies of networks are no energies of the level before them.
    assert values(found, "component energy") == {"MACC": 28.8, "Buffer": 20.16}


def test_no_mapping_was_evaluated() -> None:
    found = read(FIXTURES / "not_evaluated")
    assert found.rows.filter(quantity="time")["status"].to_list() == ["not evaluated"]
    assert found.rows.filter(quantity="area")["predicted"].to_list() == [0.02]
    assert "no mapping was evaluated" in found.notes[0]


def test_more_lines_than_known_and_numbers_that_are_none(tmp_path: Path) -> None:
    path = changed(tmp_path, "Energy: 9.60 uJ", "Latency: 12 cycles\nEnergy: nan uJ")
    found = read(path).rows.filter(quantity="energy")
    assert found.select("predicted", "status").rows() == [(None, "no value")]
    path = changed(tmp_path, "    Cycles                  : 800\n", "    New field : x\n")
    assert read(path).rows.height == read(GOOD).rows.height


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Summary Stats", "", "no line 'Summary Stats'"),
        ("Total                                         = 2000000.00\n", "", "have no Total"),
        ("Computes = 4800", "Computes = many", r"line 89: Computes must be a number, got 'many'"),
        ("Area                            : 50.00", "Area : big", "Area must be a number"),
        ("Cycles: 800\n", "Cycles: 800\nSummary Stats\n", "several results"),
    ],
)
def test_damage_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(changed(tmp_path, old, new))


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stats.txt"
    path.write_text(GOOD.read_text()[:1500])
    with pytest.raises(InputError, match="may be incomplete"):
        read(path)


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    tools = shared_data / "tools"
    eyeriss = tools / "timeloop" / "eyeriss_like"
    found = read(eyeriss / "timeloop-mapper.stats.txt")
    whole = dict(
        found.rows.filter(pl.col("component").is_null()).select("quantity", "predicted").rows()
    )
    assert whole == {
        **{"time": 86016.0, "energy": 59.28, "EDP": 5.1},
        **{"throughput": 247.33, "utilization": 75.0},
    }
    per_compute = values(found, "energy per compute")
    total = per_compute.pop("Total")
    assert total == 5469.65
    assert sum(per_compute.values()) == pytest.approx(total, abs=0.05)
    energies = values(found, "component energy")
    assert energies["mac"] == 2250969.22
    for name, energy in per_compute.items():
        assert energies[name] * 1000 / 10838016 == pytest.approx(energy, abs=0.006)
    simba = ingest(tools / "timeloop" / "simba_like")
    assert not simba.skipped
    assert simba.rows.filter(tool="Timeloop", quantity="time")["predicted"].to_list() == [225792.0]


@pytest.mark.shared
def test_the_survey_gets_the_same_numbers(shared_data: Path) -> None:
    path = shared_data / "tools" / "timeloop" / "eyeriss_like" / "timeloop-mapper.stats.txt"
    rows = read(path).rows
    whole = dict(rows.filter(pl.col("component").is_null()).select("quantity", "predicted").rows())
    found = {
        ("energy", "total"): whole["energy"],
        ("MACs", "total"): rows["computes"].drop_nulls()[0],
        ("cycles", "total"): whole["time"],
        ("utilisation", "total"): whole["utilization"],
        ("processing elements", "total"): rows.filter(component="mac")["instances"][0],
    }
    shares = rows.filter(quantity="energy per compute").select("component", "predicted").rows()
    found |= {("energy per MAC", name): value for name, value in shares}
    wanted = {(line[2], line[3]): float(line[4]) for line in survey._timeloop(path)}
    assert found == wanted


@pytest.mark.shared
def test_every_sample_is_known(shared_data: Path) -> None:
    for tool in ("timeloop", "sparseloop"):
        for path in sorted((shared_data / "tools" / tool).rglob("*")):
            if path.is_file() and path.suffix != ".md":
                assert len(recognise(Source(path))) == 1, path


def test_a_damaged_line_of_the_summary_is_named(tmp_path: Path) -> None:
    number = GOOD.read_text().splitlines().index("Cycles: 800") + 1
    with pytest.raises(
        InputError,
        match=rf"line {number}: this line of the summary is damaged: 'Cycles: 8 00'\. Copy the",
    ):
        read(changed(tmp_path, "Cycles: 800", "Cycles: 8 00"))
