"""Reading tables of kernels: every form of file, the artifact, and what each bad one is told."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers import kernels
from errcomp.readers.learned import neusight
from errcomp.tables import Kernels

CSV = (
    "run,kernel,kernel_class,count,predicted,measured,run_measured,device,stream\n"
    "007,matmul,BMM,12,1.5,1.75,40,A,1\n"
    "007,add,VEC,24,0.5,,40,A,2\n"
    "08,reshape,misc,1,0,0,3,1.10,1\n"
)


def test_kernels_of_whole_runs_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "k.csv"
    path.write_text("run,kernel,count,predicted\n007,matmul,12,1.5\n007,add,24,0.5\n")
    one, other = (kernels.read(path, unit="ms", whole_runs=whole) for whole in (False, True))
    assert one.runs == other.runs == ("007",)
    assert len(one) == len(other) == 2


def forms() -> dict[str, str | bytes]:
    frame = pl.read_csv(io.StringIO(CSV), schema_overrides=dict.fromkeys(
        ("run", "device", "stream"), pl.String))  # fmt: skip
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    rows = frame.to_dicts()
    return {
        "k.csv": CSV,
        "k.tsv": CSV.replace(",", "\t"),
        "k.csv.gz": gzip.compress(CSV.encode(), mtime=0),
        "k.parquet": buffer.getvalue(),
        "k.json": json.dumps(rows),
        "k_rows.json": json.dumps({"rows": rows}),
        "k.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
    }


FORMS = forms()


@pytest.mark.parametrize("name", FORMS)
def test_one_table_in_every_form(write: Any, name: str) -> None:
    path = write(name, FORMS[name])
    found = kernels.read(path, unit="us")
    assert isinstance(found, Kernels)
    assert (found.runs, found.unit, found.source) == (("007", "08"), "us", str(path))
    assert found.kernel.tolist() == ["matmul", "add", "reshape"]
    assert found.count.tolist() == [12, 24, 1]
    assert found.predicted.tolist() == [1.5, 0.5, 0.0]
    assert np.isnan(found.measured).tolist() == [False, True, False]
    assert found.device.tolist() == ["A", "A", "1.10"]
    assert found.column("stream").tolist() == ["1", "2", "1"]
    totals = found.totals()
    assert totals.predicted.tolist() == [30.0, 0.0]
    assert totals.run_measured.tolist() == [40.0, 3.0]
    assert found.unmeasured == ("007",)
    assert not kernels.is_artifact(path)


def test_columns_may_have_other_names(write: Any) -> None:
    path = write("k.csv", "gpu,op,ms\n1.10,a,2\n1.1,a,3\n")
    columns = {"device": "gpu", "kernel": "op", "predicted": "ms"}
    found = kernels.read(path, columns=columns)
    assert found.device.tolist() == ["1.10", "1.1"]
    assert found.totals().predicted.tolist() == [5.0]


def test_one_tool_of_a_file(write: Any) -> None:
    path = write("k.csv", "tool,kernel,predicted\nx,a,2\ny,a,3\n")
    assert kernels.read(path).n == 2
    assert kernels.read(path, tool="y").predicted.tolist() == [3.0]
    with pytest.raises(InputError, match="no tool 'z'. Tools in the table: x, y"):
        kernels.read(path, tool="z")
    with pytest.raises(InputError, match="The table has no column 'tool'"):
        kernels.read(write("l.csv", "kernel,predicted\na,1\n"), tool="x")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "the file is empty"),
        ("a.csv", "kernel,predicted\n", "a header without rows"),
        ("a.csv", "kernel,kernel,predicted\na,b,1\n", "line 1: the header names 'kernel' more"),
        ("a.csv", "kernel,p\na,1\n", "missing column predicted or measured. Columns found: kern"),
        ("a.csv", "run,predicted\na,1\n", "missing column kernel or kernel_class"),
        ("a.csv", "kernel,predicted\na,-1\n", "predicted must be finite and ≥ 0, got -1.0 in line"),
        ("a.csv", "kernel,predicted\na,inf\n", "predicted must be finite and ≥ 0, got inf in li"),
        (
            "a.csv",
            "kernel,predicted\na,1ms\nb,2\n",
            "predicted must be a number, got '1ms' in line 2",
        ),
        (
            "a.csv",
            "kernel;predicted\na;1,5\n",
            "predicted must be .* got '1,5' in line 2. If this is a decimal comma",
        ),
        (
            "a.csv",
            "kernel,predicted,count\na,1,1.5\n",
            "count must be a whole .* got 1.5 in line 2",
        ),
        ("a.csv", "kernel,predicted,count\na,1,\n", "count is missing in line 2"),
        ("a.csv", "kernel,predicted,count\na,1,two\n", "count must be a number, got 'two' in line"),
        ("a.csv", "kernel,predicted,unit\na,1,ms\nb,1,us\n", "mixed units: 'ms' and 'us'"),
        ("a.csv", "kernel,predicted\n,1\n", "kernel is missing in line 2"),
        (
            "a.jsonl",
            '{"kernel": "a", "count": true, "predicted": 1}\n',
            "count must be a column of",
        ),
        ("a.json", '[{"kernel": {"a": 1}, "predicted": 1}]', "kernel must be one value per row"),
        ("a.parquet", "kernel,predicted\na,1\n", "not Parquet"),
    ],
)
def test_bad_files_are_told_what_is_wrong(
    write: Any, name: str, content: str, message: str
) -> None:
    path = write(name, content)
    with pytest.raises(InputError, match=message) as caught:
        kernels.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_paths_that_are_neither(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=" no such file"):
        kernels.read(tmp_path / "none.csv")
    with pytest.raises(InputError, match="no file in it could be read"):
        kernels.read(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        kernels.read(tmp_path / ("x" * 300))
    for path in (tmp_path, tmp_path / "none", tmp_path / ("x" * 300), "a\0b"):
        assert not kernels.is_artifact(path)


# A small artifact of our own making: one configuration of two layers, its operators measured.
H100 = "NVIDIA_H100_80GB_HBM3"


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    def total(latency: float) -> str:
        values = {"e2e_latency": latency, "fw_latency": latency, "bwall_latency": 0.0}
        return json.dumps({"num_layer": 2} | values)

    label = tmp_path / "label" / H100
    tools = [tmp_path / "results" / "prediction" / H100 / tool for tool in ("micro", "neusight")]
    for folder in (label, *tools):
        folder.mkdir(parents=True)
    (label / "gpt2-inf-8-1.json").write_text(total(12.0))
    (label / "gpt2-inf-8-1.csv").write_text(
        "_input_nodes,latency,fw_latency,output_shape,Name\n"
        '{},0.0,0.0,"(1, 8)",wte\n{wte: None},2.0,2.0,"(1, 8)",transformer_h_0_ln\n'
        '{transformer_h_0_ln: None},4.0,4.0,"(1, 8)",transformer_ln_f\n'
    )
    for folder, ln in zip(tools, (3.0, 1.5), strict=True):
        (folder / "gpt2-inf-8-1.json").write_text(total(2 * ln + 1))
        (folder / "gpt2-inf-8-1.csv").write_text(
            "Name,OpName,Prev,OutputShape,fw_latency,e2e_latency\n"
            'wte,misc,set(),"(1, 8)",0.0,0.0\n'
            f"transformer_h_0_ln,VECln,{{'wte'}},\"(1, 8)\",{ln},{ln}\n"
            "transformer_ln_f,VECln,{'transformer_h_0_ln'},\"(1, 8)\",1.0,1.0\n"
        )
    return tmp_path


def test_the_operators_of_an_artifact(artifact: Path) -> None:
    assert kernels.is_artifact(artifact)
    found = kernels.read(artifact)
    assert (found.tools, found.unit, found.n) == (("neusight",), "ms", 3)
    assert found.kernel_class.tolist() == ["misc", "VECln", "VECln"]
    assert (found.predicted[0], found.measured[0]) == (0.0, 0.0)  # costs nothing, and stays
    assert found.column("shape").tolist() == ["(1, 8)"] * 3
    totals = found.totals()
    assert totals.run.tolist() == [f"{H100}/gpt2-inf-8-1"]
    assert (totals.predicted[0], totals.measured[0], totals.run_measured[0]) == (4.0, 8.0, 12.0)
    assert (totals.kernels[0], totals.instances[0]) == (3, 4)
    assert {name: values[0] for name, values in totals.keys.items()} == {
        "tool": "neusight",
        "device": "H100",
        "model": "gpt2",
        "mode": "inference",
        "batch": 1,
        "seq_len": 8,
        "variant": "base",
    }
    assert kernels.read(artifact, tool="micro").totals().predicted.tolist() == [7.0]
    assert kernels.read(artifact, tool="all").tools == ("micro", "neusight")


def test_an_artifact_has_its_own_columns_and_predictors(artifact: Path) -> None:
    for options in ({"unit": "ms"}, {"columns": {"predicted": "p"}}):
        with pytest.raises(InputError, match="output of a tool, so its columns and unit are known"):
            kernels.read(artifact, **options)  # type: ignore[arg-type]
    for wrong in ("gpt", ""):
        with pytest.raises(InputError, match="no predictions of .*Predictors: micro, neusight"):
            kernels.read(artifact, tool=wrong)
    with pytest.raises(InputError, match="no tool 'habitat'. Tools in the table: micro, neusight"):
        neusight.read(artifact).kernels_of("habitat")


def test_an_artifact_without_operators_says_so(artifact: Path) -> None:
    for path in artifact.rglob("*.csv"):
        path.unlink()
    with pytest.raises(InputError, match=r"no usable kernels \(the table is empty\)"):
        kernels.read(artifact)


@pytest.mark.slow
@pytest.mark.shared
def test_the_real_artifact(shared_data: Path) -> None:
    found = neusight.read(shared_data / "neusight-artifact")
    ours = found.kernels_of()
    assert (ours.n, ours.n_runs, len(set(ours.ids))) == (29_363, 110, 29_363)
    assert found.kernels_of("all").n == 51_629
    totals = ours.totals()
    known = ~np.isnan(totals.measured)
    assert known.sum() == 87
    assert len(set(totals.keys["device"][known])) == 8
    assert set(totals.keys["variant"][known]) == {"base"}
    assert (len(ours.unmeasured), totals.complete.all()) == (23, True)
    # Operators were timed one by one: their sum is not the latency.
    share = totals.measured[known] / totals.run_measured[known]
    assert (round(share.min(), 2), round(share.max(), 2)) == (0.59, 1.54)
    # Predicted operators add up to the prediction, except where communication is hidden.
    pairs = found.pairs.of_tool("neusight")
    names = ("device", "model", "mode", "seq_len", "batch", "variant")
    rows = zip(*(pairs.column(name) for name in names), strict=True)
    whole = dict(zip(rows, pairs.predicted, strict=True))
    runs = zip(*(totals.keys[name] for name in names), strict=True)
    excess = totals.predicted / np.asarray([whole[run] for run in runs]) - 1
    hidden = totals.keys["variant"] == "dp4"
    assert np.abs(excess[~hidden]).max() < 1e-9
    assert (excess[hidden] > 0.04).all()
    again = kernels.read(shared_data / "neusight-artifact" / "scripts" / "asplos")
    assert again.predicted.tolist() == ours.predicted.tolist()
