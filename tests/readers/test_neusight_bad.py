"""An artifact that was damaged or changed: every file is read as the rules say, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from errcomp.errors import InputError
from errcomp.readers import read
from errcomp.readers.learned import neusight

H100 = "NVIDIA_H100_80GB_HBM3"
RUN = f"{H100}/gpt2-inf-8-1"
PREDICTED = "Name,OpName,Prev,OutputShape,fw_latency,e2e_latency"
MEASURED = "_input_nodes,latency,fw_latency,output_shape,Name"
TOTAL = {"num_layer": 2, "e2e_latency": 9.0, "fw_latency": 9.0, "bwall_latency": 0.0}


class Artifact:
    """One configuration, measured and predicted, and a way to add to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.label(f"{RUN}.json")
        self.prediction(f"{RUN}.json")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def label(self, name: str, text: str = json.dumps(TOTAL)) -> Path:
        return self.write(f"label/{name}", text)

    def prediction(self, name: str, text: str = json.dumps(TOTAL), tool: str = "neusight") -> Path:
        device, file = name.split("/")
        return self.write(f"results/prediction/{device}/{tool}/{file}", text)


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    return Artifact(tmp_path)


def test_the_report_names_the_first_three_without_a_partner(artifact: Artifact) -> None:
    for batch in (2, 3, 4, 5):
        artifact.label(f"{H100}/gpt2-inf-8-{batch}.json")
    artifact.prediction(f"{H100}/gpt2-inf-8-6.JSON")
    text = str(neusight.read(artifact.root).report)
    names = ", ".join(f"{H100}/gpt2-inf-8-{batch}" for batch in (2, 3, 4))
    assert f"neusight: 1 pairs\n  4 measured without prediction: {names} and 1 more\n" in text
    assert f"\n1 files ignored: results/prediction/{H100}/neusight/gpt2-inf-8-6.JSON\n" in text


def test_names_of_folders_are_no_patterns(artifact: Artifact) -> None:
    artifact.prediction(f"{RUN}.json", tool="ne*[a]")
    report = neusight.read(artifact.root).report
    assert report.pairs == {"ne*[a]": 1, "neusight": 1}


@pytest.mark.parametrize(
    "closed", ["label", "results/prediction", f"results/prediction/{H100}/neusight"]
)
def test_a_folder_that_must_not_be_read(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    refuse(monkeypatch, "iterdir", artifact.root / closed)
    with pytest.raises(InputError, match=rf"{closed}: cannot be read \(Permission denied\)"):
        neusight.read(artifact.root)


@pytest.mark.parametrize("closed", ["label", "results/prediction"])
def test_a_folder_that_must_not_be_entered(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    refuse(monkeypatch, "is_dir", artifact.root / closed)
    with pytest.raises(InputError, match=rf"{closed}: cannot be read \(Permission denied\)"):
        read(artifact.root)


def test_a_summary_that_must_not_be_read(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "read_text", artifact.root / "summary" / "summary.csv")
    with pytest.raises(InputError, match=r"summary.csv: cannot be read \(Permission denied\)"):
        neusight.read(artifact.root)


def refuse(monkeypatch: pytest.MonkeyPatch, method: str, closed: Path) -> None:
    """Let the system refuse one path, as it does to those who may not read it."""
    real = getattr(Path, method)

    def refusing(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self == closed:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, method, refusing)


def test_paths_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read \(File name too long\)"):
        read(tmp_path / ("x" * 300))
    with pytest.raises(InputError, match=r"a\\x00b': no such file"):
        read("a\0b")


def test_what_progress_raises_is_not_about_the_artifact(artifact: Artifact) -> None:
    def broken(done: int, n: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        neusight.read(artifact.root, progress=broken)


@pytest.mark.parametrize(
    "stem",
    [
        "gpt2-inf-08-1",
        "gpt2-inf-8-01",
        "gpt2-inf-8-0",
        "gpt2-inf-0-1",
        "gpt2-inf-8-99999999999999999999",
        "gpt2-inf-٨-1",
        "gpt2-inf-8-1-base",
        "gpt2-inf-8-1-dp04",
        "gpt2-inf-8-1-dp99999999999999999999",
    ],
)
def test_two_names_of_one_configuration_are_refused(artifact: Artifact, stem: str) -> None:
    artifact.prediction(f"{H100}/{stem}.json")
    with pytest.raises(
        InputError,
        match=f"{H100}/{stem}: the sequence length and the batch size in the file name must be",
    ):
        neusight.read(artifact.root)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"num_layer": 1.5}, "num_layer must be an integer from 0 to 10000, got 1.5"),
        ({"num_layer": 10_001}, "num_layer must be an integer from 0 to 10000, got 10001"),
        ({"num_layer": 10**400}, r"num_layer must be an integer .* got 10+\.\.\.0+\. Fix"),
        ({"e2e_latency": 10**400}, r"e2e_latency must be a finite .* got 10+\.\.\.0+\. Fix"),
    ],
)
def test_numbers_that_cannot_be(artifact: Artifact, change: dict[str, Any], expected: str) -> None:
    path = artifact.prediction(f"{RUN}.json", json.dumps(TOTAL | change))
    with pytest.raises(InputError, match=expected) as caught:
        neusight.read(artifact.root)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps(TOTAL)[:-1] + ', "num_layer": 3}', "an object names 'num_layer' twice"),
        (100_000 * "[", "nested too deeply"),
        ("[" + 5000 * "1" + "]", "Exceeds the limit"),
    ],
)
def test_json_that_cannot_be_used(artifact: Artifact, text: str, expected: str) -> None:
    artifact.label(f"{RUN}.json", text)
    with pytest.raises(InputError, match=rf"gpt2-inf-8-1.json: {expected}"):
        neusight.read(artifact.root)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{PREDICTED}\na,b,set(),(),2,1\n", r"line 2: fw_latency \(2\) must not be above e2e_lat"),
        (f"{PREDICTED},Name\na,b,set(),(),1,1,c\n", "the header names 'Name' more than once"),
        (f"{PREDICTED}\na,b,set(),(),1,1_0\n", "line 2: e2e_latency must be a finite .* '1_0'"),
        (f"{PREDICTED}\na,b,set(),(),1,١٢\n", "line 2: e2e_latency must be a finite .* '١٢'"),
    ],
)
def test_operators_that_cannot_be_used(artifact: Artifact, text: str, expected: str) -> None:
    artifact.prediction(f"{RUN}.csv", text)
    with pytest.raises(InputError, match=expected):
        neusight.read(artifact.root)


def test_measured_operators_are_checked_too(artifact: Artifact) -> None:
    artifact.label(f"{RUN}.csv", f"{MEASURED}\n{{}},1,2,(),a\n")
    with pytest.raises(InputError, match=r"line 2: fw_latency \(2\) must not be above latency"):
        neusight.read(artifact.root)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1: missing columns device, model_name"),
        ("device,model_name,mode,seqlen,batch,option\n", "it has no rows"),
        ("device,model_name,mode,seqlen,batch,option\na,b,c,1,1,\n", "line 2: unknown mode 'c'"),
    ],
)
def test_an_empty_summary_does_not_switch_the_comparison_off(
    artifact: Artifact, text: str, expected: str
) -> None:
    artifact.write("summary/summary.csv", text)
    with pytest.raises(InputError, match=rf"not the summary of the artifact \({expected}"):
        neusight.read(artifact.root)
