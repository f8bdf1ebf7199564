"""What holds for the real artifact: its counts, its figures and the rules about its operators."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.readers.learned import neusight
from errcomp.readers.learned.neusight.files import parse_stem, read_operators, read_total
from errcomp.readers.learned.neusight.operators import add_up, match_operators, repeat_counts

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def root(shared_data: Path) -> Path:
    return shared_data / "neusight-artifact" / "scripts" / "asplos"


@pytest.fixture(scope="module")
def artifact(root: Path) -> neusight.NeusightArtifact:
    return neusight.read(root)


@pytest.mark.slow
def test_counts(artifact: neusight.NeusightArtifact) -> None:
    report = artifact.report
    assert report.labels == 149
    assert report.predictions == {"habitat": 132, "micro": 132, "neusight": 224, "roofline": 132}
    assert report.pairs == {"habitat": 80, "micro": 80, "neusight": 146, "roofline": 80}
    assert report.without_prediction["neusight"] == (
        "NVIDIA_A100-PCIE-40GB/switchxl4-inf-2048-1",
        "NVIDIA_A100-PCIE-40GB/switchxl4-inf-2048-2",
        "NVIDIA_L4/switch4-inf-512-1",
    )
    assert {tool: len(found) for tool, found in report.without_label.items()} == {
        "habitat": 52,
        "micro": 52,
        "neusight": 78,
        "roofline": 52,
    }
    assert {tool: len(found) for tool, found in report.without_operators.items()} == {
        "habitat": 20,
        "micro": 20,
        "neusight": 36,
        "roofline": 20,
    }
    assert len(report.without_measured_operators) == 59
    assert report.ignored == ()


def test_every_check_holds(artifact: neusight.NeusightArtifact) -> None:
    assert artifact.report.failed_checks == ()


# Device, mode, n, MAPE and largest APE of NeuSight, percent.
TABLE = [
    ("V100", "inference", 10, 5.87, 16.06),
    ("V100", "training", 3, 8.91, 13.61),
    ("H100", "inference", 16, 8.74, 24.57),
    ("H100", "training", 18, 6.60, 17.62),
    ("A100-40G", "inference", 16, 8.63, 17.65),
    ("A100-40G-SXM", "training", 3, 10.51, 12.87),
    ("A100-80G", "training", 10, 7.59, 27.90),
    ("L4", "inference", 11, 14.07, 28.24),
    ("L4", "training", 3, 7.24, 15.59),
    ("P100", "inference", 5, 7.07, 19.49),
    ("P4", "inference", 3, 27.10, 65.30),
    ("T4", "inference", 5, 18.51, 35.34),
    ("MI100", "inference", 8, 10.80, 23.09),
    ("MI100", "training", 3, 15.62, 22.79),
    ("MI210", "inference", 10, 8.40, 14.21),
    ("MI210", "training", 6, 15.73, 33.04),
    ("MI250", "inference", 10, 7.66, 17.07),
    ("MI250", "training", 6, 15.81, 32.91),
]


@pytest.mark.parametrize(("device", "mode", "n", "mape", "worst"), TABLE)
def test_errors_per_device(
    artifact: neusight.NeusightArtifact,
    device: str,
    mode: str,
    n: int,
    mape: float,
    worst: float,
) -> None:
    pairs = artifact.pairs.where({"tool": "neusight", "device": device, "mode": mode})
    errors = 100 * np.abs(pairs.predicted - pairs.measured) / pairs.measured
    assert pairs.n == n
    assert errors.mean() == pytest.approx(mape, abs=0.005)
    assert errors.max() == pytest.approx(worst, abs=0.005)


def test_the_table_is_complete(artifact: neusight.NeusightArtifact) -> None:
    pairs = artifact.pairs.where({"tool": "neusight"})
    groups = {tuple(g.key.values()): len(g.index) for g in pairs.groups(["device", "mode"])}
    assert groups == {(device, mode): n for device, mode, n, _, _ in TABLE}


@pytest.mark.parametrize(("step", "sums"), [(8, 63), pytest.param(1, 412, marks=pytest.mark.slow)])
def test_operators_of_every_file_of_every_predictor_add_up(
    root: Path, step: int, sums: int
) -> None:
    """Also of those that were never measured: 432 files, four predictors.

    Every eighth of those whose operators are just added up, and all of those with another rule.
    """
    worst: dict[str, float] = defaultdict(float)
    files: dict[str, int] = defaultdict(int)
    without_rule = []
    for i, path in enumerate(sorted((root / "results" / "prediction").glob("*/*/*.csv"))):
        configuration = parse_stem(path.parents[1].name, path.stem)
        assert configuration is not None
        if configuration.variant == "base" and i % step:
            continue
        expected = read_total(path.with_suffix(".json"))
        operators = read_operators(path, measured=False)
        counts = repeat_counts([o.name for o in operators], int(expected["num_layer"]))
        try:
            total = add_up(operators, counts, configuration.variant)
        except InputError:
            without_rule.append(configuration.run)
            continue
        difference = abs(total.total / expected["e2e_latency"] - 1)
        files[total.rule] += 1
        worst[total.rule] = max(worst[total.rule], difference)
    assert files == {
        "sum": sums,
        "sum + all-reduce": 6,
        "sum + exposed all-reduce": 6,
        "sum + 11 transfers": 6,
    }
    assert max(worst.values()) < 1e-13
    assert without_rule == [
        "NVIDIA_H100_80GB_HBM3/gpt2_large-train-1024-16-pp4_4",
        "NVIDIA_H100_80GB_HBM3/gpt2_large-train-1024-4-pp4_4",
    ]


def test_no_other_repetition_would_do(root: Path) -> None:
    """One operator more or less in the repeated layer is visible: the check can fail."""
    path = root / "results/prediction/NVIDIA_H100_80GB_HBM3/neusight/gpt2_large-inf-1024-4.csv"
    expected = read_total(path.with_suffix(".json"))["e2e_latency"]
    operators = read_operators(path, measured=False)
    counts = repeat_counts([o.name for o in operators], 36)
    end = max(i for i, n in enumerate(counts) if n == 36)
    assert operators[end + 1].name == "transformer_ln_f"
    for i, n in ((end, 1), (end + 1, 36)):
        other = [*counts[:i], n, *counts[i + 1 :]]
        assert abs(add_up(operators, other, "base").total / expected - 1) > 1e-3


def test_operators_agree_with_the_authors_sums_per_class(
    artifact: neusight.NeusightArtifact, root: Path
) -> None:
    """The summary holds the sum of each class, measured and predicted: written by others."""
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    columns = ("run", "tool", "kernel_class", "count", "measured", "predicted")
    for run, tool, kind, n, measured, predicted in artifact.kernels.select(columns).iter_rows():
        if measured is not None:
            sums[run, "label", kind] += n * measured if tool == "neusight" else 0.0
            sums[run, tool, kind] += n * predicted
    compared = 0
    with (root / "summary" / "summary.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            option = f"-{row['option']}" if row["option"] else ""
            stem = f"{row['model_name']}-{row['mode']}-{row['seqlen']}-{row['batch']}{option}"
            run = f"{row['device']}/{stem}"
            for who in ("label", "neusight", "habitat", "micro", "roofline"):
                for kind in ("BMM", "Linear", "VECln", "VECsoftmax", "VECadd", "VECmulu"):
                    text = row[f"{who}_{kind}_e2e_latency"]
                    if text and (run, who, kind) in sums:
                        assert sums[run, who, kind] == pytest.approx(float(text), rel=1e-11)
                        compared += 1
    # 60 configurations on NVIDIA, five columns, six classes.
    assert compared == 60 * 5 * 6


def test_the_authors_split_is_by_device_and_network(artifact: neusight.NeusightArtifact) -> None:
    pairs = artifact.pairs.where({"tool": "neusight"})
    new_device = np.isin(pairs.column("device").astype(str), ["H100", "L4", "A100-80G"])
    new_model = np.isin(pairs.column("model").astype(str), ["gpt3_xl", "gpt3_27", "opt_13"])
    assert pairs.column("in_distribution").tolist() == (~(new_device | new_model)).tolist()
    # On NVIDIA, with networks that were seen, the split is the training devices of the paper.
    seen = (pairs.column("vendor") == "NVIDIA") & ~new_model
    in_training = pairs.column("in_training")[seen].tolist()
    assert in_training == pairs.column("in_distribution")[seen].tolist()
    assert in_training.count(False) == 39


@pytest.mark.parametrize("by", ["device and network", "device"])
def test_the_published_errors_per_class_follow_from_that_split(root: Path, by: str) -> None:
    columns = {"BMM": "BMM", "FC": "Linear", "EW": "VEC", "Softmax": "VECsoftmax", "LN": "VECln"}
    tools = {"Roofline": "roofline", "Habitat": "habitat", "Li et al.": "micro"}
    held_out = ("NVIDIA_H100_80GB_HBM3", "NVIDIA_L4", "NVIDIA_A100_80GB_PCIe")
    with (root / "summary" / "summary.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with (root / "summary" / "perop.csv").open(newline="") as stream:
        _, kinds, *published = list(csv.reader(stream))
    agree = 0
    for line in published:
        tool = tools.get(line[0], "neusight")
        for i, (kind, text) in enumerate(zip(kinds[1:11], line[1:11], strict=True)):
            out = i >= 5
            group = [
                row
                for row in rows
                if (row["OOD"] == "True" if by != "device" else row["device"] in held_out) == out
            ]
            errors = [row[f"{tool}_{columns[kind]}_e2e_err"] for row in group]
            mean = np.mean([float(e) for e in errors if e not in ("", "nan")])
            agree += bool(mean == pytest.approx(float(text), rel=1e-9))
    assert agree == (40 if by == "device and network" else 0)


def test_amd_bert_is_matched_by_dataflow_not_by_name(root: Path) -> None:
    differently = 0
    for path in sorted((root / "label").glob("AMD_*/bert_large-*.csv")):
        measured = read_operators(path, measured=True)
        other = root / "results/prediction" / path.parent.name / "neusight" / path.name
        predicted = read_operators(other, measured=False)
        order = match_operators(predicted, measured)
        assert order is not None
        assert sorted(order) == list(range(len(measured)))
        assert [predicted[i].shape for i in range(len(order))] == [measured[j].shape for j in order]
        names = [(o.name, measured[j].name) for o, j in zip(predicted, order, strict=True)]
        wrong = [(mine, theirs) for mine, theirs in names if mine != theirs]
        assert len(wrong) == 7
        # Only the numbers that the tracer appended differ.
        assert all(re.sub(r"_\d+$", "", a) == re.sub(r"_\d+$", "", b) for a, b in wrong)
        differently += 1
    assert differently == 8


def test_where_the_order_is_the_same_dataflow_finds_it(root: Path) -> None:
    """The matching that AMD needs, on 60 traces whose right answer is known."""
    known = 0
    for path in sorted((root / "label").glob("*/*.csv")):
        other = root / "results/prediction" / path.parent.name / "neusight" / path.name
        if path.parent.name.startswith("AMD") or not other.is_file():
            continue
        measured, predicted = (
            read_operators(path, measured=True),
            read_operators(other, measured=False),
        )
        assert [o.name for o in measured] == [o.name for o in predicted]
        # One operator without a role, under two names, forces the search by dataflow.
        extra = measured[0]
        extended = [
            [type(extra)(name, "", 0.0, 0.0, 0.0, "", ()), *trace]
            for name, trace in (("probe_1", measured), ("probe_2", predicted))
        ]
        order = match_operators(extended[1], extended[0])
        assert order is not None
        assert order == list(range(len(extended[0])))
        known += 1
    assert known == 60


def test_predictions_for_two_amd_devices_are_the_same(
    artifact: neusight.NeusightArtifact,
) -> None:
    both = [
        artifact.pairs.where({"tool": "neusight", "device": device})
        for device in ("MI210", "MI250")
    ]
    assert both[0].n == both[1].n == 16
    assert both[0].predicted.tolist() == both[1].predicted.tolist()
    assert both[0].measured.tolist() != both[1].measured.tolist()
