"""Large folders, read by several processes."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errcomp.errors import InputError
from errcomp.readers.core import ingest as ingesting
from errcomp.readers.core import parallel as _processes
from errcomp.readers.core import registry
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output, Skipped, output
from errcomp.readers.core.parallel import Along, File, processes_for, read_files
from errcomp.readers.core.registry import Format
from errcomp.readers.core.source import Source
from errcomp.results import Dropped
from errcomp.system.limits import current, limits

pytestmark = pytest.mark.core

LOG = "sys[0] finished, 12 cycles, exposed communication 3 cycles.\n"
#: A package of somebody else, as the processes see it.
PACKAGE = """
from errcomp.readers.core.output import output
from errcomp.readers.core.registry import Format

ROW = {"tool": "X", "level": "model", "quantity": "time", "unit": "ms", "predicted": 1.0}

def read(source):
    print("what a reader prints")
    return output(source.name, "other-log", [{**ROW, "run": "1"}], notes=["A note."])

FORMATS = [Format("other-log", "X", "log", ("model",), ("time",), ("ms",), "predictions", "",
                  lambda source: source.head.startswith(b"OTHER"), read)]
"""
#: A process that answers at once: loading the readers is most of the time of a real one.
STAND_IN = """
import json, os, signal, sys
sys.stdin.readline()
print("ready", flush=True)
for job in sys.stdin:
    path, name = json.loads(job)
    kind = open(path).read()
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "leaves":
        sys.exit(3)
    if kind == "dies within":
        print(json.dumps(["output", 9, {}]) + "\\nrows", end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "again":
        print(json.dumps(["again", 0, {}]), flush=True)
        continue
    print(json.dumps(["skipped", 0, {"name": name, "reason": kind}]), flush=True)
"""


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two processes read any folder, however small."""
    monkeypatch.setattr(_processes, "_PAYS", 0)
    two_cores(monkeypatch)


@pytest.fixture
def stand_in(two: None, monkeypatch: pytest.MonkeyPatch) -> list[_processes._Child]:
    """Start no readers, and tell of what was started."""
    started: list[_processes._Child] = []

    class Child(_processes._Child):
        def __init__(self, names: Sequence[str] | None) -> None:
            super().__init__(names)
            started.append(self)

    monkeypatch.setattr(_processes, "_CODE", STAND_IN)
    monkeypatch.setattr(_processes, "_Child", Child)
    return started


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the package."""
    info = tmp_path / "site" / "other_readers-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "other_readers.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-readers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[errcomp.readers]\nother = other_readers:FORMATS\n")
    monkeypatch.syspath_prepend(info.parent)
    registry.formats.cache_clear()
    yield
    sys.modules.pop("other_readers", None)
    registry.formats.cache_clear()


def two_cores(monkeypatch: pytest.MonkeyPatch, number: int = 2) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(number)), raising=False)


def folder(tmp_path: Path, **files: str) -> Path:
    path = tmp_path / "in"
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def parquet(found: Output) -> bytes:
    content = io.BytesIO()
    found.rows.write_parquet(content)
    return content.getvalue()


@pytest.mark.usefixtures("two", "package")
def test_the_same_as_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path, a=LOG, b=LOG * 9, c="?", d="", e="OTHER", f="OTHER", z=LOG * 5)
    (path / "read.me.md").write_text("x")
    (path / "sweep.csv.gz").write_bytes(gzip.compress(b"LayerID, Total Cycles,\n0, 1,\n1"))
    steps: list[tuple[float, float]] = []
    found = ingest(path, progress=lambda *step: steps.append(step))
    monkeypatch.setattr(_processes, "_MOST", 1)
    alone = ingest(path)
    assert found.report == alone.report
    assert found.files == ("a", "b", "e", "f", "z")
    assert (found.skipped, found.notes) == (alone.skipped, alone.notes)
    assert found.rows.equals(alone.rows)
    assert parquet(found) == parquet(alone)
    assert len(steps) == len(list(path.iterdir()))
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1] == sum(one.stat().st_size for one in path.iterdir())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("dies", r"signal 9; memory may have run out"),
        ("dies within", r"signal 9; memory may have run out"),
        ("leaves", r"exit 3"),
    ],
)
def test_a_process_that_is_ended(
    tmp_path: Path, stand_in: list[_processes._Child], kind: str, message: str
) -> None:
    # The others are read: here the stand-in answers that each is skipped.
    message = rf"a: A; b: the process that was reading it was killed \({message}\)\. Load .*; c: C$"
    with pytest.raises(InputError, match=message):
        ingest(folder(tmp_path, a="A", b=kind, c="C"))
    assert [child.process.returncode is None for child in stand_in] == [False, False]


def test_interrupted(tmp_path: Path, stand_in: list[_processes._Child]) -> None:
    def interrupt(done: float, total: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(folder(tmp_path, a="A", b="B", c="C"), progress=interrupt)
    assert [child.process.returncode for child in stand_in] == [-9, -9]


@pytest.mark.usefixtures("stand_in")
def test_what_cannot_be_sent_is_read_here(tmp_path: Path) -> None:
    path = folder(tmp_path, a="A", b="again")
    (path / "c").write_text("X" * 9)
    steps: list[tuple[float, float]] = []
    with pytest.raises(InputError) as raised:
        ingest(path, progress=lambda *step: steps.append(step))
    # Of the others the stand-in says that the reason is their content.
    assert "a: A; b: not recognised" in str(raised.value)
    assert "c: XXXXXXXXX" in str(raised.value)
    assert steps == sorted(steps)
    assert steps[-1] == (15, 15)


def test_a_graph_is_made_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"tool": "X", "level": "model", "quantity": "time", "unit": "ms", "predicted": 1.0}

    def read(source: Source) -> Output:
        return output(source.name, "x", [row], graph=lambda: {"nodes": 1})

    one = Format("x", "X", "x", (), (), (), "neither", "", lambda s: s.head == b"X", read)
    path = folder(tmp_path, a="X", b="?")
    sent = _processes._packed(read(Source(path / "a", name="a")))
    monkeypatch.setattr(ingesting, "processes_for", lambda files, among: 2)
    monkeypatch.setattr(ingesting, "read_files", lambda *_: {0: _processes._unpacked(*sent)})
    graph = ingest(path, among=[one]).graph
    assert graph is not None
    assert graph() == {"nodes": 1}


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("python", ["/bin/false", "/none/python"])
def test_without_a_python_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    path = folder(tmp_path, a=LOG, b=LOG)
    files = [File(one, one.name, 9) for one in path.iterdir()]
    assert processes_for(files, None) == 2
    assert read_files(files, None, 2) == {}
    assert len(ingest(path).rows) == 4


def test_small_folders_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_cores(monkeypatch, 8)
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(b"x"))
    plain = File(tmp_path / "a", "a", 20 << 20)
    small = File(packed, "t", 1 << 20)
    assert processes_for([plain], None) == 1  # one file, however large, is not divided
    assert processes_for([plain, plain], None) == 1
    assert processes_for([plain, plain, plain], None) == 2
    assert processes_for([plain, small, small], None) == 1
    assert processes_for([plain, *[small] * 4], None) == 2  # gzip unpacks to ten times its size
    assert processes_for([File(tmp_path / "a.png", "a", 1 << 30)] * 3, None) == 1
    assert processes_for([], None) == 1
    own = Format("x", "X", "", (), (), (), "neither", "", lambda source: True, None)
    assert processes_for([plain] * 9, [own]) == 1  # another process does not know this format
    two_cores(monkeypatch, 1)
    assert processes_for([plain] * 9, None) == 1
    monkeypatch.setattr(sys, "executable", "")
    assert processes_for([plain] * 9, None) == 1


def test_what_is_sent_is_what_was_found() -> None:
    row = {"tool": "x", "level": "model", "quantity": "time", "unit": "ms", "predicted": 0.1}
    found = output(
        "a", "f", [row, {**row, "run": "µ"}], dropped=[Dropped("r", 2, (3,))], notes=["N"]
    )
    kind, told, rows = _processes._packed(found)
    again = _processes._unpacked(kind, told, rows)
    assert isinstance(again, Output)
    assert again.rows.equals(found.rows)
    assert again.rows.schema == found.rows.schema
    for name in ("formats", "files", "dropped", "skipped", "notes", "graph", "along"):
        assert getattr(again, name) == getattr(found, name)
    for one in (Skipped("a", "b"), Along("a", "b")):
        assert _processes._unpacked(*_processes._packed(one)) == one


def test_cores_are_counted_where_the_system_does_not_say_which_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [File(tmp_path / "a", "a", 40 << 20)] * 3
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for count, expected in ((8, 2), (1, 1), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert processes_for(files, None) == expected


@pytest.mark.parametrize("names", [None, ["nccl-tests-log"]])
def test_what_a_process_does(
    names: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder(tmp_path, a=LOG, b="?", c="bug", d=LOG * 2)
    looked: list[tuple[str, int | None, int]] = []

    def look(file: Path, name: str, among: Any) -> Any:
        looked.append((name, current().rows, current().files))
        if file.name == "c":
            raise ZeroDivisionError
        return _look(file, name, among)

    _look = _processes.look
    answers, copied, signals, confined = io.BytesIO(), [], [], []
    with limits(rows=9, files=8):
        given = asdict(current())
    jobs = [[names, given], *([os.fspath(path / name), f"in/{name}"] for name in "abcd")]
    lines = b"".join(json.dumps(job).encode() + b"\n" for job in jobs)
    with monkeypatch.context() as patch:
        patch.setattr(_processes, "look", look)
        patch.setattr(_processes, "_confine", confined.append)
        # Of this module alone: what else runs in the process keeps the system.
        dup = {"dup": lambda number: ("copy of", number), "dup2": lambda *both: copied.append(both)}
        opened = {"fdopen": lambda *both: {(("copy of", 1), "wb"): answers}[both]}
        patch.setattr(_processes, "os", SimpleNamespace(**vars(os) | dup | opened))
        quiet = {"signal": lambda *both: signals.append(both)}
        patch.setattr(_processes, "signal", SimpleNamespace(**vars(signal) | quiet))
        stdin = SimpleNamespace(buffer=io.BytesIO(lines))
        patch.setattr(_processes, "sys", SimpleNamespace(**vars(sys) | {"stdin": stdin}))
        _processes.main()
    assert signals == [(signal.SIGINT, signal.SIG_IGN)]
    assert copied == [(2, 1)]
    assert confined == [len(LOG), 1, 3, 2 * len(LOG)]
    assert looked == [(f"in/{name}", 9, 8) for name in "abcd"]
    answers.seek(0)
    assert answers.readline() == b"ready\n"
    found = []
    for _ in "abcd":
        kind, size, described = json.loads(answers.readline())
        found.append(_processes._unpacked(kind, described, answers.read(size)))
    assert answers.read() == b""
    assert found[2] is None
    among = None if names is None else registry.formats_of(names[0])
    for place, name in ((0, "a"), (1, "b"), (3, "d")):
        alone = _look(path / name, f"in/{name}", among)
        assert type(found[place]) is type(alone)
        if isinstance(alone, Output):
            assert alone.rows.equals(found[place].rows)  # type: ignore[union-attr]
        else:
            assert found[place] == alone
    assert isinstance(found[0], Skipped if names else Output)


def test_a_process_is_confined_to_the_limits_and_those_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = (resource.RLIMIT_CORE, resource.RLIMIT_DATA, resource.RLIMIT_CPU)
    used = SimpleNamespace(ru_utime=3.0, ru_stime=1.5)
    hard = dict.fromkeys(kinds, resource.RLIM_INFINITY)
    refused: list[int] = []
    found: dict[int, tuple[int, int]] = {}

    def setrlimit(kind: int, both: tuple[int, int]) -> None:
        if kind in refused:
            raise ValueError
        found[kind] = both

    monkeypatch.setattr(resource, "getrusage", {resource.RUSAGE_SELF: used}.__getitem__)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (-5, hard[kind]))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    _processes._confine(10)
    assert [found[kind][0] for kind in kinds] == [0, 4 << 30, 139]
    assert {both[1] for both in found.values()} == {resource.RLIM_INFINITY}
    hard |= {resource.RLIMIT_DATA: 1000, resource.RLIMIT_CPU: 500}
    refused.append(resource.RLIMIT_CORE)
    found.clear()
    with limits(memory=2000, seconds=20.5):
        _processes._confine(10)
    assert found == {resource.RLIMIT_DATA: (1000, 1000), resource.RLIMIT_CPU: (60, 500)}


def test_the_graph_of_another_process_is_not_here() -> None:
    with pytest.raises(RuntimeError, match="only the process that read the file has its graph"):
        _processes.not_here()
