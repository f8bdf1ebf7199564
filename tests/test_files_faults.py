"""Faults while a command writes: the old file whole or the new one, one line, exit 2."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import main
from errcomp.system import files

# Nothing was measured twice: the commands run some 400 times.
PAIRS = "device,model,predicted,measured\n" + "".join(
    f"{'AB'[i % 2]},m{i},{1 + i % 7}.5,{1 + i % 5}.25\n" for i in range(40)
)
LOG = "sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n"
SIDE = "model,predicted\na,1.5\nb,2.5\n", "model,measured\na,1.25\nb,2.25\n"
HISTORY = "version,series,predicted,measured\n1.0,a,1,1.1\n1.1,a,1,1.2\n1.2,a,1,1.3\n"
#: Commands, and the files that they write. Each `{}` is in the folder of the test.
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "audit.csv": ("audit pairs.csv -o {}/out.csv", ("out.csv",)),
    "audit.json": ("audit pairs.csv -o {}/out.json", ("out.json",)),
    "audit.parquet": ("audit pairs.csv -o {}/out.parquet", ("out.parquet",)),
    "audit.tex": ("audit pairs.csv -o {}/out.tex", ("out.tex",)),
    "audit, three": (
        "audit pairs.csv -o {}/out.md --junit {}/junit.xml --markdown {}/sum.md",
        ("out.md", "junit.xml", "sum.md"),
    ),
    "report": ("report pairs.csv -o {}/out.html", ("out.html",)),
    "ingest.csv": ("ingest astra.log -o {}/out.csv", ("out.csv",)),
    "ingest.parquet": ("ingest astra.log -o {}/out.parquet", ("out.parquet",)),
    "ingest.json": ("ingest astra.log -o {}/out.json", ("out.json",)),
    "join": ("join left.csv right.csv --on model -o {}/out.csv", ("out.csv",)),
    "propagate": ("propagate --run H100/gpt3_27/inference/2048/2 -o {}/out.json", ("out.json",)),
    "calibrate fit": ("calibrate fit --estimator linear -o {}/out.model", ("out.model",)),
    "replicate": ("replicate survey -o {}/out", ("out",)),
    "history add": ("history add {}/out.db history.csv", ("out.db",)),
    "history export": ("history export kept.db -o {}/out.csv", ("out.csv",)),
    "datasets export": ("datasets export ort-releases -o {}/out.csv", ("out.csv",)),
}
SLOW = ("propagate", "calibrate fit", "replicate", "report")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
#: Functions by which files.py, tempfile and pathlib change the disk.
CHANGES = ("open", "fsync", "replace", "rename", "link", "chmod", "mkdir")


@dataclass
class Faults:
    """Lets the n-th change of the disk below a folder fail."""

    below: Path
    fail_at: int
    error: int
    seen: int = 0
    hit: bool = False
    kept: dict[str, Any] = field(default_factory=dict)

    def wrap(self, name: str) -> Callable[..., Any]:
        original = self.kept[name]

        def call(*args: Any, **options: Any) -> Any:
            if self._counts(name, args):
                self.seen += 1
                if self.seen == self.fail_at:
                    self.hit = True
                    raise OSError(self.error, os.strerror(self.error), str(args[0]))
            return original(*args, **options)

        return call

    def _counts(self, name: str, args: Sequence[Any]) -> bool:
        if name == "fsync":
            return True
        # Files that are read are none of ours.
        return str(args[0]).startswith(str(self.below))


@contextmanager
def failing(below: Path, fail_at: int, error: int) -> Iterator[Faults]:
    faults = Faults(below, fail_at, error)
    faults.kept = {name: getattr(os, name) for name in CHANGES} | {"io": io.open}
    for name in CHANGES:
        setattr(os, name, faults.wrap(name))
    io.open = faults.wrap("io")
    try:
        yield faults
    finally:
        for name in CHANGES:
            setattr(os, name, faults.kept[name])
        io.open = faults.kept["io"]


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Let every write beyond this size of a file fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run(line: str, folder: Path) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it says on stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([word.replace("{}", str(folder)) for word in line.split()])
    return code, err.getvalue()


def content(path: Path) -> Any:
    """Return what must be old or new: bytes, or the rows of a store, or the files of a folder."""
    if path.is_dir():
        return {one.name: one.read_bytes() for one in sorted(path.iterdir())}
    if path.suffix == ".db" and path.exists():
        with contextlib.closing(sqlite3.connect(path)) as store:
            assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            if not store.execute("SELECT name FROM sqlite_master").fetchall():
                return None
            return store.execute("SELECT count(*) FROM errcomp_validation").fetchone()
    return path.read_bytes() if path.exists() else None


@dataclass
class Bench:
    """A folder with inputs, one for outputs, and how many faults were injected."""

    inputs: Path
    outputs: Path
    injected: int = 0

    def contents(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: content(self.outputs / name) for name in names}

    def check(self, key: str, old: dict[str, Any], new: dict[str, Any], what: str) -> None:
        _line, names = COMMANDS[key]
        code, told = self.code, self.told
        now = self.contents(names)
        assert now in (old, new), (key, what, code, told)
        assert (code == 2) == (now == old) or code == 0, (key, what, code, told)
        assert "Traceback" not in told, (key, what)
        assert code == 0 or told.count("errcomp: ") == 1, (key, what, told)
        assert code == 0 or "None" not in told, (key, what, told)
        left = {one.name for one in self.outputs.iterdir()} - set(names)
        assert not {name for name in left if not name.startswith("out.db-")}, (key, what, left)

    code: int = 0
    told: str = ""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    outputs.mkdir()
    given = {"pairs.csv": PAIRS, "astra.log": LOG, "left.csv": SIDE[0], "right.csv": SIDE[1]}
    for name, text in {**given, "history.csv": HISTORY}.items():
        (inputs / name).write_text(text)
    monkeypatch.chdir(inputs)
    assert run("history add kept.db history.csv", inputs)[0] == 0
    return Bench(inputs, outputs)


def reset(bench: Bench, old: dict[str, Any]) -> None:
    """Put the files of before in place: text in files, nothing in place of folders and stores."""
    for path in bench.outputs.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, before in old.items():
        if isinstance(before, bytes):
            (bench.outputs / name).write_bytes(before)


def every_fault(bench: Bench, key: str, *, most: int, sizes: int) -> None:
    """Let each change fail in turn, with each error, then writes at several sizes."""
    line, names = COMMANDS[key]
    code, told = run(line, bench.outputs)
    assert code == 0, told
    new = bench.contents(names)
    largest = max(one.stat().st_size for one in bench.outputs.rglob("*") if one.is_file())
    # A folder, a store or a model is not there before; a file is one of the user's.
    whole = all(isinstance(one, bytes) for one in new.values()) and key != "calibrate fit"
    old: dict[str, Any] = dict.fromkeys(names, b"of before\n" if whole else None)
    for error in ERRORS[: 1 if key == "replicate" else None]:
        for number in range(1, most, 7 if key == "replicate" else 1):
            reset(bench, old)
            with failing(bench.outputs, number, error) as faults:
                bench.code, bench.told = run(line, bench.outputs)
            bench.check(key, old, new, f"change {number} fails with {os.strerror(error)}")
            bench.injected += faults.hit
            if not faults.hit:
                break
        else:
            pytest.fail(f"{key}: more than {most} changes of the disk")
    for i in range(sizes):
        reset(bench, old)
        with at_most(largest * i // sizes):
            bench.code, bench.told = run(line, bench.outputs)
        bench.check(key, old, new, f"no file may be larger than {largest * i // sizes}")
        bench.injected += bench.code == 2


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in COMMANDS if key not in SLOW])
def test_a_fault_at_each_step(bench: Bench, key: str) -> None:
    every_fault(bench, key, most=60, sizes=3)
    # The file of a store is SQLite's own.
    assert bench.injected >= (3 if key == "history add" else 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=pytest.mark.extras if key in ("report", "replicate") else ())
        for key in COMMANDS
    ],
)
def test_faults_at_each_step_and_size(bench: Bench, key: str) -> None:
    every_fault(bench, key, most=1000, sizes=10 if key in SLOW else 60)
    # 16 commands: more than 1,000 faults in all.
    assert bench.injected >= (20 if key in (*SLOW, "history add") else 60)
    print(f"{key}: {bench.injected} faults")


def after(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return a function that does its work, and is then interrupted, the n-th time."""
    calls = itertools.count(1)

    def call(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        if next(calls) == number:
            raise KeyboardInterrupt
        return result

    return call


@pytest.mark.parametrize("step", ["open", "link", "replace", "rename", "mkdir"])
def test_ctrl_c_right_after_a_step_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    names = ("a.csv", "b.csv", "folder")
    interrupted = 0
    for number in range(1, 9):
        folder = tmp_path / str(number)
        (folder / "folder").mkdir(parents=True)
        (folder / "folder" / "f").write_text("old")
        (folder / "a.csv").write_text("old")
        with monkeypatch.context() as patch:
            patch.setattr(os, step, after(getattr(os, step), number))
            try:
                with files.replacing_folder(folder / "folder") as path:
                    (path / "f").write_text("new")
                with files.together():
                    for name in names[:2]:
                        with files.replacing(folder / name) as path:
                            path.write_text("new")
            except KeyboardInterrupt:
                interrupted += 1
        assert (folder / "folder" / "f").read_text() in ("old", "new")
        both = [content(folder / name) for name in names[:2]]
        assert both in ([b"old", None], [b"new", b"new"])
        assert {one.name for one in folder.iterdir()} <= set(names)
    assert interrupted > 0
