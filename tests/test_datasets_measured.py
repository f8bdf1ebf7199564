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
    "torch-cpu": (PHASED_COLUMNS, 0.3),
    "torch-cuda": (PHASED_COLUMNS, 0.05),
}


@pytest.fixture(params=MEASURED)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def protocols_of(name: str) -> dict[str, dict[str, object]]:
    """Return the protocol of each device."""
    paths = sorted(datasets.folder(name).glob("protocol*.json"))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    assert len(found) == (2 if name == "torch-cuda" else 1)
    return {one["device"]: one for one in found}


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
    kernels, protocols = datasets.load(name), protocols_of(name)
    assert set(kernels.column("device")) == set(protocols)
    devices = kernels.per_run("device")
    for device, protocol in protocols.items():
        models, pieces = protocol["models"], protocol["pieces"]
        assert isinstance(models, dict)
        assert isinstance(pieces, list)
        variants = set(kernels.column("variant"))
        assert list(devices).count(device) == len(models) * len(variants)
        assert {one["model"] for one in models.values()} == set(kernels.column("model"))
        assert set(kernels.column("version")) == {protocol["version"]}
        # Where it was measured whatever else ran, nothing else did.
        assert not any(piece["anyway"] and piece["other_cores"] > 0.05 for piece in pieces)
        how = protocol["protocol"]
        assert isinstance(how, dict)
        assert [piece["piece"] for piece in pieces] == list(range(how["rounds"] * how["parts"]))


def test_devices_of_one_dataset_were_measured_alike() -> None:
    same = [
        {key: one[key] for key in ("unit", "version", "protocol", "versions", "models")}
        for one in protocols_of("torch-cuda").values()
    ]
    assert same[0] == same[1]
    kernels = datasets.load("torch-cuda")
    runs: dict[str, set[str]] = {device: set() for device in protocols_of("torch-cuda")}
    for run in kernels.run:
        device, _, rest = str(run).partition("/")
        runs[device].add(rest)
    assert len({frozenset(one) for one in runs.values()}) == 1


def test_the_readme_tells_the_same(name: str) -> None:
    info, protocols = datasets.info(name), protocols_of(name)
    text = (datasets.folder(name) / "README.md").read_text(encoding="utf-8")
    versions = {str(protocol["version"]) for protocol in protocols.values()}
    for fact in (f"{info.rows} rows", *protocols, *versions, info.licence):
        assert fact in text
    section = text.split("## Columns")[1].split("## ")[0]
    documented = dict(re.findall(r"^\| (\w+) \| (\w*) ?\|", section, flags=re.MULTILINE))
    del documented["column"]
    assert documented == {column: c.unit for column, c in MEASURED[name][0].items()}


@pytest.mark.parametrize(
    ("name", "variants", "runs"),
    [("torch-cuda", {"eager"}, 72), ("torch-cpu", {"eager", "compile"}, 48)],
)
def test_phases_take_the_time_of_a_training_step(name: str, variants: set[str], runs: int) -> None:
    table = datasets.tables(name)[name]
    assert set(table["phase"]) == {"forward", "backward", "optimizer"}
    of_phase = table.filter(pl.col("phase_measured").is_not_null()).unique(["run", "phase"])
    assert (set(of_phase["variant"]), set(of_phase["mode"])) == (variants, {"training"})
    assert of_phase.height == 3 * runs
    share = of_phase.group_by("run").agg(pl.sum("phase_measured") / pl.first("run_measured"))
    assert share["phase_measured"].min() > 0.85  # type: ignore[operator]
    assert share["phase_measured"].max() < 1.001  # type: ignore[operator]


def collected(name: str, source: Path) -> Path:
    """Write what the collector wrote: for several devices, a folder of each."""
    folder = datasets.folder(name)
    header, *rows = (folder / f"{name}.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    for path in folder.glob("protocol*.json"):
        text = path.read_text(encoding="utf-8")
        one = source / path.stem.partition("-")[2]
        one.mkdir(parents=True, exist_ok=True)
        (one / "protocol.json").write_text(text, encoding="utf-8")
        prefix = "" if one == source else json.loads(text)["device"] + "/"
        of_it = [row.removeprefix(prefix) for row in rows if row.startswith(prefix)]
        (one / "kernels.csv").write_text("".join([header, *of_it]), encoding="utf-8")
    return source


def test_it_is_what_the_collector_wrote(tmp_path: Path, name: str) -> None:
    written = datasets.build(name, collected(name, tmp_path / "collected"), tmp_path / "out")
    assert [path.name for path in written] == [
        f"{name}.csv",
        *sorted(path.name for path in datasets.folder(name).glob("protocol*.json")),
        "SHA256SUMS",
    ]
    for path in written:
        assert path.read_bytes() == (datasets.folder(name) / path.name).read_bytes()


def test_two_folders_of_one_device_are_refused(tmp_path: Path) -> None:
    source = collected("ort-cpu", tmp_path / "source")
    for folder in ("a", "b"):
        (source / folder).mkdir()
        for file in ("kernels.csv", "protocol.json"):
            (source / folder / file).write_bytes((source / file).read_bytes())
    for file in ("kernels.csv", "protocol.json"):
        (source / file).unlink()
    with pytest.raises(InputError, match=r"b: .* is measured in another folder of .*Keep one"):
        datasets.build("ort-cpu", source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, r"kernels\.csv: cannot be read \(No such file.*Give the folder that a script"),
        ({"kernels.csv": "run\n"}, r"protocol\.json: cannot be read"),
        (
            {"kernels.csv": "run,time\n", "protocol.json": "{}"},
            r"its columns are not those that .* got 'run, time'",
        ),
        ({"kernels.csv": "", "protocol.json": "{}"}, r"its columns are not those that"),
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
