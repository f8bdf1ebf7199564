"""The reader of the NeuSight artifact on a small artifact of our own making."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers import read
from errcomp.readers.core.ingest import ingest
from errcomp.readers.learned import neusight
from errcomp.readers.learned.neusight.files import Operator
from errcomp.readers.learned.neusight.operators import (
    add_up,
    by_phase,
    match_operators,
    repeat_counts,
)

H100, V100 = "NVIDIA_H100_80GB_HBM3", "Tesla_V100-PCIE-32GB"
PREDICTED = "Name,OpName,Prev,OutputShape,fw_latency,e2e_latency\n"
MEASURED = "_input_nodes,latency,fw_latency,output_shape,Name\n"


def total(layers: float | None, forward: float, backward: float = 0.0) -> str:
    values = {"e2e_latency": forward + backward, "fw_latency": forward, "bwall_latency": backward}
    return json.dumps({"num_layer": layers} | values)


class Artifact:
    """Writes the files of a configuration where the artifact has them."""

    def __init__(self, root: Path) -> None:
        self.root = root / "scripts" / "asplos"
        self.write("data/device_configs/NVIDIA_B200.json", "{}")
        self.write("summary/.keep", "")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def label(self, name: str, text: str | bytes) -> Path:
        return self.write(f"label/{name}", text)

    def prediction(self, name: str, text: str | bytes, tool: str = "neusight") -> Path:
        device, file = name.split("/")
        return self.write(f"results/prediction/{device}/{tool}/{file}", text)


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    """One configuration with operators: 2 layers of 2 operators, one operator before and after."""
    made = Artifact(tmp_path)
    made.label(f"{H100}/gpt2-inf-8-1.json", total(2, 12.0))
    made.label(
        f"{H100}/gpt2-inf-8-1.csv",
        MEASURED
        + '{},1.0,1.0,"(1, 8)",wte\n'
        + '{wte: None},2.0,2.0,"(1, 8)",transformer_h_0_ln\n'
        + '{transformer_h_0_ln: None},3.0,3.0,"(1, 8)",add\n'
        + '{add: None},4.0,4.0,"(1, 8)",transformer_ln_f\n',
    )
    made.prediction(f"{H100}/gpt2-inf-8-1.json", total(2, 10.0))
    made.prediction(
        f"{H100}/gpt2-inf-8-1.csv",
        PREDICTED
        + 'wte,EMBEDDING,set(),"(1, 8)",1.0,1.0\n'
        + "transformer_h_0_ln,VECln,{'wte'},\"(1, 8)\",1.5,1.5\n"
        + "add,VECadd,{'transformer_h_0_ln'},\"(1, 8)\",2.5,2.5\n"
        + "transformer_ln_f,VECln,{'add'},\"(1, 8)\",1.0,1.0\n",
    )
    return made


def test_a_configuration_and_its_operators(artifact: Artifact) -> None:
    seen: list[tuple[int, int]] = []
    found = neusight.read(artifact.root, progress=lambda done, n: seen.append((done, n)))
    assert seen == [(1, 1)]
    assert found.pairs.n == 1
    assert found.pairs.unit == "ms"
    assert found.pairs.subject == "neusight"
    assert (found.pairs.measured[0], found.pairs.predicted[0]) == (12.0, 10.0)
    facts = {key: found.pairs.column(key)[0] for key in found.pairs.keys}
    assert facts == {
        "tool": "neusight",
        "level": "model",
        "reference": "hardware",
        "device": "H100",
        "vendor": "NVIDIA",
        "model": "gpt2",
        "mode": "inference",
        "seq_len": 8,
        "batch": 1,
        "variant": "base",
        "devices": 1,
        "layers": 2,
        "in_training": False,
        "in_distribution": None,
        "operators": 6,
        "operator_rows": 4,
        "measured_operator_sum": 15.0,
        "predicted_operator_sum": 10.0,
        "predicted_communication": 0.0,
        "sum_rule": "sum",
        "device_name": H100,
        "measured_forward": 12.0,
    }
    assert found.kernels["count"].to_list() == [1, 2, 2, 1]
    assert found.kernels["measured"].to_list() == [1.0, 2.0, 3.0, 4.0]
    assert found.kernels["run"].unique().to_list() == [f"{H100}/gpt2-inf-8-1"]
    assert found.report.failed_checks == ()


def test_an_operator_has_a_row_for_each_phase_in_which_it_works(artifact: Artifact) -> None:
    artifact.label(f"{H100}/gpt2-train-8-1.json", total(2, 10.0, 14.0))
    artifact.label(
        f"{H100}/gpt2-train-8-1.csv",
        MEASURED
        + '{},1.0,1.0,"(1, 8)",view\n'
        + '{view: None},5.0,2.0,"(1, 8)",transformer_h_0_ln\n'
        + '{transformer_h_0_ln: None},3.0,3.0,"(1, 8)",getitem\n'
        + '{getitem: None},4.0,1.0,"(1, 8)",transformer_ln_f\n',
    )
    artifact.prediction(f"{H100}/gpt2-train-8-1.json", total(2, 9.0, 6.5))
    artifact.prediction(
        f"{H100}/gpt2-train-8-1.csv",
        PREDICTED
        + 'view,misc,set(),"(1, 8)",0.0,0.0\n'
        + "transformer_h_0_ln,VECln,{'view'},\"(1, 8)\",1.5,3.5\n"
        + "getitem,getitem,{'transformer_h_0_ln'},\"(1, 8)\",2.5,3.25\n"
        + "transformer_ln_f,VECln,{'getitem'},\"(1, 8)\",1.0,2.0\n",
    )
    found = neusight.read(artifact.root)
    kernels = found.kernels_of().where({"mode": "training"})
    rows = zip(
        *(kernels.column(name).tolist() for name in ("kernel", "phase", "phase_measured")),
        kernels.count.tolist(),
        kernels.measured.tolist(),
        kernels.predicted.tolist(),
        strict=True,
    )
    assert [*rows] == [
        ("view", "forward", 10.0, 1, 1.0, 0.0),
        ("transformer_h_0_ln", "forward", 10.0, 2, 2.0, 1.5),
        ("transformer_h_0_ln", "backward", 14.0, 2, 3.0, 2.0),
        # Its backward pass is predicted, but does not run.
        ("getitem", "forward", 10.0, 2, 3.0, 3.25),
        ("transformer_ln_f", "forward", 10.0, 1, 1.0, 1.0),
        ("transformer_ln_f", "backward", 14.0, 1, 3.0, 1.0),
    ]
    inference = found.kernels_of().where({"mode": "inference"})
    assert set(inference.column("phase")) == {"forward"}
    assert np.isnan(inference.column("phase_measured")).all()
    assert found.kernels_of().totals().predicted.tolist() == [10.0, 15.5]


def test_without_measured_operators_a_predicted_backward_pass_is_a_row() -> None:
    operators = pl.DataFrame(
        {
            "kernel": ["ln", "allreduce", "view"],
            "kernel_class": ["VECln", "allreduce", "misc"],
            "measured": pl.Series([None] * 3, dtype=pl.Float64),
            "measured_forward": pl.Series([None] * 3, dtype=pl.Float64),
            "predicted": [3.0, 2.0, 0.0],
            "predicted_forward": [1.0, 0.5, 0.0],
        }
    )
    rows = by_phase(operators).select("kernel", "phase", "predicted").rows()
    assert rows == [
        ("ln", "forward", 1.0),
        ("ln", "backward", 2.0),
        ("allreduce", None, 2.0),
        ("view", "forward", 0.0),
    ]


def test_the_root_and_the_folder_inside_are_the_same_artifact(artifact: Artifact) -> None:
    outer = read(artifact.root.parents[1])
    inner = neusight.read(artifact.root)
    assert outer.kernels.native.equals(inner.kernels_of("all").native)
    assert outer.pairs.native.equals(inner.pairs.native)
    assert outer.notes[0] == str(inner.report).splitlines()[0]


def test_columns_and_unit_are_not_for_an_artifact(artifact: Artifact) -> None:
    with pytest.raises(InputError, match="are known. Leave out columns= and unit="):
        read(artifact.root, unit="ms")


def test_what_has_no_partner_is_counted_and_listed(artifact: Artifact) -> None:
    artifact.label(f"{H100}/gpt2-inf-8-2.json", total(2, 1.0))
    artifact.prediction(f"{H100}/gpt2-inf-8-4.json", total(2, 1.0))
    artifact.prediction(f"{H100}/gpt2-inf-8-1.json", total(2, 9.0), tool="habitat")
    artifact.label(f"{H100}/notes.json", "not read")
    found = neusight.read(artifact.root)
    report = found.report
    assert report.labels == 2
    assert report.predictions == {"habitat": 1, "neusight": 2}
    assert report.pairs == {"habitat": 1, "neusight": 1}
    assert report.without_prediction["neusight"] == (f"{H100}/gpt2-inf-8-2",)
    assert report.without_label == {"habitat": (), "neusight": (f"{H100}/gpt2-inf-8-4",)}
    assert report.without_operators == {"habitat": (f"{H100}/gpt2-inf-8-1",), "neusight": ()}
    assert report.ignored == (f"label/{H100}/notes.json",)
    assert found.pairs.column("in_training").tolist() == [None, False]
    text = str(report)
    assert f"\n  1 predicted without measurement: {H100}/gpt2-inf-8-4\n1 files ignored: " in text
    assert json.loads(json.dumps(report.to_dict()))["pairs"] == {"habitat": 1, "neusight": 1}


def test_only_the_predictors_asked_for(artifact: Artifact) -> None:
    artifact.prediction(f"{H100}/gpt2-inf-8-1.json", total(2, 9.0), tool="habitat")
    found = neusight.read(artifact.root, predictors=["habitat"])
    assert found.pairs.column("tool").tolist() == ["habitat"]
    assert found.pairs.subject is None
    with pytest.raises(InputError, match=r"no predictions of magic. Predictors: habitat, neusight"):
        neusight.read(artifact.root, predictors=["magic"])


def test_a_device_that_only_the_artifact_knows_keeps_its_name(artifact: Artifact) -> None:
    artifact.label("NVIDIA_B200/gpt2-train-8-1-dp4.json", total(0, 3.0))
    artifact.prediction("NVIDIA_B200/gpt2-train-8-1-dp4.json", total(2, 3.0))
    pairs = neusight.read(artifact.root).pairs.where({"device": "NVIDIA_B200"})
    assert pairs.column("vendor").tolist() == ["NVIDIA"]
    assert pairs.column("in_training").tolist() == [None]
    assert pairs.column("devices").tolist() == [4]
    assert pairs.column("variant").tolist() == ["dp4"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("other", r"other: no such folder"),
        (
            "data",
            "not the NeuSight artifact: neither this folder nor its scripts/asplos/ holds "
            r"label/ and results/prediction/\.",
        ),
    ],
)
def test_a_folder_that_is_not_the_artifact(artifact: Artifact, where: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        neusight.read(artifact.root / where)


def test_an_unknown_device_names_those_that_are_known(artifact: Artifact) -> None:
    artifact.label("GTX_750/gpt2-inf-8-1.json", total(2, 1.0))
    with pytest.raises(InputError, match=r"unknown device 'GTX_750'.*one of AMD_.*Tesla_V100"):
        neusight.read(artifact.root)


def test_nothing_measured_and_predicted(tmp_path: Path) -> None:
    made = Artifact(tmp_path)
    made.label(f"{H100}/gpt2-inf-8-1.json", total(2, 1.0))
    made.prediction(f"{H100}/gpt2-inf-8-2.json", total(2, 1.0))
    with pytest.raises(InputError, match="no configuration was both measured and predicted"):
        neusight.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n"num_layer": 2,\n"e2e_lat', r"line 3: not valid JSON .* may be incomplete"),
        ("[1, 2]", "it lacks num_layer, e2e_latency, fw_latency, bwall_latency"),
        ('{"num_layer": 2}', "it lacks e2e_latency, fw_latency, bwall_latency"),
        (total(2, 0.0), r"e2e_latency must be positive, got 0"),
        (total(2, float("inf")), r"e2e_latency must be a finite number ≥ 0, got inf"),
        (total(2, float("nan")), r"e2e_latency must be a finite number ≥ 0, got nan"),
        (total(2, -1.0), r"e2e_latency must be a finite number ≥ 0, got -1.0"),
        (total(2, 1.0).replace("1.0", '"fast"'), r"must be a finite number ≥ 0, got 'fast'"),
        (total(float("inf"), 1.0), r"num_layer must be an integer from 0 to 10000, got inf"),
        (total(True, 1.0), r"num_layer must be an integer from 0 to 10000, got True"),
        (b"\xff\xfe\x00", r"cannot be read as text"),
    ],
)
def test_totals_that_cannot_be_used_name_the_file(
    artifact: Artifact, text: str | bytes, expected: str
) -> None:
    path = artifact.label(f"{H100}/gpt2-inf-8-1.json", text)
    with pytest.raises(InputError, match=expected) as caught:
        neusight.read(artifact.root)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PREDICTED, r"no operators after the header"),
        ("", r"line 1: missing columns Name, e2e_latency, fw_latency, OutputShape, Prev, OpName\."),
        ("Name,OpName\n", r"line 1: missing columns e2e_latency, fw_latency, OutputShape, Prev\."),
        (PREDICTED + "a,b,c\n", r"line 2: 3 fields, expected 6. The file may be incomplete"),
        (PREDICTED + "a,b,set(),(),1.0,1.", r"line 2: the file is cut off"),
        (PREDICTED + 'a,b,set(),"(),1.0,1.0\n', r"line \d: not valid CSV"),
        (PREDICTED + "a,b,set(),(),1.0,1.0\na,b,set(),(),1.0,x\n", r"line 3: e2e_latency must be"),
        (PREDICTED + "a,b,set(),(),nan,1.0\n", r"line 2: fw_latency must be .* got 'nan'"),
        (PREDICTED + "a,b,set(),(),-1,1.0\n", r"line 2: fw_latency must be .* got '-1'"),
    ],
)
def test_operator_files_that_cannot_be_used_name_the_line(
    artifact: Artifact, text: str, expected: str
) -> None:
    path = artifact.prediction(f"{H100}/gpt2-inf-8-1.csv", text)
    with pytest.raises(InputError, match=expected) as caught:
        neusight.read(artifact.root)
    assert str(path) in str(caught.value)


def test_checks_that_fail_are_in_the_report(artifact: Artifact) -> None:
    artifact.label(f"{H100}/gpt2-inf-8-1.json", total(3, 12.0).replace('cy": 12.0', 'cy": 12.5', 1))
    artifact.prediction(f"{H100}/gpt2-inf-8-1.json", total(2, 10.1))
    artifact.write(
        "summary/summary.csv",
        "device,model_name,mode,seqlen,batch,option,OOD,label_all_e2e_latency,"
        f"neusight_all_e2e_latency\n{H100},gpt2,inf,8,1,,True,12.5,\n",
    )
    found = neusight.read(artifact.root)
    checks = {f.check: f.detail for f in found.report.failed_checks}
    assert checks == {
        "forward + backward = end to end": "12.0 and 12.5 ms",
        "same number of layers": "3 measured, 2 predicted",
        "same neusight_all_e2e_latency as summary.csv": "nothing in summary.csv, 10.1 ms here",
        "predicted operators sum to the prediction": "sum 10.0 ms, prediction 10.1 ms (sum)",
    }
    assert found.pairs.column("in_distribution").tolist() == [False]
    assert "4 failed checks" in str(found.report)
    assert len(found.report.to_dict()["failed_checks"]) == 4


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "mode\nquick\n", b"\xff\n", 'device\n"\x00'])
def test_a_summary_that_is_none(artifact: Artifact, text: str | bytes) -> None:
    artifact.write("summary/summary.csv", text)
    with pytest.raises(InputError, match=r"summary.csv: not the summary of the artifact"):
        neusight.read(artifact.root)


def test_operators_of_an_unknown_network_are_left_out_and_counted(artifact: Artifact) -> None:
    for kind, header in (("label", MEASURED), ("prediction", PREDICTED)):
        row = {"label": "{},1,1,(),conv\n", "prediction": "conv,Conv,set(),(),1,1\n"}[kind]
        getattr(artifact, kind)(f"{H100}/gpt2-inf-8-1.csv", header + row)
    found = neusight.read(artifact.root)
    assert found.kernels.height == 0
    assert found.pairs.column("operators").tolist() == [None]
    assert found.report.without_operators == {"neusight": (f"{H100}/gpt2-inf-8-1",)}
    assert [f.check for f in found.report.failed_checks] == [
        "operators repeat",
        "rule for the sum of operators",
    ]
    assert "no operator name shows its layer" in found.report.failed_checks[0].detail


def test_measured_operators_of_another_network_are_not_joined(artifact: Artifact) -> None:
    artifact.label(
        f"{H100}/gpt2-inf-8-1.csv",
        MEASURED + "{},1,1,(),transformer_h_0_ln\n{},1,1,(),transformer_ln_f\n",
    )
    found = neusight.read(artifact.root)
    assert found.kernels["measured"].null_count() == 4
    assert [f.check for f in found.report.failed_checks] == [
        "measured and predicted operators are the same"
    ]


def operators(*rows: tuple[str, str, float, float], shape: str = "") -> list[Operator]:
    """(name, kind, forward, backward) each."""
    return [Operator(n, k, f + b, f, b, shape, ()) for n, k, f, b in rows]


def test_all_layers_present_means_no_repetition() -> None:
    names = ["embed", "transformer_h_0_a", "transformer_h_1_a~add", "x~transformer_ln_f"]
    assert repeat_counts(names, 2) == [1, 1, 1, 1]


def test_bert_ends_with_the_last_operator_of_its_layer() -> None:
    names = ["embed", "bert_encoder_layer_0_q", "add", "bert_encoder_layer_0_norm", "getitem"]
    assert repeat_counts(names, 24) == [1, 24, 24, 24, 1]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["conv1", "fc"], "no operator name shows its layer"),
        (["transformer_h_0_a", "transformer_h_1_a"], "operators of 2 layers, expected 1 or all 3"),
        (["transformer_h_0_a", "head"], "no operator transformer_ln_f after layer 0"),
        (["transformer_ln_f", "transformer_h_0_a"], "no operator transformer_ln_f after layer 0"),
    ],
)
def test_an_unknown_naming_is_an_error(names: list[str], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        repeat_counts(names, 3)


def test_tensor_parallel_waits_for_every_all_reduce() -> None:
    trace = operators(("a", "Linear", 1, 2), ("r", "allreduce", 0.25, 0.25), ("b", "Linear", 3, 4))
    total = add_up(trace, [10, 10, 1], "tp4")
    assert (total.operators, total.rows) == (11, 2)
    assert (total.compute, total.communication) == (37.0, 5.0)


@pytest.mark.parametrize(
    ("reduce_first", "reduce_last", "exposed"),
    [
        (1.0, 0.5, 1.0),  # the last gradient has nothing behind which to hide
        (1.0, 5.0, 4.0),  # the first takes longer than the rest of the backward pass: 5 + 1 - 2
        (1.0, 20.0, 19.0),  # more than twice of what it could hide behind: 7 + 20 + 1 - 9
        (0.0, 0.0, 0.0),
    ],
)
def test_data_parallel_exposes_what_the_backward_pass_does_not_hide(
    reduce_first: float, reduce_last: float, exposed: float
) -> None:
    trace = operators(
        ("first_grad", "allreduce", 0, reduce_first),
        ("first", "Linear", 1, 2),
        ("last_grad", "allreduce", 0, reduce_last),
        ("last", "Linear", 1, 7),
    )
    total = add_up(trace, [1, 1, 1, 1], "dp4")
    assert (total.compute, total.communication) == (11.0, exposed)


def test_data_parallel_repeats_the_layers_in_order() -> None:
    # Three layers, reduced 3 each and computed 2 each: only the first 2 of 9 ms are waited for
    # after the gradient is there, the rest queues: 3 + 3 + 3 - 2 - 2.
    trace = operators(("embed", "EMBEDDING", 0, 0), ("g", "allreduce", 0, 3), ("a", "Linear", 1, 2))
    assert add_up(trace, [1, 3, 3], "dp4").communication == 5.0


def test_a_pipeline_of_four_stages_adds_eleven_transfers() -> None:
    trace = operators(("a", "Linear", 1, 2), ("s", "sendrecv", 0.5, 0.5))
    total = add_up(trace, [36, 36], "pp4_1")
    assert (total.compute, total.communication, total.operators) == (108.0, 5.5, 36)


@pytest.mark.parametrize(("variant", "kind"), [("pp4_4", "sendrecv"), ("base", "allreduce")])
def test_communication_without_a_rule_is_an_error(variant: str, kind: str) -> None:
    with pytest.raises(
        InputError, match=f"errcomp has no rule for the communication of the variant '{variant}'"
    ):
        add_up(operators(("a", "Linear", 1, 2), ("s", kind, 1, 1)), [1, 1], variant)


def graph(*rows: tuple[str, tuple[str, ...], str]) -> list[Operator]:
    return [Operator(name, "", 0, 0, 0, shape, inputs) for name, inputs, shape in rows]


def test_operators_listed_in_another_order_are_matched_by_dataflow() -> None:
    # The same network: x → mask, x → embed, both → out; each list numbers its additions anew.
    first = graph(
        ("x", (), "(1,)"),
        ("add", ("x",), "(1,)"),
        ("add_1", ("x",), "(8,)"),
        ("out", ("add", "add_1"), "(8,)"),
    )
    second = graph(
        ("x", (), "(1,)"),
        ("add", ("x",), "(8,)"),
        ("add_1", ("x",), "(1,)"),
        ("out", ("add", "add_1"), "(8,)"),
    )
    assert match_operators(first, second) is None  # same names, other shapes: not joined by name
    second = [second[0], second[2], second[1], second[3]]
    assert match_operators(first, second) == [0, 1, 2, 3]
    assert match_operators(second, first) == [0, 1, 2, 3]


def test_what_follows_tells_operators_apart() -> None:
    first = graph(("a", (), "s"), ("b", (), "s"), ("f", ("a",), "s"), ("g", ("b",), "s"))
    second = graph(("b", (), "s"), ("a", (), "s"), ("g", ("b",), "s"), ("f", ("a",), "s"))
    assert match_operators(first, second) == [1, 0, 3, 2]


def test_another_network_has_no_match() -> None:
    first = graph(("a", (), "s"), ("f", ("a",), "s"))
    assert match_operators(first, graph(("a", (), "s"), ("h", ("a",), "s"))) is None
    assert match_operators(first, graph(("a", (), "s"))) is None


def test_the_folder_is_read_as_rows_of_models_and_kernels(artifact: Artifact) -> None:
    found = ingest(artifact.root)
    assert found.formats == ("neusight-artifact",)
    assert (set(found.rows["quantity"]), set(found.rows["unit"])) == ({"time"}, {"ms"})
    models = found.rows.filter(level="model")
    assert models.select("tool", "device", "model", "predicted", "measured").rows() == [
        ("neusight", "H100", "gpt2", 10.0, 12.0)
    ]
    operators = found.rows.filter(level="kernel")
    assert operators.select("kernel", "count", "predicted", "measured").rows() == [
        ("wte", 1, 1.0, 1.0),
        ("transformer_h_0_ln", 2, 1.5, 2.0),
        ("add", 2, 2.5, 3.0),
        ("transformer_ln_f", 1, 1.0, 4.0),
    ]
    report = str(neusight.read(artifact.root).report)
    assert [*found.notes] == report.splitlines()
