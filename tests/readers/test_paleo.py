"""Output of Paleo."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.simulators import paleo

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=paleo.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_simulation() -> None:
    found = fixture("paleo-output")
    rows = found.rows.filter((found.rows["scaling"] == "weak") & (found.rows["workers"] == "2"))
    assert rows.select("level", "quantity", "predicted", "collective").rows() == [
        ("model", "forward time", 100.5, None),
        ("model", "backward time", 200.25, None),
        ("model", "update time", 1.25, None),
        ("model", "compute time", 302.0, None),
        ("collective", "time", 90.5, "OneToAll"),
        ("collective", "time", 80.5, "TreeAllReduce"),
    ]
    assert rows["batch"].unique().to_list() == ["256"]
    assert rows["device"].unique().to_list() == ["TITAN X"]
    # The last line is cut off.
    assert [(one.reason, one.n) for one in found.dropped] == [("row of a table that is cut off", 1)]
    assert set(found.rows["scaling"]) == {"weak", "strong"}


def test_a_profile_has_no_time_of_what_did_not_run() -> None:
    found = fixture("paleo-output", "profile")
    kept = ("level", "kernel", "executor", "predicted", "measured")
    assert found.rows.select(kept).rows() == [
        ("kernel", "conv1", "cudnn", 2.5, 3.0),
        ("kernel", "fc6", None, 1.5, None),
        ("model", None, "cudnn", 4.0, 3.0),
    ]
    assert len(found.kernels) == 2


def test_a_full_pass_and_the_bounds_of_a_parallel_model() -> None:
    assert fixture("paleo-output", "fullpass").rows.select("quantity", "measured").rows() == [
        ("forward time", 10.5),
        ("backward time", 20.5),
        ("softmax time", 0.5),
    ]
    rows = fixture("paleo-output", "model_parallel").rows
    assert rows.select("quantity", "variant", "predicted").rows() == [
        ("forward time", "lower bound", 10.5),
        ("forward time", "upper bound", 12.5),
        ("backward time", "lower bound", 20.5),
        ("backward time", "upper bound", 24.5),
    ]


def test_workers_of_both_kinds(tmp_path: Path) -> None:
    head = "workers,batch_size,fwd_time,bwd_time,apply_time,sync_time(tree)\n"
    rows = paleo.read(text_of(tmp_path, head + "8,1024,1,2,3,4\n\n8,1\n")).rows
    assert rows["predicted"].to_list() == [1.0, 2.0, 3.0, 4.0]


def test_a_time_that_is_no_number(tmp_path: Path) -> None:
    path = text_of(tmp_path, "layer\tours\tcudnn\ttensorflow\nconv1\tx\t1\t2\n")
    with pytest.raises(InputError, match=r"line 2: a time must be a number, got 'x'"):
        paleo.read(path)


def test_a_network_is_refused() -> None:
    with pytest.raises(InputError, match=r"holds layers and their shapes, but no times\."):
        fixture("paleo-network")
