"""Tables of energies and areas that Accelergy writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.simulators.accelergy import read

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


def test_energies_of_actions() -> None:
    rows = read(FIXTURES / "accelergy-ert" / "good").rows
    columns = ("component", "instances", "action", "predicted", "unit", "arguments")
    assert rows.select(columns).rows() == [
        ("chip.DRAM", 1, "read", 512.0, "pJ", '{"global_cycle_seconds": "1e-09"}'),
        # YAML takes 1e-07 for text.
        ("chip.DRAM", 1, "leak", 1e-7, "pJ", None),
        ("chip.pe.mac", 8, "compute", 0.25, "pJ", None),
    ]
    assert set(rows["version"]) == {"0.4"}


def test_an_energy_for_each_combination_of_arguments() -> None:
    rows = read(FIXTURES / "accelergy-ert" / "old_version").rows
    assert rows.select("arguments", "predicted").rows() == [
        ('{"address_delta": 0}', 1.5),
        ('{"address_delta": 1}', 2.5),
    ]


def test_version_2_has_names_in_place_of_lists(tmp_path: Path) -> None:
    path = tmp_path / "ERT.yaml"
    path.write_text(
        "ERT:\n  tables:\n    chip.DRAM:\n      idle:\n        arguments: null\n"
        "        energy: 0\n      read:\n      - arguments:\n          delta: 0\n"
        "        energy: 1.5\n      - arguments:\n          delta: 1\n        energy: 2.5\n"
        "    chip.pe.mac:\n      mac:\n        arguments: null\n        energy: 0.25\n"
        "  version: 0.2\n"
    )
    rows = read(path).rows
    assert rows.select("component", "action", "arguments", "predicted").rows() == [
        ("chip.DRAM", "idle", None, 0.0),
        ("chip.DRAM", "read", '{"delta": 0}', 1.5),
        ("chip.DRAM", "read", '{"delta": 1}', 2.5),
        ("chip.pe.mac", "mac", None, 0.25),
    ]
    assert set(rows["version"]) == {"0.2"}


def test_a_summary_has_statistics_of_energies_that_depend_on_arguments(tmp_path: Path) -> None:
    path = tmp_path / "ERT_summary.yaml"
    path.write_text(
        "ERT_summary:\n  ERT summaries:\n    chip.pe[0..7].spad:\n      idle:\n"
        "        energy: 0.5\n      read:\n        average energy: 2.0\n"
        "        max energy: 2.5\n        min energy: 1.5\n  version: 0.2\n"
    )
    columns = ("component", "instances", "action", "statistic", "predicted")
    assert read(path).rows.select(columns).rows() == [
        ("chip.pe.spad", 8, "idle", None, 0.5),
        ("chip.pe.spad", 8, "read", "mean", 2.0),
        ("chip.pe.spad", 8, "read", "max", 2.5),
        ("chip.pe.spad", 8, "read", "min", 1.5),
    ]
    path.write_text(
        "ERT_summary:\n  version: 0.3\n  table_summary:\n  - name: a\n    actions:\n"
        "    - name: read\n      average_energy: 2.0\n"
    )
    assert read(path).rows.select("statistic", "predicted").rows() == [("mean", 2.0)]


def test_areas_and_energies_of_version_2(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("ART:\n  tables:\n    chip.mac:\n      area: 191.5\n    chip.b: 2\n")
    assert read(path).rows["predicted"].to_list() == [191.5, 2.0]
    path.write_text("ERT:\n  tables:\n    chip.mac: 3\n    b:\n      read:\n        energy: 1\n")
    with pytest.raises(InputError, match="entry 1: must have a list of actions"):
        read(path)


@pytest.mark.parametrize("kind", ["accelergy-art", "accelergy-art-summary"])
def test_areas_are_of_one_instance(kind: str) -> None:
    rows = read(FIXTURES / kind / "good").rows
    assert rows.select("component", "instances", "predicted", "unit").rows()[0] == (
        *("chip.mac", 8, 191.5),
        "um^2",
    )


def test_energies_of_a_run() -> None:
    rows = read(FIXTURES / "accelergy-energy" / "good").rows
    assert rows.select("component", "quantity", "predicted").rows() == [
        ("chip.mac", "energy", 2400.0),
        ("chip.DRAM", "energy", 9596.25),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ART:\n  tables: 3\n", 'ART must hold "tables", a list'),
        ("ART: []\n", 'ART must hold "tables", a list'),
        ("ART:\n  tables:\n  - 3\n", "entry 1: must have a name"),
        ("ART:\n  tables:\n  - name: a\n    area: big\n", "area must be a number, got 'big'"),
        ("ERT:\n  tables:\n  - name: a\n    actions: 3\n", "must have a list of actions"),
        ("ERT:\n  tables:\n  - name: a\n    actions:\n    - 3\n", "an action without a name"),
        ("ART:\n  tables:\n  - name: [a\n", "not valid YAML"),
        ("- 1\n", 'ERT must hold "tables", a list'),
    ],
)
def test_other_forms_are_refused(tmp_path: Path, content: str, message: str) -> None:
    from errcomp.readers.core.source import Source
    from errcomp.readers.simulators.accelergy import FORMATS

    path = tmp_path / "table.yaml"
    path.write_text(content)
    one = FORMATS[2] if content.startswith("ART") else FORMATS[0]
    assert one.read is not None
    with pytest.raises(InputError, match=message):
        one.read(Source(path))


def test_values_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "ART.yaml"
    areas = (".nan", ".inf", "-1", "null", "1" + "0" * 400)
    tables = "".join(f"  - name: c{i}\n    area: {area}\n" for i, area in enumerate(areas))
    path.write_text("ART:\n  tables:\n" + tables)
    statuses = read(path).rows["status"].to_list()
    assert statuses == ["no value", "not finite", "negative", "no value", "not finite"]


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "timeloop" / "eyeriss_like"
    table, summary = (
        read(folder / f"timeloop-mapper.{name}.yaml").rows for name in ("ERT", "ERT_summary")
    )
    columns = ("component", "instances", "action", "predicted")
    assert table.select(columns).rows() == summary.select(columns).rows()
    assert table.height == 22
    areas = read(folder / "timeloop-mapper.ART_summary.yaml").rows
    spad = areas.filter(component="system_top_level.ifmap_spad")
    assert spad.select("instances", "predicted").rows() == [(168, 70.091961)]


def test_arguments_whose_names_have_no_order_are_written_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "ERT.yaml"
    path.write_text(
        "ERT:\n  version: 0.4\n  tables:\n  - name: a\n    actions:\n    - name: read\n"
        "      arguments: {2: 1, x: 3}\n      energy: 1.5\n    - name: write\n"
        "      arguments: {y: 1, x: 3}\n      energy: 2.5\n"
    )
    rows = read(path).rows
    assert rows.select("arguments", "predicted").rows() == [
        ("{2: 1, 'x': 3}", 1.5),
        ('{"x": 3, "y": 1}', 2.5),
    ]
