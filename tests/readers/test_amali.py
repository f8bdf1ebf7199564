"""Results of AMALi."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.core.source import Source
from errcomp.readers.simulators import amali

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=amali.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


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


def test_a_table_read_as_results_says_what_it_lacks(tmp_path: Path) -> None:
    (results,) = (one for one in amali.FORMATS if one.name == "amali-results")
    assert results.read is not None
    path = text_of(tmp_path, "kernel_id,kernel_name,HW\n1,gemm,5\n")
    with pytest.raises(InputError, match=r"no column of predictions \(AMALi, GCoM, GCoM\+KLL"):
        results.read(Source(path))
