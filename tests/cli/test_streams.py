"""What a command does when its output goes nowhere, or it is told to stop; its progress bar."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import main, streams
from errcomp.cli.streams import warnings_told
from errcomp.tables import Pairs

pytestmark = pytest.mark.core

ERRCOMP = [sys.executable, "-m", "errcomp"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_crash(closed: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m errcomp datasets show neusight {closed}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_bad_usage_is_exit_2_even_if_nobody_can_be_told() -> None:
    done = subprocess.run(
        f"{sys.executable} -m errcomp datasets show none 2>/dev/full", shell=True, check=False
    )
    assert done.returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        "audit postgresql://me:hunter2@h/db",
        "audit postgres:me:hunt@hunter2@h/db",
        "halflife fit postgresql:/me:hunter2@h/db",
        "history check Postgresql+psycopg:/me:hunter2@h/db",
        "halflife fit postgresql://me@h/db?password=hunter2 --column op=name",
        "history list postgresql:/me:hunter2@h/db",
        "history list postgresql://me:hunter2@h:port/db",
    ],
)
def test_a_password_is_never_printed(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(command.split()) == 2
    printed = "".join(capsys.readouterr())
    assert printed.startswith("errcomp: ")
    assert printed.count("\n") == 1
    assert "hunt" not in printed


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "audit --help",
        "calibrate fit --help",
        "completion zsh",
        "datasets show neusight",
    ],
)
def test_a_full_disk_is_told(command: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    done = subprocess.run(
        f"{sys.executable} -m errcomp {command} >/dev/full",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    said = "errcomp: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("command", ["--help", "audit --help"])
def test_a_reader_of_help_may_leave(command: str) -> None:
    script = f"{sys.executable} -m errcomp {command} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stderr == ""
    assert done.stdout.startswith("usage: errcomp")
    assert done.stdout.endswith("\n0\n")


@pytest.mark.parametrize(
    "module",
    ["errcomp.cli.running", "argparse", "errcomp.cli.commands.metrics", "errcomp.errors", "polars"],
)
def test_an_interrupt_while_it_starts_is_one_line(module: str) -> None:
    """A signal that comes when a module is looked for, from the first of them on."""
    code = (
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "from errcomp.cli import main\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.exit(main(['metrics', 'neusight']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "errcomp: interrupted\n"


#: What errcomp answers to a signal: its exit code, and what it says.
ANSWERS = [("SIGINT", 130, "errcomp: interrupted\n"), ("SIGTERM", 143, "")]


@pytest.mark.parametrize(("number", "code", "said"), ANSWERS)
def test_a_signal_that_python_drops_is_heard(number: str, code: int, said: str) -> None:
    """As it drops one that comes while a callback of a weak reference runs."""
    program = (
        "import signal, sys, weakref\n"
        "from errcomp.cli import main\n"
        "class Drop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'errcomp.cli.commands.propagate':\n"
        "            kept = type('Kept', (), {})()\n"
        f"            send = lambda _: signal.raise_signal(signal.{number})\n"
        "            self.ref = weakref.ref(kept, send)\n"
        "            del kept\n"
        "sys.meta_path.insert(0, Drop())\n"
        "sys.exit(main(['propagate', 'validate', '--json']))\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.parametrize(("number", "code", "said"), ANSWERS)
def test_a_signal_that_a_library_drops_is_heard(number: str, code: int, said: str) -> None:
    """As one does that tries an import and takes any failure for a missing extra."""
    program = (
        "import contextlib, signal, sys, time\n"
        "from errcomp.cli import main\n"
        "class Drop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'errcomp.cli.commands.propagate':\n"
        "            with contextlib.suppress(BaseException):\n"
        f"                signal.raise_signal(signal.{number})\n"
        "            while True:\n"
        "                time.sleep(0.01)\n"
        "sys.meta_path.insert(0, Drop())\n"
        "sys.exit(main(['propagate', 'validate', '--json']))\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.parametrize(("number", "code", "said"), ANSWERS)
def test_a_signal_while_one_is_answered_is_not_another(number: str, code: int, said: str) -> None:
    """The second comes while the timer starts; none is left to come after the command."""
    program = (
        "import signal, sys, time\n"
        "from errcomp.cli import main, running\n"
        "class Twice(running.Timer):\n"
        "    def start(self):\n"
        f"        signal.raise_signal(signal.{number})\n"
        "        super().start()\n"
        "running.Timer = Twice\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'errcomp.cli.commands.propagate':\n"
        f"            signal.raise_signal(signal.{number})\n"
        "sys.meta_path.insert(0, Stop())\n"
        "try:\n"
        "    code = main(['propagate', 'validate', '--json'])\n"
        "except SystemExit as ended:\n"
        "    code = ended.code\n"
        "time.sleep(0.3)\n"
        "sys.exit(code)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.parametrize(("number", "code", "said"), ANSWERS)
@pytest.mark.parametrize("error", ["TypeError", "OSError", "InputError", "GeneratorExit"])
def test_a_signal_that_a_library_turns_into_another_error_is_one(
    error: str, number: str, code: int, said: str
) -> None:
    """As compiled ones do; a reader then says that the file is damaged."""
    program = (
        "import signal, sys\n"
        "from errcomp.cli import main\n"
        "from errcomp.errors import InputError\n"
        "class Break:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'errcomp.cli.commands.propagate':\n"
        "            try:\n"
        f"                signal.raise_signal(signal.{number})\n"
        "            except BaseException:\n"
        f"                raise {error}('initialization failed')\n"
        "sys.meta_path.insert(0, Break())\n"
        "sys.exit(main(['propagate', 'validate', '--json']))\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.parametrize(("number", "code", "said"), ANSWERS)
def test_a_second_signal_does_not_keep_a_command_from_cleaning_up(
    tmp_path: Path, number: str, code: int, said: str
) -> None:
    """Polars makes two of one Ctrl-C: an exception, and then what Python raises."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from errcomp import cli\n"
        "from errcomp.system.files import replacing\n"
        "def run(args):\n"
        "    with replacing(Path('a.json')) as temporary:\n"
        "        try:\n"
        f"            signal.raise_signal(signal.{number})\n"
        "        finally:\n"
        f"            signal.raise_signal(signal.{number})\n"
        "import errcomp.cli.commands.datasets as module\n"
        "module._list = run\n"
        "code = cli.main(['datasets', 'list'])\n"
        "print(os.listdir(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
        "sys.exit(code)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)
    assert done.stdout == ("[] True\n" if code == 130 else "")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_in_code_run_by_exec_ends_with_the_same_code(tmp_path: Path) -> None:
    """``python -m`` would die from the signal, though it was answered."""
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'errcomp.errors':\n"
        "            exec('signal.raise_signal(signal.SIGINT)')\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "errcomp", "metrics", "neusight"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "errcomp: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "said"), ANSWERS)
def test_a_signal_while_a_store_is_closed_is_not_logged(
    tmp_path: Path, number: str, code: int, said: str
) -> None:
    program = (
        "import signal, sys\n"
        "from sqlalchemy.engine.default import DefaultDialect\n"
        "from errcomp.cli import main\n"
        "def close(*_):\n"
        f"    signal.raise_signal(signal.{number})\n"
        "DefaultDialect.do_close = close\n"
        "sys.exit(main(['history', 'add', 'h.db', 'new.csv']))\n"
    )
    (tmp_path / "new.csv").write_text("version,op,measured\n1.0,Gelu,4.0\n")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1, 0.4])
def test_an_interrupt_is_one_line_whenever_it_comes(delay: float) -> None:
    """From where errcomp is entered; before that the interpreter answers."""
    code = (
        "import sys\n"
        "from errcomp.cli import main\n"
        "print('entered', flush=True)\n"
        "sys.exit(main(['propagate', 'validate', '--json']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "entered\n"
    time.sleep(delay + 0.005)  # for the call itself
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "errcomp: interrupted\n")


def test_a_terminated_command_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from errcomp import cli\n"
        "from errcomp.system.files import replacing\n"
        "def run(args):\n"
        "    with replacing(Path('a.json')) as temporary:\n"
        "        temporary.write_text('half')\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "import errcomp.cli.commands.datasets as module\n"
        "module._list = run\n"
        "sys.exit(cli.main(['datasets', 'list']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "writing\n"
        assert list(tmp_path.iterdir())
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("letter", ["x", "\x1b", "é", "\udcff", "\u202e"])
def test_a_long_message_keeps_its_beginning_and_its_end(
    capsys: pytest.CaptureFixture[str], letter: str
) -> None:
    streams.complain(f"a.csv: {letter * 100_000} Rename it.")
    said = capsys.readouterr().err
    assert 1900 < len(said) < 2050
    assert said.startswith(
        f"errcomp: a.csv: {letter if letter.isprintable() else ascii(letter)[1:-1]}"
    )
    assert said.endswith(" Rename it.\n")
    assert said.count(" … ") == 1
    assert said[:-1].isprintable()


@pytest.mark.parametrize("length", [1999, 2000, 2001, 4000, 4001])
def test_what_fits_is_not_cut(length: int) -> None:
    text = "".join(chr(97 + i % 26) for i in range(length))
    line = streams.one_line(text)
    assert (line == text) is (length <= 2000)
    assert len(line) == min(length, 2000)
    before, _, after = line.partition(" … ")
    assert text.startswith(before)
    assert text.endswith(after)


def test_names_of_files_send_no_codes_to_a_terminal(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    """Neither in the list of files that were skipped, nor in an error."""
    folder = tmp_path / "logs"
    folder.mkdir()
    log = "sys[0] finished, 12 cycles, exposed communication 3 cycles.\n"
    (folder / "good\x1b[2J.log").write_text(log)
    (folder / "bad\x1b]0;title\x07\r.log").write_text("nothing that is known\n")
    ran = run("ingest", folder, "-o", tmp_path / "rows.csv")
    assert ran.code == 0
    assert r"read good\x1b[2J.log" in ran.err
    assert r"skipped bad\x1b]0;title\x07\r.log: " in ran.err
    assert all(line.isprintable() for line in ran.err.split("\n"))
    (folder / "good\x1b[2J.log").unlink()
    ran = run("ingest", folder, "-o", tmp_path / "rows.csv")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert ran.err[:-1].isprintable()


def test_a_long_value_is_not_printed_whole(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"device,predicted,measured\n{'A' * 300_000},{'x' * 300_000},1\n")
    ran = run("audit", path)
    assert ran.code == 2
    assert ran.err.startswith(f"errcomp: {path}: ")
    assert len(ran.err) < 2100


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"),
    [(True, False, True), (True, True, False), (False, False, True), (False, True, False)],
)
def test_progress_appears_only_for_people_who_wait(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, shown: bool
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(streams, "_PATIENCE_S", 0.01)
    with streams.progress("searching", quiet=quiet) as report:
        report(1, 2)
        time.sleep(0.4)
    assert ("searching" in stream.getvalue()) is shown


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_quick_work_shows_nothing(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with streams.progress("searching") as report:
        report(2, 2)
    assert "searching" not in stream.getvalue()


def test_without_a_terminal_lines_say_what_is_done_and_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, now = io.StringIO(), [100.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(streams.time, "monotonic", lambda: now[0])
    with streams.progress("fitting") as report:
        for at, what, done in ((101, "a", 0), (106, "b", 1), (108, "c", 2), (112, "d", 3)):
            now[0] = float(at)
            report.begin(what)  # type: ignore[attr-defined]
            report(done, 4)
        now[0] = 130.0
        report(4, 4)
    assert stream.getvalue().splitlines() == [
        "fitting: 0% done after 6 s; b",
        "fitting: 50% done after 12 s, about 12 s left; d",
    ]


def test_work_that_says_nothing_of_its_progress_has_no_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(streams, "_PATIENCE_S", 0.01)
    with streams.progress("auditing"):
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_a_column_that_is_left_out_is_named_once(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]
) -> None:
    table = {"predicted": [11.0, 12.0], "measured": [10.0, 10.0], "gpu": ["A", "B"]}

    def load(args: Any, **_: Any) -> Pairs:
        for _ in range(2):
            pairs = Pairs({**table, "shape": [[1, 2], [3]]})
        return pairs

    monkeypatch.setattr("errcomp.cli.commands.audit.load_pairs", load)
    ran = run("audit", "t.parquet", "--by", "gpu")
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert ran.err.startswith(
        "errcomp: warning: columns left out, because they cannot be keys: 'shape' (its values are "
        "lists"
    )
    refused = run("audit", "t.parquet", "--by", "shape")
    assert refused.code == 2
    assert "warning: columns left out" in refused.err
    assert (
        "cannot group by 'shape': its values are lists or similar. Put each element in"
        in refused.err
    )


def test_only_chosen_kinds_of_warnings_are_always_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with warnings_told(), pytest.raises(RuntimeWarning):  # the filters of the tests hold
        warnings.warn("divided by zero", RuntimeWarning, stacklevel=1)
    with warnings_told(RuntimeWarning):
        for _ in range(2):
            warnings.warn("divided\nby zero", RuntimeWarning, stacklevel=1)
    assert capsys.readouterr().err == "errcomp: warning: divided by zero\n"


def test_output_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        error: OSError = OSError(28, "No space left on device")

        def flush(self) -> None:
            raise self.error

    full = Full()
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(OSError, match="No space left") as raised:
        streams.say("a", end="!")
    assert (raised.value.errno, raised.value.filename) == (28, "standard output")
    assert full.getvalue() == "a!"
    full.error = BrokenPipeError(32, "Broken pipe")
    with pytest.raises(BrokenPipeError) as closed:
        streams.say("b")
    assert closed.value.filename is None
    assert full.getvalue() == "a!b\n"


def test_after_a_closed_pipe_output_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream, os.fdopen(read) as reader:
        monkeypatch.setattr(sys, "stdout", stream)
        streams.silence()
        stream.write("lost")
        stream.flush()
        stream.close()
        assert reader.read() == ""
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # which has no file
    streams.silence()
