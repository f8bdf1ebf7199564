"""Files for CI of all commands that have them: what is written, refused, and the exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.evaluation import composed
from errcomp.calibration.predictions import Predictions

Run = Callable[..., Any]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Pairs of two devices, predicted about 10 % too high."""
    path = tmp_path / "pairs.csv"
    lines = [f"{'AB'[i % 2]},{1.08 + 0.004 * (i % 10)},1.0" for i in range(24)]
    path.write_text("device,predicted,measured\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Four runs on each of six devices, whose kernels are predicted 20 % off, all alike."""
    path = tmp_path / "kernels.csv"
    lines = ["run,device,model,kernel,kernel_class,count,predicted,measured,run_measured,unit"]
    for device in range(6):
        for model in range(4):
            off = 1 + 0.2 * (-1) ** (device + model)
            lines += [
                f"r{device}{model},d{device},m{model},k{k},Linear,1,{off * (k + 1):.4f},"
                f"{k + 1:.4f},{8.4 + 0.1 * model + 0.03 * device:.4f},ms"
                for k in range(3)
            ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def outcomes(path: Path) -> dict[str, str]:
    cases = ET.parse(path).getroot().iter("testcase")
    return {str(case.get("name")): case[0].tag if len(case) else "passed" for case in cases}


@pytest.mark.parametrize(
    ("claim", "options", "code", "word"),
    [
        ("5%", ("--fail-on", "overstated"), 1, "failure"),
        ("5%", (), 0, "failure"),
        ("5%", ("--fail-on", "understated"), 0, "passed"),
        ("10%", ("--fail-on", "overstated"), 0, "passed"),
        ("50%", ("--fail-on", "overstated", "--fail-on", "understated"), 1, "failure"),
    ],
)
def test_audit(
    run: Run, pairs: Path, claim: str, options: tuple[str, ...], code: int, word: str
) -> None:
    junit, summary = pairs.parent / "audit.xml", pairs.parent / "audit.md"
    argv = (
        "audit",
        pairs,
        "--claim",
        claim,
        "--aggregation",
        "mean",
        "--cluster",
        "none",
        *options,
    )
    ran = run(*argv, "--junit", junit, "--markdown", summary)
    assert ran.code == code
    assert outcomes(junit)[f"all pairs, claim {claim.replace('%', ' %')}"] == word
    assert ran.err.splitlines() == [f"wrote {junit}", f"wrote {summary}"]
    assert summary.read_text(encoding="utf-8").startswith("## Accuracy audit: ")
    # What is printed is the same with and without the files.
    assert run(*argv).out == ran.out


def test_an_audit_by_too_few_devices_decides_nothing(run: Run, pairs: Path) -> None:
    """The word, its reason, the exit code, the document and the report agree."""
    junit = pairs.parent / "audit.xml"
    argv = ("audit", pairs, "--by", "", "--claim", "5%", "--aggregation", "mean")
    ran = run(*argv, "--fail-on", "overstated", "--junit", junit, "--json")
    assert ran.code == 0
    assert outcomes(junit) == {"all pairs, claim 5 %": "skipped"}
    (claim,) = ran.json["claims"]
    assert claim["verdict"] == "not verifiable"
    assert claim["reason"].startswith("2 devices are too few to represent others")
    assert claim["reason"] in " ".join(run(*argv).out.split())
    assert run(*argv, "--fail-on", "not verifiable").code == 1


def test_an_audit_without_a_claim_cannot_pass(run: Run, pairs: Path, tmp_path: Path) -> None:
    junit = tmp_path / "a.xml"
    ran = run("audit", pairs, "--fail-on", "overstated", "--junit", junit)
    assert ran.code == 2
    assert "--fail-on overstated has nothing to check: errcomp knows no claim about" in ran.err
    assert not junit.exists()
    assert run("audit", pairs, "--junit", junit).code == 0
    assert outcomes(junit) == {}


def test_several_claims_are_judged_together(run: Run, tmp_path: Path) -> None:
    """Device A fails by itself, but not at the level that holds for both devices together."""
    rows = ["device,predicted,measured"]
    for device, error in (("A", 0.06), ("B", 0.04)):
        rows += [f"{device},{1 + error + 0.012 * (i - 3.5)},1.0" for i in range(8)]
    table, junit = tmp_path / "many.csv", tmp_path / "many.xml"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    argv = ("audit", table, "--claim", "3.9%", "--aggregation", "mean", "--fail-on", "overstated")
    argv = (*argv, "--cluster", "none")
    ran = run(*argv, "--junit", junit, "--json")
    words = [(row["verdict"], row["verdict_jointly"]) for row in ran.json["rows"]]
    assert words == [("overstated", "consistent"), ("consistent", "consistent")]
    assert ran.code == 0
    assert set(outcomes(junit).values()) == {"passed"}
    # Without groups to be many, the same pairs fail.
    assert run(*argv, "--where", "device=A").code == 1


@pytest.mark.parametrize(
    ("assume", "options", "code", "word"),
    [
        ("comonotonic", ("--fail-on", "narrow"), 0, "passed"),
        ("independent,comonotonic", ("--fail-on", "narrow"), 1, "failure"),
        ("independent", (), 0, "failure"),
        ("comonotonic,independent", ("--fail-on", "narrow"), 0, "passed"),
    ],
)
def test_validate(
    run: Run, kernels: Path, assume: str, options: tuple[str, ...], code: int, word: str
) -> None:
    junit, summary = kernels.parent / "v.xml", kernels.parent / "v.md"
    ran = run("propagate", "validate", kernels, "--correlation", assume, *options,
              "--junit", junit, "--markdown", summary)  # fmt: skip
    first = assume.partition(",")[0]
    assert (ran.code, outcomes(junit)[f"{first}, 90 % band"]) == (code, word)
    assert len(outcomes(junit)) == 4
    assert f"| {first} (main) |" in summary.read_text(encoding="utf-8")


def factor(off: float) -> Any:
    """Return what fits one factor to part of a table, with bands of a tenth; off by `off`."""

    def fit(_: Any, task: str, estimators: Sequence[str], kernels: Any) -> dict[str, Any]:
        ratio = off * float(np.median(kernels.totals().run_measured / kernels.totals().measured))

        def predict(new: Any) -> Predictions:
            found = new.totals()
            middle = ratio * found.measured
            ends = middle[:, None] * np.ones(len(LEVELS))
            return Predictions(
                run=found.run, total=found.measured, predicted=middle, low=0.9 * ends,
                high=1.1 * ends, quantiles=middle[:, None] * np.ones(len(QUANTILES)), parts={},
                fallback=found.run, calibrated=np.ones(len(middle), dtype=bool),
                warnings=((),) * len(middle), estimator="device", unit=found.unit,
            )  # fmt: skip

        return {"sum": predict, "device": predict}

    return fit


@pytest.mark.parametrize(
    ("off", "options", "code", "word"),
    [
        (1.0, ("--fail-on", "worse", "--fail-on", "narrow"), 0, "passed"),
        (2.0, (), 0, "failure"),
        (2.0, ("--fail-on", "worse"), 1, "failure"),
        (2.0, ("--fail-on", "narrow"), 1, "failure"),
    ],
)
def test_evaluate(
    run: Run,
    kernels: Path,
    monkeypatch: pytest.MonkeyPatch,
    off: float,
    options: tuple[str, ...],
    code: int,
    word: str,
) -> None:
    monkeypatch.setattr(composed, "_predictors", factor(off))
    junit, summary = kernels.parent / "e.xml", kernels.parent / "e.md"
    ran = run("calibrate", "evaluate", kernels, "--estimator", "device", "--split",
              "leave-device-out", "--junit", junit, "--markdown", summary, *options)  # fmt: skip
    assert ran.code == code
    # Only the estimator that was asked for, although the sum is evaluated as well.
    assert outcomes(junit) == {"leave-device-out, device": word}
    assert "| leave-device-out | device | 24 |" in summary.read_text(encoding="utf-8")


COMMANDS = {
    "audit": ("audit", "IN"),
    "validate": ("propagate", "validate", "IN"),
    "evaluate": ("calibrate", "evaluate", "IN", "--estimator", "device"),
    "check": ("halflife", "check", "IN", "IN"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--junit", "no/a.xml"), "--junit: no/a.xml: cannot be written: the folder no"),
        (("--markdown", "no/a.md"), "--markdown: no/a.md: cannot be written: the folder no"),
        (("--junit", "IN"), "--junit: in.csv would overwrite an input"),
        (("--markdown", "./IN"), "--markdown: in.csv would overwrite an input"),
        (("--markdown", "link"), "--markdown: link would overwrite an input"),
        (("--junit", "folder"), "--junit: folder is a folder; name a file"),
        (("--junit", ""), "--junit: . is a folder; name a file"),
        (("--junit", "/dev/full"), "--junit: /dev/full is not an ordinary file; name a file"),
        (("--junit", "pipe"), "--junit: pipe is not an ordinary file; name a file"),
        (
            ("--junit", "a", "--markdown", "a"),
            "--markdown: a is also the file of --junit; name different files",
        ),
        (
            ("-o", "a.csv", "--junit", "a.csv"),
            "--junit: a.csv is also the file of -o; name different files",
        ),
    ],
)
def test_files_are_refused_before_the_work(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    # No table at all: a command that began to read it would say so.
    Path("in.csv").write_text("nothing\n", encoding="utf-8")
    Path("folder").mkdir()
    Path("link").symlink_to("in.csv")
    os.mkfifo("pipe")
    before = sorted(Path().iterdir())
    argv = [word.replace("IN", "in.csv") for word in (*COMMANDS[command], *options)]
    ran = run(*argv)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert sorted(Path().iterdir()) == before
    assert Path("in.csv").read_text(encoding="utf-8") == "nothing\n"


@pytest.mark.parametrize(
    "options", [("--junit", "a.xml"), ("--markdown", "a.md"), ("--fail-on", "narrow")]
)
def test_only_validate_is_a_check(run: Run, kernels: Path, options: tuple[str, str]) -> None:
    ran = run("propagate", kernels, *options)
    assert ran.code == 2
    assert f"{options[0]} needs propagate validate" in ran.err


def test_both_files_or_none(
    run: Run, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file cannot be written: the first is left as it was."""
    make = os.open

    def full(path: Any, *options: Any, **named: Any) -> int:
        if Path(path).name.startswith(".b.md."):
            raise OSError(28, "No space left on device")
        return make(path, *options, **named)

    monkeypatch.setattr(os, "open", full)
    (tmp_path / "a.xml").write_text("older", encoding="utf-8")
    ran = run("audit", pairs, "--claim", "5%", "--junit", tmp_path / "a.xml",
              "--markdown", tmp_path / "b.md")  # fmt: skip
    assert ran.code == 2
    assert "b.md: cannot be written (No space left on device)" in ran.err
    assert (tmp_path / "a.xml").read_text(encoding="utf-8") == "older"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.xml", "pairs.csv"]


def test_a_summary_replaces_what_was_there(run: Run, pairs: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("older\n", encoding="utf-8")
    assert run("audit", pairs, "--claim", "5%", "--markdown", summary).code == 0
    assert "older" not in summary.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command", [("audit",), ("propagate",), ("calibrate", "evaluate"), ("halflife", "check")]
)
def test_help_says_what_fails(run: Run, command: tuple[str, ...]) -> None:
    text = run(*command, "--help").out
    assert "--junit FILE" in text
    assert "--markdown FILE" in text
    assert "--fail-on" in text
