"""Latencies of HELP."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.core.source import Source
from errcomp.readers.learned import help as reader

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=reader.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_devices_are_columns() -> None:
    found = fixture("help-latencies")
    assert len(found.rows) == 5 * 25
    assert found.rows.group_by("device", "batch").len().sort("device", "batch").rows() == [
        ("1080ti", 1, 25),
        ("1080ti", 32, 25),
        ("essential_ph_1", None, 25),
        ("fpga", None, 25),
        ("gold_6226", None, 25),
    ]
    first = found.rows.filter(found.rows["model"] == "3")
    assert first["measured"].to_list() == [10.375, 15.75, 23.0, 5.5, 7.25]
    assert first["anchor"].unique().to_list() == [1]
    assert found.rows["status"].drop_nulls().to_list() == ["no value"]
    assert found.notes[0].startswith("Latencies of fpga were probably estimated")
    assert found.notes[1].startswith("The latencies of essential_ph_1 are whole milliseconds, so")


def test_a_native_file_is_read_without_unpickling() -> None:
    found = fixture("help-native")
    assert found.rows["measured"].to_list() == [10.5 + i / 4 for i in range(12)]
    assert found.rows["device"].unique().to_list() == ["pixel3"]
    newer = fixture("help-native", "protocol_4").rows
    assert newer["measured"].to_list() == [*(20.0 + i for i in range(120)), 1.5]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ("code", r"does more than list numbers \(GLOBAL"),
        ("nested", r"does more than list numbers \(EMPTY_LIST"),
        ("positions", r"5 whole numbers: positions of architectures"),
        ("broken", r"its pickle is broken"),
    ],
)
def test_other_pickles_are_refused(scenario: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fixture("help-native", scenario)


def packed(tmp_path: Path, pickled: bytes, name: str = "archive/data.pkl") -> Path:
    path = tmp_path / "device.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, pickled)
    return path


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"\x80\x02].", "the list is empty"),
        (b"\x80\x02]K\x01a", "its pickle is broken"),
        (b"\x80\x02]\x80\x02.", "does more than list numbers .PROTO at byte 3"),
        (b"\x80\x02]q\x00N.", "does more than list numbers .NONE"),
    ],
)
def test_pickles_that_hold_no_list_of_numbers(pickled: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        reader.read(packed(tmp_path, pickled))


def test_numbers_are_only_those_of_one_list(tmp_path: Path) -> None:
    source = Source(tmp_path / "device.pt")
    assert [*reader._numbers(source, b"\x80\x02](K\x01K\x02e.")] == [1, 2]
    with pytest.raises(InputError, match=r"its pickle holds no list\. The file may be incomplete"):
        list(reader._numbers(source, b"\x80\x02."))
    with pytest.raises(InputError, match=r"more than list numbers \(BININT1 at byte 2\)"):
        list(reader._numbers(source, b"\x80\x02K\x01."))


def test_a_zip_that_is_cut_off(tmp_path: Path) -> None:
    path = DATA / "help-native" / "good" / "pixel3.pt"
    with pytest.raises(InputError, match="broken zip"):
        reader.read(text_of(tmp_path, path.read_bytes()[:-30], "x.pt"))


def test_more_numbers_than_there_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LARGEST", 16)
    path = DATA / "help-native" / "good" / "pixel3.pt"
    with pytest.raises(InputError, match=r"MiB, more than any file of HELP\."):
        reader.read(text_of(tmp_path, path.read_bytes(), "x.pt"))


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "help"
    found = ingest(folder, among=reader.FORMATS)
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    native = found.of(file="fbnet_pixel3.native.pt").rows
    assert len(native) == 5000
    table = found.of(file="fbnet_measured_latency.first500_plus_anchors.csv", device="pixel3").rows
    # The table was made from the native files.
    values = dict(native.select("model", "measured").rows())
    for model, measured in table.select("model", "measured").rows():
        assert values[model] == pytest.approx(measured, rel=1e-5)
    phone = found.of(device="essential_ph_1").rows
    assert "batch" not in phone.columns
    assert found.of(device="titan_rtx").rows["batch"].unique().sort().to_list() == [1, 32, 64, 256]
