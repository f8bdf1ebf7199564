"""The tables that the project measured itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from errcomp import datasets
from errcomp.datasets.measured import COLUMNS, PHASED_COLUMNS
from errcomp.errors import InputError

#: The columns of each, and the least that kernels may be of their run: a GPU waits for its host.
MEASURED = {
    "ort-cpu": (COLUMNS, 0.3),
    "torch-cpu": (COLUMNS, 0.3),
    "torch-cuda": (PHASED_COLUMNS, 0.05),
}


@pytest.fixture(params=MEASURED)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def protocol_of(name: str) -> dict[str, object]:
    found = json.loads((datasets.folder(name) / "protocol.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_it_is_a_table_of_measured_runs(name: str) -> None:
    kernels = datasets.load(name)
    assert (kernels.unit, kernels.source) == ("ms", f"dataset {name}")
    assert (kernels.dropped, kernels.unmeasured) == ((), ())
    assert np.isnan(kernels.predicted).all()
    totals = kernels.totals()
    assert (totals.run_measured > 0).all()
    # Profiled operators take most of a run, and the profiler's own time at most as much again.
    ratio = totals.measured / totals.run_measured
    assert ratio.min() > MEASURED[name][1]
    assert ratio.max() < 3
    assert len(set(kernels.column("model"))) >= 6
    assert len(set(kernels.column("variant"))) == 2
    # The same kernel is not in two rows of a run, unless in another phase or by another operator.
    phases = kernels.column("phase") if "phase" in MEASURED[name][0] else [""] * kernels.n
    rows = zip(kernels.run, kernels.kernel, kernels.kernel_class, phases, strict=True)
    assert len(set(rows)) == kernels.n


def test_the_protocol_covers_what_was_measured(name: str) -> None:
    protocol, kernels = protocol_of(name), datasets.load(name)
    models, pieces = protocol["models"], protocol["pieces"]
    assert isinstance(models, dict)
    assert isinstance(pieces, list)
    variants = set(kernels.column("variant"))
    assert kernels.n_runs == len(models) * len(variants)
    assert {one["model"] for one in models.values()} == set(kernels.column("model"))
    assert set(kernels.column("version")) == {protocol["version"]}
    # Where it was measured whatever else ran, nothing else did.
    assert not any(piece["anyway"] and piece["other_cores"] > 0.05 for piece in pieces)
    how = protocol["protocol"]
    assert isinstance(how, dict)
    assert [piece["piece"] for piece in pieces] == list(range(how["rounds"] * how["parts"]))


def test_the_readme_tells_the_same(name: str) -> None:
    info, protocol = datasets.info(name), protocol_of(name)
    text = (datasets.folder(name) / "README.md").read_text(encoding="utf-8")
    for fact in (f"{info.rows} rows", protocol["device"], str(protocol["version"]), info.licence):
        assert str(fact) in text
    section = text.split("## Columns")[1].split("## ")[0]
    documented = dict(re.findall(r"^\| (\w+) \| (\w*) ?\|", section, flags=re.MULTILINE))
    del documented["column"]
    assert documented == {column: c.unit for column, c in MEASURED[name][0].items()}


def test_phases_take_the_time_of_an_eager_training_step() -> None:
    kernels = datasets.load("torch-cuda")
    table = datasets.tables("torch-cuda")["torch-cuda"]
    assert set(table["phase"]) == {"forward", "backward", "optimizer"}
    of_phase = table.filter(pl.col("phase_measured").is_not_null()).unique(["run", "phase"])
    assert set(zip(of_phase["variant"], of_phase["mode"], strict=True)) == {("eager", "training")}
    assert of_phase.height == 3 * kernels.n_runs // 4
    share = of_phase.group_by("run").agg(pl.sum("phase_measured") / pl.first("run_measured"))
    assert share["phase_measured"].min() > 0.9  # type: ignore[operator]
    assert share["phase_measured"].max() <= 1.0  # type: ignore[operator]


def test_it_is_what_the_collector_wrote(tmp_path: Path, name: str) -> None:
    source = tmp_path / "collected"
    source.mkdir()
    table = (datasets.folder(name) / f"{name}.csv").read_bytes()
    (source / "kernels.csv").write_bytes(table)
    (source / "protocol.json").write_bytes((datasets.folder(name) / "protocol.json").read_bytes())
    written = datasets.build(name, source, tmp_path / "out")
    assert [path.name for path in written] == [f"{name}.csv", "protocol.json", "SHA256SUMS"]
    for path in written:
        assert path.read_bytes() == (datasets.folder(name) / path.name).read_bytes()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, r"kernels\.csv: cannot be read \(No such file.*Give the folder that a script"),
        ({"kernels.csv": "run\n"}, r"protocol\.json: cannot be read"),
        (
            {"kernels.csv": "run,time\n", "protocol.json": "{}"},
            r"not the columns that .* got 'run, time'",
        ),
        ({"kernels.csv": "", "protocol.json": "{}"}, r"not the columns that"),
        ({"kernels.csv": "COLUMNS", "protocol.json": "{}"}, r"parts of the measurement are miss"),
        ({"kernels.csv": "COLUMNS", "protocol.json": "{"}, r"protocol.json: not valid JSON"),
        ({"kernels.csv": "\xff", "protocol.json": "{}"}, r"kernels.csv: not valid UTF-8"),
    ],
)
def test_what_no_collector_wrote(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    for file, text in files.items():
        text = ",".join(COLUMNS) + "\n" if text == "COLUMNS" else text
        (tmp_path / file).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=expected):
        datasets.build("ort-cpu", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
