"""Options that contradict each other, or that a command cannot use: one line, and no result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errcomp.calibration import Composition
from errcomp.calibration.estimators import WITHOUT_EXTRA, default_estimators, needs_of
from errcomp.calibration.estimators.bayesian.diagnostics import SamplingError
from errcomp.cli.commands import calibrate
from errcomp.errors import InputError

Run = Callable[..., Any]

FILES = {
    "pairs.csv": "device,app,predicted,measured\n"
    + "".join(f"{'AB'[i % 2]},{i // 2},{10 + i % 3},10\n" for i in range(12)),
    "kernels.csv": "run,kernel,count,predicted,measured\nr,k,1,1,2\nr,l,2,2,3\n",
    "history.csv": "version,op,predicted,measured\n1,a,1,1\n2,a,1,2\n",
    "new.csv": "version,op,predicted,measured\n3,a,1,1\n",
    "claims.json": "{}",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


ONE_KIND = "--between KEY: without it, every kind of choice is evaluated"

REFUSED = [
    ("audit pairs.csv --claim 5% --claims claims.json",
     "--claim and --claims both say what to check. Give one of them"),
    ("audit pairs.csv --metric MAE",
     "--metric is the metric of --claim: give --claim as well"),
    ("audit pairs.csv --aggregation mean",
     "--aggregation says how --claim was averaged: give --claim as well"),
    ("compare pairs.csv",
     "add --between KEY, the key whose values are the alternatives. Keys of pairs.csv: device, "
     "app"),
    *((f"compare pairs.csv --evaluate --{flag} {value}", f"--{flag} needs {ONE_KIND}")
      for flag, value in (("within", "app"), ("errors", "pairs.csv"), ("per", "app"),
                          ("cluster", "app"), ("at-most", "app=3"), ("at-least", "app=3"))),
    ("compare pairs.csv --evaluate --fail-on regret>5%",
     f"--fail-on, --junit and --markdown need {ONE_KIND}"),
    ("compare pairs.csv --between device --fail-on regret>5%",
     "a check needs --evaluate and a condition, e.g. --fail-on 'regret>5%'"),
    ("halflife check history.csv",
     "NEW is missing: the table of validations of a new version. To see what the check would have "
     "done with the history, add --dry-run."),
    ("halflife check history.csv new.csv --dry-run",
     "--dry-run uses only the history. Leave out NEW, or --dry-run."),
    ("halflife check history.csv new.csv --dry-run --recalibrate --junit x.xml --markdown x.md",
     "--dry-run uses only the history. Leave out NEW, --recalibrate, --junit, --markdown, or "
     "--dry-run."),
    ("measurements budget pairs.csv --kernels a,b,c",
     "--kernels takes two columns, got 3: --kernels PREDICTED,MEASURED"),
    ("measurements budget kernels.csv --per-run --kernels a,b",
     "leave out --kernels: --per-run reads a table of kernels, and only tables of pairs have these "
     "options"),
    ("measurements budget kernels.csv --per-run --zeros exclude --missing exclude",
     "leave out --zeros, --missing: --per-run reads a table of kernels, and only tables of pairs "
     "have these options"),
    ("audit neusight --unit ms",
     "neusight is a built-in table: its columns and unit are known, and all its rows have values. "
     "Leave out --predicted, --measured, --column, --unit, --zeros, --missing and --decimal."),
    ("audit neusight --missing exclude",
     "neusight is a built-in table: its columns and unit are known, and all its rows have values. "
     "Leave out --predicted, --measured, --column, --unit, --zeros, --missing and --decimal."),
    ("audit neusight-kernels",
     "neusight-kernels is not a table of pairs. Use `errcomp propagate neusight-kernels`."),
    ("propagate neusight-kernels --unit ms --tool x",
     "neusight-kernels is a built-in table: its columns, unit and tool are known, so leave out "
     "--unit, --tool"),
    ("report pairs.csv '' -o x.html",
     "a RESULT is empty; name a file, a folder or a built-in table"),
    ("report pairs.csv -o x.txt",
     "x.txt: a report is an HTML page; name a file that ends in .html"),
    ("claims search pairs.csv",
     "no published figure is given. Add one: errcomp claims search pairs.csv --value 2.3%"),
    ("claims search pairs.csv --value 2% --value 3%",
     "two figures for the table: 2%, 3%. Keep one"),
]  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "message"), REFUSED, ids=[one for one, _ in REFUSED])
def test_what_cannot_be_used_is_refused_with_the_remedy(
    run: Run, command: str, message: str
) -> None:
    ran = run(*(word.strip("'") for word in command.split()))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"errcomp: {message}\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("share", "message"),
    [
        ("0", "argument --least: 0 must be above 0 and at most 100 %"),
        ("101%", "argument --least: 101% must be above 0 and at most 100 %"),
    ],
)
def test_a_share_of_matched_rows_is_a_share(run: Run, share: str, message: str) -> None:
    argv = ("join", "pairs.csv", "pairs.csv", "--on", "device,app", "-o", "x.csv")
    ran = run(*argv, "--least", share)
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.usefixtures("folder")
def test_fewer_matches_are_enough_on_request(run: Run) -> None:
    Path("half.csv").write_text("device,app,measured\nA,0,10\nB,0,10\nA,90,10\nB,90,10\n")
    argv = ("join", "pairs.csv", "half.csv", "--on", "device,app", "-o", "x.csv")
    assert run(*argv).code == 2
    assert run(*argv, "--least", "51%").code == 2
    assert not Path("x.csv").exists()
    ran = run(*argv, "--least", "50%")
    assert ran.code == 0, ran.err
    assert Path("x.csv").read_text(encoding="utf-8").count("\n") == 3
    Path("x.csv").unlink()
    assert run("join", "pairs.csv", "pairs.csv", *argv[3:], "--least", "1").code == 0


def test_a_closed_standard_input_is_no_result(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errcomp.cli.commands.report._STDIN", Path("/nowhere/stdin"))
    ran = run("report", "-", "-o", "x.html")
    assert (ran.code, ran.err) == (2, "errcomp: -: standard input is closed; name a file\n")


def test_a_pipe_is_not_named_twice(run: Run, tmp_path: Path) -> None:
    pipe, other = tmp_path / "pipe", tmp_path / "other"
    os.mkfifo(pipe)
    other.symlink_to(pipe)
    for name in (pipe, other):
        ran = run("report", pipe, name, "-o", tmp_path / "x.html")
        assert (ran.code, ran.err) == (
            2,
            f"errcomp: {name} is named twice, but a pipe can be read only once. Write it to a file "
            "(-o FILE.json) and name that file.\n",
        )


def test_draws_that_are_not_reliable_name_other_estimators(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: Any, **__: Any) -> None:
        raise SamplingError("the draws are not reliable.")

    monkeypatch.setattr(Composition, "fit", fit)
    argv = ("calibrate", "fit", "kernels.csv", "--unit", "ms", "--estimator", "device")
    ran = run(*argv, "-o", "m.npz")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(
        "errcomp: the draws are not reliable. On the command line: choose --estimator boosted or "
        "linear.\n"
    )
    assert not (folder / "m.npz").exists()


def test_without_its_extra_what_needs_none_is_fitted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual, needs_none = default_estimators(), WITHOUT_EXTRA
    packages = {package for _, package, _ in needs_of(usual)}
    assert packages
    assert not needs_of(needs_none)
    asked: list[str] = []

    def there(package: str) -> object:
        asked.append(package)
        return package if package in known else None

    monkeypatch.setattr(calibrate, "find_spec", there)
    args: Any = SimpleNamespace(estimator=None)
    known = packages
    assert calibrate._estimators(args) == usual
    assert set(asked) == packages
    assert capsys.readouterr().err == ""
    known = set()
    assert calibrate._estimators(args) == needs_none
    assert capsys.readouterr().err == (
        f"note: {', '.join(needs_none)} alone is fitted; {', '.join(usual)} need the extra "
        "errcomp[calibration]\n"
    )
    args.estimator = usual[0]
    with pytest.raises(InputError, match="; or choose --estimator physics, which needs no extra p"):
        calibrate._estimators(args)
    args.estimator = ","
    with pytest.raises(InputError, match="--estimator takes names separated by commas, got ','"):
        calibrate._estimators(args)
