"""``errcomp predict``: documents, files, what is unlike the fit, bad input."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Run = Callable[..., Any]
DEVICES = ("H100", "V100", "P100", "T4")
MODELS = ("bert", "gpt2", "opt", "xlnet")


def table(devices: tuple[str, ...] = DEVICES, *, unit: str = "ms", **size: float) -> str:
    """Sixteen runs of two kernels each; a device is always off by the same factor."""
    lines = ["run,kernel,kernel_class,count,predicted,measured,run_measured,device,model,mode,unit"]
    second = {"ms": 1.0, "us": 1000.0}[unit]
    for i, device in enumerate(devices):
        for j, model in enumerate(MODELS):
            one = size.get("scale", 1.0) * (1 + 0.5 * i) * (1 + 0.8 * j)
            end = (24 * one + 24 * one / 5) * (0.9 + 0.04 * i + 0.01 * ((3 * i + j) % 4))
            rest = f"{end * second},{device},{model},inference,{unit}"
            run = f"{device}/{model}"
            lines.append(f"{run},gemm,Linear,24,{one * second},{one * second},{rest}")
            small = one / 5 * second
            lines.append(f"{run},soft,Softmax,24,{small},{small},{rest}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the sixteen runs, without any extra."""
    from errcomp.calibration.composition import Composition
    from errcomp.calibration.storing import save_model
    from errcomp.readers import kernels

    folder = tmp_path_factory.mktemp("fitted")
    (folder / "kernels.csv").write_text(table(), encoding="utf-8")
    fit = Composition(estimators=["device"]).fit(kernels.read(folder / "kernels.csv"))
    save_model(fit.model_, folder / "gpu.errcomp", created="2026-01-31")
    return folder / "gpu.errcomp"


@pytest.fixture
def new(tmp_path: Path) -> Callable[[str], Path]:
    """Write a table of kernels."""

    def write(text: str) -> Path:
        path = tmp_path / "new.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_document(run: Run, fitted: Path, new: Any) -> None:
    ran = run("predict", new(table()), "--model", fitted, "--estimator", "device", "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert found["schema"] == "errcomp.predictions/1"
    assert (found["task"], found["estimator"], found["unit"]) == ("composition", "device", "ms")
    assert found["model"] == str(fitted)
    assert found["levels"] == [0.5, 0.8, 0.9, 0.95]
    assert len(found["rows"]) == 16
    row = found["rows"][0]
    assert list(row) == [
        "run", "total", "predicted", "low_50", "high_50", "low_80", "high_80", "low_90", "high_90",
        "low_95", "high_95", "parts", "fallback", "calibrated", "warnings",
    ]  # fmt: skip
    assert (row["run"], row["fallback"], row["warnings"]) == ("H100/bert", "device", [])
    assert row["total"] == pytest.approx(28.8)
    # H100 runs take 90 to 93 % of their kernels.
    assert row["predicted"] == pytest.approx(0.915 * 28.8, rel=0.02)
    assert row["low_90"] < row["low_50"] < row["predicted"] < row["high_50"] < row["high_90"]
    assert sum(row["parts"].values()) == pytest.approx(row["predicted"] - row["total"])


def test_the_last_estimator_is_the_default(run: Run, fitted: Path, new: Any) -> None:
    assert run("predict", new(table()), "--model", fitted, "--json").json["estimator"] == "linear"


def test_times_come_in_the_unit_of_the_kernels(run: Run, fitted: Path, new: Any) -> None:
    argv = ("--model", fitted, "--json")
    ms = run("predict", new(table()), *argv).json
    us = run("predict", new(table(unit="us")), *argv).json
    assert (ms["unit"], us["unit"]) == ("ms", "us")
    for one, other in zip(ms["rows"], us["rows"], strict=True):
        assert other["high_90"] == pytest.approx(1000 * one["high_90"])


def test_unlike_the_fit(run: Run, fitted: Path, new: Any) -> None:
    ran = run("predict", new(table(("H100", "new chip"), scale=40.0)), "--model", fitted, "--json")
    first, last = ran.json["rows"][0], ran.json["rows"][-1]
    assert (first["fallback"], last["fallback"]) == ("device", "global")
    assert any("total_ms" in text for text in first["warnings"])
    assert any("'new chip' was not in the fit" in text for text in last["warnings"])
    text = " ".join(run("predict", new(table(("H100", "new chip"), scale=40.0)),
                        "--model", fitted).out.split())  # fmt: skip
    assert "all devices" in text
    # Values differ from run to run, the warning is one.
    assert text.count("is outside the fit's") < 4
    assert "new chip/bert and 3 more" in text
    assert "Band of a run on a known device: calibrated on 16 runs, each of the" in text
    assert "Band of a run on a new device: calibrated on 16 runs, each of the" in text


def test_one_run_in_detail(run: Run, fitted: Path, new: Any) -> None:
    argv = ("predict", new(table()), "--model", fitted, "--where", "run=V100/opt")
    text = run(*argv).out
    row = run(*argv, "--json").json["rows"][0]
    assert "End-to-end time of run V100/opt" in text
    for level in ("50", "80", "90", "95"):
        assert f"{level} % " in text
    assert "From the sum of kernels to the time of the run" in text
    assert f"{row['predicted']:.4g} ms (median)" in text
    assert "Predicted from: its device" in text


def test_one_run_with_a_warning(run: Run, fitted: Path, new: Any) -> None:
    argv = ("predict", new(table(("new chip",))), "--model", fitted)
    text = " ".join(run(*argv, "--where", "model=bert").out.split())
    assert "Predicted from: all devices" in text
    assert "· device 'new chip' was not in the fit: predicted from all devices." in text


def test_a_model_without_calibrated_bands_says_so(run: Run, tmp_path: Path, new: Any) -> None:
    path = new(table(DEVICES[:2]))
    assert run("calibrate", "fit", path, "--estimator", "device", "-o", tmp_path / "m.errcomp",
               ).code == 0  # fmt: skip
    other = new(table(("T4",)))
    text = " ".join(run("predict", other, "--model", tmp_path / "m.errcomp").out.split())
    band = "Band of a run on a new device: the estimator's own, not calibrated"
    assert f"{band}, because the fit had too few devices" in text


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "md", "tex"])
def test_files_by_suffix(run: Run, fitted: Path, new: Any, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    ran = run("predict", new(table()), "--model", fitted, "-o", target)
    assert (ran.code, ran.err) == (0, f"wrote {target}\n")
    assert target.stat().st_size > 100
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.csv", target.name]


def test_columns_of_a_file_are_plain(run: Run, fitted: Path, new: Any, tmp_path: Path) -> None:
    argv = ("predict", new(table(("new chip",))), "--model", fitted)
    rows = run(*argv, "--json").json["rows"]
    run(*argv, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [float(row["high_90"]) for row in written] == [row["high_90"] for row in rows]
    assert float(written[0]["part_other"]) == rows[0]["parts"]["other"]
    assert "'new chip' was not in the fit" in written[0]["warnings"]
    assert {row["unit"] for row in written} == {"ms"}
    run(*argv, "-o", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["predicted"].dtype == pl.Float64
    ran = run(*argv, "-o", tmp_path / "out.json", "--json")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == ran.json


@pytest.mark.core
def test_predicting_needs_no_extra(fitted: Path, new: Any) -> None:
    code = (
        "import sys\n"
        "gone = ('pymc', 'nutpie', 'arviz', 'xgboost', 'sklearn', 'pandas', 'pytensor')\n"
        "sys.modules.update(dict.fromkeys(gone))\n"
        "from errcomp.cli import main\n"
        f"raise SystemExit(main(['predict', {str(new(table()))!r}, '--model', {str(fitted)!r}]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "H100/bert" in ran.stdout


def lacking(*runs: str) -> str:
    """The sixteen runs; one kernel of these was not measured."""
    lines = table().splitlines()
    for i, line in enumerate(lines):
        cells = line.split(",")
        if cells[0] in runs and cells[1] == "soft":
            lines[i] = ",".join([*cells[:5], "", *cells[6:]])
    return "\n".join(lines) + "\n"


def test_runs_that_lack_a_time_are_left_out_and_named(run: Run, fitted: Path, new: Any) -> None:
    whole = run("predict", new(table()), "--model", fitted, "--json").json
    argv = ("predict", new(lacking("V100/opt", "T4/bert")), "--model", fitted)
    found = run(*argv, "--json").json
    left = [row for row in whole["rows"] if row["run"] not in ("V100/opt", "T4/bert")]
    assert (len(left), found["rows"]) == (14, left)
    assert (whole["unused"], found["unused"]) == (
        {}, dict.fromkeys(["V100/opt", "T4/bert"], "some kernels were not measured"),
    )  # fmt: skip
    text = " ".join(run(*argv).out.split())
    assert "Not used: 2 runs (V100/opt, T4/bert): some kernels were not measured." in text


def test_a_run_that_is_asked_for_is_not_left_out(run: Run, fitted: Path, new: Any) -> None:
    argv = ("predict", new(lacking("V100/opt")), "--model", fitted)
    for asked in ("run=V100/opt", "run=V100/opt,T4/bert"):
        ran = run(*argv, "--where", asked)
        assert (ran.code, ran.out) == (2, "")
        assert "run V100/opt has kernels that were not measured" in ran.err


BAD = [
    (("nothing.csv", "--model", "m"), "nothing.csv: no such file, and no built-in table"),
    (("k",), "the following arguments are required: --model"),
    (("k", "--model", "none.errcomp"), "none.errcomp"),
    (("k", "--model", "k"), "kernels.csv: "),
    (("k", "--model", "m", "--estimator", "oracle"), "estimator 'oracle' is not in this model"),
    (("k", "--model", "m", "--estimator", "stack"), "estimator 'stack' is not in this model"),
    (("k", "--model", "m", "--where", "run=z"), "no row has run=z"),
    (("k", "--model", "m", "-o", "k"), "would overwrite an input"),
    (("k", "--model", "m", "-o", "out.xlsx"), "cannot determine the format"),
    (("unitless.csv", "--model", "m"), "the times have no unit"),
    (("unmeasured.csv", "--model", "m"), "that were not measured"),
]


@pytest.mark.parametrize(("argv", "message"), BAD)
def test_bad_usage_is_one_line_and_exit_2(
    run: Run,
    fitted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.csv").write_text(table(), encoding="utf-8")
    plain = "run,kernel,count,predicted{},device\na,gemm,2,1.0{},H100\n"
    (tmp_path / "unitless.csv").write_text(plain.format(",measured", ",1.0"), encoding="utf-8")
    unmeasured = plain.format(",unit", ",ms")
    (tmp_path / "unmeasured.csv").write_text(unmeasured, encoding="utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    names = {"k": "kernels.csv", "m": str(fitted)}
    ran = run("predict", *(names.get(word, word) for word in argv))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_changed_model_is_refused(run: Run, fitted: Path, tmp_path: Path, new: Any) -> None:
    data = bytearray(fitted.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "m.errcomp").write_bytes(data)
    ran = run("predict", new(table()), "--model", tmp_path / "m.errcomp", "-o", tmp_path / "o.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "m.errcomp: " in ran.err
    assert not (tmp_path / "o.csv").exists()


def test_unsure_runs_are_left_out(run: Run, fitted: Path, new: Any) -> None:
    path = new(table((*DEVICES, "L4")))
    every = run("predict", path, "--model", fitted, "--json").json["rows"]
    widths = {row["run"]: (row["high_90"] - row["low_90"]) / row["predicted"] for row in every}
    limit = sorted(widths.values())[len(widths) // 2]
    found = run("predict", path, "--model", fitted, "--max-width", str(limit), "--json").json
    assert {row["run"] for row in found["rows"]} == {
        name for name, width in widths.items() if width <= limit
    }
    wide = [name for name, width in widths.items() if width > limit]
    assert list(found["unused"]) == wide
    assert f"({100 * widths[wide[0]]:.0f} %)" in found["unused"][wide[0]]
    assert next(row for row in found["rows"]) == next(r for r in every if widths[r["run"]] <= limit)


@pytest.mark.parametrize(
    ("width", "message"),
    [("1e-9", "the 90 % band of every run is wider than 1e-07 %"), ("0", "must be above 0"),
     ("-5%", "must be above 0"), ("wide", "not a fraction")],
)  # fmt: skip
def test_no_run_is_sure_enough(run: Run, fitted: Path, new: Any, width: str, message: str) -> None:
    ran = run("predict", new(table()), "--model", fitted, f"--max-width={width}")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
