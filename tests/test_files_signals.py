"""Signals and full disks at random moments while a command writes.

Each file is the old one or the new one, byte for byte; several files of one command are all old or
all new, and nothing else is left. Only SIGKILL, which nobody can answer, may leave hidden
temporary files, and some of several files new.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from errcomp.system import files
from errcomp.system.files import replacing, replacing_folder, together
from tests.test_files_faults import COMMANDS, Bench, bench, content  # noqa: F401

#: A full disk is no signal: from a moment on, no file may grow beyond some size.
FULL = 0
EVENTS = {
    "SIGINT": signal.SIGINT,
    "SIGTERM": signal.SIGTERM,
    "SIGKILL": signal.SIGKILL,
    "full disk": FULL,
}
#: Exit codes of a command that is stopped. Outside of its `main`, Python answers.
CODES = {
    "SIGINT": (130, -signal.SIGINT),
    "SIGTERM": (143, -signal.SIGTERM),
    "SIGKILL": (-signal.SIGKILL,),
    "full disk": (2,),
}
#: Trials of each event for each command that takes long; the others have 17.
TIMES = {"report": 6, "propagate": 6, "calibrate fit": 3, "replicate": 2}
#: Names that files.py gives while it writes: to files, to folders, and to what is replaced.
HIDDEN = re.compile(r"\.(.+)\.(?:[0-9a-f]{16}|[0-9a-f]{8})(\.old)?")
#: What a command that takes more than two seconds says before, as it does on a busy machine.
PROGRESS = re.compile(r"^.+: \d+% done after .+\n", re.MULTILINE)

#: A process that forks a child for each command, as starting Python takes longer than most
#: commands. It loads what a child loaded, but runs none itself: a fork would not copy the threads
#: that libraries start then.
ZYGOTE = """
import gc, importlib, json, os, resource, signal, sys, tempfile, time
from contextlib import suppress

from errcomp.cli import main

SIGNALS = {signal.SIGINT, signal.SIGTERM}

def entered(argv):
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = main(argv)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    except SystemExit as error:
        code = error.code
    except KeyboardInterrupt:  # outside of main; so Python ends itself
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code  # here what an exception held is released

def hidden(folder):
    return any(name.startswith(".") for name in os.listdir(folder))

def run(argv, event, most, moment, from_writing, folder):
    if argv[0] == "audit":  # else the first child would load it as well
        import errcomp
        errcomp.audit
    said, says = os.pipe()
    known, loaded = set(sys.modules), tempfile.TemporaryFile("w+")
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(says, 2)
        code = entered(argv)
        if event is None:
            json.dump([name for name in sys.modules if name not in known], loaded)
            loaded.flush()
        os._exit(code)
    os.close(says)
    start, first, last, writing = time.monotonic(), None, None, None
    while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        now, seen = time.monotonic() - start, hidden(folder)
        if seen:
            first, last = first or now, now
        since = first if from_writing else 0.0
        if event is not None and writing is None and since is not None and now >= since + moment:
            writing = seen
            if event:
                os.kill(child, event)
            else:
                resource.prlimit(child, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # nothing more is looked at
        time.sleep(0.0001)
    seconds = time.monotonic() - start
    _, status = os.waitpid(child, 0)
    if event is None:
        loaded.seek(0)
        for name in json.load(loaded):
            with suppress(Exception):
                importlib.import_module(name)
        gc.freeze()
    with os.fdopen(said) as text:
        return os.waitstatus_to_exitcode(status), text.read(), seconds, first, last, bool(writing)

for order in sys.stdin:
    print(json.dumps(run(*json.loads(order))), flush=True)
"""


@dataclass(frozen=True)
class End:
    """How a command ended."""

    code: int
    said: str
    #: Seconds that it took, until there was a temporary file, and until there was one no more.
    seconds: float = 0.0
    first: float | None = None
    last: float | None = None
    #: Whether there was one when the event happened.
    writing: bool = False


@dataclass
class Zygote:
    """Runs commands in forks of one process, where an event may happen."""

    process: subprocess.Popen[str]
    folder: Path

    def run(
        self,
        key: str,
        event: int | None = None,
        *,
        most: int = 0,
        moment: float = 0.0,
        from_writing: bool = False,
    ) -> End:
        order = [argv(key, self.folder), event, most, moment, from_writing, str(self.folder)]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return End(*json.loads(self.process.stdout.readline()))


def argv(key: str, folder: Path) -> list[str]:
    return [word.replace("{}", str(folder)) for word in COMMANDS[key][0].split()]


@pytest.fixture
def zygote(bench: Bench) -> Iterator[Zygote]:  # noqa: F811
    # Its stderr is a pipe, as that of its children: Python would try to seek in what was a file.
    with subprocess.Popen(
        [sys.executable, "-c", ZYGOTE],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield Zygote(process, bench.outputs)
        assert process.stdin is not None
        process.stdin.close()


@dataclass
class Trials:
    """The trials of one command: what it replaces, what it writes, how long it takes."""

    bench: Bench
    key: str
    old: dict[str, Any]
    new: dict[str, Any]
    usual: End

    @classmethod
    def of(cls, bench: Bench, key: str, run: Callable[[str], End]) -> Trials:  # noqa: F811
        """Run a command twice without an event: the first may load what the second has."""
        for _ in range(2):
            place(bench.outputs, {})
            usual = run(key)
            assert usual.code == 0, usual
        new = bench.contents(COMMANDS[key][1])
        return cls(bench, key, {name: before(name, one) for name, one in new.items()}, new, usual)

    def largest(self) -> int:
        return max(len(part) for one in self.new.values() for part in parts(one))

    def check(self, kind: str, end: End) -> str:
        """Check what a command left, and how it ended; return when the event came."""
        now, names = self.bench.contents(tuple(self.new)), set(self.new)
        left = {one.name for one in self.bench.outputs.iterdir()} - names
        what = (self.key, kind, end, left, {name: now[name] == self.new[name] for name in names})
        assert end.code in (0, *CODES[kind]), what
        assert end.code != 0 or now == self.new, what
        if kind == "SIGKILL":
            self.check_killed(now, left)
            return "ended" if end.code == 0 else "writing" if end.writing else "before"
        assert now in (self.old, self.new), what
        assert not left, what
        if end.code == -signal.SIGINT:  # Python says where
            assert "errcomp: interrupted" not in end.said, what
            return "outside"
        # Polars says itself where a signal comes while it first looks for NumPy.
        assert "Traceback" not in end.said or " panicked at " in end.said, what
        assert "Exception ignored" not in end.said, what
        if end.code == 130:
            assert end.said.endswith("errcomp: interrupted\n"), what
        if end.code == 2:
            assert now == self.old, what
            answer = PROGRESS.sub("", end.said)
            assert answer.count("\n") == answer.count("errcomp: ") == 1, what
        if end.code == 0:
            return "ended"
        return "replaced" if now == self.new else "writing" if end.writing else "before"

    def check_killed(self, now: dict[str, Any], left: set[str]) -> None:
        """Check what files.py promises even then."""
        for name, one in now.items():
            if one is None and self.old[name] is not None:  # between the two renames of a folder
                (aside,) = self.bench.outputs.glob(f".{name}.*.old")
                assert content(aside) == self.old[name]
            else:
                assert one in (self.old[name], self.new[name]), (self.key, name)
        for name in left:
            named = HIDDEN.fullmatch(name)
            assert named is not None, name
            assert named[1] in now, name


def before(name: str, new: Any) -> Any:
    """Return what a command finds in the place of what it will write."""
    if name.endswith(".model"):  # anything that is not a model would be refused
        return None
    if isinstance(new, dict):  # a folder that the command wrote, of another version
        first, _, _ = new["README.md"].partition(b"\n")
        digest = hashlib.sha256(first + b"\n").hexdigest()
        return {"README.md": first + b"\n", files.SUMS: f"{digest}  README.md\n".encode()}
    return b"of before\n"


def parts(one: Any) -> list[bytes]:
    return list(one.values()) if isinstance(one, dict) else [one]


def place(folder: Path, contents: dict[str, Any]) -> None:
    """Empty a folder, and put files and folders in place."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, one in contents.items():
        if isinstance(one, dict):
            (folder / name).mkdir()
            for file, text in one.items():
                (folder / name / file).write_bytes(text)
        elif one is not None:
            (folder / name).write_bytes(one)


def events(trials: Trials, zygote: Zygote, kind: str, times: int) -> Counter[str]:
    """Let an event happen at random moments: of the whole run, and while files are written."""
    bench, key = trials.bench, trials.key  # noqa: F811
    rng = random.Random(f"{key} {kind}")
    ends: Counter[str] = Counter()
    usual = trials.usual
    for i in range(times):
        place(bench.outputs, trials.old)
        from_writing = i % 2 == 1
        span = (usual.last or 0.0) - (usual.first or 0.0) if from_writing else usual.seconds
        end = zygote.run(
            key,
            EVENTS[kind],
            most=rng.choice([0, rng.randrange(trials.largest())]),
            moment=rng.uniform(0.0, span),
            from_writing=from_writing,
        )
        ends[trials.check(kind, end)] += 1
        if kind == "SIGKILL" and end.code != 0:  # the next run is not disturbed
            assert zygote.run(key).code == 0
            assert bench.contents(tuple(trials.new)) == trials.new
    return ends


@pytest.mark.core
def test_events_while_three_files_are_written(bench: Bench, zygote: Zygote) -> None:  # noqa: F811
    trials = Trials.of(bench, "audit, three", zygote.run)
    for kind in EVENTS:
        assert events(trials, zygote, kind, times=2).total() == 2


@pytest.mark.extras
@pytest.mark.slow
def test_events_at_random_moments(bench: Bench, zygote: Zygote) -> None:  # noqa: F811
    """The writer of a store does not write through files.py, and has a test of its own."""
    ends: dict[str, Counter[str]] = {kind: Counter() for kind in EVENTS}
    for key in COMMANDS:
        if key != "history add":
            trials = Trials.of(bench, key, zygote.run)
            for kind, counts in ends.items():
                counts.update(events(trials, zygote, kind, times=TIMES.get(key, 17)))
    for kind, counts in ends.items():
        print(f"{kind}: {dict(counts)}")
        assert counts.total() >= 200
        # The moments were such that files were being written; fewer on a busy machine.
        assert counts["writing"] + counts["replaced"] >= 20


def through_python(bench: Bench, key: str, event: int, most: int, moment: float) -> End:  # noqa: F811
    """Run a command as a user does; let an event happen some time after it answers signals."""
    with subprocess.Popen(
        [sys.executable, "-m", "errcomp", *argv(key, bench.outputs)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not answers(process.pid, signal.SIGTERM) and process.poll() is None:
            time.sleep(0.001)
        start = time.monotonic()
        time.sleep(moment)
        if event == FULL:
            with suppress(ProcessLookupError):
                limit = (most, resource.RLIM_INFINITY)
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limit)
        else:
            process.send_signal(event)
        _, said = process.communicate()
    return End(process.returncode, said, time.monotonic() - start)


def answers(pid: int, number: int) -> bool:
    """Say whether a process has a handler of a signal."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return caught is not None and bool(int(caught[1], 16) >> number - 1 & 1)


def in_python(bench: Bench, zygote: Zygote, key: str, times: int) -> Counter[str]:  # noqa: F811
    trials, rng = Trials.of(bench, key, zygote.run), random.Random(key)
    place(bench.outputs, trials.old)
    usual = through_python(bench, key, FULL, resource.RLIM_INFINITY, 0.0)
    assert usual.code == 0, usual
    ends: Counter[str] = Counter()
    for kind, event in EVENTS.items():
        for _ in range(times):
            place(bench.outputs, trials.old)
            most = rng.randrange(trials.largest())
            end = through_python(bench, key, event, most, rng.uniform(0.0, usual.seconds))
            ends[trials.check(kind, end)] += 1
    return ends


@pytest.mark.core
def test_events_in_a_process_of_its_own(bench: Bench, zygote: Zygote) -> None:  # noqa: F811
    assert in_python(bench, zygote, "datasets export", times=1).total() == 4


@pytest.mark.core
@pytest.mark.slow
@pytest.mark.parametrize("key", ["audit, three", "history export"])
def test_events_in_processes_of_their_own(bench: Bench, zygote: Zygote, key: str) -> None:  # noqa: F811
    ends = in_python(bench, zygote, key, times=4)
    print(f"{key}: {dict(ends)}")
    assert ends["ended"] < 12


def write_one(folder: Path) -> None:
    with replacing(folder / "a") as path:
        path.write_bytes(b"new")


def write_two(folder: Path) -> None:
    with together():
        for name in "ab":
            with replacing(folder / name) as path:
                path.write_bytes(b"new")


def write_folder(folder: Path) -> None:
    with replacing_folder(folder / "f") as path:
        (path / "x").write_bytes(b"new")


@dataclass
class Step:
    """Raises what Ctrl-C raises before the n-th instruction of files.py."""

    number: int
    seen: int = 0

    def trace(self, frame: FrameType, *_: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != files.__file__:
            return None
        frame.f_trace_opcodes = True
        return self.count

    def count(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "opcode":
            self.seen += 1
            if self.seen == self.number:
                raise KeyboardInterrupt
        return self.count


# Slow, so that only one Python runs it: others trace other instructions, 3.13 not always the same.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "old", "new"),
    [
        (write_one, {}, {"a": b"new"}),
        (write_one, {"a": b"old"}, {"a": b"new"}),
        (write_two, {"b": b"old"}, {"a": b"new", "b": b"new"}),
        (write_folder, {}, {"f": {"x": b"new"}}),
        (write_folder, {"f": {"x": b"old", "y": b"old"}}, {"f": {"x": b"new"}}),
    ],
)
def test_ctrl_c_before_each_instruction(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Path], None],
    old: dict[str, Any],
    new: dict[str, Any],
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # for speed
    found: list[dict[str, Any]] = []
    traced, step = sys.gettrace(), Step(0)
    # Python 3.12 tells the instructions of a function from its second call on.
    sys.settrace(step.trace)
    write(tmp_path)
    sys.settrace(traced)
    step = Step(0)
    while step.seen >= step.number:
        place(tmp_path, old)
        step = Step(step.number + 1)
        sys.settrace(step.trace)
        try:
            with suppress(KeyboardInterrupt):
                write(tmp_path)
        finally:
            sys.settrace(traced)
        found.append({path.name: content(path) for path in tmp_path.iterdir()})
        # What comes next in this process is written as ever.
        with files.replacing(tmp_path / "next") as path:
            path.write_bytes(b"")
        assert (tmp_path / "next").exists()
    assert all(now in (old, new) for now in found)
    changed = [now == new for now in found]
    assert changed == sorted(changed)
    assert len(found) > 100
