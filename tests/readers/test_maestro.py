"""MAESTRO: layers of a network, with names that occur twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.maestro import FORMATS, read

FIXTURES = Path(__file__).parents[1] / "data" / "readers" / "maestro-layers"


def test_layers_of_one_name_stay_apart() -> None:
    rows = read(FIXTURES / "good").rows
    times = rows.filter(quantity="time").select("run", "layer", "kernel", "predicted", "macs")
    assert times.rows() == [
        ("Net/64", 1, "CONV1", 2000.0, 12000),
        ("Net/64", 2, "Residual", 500.0, 30000),
        ("Net/64", 3, "Residual", 500.0, 30000),
    ]


def test_quantities_and_units() -> None:
    rows = read(FIXTURES / "good").rows.filter(layer=1)
    assert rows.select("quantity", "predicted", "unit").rows() == [
        ("time", 2000.0, "cycles"),
        ("energy", 1.5e4, "nJ"),
        ("throughput", 6.0, "MACs/cycle"),
        ("area", 4.5e6, "um^2"),
        ("power", 604.5, "mW"),
    ]


def test_kernels_of_a_run() -> None:
    kernels = read(FIXTURES / "good").of(quantity="time").kernels
    assert kernels.totals().predicted.tolist() == [3000.0]
    assert kernels.unit == "cycles"


def test_text_for_numbers() -> None:
    rows = read(FIXTURES / "nan_text").rows
    statuses = dict(rows.select("quantity", "status").rows())
    assert statuses["energy"] == "no value"
    assert statuses["power"] == "not finite"
    assert statuses["time"] is None


def test_two_designs_in_one_table(tmp_path: Path) -> None:
    header, first, *_ = (FIXTURES / "good" / "Net_kcp_ws_pe64.csv").read_text().splitlines()
    path = tmp_path / "design_space.csv"
    path.write_text("\n".join([header, first, first.replace(",64,", ",128,")]))
    rows = read(path).rows.filter(quantity="time")
    assert rows.select("run", "layer").rows() == [("Net/64", 1), ("Net/128", 1)]


def test_a_table_with_the_essential_columns_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text(
        "Activity count-based Energy (nJ),Runtime (Cycles),Layer Number\n5,7,1\n6,8,2\n"
    )
    rows = read(path).rows.filter(quantity="time")
    assert rows.select("kernel", "layer", "predicted").rows() == [("1", 1, 7.0), ("2", 2, 8.0)]


def test_damage_is_named(tmp_path: Path) -> None:
    text = (FIXTURES / "good" / "Net_kcp_ws_pe64.csv").read_text()
    path = tmp_path / "net.csv"
    path.write_text(text[:-30])
    with pytest.raises(InputError, match=r"net.csv: line 4: \d+ fields, but the header has 17"):
        read(path)
    path.write_text(text.replace(",2000,", ",soon,"))
    with pytest.raises(InputError, match=r"Runtime \(Cycles\) must be a number, got 'soon'"):
        read(path)


def test_other_tables_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("Layer Number,Runtime (Cycles)\n1,2\n")
    assert recognise(Source(path), FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "maestro"
    files = sorted(folder.glob("*.csv"))
    heights = [read(path).rows.height for path in files]
    assert heights == [5 * 56, 5 * 66, 5 * 66, 5 * 66]
    rows = read(folder / "Resnet50_rs_pe256.csv").rows
    first = rows.filter(layer=1).select("kernel", "quantity", "predicted").rows()
    assert first[0] == ("CONV1", "time", 4792525.0)
    assert first[1] == ("CONV1", "energy", 295887000.0)
    # Throughput is MACs over cycles: units and columns fit.
    times = rows.filter(quantity="time")
    rates = rows.filter(quantity="throughput")["predicted"]
    assert (times["macs"] / times["predicted"] / rates - 1).abs().max() < 1e-4
    assert times["layer"].n_unique() == times.height > times["kernel"].n_unique()
