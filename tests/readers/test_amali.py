"""Results of AMALi."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers import amali
from errcomp.readers.ingesting import ingest
from errcomp.readers.output import Output
from errcomp.readers.registry import recognise
from errcomp.readers.source import Source

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"
NAMES = [one.name for one in amali.FORMATS]


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=amali.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", NAMES)
def test_fixtures_are_recognised_by_their_format_alone(name: str) -> None:
    for path in (DATA / name).rglob("*.*"):
        found = [one.name for one in recognise(Source(path), amali.FORMATS)]
        assert found == [name], path


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=st.data())
def test_damaged_files_are_refused_or_read(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = sorted((DATA / name / "good").iterdir())[0]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 40)))
        how = data.draw(st.sampled_from(["flip", "delete", "insert", "double"]))
        if how == "flip":
            content[start:end] = bytes(
                b ^ data.draw(st.integers(1, 255)) for b in content[start:end]
            )
        elif how == "delete":
            del content[start:end]
        elif how == "insert":
            content[start:start] = data.draw(
                st.sampled_from(
                    [b"nan", b"-1", b"{", b"[", b'"', b",", b"\n", b"1e999", b"\0", b"="]
                )
            )
        else:
            content[start:start] = content[start:end]
    damaged = tmp_path_factory.mktemp("damaged") / path.name
    damaged.write_bytes(content)
    recognise(Source(damaged), amali.FORMATS)
    (own,) = (one for one in amali.FORMATS if one.name == name)
    if own.read is not None:
        with contextlib.suppress(InputError):
            own.read(Source(damaged))


@pytest.mark.parametrize(
    "text", ["", "\n", "a,b\n1,2\n", "[]", "{}", "[1, 2]", "\0", '{"a": [', "7"]
)
def test_other_files_are_not_recognised(text: str, tmp_path: Path) -> None:
    source = Source(text_of(tmp_path, text))
    assert recognise(source, amali.FORMATS) == []


def test_predictions_in_cycles() -> None:
    rows = fixture("amali-results").rows
    assert rows.select("kernel_id", "kernel", "variant", "predicted").rows() == [
        (1, "gemm", "AMALi", 1200.0),
        (2, "relu<int, 4>", "AMALi", 300.0),
    ]


def test_variants_beside_a_measurement_are_pairs() -> None:
    found = fixture("amali-results", "with_hardware")
    assert found.rows.select("variant", "predicted", "measured").rows() == [
        ("GCoM", 500.0, 4000.5),
        ("GCoM+KLL", 2500.0, 4000.5),
    ]
    assert [(one.reason, one.n) for one in found.dropped] == [("empty row", 2)]
    assert len(found.of(variant="GCoM").pairs) == 1


def test_measurements_have_their_spread() -> None:
    rows = fixture("amali-measured").rows
    kept = ("kernel_id", "measured", "measured_spread", "n_repeats")
    assert rows.select(kept).rows() == [(1, 100.0, 0.1, 3), (2, 50.0, None, 1)]


def test_a_prediction_that_is_no_number(tmp_path: Path) -> None:
    path = text_of(tmp_path, "kernel_id,kernel_name,AMALi\n1,gemm,many\n")
    with pytest.raises(InputError, match=r"AMALi must be a number, got 'many' in line 2"):
        amali.read(path)


def test_measurements_without_numbers_of_kernels(tmp_path: Path) -> None:
    path = text_of(tmp_path, "Kernel Name,Column_1,Average\ngemm,1.5,1.5\n")
    assert amali.read(path).rows["measured"].to_list() == [1.5]
