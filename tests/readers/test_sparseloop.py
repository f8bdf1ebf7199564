"""Sparseloop: stats of sparse designs, told from dense ones, and the tables of its artifact."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.sparseloop import FORMATS, read

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


def good(name: str) -> Path:
    return FIXTURES / name / "good"


def test_both_counts_of_computes() -> None:
    rows = read(good("sparseloop-stats")).rows
    assert set(rows["tool"]) == {"Sparseloop"}
    total = rows.filter(component="Total")
    assert total.select("quantity", "predicted", "computes").rows() == [
        ("energy per algorithmic compute", 1e6, 9600),
        ("energy per compute", 2e6, 4800),
    ]
    # Keys of the whole are those of what was computed.
    assert rows.filter(quantity="time")["computes"].to_list() == [4800]
    assert rows.filter(component="mac", quantity="component energy")["utilized_instances"][0] == 6


def test_sparse_and_dense_are_one_format_each() -> None:
    for name in ("sparseloop-stats", "timeloop-stats"):
        for path in good(name).glob("*.stats.txt"):
            assert [one.name for one in recognise(Source(path))] == [name]


def test_pairs() -> None:
    found = read(good("sparseloop-pairs"))
    assert found.rows.select("kernel", "predicted", "measured", "unit").rows() == [
        ("L01", 990.0, 1000.0, "cycles"),
        ("L02", 505.0, 500.0, "cycles"),
    ]
    assert found.pairs.n == 2


def test_lists_of_one_side() -> None:
    truth = read(good("sparseloop-truth")).rows
    simulated = read(good("sparseloop-cycles")).rows
    assert truth.select("kernel", "measured").rows() == [("L01", 1000.0), ("L02", 500.0)]
    assert simulated.select("kernel", "predicted").rows() == [("L01", 990.0), ("L02", 505.0)]


def test_ratios_and_densities() -> None:
    ratios = read(good("sparseloop-ratios")).rows
    assert ratios.select("kernel", "predicted", "measured").rows()[0] == ("L01", 0.99, 1.0)
    densities = read(good("sparseloop-densities")).rows
    assert densities.select("density_a", "density_b", "measured").rows() == [
        (1.0, 1.0, 4000.0),
        (1.0, 0.4, 2500.0),
        (0.5, 1.0, 2200.0),
        (0.5, 0.4, 1400.0),
    ]


def read_text(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    one = next(one for one in FORMATS if one.name == name)
    assert one.read is not None
    one.read(Source(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("sparseloop-truth", "L01.txt:CYC: 5\nL02.t\n", "line 2: 'L02.t' differs in form"),
        ("sparseloop-truth", "L01.txt:CYC: 5\nL02.txt:CYC: x\n", "line 2: the cycles must be"),
        (
            "sparseloop-ratios",
            '"L01","L02"\n"1.0","1.0"\n',
            "expected two rows, ground truth and ratios, got 1",
        ),
        ("sparseloop-densities", "1.0:\n  1.0: many\n", "expected cycles by density"),
        ("sparseloop-densities", "5.0:\n  1.0: 3\n", "expected cycles by density"),
        ("sparseloop-densities", "- 1\n", "no predicted or measured value"),
        ("sparseloop-pairs", "layer,ground_truth_cycles,sparseloop_cycles\nL1,a,5\n", "line 2"),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_text(tmp_path, name, content)


def test_a_missing_number_is_a_status(tmp_path: Path) -> None:
    path = tmp_path / "truth.txt"
    path.write_text("L01.txt:CYC: nan\n\nL02.txt:CYC: 1e999\n")
    assert read(path).rows["status"].to_list() == ["no value", "not finite"]


def test_other_tables_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for content in ("a,b\n1.0,1.0\n2,3\n", "L01,L02\n1.0,2.0\n3,4\n", "a: 1\nb: 2\n", "L01\n1.0\n"):
        path.write_text(content)
        assert recognise(Source(path), FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "sparseloop"
    pairs = read(folder / "fig12_eyerissv2_pe_cycles_pairs.csv").rows
    truth = read(folder / "fig12_ground_truth.txt").rows
    simulated = read(folder / "fig12_simulated.txt").rows
    assert pairs["kernel"].to_list() == truth["kernel"].to_list() == simulated["kernel"].to_list()
    assert pairs["measured"].to_list() == truth["measured"].to_list()
    assert pairs["predicted"].to_list() == simulated["predicted"].to_list()
    assert (pairs.height, pairs["measured"].sum()) == (28, 23781667.0)
    ratios = read(folder / "fig12_num_cycles_normalised.csv").rows["predicted"]
    exact = pairs["predicted"] / pairs["measured"]
    assert (ratios - exact).abs().max() <= 0.00051
    assert read(folder / "fig13_dstc_ground_truth_baseline.yaml").rows.height == 10

    everything = ingest(folder)
    assert [one.name for one in everything.skipped] == ["SOURCE.md"]
    times = everything.rows.filter(quantity="time", tool="Timeloop")
    # Dense designs: 01.2.1 and table 7.
    assert sorted(times["predicted"].to_list()) == [16.0, 2838528.0]
    uniform = read(folder / "fig12_L07_uniform_timeloop-model.stats.txt").rows
    whole = dict(
        uniform.filter(pl.col("component").is_null()).select("quantity", "predicted").rows()
    )
    # Not the 1,592,158 of the artifact's own list for this layer.
    assert whole["time"] == 1592245.0
    assert whole["energy"] == 4.99
