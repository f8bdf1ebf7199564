"""Tables of aiconfigurator."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.serving import aiconfigurator

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=aiconfigurator.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_kernels_by_version_of_the_framework() -> None:
    found = fixture("aiconfigurator-performance")
    assert found.of(quantity="time").rows.select("kernel", "version", "m", "measured").rows() == [
        ("gemm", "1.0.0", 1, 0.005),
        ("gemm", "1.10.0", 1, 0.004),
    ]
    assert found.of(quantity="power").rows["measured"].to_list() == [350.5]
    history = found.of(quantity="time").history
    assert history.versions == ("1.0.0", "1.10.0")
    assert len(history.series_names) == 1


def test_kernels_without_names_and_repeats() -> None:
    rows = fixture("aiconfigurator-performance", "without_names").rows
    assert rows.select("kernel", "measured", "repeat").rows() == [
        ("gemm", 0.005, 1),
        ("gemm", 0.006, 2),
    ]


def test_messages_are_elements() -> None:
    rows = fixture("aiconfigurator-messages").rows
    assert rows.select("collective", "ranks", "elements", "size_bytes", "measured").rows() == [
        ("all_gather", 8, 512, 1024, 0.009),
        ("all_gather", 8, 1024, None, 0.0095),
    ]


def test_a_doubtful_version_is_marked() -> None:
    found = fixture("aiconfigurator-messages", "doubtful_version")
    assert found.rows.select("version", "provenance", "repeat").rows() == [
        ("2.27.3", None, None),
        ("2.27.3", "the table itself says 2.29.2", 1),
        ("2.27.3", "the table itself says 2.29.2", 2),
    ]
    assert found.notes[1].startswith(
        "In 2 rows, the folder and the column 'version' state different versions"
    )


@pytest.mark.parametrize("column", ["nccl_version_from_path", "version_column"])
def test_one_version_alone_is_not_doubtful(column: str, tmp_path: Path) -> None:
    text = (DATA / "aiconfigurator-messages" / "doubtful_version" / "nccl.csv").read_text()
    frame = pl.read_csv(io.StringIO(text)).drop(column)
    if column == "nccl_version_from_path":
        frame = frame.with_columns(version=pl.lit("2.27.3"))
    frame.write_csv(tmp_path / "nccl.csv")
    found = aiconfigurator.read(tmp_path / "nccl.csv")
    assert "provenance" not in found.rows.columns
    assert found.rows["version"].to_list() == ["2.27.3"] * 3
    assert len(found.notes) == 1


def test_servings() -> None:
    found = fixture("aiconfigurator-serving")
    kept = ("quantity", "version", "date", "concurrency", "batch", "measured")
    assert found.rows.select(kept).rows() == [
        ("ttft", "0.9.0", "2026-01-14", 16, 16, 616.5),
        ("tpot", "0.9.0", "2026-01-14", 16, 16, 11.25),
        ("ttft", "0.10.0", "2026-04-03", None, 16, 600.5),
    ]
    assert found.of(quantity="ttft").history.versions == ("0.9.0", "0.10.0")


def test_servings_without_their_origin(tmp_path: Path) -> None:
    text = "backend,backend_version,silicon_ttft_ms,silicon_tpot_ms\nvllm,0.9,1.5,2.5\n"
    assert aiconfigurator.read(text_of(tmp_path, text)).rows["measured"].to_list() == [1.5, 2.5]


def test_estimates() -> None:
    rows = fixture("aiconfigurator-estimates").rows
    assert rows.select("quantity", "unit", "predicted").rows() == [
        ("ttft", "ms", 900.5),
        ("tpot", "ms", 20.25),
        ("time", "ms", 11000.5),
        ("throughput", "tokens/s", 2750.0),
        ("throughput per GPU", "tokens/s", 343.75),
        ("throughput per user", "tokens/s", 49.5),
        ("request throughput", "requests/s", 5.5),
    ]
    assert rows["device"].unique().to_list() == ["h200_sxm"]


def test_a_latency_that_is_no_number(tmp_path: Path) -> None:
    text = "framework,version,device,kernel_source,m,latency\nA,1,B,c,1,fast\n"
    with pytest.raises(InputError, match=r"latency must be a number, got 'fast' in line 2"):
        aiconfigurator.read(text_of(tmp_path, text))


def test_parquet_as_in_the_repository(tmp_path: Path) -> None:
    for name in ("aiconfigurator-performance", "aiconfigurator-messages"):
        (path,) = (DATA / name / "good").iterdir()
        parquet = tmp_path / "table.parquet"
        pl.read_csv(path, schema_overrides={"version": pl.String}).write_parquet(parquet)
        assert [one.name for one in recognise(Source(parquet), aiconfigurator.FORMATS)] == [name]
        found, same = aiconfigurator.read(parquet), fixture(name)
        assert found.rows.equals(same.rows)
        parquet.write_bytes(parquet.read_bytes()[:-40])
        with pytest.raises(InputError, match="none|not recognised|must end with PAR1"):
            aiconfigurator.read(parquet)


def test_parquet_without_a_column_or_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    # The name of the column stands in the file, but is not one of a column.
    frame = pl.DataFrame({"version": ["kernel_source"], "device": [""], "frameworks": ["a"]})
    frame.with_columns(latency=1.0).write_parquet(path)
    with pytest.raises(InputError, match="missing column 'framework'"):
        aiconfigurator.read(path)
    source = Source(path)
    assert source.head
    path.unlink()
    assert recognise(source, aiconfigurator.FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "aiconfigurator", among=aiconfigurator.FORMATS)
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    kernels = found.of(file="gemm_bf16_by_software_version.sample90shapes.csv")
    assert len(kernels.rows) == 2340
    assert kernels.rows.select("m", "n", "k").unique().height == 90
    tables = kernels.rows.select("system", "framework", "version").unique()
    assert tables.height == 26
    assert len(kernels.history.series_names) == 810
    messages = found.of(file="nccl_by_version.csv").rows
    assert len(messages) == 996
    assert messages["provenance"].is_not_null().sum() == 504
    assert (messages["size_bytes"] == 2 * messages["elements"]).all()
    refs = found.of(file="silicon_refs.csv", quantity="ttft").rows
    assert len(refs) == 35
    assert refs["measured"].to_list()[0] == 616.87840638333
    several = found.of(file="silicon_sample.configs_with_multiple_backend_versions.csv")
    assert len(several.of(quantity="tpot").rows) == 423
    assert several.rows["date"].null_count() == 2 * 15


def test_versions_that_agree_are_not_doubtful(tmp_path: Path) -> None:
    text = (DATA / "aiconfigurator-messages" / "doubtful_version" / "nccl.csv").read_text()
    found = aiconfigurator.read(text_of(tmp_path, text.replace("2.29.2", "2.27.3"), "nccl.csv"))
    assert found.rows["repeat"].to_list() == [1, 2, 3]
    assert "provenance" not in found.rows.columns
    assert len(found.notes) == 1
    one = text.replace("2.29.2,all_gather,half,2,256,0.007", "2.27.3,all_gather,half,2,256,0.007")
    found = aiconfigurator.read(text_of(tmp_path, one, "nccl.csv"))
    assert found.notes[1].startswith("In 1 row, the folder and the column 'version'")
