"""The table of devices: what vendors print, and what a program on one of their devices has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from errcomp.calibration.features import design
from errcomp.datasets.devices import DEVICES
from errcomp.readers.learned.neusight.files import DEVICES as IN_THE_ARTIFACT
from errcomp.tables import Kernels


def test_every_row_names_the_document_that_prints_it() -> None:
    assert all(row.source and row.dies >= 1 for row in DEVICES.values())
    assert all(min(row.memory, row.bandwidth, row.peak) > 0 for row in DEVICES.values())


def test_forms_of_a_device_differ_where_their_sheets_do() -> None:
    for name, memory, bandwidths in (
        ("A100-40G", 40, (1555, 1555)),
        ("A100-80G", 80, (1935, 2039)),
    ):
        card, module = DEVICES[name], DEVICES[f"{name}-SXM"]
        assert (card.memory, module.memory) == (memory, memory)
        assert (card.bandwidth, module.bandwidth) == bandwidths
        assert card.peak == module.peak == 19.5


def test_figures_are_those_of_the_sheets(stored: Callable[..., None]) -> None:
    stored("devices", DEVICES)


def test_a_card_of_two_devices_has_the_figures_of_the_card() -> None:
    two, one = DEVICES["MI250"], DEVICES["MI210"]
    assert (two.memory, two.bandwidth, two.peak, two.dies) == (128, 3277, 45.3, 2)
    assert (one.memory, one.bandwidth, one.peak, one.dies) == (64, 1638, 22.6, 1)


def test_a_run_has_one_device_of_its_card() -> None:
    def features(device: str) -> dict[str, float]:
        columns = {"run": ["a"], "kernel": ["k"], "count": [1], "measured": [1.0]}
        kernels = Kernels({**columns, "device": [device]}, unit="ms")
        made = design(kernels, task="composition")
        return dict(zip(made.names, made.x[0].tolist(), strict=True))

    card, alone = features("MI250"), features("MI210")
    for name in ("device_bandwidth", "device_peak"):
        assert card[name] == pytest.approx(alone[name], abs=0.002)


def test_the_artifact_describes_the_same_devices(shared_data: Path) -> None:
    # Its clocks are those that the devices reached, above the vendor's, and T4 shows 15 of 16 GB.
    folder = shared_data / "neusight-artifact/scripts/asplos/data/device_configs"
    compared = 0
    for path in sorted(folder.glob("*.json")):
        known = IN_THE_ARTIFACT.get(path.stem)
        if known is None or known.name not in DEVICES:
            continue
        printed, found = DEVICES[known.name], json.loads(path.read_text(encoding="utf-8"))
        peak = found.get("SingleFLOPsVEC") or found["SingleFLOPs"]
        assert printed.memory / printed.dies == pytest.approx(found["Dev_Mem"], rel=0.07)
        assert printed.bandwidth / printed.dies == pytest.approx(found["Mem_Bw"], rel=0.03)
        assert printed.peak / printed.dies == pytest.approx(peak / 1000, rel=0.04)
        compared += 1
    assert compared == 12
