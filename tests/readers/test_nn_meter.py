"""Files of nn-Meter."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.learned import nn_meter

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=nn_meter.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_predictions() -> None:
    rows = fixture("nn-meter-predictions").rows
    assert rows.select("model", "device", "predictor_version", "predicted").rows() == [
        ("alexnet", "cortexA76cpu_tflite21", "1.0", 96.5),
        ("vgg16", "myriadvpu_openvino2019r2", "1.0", 1668.25),
    ]


def test_pairs() -> None:
    found = fixture("nn-meter-pairs")
    assert found.rows.select("model", "family", "predicted", "measured").rows() == [
        ("alexnets[0]", "alexnets.jsonl", 23.5, 24.5),
        ("alexnets[1]", "alexnets.jsonl", 25.0, None),
    ]
    lines = fixture("nn-meter-results")
    assert lines.rows.select("model", "predicted", "measured").rows() == [
        ("alexnets[0]", 23.5, 24.5),
        ("alexnets[1]", 25.0, 24.25),
    ]
    assert len(lines.pairs) == 2


def test_errors_of_the_data_set_are_failures() -> None:
    rows = fixture("nn-meter-dataset").rows
    assert rows.select("model", "device", "measured", "status").rows() == [
        ("alexnet_0", "cortexA76cpu_tflite21", 84.5, None),
        ("alexnet_0", "adreno640gpu_tflite21", None, "failed: error"),
        ("alexnet_0", "myriadvpu_openvino2019r2", None, "failed: no latency"),
        ("7", "cortexA76cpu_tflite21", 85.25, None),
        ("7", "adreno640gpu_tflite21", 24.0, None),
    ]


LINE = '{"id": "a", "cortexA76cpu_tflite21": 1, "graph": {}}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE + "[1]\n", r"line 2: not a record of the nn-Meter dataset"),
        (LINE + LINE[:20], r"line 2: not a record of the nn-Meter dataset"),
        ("[Result] a.jsonl[0]: predict: x, real: 1\n", r"line 1: not two numbers"),
    ],
)
def test_what_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        nn_meter.read(text_of(tmp_path, text))


def test_a_network_without_name_is_called_after_its_line(tmp_path: Path) -> None:
    path = text_of(tmp_path, LINE + '{"adreno640gpu_tflite21": 2}\n')
    assert nn_meter.read(path).rows["model"].to_list() == ["a", "line 2"]


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "nn-meter", among=nn_meter.FORMATS)
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    counts = dict(found.rows.group_by("file").len().rows())
    assert counts == {
        "bench_dataset_alexnets_predict_vs_real.csv": 20,
        "reference_result.txt": 188,
        "reference_result_nni_based_torch.txt": 44,
        "reference_result_onnx_based_torch.txt": 48,
    }
    pairs = found.of(file="bench_dataset_alexnets_predict_vs_real.csv").pairs
    difference = pairs.predicted - pairs.measured
    # The figures that the notebook states of these pairs.
    assert (difference**2).mean() ** 0.5 == pytest.approx(0.6889, abs=1e-4)
    assert (abs(difference) <= 0.05 * pairs.measured).mean() == 0.75
    assert (abs(difference) <= 0.10 * pairs.measured).mean() == 0.95
