"""Help ends in examples, and every example runs as it is printed."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import build_parser, running
from errcomp.cli.parser import leaves
from tests.decisions.draws import fewer

Run = Callable[..., Any]

EXAMPLES: dict[str, tuple[str, ...]] = dict(running.EXAMPLES)
for _command in running.command_helps():
    EXAMPLES |= import_module(f"errcomp.cli.commands.{_command}").EXAMPLES
EVERY = sorted({line for lines in EXAMPLES.values() for line in lines})
SLOW = {
    "errcomp propagate validate neusight-kernels --where device=H100,L4,V100",
    "errcomp calibrate evaluate neusight-kernels --estimator linear --split leave-device-out",
    "errcomp halflife show ort",
    "errcomp halflife forecast ort-releases --where level=model --cluster model --error 10%",
    "errcomp claims search neusight --value neusight=8.9% --where vendor=NVIDIA",
    "errcomp claims search neusight --value neusight=2.3% --value habitat=121.4%",
    "errcomp datasets build neusight --from neusight-artifact --to rebuilt",
    "errcomp doctor",
    "errcomp plan gate history.db --change 10%",
    "errcomp compare neusight --evaluate",
    "errcomp compare neusight --between device --evaluate",
    # The fit to ort-cpu is an example too, of half the time.
    "errcomp calibrate fit torch-cpu --estimator linear -o torch.errcomp",
    # The audit of it is an example too; its page has pictures as that in test_report.py.
    "errcomp report neusight -o report.html",
}
EXTRAS = {"errcomp metrics drivers neusight": "statsmodels"}
SHARED = {"errcomp datasets build neusight --from neusight-artifact --to rebuilt"}

EVENTS = [
    {"ph": "X", "cat": "kernel", "name": f"gemm_{i % 2}", "pid": 0, "tid": 7, "ts": 100 * i,
     "dur": 40 + i, "args": {"device": 0, "stream": 7, "correlation": i}}
    for i in range(6)
]  # fmt: skip


def lines(header: str, rows: list[str]) -> str:
    return "\n".join([header, *rows]) + "\n"


def validations(column: str, versions: range) -> str:
    rows = [
        f"{version}.0,2024-{version:02}-01,s{series},10,{10 + series / 10 + (version % 3) / 20:.3f}"
        for version in versions
        for series in range(4)
    ]
    return lines(f"version,date,series,predicted,{column}", rows)


#: What an example reads: made here, or by another example.
FILES: dict[str, str] = {
    "pairs.csv": lines("gpu,estimate,latency", [f"A,{98 + 7 * i},{100 + 7 * i}" for i in range(9)]),
    "kernels.csv": lines(
        "run,kernel,kernel_class,count,predicted",
        [f"r{i // 3},k{i},{'gemm' if i % 2 else 'norm'},2,{i + 1}" for i in range(6)],
    ),
    "mine.json": json.dumps(
        {
            "schema": "errcomp.claims-of-a-tool/2",
            "tool": "mine",
            "claims": [{"printed": "5%", "metric": "MAPE", "source": "README"}],
        }
    ),
    "training.csv": lines("gpu,batch,latency", [f"A,{2**i},{3 + i}" for i in range(4)]),
    "paper.csv": lines("GPU,MAPE (%)", ["V100,5.2", "H100,2.3"]),
    "printed.csv": lines("quantity,value,n", ["mean,2.3%,20", "max,40%,20"]),
    "predicted.csv": lines("model,layer,predicted", [f"m,{i},{i + 1}" for i in range(5)]),
    "measured.csv": lines("model,layer_id,measured", [f"m,{i},{i + 1.1}" for i in range(5)]),
    "validations.csv": validations("measured", range(1, 9)),
    "log.csv": validations("latency", range(9, 10)),
    "new.csv": validations("measured", range(9, 10)),
    "trace.json": json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}),
    "bert_H100.json": json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}),
    "history.db": "errcomp history add history.db validations.csv",
    "ort.errcomp": "errcomp calibrate fit ort-cpu --estimator device -o ort.errcomp",
    "gpu.errcomp": "errcomp calibrate fit neusight-kernels --where device=L4,P4,V100 --estimator "
    "linear -o gpu.errcomp",
}


#: Files that an example made, for the next that reads them.
MADE: dict[str, bytes] = {}


def provide(run: Run, line: str) -> None:
    """Make the files that an example reads."""
    for word in shlex.split(line):
        made = FILES.get(word)
        if made is None or made == line or Path(word).exists():
            continue
        if word in MADE:
            Path(word).write_bytes(MADE[word])
        elif made.startswith("errcomp "):
            provide(run, made)
            assert run(*shlex.split(made)[1:]).code == 0
            MADE[word] = Path(word).read_bytes()
        else:
            Path(word).write_text(made, encoding="utf-8")


def marked(line: str) -> Any:
    marks = [pytest.mark.slow] * (line in SLOW) + [pytest.mark.shared] * (line in SHARED)
    needs = pytest.mark.extras if line in EXTRAS else pytest.mark.core
    return pytest.param(line, marks=[*marks, needs])


@pytest.mark.parametrize("line", [marked(line) for line in EVERY])
def test_an_example_runs(
    run: Run,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    if line in EXTRAS:
        pytest.importorskip(EXTRAS[line])
    if line in SHARED:
        shared = request.getfixturevalue("shared_data")
        (tmp_path / "neusight-artifact").symlink_to(shared / "neusight-artifact")
    # That they run is asked, not how precise their answers are.
    monkeypatch.setattr("errcomp.halflife.gate.planning._CHANGES", 24)
    monkeypatch.setattr("errcomp.halflife.gate.dry_run._MOST_ORDERS", 4)
    fewer(monkeypatch)
    provide(run, line)
    argv = shlex.split(line)[1:]
    ran = run(*argv)
    assert ran.code == 0, ran.err
    assert "warning" not in ran.err
    for option in ("-o", "--junit", "--markdown", "--to"):
        if option in argv:
            assert Path(argv[argv.index(option) + 1]).exists()
    for word, made in FILES.items():
        if made == line:
            MADE[word] = Path(word).read_bytes()


def groups(parser: argparse.ArgumentParser) -> set[str]:
    """Return the names of all commands, with those of their groups."""
    names = {""}
    for one in leaves(parser):
        words = one.prog.split()[1:]
        names |= {" ".join(words[:n]) for n in range(1, len(words) + 1)}
    return names


def test_every_command_has_examples_and_says_what_it_does() -> None:
    parser = build_parser()
    assert set(EXAMPLES) == groups(parser)
    for one in leaves(parser):
        name = one.prog.removeprefix("errcomp ")
        assert all(line.startswith(f"errcomp {name}") for line in EXAMPLES[name]), name
        assert one.description, f"{name} has no description"
        assert one.format_help().endswith(f"  {EXAMPLES[name][-1]}\n")


def test_help_fits_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    help_ = build_parser().format_help()
    assert max(map(len, help_.split("examples:")[0].splitlines())) < 80
    # A description is wrapped, an example is one line that can be copied.
    assert re.search(r"^    propagate +\w", help_, flags=re.M)
    assert "\nexamples:\n  errcomp audit neusight\n" in help_


def test_every_argument_is_explained() -> None:
    silent = [
        f"{one.prog} {action.dest}"
        for one in leaves(build_parser())
        for action in one._actions
        if not action.help
    ]
    assert silent == []


def test_nothing_asked_is_answered_with_help_on_stderr(run: Run) -> None:
    ran = run()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("usage: errcomp")
    ran = run("halflife")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "errcomp: ACTION is missing: fit, forecast, check, blame, show "
        "(see: errcomp halflife --help)\n"
    )
