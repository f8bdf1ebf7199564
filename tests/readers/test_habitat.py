"""Files of Habitat."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.learned import habitat

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=habitat.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_from_one_gpu_to_others() -> None:
    found = fixture("habitat-e2e")
    assert found.rows.select("device", "origin", "predicted", "measured", "batch").rows() == [
        ("V100", "V100", None, 95.5, 16),
        ("T4", "V100", 210.25, None, 16),
        ("P100", "V100", 150.5, None, 16),
    ]
    assert found.notes == ()


def test_without_the_name_the_first_device_is_the_origin(tmp_path: Path) -> None:
    found = habitat.read(text_of(tmp_path, "device,run_time_ms\nT4,2.5\nV100,1.5\n"))
    assert found.rows.select("device", "predicted", "measured").rows() == [
        ("T4", None, 2.5),
        ("V100", 1.5, None),
    ]
    assert found.notes == (
        "T4, the first device in the file, is assumed to be the measured device.",
    )


def test_a_name_that_contradicts_the_content(tmp_path: Path) -> None:
    path = text_of(tmp_path, "device,run_time_ms\nT4,2.5\n", "dcgan+64-P100-e2e.csv")
    with pytest.raises(InputError, match="name gives 'P100' as the measured device,"):
        habitat.read(path)


def test_breakdowns() -> None:
    rows = fixture("habitat-breakdown").rows
    assert rows.select("kernel", "position", "origin", "device", "predicted").rows() == [
        ("conv2d", 1, "V100", "T4", 10.5),
        ("conv2d", 2, "V100", "T4", 11.5),
    ]
    assert fixture("habitat-breakdown", "measured").rows["measured"].to_list() == [10.25, 11.25]


def test_a_breakdown_must_say_of_which_gpu_it_is(tmp_path: Path) -> None:
    path = text_of(tmp_path, "operation,run_time_ms\nconv2d,2.5\n")
    with pytest.raises(InputError, match="name nor the content of the file says which GPU"):
        habitat.read(path)


def test_combined_files_hold_pairs() -> None:
    found = fixture("habitat-combined")
    assert found.pairs.predicted.tolist() == [210.0, 190.0]
    assert found.rows.select("model", "batch", "origin", "device").rows() == [
        ("resnet50", 16, "V100", "T4"),
        ("resnet50", 16, "P100", "T4"),
    ]
    breakdown = fixture("habitat-combined-breakdown").rows
    assert breakdown.select("origin", "device", "predicted", "measured").rows() == [
        ("V100", "T4", 10.5, 10.0),
        ("V100", "T4", 1.0, 1.0),
    ]
