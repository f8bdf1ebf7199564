"""ArchGym: observations with the designs that they belong to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.simulators.archgym import read

FIXTURES = Path(__file__).parents[1] / "data" / "readers" / "archgym-observations"


def test_observations_with_their_designs() -> None:
    found = ingest(FIXTURES / "good")
    columns = ("design", "units_count_1", "scheduling_policy", "quantity", "measured")
    assert found.rows.select(columns).rows()[:4] == [
        (0, 4, "FIFO", "observation-1", 616.5),
        (0, 4, "FIFO", "observation-2", 1.5),
        (0, 4, "FIFO", "observation-3", 0.005),
        (1, 8, "LIFO", "observation-1", 163.25),
    ]
    assert found.notes == ()
    assert found.skipped == ()


def test_observations_alone(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "good" / "observations_feasible.csv", tmp_path)
    found = read(tmp_path)
    assert "only the row number identifies a design" in found.notes[0]
    assert found.rows.columns[-1] == "design"


def test_another_number_of_designs_is_refused() -> None:
    with pytest.raises(InputError, match="1 rows of observations, but 2 rows of actions"):
        read(FIXTURES / "other_length" / "observations_feasible.csv")


def test_another_file_beside_it_is_no_design(tmp_path: Path) -> None:
    path = tmp_path / "observations_feasible.csv"
    path.write_text("observation-1,observation-2\n1,2\n")
    path.with_name("actions_feasible.csv").write_text("a,b\n1,2\n")
    assert "only the row number identifies a design" in read(path).notes[0]


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "archgym")
    assert found.rows.height == 500 * 5
    first = found.rows.filter(design=0)
    assert first["measured"].to_list() == [61642260.502, 1.5, 0.005, 0.005, 58897547.792]
    assert first["units_count_2"][0] == 4
    assert len(found.rows.columns) == 9 + 34
