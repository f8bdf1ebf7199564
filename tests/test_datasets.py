"""The built-in tables: what they say of themselves, that they verify, and that they rebuild."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from errcomp import datasets
from errcomp.cli import main
from errcomp.datasets import neusight
from errcomp.datasets._spec import Column, DatasetSpec
from errcomp.datasets.inputs import pairs_from, pairs_in_memory
from errcomp.errors import InputError
from errcomp.readers import kernels as kernels_reader
from errcomp.readers.core.output import Output
from errcomp.readers.plain import read_pairs
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows

#: The datasets made from the NeuSight artifact.
OF_THE_ARTIFACT = ("neusight", "neusight-kernels")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the built-in tables that a test may spoil."""
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
    monkeypatch.setitem(neusight.SPECS, "pair_of_tables", spec)


def small_artifact(
    root: Path, total: float, *operators: tuple[str, str, str, float, float]
) -> None:
    """Write an artifact of one run of three layers, predicted as this and measured as 50 ms.

    Operators: name, class, shape, predicted and measured.
    """
    predicted = ["Name,OpName,Prev,OutputShape,fw_latency,e2e_latency"]
    measured = ["Name,output_shape,_input_nodes,fw_latency,latency"]
    for name, kind, shape, guess, time in operators:
        predicted.append(f'{name},{kind},set(),"{shape}",{guess},{guess}')
        measured.append(f'{name},"{shape}",{{}},{time},{time}')
    for folder, latency, lines in (
        ("label/NVIDIA_H100_80GB_HBM3", 50.0, measured),
        ("results/prediction/NVIDIA_H100_80GB_HBM3/neusight", total, predicted),
    ):
        (root / folder).mkdir(parents=True)
        file = root / folder / "gpt2-inf-8-1.csv"
        file.write_text("\n".join(lines) + "\n")
        values = {"num_layer": 3, "e2e_latency": latency, "fw_latency": latency, "bwall_latency": 0}
        file.with_suffix(".json").write_text(json.dumps(values))


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


@pytest.mark.parametrize("name", datasets.names())
def test_a_dataset_carries_the_notice_that_its_licence_asks_for(name: str) -> None:
    folder, licence = datasets.folder(name), datasets.info(name).licence
    owners = re.findall(r"MIT, (Copyright \(c\) \d{4} [^;,]+)", licence)
    # What takes nothing from a licensed source would need no notice; there is no such table.
    assert owners, f"{name}: of no licence that this test knows: {licence}"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    notice = " ".join((folder / "LICENSE").read_text(encoding="utf-8").split())
    for owner in owners:
        assert f"MIT, {owner}; its notice is in `LICENSE`" in readme
        assert owner in notice
    for part in ("Permission is hereby granted", "this permission notice shall be", '"AS IS"'):
        assert part in notice


def test_no_protocol_names_the_build_of_a_system() -> None:
    protocols = sorted(datasets.folder("ort-cpu").parent.glob("*/protocol*.json"))
    assert len(protocols) == 5
    for path in protocols:
        system = json.loads(path.read_text(encoding="utf-8"))["machine"]["system"]
        assert re.fullmatch(r"Linux \d+(\.\d+)*", system), path


@pytest.mark.parametrize("name", OF_THE_ARTIFACT)
def test_the_readme_tells_the_same_as_the_code(name: str) -> None:
    info = datasets.info(name)
    text = (datasets.folder(name) / "README.md").read_text(encoding="utf-8")
    rows = f"{info.rows} rows"
    for fact in (info.source, info.commit, info.licence, "doi:10.1145/3669940.3707265", rows):
        assert fact in text
    section = text.split("## Columns")[1].split("## How")[0]
    documented = dict(re.findall(r"^\| (\w+) \| (\w*) ?\|", section, flags=re.MULTILINE))
    del documented["column"]
    assert documented == {name: c.unit for name, c in info.tables[0].columns.items()}


@pytest.mark.parametrize(
    ("name", "numbers"), [("neusight", (13, 14)), ("neusight-kernels", (12, 14))]
)
def test_a_file_is_utf8_with_lf_and_exact_numbers(name: str, numbers: tuple[int, int]) -> None:
    content = (datasets.folder(name) / f"{name}.csv").read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"\n")
    content.decode("ascii")
    first = content.splitlines()[1].decode().split(",")
    assert all(repr(float(first[i])) == first[i] for i in numbers)


def test_the_kernels_are_a_table_of_kernels() -> None:
    kernels = datasets.load("neusight-kernels")
    assert (kernels.n, kernels.n_runs, kernels.unit) == (3853, 87, "ms")
    assert kernels.source == "dataset neusight-kernels"
    assert (kernels.dropped, kernels.incomplete, kernels.unmeasured) == ((), (), ())
    assert len(set(kernels.device)) == 8
    assert kernels.runs[0] == "MI100/bert_large/inference/512/8"
    parts = [kernels.column(name) for name in ("device", "model", "mode", "seq_len", "batch")]
    assert ["/".join(map(str, p)) for p in zip(*parts, strict=True)] == kernels.run.tolist()
    # What the predictor cannot tell apart is one row, and every row takes time.
    shape, phase = kernels.column("shape"), kernels.column("phase")
    same = (kernels.run, kernels.kernel_class, shape, kernels.predicted, phase)
    assert len(set(zip(*same, strict=True))) == kernels.n
    assert (kernels.measured > 0).all()
    assert all(re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text) for text in set(shape))


def test_training_has_two_phases_that_make_up_its_time() -> None:
    table = datasets.tables("neusight-kernels")["neusight-kernels"]
    assert set(table.filter(mode="inference")["phase"]) == {"forward"}
    assert table.filter(mode="inference")["phase_measured"].null_count() == 2055
    phases = table.filter(mode="training").unique(["run", "phase"])
    assert phases.height == 2 * 31
    whole = phases.group_by("run").agg(pl.sum("phase_measured"), pl.first("run_measured"))
    shares = whole["phase_measured"] / whole["run_measured"]
    assert shares.to_list() == pytest.approx([1.0] * 31, rel=1e-12)


def test_the_kernels_add_up_to_the_pairs() -> None:
    totals = datasets.load("neusight-kernels").totals()
    pairs = datasets.tables("neusight")["neusight"]
    pairs = pairs.filter((pl.col("tool") == "neusight") & (pl.col("variant") == "base"))
    pairs = pairs.drop_nulls("measured_operator_sum_ms")
    key = pl.concat_str("device", "model", "mode", "seq_len", "batch", separator="/")
    rows = {row.pop("run"): row for row in pairs.with_columns(run=key).to_dicts()}
    found = pl.DataFrame([rows.pop(run) for run in totals.run])
    assert rows == {}
    assert totals.predicted.tolist() == pytest.approx(found["predicted_ms"].to_list(), rel=1e-12)
    sums = found["measured_operator_sum_ms"].to_list()
    assert totals.measured.tolist() == pytest.approx(sums, rel=3e-7)
    assert totals.run_measured.tolist() == found["measured_ms"].to_list()
    # The README says how many operators there are, how many of them are left out, and how many
    # rows of the traces also work backwards.
    kernels = datasets.load("neusight-kernels")
    forward = kernels.column("phase") == "forward"
    assert found["operators"].sum() == 199_355
    assert kernels.count[forward].sum() == 199_355 - 13_130
    assert totals.instances.sum() == 199_355 - 13_130 + 19_069


def test_each_dataset_loads_as_the_table_that_it_holds() -> None:
    assert datasets.kernel_tables() == (
        "neusight-kernels",
        "ort-cpu",
        "torch-cpu",
        "torch-cuda",
    )
    names = [name for name in datasets.names() if name != "survey"]
    assert {name: type(datasets.load(name)).__name__ for name in names} == {
        "neusight": "Pairs",
        **dict.fromkeys(datasets.kernel_tables(), "Kernels"),
        **dict.fromkeys(datasets.histories(), "History"),
    }
    with pytest.raises(
        InputError, match=r"holds several tables. Use errcomp.datasets.tables\('survey'"
    ):
        datasets.load("survey")
    with pytest.raises(InputError, match="there is no dataset 'mnist'"):
        datasets.load("mnist")


def test_commands_for_pairs_say_what_the_kernels_are_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in ("audit", "metrics"):
        assert main([command, "neusight-kernels"]) == 2
        assert "Use `errcomp propagate neusight-kernels`" in capsys.readouterr().err


def test_the_listing_says_what_a_dataset_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["name"]: row["holds"] for row in rows} == {
        "neusight": "pairs",
        "neusight-kernels": "kernels",
        "ort-cpu": "kernels",
        "ort-releases": "history",
        "survey": "tables",
        "torch-cpu": "kernels",
        "torch-cuda": "kernels",
    }
    assert main(["datasets", "list"]) == 0
    assert re.search(r"neusight-kernels +kernels +3,853 ", capsys.readouterr().out)


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match=r"there is no dataset 'mnist'. Datasets: neusight"):
        datasets.load("mnist")


def test_a_modified_table_is_refused(copy: Path) -> None:
    path = copy / "neusight.csv"
    path.write_bytes(path.read_bytes().replace(b"habitat", b"habitaT", 1))
    for use in (datasets.load, datasets.info, datasets.tables):
        with pytest.raises(
            InputError, match=r"neusight.csv: its SHA-256 \(\w{12}…\) differs from "
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
    with pytest.raises(InputError, match=r"holds several tables. Use errcomp.datasets.tables"):
        datasets.load("pair_of_tables")
    with pytest.raises(
        InputError, match=r"has 2 tables, which one file cannot hold. Give a folder"
    ):
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


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_an_export_reads_back_as_the_same_kernels(tmp_path: Path, suffix: str) -> None:
    path = datasets.export("neusight-kernels", tmp_path / f"out.{suffix}")
    back, kernels = kernels_reader.read(path, unit="ms"), datasets.load("neusight-kernels")
    assert (back.keys, back.runs) == (kernels.keys, kernels.runs)
    for name in ("count", "predicted", "measured", "run_measured", "kernel"):
        assert getattr(back, name).tolist() == getattr(kernels, name).tolist()


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
@pytest.mark.parametrize("name", OF_THE_ARTIFACT)
def test_the_source_gives_the_same_bytes(name: str, shared_data: Path, tmp_path: Path) -> None:
    written = datasets.build(name, shared_data / "neusight-artifact", tmp_path)
    assert [path.name for path in written] == [f"{name}.csv", "SHA256SUMS"]
    for path in written:
        assert path.read_bytes() == (datasets.folder(name) / path.name).read_bytes()


def test_operators_that_the_predictor_cannot_tell_apart_are_one_row(tmp_path: Path) -> None:
    small_artifact(
        tmp_path / "in",
        21.000000003,
        ("wte", "EMBEDDING", "(1, 8)", 1.0, 1.1),
        ("transformer_h_0_ln", "VECln", "(1, 8)", 2.0, 2.1),
        ("weight", "misc", "(8, 8)", 0.0, 0.0),
        ("view", "misc", "(8,)", 0.0, 0.01),
        ("norm", "VECln", "(8, 1)", 2.0, 2.7),
        ("other", "VECrn", "(1, 8)", 2.0, 2.8),
        ("small", "VECln", "(1, 8)", 1e-9, 0.01),
        ("transformer_ln_f", "VECln", "(1, 8)", 2.0, 2.5),
        ("output", "output", "(1, 8)", 0.0, 0.0),
    )
    path, _ = datasets.build("neusight-kernels", tmp_path / "in", tmp_path / "out")
    head, *lines = path.read_text().splitlines()
    assert head.startswith("run,device,model,mode,seq_len,batch,kernel,kernel_class,shape,phase,")
    run = "H100/gpt2/inference/8/1,H100,gpt2,inference,8,1,"
    assert [line.removeprefix(run) for line in lines] == [
        "wte,EMBEDDING,1x8,forward,,1,1.0,1.1,50.0",
        "transformer_h_0_ln,VECln,1x8,forward,,4,2.0,2.2,50.0",
        "view,misc,8,forward,,3,0.0,0.01,50.0",
        "norm,VECln,8x1,forward,,3,2.0,2.7,50.0",
        "other,VECrn,1x8,forward,,3,2.0,2.8,50.0",
        "small,VECln,1x8,forward,,3,1e-09,0.01,50.0",
    ]


def test_an_artifact_without_measured_operators_builds_no_kernels(tmp_path: Path) -> None:
    small_artifact(tmp_path / "in", 6.0, ("bert_encoder_layer_0_add", "VECadd", "(8,)", 2.0, 2.0))
    (label,) = (tmp_path / "in" / "label").rglob("*.csv")
    label.unlink()
    with pytest.raises(InputError, match=r"no operators were measured. Give the artifact with"):
        datasets.build("neusight-kernels", tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_source_that_does_not_check_out_builds_nothing(tmp_path: Path) -> None:
    total = {"num_layer": 2, "e2e_latency": 3.0, "fw_latency": 1.0, "bwall_latency": 1.0}
    for folder in ("label/Tesla_T4", "results/prediction/Tesla_T4/neusight"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "gpt2-inf-8-1.json").write_text(json.dumps(total))
    with pytest.raises(InputError, match=r"2 checks failed, so no table is built: label/T"):
        datasets.build("neusight", tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "name"), [("load_kernels", "ort-cpu"), ("load_history", "ort-releases")]
)
def test_the_old_loaders_warn(old: str, name: str) -> None:
    with pytest.warns(
        DeprecationWarning, match=f"errcomp.datasets.{old} is now errcomp.datasets.load"
    ):
        table = getattr(datasets, old)(name)
    assert table.source == f"dataset {name}"
    with (
        pytest.warns(DeprecationWarning, match="is now"),
        pytest.raises(InputError, match=f"'neusight' holds no .* Datasets that do: .*{name}"),
    ):
        getattr(datasets, old)("neusight")


SIDES = {"predicted": "sim", "measured": "hw"}
TABLE = {"sim": [11.0, 9.0, 5.0], "hw": [10.0, 12.0, 0.0]}


def test_every_kind_of_table_gives_its_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl.DataFrame(TABLE).write_csv(tmp_path / "a.csv")
    (tmp_path / "parts").mkdir()
    for i in range(2):
        pl.DataFrame(TABLE).slice(2 * i, 2).write_parquet(tmp_path / "parts" / f"{i}.parquet")
    for table in (tmp_path / "a.csv", str(tmp_path / "*.csv"), TABLE, pl.DataFrame(TABLE)):
        for function in (pairs_from, pairs_in_memory):
            pairs = function(table, **SIDES, unit="us", zeros="exclude")
            assert isinstance(pairs, Pairs)
            assert (pairs.unit, pairs.predicted.tolist()) == ("us", [11.0, 9.0])
            assert function(pairs) is pairs
    for table in (pl.LazyFrame(TABLE), tmp_path / "parts"):
        rows = pairs_from(table, **SIDES, unit="us", zeros="exclude")
        assert isinstance(rows, PairRows)
        assert (rows.unit, rows.n) == ("us", 2)
        with pytest.raises(InputError, match="these pairs stay in Polars"):
            pairs_in_memory(rows)
    lazy = pairs_in_memory(pl.LazyFrame(TABLE), **SIDES, zeros="exclude")
    assert lazy.measured.tolist() == [10.0, 12.0]
    # A file is preferred to a built-in table of the same name.
    assert pairs_from("neusight").n == pairs_in_memory("neusight").n == 386
    monkeypatch.chdir(tmp_path)
    Path("neusight").write_text("predicted,measured\n11,10\n")
    assert pairs_from("neusight").n == 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"predicted": "x", "unit": "ms"}, "predicted, unit"),
        ({"measured": "x", "missing": "exclude"}, "measured, missing"),
        ({"zeros": "exclude"}, "zeros"),
    ],
)
def test_the_columns_of_a_table_of_errcomp_are_known(given: dict[str, str], named: str) -> None:
    pairs = Pairs({"predicted": [1.0], "measured": [2.0]})
    output = Output(pl.DataFrame(), ("x",), ("a.csv",), tables={"pairs": lambda: pairs})
    assert pairs_from(output) is pairs
    assert pairs_from(pairs, missing="keep", zeros="raise") is pairs
    for table in (pairs, output):
        with pytest.raises(InputError, match=rf"are known\. Leave out {named}, or pass a"):
            pairs_from(table, **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"its columns and unit are known\. Leave out {named}\.$"):
        pairs_from("neusight", **given)  # type: ignore[arg-type]


def test_a_name_of_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("")
    for name, message in (
        (
            f"{tmp_path}/reslts.csv",
            rf"Did you mean '{tmp_path}/results\.csv'\? Built-in: neusight$",
        ),
        ("neusihgt", r"Did you mean 'neusight'\? Built-in: neusight$"),
        (f"{tmp_path}/no/x.csv", "built-in table of pairs of that name. Built-in: neusight$"),
        ("torch-cpu", "^torch-cpu is a table of kernels, not of pairs.$"),
        ("https://host/x.csv", "^https://host/x.csv: errcomp reads nothing from the network"),
    ):
        with pytest.raises(InputError, match=message):
            pairs_from(name)
