"""``errcomp ingest --table kernels``: the operators of an artifact as a table that can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.readers import kernels

Run = Callable[..., Any]


#: Two of twelve devices: one with all four predictors, one with that of the artifact alone.
DEVICES = ("Tesla_V100-PCIE-32GB", "AMD_Instinct_MI100")


@pytest.fixture
def artifact(shared_data: Path, tmp_path: Path) -> Path:
    """The artifact with the devices above alone."""
    of_devices = [
        f"{folder}/{one}" for folder in ("label", "results/prediction") for one in DEVICES
    ]
    for place in ("data", "summary", *of_devices):
        part = tmp_path / "neusight-artifact" / "scripts" / "asplos" / place
        part.parent.mkdir(parents=True, exist_ok=True)
        part.symlink_to(shared_data / "neusight-artifact" / "scripts" / "asplos" / place)
    return tmp_path / "neusight-artifact"


@pytest.mark.shared
def test_what_is_written_is_read_as_kernels(run: Run, artifact: Path, tmp_path: Path) -> None:
    source, path = artifact, tmp_path / "kernels.parquet"
    ran = run("ingest", "neusight", source, "--table", "kernels", "-o", path)
    assert (ran.code, "wrote 6525 rows" in ran.err) == (0, True)
    assert "0 failed checks" in ran.err
    ours, theirs = kernels.read(path, tool="neusight"), kernels.read(source)
    assert (ours.unit, ours.runs) == ("ms", theirs.runs)
    for name in ("predicted", "measured", "run_measured"):
        np.testing.assert_array_equal(getattr(ours.totals(), name), getattr(theirs.totals(), name))


@pytest.mark.slow
@pytest.mark.shared
def test_rows_can_be_chosen(run: Run, shared_data: Path, tmp_path: Path) -> None:
    argv = ("ingest", "neusight", shared_data / "neusight-artifact", "-o")
    path = tmp_path / "kernels.csv"
    where = ("--where", "device=A100-40G,V100", "--where", "tool=neusight")
    assert run(*argv, path, "--table", "kernels", *where).code == 0
    found = kernels.read(path)
    assert (found.tools, set(found.device)) == (("neusight",), {"A100-40G", "V100"})
    pairs = tmp_path / "pairs.parquet"
    ran = run(*argv, pairs, "--where", "device=H100", "--where", "tool=neusight")
    assert "wrote 34 rows" in ran.err
    assert pl.read_parquet(pairs)["device"].unique().to_list() == ["H100"]
    none = run(*argv, tmp_path / "none.csv", "--table", "kernels", "--where", "device=X")
    assert (none.code, "no row has device=X. Values of device: A100-40G" in none.err) == (2, True)
    assert not (tmp_path / "none.csv").exists()


def test_a_table_is_named_once(run: Run, tmp_path: Path) -> None:
    argv = ("ingest", "neusight", ".", "-o", tmp_path / "x.csv")
    ran = run(*argv, "--table", "kernels", "--level", "model")
    assert (ran.code, "only be read as pairs (--table pairs" in ran.err) == (2, True)
    ran = run(*argv, "--table", "kernels")
    assert (ran.code, "not the NeuSight artifact" in ran.err) == (2, True)
    ran = run(*argv, "--table", "operators")
    assert (ran.code, "invalid choice: 'operators'" in ran.err) == (2, True)
    assert "kernels" in run("ingest", "--help").out
    assert list(tmp_path.iterdir()) == []
