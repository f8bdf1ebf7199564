"""Only the command that is called is imported; a command is added by its file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errcomp.cli import commands, main, running
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
#: Runs a command twice, and prints which modules of errcomp work the second time, and all that
#: were imported.
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
both = ([name for name in names if name.split(".")[0] == "errcomp"] for names in
        (working, sys.modules))
print(json.dumps([*both]))
"""


def modules(code: str, *argv: object) -> set[str]:
    return set(printed(code, *argv))


def printed(code: str, *argv: object) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, argv)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


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
    working, imported = printed(WORKING, *argv)
    assert len({name for name in working if name.startswith("errcomp.cli")}) <= 7
    # Four of these, and six of those imported, are about the measured side.
    assert len(working) <= 53
    assert len(imported) <= 100


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


def test_the_text_of_an_error_of_the_system_names_its_file(run: Run, tmp_path: Path) -> None:
    def fail(error: Exception) -> Any:
        def command(args: Any) -> None:
            raise error

        return command

    import errcomp.cli.commands.readers as command

    with pytest.MonkeyPatch.context() as patch:
        for error, told in (
            (OSError(28, "No space left", "a.csv"), "errcomp: a.csv: No space left\n"),
            (OSError("odd"), "errcomp: odd\n"),
        ):
            patch.setattr(command, "run", fail(error))
            ran = run("readers")
            assert (ran.code, ran.out, ran.err) == (2, "", told)


def test_a_reader_that_closes_the_pipe_gets_the_exit_code_so_far(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errcomp.cli.commands.readers as command

    silenced = []

    def closed(args: Any) -> None:
        args.exit_code = 1
        raise BrokenPipeError

    monkeypatch.setattr(command, "run", closed)
    monkeypatch.setattr("errcomp.cli.running.silence", lambda: silenced.append(True))
    ran = run("readers")
    assert (ran.code, ran.out, ran.err, silenced) == (1, "", "", [True])


def test_closed_streams_are_opened_on_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert running.run(["readers"]) == 0
    for stream in (sys.stdout, sys.stderr):
        assert stream.name == os.devnull
        assert stream.writable()
        stream.close()


def test_a_process_of_its_own_collects_garbage_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[int, ...]] = []
    asked: list[Any] = []

    def command(argv: Any) -> int:
        asked.append(argv)
        return 7

    monkeypatch.setattr("errcomp.cli.gc.set_threshold", lambda *numbers: set_to.append(numbers))
    monkeypatch.setattr(running, "run", command)
    assert main(["readers"]) == 7
    assert set_to == []
    assert main() == 7
    assert set_to == [(50_000, 20, 20)]
    assert asked == [["readers"], None]


def test_a_signal_is_raised_and_told_again_where_a_library_dropped_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_AGAIN_S", 60.0)
    with running._Signals() as signals:
        signals.check()
        with pytest.raises(KeyboardInterrupt):
            signals._stop(signal.SIGINT, None)
        timer = signals._timer
        assert timer is not None
        assert timer.daemon
        assert timer.is_alive()
    assert not timer.is_alive()
    with pytest.raises(KeyboardInterrupt):
        signals.check()
    signals._stop(signal.SIGTERM, None)  # the block has ended
    assert signals._timer is timer


def test_a_second_signal_does_not_keep_the_first_from_cleaning_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_AGAIN_S", 60.0)
    with running._Signals() as signals:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            signals._stop(signal.SIGTERM, None)
        with pytest.raises(SystemExit) as raised:
            signals.check()
        assert raised.value.code == 128 + signal.SIGTERM == 143
        with pytest.raises(SystemExit):
            signals._stop(signal.SIGTERM, None)


def test_what_python_drops_is_reported_but_for_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    late = OSError("Signal 2 ignored due to race condition")
    errors = [ValueError("odd"), KeyboardInterrupt(), SystemExit(143), late]
    with running._Signals():
        for error in errors:
            sys.unraisablehook(SimpleNamespace(exc_type=type(error), exc_value=error))
    assert [one.exc_value for one in reported] == errors[:1]
    assert sys.unraisablehook == reported.append
