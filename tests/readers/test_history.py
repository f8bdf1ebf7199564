"""Tables of validations in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.history import read


def test_versions_of_everything_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text(
        "round,driver,stack_cuda,predictor_version,op,measured\n"
        "1.10,550.10,12.10,2.0,a,1\n1.9,550.9,12.9,1.0,a,2\n",
        encoding="utf-8",
    )
    found = read(path, columns={"version": "round", "stack_driver": "driver"})
    assert found.versions == ("1.9", "1.10")
    assert found.column("stack_cuda").tolist() == ["12.10", "12.9"]
    assert found.column("stack_driver").tolist() == ["550.10", "550.9"]
    assert found.column("predictor_version").tolist() == ["2.0", "1.0"]
    assert found.column("op").tolist() == ["a", "a"]


def test_options_and_lines_reach_the_history(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("version,measured\nbeef,1\ncafe,2\n", encoding="utf-8")
    found = read(path, order=["cafe", "beef"], unit="ms")
    assert (found.versions, found.unit) == (("cafe", "beef"), "ms")
    path.write_text("version,measured\n1,1\n2,-2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"h.csv: measured must be positive.*line 3"):
        read(path)
