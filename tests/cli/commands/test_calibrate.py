"""``errcomp calibrate fit|evaluate|show``: documents, files, figures, bad input."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import composition
from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.estimators import estimators
from errcomp.calibration.estimators.bayesian.diagnostics import Diagnostics
from errcomp.calibration.estimators.bayesian.hierarchical import Columns, HierarchicalModel
from errcomp.calibration.estimators.linear.baselines import GlobalFactor
from errcomp.calibration.evaluation import composed
from errcomp.calibration.predictions import Predictions
from errcomp.cli.commands import calibrate
from errcomp.errors import InputError, SmallSampleWarning

Run = Callable[..., Any]
DEVICES = ("H100", "V100", "MI100", "MI210")
MODELS = ("bert", "gpt2", "opt", "xlnet")
FAST = ("--estimator", "device")
DIAGNOSTICS = Diagnostics(
    max_rhat=1.0021, min_ess_bulk=812.4, min_ess_tail=900.0, divergences=0, min_bfmi=0.9, chains=4,
    draws=2000, seconds=12.0, interrupted=False, problems=(),
)  # fmt: skip


def table(devices: tuple[str, ...] = DEVICES, *, runs: bool = True) -> str:
    """Sixteen runs of two kernels each; a device is always off by the same factor."""
    lines = ["run,kernel,kernel_class,count,predicted,measured,device,model,mode,unit"
             + (",run_measured" if runs else "")]  # fmt: skip
    for run, device, model, one, end in each(devices):
        rest = f"{device},{model},inference,ms" + (f",{end}" if runs else "")
        lines.append(f"{run},gemm,Linear,24,{1.2 * one},{one},{rest}")
        lines.append(f"{run},soft,Softmax,24,{one / 5},{one / 5},{rest}")
    return "\n".join(lines) + "\n"


def each(devices: tuple[str, ...] = DEVICES) -> list[tuple[str, str, str, float, float]]:
    found = []
    for i, device in enumerate(devices):
        for j, model in enumerate(MODELS):
            one = (1 + 0.5 * i) * (1 + 0.8 * j)
            end = 28.8 * one * (0.9 + 0.04 * i + 0.01 * ((3 * i + j) % 4))
            found.append((f"{device}/{model}", device, model, one, end))
    return found


@pytest.fixture
def kernels_csv(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.csv"
    path.write_text(table(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the sixteen runs, written by the command."""
    from errcomp.cli import main

    folder = tmp_path_factory.mktemp("fitted")
    (folder / "kernels.csv").write_text(table(), encoding="utf-8")
    argv = ["calibrate", "fit", str(folder / "kernels.csv"), *FAST, "-o", str(folder / "gpu.ec")]
    assert main(argv) == 0
    return folder / "gpu.ec"


class Quick:
    """One factor for all runs and one for each device, with bands of a tenth to either side."""

    estimators = ("sum", "device")

    def __init__(self, *, task: str, estimators: Sequence[str], seed: int) -> None:
        assert (task, tuple(estimators), seed) == ("composition", ("device",), 0)

    def fit(self, kernels: Any) -> Quick:
        found = kernels.totals()
        ratio = found.run_measured / found.measured
        self.every = float(np.median(ratio))
        devices = found.keys["device"]
        self.of = {name: float(np.median(ratio[devices == name])) for name in set(devices)}
        self.model_ = self
        return self

    def predict(self, kernels: Any, *, estimator: str) -> Predictions:
        found = kernels.totals()
        factor = [self.of.get(name, self.every) for name in found.keys["device"]]
        middle = found.measured * (np.asarray(factor) if estimator == "device" else 1.0)
        room = np.log(1.1) * np.asarray(LEVELS) * (1 + np.arange(len(middle)))[:, None] / 8
        q = 0.1 * (np.asarray(QUANTILES) - 0.5)
        return Predictions(
            run=found.run, total=found.measured, predicted=middle,
            low=middle[:, None] * np.exp(-room), high=middle[:, None] * np.exp(room),
            quantiles=middle[:, None] * np.exp(q), parts={}, fallback=found.run,
            calibrated=np.ones(len(middle), dtype=bool), warnings=((),) * len(middle),
            estimator=estimator, unit=found.unit,
        )  # fmt: skip


def predictors_of(kind: type[Quick]) -> Any:
    """Return what fits this kind of model to part of a table, for an evaluation."""

    def fit(fits: Any, task: str, estimators: Sequence[str], kernels: Any) -> dict[str, Any]:
        model = kind(task=task, estimators=estimators, seed=fits.seed).fit(kernels)
        return {name: partial(model.predict, estimator=name) for name in model.estimators}

    return fit


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate something that is fitted at once; everything around it is what it is."""
    monkeypatch.setattr(composed, "_predictors", predictors_of(Quick))


def words(text: str) -> str:
    return " ".join(text.split())


# --- fit ---


def test_fit_writes_a_model_and_says_what_it_is(
    run: Run, kernels_csv: Path, tmp_path: Path
) -> None:
    target = tmp_path / "gpu.errcomp"
    ran = run("calibrate", "fit", kernels_csv, *FAST, "-o", target, "--json")
    assert (ran.code, ran.err) == (0, f"wrote {target}\n")
    found = ran.json
    assert found["schema"] == "errcomp.calibrate-fit/1"
    assert (found["task"], found["unit"], found["runs"]) == ("composition", "ms", 16)
    assert (found["model"], found["source"]) == (str(target), str(kernels_csv))
    assert found["devices"] == sorted(DEVICES)
    assert found["models"] == sorted(MODELS)
    assert found["estimators"] == ["sum", "global", "device", "linear"]
    assert (found["overhead"], found["diagnostics"]) == ([], None)
    rows = {(row["estimator"], row["fallback"]): row for row in found["rows"]}
    assert len(rows) == 8
    known, unknown = rows["device", "device"], rows["device", "global"]
    assert (known["left_out"], known["groups"], known["n"]) == ("model", 4, 16)
    assert (unknown["left_out"], unknown["groups"]) == ("device", 4)
    assert known["factor_90"] > 0
    assert [level["level"] for level in known["levels"]] == [0.5, 0.8, 0.9, 0.95]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gpu.errcomp", "kernels.csv"]


@pytest.mark.slow
def test_fit_for_people(run: Run, kernels_csv: Path, tmp_path: Path) -> None:
    target = tmp_path / "gpu.errcomp"
    ran = run("calibrate", "fit", kernels_csv, *FAST, "--task", "prediction", "-o", target)
    text = words(ran.out)
    assert f"Model fitted to {kernels_csv} (task: prediction)" in text
    assert "4: H100, MI100, MI210, V100" in text
    assert "16 runs, 4 models held out in turn" in text
    assert "Factor: " in text
    assert "· linear: bands of" in text
    assert "Not used" not in text
    assert "fitted 20" not in text  # the date belongs to the file
    assert "APE" not in text  # errors on what was fitted are no errors


def test_runs_that_cannot_be_used_are_named(run: Run, tmp_path: Path) -> None:
    lines = table(DEVICES[:1]).splitlines()
    cells = lines[1].split(",")
    cells[5] = ""
    (tmp_path / "k.csv").write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]), "utf-8")
    ran = run("calibrate", "fit", tmp_path / "k.csv", *FAST, "-o", tmp_path / "m.errcomp")
    assert ran.code == 0
    said = f"Not used: 1 run ({cells[0]}): some kernels were not measured."
    assert said in words(ran.out)
    argv = ("calibrate", "fit", tmp_path / "k.csv", *FAST, "-o", tmp_path / "m.errcomp", "--json")
    assert run(*argv).json["unused"] == {cells[0]: "some kernels were not measured"}


def test_the_same_fit_gives_the_same_file(run: Run, kernels_csv: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.errcomp", tmp_path / "2.errcomp"
    few = ("--where", "device=H100,V100", "--seed", "3")
    for target in (first, second):
        run("calibrate", "fit", kernels_csv, *FAST, *few, "-o", target)
    assert first.read_bytes() == second.read_bytes()


def test_an_older_model_is_replaced(
    run: Run, kernels_csv: Path, fitted: Path, tmp_path: Path
) -> None:
    target = tmp_path / "gpu.errcomp"
    target.write_bytes(fitted.read_bytes())
    argv = ("calibrate", "fit", kernels_csv, *FAST, "--where", "device=V100")
    assert run(*argv, "-o", target).code == 0
    assert run("calibrate", "show", target, "--json").json["runs"] == 4


def test_runs_in_a_table_of_their_own(run: Run, tmp_path: Path) -> None:
    kernels, runs = tmp_path / "kernels.csv", tmp_path / "runs.csv"
    one = DEVICES[:1]
    kernels.write_text(table(one, runs=False), encoding="utf-8")
    lines = [f"{name},{end},ms" for name, *_, end in each(one)]
    runs.write_text("\n".join(["run,measured,unit", *lines]) + "\n", encoding="utf-8")
    argv = ("calibrate", "fit", kernels, *FAST, "--runs", runs, "--json")
    joined = run(*argv, "-o", tmp_path / "a.errcomp").json
    kernels.write_text(table(one), encoding="utf-8")
    plain = run("calibrate", "fit", kernels, *FAST, "--json", "-o", tmp_path / "b.errcomp").json
    assert (joined["runs"], joined["rows"]) == (4, plain["rows"])
    some = run(*argv, "--where", "model=bert,opt,xlnet", "-o", tmp_path / "c.errcomp").json
    assert some["runs"] == 3


def test_an_interrupted_fit_writes_nothing(
    run: Run, kernels_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("errcomp.calibration.composition.fit_member", interrupted)
    ran = run("calibrate", "fit", kernels_csv, *FAST, "-o", tmp_path / "gpu.errcomp")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "errcomp: interrupted\n"
    assert list(tmp_path.iterdir()) == [kernels_csv]


def test_too_few_devices_to_calibrate_for_a_new_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(table(DEVICES[:2]), encoding="utf-8")
    argv = ("calibrate", "fit", path, *FAST, "-o", tmp_path / "gpu.errcomp")
    rows = {(r["estimator"], r["fallback"]): r for r in run(*argv, "--json").json["rows"]}
    assert rows["device", "device"]["calibrated"]
    assert not rows["device", "global"]["calibrated"]
    assert rows["device", "global"]["levels"] == []
    text = words(run(*argv).out)
    assert "nothing: too few groups" in text
    assert "too few devices to hold out, so the band is the estimator's own" in text


# --- show ---


def test_show(run: Run, fitted: Path) -> None:
    ran = run("calibrate", "show", fitted, "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert found["schema"] == "errcomp.model/1"
    assert len(found["created"]) == 10
    assert "errcomp" in found["versions"]
    assert len(found["fingerprint"]) == 64
    assert (found["unit"], found["runs"]) == ("ms", 16)
    ranges = {row["name"]: (row["low"], row["high"], row["unit"]) for row in found["features"]}
    assert ranges["training"] == (0, 0, "1")
    assert ranges["activations_gb"] == (None, None, "log10 GB")
    assert len(found["rows"]) == 8
    text = words(run("calibrate", "show", fitted).out)
    assert f"Model file {fitted}" in text
    assert f"fitted {found['created']}" in text
    assert found["fingerprint"] in text.replace(" ", "")
    assert "Features of a run" in text
    assert " ms" in text


def test_show_writes_its_rows(run: Run, fitted: Path, tmp_path: Path) -> None:
    assert run("calibrate", "show", fitted, "-o", tmp_path / "m.csv").code == 0
    with (tmp_path / "m.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["estimator"] for row in rows} == {"sum", "global", "device", "linear"}


# --- evaluate ---


@pytest.mark.slow
def test_rows_of_an_evaluation(run: Run, kernels_csv: Path) -> None:
    ran = run("calibrate", "evaluate", kernels_csv, *FAST, "--split", "leave-model-out", "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert found["schema"] == "errcomp.calibration/1"
    assert (found["task"], found["seed"], found["source"]) == ("composition", 0, str(kernels_csv))
    names = ("sum", "global", "device", "linear")
    assert [r["estimator"] for r in found["rows"]] == list(names)
    promised = {
        "split", "estimator", "n", "mean_ape", "median_ape", "p90_ape", "coverage_90",
        "mean_width_90",
    }  # fmt: skip
    rows = {}
    for row in found["rows"]:
        assert promised <= row.keys()
        assert row["n"] == 16
        rows[row["estimator"]] = row
    # A factor for each device is what these runs are made of.
    assert rows["device"]["mean_ape"] < 0.02 < rows["sum"]["mean_ape"]
    assert rows["device"]["beats_sum"] is not False


def test_both_kinds_of_groups_are_left_out_by_default(
    run: Run, kernels_csv: Path, quick: None
) -> None:
    rows = run("calibrate", "evaluate", kernels_csv, *FAST, "--json").json["rows"]
    assert [(row["split"], row["estimator"]) for row in rows] == [
        (split, name)
        for split in ("leave-model-out", "leave-device-out")
        for name in ("sum", "device")
    ]
    mean = {(row["split"], row["estimator"]): row["mean_ape"] for row in rows}
    # A factor for each device is no help on a new one.
    assert mean["leave-model-out", "device"] < 0.02 < mean["leave-device-out", "device"]


def test_evaluation_for_people(run: Run, kernels_csv: Path, quick: None) -> None:
    argv = ("calibrate", "evaluate", kernels_csv, *FAST, "--split")
    ran = run(*argv, "leave-model-out,leave-device-out,leave-vendor-out,random")
    text = words(ran.out)
    for split in ("leave-model-out", "leave-device-out", "leave-vendor-out", "random"):
        assert f"{split}: composition of {kernels_csv}, 16 runs" in text
    assert "each device held out in turn" in text
    assert "10 random folds" in text
    assert "Best: the estimator device has the lowest mean error; " in text
    assert "· The estimator device " in text
    assert "A random split would have shown" in text
    assert "transfer to a vendor that was not in the fit" in text
    assert "AMD (8)" in text
    lines = ran.out.splitlines()
    body = lines[lines.index(next(line for line in lines if "─" in line)) + 1 :]
    assert body[0].split()[0] == "sum"


class Refusing(Quick):
    def fit(self, kernels: Any) -> Quick:
        if "bert" not in set(kernels.per_run("model")):
            raise InputError("without bert there is no fit.")
        return super().fit(kernels)


def test_runs_that_were_not_judged_nor_answered(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composed, "_predictors", predictors_of(Refusing))
    path = tmp_path / "kernels.csv"
    lines = [
        line.rsplit(",", 1)[0] + "," if line.startswith("V100/opt") else line
        for line in table().splitlines()
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    argv = ("calibrate", "evaluate", path, *FAST, "--split", "leave-model-out")
    found = run(*argv, "--json").json
    assert found["not_judged"] == ["V100/opt"]
    assert [one["held_out"] for one in found["refused"]] == ["bert"]
    text = words(run(*argv).out)
    said = "1 run without an end-to-end time, or without the times of all kernels (V100/opt)."
    assert f"Not evaluated: {said}" in text
    assert (
        "leave-model-out: no estimator predicted 4 runs (bert held out): without bert there is no "
        "fit." in text
    )


def test_what_is_known_of_strange_runs(run: Run, tmp_path: Path, quick: None) -> None:
    """Kernels far slower than in other runs, little but launches, more outputs than memory."""
    path = tmp_path / "kernels.csv"
    lines = [
        "run,kernel,kernel_class,count,shape,predicted,measured,device,model,mode,run_measured"
    ]
    for i, (name, device, model, one, end) in enumerate(each()):
        slow = 3.0 if name == "V100/opt" else 1 + 0.01 * (i % 4)
        rest = f"{device},{model},training,{end}"
        size = "10x10"
        if name == "H100/bert":
            size, rest = "100000x200000", f"{device},{model},training,{1.8 * end}"
        lines.append(f"{name},gemm,Linear,24,{size},{one},{one * slow},{rest}")
        if name == "MI100/gpt2":
            lines.append(f"{name},view,View,9000,1x1,0.007,0.007,{rest}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    argv = ("calibrate", "evaluate", path, *FAST, "--unit", "ms", "--split", "leave-model-out")
    text = run(*argv).out
    known = {line.split()[0]: line for line in text.split("largest errors of")[1].splitlines()
             if "/" in line}  # fmt: skip
    assert "slower than other runs suggest" in known["V100/opt"]
    assert "launches: " in known["MI100/gpt2"]
    assert "% of kernel time" in known["MI100/gpt2"]
    assert "outputs exceed device memory" in known["H100/bert"]
    assert sum(line.rstrip().endswith("–") for line in known.values()) == len(known) - 3


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "md", "tex"])
def test_files_by_suffix(
    run: Run, kernels_csv: Path, tmp_path: Path, quick: None, suffix: str
) -> None:
    target = tmp_path / f"out.{suffix}"
    argv = ("calibrate", "evaluate", kernels_csv, *FAST, "--split", "leave-device-out")
    ran = run(*argv, "-o", target)
    assert (ran.code, ran.err) == (0, f"wrote {target}\n")
    assert target.stat().st_size > 100
    if suffix == "csv":
        with target.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        found = run(*argv, "--json").json["rows"]
        assert [float(row["mean_ape"]) for row in rows] == [row["mean_ape"] for row in found]
    if suffix == "json":
        assert json.loads(target.read_text(encoding="utf-8"))["rows"]


# --- figures ---


@pytest.mark.extras
def test_figures_of_an_evaluation(run: Run, kernels_csv: Path, tmp_path: Path, quick: None) -> None:
    pytest.importorskip("matplotlib")
    names = ("predicted", "residuals", "coverage", "abstention")
    targets = {name: tmp_path / f"{name}.svg" for name in names}
    figures = [word for name, path in targets.items() for word in ("--figure", f"{name}={path}")]
    argv = ("calibrate", "evaluate", kernels_csv, *FAST, "--split", "leave-model-out,random")
    assert run(*argv, *figures).code == 0
    for name, path in targets.items():
        text = path.read_text(encoding="utf-8")
        assert text.startswith("<?xml")
        assert "leave-model-out" in text, name
        assert "n=16 runs" in text, name
    assert "leave-model-out, device (composition)" in targets["residuals"].read_text("utf-8")
    assert "(ms)" in targets["predicted"].read_text("utf-8")
    assert "4 models" in targets["coverage"].read_text("utf-8")


class WithPosterior(composition.Composition):
    """A fit that says of itself that it was sampled."""

    def fit(self, kernels: Any, *, progress: Any = None) -> WithPosterior:
        self.estimators = ("device",)
        super().fit(kernels, progress=progress)
        warnings.warn("one device is\nhardly known", SmallSampleWarning, stacklevel=1)
        rng = np.random.default_rng(0)
        shapes = {
            "intercept": (), "offset": (), "launch": (4,), "linear": (2,),
            "device_shift": (5,), "device_launch": (5,), "model_shift": (5,),
        }  # fmt: skip
        made = {name: rng.normal(0, 0.05, (200, *shape)) for name, shape in shapes.items()}
        made["launch"] += 1
        made |= {"sigma": np.full(200, 0.02), "nu": np.full(200, 5.0)}
        columns = Columns(
            names=tuple(f"x{i}" for i in range(7)), launch=(0, 1, 2, 3), offset=4, linear=(5, 6),
            center=np.zeros(2), scale=np.ones(2),
        )  # fmt: skip
        portable = HierarchicalModel(columns, sorted(DEVICES), sorted(MODELS), made)
        members = {**self.model_.members, "bayesian": portable}
        self.model_ = replace(self.model_, members=members)
        sampled = SimpleNamespace(diagnostics_=DIAGNOSTICS, caveats_=("P4 is alone",))
        self.members_["bayesian"] = sampled
        return self


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "Composition", WithPosterior)
    monkeypatch.setattr(calibrate, "find_spec", lambda _: "there")


def test_a_bayesian_fit_shows_how_it_was_sampled(
    run: Run, kernels_csv: Path, tmp_path: Path, sampled: None
) -> None:
    target = tmp_path / "gpu.errcomp"
    argv = ("calibrate", "fit", kernels_csv, "--estimator", "bayesian", "-o", target)
    argv = (*argv, "--where", "model=bert,gpt2")
    ran = run(*argv, "--json")
    assert ran.err == f"errcomp: warning: one device is hardly known\nwrote {target}\n"
    found = ran.json
    assert found["diagnostics"]["max_rhat"] == 1.0021
    assert found["diagnostics"]["caveats"] == ["P4 is alone"]
    assert "seconds" not in found["diagnostics"]
    assert len(found["overhead"]) == 4 * 5
    first, last = found["overhead"][0], found["overhead"][-1]
    assert (first["device"], first["launches"]) == ("H100", "launch_idle")
    assert (last["device"], last["launches"]) == (None, "run_start")
    assert first["low_90_us"] < first["median_us"] < first["high_90_us"]
    # No kernel is as short as a launch: the floor is the longest that a launch can take.
    assert first["median_us"] == pytest.approx(20.0, rel=0.05)
    text = words(run(*argv).out)
    assert "Sampling: 4 chains of 2000 draws, R-hat at most 1.0021, effective" in text
    assert "sample size at least 812, 0 divergences, BFMI at least 0.90." in text
    assert "· P4 is alone." in text
    assert "Overhead per launch in µs" in text
    assert "(a new device)" in text
    shown = run("calibrate", "show", target, "--json").json
    assert shown["overhead"] == found["overhead"]


@pytest.mark.extras
def test_figures_of_a_fit(run: Run, kernels_csv: Path, tmp_path: Path, sampled: None) -> None:
    pytest.importorskip("matplotlib")
    one, other = tmp_path / "overhead.svg", tmp_path / "posterior.svg"
    argv = ("calibrate", "fit", kernels_csv, "--estimator", "stack", "-o", tmp_path / "m.errcomp")
    argv = (*argv, "--where", "model=bert,gpt2")
    argv = (*argv, "--figure", f"overhead={one}", "--figure", f"posterior={other}")
    assert run(*argv).code == 0
    assert "overhead per launch (µs)" in one.read_text(encoding="utf-8")
    assert "MI210" in one.read_text(encoding="utf-8")
    assert "n=8 runs" in other.read_text(encoding="utf-8")


def test_without_matplotlib_nothing_is_computed(
    run: Run, kernels_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errcomp.cli.output.find_spec", lambda _: None)
    ran = run("calibrate", "evaluate", kernels_csv, *FAST, "--figure", "coverage=a.svg")
    assert ran.code == 2
    assert "errcomp[figures]" in ran.err


# --- bad input: one line, exit 2, nothing written ---

FIT, EVALUATE = ("fit", "k", "-o", "m.errcomp"), ("evaluate", "k")
BAD = [
    (("fit", "k"), "the following arguments are required: -o"),
    (("fit", "nothing.csv", *FAST, "-o", "m.errcomp"), "nothing.csv: no such file, and no"),
    ((*FIT, "--task", "training"), "invalid choice: 'training'"),
    (
        (*FIT, "--estimator", "oracle"),
        "unknown estimator 'oracle'. Estimators: sum, global, device",
    ),
    ((*FIT, "--estimator", ""), "--estimator takes names separated by commas, got ''"),
    ((*FIT, "--estimator", "sum,sum"), "names sum more than once"),
    ((*FIT, "--seed", "-1"), "is not a seed"),
    ((*FIT, *FAST, "--unit", "us"), "unit"),
    ((*FIT, *FAST, "--where", "run=z"), "no row has run=z"),
    (
        (*FIT, *FAST, "--where", "device=H100", "--where", "model=bert"),
        "a fit of sum, global, device, linear needs at least 3 measured runs, got 1",
    ),
    (("fit", "unitless.csv", *FAST, "-o", "m.errcomp"), "the times have no unit"),
    (
        ("fit", "unmeasured.csv", *FAST, "-o", "m.errcomp"),
        "no run has both an end-to-end time (column 'run_measured') and a measured time of each of "
        "its kernels. Runs in the table: 16",
    ),
    ((*FIT, *FAST, "--runs", "nothing.csv"), "nothing.csv"),
    ((*FIT, *FAST, "--runs", "unmeasured.csv"), "every run needs a name of its own"),
    (("fit", "k", *FAST, "-o", "k"), "would overwrite an input"),
    (("fit", "k", *FAST, "--runs", "r", "-o", "r"), "would overwrite an input"),
    (("fit", "k", *FAST, "-o", "other.txt"), "is not a readable model file, so it is not"),
    (("fit", "k", *FAST, "-o", "."), "-o: . is a folder; name a file"),
    (("fit", "k", *FAST, "-o", "no/m.errcomp"), "the folder no does not exist. Create it."),
    ((*FIT, *FAST, "--figure", "bands=a.svg"), "--figure takes overhead=FILE or posterior=FILE"),
    ((*FIT, *FAST, "--figure", "overhead=a.svg"), "draws the Bayesian fit: add bayesian"),
    (
        (*EVALUATE, *FAST, "--split", "leave-one-out"),
        "no split 'leave-one-out'. Did you mean 'leave-model-out'? Splits: leave-mo",
    ),
    ((*EVALUATE, *FAST, "--split", ""), "--split takes names separated by commas, got ''"),
    ((*EVALUATE, "--estimator", "oracle"), "unknown estimator 'oracle'"),
    (
        (*EVALUATE, *FAST, "--split", "leave-device-out", "--where", "device=H100"),
        "leave-device-out needs runs of at least 2",
    ),
    (
        ("evaluate", "unmeasured.csv", *FAST),
        "no run has both an end-to-end time (column 'run_measured') and a measured time of each of "
        "its kernels. Runs in the table: 16",
    ),
    ((*EVALUATE, *FAST, "--figure", "overhead=a.svg"), "--figure takes predicted=FILE or"),
    (
        (*EVALUATE, *FAST, "--figure", "coverage=no/a.png"),
        "the folder no does not exist. Create it.",
    ),
    ((*EVALUATE, *FAST, "--figure", "coverage=a.txt"), "the suffix sets the format"),
    ((*EVALUATE, *FAST, "-o", "k"), "would overwrite an input"),
    ((*EVALUATE, *FAST, "-o", "out.xlsx"), "cannot determine the format"),
    (("show",), "the following arguments are required: MODEL"),
    (("show", "nothing.errcomp"), "nothing.errcomp"),
    (("show", "other.txt"), "other.txt: "),
    ((), "ACTION is missing: fit, evaluate, check, adapt, show"),
]


@pytest.mark.parametrize(("argv", "message"), BAD)
def test_bad_usage_is_one_line_and_exit_2(
    run: Run,
    kernels_csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = table(runs=False).replace(",ms", "").replace(",unit", "")
    (tmp_path / "unitless.csv").write_text(
        table().replace(",ms,", ",").replace(",unit,", ","), encoding="utf-8"
    )
    (tmp_path / "unmeasured.csv").write_text(table(runs=False), encoding="utf-8")
    (tmp_path / "r.csv").write_text(plain, encoding="utf-8")
    (tmp_path / "other.txt").write_text("something else", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    names = {"k": kernels_csv.name, "r": "r.csv"}
    ran = run("calibrate", *(names.get(word, word) for word in argv))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("estimator", "gone", "extra"),
    [("bayesian", "pymc", "bayes"), ("boosted", "xgboost", "boost"), ("stack", "nutpie", "bayes"),
     ("boosted", "sklearn", "boost")],
)  # fmt: skip
@pytest.mark.parametrize("action", ["fit", "evaluate"])
def test_a_missing_extra_is_asked_for(
    run: Run,
    kernels_csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    estimator: str,
    gone: str,
    extra: str,
) -> None:
    monkeypatch.setattr(calibrate, "find_spec", lambda name: None if name == gone else "there")
    target = ("-o", tmp_path / "m.errcomp") if action == "fit" else ()
    ran = run("calibrate", action, kernels_csv, "--estimator", estimator, *target)
    assert (ran.code, ran.out) == (2, "")
    assert f"pip install 'errcomp[{extra}]'" in ran.err
    assert "--estimator physics" in ran.err
    assert list(tmp_path.iterdir()) == [kernels_csv]


def test_without_the_extra_and_a_choice_physics_is_fitted(
    run: Run, kernels_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "find_spec", lambda name: None if name == "pymc" else "there")
    # One factor has the name of physics: what it predicts is not looked at.
    known = estimators()
    factor = replace(known["physics"], make=lambda *_, **__: GlobalFactor(), explains=False)
    monkeypatch.setitem(known, "physics", factor)
    few = ("--split", "leave-device-out", "--where", "device=H100,V100,MI100")
    ran = run("calibrate", "evaluate", kernels_csv, *few, "--json")
    assert "note: physics alone is fitted; bayesian, boosted, stack need the extra" in ran.err
    rows = [row["estimator"] for row in ran.json["rows"]]
    assert rows == ["sum", "global", "device", "linear", "physics"]
