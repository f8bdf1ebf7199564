"""LLMCompass: tables without headers, measured and simulated ones alike."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.llmcompass import FORMATS, read

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


def good(name: str) -> Path:
    return FIXTURES / name / "good"


def test_matrix_products() -> None:
    found = read(good("llmcompass-matmul"))
    columns = ("device", "kernel", "shape", "quantity", "measured", "unit")
    assert found.rows.select(columns).rows()[:2] == [
        ("A100", "matmul", "64x512x512", "time", 0.019, "ms"),
        ("A100", "matmul", "64x512x512", "throughput", 1.766, "TFLOP/s"),
    ]
    assert "read as measured, because the name" in found.notes[0]


def test_simulated_files_are_predictions() -> None:
    rows = ingest(FIXTURES / "llmcompass-matmul" / "simulated").rows.filter(quantity="time")
    assert rows.select("variant", "predicted", "measured").rows() == [
        ("roofline", 0.011, None),
        (None, 0.021, None),
    ]


def test_rates_and_names_that_say_nothing() -> None:
    rows = read(good("llmcompass-rates")).rows
    assert rows.select("kernel_class", "shape", "measured", "unit").rows()[0] == (
        *("softmax", "4096x32", 5.25),
        "Gelements/s",
    )
    found = read(FIXTURES / "llmcompass-rates" / "other_name")
    assert found.rows.select("kernel", "shape", "measured").rows() == [
        ("operator", "1024", 0.0625),
        ("operator", "2048", 0.125),
    ]
    assert "neither the operator nor the device" in found.notes[0]


def test_a_layer_measured_and_simulated() -> None:
    rows = read(good("llmcompass-layer")).rows
    assert rows.select("level", "kernel", "kernel_class").rows() == [
        *[("kernel", f"{name}", "matmul") for name in ("Q_K_V", "Q_mul_K", "A_mul_V")],
        *[("kernel", f"{name}_proj", "matmul") for name in ("Wo", "W1", "W2")],
        ("kernel", "Softmax", "softmax"),
        ("kernel", "LayerNorm_MHA", "layernorm"),
        ("kernel", "LayerNorm_FFN", "layernorm"),
        ("kernel", "GeLU", "gelu"),
        ("collective", "AllReduce_MHA", "allreduce"),
        ("collective", "AllReduce_FFN", "allreduce"),
    ]
    assert set(rows["mode"]) == {"prefill"}
    simulated = read(FIXTURES / "llmcompass-layer" / "simulated").rows
    assert set(simulated["mode"]) == {"decode"}
    assert simulated["predicted"].to_list() == rows["measured"].to_list()


def test_dies() -> None:
    rows = read(good("llmcompass-die")).rows
    assert rows.select("device", "component", "measured").rows()[:3] == [
        ("A100", "Cores", 470.25),
        ("MI210", "Cores", 440.5),
        ("A100", "On-chip interconnect", 70.5),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("matmul", "64, 8, 8, 0.5ms, 1Tflops\n64, 8, 8, 0.5\n", "line 2: '64, 8, 8, 0.5' differs"),
        ("matmul", "64, 8, a, 0.5ms, 1Tflops\n", "line 1: '64, 8, a"),
        ("matmul", "64, 8, 8, xms, 1Tflops\n", "line 1: a value must be a number, got 'x'"),
        ("rates", "64, 8, 1.5\n\n64, 8, 1.5.5\n", "line 3: a value must be a number, got '1.5.5'"),
        ("layer", "1\n2\n3\n", "expected 12 times \\(one per operator\\), got 3"),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(content)
    one = next(one for one in FORMATS if one.name == f"llmcompass-{name}")
    assert one.read is not None
    with pytest.raises(InputError, match=message):
        one.read(Source(path))


def test_numbers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "matmul_A100.csv"
    path.write_text("64, 8, 8, nanms, -nanTflops\n")
    assert read(path).rows["status"].to_list() == ["no value", "no value"]


def test_other_tables_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    others = (
        "predicted,measured\n1,2\n",
        "1000, 1.5\n2000, 2.5\n",
        "64,32,1.5\n64,64,2.5\n",
        "1, 2\n",
        "\n".join(str(i / 7) for i in range(12)),
        "1\n2\n3\n",
        "1,2\n" * 8,
    )
    for content in others:
        path.write_text(content)
        assert recognise(Source(path), FORMATS) == [], content


@pytest.mark.shared
def test_the_samples(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "tools" / "llmcompass"
    found = ingest(folder)
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    assert found.formats == (
        *("llmcompass-die", "llmcompass-rates", "llmcompass-matmul"),
        "llmcompass-layer",
    )
    products = found.rows.filter(
        kernel_class="matmul", quantity="time", device="A100", level="kernel"
    )
    products = products.filter(unit="ms")
    assert products.height == 20
    # 2 M N K over the time is the rate that stands beside it.
    rates = found.rows.filter(unit="TFLOP/s", device="A100")["measured"].to_list()
    for shape, time, rate in zip(products["shape"], products["measured"], rates, strict=True):
        m, n, k = map(int, shape.split("x"))
        assert 2e-9 * m * n * k / time == pytest.approx(rate, rel=2e-3)
    # The parts of a die add up to about its published size: 826 and 724 mm^2.
    dies = found.rows.filter(unit="mm^2")
    assert dies.filter(device="A100")["measured"].sum() == pytest.approx(822.72)
    assert dies.filter(device="MI210")["measured"].sum() == pytest.approx(720.03)
    # What a file is does not depend on its name.
    for path in folder.glob("*.csv"):
        copy = tmp_path / "x"
        shutil.copy(path, copy)
        assert recognise(Source(copy)) == recognise(Source(path)) != []
