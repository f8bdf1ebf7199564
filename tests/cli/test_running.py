"""Only the command that is called is imported; a command is added by its file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import commands
from errcomp.cli.running import command_helps

pytestmark = pytest.mark.core

Run = Callable[..., Any]

#: Runs a command in a fresh interpreter, and prints which modules of errcomp it imported.
IMPORTED = """
import contextlib, io, json, sys
from errcomp.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "errcomp"]))
"""
#: Runs a command twice, and prints which modules of errcomp work the second time.
WORKING = """
import contextlib, io, json, sys
from errcomp.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(sys.argv[1:])
    working = set()
    def note(frame, event, _):
        if event == "call":
            working.add(frame.f_globals.get("__name__", ""))
    sys.setprofile(note)
    main(sys.argv[1:])
    sys.setprofile(None)
print(json.dumps([name for name in working if name.split(".")[0] == "errcomp"]))
"""


def modules(code: str, *argv: object) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, argv)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("argv", [["--help"], ["--version"], [], ["adit"]])
def test_what_calls_no_command_imports_none(argv: list[str]) -> None:
    imported = modules(IMPORTED, *argv)
    assert imported == {
        "errcomp",
        "errcomp._moved",
        "errcomp.cli",
        "errcomp.cli.commands",
        "errcomp.cli.parser",
        "errcomp.cli.running",
        "errcomp.cli.streams",
        "errcomp.errors",
        "errcomp.system",
        "errcomp.system.stopping",
    }


@pytest.mark.parametrize("command", ["audit", "halflife", "datasets list"])
def test_only_the_command_that_is_called_is_imported(command: str) -> None:
    imported = modules(IMPORTED, *command.split(), "--help")
    called = {name for name in imported if name.startswith("errcomp.cli.commands.")}
    assert called == {f"errcomp.cli.commands.{command.split()[0]}"}
    # Help says what there is, without what does the work.
    rooms = {name.split(".")[1] for name in imported if "." in name}
    assert not rooms & {"claims", "datasets", "halflife", "metrics", "readers", "scale", "tables"}


def test_the_way_from_a_file_to_the_table_of_the_audit_is_short(pairs_csv: Path) -> None:
    argv = ("audit", pairs_csv, "--predicted", "estimate", "--measured", "latency")
    working = modules(WORKING, *argv)
    assert len({name for name in working if name.startswith("errcomp.cli")}) <= 7
    # Four of these, and six of those imported, are about the measured side.
    assert len(working) <= 53
    assert len(modules(IMPORTED, *argv)) <= 100


DUMMY = '''"""Greet a table."""

EXAMPLES = {"greet": ("errcomp greet neusight",)}


def build(parser):
    parser.description = "Greet a table by its name."
    parser.add_argument("table", help="its name")
    parser.set_defaults(run=run)


def run(args):
    print(f"Hello {args.table}")
'''


def test_a_command_is_added_by_its_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greet.py").write_text(DUMMY, encoding="utf-8")
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    try:
        assert re.search(r"\n    greet +greet a table\n", run("--help").out)
        assert run("greet", "neusight").out == "Hello neusight\n"
        shown = run("greet", "--help").out
        assert "Greet a table by its name." in shown
        assert shown.endswith("\nexample:\n  errcomp greet neusight\n")
        assert "Did you mean 'greet'? Choices: audit, " in run("great").err
        assert "greet" in run("completion", "bash").out
        assert "no option '--tabel' (see: errcomp greet --help)" in run("greet", "x", "--tabel").err
    finally:
        sys.modules.pop("errcomp.cli.commands.greet", None)
        vars(commands).pop("greet", None)


def test_every_command_is_listed_in_its_order() -> None:
    assert tuple(command_helps()) == commands.ORDER
