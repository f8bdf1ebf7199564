"""The embedded tables: what they say of themselves, that they verify, and that they rebuild."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from errcomp import datasets
from errcomp.datasets import neusight
from errcomp.datasets._spec import Column, DatasetSpec
from errcomp.errors import InputError
from errcomp.readers.plain import read_pairs


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the embedded tables that a test may spoil."""
    shutil.copytree(datasets.folder("neusight"), tmp_path / "neusight")
    monkeypatch.setattr(datasets, "folder", lambda name: tmp_path / name)
    return tmp_path / "neusight"


def two_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a dataset of two tables that is not pairs, built by the builder of its spec."""
    columns = {"a": Column("text", "a name"), "b": Column("integer", "a count", "ms")}
    files = {"one.csv": b"a,b\nx,1\n", "two.csv": b"a,b\ny,\n"}
    spec = DatasetSpec(
        title="two tables",
        source="here",
        commit="none",
        licence="MIT",
        reference="",
        tables=dict.fromkeys(files, columns),
        build=lambda source: files,
    )
    monkeypatch.setitem(datasets._MODULES, "pair_of_tables", "errcomp.datasets.neusight")
    monkeypatch.setattr(neusight, "SPEC", spec)


def test_the_neusight_table_is_pairs() -> None:
    pairs = datasets.load("neusight")
    assert (pairs.n, pairs.unit, pairs.subject) == (386, "ms", "neusight")
    assert pairs.source == "dataset neusight"
    groups = {g.key["tool"]: len(g.index) for g in pairs.groups(["tool"])}
    assert groups == {"habitat": 80, "micro": 80, "neusight": 146, "roofline": 80}
    assert len(pairs.where({"tool": "neusight"}).groups(["device"])) == 12
    assert (
        len(pairs.groups(["tool", "device", "model", "mode", "seq_len", "batch", "variant"])) == 386
    )
    assert "measured_operator_sum" in pairs.keys
    assert pairs.dropped == ()


def test_types_and_missing_values() -> None:
    (table,) = datasets.tables("neusight").values()
    assert table.columns == [*datasets.info("neusight").tables[0].columns]
    missing = {name: n for name, n in table.null_count().row(0, named=True).items() if n}
    assert missing == {
        "in_training": 240,
        "operators": 96,
        "operator_rows": 96,
        "measured_operator_sum_ms": 119,
        "predicted_operator_sum_ms": 96,
        "predicted_communication_ms": 96,
        "sum_rule": 96,
    }
    assert table.schema["in_training"] == pl.Boolean
    assert table.schema["batch"] == pl.Int64
    assert (table["layers"] > 0).all()


def test_operators_and_communication_make_up_every_prediction() -> None:
    table = datasets.tables("neusight")["neusight"].drop_nulls("sum_rule")
    whole = table["predicted_operator_sum_ms"] + table["predicted_communication_ms"]
    assert ((whole / table["predicted_ms"] - 1).abs() < 1e-12).all()
    assert table.height == 290
    rules = dict(table.group_by("sum_rule").len().iter_rows())
    assert rules == {
        "sum": 279,
        "sum + all-reduce": 4,
        "sum + exposed all-reduce": 3,
        "sum + 11 transfers": 4,
    }


def test_list_and_info_say_where_it_came_from() -> None:
    assert datasets.names() == tuple(found.name for found in datasets.list())
    info = datasets.info("neusight")
    content = (datasets.folder("neusight") / "neusight.csv").read_bytes()
    assert info.tables[0].sha256 == hashlib.sha256(content).hexdigest()
    assert info.rows == 386
    plain = json.loads(json.dumps(info.to_dict()))
    assert plain["rows"] == 386
    assert plain["licence"].startswith("MIT, Copyright (c) 2025 Georgia Institute of Technology")
    measured = next(c for c in plain["columns"] if c["name"] == "measured_ms")
    assert measured == {
        "table": "neusight.csv",
        "name": "measured_ms",
        "type": "number",
        "unit": "ms",
        "meaning": "measured end-to-end latency",
    }


def test_the_readme_tells_the_same_as_the_code() -> None:
    info = datasets.info("neusight")
    text = (datasets.folder("neusight") / "README.md").read_text(encoding="utf-8")
    for fact in (info.source, info.commit, info.licence, "doi:10.1145/3669940.3707265"):
        assert fact in text
    section = text.split("## Columns")[1].split("## How")[0]
    documented = dict(re.findall(r"^\| (\w+) \| (\w*) ?\|", section, flags=re.MULTILINE))
    del documented["column"]
    assert documented == {name: c.unit for name, c in info.tables[0].columns.items()}


def test_a_file_is_utf8_with_lf_and_exact_numbers() -> None:
    content = (datasets.folder("neusight") / "neusight.csv").read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"\n")
    content.decode("ascii")
    first = content.splitlines()[1].decode().split(",")
    assert all(repr(float(text)) == text for text in (first[13], first[14]))


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match=r"there is no dataset 'mnist'. Datasets: neusight"):
        datasets.load("mnist")


def test_a_modified_table_is_refused(copy: Path) -> None:
    path = copy / "neusight.csv"
    path.write_bytes(path.read_bytes().replace(b"habitat", b"habitaT", 1))
    for use in (datasets.load, datasets.info, datasets.tables):
        with pytest.raises(
            InputError, match=r"neusight.csv: its SHA-256 \(\w{12}…\) is not the one"
        ):
            use("neusight")


@pytest.mark.parametrize("name", ["neusight.csv", "SHA256SUMS"])
def test_a_missing_file_is_an_incomplete_installation(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(InputError, match=f"{name}: cannot be read .*reinstall errcomp"):
        datasets.load("neusight")


def test_in_a_wheel_the_tables_are_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "errcomp"
    monkeypatch.setattr(datasets, "__file__", str(package / "datasets" / "__init__.py"))
    assert datasets.folder("neusight") == tmp_path / "datasets" / "neusight"
    (package / "_datasets").mkdir(parents=True)
    assert datasets.folder("neusight") == package / "_datasets" / "neusight"


def test_several_tables_are_not_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_tables(monkeypatch)
    monkeypatch.setattr(datasets, "folder", lambda name: tmp_path / name)
    written = datasets.build("pair_of_tables", "anywhere", tmp_path / "pair_of_tables")
    assert [path.name for path in written] == ["one.csv", "two.csv", "SHA256SUMS"]
    found = datasets.tables("pair_of_tables")
    assert found["one"].to_dicts() == [{"a": "x", "b": 1}]
    assert found["two"].to_dicts() == [{"a": "y", "b": None}]
    assert datasets.info("pair_of_tables").rows == 2
    with pytest.raises(InputError, match=r"holds tables, not pairs. Use errcomp.datasets.tables"):
        datasets.load("pair_of_tables")
    with pytest.raises(InputError, match=r"has 2 tables, one file cannot hold them. Give a folder"):
        datasets.export("pair_of_tables", tmp_path / "out.csv")
    datasets.export("pair_of_tables", tmp_path / "out")
    assert (tmp_path / "out" / "two.csv").read_bytes() == b"a,b\ny,\n"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "jsonl", "ndjson"])
def test_an_export_reads_back_as_the_same_pairs(tmp_path: Path, suffix: str) -> None:
    path = datasets.export("neusight", tmp_path / "new folder" / f"out.{suffix}")
    names = {"predicted": "predicted_ms", "measured": "measured_ms"}
    back, pairs = read_pairs(path, columns=names), datasets.load("neusight")
    assert back.predicted.tolist() == pairs.predicted.tolist()
    assert back.measured.tolist() == pairs.measured.tolist()
    assert back.column("device").tolist() == pairs.column("device").tolist()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_an_export_of_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown suffix '.xlsx'. Use .csv, .parquet, .json or"):
        datasets.export("neusight", tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"out.csv: cannot be written"):
        datasets.export("neusight", tmp_path / "file" / "out.csv")


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out.csv").write_text("before")

    def interrupted(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        datasets.export("neusight", tmp_path / "out.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "before"


@pytest.mark.shared
def test_the_source_gives_the_same_bytes(shared_data: Path, tmp_path: Path) -> None:
    written = datasets.build("neusight", shared_data / "neusight-artifact", tmp_path)
    assert [path.name for path in written] == ["neusight.csv", "SHA256SUMS"]
    for path in written:
        assert path.read_bytes() == (datasets.folder("neusight") / path.name).read_bytes()


def test_a_source_that_does_not_check_out_builds_nothing(tmp_path: Path) -> None:
    total = {"num_layer": 2, "e2e_latency": 3.0, "fw_latency": 1.0, "bwall_latency": 1.0}
    for folder in ("label/Tesla_T4", "results/prediction/Tesla_T4/neusight"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "gpt2-inf-8-1.json").write_text(json.dumps(total))
    with pytest.raises(InputError, match=r"2 checks failed, no table is derived from it: label/T"):
        datasets.build("neusight", tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
